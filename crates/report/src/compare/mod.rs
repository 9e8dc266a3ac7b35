//! Two or more groups of runs against the first: whether they may be compared at all, every figure with its ratio,
//! its 95 % interval and a verdict, and the conclusion in words.
//!
//! Groups of three repeats and more are compared by Welch's test on logarithms, single runs by the batch means of their
//! seconds, values without seconds by their ratio alone; `docs/design/compare.md` says why. Reads records only.

mod allowed;
mod answer;
mod charts;
mod comparable;
mod detect;
mod gate;
mod histograms;
mod host;
mod model;
mod normal;
mod repeats;
mod samples;
mod sections;
mod verdict;

#[cfg(test)]
mod tests;

pub use answer::answer;
pub(crate) use charts::charts;
pub use comparable::{is_same, known};
pub use detect::Detectable;
pub use gate::{Gate, GateError, GateOutcome, GateResult};
pub use model::{
    Against, Check, ComparedCell, ComparedRow, Comparison, DifferenceVerdict, Disturbance, Doubt, Finding, GroupInfo,
    Pair, RunCard, SCHEMA, SharedHistogram, WaitShares,
};
pub use normal::normal;
pub use repeats::{NoiseRow, REPEAT_SCHEMA, RepeatRun, Repeats};
pub use samples::RunGroup;
pub use sections::render;
pub(crate) use sections::{runs_of, sections};

use crate::cost::{self, Cost};
use crate::kinds;
use assay_measure::record::Metric;
use assay_measure::record::metric::{Better, Counted, Group as Section};
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::statistics::{ALPHA, holm};
use samples::Figures;
use verdict::Judgement;

/// What else a comparison considers.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Keys that are declared figures besides the primary ones: those that gates name.
    pub declared: Vec<String>,
    /// Names of conditions that differ on purpose ([`known`] ones).
    pub allow: Vec<String>,
    /// Findings over all runs.
    pub advice: Vec<Advice>,
    /// What each run costs, group by group; empty without prices.
    pub costs: Vec<Vec<Cost>>,
}

/// Compares every group with the first.
///
/// # Panics
/// If there are fewer than two groups or one of them is empty: the caller has read the command line.
#[must_use]
pub fn of(groups: &[RunGroup<'_>], options: &Options) -> Comparison {
    assert!(
        groups.len() > 1 && groups.iter().all(|group| !group.records.is_empty()),
        "a comparison needs two groups with at least one run each"
    );
    let figures: Vec<Figures<'_>> = groups
        .iter()
        .enumerate()
        .map(|(at, group)| {
            let costs = options.costs.get(at).into_iter().flatten();
            Figures::of(group, &costs.map(cost::metrics).collect::<Vec<_>>())
        })
        .collect();
    let mut rows = rows(&figures, options);
    let mut pairs = Vec::new();
    for (at, group) in groups.iter().enumerate().skip(1) {
        let checks = comparable::checks(&groups[0], group, &options.allow);
        let mut pair = Pair {
            baseline: letter(0),
            candidate: letter(at),
            shared_runs: comparable::shared(&groups[0], group),
            forbids_faster: comparable::forbids(&checks),
            checks,
            disturbances: [(letter(0), &groups[0]), (letter(at), group)]
                .iter()
                .filter_map(|(letter, group)| host::disturbance(letter, group))
                .collect(),
            ..Pair::default()
        };
        judge(&figures[0], &figures[at], &mut rows, &mut pair);
        pairs.push(pair);
    }
    let mut comparison = Comparison {
        schema: SCHEMA.to_owned(),
        groups: groups.iter().enumerate().map(info).collect(),
        integrity: doubts(groups),
        pairs,
        rows,
        histograms: histograms::shared(groups),
        advice: options.advice.clone(),
        costs: options.costs.iter().filter_map(|runs| runs.first().cloned()).collect(),
        conclusion: Vec::new(),
    };
    let said = verdict::sentences(&comparison);
    comparison.conclusion = said.into_iter().map(|(_, text)| text).collect();
    comparison
}

/// `A`, `B`, ... `Z`, `A2`, ...
fn letter(at: usize) -> String {
    let name = char::from(b'A' + (at % 26) as u8);
    match at / 26 {
        0 => name.to_string(),
        round => format!("{name}{}", round + 1),
    }
}

fn info((at, group): (usize, &RunGroup<'_>)) -> GroupInfo {
    let card = |record: &&Record| RunCard {
        id: record.run.id.clone(),
        label: record.run.label.clone().unwrap_or_default(),
        workload: match &record.import {
            Some(import) => import.format.clone(),
            None => record.run.workload.clone(),
        },
        engine: match record.run.engine.as_str() {
            "probe" => crate::answer::place(record).to_owned(),
            engine => engine.to_owned(),
        },
        started: record.run.started.clone(),
        sessions: record.run.sessions,
        elapsed_s: record.interval.elapsed_s.clone(),
        verdict: record.run.verdict.clone(),
    };
    let mut findings: Vec<Advice> = Vec::new();
    for advice in group.records.iter().flat_map(|record| &record.advice) {
        // Of repeats the first that has it.
        if !findings.iter().any(|known| known.id == advice.id) {
            findings.push(advice.clone());
        }
    }
    findings.sort_by_key(|advice| advice.severity != "high");
    GroupInfo {
        letter: letter(at),
        name: group.name.clone(),
        runs: group.records.iter().map(card).collect(),
        limited_by: kinds::of(group.records[0]).headline(group.records[0]).limit.what,
        findings,
    }
}

/// Violated identities and runs that are not whole.
fn doubts(groups: &[RunGroup<'_>]) -> Vec<Doubt> {
    let mut all = Vec::new();
    for (at, group) in groups.iter().enumerate() {
        for record in &group.records {
            let mut doubt = |text: String| {
                all.push(Doubt { group: letter(at), run: record.run.id.clone(), text });
            };
            if !["complete", ""].contains(&record.run.verdict.as_str()) {
                let verdict = &record.run.verdict;
                match record.run.verdict_reasons.join("; ") {
                    why if why.is_empty() => doubt(format!("the run is {verdict}")),
                    why => doubt(format!("the run is {verdict}: {why}")),
                }
            }
            for identity in assay_measure::identity::violated(record) {
                doubt(format!("{}: {}", identity.id, identity.sentence));
            }
        }
    }
    all
}

/// One row for every key of any group, without the outcomes.
fn rows(figures: &[Figures<'_>], options: &Options) -> Vec<ComparedRow> {
    let mut keys: Vec<&str> = Vec::new();
    let mut known = std::collections::BTreeSet::new();
    for key in figures.iter().flat_map(Figures::keys) {
        if known.insert(key.as_str()) {
            keys.push(key);
        }
    }
    let mut found: Vec<(&Metric, &str)> =
        keys.into_iter().filter_map(|key| Some((figures.iter().find_map(|side| side.about(key))?, key))).collect();
    found.sort_by_key(|(metric, _)| metric.group);
    let has_primary_tail = found.iter().any(|(metric, _)| metric.is_primary && metric.key.ends_with("_us_p99"));
    let row = |(metric, key): (&Metric, &str)| ComparedRow {
        key: key.to_owned(),
        name: match metric.scope.as_str() {
            "" => metric.name.clone(),
            scope => format!("{scope}: {}", metric.name),
        },
        section: section(metric.group).to_owned(),
        unit: metric.unit.clone(),
        better: match metric.better {
            Better::Higher => "higher",
            Better::Lower => "lower",
            Better::Neither => "neither",
        }
        .to_owned(),
        is_primary: metric.is_primary
            || is_declared_tail(metric, has_primary_tail)
            || options.declared.iter().any(|name| name == key),
        is_counter: metric.counter.is_some(),
        layer: metric.layer.clone(),
        cells: figures.iter().map(|side| cell(side, key)).collect(),
        against: Vec::new(),
    };
    found.into_iter().map(row).collect()
}

/// How long nearly every operation takes at most is declared too: of operations, and of a probe's jobs where it has no such
/// primary figure.
fn is_declared_tail(metric: &Metric, has_primary_tail: bool) -> bool {
    let is_p99 = metric.key.ends_with("_us_p99") && !metric.key.ends_with("_response_us_p99");
    is_p99
        && match metric.group {
            Section::Operation => true,
            Section::Storage => !has_primary_tail,
            _ => false,
        }
}

fn section(group: Section) -> &'static str {
    match group {
        Section::Primary => "primary",
        Section::LoadProfile => "load profile",
        Section::Operation => "operations",
        Section::Event => "events",
        Section::IoProfile => "io profile",
        Section::Storage => "storage",
        Section::Imported => "imported",
        Section::Efficiency => "efficiency",
        Section::Host => "host",
        Section::Statistic => "statistics",
    }
}

fn cell(side: &Figures<'_>, key: &str) -> ComparedCell {
    let of = |column: fn(&Counted) -> &Figure| {
        side.joined(key, |metric| match &metric.counter {
            Some(counter) => column(counter).clone(),
            None => Figure::na("no counter"),
        })
    };
    ComparedCell {
        value: side.joined(key, |metric| metric.value.clone()),
        total: of(|counter| &counter.total),
        per_s: of(|counter| &counter.per_s),
        per_tx: of(|counter| &counter.per_tx),
        per_op: of(|counter| &counter.per_op),
        spread_pct: side.spread_pct(key),
    }
}

/// Judges every row of a pair: the declared ones together, the others each by itself.
fn judge(from: &Figures<'_>, to: &Figures<'_>, rows: &mut [ComparedRow], pair: &mut Pair) {
    let compared: Vec<_> = rows.iter().map(|row| samples::compare(&row.key, from, to)).collect();
    let family: Vec<usize> = (0..rows.len()).filter(|i| rows[*i].is_primary && compared[*i].is_ok()).collect();
    let p_values: Vec<f64> = family
        .iter()
        .filter_map(|i| compared[*i].as_ref().ok())
        .map(|compared| compared.difference.p_value())
        .collect();
    let corrected = holm(&p_values);
    pair.family_count = family.len() as u64;
    for (i, (row, outcome)) in rows.iter_mut().zip(compared).enumerate() {
        let holm_p = family.iter().position(|at| *at == i).map(|at| corrected[at]);
        let judgement = Judgement {
            row,
            pair,
            p_holm: holm_p,
            alpha: match holm_p {
                // The first step of Holm's correction: what a figure must pass if no other does.
                Some(_) => ALPHA / family.len() as f64,
                None => ALPHA,
            },
        };
        let against = judgement.of(outcome);
        row.against.push(against);
    }
    (pair.method, pair.method_text) = verdict::method(rows, pair.family_count);
}
