//! A sweep in a record.

use crate::step::{SweepStep, counted};
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use std::collections::BTreeMap;

/// What `assay sweep` measured: steps, the curves they make, and the rules both are judged by.
#[figures]
pub struct SweepInfo {
    /// Target URL, without a password.
    pub target: String,
    /// The plural name of its workload's operations; empty (older records): operations.
    pub operations: String,
    /// What varied: name and the values asked for, or `auto`.
    pub axes: Vec<SweepAxis>,
    /// Goal for the 99th percentile of the operation latency, us; n/a (not asked for).
    #[serde(alias = "goal_p99_us")]
    pub goal_us_p99: Figure,
    /// The rules by which it was judged, in words.
    pub rules: BTreeMap<String, String>,
    /// Every step in the order it ran.
    pub steps: Vec<SweepStep>,
    /// Loads for which the law was asked, beyond those measured.
    pub projected: Vec<u64>,
    /// The curves, each over one load with everything else constant.
    pub curves: Vec<Curve>,
}

impl Part for SweepInfo {
    const NAME: &str = "sweep";
}

impl SweepInfo {
    /// The unit of its rates.
    pub(crate) fn per_s(&self) -> String {
        match self.operations.as_str() {
            "" => "operations/s".to_owned(),
            operations => format!("{operations}/s"),
        }
    }

    /// The steps whose figures count.
    pub(crate) fn counted(&self) -> impl Iterator<Item = &SweepStep> + Clone {
        counted(&self.steps)
    }

    /// The steps of a curve, by rising load.
    pub(crate) fn members(&self, curve: &Curve) -> Vec<&SweepStep> {
        let find = |number: &u64| self.steps.iter().find(|step| step.place.step == *number);
        curve.steps.iter().filter_map(find).collect()
    }
}

/// Something that varied.
#[figures]
#[derive(Eq)]
pub struct SweepAxis {
    /// `sessions`, `cpus` or a parameter.
    pub name: String,
    /// Its values, as given.
    pub values: Vec<String>,
}

/// Throughput over one load.
#[figures]
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
#[figures]
pub struct Knee {
    /// The load of the last step with a gain; n/a (why).
    pub load: Figure,
    /// Lowest load at which 95 % of curves redrawn with the steps' standard errors have it; n/a (why).
    pub low: Figure,
    /// Highest such load.
    pub high: Figure,
    /// The throughput there, per s.
    pub ops_per_s: Figure,
    /// The finding in a sentence.
    pub sentence: String,
}

/// The highest load that keeps the latency goal.
#[figures]
pub struct Goal {
    /// The load; n/a (why).
    pub load: Figure,
    /// The throughput there, per s.
    pub ops_per_s: Figure,
    /// The 99th percentile there, us.
    #[serde(alias = "p99_us")]
    pub us_p99: Figure,
    /// The finding in a sentence; empty if no goal was set.
    pub sentence: String,
}

/// A value with its 95 % interval.
#[figures]
pub struct Estimate {
    /// From the fit.
    pub value: Figure,
    /// Lower end.
    pub low: Figure,
    /// Upper end.
    pub high: Figure,
}

/// The Universal Scalability Law of a curve.
#[figures]
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
#[figures]
pub struct Projection {
    /// The load.
    pub load: u64,
    /// Throughput, per s.
    pub ops_per_s: Estimate,
    /// Always `projection, untested`.
    pub label: String,
}
