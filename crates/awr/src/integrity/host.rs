//! Identities that involve the host's own accounts, and those over the series.

use super::{IdentityRule, Judge as _, Scope, Side, known, moved, moved_sum};
use crate::deltas::{Deltas, Rises, Span, delta, disk_deltas};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::facts::PAST_PAGE_CACHE;
use assay_measure::record::{Figure, Identity, Record};
use assay_measure::snapshot::Reading;

/// The kernel counts CPU time in ticks of 10 ms, and samples host readings beside the
/// snapshots, not at their instant: so many seconds per CPU may be missing or extra.
const HOST_SLACK_S: f64 = 0.05;

/// The part of the window that its snapshots took: the host was read at some instant of them.
fn skewed(w: &Span<'_>, record: &Record) -> f64 {
    match (record.interval.skew_ms.value(), w.elapsed_s > 0.0) {
        (Some(ms), true) => ms / 1e3 / w.elapsed_s,
        _ => 0.0,
    }
}

pub(super) fn identities(deltas: &Deltas<'_>, record: &Record, rises: &Rises) -> Vec<Identity> {
    let mut all = cpu(deltas, record);
    all.extend(columns(deltas, record));
    all.push(device_queue(deltas));
    all.push(throughput(deltas));
    all.extend(process_bytes(deltas));
    all.push(monotone(deltas, rises));
    all.push(
        IdentityRule::within("I39", Scope::Window, "throughput of a synchronous stream = message size / latency", 0.0)
            .unknown("no synchronous stream in this workload"),
    );
    all
}

fn cpu(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let w = &deltas.window;
    let skewed = 0.02 + skewed(w, record);
    let slack = |all_s: &Side| skewed * all_s.clone().unwrap_or(0.0) + HOST_SLACK_S;
    let ours = moved_sum(w, &[counter_catalog::DB_CPU, counter_catalog::BACKGROUND_CPU]).map(|ns| ns / 1e9);
    let (all_s, busy) = cpus_of_the_server(deltas).unwrap_or_else(|| cpus_of_this_host(w, record));
    vec![
        IdentityRule::within("I25a", Scope::Window, "DB CPU <= CPUs x elapsed (s)", slack(&all_s)).at_most().judge(
            deltas,
            moved(w, counter_catalog::DB_CPU).map(|ns| ns / 1e9),
            all_s.clone(),
        ),
        IdentityRule::within("I25b", Scope::Window, "DB CPU + background CPU <= host busy (s)", slack(&all_s))
            .at_most()
            .judge(deltas, ours, busy),
    ]
}

/// CPU seconds there were and those that were busy where the server runs, by its own view of its host: that need not be the
/// host where the sessions are driven.
fn cpus_of_the_server(deltas: &Deltas<'_>) -> Option<(Side, Side)> {
    let of = |stats: &[Stat]| moved_sum(&deltas.window, stats).map(|ns| ns / 1e9);
    let busy = of(&[counter_catalog::SERVER_HOST_BUSY]);
    let all = of(&[counter_catalog::SERVER_HOST_BUSY, counter_catalog::SERVER_HOST_IDLE]);
    busy.is_ok().then_some((all, busy))
}

fn cpus_of_this_host(w: &Span<'_>, record: &Record) -> (Side, Side) {
    let all_s = known(record.os.cpus_count.clone()).map(|cpus| cpus * w.elapsed_s);
    // A kernel that counts by ticks misses much of the bursts of microseconds between waits for a device, in its busy
    // columns (11 % for one session's single reads, where it was measured). Its idle columns are clock readings.
    let idle: Side = ["idle", "iowait"]
        .iter()
        .map(|column| match record.os.cpu_s.get(*column) {
            Some(figure) => known(figure.clone()),
            None => Err("host CPU absent".to_owned()),
        })
        .sum();
    let busy = all_s.clone().and_then(|all| idle.map(|idle| all - idle));
    (all_s, busy)
}

fn columns(deltas: &Deltas<'_>, record: &Record) -> Vec<Identity> {
    let w = &deltas.window;
    let pct = |names: &[&str]| -> Side {
        let figures = names.iter().map(|name| record.os.cpu_pct.get(*name));
        figures.map(|figure| known(figure.cloned().unwrap_or_default())).sum()
    };
    let cpus = known(record.os.cpus_count.clone());
    let expected = cpus.map(|cpus| cpus * w.elapsed_s);
    let columns = record.os.cpu_s.iter();
    let counted: f64 =
        columns.filter(|(column, _)| !column.starts_with("guest")).filter_map(|(_, figure)| figure.value()).sum();
    // Where not even idle time passes, nothing is counted.
    let counted: Side = if counted > 0.0 { Ok(counted) } else { Err("host CPU absent".to_owned()) };
    // Busy columns counted by ticks miss bursts (see above): an eighth of all CPU time where one session and its server
    // took turns on two CPUs.
    let slack = (0.2 + skewed(w, record)) * expected.clone().unwrap_or(0.0) + HOST_SLACK_S;
    let rule = |id, text, tolerance| IdentityRule::within(id, Scope::Window, text, tolerance);
    vec![
        rule("I31a", "CPU columns sum to 100 %", 0.5).judge(
            deltas,
            pct(&["user", "system", "iowait", "steal", "idle"]),
            Ok(100.0),
        ),
        rule("I31b", "CPU time of all columns = CPUs x elapsed (s)", slack).judge(deltas, counted, expected),
        rule("I32a", "busy + idle (with I/O wait) = 100 %", 0.5).judge(deltas, pct(&["busy", "idle_awr"]), Ok(100.0)),
        rule("I32b", "I/O wait <= idle (with I/O wait), %", 0.0).at_most().judge(
            deltas,
            pct(&["iowait"]),
            pct(&["idle_awr"]),
        ),
    ]
}

/// Little's law at the device: mean requests in flight = IOPS x mean latency.
fn device_queue(deltas: &Deltas<'_>) -> Identity {
    let w = &deltas.window;
    let devices = disk_deltas(&w.from.host, &w.to.host);
    let sum = |field: fn(&assay_measure::snapshot::DiskReading) -> u64| -> Side {
        if devices.is_empty() || w.elapsed_s == 0.0 {
            Err("no device known".to_owned())
        } else {
            Ok(devices.iter().map(field).sum::<u64>() as f64 / 1e9 / w.elapsed_s)
        }
    };
    // A file that somebody deletes on a file system mounted with `discard` is work of the device too.
    let served = sum(|disk| disk.read_ns + disk.write_ns + disk.flush_ns + disk.discard_ns);
    let allowed = 0.05 * served.clone().unwrap_or(0.0) + 0.01;
    IdentityRule::within("I27", Scope::Window, "mean requests in flight at the devices = IOPS x mean latency", allowed)
        .judge(deltas, sum(|disk| disk.weighted_ns), served)
}

/// Throughput = request size x requests: bytes and blocks are counted apart.
fn throughput(deltas: &Deltas<'_>) -> Identity {
    let w = &deltas.window;
    let rule = |allowed| {
        IdentityRule::within("I30", Scope::Window, "read and write bytes/s of data = blocks/s x block size", allowed)
    };
    let Some(block_bytes) = deltas.fact("block_bytes") else {
        return rule(0.0).unknown("engine fact block_bytes absent");
    };
    if w.elapsed_s == 0.0 {
        return rule(0.0).unknown("no measured window");
    }
    let per_s = |side: Side, factor: f64| side.map(|total| total * factor / w.elapsed_s);
    let bytes = moved_sum(w, &[counter_catalog::PHYSICAL_READ_BYTES, counter_catalog::PHYSICAL_WRITE_BYTES]);
    let blocks = moved_sum(w, &[counter_catalog::PHYSICAL_READS, counter_catalog::PHYSICAL_WRITES]);
    let bytes = per_s(bytes, 1.0);
    rule(1e-3 * bytes.clone().unwrap_or(0.0)).judge(deltas, bytes, per_s(blocks, block_bytes as f64))
}

fn process_bytes(deltas: &Deltas<'_>) -> Vec<Identity> {
    /// Log files, records and pages of the program itself.
    const OTHER_BYTES: f64 = 16_777_216.0;
    let s = &deltas.whole;
    let (from, to) = (&s.from.host, &s.to.host);
    let bypassed = PAST_PAGE_CACHE.find(&deltas.data.engine_facts) == Some("yes");
    let judge = |id, text, stat, process: Figure| {
        let engine = moved(s, stat);
        let allowed = 0.01 * engine.clone().unwrap_or(0.0) + OTHER_BYTES;
        let rule = IdentityRule::within(id, Scope::Quiet, text, allowed);
        match (bypassed, engine, process) {
            (false, ..) => rule.unknown("in this I/O mode the page cache may answer"),
            (_, Ok(bytes), _) if bytes < OTHER_BYTES => rule.unknown("too few bytes to judge"),
            (_, engine, process) => rule.judge(deltas, engine, known(process)),
        }
    };
    vec![
        judge(
            "I41e",
            "all bytes read = bytes that the kernel charged to this process",
            counter_catalog::PHYSICAL_READ_TOTAL_BYTES,
            delta(from.process_read_bytes, to.process_read_bytes),
        ),
        judge(
            "I41f",
            "all bytes written = bytes that the kernel charged to this process",
            counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES,
            delta(from.process_write_bytes, to.process_write_bytes),
        ),
    ]
}

/// Every counter rises from snapshot to snapshot, and its steps add up to its whole delta.
fn monotone(deltas: &Deltas<'_>, rises: &Rises) -> Identity {
    let whole = &deltas.whole.stats.counters;
    IdentityRule::exact("I44", Scope::Whole, "no counter ever falls, and the sum of its steps is its whole delta")
        .tally(
            deltas,
            rises.iter().map(|(name, rise)| {
                let delta = match whole.get(name) {
                    Some(Reading::Count(delta)) => Some(*delta),
                    _ => None,
                };
                (name.to_owned(), rise.never_fell && delta == Some(rise.steps))
            }),
        )
}
