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

use super::CpuKernels;
use super::reading::CpuReadings;
use assay_measure::chart::Drawn;
use assay_measure::kind::{Check, Finding, Headline, Kind, figure};
use assay_measure::record::{Figure, Metric, Part, Record};
use assay_measure::section::Sections;
use assay_measure::snapshot::{RunData, Verdict};
use info::CpuInfo;

impl CpuKernels {
    fn info(record: &Record) -> CpuInfo {
        record.parts.get().unwrap_or_default()
    }
}

impl Kind for CpuKernels {
    fn name(&self) -> &'static str {
        CpuInfo::NAME
    }

    fn tells(&self, record: &Record) -> bool {
        record.import.is_none()
    }

    fn metrics(&self, record: &Record) -> Vec<Metric> {
        metrics::all(&Self::info(record))
    }

    fn sections(&self, record: &Record) -> Sections {
        sections::render(record, &Self::info(record))
    }

    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn)) {
        charts::all(&Self::info(record)).into_iter().for_each(draw);
    }

    fn headline(&self, record: &Record) -> Headline {
        headline::of(record, &Self::info(record))
    }

    fn conditions(&self, baseline: &Record, candidate: &Record) -> Vec<Check> {
        let (a, b) = (Self::info(baseline), Self::info(candidate));
        let paths = |info: &CpuInfo| {
            let mut paths: Vec<String> = info
                .kernels
                .iter()
                .filter(|row| row.path != "portable" && !row.path.is_empty())
                .map(|row| format!("{}: {}", row.kernel, row.path))
                .collect();
            paths.dedup();
            paths.join("; ")
        };
        let word = |is: bool| if is { "yes" } else { "no" };
        let built = (word(a.is_optimised), word(b.is_optimised));
        let pinned = (word(a.is_pinned), word(b.is_pinned));
        vec![
            Check::text("kernel set", &a.kernel_set, &b.kernel_set, Finding::Forbids),
            Check::text("measured or loaded", &a.mode, &b.mode, Finding::Forbids),
            Check::text("code paths", &paths(&a), &paths(&b), Finding::Tolerable),
            Check::text("optimised build", built.0, built.1, Finding::Forbids),
            Check::text("pinned threads", pinned.0, pinned.1, Finding::Tolerable),
            Check::text(
                "page size, bytes",
                &a.page_bytes.to_string(),
                &b.page_bytes.to_string(),
                Finding::Tolerable,
            ),
        ]
    }

    fn readable(&self, record: &Record) -> Result<(), serde_json::Error> {
        record.parts.read::<CpuInfo>().map(drop)
    }
}

/// Builds the record of a probe. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
#[must_use]
pub(super) fn build(run: &RunData, readings: &CpuReadings) -> Record {
    let info = derive::info(readings);
    let mut run = run.clone();
    run.engine_facts.clone_from(&readings.facts);
    let widest = readings
        .shots
        .iter()
        .map(|shot| shot.threads.len() as u64)
        .max();
    run.sessions = readings
        .soak
        .as_ref()
        .map_or(widest.unwrap_or(0), |soak| soak.workers);
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
    let mut record = Record::labelled(&run);
    let elapsed = Figure::decimal(readings.elapsed_ns as f64 / 1e9);
    record.interval.elapsed_s = elapsed.clone();
    record.interval.whole_run_s = elapsed;
    record.warnings = advice::warnings(&info);
    record.advice = advice::advise(&record, &info);
    record.parts.put(&info);
    figure(&CpuKernels, &mut record);
    record
}
