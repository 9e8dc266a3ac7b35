//! Random readings for the property tests of this crate.

use crate::histogram::Histogram;
use crate::snapshot::{
    Actor, BUCKETS, BucketReading, Direction, DiskReading, DriverReading, EventReading, HostReading, IoReading,
    NetReading, OpReading, PathReading, Reading, RequestReading, SCAN, SELECT, Snapshot, StatSet, TimedReading, UPDATE,
    WaitClass,
};
use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Durations of every magnitude below 2^42 ns.
pub(crate) fn durations(len: std::ops::Range<usize>) -> impl Strategy<Value = Vec<u64>> {
    let duration = (0_u32..=42, any::<u64>()).prop_map(|(bits, raw)| raw % (1 << bits));
    vec(duration, len)
}

pub(crate) fn histogram() -> impl Strategy<Value = Histogram> {
    (durations(0..20), any::<bool>()).prop_map(|(durations, compact)| {
        let mut histogram = Histogram::new();
        durations.into_iter().for_each(|ns| histogram.record(ns));
        if compact { histogram.clone() } else { histogram }
    })
}

fn n() -> impl Strategy<Value = u64> {
    prop_oneof![0..4_u64, 0..1_u64 << 40]
}

fn reading() -> impl Strategy<Value = Reading> {
    const REASONS: [&str; 3] = ["absent", "denied (performance_schema)", "unsupported"];
    prop_oneof![
        8 => n().prop_map(Reading::Count),
        1 => prop::sample::select(&REASONS[..]).prop_map(|r| Reading::Na(r.to_owned())),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(&["a", "b time", "c \"quoted\"", "d"]).prop_map(str::to_owned)
}

fn sums() -> impl Strategy<Value = BTreeMap<String, u64>> {
    btree_map(name(), n(), 0..4)
}

fn events() -> impl Strategy<Value = Vec<EventReading>> {
    let key = (name(), any::<bool>());
    btree_map(key, (n(), histogram(), 0..3_usize), 0..4).prop_map(|rows| {
        let row = |((name, foreground), (timeouts, waits, class))| EventReading {
            name,
            class: [WaitClass::UserIo, WaitClass::Commit, WaitClass::Idle][class],
            actor: if foreground { Actor::Foreground } else { Actor::Background },
            timeouts,
            waits,
        };
        let mut rows: Vec<_> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| (&a.name, a.actor).cmp(&(&b.name, b.actor)));
        rows
    })
}

/// Short texts by some of the names.
fn texts(names: &'static [&'static str]) -> impl Strategy<Value = BTreeMap<String, String>> {
    let text = prop::sample::select(&["pg_stat_io", "proc", "absent"]).prop_map(str::to_owned);
    let name = prop::sample::select(names).prop_map(str::to_owned);
    btree_map(name, text, 0..3)
}

fn timed() -> impl Strategy<Value = Vec<TimedReading>> {
    const SOURCES: [&str; 2] = ["pg_stat_database", "pg_stat_io"];
    let key = (name(), any::<bool>());
    btree_map(key, (reading(), reading(), 0..3_usize, 0..2_usize), 0..4).prop_map(|rows| {
        let row = |((name, foreground), (waits, wait_ns, class, source)): (_, (_, _, usize, usize))| TimedReading {
            name,
            class: [WaitClass::UserIo, WaitClass::Commit, WaitClass::SystemIo][class],
            actor: if foreground { Actor::Foreground } else { Actor::Background },
            waits,
            wait_ns,
            source: SOURCES[source].to_owned(),
        };
        let mut rows: Vec<_> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| (&a.name, a.actor).cmp(&(&b.name, b.actor)));
        rows
    })
}

fn buckets() -> impl Strategy<Value = Vec<BucketReading>> {
    btree_map(name(), prop::collection::vec(n(), BUCKETS), 0..3).prop_map(|rows| {
        let row = |(name, waits)| BucketReading { name, waits, source: "v$event_histogram_micro".to_owned() };
        rows.into_iter().map(row).collect()
    })
}

fn io_rows() -> impl Strategy<Value = Vec<IoReading>> {
    let columns = (prop::array::uniform8(n()), texts(&["wait_ns", "waits"]));
    btree_map((name(), name()), columns, 0..3).prop_map(|rows| {
        let row = |((function, file_type), (n, na)): (_, ([u64; 8], _))| IoReading {
            function,
            file_type,
            na,
            small_read_requests: n[0],
            large_read_requests: n[1],
            read_bytes: n[2],
            small_write_requests: n[3],
            large_write_requests: n[4],
            write_bytes: n[5],
            waits: n[6],
            wait_ns: n[7],
        };
        rows.into_iter().map(row).collect()
    })
}

fn paths() -> impl Strategy<Value = Vec<PathReading>> {
    let key = (name(), name(), name());
    btree_map(key, prop::array::uniform4(n()), 0..3).prop_map(|rows| {
        let row = |((path, file_type, device), n): (_, [u64; 4])| PathReading {
            path,
            file_type,
            device,
            read_requests: n[0],
            read_bytes: n[1],
            write_requests: n[2],
            write_bytes: n[3],
        };
        rows.into_iter().map(row).collect()
    })
}

fn requests() -> impl Strategy<Value = Vec<RequestReading>> {
    let key = (name(), any::<bool>());
    btree_map(key, (n(), histogram()), 0..3).prop_map(|rows| {
        let row = |((event, read), (bytes, completions))| RequestReading {
            event,
            direction: if read { Direction::Read } else { Direction::Write },
            bytes,
            completions,
        };
        let mut rows: Vec<_> = rows.into_iter().map(row).collect();
        rows.sort_by(|a, b| (&a.event, a.direction).cmp(&(&b.event, b.direction)));
        rows
    })
}

pub(crate) fn stat_set() -> impl Strategy<Value = StatSet> {
    let counters = btree_map(name(), reading(), 0..4);
    let sources = texts(&["a", "b time", "io"]);
    let rows = (events(), timed(), buckets(), io_rows(), paths(), requests());
    let parts = (counters, sources, rows, sums());
    parts.prop_map(|(counters, sources, (events, timed, buckets, io, paths, requests), gauges)| StatSet {
        counters,
        sources,
        timed,
        buckets,
        events,
        io,
        paths,
        requests,
        gauges,
        resets: BTreeSet::new(),
    })
}

fn ops() -> impl Strategy<Value = Vec<OpReading>> {
    btree_map(prop::sample::select(&[SELECT, UPDATE, SCAN][..]), (n(), histogram(), histogram()), 0..4).prop_map(
        |rows| {
            let row =
                |(kind, (rows, service, response))| OpReading { kind: str::to_owned(kind), rows, service, response };
            rows.into_iter().map(row).collect()
        },
    )
}

pub(crate) fn driver() -> impl Strategy<Value = DriverReading> {
    let scalars = prop::array::uniform13(n());
    let parts = (ops(), sums(), sums(), sums(), histogram(), scalars);
    parts.prop_map(|(ops, errors, retried, by_kind, schedule_lag, n)| DriverReading {
        ops,
        errors,
        retried,
        by_kind,
        retries: n[0],
        hot_spot_hits: n[1],
        hot_schema_hits: n[2],
        think_count: n[3],
        think_ns: n[4],
        busy_ns: n[5],
        sessions_active: n[6],
        in_flight: n[7],
        in_flight_ns: n[8],
        schedule_lag,
        thread_cpu_ns: n[9],
        thread_run_delay_ns: n[10],
        threads: n[11],
        dropped: n[12],
        resets: BTreeSet::new(),
    })
}

fn disks() -> impl Strategy<Value = Vec<DiskReading>> {
    btree_map(name(), (prop::array::uniform13(n()), n()), 0..3).prop_map(|rows| {
        let row = |(name, (n, in_flight)): (_, ([u64; 13], _))| DiskReading {
            name,
            reads: n[0],
            read_merges: n[1],
            read_bytes: n[2],
            read_ns: n[3],
            writes: n[4],
            write_merges: n[5],
            write_bytes: n[6],
            write_ns: n[7],
            in_flight,
            busy_ns: n[8],
            weighted_ns: n[9],
            flushes: n[10],
            flush_ns: n[11],
            discard_ns: n[12],
            devices: 1,
        };
        rows.into_iter().map(row).collect()
    })
}

fn nets() -> impl Strategy<Value = Vec<NetReading>> {
    btree_map(name(), prop::array::uniform5(n()), 0..3).prop_map(|rows| {
        let row = |(name, n): (_, [u64; 5])| NetReading {
            name,
            rx_bytes: n[0],
            rx_packets: n[1],
            tx_bytes: n[2],
            tx_packets: n[3],
            errors: n[4],
        };
        rows.into_iter().map(row).collect()
    })
}

pub(crate) fn host() -> impl Strategy<Value = HostReading> {
    let cpu = option::weighted(0.8, prop::array::uniform10(n()));
    let load = prop::array::uniform3((0_u32..99_999).prop_map(|n| f64::from(n) / 100.0));
    let load = option::weighted(0.8, load);
    let scalars = prop::array::uniform9(option::weighted(0.8, n()));
    let maps = (sums(), sums(), sums());
    (0..3_u64, cpu, load, scalars, maps, disks(), nets()).prop_map(
        |(hosts, cpu_ns, load, n, (memory_bytes, psi_ns, vmstat), disks, nets)| HostReading {
            hosts,
            cpu_ns,
            cpus: n[0],
            context_switches: n[1],
            procs_running: n[2],
            load,
            memory_bytes,
            psi_ns,
            vmstat,
            disks,
            nets,
            process_read_bytes: n[3],
            process_write_bytes: n[4],
            process_cpu_ns: n[5],
            process_rss_bytes: n[6],
            cgroup_throttled_ns: n[7],
            usable_millicpus: n[8],
        },
    )
}

pub(crate) fn snapshot() -> impl Strategy<Value = Snapshot> {
    let wall = (0..60_u32).prop_map(|s| match s {
        0 => String::new(),
        s => format!("2026-01-01T00:00:{s:02}Z"),
    });
    (n(), wall, n(), stat_set(), driver(), host()).prop_map(|(at_ns, wall, skew_ns, stats, driver, host)| Snapshot {
        at_ns,
        wall,
        skew_ns,
        stats,
        driver,
        host,
    })
}
