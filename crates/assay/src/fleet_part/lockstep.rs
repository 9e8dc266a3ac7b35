//! The tests of a plan, which all hosts of a fleet begin together: before they lay anything out, and, where the probe says that
//! it has, before the first request.

use super::{FleetPart, begin, get, reach};
use assay_control::fleet::clock::mono_ns;
use assay_control::fleet::message::Begin;
use assay_control::fleet::worker::Said;
use assay_measure::clock::Ns;
use assay_measure::locked::locked;
use assay_platform::hosts::Ran;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::sync::Mutex;

/// This host among the others.
#[derive(Debug)]
pub(crate) struct Lockstep<'a> {
    part: &'static FleetPart,
    stop: &'a Stop,
    now: Mutex<Now>,
}

/// Where it is.
#[derive(Debug, Default)]
struct Now {
    /// The first step that has not begun: each test has two.
    next: u64,
    /// When the test's first request is made, once all hosts are ready for it.
    ordered_ns: Option<Ns>,
    began_ns: Ns,
    ran: Vec<Ran>,
}

impl<'a> Lockstep<'a> {
    /// Where this process is a part of a fleet's run.
    pub(crate) fn of(stop: &'a Stop) -> Option<Self> {
        get().map(|part| Self { part, stop, now: Mutex::default() })
    }

    /// Waits until all hosts begin a test, by its place in the plan; whether they do so with this host. It has none of the tests that
    /// others began while it was cut off, and none after a stop.
    pub(crate) fn begin_test(&self, at: usize) -> bool {
        let step = 2 * at as u64;
        let mut now = locked(&self.now);
        let is_ahead = step >= now.next;
        let ordered = is_ahead.then(|| self.await_step(&mut now, step)).flatten();
        let Some(ordered) = ordered.filter(|begin| begin.step == step) else { return false };
        match step {
            // The run itself begins.
            0 => begin(),
            _ => reach(ordered.at_ns),
        }
        now.ordered_ns = None;
        now.began_ns = mono_ns();
        true
    }

    /// It has ended.
    pub(crate) fn end_test(&self, test: &str) {
        let mut now = locked(&self.now);
        let after = |ns: Ns| ns.saturating_sub(self.part.gate_ns.get().copied().unwrap_or(ns));
        let ran = Ran { test: test.to_owned(), begin_ns: after(now.began_ns), end_ns: after(mono_ns()) };
        now.ran.push(ran);
    }

    /// When each test was made.
    pub(crate) fn ran(self) -> Vec<Ran> {
        self.now.into_inner().unwrap_or_default().ran
    }

    fn await_step(&self, now: &mut Now, step: u64) -> Option<Begin> {
        let waits = if step == 0 { Said::Ready(None) } else { Said::Waits(step) };
        let ordered = self.part.await_order(self.stop, &waits)?;
        // The gate of the run is of its first start.
        let _ = self.part.begin.set(ordered);
        now.next = ordered.step + 1;
        Some(ordered)
    }
}

impl Steps for Lockstep<'_> {
    fn step(&self, _: usize, _: usize, _: &str) {}

    fn ready(&self) {
        let mut now = locked(&self.now);
        let step = now.next;
        // The second of a test; where the others went on without this host, it is late.
        let ordered = (step % 2 == 1).then(|| self.await_step(&mut now, step)).flatten();
        now.ordered_ns = ordered.map(|ordered| ordered.at_ns);
    }

    fn begin(&self) {
        let ordered_ns = locked(&self.now).ordered_ns.take();
        if let Some(at_ns) = ordered_ns {
            reach(at_ns);
            locked(&self.now).began_ns = mono_ns();
        }
    }

    fn is_one_of_many(&self) -> bool {
        true
    }
}
