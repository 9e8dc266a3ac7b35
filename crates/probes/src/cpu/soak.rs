//! The soak: so many workers turn over the kernels for the time, as `stress-ng --cpu N` does.

use super::crew::{Gate, effective_mhz, pin};
use super::host::{self, CpuTimes};
use super::kernels::Ready;
use super::reading::{CpuReadings, SecondReading, SoakReading};
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_run::engine::EngineError;
use assay_run::host::Sampler;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use assay_run::threads;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// How long the thread that looks on sleeps at once: a stop request is seen within that.
const LOOK: Duration = Duration::from_millis(20);
const WRONG_MOST: usize = 10;

/// Workers and what they turn over.
pub(super) struct Soak<'a> {
    pub(super) workers: usize,
    pub(super) kernels: &'a [Ready],
    pub(super) cpus: &'a [u32],
    pub(super) time: Duration,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
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
pub(super) fn seconds(time: Duration) -> usize {
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

impl Soak<'_> {
    /// Works until the time is over or somebody stops it; what was done is in `readings`.
    pub(super) fn run(
        &self,
        readings: &mut CpuReadings,
        steps: &dyn Steps,
    ) -> Result<(), EngineError> {
        let boards: Vec<Board> = (0..self.workers).map(|_| Board::default()).collect();
        let shared = Shared {
            boards: &boards,
            gate: Gate::default(),
            over: AtomicU64::new(0),
            errors: AtomicU64::new(0),
            wrong: Mutex::default(),
        };
        let mut soak = SoakReading {
            workers: self.workers as u64,
            ..SoakReading::default()
        };
        // One each where there is a CPU for each; more than that, the kernel spreads them.
        readings.is_pinned = self.workers <= self.cpus.len();
        let shared_ref = &shared;
        let before = host::process_times();
        let real = std::thread::scope(|scope| {
            let mut crew = Vec::with_capacity(self.workers);
            for index in 0..self.workers {
                let name = format!("soak-{index}");
                match threads::spawn(scope, name, move || self.work(index, shared_ref)) {
                    Ok(worker) => crew.push(worker),
                    Err(error) => {
                        shared.gate.open(self.workers, false);
                        return Err(error);
                    }
                }
            }
            let begun = self.clock.now_ns();
            shared
                .over
                .store(begun + self.time.as_nanos() as u64, Ordering::Release);
            shared.gate.open(self.workers, true);
            self.watch(begun, &boards, &mut soak.seconds, steps);
            let each = crew
                .into_iter()
                .map(|worker| worker.join().expect("a kernel does not panic"));
            let (ended, delays): (Vec<Ns>, Vec<Option<Ns>>) = each.unzip();
            soak.run_delay_ns = delays.into_iter().sum();
            let real = ended.iter().map(|ended| ended.saturating_sub(begun));
            Ok(real.sum::<Ns>() / self.workers.max(1) as u64)
        })?;
        let after = host::process_times();
        soak.user_ns = after.0.saturating_sub(before.0);
        soak.system_ns = after.1.saturating_sub(before.1);
        soak.real_ns = real;
        soak.ops = done(&boards);
        soak.errors = shared.errors.into_inner();
        readings.wrong.extend(
            shared
                .wrong
                .into_inner()
                .unwrap_or_else(PoisonError::into_inner),
        );
        // Stopped before anybody did anything: nothing was measured.
        readings.soak = (soak.ops > 0).then_some(soak);
        Ok(())
    }

    /// One worker: the kernels by turns, each call an operation. When it ended, and how long it
    /// waited for a CPU.
    fn work(&self, index: usize, shared: &Shared<'_>) -> (Ns, Option<Ns>) {
        if self.workers <= self.cpus.len() {
            pin(self.cpus[index]);
        }
        let board = &shared.boards[index];
        let bytes = self
            .kernels
            .iter()
            .map(|ready| ready.work.scratch_bytes())
            .max();
        let mut scratch = vec![0; bytes.unwrap_or(0)];
        if !shared.gate.wait() {
            return (0, None);
        }
        let before = host::thread_times();
        let over = shared.over.load(Ordering::Acquire);
        let looks = index < self.cpus.len();
        let mut look_at = 0;
        let mut turn = index;
        loop {
            let now = self.clock.now_ns();
            if now >= over || self.stop.requested() {
                let spent = host::thread_times().since(&before);
                return (now, spent.run_delay_ns);
            }
            if looks && now >= look_at {
                board
                    .mhz
                    .store(effective_mhz(self.clock).to_bits(), Ordering::Release);
                look_at = now + NS_PER_S / 2;
            }
            let ready = &self.kernels[turn % self.kernels.len()];
            let chunk = turn / self.kernels.len() % ready.chunks();
            if let Err(wrong) = ready.call(chunk, &mut scratch[..ready.work.scratch_bytes()]) {
                shared.errors.fetch_add(1, Ordering::AcqRel);
                let mut told = shared.wrong.lock().unwrap_or_else(PoisonError::into_inner);
                if told.len() < WRONG_MOST {
                    told.push(wrong.to_string());
                }
            }
            turn += 1;
            board.ops.store((turn - index) as u64, Ordering::Release);
        }
    }

    /// Writes down every second until the end.
    fn watch(&self, begun: Ns, boards: &[Board], all: &mut Vec<SecondReading>, steps: &dyn Steps) {
        let mut sampler = Sampler::new(Vec::new());
        let of = seconds(self.time);
        let mut throttled_ns = sampler.sample().cgroup_throttled_ns;
        let s = if self.workers == 1 { "" } else { "s" };
        for second in 1..=of {
            steps.step(
                second,
                of,
                &format!("{} worker{s}, second {second}", self.workers),
            );
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
                steal_pct: times
                    .zip(CpuTimes::read())
                    .and_then(|(before, after)| after.steal_pct(&before)),
                throttled_ns: throttled_ns
                    .zip(held)
                    .map(|(then, now)| now.saturating_sub(then)),
            });
            throttled_ns = held;
            if self.stop.requested() {
                return;
            }
        }
    }
}

fn done(boards: &[Board]) -> u64 {
    boards
        .iter()
        .map(|board| board.ops.load(Ordering::Acquire))
        .sum()
}

/// Lowest and mean clock of those that looked.
fn clock_of(boards: &[Board]) -> Option<(f64, f64)> {
    let bits = boards.iter().map(|board| board.mhz.load(Ordering::Acquire));
    let known: Vec<f64> = bits.filter(|bits| *bits != 0).map(f64::from_bits).collect();
    let lowest = known.iter().copied().reduce(f64::min)?;
    Some((lowest, assay_measure::sample::mean(&known)))
}
