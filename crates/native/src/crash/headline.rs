//! The headline of a recovery test: the lost time.

use super::{RecoveryInfo, RecoveryStep};
use assay_measure::cpu;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next};
use assay_measure::record::{Figure, Record};
use assay_measure::units::{fixed, thousands};

/// The headline of kills.
pub(super) fn of(record: &Record, info: &RecoveryInfo) -> Headline {
    let longest = |get: fn(&RecoveryStep) -> &Figure| {
        let known = info.steps.iter().filter_map(|step| get(step).value());
        known.reduce(f64::max).map_or_else(Figure::default, Figure::decimal)
    };
    let line = |title, figure: &Figure, unit| HeadlineLine::told(title, vec![HeadlineFigure::new(figure, unit)]);
    Headline {
        tested: format!(
            "Crash and recovery: {} kills of a data set under load by {} sessions.",
            info.steps.len(),
            info.sessions_count
        ),
        rows: vec![
            HeadlineLine::of("Commits", vec![], &kept(info)),
            line("Rate", &longest(|step| &step.old_commits_per_s), "commits/s before the kill"),
            line("Restart", &longest(|step| &step.first_commit_s), "s from the restart to the first commit (longest)"),
        ],
        steadiness: "n/a (kills one after the other, no window)".to_owned(),
        limit: cpu::limit(record).unwrap_or_else(|| limit(info)),
        next: vec![Next::new(
            "assay run --target native:DIR --set UPDATE_PCT=100",
            "measures the cost of the same commits without a failure",
        )],
        ..Headline::default()
    }
}

/// How many acknowledged commits the restarts found.
fn kept(info: &RecoveryInfo) -> String {
    let sum = |get: fn(&RecoveryStep) -> u64| info.steps.iter().map(get).sum::<u64>();
    let (lost, all) = (sum(|step| step.lost_count), sum(|step| step.acknowledged_count));
    let promise = if info.commit_mode == "none" { " (COMMIT_MODE=none promises none)" } else { "" };
    format!("{} of {} acknowledged commits lost{promise}", thousands(lost), thousands(all))
}

/// A restart is short where little log lies behind the checkpoint.
fn limit(info: &RecoveryInfo) -> Limit {
    let (Some(fixed_s), Some(per_mib)) = (info.fixed_s.value(), info.per_mib_s.value()) else {
        return Limit::unknown("too few kills to separate the log's share from the rest");
    };
    Limit::new(
        "the log since the last checkpoint",
        format!(
            "{} s of a restart do not depend on the log; each MiB of log adds {} ms.",
            fixed(fixed_s, 2),
            fixed(1e3 * per_mib, 2)
        ),
    )
}
