//! Threads that run one kernel together: pinned, started at once, each stopped by its own clock.

use super::kernels::{Ready, Wrong};
use super::reading::ThreadReading;
use crate::crew::{Gate, effective_mhz, pin};
use crate::host;
use assay_measure::clock::Clock;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::threads;
use std::time::Duration;

/// One kernel, so many threads, so long.
#[derive(Clone, Copy)]
pub(super) struct Shot<'a> {
    pub(super) ready: &'a Ready,
    /// A thread for each.
    pub(super) cpus: &'a [u32],
    pub(super) window: Duration,
    pub(super) clock: &'a Clock,
    pub(super) stop: &'a Stop,
}

/// Runs it: a reading for each thread, and what was computed wrong.
pub(super) fn shoot(shot: Shot<'_>) -> Result<(Vec<ThreadReading>, Vec<Wrong>), EngineError> {
    let gate = Gate::default();
    let count = shot.cpus.len();
    let ended = std::thread::scope(|scope| {
        let mut crew = Vec::with_capacity(count);
        for index in 0..count {
            let gate = &gate;
            let name = format!("cpu-{}", shot.cpus[index]);
            match threads::spawn(scope, name, move || one(shot, index, gate)) {
                Ok(thread) => crew.push(thread),
                Err(error) => {
                    gate.open(count, false);
                    return Err(error);
                }
            }
        }
        gate.open(count, true);
        let join = |thread: std::thread::ScopedJoinHandle<'_, _>| {
            thread.join().expect("a kernel does not panic: its data are its own")
        };
        Ok(crew.into_iter().filter_map(join).collect::<Vec<_>>())
    })?;
    let (readings, wrong): (Vec<_>, Vec<_>) = ended.into_iter().unzip();
    Ok((readings, wrong.into_iter().flatten().collect()))
}

/// One thread's part; nothing if the others could not be started.
fn one(shot: Shot<'_>, index: usize, gate: &Gate) -> Option<(ThreadReading, Option<Wrong>)> {
    let Shot { ready, clock, .. } = shot;
    let cpu = shot.cpus[index];
    let is_pinned = pin(cpu);
    let mut scratch = vec![0; ready.work.scratch_bytes()];
    let chunks = ready.chunks();
    // Each begins at its own part of what all read, so that none reads what another just brought into the cache.
    let mut chunk = index * chunks / shot.cpus.len();
    let mut wrong = None;
    let mut turn = |chunk: &mut usize| {
        if let Err(found) = ready.call(*chunk, &mut scratch) {
            wrong = wrong.take().or(Some(found));
        }
        *chunk = (*chunk + 1) % chunks;
    };
    let warm = clock.now_ns() + shot.window.as_nanos() as u64 / 10;
    loop {
        turn(&mut chunk);
        if clock.now_ns() >= warm || shot.stop.requested() {
            break;
        }
    }
    if !gate.wait() {
        return None;
    }
    let before = host::thread_times();
    let begun = clock.now_ns();
    let over = begun + shot.window.as_nanos() as u64;
    let mut calls = 0;
    let ended = loop {
        turn(&mut chunk);
        calls += 1;
        let now = clock.now_ns();
        if now >= over || shot.stop.requested() {
            break now;
        }
    };
    let spent = host::thread_times().since(&before);
    let mhz = effective_mhz(clock);
    let reading = ThreadReading {
        cpu,
        is_pinned,
        calls,
        elapsed_ns: ended - begun,
        cpu_ns: spent.cpu_ns,
        run_delay_ns: spent.run_delay_ns,
        mhz,
    };
    Some((reading, wrong))
}
