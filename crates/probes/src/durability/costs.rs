//! What a durable write costs, and what page images in the log add.

use crate::scratch::{MARKER_BYTES, Scratch, failed};
use assay_block::BlockingWriter;
use assay_measure::clock::Clock;
use assay_measure::histogram::Histogram;
use assay_measure::prng::SplitMix64;
use assay_run::engine::EngineError;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::time::Duration;

/// Bytes of the scratch file, the marker's block included.
pub(super) const FILE_BYTES: u64 = 64 << 20;
/// Rounds of all ways, one after the other: a device changes its mood for each of them.
pub(super) const ROUNDS: usize = 5;
/// A log record of a small change, and a database page. Decided here.
pub(super) const RECORD_BYTES: u64 = 256;
pub(super) const PAGE_BYTES: u64 = 8192;
/// Sessions that share a sync.
pub(super) const SHARED: u64 = 32;
const BLOCK_BYTES: u64 = 4096;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Unsynced,
    Fdatasync,
    Dsync,
}

/// A way to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Way {
    pub(super) name: &'static str,
    how: How,
    pub(super) commits: u64,
    /// Logged for each commit.
    pub(super) log_bytes: u64,
}

pub(super) const UNSYNCED: &str = "write, no sync";
pub(super) const COMMIT: &str = "write + fdatasync";
pub(super) const DSYNC: &str = "O_DSYNC write";
pub(super) const IMAGE: &str = "with a page image";
pub(super) const COMMITS: &str = "32 share a sync";
pub(super) const IMAGES: &str = "32, page images";

const fn way(name: &'static str, how: How, commits: u64, log_bytes: u64) -> Way {
    Way { name, how, commits, log_bytes }
}

pub(super) const WAYS: [Way; 6] = [
    way(UNSYNCED, How::Unsynced, 1, RECORD_BYTES),
    way(COMMIT, How::Fdatasync, 1, RECORD_BYTES),
    way(DSYNC, How::Dsync, 1, RECORD_BYTES),
    way(IMAGE, How::Fdatasync, 1, RECORD_BYTES + PAGE_BYTES),
    way(COMMITS, How::Fdatasync, SHARED, RECORD_BYTES),
    way(IMAGES, How::Fdatasync, SHARED, RECORD_BYTES + PAGE_BYTES),
];

impl Way {
    /// Bytes of a write: the log in whole blocks.
    pub(super) fn bytes(&self) -> u64 {
        (self.commits * self.log_bytes).next_multiple_of(BLOCK_BYTES)
    }
}

/// What was measured of a way.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Cost {
    pub(super) latency: Histogram,
    pub(super) elapsed_ns: u64,
    /// Writes per second of each round.
    pub(super) rates: Vec<f64>,
}

/// Measures all ways in turn for about so long; as many as there was time for.
pub(super) fn measure(
    scratch: &Scratch,
    time: Duration,
    stop: &Stop,
    steps: &dyn Steps,
) -> Result<Vec<Cost>, EngineError> {
    let clock = Clock::real();
    let mut writer = BlockingWriter::open(&scratch.opened(), WAYS[5].bytes() as usize, true).map_err(failed)?;
    SplitMix64(clock.now_ns()).fill(writer.buffer());
    let mut costs: Vec<Cost> = Vec::new();
    let (mut at, mut turn) = (MARKER_BYTES, 0);
    let of = ROUNDS * WAYS.len();
    for number in 0..of {
        if stop.requested() {
            break;
        }
        let way = WAYS[number % WAYS.len()];
        steps.step(number + 1, of, way.name);
        if costs.len() <= number % WAYS.len() {
            costs.push(Cost::default());
        }
        let cost = &mut costs[number % WAYS.len()];
        // What the way before left in a cache is not paid by this one.
        writer.sync_data().map_err(failed)?;
        let begun = clock.now_ns();
        let until = begun + (time / of as u32).as_nanos() as u64;
        let (mut now, before) = (begun, cost.latency.count());
        while now < until && !stop.requested() {
            if at + way.bytes() > FILE_BYTES {
                at = MARKER_BYTES;
            }
            turn += 1;
            crate::sync::stamp(&mut writer.buffer()[..way.bytes() as usize], 0, turn);
            let start = clock.now_ns();
            writer.write(at, way.bytes() as usize, way.how == How::Dsync).map_err(failed)?;
            if way.how == How::Fdatasync {
                writer.sync_data().map_err(failed)?;
            }
            now = clock.now_ns();
            cost.latency.record(now - start);
            at += way.bytes();
        }
        cost.elapsed_ns += now - begun;
        cost.rates.push((cost.latency.count() - before) as f64 * 1e9 / (now - begun).max(1) as f64);
    }
    Ok(costs)
}
