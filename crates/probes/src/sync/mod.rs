//! `assay sync`: the cost of a durable write, and how many of them the device performs.
//!
//! Owns the scratch file, the streams that write it, their readings (`reading`) and its record with its reports
//! (`record`). See `README.md`.

mod hosts;
mod options;
mod plan;
mod reading;
mod record;
mod ring;
mod shared;
mod streams;

#[cfg(test)]
mod tests;

use crate::scratch::{Place, Scratch, failed, left_behind};
use assay_block::{BlockError, DeviceFacts, device_facts};
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, RunData};
use assay_run::dataset::lines::{count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::host;
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use plan::Step;
use reading::{SyncMethod, SyncReading, SyncReadings};
pub(crate) use record::{LEAST_US, PLATTER_US};
pub(crate) use streams::stamp;

use std::path::Path;
use std::time::Duration;

/// Bytes of the preallocated part of the scratch file, the marker's block included.
const FILE_BYTES: u64 = 64 << 20;
/// Bytes by which a step may let the file grow; it ends early there.
const GROWTH_BYTES: u64 = 128 << 20;

/// Rounds of all steps, one after the other: a device that is quicker in one minute than in the next is so for each step.
const ROUNDS: u32 = 5;
/// Part of the time that is kept to repeat the steps whose rounds disagree most.
const REPEATS: f64 = 0.2;
/// Rounds disagree where half the 95 % interval of their rate is more than this part of it.
const DISAGREE: f64 = 0.1;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure durable writes: the lowest cost of a commit on this storage",
    more: "This takes about a minute. assay measures the time of one flush and its tail, flushes per second by method and number of \
           parallel streams, and the cost of each level of commit safety. It removes its scratch file at the end.",
    takes: Takes::Place,
    usual_time: Some("60s"),
    follows: &[
        ("p50", &["durable_write_us_p50"]),
        ("rate", &["group.many_commits_per_s"]),
        ("p99", &["group.many_commit_us_p99"]),
    ],
    options: &[options::OPTIONS],
    over_hosts: Some(hosts::record),
    ..ProbeSpec::new("sync", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let place = Place::find(&request.place, SPEC.name)?;
    let time = request.time;
    place.check_space(FILE_BYTES + GROWTH_BYTES)?;
    let commits_per_s = options::commits_per_s(request)?;
    let facts = device_facts(place.path());
    let steps = plan::steps(facts.logical_block_bytes.as_ref().ok().copied());
    let free_bytes = place.room()?.free_bytes;
    Ok(Box::new(Aim {
        place,
        facts,
        time,
        commits_per_s,
        steps,
        free_bytes,
        file_bytes: FILE_BYTES,
        growth_bytes: GROWTH_BYTES,
    }))
}

impl Measured for SyncReadings {
    fn was_stopped(&self) -> bool {
        self.stopped
    }

    fn data(&self, labels: &RunData) -> Option<RunData> {
        Some(hosts::data(labels, self))
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe aimed at a place.
struct Aim {
    place: Place,
    facts: DeviceFacts,
    time: Duration,
    commits_per_s: Option<u64>,
    steps: Vec<Step>,
    free_bytes: u64,
    file_bytes: u64,
    growth_bytes: u64,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let mut lines = vec![
            text("scratch_file", "scratch file, removed at the end", self.place.path().display().to_string()),
            count("file_bytes", "preallocated", self.file_bytes),
            count("growth_bytes", "growth at most", self.growth_bytes),
            count("free_bytes", "free there", self.free_bytes),
            count("steps", "steps", self.steps.len() as u64),
            measuring(self.time),
        ];
        lines.extend(left_behind(self.place.directory()));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let clock = Clock::real();
        let begun = clock.now_ns();
        let mut readings = self.known();
        let made = self.steps.len() * ROUNDS as usize;
        let all = made + 1;
        steps.step(0, all, "writing the scratch file");
        let mut goes_on = |_| !stop.requested();
        let Some(mut scratch) = Scratch::create(&self.place, (self.file_bytes, self.growth_bytes), &mut goes_on)?
        else {
            return Err(EngineError::Interrupted);
        };
        readings.direct = scratch.is_direct();
        steps.ready();
        steps.begin();
        for turn in 0..made {
            if stop.requested() {
                break;
            }
            let at = turn % self.steps.len();
            steps.step(turn + 1, all, &self.steps[at].describe());
            let round = self.round(at, &mut scratch, &clock, stop)?;
            match readings.steps.get_mut(at) {
                Some(reading) => reading.add(&round),
                None => readings.steps.push(round),
            }
        }
        let repeats = if steps.is_one_of_many() { 0.0 } else { REPEATS };
        if !stop.requested() && repeats > 0.0 {
            steps.step(all, all, "repeating steps whose rounds disagree");
        }
        let until = clock.now_ns() + self.time.mul_f64(repeats).as_nanos() as u64;
        while clock.now_ns() < until && !stop.requested() {
            let Some(at) = most_at_odds(&readings.steps) else {
                break;
            };
            let round = self.round(at, &mut scratch, &clock, stop)?;
            readings.steps[at].add(&round);
        }
        scratch.remove()?;
        readings.elapsed_ns = clock.now_ns() - begun;
        readings.stopped = stop.requested();
        if readings.steps.is_empty() {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(readings))
    }
}

/// The step whose rounds disagree most, if they do.
fn most_at_odds(steps: &[SyncReading]) -> Option<usize> {
    let spreads = steps.iter().enumerate();
    let spreads = spreads.filter_map(|(at, step)| Some((at, step.spread()?)));
    let most = spreads.max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most.1 > DISAGREE).then_some(most.0)
}

impl Aim {
    /// One round of one step.
    fn round(&self, at: usize, scratch: &mut Scratch, clock: &Clock, stop: &Stop) -> Result<SyncReading, EngineError> {
        let step = &self.steps[at];
        let weights: f64 = self.steps.iter().map(|step| step.weight).sum();
        let share = (1.0 - REPEATS) * step.weight / weights / f64::from(ROUNDS);
        let bench = Bench {
            path: &scratch.opened(),
            file_bytes: self.file_bytes,
            end_bytes: self.file_bytes + self.growth_bytes,
            step,
            disk: self.facts.disk.as_deref().ok(),
            budget: self.time.mul_f64(share),
            clock,
            stop,
        };
        bench.run(scratch)
    }

    /// What is known before anything is measured.
    fn known(&self) -> SyncReadings {
        let facts = &self.facts;
        SyncReadings {
            path: self.place.path().display().to_string(),
            commits_per_s: self.commits_per_s,
            file_bytes: self.file_bytes,
            is_memory: facts.is_tmpfs,
            write_cache: facts.write_cache.clone().ok(),
            fua: facts.fua.clone().ok(),
            rotational: facts.rotational.clone().ok(),
            facts: facts.lines().into_iter().map(|(name, value)| Fact { name: name.to_owned(), value }).collect(),
            ..SyncReadings::default()
        }
    }
}

/// One step about to be made.
struct Bench<'a> {
    path: &'a Path,
    file_bytes: u64,
    end_bytes: u64,
    step: &'a Step,
    /// The device's kernel name, if there is one.
    disk: Option<&'a str>,
    budget: Duration,
    clock: &'a Clock,
    stop: &'a Stop,
}

impl Bench<'_> {
    fn run(&self, scratch: &mut Scratch) -> Result<SyncReading, EngineError> {
        if let Some(why) = &self.step.refused {
            return Ok(self.reading(Outcome::default(), Some(why.clone())));
        }
        scratch.settle()?;
        let before = self.written();
        let ended = match self.step.method {
            SyncMethod::Ring => ring::run(self),
            SyncMethod::Group | SyncMethod::OneByOne => shared::run(self),
            _ => streams::run(self).map(|outcome| (outcome, None)),
        };
        match ended {
            Ok((outcome, note)) => Ok(SyncReading {
                device_write_bytes: before.zip(self.written()).map(|(before, after)| after.saturating_sub(before)),
                ..self.reading(outcome, note)
            }),
            // A size that direct I/O cannot write here has no figure.
            Err(BlockError::Io { source, .. })
                if self.step.bytes < 4096 && source.kind() == std::io::ErrorKind::InvalidInput =>
            {
                let why = "direct I/O of this size is refused here".to_owned();
                Ok(self.reading(Outcome::default(), Some(why)))
            }
            Err(error) => Err(failed(error)),
        }
    }

    /// Bytes the device has written since the system started.
    fn written(&self) -> Option<u64> {
        let disk = self.disk?;
        let text = std::fs::read_to_string("/proc/diskstats").ok()?;
        let mut disks = host::text::diskstats(&text).into_iter();
        Some(disks.find(|reading| reading.name == disk)?.write_bytes)
    }

    fn reading(&self, outcome: Outcome, note: Option<String>) -> SyncReading {
        let step = self.step;
        let elapsed_ns = outcome.ended_ns.saturating_sub(outcome.begun_ns);
        let writes = outcome.latency.count();
        SyncReading {
            part: step.part,
            method: step.method,
            growing: step.growing,
            streams: step.streams,
            bytes: step.bytes,
            elapsed_ns,
            latency: outcome.latency,
            flushes: outcome.flushes,
            rates: match elapsed_ns {
                0 => Vec::new(),
                ns => vec![writes as f64 * 1e9 / ns as f64],
            },
            device_write_bytes: None,
            note,
        }
    }
}

/// What one stream, or all together, did in a step.
#[derive(Clone, Debug, Default)]
struct Outcome {
    begun_ns: u64,
    ended_ns: u64,
    latency: assay_measure::histogram::Histogram,
    flushes: u64,
}

impl Outcome {
    fn begin(clock: &Clock) -> Self {
        let now = clock.now_ns();
        Self { begun_ns: now, ended_ns: now, ..Self::default() }
    }

    /// A write that took from `start_ns` to `end_ns`.
    fn record(&mut self, start_ns: u64, end_ns: u64) {
        self.latency.record(end_ns - start_ns);
        self.ended_ns = end_ns;
    }

    fn merge(&mut self, other: &Self) {
        self.begun_ns = self.begun_ns.min(other.begun_ns);
        self.ended_ns = self.ended_ns.max(other.ended_ns);
        self.latency.merge(&other.latency);
        self.flushes += other.flushes;
    }
}
