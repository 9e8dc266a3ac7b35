//! Recovery as a figure: the kills, the line through them, the recommendation, the findings.

mod charts;
mod headline;
mod info;
mod kill;
mod load;
mod metrics;
mod sections;

#[cfg(test)]
mod tests;

use assay_measure::kind::OwnKind;
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::{Judges, Rule};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::{fixed, size, thousands};
pub use info::{RecoveryInfo, RecoveryStep};
pub use kill::{KillBench, LEAST_LOAD, distances};
pub use load::{LoadTeller, load_settings};

const MIB: f64 = 1_048_576.0;

/// The kind of `assay recovery`.
pub const KIND: OwnKind<RecoveryInfo> =
    OwnKind { judges: RULES, charts: charts::all, ..OwnKind::new(metrics::all, sections::render, headline::of) };

/// Builds the record of measured steps. `run` brings labels, settings and facts; what follows
/// from the steps is filled in here.
#[must_use]
pub fn build(run: &RunData, measured: RecoveryInfo) -> Record {
    let info = concluded(measured);
    let mut run = run.clone();
    run.sessions = info.sessions_count;
    let reasons = broken(&info);
    if !reasons.is_empty() {
        run.verdict = Verdict::Invalid(reasons);
    }
    KIND.complete(Record::labelled(&run), &info)
}

/// Promises that did not hold.
fn broken(info: &RecoveryInfo) -> Vec<String> {
    let mut broken = Vec::new();
    let lost: u64 = info.steps.iter().map(|step| step.lost_count).sum();
    let half: u64 = info.steps.iter().map(|step| step.half_there_count).sum();
    if lost > 0 && info.commit_mode != "none" {
        broken.push(format!("{lost} acknowledged commits were lost"));
    }
    if half > 0 {
        broken.push(format!("{half} operations are only partly there"));
    }
    broken
}

fn concluded(mut info: RecoveryInfo) -> RecoveryInfo {
    let points: Vec<(f64, f64)> = info
        .steps
        .iter()
        .filter_map(|step| Some((step.replayed_bytes.value()? / MIB, step.first_commit_s.value()?)))
        .collect();
    let none = |why: &str| Figure::na(why);
    let Some((fixed_s, per_mib_s)) = line(&points) else {
        let why = "recovery time grows with fewer than two of the log volumes";
        info.fixed_s = none(why);
        info.per_mib_s = none(why);
        info.recommended_distance_bytes = none(why);
        info.recommended_interval_blocks = none(why);
        return info;
    };
    info.fixed_s = Figure::decimal(fixed_s);
    info.per_mib_s = Figure::decimal(per_mib_s);
    let Some(wanted) = info.rto_wanted_s.value().filter(|wanted| *wanted > fixed_s) else {
        let why = "the part that does not depend on the log takes longer on its own";
        info.recommended_distance_bytes = none(why);
        info.recommended_interval_blocks = none(why);
        return info;
    };
    let mib = (wanted - fixed_s) / per_mib_s;
    let most = points.iter().map(|(mib, _)| *mib).fold(0.0, f64::max);
    info.is_projection = mib > most;
    let bytes = (mib * MIB) as u64;
    info.recommended_distance_bytes = bytes.into();
    info.recommended_interval_blocks = (bytes / info.log_block_bytes.max(1)).into();
    info
}

/// Least squares: what recovery takes without any log, and what each MiB adds. `None` where
/// there are fewer than two volumes or time does not grow with them.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| (p.0 - x).powi(2)).sum();
    if points.len() < 2 || spread == 0.0 {
        return None;
    }
    let slope = points.iter().map(|p| (p.0 - x) * (p.1 - y)).sum::<f64>() / spread;
    (slope > 0.0).then(|| ((y - slope * x).max(0.0), slope))
}

/// The rules with what judges them, in the order in which findings are read.
const RULES: &Judges<RecoveryInfo> = &[(LOST, lost), (DISTANCE, recommendation), (COLD, cold), (NOT_KEPT, not_kept)];

const LOST: Rule = Rule {
    id: "V1",
    title: "Acknowledged commits were lost",
    changes_figures: false,
    fires_when: || {
        "A commit that was acknowledged is not there after the restart; high, and the run invalid, unless COMMIT_MODE is none".to_owned()
    },
    why: "No crash may cause it; COMMIT_MODE=none allows it.",
    what_to_do: "Replace the device if it does not keep acknowledged writes; otherwise report a bug in assay.",
    cannot_judge_when: "Never: every acknowledged commit is looked for.",
    source: "The promise of the commit modes.",
};

fn lost(_: &Record, info: &RecoveryInfo) -> Option<Advice> {
    let lost: u64 = info.steps.iter().map(|step| step.lost_count).sum();
    let all: u64 = info.steps.iter().map(|step| step.acknowledged_count).sum();
    if lost == 0 {
        return None;
    }
    let text = format!("{} of {} acknowledged commits were lost", thousands(lost), thousands(all));
    let evidence = [("lost_count", lost as f64), ("acknowledged_count", all as f64)];
    Some(if info.commit_mode == "none" {
        LOST.finding(false, text + ", as COMMIT_MODE=none allows.", &evidence)
    } else {
        LOST.advise(true, text + ", which no crash may cause.", &evidence)
    })
}

const DISTANCE: Rule = Rule {
    id: "V2",
    title: "The checkpoint distance for the wanted time",
    changes_figures: false,
    fires_when: || {
        "A time is wanted (--rto) and recovery takes longer the more log there is; high where opening alone takes longer than the time wanted".to_owned()
    },
    why: "The distance of the checkpoint decides how much log a recovery replays.",
    what_to_do: "Set LOG_CHECKPOINT_INTERVAL as the finding says.",
    cannot_judge_when: "Fewer than two volumes of log were replayed, or time does not grow with them: then the rule is silent.",
    source: "Least squares of the time of the first commit over the log replayed, over all kills.",
};

fn recommendation(_: &Record, info: &RecoveryInfo) -> Option<Advice> {
    let wanted = info.rto_wanted_s.value()?;
    let fixed_s = info.fixed_s.value()?;
    let per_mib = info.per_mib_s.value()?;
    let mut evidence = vec![("rto_wanted_s", wanted), ("fixed_s", fixed_s), ("per_mib_s", per_mib)];
    let Some(bytes) = info.recommended_distance_bytes.value() else {
        let text = format!(
            "Checkpoints cannot give a first commit within {} s: opening alone takes {} s.",
            fixed(wanted, 1),
            fixed(fixed_s, 1)
        );
        return Some(DISTANCE.finding(true, text, &evidence));
    };
    let blocks = info.recommended_interval_blocks.value()?;
    evidence.push(("recommended_distance_bytes", bytes));
    let text = format!(
        "For a first commit within {} s after the restart, keep the checkpoint within {} of the log's end \
         (LOG_CHECKPOINT_INTERVAL={}){}: opening takes {} s, and each GiB of log adds {} s.",
        fixed(wanted, 1),
        size(bytes as u64),
        fixed(blocks, 0).replace(',', ""),
        if info.is_projection { "; a projection, untested, beyond the largest volume measured" } else { "" },
        fixed(fixed_s, 1),
        fixed(per_mib * 1024.0, 1)
    );
    Some(DISTANCE.finding(false, text, &evidence))
}

/// Time until 95 % of the rate over that of the first commit.
const COLD_RATIO: f64 = 2.0;

const COLD: Rule = Rule {
    id: "V3",
    title: "The cache is cold after the restart",
    changes_figures: false,
    fires_when: || {
        format!(
            "95 % of the old rate is back after at least {COLD_RATIO} times the time of the first commit; high from twice that"
        )
    },
    why: "The time until then is also part of the outage.",
    what_to_do: "Warm the cache before sessions are let in, or plan for the longer time.",
    cannot_judge_when: "The rate did not come back within --time: then the rule is silent.",
    source: "Decided here.",
};

fn cold(_: &Record, info: &RecoveryInfo) -> Option<Advice> {
    let ratio = |step: &RecoveryStep| {
        let first = step.first_commit_s.value().filter(|s| *s > 0.0)?;
        Some((step.rate_95_s.value()? / first, first, step.rate_95_s.value()?))
    };
    let worst = info.steps.iter().filter_map(ratio);
    let (ratio, first, full) = worst.max_by(|a, b| a.0.total_cmp(&b.0))?;
    if ratio < COLD_RATIO {
        return None;
    }
    let text = format!(
        "The first commit ends {} s after the restart, but 95 % of the old rate is back only after {} s: the cache \
         is cold.",
        fixed(first, 1),
        fixed(full, 1)
    );
    let evidence = [("first_commit_s", first), ("rate_95_s", full)];
    Some(COLD.explain(ratio >= 2.0 * COLD_RATIO, text, &evidence))
}

/// Log replayed over the distance asked for.
const KEPT_RATIO: f64 = 1.5;

const NOT_KEPT: Rule = Rule {
    id: "V4",
    title: "Checkpoints did not keep their distance",
    changes_figures: false,
    fires_when: || format!("At least {KEPT_RATIO} times the distance asked for was replayed; high from twice that"),
    why: "The database writers are too slow for this load, so a shorter distance does not help.",
    what_to_do: "Let them write faster (DB_WRITERS, a faster device), or give them less to write.",
    cannot_judge_when: "The log replayed is not known: then the rule is silent.",
    source: "Decided here.",
};

fn not_kept(_: &Record, info: &RecoveryInfo) -> Option<Advice> {
    let known = info.steps.iter().filter_map(|step| Some((step.replayed_bytes.value()?, step)));
    let ratio = |replayed: f64, step: &RecoveryStep| replayed / step.distance_bytes.max(1) as f64;
    let (replayed, step) = known.max_by(|a, b| ratio(a.0, a.1).total_cmp(&ratio(b.0, b.1)))?;
    let ratio = ratio(replayed, step);
    if ratio < KEPT_RATIO {
        return None;
    }
    let text = format!(
        "Checkpoints did not keep their distance: {} was requested, but {} had to be replayed.",
        size(step.distance_bytes),
        size(replayed as u64)
    );
    let evidence = [
        ("replayed_over_distance_ratio", ratio),
        ("distance_bytes", step.distance_bytes as f64),
        ("replayed_bytes", replayed),
    ];
    Some(NOT_KEPT.explain(ratio >= 2.0 * KEPT_RATIO, text, &evidence))
}
