//! Output during the jobs: fio's progress line, and its periodic report.

use super::sink::Sink;
use crate::exit::Failure;
use crate::fleet_part;
use crate::progress::Line;
use crate::ui;
use assay_run::probe::{Measured, Steps};
use assay_storage::StorageMeasured;
use assay_storage::readings::StorageLive;
use assay_storage::record::fio;
use assay_storage::spec::{Eta, OutputOptions};
use std::any::Any;
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

/// Receives the probe's progress.
pub(super) struct Watch<'a> {
    options: &'a OutputOptions,
    sink: &'a Sink,
    state: Mutex<State>,
}

struct State {
    line: Line,
    /// The line was written as a separate line, or the watch began.
    newline: Instant,
    shown: Option<Instant>,
    /// No report has been printed yet.
    first: bool,
    /// The line on a pipe was not ended.
    open: bool,
    /// Why a report could not be written; the measurement continues.
    unwritten: Option<Failure>,
}

impl<'a> Watch<'a> {
    pub(super) fn new(options: &'a OutputOptions, sink: &'a Sink) -> Self {
        Self {
            options,
            sink,
            state: Mutex::new(State {
                line: Line::new(),
                newline: Instant::now(),
                shown: None,
                first: true,
                open: false,
                unwritten: None,
            }),
        }
    }

    /// Leaves the terminal as it was; says whether no report was printed yet, and why one could
    /// not be.
    pub(super) fn ended(&self) -> (bool, Result<(), Failure>) {
        let mut state = self.state();
        state.line.clear();
        if state.open {
            ui::say("");
        }
        (state.first, state.unwritten.take().map_or(Ok(()), Err))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked while it held the line spoils nothing but the line.
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Whether so long has passed since then, allowing for a clock that ticks a little early.
fn passed(since: Option<Instant>, ns: u64) -> bool {
    const EARLY: Duration = Duration::from_millis(100);
    since.is_none_or(|since| since.elapsed() + EARLY >= Duration::from_nanos(ns))
}

impl Steps for Watch<'_> {
    fn ready(&self) {
        fleet_part::ready();
    }

    fn begin(&self) {
        fleet_part::begin();
    }

    fn step(&self, number: usize, of: usize, what: &str) {
        let mut state = self.state();
        if number == 0 {
            state.line.above(what);
        } else if of > 1 && self.options.eta != Eta::Never {
            state.line.due();
            state.line.show(&format!("step {number} of {of}: {what}"));
        }
    }

    fn live(&self, now: &dyn Any) {
        let Some(now) = now.downcast_ref::<StorageLive>() else {
            return;
        };
        let mut state = self.state();
        let text = fio::eta(now);
        if self.options.eta == Eta::Never || text.is_empty() {
            return;
        }
        if let Some(period_ns) = self.options.eta_newline_ns
            && passed(Some(state.newline), period_ns)
        {
            state.newline = Instant::now();
            state.line.above(&text);
            return;
        }
        if !passed(state.shown, self.options.eta_interval_ns.unwrap_or(0)) {
            return;
        }
        state.shown = Some(Instant::now());
        if self.options.eta == Eta::Always && !ui::is_live() {
            ui::redraw(&text);
            state.open = true;
        } else {
            state.line.show(&text);
        }
    }

    fn status(&self, readings: &dyn Measured) {
        let readings: &dyn Any = readings;
        let Some(StorageMeasured(readings)) = readings.downcast_ref() else {
            return;
        };
        let mut state = self.state();
        let text = super::reports(self.options, readings, None, state.first);
        state.first = false;
        if let Err(failure) = self.sink.put(&text) {
            state.unwritten = Some(failure);
        }
    }
}
