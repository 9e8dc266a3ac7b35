//! A sweep: the same workload under rising load, its curves, and where they bend.
//!
//! Reads the records of the steps and nothing else. Schema `assay-sweep/1`
//! (`docs/design/sweep.md`): the steps as measured, and per curve the knee, the highest load
//! that keeps a latency goal, and the Universal Scalability Law with its confidence.
//! What was measured and what was computed from a fit never stand in the same list.

mod advice;
pub mod auto;
mod curve;
mod knee;
pub(crate) mod sections;
mod step;
#[cfg(test)]
mod tests;
mod usl;

pub(crate) use advice::over_records;
pub use assay_measure::record::steady::Steady;
pub use knee::Point;
pub use sections::render;
pub use step::{Place, Step, StepLatency};

use assay_measure::record::{Advice, Figure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The value of [`Sweep::schema`] this version writes.
pub const SCHEMA: &str = "assay-sweep/1";

/// Everything a sweep found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Sweep {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was swept and how it ended.
    pub sweep: SweepInfo,
    /// The rules by which it was judged, in words.
    pub rules: BTreeMap<String, String>,
    /// Every step in the order it ran.
    pub steps: Vec<Step>,
    /// The curves, each over one load with everything else held.
    pub curves: Vec<Curve>,
    /// Findings over several steps.
    pub advice: Vec<Advice>,
}

/// What was swept and how it ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SweepInfo {
    /// Short random id, also in the directory's name.
    pub id: String,
    /// The user's label, if any; every step has it too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// assay's version.
    pub version: String,
    /// RFC 3339 wall time of the start.
    pub started: String,
    /// `slob`.
    pub workload: String,
    /// Target URL, without a password.
    pub target: String,
    /// The master seed, the same for every step.
    pub seed: u64,
    /// `complete` or `incomplete`.
    pub verdict: String,
    /// Why it is not complete.
    pub verdict_reasons: Vec<String>,
    /// What varied: name and the values asked for, or `auto`.
    pub axes: Vec<Axis>,
    /// Goal for the 99th percentile of the operation latency, us; n/a (not asked for).
    pub goal_p99_us: Figure,
}

/// Something that varied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Axis {
    /// `sessions`, `cpus` or a parameter.
    pub name: String,
    /// Its values, as given.
    pub values: Vec<String>,
}

/// Throughput over one load.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Curve {
    /// What is held, by name: parameters, `cpus`, `sessions`.
    pub held: BTreeMap<String, String>,
    /// What rises: `sessions`, `cpus` or `RATE`.
    pub load: String,
    /// Numbers of its steps, by rising load; those that do not count are left out.
    pub steps: Vec<u64>,
    /// Numbers of the steps left out: failed, interrupted or invalid.
    pub left_out: Vec<u64>,
    /// Where throughput stops to rise.
    pub knee: Knee,
    /// The highest load that keeps the latency goal.
    pub goal: Goal,
    /// The Universal Scalability Law.
    pub usl: Usl,
}

/// Where throughput stops to rise.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Knee {
    /// The load of the last step with a gain; n/a (why).
    pub load: Figure,
    /// The throughput there, per s.
    pub ops_per_s: Figure,
    /// The finding in a sentence.
    pub sentence: String,
}

/// The highest load that keeps the latency goal.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Goal {
    /// The load; n/a (why).
    pub load: Figure,
    /// The throughput there, per s.
    pub ops_per_s: Figure,
    /// The 99th percentile there, us.
    pub p99_us: Figure,
    /// The finding in a sentence; empty if no goal was set.
    pub sentence: String,
}

/// A value with its 95 % interval.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Estimate {
    /// From the fit.
    pub value: Figure,
    /// Lower end.
    pub low: Figure,
    /// Upper end.
    pub high: Figure,
}

/// The Universal Scalability Law of a curve.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Usl {
    /// Whether the law describes the curve.
    pub fitted: bool,
    /// The outcome in a sentence; the reason where there is no fit.
    pub sentence: String,
    /// Throughput of load 1, per s.
    pub lambda_per_s: Estimate,
    /// Contention, 0..1.
    pub sigma_ratio: Estimate,
    /// Coherency.
    pub kappa_ratio: Estimate,
    /// Root mean square of the steps' deviation from the law, over the law.
    pub deviation_rms_ratio: Figure,
    /// The law at each step, per s, in the order of the curve's steps.
    pub fitted_ops_per_s: Vec<Figure>,
    /// Projection, untested: the load with the most throughput.
    pub peak_load: Estimate,
    /// Projection, untested: the throughput there, per s.
    pub peak_ops_per_s: Estimate,
    /// Projections, untested: loads that were not measured.
    pub projections: Vec<Projection>,
}

/// A point of the law that was not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Projection {
    /// The load.
    pub load: u64,
    /// Throughput, per s.
    pub ops_per_s: Estimate,
    /// Always `projection, untested`.
    pub label: String,
}

/// Puts a sweep together from its steps.
#[must_use]
pub fn build(info: SweepInfo, mut steps: Vec<Step>) -> Sweep {
    let curves = curve::curves(&info, &mut steps);
    let advice = advice::advise(&curves, &steps);
    Sweep {
        schema: SCHEMA.to_owned(),
        sweep: info,
        rules: rules(),
        steps,
        curves,
        advice,
    }
}

/// The points of the steps that count, for choosing the next load.
#[must_use]
pub fn points(steps: &[Step], load: impl Fn(&Step) -> u64) -> Vec<Point> {
    let mut points: Vec<Point> = steps
        .iter()
        .filter(|step| step.counts())
        .map(|step| Point {
            load: load(step),
            rate: step.ops_per_s.value().unwrap_or(0.0),
            p99_us: step.op.p99_us.value(),
        })
        .collect();
    points.sort_by_key(|point| point.load);
    points
}

fn rules() -> BTreeMap<String, String> {
    let usl = format!(
        "X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)), 0 <= sigma <= 1, kappa >= 0; least squares of the \
         relative deviation; at least {} loads; no fit if the deviation (root mean square) is above {:.0} % and above twice \
         the steps' own standard error, above {:.0} %, or above {:.0} % at any step; 95 % intervals from a parametric bootstrap of {} redraws with the larger of the residual and each \
         step's own standard error (at most ten batch means of its seconds): within this sweep only, the variation from \
         one sweep to the next is unknown",
        usl::LEAST_POINTS,
        100.0 * usl::WORST_RMS,
        100.0 * usl::NOISY_RMS,
        100.0 * usl::WORST_MISS,
        usl::REDRAWS
    );
    let rules = [
        ("cpu", "CPU of this process, all threads".to_owned()),
        (
            "goal",
            "the last step before the first whose 99th percentile of operation latency is above the goal".to_owned(),
        ),
        (
            "knee",
            "the last step with a gain of at least 5 % over the best of all smaller loads (for less than a doubling of \
             the load, at the same rate per doubling)"
                .to_owned(),
        ),
        (
            "latency",
            "operations of all kinds together as the client sees them, from the intended start".to_owned(),
        ),
        (
            "little",
            "sessions that Little's law accounts for over those there were; must be within 5 %".to_owned(),
        ),
        ("steady", assay_measure::record::steady::RULE.to_owned()),
        ("usl", usl),
    ];
    rules
        .into_iter()
        .map(|(name, rule)| (name.to_owned(), rule))
        .collect()
}

/// `sweep.json`: indented, with a final line end.
///
/// # Errors
/// None that a sweep can cause; the signature is serde's.
pub fn write(sweep: &Sweep) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(sweep)?;
    text.push('\n');
    Ok(text)
}

/// Reads `sweep.json`.
///
/// # Errors
/// A sentence: not JSON, not of this shape, or of another schema.
pub fn read(text: &str) -> Result<Sweep, String> {
    let sweep: Sweep =
        serde_json::from_str(text).map_err(|error| format!("not a sweep: {error}"))?;
    if sweep.schema == SCHEMA {
        Ok(sweep)
    } else {
        Err(format!(
            "schema \"{}\" where \"{SCHEMA}\" is needed; was it written by a later version?",
            sweep.schema
        ))
    }
}

/// `READ_MODE=single, cpus=2`; `everything as set` if nothing else varies.
fn held_text(held: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in held {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name}={value}");
    }
    text
}
