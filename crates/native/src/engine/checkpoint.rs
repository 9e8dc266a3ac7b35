//! How far the incremental checkpoint shall follow the end of the log.
//!
//! The target is the newest of: 90 % of the smallest log file behind the end, the end
//! as it was LOG_CHECKPOINT_TIMEOUT ago, and LOG_CHECKPOINT_INTERVAL log blocks behind the
//! end. Redo below the target should not be needed by recovery any more.

use super::instance::Instance;
use assay_measure::clock::Ns;
use std::collections::VecDeque;

/// The log's end is remembered so many times within LOG_CHECKPOINT_TIMEOUT.
const SAMPLES: u64 = 16;

/// The end of the log over the last LOG_CHECKPOINT_TIMEOUT.
pub(crate) struct Target {
    opened: Ns,
    /// (when, end of the log then), oldest first.
    ends: VecDeque<(Ns, u64)>,
}

impl Target {
    /// Nothing is remembered from before `now`.
    pub(crate) fn new(now: Ns) -> Self {
        Self { opened: now, ends: VecDeque::new() }
    }

    /// The target now.
    pub(crate) fn lsn(&mut self, instance: &Instance) -> u64 {
        let (redo, options) = (&instance.redo, &instance.options);
        let tail = redo.tail();
        let nine_tenths = redo.file_payload_bytes() / 10 * 9;
        let behind = match options.checkpoint_interval_blocks {
            0 => nine_tenths,
            blocks => nine_tenths.min(blocks.saturating_mul(redo.block_payload_bytes())),
        };
        let aged = match options.checkpoint_timeout_ns {
            0 => 0,
            timeout => self.end_before(instance.clock.now_ns(), timeout, tail),
        };
        tail.saturating_sub(behind).max(aged)
    }

    /// Notes the end; returns an end that was passed at most `timeout` ago, 0 if none is that old.
    fn end_before(&mut self, now: Ns, timeout: Ns, tail: u64) -> u64 {
        let last = self.ends.back().map_or(self.opened, |(at, _)| *at);
        if self.ends.is_empty() || now - last >= timeout / SAMPLES {
            self.ends.push_back((now, tail));
        }
        if now - self.opened < timeout {
            return 0;
        }
        while self.ends.front().is_some_and(|(at, _)| now - at > timeout) {
            self.ends.pop_front();
        }
        self.ends.front().map_or(tail, |(_, end)| *end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_timeout_ago_is_found_to_a_sixteenth() {
        let mut target = Target::new(1_000);
        let timeout = 1_600;
        for now in (1_000..20_000).step_by(10) {
            // The end grows by one byte a nanosecond.
            let end = target.end_before(now, timeout, now);
            if now < 1_000 + timeout {
                assert_eq!(end, 0, "at {now}");
                continue;
            }
            let age = now - end;
            assert!(age <= timeout && age + timeout / SAMPLES + 10 >= timeout, "{age}");
        }
        assert!(target.ends.len() <= SAMPLES as usize + 2);
    }

    #[test]
    fn a_long_pause_leaves_no_end_that_is_too_old() {
        let mut target = Target::new(0);
        assert_eq!(target.end_before(0, 100, 10), 0);
        assert_eq!(target.end_before(5_000, 100, 20), 20);
    }
}
