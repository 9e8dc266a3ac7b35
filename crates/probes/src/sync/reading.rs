//! Raw readings of the durable-write probe, before anything is derived.
//!
//! The probe fills these, [`record`](super::record) turns them into a record.

use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::Fact;
use assay_measure::statistics::{half_width, mean};
use serde::{Deserialize, Serialize};

/// How one durable write is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncMethod {
    /// `pwrite` alone: nothing is made durable.
    WriteOnly,
    /// `pwrite`, then `fdatasync`.
    Fdatasync,
    /// One write that returns when it is durable (`O_DSYNC`, here `RWF_DSYNC`).
    Dsync,
    /// `pwrite`, then `fsync`.
    Fsync,
    /// As [`SyncMethod::Dsync`], but queued through one io_uring by one thread.
    Ring,
    /// Streams share one log: a stream that arrives during a flush shares the next (`pwrite`, then `fdatasync`).
    Group,
    /// Streams share one log, and each makes its own flush, one after the other.
    OneByOne,
}

impl SyncMethod {
    /// As reports print it.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::WriteOnly => "write only",
            Self::Fdatasync => "write + fdatasync",
            Self::Dsync => "O_DSYNC write",
            Self::Fsync => "write + fsync",
            Self::Ring => "O_DSYNC, io_uring",
            Self::Group => "shared fdatasync",
            Self::OneByOne => "fdatasync in turn",
        }
    }
}

/// Which part of the report a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SyncPart {
    /// One stream overwriting a preallocated file: F0.
    Flush,
    /// The same without a flush.
    Unsynced,
    /// Parallel streams by method and file.
    Curve,
    /// Other sizes.
    Sizes,
    /// The cost of the safety levels.
    Safety,
}

/// One step: so many streams, each writing and waiting for durability in a closed loop.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SyncReading {
    /// Where it belongs.
    pub part: SyncPart,
    /// How each write was made durable.
    pub method: SyncMethod,
    /// The file grew with each write, instead of being overwritten where it was preallocated.
    pub growing: bool,
    /// Streams, each with one write in flight.
    pub streams: u32,
    /// Bytes of one write.
    pub bytes: u64,
    /// From the first stream's start to the last one's end, all rounds.
    pub elapsed_ns: Ns,
    /// From the start of each write to the end of what made it durable.
    pub latency: Histogram,
    /// Flushes made; fewer than writes if they are shared, 0 without flushes.
    pub flushes: u64,
    /// Writes per second of each round in which the step was made.
    pub rates: Vec<f64>,
    /// Bytes that the device wrote meanwhile, for all processes; `None` where the kernel does not report it.
    pub device_write_bytes: Option<u64>,
    /// Why there is no figure, or a remark on how it was measured.
    pub note: Option<String>,
}

impl SyncReading {
    /// Takes in another round of the same step.
    pub(crate) fn add(&mut self, round: &Self) {
        self.elapsed_ns += round.elapsed_ns;
        self.latency.merge(&round.latency);
        self.flushes += round.flushes;
        self.rates.extend(&round.rates);
        let both = self.device_write_bytes.zip(round.device_write_bytes);
        self.device_write_bytes = both.map(|(mine, more)| mine + more);
    }

    /// Half the 95 % interval of its rate over the rate, from the rounds by Student's t; `None` for fewer than three.
    pub(crate) fn spread(&self) -> Option<f64> {
        let half = half_width(&self.rates).filter(|_| self.rates.len() > 2)?;
        Some(half / mean(&self.rates))
    }
}

/// All steps of one probe.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct SyncReadings {
    /// The scratch file, which is gone by now.
    pub path: String,
    /// The commits per second that were asked about.
    pub commits_per_s: Option<u64>,
    /// Its preallocated part.
    pub file_bytes: u64,
    /// Direct I/O was requested and accepted.
    pub direct: bool,
    /// The file system lives in memory.
    pub is_memory: bool,
    /// The device's cache mode as the kernel reports it (`write back`, `write through`).
    pub write_cache: Option<String>,
    /// The device can force one write to stable media.
    pub fua: Option<bool>,
    /// The kernel takes the device for a rotating disk.
    pub rotational: Option<bool>,
    /// The place and the device under it.
    pub facts: Vec<Fact>,
    /// The steps in the order they were made.
    pub steps: Vec<SyncReading>,
    /// From the first step's start to the last one's end, preparation included.
    pub elapsed_ns: Ns,
    /// It was stopped before all steps were made.
    pub stopped: bool,
}
