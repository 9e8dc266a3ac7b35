//! The database writers: make buffers free, advance the checkpoint, close the data set.
//!
//! Work comes from the write list (cold dirty frames that a seek met), from checkpoint requests (log switch, stalled
//! log, close) and from their own look ahead: beyond a share of dirty frames, or of redo that recovery would have to
//! read, they write the oldest. A batch copies each frame (so that sessions may keep changing it), joins neighbours
//! into one request, waits until the log covers the copies, submits all and reaps all.
//!
//! Several writers share all of this: the writer that takes a frame has it alone until it is written. The first writer
//! is also the checkpoint process: it alone sets the target, syncs the data files, records the position and closes the
//! data set. A frame in another writer's hands stays dirty in the checkpoint queue, so the position cannot pass it.

use super::cache::Copied;
use super::checkpoint::Target;
use super::counters::{C, Event, Io, Request as Requested};
use super::instance::{Instance, WriterOrders};
use super::options::ChecksumMode;
use super::redo::{FLUSH_BYTES, Step};
use crate::block_format;
use crate::control::State;
use crate::crash_rules::CrashRule;
use crate::layout::UNDO_BASE;
use assay_block::{Backend, Buffer, Ring, RingOptions};
use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Work that nobody waits for takes one in so many of a batch's requests: a commit's log write finds a short queue.
/// With 64 at once (2 CPUs, 64 sessions of one-block updates, log writes of 76 KB) the p99 of `log file sync` was 1,190 us,
/// with 16 and with 4 it was 725 and 780 us, at 1.00, 1.02 and 0.98 of the commits.
const UNHURRIED: usize = 4;
/// A checkpoint hurries once it is more than one in so many parts of a log file behind its target.
const HURRY_SHARE: u64 = 4;
/// Candidates looked at for each request of a batch: neighbours share one.
const CANDIDATES: usize = 4;
/// A writer's buffers have at least this size, for its log writes.
const BUFFER_BYTES: usize = 128 * 1024;
/// A writer looks for work at least this often.
const IDLE: Duration = Duration::from_millis(100);
/// The control file gets a new checkpoint position at most this often (CKPT's 3 s).
const CHECKPOINT_RECORD_NS: u64 = 3_000_000_000;
/// Pause of a writer whose remaining work is held by sessions.
const HELD: Duration = Duration::from_micros(200);
/// Pause of a further writer, which has nothing to do while the first syncs and records.
const NOTHING_LEFT: Duration = Duration::from_millis(1);
/// Tag of data writes; log writes of the writer carry the other.
const TAG_DATA: u64 = 1;
const TAG_LOG: u64 = 2;

/// One request: a run of neighbouring pages.
struct Request {
    buffer: Buffer,
    blocks: Vec<Copied>,
}

/// What a writer's turn left of the checkpoint asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// It is reached, or none was requested, and there is no other work.
    Nothing,
    /// Blocks that can be written at once.
    More,
    /// Blocks that sessions hold, or whose redo is not yet complete.
    Held,
}

/// What a step towards a durable log came to.
enum Wrote {
    /// A flush, or the next file is open.
    Something,
    /// Writes of other threads must end first.
    Later,
    /// The next file still protects dirty blocks.
    Stalled,
}

/// A writer thread's state.
pub struct DatabaseWriter<'a> {
    instance: &'a Instance,
    ring: Ring,
    /// From 0; the first keeps the checkpoint.
    number: usize,
    recorded_at: u64,
    counted_cpu_ns: u64,
    target: Target,
    candidates: Vec<u32>,
    /// Stepped by a harness, on the thread that it would wait for: it leaves blocks whose redo another thread must
    /// flush for its next turn.
    stepped: bool,
}

/// The ring a writer needs: a buffer for each request of a batch and one for the log.
pub(crate) fn ring_options(instance: &Instance, backend: Backend) -> RingOptions {
    let requests = instance.options.writer_requests;
    RingOptions {
        entries: (2 * requests as u32).max(8),
        buffers: requests + 1,
        buffer_bytes: instance.options.writer_bytes.max(BUFFER_BYTES),
        pool: None,
        files: instance.files.list.clone(),
        backend,
        helpers: 4,
    }
}

/// How many requests a batch takes at most.
fn batch_requests(all: usize, hurries: bool) -> usize {
    if hurries { all } else { (all / UNHURRIED).max(1) }
}

/// Whether a checkpoint so far behind its target can no longer take its time.
fn is_late(behind_bytes: u64, file_bytes: u64) -> bool {
    behind_bytes > file_bytes / HURRY_SHARE
}

impl<'a> DatabaseWriter<'a> {
    /// Writer `number`, from 0.
    pub(crate) fn new(instance: &'a Instance, ring: Ring, number: usize) -> Self {
        let now = instance.clock.now_ns();
        let mut totals = locked(&instance.ring_totals);
        let rings = totals.len().max(number + 1);
        totals.resize_with(rings, Default::default);
        drop(totals);
        Self {
            instance,
            ring,
            number,
            recorded_at: now,
            counted_cpu_ns: 0,
            target: Target::new(now),
            candidates: Vec::new(),
            stepped: false,
        }
    }

    /// One that takes a turn when its holder says so.
    pub(super) fn stepped(mut self) -> Self {
        self.stepped = true;
        self
    }

    /// One turn, with the orders there are.
    ///
    /// # Errors
    /// Those of the disk, which stop the engine.
    pub fn step(&mut self) -> Result<(), EngineError> {
        let orders = self.instance.wait_for_orders(self.number, Duration::ZERO);
        self.turn(&orders).map(drop)
    }

    /// Serves orders until told to stop; then writes everything, and the first marks the data set clean.
    pub(crate) fn run(mut self) -> Result<(), EngineError> {
        let mut idle = IDLE;
        loop {
            let orders = self.instance.wait_for_orders(self.number, idle);
            let begin = self.instance.clock.now_ns();
            if self.instance.failure().is_some() {
                return Ok(());
            }
            let left = self.turn(&orders)?;
            if orders.stop {
                return self.finish();
            }
            self.account(begin);
            idle = if left == Left::More { Duration::ZERO } else { IDLE };
            if left == Left::Held {
                // What is left is pending, being changed or in another writer's hands: give its owners a moment.
                std::thread::sleep(if self.number == 0 { HELD } else { NOTHING_LEFT });
            }
        }
    }

    fn account(&mut self, begin: u64) {
        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        let cpu_ns = cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64;
        let c = locked(&self.instance.background);
        c.add(C::BackgroundTime, self.instance.clock.now_ns() - begin);
        c.add(C::BackgroundCpu, cpu_ns.saturating_sub(self.counted_cpu_ns));
        self.counted_cpu_ns = cpu_ns;
    }

    /// One batch of each kind of work; never waits for a session.
    pub(crate) fn turn(&mut self, orders: &WriterOrders) -> Result<Left, EngineError> {
        let instance = self.instance;
        if self.number == 0 {
            let lsn = self.target.lsn(instance);
            instance.target_lsn.store(lsn, Ordering::Release);
        }
        let freed = self.make_free()? + self.look_ahead()?;
        let advanced = self.advance(orders.checkpoint)?;
        if self.number == 0 {
            self.record_checkpoint(orders.checkpoint)?;
        }
        let reached = orders.checkpoint <= instance.checkpoint_lsn.load(Ordering::Acquire);
        if freed + advanced > 0 {
            let more = !reached || instance.cache.has_listed() || instance.cache.wants_writing();
            return Ok(if more { Left::More } else { Left::Nothing });
        }
        if reached {
            return Ok(Left::Nothing);
        }
        if self.number == 0 {
            // Redo nobody has asked for yet may be all that keeps the checkpoint back.
            self.flush_log(u64::MAX)?;
        }
        Ok(Left::Held)
    }

    /// Writes the cold dirty frames that sessions met.
    fn make_free(&mut self) -> Result<u64, EngineError> {
        let mut frames = std::mem::take(&mut self.candidates);
        frames.clear();
        let most = self.instance.options.writer_requests;
        self.instance.cache.take_listed(most, &mut frames);
        let written = self.write_batch(&frames, most, false);
        self.candidates = frames;
        self.post_free();
        written
    }

    /// Writes the oldest while too much is dirty.
    fn look_ahead(&mut self) -> Result<u64, EngineError> {
        if !self.instance.cache.wants_writing() {
            return Ok(0);
        }
        let requests = self.requests(self.instance.cache.is_half_dirty());
        let written = self.write_oldest(u64::MAX, requests, false);
        self.post_free();
        written
    }

    /// Writes what stands in the way of the checkpoint asked for, and of the incremental target.
    fn advance(&mut self, asked: u64) -> Result<u64, EngineError> {
        let (cache, redo) = (&self.instance.cache, &self.instance.redo);
        let most = self.instance.options.recovery_blocks;
        if most > 0 && cache.dirty_frames() > most {
            return self.write_oldest(u64::MAX, self.requests(true), true);
        }
        let target = self.instance.target_lsn.load(Ordering::Acquire);
        let below = asked.max(target);
        let Some(floor) = cache.checkpoint_floor().filter(|floor| *floor < below) else {
            return Ok(0);
        };
        let behind = target.saturating_sub(floor);
        let hurries = redo.stalled() != 0 || is_late(behind, redo.file_payload_bytes());
        self.write_oldest(below, self.requests(hurries), true)
    }

    /// How many requests a batch takes at most.
    fn requests(&self, hurries: bool) -> usize {
        batch_requests(self.instance.options.writer_requests, hurries)
    }

    /// Writes the oldest with so many requests at most.
    fn write_oldest(&mut self, below: u64, requests: usize, checkpoint: bool) -> Result<u64, EngineError> {
        let mut frames = std::mem::take(&mut self.candidates);
        frames.clear();
        let most = requests * CANDIDATES;
        self.instance.cache.take_oldest(below, most, &mut frames);
        let written = self.write_batch(&frames, requests, checkpoint);
        self.candidates = frames;
        written
    }

    fn post_free(&self) {
        let waiters = std::mem::take(&mut *locked(&self.instance.cache.free_waiters));
        for who in waiters {
            self.instance.post(who);
        }
    }

    /// Copies, joins, writes and cleans; returns the blocks written.
    fn write_batch(&mut self, frames: &[u32], most_requests: usize, checkpoint: bool) -> Result<u64, EngineError> {
        if frames.is_empty() {
            return Ok(0);
        }
        let requests = self.gather(frames, most_requests);
        self.instance.cache.untake(frames);
        let highest = requests.iter().flat_map(|r| &r.blocks).map(|b| b.lsn).max();
        let Some(highest) = highest else { return Ok(0) };
        let redo_first = self.instance.options.rules.keep(CrashRule::RedoFirst);
        if redo_first && self.instance.redo.durable() < highest {
            self.flush_log(highest)?;
        }
        if redo_first && self.instance.redo.durable() < highest {
            // The log could not go on: blocks ahead of it must not reach the disk.
            for request in requests {
                request.blocks.iter().for_each(|block| self.instance.cache.abandon_write(block));
                self.ring.give_back(request.buffer);
            }
            return Ok(0);
        }
        self.submit(requests, checkpoint)
    }

    /// Copies the frames into request buffers, neighbours together.
    fn gather(&mut self, frames: &[u32], most_requests: usize) -> Vec<Request> {
        let instance = self.instance;
        let most_bytes = instance.options.writer_bytes;
        let block_bytes = instance.geometry.block_bytes as usize;
        let mut sorted: Vec<(u64, u32)> = frames.iter().map(|f| (instance.cache.page_of(*f).0, *f)).collect();
        sorted.sort_unstable();
        sorted.dedup();
        let mut requests: Vec<Request> = Vec::new();
        for (_, frame) in sorted {
            let joins = requests.last().and_then(|r| r.blocks.last().map(|b| (b.page, r.blocks.len())));
            let page = instance.cache.page_of(frame);
            let joined = joins.is_some_and(|(last, n)| {
                last.0 + 1 == page.0
                    && (n + 1) * block_bytes <= most_bytes
                    && (page.0 >= UNDO_BASE || instance.adjacent(last, 2) == 2)
            });
            if !joined {
                // The last buffer is the log's: this very batch may have to flush it first.
                if requests.len() == most_requests {
                    break;
                }
                let Some(buffer) = self.ring.take_buffer() else {
                    break;
                };
                requests.push(Request { buffer, blocks: Vec::new() });
            }
            let request = requests.last_mut().expect("one was pushed or joined");
            let at = request.blocks.len() * block_bytes;
            match instance.cache.copy_for_write(frame, &mut request.buffer[at..at + block_bytes]) {
                // The frame may have been given to another page since it was sorted.
                Some(copied) if joined && copied.page != page => instance.cache.abandon_write(&copied),
                Some(mut copied) => {
                    let block = &mut request.buffer[at..at + block_bytes];
                    if instance.options.checksum == ChecksumMode::Off {
                        block_format::unseal(block);
                    } else {
                        block_format::seal(block);
                    }
                    copied.crc_word = block_format::get(block, block_format::word::CRC);
                    request.blocks.push(copied);
                }
                None => {}
            }
            if request.blocks.is_empty()
                && let Some(empty) = requests.pop()
            {
                self.ring.give_back(empty.buffer);
            }
        }
        requests
    }

    fn submit(&mut self, requests: Vec<Request>, checkpoint: bool) -> Result<u64, EngineError> {
        let instance = self.instance;
        let block_bytes = u64::from(instance.geometry.block_bytes);
        let mut batches: Vec<Vec<Copied>> = Vec::with_capacity(requests.len());
        let durable = instance.redo.durable();
        for Request { buffer, blocks } in requests {
            let (file, offset) = instance.map.locate(blocks[0].page);
            self.assert_writable(&blocks, durable);
            let bytes = blocks.len() * block_bytes as usize;
            let tag = TAG_DATA | (batches.len() as u64) << 8;
            if self.ring.write_buffer(file, offset, buffer, bytes, false, tag).is_err() {
                return Err(EngineError::Unusable("the writer's ring is full".to_owned()));
            }
            self.count_request(&blocks, bytes as u64, checkpoint);
            batches.push(blocks);
        }
        let begin = instance.clock.now_ns();
        self.ring.stamp(begin);
        self.ring.submit(0, Duration::ZERO).map_err(ring_failed)?;
        let submitted = instance.clock.now_ns();
        let mut left = batches.len();
        let mut written = 0;
        let mut reaped = submitted;
        let mut times = Vec::with_capacity(batches.len());
        while left > 0 {
            let Some(done) = self.ring.pop() else {
                self.ring.submit(1, Duration::from_millis(100)).map_err(ring_failed)?;
                reaped = instance.clock.now_ns();
                continue;
            };
            left -= 1;
            let blocks = &batches[(done.tag >> 8) as usize];
            if let assay_block::CompletionLease::Buffer(buffer) = done.lease {
                self.ring.give_back(buffer);
            }
            let expected = blocks.len() as u64 * block_bytes;
            times.push((expected, reaped - done.submitted));
            self.must_be_written(done.result, blocks)?;
            written += self.clean(blocks);
        }
        let end = instance.clock.now_ns();
        let c = locked(&instance.background);
        c.charge(Event::WriterSubmit, submitted - begin);
        c.charge(Event::WriterWrite, end - submitted);
        for (bytes, ns) in times {
            c.completed(Requested::DataWrite, bytes, ns);
        }
        c.add(C::WriterSubmits, 1);
        self.count_ring();
        Ok(written)
    }

    /// Asserts what holds of every request that goes to disk, the log being durable up to `durable`.
    fn assert_writable(&self, blocks: &[Copied], durable: u64) {
        let map = &self.instance.map;
        let block_bytes = u64::from(self.instance.geometry.block_bytes);
        let (file, offset) = map.locate(blocks[0].page);
        for (block, at) in blocks.iter().zip(0..) {
            assert!(
                !self.instance.options.rules.are_whole() || block.lsn <= durable,
                "W1: no page goes to disk before its redo; page {} has LSN {}, durable is {durable}",
                block.page.0,
                block.lsn
            );
            assert!(
                map.holds(block.page) && map.locate(block.page) == (file, offset + at * block_bytes),
                "W2: the pages of a request lie one behind the other; page {} as number {at} from page {}",
                block.page.0,
                blocks[0].page.0
            );
        }
    }

    /// A data write that failed, or wrote less than it should, stops the engine and is not tried again: what the
    /// device has of it is unknown from now on.
    fn must_be_written(&self, result: std::io::Result<u32>, blocks: &[Copied]) -> Result<(), EngineError> {
        let instance = self.instance;
        let expected = blocks.len() * instance.geometry.block_bytes as usize;
        let what = match result {
            Ok(bytes) if bytes as usize == expected => return Ok(()),
            Ok(bytes) => format!("wrote {bytes}"),
            Err(error) => format!("failed: {error}"),
        };
        let (file, offset) = instance.map.locate(blocks[0].page);
        let path = instance.files.list[usize::from(file)].path().display();
        Err(self.broken(format!("a write of {expected} bytes at {offset} of {path} {what}")))
    }

    fn broken(&self, text: String) -> EngineError {
        self.instance.fail(&text);
        EngineError::Unusable(text)
    }

    fn count_ring(&self) {
        let totals = &mut locked(&self.instance.ring_totals)[self.number];
        totals.all = self.ring.counters();
        totals.by_file.clear();
        totals.by_file.extend(self.ring.file_counters());
    }

    fn clean(&self, blocks: &[Copied]) -> u64 {
        let cleaned = blocks.iter().filter(|b| self.instance.cache.finish_write(b)).count() as u64;
        let c = locked(&self.instance.background);
        c.add(C::Cleaned, cleaned);
        // A copy counts as a clone only if the block really changed while the copy was written.
        c.add(C::WriteClones, blocks.len() as u64 - cleaned);
        blocks.len() as u64
    }

    fn count_request(&self, blocks: &[Copied], bytes: u64, checkpoint: bool) {
        let n = blocks.len() as u64;
        let undo = blocks.iter().filter(|b| b.page.0 >= UNDO_BASE).count() as u64;
        let c = locked(&self.instance.background);
        c.add(C::WritesFromCache, n);
        c.add(C::WriteRequests, 1);
        c.add(C::WriteMultiBlock, u64::from(n > 1));
        c.add(C::UndoWrites, undo);
        c.add(if checkpoint { C::CheckpointBuffers } else { C::WritesNonCheckpoint }, n);
        c.write_request(if undo > 0 { Io::WriterUndo } else { Io::WriterData }, bytes);
    }

    /// Makes the log durable up to `lsn` (or all that is complete), writing what nobody else writes.
    fn flush_log(&mut self, lsn: u64) -> Result<(), EngineError> {
        let redo = &self.instance.redo;
        let lsn = lsn.min(redo.complete());
        while redo.durable() < lsn && self.instance.failure().is_none() {
            match self.write_log()? {
                Wrote::Something => self.instance.wake_log_waiters(usize::MAX),
                // Other threads' writes must end first.
                Wrote::Later if self.stepped => return Ok(()),
                Wrote::Later => std::thread::sleep(Duration::from_micros(50)),
                Wrote::Stalled => return Ok(()),
            }
        }
        Ok(())
    }

    /// One step towards a durable log.
    fn write_log(&mut self) -> Result<Wrote, EngineError> {
        let instance = self.instance;
        let checkpoint = instance.checkpoint_lsn.load(Ordering::Acquire);
        let mut buffer = log_buffer(&mut self.ring)?;
        let room = buffer.len().min(FLUSH_BYTES);
        let step = instance.redo.reserve(room, checkpoint);
        let Step::Write(flush) = step else {
            self.ring.give_back(buffer);
            return match step {
                Step::Switch { file, sequence, first_lsn } => {
                    instance.switch_log(file, sequence, first_lsn, &locked(&instance.background))?;
                    Ok(Wrote::Something)
                }
                Step::Stalled(_) => Ok(Wrote::Stalled),
                Step::Nothing | Step::Busy | Step::Write(_) => Ok(Wrote::Later),
            };
        };
        instance.redo.fill(&flush, &mut buffer);
        let begin = instance.clock.now_ns();
        let file = instance.files.redo_first + flush.file as u16;
        if self.ring.write_buffer(file, flush.offset, buffer, flush.bytes, true, TAG_LOG).is_err() {
            return Err(EngineError::Unusable("the writer's ring is full".to_owned()));
        }
        self.ring.stamp(begin);
        let done = loop {
            if let Some(done) = self.ring.pop() {
                break done;
            }
            self.ring.submit(1, Duration::from_millis(100)).map_err(ring_failed)?;
        };
        if let assay_block::CompletionLease::Buffer(buffer) = done.lease {
            self.ring.give_back(buffer);
        }
        if let Some(problem) = instance.log_write_problem(&flush, &done.result) {
            return Err(self.broken(problem));
        }
        self.count_log_write(&flush, instance.clock.now_ns() - begin);
        self.count_ring();
        instance.redo.finish(flush);
        Ok(Wrote::Something)
    }

    /// A log write of this thread: its wait begins with the submit, so both layers take equally long.
    fn count_log_write(&self, flush: &super::redo::Flush, ns: u64) {
        let c = locked(&self.instance.background);
        c.completed(Requested::LogWrite, flush.bytes as u64, ns);
        self.instance.count_log_write(flush, ns, &c);
    }

    /// The position below which every change is in the data files.
    fn checkpoint_position(&self) -> u64 {
        // The order matters: a change published after `durable` was read lies above it.
        let durable = self.instance.redo.complete().min(self.instance.redo.durable());
        if !self.instance.options.rules.keep(CrashRule::CheckpointBehindDirty) {
            return durable;
        }
        self.instance.cache.checkpoint_floor().map_or(durable, |floor| floor.min(durable))
    }

    /// Syncs the data files and records the checkpoint, when it is due or asked for.
    fn record_checkpoint(&mut self, asked: u64) -> Result<(), EngineError> {
        let instance = self.instance;
        let position = self.checkpoint_position();
        let recorded = instance.checkpoint_lsn.load(Ordering::Acquire);
        let now = instance.clock.now_ns();
        let reached = |lsn: u64| lsn > recorded && position >= lsn;
        let due = now - self.recorded_at >= CHECKPOINT_RECORD_NS || reached(asked) || reached(instance.redo.stalled());
        if position <= recorded || !due || !instance.is_marked_open() {
            return Ok(());
        }
        if cfg!(debug_assertions) || self.stepped {
            instance.cache.assert_floor(position);
        }
        self.sync_data_files()?;
        let mut file = locked(&instance.control);
        let mut control = file.control().clone();
        control.checkpoint_lsn = position;
        {
            let c = locked(&instance.background);
            instance.store_control(&mut file, control, &c)?;
            c.add(C::Checkpoints, u64::from(reached(asked)));
        }
        drop(file);
        self.recorded_at = now;
        instance.checkpoint_lsn.store(position, Ordering::Release);
        if instance.redo.unstall(position) {
            instance.wake_log_waiters(usize::MAX);
        }
        Ok(())
    }

    fn sync_data_files(&self) -> Result<(), EngineError> {
        let files = &self.instance.files;
        for file in &files.list[..=usize::from(files.undo)] {
            file.sync_data().map_err(|e| self.broken(format!("sync of {}: {e}", file.path().display())))?;
        }
        Ok(())
    }

    /// Writes everything out; the first writer waits for the others and marks the data set clean.
    ///
    /// # Errors
    /// Those of the disk, which stop the engine.
    pub fn finish(&mut self) -> Result<(), EngineError> {
        let instance = self.instance;
        if instance.failure().is_some() || !instance.is_marked_open() {
            return Ok(());
        }
        if self.number == 0 {
            self.flush_log(u64::MAX)?;
        }
        let all = self.requests(true);
        while instance.failure().is_none() {
            if self.write_oldest(u64::MAX, all, true)? > 0 {
                continue;
            }
            if self.number > 0 {
                return Ok(());
            }
            if instance.helpers.load(Ordering::Acquire) > 0 {
                // The others may have blocks in hand.
                std::thread::sleep(HELD);
            } else if instance.cache.dirty_frames() == 0 {
                return self.mark_clean();
            } else if self.write_oldest(u64::MAX, all, true)? == 0 {
                return Err(EngineError::Unusable(
                    "dirty blocks are left that no redo covers: the data set stays unclean".to_owned(),
                ));
            }
        }
        Ok(())
    }

    fn mark_clean(&self) -> Result<(), EngineError> {
        let instance = self.instance;
        let (redo, dirty) = (&instance.redo, instance.cache.dirty_frames());
        assert!(
            dirty == 0 && redo.durable() == redo.tail(),
            "K3: a data set is clean once every change and all redo is on disk; {dirty} frames are dirty, the log is durable to {} of {}",
            redo.durable(),
            redo.tail()
        );
        self.sync_data_files()?;
        let mut file = locked(&instance.control);
        let mut control = file.control().clone();
        control.checkpoint_lsn = instance.redo.durable();
        control.state = State::Clean;
        // Undo on disk names transactions: their numbers must never come again.
        control.change_number = instance.last_transaction();
        instance.store_control(&mut file, control, &locked(&instance.background))
    }
}

fn ring_failed(error: assay_block::BlockError) -> EngineError {
    EngineError::Unusable(format!("the writer's ring failed: {error}"))
}

fn log_buffer(ring: &mut Ring) -> Result<Buffer, EngineError> {
    ring.take_buffer().ok_or_else(|| EngineError::Unusable("the writer has no buffer for the log".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_that_nobody_waits_for_takes_a_quarter_of_a_batch_and_never_nothing() {
        for (all, unhurried) in [(1, 1), (3, 1), (4, 1), (64, 16), (1024, 256)] {
            assert_eq!(batch_requests(all, false), unhurried);
            assert_eq!(batch_requests(all, true), all);
        }
        assert!(!is_late(0, 1 << 20) && !is_late(1 << 18, 1 << 20));
        assert!(is_late((1 << 18) + 1, 1 << 20));
    }
}
