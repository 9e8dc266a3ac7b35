//! Reads back writes and checks reads: when to do so, and how to handle the result. `verify::Content` knows which
//! content to expect.

use super::worker::{Failure, Slot, Worker};
use crate::pattern::{Io, Next};
use crate::readings::Way;
use crate::verify::{BlockDifference, ExpectedWrite};
use assay_block::BlockError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// `EILSEQ`: the error for a block with unexpected content, as in fio.
const EILSEQ: i32 = 84;
/// How often to reread an inconsistent block of a shared file; the pause follows.
const READ_AGAIN: u32 = 10;
const READ_AGAIN_AFTER: Duration = Duration::from_millis(1);

impl Worker<'_> {
    /// Checks the content of a completed I/O.
    pub(super) fn check_content(&mut self, slot: &Slot, lane: u32, moved: i32, way: Way) {
        let whole = moved == slot.len as i32;
        match way {
            Way::Read if whole && (self.read_back.under_way || self.content.checks_reads()) => {
                self.verify(slot, lane);
            }
            Way::Write if !whole => self.content.write_failed(&io_of(slot, way)),
            _ => {}
        }
    }

    fn verify(&mut self, slot: &Slot, lane: u32) {
        let expected =
            if self.read_back.under_way { self.read_back.expected[lane as usize] } else { ExpectedWrite::default() };
        let path = match self.files.get(usize::from(slot.file)) {
            Some(file) => file.path().display().to_string(),
            None => String::new(),
        };
        let buffer = self.lanes.buffer(lane, slot.len as usize);
        let io = io_of(slot, Way::Read);
        let found = self.content.check(buffer, &io, expected, &path);
        match found.or_else(|first| self.check_again(&path, &io, expected, first)) {
            Ok(()) => self.tally.verified_ios += 1,
            Err(mismatch) => self.mismatched(&mismatch),
        }
    }

    /// If jobs share a file, one may write a block while another reads it, and a file system may let the reader see
    /// parts of both versions. Such a block is consistent a moment later; a damaged one stays damaged.
    fn check_again(
        &self,
        path: &str,
        io: &Io,
        expected: ExpectedWrite,
        first: BlockDifference,
    ) -> Result<(), BlockDifference> {
        // Once damage is known, rereading further blocks is not worth the wait.
        let in_doubt = self.content.is_shared() && self.failure.is_none();
        let Some(file) = in_doubt.then(|| File::open(path).ok()).flatten() else {
            return Err(first);
        };
        let mut buffer = vec![0; io.len as usize];
        let is_whole = (0..READ_AGAIN).any(|_| {
            std::thread::sleep(READ_AGAIN_AFTER);
            let read = file.read_exact_at(&mut buffer, io.offset);
            read.is_ok() && self.content.check(&buffer, io, expected, path).is_ok()
        });
        if is_whole { Ok(()) } else { Err(first) }
    }

    fn mismatched(&mut self, mismatch: &BlockDifference) {
        if self.options.pace.pass_errors.verify {
            self.tally.errors_passed += 1;
            return;
        }
        self.card.failed.store(true, Ordering::Release);
        let failure = Failure { errno: EILSEQ, text: mismatch.to_string() };
        // Only the first failure is reported; the check of the others continues unless the first is fatal.
        self.failure.get_or_insert(failure);
        self.ending |= self.options.payload.verify_fatal;
    }

    /// `verify_only`: writes nothing, and expects what the pattern would have written.
    pub(super) fn note_all(&mut self) {
        while let Next::Io(io) = self.pattern.next() {
            if io.way == Way::Write {
                self.content.note(&io);
            }
        }
    }

    /// Reads back and checks what was written; everything in flight has completed.
    pub(super) fn read_back(&mut self) -> Result<(), BlockError> {
        self.read_back.under_way = true;
        let letter = self.card.state.swap(b'V', Ordering::Relaxed);
        let begun = self.clock.now_ns();
        loop {
            self.look_around();
            while !self.free.is_empty() && !self.ending {
                let Some((io, expected)) = self.content.next_read_back() else {
                    break;
                };
                self.queue_read_back(&io, expected);
            }
            if self.lanes.in_flight() + self.lanes.queued() == 0 {
                break;
            }
            self.turn_over()?;
        }
        self.card.set_state(letter);
        self.read_back.under_way = false;
        self.read_back.spent_ns += self.clock.now_ns() - begun;
        Ok(())
    }

    fn queue_read_back(&mut self, io: &Io, expected: ExpectedWrite) {
        let lane = self.free.pop().expect("a lane is free");
        self.lanes.read(lane, io.file, io.offset, io.len);
        self.content.before_read(lane);
        self.read_back.expected[lane as usize] = expected;
        self.enqueue(lane, io, 0);
    }
}

fn io_of(slot: &Slot, way: Way) -> Io {
    Io { way, file: slot.file, offset: slot.offset, len: slot.len }
}
