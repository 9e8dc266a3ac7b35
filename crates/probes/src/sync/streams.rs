//! Independent streams: each a thread that writes and waits, in a closed loop.

use super::reading::SyncMethod;
use super::{Bench, Outcome};
use crate::scratch::MARKER_BYTES;
use assay_block::{BlockError, BlockingWriter};
use assay_measure::prng::{GOLDEN_GAMMA, SplitMix64};
use std::sync::RwLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Where a stream writes next.
pub(super) struct Offsets {
    first: u64,
    count: u64,
    bytes: u64,
    turn: u64,
}

impl Offsets {
    /// The part of stream `stream` of `streams` in the preallocated file.
    pub(super) fn new(file_bytes: u64, stream: u32, streams: u32, bytes: u64) -> Self {
        let part = (file_bytes - MARKER_BYTES) / u64::from(streams) / bytes * bytes;
        Self {
            // The marker's block is skipped whole, so that larger writes stay aligned to it.
            first: MARKER_BYTES + u64::from(stream) * part,
            count: (part / bytes).max(1),
            bytes,
            turn: 0,
        }
    }

    /// The next place, from the front again after the last.
    pub(super) fn next(&mut self) -> u64 {
        let at = self.first + self.turn % self.count * self.bytes;
        self.turn += 1;
        at
    }
}

/// Changes every sector of a write, so that no layer below can tell it is the same again.
pub(crate) fn stamp(buffer: &mut [u8], stream: u32, turn: u64) {
    for sector in buffer.chunks_exact_mut(512) {
        let mixed = turn.wrapping_mul(GOLDEN_GAMMA) ^ u64::from(stream);
        sector[..8].copy_from_slice(&turn.to_le_bytes());
        sector[8..16].copy_from_slice(&mixed.to_le_bytes());
    }
}

/// What all streams of a step share.
struct Together<'a> {
    bench: &'a Bench<'a>,
    /// Held for writing until every stream is ready.
    gate: RwLock<()>,
    /// Where a growing file ends.
    end: AtomicU64,
    /// One stream failed: the others end too.
    failed: AtomicBool,
}

/// Runs the step.
pub(super) fn run(bench: &Bench<'_>) -> Result<Outcome, BlockError> {
    let step = bench.step;
    let mut writers = Vec::new();
    for stream in 0..step.streams {
        let mut writer = BlockingWriter::open(bench.path, step.bytes as usize, true)?;
        // Bytes that do not compress.
        SplitMix64(u64::from(stream)).fill(writer.buffer());
        writers.push(writer);
    }
    let together = Together {
        bench,
        gate: RwLock::new(()),
        end: AtomicU64::new(bench.file_bytes),
        failed: AtomicBool::new(false),
    };
    let outcomes: Vec<Result<Outcome, BlockError>> = std::thread::scope(|scope| {
        let closed = together.gate.write();
        let together = &together;
        let streams = writers.into_iter().enumerate();
        let streams = streams.map(|(stream, writer)| move || together.stream(stream as u32, writer));
        let started = started(scope, streams);
        if started.1.is_some() {
            together.failed.store(true, Ordering::Relaxed);
        }
        drop(closed);
        ended(started)
    });
    merged(outcomes)
}

/// The threads of streams, and why there are not more of them.
type Started<'scope> = (Vec<ScopedJoinHandle<'scope, Result<Outcome, BlockError>>>, Option<BlockError>);

/// Starts a thread for each stream, until the host refuses one.
pub(super) fn started<'scope, F>(scope: &'scope Scope<'scope, '_>, streams: impl Iterator<Item = F>) -> Started<'scope>
where
    F: FnOnce() -> Result<Outcome, BlockError> + Send + 'scope,
{
    let mut threads = Vec::new();
    for stream in streams {
        match Builder::new().spawn_scoped(scope, stream) {
            Ok(thread) => threads.push(thread),
            Err(source) => {
                let what = "start the thread of a stream (ulimit -u, pids.max, kernel.threads-max)";
                return (threads, Some(BlockError::Ring { what, source }));
            }
        }
    }
    (threads, None)
}

/// What each stream did, once all have ended; first of all why one could not be started.
pub(super) fn ended((threads, refused): Started<'_>) -> Vec<Result<Outcome, BlockError>> {
    let ended =
        threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
    let ended: Vec<_> = ended.collect();
    refused.map(Err).into_iter().chain(ended).collect()
}

/// The sum of what the streams did, or the first error.
pub(super) fn merged(outcomes: Vec<Result<Outcome, BlockError>>) -> Result<Outcome, BlockError> {
    let mut outcomes = outcomes.into_iter();
    let mut all = outcomes.next().unwrap_or_else(|| Ok(Outcome::default()))?;
    for outcome in outcomes {
        all.merge(&outcome?);
    }
    Ok(all)
}

impl Together<'_> {
    fn stream(&self, stream: u32, writer: BlockingWriter) -> Result<Outcome, BlockError> {
        drop(self.gate.read());
        let outcome = self.writes(stream, writer);
        if outcome.is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
        outcome
    }

    fn writes(&self, stream: u32, mut writer: BlockingWriter) -> Result<Outcome, BlockError> {
        let Bench { step, budget, clock, stop, .. } = self.bench;
        let bytes = step.bytes;
        let mut offsets = Offsets::new(self.bench.file_bytes, stream, step.streams, bytes);
        let mut outcome = Outcome::begin(clock);
        let deadline = outcome.begun_ns + budget.as_nanos() as u64;
        for turn in 0.. {
            let over = outcome.ended_ns >= deadline || stop.requested();
            if over || self.failed.load(Ordering::Relaxed) {
                break;
            }
            stamp(writer.buffer(), stream, turn);
            let offset = if step.growing {
                let at = self.end.fetch_add(bytes, Ordering::Relaxed);
                if at + bytes > self.bench.end_bytes {
                    break;
                }
                at
            } else {
                offsets.next()
            };
            let start = clock.now_ns();
            writer.write(offset, bytes as usize, step.method == SyncMethod::Dsync)?;
            match step.method {
                SyncMethod::Fdatasync => writer.sync_data()?,
                SyncMethod::Fsync => writer.sync_all()?,
                _ => {}
            }
            outcome.record(start, clock.now_ns());
            outcome.flushes += u64::from(step.method != SyncMethod::WriteOnly);
        }
        Ok(outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_never_share_a_place_nor_touch_the_marker() {
        let file_bytes = 1 << 20;
        for (streams, bytes) in [(1, 4096), (3, 4096), (32, 512), (4, 65_536)] {
            let mut seen = std::collections::BTreeSet::new();
            for stream in 0..streams {
                let mut offsets = Offsets::new(file_bytes, stream, streams, bytes);
                for _ in 0..offsets.count {
                    let at = offsets.next();
                    assert!(at >= MARKER_BYTES && at + bytes <= file_bytes, "{at}");
                    assert!(at.is_multiple_of(512) && seen.insert(at), "{at} twice");
                }
                assert_eq!(offsets.next(), offsets.first, "it starts again");
            }
        }
    }

    #[test]
    fn no_two_writes_are_alike() {
        let (mut one, mut two) = (vec![0; 1024], vec![0; 1024]);
        SplitMix64(1).fill(&mut one);
        two.copy_from_slice(&one);
        stamp(&mut one, 0, 7);
        stamp(&mut two, 0, 8);
        for sector in 0..2 {
            let range = sector * 512..(sector + 1) * 512;
            assert_ne!(one[range.clone()], two[range]);
        }
    }
}
