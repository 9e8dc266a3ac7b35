//! The figures of first reads.

use assay_measure::figures::figures;
use assay_measure::record::{Figure, Part};
use assay_measure::units::size;

/// What `assay first-touch` found (layer `syscall`).
#[figures(group = Storage)]
pub(crate) struct FirstTouchInfo {
    /// What was read, and what that is.
    pub path: String,
    pub object: String,
    /// Kernel name of the device; empty where there is none.
    pub disk: String,
    pub is_memory: bool,
    pub is_direct: bool,
    /// Bytes that can be read, in holes, and of files that were left out.
    pub data_bytes: u64,
    pub hole_bytes: u64,
    pub left_out_bytes: u64,
    pub files_left_out: u64,
    /// Of the choice of blocks.
    pub seed: u64,
    /// `cold`, `nothing cold found` or `cannot tell`; of the last, why.
    pub verdict: String,
    pub why: String,
    /// Blocks of which the first reads were judged; those that were slow as cold ones are, and those that were slow the other way round in
    /// time, as noise is as often; those that this host had in its page cache.
    pub blocks_count: u64,
    pub as_cold_count: u64,
    pub reversed_count: u64,
    pub cached_count: u64,
    /// Bytes whose first read is slow, with the 95 % interval.
    #[metric("cold", Primary, Lower, half_width = cold_half_width_bytes)]
    pub cold_bytes: Figure,
    pub cold_low_bytes: Figure,
    pub cold_high_bytes: Figure,
    pub cold_half_width_bytes: Figure,
    #[metric("cold, of all", Lower)]
    pub cold_pct: Figure,
    /// Median of the slow first reads; where nothing is cold, of all first reads.
    #[metric("first read p50", Primary)]
    pub first_read_us_p50: Figure,
    #[metric("second read p50")]
    pub second_read_us_p50: Figure,
    /// Reads that are much longer than the median second read, %: of the first, of the second, of those beside a quick first one, and of
    /// those beside a slow one.
    pub slow_first_pct: Figure,
    pub slow_second_pct: Figure,
    pub slow_beside_quick_pct: Figure,
    pub slow_beside_slow_pct: Figure,
    /// Bytes of the regions with cold blocks, how fast they are read, and how long that takes: by one reader and by several.
    pub to_hydrate_bytes: Figure,
    #[metric("cold regions read by one reader")]
    pub alone_mib_per_s: Figure,
    #[metric("cold regions read by several readers")]
    pub together_mib_per_s: Figure,
    #[metric("time to hydrate by one reader", Lower)]
    pub hydrate_alone_s: Figure,
    #[metric("time to hydrate by several readers", Lower)]
    pub hydrate_together_s: Figure,
    /// What `--hydrate` was to read, at which rate, and what it read.
    pub hydrate_asked_bytes: Figure,
    pub hydrate_limit_bytes_per_s: Figure,
    pub hydrated_bytes: Figure,
    pub hydrated_s: Figure,
    pub regions: Vec<RegionRow>,
}

impl Part for FirstTouchInfo {
    const NAME: &str = "first-touch";
}

/// A part of what was read.
#[figures]
pub(crate) struct RegionRow {
    #[column("From GiB", 2)]
    pub from_gib: Figure,
    #[column("to", 2)]
    pub to_gib: Figure,
    #[column("Blocks")]
    pub blocks_count: u64,
    #[column("First us", 0)]
    pub first_us_p50: Figure,
    #[column("second", 0)]
    pub second_us_p50: Figure,
    /// First over second read of a block: median and 95 % interval.
    #[column("Ratio", 2)]
    pub first_over_second_ratio: Figure,
    #[column("from", 2)]
    pub ratio_low: Figure,
    #[column("to", 2)]
    pub ratio_high: Figure,
    #[column("Slow first")]
    pub slow_first_count: u64,
    #[column("second")]
    pub slow_second_count: u64,
    #[column("as cold")]
    pub as_cold_count: u64,
    /// `cold`, `partly cold`, `some slow`, `warm`; empty where it cannot be told.
    #[column("Verdict")]
    pub verdict: String,
}

/// Values of [`FirstTouchInfo::verdict`] and [`RegionRow::verdict`].
pub(super) const COLD: &str = "cold";
pub(super) const NONE: &str = "nothing cold found";
pub(super) const UNKNOWN: &str = "cannot tell";
pub(super) const PARTLY: &str = "partly cold";
pub(super) const SOME: &str = "some slow";
pub(super) const WARM: &str = "warm";

impl FirstTouchInfo {
    pub(super) fn is_cold(&self) -> bool {
        self.verdict == COLD
    }

    /// `412 GiB of 500 GiB are cold`; they were, once they have been read in advance.
    pub(super) fn how_much(&self) -> String {
        let are = if self.is_hydrated() { "were cold and have been read since" } else { "are cold" };
        format!("{} of {} {are}", bytes(&self.cold_bytes), size(self.data_bytes))
    }

    /// Whether all cold regions were read in advance after the test.
    pub(super) fn is_hydrated(&self) -> bool {
        let read = self.hydrated_bytes.value().zip(self.to_hydrate_bytes.value());
        self.is_cold() && read.is_some_and(|(read, cold)| read >= cold)
    }

    /// Whether nothing can be said.
    pub(super) fn is_unknown(&self) -> bool {
        self.verdict == UNKNOWN
    }
}

/// Bytes for a sentence.
pub(super) fn bytes(figure: &Figure) -> String {
    figure.value().map_or_else(|| "n/a".to_owned(), |bytes| size(bytes as u64))
}
