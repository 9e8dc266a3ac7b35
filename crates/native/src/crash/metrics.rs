//! The metrics of recovery: how long an outage lasts, by checkpoint distance.

use super::{RecoveryInfo, RecoveryStep};
use assay_measure::record::metric::{Better, Group, plain};
use assay_measure::record::{Figure, Metric};
use assay_measure::units::size;

/// The longest outage, and each kill under its checkpoint distance.
pub(super) fn all(info: &RecoveryInfo) -> Vec<Metric> {
    let mut all = vec![
        plain(
            Group::Primary,
            "first_commit_s_max",
            "restart to first commit, longest",
            "s",
            Better::Lower,
            longest(info, |step| &step.first_commit_s),
        ),
        plain(
            Group::Primary,
            "rate_95_s_max",
            "restart to 95 % of the old rate, longest",
            "s",
            Better::Lower,
            longest(info, |step| &step.rate_95_s),
        ),
        plain(
            Group::Primary,
            "lost_commits_count",
            "acknowledged commits lost",
            "",
            Better::Lower,
            info.steps.iter().map(|step| step.lost_count).sum::<u64>().into(),
        ),
    ];
    all.extend(info.steps.iter().flat_map(kill));
    all
}

/// The longest of all kills; not known where one is not known: that kill may be the worst.
fn longest(info: &RecoveryInfo, of: fn(&RecoveryStep) -> &Figure) -> Figure {
    let figures = info.steps.iter().map(of);
    let all: Result<Vec<f64>, &Figure> = figures.map(|f| f.value().ok_or(f)).collect();
    match all {
        Ok(values) => match values.into_iter().reduce(f64::max) {
            Some(longest) => Figure::decimal(longest),
            None => Figure::na("no kill was made"),
        },
        Err(unknown) => unknown.clone(),
    }
}

fn kill(step: &RecoveryStep) -> Vec<Metric> {
    let figures = [
        ("first_commit_s", "restart to first commit", "s", Better::Lower, &step.first_commit_s),
        ("rate_95_s", "restart to 95 % of the old rate", "s", Better::Lower, &step.rate_95_s),
        ("recovery_s", "recovery itself", "s", Better::Lower, &step.recovery_s),
        ("replay_mb_per_s", "redo replayed", "MB/s", Better::Higher, &step.replay_mb_per_s),
        ("old_commits_per_s", "commits before the kill", "1/s", Better::Higher, &step.old_commits_per_s),
    ];
    let metric = |(key, name, unit, better, figure): (&str, &str, &str, Better, &Figure)| Metric {
        scope: size(step.distance_bytes),
        ..plain(Group::Operation, key, name, unit, better, figure.clone())
    };
    figures.map(metric).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::record::metric;

    fn info(first_commits: &[Figure]) -> RecoveryInfo {
        let steps = first_commits.iter().zip(1..).map(|(first, n)| RecoveryStep {
            distance_bytes: n << 20,
            first_commit_s: first.clone(),
            rate_95_s: 2.5.into(),
            lost_count: 1,
            ..RecoveryStep::default()
        });
        RecoveryInfo { steps: steps.collect(), ..RecoveryInfo::default() }
    }

    fn value(info: &RecoveryInfo, key: &str) -> Figure {
        let all = all(info);
        let found = metric::find(&all, key);
        found.unwrap_or_else(|| panic!("no {key}")).value.clone()
    }

    #[test]
    fn the_longest_outage_is_declared_and_each_kill_has_its_own() {
        let info = info(&[1.0.into(), 3.0.into(), 2.0.into()]);
        assert_eq!(value(&info, "first_commit_s_max"), 3.0.into());
        assert_eq!(value(&info, "rate_95_s_max"), 2.5.into());
        assert_eq!(value(&info, "lost_commits_count"), 3_u64.into());
        assert_eq!(value(&info, "2_mib.first_commit_s"), 3.0.into());
    }

    #[test]
    fn a_kill_that_is_not_known_may_be_the_worst() {
        let unknown = Figure::na("never came back");
        let info = info(&[1.0.into(), unknown.clone()]);
        assert_eq!(value(&info, "first_commit_s_max"), unknown);
    }
}
