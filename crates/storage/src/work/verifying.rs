//! Writes that are read back, and reads that are checked: when, and how the result is handled. What is to be expected
//! where is `verify::Content`'s knowledge.

use super::worker::{Failure, Slot, Worker};
use crate::pattern::{Io, Next};
use crate::readings::Way;
use crate::verify::{BlockDifference, ExpectedWrite};
use assay_block::BlockError;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// `EILSEQ`: what a block that is not what was written counts as, as in fio.
const EILSEQ: i32 = 84;
/// How often a block of a shared file that is not whole is read again, and after what pause.
const READ_AGAIN: u32 = 10;
const READ_AGAIN_AFTER: Duration = Duration::from_millis(1);

impl Worker<'_> {
    /// Looks at the content of an I/O that ended.
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

    /// Where jobs share a file, one may write a block while another reads it, and a file system may let the reader see
    /// both halves. Such a block is whole a moment later; a damaged one stays damaged.
    fn check_again(
        &self,
        path: &str,
        io: &Io,
        expected: ExpectedWrite,
        first: BlockDifference,
    ) -> Result<(), BlockDifference> {
        // Where damage is known, the rest of it need not be waited for.
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
        // The first is told; the others are looked for as well unless the first is fatal.
        self.failure.get_or_insert(failure);
        self.ending |= self.options.payload.verify_fatal;
    }

    /// `verify_only`: nothing is written; what the pattern would write should be there.
    pub(super) fn note_all(&mut self) {
        while let Next::Io(io) = self.pattern.next() {
            if io.way == Way::Write {
                self.content.note(&io);
            }
        }
    }

    /// Reads back what was written and checks it; everything in flight has ended.
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
