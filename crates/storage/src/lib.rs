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
pub use usual::engine as usual_engine;

use crate::readings::StorageReadings;
use assay_run::engine::{EngineError, Line};
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
    ..ProbeSpec::new("io", &record::Storage, |request| aim(invocation(request)?))
};

fn invocation(request: &Request) -> Result<Invocation, EngineError> {
    if request.words.is_empty() {
        return usual::jobs(&request.place, request.time);
    }
    language::parse(&request.words, &World::here()).map_err(|errors| {
        let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
        EngineError::Usage(lines.join("\n"))
    })
}

/// Aims at what the jobs name, looking without touching.
///
/// # Errors
/// Files that must not or cannot be used.
pub fn aim(invocation: Invocation) -> Result<Box<dyn Aimed>, EngineError> {
    check_clones(&invocation)?;
    let plan = files::plan(&invocation).map_err(files::join_errors)?;
    work::check_logs(&invocation)?;
    Ok(Box::new(StorageRun { invocation, plan }))
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
struct StorageRun {
    invocation: Invocation,
    plan: FilePlan,
}

impl Aimed for StorageRun {
    fn plan(&self) -> Vec<Line> {
        self.plan.lines()
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let opened = files::open(self.plan.clone(), &self.invocation, stop, steps)?;
        let readings = self.measure_opened(&opened, stop, steps);
        // The files are put in order however the work went; its own error is the one to tell.
        let finished = opened.finish();
        let readings = readings?;
        finished?;
        Ok(Box::new(StorageMeasured(readings)))
    }
}

impl StorageRun {
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
