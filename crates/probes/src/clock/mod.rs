//! `assay clock`: what reading the clock costs, how fine it is, whether the CPUs agree on it, and what it costs a database that
//! times its steps.
//!
//! Owns the loops that read (`reading`), its figures (`info`, `record`) and what is said of them (`findings`, `page`). See `README.md`.

mod findings;
mod info;
mod page;
mod reading;
mod record;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::host::{Placement, ThreadTimes, thread_times};
use crate::load;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Steps};
use assay_run::stop::Stop;
use reading::{CLOCKS, ClockReading, Offset};
use std::ops::RangeInclusive;
use std::path::Path;
use std::time::{Duration, Instant};

/// Rounds of everything, one a second where there is time: a host that is busier in one second than in the next is so for each clock.
const ROUNDS: RangeInclusive<usize> = 20..=600;
/// Part of the time in which the CPUs' clocks are compared.
const COMPARING: f64 = 0.3;
/// Above so many CPUs each is compared with the first alone, from which follows how far two others may be apart.
const ALL_PAIRS: usize = 8;
/// A pair is compared in fewer rounds where its time in each were shorter: two threads take some 0.1 ms to start, and on a busy CPU some
/// ms until it is their turn. Decided here.
const EXCHANGE: Duration = Duration::from_millis(20);

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure what reading the clock costs, how fine it is, and whether the CPUs agree on the time",
    more: "This takes about ten seconds. assay reads each clock that databases use in a tight loop, as pg_test_timing does; looks at \
           the steps between readings; tells reads in user space (vDSO) from system calls by their cost; bounds how far the CPUs' \
           clocks are apart; and says what that costs a database that times each row or each read. It measures the clock source in \
           use and switches nothing. --format tool prints what pg_test_timing prints.",
    usual_time: Some("10s"),
    follows: &[("p50", &["clock_read_ns_p50"])],
    ..ProbeSpec::new("clock", &record::KIND, |request| {
        Ok(Box::new(Aim { time: request.time, source: Source::at(Path::new(SOURCES)), placement: Placement::here() }))
    })
};

/// Where the kernel tells of its clock sources.
const SOURCES: &str = "/sys/devices/system/clocksource/clocksource0";

/// The kernel's clock sources; `unknown` where it does not tell.
#[derive(Clone, Debug, Default, PartialEq)]
struct Source {
    current: String,
    available: String,
}

impl Source {
    fn at(dir: &Path) -> Self {
        let word = |name: &str| {
            let text = std::fs::read_to_string(dir.join(format!("{name}_clocksource"))).unwrap_or_default();
            let word = text.trim();
            if word.is_empty() { "unknown" } else { word }.to_owned()
        };
        Self { current: word("current"), available: word("available") }
    }
}

/// What was measured, before it is a record.
#[derive(Clone, Debug, Default, PartialEq)]
struct ClockReadings {
    source: Source,
    /// As in [`CLOCKS`].
    clocks: Vec<ClockReading>,
    /// ns of the cheapest system call, by round.
    system_call_ns: Vec<f64>,
    offsets: Vec<Offset>,
    host: HostWindow,
    thread: ThreadTimes,
    is_optimised: bool,
    is_stopped: bool,
}

impl Measured for ClockReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe with what was asked of it.
struct Aim {
    time: Duration,
    source: Source,
    placement: Placement,
}

impl Aim {
    /// CPUs to be compared.
    fn pairs(&self) -> Vec<(u32, u32)> {
        let cpus = &self.placement.cpus;
        let first = if cpus.len() > ALL_PAIRS { 1 } else { cpus.len() };
        let with_later = |at: usize| cpus[at + 1..].iter().map(move |to| (cpus[at], *to));
        (0..first).flat_map(with_later).collect()
    }

    /// Exchanges of all pairs in all rounds: as many of each.
    fn exchanges(&self, pairs: usize, rounds: usize) -> usize {
        let room = self.time.mul_f64(COMPARING).as_nanos() / EXCHANGE.as_nanos();
        (room as usize / pairs.max(1)).clamp(1, rounds) * pairs
    }
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        vec![
            text("clock_source", "clock source in use", &*self.source.current),
            text("clocks", "clocks", CLOCKS.map(|(name, ..)| name).join(", ")),
            self.placement.line(),
            count("pairs", "pairs of CPUs to compare", self.pairs().len() as u64),
            measuring(self.time),
        ]
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let pairs = self.pairs();
        let rounds = load::seconds(self.time).clamp(*ROUNDS.start(), *ROUNDS.end());
        let exchanges = self.exchanges(pairs.len(), rounds);
        let comparing = if pairs.is_empty() { 0.0 } else { COMPARING };
        let mut readings = ClockReadings {
            source: self.source.clone(),
            clocks: vec![ClockReading::default(); CLOCKS.len()],
            offsets: pairs.into_iter().map(Offset::between).collect(),
            // Profiles of this workspace that keep debug assertions do not optimise.
            is_optimised: !cfg!(debug_assertions),
            ..ClockReadings::default()
        };
        let step = |round| steps.step(round, rounds, "reading the clocks");
        step(0);
        let (around, before, begun) = (Around::begin(), thread_times(), Instant::now());
        for round in 1..=rounds {
            if stop.requested() {
                break;
            }
            step(round);
            // A window takes longer where others have the CPUs: the rounds that are left share what time is left.
            let left = self.time.saturating_sub(begun.elapsed()) / (rounds - round + 1) as u32;
            let share = |part: f64, of: usize| left.mul_f64(part / of.max(1) as f64);
            // Each clock is read in two loops, and the system call is made in one.
            let window = share(1.0 - comparing, 2 * CLOCKS.len() + 1);
            for (reading, (_, clock, _)) in readings.clocks.iter_mut().zip(CLOCKS) {
                reading.take(window, stop, || reading::now_ns(clock));
            }
            readings.system_call_ns.extend(reading::round_ns(window, stop, rustix::process::getppid));
            let (turns, pairs) = ((round - 1) * exchanges / rounds..round * exchanges / rounds, readings.offsets.len());
            let window = share(comparing, turns.len());
            turns.into_iter().try_for_each(|turn| readings.offsets[turn % pairs].exchange(window, stop))?;
        }
        readings.thread = thread_times().since(&before);
        readings.host = around.end();
        readings.is_stopped = stop.requested();
        if readings.system_call_ns.is_empty() { Err(EngineError::Interrupted) } else { Ok(Box::new(readings)) }
    }
}
