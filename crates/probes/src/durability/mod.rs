//! `assay durability`: does what was acknowledged survive a cut, what does a durable write cost, and may a page tear?
//!
//! Owns what is measured without a cut (`costs`), the stamps in their file (`stamps`), the one who writes them (`writer`) and the one who
//! acknowledges them (`witness`), the verdict (`verdict`), its figures (`info`, `record`) and what is said of them (`findings`, `page`).
//! See `README.md`.

mod costs;
mod findings;
mod info;
mod options;
mod page;
mod record;
mod stamps;
mod verdict;
mod witness;
mod writer;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::peer::asked;
use crate::scratch::{Place, Scratch, left_behind};
use assay_block::{DeviceFacts, TearUnits, device_facts, hypervisor_signature, tear_units};
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{bytes, count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use costs::Cost;
use info::{COSTS, READ_BACK, STAMPS};
use std::fs::File;
use std::time::Duration;
use writer::{Link, Stamped};

/// The word in the place of the directory.
const WITNESS: &str = "witness";

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Judge whether acknowledged writes survive a power cut, and what they cost",
    more: "Without a witness assay measures what a commit costs and asks what the device announces: it never calls storage durable from \
           that. For a verdict start `assay durability witness --bind ADDR` on another host, then `assay durability DIR --witness \
           HOST --time 1h` here: each stamp is written, synced, and acknowledged by the witness before the next. Cut the power, start again, and \
           read the stamps back with `assay durability DIR --resume --witness HOST --cut power`. Cuts add up. The file of stamps \
           (64 MiB) stays in DIR until you remove it.",
    takes: Takes::PlaceOr(WITNESS, |request| Ok(Box::new(witness::Witness::of(request)?))),
    usual_time: Some("20s"),
    options: &[options::OPTIONS],
    follows: &[("p50", &["commit_us_p50"])],
    ..ProbeSpec::new("durability", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let place = Place::find(&request.place, SPEC.name)?;
    let patience = request.duration(&options::PATIENCE, Duration::from_secs(1)..=Duration::from_secs(600))?;
    let secret = asked::secret(request, &options::SECRET_FILE)?;
    let link = options::witness(request)?.map(|(host, port)| Link {
        host,
        port,
        patience: patience.unwrap_or_default(),
        secret,
    });
    let cut = request.choice(&options::CUT, &writer::CUTS)?;
    let part = match (request.is_on(&options::RESUME), link) {
        (false, _) if cut.is_some() => {
            return Err(EngineError::Usage("--cut says what a cut was: it goes with --resume".to_owned()));
        }
        (true, None) => {
            return Err(EngineError::Usage(
                "--resume: name the witness that acknowledged the stamps (--witness HOST)".to_owned(),
            ));
        }
        (_, Some(_)) if !request.place.is_dir() => {
            let place = request.place.display();
            return Err(EngineError::Usage(format!("{place}: with --witness name a directory")));
        }
        (true, Some(link)) => Part::ReadBack(link, cut),
        (false, Some(link)) => Part::Stamps(link),
        (false, None) => Part::Costs,
    };
    let facts = device_facts(&match part {
        Part::Costs => place.path().to_path_buf(),
        _ => stamps::path_in(place.directory()),
    });
    let needed = match part {
        Part::Costs => costs::FILE_BYTES,
        Part::Stamps(_) if !stamps::path_in(place.directory()).exists() => stamps::FILE_BYTES,
        _ => 0,
    };
    place.check_space(needed)?;
    Ok(Box::new(Aim { place, facts, time: request.time, part }))
}

/// What is done.
enum Part {
    Costs,
    Stamps(Link),
    ReadBack(Link, Option<&'static str>),
}

/// What was found, before it is a record.
#[derive(Clone, Debug)]
struct DurabilityReadings {
    path: String,
    part: &'static str,
    facts: DeviceFacts,
    is_direct: bool,
    is_virtual: bool,
    units: Option<TearUnits>,
    /// As in [`costs::WAYS`], as many as there was time for.
    costs: Vec<Cost>,
    witness: String,
    stamped: Option<Stamped>,
    host: HostWindow,
    is_stopped: bool,
}

impl Measured for DurabilityReadings {
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
    time: Duration,
    part: Part,
}

impl Aim {
    fn readings(&self, part: &'static str) -> DurabilityReadings {
        DurabilityReadings {
            path: self.place.path().display().to_string(),
            part,
            facts: self.facts.clone(),
            is_direct: true,
            is_virtual: hypervisor_signature().is_some(),
            units: None,
            costs: Vec::new(),
            witness: String::new(),
            stamped: None,
            host: HostWindow::default(),
            is_stopped: false,
        }
    }

    fn costs(&self, stop: &Stop, steps: &dyn Steps) -> Result<DurabilityReadings, EngineError> {
        steps.step(0, costs::ROUNDS * costs::WAYS.len(), "writing the scratch file");
        let made = Scratch::create(&self.place, (costs::FILE_BYTES, 0), &mut |_| !stop.requested())?;
        let Some(scratch) = made else {
            return Err(EngineError::Interrupted);
        };
        let units = File::open(scratch.opened()).map(|file| tear_units(&file, &self.facts)).ok();
        let is_direct = scratch.is_direct();
        steps.ready();
        steps.begin();
        let costs = costs::measure(&scratch, self.time, stop, steps)?;
        scratch.remove()?;
        Ok(DurabilityReadings { is_direct, units, costs, ..self.readings(COSTS) })
    }

    fn stamped(&self, link: &Link, part: &'static str, stamped: Stamped) -> DurabilityReadings {
        let units = File::open(&stamped.path).map(|file| tear_units(&file, &self.facts)).ok();
        DurabilityReadings {
            path: stamped.path.clone(),
            is_direct: stamped.is_direct || part == READ_BACK,
            units,
            witness: link.name(),
            stamped: Some(stamped),
            ..self.readings(part)
        }
    }
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let stamps = || {
            text(
                "stamps",
                "stamps, kept until you remove it",
                stamps::path_in(self.place.directory()).display().to_string(),
            )
        };
        let mut lines = match &self.part {
            Part::Costs => vec![
                text("scratch_file", "scratch file, removed at the end", self.place.path().display().to_string()),
                bytes("file_bytes", "scratch file", costs::FILE_BYTES),
                count("ways", "ways to write", costs::WAYS.len() as u64),
                measuring(self.time),
            ],
            Part::Stamps(link) => vec![
                stamps(),
                bytes("file_bytes", "file of stamps", stamps::FILE_BYTES),
                text("witness", "witness", link.name()),
                measuring(self.time),
            ],
            Part::ReadBack(link, _) => vec![stamps(), text("witness", "witness", link.name())],
        };
        lines.extend(left_behind(self.place.directory()));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let around = Around::begin();
        let directory = self.place.directory();
        let mut readings = match &self.part {
            Part::Costs => self.costs(stop, steps)?,
            Part::Stamps(link) => {
                steps.step(0, self.time.as_secs().max(1) as usize, "the file of stamps");
                self.stamped(link, STAMPS, link.write(directory, self.time, stop, steps)?)
            }
            Part::ReadBack(link, cut) => {
                steps.step(0, 1, "reading the stamps back");
                self.stamped(link, READ_BACK, link.read_back(directory, *cut, stop)?)
            }
        };
        readings.is_stopped = stop.requested();
        if readings.stamped.is_none() && readings.costs.is_empty() {
            return Err(EngineError::Interrupted);
        }
        readings.host = around.end();
        Ok(Box::new(readings))
    }
}
