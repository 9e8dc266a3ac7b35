//! The load's part of the report: the metrics block that scripts of stress-ng read, and what it does not say.

use super::info::{CpuInfo, SoakInfo};
use assay_measure::record::Figure;
use assay_measure::section::{Cell, Column, Sections, number, number_or_reason, right};
use assay_measure::units::fixed;

/// The three lines of `stress-ng --metrics-brief`, version 0.15, with our name in front. Both rates are what the row's own
/// printed figures give, so that who divides them finds no difference.
pub(super) fn block(soak: &SoakInfo) -> [String; 3] {
    let rounded = |seconds: f64| (seconds * 100.0).round() / 100.0;
    let (real, user, system) = (
        rounded(soak.real_s),
        rounded(soak.user_s),
        rounded(soak.system_s),
    );
    let rate = |seconds: f64| match seconds > 0.0 {
        true => soak.ops_count as f64 / seconds,
        false => 0.0,
    };
    let lead = format!("assay: metrc: [{}] ", soak.pid);
    [
        format!("{lead}{TITLES}"),
        format!("{lead}{UNITS}"),
        format!(
            "{lead}{:<13} {:>9} {real:>9.2} {user:>9.2} {system:>9.2} {:>12.2} {:>14.2}",
            "cpu",
            soak.ops_count,
            rate(real),
            rate(user + system)
        ),
    ]
}

const TITLES: &str =
    "stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s";
const UNITS: &str =
    "                          (secs)    (secs)    (secs)   (real time) (usr+sys time)";

/// The sections of a load.
pub(super) fn sections(page: &mut Sections, info: &CpuInfo, soak: &SoakInfo) {
    page.heading("Metrics");
    page.wrapped(
        "",
        &format!("In stress-ng's layout. ops = {}: one operation is one call of a kernel; all kernels of the set \
            take turns. Compare ops only with ops of the same kernel set, never with bogo ops of stress-ng.",
            info.kernel_set),
    );
    block(soak).iter().for_each(|line| page.line(line));
    let of = &info.conditions;
    let named = |page: &mut Sections, name: &str, value: String| page.named(name, 34, value);
    named(
        page,
        "CPUs busy",
        format!("{} of {}", number(&soak.cpus_busy, 2), info.cpus.len()),
    );
    named(
        page,
        "Steal",
        with_unit(&of.steal_pct, 2, "% of all CPU time"),
    );
    named(
        page,
        "Throttled by a quota",
        with_unit(&of.throttled_s, 2, "s"),
    );
    named(
        page,
        "Effective clock, lowest and mean",
        format!(
            "{} / {} MHz",
            number_or_reason(&soak.mhz_min, 0),
            number_or_reason(&soak.mhz_mean, 0)
        ),
    );
    named(
        page,
        "Verification errors",
        info.verification_errors_count.to_string(),
    );
    info.verification_errors
        .iter()
        .for_each(|error| page.wrapped("  ", error));
    seconds(page, soak);
}

fn with_unit(figure: &Figure, decimals: usize, unit: &str) -> String {
    match figure.reason() {
        Some(_) => number_or_reason(figure, decimals),
        None => format!("{} {unit}", number(figure, decimals)),
    }
}

/// Rows of the table of seconds.
const ROWS: usize = 60;

fn seconds(page: &mut Sections, soak: &SoakInfo) {
    const TABLE: [Column; 6] = [
        right("until s", 9),
        right("calls/s", 13),
        right("MHz mean", 10),
        right("MHz min", 10),
        right("steal %", 9),
        right("throttled s", 13),
    ];
    page.heading("By Second");
    let step = soak.seconds.len().div_ceil(ROWS).max(1);
    if step > 1 {
        page.line(&format!(
            "Every {step}th second; the record and the charts have all seconds."
        ));
    }
    page.columns(&TABLE);
    for second in soak.seconds.iter().step_by(step) {
        page.row(
            &TABLE,
            &[
                Cell::from(fixed(second.t_s, 1)),
                Cell::figure(&second.ops_per_s, 0),
                Cell::figure(&second.mhz_mean, 0),
                Cell::figure(&second.mhz_min, 0),
                Cell::figure(&second.steal_pct, 1),
                Cell::figure(&second.throttled_s, 2),
            ],
        );
    }
}
