//! The same durable writes through one io_uring: what an engine with a ring sees.

use super::streams::{Offsets, stamp};
use super::{Bench, Outcome};
use assay_block::{Backend, BlockError, CompletionLease, DirectFile, OpenMode, Ring, RingOptions};
use assay_measure::prng::SplitMix64;
use std::sync::Arc;
use std::time::Duration;

/// How long to wait for a completion before looking again.
const PATIENCE: Duration = Duration::from_millis(100);

/// Runs the step; the note says where io_uring was refused.
pub(super) fn run(bench: &Bench<'_>) -> Result<(Outcome, Option<String>), BlockError> {
    let step = bench.step;
    let file = DirectFile::open(bench.path, OpenMode { read: false, write: true, direct: true })?;
    let mut ring = Ring::open(RingOptions {
        entries: step.streams,
        buffers: step.streams as usize,
        buffer_bytes: (step.bytes as usize).next_multiple_of(4096),
        pool: None,
        files: vec![Arc::new(file)],
        backend: Backend::Auto,
        helpers: step.streams as usize,
    })?;
    let refused = ring.features().refused.first();
    let note = match ring.features().backend {
        "io_uring" => None,
        _ => {
            Some(refused.map_or_else(|| "by helper threads".to_owned(), |(_, why)| format!("by helper threads: {why}")))
        }
    };
    let mut buffers: Vec<_> = std::iter::from_fn(|| ring.take_buffer()).collect();
    for (index, buffer) in buffers.iter_mut().enumerate() {
        SplitMix64(index as u64).fill(buffer);
    }
    drop(buffers);
    Ok((stream(bench, &mut ring)?, note))
}

/// Keeps one write of each stream in flight until the time is over, then waits for the last.
fn stream(bench: &Bench<'_>, ring: &mut Ring) -> Result<Outcome, BlockError> {
    let (step, clock) = (bench.step, bench.clock);
    let mut places: Vec<Offsets> =
        (0..step.streams).map(|stream| Offsets::new(bench.file_bytes, stream, step.streams, step.bytes)).collect();
    let mut started = vec![0; places.len()];
    let mut outcome = Outcome::begin(clock);
    let deadline = outcome.begun_ns + bench.budget.as_nanos() as u64;
    let mut turn = 0;
    let mut ready: Vec<usize> = (0..places.len()).collect();
    loop {
        let over = clock.now_ns() >= deadline || bench.stop.requested();
        for stream in ready.drain(..).filter(|_| !over) {
            let mut buffer = ring.take_buffer().expect("there are as many buffers as streams");
            stamp(&mut buffer, stream as u32, turn);
            turn += 1;
            started[stream] = clock.now_ns();
            let (offset, bytes) = (places[stream].next(), step.bytes as usize);
            ring.write_buffer(0, offset, buffer, bytes, true, stream as u64)
                .expect("there are as many entries as streams");
        }
        if ring.in_flight() == 0 {
            return Ok(outcome);
        }
        ring.submit(1, PATIENCE)?;
        let now = clock.now_ns();
        while let Some(done) = ring.pop() {
            let stream = done.tag as usize;
            let written = done.result.and_then(|count| {
                let whole = u64::from(count) == step.bytes;
                whole.then_some(()).ok_or(std::io::ErrorKind::WriteZero.into())
            });
            written.map_err(|source| BlockError::Io { path: bench.path.to_path_buf(), what: "write", source })?;
            if let CompletionLease::Buffer(buffer) = done.lease {
                ring.give_back(buffer);
            }
            outcome.record(started[stream], now);
            outcome.flushes += 1;
            ready.push(stream);
        }
    }
}
