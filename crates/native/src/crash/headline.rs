//! The first things to know of recovery: what was lost of time.

use super::{RecoveryInfo, RecoveryStep};
use assay_measure::kind::{Headline, Line, Told};
use assay_measure::record::Figure;

/// The headline of kills.
pub(super) fn of(info: &RecoveryInfo) -> Headline {
    let longest = |get: fn(&RecoveryStep) -> &Figure| {
        let known = info.steps.iter().filter_map(|step| get(step).value());
        known
            .reduce(f64::max)
            .map_or_else(Figure::default, Figure::decimal)
    };
    let line = |title, figure: &Figure, unit| {
        Line::of(title, vec![Told::new(figure, unit)], "n/a (absent)")
    };
    Headline {
        tested: format!(
            "Crash and recovery: {} kills of a data set under load by {} sessions.",
            info.steps.len(),
            info.sessions_count
        ),
        rows: vec![
            line(
                "Rate",
                &longest(|step| &step.old_commits_per_s),
                "commits/s before the kill",
            ),
            line(
                "Restart",
                &longest(|step| &step.first_commit_s),
                "s from the restart to the first commit, at the longest",
            ),
        ],
        steadiness: "n/a (kills one after the other, no window)".to_owned(),
    }
}
