//! The CPU record: from raw readings to figures, and what follows from them.

mod advice;
mod charts;
mod derive;
mod headline;
mod info;
mod metrics;
mod sections;
mod steadiness;

#[cfg(test)]
mod tests;

use super::reading::CpuReadings;
use assay_measure::kind::{Finding, OwnKind, TestConditions, attach_metrics};
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, Verdict};
use info::CpuInfo;

/// The kind of its records.
pub(super) const KIND: OwnKind<CpuInfo> = OwnKind {
    rules: advice::rules,
    charts: charts::all,
    conditions,
    ..OwnKind::new(metrics::all, sections::render, headline::of)
};

fn conditions(info: &CpuInfo) -> TestConditions {
    let own_paths = info.kernels.iter();
    let own_paths = own_paths.filter(|row| row.path != "portable" && !row.path.is_empty());
    let mut paths: Vec<String> = own_paths.map(|row| format!("{}: {}", row.kernel, row.path)).collect();
    paths.dedup();
    let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
    vec![
        ("kernel set", info.kernel_set.clone(), Finding::Forbids),
        ("measured or loaded", info.mode.clone(), Finding::Forbids),
        ("code paths", paths.join("; "), Finding::Tolerable),
        ("optimised build", word(info.is_optimised), Finding::Forbids),
        ("pinned threads", word(info.is_pinned), Finding::Tolerable),
        ("page size, bytes", info.page_bytes.to_string(), Finding::Tolerable),
    ]
}

/// Builds the record of a probe. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
#[must_use]
pub(super) fn build(run: &RunData, readings: &CpuReadings) -> Record {
    let info = derive::info(readings);
    let mut run = run.clone();
    run.engine_facts.clone_from(&readings.facts);
    let widest = readings.shots.iter().map(|shot| shot.threads.len() as u64).max();
    run.sessions = readings.soak.as_ref().map_or(widest.unwrap_or(0), |soak| soak.workers);
    if readings.is_stopped {
        let done = match &readings.soak {
            Some(soak) => format!("{} seconds", soak.seconds.len()),
            None => format!("{} windows", readings.shots.len()),
        };
        run.verdict = Verdict::Incomplete(format!("stopped on request after {done}"));
    }
    if !readings.wrong.is_empty() {
        run.verdict = Verdict::Invalid(readings.wrong.clone());
    }
    let mut record = readings.host.record(run);
    record.advice = advice::advise(&record, &info);
    record.parts.put(&info);
    attach_metrics(&KIND, &mut record);
    record
}
