//! Whether two groups measured the same thing: each condition with both values, and whether a difference may be
//! tolerated or forbids to call one side faster.

use super::model::{Check, Finding};
use super::samples::RunGroup;
use super::{allowed, host};
use crate::kinds;
use assay_measure::config::{Effect, ParamDef, known_params, nearest};
use assay_measure::record::{Figure, Record};
use assay_measure::units::short;

/// Work per operation may differ by so much: what the published pair of runs kept (51,700.6 and 51,713.3 bytes of redo a
/// transaction, 64.5 and 64.2 reads) with room.
const WORK_RATIO: f64 = 0.05;
/// Standard errors within which work may differ by chance: four rows of several pairs are judged.
const ERRORS: f64 = 3.0;
/// At fewer transactions a second the tool's own may be most of them: a test that only reads has those of its snapshots.
const TRANSACTIONS_LEAST_PER_S: f64 = 1.0;
/// Windows within this of each other count as equally long.
const LENGTH_RATIO: f64 = 0.02;

/// Every check of two groups, conditions first, the work per operation last; `allow` names what differs on purpose.
pub(super) fn checks(baseline: &RunGroup<'_>, candidate: &RunGroup<'_>, allow: &[String]) -> Vec<Check> {
    let (a, b) = (baseline.records[0], candidate.records[0]);
    let mut all = vec![
        workload(a, b),
        Check::text("engine", &a.run.engine, &b.run.engine, Finding::Tolerable),
        Check::text("assay version", &a.run.version, &b.run.version, Finding::Tolerable),
    ];
    let versions = (version(a), version(b));
    // Our own engines have assay's version.
    if versions != Default::default() {
        all.push(Check::text("engine version", &versions.0, &versions.1, Finding::Tolerable));
    }
    all.extend(settings(a, b));
    all.extend(printed(a, b));
    if a.kind == b.kind {
        all.extend(kinds::of(a).conditions(a, b));
    }
    all.push(Check::text("I/O mode achieved", &io_mode(a), &io_mode(b), Finding::Forbids));
    // Runs below have sessions and a window each: what must be equal of them is among the conditions of the kind.
    let has_a_window = !(kinds::stands_above_runs(a) && kinds::stands_above_runs(b));
    if has_a_window {
        all.push(sessions(a, b));
    }
    all.push(cache_to_data(a, b));
    if has_a_window {
        all.extend(window(a, b));
        all.extend(work(baseline, candidate));
    }
    all.extend(host::differences(a, b));
    allowed::apply(allow, a, b, &mut all);
    all.extend(repeats("A", baseline));
    all.extend(repeats("B", candidate));
    all
}

/// A name that matches nothing in these groups: why, with a similar name.
///
/// # Errors
/// The sentence for the user.
pub fn known(groups: &[RunGroup<'_>], name: &str) -> Result<(), String> {
    let Some((first, rest)) = groups.split_first() else {
        return Ok(());
    };
    let checks = |group| checks(first, group, &[]);
    let all: Vec<Check> = rest.iter().flat_map(checks).collect();
    let records = groups.iter().flat_map(|group| group.records.iter());
    if all.iter().any(|check| allowed::names(check, name))
        || records.clone().any(|record| allowed::value(record, name).is_some())
    {
        return Ok(());
    }
    let mut near: Vec<&str> = Vec::new();
    for record in records {
        near.extend(record.plan.settings.iter().map(|line| line.name.as_str()));
        near.extend(allowed::facts(record).map(|fact| fact.name.as_str()));
    }
    let near = nearest(name, near).map_or_else(
        || "name a parameter, a host fact, or a word from a condition that --same lists".to_owned(),
        |near| format!("did you mean {near}?"),
    );
    Err(format!("no run has a condition with this name; {near}"))
}

/// The checks in one list where a difference is not "same" twice over: for the face.
pub(super) fn forbids(checks: &[Check]) -> bool {
    checks.iter().any(|check| check.finding == Finding::Forbids)
}

/// Whether two records hold the same measurement. An import has a new id each time, and an edited record keeps the old
/// one: so this compares the measurements.
#[must_use]
pub fn is_same(a: &Record, b: &Record) -> bool {
    !a.metrics.is_empty() && a.run.started == b.run.started && a.metrics == b.metrics && a.series == b.series
}

/// Ids of the candidate's runs that the baseline has as well.
pub(super) fn shared(baseline: &RunGroup<'_>, candidate: &RunGroup<'_>) -> Vec<String> {
    let known = |b: &&&Record| baseline.records.iter().any(|a| is_same(a, b));
    let shared = candidate.records.iter().filter(known);
    shared.map(|record| record.run.id.clone()).collect()
}

/// An imported result is of the kind of test that its tool did, and compares with our own of that kind.
fn workload(a: &Record, b: &Record) -> Check {
    let is_imported = [a, b].iter().any(|record| record.import.is_some());
    let told = |record: &'_ Record| {
        if is_imported && !record.kind.is_empty() { record.kind.clone() } else { record.run.workload.clone() }
    };
    Check::text("workload", &told(a), &told(b), Finding::Forbids)
}

fn fact(record: &Record, name: &str) -> String {
    let mut facts = record.plan.engine_facts.iter();
    let found = facts.find(|fact| fact.name == name);
    found.map(|fact| fact.value.clone()).unwrap_or_default()
}

fn version(record: &Record) -> String {
    let names = ["server_version", "engine_version", "version"];
    let mut found = names.iter().map(|name| fact(record, name));
    found.find(|value| !value.is_empty()).unwrap_or_default()
}

fn io_mode(record: &Record) -> String {
    fact(record, "io_mode_achieved")
}

/// The effective value of a setting; `None` if the record does not know it.
fn setting<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    let mut lines = record.plan.settings.iter();
    let line = lines.find(|line| line.name == name)?;
    Some(line.value.as_str())
}

/// What settings come to, each as its parameter's entry says.
fn settings(a: &Record, b: &Record) -> Vec<Check> {
    let idle = |def: &ParamDef, record| def.is_idle(|name| setting(record, name));
    let told = |def: &ParamDef, otherwise| {
        let (left, right) = (setting(a, def.name), setting(b, def.name));
        if (left.is_none() && right.is_none()) || (idle(def, a) && idle(def, b)) {
            return None;
        }
        Some(Check::text(&def.title(), left.unwrap_or(""), right.unwrap_or(""), otherwise))
    };
    let known = known_params();
    let decide = known.iter().filter(|def| matches!(def.effect, Effect::Work(_)));
    let platform = known.iter().filter(|def| def.effect == Effect::Platform);
    // Of what may differ, only what does is worth a line.
    let differ =
        platform.filter_map(|def| told(def, Finding::Tolerable)).filter(|check| check.finding == Finding::Tolerable);
    decide.filter_map(|def| told(def, Finding::Forbids)).chain(differ).collect()
}

/// What two outputs of one tool say was asked for: mode, size of messages, connections. Parameters of a database are not
/// among it: they are its own.
fn printed(a: &Record, b: &Record) -> Vec<Check> {
    /// What says where and how long, not what.
    const NOT_WORK: [&str; 6] = ["test", "duration", "test duration", "name", "time", "title"];
    let tool = |record: &Record| record.import.as_ref().map(|info| info.tool.clone());
    let is_one_tool = tool(a)
        .is_some_and(|of_a| Some(&of_a) == tool(b).as_ref() && !["awr", "statspack", "card"].contains(&of_a.as_str()));
    let lines = a.plan.settings.iter().filter(|line| is_one_tool && line.origin == "imported");
    let work = lines.filter(|line| !NOT_WORK.contains(&line.name.to_ascii_lowercase().as_str()));
    let told = work.filter_map(|line| {
        let other = setting(b, &line.name)?;
        let is_known = known_params().iter().any(|def| def.name == line.name);
        (!is_known).then(|| Check::text(&line.name, &line.value, other, Finding::Forbids))
    });
    told.collect()
}

fn sessions(a: &Record, b: &Record) -> Check {
    let told = |record: &Record| match record.run.sessions {
        0 => String::new(),
        sessions => sessions.to_string(),
    };
    Check::text("sessions", &told(a), &told(b), Finding::Forbids)
}

fn cache_to_data(a: &Record, b: &Record) -> Check {
    let ratio = |record: &Record| {
        let checks = &record.checks;
        let (cache, active) = (checks.cache_blocks.value()?, checks.active_blocks.value()?);
        (active > 0.0).then(|| cache / active)
    };
    Check::near("cache : active data", ratio(a), ratio(b), WORK_RATIO, Finding::Forbids)
}

/// How long and where in the run the window lay. Rates are compared, never totals, so lengths may differ.
fn window(a: &Record, b: &Record) -> Vec<Check> {
    let length = |record: &Record| record.interval.elapsed_s.value();
    let mut all = vec![Check::near(
        "measured window, s (rates are compared, not totals)",
        length(a),
        length(b),
        LENGTH_RATIO,
        Finding::Tolerable,
    )];
    let warm_up = |record: &Record| record.interval.begin_s.value();
    let (from, to) = (warm_up(a), warm_up(b));
    if from.is_some() || to.is_some() {
        let what = "warm-up before the window, s";
        all.push(Check::near(what, from, to, 0.1, Finding::Tolerable));
    }
    let whole = |record: &Record| {
        let active = record.interval.worker_active_fraction.value()?;
        Some(if active < 0.99 { "below 0.99" } else { "0.99 or more" })
    };
    if let (Some(x), Some(y)) = (whole(a), whole(b)) {
        all.push(Check::text("share of the window in which all sessions worked", x, y, Finding::Tolerable));
    }
    all
}

/// Rows of the load profile that say how much one operation did.
const WORK: [&str; 4] = ["Logical read (blocks)", "Block changes", "Redo size (bytes)", "Physical read (blocks)"];

fn work(baseline: &RunGroup<'_>, candidate: &RunGroup<'_>) -> Vec<Check> {
    let mut all = Vec::new();
    let least = [baseline, candidate].into_iter().filter_map(transactions_per_s).reduce(f64::min);
    let too_few = least.filter(|rate| *rate < TRANSACTIONS_LEAST_PER_S);
    for name in WORK {
        let per = |group: &RunGroup<'_>, op: bool| joined(group, |record| per_work(record, name, op));
        let by_op = (per(baseline, true), per(candidate, true));
        let (what, (a, b)) = match by_op {
            (Some(a), Some(b)) => ("operation", (Some(a), Some(b))),
            _ if too_few.is_some() => continue,
            _ => ("transaction", (per(baseline, false), per(candidate, false))),
        };
        if let (Some(x), Some(y)) = (a, b) {
            // A cached test reads next to nothing: the ratio of two trifles says nothing.
            let gets = |group| joined(group, |record| per_work(record, WORK[0], what == "operation"));
            let trifle = 0.01 * gets(baseline).unwrap_or(0.0);
            let is_trifle = name != WORK[0] && x.max(y) < trifle.max(1e-9);
            let beyond = if is_trifle { Finding::Tolerable } else { Finding::Forbids };
            let label = format!("work: {name} per {what}");
            let by_chance = ERRORS * sampling_error(name, baseline, candidate);
            all.push(Check::near(&label, a, b, WORK_RATIO + by_chance, beyond));
        }
    }
    if all.is_empty() {
        let what = too_few.map_or_else(
            || "work per operation or transaction".to_owned(),
            |rate| format!("work per transaction, not judged at {} transactions/s", short(rate)),
        );
        all.push(Check::near(&what, None, None, WORK_RATIO, Finding::Unknown));
    }
    all
}

/// Transactions per second, also where only a row per second and per transaction says it.
fn transactions_per_s(group: &RunGroup<'_>) -> Option<f64> {
    joined(group, |record| {
        let counted =
            || Some(record.interval.tx_count.value()? / record.interval.elapsed_s.value().filter(|s| *s > 0.0)?);
        let rows = || {
            let mut rows = record.instance.load_profile.iter();
            rows.find_map(|row| Some(row.per_s.value()? / row.per_tx.value().filter(|each| *each > 0.0)?))
        };
        counted().or_else(rows)
    })
}

/// What drawing the operations may do to the work of one, as a share: few of them change blocks, and how many did is chance.
fn sampling_error(name: &str, baseline: &RunGroup<'_>, candidate: &RunGroup<'_>) -> f64 {
    let is_change = ["Block changes", "Redo size (bytes)"].contains(&name);
    let drawn = |record: &Record| {
        let updates = || record.driver.ops.iter().find(|op| op.kind == "update").map(|op| op.count as f64);
        let all = || record.interval.ops_count.value();
        let tx = || record.interval.tx_count.value();
        if is_change { updates().or_else(tx) } else { all().or_else(tx) }
    };
    let variance = |group: &RunGroup<'_>| -> f64 {
        let count: f64 = group.records.iter().filter_map(|record| drawn(record)).sum();
        if count > 0.0 { 1.0 / count } else { 0.0 }
    };
    (variance(baseline) + variance(candidate)).sqrt()
}

fn per_work(record: &Record, name: &str, op: bool) -> Option<f64> {
    let row = record.instance.load_profile.iter().find(|row| row.name == name)?;
    // Where hardly a transaction ends, its work is that of a snapshot or a job of the database, not of the test.
    let is_rare = row
        .per_s
        .value()
        .zip(row.per_tx.value())
        .is_some_and(|(per_s, per_tx)| per_s < TRANSACTIONS_LEAST_PER_S * per_tx);
    let figure: &Figure = if op { &row.per_op } else { &row.per_tx };
    figure.value().filter(|_| op || !is_rare)
}

/// The mean over a group's runs.
fn joined(group: &RunGroup<'_>, of: impl Fn(&Record) -> Option<f64>) -> Option<f64> {
    let values: Option<Vec<f64>> = group.records.iter().map(|record| of(record)).collect();
    values.map(|values| assay_measure::statistics::mean(&values))
}

/// Repeats must be runs of one and the same test.
fn repeats(letter: &str, group: &RunGroup<'_>) -> Vec<Check> {
    let first = group.records[0];
    let mut all: Vec<Check> = Vec::new();
    for record in &group.records[1..] {
        let mut unlike = settings(first, record);
        unlike.push(sessions(first, record));
        unlike.push(workload(first, record));
        unlike.retain(|check| check.finding == Finding::Forbids);
        unlike.extend(host::differences(first, record));
        for check in unlike {
            let what = format!("{} among the runs of {letter}", check.what);
            if !all.iter().any(|known| known.what == what) {
                all.push(Check { what, ..check });
            }
        }
    }
    all
}
