//! The record of a passport, and of an acceptance by one.

use super::info::{BETTER, ChangedRow, MEASURED, PassportInfo, PassportRow, SAME, UNKNOWN, WORSE};
use super::judge::{Change, change, told_from_pct};
use super::rounds::{ROUNDS, ROWS, Row, is_planned, value};
use super::{Measured, Passport, page};
use crate::facts::{Tree, look};
use crate::finished::Finished;
use crate::needs::named;
use assay_measure::kind::{Finding, Kind, OwnKind, TestConditions};
use assay_measure::record::metric::of_key;
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::median;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

const OWN: OwnKind<PassportInfo> =
    OwnKind { judges: page::RULES, conditions, ..OwnKind::new(metrics, page::render, page::headline) };

/// The kind of its records.
pub const KIND: &dyn Kind = &OWN;

fn conditions(info: &PassportInfo) -> TestConditions {
    vec![
        ("passport", info.passport.clone(), Finding::Forbids),
        ("file", info.file_bytes.to_string(), Finding::Tolerable),
        ("rounds of", format!("{} s", info.seconds), Finding::Tolerable),
    ]
}

/// The middle of each figure's rounds, under its own name.
fn metrics(info: &PassportInfo) -> Vec<Metric> {
    let of = |row: &PassportRow| named(&row.what, of_key(&row.what).0, row.is_higher_better, &row.here_value);
    info.rows.iter().map(of).collect()
}

/// What was asked for.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The directory on the database's storage.
    pub place: PathBuf,
    /// The other host.
    pub peer: Option<String>,
    /// What all rounds take, s.
    pub seconds: u64,
    /// Bytes of the file that is read and written.
    pub file_bytes: u64,
    /// The passport to compare with, and its file.
    pub passport: Option<(Passport, String)>,
    /// Where `/proc` and `/sys` are.
    pub root: PathBuf,
}

/// What an acceptance ends with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acceptance {
    /// Nothing is worse beyond the noise.
    Accepted,
    /// Something is.
    Worse,
    /// Something is, and others disturbed the rounds; or a figure is missing.
    Unjudged,
}

/// The record of the rounds until now.
#[must_use]
pub fn build(run: &RunData, asked: &Asked, rounds: &[Vec<Finished>], is_stopped: bool) -> Record {
    let mut run = run.clone();
    if is_stopped || rounds.len() < ROUNDS {
        run.verdict = Verdict::Incomplete(format!("stopped after {} of {ROUNDS} rounds", rounds.len()));
    }
    let mut record = Record::labelled(&run);
    let elapsed = rounds.iter().flatten().filter_map(|one| one.record.as_ref().ok()?.interval.elapsed_s.value());
    record.interval.elapsed_s = Figure::decimal(elapsed.sum());
    OWN.complete(record, &info(asked, rounds))
}

/// The passport of the rounds; it is as whole as they are.
#[must_use]
pub fn passport(run: &RunData, asked: &Asked, rounds: &[Vec<Finished>], host: &str) -> Passport {
    let rows = ROWS.iter().filter(|row| is_planned(row, asked.peer.is_some())).map(|row| measured(row, rounds));
    Passport {
        made: run.started.clone(),
        host: host.to_owned(),
        version: run.version.clone(),
        seconds: asked.seconds,
        file_bytes: asked.file_bytes,
        has_peer: asked.peer.is_some(),
        facts: facts(&asked.root, &asked.place),
        rows: rows.filter(|row| !row.rounds.is_empty()).collect(),
        ..Passport::default()
    }
}

/// What a record of an acceptance ends with.
#[must_use]
pub fn outcome(record: &Record) -> Acceptance {
    let info: PassportInfo = record.parts.get().unwrap_or_default();
    let has = |verdict: &str| info.rows.iter().any(|row| row.verdict == verdict);
    if has(WORSE) {
        return Acceptance::Worse;
    }
    if has(UNKNOWN) || info.rows.is_empty() { Acceptance::Unjudged } else { Acceptance::Accepted }
}

fn facts(root: &Path, place: &Path) -> BTreeMap<String, String> {
    look(&Tree::at(root, place)).into_iter().map(|row| (row.fact, row.value)).collect()
}

fn measured(row: &Row, rounds: &[Vec<Finished>]) -> Measured {
    let all: Vec<(f64, f64)> = rounds.iter().filter_map(|round| value(row, round)).collect();
    Measured {
        what: row.what.to_owned(),
        rounds: all.iter().map(|(value, _)| *value).collect(),
        disturbed_count: all.iter().filter(|(_, lost)| *lost > 0.0).count(),
    }
}

/// What others may have taken of a figure in the middle round.
fn lost_share(row: &Row, rounds: &[Vec<Finished>]) -> f64 {
    let all: Vec<f64> = rounds.iter().filter_map(|round| Some(value(row, round)?.1)).collect();
    median(&all).unwrap_or(0.0)
}

/// Whether what others may have taken, and as much again, leaves a figure where it is.
fn is_explained(row: &Row, theirs: &Measured, ours: &Measured, lost: f64) -> bool {
    const AND_AS_MUCH: f64 = 0.5;
    let middles =
        median(&theirs.rounds).zip(median(&ours.rounds)).filter(|(theirs, ours)| *theirs > 0.0 && *ours > 0.0);
    let left = middles.map_or(0.0, |(theirs, ours)| if row.is_higher_better { ours / theirs } else { theirs / ours });
    lost > 0.0 && left >= AND_AS_MUCH * (1.0 - lost)
}

fn info(asked: &Asked, rounds: &[Vec<Finished>]) -> PassportInfo {
    let given = asked.passport.as_ref();
    let rows = ROWS.iter().filter_map(|row| {
        let theirs = given.map(|(passport, _)| passport.rows.iter().find(|theirs| theirs.what == row.what));
        // What the passport has and this box has not is a row that cannot be told.
        let is_wanted = theirs.map_or_else(|| is_planned(row, asked.peer.is_some()), |theirs| theirs.is_some());
        is_wanted.then(|| compared(row, theirs.flatten(), &measured(row, rounds), lost_share(row, rounds)))
    });
    let passport = given.map(|(passport, _)| passport);
    let changed = passport.map_or_else(Vec::new, |passport| {
        let now = facts(&asked.root, &asked.place);
        let differs = |(fact, was): (&String, &String)| {
            let is = now.get(fact)?;
            (is != was).then(|| ChangedRow { fact: fact.clone(), was: was.clone(), is: is.clone() })
        };
        passport.facts.iter().filter_map(differs).collect()
    });
    PassportInfo {
        path: asked.place.display().to_string(),
        peer: asked.peer.clone().unwrap_or_else(|| "none".to_owned()),
        passport: given.map_or_else(String::new, |(_, file)| file.clone()),
        passport_host: passport.map_or_else(String::new, |passport| passport.host.clone()),
        passport_made: passport.map_or_else(String::new, |passport| passport.made.clone()),
        seconds: asked.seconds,
        file_bytes: asked.file_bytes,
        rounds_count: rounds.len() as u64,
        rows: rows.collect(),
        changed,
    }
}

fn compared(row: &Row, theirs: Option<&Measured>, ours: &Measured, lost: f64) -> PassportRow {
    let empty = Measured::default();
    let of = |measured: &Measured| {
        let all = &measured.rounds;
        let known = |value: Option<f64>| Figure::known(value, "no round has it");
        [median(all), all.iter().copied().reduce(f64::min), all.iter().copied().reduce(f64::max)].map(known)
    };
    let verdict = match theirs.map(|theirs| (change(row, &theirs.rounds, &ours.rounds), theirs)) {
        None => MEASURED,
        Some((Change::Worse, theirs)) if is_explained(row, theirs, ours, lost) => UNKNOWN,
        Some((Change::Worse, _)) => WORSE,
        Some((Change::Same, _)) => SAME,
        Some((Change::Better, _)) => BETTER,
        Some((Change::Unknown, _)) => UNKNOWN,
    };
    let [passport_value, passport_least, passport_most] = of(theirs.unwrap_or(&empty));
    let [here_value, here_least, here_most] = of(ours);
    PassportRow {
        what: row.what.to_owned(),
        unit: row.unit.to_owned(),
        passport_value,
        passport_least,
        passport_most,
        here_value,
        here_least,
        here_most,
        disturbed_count: ours.disturbed_count as u64,
        told_from_pct: Figure::known(
            theirs.map(|theirs| told_from_pct(row, &theirs.rounds)),
            "nothing to compare with",
        ),
        verdict: verdict.to_owned(),
        is_higher_better: row.is_higher_better,
    }
}
