//! Trims: one system call each, complete when it returns, as in fio with every engine.

use super::worker::{Kind, Slot, Worker};
use crate::pattern::Io;
use crate::readings::Way;
use assay_block::LaneDone;
use std::sync::atomic::Ordering;

impl Worker<'_> {
    /// Trims and counts the I/O; with `trimwrite` the same bytes are written next. Uses no lane: nothing stays in
    /// flight.
    pub(super) fn trim(&mut self, io: &Io) {
        let due_ns = self.pace.due(io.way).unwrap_or(0);
        self.pace.queued(io.way, io.len);
        self.since_thinking += 1;
        if self.options.pattern.mode.trims_and_writes() {
            self.held = Some(Io { way: Way::Write, ..*io });
        }
        if self.stamps.any() {
            self.now = self.clock.now_ns();
        }
        let counted = self.measuring;
        let slot = Slot {
            start_ns: self.now,
            issue_ns: self.now,
            due_ns,
            offset: io.offset,
            len: io.len,
            file: io.file,
            kind: Kind::Io(Way::Trim),
            counted,
        };
        if counted {
            self.tally.submitted(self.now, 1);
        }
        let outcome = self.lanes.discard(io.file, io.offset, u64::from(io.len));
        self.moved += u64::from(io.len);
        if self.stamps.any() {
            self.now = self.clock.now_ns();
            self.check_events();
        }
        match outcome {
            Ok(()) => self.whole(&slot, 0, Way::Trim),
            Err(errno) => {
                let done = LaneDone { lane: 0, result: -errno };
                self.failed(&slot, 0, done, Way::Trim);
            }
        }
        if self.measuring {
            self.tally.reaped(self.now, 1, u32::from(counted));
            self.tally.publish(self.card);
        }
        self.card.moved.store(self.queued_bytes(), Ordering::Relaxed);
    }
}
