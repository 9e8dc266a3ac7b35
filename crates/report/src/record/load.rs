//! Load profile, efficiency, instance statistics, gauges and the time model.

use super::deltas::{Deltas, NO_OPS, NO_TX, NO_WINDOW, Span, UNSUPPORTED, counter, micros};
use assay_measure::record::{Figure, GaugeRow, LoadRow, PercentRow, StatRow, TimeModel};
use assay_measure::snapshot::{Actor, EventReading};
use assay_measure::stats::{self, DICTIONARY, Stat, Unit};
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
const S_PER_NS: f64 = 1e-9;

/// Divides a total by every denominator of awr-statistics 1.5.
fn load_row(window: &Span<'_>, name: &str, unit: &str, total: Figure) -> LoadRow {
    let tx = window.transactions();
    let per = |denominator: &Figure, zero: &str| match denominator.value() {
        Some(value) => total.per(value, zero),
        None => denominator.clone(),
    };
    LoadRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        per_s: total.per(window.elapsed_s, NO_WINDOW),
        per_tx: per(&tx, NO_TX),
        per_exec: per(&window.get(stats::EXECUTE_COUNT), "no executions"),
        per_call: per(&window.get(stats::USER_CALLS), "no calls"),
        per_op: total.per(window.ops() as f64, NO_OPS),
        total,
    }
}

pub(super) fn profile(deltas: &Deltas<'_>) -> Vec<LoadRow> {
    let w = &deltas.window;
    let stat = |stat: Stat| w.get(stat);
    let row = |name: &str, unit: &str, total: Figure| load_row(w, name, unit, total);
    vec![
        row("DB Time(s)", "s", w.db_time_ns().scaled(S_PER_NS)),
        row("DB CPU(s)", "s", stat(stats::DB_CPU).scaled(S_PER_NS)),
        row(
            "Background CPU(s)",
            "s",
            stat(stats::BACKGROUND_CPU).scaled(S_PER_NS),
        ),
        row("Redo size (bytes)", "bytes", stat(stats::REDO_SIZE)),
        row(
            "Logical read (blocks)",
            "blocks",
            stat(stats::SESSION_LOGICAL_READS),
        ),
        row("Block changes", "count", stat(stats::DB_BLOCK_CHANGES)),
        row(
            "Physical read (blocks)",
            "blocks",
            stat(stats::PHYSICAL_READS),
        ),
        row(
            "Physical write (blocks)",
            "blocks",
            stat(stats::PHYSICAL_WRITES),
        ),
        row(
            "Read IO requests",
            "count",
            stat(stats::PHYSICAL_READ_REQUESTS),
        ),
        row(
            "Write IO requests",
            "count",
            stat(stats::PHYSICAL_WRITE_REQUESTS),
        ),
        row(
            "Read IO (MB)",
            "mib",
            stat(stats::PHYSICAL_READ_BYTES).scaled(1.0 / MIB),
        ),
        row(
            "Write IO (MB)",
            "mib",
            stat(stats::PHYSICAL_WRITE_BYTES).scaled(1.0 / MIB),
        ),
        row("User calls", "count", stat(stats::USER_CALLS)),
        row("Executes (SQL)", "count", stat(stats::EXECUTE_COUNT)),
        row("Operations", "count", Figure::Count(w.ops())),
        row("Rollbacks", "count", stat(stats::USER_ROLLBACKS)),
        row("Transactions", "count", w.transactions()),
    ]
}

/// 100 x (1 - part / whole).
fn miss_pct(part: &Figure, whole: &Figure) -> Figure {
    match (part.value(), whole.value()) {
        (Some(_), Some(0.0)) => Figure::na("nothing counted"),
        (Some(part), Some(whole)) => Figure::decimal(100.0 * (1.0 - part / whole)),
        (None, _) => part.clone(),
        (_, None) => whole.clone(),
    }
}

fn event_count(window: &Span<'_>, name: &str) -> Figure {
    let waits = |event: &EventReading| event.waits.count();
    Figure::Count(
        window
            .stats
            .events
            .iter()
            .filter(|event| event.name == name && event.actor == Actor::Foreground)
            .map(waits)
            .sum(),
    )
}

pub(super) fn efficiency(deltas: &Deltas<'_>) -> Vec<PercentRow> {
    let w = &deltas.window;
    let gets = w.get(stats::SESSION_LOGICAL_READS);
    let index_misses = match (w.count(stats::INDEX_GETS), w.count(stats::INDEX_HITS)) {
        (Some(gets), Some(hits)) => Figure::Count(gets.saturating_sub(hits)),
        _ => Figure::na(UNSUPPORTED),
    };
    let row = |name: &str, value_pct: Figure| PercentRow {
        name: name.to_owned(),
        value_pct,
    };
    vec![
        row(
            "Buffer Nowait %",
            miss_pct(&event_count(w, "buffer busy waits"), &gets),
        ),
        row(
            "Redo NoWait %",
            miss_pct(
                &w.get(stats::REDO_LOG_SPACE_REQUESTS),
                &w.get(stats::REDO_ENTRIES),
            ),
        ),
        row(
            "Buffer Hit %",
            miss_pct(
                &w.get(stats::PHYSICAL_READS_CACHE),
                &w.get(stats::GETS_FROM_CACHE),
            ),
        ),
        row(
            "Index Hit %",
            miss_pct(&index_misses, &w.get(stats::INDEX_GETS)),
        ),
        row("Latch Hit %", Figure::na(UNSUPPORTED)),
        row("Library Hit %", Figure::na(UNSUPPORTED)),
        row("Execute to Parse %", Figure::na(UNSUPPORTED)),
        row("Soft Parse %", Figure::na(UNSUPPORTED)),
    ]
}

fn unit_word(unit: Unit) -> &'static str {
    match unit {
        Unit::Count => "count",
        Unit::Blocks => "blocks",
        Unit::Bytes => "bytes",
        Unit::Ns => "ns",
    }
}

/// How a statistic is obtained: the loop counts and times operations, `/proc` times
/// CPU, everything else is the engine's own counter.
fn source(stat: Stat) -> &'static str {
    const CLIENT: &[Stat] = &[
        stats::EXECUTE_COUNT,
        stats::USER_CALLS,
        stats::LOGONS,
        stats::DB_TIME,
    ];
    const PROC: &[Stat] = &[stats::DB_CPU, stats::BACKGROUND_CPU];
    if CLIENT.contains(&stat) {
        "client"
    } else if PROC.contains(&stat) {
        "proc"
    } else {
        "sysstat"
    }
}

pub(super) fn statistics(deltas: &Deltas<'_>) -> BTreeMap<String, StatRow> {
    let w = &deltas.window;
    let tx = w.transactions();
    DICTIONARY
        .iter()
        .filter(|stat| {
            w.stats.counters.contains_key(stat.name)
                || deltas.whole.stats.counters.contains_key(stat.name)
        })
        .map(|&stat| {
            let total = w.get(stat);
            let row = StatRow {
                name: stat.name.to_owned(),
                unit: unit_word(stat.unit).to_owned(),
                per_s: total.per(w.elapsed_s, NO_WINDOW),
                per_tx: match tx.value() {
                    Some(tx) => total.per(tx, NO_TX),
                    None => tx.clone(),
                },
                per_op: total.per(w.ops() as f64, NO_OPS),
                whole_run_total: counter(&deltas.whole.stats, stat),
                source: source(stat).to_owned(),
                total,
            };
            (stat.key.to_owned(), row)
        })
        .collect()
}

pub(super) fn gauges(deltas: &Deltas<'_>) -> BTreeMap<String, GaugeRow> {
    let (begin, end) = (
        &deltas.data.begin.stats.gauges,
        &deltas.data.end.stats.gauges,
    );
    let figure = |value: Option<&u64>| value.map_or_else(Figure::default, |v| Figure::Count(*v));
    begin
        .keys()
        .chain(end.keys())
        .map(|name| {
            let row = GaugeRow {
                begin: figure(begin.get(name)),
                end: figure(end.get(name)),
            };
            (name.clone(), row)
        })
        .collect()
}

pub(super) fn time_model(deltas: &Deltas<'_>) -> TimeModel {
    const US_PER_NS: f64 = 1e-3;
    let w = &deltas.window;
    TimeModel {
        db_time_us: w.db_time_ns().scaled(US_PER_NS),
        db_cpu_us: w.get(stats::DB_CPU).scaled(US_PER_NS),
        bg_cpu_us: w.get(stats::BACKGROUND_CPU).scaled(US_PER_NS),
        bg_elapsed_us: w.get(stats::BACKGROUND_TIME).scaled(US_PER_NS),
        on_thread_us: w.get(stats::ON_THREAD_TIME).scaled(US_PER_NS),
        run_queue_us: w.get(stats::RUN_QUEUE_TIME).scaled(US_PER_NS),
        // A wait of a ring session is the time its request is out; the thread
        // meanwhile serves others, so no CPU can be told apart as spent inside it.
        cpu_in_wait_us: Figure::na("unknowable"),
        kernel_run_delay_us: micros(w.driver.thread_run_delay_ns),
        fg_wait_us: micros(w.wait_ns(Actor::Foreground)),
        bg_wait_us: micros(w.wait_ns(Actor::Background)),
    }
}
