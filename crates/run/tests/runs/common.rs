//! Whole runs for the tests.

use assay_measure::clock::Clock;
use assay_measure::snapshot::{DriverReading, RunData, Snapshot};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::trace::Row;
use assay_run::{Mark, Observer, Options, RunError, execute};
use assay_slob::Slob;
use assay_testkit::sim_engine::{SimEngine, SimOptions};
use assay_testkit::trace::Memory;

/// What a simulated run leaves: the data, the trace and every snapshot told to an observer.
pub(crate) struct Ran {
    pub(crate) data: RunData,
    pub(crate) rows: Vec<Row>,
    pub(crate) told: Told,
    pub(crate) closes: u64,
}

/// Keeps all that an observer is told; asks for a stop at a chosen second.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) phases: Vec<String>,
    pub(crate) marks: Vec<(Mark, Snapshot)>,
    pub(crate) stop_at_second: Option<(u64, u32)>,
    pub(crate) stop: Stop,
    /// From this second on it has enough.
    pub(crate) enough_at_second: Option<u64>,
    /// What it was told is enough: the data needs no series.
    pub(crate) makes_series: bool,
}

impl Observer for Told {
    fn phase(&mut self, name: &str) {
        self.phases.push(name.to_owned());
    }

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        self.marks.push((mark, now.clone()));
        if let Some((second, requests)) = self.stop_at_second
            && mark == Mark::Second
            && now.at_ns >= second * 1_000_000_000
        {
            self.stop_at_second = None;
            for _ in 0..requests {
                self.stop.request();
            }
        }
    }

    fn is_enough(&self) -> bool {
        let now_ns = self.marks.last().map_or(0, |(_, now)| now.at_ns);
        self.enough_at_second.is_some_and(|second| now_ns >= second * 1_000_000_000)
    }

    fn needs_series(&self) -> bool {
        !self.makes_series
    }
}

pub(crate) fn quiet() -> Options {
    Options { host: false, calibrate: false, ..Options::default() }
}

pub(crate) fn try_simulate(plan: &Plan, sim: SimOptions, told: Told) -> Result<Ran, Box<(RunError, u64)>> {
    let clock = Clock::simulated();
    let engine = SimEngine::new(plan, &Slob, &clock, sim);
    let trace = Memory::new();
    let options = Options { trace: Some(Box::new(trace.clone())), ..quiet() };
    let mut told = told;
    let stop = told.stop.clone();
    let outcome = execute(plan, &engine, &clock, &stop, &mut told, options);
    let closes = engine.closes();
    match outcome {
        Ok(data) => Ok(Ran { data, rows: trace.rows(), told, closes }),
        Err(error) => Err(Box::new((error, closes))),
    }
}

pub(crate) fn simulate(plan: &Plan, sim: SimOptions) -> Ran {
    try_simulate(plan, sim, Told::default()).map_err(|error| error.0.to_string()).expect("a run that ends")
}

pub(crate) fn ops(driver: &DriverReading) -> u64 {
    driver.ops.iter().map(|op| op.service.count()).sum()
}

pub(crate) fn ops_of(driver: &DriverReading, kind: &str) -> u64 {
    driver.ops.iter().filter(|op| op.kind == kind).map(|op| op.service.count()).sum()
}
