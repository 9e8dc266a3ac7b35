//! `assay io`: the bare storage, with fio's options, job files and reports.
//!
//! Owns the job language, the files it works on, the I/O patterns and the work loop; knows
//! nothing of reports. The requests themselves belong to `assay_block`. See `README.md`.
#![forbid(unsafe_code)]

pub mod files;
pub mod language;
mod measured;
pub mod pattern;
pub mod payload;
pub mod readings;
pub mod record;
pub mod spec;
pub mod steady;
mod usual;
pub mod verify;

mod work;

// The fixture names this crate as others do.
#[cfg(test)]
extern crate self as assay_storage;
#[cfg(test)]
#[path = "../../testkit/src/fixtures/storage.rs"]
mod fixture;

pub use measured::StorageMeasured;

use crate::readings::StorageReadings;
use assay_run::engine::{EngineError, Line};
use assay_run::left::{Kind, Mark};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps, Takes};
use assay_run::stop::Stop;
use assay_run::threads;
use files::FilePlan;
use language::World;
use spec::Invocation;
use std::collections::BTreeMap;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "the bare storage, with fio's options, job files and reports",
    takes: Takes::Place,
    has_own_command: true,
    ..ProbeSpec::new("io", &record::Storage, |request| Ok(Box::new(aim(requested(request)?)?)))
};

/// The words of a request; the usual jobs in its place where it has none, small and for about its time together.
fn requested(request: &Request) -> Result<Invocation, EngineError> {
    if !request.words.is_empty() {
        return invocation(&request.words);
    }
    let place = &request.place;
    if !place.is_dir() {
        let what = "is not a directory: name a directory for a scratch file, or give jobs";
        return Err(EngineError::Usage(format!("{} {what}", place.display())));
    }
    let each = format!("--runtime={}us", request.time.as_micros() / 2);
    invocation(&[place.to_string_lossy().into_owned(), "--size=128m".to_owned(), each])
}

/// The jobs that these words ask for on this machine.
///
/// # Errors
/// Everything that is wrong with them, a line each.
pub fn invocation(words: &[String]) -> Result<Invocation, EngineError> {
    let (words, scratch, why) = usual::expanded(words);
    let parsed = language::parse(&words, &World::here()).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        EngineError::Usage(lines.join("\n"))
    });
    parsed.map(|mut invocation| {
        invocation.scratch = scratch;
        invocation.output.notes.extend(why);
        invocation
    })
}

/// Aims at what the jobs name, looking without touching.
///
/// # Errors
/// Files that must not or cannot be used.
pub fn aim(invocation: Invocation) -> Result<StorageRun, EngineError> {
    check_clones(&invocation)?;
    let plan = files::plan(&invocation).map_err(files::join_errors)?;
    work::check_logs(&invocation)?;
    Ok(StorageRun { invocation, plan })
}

/// Clones are threads: those that work side by side must find room.
fn check_clones(invocation: &Invocation) -> Result<(), EngineError> {
    let mut waves: BTreeMap<u32, u64> = BTreeMap::new();
    for job in &invocation.jobs {
        *waves.entry(job.wave).or_default() += u64::from(job.options.clones.max(1));
    }
    let most = waves.into_values().max().unwrap_or(0);
    threads::check_room(most, "clones at once (numjobs=)")
}

/// Jobs aimed at their files.
#[derive(Debug)]
pub struct StorageRun {
    /// The jobs.
    pub invocation: Invocation,
    plan: FilePlan,
}

impl Aimed for StorageRun {
    fn plan(&self) -> Vec<Line> {
        self.plan.lines()
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        Ok(Box::new(StorageMeasured(self.readings(stop, steps)?)))
    }
}

impl StorageRun {
    /// Measures, as [`Aimed::measure`] does. The scratch file is marked for as long as it is there: a killed one leaves it, and the
    /// next one here names it.
    ///
    /// # Errors
    /// As [`Aimed::measure`].
    pub fn readings(&self, stop: &Stop, steps: &dyn Steps) -> Result<StorageReadings, EngineError> {
        let Some(file) = &self.invocation.scratch else {
            return self.measure_files(stop, steps);
        };
        let cannot = |error: std::io::Error| files::cannot("mark the scratch file", file, error);
        let mark = Mark::put(file, Kind::File).map_err(cannot)?;
        let readings = self.measure_files(stop, steps);
        // A mark whose file could not be removed stays with it.
        if !file.exists() {
            mark.take_away().map_err(cannot)?;
        }
        readings
    }

    fn measure_files(&self, stop: &Stop, steps: &dyn Steps) -> Result<StorageReadings, EngineError> {
        let opened = files::open(self.plan.clone(), &self.invocation, stop, steps)?;
        let readings = self.measure_opened(&opened, stop, steps);
        // The files are put in order however the work went; its own error is the one to tell.
        let finished = opened.finish();
        let readings = readings?;
        finished?;
        Ok(readings)
    }

    fn measure_opened(
        &self,
        opened: &files::Opened,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<StorageReadings, EngineError> {
        let preconditioned = opened.precondition(&self.invocation, stop, steps)?;
        let mut readings = work::measure(&self.invocation, opened, stop, steps)?;
        for before in &preconditioned {
            for job in &mut readings.jobs {
                if job.name == before.job {
                    job.notes.push(files::precondition_note(before));
                }
            }
        }
        readings.precondition = preconditioned;
        Ok(readings)
    }
}
