//! The record of a redo test: from readings to figures and their reports.

mod advice;
mod charts;
mod compat;
mod demand;
mod headline;
mod info;
mod integrity;
mod metrics;
mod sections;

#[cfg(test)]
mod tests;

use super::ask::{Ask, Local};
use super::quorum::Rule;
use super::reading::{Readings, Second, StandbyReading};
use super::wire::{Found, Ready};
use assay_block::socket::TcpInfo;
use assay_measure::cap;
use assay_measure::histogram::Histogram;
use assay_measure::kind::{Finding, OwnKind, TestConditions};
use assay_measure::plain::slug;
use assay_measure::record::{Figure, Latency, Record, Series};
use assay_measure::snapshot::{RunData, Verdict};
use std::net::{IpAddr, SocketAddr};

use info::{CapInfo, ModeRow, RedoInfo, RuleRow, SecondRow, StandbyInfo, TcpRow, WorstRow};

const NOT_TOLD: &str = "the kernel does not report it";
const LOST: &str = "the standby was lost before it reported";

/// The kind of its records.
pub(super) const KIND: OwnKind<RedoInfo> = OwnKind {
    judges: advice::RULES,
    charts: charts::all,
    conditions,
    in_words_of_tool: |info| Some(compat::report(info)),
    ..OwnKind::new(metrics::all, sections::render, headline::of)
};

fn conditions(info: &RedoInfo) -> TestConditions {
    vec![
        ("transport mode", info.mode.clone(), Finding::Forbids),
        ("message payload", info.length_bytes.to_string(), Finding::Forbids),
        ("payload content", info.content.clone(), Finding::Tolerable),
        ("compression", compression(info), Finding::Forbids),
        (
            "commits per second",
            info.asked_commits_per_s.value().map_or_else(|| "none".to_owned(), |rate| rate.to_string()),
            Finding::Forbids,
        ),
        ("write on the standby", info.write.clone(), Finding::Forbids),
        ("connections", info.connections_count.to_string(), Finding::Forbids),
        ("messages under way", info.inflight_count.to_string(), Finding::Forbids),
        ("commit rule", info.rule.clone(), Finding::Forbids),
        ("local log write", info.local.clone(), Finding::Forbids),
    ]
}

/// `none` where an older record says nothing.
fn compression(info: &RedoInfo) -> String {
    match info.compress.as_str() {
        "" => "none".to_owned(),
        how => how.to_owned(),
    }
}

/// Takes in what another connection's server found.
pub(super) fn merge(mine: &mut Found, theirs: &Found) {
    // What a standby says of itself may be anything.
    let counts =
        [(&mut mine.messages, theirs.messages), (&mut mine.bytes, theirs.bytes), (&mut mine.cpu_ns, theirs.cpu_ns)];
    for (mine, theirs) in counts {
        *mine = mine.saturating_add(theirs);
    }
    mine.elapsed_ns = mine.elapsed_ns.max(theirs.elapsed_ns);
    for (mine, theirs) in [
        (&mut mine.assembly, &theirs.assembly),
        (&mut mine.write, &theirs.write),
        (&mut mine.sync, &theirs.sync),
        (&mut mine.disk, &theirs.disk),
        (&mut mine.total, &theirs.total),
        (&mut mine.unpack, &theirs.unpack),
    ] {
        mine.merge(theirs);
    }
}

fn seconds(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / 1e9)
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1e3
}

/// Builds the record of a test.
pub(super) fn build(run: &RunData, readings: &Readings) -> Record {
    let mut info = info(readings);
    let mut run = run.clone();
    run.sessions = info.connections_count;
    run.begin.host.clone_from(&readings.host.0);
    run.end.host.clone_from(&readings.host.1);
    run.begin.at_ns = 0;
    run.end.at_ns = readings.ended_ns.saturating_sub(readings.begun_ns);
    let told = format!("stopped after {} messages", info.messages_count);
    // Of a fleet more may be wrong than its readings show.
    if readings.is_stopped && run.verdict == Verdict::Complete {
        run.verdict = Verdict::Incomplete(told);
    }
    if !info.failed.is_empty() && run.verdict == Verdict::Complete {
        run.verdict = Verdict::Invalid(vec![info.failed.clone()]);
    }
    if let Some(standby) = readings.standbys.first() {
        run.engine_facts.clone_from(&standby.ready.facts);
    }
    let mut record = Record::labelled(&run);
    record.os = assay_awr::record::os(&run);
    own_cpu(&mut record, &info);
    record.interval.elapsed_s = info.elapsed_s.clone();
    record.interval.whole_run_s = seconds(run.end.at_ns);
    record.interval.ops_count = Figure::Count(info.messages_count);
    record.series = series(&info);
    info.cap = cap::of(&record).map(|cap| CapInfo { per_s: cap.level.per_s, at_s: cap.begins_s.1 });
    let whole = whole_seconds(&info);
    let ends: Vec<f64> = (1..=whole.len()).map(|second| second as f64).collect();
    record.checks.steadiness = assay_awr::record::steadiness_of(&ends, &whole);
    let told = readings.standbys.iter();
    record.warnings = told.flat_map(|standby| standby.ready.warnings.iter().cloned()).collect();
    record.integrity = integrity::judge(&info);
    KIND.complete(record, &info)
}

/// A standby on this host is part of the test, not one of the others who take its CPUs.
fn own_cpu(record: &mut Record, info: &RedoInfo) {
    let here = info.standbys.iter().filter(|one| is_here(&one.name));
    let served = here.map(|one| one.cpu_s.clone());
    let cpu = &mut record.os.process.cpu_s;
    *cpu = served.fold(cpu.clone(), |sum, served| sum.plus(&served));
}

/// Whether a standby is on loopback.
fn is_here(name: &str) -> bool {
    let ip = name.parse().map(|at: SocketAddr| at.ip());
    let ip = ip.or_else(|_| name.trim_matches(['[', ']']).parse::<IpAddr>());
    ip.map_or(name.split(':').next() == Some("localhost"), |ip| ip.to_canonical().is_loopback())
}

/// A second that lacks so little of its end is whole: the last message of a schedule is due before it.
const NEARLY_S: f64 = 0.05;

/// The whole seconds: in what is left of the last one a few messages end, which is no rate. All of a test that had none.
fn whole(info: &RedoInfo) -> &[SecondRow] {
    let elapsed = info.elapsed_s.value().unwrap_or(0.0);
    let whole = (elapsed + NEARLY_S).floor() as usize;
    match whole.min(info.seconds.len()) {
        0 => &info.seconds,
        whole => &info.seconds[..whole],
    }
}

/// Messages of each whole second.
fn whole_seconds(info: &RedoInfo) -> Vec<f64> {
    let seconds = whole(info).iter();
    seconds.map(|row| row.messages_count as f64).collect()
}

/// What was asked for, and how it was done.
fn asked(ask: &Ask, ready: Option<&Ready>) -> RedoInfo {
    let optional = |value: Option<f64>, why: &str| Figure::known(value, why);
    let write = ready.map_or_else(String::new, |ready| match ask.apply_us {
        0 => ready.write.name().to_owned(),
        us => format!("{}, apply {us} us", ready.write.name()),
    });
    let redo = ask.workload;
    let timeout = ask.has_timeout.then_some(ask.timeout.as_secs_f64());
    RedoInfo {
        mode: if ask.is_async { "async" } else { "sync" }.to_owned(),
        // Of commits that share messages, one is the least there is to be sent.
        length_bytes: ask.commits.map_or(ask.length, |one| one.size),
        content: ask.content.to_string(),
        compress: ask.compress.to_string(),
        asked_commits_per_s: optional(ask.commits.map(|one| one.rate), "each message is one commit"),
        commit_bytes: ask.commits.map_or(0, |one| one.size),
        redo_bytes_per_s: optional(redo.map(|one| one.bytes_per_s as f64), "not asked"),
        redo_writes_per_s: optional(redo.map(|one| one.writes_per_s as f64), "not asked"),
        delay_ms: Figure::decimal(ask.delay.as_secs_f64() * 1e3),
        connections_count: ask.connections as u64,
        inflight_count: ask.inflight as u64,
        asked_send_buffer_bytes: optional(ask.sockbuf.map(|b| b as f64), "the system's"),
        asked_per_s: optional(ask.rate, "as fast as possible"),
        asked_s: ask.time.as_secs_f64(),
        interval_s: ask.interval_s,
        asked_timeout_s: optional(timeout, "not given"),
        asked_write: ask.write_name(),
        write,
        write_why: ready.map_or_else(String::new, |ready| ready.write_why.clone()),
        rule: ask.rule.to_string(),
        local: match ask.local {
            Local::None => "none",
            Local::Serial => "serial",
            Local::Parallel => "parallel",
        }
        .to_owned(),
        ..RedoInfo::default()
    }
}

fn info(readings: &Readings) -> RedoInfo {
    let Some(ask) = &readings.ask else {
        return RedoInfo::default();
    };
    let stream = &readings.stream;
    let rows: Vec<SecondRow> = stream.seconds.0.iter().map(second).collect();
    let elapsed_s = stream.elapsed_ns as f64 / 1e9;
    let first = readings.standbys.first();
    let rule =
        |(rule, histogram): &(Rule, Histogram)| RuleRow { rule: rule.to_string(), latency: Latency::of(histogram) };
    let worst = stream.worst.all.iter().map(|slow| WorstRow {
        at_s: slow.ended_ns as f64 / 1e9,
        total_us: us(slow.total_ns),
        server_us: us(slow.server_ns),
        disk_us: us(slow.disk_ns),
    });
    let standbys = readings.standbys.iter();
    let sizes = &stream.groups.bytes;
    let group = |bytes: Option<f64>| Figure::known(bytes, "too few messages of several commits");
    RedoInfo {
        ready_clock_s: readings.clock_s,
        messages_count: rows.iter().map(|row| row.messages_count).sum(),
        seconds: rows,
        sent_count: stream.sent,
        sent_total_count: stream.sent + stream.network_alone.count(),
        sent_s: seconds(stream.sent_ns),
        elapsed_s: Figure::decimal(elapsed_s),
        commit: Latency::of(&stream.commit),
        backlog_count: match ask.rate.or(ask.commits.map(|one| one.rate)) {
            Some(_) => Figure::Count(stream.backlog),
            None => Figure::na("there is no schedule"),
        },
        payload_bytes: stream.payload_bytes,
        wire_bytes: stream.wire_bytes,
        pack: Latency::of(&stream.pack),
        pack_cpu_s: seconds(stream.pack_cpu_ns),
        zero_pct: Figure::decimal(100.0 * readings.zero_ratio),
        commits_count: stream.commits,
        group_messages: stream.groups.messages.clone(),
        group_bytes_avg: group(sizes.mean_ns()),
        group_bytes_p50: group(sizes.percentile_ns(0.5).map(|bytes| bytes as f64)),
        group_bytes_p99: group(sizes.percentile_ns(0.99).map(|bytes| bytes as f64)),
        group_bytes_max: group(sizes.max_ns().map(|bytes| bytes as f64)),
        rules: readings.rules.iter().map(rule).collect(),
        modes: modes(readings),
        standbys: standbys.map(|one| standby(one, ask.is_async)).collect(),
        local_write: Latency::of(&stream.local),
        serial: Latency::of(&stream.serial),
        parallel: Latency::of(&stream.parallel),
        disk_alone: Latency::of(&first.map(|one| one.ready.alone.clone()).unwrap_or_default()),
        network_alone: Latency::of(&stream.network_alone),
        worst: worst.collect(),
        cpu_s: seconds(stream.cpu_ns),
        cpu_mhz: Figure::decimal(readings.cpu_mhz),
        failed: readings.failed.clone(),
        ..asked(ask, first.map(|one| &one.ready))
    }
}

/// Every way to write, where they were compared.
fn modes(readings: &Readings) -> Vec<ModeRow> {
    if readings.modes.is_empty() {
        return Vec::new();
    }
    let of = |readings: &Readings| {
        let standby = readings.standbys.first()?;
        Some(ModeRow {
            mode: standby.ready.write.name().to_owned(),
            total: Latency::of(&standby.parts.total),
            disk: Latency::of(&standby.parts.disk),
        })
    };
    let before = readings.modes.iter().map(|(_, one)| one);
    let mut all: Vec<ModeRow> = before.chain([readings]).filter_map(of).collect();
    // Where direct I/O is refused, the last is dsync once more.
    all.dedup_by(|next, row| next.mode == row.mode);
    all
}

fn second(second: &Second) -> SecondRow {
    SecondRow {
        messages_count: second.messages,
        bytes: second.bytes,
        total_us: us(second.total_ns),
        disk_us: us(second.disk_ns),
        end_s: second.end_ns as f64 / 1e9,
        tcp: tcp_row(&second.tcp),
    }
}

/// What the kernel told of a connection, where it was asked.
fn tcp_row(info: &Option<TcpInfo>) -> TcpRow {
    let of = |get: fn(&TcpInfo) -> u64| match info {
        Some(info) => Figure::Count(get(info)),
        None => Figure::na("no message ended in it, or several standbys"),
    };
    TcpRow {
        rtt_us: of(|tcp| u64::from(tcp.rtt)),
        cwnd_bytes: of(TcpInfo::cwnd_bytes),
        unacked_count: of(|tcp| u64::from(tcp.unacked)),
        retransmits_count: of(|tcp| u64::from(tcp.total_retrans)),
    }
}

fn standby(reading: &StandbyReading, is_async: bool) -> StandbyInfo {
    let parts = &reading.parts;
    let untold = Found::default();
    let found = reading.found.as_ref().unwrap_or(&untold);
    let told = |figure: Figure| match reading.found {
        Some(_) => figure,
        None => Figure::na(LOST),
    };
    let pct = |value: Option<f64>| told(Figure::known(value, NOT_TOLD));
    let elapsed_s = reading.elapsed_ns as f64 / 1e9;
    let streamed = |count: u64| {
        if is_async { Figure::Count(count).per(elapsed_s, "nothing was consumed") } else { Figure::na("of ASYNC") }
    };
    // A streamed message has no acknowledgement of its own: what the standby saw is all there is.
    let (assembly, write, sync, disk, server) = if is_async {
        (&found.assembly, &found.write, &found.sync, &found.disk, &found.total)
    } else {
        (&parts.assembly, &parts.write, &parts.sync, &parts.disk, &parts.server)
    };
    StandbyInfo {
        name: reading.name.clone(),
        total: Latency::of(&parts.total),
        send: Latency::of(&parts.send),
        network: Latency::of(&parts.network),
        server: Latency::of(server),
        assembly: Latency::of(assembly),
        write: Latency::of(write),
        sync: Latency::of(sync),
        disk: Latency::of(disk),
        apply: Latency::of(&parts.apply),
        pack: Latency::of(&parts.pack),
        unpack: Latency::of(if is_async { &found.unpack } else { &parts.unpack }),
        queue: Latency::of(&parts.queue),
        negative_count: parts.negative,
        messages_count: found.messages.max(parts.total.count()).max(reading.consumed.0),
        consumed_count: found.messages,
        sent_count: reading.sent,
        per_s: streamed(reading.consumed.0),
        bytes_per_s: streamed(reading.consumed.1),
        write_mode: reading.ready.write.name().to_owned(),
        cpu_s: told(seconds(found.cpu_ns)),
        busy_pct: pct(found.busy_pct),
        steal_pct: pct(found.steal_pct),
        cpu_mhz: told(Figure::decimal(found.cpu_mhz)),
        facts: reading.ready.facts.clone(),
        ..connection(reading)
    }
}

/// What this side knows of the connection, and of its loss.
fn connection(reading: &StandbyReading) -> StandbyInfo {
    let tcp =
        |get: fn(&TcpInfo) -> u64| reading.tcp.map_or_else(|| Figure::na(NOT_TOLD), |tcp| Figure::Count(get(&tcp)));
    StandbyInfo {
        send_buffer_bytes: Figure::known(reading.send_buffer, NOT_TOLD),
        rtt_us: tcp(|tcp| u64::from(tcp.rtt)),
        min_rtt_us: tcp(|tcp| u64::from(tcp.min_rtt)),
        retransmits_count: tcp(|tcp| u64::from(tcp.total_retrans)),
        cwnd_bytes: tcp(TcpInfo::cwnd_bytes),
        tcp_seconds: reading.tcp_seconds.iter().map(tcp_row).collect(),
        lost: reading.lost.clone(),
        lost_s: if reading.lost.is_empty() { Figure::na("it was not lost") } else { Figure::decimal(reading.lost_s) },
        ..StandbyInfo::default()
    }
}

/// Columns of a series, and where they are of a connection.
type Column = (&'static str, fn(&TcpRow) -> &Figure);
const TCP_COLUMNS: [Column; 4] = [
    ("rtt_us", |row| &row.rtt_us),
    ("cwnd_bytes", |row| &row.cwnd_bytes),
    ("tcp_unacked_count", |row| &row.unacked_count),
    ("tcp_retransmits_count", |row| &row.retransmits_count),
];

/// Messages, bytes and latencies of every second: they add up to the totals.
fn series(info: &RedoInfo) -> Series {
    let elapsed = info.elapsed_s.value().unwrap_or(0.0);
    let ends = |at: usize| ((at + 1) as f64).min(elapsed.max(at as f64 + 1e-6));
    let mut series = Series { step_s: 1.0.into(), ..Series::default() };
    let mut column = |name: &str, of: &dyn Fn(&SecondRow, f64) -> Figure| {
        let rows = info.seconds.iter().enumerate();
        let figures = rows.map(|(at, row)| of(row, ends(at) - at as f64));
        series.metrics.insert(name.to_owned(), figures.collect());
    };
    column("redo_transport_count", &|row, _| Figure::Count(row.messages_count));
    column("redo_transport_bytes", &|row, _| Figure::Count(row.bytes));
    column("redo_transport_per_s", &|row, s| Figure::Count(row.messages_count).per(s, "no time"));
    column("redo_transport_bytes_per_s", &|row, s| Figure::Count(row.bytes).per(s, "no time"));
    if info.standbys.len() == 1 {
        for (name, get) in TCP_COLUMNS {
            column(name, &|row, _| get(&row.tcp).clone());
        }
    }
    if info.mode != "async" {
        let per_message = |us: f64, row: &SecondRow| Figure::decimal(us).per(row.messages_count as f64, "no messages");
        column("redo_transport_us_avg", &|row, _| per_message(row.total_us, row));
        if info.standbys.len() == 1 && info.write != "none" {
            column("redo_transport_disk_write_us_avg", &|row, _| per_message(row.disk_us, row));
        }
    }
    for standby in info.standbys.iter().filter(|one| !one.tcp_seconds.is_empty()) {
        for (name, get) in TCP_COLUMNS {
            let known = standby.tcp_seconds.iter().map(|row| get(row).clone());
            let rest = std::iter::repeat(Figure::na("the standby was lost, or no commit ended in it"));
            let figures = known.chain(rest).take(info.seconds.len()).collect();
            let name = format!("{name}_{}", slug(&standby.name));
            series.metrics.insert(name, figures);
        }
    }
    series.t_s = (0..info.seconds.len()).map(ends).collect();
    let is_whole = |at: usize| at < whole(info).len();
    series.in_window = (0..info.seconds.len()).map(is_whole).collect();
    series
}
