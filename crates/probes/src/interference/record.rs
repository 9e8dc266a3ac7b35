//! The record of interference: its kind, and how its figures follow from the readings.

use super::info::{InterferenceInfo, PairRow, RoleRow};
use super::matrix::{Cell, LEAST_ROUNDS, Multiple, matrix, pooled, rounds};
use super::role::{LOG, READS, ROLES, combinations, told};
use super::{InterferenceReadings, findings, page};
use assay_measure::figures::of_layer;
use assay_measure::kind::{Finding, OwnKind};
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::{mean, stddev};
use assay_measure::units::{many, size};

/// The kind of its records.
pub(super) const KIND: OwnKind<InterferenceInfo> = OwnKind {
    judges: findings::RULES,
    charts: page::charts,
    conditions: |info| vec![("Data file", size(info.data_bytes), Finding::Tolerable)],
    ..OwnKind::new(|info| of_layer("syscall", info), page::render, page::headline)
};

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(super) fn build(run: &RunData, readings: &InterferenceReadings) -> Record {
    let mut run = run.clone();
    run.sessions = 1;
    run.seed = readings.seed;
    run.engine_facts.clone_from(&readings.facts);
    let missing = missing(readings);
    if readings.is_stopped {
        let left = if missing.is_empty() { String::new() } else { format!("; missing: {}", missing.join(", ")) };
        let planned = many(u64::from(readings.rounds) * combinations().len() as u64, "slice");
        run.verdict = Verdict::Incomplete(format!("stopped on request after {} of {planned}{left}", slices(readings)));
    }
    let mut info = InterferenceInfo {
        directory: readings.directory.clone(),
        disk: readings.disk.clone().unwrap_or_default(),
        is_memory: readings.is_memory,
        is_direct: readings.is_direct,
        data_bytes: readings.data_bytes,
        seed: readings.seed,
        slice_s: readings.slice_s,
        rounds: readings.rounds,
        missing,
        roles: (0..ROLES.len()).map(|role| alone(readings, role)).collect(),
        pairs: matrix(&readings.readings).iter().map(|cell| pair(readings, cell)).collect(),
        ..InterferenceInfo::default()
    };
    info.commit_slowdown_ratio = info.worst_of(LOG);
    info.read_slowdown_ratio = info.worst_of(READS);
    KIND.complete(readings.host.record(run), &info)
}

/// Slices that were measured: a pair has two readings.
fn slices(readings: &InterferenceReadings) -> usize {
    let first = |reading: &&super::Reading| reading.beside.is_none_or(|beside| reading.role < beside);
    readings.readings.iter().filter(first).count()
}

/// Combinations without any slice.
fn missing(readings: &InterferenceReadings) -> Vec<String> {
    let has = |roles: &Vec<usize>| {
        readings.readings.iter().any(|reading| reading.role == roles[0] && reading.beside == roles.get(1).copied())
    };
    let mut missing: Vec<Vec<usize>> = combinations().into_iter().filter(|roles| !has(roles)).collect();
    missing.dedup();
    missing.iter().map(|roles| told(roles)).collect()
}

const NOT_REACHED: &str = "no slice was reached; use a longer --time";

fn alone(readings: &InterferenceReadings, role: usize) -> RoleRow {
    let rounds = rounds(&readings.readings, role, None);
    let whole = pooled(rounds.values());
    let per_s = whole.per_slice().map(|operations| operations / readings.slice_s);
    let rates: Vec<f64> = rounds.values().filter_map(super::matrix::Pooled::per_slice).collect();
    let us = |quantile| {
        let why = if whole.slices == 0 { NOT_REACHED } else { "too few operations are slower; use a longer --time" };
        Figure::known(whole.us(quantile), why)
    };
    let bytes = ROLES[role].read_bytes + ROLES[role].written_bytes;
    RoleRow {
        role: ROLES[role].name.to_owned(),
        operation: ROLES[role].operation.to_owned(),
        alone_per_s: Figure::known(per_s, NOT_REACHED),
        mb_per_s: Figure::known(per_s.map(|per_s| per_s * bytes as f64 / 1e6), NOT_REACHED),
        alone_us_p50: us(0.5),
        alone_us_p90: us(0.9),
        alone_us_p99: us(0.99),
        slices_count: whole.slices,
        spread_pct: match rates.len() {
            0 | 1 => Figure::na("fewer than two rounds"),
            _ => Figure::decimal(100.0 * stddev(&rates) / mean(&rates)),
        },
    }
}

fn pair(readings: &InterferenceReadings, cell: &Cell) -> PairRow {
    let why = match cell.rounds {
        0 => NOT_REACHED.to_owned(),
        rounds if rounds < LEAST_ROUNDS => format!("only {}; use a longer --time", many(rounds as u64, "round")),
        _ => "too few operations are slower; use a longer --time".to_owned(),
    };
    let known = |multiple: Option<Multiple>, of: fn(&Multiple) -> f64| Figure::known(multiple.as_ref().map(of), &why);
    let judged = cell.judged();
    PairRow {
        role: ROLES[cell.role].name.to_owned(),
        beside: ROLES[cell.beside].name.to_owned(),
        statistic: match (cell.p99, cell.p90) {
            (Some(_), _) => "p99",
            (None, Some(_)) => "p90",
            _ => "",
        }
        .to_owned(),
        alone_us: known(judged, |multiple| multiple.alone),
        beside_us: known(judged, |multiple| multiple.beside),
        latency_ratio_p99: known(cell.p99, |multiple| multiple.times),
        latency_ratio_p90: known(cell.p90, |multiple| multiple.times),
        low_ratio: known(judged, |multiple| multiple.low),
        high_ratio: known(judged, |multiple| multiple.high),
        verdict: cell.verdict.to_owned(),
        is_by_rate: cell.is_by_rate,
        alone_per_s: known(cell.rate, |multiple| multiple.alone).scaled(1.0 / readings.slice_s),
        beside_per_s: known(cell.rate, |multiple| multiple.beside).scaled(1.0 / readings.slice_s),
        rate_ratio: known(cell.rate, |multiple| multiple.times),
        rounds_count: cell.rounds as u64,
    }
}
