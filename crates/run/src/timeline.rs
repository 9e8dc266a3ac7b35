//! The thread of the time line: ticks of the activity history, the user's planned
//! commands, and a look at the limits of the platform with every tick.
//!
//! It sleeps between instants. With each snapshot the collector takes what this thread has seen and passes it to the
//! observer, so a killed run loses at most a second of it.

use crate::command::{Job, LOOK, Running, not_started};
use crate::control::Control;
use crate::engine::Engine;
use crate::history::Sampler;
use crate::host::limits::{Change, Limit, Watch};
use assay_measure::clock::Ns;
use assay_measure::history::{ActivityHistory, INTERVAL_NS};
use assay_measure::locked::locked;
use assay_measure::prng::SplitMix64;
use assay_measure::timeline::{TimelineEvent, TimelineKind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::Thread;
use std::time::{Duration, Instant};

/// How long commands may go on after the last operation; then they are killed.
pub(crate) const GRACE: Duration = Duration::from_secs(10);
/// Events are numbered beyond this: smaller numbers are the caller's own events.
const FIRST_NUMBER: u64 = 9;

/// A command planned for an instant of the run.
#[derive(Clone, Debug)]
pub struct Planned {
    /// Its instant, ns after the gate.
    pub at_ns: Ns,
    /// As the user wrote it.
    pub text: String,
    /// What is started.
    pub job: Job,
}

/// What was seen since the last take.
#[derive(Debug, Default)]
pub(crate) struct News {
    pub activity: ActivityHistory,
    pub events: Vec<TimelineEvent>,
}

/// See the module.
pub(crate) struct TimeLine<'a> {
    control: &'a Control,
    engine: &'a dyn Engine,
    commands: Vec<Planned>,
    /// Whether the limits of the platform are watched.
    watch: bool,
    news: Mutex<News>,
    /// [`Watch::usable_millicpus`] plus one; 0 is unknown.
    usable: AtomicU64,
    over: AtomicBool,
    thread: OnceLock<Thread>,
}

/// A command that was started.
struct Started {
    event: TimelineEvent,
    running: Running,
}

/// The thread's own state.
struct Turn {
    gate_ns: Ns,
    sampler: Sampler,
    watch: Option<Watch>,
    /// Not yet started, the next one last.
    waiting: Vec<Planned>,
    started: Vec<Started>,
    /// Number of the event noted last.
    number: u64,
}

impl<'a> TimeLine<'a> {
    pub(crate) fn new(control: &'a Control, engine: &'a dyn Engine, commands: Vec<Planned>, watch: bool) -> Self {
        Self {
            control,
            engine,
            commands,
            watch,
            news: Mutex::default(),
            usable: AtomicU64::new(0),
            over: AtomicBool::new(false),
            thread: OnceLock::new(),
        }
    }

    /// What was seen since the last call.
    pub(crate) fn news(&self) -> News {
        std::mem::take(&mut *locked(&self.news))
    }

    /// Thousandths of CPUs the driver threads can use, if known.
    pub(crate) fn usable_millicpus(&self) -> Option<u64> {
        self.usable.load(Ordering::Relaxed).checked_sub(1)
    }

    /// No session works any more: ends the thread, after the commands still running.
    pub(crate) fn end(&self) {
        self.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.get() {
            thread.unpark();
        }
    }

    /// The thread's life, from the gate's instant to [`TimeLine::end`].
    pub(crate) fn run(&self, gate_ns: Ns) {
        let _ = self.thread.set(std::thread::current());
        let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
        let mut waiting = self.commands.clone();
        waiting.sort_by_key(|planned| std::cmp::Reverse(planned.at_ns));
        let mut turn = Turn {
            gate_ns,
            sampler: Sampler::new(self.control.sessions()),
            watch: self.watch.then(|| Watch::new(self.control.thread_ids())),
            waiting,
            started: Vec::new(),
            number: FIRST_NUMBER,
        };
        self.note_usable(&turn);
        let mut random = SplitMix64(gate_ns);
        let mut tick_ns = tick_in(0, &mut random);
        while !self.over.load(Ordering::Acquire) {
            let now_ns = self.since(gate_ns);
            if now_ns >= tick_ns {
                self.tick(&mut turn, now_ns);
                // Ticks that were slept through are not made up for.
                tick_ns = tick_in(now_ns / INTERVAL_NS + 1, &mut random);
            }
            self.start_due(&mut turn);
            self.reap(&mut turn);
            let next_ns = turn.waiting.last().map_or(tick_ns, |next| next.at_ns);
            let left_ns = next_ns.min(tick_ns).saturating_sub(self.since(gate_ns));
            let mut sleep = Duration::from_nanos(left_ns);
            if !turn.started.is_empty() {
                sleep = sleep.min(LOOK);
            }
            std::thread::park_timeout(sleep);
        }
        self.finish(turn);
    }

    fn since(&self, gate_ns: Ns) -> Ns {
        self.control.clock.now_ns().saturating_sub(gate_ns)
    }

    fn tick(&self, turn: &mut Turn, at_ns: Ns) {
        turn.sampler.tick(at_ns, &self.control.board, self.engine);
        let changes = turn.watch.as_mut().map_or_else(Vec::new, Watch::changes);
        self.note_usable(turn);
        let part = turn.sampler.take();
        locked(&self.news).activity.append(part);
        for change in changes {
            let event = described(change);
            self.note(turn, at_ns, event);
        }
    }

    fn note_usable(&self, turn: &Turn) {
        let usable = turn.watch.as_ref().and_then(Watch::usable_millicpus);
        let word = usable.map_or(0, |usable| usable + 1);
        self.usable.store(word, Ordering::Relaxed);
    }

    /// Numbers an event and tells it; returns it for later words.
    fn note(&self, turn: &mut Turn, at_ns: Ns, mut event: TimelineEvent) -> TimelineEvent {
        turn.number += 1;
        event.number = turn.number;
        event.at_ns = at_ns;
        event.wall = jiff::Timestamp::now().to_string();
        locked(&self.news).events.push(event.clone());
        event
    }

    fn start_due(&self, turn: &mut Turn) {
        while turn.waiting.last().is_some_and(|next| next.at_ns <= self.since(turn.gate_ns)) {
            let Some(planned) = turn.waiting.pop() else {
                return;
            };
            let at_ns = self.since(turn.gate_ns);
            let mut event = of_command(&planned);
            match planned.job.start() {
                Ok(running) => {
                    let event = self.note(turn, at_ns, event);
                    turn.started.push(Started { event, running });
                }
                Err(error) => {
                    event.end = Some(not_started(&error));
                    self.note(turn, at_ns, event);
                }
            }
        }
    }

    /// Notes the commands that ended.
    fn reap(&self, turn: &mut Turn) {
        turn.started.retain_mut(|started| {
            started.event.end = started.running.ended();
            if started.event.end.is_some() {
                locked(&self.news).events.push(started.event.clone());
            }
            started.event.end.is_none()
        });
    }

    /// After the last operation: commands that run have [`GRACE`], those not begun are told.
    fn finish(&self, mut turn: Turn) {
        let over = Instant::now();
        while !turn.started.is_empty() && over.elapsed() < GRACE && !self.control.abandoned() {
            self.reap(&mut turn);
            std::thread::park_timeout(LOOK);
        }
        let why = format!("killed: it was still running {} s after the run", over.elapsed().as_secs());
        for Started { mut event, running } in turn.started.drain(..) {
            event.end = Some(running.kill(&why));
            locked(&self.news).events.push(event);
        }
        while let Some(planned) = turn.waiting.pop() {
            let mut event = of_command(&planned);
            event.output = None;
            event.end = Some(assay_measure::timeline::CommandEnd {
                status: "not started: the run ended before its start time".to_owned(),
                ..Default::default()
            });
            self.note(&mut turn, planned.at_ns, event);
        }
    }
}

/// The instant of the tick in interval `number`, ns after the gate: drawn anew in each, as work at a fixed rate would
/// hide between ticks at a fixed rate, or be met by every one of them.
fn tick_in(number: u64, random: &mut SplitMix64) -> Ns {
    number * INTERVAL_NS + random.next_u64() % INTERVAL_NS
}

/// Ends the time line also when its owner panics.
pub(crate) struct EndOnDrop<'a, 'b>(pub &'a TimeLine<'b>);

impl Drop for EndOnDrop<'_, '_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

fn blank(kind: TimelineKind, text: String) -> TimelineEvent {
    TimelineEvent {
        number: 0,
        at_ns: 0,
        wall: String::new(),
        kind,
        text,
        from: None,
        to: None,
        output: None,
        end: None,
    }
}

fn of_command(planned: &Planned) -> TimelineEvent {
    let name = planned.job.output.file_name().map(Path::new);
    TimelineEvent {
        output: name.map(|name| name.display().to_string()),
        ..blank(TimelineKind::Command, planned.text.clone())
    }
}

fn described(change: Change) -> TimelineEvent {
    let (kind, text) = match change.limit {
        Limit::Online => (TimelineKind::OnlineCpus, "of the host"),
        Limit::Quota => (TimelineKind::CpuQuota, "of the control group"),
        Limit::Affinity => (TimelineKind::Affinity, "of the driver threads"),
        Limit::MainAffinity => (
            TimelineKind::Affinity,
            "of the process's first thread alone; the driver threads keep theirs (taskset -a moves all)",
        ),
    };
    TimelineEvent { from: Some(change.from), to: Some(change.to), ..blank(kind, text.to_owned()) }
}
