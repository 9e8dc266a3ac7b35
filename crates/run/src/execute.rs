//! One run from gate to drain: what the binary calls.

use crate::arrivals::Queue;
use crate::collector::{Collector, Drained, Instant, Marks, Seen};
use crate::control::{Control, Failure, Finished, Published};
use crate::driver_loop::Worker;
use crate::engine::{Assignment, Engine, EngineError, Remarks};
use crate::host::{self, Sampler};
use crate::observer::{Mark, Observer};
use crate::plan::Plan;
use crate::stop::Stop;
use crate::timeline::{EndOnDrop, Planned, TimeLine};
use crate::workload::Workload;
use crate::{floor, threads, trace};
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::snapshot::{Fact, RunData, SettingLine, Snapshot, StatSet, Verdict};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::{Scope, ScopedJoinHandle};
use std::time::Duration;

/// What the record says of the run beside its numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Labels {
    /// Short random id, also in the directory's name.
    pub run_id: String,
    /// The user's label.
    pub label: Option<String>,
    /// Name of the target: `native`, `null`
    pub engine: String,
    /// The program's version.
    pub version: String,
    /// Effective configuration, secrets already `***`.
    pub settings: Vec<SettingLine>,
    /// What is known about the target besides the engine's facts: a server that was started for the run.
    pub facts: Vec<Fact>,
}

assay_measure::with_defaults! {
    /// How to run a plan, independent of what the sessions do.
    pub struct Options {
        /// For the record.
        pub labels: Labels,
        /// CPUs the engine may count on for its driver threads.
        pub cpus: usize = std::thread::available_parallelism().map_or(1, usize::from),
        /// How long the drivers may take to get ready; `None`: 60 s + 0.05 s a session.
        pub ready_timeout: Option<Duration>,
        /// Failed operations that leave the run valid.
        pub errors_tolerated: u64,
        /// Failed operations beyond which the run stops.
        pub errors_fatal: u64 = 100,
        /// Read `/proc` at every snapshot and the host's facts once.
        pub host: bool = true,
        /// Measure the harness floor and the clock before the gate (about 60 ms).
        pub calibrate: bool = true,
        /// Where operations are traced to, if anywhere.
        pub trace: Option<Box<dyn trace::Sink>>,
        /// Commands to start at instants of the run; only on a real clock.
        pub commands: Vec<Planned>,
    }
}

/// Why there is no good run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A driver could not be opened: no operation was done.
    #[error("driver thread {thread} could not start: {source}")]
    NotReady {
        /// The thread, from 0.
        thread: usize,
        /// Its reason.
        source: EngineError,
    },
    /// Drivers took too long to get ready: no operation was done.
    #[error("{missing} of {threads} driver threads were not ready within {waited_s} s")]
    ReadyTimeout {
        /// Threads that had not answered.
        missing: usize,
        /// Threads in all.
        threads: usize,
        /// The limit, s.
        waited_s: u64,
    },
    /// The observer refused the start ([`Observer::ready`]): no operation was done.
    #[error("{0}")]
    Refused(String),
    /// Stopped before the gate: no operation was done.
    #[error("interrupted before the start")]
    Interrupted,
    /// The target gave up during the run or could not be closed in order. The record keeps what was measured until
    /// then; its verdict is invalid.
    #[error("{source}")]
    Lost {
        /// The first failure; its variant decides the exit code.
        source: EngineError,
        /// Everything up to then.
        data: Box<RunData>,
    },
}

/// Runs `plan` on `engine` and returns everything measured. The calling thread
/// becomes the collector; the driver threads live no longer than this call.
///
/// # Errors
/// When the run could not start, or the engine failed on the way. Operation errors,
/// panics of a driver thread and requests to stop are no errors: they show in the verdict.
pub fn execute(
    plan: &Plan,
    engine: &dyn Engine,
    clock: &Clock,
    stop: &Stop,
    hooks: &mut dyn Observer,
    options: Options,
) -> Result<RunData, RunError> {
    let mut data = start_of_record(plan, engine.workload(), clock, &options);
    let Options { ready_timeout, errors_tolerated, errors_fatal, trace: sink, commands, .. } = options;
    let assignments = plan.assignments(engine.driver_threads(plan.sessions(), options.cpus));
    let mut control = Control::new(clock, assignments.len(), plan.sessions(), errors_fatal);
    control.queue = Queue::of(plan);
    let line = TimeLine::new(&control, engine, commands, options.host);
    // Simulated time moves in leaps: no instant in between can be looked at.
    let line = (!clock.is_simulated()).then_some(&line);
    let sampler = options.host.then(|| Sampler::new(engine.watched_disks()));
    hooks.phase("connect");
    let job = Job { plan, engine, control: &control };
    let (homes, told) = homes(clock, assignments.len());
    data.engine_facts.push(told);
    let measured = std::thread::scope(|scope| {
        let _release = Release(&control);
        let tracer = room_and_tracer(scope, assignments.len(), sink)?;
        let timeout = ready_timeout.unwrap_or_else(|| default_timeout(plan));
        engine.phase(READY, Some(timeout));
        let ready = job
            .spawn_all(scope, &assignments, &homes, tracer.as_ref())
            .and_then(|()| wait_ready(&control, stop, timeout))
            .and_then(|ready| may_start(hooks, stop).map(|()| ready))
            // The other hosts of a fleet may have been waited for.
            .inspect(|_| engine.phase(READY, Some(timeout)))
            .inspect_err(|_| {
                control.cancel_gate();
                // Threads that still wait for their sessions would be waited for.
                engine.phase(READY, Some(LEAVING));
            })?;
        let collector = Collector {
            plan,
            control: &control,
            engine,
            stop,
            observer: hooks,
            line,
            seen: Seen::default(),
            sampler,
            gate_ns: Ns::MAX,
            last: ready,
            epoch: 0,
            skew_ns_max: 0,
        };
        Ok((measure(collector, scope), tracer.map(Tracer::finish)))
    });
    // A target that was opened is closed, also when nothing ran: it must be left in order.
    let (measured, traced) = measured.inspect_err(|_| drop(closed(engine)))?;
    // What the drivers obtained (I/O mode, ring features) is known only since they opened.
    data.engine_facts.extend(engine.facts());
    data.part = engine.part();
    note_trace(&mut data, traced);
    Judge { plan, stop, control: &control, errors_tolerated }.conclude(data, measured, engine.remarks())
}

/// The CPU that each driver thread keeps to, and the word on it. A server on this host is drawn there too: the kernel wakes its
/// process where it was asked from, and waking one on another CPU costs the client half of all it does (postgres-wire.md).
fn homes(clock: &Clock, threads: usize) -> (Vec<usize>, Fact) {
    let homes = if clock.is_simulated() { Vec::new() } else { threads::homes(threads) };
    let named: Vec<String> = homes.iter().map(usize::to_string).collect();
    let told = Fact {
        name: "driver_threads_place".to_owned(),
        value: if named.is_empty() {
            "the kernel's choice".to_owned()
        } else {
            format!("a CPU each: {}", named.join(", "))
        },
    };
    (homes, told)
}

/// Asks the observer; a stop requested meanwhile counts more than its answer.
fn may_start(hooks: &mut dyn Observer, stop: &Stop) -> Result<(), RunError> {
    let answer = hooks.ready();
    if stop.requested() {
        return Err(RunError::Interrupted);
    }
    answer.map_err(RunError::Refused)
}

/// Lets the driver threads go when the collector panics: nobody else would.
struct Release<'a>(&'a Control);

impl Drop for Release<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.cancel_gate();
            self.0.stop_at(self.0.clock.now_ns());
            self.0.answer(u64::MAX, true);
        }
    }
}

/// The phase in which the sessions connect, and how long they may go on when the run does not start.
const READY: &str = "the connecting of the sessions";
const LEAVING: Duration = Duration::from_secs(2);
/// Longest close of a target that waits for somebody else.
const CLOSE: Duration = Duration::from_mins(1);

fn closed(engine: &dyn Engine) -> Result<(), EngineError> {
    // Also after a run that did not start, whose sessions were given less.
    engine.phase("the close of the run", Some(CLOSE));
    let closed = engine.close();
    // What follows may take long: the checks of what a run left.
    engine.phase("the run", None);
    closed
}

/// What the driver threads share.
#[derive(Clone, Copy)]
struct Job<'a> {
    plan: &'a Plan,
    engine: &'a dyn Engine,
    control: &'a Control,
}

impl<'a> Job<'a> {
    fn spawn_all<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        assignments: &'a [Assignment],
        homes: &[usize],
        tracer: Option<&Tracer<'scope>>,
    ) -> Result<(), RunError> {
        for assignment in assignments {
            let buffer = tracer.map(Tracer::buffer);
            let home = homes.get(assignment.thread).copied();
            self.spawn(scope, assignment, home, buffer)?;
        }
        Ok(())
    }

    fn spawn<'scope>(
        self,
        scope: &'scope Scope<'scope, 'a>,
        assignment: &'a Assignment,
        home: Option<usize>,
        buffer: Option<trace::Buffer>,
    ) -> Result<(), RunError> {
        let name = format!("driver-{}", assignment.thread);
        let work = move || {
            if let Some(cpu) = home {
                threads::stay_on(cpu);
            }
            drive(self, assignment, buffer);
        };
        threads::spawn(scope, name, work)
            .map(drop)
            .map_err(|source| RunError::NotReady { thread: assignment.thread, source })
    }
}

/// Finds room for the driver threads and starts the writer of the trace, where there shall be one.
fn room_and_tracer<'scope>(
    scope: &'scope Scope<'scope, '_>,
    drivers: usize,
    sink: Option<Box<dyn trace::Sink>>,
) -> Result<Option<Tracer<'scope>>, RunError> {
    let not_ready = |source| RunError::NotReady { thread: 0, source };
    threads::check_room(drivers as u64, "driver threads").map_err(not_ready)?;
    let tracer = sink.map(|sink| Tracer::spawn(scope, sink));
    tracer.transpose().map_err(not_ready)
}

/// The thread that writes the operation trace.
struct Tracer<'scope> {
    sender: SyncSender<Vec<trace::Row>>,
    writer: ScopedJoinHandle<'scope, std::io::Result<()>>,
}

impl<'scope> Tracer<'scope> {
    fn spawn(scope: &'scope Scope<'scope, '_>, mut sink: Box<dyn trace::Sink>) -> Result<Self, EngineError> {
        let (sender, queue) = trace::queue();
        let name = "trace".to_owned();
        let writer = threads::spawn(scope, name, move || trace::write_all(&mut *sink, &queue))?;
        Ok(Self { sender, writer })
    }

    fn buffer(&self) -> trace::Buffer {
        trace::Buffer::new(self.sender.clone())
    }

    /// Waits for the last row; returns what went wrong.
    fn finish(self) -> Result<(), String> {
        drop(self.sender);
        match self.writer.join() {
            Ok(written) => written.map_err(|error| error.to_string()),
            Err(panic) => Err(panic_text(&*panic)),
        }
    }
}

/// Everything the collector brings home.
struct Measured {
    gate: Snapshot,
    marks: Marks,
    drained: Drained,
    last: Snapshot,
    closed: Result<(), EngineError>,
    /// Largest skew above the limit; 0 if there was none.
    skew_ns_max: Ns,
    seen: Seen,
}

/// From the open gate to the closed target.
fn measure<'scope, 'env>(mut collector: Collector<'env>, scope: &'scope Scope<'scope, 'env>) -> Measured {
    let gate = collector.gate();
    open(&mut collector);
    let line = collector.line;
    let gate_ns = collector.gate_ns;
    let _ended = line.map(EndOnDrop);
    let thread = line.map(|line| {
        std::thread::Builder::new().name("time-line".to_owned()).spawn_scoped(scope, move || line.run(gate_ns))
    });
    let marks = collector.marks(&gate);
    let drained = collector.drain();
    collector.observer.phase("close");
    let closed = closed(collector.engine);
    // After the close nothing moves any more: sums over threads are exact.
    let last = collector.assemble(Instant::Last);
    if let (Some(line), Some(Ok(thread))) = (line, thread) {
        line.end();
        // A panic of that thread loses its history and nothing else; the hook has told it.
        let _ = thread.join();
    }
    collector.tell(Mark::Drained, &last);
    Measured { gate, marks, drained, last, closed, skew_ns_max: collector.skew_ns_max, seen: collector.seen }
}

/// Everything known before the first operation.
fn start_of_record(plan: &Plan, workload: &dyn Workload, clock: &Clock, options: &Options) -> RunData {
    let labels = options.labels.clone();
    let calibrated = options.calibrate && !clock.is_simulated();
    RunData {
        run_id: labels.run_id,
        label: labels.label,
        workload: workload.name().to_owned(),
        engine: labels.engine,
        version: labels.version,
        started: jiff::Timestamp::now().to_string(),
        seed: plan.seed,
        sessions: plan.sessions() as u64,
        fixed_iterations: plan.work_loop > 0,
        settings: labels.settings,
        engine_facts: labels.facts,
        host: if options.host { host::facts() } else { Vec::new() },
        floor_ns_per_op: calibrated.then(|| floor::ns_per_op(plan, workload)).flatten(),
        clock_read_ns: calibrated.then(|| floor::clock_read_ns(clock)),
        warnings: plan.notices(),
        ..RunData::default()
    }
}

/// 60 s, and 0.05 s for each session (slob-method 5.3: 20 connects a second).
fn default_timeout(plan: &Plan) -> Duration {
    Duration::from_secs(60) + Duration::from_millis(50) * plan.sessions() as u32
}

/// One driver thread from birth to its last word.
fn drive(job: Job<'_>, assignment: &Assignment, trace: Option<trace::Buffer>) {
    let Job { plan, engine, control } = job;
    // The default slack of 50 us would make every timed wait of this thread late.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let tid = rustix::thread::gettid().as_raw_nonzero().get();
    control.publish(assignment.thread, |slot| slot.tid = Some(tid));
    let works_here = engine.works_in_driver_threads();
    let mut worker = Worker::new(plan, engine.workload(), control, assignment, works_here, trace);
    let mut last = None;
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        let mut driver = engine.driver(assignment)?;
        worker.stamp();
        let ready = worker.published(&mut *driver);
        control.publish(assignment.thread, |slot| slot.ready = Some(Arc::new(ready)));
        let Some(gate_ns) = control.wait_gate() else {
            return Ok(());
        };
        let ran = worker.run(&mut *driver, gate_ns).and_then(|()| driver.finish());
        worker.stamp();
        last = Some(worker.published(&mut *driver));
        ran
    }));
    let failure = match outcome {
        Ok(Ok(())) => None,
        Ok(Err(error)) => Some(Failure::Engine(error)),
        Err(panic) => Some(Failure::Panic(panic_text(&*panic))),
    };
    if failure.is_some() {
        // Nobody goes on without a part of the sessions: the run is void anyway.
        control.stop_at(control.clock.now_ns());
    }
    let last = last.unwrap_or_else(|| {
        let known = control.slot(assignment.thread);
        let stats = known.mark.as_ref().map(|(_, published)| published.stats.clone());
        drop(known);
        worker.published_with(loop_part_removed(stats.unwrap_or_default()))
    });
    let (sessions, in_flight) = (worker.sessions(), worker.in_flight());
    // The trace must be complete before anybody counts its rows.
    drop(worker);
    control.publish(assignment.thread, |slot| {
        slot.finished = Some(Finished { last: Arc::new(last), sessions, failure, in_flight });
    });
}

/// The engine's part of an earlier publication: the loop adds its own afresh.
fn loop_part_removed(mut stats: StatSet) -> StatSet {
    use assay_measure::counter_catalog as names;
    use assay_measure::snapshot::WaitClass;
    for stat in [names::LOGONS, names::EXECUTE_COUNT, names::USER_CALLS, names::DB_TIME, names::DB_CPU] {
        stats.counters.remove(stat.name);
    }
    stats.events.retain(|event| event.class != WaitClass::Idle);
    stats
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    panic
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a panic without a message".to_owned())
}

/// Waits until every driver is open.
fn wait_ready(control: &Control, stop: &Stop, timeout: Duration) -> Result<Vec<Arc<Published>>, RunError> {
    // Real time on purpose: opening a driver takes real time under any clock.
    let begun = std::time::Instant::now();
    loop {
        let mut missing = 0;
        for thread in 0..control.threads() {
            let mut slot = control.slot(thread);
            if let Some(finished) = slot.finished.take() {
                let source = match finished.failure {
                    Some(Failure::Engine(source)) => source,
                    Some(Failure::Panic(text)) => EngineError::Unusable(format!("panic: {text}")),
                    None => EngineError::Unusable("ended before the gate".to_owned()),
                };
                return Err(RunError::NotReady { thread, source });
            }
            missing += usize::from(slot.ready.is_none());
        }
        if missing == 0 {
            break;
        }
        if stop.requested() {
            return Err(RunError::Interrupted);
        }
        if begun.elapsed() >= timeout {
            return Err(RunError::ReadyTimeout { missing, threads: control.threads(), waited_s: timeout.as_secs() });
        }
        std::thread::park_timeout(Duration::from_millis(5));
    }
    Ok((0..control.threads()).filter_map(|thread| control.slot(thread).ready.take()).collect())
}

/// Opens the gate a moment ahead, so that threads which wake late start with the others.
fn open(collector: &mut Collector<'_>) {
    let control = collector.control;
    collector.engine.phase("the run", None);
    let lead_ns = if control.clock.is_simulated() { 0 } else { 500_000 + 50_000 * control.threads() as Ns };
    let gate_ns = collector.observer.start_at(control.clock.now_ns() + lead_ns);
    collector.gate_ns = gate_ns;
    let plan = collector.plan;
    if plan.work_loop == 0 {
        control.stop_at(gate_ns + plan.warmup_ns + plan.run_time_ns);
    } else if let Some(cap) = plan.max_run_time_ns {
        control.stop_at(gate_ns + cap);
    }
    collector.ask_first();
    control.open_gate(gate_ns);
}

fn note_trace(data: &mut RunData, traced: Option<Result<(), String>>) {
    if let Some(Err(problem)) = traced {
        data.warnings.push(format!(
            "the operation trace is incomplete ({problem}); this does not affect the figures of the run"
        ));
    }
}

fn note_skew(data: &mut RunData, skew_ns_max: Ns) {
    if skew_ns_max > 0 {
        data.warnings.push(format!(
            "a snapshot took {} ms; it should take at most 50 ms. Counters of different threads can be this far \
             apart in time; use fewer sessions per CPU",
            skew_ns_max / 1_000_000
        ));
    }
}

/// Class of an operation that ended because its session's connection did.
const CONNECTION_LOST: &str = "connection lost";

/// What took one session often took all: the first reason stands for the rest.
fn all_lost(sessions: &[String], unanswered: usize) -> Option<String> {
    let first = sessions.first()?;
    Some(match sessions.len() - 1 + unanswered {
        0 => first.clone(),
        1 => format!("{first}; another session lost its connection too"),
        others => format!("{first}; {others} other sessions lost their connections too"),
    })
}

/// Turns what happened into a verdict.
struct Judge<'a> {
    plan: &'a Plan,
    stop: &'a Stop,
    control: &'a Control,
    errors_tolerated: u64,
}

impl Judge<'_> {
    /// `remarks` is the engine's own word.
    fn conclude(&self, mut data: RunData, measured: Measured, remarks: Remarks) -> Result<RunData, RunError> {
        let Measured { gate, marks, drained, last, closed, skew_ns_max, seen } = measured;
        note_skew(&mut data, skew_ns_max);
        let (mut invalid, lost) = self.failures(&mut data, drained.failures, drained.unanswered, closed, &last);
        data.warnings.extend(remarks.warnings);
        // What ended the run took more with it: the first reason stands for the rest.
        if invalid.is_empty() {
            invalid.extend(remarks.invalid)
        } else {
            data.warnings.extend(remarks.invalid)
        }
        let (_, fatal) = self.control.errors();
        let early = self.incomplete(&marks, &drained.sessions, fatal);
        if early.is_none() {
            invalid.extend(self.missed_rate(&marks));
        }
        if marks.before_begin {
            data.warnings
                .push("the run ended during the warm-up: the window begins at the gate and includes it".to_owned());
        }
        data.gate = gate;
        data.drained = last;
        data.begin = marks.begin;
        data.end = marks.end;
        data.series = marks.series;
        data.began_ns = Some(self.control.began_ns());
        data.per_session = drained.sessions;
        data.activity = seen.activity;
        data.timeline = seen.events;
        data.verdict = match (invalid.is_empty(), early) {
            (false, _) => Verdict::Invalid(invalid),
            (true, Some(reason)) => Verdict::Incomplete(reason),
            (true, None) => Verdict::Complete,
        };
        match lost {
            Some(source) => Err(RunError::Lost { source, data: Box::new(data) }),
            None => Ok(data),
        }
    }

    /// What makes the run invalid, and what the caller must be told besides.
    fn failures(
        &self,
        data: &mut RunData,
        failures: Vec<(usize, Failure)>,
        unanswered: usize,
        closed: Result<(), EngineError>,
        last: &Snapshot,
    ) -> (Vec<String>, Option<EngineError>) {
        let mut invalid = Vec::new();
        let mut lost = None;
        let mut lost_sessions = Vec::new();
        for (thread, failure) in failures {
            match failure {
                Failure::Engine(error @ EngineError::SessionLost(_)) => {
                    lost_sessions.push(error.to_string());
                }
                Failure::Engine(error) => {
                    invalid.push(format!("driver thread {thread} was lost: {error}"));
                    lost.get_or_insert(error);
                }
                Failure::Panic(text) => {
                    invalid.push(format!("driver thread {thread} panicked: {text}"));
                }
            }
        }
        if let Err(error) = closed {
            invalid.push(format!("the target could not be closed properly: {error}"));
            lost.get_or_insert(error);
        }
        invalid.extend(all_lost(&lost_sessions, unanswered));
        let (errors, _) = self.control.errors();
        // An operation that ended with its connection is told with the session.
        let told =
            if lost_sessions.is_empty() { 0 } else { last.driver.errors.get(CONNECTION_LOST).copied().unwrap_or(0) };
        if errors.saturating_sub(told) > self.errors_tolerated {
            invalid.push(format!("{errors} operations failed; at most {} are tolerated", self.errors_tolerated));
            data.warnings.extend(self.control.error_texts());
        }
        (invalid, lost)
    }

    /// Why the run ended before its plan did, if it did.
    fn incomplete(
        &self,
        marks: &Marks,
        sessions: &[assay_measure::snapshot::SessionReading],
        fatal: bool,
    ) -> Option<String> {
        if self.stop.abandoned() {
            return Some("abandoned on request with operations in flight".to_owned());
        }
        if fatal {
            return Some("stopped after too many failed operations".to_owned());
        }
        if self.stop.requested() && marks.told_to_stop {
            return Some("stopped on request".to_owned());
        }
        let unfinished = sessions.iter().filter(|reading| reading.ops < self.plan.work_loop).count();
        if self.plan.work_loop > 0 && marks.told_to_stop && unfinished > 0 {
            return Some(format!("MAX_RUN_TIME ended the run before {unfinished} sessions had completed WORK_LOOP"));
        }
        None
    }

    /// Under a rate: the operations that should have ended in the window did not.
    fn missed_rate(&self, marks: &Marks) -> Option<String> {
        if self.plan.rate_per_s == 0 {
            return None;
        }
        let ended = |snapshot: &Snapshot| -> u64 { snapshot.driver.ops.iter().map(|op| op.service.count()).sum() };
        let ops = ended(&marks.end).saturating_sub(ended(&marks.begin));
        let window_ns = marks.end.at_ns.saturating_sub(marks.begin.at_ns);
        let wanted = self.plan.rate_here_per_s() * window_ns as f64 / NS_PER_S as f64;
        // One operation a session may be on its way at either end of the window.
        // What comes at random comes in no fixed number.
        let noise = match self.plan.arrivals {
            Some(arrivals) if arrivals.at_random => 5.0 * wanted.sqrt(),
            _ => 0.0,
        };
        let allowance = wanted * 0.01 + self.plan.sessions() as f64 + noise;
        let lost = |snapshot: &Snapshot| snapshot.driver.dropped;
        let dropped = match lost(&marks.end).saturating_sub(lost(&marks.begin)) {
            0 => String::new(),
            n => format!(" ({n} arrivals found no room in the queue)"),
        };
        (wanted - ops as f64 > allowance).then(|| {
            format!(
                "the rate was missed: {ops} operations ended, but RATE={} asks for {wanted:.0}{dropped}; lower RATE, or add \
                 sessions where CPUs are idle",
                self.plan.rate_per_s
            )
        })
    }
}
