//! The load: what each role does to the files, and a slice in which one or two of them do it.

use super::role::{BACKUP, BURST_PAGES, CHECKPOINT, COMMIT_BYTES, LOG, PAGE_BYTES, PIECE_BYTES, READS};
use crate::sync::stamp;
use assay_block::{
    Backend, BlockError, BlockingWriter, Buffer, CompletionLease, DirectFile, OpenMode, Ring, RingOptions,
};
use assay_measure::clock::Clock;
use assay_measure::histogram::Histogram;
use assay_measure::prng::SplitMix64;
use assay_run::stop::Stop;
use std::io::ErrorKind;
use std::panic::resume_unwind;
use std::path::Path;
use std::sync::{Arc, Barrier, OnceLock};
use std::thread;
use std::time::Duration;

/// Point reads and pieces in flight.
const DEPTH: u32 = 4;
/// Pages of a checkpoint's burst in flight, and the pause behind its sync.
const BURST_DEPTH: u32 = 32;
const BURST_PAUSE: Duration = Duration::from_millis(10);
/// How long a wait for the ring lasts at most.
const WAIT: Duration = Duration::from_millis(100);

/// The files. What lies before the first piece of the data and of the copy is not touched: the marker is there.
#[derive(Clone, Copy)]
pub(super) struct Files<'a> {
    pub(super) log: &'a Path,
    pub(super) log_bytes: u64,
    pub(super) data: &'a Path,
    pub(super) data_bytes: u64,
    pub(super) copy: &'a Path,
}

/// A slice about to be loaded.
pub(super) struct Slice<'a> {
    pub(super) files: Files<'a>,
    /// Not counted at its beginning, and then counted.
    pub(super) lead: Duration,
    pub(super) time: Duration,
    pub(super) seed: u64,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
}

/// The common start of the roles of a slice.
struct Start {
    ready: Barrier,
    at_ns: OnceLock<u64>,
}

/// What is counted: operations that begin within it, however late they end.
struct Window {
    begin: u64,
    end: u64,
}

impl Window {
    fn count(&self, latency: &mut Histogram, begun: u64, now: u64) {
        if (self.begin..self.end).contains(&begun) {
            latency.record(now - begun);
        }
    }
}

impl Slice<'_> {
    /// Lets the roles work side by side. The time of each one's operations, in the order of the roles.
    pub(super) fn run(&self, roles: &[usize]) -> Result<Vec<Histogram>, BlockError> {
        let start = &Start { ready: Barrier::new(roles.len()), at_ns: OnceLock::new() };
        thread::scope(|scope| {
            let threads: Vec<_> = roles.iter().map(|role| scope.spawn(move || self.play(*role, start))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|panic| resume_unwind(panic))).collect()
        })
    }

    fn play(&self, role: usize, start: &Start) -> Result<Histogram, BlockError> {
        match role {
            LOG => self.commits(start),
            CHECKPOINT => self.bursts(start),
            _ => self.stream(role, start),
        }
    }

    /// Waits until every role has opened its files; one that cannot waits too, or the others would for ever.
    fn window<T>(&self, start: &Start, opened: Result<T, BlockError>) -> Result<(T, Window), BlockError> {
        start.ready.wait();
        let begin = start.at_ns.get_or_init(|| self.clock.now_ns()) + self.lead.as_nanos() as u64;
        Ok((opened?, Window { begin, end: begin + self.time.as_nanos() as u64 }))
    }

    fn is_over(&self, window: &Window, now: u64) -> bool {
        now >= window.end || self.stop.requested()
    }

    /// The log writer: a write and its `fdatasync`, one after the other.
    fn commits(&self, start: &Start) -> Result<Histogram, BlockError> {
        let opened = BlockingWriter::open(self.files.log, COMMIT_BYTES as usize, true);
        let (mut writer, window) = self.window(start, opened)?;
        let (mut latency, blocks) = (Histogram::new(), self.files.log_bytes / COMMIT_BYTES - 1);
        let mut at = SplitMix64(self.seed).below(blocks);
        loop {
            stamp(writer.buffer(), 0, self.clock.now_ns());
            let begun = self.clock.now_ns();
            if self.is_over(&window, begun) {
                return Ok(latency);
            }
            at = at % blocks + 1;
            writer.write(at * COMMIT_BYTES, COMMIT_BYTES as usize, false)?;
            writer.sync_data()?;
            window.count(&mut latency, begun, self.clock.now_ns());
        }
    }

    /// Point reads, a scan, or a backup copy: so many operations in flight, each a read, of the copy then its write.
    fn stream(&self, role: usize, start: &Start) -> Result<Histogram, BlockError> {
        let bytes = if role == READS { PAGE_BYTES } else { PIECE_BYTES };
        let files: &[(&Path, bool)] = match role {
            BACKUP => &[(self.files.data, false), (self.files.copy, true)],
            _ => &[(self.files.data, false)],
        };
        let (mut ring, window) = self.window(start, ring(files, DEPTH, bytes))?;
        let (mut latency, mut random) = (Histogram::new(), SplitMix64(self.seed));
        let first = PIECE_BYTES / bytes;
        let places = self.files.data_bytes / bytes - first;
        let mut next = if role == BACKUP { 0 } else { random.below(places) };
        let mut place = || {
            next = if role == READS { random.below(places) } else { (next + 1) % places };
            (first + next) * bytes
        };
        let mut flying = [Flying::default(); DEPTH as usize];
        let begin = |ring: &mut Ring, buffer: Buffer, tag: usize, flying: &mut [Flying], at: u64| {
            flying[tag] = Flying { at, begun: self.clock.now_ns(), is_read: false };
            ring.read_buffer(0, at, buffer, bytes as usize, tag as u64).expect("there are as many entries as buffers");
        };
        let buffers: Vec<Buffer> = std::iter::from_fn(|| ring.take_buffer()).collect();
        for (tag, buffer) in buffers.into_iter().enumerate() {
            begin(&mut ring, buffer, tag, &mut flying, place());
        }
        while ring.in_flight() > 0 {
            ring.submit(1, WAIT)?;
            let now = self.clock.now_ns();
            while let Some(completion) = ring.pop() {
                let buffer = moved(completion.result, completion.lease, bytes, self.files.data)?;
                let tag = completion.tag as usize;
                let one = &mut flying[tag];
                if role == BACKUP && !one.is_read {
                    one.is_read = true;
                    let taken = ring.write_buffer(1, one.at, buffer, bytes as usize, false, completion.tag);
                    taken.expect("its read left an entry free");
                    continue;
                }
                window.count(&mut latency, one.begun, now);
                if !self.is_over(&window, now) {
                    begin(&mut ring, buffer, tag, &mut flying, place());
                }
            }
        }
        Ok(latency)
    }

    /// The checkpoint: a burst of pages at random places with one sync at its end, then a pause.
    fn bursts(&self, start: &Start) -> Result<Histogram, BlockError> {
        let opened = ring(&[(self.files.data, true)], BURST_DEPTH, PAGE_BYTES);
        let (mut ring, window) = self.window(start, opened)?;
        let (mut latency, mut random) = (Histogram::new(), SplitMix64(self.seed));
        let first = PIECE_BYTES / PAGE_BYTES;
        let places = self.files.data_bytes / PAGE_BYTES - first;
        loop {
            let begun = self.clock.now_ns();
            if self.is_over(&window, begun) {
                return Ok(latency);
            }
            let mut left = BURST_PAGES;
            let mut write = |ring: &mut Ring, mut buffer: Buffer| {
                left -= 1;
                stamp(&mut buffer, 1, random.next_u64());
                let at = (first + random.below(places)) * PAGE_BYTES;
                let taken = ring.write_buffer(0, at, buffer, PAGE_BYTES as usize, false, 0);
                taken.expect("there are as many entries as buffers");
                left > 0
            };
            while let Some(buffer) = ring.take_buffer() {
                write(&mut ring, buffer);
            }
            let mut is_more = true;
            while ring.in_flight() > 0 {
                ring.submit(1, WAIT)?;
                while let Some(completion) = ring.pop() {
                    let buffer = moved(completion.result, completion.lease, PAGE_BYTES, self.files.data)?;
                    if is_more {
                        is_more = write(&mut ring, buffer);
                    } else {
                        ring.give_back(buffer);
                    }
                }
            }
            self.sync(&mut ring)?;
            window.count(&mut latency, begun, self.clock.now_ns());
            thread::sleep(BURST_PAUSE);
        }
    }

    fn sync(&self, ring: &mut Ring) -> Result<(), BlockError> {
        ring.sync_file(0, 0).expect("nothing else is in flight");
        while ring.in_flight() > 0 {
            ring.submit(1, WAIT)?;
            while let Some(completion) = ring.pop() {
                completion.result.map_err(|source| failed("synchronise", self.files.data, source))?;
            }
        }
        Ok(())
    }
}

/// An operation of a stream in flight.
#[derive(Clone, Copy, Default)]
struct Flying {
    at: u64,
    begun: u64,
    is_read: bool,
}

/// A ring over these files, each to read or to write, with a buffer for each entry.
fn ring(files: &[(&Path, bool)], depth: u32, bytes: u64) -> Result<Ring, BlockError> {
    let open = |(path, is_write): &(&Path, bool)| {
        DirectFile::open(path, OpenMode { read: !is_write, write: *is_write, direct: true }).map(Arc::new)
    };
    Ring::open(RingOptions {
        entries: depth,
        buffers: depth as usize,
        buffer_bytes: bytes as usize,
        pool: None,
        files: files.iter().map(open).collect::<Result<_, _>>()?,
        backend: Backend::Auto,
        helpers: depth as usize,
    })
}

/// The buffer of a transfer that moved all its bytes.
fn moved(result: std::io::Result<u32>, lease: CompletionLease, bytes: u64, path: &Path) -> Result<Buffer, BlockError> {
    let moved = result.map_err(|source| failed("read or write", path, source))?;
    match lease {
        CompletionLease::Buffer(buffer) if u64::from(moved) == bytes => Ok(buffer),
        _ => Err(failed("read or write", path, ErrorKind::UnexpectedEof.into())),
    }
}

fn failed(what: &'static str, path: &Path, source: std::io::Error) -> BlockError {
    BlockError::Io { path: path.to_path_buf(), what, source }
}
