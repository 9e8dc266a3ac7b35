//! Applies the results of a clone's search for a depth, between two turns.

use super::search::Step;
use super::settle::ETIMEDOUT;
use super::worker::Worker;
use assay_block::BlockError;

impl Worker<'_> {
    /// Acts on the end of a window: tries another depth, starts the measurement, or ends.
    #[cold]
    pub(super) fn adjust(&mut self) -> Result<(), BlockError> {
        let Some(search) = &mut self.search else {
            return Ok(());
        };
        let Some(verdict) = search.due.take() else {
            return Ok(());
        };
        let before = search.depth;
        let step = search.step(verdict);
        let goal = search.goal;
        match step {
            Step::Try(depth) if depth >= before => {}
            // Requests in flight belong to the previous depth.
            Step::Try(_) | Step::Measure(_) => self.drain()?,
            Step::End => self.ending = true,
            Step::Fail => self.fail(
                ETIMEDOUT,
                format!(
                    "an I/O took longer than latency_target={} us with no other in flight: latency_percentile=100 \
                     allows none, 99 allows one in a hundred",
                    goal.target_ns / 1000
                ),
            ),
        }
        self.now = self.clock.now_ns();
        let now = self.now;
        if let (Some(search), false) = (&mut self.search, step == Step::End) {
            search.begin_window(now);
            let depth = search.depth;
            if matches!(step, Step::Measure(_)) {
                search.measure(now);
                self.begin_measuring();
            }
            self.set_depth(depth);
        }
        self.event();
        Ok(())
    }

    /// Sets how many lanes take part from now on; the lanes that leave are free.
    pub(super) fn set_depth(&mut self, depth: u32) {
        let depth = depth as usize;
        while self.slots.len() - self.parked.len() < depth
            && let Some(lane) = self.parked.pop()
        {
            self.free.push(lane);
        }
        while self.slots.len() - self.parked.len() > depth
            && let Some(lane) = self.free.pop()
        {
            self.parked.push(lane);
        }
    }
}
