//! The first things to know of a workload: what ran, its rates, the slow ones, whether it was steady.

use super::figures::of_reads;
use super::{limit, printed_figures, time};
use crate::rules::{FROM_DEVICE_LEAST, setting};
use assay_measure::histogram::Histogram;
use assay_measure::kind::{Check, Delivered, Finding, Headline, HeadlineFigure, HeadlineLine, Next, given};
use assay_measure::level_change::LevelChange;
use assay_measure::plain::shell_word;
use assay_measure::record::metric::find;
use assay_measure::record::{EventRow, Figure, ImportInfo, OpRow, Record};
use assay_measure::record::{Latency, steady};
use assay_measure::steady::{EXCURSION_RATIO, SLOPE_RATIO};
use assay_measure::units::{fixed, short, thousands, with_unit};

/// The headline of a workload.
pub(crate) fn of(record: &Record) -> Headline {
    Headline {
        tested: what_ran(record),
        rows: rows(record),
        steadiness: steadiness(record),
        rerun_command: rerun_command(record),
        limit: limit::of(record),
        next: next(record),
        ..Headline::default()
    }
}

/// Nothing of an import: what it measured is not here.
fn next(record: &Record) -> Vec<Next> {
    if record.import.is_some() {
        return Vec::new();
    }
    let target = setting(record, "TARGET").filter(|url| url.contains(':'));
    let target = target.map_or_else(String::new, |url| format!(" --target {url}"));
    if record.run.verdict == "invalid" {
        return Next::after_invalid("assay", &target);
    }
    vec![
        Next::new(format!("assay sweep{target} --sessions auto"), "finds where throughput stops scaling"),
        Next::new(format!("assay run{target} --repeat 5"), "measures the noise between runs"),
    ]
}

/// What was set as `--set`, which knows every parameter; the seed as it was drawn.
fn rerun_command(record: &Record) -> String {
    let given = given(record);
    if given.is_empty() || record.import.is_some() {
        return String::new();
    }
    let mut words = vec!["assay run".to_owned()];
    if let Some(target) = setting(record, "TARGET").filter(|url| url.contains(':')) {
        words.push(format!("--target {}", shell_word(target)));
    }
    let others = given.iter().filter(|line| !["TARGET", "SEED"].contains(&line.name.as_str()));
    words.extend(others.map(|line| {
        let value = format!("{}={}", line.name, line.value);
        format!("--set {}", shell_word(&value))
    }));
    words.push(format!("--seed {}", record.run.seed));
    words.join(" ")
}

fn what_ran(record: &Record) -> String {
    if let Some(info) = &record.import {
        return imported_load(record, info);
    }
    format!(
        "{} on {} did the {} workload{}{}.",
        sessions(record),
        record.product(),
        record.run.workload,
        work(record),
        window(record)
    )
}

fn sessions(record: &Record) -> String {
    match record.run.sessions {
        0 => "Sessions".to_owned(),
        1 => "1 session".to_owned(),
        many => format!("{} sessions", thousands(many)),
    }
}

/// ` (30 % updates, 64 blocks an operation)`, or nothing where nothing was set.
fn work(record: &Record) -> String {
    let setting = |name: &str| {
        let line = record.plan.settings.iter().find(|line| line.name == name)?;
        (!line.value.is_empty()).then_some(line.value.as_str())
    };
    let share = setting("UPDATE_PCT").map(|pct| format!("{pct} % updates"));
    let unit = setting("WORK_UNIT").map(|blocks| format!("{blocks} blocks an operation"));
    let scale = setting("SCALE").map(|scale| format!("SCALE {scale}"));
    let cache = setting("CACHE_MB").map(|mb| format!("cache {mb} MiB"));
    let what: Vec<String> = [share, unit, scale, cache].into_iter().flatten().collect();
    if what.is_empty() { String::new() } else { format!(" ({})", what.join(", ")) }
}

fn window(record: &Record) -> String {
    let window = record.interval.elapsed_s.value();
    window.map_or_else(String::new, |s| format!(" for {} s", fixed(s, 0)))
}

/// What an import says of the load: its sessions, those of the instance at the borders, its settings, the window.
fn imported_load(record: &Record, info: &ImportInfo) -> String {
    let engine = record.run.engine.as_str();
    let is_named = !engine.is_empty() && engine != info.tool;
    if !is_named && tells_of_no_work(record, info) {
        return "No run: the source contains no operations, rates or times.".to_owned();
    }
    let sessions = sessions(record);
    let who = match (is_named, record.run.sessions) {
        (true, _) => format!("{sessions} on {engine}"),
        (false, 0) => format!("The work of {}", info.tool),
        (false, _) => format!("{sessions} of {}", info.tool),
    };
    let interval = &record.interval;
    let begin = interval.sessions_begin_count.value();
    let borders = begin.zip(interval.sessions_end_count.value());
    let count = borders.map_or_else(String::new, |(begin, end)| {
        let (begin, end) = (fixed(begin, 0), fixed(end, 0));
        format!(" ({begin} at the start, {end} at the end)")
    });
    let what = work(record);
    let untold = if is_named && record.run.sessions == 0 && what.is_empty() {
        "; the source does not say what they did"
    } else {
        ""
    };
    format!("{who}{count}{what}{}{untold}.", window(record))
}

/// No time passes in it: no window, no operation, no event, no rate.
fn tells_of_no_work(record: &Record, info: &ImportInfo) -> bool {
    record.interval.elapsed_s.value().is_none()
        && record.run.sessions == 0
        && record.driver.ops.is_empty()
        && record.series.t_s.is_empty()
        && record.instance.events.is_empty()
        && info.values.iter().all(|value| printed_figures::weight(value) > 3)
}

fn rows(record: &Record) -> Vec<HeadlineLine> {
    let Delivered { ops_per_s, transactions_per_s, executes_per_s, reads_per_s, writes_per_s, mb_per_s, .. } =
        &Delivered::sustained(record);
    let rates = [
        HeadlineFigure::new(ops_per_s, "operations/s"),
        HeadlineFigure::new(transactions_per_s, "transactions/s"),
        HeadlineFigure::new(executes_per_s, "executes/s"),
    ];
    let is_known = |told: &HeadlineFigure| told.value.value().is_some();
    // Operations, transactions and executes are often the same thing counted thrice.
    let rate: Vec<HeadlineFigure> = rates.into_iter().find(is_known).into_iter().collect();
    let ios = vec![
        HeadlineFigure::new(reads_per_s, "reads/s"),
        HeadlineFigure::new(writes_per_s, "writes/s"),
        HeadlineFigure::new(mb_per_s, "MB/s (10^6)"),
    ];
    if rate.is_empty() && !ios.iter().any(is_known) {
        let p99 = HeadlineLine { glue: "; ", ..HeadlineLine::of("p99", printed_p99(record), "") };
        let p99 = Some(p99).filter(|line| !line.told.is_empty());
        return p99.into_iter().chain(printed_figures::lines(record)).collect();
    }
    vec![
        HeadlineLine::of("Rate", rate, "operations n/a (absent)"),
        HeadlineLine::of("", ios, ""),
        source_of_reads(record),
        p99(record),
        time::line(record),
    ]
}

/// What of the reads a device answered, and who the others; empty where that is not known.
pub(super) fn source_of_reads(record: &Record) -> HeadlineLine {
    let told = limit::from_device(record).map(|ratio| {
        let pct = 100.0 * ratio;
        let unit = match pct.round() {
            100.0 => "% of the bytes read came from a device",
            _ => "% of the bytes read came from a device, the others from the page cache",
        };
        HeadlineFigure::new(&Figure::Count(pct.round() as u64), unit)
    });
    HeadlineLine::of("", told.into_iter().collect(), "")
}

/// Whether both sides of a comparison read from devices, or both from memory.
pub(super) fn from_devices(baseline: &Record, candidate: &Record) -> Option<Check> {
    let (a, b) = (limit::from_device(baseline)?, limit::from_device(candidate)?);
    let is_device = |ratio: f64| ratio >= FROM_DEVICE_LEAST;
    let told = |ratio: f64| {
        let others = if is_device(ratio) { "" } else { " (the others from the page cache)" };
        format!("{} %{others}", fixed(100.0 * ratio, 0))
    };
    let finding = if is_device(a) == is_device(b) { Finding::Same } else { Finding::Forbids };
    let what = "bytes read that came from a device".to_owned();
    Some(Check { what, baseline: told(a), candidate: told(b), finding })
}

/// The 99th percentile of operations, of reads, or why there is none.
fn p99(record: &Record) -> HeadlineLine {
    let metric = |key: &str| {
        let found = find(&record.metrics, key);
        found.map_or_else(Figure::default, |metric| metric.value.clone())
    };
    let mut all = Histogram::new();
    // In a closed loop an operation is meant to start when it does.
    let mut from = "us per operation, from its start (client)";
    for op in &record.driver.ops {
        all.merge(&op.response.hist_ns);
        if op.response.hist_ns != op.service.hist_ns {
            from = "us per operation, from its intended start (client)";
        }
    }
    let op = Latency::of(&all).us_p99;
    let average =
        metric("read_us_avg").value().zip(of_reads(record)).map_or_else(String::new, |(average, (event, pct))| {
            let (average, slow) = (with_unit(average, "us"), slow_reads(event));
            let who = if pct >= NEARLY_ALL_PCT {
                "reads".to_owned()
            } else {
                format!("{} ({} % of the waits for reads)", event.name, short(pct))
            };
            format!("; {who} took {average} on average, {slow}")
        });
    let of_read = metric("read_us_p99");
    let mut told = vec![HeadlineFigure::new(&op, from), HeadlineFigure::new(&of_read, "us per single read (engine)")];
    if record.import.is_some() && op.value().is_none() {
        told.splice(..1, printed_p99(record));
    }
    let why = match record.import {
        Some(_) => "the source has no p99 of operations",
        None => "no distribution of latency is known",
    };
    let otherwise = format!("n/a ({why}){average}");
    HeadlineLine { glue: "; ", ..HeadlineLine::of("p99 at that rate", told, &otherwise) }
}

/// From this share of the waits for reads on one event speaks for all of them, %.
const NEARLY_ALL_PCT: f64 = 95.0;

/// What is known of the slow ones of an event: the bucket that 99 % of them end in or before.
fn slow_reads(event: &EventRow) -> String {
    /// Reports close their histograms with a bucket that has no upper bound.
    const OPEN_US: f64 = 1e9;
    let buckets = &event.hist_us;
    let all: u64 = buckets.iter().sum();
    let mut below = 0;
    let holds = |n: &u64| {
        below += n;
        below as f64 >= 0.99 * all as f64
    };
    match buckets.iter().position(holds).filter(|_| all > 0) {
        None => "which hides the slow ones".to_owned(),
        Some(i) if 2_f64.powi(i as i32) > OPEN_US => {
            "more than 1 % of them took longer than the histogram's last bound".to_owned()
        }
        Some(i) => {
            format!("99 % of them took at most {} us (bound of a histogram bucket)", fixed(2_f64.powi(i as i32), 0))
        }
    }
}

/// The printed 99th percentiles of the most frequent operations of an import.
fn printed_p99(record: &Record) -> Vec<HeadlineFigure> {
    const MOST: usize = 3;
    let is_known = |op: &&OpRow| op.service.us_p99.value().is_some();
    let mut ops: Vec<&OpRow> = record.driver.ops.iter().filter(is_known).collect();
    ops.sort_by_key(|op| std::cmp::Reverse(op.count));
    let told = |op: &&OpRow| HeadlineFigure::new(&op.service.us_p99, &format!("us of {} (client)", op.kind));
    ops.iter().take(MOST).map(told).collect()
}

fn steadiness(record: &Record) -> String {
    if record.import.is_some() && record.series.t_s.is_empty() {
        return "n/a (no seconds were printed)".to_owned();
    }
    let found = steady::steady(record);
    let (Some(range), Some(slope)) = (found.range_ratio.value(), found.slope_ratio.value()) else {
        return format!("n/a ({})", found.range_ratio.reason().unwrap_or("absent"));
    };
    let word = match found.state.as_str() {
        "yes" => "steady",
        "late" => "settled only late in the window",
        _ => "not steady",
    };
    let held = |ratio: f64, most: f64| {
        let (told, most_pct) = (fixed(100.0 * ratio, 1), fixed(100.0 * most, 0));
        if ratio > most {
            format!("{told} % of the mean, more than the {most_pct} % allowed")
        } else {
            format!("{told} % of the mean ({most_pct} % allowed)")
        }
    };
    let change = LevelChange::of(record);
    let word = change.map_or_else(|| word.to_owned(), |change| format!("{}. At the end", change.words()));
    format!(
        "{word}: over five rounds in the last {} s, the range is {}; the trend is {}.",
        found.window_s.value().map_or_else(|| "n/a".to_owned(), |s| fixed(s, 0)),
        held(range, EXCURSION_RATIO),
        held(slope.abs(), SLOPE_RATIO)
    )
}
