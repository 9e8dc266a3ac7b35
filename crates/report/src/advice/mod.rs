//! Advice: what limited the run, by the rules of awr-statistics 9.
//!
//! Reads the record alone. A rule prints the numbers it fired on and never fires
//! on a figure that is n/a. What makes numbers doubtful is a warning, not advice.

#[cfg(test)]
mod tests;

use assay_measure::record::{Advice, EventRow, Figure, Record};
use assay_measure::units::{fixed, size, thousands};

/// All findings, the weightiest first: by severity, then in the order of the rules.
#[must_use]
pub fn advise(record: &Record) -> Vec<Advice> {
    let rules = [
        cpu_bound,
        storage_bound,
        writer_bound,
        free_buffer_timer,
        redo_bound,
        log_switches,
        bimodal_reads,
        hidden_outliers,
        contention,
        cached,
        checkpoint_writes,
    ];
    let mut found: Vec<Advice> = rules.iter().filter_map(|rule| rule(record)).collect();
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

/// A finding that fired at `value` of `threshold`: high from twice the threshold on.
fn finding(
    id: &str,
    value: f64,
    threshold: f64,
    text: String,
    evidence: &[(&str, f64)],
) -> Option<Advice> {
    Some(finding_of(id, value >= 2.0 * threshold, text, evidence))
}

/// A finding with its numbers.
pub(crate) fn finding_of(id: &str, high: bool, text: String, evidence: &[(&str, f64)]) -> Advice {
    Advice {
        id: id.to_owned(),
        severity: if high { "high" } else { "note" }.to_owned(),
        text,
        evidence: evidence
            .iter()
            .map(|(name, value)| ((*name).to_owned(), Figure::decimal(*value)))
            .collect(),
    }
}

fn foreground(
    record: &Record,
    is_it: impl Fn(&EventRow) -> bool,
) -> impl Iterator<Item = &EventRow> {
    let events = record.events.iter();
    events.filter(move |event| event.actor == "foreground" && is_it(event))
}

/// Share of DB time of the foreground events that `is_it` picks, 0..100.
fn share(record: &Record, is_it: impl Fn(&EventRow) -> bool) -> f64 {
    let shares = foreground(record, is_it).filter_map(|event| event.db_time_pct.value());
    shares.sum()
}

fn named<'a>(record: &'a Record, name: &str, actor: &str) -> Option<&'a EventRow> {
    let mut events = record.events.iter();
    events.find(|event| event.name == name && event.actor == actor)
}

fn busy(record: &Record) -> Option<f64> {
    record.os.cpu_pct.get("busy").and_then(Figure::value)
}

fn stat(record: &Record, key: &str) -> Option<f64> {
    record.stats.get(key)?.total.value()
}

/// R1. Sessions that share a thread wait for it in the run queue, so that counts as well.
fn cpu_bound(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 80.0;
    let model = &record.time_model;
    let db_time = model.db_time_us.value().filter(|us| *us > 0.0)?;
    let on_cpu = match (model.on_thread_us.value(), model.run_queue_us.value()) {
        (Some(on_thread), Some(queue)) => on_thread + queue,
        _ => model.db_cpu_us.value()?,
    };
    let pct = 100.0 * on_cpu / db_time;
    let cpu_s = model.db_cpu_us.value()? / 1e6 / record.interval.elapsed_s.value()?;
    if pct < THRESHOLD {
        return None;
    }
    let text = format!(
        "CPU-bound: {} % of DB time is execution and waiting for a CPU ({} CPUs used by the driver threads). \
         The test measures logical I/O, not storage.",
        fixed(pct, 1),
        fixed(cpu_s, 2)
    );
    finding(
        "R1",
        pct,
        THRESHOLD,
        text,
        &[("on_cpu_pct", pct), ("db_cpu_s_per_s", cpu_s)],
    )
}

/// R3.
fn storage_bound(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 60.0;
    let pct = share(record, |event| event.class == "User I/O");
    let busy = busy(record)?;
    if pct < THRESHOLD || busy >= 80.0 {
        return None;
    }
    let read = foreground(record, |event| event.class == "User I/O").next()?;
    let text = format!(
        "Storage-latency-bound: {} % of DB time is User I/O while the host is {} % busy. {}: average {} us, p99 {} us.",
        fixed(pct, 1),
        fixed(busy, 1),
        read.name,
        fixed(read.avg_us.value()?, 0),
        read.p99_us
            .value()
            .map_or_else(|| "n/a".to_owned(), |us| fixed(us, 0)),
    );
    finding(
        "R3",
        pct,
        THRESHOLD,
        text,
        &[("user_io_pct", pct), ("busy_pct", busy)],
    )
}

/// R4.
fn writer_bound(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 10.0;
    let pct = share(record, |event| event.name == "free buffer waits");
    if pct < THRESHOLD {
        return None;
    }
    let mut text = format!(
        "Writer-bound: {} % of DB time is free buffer waits, sessions wait for the database writers to clean buffers. \
         A larger CACHE_MB, more DB_WRITERS or faster writes help.",
        fixed(pct, 1)
    );
    if busy(record).is_some_and(|busy| busy >= 95.0) {
        text.push_str(" The host's CPUs are full: the writers themselves may be starved of CPU.");
    }
    finding(
        "R4",
        pct,
        THRESHOLD,
        text,
        &[("free_buffer_waits_pct", pct)],
    )
}

/// R5.
fn free_buffer_timer(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 80.0;
    /// The bucket of 8 to 16 ms.
    const TIMER: usize = 14;
    let waits = named(record, "free buffer waits", "foreground")?;
    let count = waits.count.value().filter(|count| *count >= 10.0)?;
    let pct = 100.0 * *waits.hist_us.get(TIMER)? as f64 / count;
    if pct < THRESHOLD {
        return None;
    }
    let text = format!(
        "{} % of free buffer waits last 8 to 16 ms: that is the re-check timer, not a latency. Use their count and share, not their average.",
        fixed(pct, 1)
    );
    finding("R5", pct, THRESHOLD, text, &[("timer_bucket_pct", pct)])
}

/// R6.
fn redo_bound(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 15.0;
    let pct = share(record, |event| {
        event.name == "log buffer space"
            || event.name == "log file sync"
            || event.name.starts_with("log file switch")
    });
    if pct < THRESHOLD {
        return None;
    }
    let writes = stat(record, "redo_writes_count").filter(|writes| *writes > 0.0);
    let per_write = |key: &str| Some(stat(record, key)? / writes?);
    let known = |value: Option<f64>, decimals: usize| {
        value.map_or_else(|| "n/a".to_owned(), |value| fixed(value, decimals))
    };
    let log = named(record, "log file parallel write", "background");
    let text = format!(
        "Redo-bound: {} % of DB time waits for the log. Log write p99 {} us, {} bytes per write, {} commits per write.",
        fixed(pct, 1),
        known(log.and_then(|log| log.p99_us.value()), 0),
        known(per_write("redo_bytes_written"), 0),
        known(per_write("user_commits_count"), 2),
    );
    finding("R6", pct, THRESHOLD, text, &[("log_waits_pct", pct)])
}

/// R7.
fn log_switches(record: &Record) -> Option<Advice> {
    const PER_HOUR: f64 = 4.0;
    let elapsed = record.interval.elapsed_s.value().filter(|s| *s > 0.0)?;
    let switches = stat(record, "redo_log_switches_count")?;
    let incomplete = foreground(record, |event| {
        event.name == "log file switch (checkpoint incomplete)"
    });
    let incomplete: f64 = incomplete.filter_map(|event| event.count.value()).sum();
    let per_hour = switches * 3600.0 / elapsed;
    // One switch of a short run is no rate yet.
    let sustained = switches >= 2.0 && per_hour > PER_HOUR;
    if incomplete == 0.0 && !sustained {
        return None;
    }
    let wanted = stat(record, "redo_size_bytes")? / elapsed * 900.0;
    let text = format!(
        "Log files are small for this redo rate: {} switches ({} per hour), {} waits for an incomplete checkpoint. \
         For four switches an hour each would hold {}.",
        fixed(switches, 0),
        fixed(per_hour, 0),
        fixed(incomplete, 0),
        size(wanted as u64)
    );
    let evidence = [
        ("log_switches_per_hour", per_hour),
        ("checkpoint_incomplete_count", incomplete),
    ];
    finding("R7", per_hour, PER_HOUR, text, &evidence)
}

/// R8: two local maxima with a valley of at most half the lower one between them.
fn bimodal_reads(record: &Record) -> Option<Advice> {
    let reads = named(record, "db file sequential read", "foreground")?;
    let waits: u64 = reads.hist_us.iter().sum();
    let (low, valley, high) = modes(&reads.hist_us)?;
    let slow: u64 = reads.hist_us[valley..].iter().sum();
    let pct = 100.0 * slow.min(waits - slow) as f64 / waits as f64;
    if pct < 1.0 {
        return None;
    }
    // Bucket i holds 2^(i-1) to 2^i us: its middle stands for its waits.
    let time = |buckets: std::ops::Range<usize>| -> f64 {
        buckets
            .map(|i| reads.hist_us[i] as f64 * 0.75 * (1_u64 << i) as f64)
            .sum()
    };
    let all = time(0..reads.hist_us.len());
    let slow_time = 100.0 * time(valley..reads.hist_us.len()) / all;
    let slow_waits = 100.0 * slow as f64 / waits as f64;
    let text = format!(
        "Read latency has two populations, around {} us and {} us: a cache tier or a second device class is visible. \
         The slow one is {} % of waits and {} % of the time; the average describes neither.",
        thousands(1 << low),
        thousands(1 << high),
        fixed(slow_waits, 1),
        fixed(slow_time, 0)
    );
    let evidence = [("slow_waits_pct", slow_waits), ("slow_time_pct", slow_time)];
    finding("R8", slow_time, 25.0, text, &evidence)
}

/// Lower mode, valley and upper mode of a log2 histogram.
fn modes(buckets: &[u64]) -> Option<(usize, usize, usize)> {
    let all: u64 = buckets.iter().sum();
    let mut best = None;
    for low in 0..buckets.len() {
        for high in low + 2..buckets.len() {
            let (valley, least) = (low + 1..high)
                .map(|i| (i, buckets[i]))
                .min_by_key(|(_, n)| *n)?;
            let lower = buckets[low].min(buckets[high]);
            if 2 * least <= lower && 100 * lower >= all && best.is_none_or(|(l, _)| lower > l) {
                best = Some((lower, (low, valley, high)));
            }
        }
    }
    best.map(|(_, modes)| modes)
}

/// R14.
fn hidden_outliers(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 100.0;
    let events = foreground(record, |event| {
        event.class != "Idle"
            && event.hist_ns.count() >= 1000
            && event.db_time_pct.value().is_some_and(|pct| pct >= 1.0)
    });
    let ratio = |event: &EventRow| Some(event.max_us.value()? / event.avg_us.value()?);
    let (event, ratio) = events
        .filter_map(|event| Some((event, ratio(event)?)))
        .max_by(|a, b| a.1.total_cmp(&b.1))?;
    if ratio < THRESHOLD {
        return None;
    }
    let text = format!(
        "Outliers hide behind an average: the longest {} took {} us, {} times the average of {} us (p99.9 {} us).",
        event.name,
        fixed(event.max_us.value()?, 0),
        fixed(ratio, 0),
        fixed(event.avg_us.value()?, 0),
        event
            .p999_us
            .value()
            .map_or_else(|| "n/a".to_owned(), |us| fixed(us, 0)),
    );
    finding(
        "R14",
        ratio,
        THRESHOLD,
        text,
        &[("max_over_mean_ratio", ratio)],
    )
}

/// R17.
fn contention(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 5.0;
    let pct = share(record, |event| {
        event.name == "read by other session"
            || event.name == "buffer busy waits"
            || event.name.starts_with("enq: TX")
    });
    if pct < THRESHOLD {
        return None;
    }
    let text = format!(
        "Sessions contend for the same blocks: {} % of DB time waits for another session. This is not a pure I/O test; \
         one session per schema avoids it.",
        fixed(pct, 1)
    );
    finding(
        "R17",
        pct,
        THRESHOLD,
        text,
        &[("shared_block_waits_pct", pct)],
    )
}

/// R18.
fn cached(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 99.9;
    let pct = record.checks.hit_measured_pct.value()?;
    if pct < THRESHOLD {
        return None;
    }
    let text = format!(
        "The data fits in the cache (Buffer Hit {} %): storage was hardly read. For a test of storage shrink CACHE_MB or grow SCALE.",
        fixed(pct, 2)
    );
    finding("R18", pct, THRESHOLD, text, &[("buffer_hit_pct", pct)])
}

/// R19.
fn checkpoint_writes(record: &Record) -> Option<Advice> {
    const THRESHOLD: f64 = 60.0;
    let writes = stat(record, "physical_writes_blocks").filter(|writes| *writes >= 1000.0)?;
    let pct = 100.0 * stat(record, "physical_writes_non_checkpoint_blocks")? / writes;
    if pct >= THRESHOLD {
        return None;
    }
    let text = format!(
        "Checkpoints drive {} % of the writes: the log files bound how long a block may stay dirty. \
         Larger log files let the cache absorb repeated changes.",
        fixed(100.0 - pct, 1)
    );
    let driven = 100.0 - pct;
    finding(
        "R19",
        driven,
        100.0 - THRESHOLD,
        text,
        &[("checkpoint_writes_pct", driven)],
    )
}
