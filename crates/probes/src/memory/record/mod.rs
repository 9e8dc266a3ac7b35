//! The memory record: from rows to what follows from them.

mod advice;
mod charts;
mod headline;
mod metrics;
mod plateaus;
mod sections;

#[cfg(test)]
mod tests;

use super::MemoryReadings;
use super::info::{LadderRow, MemoryInfo};
use crate::conditions::{Conditions, OURS_PCT, labelled};
use assay_measure::kind::{Finding, OwnKind, TestConditions, attach_metrics};
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units::fixed;

/// Passes that vary by more are not steady, %.
const UNSTEADY_PCT: f64 = 5.0;

/// The kind of its records.
pub(super) const KIND: OwnKind<MemoryInfo> = OwnKind {
    rules: advice::rules,
    charts: charts::all,
    conditions,
    ..OwnKind::new(metrics::all, sections::render, headline::of)
};

fn conditions(info: &MemoryInfo) -> TestConditions {
    let word = |is: bool| if is { "yes" } else { "no" }.to_owned();
    vec![
        ("kernel set", info.kernel_set.clone(), Finding::Forbids),
        ("measured or loaded", info.mode.clone(), Finding::Forbids),
        ("code path", info.path.clone(), Finding::Tolerable),
        ("pages of the arrays", info.pages.clone(), Finding::Forbids),
        ("pages that are really huge", got(info), Finding::Forbids),
        ("arrays beyond the caches", word(info.arrays.is_met), Finding::Tolerable),
        ("optimised build", word(info.is_optimised), Finding::Forbids),
        ("pinned threads", word(info.is_pinned), Finding::Tolerable),
    ]
}

/// `most`, `some` or `none` of the requested pages came; empty where it is unknown.
fn got(info: &MemoryInfo) -> String {
    let of = info.got.iter().filter(|row| row.pages == info.pages);
    let least = of.filter_map(|row| row.huge_pct.value()).reduce(f64::min);
    let word = least.map(|pct| match pct {
        90.0.. => "most",
        10.0.. => "some",
        _ => "none",
    });
    word.unwrap_or_default().to_owned()
}

/// Builds the record of a probe. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
#[must_use]
pub(super) fn build(run: &RunData, readings: &MemoryReadings) -> Record {
    let mut info = readings.info.clone();
    let time = readings.time;
    let pct = |part: u64| Figure::decimal(100.0 * part as f64).per(time.elapsed_ns as f64, "no pass");
    let delay = time.run_delay_ns.map_or_else(|| Figure::na(crate::conditions::NOT_EXPOSED), pct);
    info.conditions = Conditions::of(&readings.host, pct(time.cpu_ns), delay);
    info.plateaus = plateaus::all(&info.ladder, &info.caches);
    let mut run = run.clone();
    run.sessions = match &info.soak {
        Some(soak) => soak.workers_count,
        None => info.cpus.len() as u64,
    };
    if readings.is_stopped {
        let done = match &info.soak {
            Some(soak) => format!("{} seconds", soak.seconds.len()),
            None => format!("{} figures", info.bandwidth.len() + info.ladder.len()),
        };
        run.verdict = Verdict::Incomplete(format!("stopped on request after {done}"));
    }
    if info.verification_errors_count > 0 {
        run.verdict = Verdict::Invalid(info.verification_errors.clone());
    }
    let mut record = labelled(&run, readings.host.elapsed_ns);
    record.advice = advice::advise(&info);
    record.parts.put(&info);
    attach_metrics(&KIND, &mut record);
    record
}

/// The step whose latency is called that of the memory in pages of this kind: the first of at least eight times the
/// last-level caches and 256 MiB, else the largest one.
fn beyond_caches<'a>(info: &'a MemoryInfo, pages: &str) -> Option<&'a LadderRow> {
    const LEAST: f64 = (256_u64 << 20) as f64;
    let caches = info.arrays.last_level_bytes.value().unwrap_or(0.0);
    let enough = (8.0 * caches).max(LEAST);
    let of = |row: &&LadderRow| row.pages == pages && row.spacing == "lines";
    let mut steps = info.ladder.iter().filter(of);
    let found = steps.clone().find(|row| row.bytes as f64 >= enough);
    found.or_else(|| steps.next_back())
}

/// Its latency.
fn latency(info: &MemoryInfo, pages: &str) -> Figure {
    beyond_caches(info, pages).map_or_else(Figure::default, |row| row.ns_p50.clone())
}

/// The kind of huge pages that was measured; none where there was none.
fn huge(info: &MemoryInfo) -> Option<&str> {
    let is_huge = |row: &&LadderRow| row.pages != "4k";
    let mut found = info.ladder.iter().filter(is_huge);
    found.next().map(|row| row.pages.as_str())
}

/// The share of their passes that the threads were given, where it was not all of it.
fn given(info: &MemoryInfo) -> Option<String> {
    let given = info.conditions.given_pct.value()?;
    let of = &info.conditions;
    let known = |figure: &Figure| figure.value().map_or_else(|| "n/a".to_owned(), |pct| format!("{} %", fixed(pct, 1)));
    (given < OURS_PCT).then(|| {
        format!(
            "The threads had a CPU for {} % of their passes (steal {}, waiting for a CPU {}): this lowers the median \
             of the passes, and the best pass less.",
            fixed(given, 1),
            known(&of.steal_pct),
            known(&of.run_delay_pct)
        )
    })
}
