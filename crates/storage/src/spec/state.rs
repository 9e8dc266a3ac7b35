//! Options about the state of what is measured: steady, in long use.

use assay_measure::clock::Ns;

/// Quantity that `steadystate` watches.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SteadyMetric {
    /// `iops`, `iops_slope`
    #[default]
    Iops,
    /// `bw`, `bw_slope`
    Bandwidth,
    /// `lat`, `lat_slope`
    Latency,
}

/// `steadystate=metric[_slope]:limit[%]`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SteadyOptions {
    /// What is watched.
    pub metric: SteadyMetric,
    /// The slope of a least-squares line is judged, not the largest deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// The limit is a percentage of the mean.
    pub percent: bool,
    /// As typed.
    pub text: String,
}

/// `precondition` (ours): what is done to the files before the jobs, so that figures are those of a
/// device in long use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// `none`
    #[default]
    None,
    /// `fill`: written from end to end, twice.
    Fill,
    /// `snia`: the same, then random writes in rounds until these are steady.
    Snia,
}

assay_measure::with_defaults! {
    /// How to bring files into the state of long use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PreconditionOptions {
        /// What is done.
        pub method: Precondition,
        /// `precondition_round`: length of a round.
        pub round_ns: Ns = 60_000_000_000,
    }
}
