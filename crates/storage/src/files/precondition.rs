//! Preconditioning: brings files and devices into the state of long use before anything is measured.
//!
//! A fresh flash device is faster than a used one, because its blocks need no erasing. The sequence is that of the SNIA
//! Solid State Storage Performance Test Specification (2.0.1) for IOPS. It omits the purge, which would destroy more
//! than the files of the jobs. The first part is workload-independent: it fills the whole region twice from end to end
//! with large writes. The second part depends on the workload: it writes at random in the job's block size, in rounds,
//! until five rounds in a row are alike. It only touches what the jobs may write to anyway: files of ours, and what
//! `--destroy` names.

use super::super::payload::proof;
use super::super::spec::{Invocation, Precondition, StorageJob};
use super::super::steady::{SNIA_MOST_ROUNDS, SniaRounds};
use super::opened::Opened;
use super::regions::smallest_block;
use super::{bytes_text, cannot, failed};
use crate::readings::PreconditionReading;
use assay_block::{
    BlockError, DirectFile, DirectIo, FileOptions, LaneDone, LaneEngine, Lanes, LanesOptions, UringMode,
};
use assay_measure::clock::Clock;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::steady::ROUNDS;
use assay_run::engine::EngineError;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// Bytes per write while filling.
const FILL_BYTES: u64 = 128 << 10;
/// How often to fill everything.
const FILLS: u32 = 2;
/// Requests in flight.
const DEPTH: u32 = 32;
/// Alignment of the offsets and lengths of direct requests.
const ALIGNMENT: u64 = 4096;
/// How often to check for a stop request while waiting.
const TICK: Duration = Duration::from_millis(200);

/// Part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Span {
    /// Index among the files of the sequence.
    file: u16,
    start: u64,
    end: u64,
}

impl Opened {
    /// Carries out the `precondition` options of the jobs, one job after another and each file once, before any clone
    /// starts.
    ///
    /// # Errors
    /// I/O errors, `Interrupted`.
    pub fn precondition(
        &self,
        invocation: &Invocation,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<Vec<PreconditionReading>, EngineError> {
        let mut done = vec![false; self.plan().files.len()];
        let mut readings = Vec::new();
        for (number, job) in invocation.jobs.iter().enumerate() {
            if job.options.precondition.method == Precondition::None {
                continue;
            }
            let places = self.places_to_write(number, &mut done);
            if places.is_empty() {
                continue;
            }
            let of = invocation.jobs.iter().map(|job| job.wave as usize + 1).max();
            let sequence = Sequence::new(self, number, job, &places, of.unwrap_or(1))?;
            readings.push(sequence.run(stop, steps)?);
        }
        Ok(readings)
    }

    /// The job's files that no earlier job has preconditioned.
    fn places_to_write(&self, job: usize, done: &mut [bool]) -> Vec<usize> {
        let clones = self.plan().clones.iter().filter(|clone| clone.job == job);
        let places = clones.flat_map(|clone| clone.files.iter().copied());
        places.filter(|place| !std::mem::replace(&mut done[*place], true)).collect()
    }
}

/// Describes in a sentence what was done, for the job's report.
#[must_use]
pub fn note(reading: &PreconditionReading) -> String {
    let filled = format!(
        "Preconditioned: {} in {} filled {} times",
        bytes_text(reading.bytes),
        reading.files.join(", "),
        reading.fills
    );
    if reading.rounds.is_empty() {
        return format!("{filled}.");
    }
    let window = reading.rounds.len().saturating_sub(reading.window as usize);
    let iops: Vec<String> = reading.rounds[window..].iter().map(|iops| format!("{iops:.0}")).collect();
    let spread = match (reading.excursion_pct, reading.slope_pct) {
        (Some(excursion), Some(slope)) => {
            format!(": excursion {excursion:.1} % (20 % allowed), slope {slope:.1} % (10 % allowed)")
        }
        _ => String::new(),
    };
    let verdict = if reading.attained { "steady state reached" } else { "steady state NOT reached" };
    format!(
        "{filled}, then {} rounds of random writes of {} for {} s each; {verdict}, last rounds {} IOPS{spread}.",
        reading.rounds.len(),
        bytes_text(reading.block_bytes),
        reading.round_s,
        iops.join(" ")
    )
}

/// The sequence of one job.
struct Sequence<'a> {
    job: &'a StorageJob,
    paths: Vec<String>,
    files: Vec<Arc<DirectFile>>,
    /// The number that the content of each file proves.
    numbers: Vec<u64>,
    spans: Vec<Span>,
    of: usize,
    clock: Clock,
    lanes: Lanes,
    /// Block size of a direct request in the random part, bytes.
    block: u64,
}

impl<'a> Sequence<'a> {
    fn new(
        opened: &Opened,
        number: usize,
        job: &'a StorageJob,
        places: &[usize],
        of: usize,
    ) -> Result<Self, EngineError> {
        let block = smallest_block(job).next_multiple_of(ALIGNMENT);
        let mut files = Vec::new();
        let mut paths = Vec::new();
        let mut spans = Vec::new();
        if places.len() > usize::from(u16::MAX) {
            return Err(EngineError::Usage(format!(
                "job {}: assay cannot precondition {} files at once (at most 65535)",
                job.name,
                places.len()
            )));
        }
        for (file, place) in places.iter().enumerate() {
            let file = file as u16;
            let options =
                FileOptions { read: true, write: true, direct: DirectIo::IfPossible, ..FileOptions::default() };
            files.push(Arc::new(opened.open_place(*place, options)?));
            let planned = &opened.plan().files[*place];
            paths.push(planned.path.display().to_string());
            let (start, end) = opened.plan().used(number, *place);
            spans.push(Span { file, start: start.next_multiple_of(ALIGNMENT), end: end - end % ALIGNMENT });
        }
        spans.retain(|span| span.end.saturating_sub(span.start) >= block);
        let lane_bytes = FILL_BYTES.max(block) as usize;
        let lanes = open_lanes(&files, lane_bytes)?;
        Ok(Self {
            job,
            paths,
            files,
            numbers: places.iter().map(|place| opened.number_of(*place)).collect(),
            spans,
            of,
            clock: Clock::real(),
            lanes,
            block,
        })
    }

    fn run(mut self, stop: &Stop, steps: &dyn Steps) -> Result<PreconditionReading, EngineError> {
        let begun = self.clock.now_ns();
        let options = self.job.options.precondition;
        let bytes: u64 = self.spans.iter().map(|span| span.end - span.start).sum();
        let snia = options.method == Precondition::Snia;
        let mut reading = PreconditionReading {
            job: self.job.name.clone(),
            method: if snia { "snia" } else { "fill" }.to_owned(),
            files: self.paths.clone(),
            bytes,
            fills: FILLS,
            attained: true,
            ..PreconditionReading::default()
        };
        for fill in 1..=FILLS {
            self.say(steps, &format!("filling {}, {fill} of {FILLS}", bytes_text(bytes)));
            let rate = self.fill(u64::from(fill), stop)?;
            reading.fill_bytes_per_s.push(rate);
        }
        if snia {
            self.rounds(&mut reading, options.round_ns, stop, steps)?;
        }
        for (file, path) in self.files.iter().zip(&self.paths) {
            file.sync_data().map_err(|error| EngineError::Unusable(format!("{path}: {error}")))?;
        }
        reading.elapsed_ns = self.clock.now_ns() - begun;
        Ok(reading)
    }

    fn say(&self, steps: &dyn Steps, what: &str) {
        let text = format!("{}: Preconditioning: {what}", self.job.name);
        steps.step(0, self.of, &text);
    }

    /// Writes everything once from end to end; returns bytes per second.
    fn fill(&mut self, pass: u64, stop: &Stop) -> Result<f64, EngineError> {
        let spans = self.spans.clone();
        let mut rest = spans.iter().flat_map(|span| {
            let piece = |at: u64| (span.file, at, FILL_BYTES.min(span.end - at));
            (span.start..span.end).step_by(FILL_BYTES as usize).map(piece)
        });
        let begun = self.clock.now_ns();
        let (_, bytes) = self.pump(pass, stop, &mut |_| rest.next())?;
        let elapsed = (self.clock.now_ns() - begun).max(1);
        Ok(bytes as f64 * 1e9 / elapsed as f64)
    }

    fn rounds(
        &mut self,
        reading: &mut PreconditionReading,
        round_ns: u64,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<(), EngineError> {
        let mut judge = SniaRounds::default();
        let (block, spans, clock) = (self.block, self.spans.clone(), self.clock.clone());
        let blocks: u64 = spans.iter().map(|span| (span.end - span.start) / block).sum();
        let mut stream = Stream::new(reading.bytes, 0, Purpose::Sample);
        let mut more = blocks > 0;
        while more {
            let number = judge.rounds().len() + 1;
            let what = format!("random writes of {}, round {number} of at most {SNIA_MOST_ROUNDS}", bytes_text(block));
            self.say(steps, &what);
            let begun = clock.now_ns();
            let (ios, _) = self.pump(100 + number as u64, stop, &mut |now| {
                (now - begun < round_ns).then(|| {
                    let (file, offset) = block_at(&spans, block, stream.below(blocks));
                    (file, offset, block)
                })
            })?;
            let elapsed = (clock.now_ns() - begun).max(1);
            more = judge.round(ios as f64 * 1e9 / elapsed as f64);
        }
        reading.block_bytes = block;
        reading.round_s = round_ns as f64 / 1e9;
        reading.rounds = judge.rounds().to_vec();
        reading.window = ROUNDS as u32;
        reading.attained = judge.is_steady();
        let window = judge.window();
        reading.excursion_pct = window.map(|window| 100.0 * window.excursion_ratio);
        reading.slope_pct = window.map(|window| 100.0 * window.slope_ratio);
        Ok(())
    }

    /// Writes the blocks that `next` names, as many at once as there are lanes, until it names no more. Returns I/Os
    /// and bytes written. Passes `next` the time of the last clock reading.
    fn pump(
        &mut self,
        pass: u64,
        stop: &Stop,
        next: &mut dyn FnMut(u64) -> Option<(u16, u64, u64)>,
    ) -> Result<(u64, u64), EngineError> {
        let mut content = Stream::new(pass, 0, Purpose::Load);
        let mut free: Vec<u32> = (0..self.lanes.lanes()).collect();
        let mut wanted = vec![(0_u16, 0_u64); free.len()];
        let mut done: Vec<LaneDone> = Vec::new();
        let (mut ios, mut bytes, mut over) = (0, 0, false);
        let mut outcome = Ok(());
        loop {
            let now = self.clock.now_ns();
            over |= stop.requested();
            while !over && let Some(lane) = free.pop() {
                let Some((file, offset, len)) = next(now) else {
                    free.push(lane);
                    over = true;
                    break;
                };
                let buffer = self.lanes.buffer_mut(lane, len as usize);
                content.fill(buffer);
                proof::stamp(self.numbers[usize::from(file)], buffer, offset, pass);
                self.lanes.write(lane, file, offset, len as u32);
                wanted[lane as usize] = (file, len);
            }
            if self.lanes.queued() + self.lanes.in_flight() == 0 {
                break;
            }
            self.lanes.submit_and_wait(1, Some(TICK)).map_err(failed)?;
            self.lanes.reap(&mut done, u32::MAX);
            for LaneDone { lane, result } in done.drain(..) {
                let (file, len) = wanted[lane as usize];
                free.push(lane);
                if u64::try_from(result) == Ok(len) {
                    ios += 1;
                    bytes += len;
                } else {
                    over = true;
                    outcome = outcome.and(Err(self.write_error(file, result)));
                }
            }
        }
        outcome?;
        if stop.requested() {
            return Err(EngineError::Interrupted);
        }
        Ok((ios, bytes))
    }

    fn write_error(&self, file: u16, result: i32) -> EngineError {
        let path = std::path::Path::new(&self.paths[usize::from(file)]);
        if result < 0 {
            return cannot("write to", path, io::Error::from_raw_os_error(-result));
        }
        // A short write means that the space is exhausted.
        cannot("write to", path, Errno::NOSPC)
    }
}

/// Block `number`, counted over all spans together.
fn block_at(spans: &[Span], block: u64, mut number: u64) -> (u16, u64) {
    for span in spans {
        let blocks = (span.end - span.start) / block;
        if number < blocks {
            return (span.file, span.start + number * block);
        }
        number -= blocks;
    }
    unreachable!("the number is below the number of blocks")
}

/// Opens io_uring, or the older interface if that is refused: no job reports a figure measured with it.
fn open_lanes(files: &[Arc<DirectFile>], lane_bytes: usize) -> Result<Lanes, EngineError> {
    let options = |engine| LanesOptions { lanes: DEPTH, lane_bytes, files: files.to_vec(), engine };
    match Lanes::open(options(LaneEngine::Uring(UringMode::default()))) {
        Err(BlockError::NoUring { .. }) => Lanes::open(options(LaneEngine::Aio)).map_err(failed),
        outcome => outcome.map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_says_what_was_done_and_whether_it_was_enough() {
        let mut reading = PreconditionReading {
            job: "j".to_owned(),
            method: "snia".to_owned(),
            files: vec!["/dev/x".to_owned()],
            bytes: 3 << 20,
            fills: 2,
            ..PreconditionReading::default()
        };
        assert_eq!(note(&reading), "Preconditioned: 3 MiB in /dev/x filled 2 times.");
        reading.rounds = vec![90.0, 50.0, 48.0, 50.0, 51.0, 49.0];
        (reading.window, reading.block_bytes, reading.round_s) = (5, 8192, 60.0);
        (reading.excursion_pct, reading.slope_pct) = (Some(6.05), Some(0.8));
        reading.attained = true;
        let text = note(&reading);
        let expected = "6 rounds of random writes of 8 KiB for 60 s each; steady state reached, last rounds 50 48 50 51 49 IOPS: excursion";
        assert!(text.contains(expected), "{text}");
        reading.attained = false;
        assert!(note(&reading).contains("NOT reached"));
    }

    #[test]
    fn blocks_are_counted_through_the_spans() {
        let span = |file, start, end| Span { file, start, end };
        let spans = [span(0, 8192, 8192 + 3 * 4096), span(1, 0, 10_000)];
        let all: Vec<(u16, u64)> = (0..5).map(|n| block_at(&spans, 4096, n)).collect();
        assert_eq!(all, [(0, 8192), (0, 12_288), (0, 16_384), (1, 0), (1, 4096)]);
    }
}
