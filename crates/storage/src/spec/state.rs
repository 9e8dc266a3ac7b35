//! Options for the state of the device: steady, in long use.

use assay_measure::clock::Ns;

/// The quantity that `steadystate` watches.
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
    /// The watched quantity.
    pub metric: SteadyMetric,
    /// Judge the slope of a least-squares line rather than the largest deviation from the mean.
    pub slope: bool,
    /// The limit.
    pub limit: f64,
    /// Whether the limit is a percentage of the mean.
    pub percent: bool,
    /// As typed.
    pub text: String,
}

/// `precondition` (assay's own): prepares the files before the jobs, so that the figures are those of a device in long
/// use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Precondition {
    /// `none`
    #[default]
    None,
    /// `fill`: writes everything from end to end, twice.
    Fill,
    /// `snia`: the same, then random writes in rounds until the rounds are steady.
    Snia,
}

assay_measure::with_defaults! {
    /// How to bring files into the state of long use.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct PreconditionOptions {
        /// The method.
        pub method: Precondition,
        /// `precondition_round`: length of a round.
        pub round_ns: Ns = 60_000_000_000,
    }
}
