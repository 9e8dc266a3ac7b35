//! fio's output, as text and as JSON, of 2.x and 3.x.
//!
//! Both readers make the same [`Run`], so that both give the same record; [`fill`] makes it, with the line of every
//! figure. Latencies are in us whatever unit fio chose, rates in bytes per second.

mod fill;
mod json;
mod terse;
mod text;

#[cfg(test)]
mod tests;

use super::located_number::LocatedNumber;
use super::text::{At, Text};
use super::{Confidence, Draft, ImportError};

/// Everything one output says.
#[derive(Default)]
struct Run {
    version: String,
    /// As printed at the first job.
    started: Option<String>,
    jobs: Vec<Job>,
    groups: Vec<Group>,
    disks: Vec<Disk>,
    /// Rates of the last progress line: key and value.
    progress: Vec<(String, LocatedNumber)>,
    /// What it was printed as: `fio text`, `fio JSON`.
    format: &'static str,
}

/// One job, or one clone of a job that was not reported as a group.
#[derive(Default)]
struct Job {
    name: String,
    at: At,
    group: u32,
    clones: Option<u64>,
    rw: String,
    blocks: String,
    engine: String,
    depth: Option<u64>,
    /// Options as typed, with where they come from: `global` or `job`.
    options: Vec<(String, String, &'static str)>,
    ways: Vec<Way>,
    sync: Lat,
    /// Shares of the I/Os by latency: what it is of (`below 100 us`), percent.
    shares: Vec<(String, LocatedNumber)>,
    /// Other figures: key, name, value.
    rest: Vec<(&'static str, &'static str, LocatedNumber)>,
    /// Shares of depths and batches: key, slot, percent.
    slots: Vec<(&'static str, String, LocatedNumber)>,
    error: Option<String>,
}

/// One direction of a job.
#[derive(Default)]
struct Way {
    way: &'static str,
    ios: Option<LocatedNumber>,
    short: Option<LocatedNumber>,
    bytes: Option<LocatedNumber>,
    runtime_s: Option<LocatedNumber>,
    ios_per_s: Option<LocatedNumber>,
    /// Printed in powers of 1024, or exact.
    bytes_per_s: Option<LocatedNumber>,
    /// Printed in powers of 1000.
    decimal_bytes_per_s: Option<LocatedNumber>,
    lat: Lat,
    clat: Lat,
    slat: Lat,
    /// Samples of a clone's rate: key, name, value.
    samples: Vec<(&'static str, &'static str, LocatedNumber)>,
}

/// A distribution as printed, us.
#[derive(Default)]
struct Lat {
    min: Option<LocatedNumber>,
    max: Option<LocatedNumber>,
    avg: Option<LocatedNumber>,
    stddev: Option<LocatedNumber>,
    count: Option<LocatedNumber>,
    /// Percent and value.
    percentiles: Vec<(f64, LocatedNumber)>,
    /// Middle of each bin in ns, and its count.
    bins: Vec<(u64, u64)>,
}

impl Lat {
    fn is_empty(&self) -> bool {
        self.avg.is_none() && self.min.is_none() && self.percentiles.is_empty()
    }
}

/// `Run status group`.
#[derive(Default)]
struct Group {
    group: u32,
    ways: Vec<GroupWay>,
}

#[derive(Default)]
struct GroupWay {
    way: &'static str,
    /// Key, name and value of each figure; the extremes are of its jobs.
    figures: Vec<(&'static str, &'static str, LocatedNumber)>,
}

/// One line of `Disk stats`: name, then key, name and value of each figure.
struct Disk {
    name: String,
    figures: Vec<(&'static str, &'static str, LocatedNumber)>,
}

/// The scope of the rates of the last progress line.
pub(super) const PROGRESS: &str = "last progress line";

const WAYS: [&str; 3] = ["read", "write", "trim"];

/// The way of this name; added where it is not there yet.
fn way<'a>(ways: &'a mut Vec<Way>, name: &'static str) -> &'a mut Way {
    let found = ways.iter().position(|way| way.way == name);
    let at = found.unwrap_or_else(|| {
        ways.push(Way { way: name, ..Way::default() });
        ways.len() - 1
    });
    &mut ways[at]
}

pub(super) fn looks_like(text: &Text) -> Confidence {
    json::looks_like(text).or(text::looks_like(text)).or(terse::looks_like(text))
}

/// Whether a text is the output of a run and no fragment of one.
pub(super) fn is_whole(text: &Text) -> bool {
    json::looks_like(text).missing.is_empty() || terse::looks_like(text).missing.is_empty() || text::has_jobs(text)
}

/// A text without what its last report says again.
pub(super) fn titled(text: &Text) -> Vec<Text> {
    text::last_report(text).into_iter().collect()
}

/// The lines at which further runs of one file begin: `fio a.fio >> FILE; fio b.fio >> FILE`.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    match json::looks_like(text).missing {
        "" => json::runs(text),
        _ => text::runs(text),
    }
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        let run = match json::looks_like(text).missing {
            "" => json::read(text, draft)?,
            _ if !text::has_jobs(text) && terse::looks_like(text).missing.is_empty() => terse::read(text, draft),
            _ => text::read(text, draft),
        };
        fill::fill(run, draft);
    }
    fill::done(draft);
    Ok(())
}
