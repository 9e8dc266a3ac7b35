//! The figures of caps.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use assay_measure::units::short;

/// What `assay throttle` measured. A rate counts operations whose calls returned (layer `syscall`).
#[figures(group = Storage)]
pub(crate) struct ThrottleInfo {
    /// The scratch file, removed since.
    pub path: String,
    /// Kernel name of the device; empty where there is none.
    pub disk: String,
    pub is_memory: bool,
    pub is_direct: bool,
    /// How long a slice of the rates is, s.
    pub slice_s: f64,
    #[metrics]
    pub loads: Vec<ThrottleRow>,
}

impl Part for ThrottleInfo {
    const NAME: &str = "throttle";
}

/// A resource under load.
#[figures(group = Storage, scope = "{resource}")]
pub(crate) struct ThrottleRow {
    /// `reads`, `bytes` or `sync`.
    #[column("Load")]
    pub resource: String,
    /// One operation, in words.
    #[column("of")]
    pub operation: String,
    pub operation_bytes: u64,
    /// Operations in flight before the pause, and after it.
    #[column("depth")]
    pub depth: u32,
    #[column("then")]
    pub deeper_depth: u32,
    /// Operations per second of the last level before the pause, and half the 95 % interval.
    #[column("sustained/s")]
    #[metric("sustained", Primary, half_width = sustained_half_width)]
    pub sustained_per_s: Figure,
    #[column("+-")]
    pub sustained_half_width: Figure,
    #[column("MB/s", 1)]
    #[metric("sustained bytes")]
    pub sustained_mb_per_s: Figure,
    /// `token bucket`, `level`, `fell once` or `none seen`; empty where there was too little time to judge.
    #[column("cap")]
    pub cap: String,
    /// Who sets it; empty where there is none.
    #[column("by")]
    pub by: String,
    /// The limit that a control group sets, in operations of this load per second.
    pub limit_per_s: Figure,
    /// Operations per second while a burst lasts, and how long that is.
    #[column("burst/s")]
    #[metric("burst")]
    pub burst_per_s: Figure,
    #[column("for s", 1)]
    #[metric("burst lasts", Higher)]
    pub burst_s: Figure,
    /// Operations beyond the sustained rate that were in the bucket, and the idle time that fills it again, s.
    #[column("bucket")]
    #[metric("bucket", Higher)]
    pub bucket_count: Figure,
    #[column("refill s", 1)]
    #[metric("bucket refills in", Lower)]
    pub refill_s: Figure,
    /// How long it was loaded, and left alone in between, s.
    #[column("loaded s", 1)]
    pub loaded_s: Figure,
    pub pause_s: f64,
    /// Operations per second in each slice, before the pause and after it.
    pub first_per_s: Vec<f64>,
    pub second_per_s: Vec<f64>,
}

/// A rate this close to a limit of a control group is that limit's. Decided here.
pub(super) const NAMED_RATIO: f64 = 0.1;
/// Values of [`ThrottleRow::cap`].
pub(super) const BUCKET: &str = "token bucket";
pub(super) const LEVEL: &str = "level";
pub(super) const FELL: &str = "fell once";
pub(super) const NONE: &str = "none seen";
/// Who caps, where nothing in this system says so.
pub(super) const UNKNOWN: &str = "not known: the device, the volume or the instance";

impl ThrottleRow {
    /// A rate of this load in the unit in which it is told.
    pub(super) fn told(&self, per_s: &Figure) -> (Figure, &'static str) {
        match self.resource.as_str() {
            "bytes" => (per_s.scaled(self.operation_bytes as f64 / 1e6), "MB/s"),
            _ => (per_s.clone(), if self.resource == "sync" { "syncs/s" } else { "reads/s" }),
        }
    }

    /// The sustained rate in words.
    pub(super) fn sustained(&self) -> String {
        self.words(&self.sustained_per_s)
    }

    pub(super) fn words(&self, per_s: &Figure) -> String {
        let (value, unit) = self.told(per_s);
        value.value().map_or_else(|| "n/a".to_owned(), |value| format!("{} {unit}", short(value)))
    }

    /// Whether a control group sets the cap.
    pub(super) fn is_named(&self) -> bool {
        self.limit_per_s.value().is_some()
    }

    pub(super) fn is_capped(&self) -> bool {
        [BUCKET, LEVEL].contains(&self.cap.as_str())
    }
}
