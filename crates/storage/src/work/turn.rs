//! One turn of a clone: prepares, submits, waits for and reaps requests.

use super::worker::{FREE, Kind, More, NAP_NS, Slot, Worker};
use crate::pattern::{Io, Next};
use crate::readings::Way;
use assay_block::BlockError;
use assay_measure::clock::Ns;
use std::time::Duration;

impl Worker<'_> {
    /// The next I/O of the pattern; `None` at the end of the amount.
    #[inline]
    fn draw(&mut self) -> Option<Io> {
        if let Some(io) = self.held.take() {
            return Some(io);
        }
        let next = if self.mixed_rate { self.draw_by_rate() } else { self.pattern.next() };
        match next {
            Next::Io(io) => Some(io),
            Next::Done => self.draw_again(),
        }
    }

    /// In a mixed job rates take precedence over the mix, as in fio.
    fn draw_by_rate(&mut self) -> Next {
        match self.pace.wanted(self.now) {
            Some(way) => self.pattern.next_of(way),
            None => self.pattern.next(),
        }
    }

    #[cold]
    fn draw_again(&mut self) -> Option<Io> {
        let pace = &self.options.pace;
        let searched = self.search.is_some() && !pace.latency.adapts;
        if !(searched || pace.time_based && pace.runtime_ns.is_some()) {
            return None;
        }
        self.pattern.rewind();
        match self.pattern.next() {
            Next::Io(io) => Some(io),
            Next::Done => None,
        }
    }

    /// Prepares and submits until the depth is reached or nothing more can be issued now.
    pub(super) fn fill(&mut self) -> Result<More, BlockError> {
        loop {
            let room = (self.free.len() as u32).min(self.policy.submit);
            let more = self.prepare(room);
            let full = self.free.is_empty() || more != More::Enough;
            if !self.queued.is_empty() && (self.own_submit || !full) && !self.submit()? {
                return Ok(More::Enough);
            }
            if full {
                return Ok(more);
            }
        }
    }

    /// Prepares up to `room` requests.
    #[inline]
    fn prepare(&mut self, room: u32) -> More {
        for _ in 0..room {
            if self.special {
                if let Some(file) = self.sync_due.take() {
                    self.queue_sync(file);
                    continue;
                }
                if self.must_think() {
                    return More::AfterThinking;
                }
                if self.content.read_back_due(false) {
                    return More::AfterReadingBack;
                }
            }
            let Some(io) = self.draw() else {
                return More::Never;
            };
            if self.special
                && let Some(due_ns) = self.too_early(&io)
            {
                self.held = Some(io);
                return More::At(due_ns);
            }
            if self.special && io.way == Way::Trim {
                if !self.queued.is_empty() {
                    // Submit the earlier requests first.
                    self.held = Some(io);
                    return More::Enough;
                }
                self.trim(&io);
                return More::Trimmed;
            }
            self.queue(&io);
        }
        More::Enough
    }

    fn must_think(&mut self) -> bool {
        let pace = &self.options.pace;
        pace.think_ns > 0 && self.since_thinking >= pace.think_blocks.max(1)
    }

    /// When the I/O is due, if that is in the future.
    fn too_early(&mut self, io: &Io) -> Option<Ns> {
        let due_ns = self.pace.due(io.way)?;
        if due_ns <= self.now {
            return None;
        }
        self.now = self.clock.now_ns();
        (due_ns > self.now).then_some(due_ns)
    }

    #[inline]
    fn queue(&mut self, io: &Io) {
        let lane = self.free.pop().expect("there was room");
        let mut due_ns = 0;
        if self.special {
            due_ns = self.pace.due(io.way).unwrap_or(0);
            self.pace.queued(io.way, io.len);
            self.since_thinking += 1;
        }
        match io.way {
            Way::Write => {
                self.make_content(lane, io);
                self.lanes.write(lane, io.file, io.offset, io.len);
                self.count_write(io.file);
            }
            _ => {
                self.lanes.read(lane, io.file, io.offset, io.len);
                self.content.before_read(lane);
            }
        }
        self.moved += u64::from(io.len);
        self.enqueue(lane, io, due_ns);
    }

    #[inline]
    fn make_content(&mut self, lane: u32, io: &Io) {
        let buffer = self.lanes.buffer_mut(lane, io.len as usize);
        self.content.before_write(lane, buffer, io);
    }

    #[inline]
    pub(super) fn enqueue(&mut self, lane: u32, io: &Io, due_ns: Ns) {
        if self.queued.is_empty() && self.stamps.any() {
            // The first request of a batch is prepared: this timestamp applies to all of it.
            self.now = self.clock.now_ns();
        }
        self.slots[lane as usize] = Slot {
            start_ns: self.now,
            issue_ns: self.now,
            due_ns,
            offset: io.offset,
            len: io.len,
            file: io.file,
            kind: Kind::Io(io.way),
            counted: self.measuring,
        };
        self.queued.push(lane);
    }

    /// After every n-th write a sync is due.
    #[inline]
    fn count_write(&mut self, file: u16) {
        let pace = &self.options.pace;
        self.writes += 1;
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(u64::from(every));
        if self.special && (due(pace.fsync_every) || due(pace.fdatasync_every)) {
            self.sync_due = Some(file);
        }
    }

    pub(super) fn queue_sync(&mut self, file: u16) {
        let lane = self.free.pop().expect("there was room");
        let data_only = self.options.pace.fdatasync_every > 0;
        self.lanes.sync(lane, file, data_only);
        self.now = self.clock.now_ns();
        self.slots[lane as usize] = Slot { start_ns: self.now, file, counted: self.measuring, ..FREE };
        self.queued.push(lane);
    }

    /// Submits what is queued; returns whether the kernel took all of it.
    #[inline]
    pub(super) fn submit(&mut self) -> Result<bool, BlockError> {
        let taken = self.lanes.submit()? as usize;
        self.count_submission(taken);
        if self.stamps.slat {
            self.now = self.clock.now_ns();
            for &lane in &self.queued[..taken] {
                self.slots[lane as usize].issue_ns = self.now;
            }
        }
        let all = taken == self.queued.len();
        if all {
            self.queued.clear();
        } else {
            self.queued.drain(..taken);
        }
        Ok(all)
    }

    /// Counts the first `taken` queued requests as submitted in one call. Syncs are not I/Os, and the rest of a short
    /// I/O was counted with its start.
    #[inline]
    fn count_submission(&mut self, taken: usize) {
        if !self.measuring {
            return;
        }
        let mut ios = taken as u32;
        if self.special {
            let is_io = |&&lane: &&u32| {
                let slot = &self.slots[lane as usize];
                let begins = self.begun[lane as usize].moved == 0;
                slot.counted && begins && slot.kind != Kind::Sync
            };
            ios = self.queued[..taken].iter().filter(is_io).count() as u32;
        }
        if ios > 0 {
            self.tally.submitted(self.now, ios);
        }
    }

    /// Waits for completions according to the policy and counts them.
    pub(super) fn collect(&mut self, more: More) -> Result<(), BlockError> {
        loop {
            if self.lanes.in_flight() + self.lanes.queued() == 0 {
                self.rest(more);
                return Ok(());
            }
            let (at_least, timeout) = match more {
                More::Enough if self.policy.adaptive => (self.bursts.wanted(self.policy.depth), None),
                More::Enough => (self.policy.complete_min, None),
                More::At(due_ns) => {
                    let due_ns = due_ns.min(self.next_event_ns);
                    (1, Some(Duration::from_nanos(due_ns.saturating_sub(self.now))))
                }
                More::Never | More::AfterThinking | More::AfterReadingBack | More::Trimmed => (1, None),
            };
            self.wait(at_least, timeout)?;
            self.done.clear();
            let reaped = self.lanes.reap(&mut self.done, self.policy.complete_max);
            self.bursts.came(reaped);
            self.settle();
            let above = more == More::Enough && self.lanes.in_flight() > self.policy.low;
            if !above || self.done.is_empty() {
                return Ok(());
            }
        }
    }

    #[inline]
    fn wait(&mut self, at_least: u32, timeout: Option<Duration>) -> Result<(), BlockError> {
        if self.queued.is_empty() {
            return self.lanes.wait(at_least, timeout);
        }
        // Without slat one call submits and waits, and the requests count from before it.
        let taken = self.lanes.submit_and_wait(at_least, timeout)? as usize;
        self.count_submission(taken);
        self.queued.drain(..taken);
        Ok(())
    }

    /// With nothing in flight: sleeps until the next I/O is due, up to the nap time.
    fn rest(&mut self, more: More) {
        let More::At(due_ns) = more else { return };
        self.now = self.clock.now_ns();
        self.clock.pass(self.now, due_ns.min(self.next_event_ns).min(self.now + NAP_NS));
        self.now = self.clock.now_ns();
        if self.now >= self.next_event_ns {
            self.event();
        }
    }

    pub(super) fn think(&mut self) {
        let pace = &self.options.pace;
        let from = self.clock.now_ns();
        let until = from + pace.think_ns;
        let spin_until = from + pace.think_spin_ns.min(pace.think_ns);
        self.since_thinking = 0;
        loop {
            self.now = self.clock.now_ns();
            if self.now >= self.next_event_ns {
                self.event();
            }
            self.look_around();
            if self.now >= until || self.ending {
                break;
            }
            if self.now < spin_until {
                std::hint::spin_loop();
                continue;
            }
            self.clock.pass(self.now, until.min(self.next_event_ns).min(self.now + NAP_NS));
        }
        if pace.rate_ignores_think {
            self.pace.shift(self.now - from);
        }
    }

    /// Waits until nothing is in flight.
    pub(super) fn drain(&mut self) -> Result<(), BlockError> {
        while self.lanes.in_flight() + self.lanes.queued() > 0 {
            self.turn_over()?;
        }
        Ok(())
    }

    /// Submits what is queued, waits for one completion and takes all that are ready.
    pub(super) fn turn_over(&mut self) -> Result<(), BlockError> {
        if !self.queued.is_empty() {
            self.submit()?;
        }
        self.wait(1, None)?;
        self.done.clear();
        self.lanes.reap(&mut self.done, u32::MAX);
        self.settle();
        Ok(())
    }
}
