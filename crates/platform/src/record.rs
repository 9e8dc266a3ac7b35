//! The record of a platform: its kind, and how it follows from the records of its tests.

use crate::facts::{Tree, claimed_mhz, look};
pub use crate::finished::Finished;
use crate::goals::Goals;
use crate::info::{FoundRow, PlatformInfo, TestRow};
use crate::plan::{Plan, Test};
use crate::{class, findings, needs, page, settings};
use assay_measure::figures::of_layer;
use assay_measure::kind::{Finding, Kind, OwnKind, TestConditions};
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use std::path::PathBuf;

const OWN: OwnKind<PlatformInfo> = OwnKind {
    judges: findings::RULES,
    conditions,
    members: |info| info.tests.iter().map(|row| row.directory.clone()).filter(|name| !name.is_empty()).collect(),
    ..OwnKind::new(
        |info| [of_layer("engine", info), needs::metrics(&info.needs)].concat(),
        page::render,
        page::headline,
    )
};

/// The kind of its records.
pub const KIND: &dyn Kind = &OWN;

fn conditions(info: &PlatformInfo) -> TestConditions {
    vec![("plan", info.plan.clone(), Finding::Tolerable), ("peer", info.peer.clone(), Finding::Tolerable)]
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// How thoroughly.
    pub plan: Plan,
    /// The directory on the database's storage.
    pub place: PathBuf,
    /// The other host.
    pub peer: Option<String>,
    /// Limits of the user's own.
    pub goals: Goals,
    /// The tests, as planned.
    pub tests: Vec<Test>,
    /// Where `/proc` and `/sys` are: `/`, or that of a copy of another box.
    pub root: PathBuf,
    /// How busy the host was before the first test, %.
    pub busy_before_pct: Option<f64>,
}

/// Builds the record of what was measured until now.
#[must_use]
pub fn build(run: &RunData, asked: &Asked, finished: &[Finished], is_stopped: bool) -> Record {
    let mut run = run.clone();
    run.verdict = verdict(asked, finished, is_stopped);
    let info = info(asked, finished);
    let mut record = Record::labelled(&run);
    let all: f64 = info.tests.iter().filter_map(|row| row.elapsed_s.value()).sum();
    record.interval.elapsed_s = Figure::decimal(all);
    record.interval.whole_run_s = Figure::decimal(all);
    OWN.complete(record, &info)
}

fn verdict(asked: &Asked, finished: &[Finished], is_stopped: bool) -> Verdict {
    let (done, planned) = (finished.len(), asked.tests.len());
    if is_stopped {
        return Verdict::Incomplete(format!("stopped on request after {done} of {planned} tests"));
    }
    let failed: Vec<&str> = finished.iter().filter(|one| one.record.is_err()).map(|one| one.test).collect();
    if failed.is_empty() { Verdict::Complete } else { Verdict::Incomplete(format!("no result: {}", failed.join(", "))) }
}

fn info(asked: &Asked, finished: &[Finished]) -> PlatformInfo {
    let reads = class::reads(finished);
    let commits = class::commits(finished);
    let tree = Tree::at(&asked.root, &asked.place);
    let needs = needs::rows(finished, &asked.goals, &|test| asked.tests.iter().any(|planned| planned.name == test));
    let measured_mhz = needs.iter().find(|row| row.need == "cpu_mhz").map(|row| row.need_value.clone());
    PlatformInfo {
        plan: asked.plan.word().to_owned(),
        path: asked.place.display().to_string(),
        peer: asked.peer.clone().unwrap_or_else(|| "none".to_owned()),
        class: class::name(&reads.per_s, &commits),
        reads_within_goal_per_s: reads.per_s,
        reads_depth: reads.depth,
        commits_within_goal_per_s: commits,
        busy_before_pct: Figure::known(asked.busy_before_pct, "not measured"),
        claimed_mhz: Figure::known(claimed_mhz(&tree), "the kernel does not tell it"),
        measured_mhz: measured_mhz.unwrap_or_default(),
        needs,
        facts: look(&tree),
        settings: settings::rows(finished),
        tests: asked.tests.iter().filter_map(|test| tested(test, finished)).collect(),
        found: finished.iter().flat_map(found).collect(),
    }
}

fn tested(test: &Test, finished: &[Finished]) -> Option<TestRow> {
    let one = finished.iter().find(|one| one.test == test.name)?;
    let of = |of: fn(&Record) -> Figure| one.record.as_ref().map_or_else(|why| Figure::na(why), of);
    Some(TestRow {
        test: test.name.to_owned(),
        probe: test.probe.to_owned(),
        elapsed_s: of(|record| record.interval.elapsed_s.clone()),
        verdict: match &one.record {
            Ok(record) => record.run.verdict.clone(),
            Err(why) => format!("no result: {why}"),
        },
        host_cpu_busy_pct: one.value("host_cpu_busy_pct", ""),
        steal_pct: [one.value("steal_pct", ""), one.value("host_cpu_steal_pct", "")]
            .into_iter()
            .reduce(|a, b| if a.value().is_some() { a } else { b })
            .unwrap_or_default(),
        directory: one.directory.clone(),
    })
}

/// The findings of a test, the dearest first.
fn found(one: &Finished) -> Vec<FoundRow> {
    let record = one.record.as_ref().ok();
    let row = |severity: &str, rule: &str, text: &str| FoundRow {
        test: one.test.to_owned(),
        rule: rule.to_owned(),
        severity: severity.to_owned(),
        text: text.to_owned(),
    };
    let advice = record.into_iter().flat_map(|record| &record.advice);
    advice.map(|advice| row(&advice.severity, &advice.id, &advice.text)).collect()
}
