//! The collector: asks the driver threads for their counters at the marks, adds the readings of the engine and the
//! host, and keeps the series.
//!
//! It runs on the thread that called [`execute`](crate::execute()) and sleeps between marks.

use crate::control::{Control, Failure, Finished, Published, Slot};
use crate::engine::Engine;
use crate::host::Sampler;
use crate::observer::{Mark, Observer};
use crate::plan::Plan;
use crate::stop::Stop;
use crate::timeline::TimeLine;
use assay_measure::clock::{NS_PER_S, Ns};
use assay_measure::counter_catalog::ARRIVALS_WAITING;
use assay_measure::history::ActivityHistory;
use assay_measure::snapshot::{DriverReading, SessionReading, Snapshot, StatSet};
use assay_measure::timeline::{self, TimelineEvent};
use std::sync::Arc;
use std::time::Duration;

/// How often a waiting collector looks at the stop request.
const POLL: Duration = Duration::from_millis(20);
/// A snapshot should span no more than this (awr-statistics 1.1).
const SKEW_NS_MAX: Ns = 50_000_000;

/// The marks taken between gate and drain.
pub(crate) struct Marks {
    pub begin: Snapshot,
    pub end: Snapshot,
    pub series: Vec<Snapshot>,
    /// The stop came before the measured window began.
    pub before_begin: bool,
    /// Sessions were told to stop; false if all ended by themselves (WORK_LOOP).
    pub told_to_stop: bool,
}

/// Snapshots kept in memory at most: a quarter of an hour of seconds, some 250 MB
/// where 64 sessions do everything at once.
const SERIES_MAX: usize = 900;

/// The cumulative snapshots kept for the record. A longer run keeps every second,
/// fourth ... of them, so that memory stays bounded; observers still see each one.
#[derive(Debug, Default)]
struct Series {
    /// Whether the observer needs them.
    is_kept: bool,
    kept: Vec<Snapshot>,
    /// Only full seconds divisible by two to this power are kept.
    thinned: u32,
}

impl Series {
    /// Adds the snapshot of full second `second`; one that is not (`None`) always stays.
    fn push(&mut self, second: Option<u64>, now: Snapshot) {
        let is_between = second.is_some_and(|second| !second.is_multiple_of(1 << self.thinned));
        if is_between || !self.is_kept {
            return;
        }
        self.kept.push(now);
        if self.kept.len() > SERIES_MAX {
            self.thinned += 1;
            let thinned = self.thinned;
            // A second's snapshot is taken a little after it; a begin between two is as good
            // as a second, because the window's own snapshots are kept apart.
            self.kept.retain(|snapshot| (snapshot.at_ns / NS_PER_S).is_multiple_of(1 << thinned));
        }
    }
}

/// What the time line has told so far.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub activity: Option<ActivityHistory>,
    pub events: Vec<TimelineEvent>,
}

/// See the module.
pub(crate) struct Collector<'a> {
    pub plan: &'a Plan,
    pub control: &'a Control,
    pub engine: &'a dyn Engine,
    pub stop: &'a Stop,
    pub observer: &'a mut dyn Observer,
    /// The time line; absent in simulated time.
    pub line: Option<&'a TimeLine<'a>>,
    pub seen: Seen,
    pub sampler: Option<Sampler>,
    /// Instant of the gate by the run's clock; the largest value until it opens.
    pub gate_ns: Ns,
    /// The last thing each thread said.
    pub last: Vec<Arc<Published>>,
    pub epoch: u64,
    /// Largest skew above the limit; 0 while all snapshots kept it.
    pub skew_ns_max: Ns,
}

/// What ended a wait for publications.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    /// Every thread answered the mark.
    Marked,
    /// Every thread reached the stop instant or finished.
    Ended {
        /// At least one was told to stop.
        told: bool,
    },
}

/// Which instant a snapshot is given.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Instant {
    /// Between the first and the last thread's publication.
    Middle,
    /// The last thread's: the threads ended at different times by design.
    Last,
}

impl Collector<'_> {
    /// The reading before the gate: every thread is ready and none has begun.
    pub(crate) fn gate(&mut self) -> Snapshot {
        let mut snapshot = self.assemble(Instant::Last);
        snapshot.at_ns = 0;
        self.tell(Mark::Gate, &snapshot);
        snapshot
    }

    /// Takes every mark until the last session has been told to stop.
    pub(crate) fn marks(&mut self, gate: &Snapshot) -> Marks {
        let warmup_ns = self.plan.warmup_ns;
        let mut begin = None;
        if warmup_ns == 0 {
            self.tell(Mark::Begin, gate);
            begin = Some(gate.clone());
        }
        self.observer.phase(if begin.is_some() { "measure" } else { "warm-up" });
        let mut series = Series { is_kept: self.observer.needs_series(), ..Series::default() };
        let mut second = 1;
        let told = loop {
            let at = self.mark_instant(second, begin.is_none());
            if let Waited::Ended { told } = self.wait(at) {
                break told;
            }
            let now = self.assemble(Instant::Middle);
            self.note_skew(&now);
            let full = (at == second * NS_PER_S).then_some(second);
            if full.is_some() {
                self.tell(Mark::Second, &now);
                // A host that slept through seconds gets one reading, not a burst of them.
                second = (now.at_ns / NS_PER_S).max(second) + 1;
            }
            if begin.is_none() && at == warmup_ns {
                self.tell(Mark::Begin, &now);
                self.observer.phase("measure");
                begin = Some(now.clone());
            }
            series.push(full, now);
            self.look_at_stop();
            self.ask(second, begin.is_none());
        };
        let end = self.end(told);
        series.push(None, end.clone());
        Marks {
            before_begin: begin.is_none(),
            begin: begin.unwrap_or_else(|| gate.clone()),
            end,
            series: series.kept,
            told_to_stop: told,
        }
    }

    /// The reading at the stop instant, while the sessions still counted as working.
    fn end(&mut self, told: bool) -> Snapshot {
        let end = if told {
            let end = self.assemble(Instant::Middle);
            self.note_skew(&end);
            end
        } else {
            self.assemble(Instant::Last)
        };
        self.tell(Mark::End, &end);
        self.control.answer(self.epoch, true);
        end
    }

    /// Tells the observer of a snapshot, after what happened before it.
    pub(crate) fn tell(&mut self, mark: Mark, now: &Snapshot) {
        let news = self.line.map(TimeLine::news).unwrap_or_default();
        if !news.activity.steps.is_empty() {
            self.observer.activity(&news.activity);
            let history = self.seen.activity.get_or_insert_default();
            history.append(news.activity);
        }
        for event in news.events {
            self.observer.event(&event);
            timeline::note(&mut self.seen.events, event);
        }
        self.observer.snapshot(mark, now);
    }

    fn note_skew(&mut self, snapshot: &Snapshot) {
        if snapshot.skew_ns > SKEW_NS_MAX {
            self.skew_ns_max = self.skew_ns_max.max(snapshot.skew_ns);
        }
    }

    /// The next mark, ns after the gate: a full second or the begin of the window.
    /// The end needs no mark: a thread publishes by itself before it stops.
    fn mark_instant(&self, second: u64, warming_up: bool) -> Ns {
        let next = second * NS_PER_S;
        if warming_up {
            return next.min(self.plan.warmup_ns);
        }
        let last = self.control.stop_instant().saturating_sub(self.gate_ns);
        if next < last { next } else { Ns::MAX - self.gate_ns }
    }

    /// Asks for the first mark, before the gate opens.
    pub(crate) fn ask_first(&mut self) {
        self.ask(1, self.plan.warmup_ns > 0);
    }

    fn ask(&mut self, second: u64, warming_up: bool) {
        let at = self.mark_instant(second, warming_up);
        let answered = self.epoch;
        self.epoch += 1;
        self.control.ask(self.epoch, self.gate_ns + at);
        self.control.answer(answered, false);
    }

    /// The first request ends the phase, the second leaves what is in flight.
    fn look_at_stop(&self) {
        if self.stop.requested() || self.observer.is_enough() {
            self.control.stop_at(self.control.clock.now_ns());
        }
        if self.stop.abandoned() {
            self.control.abandon();
        }
        let clock = &self.control.clock;
        let late_ns = clock.now_ns().saturating_sub(self.control.stop_instant());
        if late_ns > 0 && !clock.is_simulated() {
            self.engine.overdue(Duration::from_nanos(late_ns));
        }
    }

    /// Waits until all threads answered the current mark, or all reached the end.
    fn wait(&mut self, mark_at: Ns) -> Waited {
        loop {
            self.look_at_stop();
            let (mut answered, mut answers, mut ended, mut told) = (true, 0, true, false);
            for thread in 0..self.control.threads() {
                let slot = self.control.slot(thread);
                let finished = slot.finished.is_some();
                let marked = slot.mark.as_ref().is_some_and(|(epoch, _)| *epoch == self.epoch);
                answers += u32::from(marked);
                answered &= marked || finished;
                ended &= finished || slot.end.is_some();
                told |= slot.end.is_some();
            }
            if answered && answers > 0 {
                self.take(|slot| slot.mark.as_ref().map(|(_, published)| published.clone()));
                return Waited::Marked;
            }
            // A mark that some thread never saw because it stopped before has nothing left to say.
            if ended {
                self.take(|slot| slot.end.clone());
                return Waited::Ended { told };
            }
            std::thread::park_timeout(self.poll(self.gate_ns.saturating_add(mark_at)));
        }
    }

    /// Sleeps up to the mark itself in one go unless a stop must be looked at before.
    fn poll(&self, mark_at: Ns) -> Duration {
        let left = mark_at.saturating_sub(self.control.clock.now_ns());
        Duration::from_nanos(left).clamp(Duration::from_millis(1), POLL)
    }

    /// Keeps the newest word of each thread: what was asked for, or its last one.
    fn take(&mut self, pick: impl Fn(&Slot) -> Option<Arc<Published>>) {
        for thread in 0..self.control.threads() {
            let slot = self.control.slot(thread);
            if let Some(published) = pick(&slot) {
                self.last[thread] = published;
            } else if let Some(finished) = &slot.finished {
                self.last[thread] = finished.last.clone();
            }
        }
    }

    /// Merges the threads' last words with the engine's and the host's.
    pub(crate) fn assemble(&mut self, instant: Instant) -> Snapshot {
        let mut stats = StatSet::default();
        let mut driver = DriverReading::default();
        let (mut first, mut last) = (Ns::MAX, 0);
        for published in &self.last {
            stats.merge(&published.stats);
            driver.merge(&published.driver);
            first = first.min(published.at_ns);
            last = last.max(published.at_ns);
        }
        if self.engine.server().is_none() || self.observer.reads_server() {
            stats.merge(&self.engine.sample());
        }
        let read_at = self.control.clock.now_ns().max(last);
        if let Some(queue) = &self.control.queue {
            // Nobody takes one after the stop.
            let until = read_at.min(self.control.stop_instant());
            let waiting = queue.waiting(until.saturating_sub(self.gate_ns));
            stats.gauges.insert(ARRIVALS_WAITING.to_owned(), waiting);
        }
        let mut host = self.sampler.as_mut().map(Sampler::sample).unwrap_or_default();
        host.usable_millicpus = self.line.and_then(TimeLine::usable_millicpus);
        let at = match instant {
            Instant::Middle => first + (last - first) / 2,
            Instant::Last => last,
        };
        Snapshot {
            at_ns: at.saturating_sub(self.gate_ns),
            wall: jiff::Timestamp::now().to_string(),
            skew_ns: read_at - first,
            stats,
            driver,
            host,
        }
    }

    /// Waits until every thread has finished, then returns what they leave behind.
    pub(crate) fn drain(&mut self) -> Drained {
        self.observer.phase("drain");
        loop {
            self.look_at_stop();
            let all = (0..self.control.threads()).all(|thread| self.control.slot(thread).finished.is_some());
            if all {
                break;
            }
            std::thread::park_timeout(POLL);
        }
        let mut drained = Drained::default();
        for thread in 0..self.control.threads() {
            let finished = self.control.slot(thread).finished.take();
            let Some(finished) = finished else { continue };
            let Finished { last, mut sessions, failure, in_flight } = finished;
            self.last[thread] = last;
            drained.sessions.append(&mut sessions);
            if let Some(failure) = failure {
                drained.failures.push((thread, failure));
                drained.unanswered += in_flight;
            }
        }
        drained.sessions.sort_unstable_by_key(|reading| reading.session);
        drained
    }
}

/// What the threads leave behind.
#[derive(Debug, Default)]
pub(crate) struct Drained {
    pub sessions: Vec<SessionReading>,
    pub failures: Vec<(usize, Failure)>,
    /// Sessions of failed threads that still waited for the engine, besides those that the failures name.
    pub unanswered: usize,
}
