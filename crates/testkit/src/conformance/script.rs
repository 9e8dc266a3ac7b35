//! Drives one engine driver by hand and notes every breach of the contract.

use super::Subject;
use assay_measure::clock::{Clock, Ns};
use assay_measure::snapshot::{Reading, StatSet};
use assay_run::engine::{Assignment, Completion, Driver, Op, Outcome, Submit, Tag};
use assay_run::plan::Plan;
use std::collections::BTreeMap;
use std::time::Duration;

/// Reaps without a completion after which an operation counts as lost: 20 s of 10 ms.
const REAPS_MAX: u32 = 2000;
const REAP_WAIT: Duration = Duration::from_millis(10);

/// Everything needed to open the driver.
pub(super) struct Script<'a> {
    subject: &'a Subject,
    plan: &'a Plan,
    found: &'a mut Vec<String>,
}

/// An open driver with its operations under way.
pub(super) struct Open<'a> {
    driver: Box<dyn Driver + 'a>,
    clock: Clock,
    plan: &'a Plan,
    found: &'a mut Vec<String>,
    under_way: BTreeMap<Tag, (Op, Ns)>,
    stats: StatSet,
    /// Rows touched so far.
    pub(super) rows: u64,
}

impl<'a> Script<'a> {
    pub(super) fn new(subject: &'a Subject, plan: &'a Plan, found: &'a mut Vec<String>) -> Self {
        Self { subject, plan, found }
    }

    /// Opens the driver for all sessions on this thread, plays `play`, drops the driver.
    pub(super) fn run<T>(self, play: impl FnOnce(&mut Open<'_>) -> T) -> Option<T> {
        let assignment: Assignment = self.plan.assignments(1).swap_remove(0);
        match self.subject.engine.driver(&assignment) {
            Ok(driver) => {
                let mut open = Open {
                    driver,
                    clock: self.subject.clock.clone(),
                    plan: self.plan,
                    found: self.found,
                    under_way: BTreeMap::new(),
                    stats: StatSet::default(),
                    rows: 0,
                };
                Some(play(&mut open))
            }
            Err(error) => {
                self.found.push(format!("driver: cannot be opened: {error}"));
                None
            }
        }
    }
}

impl Open<'_> {
    pub(super) fn sessions(&self) -> usize {
        self.plan.sessions()
    }

    /// One operation from start to end.
    pub(super) fn one(&mut self, tag: Tag, op: Op) {
        self.begin(tag, op);
        self.finish_all();
    }

    /// Starts an operation, reaping for as long as there is no room.
    pub(super) fn begin(&mut self, tag: Tag, op: Op) {
        let start_ns = self.clock.now_ns();
        for _ in 0..REAPS_MAX {
            match self.driver.submit(tag, &op, start_ns) {
                Submit::Done(outcome) => {
                    self.ended(tag, op, start_ns, outcome);
                    return;
                }
                Submit::Queued => {
                    self.under_way.insert(tag, (op, start_ns));
                    return;
                }
                Submit::Full if self.under_way.is_empty() => {
                    self.found.push(format!("submit: Full for {op:?} with nothing in flight"));
                    return;
                }
                Submit::Full => self.reap(REAP_WAIT),
            }
        }
        self.found.push(format!("submit: no room for {op:?} after {REAPS_MAX} reaps"));
    }

    /// Reaps until nothing is under way.
    pub(super) fn finish_all(&mut self) {
        let mut fruitless = 0;
        while !self.under_way.is_empty() {
            let before = self.under_way.len();
            self.reap(REAP_WAIT);
            fruitless = if self.under_way.len() < before { 0 } else { fruitless + 1 };
            if fruitless == REAPS_MAX {
                self.found.push(format!("reap: {:?} never ended", self.under_way));
                self.under_way.clear();
            }
        }
    }

    /// A reap with nothing in flight.
    pub(super) fn reap_idle(&mut self, wait_ms: u64) {
        let mut out: Vec<Completion> = Vec::new();
        match self.driver.reap(Duration::from_millis(wait_ms), &mut out) {
            Ok(()) if out.is_empty() => {}
            Ok(()) => self.found.push(format!("reap: {out:?} out of nothing")),
            Err(error) => self.found.push(format!("reap: idle: {error}")),
        }
    }

    fn reap(&mut self, wait: Duration) {
        let mut out = Vec::new();
        if let Err(error) = self.driver.reap(wait, &mut out) {
            self.found.push(format!("reap: {error}"));
            self.under_way.clear();
        }
        for Completion { tag, outcome } in out {
            match self.under_way.remove(&tag) {
                Some((op, start_ns)) => self.ended(tag, op, start_ns, outcome),
                None => self.found.push(format!("reap: tag {tag} has nothing in flight")),
            }
        }
    }

    fn ended(&mut self, tag: Tag, op: Op, start_ns: Ns, outcome: Outcome) {
        let now_ns = self.clock.now_ns();
        if outcome.end_ns < start_ns || outcome.end_ns > now_ns {
            self.found.push(format!(
                "end stamp {} of {op:?} is not between start {start_ns} and now {now_ns}",
                outcome.end_ns
            ));
        }
        let expected = self.plan.rows_expected(&op);
        match outcome.result {
            Ok(rows) if rows == expected => self.rows += rows,
            Ok(rows) => self.found.push(format!("rows: {op:?} touched {rows}, expected {expected}")),
            Err(error) => self.found.push(format!("tag {tag}: {op:?}: {}", error.text)),
        }
    }

    /// Counters, waits and I/O of this thread may only grow, and none may vanish.
    pub(super) fn stats_grow(&mut self) {
        let mut now = StatSet::default();
        self.driver.stats(&mut now);
        for (name, earlier) in &self.stats.counters {
            let grown = match (earlier, now.counters.get(name)) {
                (Reading::Count(earlier), Some(Reading::Count(now))) => now >= earlier,
                (Reading::Na(_), Some(_)) => true,
                _ => false,
            };
            if !grown {
                self.found.push(format!("stats: {name} went back from {earlier:?}"));
            }
        }
        for earlier in &self.stats.events {
            let same = |event: &&assay_measure::snapshot::EventReading| {
                event.name == earlier.name && event.actor == earlier.actor
            };
            let grown = now.events.iter().find(same).is_some_and(|event| {
                event.waits.count() >= earlier.waits.count() && event.waits.sum_ns() >= earlier.waits.sum_ns()
            });
            if !grown {
                self.found.push(format!("stats: waits of {} went back", earlier.name));
            }
        }
        self.stats = now;
    }
}
