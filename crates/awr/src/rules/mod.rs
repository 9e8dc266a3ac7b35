//! What limited a run and what its figures are worth: the rules of awr-statistics 9, a file each.
//!
//! A rule reads the record alone, own or imported. It prints the numbers it fired on and never fires on a figure that
//! is n/a: then it is named once as not judged, with the figure that is missing. One more rule is one more file, with its
//! two lines here. R9, R10 and R29 live with the sweep, R11 with storage, R28 and R42 with prices.

mod r01_cpu_bound;
mod r02_cpu_saturated;
mod r03_storage_bound;
mod r04_writer_bound;
mod r05_free_buffer_timer;
mod r06_redo_bound;
mod r07_log_switches;
mod r08_bimodal_reads;
mod r12_pinned_at_a_cap;
mod r13_page_cache;
mod r14_hidden_outliers;
mod r15_unstable;
mod r16_batched_waits;
mod r17_contention;
mod r18_cached;
mod r19_checkpoint_writes;
mod r20_not_a_standard_update;
mod r21_noisy_host;
mod r22_above_the_device;
mod r23_network_part;
mod r24_settings_differ;
mod r25_warm_up_or_tail;
mod r26_unfair;
mod r27_amplification;
mod r30_numbers_disagree;
mod r31_operations_failed;
mod r32_other_hit_ratio;
mod r33_time_outside_operations;
mod r34_shared_host;
mod r35_driver_delayed;
mod r36_driver_bound;
mod r37_costly_driver;
mod r38_others_on_the_device;
mod r39_swapped;
mod r40_level_changed;
mod r41_cap;
mod r43_rollbacks;

#[cfg(test)]
mod tests;

pub(crate) use r13_page_cache::{THRESHOLD as FROM_DEVICE_LEAST, delivered};
pub use r24_settings_differ::judge as settings_differ;

use crate::deltas::{cache_parameter, device_reads};
use crate::waits::{is_lock, is_log, is_read, is_writer};
use assay_measure::histogram::{Histogram, slot_low_and_width_ns};
use assay_measure::identity::{violated, violated_exact};
use assay_measure::record::{Advice, DiskRow, EventRow, Figure, OpRow, Record, RequestLayers};
use assay_measure::rule::Rule;
use assay_measure::statistics::mean;
use assay_measure::units::{fixed, size, thousands, told};
use assay_measure::{cpu, facts};

/// What a rule says: a finding, silence, or the figure it lacks.
type RuleResult = Result<Option<Advice>, Missing>;

/// A figure that a rule needs and that is n/a: its name and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(String);

/// What a rule is documented with, and how it judges.
type Entry = (Rule, fn(&Record) -> RuleResult);

macro_rules! rules {
    ($($file:ident),* $(,)?) => { &[$(($file::RULE, $file::judge)),*] };
}

/// The rules that one record is judged by, in order.
const RULES: &[Entry] = rules![
    r01_cpu_bound,
    r02_cpu_saturated,
    r03_storage_bound,
    r04_writer_bound,
    r05_free_buffer_timer,
    r06_redo_bound,
    r07_log_switches,
    r08_bimodal_reads,
    r12_pinned_at_a_cap,
    r13_page_cache,
    r14_hidden_outliers,
    r15_unstable,
    r16_batched_waits,
    r17_contention,
    r18_cached,
    r19_checkpoint_writes,
    r20_not_a_standard_update,
    r21_noisy_host,
    r22_above_the_device,
    r23_network_part,
    r25_warm_up_or_tail,
    r26_unfair,
    r27_amplification,
    r30_numbers_disagree,
    r31_operations_failed,
    r32_other_hit_ratio,
    r33_time_outside_operations,
    r34_shared_host,
    r35_driver_delayed,
    r36_driver_bound,
    r37_costly_driver,
    r38_others_on_the_device,
    r39_swapped,
    r40_level_changed,
    r41_cap,
    r43_rollbacks,
];

/// All rules of an instance, those of several records included.
#[must_use]
pub fn rules() -> Vec<Rule> {
    RULES.iter().map(|(rule, _)| *rule).chain([r24_settings_differ::RULE]).collect()
}

/// R30 of a record of any kind.
#[must_use]
pub fn numbers_disagree(record: &Record) -> Option<Advice> {
    r30_numbers_disagree::judge(record).ok().flatten()
}

/// Fewer bytes read say nothing of where reads came from.
const SOME_BYTES: f64 = 16_777_216.0;
/// From here on no CPU of the host is left, %.
const SATURATED: f64 = 95.0;
/// A rate per hour of a shorter interval is an accident, s.
const LEAST_S: f64 = 900.0;
/// Expected and measured hit ratio may differ by so many points.
pub(crate) const HIT_POINTS: f64 = 3.0;

/// Whether no session changed a row: what is written then is left from before, or the engine's own housekeeping.
fn only_reads(record: &Record) -> bool {
    let ops = &record.driver.ops;
    let changes = |op: &OpRow| op.kind == "update" && op.count > 0;
    !ops.is_empty() && !ops.iter().any(changes)
}

/// All findings, the weightiest first: by severity, a cap before what describes its effects, then in the order of the rules.
#[must_use]
pub fn advise(record: &Record) -> Vec<Advice> {
    let mut found: Vec<Advice> = RULES.iter().filter_map(|(_, judge)| judge(record).ok().flatten()).collect();
    found.sort_by_key(|advice| (advice.severity != "high", advice.id != r41_cap::RULE.id));
    found
}

/// Rules that could not be judged, each with the figure it lacks: `R22 (device latency: no device)`.
#[must_use]
pub fn unjudged(record: &Record) -> Vec<String> {
    let lacking = |(rule, judge): &Entry| Some(format!("{} ({})", rule.id, judge(record).err()?.0));
    RULES.iter().filter_map(lacking).collect()
}

/// A finding that fired at `value` of `threshold`: high from twice the threshold on.
fn fired(rule: &Rule, value: f64, threshold: f64, text: String, evidence: &[(&str, f64)]) -> RuleResult {
    Ok(Some(rule.advise(value >= 2.0 * threshold, text, evidence)))
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

/// Whether a server's processes did the work.
pub(crate) fn has_processes(record: &Record) -> bool {
    record.instance.reads.is_some() && facts::IN_PROCESS.find(&record.plan.engine_facts).is_none()
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

/// Share of DB time on or waiting for a CPU, 0..100, and DB CPU in s a second; none without any DB time. A load profile
/// alone, as people paste it, says both per second without the length of the window.
pub(crate) fn on_cpu(record: &Record) -> Result<Option<(f64, f64)>, Missing> {
    let model = &record.instance.time_model;
    let per_s = |name: &str| {
        let mut rows = record.instance.load_profile.iter();
        rows.find(|row| row.name == name).and_then(|row| row.per_s.value())
    };
    if model.db_time_us.value().is_none()
        && let (Some(db_time), Some(cpu)) = (per_s("DB Time(s)"), per_s("DB CPU(s)"))
    {
        return Ok((db_time > 0.0).then(|| (100.0 * cpu / db_time, cpu)));
    }
    let db_time = need(&model.db_time_us, "DB time")?;
    if db_time <= 0.0 {
        return Ok(None);
    }
    let cpu = need(&model.db_cpu_us, "DB CPU")?;
    let on_cpu = match (model.on_thread_us.value(), model.run_queue_us.value()) {
        (Some(on_thread), Some(queue)) => on_thread + queue,
        _ => cpu,
    };
    Ok(Some((100.0 * on_cpu / db_time, cpu / 1e6 / elapsed(record)?)))
}
