//! The conditions that make two storage probes the same test.

use crate::record::info::{StorageInfo, StorageJob};
use assay_measure::kind::{Check, Finding};

/// Options that say where a probe runs, not what it does.
const PLACES: [&str; 9] =
    ["name", "directory", "filename", "filename_format", "output", "description", "runtime", "ramp_time", "eta"];

/// The conditions of a storage probe, job by job.
pub(super) fn all(left: &StorageInfo, right: &StorageInfo) -> Vec<Check> {
    let mut all =
        vec![Check::text("jobs", &left.jobs.len().to_string(), &right.jobs.len().to_string(), Finding::Forbids)];
    for (i, (from, to)) in left.jobs.iter().zip(&right.jobs).enumerate() {
        let of_job = |check: Check| match left.jobs.len() {
            1 => check,
            _ => Check { what: format!("{} of job {}", check.what, i + 1), ..check },
        };
        let both = job_shape(from, to).into_iter().chain(job_options(from, to));
        all.extend(both.map(of_job));
    }
    all
}

/// The conditions that make two storage jobs the same test.
fn job_shape(from: &StorageJob, to: &StorageJob) -> Vec<Check> {
    // Another tool's output may not contain the depth or number of clones.
    let known = |count: u64| match count {
        0 => String::new(),
        count => count.to_string(),
    };
    let count = |what: &str, of: fn(&StorageJob) -> u64, otherwise: Finding| {
        Check::text(what, &known(of(from)), &known(of(to)), otherwise)
    };
    let (yes, no) = (Finding::Forbids, Finding::Tolerable);
    vec![
        Check::text("rw", &from.rw, &to.rw, yes),
        Check::text("block size", &from.block_sizes, &to.block_sizes, yes),
        count("iodepth", |job| job.iodepth_count, yes),
        count("numjobs", |job| job.numjobs_count, yes),
        count("region bytes", |job| job.region_bytes, no),
        Check::text("ioengine", &from.ioengine, &to.ioengine, no),
    ]
}

/// Options that [`job_shape`] covers.
const SHAPE: [&str; 7] = ["rw", "readwrite", "bs", "iodepth", "numjobs", "size", "ioengine"];

/// The other options in which two storage jobs differ.
fn job_options(from: &StorageJob, to: &StorageJob) -> Vec<Check> {
    let both = from.options.iter().chain(&to.options);
    let mut names: Vec<&str> = both.map(|option| option.name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| !PLACES.contains(name) && !SHAPE.contains(name));
    let value = |job: &StorageJob, name: &str| {
        let found = job.options.iter().find(|option| option.name == name);
        match found.map(|option| option.value.as_str()) {
            // The text of another tool has no options at all: none is known.
            None if job.options.is_empty() => String::new(),
            None => "(not given)".to_owned(),
            Some("") => "yes".to_owned(),
            Some(value) => value.to_owned(),
        }
    };
    let checks =
        names.into_iter().map(|name| Check::text(name, &value(from, name), &value(to, name), Finding::Forbids));
    checks.filter(|check| check.finding != Finding::Same).collect()
}
