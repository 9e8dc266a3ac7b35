//! The figures of a fit.

use super::assumptions::{AssumptionRow, HitRatioRow, NotCarriedRow};
use super::here::{FitStepRow, SideRow};
use super::instances::InstanceRow;
use super::load::DerivedRow;
use super::offer::OfferRow;
use super::several::ReportRow;
use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};

/// What `assay fit` found.
#[figures(group = Host)]
pub(crate) struct FitInfo {
    /// The report whose load it is, and the tool it is of.
    pub report: String,
    pub tool: String,
    pub begin: String,
    pub reports_count: u64,
    /// Where the load was offered; empty: nowhere.
    pub place: String,
    /// Reads, writes and log writes per second, and their bytes, which a storage has to do.
    #[metric("I/Os that the load needs", Neither)]
    pub needed_ios_per_s: Figure,
    pub needed_bytes_per_s: Figure,
    /// Least and most of reads and writes over all reports.
    pub least_ios_per_s: Figure,
    pub most_ios_per_s: Figure,
    /// The largest multiple of the load that this box held; 0: not even a tenth.
    #[metric("headroom", Primary, Higher)]
    pub headroom_ratio: Figure,
    /// Why no larger one, in few words and in sentences.
    pub limit: String,
    pub limit_evidence: String,
    /// Bytes that the data set needs, and seconds of the steps, about.
    pub disk_bytes: Figure,
    pub time_s: Figure,
    #[metrics]
    pub load: Vec<DerivedRow>,
    pub assumptions: Vec<AssumptionRow>,
    /// What another hit ratio of the cache would leave to read; empty: none is told.
    pub caches: Vec<HitRatioRow>,
    pub not_carried: Vec<NotCarriedRow>,
    pub reports: Vec<ReportRow>,
    pub instances: Vec<InstanceRow>,
    pub offer: Vec<OfferRow>,
    /// What cannot be offered together, in sentences.
    pub unmet: Vec<String>,
    #[metrics]
    pub sides: Vec<SideRow>,
    #[metrics]
    pub steps: Vec<FitStepRow>,
    pub shapes: Vec<ShapeRow>,
}

impl Part for FitInfo {
    const NAME: &str = "fit";
}

/// What a price list offers.
#[figures]
pub(crate) struct ShapeRow {
    #[column("Shape")]
    pub shape: String,
    #[column("A month, with licences", 0)]
    pub month: Figure,
    #[column("Currency")]
    pub currency: String,
    #[column("IOPS paid for", 0)]
    pub ios_per_s: Figure,
    #[column("MB/s paid for", 0)]
    pub mb_per_s: Figure,
    /// `holds`, `too small`, or `cannot tell`.
    #[column("Verdict")]
    pub verdict: String,
}

pub(super) const HOLDS: &str = "holds";
pub(super) const TOO_SMALL: &str = "too small";
pub(super) const UNTOLD: &str = "cannot tell";
