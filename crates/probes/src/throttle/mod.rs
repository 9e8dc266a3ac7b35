//! `assay throttle`: which caps and token buckets limit reads, bytes and durable writes, and what is left once a burst is over.
//!
//! Owns the load (`load`), what is fitted to it (`fit`), its figures (`info`, `record`) and what is said of them (`findings`, `page`). See
//! `README.md`.

mod findings;
mod fit;
mod info;
mod load;
mod page;
mod record;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::scratch::{Place, Scratch, failed, left_behind};
use assay_block::{DeviceFacts, device_facts};
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, RunData};
use assay_run::dataset::lines::{bytes, count, decimal, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use fit::Load;
use load::{Loader, RESOURCES, SLICE};
use std::time::{Duration, Instant};

/// Bytes of the scratch file, the marker's block included.
const FILE_BYTES: u64 = 128 << 20;
/// Parts of a resource's time: loaded, left alone, loaded deeper.
const LOADED: f64 = 0.5;
const PAUSE: f64 = 0.15;
/// A segment of a request is one page, where no pages lie side by side.
const PAGE_BYTES: u64 = 4096;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Find caps and token buckets of reads, bytes and durable writes: what is left when a burst is over",
    more: "This takes about a minute. assay keeps the storage busy with reads of 8 KiB, with reads of 1 MiB, and with writes of 4 KiB that \
           are each followed by fdatasync: half of the time, then a pause, then four times as deep. From the rates it tells a token bucket (a burst that \
           ends, and is back after the pause), a level that a limit keeps, and neither; it names the control group where one has set the limit. A \
           bucket that lasts longer than the load is not seen: use a longer --time. It removes its scratch file at the end.",
    takes: Takes::Place,
    usual_time: Some("60s"),
    ..ProbeSpec::new("throttle", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let place = Place::find(&request.place, SPEC.name)?;
    place.check_space(FILE_BYTES)?;
    let free_bytes = place.room()?.free_bytes;
    let facts = device_facts(place.path());
    Ok(Box::new(Aim { place, facts, free_bytes, time: request.time }))
}

/// What was measured, before it is a record.
#[derive(Clone, Debug, Default, PartialEq)]
struct ThrottleReadings {
    path: String,
    /// The device's kernel name, if there is one.
    disk: Option<String>,
    /// As [`Aim::request_bytes`].
    request_bytes: Option<[u64; 2]>,
    is_memory: bool,
    is_direct: bool,
    /// The place and the device under it.
    facts: Vec<Fact>,
    /// As in [`RESOURCES`], as many as were loaded.
    loads: Vec<Load>,
    host: HostWindow,
    is_stopped: bool,
}

impl Measured for ThrottleReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe aimed at a place.
struct Aim {
    place: Place,
    facts: DeviceFacts,
    free_bytes: u64,
    time: Duration,
}

impl Aim {
    /// The time of one resource.
    fn share(&self) -> Duration {
        self.time / RESOURCES.len() as u32
    }

    /// Loads a resource, leaves it alone, and loads it deeper.
    fn load(&self, loader: &Loader<'_>) -> Result<Load, EngineError> {
        let [depth, deeper] = loader.resource.depths;
        let first = loader.saturate(depth, self.share().mul_f64(LOADED)).map_err(failed)?;
        let (begun, pause) = (Instant::now(), self.share().mul_f64(PAUSE));
        while begun.elapsed() < pause && !loader.stop.requested() {
            std::thread::sleep(SLICE.min(pause.saturating_sub(begun.elapsed())));
        }
        let pause_s = begun.elapsed().as_secs_f64();
        let second = if loader.stop.requested() {
            Vec::new()
        } else {
            loader.saturate(deeper, self.share().mul_f64(1.0 - LOADED - PAUSE)).map_err(failed)?
        };
        Ok(Load { slice_s: SLICE.as_secs_f64(), done: [first, second], pause_s })
    }

    /// Bytes of the largest request that the block layer makes: of pages that lie apart, and of pages side by side.
    fn request_bytes(&self) -> Option<[u64; 2]> {
        let disk = self.facts.disk.as_ref().ok()?;
        let limit = |name: &str| -> Option<u64> {
            std::fs::read_to_string(format!("/sys/block/{disk}/queue/{name}")).ok()?.trim().parse().ok()
        };
        let most = limit("max_sectors_kb")?.saturating_mul(1024);
        Some([limit("max_segments")?.saturating_mul(PAGE_BYTES).min(most), most])
    }
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let share = self.share().as_secs_f64();
        let mut lines = vec![
            text("scratch_file", "scratch file, removed at the end", self.place.path().display().to_string()),
            bytes("file_bytes", "scratch file", FILE_BYTES),
            count("free_bytes", "free there", self.free_bytes),
            text("loads", "loads", RESOURCES.map(|resource| resource.operation).join(", ")),
            decimal("loaded_s", "each loaded, s", share * LOADED),
            decimal("pause_s", "then left alone, s", share * PAUSE),
            decimal("deeper_s", "then loaded four times as deep, s", share * (1.0 - LOADED - PAUSE)),
            measuring(self.time),
        ];
        lines.extend(left_behind(self.place.directory()));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let around = Around::begin();
        steps.step(0, RESOURCES.len(), "writing the scratch file");
        let Some(scratch) = Scratch::create(&self.place, (FILE_BYTES, 0), &mut |_| !stop.requested())? else {
            return Err(EngineError::Interrupted);
        };
        let (path, clock) = (scratch.opened(), Clock::real());
        steps.ready();
        steps.begin();
        let mut loads = Vec::new();
        for (at, resource) in RESOURCES.into_iter().enumerate() {
            if stop.requested() {
                break;
            }
            steps.step(at + 1, RESOURCES.len(), resource.operation);
            let loader = Loader { path: &path, file_bytes: FILE_BYTES, resource, clock: &clock, stop };
            loads.push(self.load(&loader)?);
        }
        let is_direct = scratch.is_direct();
        scratch.remove()?;
        if loads.is_empty() {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(ThrottleReadings {
            path: self.place.path().display().to_string(),
            disk: self.facts.disk.clone().ok(),
            request_bytes: self.request_bytes(),
            is_memory: self.facts.is_tmpfs,
            is_direct,
            facts: self.facts.lines().into_iter().map(|(name, value)| Fact::new(name, &value)).collect(),
            loads,
            host: around.end(),
            is_stopped: stop.requested(),
        }))
    }
}
