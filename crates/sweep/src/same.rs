//! What two sweeps must have in common for one knee to be held against the other.

use crate::curve::us_text;
use crate::info::{SweepAxis, SweepInfo};
use crate::step::SweepStep;
use assay_measure::kind::{Check, Finding};

/// Windows within this of each other count as equally long.
const LENGTH_RATIO: f64 = 0.02;
/// Operations within this of each other count as the same work.
const WORK_RATIO: f64 = 0.05;

/// The same place, loads, goal and time.
pub(crate) fn checks(a: &SweepInfo, b: &SweepInfo) -> Vec<Check> {
    let mut all = vec![Check::text("place", &a.target, &b.target, Finding::Tolerable)];
    let mut names: Vec<&str> = (a.axes.iter().chain(&b.axes)).map(|axis| axis.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    for name in names {
        // A knee is found among the loads that were tried.
        let what = format!("values of {name}");
        all.push(Check::text(&what, &values(a, name), &values(b, name), Finding::Forbids));
    }
    let goal = |info: &SweepInfo| match info.goal_us_p99.value() {
        Some(us) => us_text(us),
        None => "none".to_owned(),
    };
    all.push(Check::text("goal for p99", &goal(a), &goal(b), Finding::Forbids));
    let window = |info| most(info, |step| step.elapsed_s.value());
    all.push(Check::near("time of a step, s", window(a), window(b), LENGTH_RATIO, Finding::Tolerable));
    let gets = |step: &SweepStep| {
        let gets = step.logical_reads_blocks_per_s.value()?;
        Some(gets / step.ops_per_s.value().filter(|rate| *rate > 0.0)?)
    };
    all.push(Check::near(
        "work: Logical read (blocks) per operation",
        most(a, gets),
        most(b, gets),
        WORK_RATIO,
        Finding::Forbids,
    ));
    all
}

/// What a list asked for; one value throughout where it did not vary.
fn values(info: &SweepInfo, name: &str) -> String {
    let of = |axis: &&SweepAxis| axis.name == name;
    let found = info.axes.iter().find(of);
    found.map_or_else(|| "not varied".to_owned(), |axis| axis.values.join(","))
}

/// The most of any step that counts.
fn most(info: &SweepInfo, of: impl Fn(&SweepStep) -> Option<f64>) -> Option<f64> {
    info.counted().filter_map(of).max_by(f64::total_cmp)
}
