//! `assay io`: the bare storage, by fio's options, job files and reports.
//!
//! Owns the job language, the files it works on, the I/O patterns and the work loop; knows
//! nothing of reports. The requests themselves belong to `assay_block`. See `README.md`.

pub mod files;
pub mod language;
pub mod pattern;
pub mod payload;
pub mod spec;
pub mod steady;
pub mod verify;
mod work;

use assay_block::{DirectFile, OpenMode};
use assay_measure::storage::Way;
use assay_run::engine::{EngineError, Line, LineValue};
use assay_run::probe::{Aimed, Readings, Steps};
use assay_run::stop::Stop;
use spec::{Amount, Invocation, IoEngine, Job, Region};
use std::path::PathBuf;
use std::sync::Arc;
use work::{PlannedClone, Work};

/// Aims at what the jobs name, looking without touching.
///
/// # Errors
/// Files that must not or cannot be used.
pub fn aim(invocation: Invocation) -> Result<Box<dyn Aimed>, EngineError> {
    Ok(Box::new(StorageRun { invocation }))
}

/// Jobs aimed at their files.
struct StorageRun {
    invocation: Invocation,
}

impl Aimed for StorageRun {
    fn plan(&self) -> Vec<Line> {
        vec![Line {
            key: "jobs",
            label: "jobs".to_owned(),
            value: LineValue::Count(self.invocation.jobs.len() as u64),
        }]
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Readings, EngineError> {
        let jobs = &self.invocation.jobs;
        let mut clones = Vec::new();
        for (place, job) in jobs.iter().enumerate() {
            for clone in 0..job.options.clones.max(1) {
                clones.push(PlannedClone {
                    job: place,
                    clone,
                    regions: regions(job)?,
                });
            }
        }
        let files_of = |job: usize, _clone: u32| open(&jobs[job]);
        let work = Work {
            invocation: &self.invocation,
            clones,
            paths: jobs.iter().map(paths).collect(),
            notes: vec![Vec::new(); jobs.len()],
            files_of: &files_of,
            seeds: jobs.iter().map(work::seed_of).collect(),
        };
        work.measure(stop, steps)
            .map(|readings| Readings::Storage(Box::new(readings)))
    }
}

fn paths(job: &Job) -> Vec<PathBuf> {
    match job.options.engine {
        IoEngine::Null | IoEngine::Nop => Vec::new(),
        _ => job.options.files.names.clone(),
    }
}

fn open(job: &Job) -> Result<Vec<Arc<DirectFile>>, EngineError> {
    let mode = OpenMode {
        read: true,
        write: job.options.pattern.mode.goes(Way::Write),
        direct: job.options.files.direct,
    };
    paths(job)
        .iter()
        .map(|path| {
            DirectFile::open(path, mode)
                .map(Arc::new)
                .map_err(|error| EngineError::Unusable(error.to_string()))
        })
        .collect()
}

fn regions(job: &Job) -> Result<Vec<Region>, EngineError> {
    let region = |(file, bytes)| Region {
        file,
        start: 0,
        bytes,
    };
    let size = match job.options.files.size {
        Some(Amount::Bytes(bytes)) => Some(bytes),
        _ => None,
    };
    let files = open(job)?;
    if files.is_empty() {
        return Ok(vec![region((0, size.unwrap_or(1 << 30)))]);
    }
    files
        .iter()
        .enumerate()
        .map(|(place, file)| {
            let len = file
                .len()
                .map_err(|error| EngineError::Unusable(error.to_string()))?;
            Ok(region((place as u16, size.unwrap_or(len).min(len))))
        })
        .collect()
}
