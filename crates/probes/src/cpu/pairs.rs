//! Two threads that wait for each other by turns: a cache line between two CPUs, a pipe, a wake-up.

use super::reading::{PairKind, PairReading};
use crate::crew::{Gate, pin};
use assay_measure::clock::Clock;
use assay_measure::locked::locked;
use assay_measure::statistics::median;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::threads;
use rustix::io::{read, write};
use rustix::pipe::pipe;
use std::os::fd::OwnedFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::Thread;
use std::time::Duration;

/// Turns of a batch; its mean is one value, and the median of the batches the figure: what interrupts one batch does not
/// count.
const ROUNDS: u64 = 100;
/// A CPU that waits longer for its partner lets others run: the partner may need this very CPU.
const SPINS: u32 = 20_000;

/// What two threads hand to and fro.
trait Ball: Sync {
    /// Sends turn `number` and waits for its answer.
    fn ping(&self, number: u64) -> Result<(), EngineError>;
    /// Waits for turn `number` and answers; whether there was one.
    fn pong(&self, number: u64) -> Result<bool, EngineError>;
    /// No more turns.
    fn end(&self);
    /// What the first thread has to know of the second one.
    fn meet(&self, _first: bool) {}
}

/// A number on a cache line of its own.
#[repr(align(256))]
struct Line(AtomicU64);

/// No turn has this number.
const END: u64 = u64::MAX;

fn spin(until: impl Fn() -> bool) {
    let mut spins = 0;
    while !until() {
        spins += 1;
        if spins % SPINS == 0 {
            std::thread::yield_now();
        }
        std::hint::spin_loop();
    }
}

impl Ball for Line {
    fn ping(&self, number: u64) -> Result<(), EngineError> {
        self.0.store(2 * number + 1, Ordering::Release);
        spin(|| self.0.load(Ordering::Acquire) == 2 * number + 2);
        Ok(())
    }

    fn pong(&self, number: u64) -> Result<bool, EngineError> {
        let is_turn = |value: u64| value == END || value == 2 * number + 1;
        spin(|| is_turn(self.0.load(Ordering::Acquire)));
        let last = 2 * number + 1;
        let answered = self.0.compare_exchange(last, last + 1, Ordering::AcqRel, Ordering::Acquire);
        Ok(answered.is_ok())
    }

    fn end(&self) {
        self.0.store(END, Ordering::Release);
    }
}

/// Two pipes; the far end of one that ends is closed.
struct Pipes {
    there: (OwnedFd, Mutex<Option<OwnedFd>>),
    back: (OwnedFd, OwnedFd),
}

impl Pipes {
    fn new() -> Result<Self, EngineError> {
        let (there, back) = (pipe().map_err(failed)?, pipe().map_err(failed)?);
        Ok(Self { there: (there.0, Mutex::new(Some(there.1))), back })
    }
}

fn failed(error: rustix::io::Errno) -> EngineError {
    EngineError::Io { what: "a pipe".to_owned(), source: error.into() }
}

impl Ball for Pipes {
    fn ping(&self, _: u64) -> Result<(), EngineError> {
        let there = locked(&self.there.1);
        if let Some(there) = there.as_ref() {
            write(there, &[1]).map_err(failed)?;
            read(&self.back.0, &mut [0; 1]).map_err(failed)?;
        }
        Ok(())
    }

    fn pong(&self, _: u64) -> Result<bool, EngineError> {
        if read(&self.there.0, &mut [0; 1]).map_err(failed)? == 0 {
            return Ok(false);
        }
        write(&self.back.1, &[1]).map_err(failed)?;
        Ok(true)
    }

    fn end(&self) {
        *locked(&self.there.1) = None;
    }
}

/// Two threads that sleep until the other wakes them.
struct Sleepers {
    turn: AtomicU64,
    threads: Mutex<[Option<Thread>; 2]>,
    known: std::sync::OnceLock<[Thread; 2]>,
}

impl Sleepers {
    fn other(&self, first: bool) -> &Thread {
        let known = self.known.get_or_init(|| {
            loop {
                let threads = locked(&self.threads);
                if let [Some(one), Some(two)] = &*threads {
                    break [one.clone(), two.clone()];
                }
                drop(threads);
                std::thread::yield_now();
            }
        });
        &known[usize::from(first)]
    }

    fn sleep_until(&self, is_it: impl Fn(u64) -> bool) -> u64 {
        loop {
            let turn = self.turn.load(Ordering::Acquire);
            if is_it(turn) {
                return turn;
            }
            std::thread::park();
        }
    }
}

impl Ball for Sleepers {
    fn ping(&self, number: u64) -> Result<(), EngineError> {
        self.turn.store(2 * number + 1, Ordering::Release);
        self.other(true).unpark();
        self.sleep_until(|turn| turn == 2 * number + 2);
        Ok(())
    }

    fn pong(&self, number: u64) -> Result<bool, EngineError> {
        let turn = self.sleep_until(|turn| turn == END || turn == 2 * number + 1);
        if turn == END {
            return Ok(false);
        }
        self.turn.store(turn + 1, Ordering::Release);
        self.other(false).unpark();
        Ok(true)
    }

    fn end(&self) {
        self.turn.store(END, Ordering::Release);
        self.other(true).unpark();
    }

    fn meet(&self, first: bool) {
        let mut threads = locked(&self.threads);
        threads[usize::from(!first)] = Some(std::thread::current());
    }
}

/// Measures one pair of CPUs for about `budget`.
pub(super) fn measure(
    kind: PairKind,
    cpus: (u32, u32),
    budget: Duration,
    clock: &Clock,
    stop: &Stop,
) -> Result<PairReading, EngineError> {
    let batches = match kind {
        PairKind::Line => play(&Line(AtomicU64::new(0)), cpus, budget, clock, stop)?,
        PairKind::Pipe => play(&Pipes::new()?, cpus, budget, clock, stop)?,
        PairKind::Wake => {
            let sleepers =
                Sleepers { turn: AtomicU64::new(0), threads: Mutex::default(), known: std::sync::OnceLock::new() };
            play(&sleepers, cpus, budget, clock, stop)?
        }
    };
    Ok(PairReading {
        kind,
        from: cpus.0,
        to: cpus.1,
        ns: median(&batches).unwrap_or(f64::NAN),
        ns_min: batches.iter().copied().fold(f64::INFINITY, f64::min),
        batches: batches.len() as u64,
    })
}

/// One-way times of each batch, ns.
fn play(
    ball: &dyn Ball,
    cpus: (u32, u32),
    budget: Duration,
    clock: &Clock,
    stop: &Stop,
) -> Result<Vec<f64>, EngineError> {
    let gate = Gate::default();
    std::thread::scope(|scope| {
        let answers = threads::spawn(scope, format!("cpu-{}", cpus.1), || {
            pin(cpus.1);
            ball.meet(false);
            let mut number = 0;
            while gate_or(&gate, number)? && ball.pong(number)? {
                number += 1;
            }
            Ok::<(), EngineError>(())
        })?;
        let asks = threads::spawn(scope, format!("cpu-{}", cpus.0), || {
            pin(cpus.0);
            ball.meet(true);
            if !gate.wait() {
                return Ok(Vec::new());
            }
            let batches = ask(ball, budget, clock, stop);
            ball.end();
            batches
        });
        // Without the one the other goes home.
        let asks = asks.inspect_err(|_| gate.open(2, false))?;
        gate.open(2, true);
        let batches = asks.join().expect("a turn does not panic")?;
        answers.join().expect("a turn does not panic")?;
        Ok(batches)
    })
}

/// Waits at the gate before the first turn only.
fn gate_or(gate: &Gate, number: u64) -> Result<bool, EngineError> {
    Ok(number > 0 || gate.wait())
}

fn ask(ball: &dyn Ball, budget: Duration, clock: &Clock, stop: &Stop) -> Result<Vec<f64>, EngineError> {
    let over = clock.now_ns() + budget.as_nanos() as u64;
    let mut batches = Vec::new();
    let mut number = 0;
    loop {
        let begun = clock.now_ns();
        for _ in 0..ROUNDS {
            ball.ping(number)?;
            number += 1;
        }
        let now = clock.now_ns();
        batches.push((now - begun) as f64 / (2 * ROUNDS) as f64);
        if now >= over || stop.requested() {
            return Ok(batches);
        }
    }
}
