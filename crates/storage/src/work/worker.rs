//! The worker of one clone: its state, its turns, its events.
//!
//! A turn prepares as many requests as there is room for, submits them in one call, waits, reaps and counts. It reads
//! the clock once per batch: after preparing the first request, after the submitting call, and once for everything that
//! one call reaped. It neither allocates nor locks.

use super::board::{Board, Card, Orders};
use super::logs::{Batch, Logs};
use super::pace::{Minimum, Pace};
use super::policy::{Policy, is_synchronous};
use super::read_back::{ReadBack, reads_back, verifies};
use super::search::Search;
use super::tally::{Stamps, Tally};
use crate::files::Opened;
use crate::pattern::{Io, Pattern};
use crate::readings::{CloneReading, DIRECTIONS, Way};
use crate::spec::{IoEngine, JobOptions, Region};
use crate::verify::Content;
use assay_block::{BlockError, Bursts, DirectFile, LaneDone, Lanes, ThreadUsage};
use assay_measure::clock::{Clock, Ns};
use assay_run::stop::Stop;
use assay_run::thread_clock::{self, ThreadTimes};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;

/// Maximum sleep of a clone before it checks for orders.
pub(super) const NAP_NS: Ns = 20_000_000;
/// Turns between clock readings if nothing else needs one.
const TURNS_PER_LOOK: u32 = 16;
/// If that many turns took longer than this, the clock is read every turn.
const LOOK_WITHIN_NS: Ns = 500_000;

/// A clone that is ready to run, with everything decided.
#[derive(Clone)]
pub(super) struct CloneTask<'a> {
    /// Index among the wave's clones.
    pub(super) index: usize,
    /// Index of the job among all jobs.
    pub(super) job: usize,
    /// From 0.
    pub(super) clone: u32,
    /// Index of its report group on the wave's board.
    pub(super) group: usize,
    pub(super) name: &'a str,
    pub(super) options: &'a JobOptions,
    pub(super) opened: &'a Opened,
    /// Index among all clones of all jobs: determines its random streams.
    pub(super) number: u32,
    pub(super) regions: &'a [Region],
    /// Bytes of one pass, if less than all of the regions.
    pub(super) amount_bytes: Option<u64>,
    pub(super) seed: u64,
    /// Number that is unique to this run.
    pub(super) run: u64,
    /// Indexes of the wave's clones that must end before it starts (`wait_for`).
    pub(super) after: Vec<usize>,
    /// Whether clones that run concurrently use the same files.
    pub(super) shared: bool,
    /// Receives the rows of logs.
    pub(super) logs: Sender<Batch>,
}

/// The kind of a request in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Io(Way),
    Sync,
}

/// The request of one lane.
#[derive(Clone, Copy, Debug)]
pub(super) struct Slot {
    pub(super) start_ns: Ns,
    pub(super) issue_ns: Ns,
    /// 0 without a rate.
    pub(super) due_ns: Ns,
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) file: u16,
    pub(super) kind: Kind,
    /// Whether it was prepared while measuring.
    pub(super) counted: bool,
}

pub(super) const FREE: Slot =
    Slot { start_ns: 0, issue_ns: 0, due_ns: 0, offset: 0, len: 0, file: 0, kind: Kind::Sync, counted: false };

/// What a lane's I/O has moved after a short first completion. Separate from the slot, which every I/O accesses.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Begun {
    /// 0 if nothing yet.
    pub(super) moved: u32,
    /// When the I/O was first submitted to the kernel.
    pub(super) issue_ns: Ns,
}

/// Whether more can be issued now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum More {
    /// The room was used up.
    Enough,
    /// Not before this time.
    At(Ns),
    /// Not until everything in flight has completed and the think time is over.
    AfterThinking,
    /// Not until everything in flight has completed and was read back.
    AfterReadingBack,
    /// A trim was done, so there is nothing to wait for.
    Trimmed,
    /// Never: the work is complete.
    Never,
}

/// Why a clone ended early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Failure {
    pub(super) errno: i32,
    pub(super) text: String,
}

/// A clone at work.
pub(super) struct Worker<'a> {
    pub(super) task: &'a CloneTask<'a>,
    pub(super) options: &'a JobOptions,
    pub(super) board: &'a Board,
    pub(super) card: &'a Card,
    pub(super) orders: &'a Orders,
    pub(super) stop: &'a Stop,
    pub(super) clock: Clock,
    pub(super) lanes: Lanes,
    pub(super) files: Vec<Arc<DirectFile>>,
    pub(super) pattern: Pattern,
    pub(super) content: Content,
    pub(super) read_back: ReadBack,
    pub(super) logs: Option<Logs>,
    pub(super) policy: Policy,
    pub(super) bursts: Bursts,
    pub(super) pace: Pace,
    pub(super) minimum: Option<Minimum>,
    pub(super) tally: Tally,
    pub(super) stamps: Stamps,
    pub(super) synchronous: bool,
    /// Whether slat is taken, so that submitting needs a call of its own.
    pub(super) own_submit: bool,
    pub(super) slots: Box<[Slot]>,
    /// One per lane.
    pub(super) begun: Box<[Begun]>,
    pub(super) free: Vec<u32>,
    /// Lanes beyond the depth that is being tried.
    pub(super) parked: Vec<u32>,
    pub(super) search: Option<Search>,
    pub(super) queued: Vec<u32>,
    pub(super) done: Vec<LaneDone>,
    /// The last clock reading.
    pub(super) now: Ns,
    pub(super) next_event_ns: Ns,
    pub(super) ramp_ends_ns: Ns,
    pub(super) deadline_ns: Ns,
    pub(super) turns: u32,
    pub(super) look_each_turn: bool,
    pub(super) measuring: bool,
    pub(super) ending: bool,
    pub(super) news: u32,
    /// Drawn, but not due yet.
    pub(super) held: Option<Io>,
    /// Whether rates, syncs or think times must be checked before each I/O.
    pub(super) special: bool,
    /// Whether rates decide the direction of the next I/O.
    pub(super) mixed_rate: bool,
    /// Whether each I/O is examined separately when it completes.
    pub(super) detailed: bool,
    pub(super) sync_due: Option<u16>,
    pub(super) writes: u64,
    pub(super) since_thinking: u32,
    pub(super) moved: u64,
    pub(super) failure: Option<Failure>,
    pub(super) usage_before: ThreadUsage,
    pub(super) times_before: ThreadTimes,
    pub(super) entries_before: u64,
}

/// The latencies to take.
fn stamps_of(options: &JobOptions) -> Stamps {
    let measure = &options.measure;
    Stamps { slat: !measure.no_slat && !is_synchronous(options), clat: !measure.no_clat, lat: !measure.no_lat }
}

/// Whether syncs, think times, verification or trims must be checked before each I/O.
fn is_special(options: &JobOptions) -> bool {
    let pace = &options.pace;
    let syncs = pace.fsync_every > 0 || pace.fdatasync_every > 0;
    let trims = options.pattern.mode.goes(Way::Trim);
    syncs || trims || pace.think_ns > 0 || verifies(options)
}

/// Whether each I/O must be examined separately when it completes.
fn is_detailed(options: &JobOptions) -> bool {
    let pace = &options.pace;
    pace.max_latency_ns.is_some() || pace.latency.target_ns.is_some() || verifies(options)
}

/// Directions with I/Os, including read-back.
fn used_by(options: &JobOptions) -> [bool; DIRECTIONS] {
    let mut used = Way::ALL.map(|way| options.pattern.mode.goes(way));
    used[Way::Read.index()] |= reads_back(options);
    used
}

impl<'a> Worker<'a> {
    pub(super) fn new(
        task: &'a CloneTask<'a>,
        board: &'a Board,
        stop: &'a Stop,
        lanes: Lanes,
        files: Vec<Arc<DirectFile>>,
        pattern: Pattern,
        content: Content,
    ) -> Self {
        let options = task.options;
        let policy = Policy::of(options);
        let pace = Pace::new(&options.pace, task.seed, task.clone);
        let synchronous = is_synchronous(options);
        let stamps = stamps_of(options);
        let logs = Logs::new(options, task.name, task.number, &task.logs);
        let rated = pace.rated();
        let depth = policy.depth as usize;
        let is_rated = rated.contains(&true);
        Self {
            options,
            card: &board.cards[task.index],
            orders: &board.orders[task.index],
            task,
            board,
            stop,
            clock: Clock::real(),
            lanes,
            files,
            pattern,
            minimum: Minimum::new(&options.pace),
            tally: Tally::new(used_by(options), rated, stamps),
            pace,
            stamps,
            content,
            read_back: ReadBack::new(policy.depth),
            synchronous,
            own_submit: stamps.slat || synchronous,
            slots: vec![FREE; depth].into(),
            begun: vec![Begun::default(); depth].into(),
            free: (0..policy.depth).rev().collect(),
            parked: Vec::with_capacity(depth),
            search: Search::new(&options.pace, policy.depth),
            queued: Vec::with_capacity(depth),
            done: Vec::with_capacity(depth),
            bursts: Bursts::default(),
            policy,
            now: 0,
            next_event_ns: 0,
            ramp_ends_ns: 0,
            deadline_ns: Ns::MAX,
            turns: 0,
            look_each_turn: stamps.any(),
            measuring: false,
            ending: false,
            news: 0,
            held: None,
            special: is_rated || is_special(options),
            mixed_rate: is_rated && options.pattern.mode.is_mixed(),
            detailed: is_rated || logs.is_some() || is_detailed(options),
            logs,
            sync_due: None,
            writes: 0,
            since_thinking: 0,
            moved: 0,
            failure: None,
            usage_before: ThreadUsage::default(),
            times_before: ThreadTimes::default(),
            entries_before: 0,
        }
    }

    /// Does all of the clone's work, including the last sync.
    pub(super) fn work(&mut self) {
        self.begin();
        let ended = self.phases();
        if let Err(error) = ended {
            self.fail_block(&error);
        }
        self.now = self.clock.now_ns();
        if self.measuring {
            self.tally.turn_second(self.now, self.card);
        }
        self.tally.publish(self.card);
        if let Some(logs) = self.logs.take() {
            logs.finish(self.now);
        }
    }

    fn phases(&mut self) -> Result<(), BlockError> {
        if self.content.verify_only() {
            self.note_all();
        } else {
            self.turns()?;
        }
        self.close()?;
        // The end of the pattern ended the turns; only an order, a stop or the time forbids more I/O.
        self.ending = self.failure.is_some()
            || self.stop.requested()
            || self.orders.end.load(Ordering::Relaxed)
            || self.now >= self.deadline_ns;
        if !self.ending && self.content.read_back_due(true) {
            self.read_back()?;
        }
        Ok(())
    }

    fn begin(&mut self) {
        let pace = &self.options.pace;
        self.now = self.clock.now_ns();
        self.card.started_ns.store(self.now, Ordering::Relaxed);
        self.ramp_ends_ns = self.now + pace.ramp_ns;
        self.pace.begin(self.now);
        if pace.ramp_ns > 0 || self.searches_apart() {
            self.card.set_state(b'/');
        }
        if let Some(search) = &self.search {
            self.set_depth(search.depth);
        }
        self.event();
    }

    fn turns(&mut self) -> Result<(), BlockError> {
        loop {
            self.look_around();
            if self.search.as_ref().is_some_and(|search| search.due.is_some()) {
                self.adjust()?;
            }
            if self.ending {
                return Ok(());
            }
            match self.fill()? {
                More::AfterThinking => {
                    self.drain()?;
                    self.think();
                }
                More::AfterReadingBack => {
                    self.drain()?;
                    self.read_back()?;
                }
                More::Trimmed => {}
                more => {
                    self.collect(more)?;
                    self.ending |= more == More::Never;
                }
            }
        }
    }

    /// Checks for orders and, if no timestamps are taken, the time.
    #[inline]
    pub(super) fn look_around(&mut self) {
        let news = self.orders.news.load(Ordering::Acquire);
        if news != self.news {
            self.news = news;
            self.obey();
        }
        self.ending |= self.stop.requested();
        if !self.look_each_turn {
            self.turns += 1;
            if self.turns < TURNS_PER_LOOK {
                return;
            }
            self.turns = 0;
            let now = self.clock.now_ns();
            // Slow turns are rare turns, so checking each of them costs nothing.
            if now - self.now > LOOK_WITHIN_NS {
                self.turns = TURNS_PER_LOOK;
            }
            self.now = now;
            if now >= self.next_event_ns {
                self.event();
            }
        }
    }

    fn obey(&mut self) {
        self.ending |= self.orders.end.load(Ordering::Relaxed);
        let number = self.orders.copy.load(Ordering::Relaxed);
        if number > 0 && self.measuring {
            let now = self.clock.now_ns();
            let reading = self.reading(now);
            self.card.hand_copy(number, reading);
        }
    }

    /// Handles what is due at `self.now`: the end of the ramp, of a second, of a cycle or of the time.
    pub(super) fn event(&mut self) {
        let now = self.now;
        if !self.measuring && now >= self.ramp_ends_ns {
            if let Some(search) = &mut self.search {
                search.begin(now, self.options.pace.runtime_ns);
            }
            if !self.searches_apart() {
                self.begin_measuring();
            }
        }
        let mut next = if now < self.ramp_ends_ns { self.ramp_ends_ns } else { Ns::MAX };
        if self.measuring {
            if now >= self.tally.second_ends_ns() {
                self.tally.turn_second(now, self.card);
            }
            next = next.min(self.tally.second_ends_ns());
            if let Some(minimum) = &mut self.minimum {
                let tally = &self.tally;
                if now >= minimum.due_ns()
                    && let Some(text) = minimum.missed(now, |way| tally.moved(way))
                {
                    self.failure = Some(Failure { errno: 62, text });
                    self.ending = true;
                }
                next = next.min(minimum.due_ns());
            }
            self.ending |= now >= self.deadline_ns;
            next = next.min(self.deadline_ns);
        }
        if let Some(search) = &mut self.search {
            search.look(now);
            next = next.min(search.due_ns());
        }
        self.next_event_ns = next;
    }

    /// Whether a search for a depth is in progress, which is not part of the measurement.
    fn searches_apart(&self) -> bool {
        self.search.as_ref().is_some_and(Search::is_apart)
    }

    pub(super) fn begin_measuring(&mut self) {
        let now = self.now;
        self.measuring = true;
        if let Some(logs) = &mut self.logs {
            logs.begin(now);
        }
        let first = self.board.group_first(self.task.group, now);
        self.tally.begin(now, first);
        if let Some(minimum) = &mut self.minimum {
            minimum.begin(now);
        }
        // A depth found by a search is measured for one window.
        let searched = self.search.is_some() && !self.options.pace.latency.adapts;
        let runtime_ns = self.options.pace.runtime_ns.filter(|&ns| ns > 0);
        if let Some(runtime_ns) = runtime_ns.filter(|_| !searched) {
            self.deadline_ns = now + runtime_ns;
        }
        self.usage_before = ThreadUsage::now();
        self.times_before = thread_clock::read();
        self.entries_before = self.lanes.counters().submits;
        self.card.set_state(self.letter());
        self.card.first_ns.store(now, Ordering::Release);
    }

    /// fio's letter for a running job.
    fn letter(&self) -> u8 {
        use crate::spec::Mode;
        match self.options.pattern.mode {
            Mode::Read => b'R',
            Mode::RandRead => b'r',
            Mode::Write => b'W',
            Mode::RandWrite => b'w',
            Mode::ReadWrite => b'M',
            Mode::RandRw => b'm',
            Mode::Trim => b'D',
            Mode::RandTrim => b'd',
            Mode::TrimWrite => b'W',
            Mode::RandTrimWrite => b'w',
        }
    }

    /// Drains, and syncs at the end if the options request it.
    fn close(&mut self) -> Result<(), BlockError> {
        self.drain()?;
        self.wait_for_deadline();
        if let Some(file) = self.sync_due.take() {
            self.queue_sync(file);
            self.drain()?;
        }
        let files = &self.options.files;
        let at_end = files.end_fsync || files.fsync_on_close;
        if at_end && self.options.pattern.mode.goes(Way::Write) && !self.is_fileless() {
            self.card.set_state(b'F');
            // Requests queued from here on are not I/Os and do not count as in flight.
            self.special = true;
            for file in 0..self.files.len() as u16 {
                let counted = std::mem::replace(&mut self.measuring, false);
                self.queue_sync(file);
                self.measuring = counted;
                self.drain()?;
            }
        }
        Ok(())
    }

    fn is_fileless(&self) -> bool {
        matches!(self.options.engine, IoEngine::Null | IoEngine::Nop)
    }

    /// With a rate, the last I/O may complete long before the time is over: waits for that, unless the job failed.
    fn wait_for_deadline(&mut self) {
        if self.failure.is_some() {
            return;
        }
        while self.held.is_some() && self.deadline_ns != Ns::MAX && self.now < self.deadline_ns {
            if self.stop.requested() || self.orders.end.load(Ordering::Relaxed) {
                return;
            }
            self.clock.pass(self.now, self.deadline_ns.min(self.now + NAP_NS));
            self.now = self.clock.now_ns();
        }
    }

    /// The clone's reading up to `now`.
    pub(super) fn reading(&mut self, now: Ns) -> CloneReading {
        let mut reading = if self.measuring { self.tally.reading(now) } else { CloneReading::default() };
        if self.read_back.spent_ns > 0 {
            // Read-back is a separate phase with its own time.
            let [read, write, _] = &mut reading.ways;
            write.runtime_ns = write.runtime_ns.saturating_sub(self.read_back.spent_ns);
            if !self.options.pattern.mode.goes(Way::Read) {
                read.runtime_ns = self.read_back.spent_ns.min(read.runtime_ns);
            }
        }
        let usage = ThreadUsage::now().since(&self.usage_before);
        if self.measuring {
            reading.user_ns = usage.user_ns;
            reading.system_ns = usage.system_ns;
            reading.run_delay_ns = thread_clock::read().since(&self.times_before).run_delay_ns.unwrap_or(0);
            reading.context_switches = usage.context_switches;
            reading.major_faults = usage.major_faults;
            reading.minor_faults = usage.minor_faults;
            reading.kernel_entries = self.lanes.counters().submits - self.entries_before;
        }
        reading.search = self.search.as_ref().map(Search::reading);
        reading.job = self.task.job;
        reading.clone = self.task.clone;
        reading.pid = rustix::thread::gettid().as_raw_nonzero().get() as u32;
        if let Some(failure) = &self.failure {
            reading.error = failure.errno;
            reading.error_text = Some(failure.text.clone());
        }
        reading
    }

    /// The reading after the last I/O.
    pub(super) fn reading_at_end(&mut self) -> CloneReading {
        let now = self.now;
        self.reading(now)
    }

    /// Bytes queued so far, for the progress line.
    pub(super) fn queued_bytes(&self) -> u64 {
        self.moved
    }

    /// Whether blocks that should have been read back were not.
    pub(super) fn was_cut_off(&self) -> bool {
        self.content.read_back_due(true)
    }
}
