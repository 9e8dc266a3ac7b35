//! The redo log: a buffer that sessions fill, log blocks, log files and switches.
//!
//! A redo address (LSN) counts payload bytes since the data set was created; [`LogRing`] holds those that are not durable. The
//! thread that needs durability writes: with one session there is no hop to another thread, with many the next write
//! carries everything that arrived during the last one (group commit without a timer). Several threads may have a write
//! in flight, at consecutive positions, so that no thread's sessions wait for another thread's write to begin; a commit
//! is acknowledged only when everything before it is durable too.
//!
//! The bytes on disk are those of [`redo_format`].

use crate::redo_format::{self, FileHeader, LOG_HEADER_BYTES, LogBlock};
use assay_block::{Appended, BlockError, LogRing, Taken};
use assay_measure::locked::locked;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};

/// Most bytes one flush writes.
pub(crate) const FLUSH_BYTES: usize = 1 << 20;
/// A flush is due when so much is pending (or a third of the buffer), commit or not: LGWR's 1 MiB.
const FLUSH_DUE_BYTES: u64 = 1 << 20;
/// Most log writes under way at once. Their blocks must be countable in 15 bits of a log block's
/// flags: 4 x 1 MiB are 8192 blocks of 512 bytes.
pub(crate) const MAX_FLIGHTS: usize = 4;
const _: () =
    assert!(MAX_FLIGHTS * FLUSH_BYTES / 512 < 1 << 15, "R7: the blocks under way are countable in a log block");

/// The thread wants to be woken whenever a write ends.
pub(crate) const ANY_PROGRESS: u64 = 0;
/// Nobody on the thread waits for the log.
pub(crate) const NO_WAITER: u64 = u64::MAX;

#[repr(align(128))]
pub(crate) struct Padded<T>(pub(crate) T);

/// A log write under way, or done behind one that is not.
struct Flight {
    end_lsn: u64,
    blocks: u64,
    done: Option<Taken>,
}

/// Where the next log block goes.
struct Position {
    sequence: u64,
    file: usize,
    next_block: u64,
    /// End of the redo last written to each file: it may be overwritten only once the checkpoint has passed it.
    end_lsn: Vec<u64>,
    opened: bool,
    /// Log blocks promised to claims and to redo in the buffer; never more than the files can take.
    promised: u64,
    /// Of these, what each append still in the buffer needs at most: (end LSN, blocks).
    appended: VecDeque<(u64, u64)>,
    /// Bytes of the buffer promised to claims.
    claimed_bytes: u64,
    /// Writes not yet acknowledged, oldest first.
    flights: VecDeque<Flight>,
    /// COMMIT_MODE=sync: where commits end that no write has taken yet.
    own_writes: BTreeSet<u64>,
    /// A thread opens the next file: no write may start meanwhile.
    switching: bool,
}

impl Position {
    /// Where a write from `begin` on must end at the latest, so that each commit that wants one has a write of its own.
    fn own_write_end(&mut self, begin: u64) -> u64 {
        while self.own_writes.first().is_some_and(|end| *end <= begin) {
            self.own_writes.pop_first();
        }
        self.own_writes.first().copied().unwrap_or(u64::MAX)
    }

    /// The redo up to `end` has its blocks: its promises end.
    fn fulfil(&mut self, end: u64) {
        // Appends of several threads may stand a little out of order.
        let promised = &mut self.promised;
        self.appended.retain(|(lsn, blocks)| {
            let written = *lsn <= end;
            if written {
                assert!(*promised >= *blocks, "R3: {blocks} log blocks are kept of {promised} promised");
                *promised -= blocks;
            }
            !written
        });
    }
}

/// Why a claim must wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shortage {
    /// The buffer is full: the next flush helps.
    Buffer,
    /// The files are full up to redo that the checkpoint, when it passes this LSN, sets free.
    Files(u64),
}

/// A right to append so many bytes, which cannot fail later. Whoever holds one may change blocks; see [`Redo::try_claim`].
#[derive(Debug)]
pub(crate) struct RedoClaim {
    bytes: u64,
    blocks: u64,
}

/// One flush: its place is its own, nobody else writes there.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Flush {
    pub(crate) file: usize,
    sequence: u64,
    redo: Taken,
    /// Log blocks directly before it that were not known to be durable when it was reserved.
    unproven: u16,
    pub(crate) offset: u64,
    pub(crate) bytes: usize,
    pub(crate) blocks: u64,
    pub(crate) payload: u64,
    pub(crate) wastage: u64,
}

/// What whoever wants to flush must do next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Step {
    /// Nothing is pending that is not being written already.
    Nothing,
    /// Other writes or a switch must end first; threads that wait are woken then.
    Busy,
    /// [`Redo::fill`] a buffer, write it, call [`Redo::finish`].
    Write(Flush),
    /// Open the next file first: call [`Redo::switched`] after its header is on disk.
    Switch {
        /// Log file number, from 0.
        file: usize,
        /// Its new sequence.
        sequence: u64,
        /// First LSN it will hold.
        first_lsn: u64,
    },
    /// The next file still protects dirty buffers up to this LSN.
    Stalled(u64),
}

/// The log of an open instance.
pub(crate) struct Redo {
    /// What is taken is on its way to disk, what is released is durable.
    ring: LogRing,
    stalled: AtomicU64,
    switching: AtomicBool,
    position: Mutex<Position>,
    block_bytes: usize,
    file_blocks: u64,
    key: u64,
    /// Per driver thread: the lowest LSN whose durability a session there waits for;
    /// [`ANY_PROGRESS`] or [`NO_WAITER`].
    pub(crate) awaited: Vec<Padded<AtomicU64>>,
    /// Most writes in flight.
    max_flights: usize,
    /// COMMIT_MODE=sync: every commit has its own write.
    sync_commits: bool,
    /// Moves whenever a claim that failed may succeed.
    generation: AtomicU64,
}

impl Redo {
    /// A log that continues at `start_lsn` with the file after `sequence`.
    ///
    /// # Errors
    /// There is no memory for the buffer.
    pub(crate) fn new(config: &RedoConfig) -> Result<Self, BlockError> {
        let threads = config.threads;
        Ok(Self {
            ring: LogRing::new(config.buffer_bytes, config.start_lsn, threads, config.huge_pages)?,
            stalled: AtomicU64::new(0),
            switching: AtomicBool::new(false),
            position: Mutex::new(Position {
                sequence: config.sequence,
                file: (config.sequence % config.files as u64) as usize,
                next_block: 0,
                end_lsn: vec![0; config.files],
                opened: false,
                promised: 0,
                appended: VecDeque::new(),
                claimed_bytes: 0,
                flights: VecDeque::with_capacity(MAX_FLIGHTS),
                own_writes: BTreeSet::new(),
                switching: false,
            }),
            block_bytes: config.block_bytes,
            file_blocks: config.file_bytes / config.block_bytes as u64,
            key: config.data_set,
            awaited: (0..threads).map(|_| Padded(AtomicU64::new(NO_WAITER))).collect(),
            max_flights: config.max_flights,
            sync_commits: config.sync_commits,
            generation: AtomicU64::new(0),
        })
    }

    /// Bytes the buffer holds.
    pub(crate) fn capacity(&self) -> u64 {
        self.ring.capacity()
    }

    fn position(&self) -> MutexGuard<'_, Position> {
        locked(&self.position)
    }

    /// End of everything reserved.
    pub(crate) fn tail(&self) -> u64 {
        self.ring.tail()
    }

    /// Everything below is on disk.
    pub(crate) fn durable(&self) -> u64 {
        self.ring.released()
    }

    /// Everything below is on disk or being written.
    pub(crate) fn reserved(&self) -> u64 {
        self.ring.taken()
    }

    /// Bytes in the buffer that nobody writes yet.
    pub(crate) fn unwritten(&self) -> u64 {
        self.tail().saturating_sub(self.reserved())
    }

    /// Bytes in the buffer and not on disk.
    pub(crate) fn pending(&self) -> u64 {
        self.tail().saturating_sub(self.durable())
    }

    /// Current log sequence.
    pub(crate) fn sequence(&self) -> u64 {
        self.position().sequence
    }

    /// Redo one log block holds.
    pub(crate) fn block_payload_bytes(&self) -> u64 {
        (self.block_bytes - LOG_HEADER_BYTES) as u64
    }

    /// Redo one log file holds when its blocks are full.
    pub(crate) fn file_payload_bytes(&self) -> u64 {
        (self.file_blocks - 1) * self.block_payload_bytes()
    }

    /// A flush is due when so much is pending, commit or not: a third of the buffer, at most 1 MiB.
    pub(crate) fn due_bytes(&self) -> u64 {
        FLUSH_DUE_BYTES.min(self.capacity() / 3)
    }

    /// The redo address the checkpoint must pass before somebody can go on; 0 is none.
    pub(crate) fn stalled(&self) -> u64 {
        self.stalled.load(Ordering::Acquire)
    }

    /// Whether a switch is under way.
    pub(crate) fn is_switching(&self) -> bool {
        self.switching.load(Ordering::Acquire)
    }

    /// Moves whenever a claim that failed may succeed.
    pub(crate) fn generation(&self) -> u64 {
        self.generation.load(Ordering::SeqCst)
    }

    fn moved(&self) {
        self.generation.fetch_add(1, Ordering::SeqCst);
    }

    /// Log blocks that can be written before some file must wait for the checkpoint, and what it must wait for.
    fn room_blocks(&self, position: &Position, checkpoint: u64) -> (u64, u64) {
        let files = position.end_lsn.len();
        let mut room = if position.opened { self.file_blocks.saturating_sub(position.next_block) } else { 0 };
        let others = if position.opened { files - 1 } else { files };
        for step in 1..=others {
            let file = ((position.sequence + step as u64) % files as u64) as usize;
            if position.end_lsn[file] > checkpoint {
                return (room, position.end_lsn[file]);
            }
            room += self.file_blocks - 1;
        }
        (room, position.end_lsn[position.file])
    }

    /// Promises room for `bytes` of redo in the buffer and in the log files.
    ///
    /// Redo that was generated can then always be flushed, and a block that was changed can always be
    /// written: a full log stops sessions before they change anything, never after. Otherwise the
    /// checkpoint could wait for a block that waits for its redo that waits for the checkpoint.
    ///
    /// # Errors
    /// What is short.
    pub(crate) fn try_claim(&self, bytes: u64, checkpoint: u64) -> Result<RedoClaim, Shortage> {
        let payload = (self.block_bytes - LOG_HEADER_BYTES) as u64;
        let blocks = bytes.div_ceil(payload) + 1;
        let mut position = self.position();
        let (room, needs) = self.room_blocks(&position, checkpoint);
        if position.promised + blocks > room {
            if needs <= checkpoint {
                // No file is in the way, only other sessions' promises: they come back.
                return Err(Shortage::Buffer);
            }
            self.stalled.store(needs, Ordering::Release);
            return Err(Shortage::Files(needs));
        }
        if self.pending() + position.claimed_bytes + bytes > self.capacity() {
            return Err(Shortage::Buffer);
        }
        position.promised += blocks;
        position.claimed_bytes += bytes;
        Ok(RedoClaim { bytes, blocks })
    }

    /// Gives a claim back: unused, or after `appended` bytes ending at `end_lsn`.
    pub(crate) fn settle(&self, claim: RedoClaim, appended: u64, end_lsn: u64) {
        let payload = (self.block_bytes - LOG_HEADER_BYTES) as u64;
        let mut position = self.position();
        assert!(
            appended <= claim.bytes,
            "R2: a session appends no more than it claimed; {appended} bytes of {}",
            claim.bytes
        );
        assert!(
            position.claimed_bytes >= claim.bytes && position.promised >= claim.blocks,
            "R3: {claim:?} is given back of {} bytes and {} log blocks promised",
            position.claimed_bytes,
            position.promised
        );
        position.claimed_bytes -= claim.bytes;
        position.promised -= claim.blocks;
        // Redo that has its log blocks already needs no promise any more.
        if appended > 0 && end_lsn > self.reserved() {
            let blocks = appended.div_ceil(payload) + 1;
            position.promised += blocks;
            position.appended.push_back((end_lsn, blocks));
        }
        drop(position);
        self.moved();
    }

    /// Copies a finished run of records into the buffer; `None` when there is no room.
    /// Until [`Redo::copied`] the range is not flushed.
    pub(crate) fn append(&self, thread: usize, records: &[u8]) -> Option<Appended> {
        debug_assert_eq!(records.len() % 8, 0);
        self.ring.append(thread, records)
    }

    /// What was appended may be flushed. Where it ends a commit, its end is told: any thread may write
    /// it from here on, so that must be known before.
    pub(crate) fn copied(&self, appended: Appended, commits: bool) {
        if commits && self.sync_commits {
            self.position().own_writes.insert(appended.range.1);
        }
        self.ring.publish(appended);
    }

    /// Everything below is completely copied.
    pub(crate) fn complete(&self) -> u64 {
        self.ring.complete()
    }

    /// Reserves the place of the next flush; `most_bytes` of log blocks at most; `checkpoint` is the durable checkpoint
    /// position.
    pub(crate) fn reserve(&self, most_bytes: usize, checkpoint: u64) -> Step {
        let mut position = self.position();
        let begin = self.reserved();
        // In this order: of what is complete every commit is known.
        let end = self.complete().min(position.own_write_end(begin));
        assert!(
            self.durable() <= begin && end <= self.tail(),
            "R1: durable <= reserved and complete <= tail; {} {begin} {end} {}",
            self.durable(),
            self.tail()
        );
        if end <= begin {
            return Step::Nothing;
        }
        if position.switching || position.flights.len() >= self.max_flights {
            return Step::Busy;
        }
        if !position.opened || position.next_block >= self.file_blocks {
            // The next file's header says that everything before it is durable.
            if !position.flights.is_empty() {
                return Step::Busy;
            }
            return self.next_file(&mut position, begin, checkpoint);
        }
        let payload = (self.block_bytes - LOG_HEADER_BYTES) as u64;
        let most_blocks = ((most_bytes / self.block_bytes) as u64).min(self.file_blocks - position.next_block);
        let end = end.min(begin + most_blocks * payload);
        let blocks = (end - begin).div_ceil(payload);
        let unproven: u64 = position.flights.iter().map(|flight| flight.blocks).sum();
        let flush = Flush {
            file: position.file,
            sequence: position.sequence,
            redo: self.ring.take(end),
            unproven: u16::try_from(unproven).expect("so few writes hold fewer blocks"),
            offset: position.next_block * self.block_bytes as u64,
            bytes: blocks as usize * self.block_bytes,
            blocks,
            payload: end - begin,
            wastage: blocks * payload - (end - begin),
        };
        position.next_block += blocks;
        assert!(
            position.next_block <= self.file_blocks && flush.bytes <= most_bytes,
            "R4: a flush ends within its file and its buffer; log block {} of {}, {} bytes of {most_bytes}",
            position.next_block,
            self.file_blocks,
            flush.bytes
        );
        position.fulfil(end);
        let file = position.file;
        position.end_lsn[file] = end;
        position.flights.push_back(Flight { end_lsn: end, blocks, done: None });
        Step::Write(flush)
    }

    /// Makes the log blocks of a flush. No lock is held: its redo stays in the buffer until it is durable.
    pub(crate) fn fill(&self, flush: &Flush, buffer: &mut [u8]) {
        let payload = (self.block_bytes - LOG_HEADER_BYTES) as u64;
        let seed = redo_format::block_seed(self.key, flush.sequence);
        let (begin, end) = flush.redo.range();
        let blocks = buffer[..flush.bytes].chunks_exact_mut(self.block_bytes);
        for (i, block) in blocks.enumerate() {
            let lsn = begin + i as u64 * payload;
            let what = LogBlock {
                lsn,
                payload: (end.min(lsn + payload) - lsn) as u16,
                first: i == 0,
                unproven: if i == 0 { flush.unproven } else { 0 },
            };
            let (used, rest) = block[LOG_HEADER_BYTES..].split_at_mut(usize::from(what.payload));
            self.ring.read(&flush.redo, lsn, used);
            rest.fill(0);
            redo_format::seal_block(block, what, seed);
        }
    }

    fn next_file(&self, position: &mut Position, first_lsn: u64, checkpoint: u64) -> Step {
        let sequence = position.sequence + 1;
        let file = (sequence % position.end_lsn.len() as u64) as usize;
        let protects = position.end_lsn[file];
        if protects > checkpoint {
            self.stalled.store(protects, Ordering::Release);
            return Step::Stalled(protects);
        }
        self.stalled.store(0, Ordering::Release);
        position.switching = true;
        self.switching.store(true, Ordering::Release);
        Step::Switch { file, sequence, first_lsn }
    }

    /// The next file's header is on disk.
    pub(crate) fn switched(&self, file: usize, sequence: u64, first_lsn: u64) {
        let mut position = self.position();
        assert!(
            position.switching && position.flights.is_empty() && sequence == position.sequence + 1,
            "R5: one switch at a time, to the next sequence, with nothing under way; {sequence} after {}, {} writes under way",
            position.sequence,
            position.flights.len()
        );
        assert!(
            first_lsn == self.durable() && first_lsn == self.reserved(),
            "R6: a log file begins where everything is durable; it begins at LSN {first_lsn}, durable is {}, reserved {}",
            self.durable(),
            self.reserved()
        );
        position.file = file;
        position.sequence = sequence;
        position.next_block = 1;
        position.opened = true;
        position.switching = false;
        position.end_lsn[file] = first_lsn;
        drop(position);
        self.switching.store(false, Ordering::Release);
    }

    /// Lifts a stall once the checkpoint is far enough; returns whether there was one to lift.
    pub(crate) fn unstall(&self, checkpoint: u64) -> bool {
        let until = self.stalled.load(Ordering::Acquire);
        self.moved();
        until != 0 && checkpoint >= until && self.stalled.swap(0, Ordering::AcqRel) != 0
    }

    /// The flush is on disk. It and what follows it are acknowledged once everything before is on disk too.
    pub(crate) fn finish(&self, flush: Flush) {
        let mut position = self.position();
        let flights = &mut position.flights;
        if let Some(flight) = flights.iter_mut().find(|flight| flight.end_lsn == flush.redo.range().1) {
            flight.done = Some(flush.redo);
        }
        while let Some(redo) = flights.front_mut().and_then(|first| first.done.take()) {
            flights.pop_front();
            // R1: durable only rises, from the oldest flight to the next.
            self.ring.release(redo);
        }
        drop(position);
        self.moved();
    }

    /// The header block of a log file.
    pub(crate) fn file_header(&self, sequence: u64, first_lsn: u64) -> Vec<u8> {
        let header = FileHeader { sequence, first_lsn };
        redo_format::file_header(self.key, header, self.block_bytes)
    }
}

/// What a log needs to know at open.
pub(crate) struct RedoConfig {
    pub(crate) buffer_bytes: usize,
    pub(crate) huge_pages: bool,
    pub(crate) block_bytes: usize,
    pub(crate) files: usize,
    pub(crate) file_bytes: u64,
    pub(crate) start_lsn: u64,
    pub(crate) sequence: u64,
    pub(crate) data_set: u64,
    pub(crate) threads: usize,
    /// Log writes under way at once, at most; 1 to [`MAX_FLIGHTS`].
    pub(crate) max_flights: usize,
    /// Every commit has a write of its own.
    pub(crate) sync_commits: bool,
}

#[cfg(test)]
mod tests;
