//! Load profile, efficiency, instance statistics, gauges and the time model.

use crate::deltas::{Deltas, NO_OPS, NO_TX, NO_WINDOW, Span, UNSUPPORTED, actor_name, class_name, counter, micros};
use assay_measure::counter_catalog::{
    BACKGROUND_CPU, BACKGROUND_TIME, DB_BLOCK_CHANGES, DB_CPU, DB_TIME, DICTIONARY, EXECUTE_COUNT, GETS_FROM_CACHE,
    INDEX_GETS, INDEX_HITS, ON_THREAD_TIME, PHYSICAL_READ_BYTES, PHYSICAL_READ_REQUESTS, PHYSICAL_READS,
    PHYSICAL_READS_CACHE, PHYSICAL_WRITE_BYTES, PHYSICAL_WRITE_REQUESTS, PHYSICAL_WRITES, REDO_ENTRIES,
    REDO_LOG_SPACE_REQUESTS, REDO_SIZE, RUN_QUEUE_TIME, SERVER_COMMITS, SERVER_ROLLBACKS, SERVER_RUN_DELAY,
    SESSION_LOGICAL_READS, Stat, USER_CALLS, USER_COMMITS, USER_ROLLBACKS, Unit,
};
use assay_measure::record::{AshInfo, EventRow, Figure, GaugeRow, LoadRow, PercentRow, SAMPLED, StatRow, TimeModel};
use assay_measure::snapshot::{Actor, EventReading, WaitClass};
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;
const S_PER_NS: f64 = 1e-9;

/// Divides a total by every denominator of awr-statistics 1.5.
fn load_row(window: &Span<'_>, name: &str, unit: &str, total: Figure, source: String) -> LoadRow {
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
        per_exec: per(&window.get(EXECUTE_COUNT), "no executions"),
        per_call: per(&window.get(USER_CALLS), "no calls"),
        per_op: total.per(window.ops() as f64, NO_OPS),
        total,
        source,
    }
}

/// The rows that are one counter: label, unit, statistic, factor from its stored unit.
pub const ROWS: [(&str, &str, Stat, f64); 14] = [
    ("DB CPU(s)", "s", DB_CPU, S_PER_NS),
    ("Background CPU(s)", "s", BACKGROUND_CPU, S_PER_NS),
    ("Redo size (bytes)", "bytes", REDO_SIZE, 1.0),
    ("Logical read (blocks)", "blocks", SESSION_LOGICAL_READS, 1.0),
    ("Block changes", "count", DB_BLOCK_CHANGES, 1.0),
    ("Physical read (blocks)", "blocks", PHYSICAL_READS, 1.0),
    ("Physical write (blocks)", "blocks", PHYSICAL_WRITES, 1.0),
    ("Read IO requests", "count", PHYSICAL_READ_REQUESTS, 1.0),
    ("Write IO requests", "count", PHYSICAL_WRITE_REQUESTS, 1.0),
    ("Read IO (MB)", "mib", PHYSICAL_READ_BYTES, 1.0 / MIB),
    ("Write IO (MB)", "mib", PHYSICAL_WRITE_BYTES, 1.0 / MIB),
    ("User calls", "count", USER_CALLS, 1.0),
    ("Executes (SQL)", "count", EXECUTE_COUNT, 1.0),
    ("Rollbacks", "count", USER_ROLLBACKS, 1.0),
];

pub(super) fn profile(deltas: &Deltas<'_>) -> Vec<LoadRow> {
    let w = &deltas.window;
    let row = |name: &str, unit: &str, total: Figure, source: String| load_row(w, name, unit, total, source);
    // A server's own count of transactions has those that were rolled back by themselves too.
    let is_counted = |stat: Stat| w.count(stat).is_some();
    let (commits, rollbacks) =
        if is_counted(SERVER_COMMITS) { (SERVER_COMMITS, SERVER_ROLLBACKS) } else { (USER_COMMITS, USER_ROLLBACKS) };
    let mut rows = vec![row("DB Time(s)", "s", w.db_time_ns().scaled(S_PER_NS), deltas.source(DB_TIME))];
    for (name, unit, stat, factor) in ROWS {
        if name == "Rollbacks" {
            let ops = Figure::Count(w.ops());
            rows.push(row("Operations", "count", ops, "client".to_owned()));
        }
        let stat = match name {
            "Rollbacks" => rollbacks,
            _ => stat,
        };
        let total = w.get(stat).scaled(factor);
        rows.push(row(name, unit, total, deltas.source(stat)));
    }
    rows.push(row("Transactions", "count", w.transactions(), deltas.source(commits)));
    rows
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
    let gets = w.get(SESSION_LOGICAL_READS);
    let index_misses = match (w.count(INDEX_GETS), w.count(INDEX_HITS)) {
        (Some(gets), Some(hits)) => Figure::Count(gets.saturating_sub(hits)),
        _ => Figure::na(UNSUPPORTED),
    };
    let row = |name: &str, value_pct: Figure| PercentRow { name: name.to_owned(), value_pct };
    // A server keeps no count of such waits.
    let busy_waits = if deltas.is_server() { Figure::na("unknowable") } else { event_count(w, "buffer busy waits") };
    vec![
        row("Buffer Nowait %", miss_pct(&busy_waits, &gets)),
        row("Redo NoWait %", miss_pct(&w.get(REDO_LOG_SPACE_REQUESTS), &w.get(REDO_ENTRIES))),
        row("Buffer Hit %", miss_pct(&w.get(PHYSICAL_READS_CACHE), &w.get(GETS_FROM_CACHE))),
        row("Index Hit %", miss_pct(&index_misses, &w.get(INDEX_GETS))),
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

pub(super) fn statistics(deltas: &Deltas<'_>) -> BTreeMap<String, StatRow> {
    let w = &deltas.window;
    let tx = w.transactions();
    DICTIONARY
        .iter()
        .filter(|stat| w.stats.counters.contains_key(stat.name) || deltas.whole.stats.counters.contains_key(stat.name))
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
                source: deltas.source(stat),
                total,
            };
            (stat.key.to_owned(), row)
        })
        .collect()
}

pub(super) fn gauges(deltas: &Deltas<'_>) -> BTreeMap<String, GaugeRow> {
    let (begin, end) = (&deltas.data.begin.stats.gauges, &deltas.data.end.stats.gauges);
    let figure = |value: Option<&u64>| value.map_or_else(Figure::default, |v| Figure::Count(*v));
    begin
        .keys()
        .chain(end.keys())
        .map(|name| {
            let row = GaugeRow { begin: figure(begin.get(name)), end: figure(end.get(name)) };
            (name.clone(), row)
        })
        .collect()
}

/// Sessions that could run but had no CPU, us, and the source of it. A server's are those its processes' scheduler
/// counted, else those found on CPU by the samples less the CPU that was used.
fn run_queue_us(deltas: &Deltas<'_>, ash: &AshInfo) -> (Figure, String) {
    let w = &deltas.window;
    if !deltas.is_server() {
        let figure = w.get(RUN_QUEUE_TIME).scaled(US_PER_NS);
        return (figure, deltas.source(RUN_QUEUE_TIME));
    }
    match w.get(SERVER_RUN_DELAY) {
        Figure::Na(_) => {
            let sampled = ash.run_queue_count.scaled(w.elapsed_s * 1e6);
            (sampled, SAMPLED.to_owned())
        }
        figure => (figure.scaled(US_PER_NS), deltas.source(SERVER_RUN_DELAY)),
    }
}

/// Time of one actor's waits that are not idle: a server's as far as its rows know it.
fn wait_us(deltas: &Deltas<'_>, events: &[EventRow], actor: Actor) -> Figure {
    if !deltas.is_server() {
        return micros(deltas.window.wait_ns(actor));
    }
    let idle = class_name(WaitClass::Idle);
    let known: Vec<f64> = events
        .iter()
        .filter(|event| event.actor == actor_name(actor) && event.class != idle)
        .filter_map(|event| event.total_us.value())
        .collect();
    if known.is_empty() { Figure::na("no event has a time") } else { Figure::decimal(known.iter().sum()) }
}

const US_PER_NS: f64 = 1e-3;

pub(super) fn time_model(deltas: &Deltas<'_>, ash: &AshInfo, events: &[EventRow]) -> TimeModel {
    let w = &deltas.window;
    let (run_queue, run_queue_source) = run_queue_us(deltas, ash);
    let waits = |actor| wait_us(deltas, events, actor);
    let of_waits = |actor: Actor| {
        if deltas.is_server() {
            super::events::sources(events.iter().filter(|e| e.actor == actor_name(actor)))
        } else {
            "sysstat".to_owned()
        }
    };
    let stat = |stat: Stat| deltas.source(stat);
    let sources = [
        ("db_time_us", stat(DB_TIME)),
        ("db_cpu_us", stat(DB_CPU)),
        ("bg_cpu_us", stat(BACKGROUND_CPU)),
        ("bg_elapsed_us", stat(BACKGROUND_TIME)),
        ("on_thread_us", stat(ON_THREAD_TIME)),
        ("run_queue_us", run_queue_source),
        ("kernel_run_delay_us", "proc".to_owned()),
        ("fg_wait_us", of_waits(Actor::Foreground)),
        ("bg_wait_us", of_waits(Actor::Background)),
    ];
    TimeModel {
        db_time_us: w.db_time_ns().scaled(US_PER_NS),
        db_cpu_us: w.get(DB_CPU).scaled(US_PER_NS),
        bg_cpu_us: w.get(BACKGROUND_CPU).scaled(US_PER_NS),
        bg_elapsed_us: w.get(BACKGROUND_TIME).scaled(US_PER_NS),
        on_thread_us: w.get(ON_THREAD_TIME).scaled(US_PER_NS),
        run_queue_us: run_queue,
        // A wait of a ring session is the time its request is out; the thread
        // meanwhile serves others, so no CPU can be told apart as spent inside it.
        cpu_in_wait_us: Figure::na("unknowable"),
        kernel_run_delay_us: micros(w.driver.thread_run_delay_ns),
        fg_wait_us: waits(Actor::Foreground),
        bg_wait_us: waits(Actor::Background),
        sources: sources
            .into_iter()
            .filter(|(_, source)| !source.is_empty())
            .map(|(key, source)| (key.to_owned(), source))
            .collect(),
    }
}
