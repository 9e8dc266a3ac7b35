//! Handles reaped requests. Counts them in groups of equal ones, and examines single ones only if an option requires it
//! or a request failed.

use super::logs::Ended;
use super::tally::Run;
use super::worker::{Begun, Failure, Kind, Slot, Worker};
use crate::readings::Way;
use assay_block::{BlockError, LaneDone};
use std::io;
use std::sync::atomic::Ordering;

/// `EIO`: the error for a transfer of no bytes.
const EIO: i32 = 5;
/// `EINVAL`
const EINVAL: i32 = 22;
/// `EFBIG`
const EFBIG: i32 = 27;
/// `EOPNOTSUPP`
const EOPNOTSUPP: i32 = 95;
/// `ETIMEDOUT`: the error for an I/O beyond `max_latency`, or beyond `latency_target` at depth 1, as in fio.
pub(super) const ETIMEDOUT: i32 = 110;
/// `ENOSPC`
const ENOSPC: i32 = 28;

impl Worker<'_> {
    /// Counts the reaped requests, all of which completed now.
    #[inline]
    pub(super) fn settle(&mut self) {
        if self.done.is_empty() {
            if self.stamps.any() {
                self.now = self.clock.now_ns();
                self.check_events();
            }
            return;
        }
        if self.stamps.any() {
            self.now = self.clock.now_ns();
            self.check_events();
        }
        let done = std::mem::take(&mut self.done);
        let mut run = NOTHING;
        let (mut ios, mut counted) = (0, 0);
        for done in &done {
            self.free.push(done.lane);
            let slot = self.slots[done.lane as usize];
            let Kind::Io(way) = slot.kind else {
                self.synced(*done);
                continue;
            };
            ios += 1;
            counted += u32::from(slot.counted);
            if done.result != slot.len as i32 || self.detailed || !slot.counted {
                self.tally_run(&mut run);
                if !self.one(&slot, *done, way) {
                    ios -= 1;
                    counted -= u32::from(slot.counted);
                }
                continue;
            }
            if run.ios == 0 || run.start_ns != slot.start_ns || run.issue_ns != slot.issue_ns || run.way != way {
                let next = Run { way, start_ns: slot.start_ns, issue_ns: slot.issue_ns, ios: 0, bytes: 0 };
                self.tally_run(&mut run);
                run = next;
            }
            run.ios += 1;
            run.bytes += u64::from(slot.len);
        }
        self.tally_run(&mut run);
        if self.measuring && ios > 0 {
            self.tally.reaped(self.now, ios, counted);
            self.tally.publish(self.card);
        }
        self.card.moved.store(self.queued_bytes(), Ordering::Relaxed);
        self.done = done;
    }

    #[inline]
    pub(super) fn check_events(&mut self) {
        if self.now >= self.next_event_ns {
            self.event();
        }
    }

    #[inline]
    fn tally_run(&mut self, run: &mut Run) {
        if run.ios > 0 {
            self.tally.ended(run, self.now);
            run.ios = 0;
        }
    }

    /// Handles one completion that differs from the others or needs a separate look; returns whether its I/O has
    /// completed.
    fn one(&mut self, slot: &Slot, done: LaneDone, way: Way) -> bool {
        let mut slot = *slot;
        if done.result != slot.len as i32 {
            let begun = std::mem::take(&mut self.begun[done.lane as usize]);
            let Some(moved) = u32::try_from(done.result).ok().filter(|&moved| moved > 0) else {
                self.failed(&slot, begun.moved, done, way);
                return true;
            };
            if begun.moved > 0 {
                slot.issue_ns = begun.issue_ns;
            }
            if begun.moved + moved < slot.len {
                self.ask_for_rest(&slot, done.lane, begun.moved + moved, way);
                return false;
            }
        }
        self.whole(&slot, done.lane, way);
        true
    }

    /// The kernel completed only the first `moved` bytes of an I/O. Requests the rest; until that completes, the I/O
    /// stays in flight with its original times.
    #[cold]
    fn ask_for_rest(&mut self, slot: &Slot, lane: u32, moved: u32, way: Way) {
        let freed = self.free.pop();
        debug_assert_eq!(freed, Some(lane), "the lane that just ended is the last free one");
        if slot.counted {
            self.tally.short(way);
        }
        self.begun[lane as usize] = Begun { moved, issue_ns: slot.issue_ns };
        // From here on submissions are counted one by one: this one is not a new I/O.
        self.special = true;
        let (offset, len) = (slot.offset + u64::from(moved), slot.len - moved);
        match way {
            Way::Write => self.lanes.write_rest(lane, slot.file, offset, len, moved),
            _ => self.lanes.read_rest(lane, slot.file, offset, len, moved),
        }
        self.queued.push(lane);
    }

    /// Completes an I/O that moved all its bytes.
    pub(super) fn whole(&mut self, slot: &Slot, lane: u32, way: Way) {
        if slot.counted {
            let mut run =
                Run { way, start_ns: slot.start_ns, issue_ns: slot.issue_ns, ios: 1, bytes: u64::from(slot.len) };
            self.tally_run(&mut run);
            if let Some(logs) = &mut self.logs {
                let ended = Ended {
                    way,
                    start_ns: slot.start_ns,
                    issue_ns: slot.issue_ns,
                    now: self.now,
                    bytes: slot.len,
                    offset: slot.offset,
                };
                logs.ended(&ended, self.synchronous);
            }
            if slot.due_ns > 0 {
                self.tally.responded(way, slot.due_ns, self.now);
            }
        }
        self.check_latency(slot);
        self.check_content(slot, lane, slot.len as i32, way);
    }

    fn check_latency(&mut self, slot: &Slot) {
        let lat_ns = self.now.saturating_sub(slot.start_ns);
        if let Some(search) = &mut self.search {
            search.ended(lat_ns);
        }
        let Some(limit_ns) = self.options.pace.max_latency_ns else {
            return;
        };
        if lat_ns > limit_ns {
            self.fail(
                ETIMEDOUT,
                format!("an I/O took {} us, longer than max_latency={} us", lat_ns / 1000, limit_ns / 1000),
            );
        }
    }

    fn synced(&mut self, done: LaneDone) {
        let slot = self.slots[done.lane as usize];
        if done.result < 0 {
            self.fail_at(&slot, -done.result, "synchronise");
        } else if slot.counted {
            self.tally.synced(slot.start_ns, self.now);
        }
    }

    /// Completes an I/O that cannot move more than its first `moved` bytes.
    #[cold]
    pub(super) fn failed(&mut self, slot: &Slot, moved: u32, done: LaneDone, way: Way) {
        let LaneDone { lane, result } = done;
        let pass = self.options.pace.pass_errors;
        let passed = match way {
            Way::Read => pass.read,
            Way::Write | Way::Trim => pass.write,
        };
        if passed {
            self.check_content(slot, lane, 0, way);
            self.tally.errors_passed += 1;
            return;
        }
        let errno = if result == 0 { EIO } else { -result };
        let rest = Slot { offset: slot.offset + u64::from(moved), len: slot.len - moved, ..*slot };
        self.fail_at(&rest, errno, way.name());
    }

    /// Ends the clone with an operating system error at an offset of a file.
    fn fail_at(&mut self, slot: &Slot, errno: i32, what: &str) {
        let path = match self.files.get(usize::from(slot.file)) {
            Some(file) => file.path().display().to_string(),
            None => "(no file)".to_owned(),
        };
        let mut text =
            format!("cannot {what} {path}, offset {}, {} bytes: {}", slot.offset, slot.len, errno_text(errno));
        if let Some(why) = self.explain(errno, what) {
            text.push_str("; ");
            text.push_str(&why);
        }
        self.fail(errno, text);
    }

    fn explain(&self, errno: i32, what: &str) -> Option<String> {
        let why = match errno {
            EOPNOTSUPP if what == "trim" => {
                "the device cannot discard (its queue/discard_max_bytes in /sys/class/block is 0)"
            }
            EINVAL if what == "trim" => "trims need offsets and sizes in whole blocks of the device: try a larger bs=",
            EINVAL if self.options.files.direct => {
                "direct=1 needs offsets and sizes in whole blocks of the device: try a larger bs= or direct=0"
            }
            EIO if what == "read" => {
                "unless the device had an error, the file ends before this offset: another process truncated it \
                 during the run"
            }
            EFBIG => "the process's file size limit (ulimit -f) is too low",
            ENOSPC => "the device or file system is full",
            _ => return None,
        };
        Some(why.to_owned())
    }

    pub(super) fn fail_block(&mut self, error: &BlockError) {
        let errno = match error {
            BlockError::Io { source, .. } | BlockError::Ring { source, .. } => source.raw_os_error().unwrap_or(EIO),
            _ => EIO,
        };
        self.fail(errno, error.to_string());
    }

    /// Ends the clone with an error; only the first one is reported.
    pub(super) fn fail(&mut self, errno: i32, text: String) {
        self.ending = true;
        self.card.failed.store(true, Ordering::Release);
        if self.failure.is_none() {
            self.failure = Some(Failure { errno, text });
        }
    }
}

const NOTHING: Run = Run { way: Way::Read, start_ns: 0, issue_ns: 0, ios: 0, bytes: 0 };

/// The operating system's text for an error number.
pub(super) fn errno_text(errno: i32) -> String {
    let text = io::Error::from_raw_os_error(errno).to_string();
    match text.split_once(" (os error") {
        Some((words, _)) => words.to_owned(),
        None => text,
    }
}
