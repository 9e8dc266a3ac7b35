//! The figures of durability.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Latency, Part};

/// What `assay durability` found. A latency is that of the calls (layer `syscall`).
#[figures(group = Storage)]
pub(crate) struct DurabilityInfo {
    /// The file: removed since, or the one of stamps, which stays.
    pub path: String,
    /// [`COSTS`], [`STAMPS`] or [`READ_BACK`].
    pub part: String,
    /// `durable`, `volatile`, `lying` or `unknown`.
    pub durability: String,
    /// What the verdict rests on, in words.
    pub because: String,
    /// Kernel name of the device; empty where there is none.
    pub disk: String,
    pub is_memory: bool,
    /// Mounted without barriers: the file system asks for no flush.
    pub is_without_barriers: bool,
    pub is_direct: bool,
    /// Under a hypervisor, whose caches this system does not see.
    pub is_virtual: bool,
    /// `write back`, `write through`; empty where the device does not say.
    pub write_cache: String,
    /// `yes`, `no`; empty where the device does not say.
    pub fua: String,
    pub rotates: String,
    /// Whether the witness is this host, whose cut takes the journal along.
    pub is_here: bool,
    /// Median of a write followed by `fdatasync`, us: of 4 KiB, with a witness of a stamp of 8 KiB.
    #[metric("commit p50", Primary)]
    pub commit_us_p50: Figure,
    /// The same as an `O_DSYNC` write, and without any sync, us.
    #[metric("O_DSYNC write p50")]
    pub dsync_us_p50: Figure,
    #[metric("unsynced write p50")]
    pub unsynced_us_p50: Figure,
    /// The largest atomic write that file and device announce; 0: they announce that there is none.
    #[metric("announced atomic write", Higher)]
    pub atomic_write_bytes: Figure,
    /// The largest page that lies aligned and in one piece on the device.
    pub extent_alignment_bytes: Figure,
    pub logical_block_bytes: Figure,
    pub physical_block_bytes: Figure,
    /// Share of the commits per second that page images take, of one session and of many that share a sync, %, each with half its
    /// 95 % interval; below 0 where the rounds scatter by more than that.
    #[metric("page images cost one session", Lower, half_width = page_image_cost_half_width_pct)]
    pub page_image_cost_pct: Figure,
    pub page_image_cost_half_width_pct: Figure,
    #[metric("page images cost sessions that share a sync", Lower, half_width = page_image_shared_cost_half_width_pct)]
    pub page_image_shared_cost_pct: Figure,
    pub page_image_shared_cost_half_width_pct: Figure,
    /// Power cuts and resets that were read back.
    #[metric("cuts read back", Higher)]
    pub cuts_count: Figure,
    /// Acknowledged stamps that these and all other ends did not leave whole and in their place.
    #[metric("acknowledged stamps missing", Lower)]
    pub missing_count: Figure,
    /// Upper 95 % bound on the chance that a cut of the power loses something; of resets where no power was cut.
    #[metric("chance of loss per cut, at most", Lower)]
    pub loss_per_cut_most_pct: Figure,
    /// The witness, as it was named; empty without.
    pub witness: String,
    /// Stamps that this run had acknowledged.
    pub stamps_count: u64,
    /// From the start of a stamp's write to the end of its sync.
    pub stamp: Latency,
    pub costs: Vec<CostRow>,
    pub cuts: Vec<Cut>,
}

impl Part for DurabilityInfo {
    const NAME: &str = "durability";
}

/// One way to write the log.
#[figures(group = Storage, scope = "{write}")]
pub(crate) struct CostRow {
    #[column("Write")]
    pub write: String,
    #[column("bytes")]
    pub write_bytes: u64,
    /// Commits that one write makes durable.
    #[column("commits")]
    pub commits_per_write: u64,
    /// What the database logs for each.
    #[column("log B/commit")]
    pub log_bytes_per_commit: u64,
    #[column("commits/s")]
    pub commits_per_s: Figure,
    #[columns]
    pub latency: Latency,
}

/// How stamps were read back once.
#[figures]
pub(crate) struct Cut {
    /// [`POWER`], [`RESET`], [`PROCESS`] or [`ORDERLY`].
    #[column("End")]
    pub end: String,
    #[column("read back")]
    pub at: String,
    /// Stamps that the witness had acknowledged and that no later one had overwritten.
    #[column("acknowledged")]
    pub acknowledged_count: u64,
    #[column("lost")]
    pub lost_count: u64,
    /// Of the lost: older than one that is there.
    #[column("overtaken")]
    pub overtaken_count: u64,
    #[column("torn")]
    pub torn_count: u64,
    /// Their place holds the stamp of another place.
    #[column("reordered")]
    pub reordered_count: u64,
    /// What became of the write that was not acknowledged: `not there`, `whole` or `torn`.
    #[column("under way")]
    pub under_way: String,
}

/// Parts of the probe: what is measured without a witness, stamps written with one, and read back.
pub(crate) const COSTS: &str = "costs";
pub(crate) const STAMPS: &str = "stamps";
pub(crate) const READ_BACK: &str = "read back";
/// The power of the host went, as the user says.
pub(crate) const POWER: &str = "power";
/// This system restarted without an end: a reset, or whatever looks like one from inside.
pub(crate) const RESET: &str = "reset";
/// The writer was killed, and the kernel went on.
pub(crate) const PROCESS: &str = "process";
/// The writer ended by itself.
pub(crate) const ORDERLY: &str = "orderly";

impl Cut {
    pub(crate) fn missing(&self) -> u64 {
        self.lost_count + self.torn_count + self.reordered_count
    }

    pub(crate) fn is_cut(&self) -> bool {
        [POWER, RESET].contains(&self.end.as_str())
    }
}

impl DurabilityInfo {
    pub(crate) fn ends(&self, end: &str) -> u64 {
        self.cuts.iter().filter(|cut| cut.end == end).count() as u64
    }

    /// The cost of a way to write.
    pub(crate) fn cost(&self, write: &str) -> Option<&CostRow> {
        self.costs.iter().find(|row| row.write == write)
    }
}
