//! Advice: what limited the run, by the rules of awr-statistics 9.
//!
//! Reads the record alone. A rule prints the numbers it fired on and never fires on a
//! figure that is n/a: then it is named once as not judged, with the figure that is missing.
//! Inputs, thresholds and sources of every rule: docs/design/advice.md.

mod host;
mod log;
mod network;
mod reads;
mod several;
mod steady;
mod time;
mod writes;

#[cfg(test)]
mod tests;

pub use several::settings_differ;
pub(crate) use time::on_cpu;

use assay_measure::record::{Advice, EventRow, Figure, OpRow, Record};

/// What a rule says: a finding, silence, or the figure it lacks.
type Judged = Result<Option<Advice>, Missing>;

/// A figure that a rule needs and that is n/a: its name and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(String);

/// One rule.
struct Rule {
    id: &'static str,
    judge: fn(&Record) -> Judged,
}

const fn rule(id: &'static str, judge: fn(&Record) -> Judged) -> Rule {
    Rule { id, judge }
}

/// The rules that one record can be judged by, in order. R9, R10 and R24 need several records, R28 prices, R29
/// projections (the sweep), R11 requests of several sizes (storage).
const RULES: &[Rule] = &[
    rule("R1", time::cpu_bound),
    rule("R2", host::cpu_saturated),
    rule("R3", time::storage_bound),
    rule("R4", writes::writer_bound),
    rule("R5", writes::free_buffer_timer),
    rule("R6", log::redo_bound),
    rule("R7", log::log_switches),
    rule("R8", reads::bimodal_reads),
    rule("R12", host::pinned_at_a_cap),
    rule("R13", reads::page_cache),
    rule("R14", reads::hidden_outliers),
    rule("R15", steady::unstable),
    rule("R16", reads::batched_waits),
    rule("R17", time::contention),
    rule("R18", reads::cached),
    rule("R19", writes::checkpoint_writes),
    rule("R20", log::not_a_standard_update),
    rule("R21", host::noisy_host),
    rule("R22", time::above_the_device),
    rule("R23", network::network_part),
    rule("R25", steady::warm_up_or_tail),
    rule("R26", steady::unfair),
    rule("R27", writes::amplification),
    rule("R30", steady::numbers_disagree),
];

/// Whether no session changed a row: what is written then is left from before, or the engine's own housekeeping.
fn only_reads(record: &Record) -> bool {
    let ops = &record.driver.ops;
    let changes = |op: &OpRow| op.kind == "update" && op.count > 0;
    !ops.is_empty() && !ops.iter().any(changes)
}

/// All findings, the weightiest first: by severity, then in the order of the rules.
#[must_use]
pub fn advise(record: &Record) -> Vec<Advice> {
    let judged = RULES.iter().map(|rule| (rule.judge)(record));
    let mut found: Vec<Advice> = judged.filter_map(|judged| judged.ok().flatten()).collect();
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

/// Rules that could not be judged, each with the figure it lacks: `R22 (device latency: no device)`.
#[must_use]
pub fn unjudged(record: &Record) -> Vec<String> {
    let lacking = |rule: &Rule| {
        let missing = (rule.judge)(record).err()?;
        Some(format!("{} ({})", rule.id, missing.0))
    };
    RULES.iter().filter_map(lacking).collect()
}

/// A finding that fired at `value` of `threshold`: high from twice the threshold on.
fn finding(id: &str, value: f64, threshold: f64, text: String, evidence: &[(&str, f64)]) -> Judged {
    Ok(Some(Advice::of(id, value >= 2.0 * threshold, text, evidence)))
}

/// What is known of some figures as a sentence of its own, with a blank before it; nothing of nothing.
fn said(known: &[Option<String>]) -> String {
    let known: Vec<&str> = known.iter().flatten().map(String::as_str).collect();
    let text = known.join(", ");
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!(" {}{}.", first.to_uppercase(), letters.as_str()))
}

/// The number, or what is missing.
fn need(figure: &Figure, name: &str) -> Result<f64, Missing> {
    match (figure.value(), figure.reason()) {
        (Some(value), _) => Ok(value),
        (None, reason) => Err(Missing(format!("{name}: {}", reason.unwrap_or("absent")))),
    }
}

/// A counter's total in the window.
fn stat(record: &Record, key: &str) -> Result<f64, Missing> {
    match record.instance.stats.get(key) {
        Some(row) => need(&row.total, key),
        None => Err(Missing(format!("{key}: absent"))),
    }
}

pub(crate) fn foreground(record: &Record, is_it: impl Fn(&EventRow) -> bool) -> impl Iterator<Item = &EventRow> {
    let events = record.instance.events.iter();
    events.filter(move |event| event.actor == "foreground" && is_it(event))
}

/// Share of DB time of the foreground events that `is_it` picks, 0..100.
pub(crate) fn share(record: &Record, is_it: impl Fn(&EventRow) -> bool) -> Result<f64, Missing> {
    need(&record.instance.time_model.db_time_us, "DB time")?;
    let shares = foreground(record, is_it).filter_map(|event| event.db_time_pct.value());
    Ok(shares.sum())
}

fn named<'a>(record: &'a Record, name: &str, actor: &str) -> Option<&'a EventRow> {
    let mut events = record.instance.events.iter();
    events.find(|event| event.name == name && event.actor == actor)
}

/// How busy the host's CPUs were, 0..100.
fn busy(record: &Record) -> Result<f64, Missing> {
    let figure = record.os.cpu_pct.get("busy").cloned().unwrap_or_default();
    need(&figure, "host CPU busy")
}

/// Length of the window, s; none is missing too.
fn elapsed(record: &Record) -> Result<f64, Missing> {
    match need(&record.interval.elapsed_s, "elapsed time")? {
        seconds if seconds > 0.0 => Ok(seconds),
        _ => Err(Missing("elapsed time: no time passed".to_owned())),
    }
}

/// An effective parameter's value.
pub(crate) fn setting<'a>(record: &'a Record, name: &str) -> Option<&'a str> {
    let mut settings = record.plan.settings.iter();
    settings.find(|line| line.name == name).map(|line| line.value.as_str())
}
