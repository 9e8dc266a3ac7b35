//! The measurement: every kernel on one CPU and on all, over and over, then what CPUs pay to reach each other.

use super::crew::{Shot, shoot};
use super::host;
use super::kernels::{Kernel, Ready};
use super::pairs;
use super::reading::{CpuReadings, PairKind, ShotReading};
use crate::crew::{effective_mhz, pin};
use crate::host::{CpuTimes, Placement};
use assay_measure::clock::{Clock, Ns};
use assay_measure::units::many;
use assay_run::engine::EngineError;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::time::Duration;

/// How often each kernel is measured, interleaved with all others: what changes slowly hits all alike.
pub(super) const REPETITIONS: u32 = 5;
/// The kernels of the scaling curve: one that lives in the core, one in the caches, one in memory.
pub(super) const SCALED: [&str; 3] = ["tuple", "btree-16m", "memcpy-8k-256m"];
/// Shares of the time. The rest is warming up, starting threads and reading the host.
const SHOTS: f64 = 0.72;
const PAIRS: f64 = 0.08;
const WARM: f64 = 0.05;
const WARM_MOST: Duration = Duration::from_millis(500);
/// Above this many CPUs a line is passed from the first CPU to each other, not between every two.
const MATRIX_MOST: usize = 64;
/// Results that were wrong are told one by one up to here.
const WRONG_MOST: usize = 10;

/// What is done at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Step {
    /// A kernel by its name, with this many threads.
    Shot(&'static str, usize, u32),
    /// Two CPUs by turns.
    Pair(PairKind, u32, u32),
}

impl Step {
    fn describe(self) -> String {
        match self {
            Self::Shot(kernel, threads, repetition) => {
                let threads = many(threads as u64, "thread");
                format!("{kernel}, {threads}, repetition {} of {REPETITIONS}", repetition + 1)
            }
            Self::Pair(PairKind::Line, from, to) => {
                format!("a cache line between CPU {from} and {to}")
            }
            Self::Pair(PairKind::Pipe, from, to) => format!("a pipe between CPU {from} and {to}"),
            Self::Pair(PairKind::Wake, from, to) => {
                format!("a wake-up between CPU {from} and {to}")
            }
        }
    }
}

/// All steps, in order.
pub(super) fn steps(kernels: &[&'static Kernel], placement: &Placement) -> Vec<Step> {
    let mut steps = Vec::new();
    let all = placement.cpus.len();
    for repetition in 0..REPETITIONS {
        for kernel in kernels {
            let mut counts = if SCALED.contains(&kernel.name) { placement.counts() } else { vec![1, all] };
            counts.dedup();
            steps.extend(counts.iter().map(|n| Step::Shot(kernel.name, *n, repetition)));
        }
    }
    let cpus = &placement.cpus;
    for (at, from) in cpus.iter().enumerate() {
        if at > 0 && all > MATRIX_MOST {
            break;
        }
        steps.extend(cpus[at + 1..].iter().map(|to| Step::Pair(PairKind::Line, *from, *to)));
    }
    for kind in [PairKind::Pipe, PairKind::Wake] {
        let partners = cpus.iter().take(2);
        steps.extend(partners.map(|to| Step::Pair(kind, cpus[0], *to)));
    }
    steps
}

/// Takes every step until the time is over or somebody stops it.
pub(super) fn run(
    ready: &[Ready],
    time: Duration,
    clock: &Clock,
    stop: &Stop,
    progress: &dyn Steps,
    readings: &mut CpuReadings,
) -> Result<(), EngineError> {
    let kernels: Vec<&'static Kernel> = ready.iter().map(|ready| ready.kernel).collect();
    let placement = Placement { cpus: readings.cpus.clone(), cores: readings.cores };
    let steps = steps(&kernels, &placement);
    let shots = steps.iter().filter(|step| matches!(step, Step::Shot(..))).count();
    let pairs = steps.len() - shots;
    let window = time.mul_f64(SHOTS / shots.max(1) as f64);
    let budget = time.mul_f64(PAIRS / pairs.max(1) as f64);
    readings.window_ns = window.as_nanos() as u64;
    readings.mhz_before = clocks(&readings.cpus, time.mul_f64(WARM).min(WARM_MOST), clock)?;
    let begun = clock.now_ns();
    for (number, step) in steps.iter().enumerate() {
        if stop.requested() {
            return Ok(());
        }
        progress.step(number + 1, steps.len(), &step.describe());
        match *step {
            Step::Shot(name, threads, repetition) => {
                let Some(ready) = ready.iter().find(|ready| ready.kernel.name == name) else {
                    continue;
                };
                let shot = Shot { ready, cpus: &placement.cpus[..threads], window, clock, stop };
                take(shot, repetition, begun, readings)?;
            }
            Step::Pair(kind, from, to) => {
                let pair = pairs::measure(kind, (from, to), budget, clock, stop)?;
                readings.pairs.push(pair);
            }
        }
    }
    readings.is_pinned = readings.shots.iter().flat_map(|shot| &shot.threads).all(|thread| thread.is_pinned);
    readings.mhz_after = clocks(&readings.cpus, Duration::ZERO, clock)?;
    readings.mhz_told = readings.cpus.iter().map(|cpu| host::cpufreq_mhz(*cpu)).collect();
    Ok(())
}

/// One shot with what the host did meanwhile.
fn take(shot: Shot<'_>, repetition: u32, begun: Ns, readings: &mut CpuReadings) -> Result<(), EngineError> {
    let before = CpuTimes::read();
    let (threads, wrong) = shoot(shot)?;
    let steal = before.zip(CpuTimes::read());
    readings.shots.push(ShotReading {
        kernel: shot.ready.kernel.name,
        repetition,
        threads,
        ended_ns: shot.clock.now_ns() - begun,
        steal_pct: steal.and_then(|(before, after)| after.steal_pct(&before)),
    });
    let room = WRONG_MOST.saturating_sub(readings.wrong.len());
    let wrong = wrong.iter().take(room).map(ToString::to_string);
    readings.wrong.extend(wrong);
    Ok(())
}

/// Effective clock of each CPU, one after the other, each warmed up by its share of `warm`.
pub(super) fn clocks(cpus: &[u32], warm: Duration, clock: &Clock) -> Result<Vec<(u32, f64)>, EngineError> {
    let warm_ns = warm.as_nanos() as u64 / cpus.len().max(1) as u64;
    let one = |cpu: u32| {
        pin(cpu);
        let over = clock.now_ns() + warm_ns;
        let mut mhz = effective_mhz(clock);
        while clock.now_ns() < over {
            mhz = effective_mhz(clock);
        }
        mhz
    };
    std::thread::scope(|scope| {
        let each = cpus.iter().map(|cpu| {
            let thread = assay_run::threads::spawn(scope, format!("cpu-{cpu}"), move || one(*cpu))?;
            Ok((*cpu, thread.join().expect("a chain does not panic")))
        });
        each.collect()
    })
}
