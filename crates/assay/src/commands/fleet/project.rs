//! `fleet project`: what more hosts would do, by the law that a sweep fits.

use crate::commands::runs::{named, records_of};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{answer, record, stored, ui};
use assay_measure::fleet::Fleet;
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_report::formats::Format;
use assay_sweep::{HOSTS, StepPlace, SweepAxis, UnderWay};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Fewer numbers of hosts show no curve.
const LEAST_NUMBERS: usize = 3;
/// What may differ between runs of more and of fewer hosts.
const OF_SIZE: [&str; 6] = ["SESSIONS", "THREADS", "THREADS_PER_SCHEMA", "SCHEMAS", "RATE", "SEED"];

/// A run of a fleet.
struct Found {
    path: PathBuf,
    hosts: u64,
    record: Record,
}

pub(super) fn project(runs: &[String], to: u64, output: Option<&Path>, format: &Format) -> Result<Code, Failure> {
    let mut found = Vec::new();
    for run in named(runs)? {
        for path in records_of(run, Path::new(rundir::RUNS_DIR))? {
            let record = stored::read(&path)?;
            let hosts = hosts(&path, &record)?;
            found.push(Found { path, hosts, record });
        }
    }
    found.sort_by_key(|found| found.hosts);
    same_test(&found)?;
    let mut numbers: Vec<String> = found.iter().map(|found| found.hosts.to_string()).collect();
    numbers.dedup();
    if numbers.len() < LEAST_NUMBERS {
        return Err(Failure::usage(format!(
            "these runs have {} numbers of hosts ({}), and a curve needs {LEAST_NUMBERS}: run the same test on more or fewer hosts",
            numbers.len(),
            numbers.join(", ")
        )));
    }
    let id = rundir::new_id();
    let place = rundir::place(output, "sweep", &id);
    rundir::refuse_used(&place)?;
    let now = jiff::Timestamp::now().to_string();
    let first = &found[0].record.run;
    let labels = RunData {
        run_id: id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: now.clone(),
        workload: first.workload.clone(),
        engine: first.engine.clone(),
        seed: first.seed,
        ..RunData::default()
    };
    let axis = SweepAxis { name: HOSTS.to_owned(), values: numbers };
    let target = format!("{} on a fleet", first.engine);
    let mut curve = UnderWay::new(labels, target, vec![axis], Figure::na("not asked for")).projected_to(to);
    for (step, Found { path, hosts, record }) in (1..).zip(&found) {
        let place = StepPlace {
            step,
            directory: path.parent().unwrap_or(path).display().to_string(),
            sessions: record.run.sessions,
            cpus: Figure::na("not confined"),
            over: BTreeMap::from([(HOSTS.to_owned(), hosts.to_string())]),
            repeats: 0,
        };
        curve.measured(place, record);
    }
    let record = curve.record(Verdict::Complete, &now, 0.0);
    let dir = RunDir::create(place)?;
    let written = record::write(&dir, &record);
    answer::product(&record, format, dir.path())?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    Ok(Code::Good)
}

/// Hosts of a run that all of them measured. A run that no fleet made is one of one host.
fn hosts(path: &Path, record: &Record) -> Result<u64, Failure> {
    let refused = |why: String| Failure::usage(format!("{}: {why}", path.display()));
    let fleet: Option<Fleet> = record.parts.get();
    let hosts = fleet.map_or((1, 1), |fleet| (fleet.measured_count, fleet.hosts_count));
    match (record.run.verdict.as_str(), hosts) {
        (_, (measured, all)) if measured < all => {
            Err(refused(format!("{measured} of {all} hosts are in its figures: it is no point of a curve")))
        }
        ("complete", (hosts, _)) => Ok(hosts),
        (verdict, _) => Err(refused(format!("the run is {verdict}: it is no point of a curve"))),
    }
}

/// Refuses runs that differ in more than their size.
fn same_test(found: &[Found]) -> Result<(), Failure> {
    let Some((first, others)) = found.split_first() else {
        return Ok(());
    };
    let refused = |other: &Found, what: &str, a: &str, b: &str| {
        let [one, two] = [&first.path, &other.path].map(|path| path.display().to_string());
        Err(Failure::usage(format!("{what} differs: {a} in {one}, {b} in {two}; a curve is of one test on more hosts")))
    };
    let each = |found: &Found| found.record.run.sessions as f64 / found.hosts as f64;
    let setting = |record: &Record, name: &str| {
        let line = record.plan.settings.iter().find(|line| line.name == name);
        line.map_or_else(|| "unset".to_owned(), |line| line.value.clone())
    };
    let rate = setting(&first.record, "RATE");
    if !["unset", "", "0"].contains(&rate.as_str()) {
        return Err(Failure::usage(format!(
            "{}: its RATE is {rate}, and an open loop gives what it is asked for: leave it out",
            first.path.display()
        )));
    }
    for other in others {
        let run = |found: &Found| format!("{} on {}", found.record.run.workload, found.record.run.engine);
        if run(first) != run(other) {
            return refused(other, "the test", &run(first), &run(other));
        }
        if (each(first) - each(other)).abs() > f64::EPSILON {
            return refused(
                other,
                "the number of sessions for each host",
                &each(first).to_string(),
                &each(other).to_string(),
            );
        }
        for line in first.record.plan.settings.iter().filter(|line| !OF_SIZE.contains(&line.name.as_str())) {
            let theirs = setting(&other.record, &line.name);
            if line.value != theirs {
                return refused(other, &line.name, &line.value, &theirs);
            }
        }
    }
    Ok(())
}
