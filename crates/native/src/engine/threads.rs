//! How many driver threads the sessions get by default: as many as the device's reads keep busy.
//!
//! Threads beyond that do not read more. They share locks, they sleep and wake twice as often, and a read costs nearly
//! twice the CPU: 5.7 us with two threads of 16 sessions, 3.4 us with one of 32, at the same reads per second.

use super::instance::Instance;
use super::page_table::mix;
use crate::layout::Page;
use crate::paths::Places;
use assay_block::{Backend, Ring, RingOptions, device_facts};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

/// CPU of a block that is read: entry and completion in the kernel, checksum, replacement, turn of the session. Measured
/// with one thread: 2.5 us with 128 sessions, 3.4 to 4.3 us with 32 (docs/design/native-engine.md).
const READ_CPU_NS: f64 = 3_000.0;
/// CPU of a block that is found in the cache (`cargo xtask bench cached`: 16 to 35 ns).
const HIT_CPU_NS: f64 = 30.0;
/// A block that is changed costs about so many more reads' CPU: undo, redo, its share of the commit (6 us by the
/// difference between runs with UPDATE_PCT 0 and 25).
const UPDATE_READS: f64 = 2.0;
/// Threads as busy as this still answer what ended at once.
const FULL: f64 = 0.7;
/// Misses rarer than this leave sessions that compute.
const FEW_MISSES: f64 = 1e-4;
/// How long the device is asked; longer where a read takes longer.
const LOOK: Duration = Duration::from_millis(40);
/// Most reads in flight meanwhile.
const DEPTH_MAX: usize = 128;

/// The driver threads of a run.
#[derive(Clone, Default)]
pub(super) struct Chosen {
    /// How many; 0 before the choice.
    pub(super) count: usize,
    /// Why so many, in words.
    pub(super) why: String,
    /// Requests in flight up to which one of them does not sleep in the kernel for room in the devices' queues; `None`
    /// where that is not known.
    pub(super) read_room: Option<usize>,
}

impl Chosen {
    /// For so many sessions on so many CPUs, `most` threads at most.
    pub(super) fn of(instance: &Instance, places: &Places, (sessions, cpus, most): (usize, usize, usize)) -> Self {
        let (wanted, why) = number(instance, sessions, cpus);
        let count = wanted.clamp(1, most);
        Self { count, why, read_room: read_room(places, count) }
    }
}

fn number(instance: &Instance, sessions: usize, cpus: usize) -> (usize, String) {
    let options = &instance.options;
    let most = cpus.min(sessions).max(1);
    let asked = options.driver_threads;
    if asked > 0 {
        return (asked.min(sessions.max(1)), "DRIVER_THREADS".to_owned());
    }
    let missed = 1.0 - options.cache_frames as f64 / options.blocks.max(1) as f64;
    let missed = if options.drop_on_unpin { 1.0 } else { missed };
    if most == 1 || missed < FEW_MISSES {
        return (most, "one per CPU, at most one per session".to_owned());
    }
    let reads = if options.batched { options.io_depth } else { 1 };
    let depth = (sessions * reads).clamp(1, DEPTH_MAX);
    match reads_per_s(instance, depth) {
        Some(rate) => (
            wanted(rate, missed, options.update_pct).clamp(1, most),
            format!("as many as {rate:.0} reads/s keep busy, measured before the run at depth {depth}"),
        ),
        None => (most, "one per CPU, at most one per session: the reads of the device were not measured".to_owned()),
    }
}

/// Threads that so many reads per second keep busy, where `missed` of the blocks that are visited are read.
fn wanted(reads_per_s: f64, missed: f64, update_pct: u32) -> usize {
    let visit_ns = HIT_CPU_NS / missed;
    let update_ns = READ_CPU_NS * UPDATE_READS * f64::from(update_pct) / 100.0;
    let busy = reads_per_s * (READ_CPU_NS + visit_ns + update_ns) / 1e9;
    (busy / FULL).ceil() as usize
}

/// Random reads of data blocks by one ring, into memory of its own; nothing is counted or verified. `None` where the
/// files are not read past the page cache by io_uring, and where reads fail: the run will say why.
fn reads_per_s(instance: &Instance, depth: usize) -> Option<f64> {
    let options = &instance.options;
    if !(options.direct && options.asynchronous) {
        return None;
    }
    let block_bytes = instance.geometry.block_bytes as usize;
    let mut ring = Ring::open(RingOptions {
        entries: depth as u32,
        buffers: depth,
        buffer_bytes: block_bytes,
        pool: None,
        files: instance.files.list.clone(),
        backend: Backend::Uring,
        helpers: 1,
    })
    .ok()?;
    let pages = instance.geometry.data_pages();
    let begin = Instant::now();
    let (mut asked, mut ended) = (0, 0_u32);
    loop {
        while let Some(buffer) = ring.take_buffer() {
            let page = Page(mix(Page(asked)) % pages);
            let (file, offset) = instance.map.locate(page);
            ring.read_buffer(file, offset, buffer, block_bytes, asked).ok()?;
            asked += 1;
        }
        ring.submit(1, LOOK).ok()?;
        while let Some(completion) = ring.pop() {
            completion.result.ok()?;
            ended += 1;
        }
        if begin.elapsed() >= LOOK {
            return Some(f64::from(ended) / begin.elapsed().as_secs_f64());
        }
    }
}

/// Beyond `nr_requests` (256 of a virtio disk) the block layer puts whoever submits to sleep until a request ends. With 1000
/// sessions a driver thread slept there for three quarters of its time, while sessions whose blocks had arrived waited
/// for it. What the queues do not take waits in the engine instead, and the thread does its other work.
fn read_room(places: &Places, threads: usize) -> Option<usize> {
    let queues = places.list().iter().map(|place| queues_under(&place.path, threads));
    Some(share_of(&queues.collect::<Option<_>>()?, threads))
}

/// The disk below a path, and how many requests it takes of so many threads: each uses one hardware queue, that of the
/// CPU it is on.
fn queues_under(path: &Path, threads: usize) -> Option<(String, u64)> {
    let facts = device_facts(path);
    // What a mapped device is made of has the queues, and who uses which is not known.
    if !facts.slaves.is_empty() {
        return None;
    }
    let queues = facts.hardware_queues.ok()?.clamp(1, threads as u64);
    Some((facts.disk.ok()?, facts.nr_requests.ok()? * queues))
}

fn share_of(queues: &BTreeMap<String, u64>, threads: usize) -> usize {
    /// Left to log writes and to the database writers.
    const OTHERS: u64 = 16;
    /// Enough for any thread.
    const LEAST: u64 = 32;
    let free = queues.values().map(|requests| requests.saturating_sub(OTHERS));
    (free.sum::<u64>() / threads as u64).max(LEAST) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_has_its_share_of_the_queues_of_all_disks() {
        let share = |queues: &[(&str, u64)], threads| {
            let queues = queues.iter().map(|(disk, requests)| ((*disk).to_owned(), *requests));
            share_of(&queues.collect(), threads)
        };
        // Two paths on one disk share its queue.
        assert_eq!(share(&[("vda", 256), ("vda", 256)], 1), 240);
        assert_eq!(share(&[("vda", 256), ("vdb", 128)], 2), 176);
        assert_eq!(share(&[("sda", 2)], 4), 32);
    }

    #[test]
    fn threads_follow_the_reads_of_the_device_and_what_a_read_costs() {
        // A device of 100 thousand reads/s keeps one thread busy for a third of its time, one of a million more than four.
        assert_eq!(wanted(100_000.0, 1.0, 0), 1);
        assert_eq!(wanted(1_000_000.0, 1.0, 0), 5);
        // Where one block in a thousand is read, the visits between two reads are the work.
        assert_eq!(wanted(100_000.0, 0.001, 0), 5);
        assert_eq!(wanted(100_000.0, 1.0, 100), 2);
    }
}
