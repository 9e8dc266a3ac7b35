//! `assay io`: benchmarks storage directly, with fio's options, job files and reports.
//!
//! Owns the job language, the files it works on, the I/O patterns and the work loop; knows nothing of reports.
//! `assay_block` performs the requests. See `README.md`.
#![forbid(unsafe_code)]

pub mod files;
mod hosts;
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

// The test fixture names this crate as other crates do.
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
    follows: &[
        ("rate", &["reads_per_s", "writes_per_s"]),
        ("p50", &["read_us_p50", "write_us_p50"]),
        ("p99", &["read_us_p99", "write_us_p99"]),
        ("writes_per_s", &["writes_per_s"]),
        ("write_us_p50", &["write_us_p50"]),
        ("write_us_p99", &["write_us_p99"]),
    ],
    over_hosts: Some(hosts::record),
    ..ProbeSpec::new("io", &record::Storage, |request| Ok(Box::new(aim(requested(request)?)?)))
};

/// The words of a request or, without any, the default jobs: small ones that take about the requested time together.
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

/// Parses the jobs that these words request on this machine.
///
/// # Errors
/// All errors, one per line.
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

/// Plans the files of the jobs, without changing anything.
///
/// # Errors
/// Files that must not or cannot be used.
pub fn aim(invocation: Invocation) -> Result<StorageRun, EngineError> {
    check_clones(&invocation)?;
    let plan = files::plan(&invocation).map_err(files::join_errors)?;
    work::check_logs(&invocation)?;
    Ok(StorageRun { invocation, plan })
}

/// Clones are threads: those that run concurrently must not exceed the limit.
fn check_clones(invocation: &Invocation) -> Result<(), EngineError> {
    let mut waves: BTreeMap<u32, u64> = BTreeMap::new();
    for job in &invocation.jobs {
        *waves.entry(job.wave).or_default() += u64::from(job.options.clones.max(1));
    }
    let most = waves.into_values().max().unwrap_or(0);
    threads::check_room(most, "clones at once (numjobs=)")
}

/// Jobs with their planned files.
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
    /// Measures, as [`Aimed::measure`] does. Marks the scratch file for as long as it exists: a killed run leaves it
    /// behind, and the next run here reports it.
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
        // If the file could not be removed, its marker stays too.
        if !file.exists() {
            mark.take_away().map_err(cannot)?;
        }
        readings
    }

    fn measure_files(&self, stop: &Stop, steps: &dyn Steps) -> Result<StorageReadings, EngineError> {
        let opened = files::open(self.plan.clone(), &self.invocation, stop, steps)?;
        let readings = self.measure_opened(&opened, stop, steps);
        // The files are cleaned up however the work ended; its own error takes precedence.
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
