//! `assay interference`: what a log writer, point reads, a scan, a checkpoint and a backup copy do to each other on this storage.
//!
//! Owns the roles (`role`), their load (`load`), the matrix that follows (`matrix`), its figures (`info`, `record`) and what is said of
//! them (`findings`, `page`). See `README.md`.

mod findings;
mod info;
mod load;
mod matrix;
mod page;
mod record;
mod role;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::scratch::{Place, Scratch, failed, left_behind};
use assay_block::{DeviceFacts, device_facts};
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, RunData};
use assay_measure::units::MIB;
use assay_run::dataset::lines::{bytes, count, decimal, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::probe_options;
use assay_run::stop::Stop;
use load::{Files, Slice};
use matrix::Reading;
use role::{BACKUP, PIECE_BYTES, ROLES};
use std::path::Path;
use std::time::Duration;

/// Bytes of the log, which is written over and over.
const LOG_BYTES: u64 = 16 << 20;
/// Bytes of the data file for each second of the time, within limits: short tests lay out little.
const BYTES_PER_S: u64 = 16 << 20;
const USUAL_BYTES: [u64; 2] = [64 << 20, 1 << 30];
/// Time for which a round is worth its while, and how many there are.
const ROUND: Duration = Duration::from_secs(15);
const ROUNDS: [u32; 2] = [8, 16];
/// Parts of a slice's share of the time: not counted at its beginning, and counted; the rest is left for its end.
const LEAD: f64 = 0.1;
const COUNTED: f64 = 0.75;

probe_options! {
    OPTIONS:
    SIZE: "size" ["SIZE"], "Bytes of the data file; the copy may take as much again [default: 16M for each second, 64M to 1G]";
    SEED: "seed" ["N"] = "1", "Order of the slices and places of the reads and writes";
}

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Show what a backup copy, a scan or a checkpoint does to commits and reads on this storage",
    more: "This takes about three minutes. Five roles work on files in PATH, a directory, past the page cache: a log writer (4 KiB writes, each with \
           fdatasync), point reads (8 KiB), a scan (1 MiB), a checkpoint (bursts of 8 KiB writes with a sync) and a backup copy. Each works \
           alone and every two together, in short slices in an order by chance, several times. The result is a matrix: the p99 of each role \
           beside each other one, in multiples of alone, and whether that is more than noise. It removes its files at the end.",
    takes: Takes::Place,
    usual_time: Some("3m"),
    quick_time: Some("1m"),
    options: &[OPTIONS],
    ..ProbeSpec::new("interference", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    if !request.place.is_dir() {
        let place = request.place.display();
        return Err(EngineError::Usage(format!(
            "{place}: is not a directory; name one, since there are several files"
        )));
    }
    let [least, most] = USUAL_BYTES;
    let usual = (BYTES_PER_S * request.time.as_secs()).clamp(least, most);
    let data_bytes = request.size_bytes(&SIZE, 4 * MIB..=1 << 50)?.unwrap_or(usual) / PIECE_BYTES * PIECE_BYTES;
    let place = || Place::find(&request.place, SPEC.name);
    let places = [place()?, place()?, place()?];
    places[0].check_space(2 * data_bytes + LOG_BYTES)?;
    Ok(Box::new(Aim {
        facts: device_facts(places[0].path()),
        free_bytes: places[0].room()?.free_bytes,
        directory: request.place.canonicalize().unwrap_or_else(|_| request.place.clone()).display().to_string(),
        places,
        data_bytes,
        seed: request.number(&SEED, 0..=u64::MAX)?.unwrap_or_default(),
        time: request.time,
    }))
}

/// The place and the device under it, and how a control group would limit its rate.
fn facts(facts: &DeviceFacts) -> Vec<Fact> {
    let mut lines: Vec<Fact> = facts.lines().into_iter().map(|(name, value)| Fact::new(name, &value)).collect();
    let controllers = std::fs::read_to_string("/sys/fs/cgroup/cgroup.controllers").unwrap_or_default();
    if controllers.split_whitespace().any(|controller| controller == "io") {
        lines.push(Fact::new(findings::RATE_LIMIT, "io.max"));
    } else if Path::new("/sys/fs/cgroup/blkio").is_dir() {
        lines.push(Fact::new(findings::RATE_LIMIT, "blkio.throttle"));
    }
    lines
}

/// What was measured, before it is a record.
#[derive(Clone, Debug, Default, PartialEq)]
struct InterferenceReadings {
    directory: String,
    /// The device's kernel name, if there is one.
    disk: Option<String>,
    is_memory: bool,
    is_direct: bool,
    facts: Vec<Fact>,
    data_bytes: u64,
    seed: u64,
    /// Planned.
    rounds: u32,
    slice_s: f64,
    readings: Vec<Reading>,
    host: HostWindow,
    is_stopped: bool,
}

impl Measured for InterferenceReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe aimed at a directory.
struct Aim {
    directory: String,
    /// Of the log, the data and the copy.
    places: [Place; 3],
    facts: DeviceFacts,
    free_bytes: u64,
    data_bytes: u64,
    seed: u64,
    time: Duration,
}

impl Aim {
    fn rounds(&self) -> u32 {
        let [least, most] = ROUNDS;
        ((self.time.as_secs() / ROUND.as_secs()) as u32).clamp(least, most)
    }

    /// A slice's share of the time.
    fn share(&self) -> Duration {
        self.time / (self.rounds() * role::combinations().len() as u32)
    }

    /// The files: the log, the data, and the copy, which grows. Nothing if told to end meanwhile.
    fn files(&self, stop: &Stop) -> Result<Option<[Scratch; 3]>, EngineError> {
        let [log, data, copy] = &self.places;
        let make = |place, bytes| Scratch::create(place, bytes, &mut |_| !stop.requested());
        let Some(data) = make(data, (self.data_bytes, 0))? else { return Ok(None) };
        let Some(log) = make(log, (LOG_BYTES, 0))? else { return Ok(None) };
        let copy = make(copy, (PIECE_BYTES, self.data_bytes - PIECE_BYTES))?;
        Ok(copy.map(|copy| [log, data, copy]))
    }

    /// All slices in their order, as many as the time allows. One that a stop request cut short is left out.
    fn slices(&self, scratch: &mut [Scratch; 3], stop: &Stop, steps: &dyn Steps) -> Result<Vec<Reading>, EngineError> {
        let (clock, share, mut readings) = (Clock::real(), self.share(), Vec::new());
        let [log, data, copy] = scratch.each_ref().map(Scratch::opened);
        let files = Files { log: &log, log_bytes: LOG_BYTES, data: &data, data_bytes: self.data_bytes, copy: &copy };
        let over = clock.now_ns() + self.time.as_nanos() as u64;
        let order = role::order(self.rounds(), self.seed);
        for (at, (round, roles)) in order.iter().enumerate() {
            if stop.requested() {
                break;
            }
            steps.step(at + 1, order.len(), &role::told(roles));
            if clock.now_ns() >= over {
                // A storage slower than the plan: what is left is told, and not measured.
                continue;
            }
            let slice = Slice {
                files,
                lead: share.mul_f64(LEAD),
                time: share.mul_f64(COUNTED),
                seed: self.seed.wrapping_add(at as u64 + 1),
                clock: &clock,
                stop,
            };
            let latencies = slice.run(roles).map_err(failed)?;
            if stop.requested() {
                break;
            }
            for (latency, role) in latencies.into_iter().zip(roles) {
                let beside = roles.iter().find(|other| *other != role).copied();
                // A clone is compact.
                readings.push(Reading { round: *round, role: *role, beside, latency: latency.clone() });
            }
            if roles.contains(&BACKUP) {
                // The next slice does not pay for the copy.
                scratch[2].settle()?;
            }
        }
        Ok(readings)
    }
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let share = self.share().as_secs_f64();
        let mut lines = vec![
            text("directory", "three scratch files, removed at the end, in", self.directory.clone()),
            bytes("data_bytes", "data file laid out first", self.data_bytes),
            bytes("log_bytes", "log", LOG_BYTES),
            bytes("copy_bytes", "the backup's copy at most", self.data_bytes),
            count("free_bytes", "free there", self.free_bytes),
            text("roles", "roles", ROLES.map(|role| role.name).join(", ")),
            count("slices", "slices", u64::from(self.rounds()) * role::combinations().len() as u64),
            count("rounds", "rounds of every role alone (twice) and every pair", u64::from(self.rounds())),
            decimal("slice_s", "counted in each slice, s", share * COUNTED),
            measuring(self.time),
        ];
        lines.extend(left_behind(self.places[0].directory()));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let around = Around::begin();
        let of = self.rounds() as usize * role::combinations().len();
        steps.step(0, of, "writing the data file");
        let Some(mut scratch) = self.files(stop)? else { return Err(EngineError::Interrupted) };
        let is_direct = scratch.iter().all(Scratch::is_direct);
        steps.ready();
        steps.begin();
        let readings = self.slices(&mut scratch, stop, steps)?;
        scratch.into_iter().try_for_each(Scratch::remove)?;
        if readings.is_empty() {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(InterferenceReadings {
            directory: self.directory.clone(),
            disk: self.facts.disk.clone().ok(),
            is_memory: self.facts.is_tmpfs,
            is_direct,
            facts: facts(&self.facts),
            data_bytes: self.data_bytes,
            seed: self.seed,
            rounds: self.rounds(),
            slice_s: self.share().mul_f64(COUNTED).as_secs_f64(),
            readings,
            host: around.end(),
            is_stopped: stop.requested(),
        }))
    }
}
