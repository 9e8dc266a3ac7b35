//! The simulated engine: seeded delays, programmed stalls and faults, on a clock that
//! moves only when nothing else can happen. A run of minutes takes milliseconds and
//! its histograms are exact, so the loop, the collector and the workload can be
//! checked against closed forms.
//!
//! One driver thread serves all sessions: simulated time has one order of events.

use assay_measure::clock::{Clock, Ns};
use assay_measure::prng::{Purpose, Stream};
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{
    Assignment, Completion, Driver, Engine, EngineError, Op, OpError, Outcome, Slice, SliceDone, Submit, Tag,
};
use assay_run::null::NullEngine;
use assay_run::plan::Plan;
use assay_run::workload::Workload;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How long an operation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always this, ns.
    Fixed(Ns),
    /// Each value from the first to the second alike, ns.
    Uniform(Ns, Ns),
    /// Exponential with this mean, ns.
    Exponential(Ns),
    /// This for each row, ns.
    PerRow(Ns),
}

/// A time during which the target does nothing, as instants of the run's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stall {
    /// Its begin, ns.
    pub from_ns: Ns,
    /// Its end, ns.
    pub until_ns: Ns,
}

/// An operation that fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// Session, from 1.
    pub session: u32,
    /// Which of its operations, from 0.
    pub i: u64,
    /// How many attempts fail.
    pub attempts: u32,
    /// Whether another attempt may help.
    pub retryable: bool,
}

assay_measure::with_defaults! {
    /// What is simulated.
    #[derive(Clone, Debug, PartialEq)]
    pub struct SimOptions {
        /// Seed of the delays.
        pub seed: u64 = 1,
        /// Delay of a select.
        pub select: Delay = Delay::Fixed(1_000_000),
        /// Delay of an update.
        pub update: Delay = Delay::Fixed(1_000_000),
        /// Delay of a scan.
        pub scan: Delay = Delay::Fixed(1_000_000),
        /// Stalls, in order and apart.
        pub stalls: Vec<Stall>,
        /// A session (from 1) whose operation of this number (from 0) takes this much longer, ns.
        pub slow: Option<(u32, u64, Ns)>,
        /// Faults.
        pub faults: Vec<Fault>,
        /// Most operations in flight; 0: as many as sessions.
        pub room: usize,
        /// Operations end inside submit, as with a blocking engine.
        pub blocking: bool,
        /// From this instant on the driver is broken.
        pub breaks_at_ns: Option<Ns>,
        /// Panics at the first completion from this instant on.
        pub panics_at_ns: Option<Ns>,
        /// Its driver cannot be opened.
        pub refuses: bool,
        /// One row is missing from every result.
        pub loses_a_row: bool,
        /// The target performs this many operations per slice (0: one by one).
        pub slice_ops: usize,
        /// Time to and from the target, each, for a slice, ns.
        pub slice_way_ns: Ns,
    }
}

/// See the module.
#[derive(Debug)]
pub struct SimEngine {
    options: SimOptions,
    clock: Clock,
    plan: Plan,
    /// Counts what was performed.
    null: NullEngine<'static>,
    closes: AtomicU64,
}

impl SimEngine {
    /// For `plan` of `workload` on a simulated `clock`.
    ///
    /// # Panics
    /// On a real clock: nothing would ever end.
    #[must_use]
    pub fn new(plan: &Plan, workload: &'static dyn Workload, clock: &Clock, options: SimOptions) -> Self {
        assert!(clock.is_simulated(), "the simulated engine moves the clock itself");
        let null = NullEngine::new(plan, workload, clock);
        Self { options, clock: clock.clone(), plan: plan.clone(), null, closes: AtomicU64::new(0) }
    }

    /// How often it was closed.
    #[must_use]
    pub fn closes(&self) -> u64 {
        self.closes.load(Ordering::Acquire)
    }
}

impl Engine for SimEngine {
    fn facts(&self) -> Vec<Fact> {
        vec![Fact::new("engine", "simulated delays on a simulated clock")]
    }

    fn workload(&self) -> &dyn Workload {
        self.null.workload()
    }

    fn driver_threads(&self, _sessions: usize, _cpus: usize) -> usize {
        1
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        if self.options.refuses {
            return Err(EngineError::Unusable("the simulated target refuses".to_owned()));
        }
        Ok(Box::new(SimDriver {
            engine: self,
            sessions: assignment
                .sessions
                .iter()
                .map(|&(session, _)| SimSession { session, i: 0, attempts: 0 })
                .collect(),
            delays: Stream::new(self.options.seed, 0, Purpose::Simulation),
            queue: BinaryHeap::new(),
            number: 0,
            null: self.null.driver(assignment)?,
        }))
    }

    fn sample(&self) -> StatSet {
        StatSet::default()
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        self.closes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }
}

/// How far a session has come, to find its faults.
#[derive(Debug)]
struct SimSession {
    session: u32,
    i: u64,
    attempts: u32,
}

/// An operation under way; the number keeps the order of those that end together.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Pending {
    end_ns: Ns,
    number: u64,
    tag: Tag,
    rows: Option<u64>,
    retryable: bool,
}

struct SimDriver<'a> {
    engine: &'a SimEngine,
    sessions: Vec<SimSession>,
    delays: Stream,
    queue: BinaryHeap<Reverse<Pending>>,
    number: u64,
    null: Box<dyn Driver + 'a>,
}

impl SimDriver<'_> {
    fn delay_ns(&mut self, op: &Op, rows: u64) -> Ns {
        let options = &self.engine.options;
        let delay = match op {
            Op::Select { .. } | Op::Call { .. } => options.select,
            Op::Update { .. } => options.update,
            Op::Scan { .. } => options.scan,
        };
        match delay {
            Delay::Fixed(ns) => ns,
            Delay::Uniform(low, high) => low + self.delays.below(high - low + 1),
            Delay::Exponential(mean) => {
                // 1 - u lies in (0, 1]: the logarithm is finite.
                let drawn = -(1.0 - self.delays.uniform_f64()).ln() * mean as f64;
                drawn.round() as Ns
            }
            Delay::PerRow(ns) => ns * rows,
        }
    }

    /// The end of work that begins at `start_ns` and takes `work_ns` outside of stalls.
    fn end_ns(&self, start_ns: Ns, work_ns: Ns) -> Ns {
        let mut end_ns = start_ns + work_ns;
        for stall in &self.engine.options.stalls {
            if stall.until_ns > start_ns && stall.from_ns < end_ns {
                end_ns += stall.until_ns - stall.from_ns.max(start_ns);
            }
        }
        end_ns
    }

    /// Whether this attempt fails, and whether that is worth another.
    fn fault(&mut self, tag: Tag) -> Option<bool> {
        let at = &mut self.sessions[tag as usize];
        let fault = self.engine.options.faults.iter().find(|fault| fault.session == at.session && fault.i == at.i);
        if let Some(fault) = fault.filter(|fault| at.attempts < fault.attempts) {
            at.attempts += 1;
            // The loop tries a retryable failure once more; whatever comes then is final.
            if !fault.retryable || at.attempts == 2 {
                at.i += 1;
                at.attempts = 0;
            }
            return Some(fault.retryable);
        }
        at.i += 1;
        at.attempts = 0;
        None
    }

    fn count(&mut self, op: &Op) -> u64 {
        let Submit::Done(Outcome { result: Ok(rows), .. }) = self.null.submit(0, op, 0) else {
            unreachable!("the null engine does everything at once");
        };
        rows - u64::from(self.engine.options.loses_a_row)
    }

    /// Begins an operation now; whether it ends inside the call.
    fn start(&mut self, tag: Tag, op: &Op) -> (Pending, bool) {
        let rows = self.engine.plan.rows_expected(op);
        let at = &self.sessions[tag as usize];
        let slow = self.engine.options.slow;
        let slow = slow.filter(|(session, i, _)| (*session, *i) == (at.session, at.i));
        let work_ns = self.delay_ns(op, rows) + slow.map_or(0, |(_, _, more_ns)| more_ns);
        let end_ns = self.end_ns(self.engine.clock.now_ns(), work_ns);
        let fault = self.fault(tag);
        self.number += 1;
        let pending = Pending {
            end_ns,
            number: self.number,
            tag,
            rows: fault.is_none().then(|| self.count(op)),
            retryable: fault.unwrap_or(false),
        };
        (pending, self.engine.options.blocking)
    }

    fn outcome(&self, pending: &Pending) -> Outcome {
        let panics_at = self.engine.options.panics_at_ns;
        assert!(panics_at.is_none_or(|at| pending.end_ns < at), "programmed panic of the simulated engine");
        Outcome {
            end_ns: pending.end_ns,
            result: pending.rows.ok_or_else(|| OpError {
                class: if pending.retryable { "deadlock" } else { "io" },
                text: "programmed fault".to_owned(),
                retryable: pending.retryable,
            }),
        }
    }
}

impl Driver for SimDriver<'_> {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: Ns) -> Submit {
        let options = &self.engine.options;
        if options.room > 0 && self.queue.len() >= options.room {
            return Submit::Full;
        }
        let (pending, blocking) = self.start(tag, op);
        if blocking {
            self.engine.clock.advance_to(pending.end_ns);
            return Submit::Done(self.outcome(&pending));
        }
        self.queue.push(Reverse(pending));
        Submit::Queued
    }

    fn reap(&mut self, timeout: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let clock = &self.engine.clock;
        let until_ns = clock.now_ns() + timeout.as_nanos() as Ns;
        let next_ns = self.queue.peek().map_or(Ns::MAX, |Reverse(next)| next.end_ns);
        clock.advance_to(until_ns.min(next_ns));
        let now_ns = clock.now_ns();
        if self.engine.options.breaks_at_ns.is_some_and(|at| now_ns >= at) {
            return Err(EngineError::Unusable("the simulated target broke".to_owned()));
        }
        while let Some(Reverse(next)) = self.queue.peek() {
            if next.end_ns > now_ns {
                break;
            }
            let outcome = self.outcome(next);
            out.push(Completion { tag: next.tag, outcome });
            self.queue.pop();
        }
        Ok(())
    }

    fn slice_ops(&self) -> usize {
        self.engine.options.slice_ops
    }

    fn perform(&mut self, slice: Slice<'_>) -> Result<SliceDone, EngineError> {
        let (clock, way_ns) = (&self.engine.clock, self.engine.options.slice_way_ns);
        clock.advance_to(clock.now_ns() + way_ns);
        let begin_ns = clock.now_ns();
        let mut outcomes = Vec::new();
        for op in slice.ops {
            if self.engine.clock.now_ns() >= slice.until_ns {
                break;
            }
            let (pending, _) = self.start(slice.tag, op);
            self.engine.clock.advance_to(pending.end_ns);
            let again = pending.rows.is_none() && pending.retryable;
            outcomes.push(self.outcome(&pending));
            if again {
                break;
            }
        }
        let clock = &self.engine.clock;
        clock.advance_to(clock.now_ns() + way_ns);
        Ok(SliceDone { begin_ns, outcomes, end_ns: clock.now_ns() })
    }

    fn stats(&mut self, into: &mut StatSet) {
        self.null.stats(into);
    }
}
