//! The loop of one driver thread: many sessions, one engine driver, submit and reap.
//!
//! A turn stamps the time once, answers marks, wakes sessions that are due, submits what is ready and reaps. The plan
//! made all choices that cost time; the loop looks nothing up and allocates nothing. Ready sessions take turns, and the
//! loop sleeps only when none is ready.
//!
//! In a closed loop the stamp that ended an operation starts the session's next one, so that sum(operation time) +
//! think time = session time, exactly. [`slices`] serves a target that performs slices of operations by itself.

mod slices;

use crate::control::{Control, Published};
use crate::engine::{Assignment, Completion, Driver, EngineError, Op, OpError, Outcome, Submit, Tag};
use crate::history::Place;
use crate::plan::Plan;
use crate::trace::{Buffer, Row};
use crate::workload::{Step, Steps, Workload};
use crate::{recorder::Recorder, thread_clock};
use assay_measure::clock::{Clock, Ns};
use assay_measure::prng::{Purpose, Stream};
use assay_measure::schedule::Schedule;
use assay_measure::snapshot::{SessionReading, StatSet};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait of one turn: bounds how late a thread answers a mark or a stop.
const WAIT_MAX_NS: Ns = 10_000_000;
/// Operations that end at once keep the loop from reaping for no longer than this,
/// because reaped sessions wait meanwhile.
const DISPATCH_NS_MAX: Ns = 20_000;
/// How long a mark or the stop waits for the operations of a driver that settles.
const SETTLE_NS_MAX: Ns = 50_000_000;
/// Submissions of one turn, so that a batch cannot starve completions.
const DISPATCH_MAX: usize = 256;

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Wants to submit; in a closed loop its operation has begun.
    Ready,
    /// Pausing until an instant (think time or schedule).
    Sleeping,
    /// Its operation is with the engine.
    InFlight,
    /// Done for good.
    Stopped,
}

/// What a session does after an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    /// Its next operation is due at this instant, or has been since.
    At(Ns),
    /// Nothing more.
    Stop,
}

/// One session as the loop sees it: scalars, but for steps decided ahead.
#[derive(Debug)]
struct Slot {
    source: Box<dyn Steps>,
    /// Steps decided ahead, for slices.
    ahead: VecDeque<Step>,
    /// Steps taken, the present one included.
    taken: u64,
    schedule: Schedule,
    step: Step,
    state: State,
    /// Start of the operation; before it begins, the end of the one before.
    start_ns: Ns,
    intended_ns: Ns,
    /// Whether `start_ns` is the start of an operation (else of a pause).
    begun: bool,
    /// Attempts that failed.
    attempts: u32,
    reading: SessionReading,
}

/// One driver thread's loop.
#[derive(Debug)]
pub(crate) struct Worker<'a> {
    plan: &'a Plan,
    workload: &'a dyn Workload,
    control: &'a Control,
    clock: Clock,
    thread: usize,
    slots: Vec<Slot>,
    ready: VecDeque<Tag>,
    sleeping: BinaryHeap<Reverse<(Ns, Tag)>>,
    completions: Vec<Completion>,
    /// Operations of the slice that is being performed.
    slice: Vec<Op>,
    in_flight: usize,
    /// Sessions that stopped in this turn.
    leaving: Vec<Tag>,
    /// A session has left before.
    any_left: bool,
    /// An operation has failed since the loop last asked the driver whether it can continue.
    any_failed: bool,
    /// This thread does the database's work: its CPU is DB CPU.
    works_here: bool,
    stopped: usize,
    stopping: bool,
    gate_ns: Ns,
    /// The latest stamp of this turn.
    now: Ns,
    /// No stamp was taken in the turn before: read the clock.
    stale: bool,
    /// Starts are real instants, not reused stamps (rate, think time).
    exact_now: bool,
    epoch: u64,
    recorder: Recorder,
    /// Spreads retries of sessions that conflicted.
    back_off: Stream,
    trace: Option<Buffer>,
}

impl<'a> Worker<'a> {
    pub(crate) fn new(
        plan: &'a Plan,
        workload: &'a dyn Workload,
        control: &'a Control,
        assignment: &Assignment,
        works_here: bool,
        trace: Option<Buffer>,
    ) -> Self {
        let slots: Vec<Slot> =
            assignment.sessions.iter().map(|&(session, home)| Slot::new(plan, workload, session, home)).collect();
        let sessions = slots.len();
        Self {
            plan,
            workload,
            back_off: Stream::new(plan.seed, assignment.thread as u64, Purpose::Sample),
            control,
            clock: control.clock.clone(),
            thread: assignment.thread,
            slots,
            ready: VecDeque::with_capacity(sessions),
            sleeping: BinaryHeap::with_capacity(sessions),
            completions: Vec::with_capacity(sessions),
            slice: Vec::new(),
            in_flight: 0,
            stopped: 0,
            leaving: Vec::new(),
            any_left: false,
            stopping: false,
            any_failed: false,
            works_here,
            gate_ns: 0,
            now: 0,
            stale: true,
            exact_now: plan.rate_per_s > 0 || plan.think.is_some(),
            epoch: 0,
            recorder: Recorder::new(workload.kinds(), plan.rate_per_s > 0, plan.think.is_some()),
            trace,
        }
    }

    /// Runs from the gate's instant until every session has stopped.
    ///
    /// # Errors
    /// When the engine's driver cannot go on; the counters stay readable.
    pub(crate) fn run(&mut self, driver: &mut dyn Driver, gate_ns: Ns) -> Result<(), EngineError> {
        self.gate_ns = gate_ns;
        self.now = self.clock.now_ns().max(gate_ns);
        for tag in 0..self.slots.len() as Tag {
            let next = self.advance(tag, self.now);
            self.schedule(tag, next);
        }
        while self.stopped < self.slots.len() {
            self.turn(driver)?;
            if self.control.abandoned() {
                break;
            }
        }
        Ok(())
    }

    fn turn(&mut self, driver: &mut dyn Driver) -> Result<(), EngineError> {
        if self.stale || self.exact_now {
            self.now = self.now.max(self.clock.now_ns());
        }
        if let Some(end_ns) = self.settling(driver) {
            // Nothing is submitted while the time is past the limit.
            return self.reap(driver, false, end_ns);
        }
        self.answer_mark(driver);
        if self.now >= self.control.stop_instant() && !self.stopping {
            self.stop_all(driver);
        }
        if self.control.abandoned() {
            return Ok(());
        }
        self.wake();
        let limit = self.limit();
        let turn_start = self.now;
        let mut full = false;
        for _ in 0..DISPATCH_MAX {
            if self.now >= limit || self.now - turn_start >= DISPATCH_NS_MAX {
                break;
            }
            let Some(tag) = self.ready.pop_front() else {
                break;
            };
            if driver.slice_ops() > 0 {
                self.perform(driver, tag, limit)?;
            } else if !self.submit(driver, tag) {
                self.ready.push_front(tag);
                full = true;
                break;
            }
        }
        self.stale = self.now == turn_start;
        for tag in self.leaving.drain(..) {
            self.any_left = true;
            driver.leave(tag);
        }
        self.reap(driver, full, limit)
    }

    /// The instant at which dispatching must pause: a mark not yet answered, or the stop.
    fn limit(&self) -> Ns {
        let (epoch, mark_at) = self.control.mark();
        let mark_at = if epoch == self.epoch { Ns::MAX } else { mark_at };
        let stop_at = if self.stopping { Ns::MAX } else { self.control.stop_instant() };
        mark_at.min(stop_at)
    }

    /// Until when operations under way are waited for before a mark is answered or the sessions stop, if they are.
    fn settling(&self, driver: &dyn Driver) -> Option<Ns> {
        let limit = self.limit();
        let end_ns = limit.saturating_add(SETTLE_NS_MAX);
        let due = self.in_flight > 0 && (limit..end_ns).contains(&self.now);
        (due && !self.control.abandoned() && driver.settles()).then_some(end_ns)
    }

    fn answer_mark(&mut self, driver: &mut dyn Driver) {
        let (epoch, mark_at) = self.control.mark();
        if epoch == self.epoch || self.now < mark_at {
            return;
        }
        self.epoch = epoch;
        self.count_dropped();
        let published = self.published(driver);
        self.control.publish(self.thread, |slot| slot.mark = Some((epoch, Arc::new(published))));
        self.control.await_answer(Some(epoch));
        self.stale = true;
    }

    /// The stop instant has come: publishes while every session still counts as
    /// active, then stops those between operations. The others stop when theirs end.
    fn stop_all(&mut self, driver: &mut dyn Driver) {
        self.count_dropped();
        let published = self.published(driver);
        self.control.publish(self.thread, |slot| slot.end = Some(Arc::new(published)));
        self.control.await_answer(None);
        self.stopping = true;
        for tag in 0..self.slots.len() {
            let slot = &mut self.slots[tag];
            if !matches!(slot.state, State::Ready | State::Sleeping) {
                continue;
            }
            if !slot.begun && slot.step.think_ns.is_some() {
                // The part of a pause that was taken counts, so that time adds up.
                let pause = self.now.saturating_sub(slot.start_ns);
                slot.reading.think_ns += pause;
                self.recorder.thought(pause);
            }
            slot.state = State::Stopped;
            self.control.board.idle(slot.reading.session);
            self.stopped += 1;
            self.leaving.push(tag as Tag);
        }
        self.ready.clear();
        self.sleeping.clear();
    }

    /// Counts arrivals that have found no room in the shared queue by now.
    fn count_dropped(&mut self) {
        if let Some(queue) = &self.control.queue {
            let until = self.now.min(self.control.stop_instant());
            self.recorder.dropped += queue.dropped(until.saturating_sub(self.gate_ns));
        }
    }

    /// Moves sessions whose pause is over to the ready queue.
    fn wake(&mut self) {
        while let Some(&Reverse((due, tag))) = self.sleeping.peek() {
            if due > self.now {
                break;
            }
            self.sleeping.pop();
            self.slots[tag as usize].state = State::Ready;
            self.ready.push_back(tag);
        }
    }

    /// Hands one session's operation to the engine; false when it has no room.
    fn submit(&mut self, driver: &mut dyn Driver, tag: Tag) -> bool {
        let slot = &mut self.slots[tag as usize];
        if !slot.begun {
            self.recorder.begin(slot, self.now, self.gate_ns);
        }
        let (board, session) = (&self.control.board, slot.reading.session);
        board.set(session, Place::Engine, &slot.step.op);
        match driver.submit(tag, &slot.step.op, slot.start_ns) {
            Submit::Done(outcome) => {
                self.now = self.now.max(outcome.end_ns);
                let next = self.complete(tag, outcome);
                self.schedule(tag, next);
                true
            }
            Submit::Queued => {
                slot.state = State::InFlight;
                self.in_flight += 1;
                true
            }
            Submit::Full => {
                board.set(session, Place::Ready, &slot.step.op);
                false
            }
        }
    }

    fn reap(&mut self, driver: &mut dyn Driver, full: bool, limit: Ns) -> Result<(), EngineError> {
        let more_ready = !self.ready.is_empty() && !full && self.now < self.limit();
        let wait_ns = if more_ready { 0 } else { self.wait_ns(limit) };
        if self.in_flight == 0 {
            if full {
                return Err(EngineError::Unusable(
                    "the engine has no room for an operation although none is in flight".to_owned(),
                ));
            }
            if wait_ns > 0 && self.stopped < self.slots.len() {
                self.idle(wait_ns);
            }
            if self.any_left || self.any_failed {
                // Others may wait for what a session that left still has to end; and whoever
                // answers at once has no other place to say that it cannot go on.
                self.any_failed = false;
                driver.reap(Duration::ZERO, &mut self.completions)?;
            }
            return Ok(());
        }
        driver.reap(Duration::from_nanos(wait_ns), &mut self.completions)?;
        let mut completions = std::mem::take(&mut self.completions);
        if completions.is_empty() {
            self.stale = true;
        }
        for completion in completions.drain(..) {
            let known = self.slots.get(completion.tag as usize);
            if known.is_none_or(|slot| slot.state != State::InFlight) {
                return Err(EngineError::Unusable(format!(
                    "the engine returned an operation of session tag {} that is not in flight",
                    completion.tag
                )));
            }
            self.now = self.now.max(completion.outcome.end_ns);
            self.in_flight -= 1;
            self.stale = false;
            let next = self.complete(completion.tag, completion.outcome);
            self.schedule(completion.tag, next);
        }
        self.completions = completions;
        Ok(())
    }

    /// How long nothing can happen but completions.
    fn wait_ns(&self, limit: Ns) -> Ns {
        let due = self.sleeping.peek().map_or(Ns::MAX, |Reverse((due, _))| *due);
        due.min(limit).saturating_sub(self.now).min(WAIT_MAX_NS)
    }

    /// Every session pauses: no engine call can wait for that.
    fn idle(&mut self, wait_ns: Ns) {
        self.clock.pass(self.now, self.now + wait_ns);
        self.stale = true;
    }

    /// Records how an operation ended and decides what its session does next.
    fn complete(&mut self, tag: Tag, outcome: Outcome) -> Next {
        let slot = &mut self.slots[tag as usize];
        let end_ns = outcome.end_ns.max(slot.start_ns);
        let service_ns = end_ns - slot.start_ns;
        let mut rows_touched = None;
        match outcome.result {
            Ok(rows) => {
                let response_ns = end_ns - slot.intended_ns.min(end_ns);
                let kind = slot.step.op.kind();
                self.recorder.record(kind, rows, service_ns, response_ns);
                self.recorder.hot_spot_hits += u64::from(slot.step.hot_spot);
                self.recorder.hot_schema_hits += u64::from(slot.step.hot_schema);
                slot.reading.ops += 1;
                slot.reading.rows += rows;
                rows_touched = Some(rows);
                let expected = self.workload.rows_expected(self.plan, &slot.step.op);
                if let Some(expected) = expected.filter(|expected| rows != *expected) {
                    self.recorder.error("rows");
                    let (session, op) = (slot.reading.session, slot.step.op);
                    let kinds = self.workload.kinds();
                    self.control.count_error(
                        &|| {
                            let op = op.told(kinds);
                            format!("session {session}: {op} touched {rows} rows, expected {expected}")
                        },
                        end_ns,
                    );
                }
            }
            Err(ref error) if error.retryable && slot.attempts + 1 < self.workload.attempts() => {
                slot.attempts += 1;
                slot.state = State::Ready;
                let (board, session) = (&self.control.board, slot.reading.session);
                board.set(session, Place::Ready, &slot.step.op);
                self.recorder.tried_again(slot.step.op.kind(), error.class);
                let attempt = slot.attempts - 1;
                let pause_ns = self.workload.back_off_ns(attempt, self.back_off.next_u64());
                return Next::At(if pause_ns > 0 { end_ns + pause_ns } else { 0 });
            }
            Err(error) => {
                self.any_failed = true;
                let kinds = self.workload.kinds();
                self.recorder.op_failed((self.control, kinds), slot, &error, end_ns);
            }
        }
        slot.attempts = 0;
        slot.reading.busy_ns += service_ns;
        slot.reading.last_op_ns = Some(end_ns.saturating_sub(self.gate_ns));
        if let Some(trace) = &mut self.trace {
            let kind = self.workload.kinds()[slot.step.op.kind()];
            trace.push(slot.row(kind, self.gate_ns, end_ns, rows_touched));
        }
        self.advance(tag, end_ns)
    }

    /// Decides a session's next operation at the end of the one before.
    fn advance(&mut self, tag: Tag, end_ns: Ns) -> Next {
        let slot = &mut self.slots[tag as usize];
        let ended = self.plan.work_loop > 0 && slot.taken == self.plan.work_loop;
        let (board, session) = (&self.control.board, slot.reading.session);
        if self.stopping || ended {
            board.idle(session);
            return Next::Stop;
        }
        let i = slot.taken;
        let decided = slot.ahead.pop_front();
        slot.step = decided.unwrap_or_else(|| slot.source.next(self.plan));
        slot.taken += 1;
        slot.start_ns = end_ns;
        slot.begun = false;
        let scheduled = slot.schedule.next_start(i);
        let due = match (scheduled.and(slot.step.start_ns).or(scheduled), slot.step.think_ns) {
            (Some(own), _) => {
                let after_gate = match &self.control.queue {
                    None => own,
                    Some(queue) => {
                        let (due, dropped) = queue.take(end_ns.saturating_sub(self.gate_ns));
                        self.recorder.dropped += dropped;
                        due
                    }
                };
                slot.intended_ns = self.gate_ns.saturating_add(after_gate);
                slot.intended_ns
            }
            (None, Some(pause)) => end_ns + pause,
            (None, None) => {
                slot.intended_ns = end_ns;
                // The first operation begins when it is submitted: the gate is no completion.
                slot.begun = i > 0;
                0
            }
        };
        // Only an operation that has begun is activity: pauses and late starts are not.
        if slot.begun {
            board.set(session, Place::Ready, &slot.step.op);
        } else {
            board.idle(session);
        }
        Next::At(due)
    }

    /// Puts a session where it waits for its next operation.
    fn schedule(&mut self, tag: Tag, next: Next) {
        let slot = &mut self.slots[tag as usize];
        match next {
            Next::Stop => {
                slot.state = State::Stopped;
                self.stopped += 1;
                self.leaving.push(tag);
            }
            Next::At(due) if due > self.now => {
                slot.state = State::Sleeping;
                self.sleeping.push(Reverse((due, tag)));
            }
            Next::At(_) => {
                slot.state = State::Ready;
                self.ready.push_back(tag);
            }
        }
    }

    /// A copy of everything this thread has counted.
    pub(crate) fn published(&self, driver: &mut dyn Driver) -> Published {
        let mut stats = StatSet::default();
        driver.stats(&mut stats);
        self.published_with(stats)
    }

    /// The same when the engine's part is known or lost.
    pub(crate) fn published_with(&self, mut stats: StatSet) -> Published {
        let thread = thread_clock::read();
        let sessions = self.slots.len() as u64;
        let db_cpu_ns = self.works_here.then_some(thread.cpu_ns);
        self.recorder.add_stats(sessions, db_cpu_ns, &mut stats);
        let mut driver = self.recorder.reading();
        driver.threads = 1;
        driver.thread_cpu_ns = thread.cpu_ns;
        driver.thread_run_delay_ns = thread.run_delay_ns.unwrap_or(0);
        for slot in &self.slots {
            driver.sessions_active += u64::from(slot.state != State::Stopped);
            if slot.begun && slot.state != State::Stopped {
                driver.in_flight += 1;
                driver.in_flight_ns += self.now.saturating_sub(slot.start_ns);
            }
        }
        Published { at_ns: self.now, stats, driver }
    }

    /// Stamps the time before the last publication.
    pub(crate) fn stamp(&mut self) {
        self.now = self.now.max(self.clock.now_ns());
    }

    /// Sessions whose operations are with the engine.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Sessions that had not stopped: more than none after a failure or an abandoned run.
    pub(crate) fn sessions(&self) -> Vec<SessionReading> {
        let of_fleet = |reading: SessionReading| SessionReading {
            session: u64::from(self.plan.number_in_fleet(reading.session as u32)),
            ..reading
        };
        self.slots.iter().map(|slot| of_fleet(slot.reading.clone())).collect()
    }
}

impl Slot {
    fn new(plan: &Plan, workload: &dyn Workload, session: u32, home: u32) -> Self {
        Self {
            source: workload.session(plan, plan.number_in_fleet(session), home),
            ahead: VecDeque::new(),
            taken: 0,
            schedule: Schedule::rate(plan.rate_per_s, plan.sessions_of_fleet(), plan.number_in_fleet(session)),
            step: Step {
                think_ns: None,
                start_ns: None,
                op: Op::Scan { schema: home },
                hot_spot: false,
                hot_schema: false,
            },
            state: State::Ready,
            start_ns: 0,
            intended_ns: 0,
            begun: false,
            attempts: 0,
            reading: SessionReading {
                session: u64::from(session),
                schema: u64::from(home),
                ..SessionReading::default()
            },
        }
    }

    fn row(&self, kind: &'static str, gate_ns: Ns, end_ns: Ns, rows: Option<u64>) -> Row {
        Row {
            session: self.reading.session as u32,
            i: self.taken - 1,
            start_ns: self.start_ns.saturating_sub(gate_ns),
            op: self.step.op,
            kind,
            rows,
            service_ns: end_ns - self.start_ns,
            response_ns: end_ns - self.intended_ns.min(end_ns),
            hot_spot: self.step.hot_spot,
            hot_schema: self.step.hot_schema,
            think_ns: self.step.think_ns,
        }
    }
}

impl Recorder {
    /// An operation begins after a pause, or as its session's first.
    fn begin(&mut self, slot: &mut Slot, now: Ns, gate_ns: Ns) {
        let idle_ns = now.saturating_sub(slot.start_ns);
        if matches!(slot.schedule, Schedule::Closed) {
            if slot.step.think_ns.is_some() {
                self.thought(idle_ns);
                slot.reading.think_ns += idle_ns;
            }
            slot.intended_ns = now;
        } else {
            self.scheduled(now.saturating_sub(slot.intended_ns), idle_ns);
        }
        slot.start_ns = now;
        slot.begun = true;
        slot.reading.first_op_ns.get_or_insert(now.saturating_sub(gate_ns));
    }

    /// An operation ended badly.
    fn op_failed(&mut self, (control, kinds): (&Control, &[&str]), slot: &Slot, error: &OpError, end_ns: Ns) {
        self.failed(slot.step.op.kind(), error.class, end_ns - slot.start_ns);
        let (session, op) = (slot.reading.session, slot.step.op);
        control.count_error(
            &|| {
                let op = op.told(kinds);
                format!("session {session}: {op}: {}: {}", error.class, error.text)
            },
            end_ns,
        );
    }
}
