//! A load for some time, like stress-ng's: workers, their operations and errors, second by second, and the reports on
//! them.

mod info;
mod sections;

pub(crate) use info::{LoadInfo, LoadSecond};
pub(crate) use sections::{Words, block, charts, sections, steadiness};

use crate::crew::{Gate, effective_mhz, pin};
use crate::host::{self, CpuTimes};
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::locked::locked;
use assay_measure::units::many;
use assay_run::engine::EngineError;
use assay_run::host::Sampler;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use assay_run::threads;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What workers turn over.
pub(crate) trait Labour: Sync {
    /// What a worker has for itself, made in its own thread before the load begins.
    type Own;

    /// Makes it.
    fn own(&self, worker: usize) -> Self::Own;

    /// One turn, the worker's `turn`th; how many operations it was, and what was wrong. It is to be short: a stop is seen
    /// between two turns.
    fn turn(&self, own: &mut Self::Own, turn: usize) -> (u64, Result<(), String>);
}

/// How long the thread that looks on sleeps at once: a stop request is seen within that.
const LOOK: Duration = Duration::from_millis(20);
const WRONG_MOST: usize = 10;

/// Workers and what they turn over.
pub(crate) struct Load<'a, L> {
    pub(crate) workers: usize,
    pub(crate) labour: &'a L,
    pub(crate) cpus: &'a [u32],
    pub(crate) time: Duration,
    pub(crate) clock: &'a Clock,
    pub(crate) stop: &'a Stop,
}

/// One second of a load.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SecondReading {
    /// Its end, ns after the begin.
    pub(crate) ended_ns: Ns,
    /// Operations of all workers so far.
    pub(crate) ops: u64,
    /// Lowest and mean effective clock over the workers that looked.
    pub(crate) mhz: Option<(f64, f64)>,
    pub(crate) steal_pct: Option<f64>,
    /// What a quota held the control group back within it.
    pub(crate) throttled_ns: Option<Ns>,
}

/// The load as a whole.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LoadReading {
    pub(crate) workers: u64,
    /// Operations.
    pub(crate) ops: u64,
    /// Mean wall time of the workers.
    pub(crate) real_ns: Ns,
    pub(crate) user_ns: Ns,
    pub(crate) system_ns: Ns,
    /// Runnable and on no CPU, all workers.
    pub(crate) run_delay_ns: Option<Ns>,
    pub(crate) seconds: Vec<SecondReading>,
    /// Wrong results.
    pub(crate) errors: u64,
    /// The first few of them, in words.
    pub(crate) wrong: Vec<String>,
}

/// What a worker shows while it works, on lines of its own.
#[derive(Default)]
#[repr(align(128))]
struct Board {
    ops: AtomicU64,
    /// Bits of a number; 0: it did not look.
    mhz: AtomicU64,
}

/// Seconds begun in this time.
pub(crate) fn seconds(time: Duration) -> usize {
    (time.as_nanos() as u64).div_ceil(NS_PER_S).max(1) as usize
}

/// What all workers see.
struct Shared<'a> {
    boards: &'a [Board],
    gate: Gate,
    /// When the time is over; known once the gate opens.
    over: AtomicU64,
    errors: AtomicU64,
    wrong: Mutex<Vec<String>>,
}

impl<L: Labour> Load<'_, L> {
    /// Whether each worker has a CPU of its own; more than that, the kernel spreads them.
    pub(crate) fn is_pinned(&self) -> bool {
        self.workers <= self.cpus.len()
    }

    /// Works until the time is over, each worker one turn at least, or somebody stops it; nothing if it was stopped before anybody did
    /// anything.
    pub(crate) fn run(&self, steps: &dyn Steps) -> Result<Option<LoadReading>, EngineError> {
        let boards: Vec<Board> = (0..self.workers).map(|_| Board::default()).collect();
        let shared = Shared {
            boards: &boards,
            gate: Gate::default(),
            over: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            wrong: Mutex::default(),
        };
        let mut load = LoadReading { workers: self.workers as u64, ..LoadReading::default() };
        let shared_ref = &shared;
        let before = host::process_times();
        let real = std::thread::scope(|scope| {
            let mut crew = Vec::with_capacity(self.workers);
            for index in 0..self.workers {
                let name = format!("load-{index}");
                match threads::spawn(scope, name, move || self.work(index, shared_ref)) {
                    Ok(worker) => crew.push(worker),
                    Err(error) => {
                        shared.gate.open(self.workers, false);
                        return Err(error);
                    }
                }
            }
            let begun = self.clock.now_ns();
            shared.over.store(begun + self.time.as_nanos() as u64, Ordering::Release);
            shared.gate.open(self.workers, true);
            self.watch(begun, &boards, &mut load.seconds, steps);
            let each = crew.into_iter().map(|worker| worker.join().expect("a kernel does not panic"));
            let (ended, delays): (Vec<Ns>, Vec<Option<Ns>>) = each.unzip();
            load.run_delay_ns = delays.into_iter().sum();
            let real = ended.iter().map(|ended| ended.saturating_sub(begun));
            Ok(real.sum::<Ns>() / self.workers.max(1) as u64)
        })?;
        let after = host::process_times();
        load.user_ns = after.0.saturating_sub(before.0);
        load.system_ns = after.1.saturating_sub(before.1);
        load.real_ns = real;
        load.ops = done(&boards);
        load.errors = shared.errors.into_inner();
        load.wrong = shared.wrong.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((load.ops > 0).then_some(load))
    }

    /// One worker. When it ended, and how long it waited for a CPU.
    fn work(&self, index: usize, shared: &Shared<'_>) -> (Ns, Option<Ns>) {
        if self.is_pinned() {
            pin(self.cpus[index]);
        }
        let board = &shared.boards[index];
        let mut own = self.labour.own(index);
        if !shared.gate.wait() {
            return (0, None);
        }
        let before = host::thread_times();
        let over = shared.over.load(Ordering::Acquire);
        let mut look_at = 0;
        let (mut turn, mut ops) = (0, 0);
        loop {
            let now = self.clock.now_ns();
            // One turn at least: a worker that gets no CPU within the time has not been stopped.
            if now >= over && turn > 0 || self.stop.requested() {
                let spent = host::thread_times().since(&before);
                return (now, spent.run_delay_ns);
            }
            if index < self.cpus.len() && now >= look_at {
                board.mhz.store(effective_mhz(self.clock).to_bits(), Ordering::Release);
                look_at = now + NS_PER_S / 2;
            }
            let (done, result) = self.labour.turn(&mut own, turn);
            if let Err(wrong) = result {
                shared.errors.fetch_add(1, Ordering::AcqRel);
                let mut told = locked(&shared.wrong);
                if told.len() < WRONG_MOST {
                    told.push(wrong);
                }
            }
            turn += 1;
            ops += done;
            board.ops.store(ops, Ordering::Release);
        }
    }

    /// Writes down every second until the end.
    fn watch(&self, begun: Ns, boards: &[Board], all: &mut Vec<SecondReading>, steps: &dyn Steps) {
        let mut sampler = Sampler::new(Vec::new());
        let of = seconds(self.time);
        let mut throttled_ns = sampler.sample().cgroup_throttled_ns;
        for second in 1..=of {
            steps.step(second, of, &format!("{}, second {second}", many(self.workers as u64, "worker")));
            let times = CpuTimes::read();
            let end = begun + (second as u64 * NS_PER_S).min(self.time.as_nanos() as u64);
            while self.clock.now_ns() < end && !self.stop.requested() {
                let left = Duration::from_nanos(end.saturating_sub(self.clock.now_ns()));
                std::thread::sleep(LOOK.min(left));
            }
            let held = sampler.sample().cgroup_throttled_ns;
            all.push(SecondReading {
                ended_ns: self.clock.now_ns() - begun,
                ops: done(boards),
                mhz: clock_of(boards),
                steal_pct: times.zip(CpuTimes::read()).and_then(|(before, after)| after.steal_pct(&before)),
                throttled_ns: throttled_ns.zip(held).map(|(then, now)| now.saturating_sub(then)),
            });
            throttled_ns = held;
            if self.stop.requested() {
                return;
            }
        }
    }
}

fn done(boards: &[Board]) -> u64 {
    boards.iter().map(|board| board.ops.load(Ordering::Acquire)).sum()
}

/// Lowest and mean clock of those that looked.
fn clock_of(boards: &[Board]) -> Option<(f64, f64)> {
    let bits = boards.iter().map(|board| board.mhz.load(Ordering::Acquire));
    let known: Vec<f64> = bits.filter(|bits| *bits != 0).map(f64::from_bits).collect();
    let lowest = known.iter().copied().reduce(f64::min)?;
    Some((lowest, assay_measure::statistics::mean(&known)))
}
