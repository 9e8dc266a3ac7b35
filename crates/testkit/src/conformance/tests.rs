//! The suite itself: a good engine passes, each kind of bad one is found out.

use super::*;
use crate::sim_engine::{Delay, SimEngine, SimOptions};
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Completion, Driver, EngineError, Outcome, Submit, Tag};
use assay_run::workload::Workload;
use std::time::Duration;

fn simulated(options: &SimOptions) -> Vec<String> {
    suite(&mut |plan| {
        let clock = Clock::simulated();
        Subject { engine: Box::new(SimEngine::new(plan, &assay_slob::Slob, &clock, options.clone())), clock }
    })
}

#[test]
fn the_simulated_engine_passes_in_every_mode() {
    for (room, blocking) in [(0, false), (2, false), (0, true)] {
        let options = SimOptions {
            select: Delay::Exponential(1_000_000),
            scan: Delay::PerRow(50_000),
            room,
            blocking,
            ..SimOptions::default()
        };
        let violations = simulated(&options);
        assert!(violations.is_empty(), "room {room}: {violations:#?}");
    }
}

#[test]
fn a_missing_row_is_found() {
    let violations = simulated(&SimOptions { loses_a_row: true, ..SimOptions::default() });
    assert!(violations.iter().any(|text| text.starts_with("rows:")), "{violations:#?}");
    assert!(violations.iter().any(|text| text.starts_with("run:")), "{violations:#?}");
}

#[test]
fn a_driver_that_cannot_open_is_found() {
    let violations = simulated(&SimOptions { refuses: true, ..SimOptions::default() });
    assert!(violations.iter().any(|text| text.contains("cannot be opened")));
}

/// An engine that breaks one promise.
#[derive(Clone, Copy, PartialEq)]
enum Breach {
    TwiceReturned,
    StampAhead,
    StatsGoBack,
    FullForever,
    NoFacts,
}

struct Bad(Breach, Clock);

struct BadDriver {
    breach: Breach,
    clock: Clock,
    waiting: Vec<(Tag, u64)>,
    calls: u64,
}

impl Engine for Bad {
    fn facts(&self) -> Vec<Fact> {
        let fact = Fact::new("engine", "bad");
        if self.0 == Breach::NoFacts { Vec::new() } else { vec![fact] }
    }

    fn workload(&self) -> &dyn Workload {
        &assay_slob::Slob
    }

    fn driver_threads(&self, _sessions: usize, _cpus: usize) -> usize {
        1
    }

    fn driver<'a>(&'a self, _: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(BadDriver { breach: self.0, clock: self.1.clone(), waiting: Vec::new(), calls: 0 }))
    }

    fn sample(&self) -> StatSet {
        StatSet::default()
    }

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    fn close(&self) -> Result<(), EngineError> {
        Ok(())
    }
}

impl Driver for BadDriver {
    fn submit(&mut self, tag: Tag, op: &Op, _start_ns: u64) -> Submit {
        if self.breach == Breach::FullForever {
            return Submit::Full;
        }
        self.waiting.push((tag, plan().rows_expected(op)));
        Submit::Queued
    }

    fn reap(&mut self, _: Duration, out: &mut Vec<Completion>) -> Result<(), EngineError> {
        let ahead = u64::from(self.breach == Breach::StampAhead) * 60_000_000_000;
        for (tag, rows) in self.waiting.drain(..) {
            for _ in 0..=u32::from(self.breach == Breach::TwiceReturned) {
                out.push(Completion {
                    tag,
                    outcome: Outcome { end_ns: self.clock.now_ns() + ahead, result: Ok(rows) },
                });
            }
        }
        Ok(())
    }

    fn stats(&mut self, into: &mut StatSet) {
        self.calls += 1;
        let up = 1000 + self.calls;
        let down = 1000 - self.calls;
        into.add(counter_catalog::TABLE_SCANS, if self.breach == Breach::StatsGoBack { down } else { up });
    }
}

#[test]
fn every_breach_is_found_out() {
    for (breach, word) in [
        (Breach::TwiceReturned, "nothing in flight"),
        (Breach::StampAhead, "end stamp"),
        (Breach::StatsGoBack, "went back"),
        (Breach::FullForever, "Full"),
        (Breach::NoFacts, "facts"),
    ] {
        let violations = suite(&mut |_| Subject { engine: Box::new(Bad(breach, Clock::real())), clock: Clock::real() });
        assert!(violations.iter().any(|text| text.contains(word)), "{word}: {violations:#?}");
    }
}
