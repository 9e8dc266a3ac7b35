//! The report of a load: the metrics block that stress-ng's scripts read, and what it leaves out.

use super::{LoadInfo, LoadSecond};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, ORANGE};
use assay_measure::record::Figure;
use assay_measure::section::{Cell, Column, Sections, number, number_or_reason, right};
use assay_measure::units::fixed;

/// Seconds that vary by less are steady, %.
const STEADY_PCT: f64 = 3.0;

/// The lines of `stress-ng --metrics-brief`, version 0.15, with our name in front, a row for each stressor. Both rates are what the row's own
/// printed figures give, so that who divides them finds no difference.
pub(crate) fn block(rows: &[(&str, &LoadInfo)]) -> Vec<String> {
    let Some((_, first)) = rows.first() else {
        return Vec::new();
    };
    let lead = format!("assay: metrc: [{}] ", first.pid);
    let heads = [TITLES, UNITS].map(|head| format!("{lead}{head}"));
    let rows = rows.iter().map(|(stressor, load)| format!("{lead}{}", row(stressor, load)));
    heads.into_iter().chain(rows).collect()
}

fn row(stressor: &str, load: &LoadInfo) -> String {
    let rounded = |seconds: f64| (seconds * 100.0).round() / 100.0;
    let (real, user, system) = (rounded(load.real_s), rounded(load.user_s), rounded(load.system_s));
    let rate = |seconds: f64| if seconds > 0.0 { load.ops_count as f64 / seconds } else { 0.0 };
    format!(
        "{stressor:<13} {:>9} {real:>9.2} {user:>9.2} {system:>9.2} {:>12.2} {:>14.2}",
        load.ops_count,
        rate(real),
        rate(user + system)
    )
}

const TITLES: &str = "stressor       bogo ops real time  usr time  sys time   bogo ops/s     bogo ops/s";
const UNITS: &str = "                          (secs)    (secs)    (secs)   (real time) (usr+sys time)";

/// What a load is called in its report.
pub(crate) struct Words<'a> {
    /// The stressor, as the metrics row names it.
    pub(crate) stressor: &'a str,
    /// What an operation is, in sentences.
    pub(crate) ops: String,
    /// Operations in the titles of tables.
    pub(crate) unit: &'static str,
    /// CPUs it could use.
    pub(crate) cpus: usize,
    pub(crate) steal_pct: &'a Figure,
    pub(crate) throttled_s: &'a Figure,
    pub(crate) errors_count: u64,
    /// The first of them.
    pub(crate) errors: &'a [String],
}

/// The sections of a load.
pub(crate) fn sections(page: &mut Sections, load: &LoadInfo, words: &Words<'_>) {
    page.heading("Metrics");
    page.wrapped("", &words.ops);
    block(&[(words.stressor, load)]).iter().for_each(|line| page.line(line));
    let named = |page: &mut Sections, name: &str, value: String| page.named(name, 34, value);
    named(page, "CPUs busy", format!("{} of {}", number(&load.cpus_busy, 2), words.cpus));
    named(page, "Steal", with_unit(words.steal_pct, 2, "% of all CPU time"));
    named(page, "Throttled by a quota", with_unit(words.throttled_s, 2, "s"));
    named(
        page,
        "Effective clock, lowest and mean",
        format!("{} / {} MHz", number_or_reason(&load.mhz_min, 0), number_or_reason(&load.mhz_mean, 0)),
    );
    named(page, "Verification errors", words.errors_count.to_string());
    words.errors.iter().for_each(|error| page.wrapped("  ", error));
    seconds(page, load, words.unit);
}

fn with_unit(figure: &Figure, decimals: usize, unit: &str) -> String {
    match figure.reason() {
        Some(_) => number_or_reason(figure, decimals),
        None => format!("{} {unit}", number(figure, decimals)),
    }
}

/// Rows of the table of seconds.
const ROWS: usize = 60;

fn seconds(page: &mut Sections, load: &LoadInfo, unit: &'static str) {
    let table: [Column; 6] = [
        right("until s", 9),
        right(unit, 13),
        right("MHz mean", 10),
        right("MHz min", 10),
        right("steal %", 9),
        right("throttled s", 13),
    ];
    page.heading("By Second");
    let step = load.seconds.len().div_ceil(ROWS).max(1);
    if step > 1 {
        page.line(&format!("Every {step}th second; the record and the charts have all seconds."));
    }
    page.columns(&table);
    for second in load.seconds.iter().step_by(step) {
        page.row(
            &table,
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

/// Seconds that are whole: the last one of a stopped load may be a piece.
pub(crate) fn steadiness(load: &LoadInfo) -> String {
    let known = load.seconds.iter();
    let rates: Vec<f64> = known.filter_map(|second| second.ops_per_s.value()).collect();
    if rates.len() < 5 {
        return "n/a (fewer than five seconds)".to_owned();
    }
    let quarter = (rates.len() / 4).max(1);
    let (first, last) = (&rates[..quarter], &rates[rates.len() - quarter..]);
    let mean = assay_measure::statistics::mean;
    let cv = 100.0 * assay_measure::statistics::stddev(&rates) / mean(&rates);
    let trend = 100.0 * mean(last) / mean(first);
    let word = if cv <= STEADY_PCT { "steady" } else { "not steady" };
    format!(
        "{word}: seconds vary by {} %, the last quarter is {} % of the first quarter",
        fixed(cv, 1),
        fixed(trend, 1)
    )
}

/// The charts of a load, by second.
pub(crate) fn charts(load: &LoadInfo, what: &str) -> Vec<Drawn> {
    let chart = |id: &str, title: &str, y: Axis, traces: Vec<Trace>| {
        let chart = Chart {
            id: id.to_owned(),
            title: title.to_owned(),
            note: "By second.".to_owned(),
            x: Axis::of("time", "s"),
            y,
            rows: Rows::Numbers(load.seconds.iter().map(|second| second.t_s).collect()),
            traces,
            ..Chart::default()
        };
        Drawn::or(chart, "nothing was observed")
    };
    let of = |get: fn(&LoadSecond) -> &Figure| load.seconds.iter().map(|second| get(second).value()).collect();
    let ops = Trace::new(what, Stroke::Line, BLUE, of(|second| &second.ops_per_s));
    let clocks = vec![
        Trace::new("mean", Stroke::Line, BLUE, of(|second| &second.mhz_mean)),
        Trace::new("lowest", Stroke::Dotted, ORANGE, of(|second| &second.mhz_min)),
    ];
    let steal = Trace::new("steal", Stroke::Line, ORANGE, of(|second| &second.steal_pct));
    vec![
        chart("c-load-ops", "Work over time", Axis::of(what, "1/s"), vec![ops]),
        chart("c-load-clock", "Clock over time", Axis::of("effective clock", "MHz"), clocks),
        chart("c-load-steal", "Steal over time", Axis::of("of all CPU time", "%"), vec![steal]),
    ]
}
