//! `assay first-touch`: which part of a device or of existing files is slow at its first read and quick afterwards.
//!
//! Owns what is read (`object`, `layout`), how (`reader`, `sample`), what follows from it (`estimate`), its figures (`info`,
//! `record`) and what is said of them (`findings`, `page`). It never writes. See `README.md`.

mod estimate;
mod findings;
mod info;
mod layout;
mod object;
mod page;
mod reader;
mod record;
mod sample;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use assay_block::device_facts;
use assay_measure::clock::{Clock, Ns};
use assay_measure::prng::{Purpose, Stream};
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, RunData};
use assay_measure::units::{duration, parse_size_bytes, size};
use assay_run::dataset::lines::{bytes, count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use estimate::Estimate;
use layout::{BLOCK_BYTES, PIECE_BYTES};
use object::Object;
use reader::{RingReader, Streamed};
use sample::{Sample, Touch};
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// Part of the time in which blocks are read twice; the rest tells how fast the cold part can be read.
const TWICE: f64 = 0.8;
/// Reads in flight while the cold part is read.
pub(super) const READERS: usize = 16;
/// Progress is told so many times while blocks are read twice.
const TOLD: usize = 10;
/// Bytes per second that `--hydrate` takes at least: with less nobody lives to see the end.
const LEAST_RATE: u64 = 64 << 10;

assay_run::probe_options! {
    OPTIONS:
    SAMPLES: "samples" ["N"] = "4096", "Read at most N blocks twice";
    SEED: "seed" ["N"], "Choose the blocks by this number: the same ones again, which are warm by then [default: by chance]";
    HYDRATE: "hydrate" ["RATE"], "Then read the cold regions whole, at this rate at most, such as 100MiB/s";
    HYDRATE_ALL: "hydrate-all", "With --hydrate: read all of it, whatever was found";
    /// Where nothing can be read, that is the result.
    UNREADABLE: "unreadable-is-unknown", "";
}

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Find what is slow at its first read: a volume restored lazily, thin or tiered; and read it in advance",
    more: "Where a directory has few files, the block device below it is read. assay only reads. It reads blocks by chance, each twice, and then a block beside it. A region is cold where first reads are much slower than \
           second ones. The answer tells how much is cold, what that costs a read, and how long it takes to read all of it. With \
           --hydrate it does so after the test, at the rate given; Ctrl-C ends that, and the answer says how far it came.",
    takes: Takes::Place,
    place_help: "A block device, a file, or a directory whose files are read",
    usual_time: Some("30s"),
    options: &[OPTIONS],
    ..ProbeSpec::new("first-touch", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let drawn = u64::from(since_epoch.subsec_nanos()) ^ since_epoch.as_secs() << 20 ^ u64::from(std::process::id());
    let samples = request.number(&SAMPLES, 64..=1_000_000)?.unwrap_or_default();
    let seed = request.number(&SEED, 0..=u64::MAX)?.unwrap_or(drawn);
    let rate = request.read(&HYDRATE, rate)?;
    let is_all = request.is_on(&HYDRATE_ALL);
    if is_all && rate.is_none() {
        return Err(EngineError::Usage("--hydrate-all needs --hydrate RATE, such as --hydrate 100MiB/s".to_owned()));
    }
    let object = match Object::find(&request.place) {
        Err(EngineError::Unusable(why)) if request.is_on(&UNREADABLE) => Err(why),
        found => Ok(found?),
    };
    Ok(Box::new(Aim { place: request.place.clone(), object, samples, seed, rate, is_all, time: request.time }))
}

/// `100MiB/s`: bytes per second.
fn rate(text: &str) -> Result<u64, String> {
    let text = text.strip_suffix("/s").unwrap_or(text);
    match parse_size_bytes(text).map_err(|error| error.to_string())? {
        per_s if per_s < LEAST_RATE => Err(format!("{}/s or more is taken", size(LEAST_RATE))),
        per_s => Ok(per_s),
    }
}

/// What was measured, before it is a record.
#[derive(Clone, Debug, Default, PartialEq)]
struct FirstTouchReadings {
    path: String,
    /// `block device`, `file` or `files`.
    kind: String,
    disk: String,
    is_memory: bool,
    is_direct: bool,
    /// The place and the device under it.
    facts: Vec<Fact>,
    data_bytes: u64,
    hole_bytes: u64,
    /// Files that were not looked into, and their bytes.
    left_out: (u64, u64),
    /// Why nothing could be read.
    unreadable: Option<String>,
    seed: u64,
    /// Bytes of each region.
    regions: Vec<u64>,
    touches: Vec<Touch>,
    /// How fast the cold part is read: by one reader and by several.
    speeds: [Option<Streamed>; 2],
    /// What was asked of hydration, bytes per second and bytes; and what was read.
    hydration: Option<(u64, u64, Streamed)>,
    host: HostWindow,
    is_stopped: bool,
}

impl Measured for FirstTouchReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe aimed at what is there.
struct Aim {
    place: PathBuf,
    /// What is read; or why nothing can be.
    object: Result<Object, String>,
    samples: usize,
    seed: u64,
    /// Of hydration, bytes per second, and whether everything is read.
    rate: Option<u64>,
    is_all: bool,
    time: Duration,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let object = match &self.object {
            Ok(object) => object,
            Err(why) => return vec![text("unreadable", "cannot be known", why.clone())],
        };
        let layout = &object.layout;
        let samples = self.samples.min(layout.slots() as usize) as u64;
        let mut lines = vec![
            text("object", "read, never written", format!("{}, {}", object.path.display(), object.kind)),
            bytes("data_bytes", "data there", layout.bytes()),
            count("regions", "regions", layout.regions() as u64),
            count("samples", "blocks read twice, at most", samples),
            bytes("read_bytes", "that reads at most", samples * 3 * BLOCK_BYTES),
            text("seed", "seed", self.seed.to_string()),
            measuring(self.time),
        ];
        if object.hole_bytes > 0 {
            lines.insert(2, bytes("hole_bytes", "holes (never written)", object.hole_bytes));
        }
        if object.left_out.0 > 0 {
            lines.insert(2, count("files_left_out", "files left out", object.left_out.0));
        }
        if let Some(rate) = self.rate {
            let most = duration((layout.bytes() as f64 / rate as f64 * 1e9) as Ns);
            let what = if self.is_all { "all of it" } else { "the cold regions" };
            lines.push(text("hydrate", "then read", format!("{what} at {}/s: {most} at most", size(rate))));
        }
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let object = match &self.object {
            Ok(object) => object,
            Err(why) => return Ok(Box::new(self.unreadable(why, steps))),
        };
        let around = Around::begin();
        let of = TOLD + 1 + usize::from(self.rate.is_some());
        steps.step(0, of, "opening");
        let (clock, layout) = (Clock::real(), &object.layout);
        let mut reader = RingReader::open(&object.files, &clock, stop)?;
        let mut chance = Stream::new(self.seed, 0, Purpose::Sample);
        let mut told = 0;
        let mut tell = |upto: usize| {
            while told < upto && !stop.requested() {
                told += 1;
                steps.step(told, of, "reading blocks twice");
            }
        };
        let begun = clock.now_ns();
        let spent = || (clock.now_ns() - begun) as f64 / self.time.as_nanos() as f64 / TWICE;
        let samples = self.samples.min(layout.slots() as usize);
        let touches = Sample { layout, most: samples }.take(&mut reader, &mut chance, &mut |done| {
            let share = spent().max(done as f64 / samples as f64);
            tell(1 + (share * TOLD as f64) as usize);
            share < 1.0 && !stop.requested()
        })?;
        tell(TOLD);
        if touches.is_empty() {
            return Err(EngineError::Interrupted);
        }
        let mut readings = self.read_twice(object, touches);
        let estimate = Estimate::of(&readings.touches, layout.regions());
        if !stop.requested() {
            steps.step(TOLD + 1, of, "how fast the cold part can be read");
            let share = self.time.mul_f64((1.0 - TWICE) / 2.0);
            let cold = estimate.hydrated();
            for (speed, readers) in readings.speeds.iter_mut().zip([1, READERS]).filter(|_| !cold.is_empty()) {
                let until = clock.now_ns() + share.as_nanos() as u64;
                let mut pieces = std::iter::from_fn(|| layout.piece_by_chance(&cold, &mut chance));
                let goes_on = &mut |_| clock.now_ns() < until && !stop.requested();
                *speed = Some(reader.stream(&mut pieces, readers, None, goes_on)?);
            }
        }
        if let Some(rate) = self.rate.filter(|_| !stop.requested()) {
            steps.step(of, of, "reading the cold regions");
            let which = if self.is_all { (0..layout.regions()).collect() } else { estimate.hydrated() };
            let all: u64 = which.iter().map(|region| layout.region_bytes(*region)).sum();
            let mut progress = Hydrating { begun: clock.now_ns(), told: 0, all, clock: &clock, steps };
            let goes_on = &mut |done| {
                progress.tell(done);
                !stop.requested()
            };
            let mut pieces = layout.pieces(&which);
            readings.hydration = Some((rate, all, reader.stream(&mut pieces, READERS, Some(rate), goes_on)?));
        }
        Ok(Box::new(FirstTouchReadings { host: around.end(), is_stopped: stop.requested(), ..readings }))
    }
}

impl Aim {
    fn unreadable(&self, why: &str, steps: &dyn Steps) -> FirstTouchReadings {
        steps.step(0, 1, "opening");
        steps.step(1, 1, "nothing can be read");
        FirstTouchReadings {
            path: self.place.display().to_string(),
            unreadable: Some(why.to_owned()),
            seed: self.seed,
            host: Around::begin().end(),
            ..FirstTouchReadings::default()
        }
    }

    fn read_twice(&self, object: &Object, touches: Vec<Touch>) -> FirstTouchReadings {
        let facts = device_facts(&object.path);
        let layout = &object.layout;
        FirstTouchReadings {
            path: object.path.display().to_string(),
            kind: object.kind.to_owned(),
            disk: facts.disk.clone().unwrap_or_default(),
            is_memory: facts.is_tmpfs,
            is_direct: object.files.iter().all(|file| file.is_direct()),
            facts: facts.lines().into_iter().map(|(name, value)| Fact::new(name, &value)).collect(),
            data_bytes: layout.bytes(),
            hole_bytes: object.hole_bytes,
            left_out: object.left_out,
            seed: self.seed,
            regions: (0..layout.regions()).map(|region| layout.region_bytes(region)).collect(),
            touches,
            ..FirstTouchReadings::default()
        }
    }
}

/// How far reading in advance is.
struct Hydrating<'a> {
    begun: Ns,
    /// When it was last told.
    told: Ns,
    all: u64,
    clock: &'a Clock,
    steps: &'a dyn Steps,
}

impl Hydrating<'_> {
    /// Once a second.
    fn tell(&mut self, done: u64) {
        let now = self.clock.now_ns();
        if now < self.told + 1_000_000_000 || done == 0 {
            return;
        }
        self.told = now;
        let spent = (now - self.begun) as f64;
        let left = spent / done as f64 * self.all.saturating_sub(done) as f64;
        self.steps.say(&format!("read {} of {}, about {} left", size(done), size(self.all), duration(left as Ns)));
    }
}

const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES));
