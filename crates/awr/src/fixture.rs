//! One frozen run whose every figure can be checked by hand: four sessions, 100
//! operations a second (90 selects, 10 updates of 64 rows), 40 ms each, all of it
//! the same every second.

use assay_measure::clock::NS_PER_S;
use assay_measure::histogram::Histogram;
use assay_measure::history::{ActivityHistory, ActivityKey, ActivityStep, SessionState};
use assay_measure::snapshot::{
    Actor, Direction, DiskReading, DriverReading, EventReading, Fact, HostReading, IoReading, OpReading, PathReading,
    RequestReading, RunData, SELECT, SessionReading, SettingLine, Snapshot, StatSet, UPDATE, Verdict, WaitClass,
};
use assay_measure::stats::{self, Stat};
use assay_measure::timeline::{CommandEnd, TimelineEvent, TimelineKind};

mod server;

pub use server::postgres;

const MS: u64 = 1_000_000;
/// Operations of one second.
const PER_SECOND_OPS: u64 = 100;

/// What one second moves.
const PER_SECOND: &[(Stat, u64)] = &[
    (stats::SESSION_LOGICAL_READS, 6700),
    (stats::DB_BLOCK_GETS, 640),
    (stats::CONSISTENT_GETS, 6060),
    (stats::INDEX_GETS, 300),
    (stats::INDEX_HITS, 300),
    (stats::GETS_FROM_CACHE, 6700),
    (stats::CACHE_HITS, 695),
    (stats::CACHE_DEMAND_MISSES, 6000),
    (stats::CACHE_SHARED_MISSES, 5),
    (stats::DB_BLOCK_CHANGES, 1310),
    (stats::PHYSICAL_READS, 6000),
    (stats::PHYSICAL_READS_CACHE, 6000),
    (stats::PHYSICAL_READS_CACHE_PREFETCH, 0),
    (stats::PHYSICAL_READS_DIRECT, 0),
    (stats::PHYSICAL_READ_REQUESTS, 6000),
    (stats::PHYSICAL_READ_BYTES, 6000 * 8192),
    (stats::PHYSICAL_READ_TOTAL_REQUESTS, 6000),
    (stats::PHYSICAL_READ_TOTAL_BYTES, 6000 * 8192),
    (stats::PHYSICAL_READ_MULTI_BLOCK_REQUESTS, 0),
    (stats::PHYSICAL_WRITES, 700),
    (stats::PHYSICAL_WRITES_FROM_CACHE, 700),
    (stats::PHYSICAL_WRITES_DIRECT, 0),
    (stats::PHYSICAL_WRITES_NON_CHECKPOINT, 600),
    (stats::PHYSICAL_WRITE_REQUESTS, 500),
    (stats::PHYSICAL_WRITE_BYTES, 700 * 8192),
    (stats::PHYSICAL_WRITE_TOTAL_REQUESTS, 511),
    (stats::PHYSICAL_WRITE_TOTAL_BYTES, 700 * 8192 + 130 * 4096 + 8192),
    (stats::EXECUTE_COUNT, 100),
    (stats::USER_CALLS, 100),
    (stats::USER_COMMITS, 10),
    (stats::USER_ROLLBACKS, 0),
    (stats::FREE_BUFFER_REQUESTED, 6000),
    (stats::FREE_BUFFER_INSPECTED, 6600),
    (stats::BUFFERS_DIRTIED, 640),
    (stats::BUFFERS_CLEANED, 600),
    (stats::DBWR_SUBMITS, 20),
    (stats::REDO_SIZE, 520_000),
    (stats::REDO_ENTRIES, 640),
    (stats::REDO_WRITES, 10),
    (stats::REDO_BLOCKS_WRITTEN, 130),
    (stats::REDO_BYTES_WRITTEN, 130 * 4096),
    (stats::REDO_HEADER_BYTES, 130 * 16),
    (stats::REDO_WASTAGE, 10_400),
    (stats::REDO_WRITE_TIME, 15 * MS),
    (stats::REDO_SYNCH_WRITES, 10),
    (stats::REDO_SYNCH_TIME, 20 * MS),
    (stats::REDO_ALLOCATION_RETRIES, 0),
    (stats::REDO_LOG_SPACE_REQUESTS, 0),
    (stats::REDO_LOG_SPACE_TIME, 0),
    (stats::REDO_LOG_SWITCHES, 0),
    (stats::CONTROL_BYTES_WRITTEN, 8192),
    (stats::CONTROL_WRITES, 1),
    (stats::ROWS_VISITED, 6400),
    (stats::ROWS_CHANGED, 640),
    (stats::ON_THREAD_TIME, 900 * MS),
    (stats::RUN_QUEUE_TIME, 78 * MS),
    (stats::DB_TIME, 4000 * MS),
    (stats::DB_CPU, 700 * MS),
    (stats::BACKGROUND_CPU, 50 * MS),
    (stats::BACKGROUND_TIME, 200 * MS),
    (stats::RING_READ_BYTES, 6000 * 8192),
    (stats::RING_READ_REQUESTS, 6000),
    (stats::RING_WRITE_BYTES, 700 * 8192 + 130 * 4096 + 8192),
    (stats::RING_WRITE_REQUESTS, 511),
];

/// Event, class, actor, and the waits of one second by duration in us.
type Waits = (&'static str, WaitClass, Actor, &'static [(u64, u64)]);
const WAITS: &[Waits] = &[
    ("db file sequential read", WaitClass::UserIo, Actor::Foreground, &[(400, 5400), (1400, 600)]),
    ("read by other session", WaitClass::UserIo, Actor::Foreground, &[(400, 5)]),
    ("log file sync", WaitClass::Commit, Actor::Foreground, &[(2000, 10)]),
    ("db file parallel write", WaitClass::SystemIo, Actor::Background, &[(5000, 20)]),
    ("log file parallel write", WaitClass::SystemIo, Actor::Background, &[(1500, 10)]),
    ("control file parallel write", WaitClass::SystemIo, Actor::Background, &[(1000, 1)]),
];

fn io(function: &str, file_type: &str) -> IoReading {
    IoReading { function: function.to_owned(), file_type: file_type.to_owned(), ..IoReading::default() }
}

fn statistics(s: u64) -> StatSet {
    let mut set = StatSet::default();
    for (stat, per_second) in PER_SECOND {
        set.add(*stat, per_second * s);
    }
    for (name, class, actor, waits) in WAITS {
        let mut histogram = Histogram::new();
        for (us, n) in *waits {
            if n * s > 0 {
                histogram.record_n(us * 1000, n * s);
            }
        }
        set.events.push(EventReading {
            name: (*name).to_owned(),
            class: *class,
            actor: *actor,
            timeouts: 0,
            waits: histogram,
        });
    }
    set.requests = requests(s);
    set.io = functions(s);
    set.paths = paths(s);
    set.gauges.insert("dirty_buffers".to_owned(), 100 + 40 * s);
    set.gauges.insert("redo_buffer_unflushed_bytes".to_owned(), 0);
    set
}

/// Requests of the ring.
fn requests(s: u64) -> Vec<RequestReading> {
    [
        ("db file sequential read", Direction::Read, 6000, 8192, 480),
        ("db file parallel write", Direction::Write, 500, 700 * 8192 / 500, 600),
        ("log file parallel write", Direction::Write, 10, 13 * 4096, 1480),
    ]
    .map(|(event, direction, n, bytes, us)| {
        let mut completions = Histogram::new();
        completions.record_n(us * 1000, n * s);
        RequestReading { event: event.to_owned(), direction, bytes: n * bytes * s, completions }
    })
    .into()
}

/// Rows of I/O by function and file type.
fn functions(s: u64) -> Vec<IoReading> {
    vec![
        IoReading {
            small_read_requests: 6000 * s,
            read_bytes: 6000 * 8192 * s,
            waits: 6000 * s,
            wait_ns: 3000 * MS * s,
            ..io("Buffer Cache Reads", "Data File")
        },
        IoReading { small_write_requests: 450 * s, write_bytes: 650 * 8192 * s, ..io("DBWR", "Data File") },
        IoReading { small_write_requests: 50 * s, write_bytes: 50 * 8192 * s, ..io("DBWR", "Undo File") },
        IoReading {
            small_write_requests: 10 * s,
            write_bytes: 130 * 4096 * s,
            waits: 10 * s,
            wait_ns: 15 * MS * s,
            ..io("LGWR", "Log File")
        },
        IoReading { small_write_requests: s, write_bytes: 8192 * s, ..io("Others", "Control File") },
    ]
}

fn paths(s: u64) -> Vec<PathReading> {
    // The redo lies on a path of its own whose disk nobody can name.
    let path = |path: &str, file_type: &str, device: &str| PathReading {
        path: path.to_owned(),
        file_type: file_type.to_owned(),
        device: device.to_owned(),
        ..PathReading::default()
    };
    vec![
        PathReading {
            read_requests: 6000 * s,
            read_bytes: 6000 * 8192 * s,
            write_requests: 450 * s,
            write_bytes: 650 * 8192 * s,
            ..path("/u01/assay", "Data File", "vda")
        },
        PathReading { write_requests: 10 * s, write_bytes: 130 * 4096 * s, ..path("/u02/redo", "Log File", "") },
    ]
}

fn operations(kind: &str, n: u64, s: u64) -> OpReading {
    let mut service = Histogram::new();
    if n * s > 0 {
        service.record_n(40 * MS, n * s);
    }
    OpReading { kind: kind.to_owned(), rows: 64 * n * s, response: service.clone(), service }
}

fn host(s: u64) -> HostReading {
    HostReading {
        cpu_ns: Some([600, 0, 400, 1900, 1000, 30, 50, 20, 0, 0].map(|ms: u64| ms * MS * s)),
        cpus: Some(4),
        context_switches: Some(20_000 * s),
        procs_running: Some(2),
        load: Some([1.5, 1.0, 0.5]),
        memory_bytes: [("total", 8 << 30), ("available", 6 << 30)].map(|(name, bytes)| (name.to_owned(), bytes)).into(),
        psi_ns: [("io_some".to_owned(), 500 * MS * s)].into(),
        vmstat: [("pgmajfault".to_owned(), s), ("pswpin".to_owned(), 0)].into(),
        disks: vec![DiskReading {
            name: "vda".to_owned(),
            reads: 6000 * s,
            read_bytes: 6000 * 8192 * s,
            read_ns: 2700 * MS * s,
            writes: 511 * s,
            write_bytes: (700 * 8192 + 130 * 4096 + 8192) * s,
            write_ns: 200 * MS * s,
            busy_ns: 950 * MS * s,
            weighted_ns: 2900 * MS * s,
            ..DiskReading::default()
        }],
        process_read_bytes: Some(6000 * 8192 * s),
        process_write_bytes: Some((700 * 8192 + 130 * 4096 + 8192) * s),
        process_cpu_ns: Some(780 * MS * s),
        process_rss_bytes: Some(100 << 20),
        cgroup_throttled_ns: Some(0),
        usable_millicpus: Some(4000),
        ..HostReading::default()
    }
}

/// The reading after `s` seconds of load.
pub fn snapshot(s: u64) -> Snapshot {
    Snapshot {
        at_ns: s * NS_PER_S,
        wall: format!("2026-11-21T03:00:{s:02}Z"),
        skew_ns: 2 * MS,
        stats: statistics(s),
        driver: DriverReading {
            ops: vec![operations(SELECT, 90, s), operations(UPDATE, 10, s)],
            busy_ns: 4000 * MS * s,
            sessions_active: 4,
            in_flight: if s > 0 { 4 } else { 0 },
            in_flight_ns: if s > 0 { 80 * MS } else { 0 },
            thread_cpu_ns: 700 * MS * s,
            thread_run_delay_ns: 10 * MS * s,
            threads: 2,
            ..DriverReading::default()
        },
        host: host(s),
    }
}

fn facts(pairs: &[(&str, &str)]) -> Vec<Fact> {
    let fact = |(name, value): &(&str, &str)| Fact { name: (*name).to_owned(), value: (*value).to_owned() };
    pairs.iter().map(fact).collect()
}

/// Ten ticks a second, four sessions active at each: three read, and the fourth is on CPU at nine
/// of the ten; at the last it is queued, or in every fifth second waits for the log.
pub fn activity() -> ActivityHistory {
    let key = |state, wait: Option<(&str, WaitClass)>, op: &str| ActivityKey {
        state,
        event: wait.map_or_else(String::new, |(event, _)| event.to_owned()),
        class: wait.map(|(_, class)| class),
        op: op.to_owned(),
    };
    let read = Some(("db file sequential read", WaitClass::UserIo));
    let sync = Some(("log file sync", WaitClass::Commit));
    let step = |tick: u64| ActivityStep {
        at_ns: (100 * tick + 50) * MS,
        ticks: 1,
        span_ns: 100 * MS,
        hole_ns: 0,
        active_max: 4,
        cells: {
            let fourth = match (tick % 10, tick / 10 % 5) {
                (9, 4) => 3,
                (9, _) => 2,
                _ => 1,
            };
            vec![(0, 3, 300 * MS), (fourth, 1, 100 * MS)]
        },
    };
    ActivityHistory {
        interval_ns: 100 * MS,
        keys: vec![
            key(SessionState::Waiting, read, SELECT),
            key(SessionState::OnCpu, None, SELECT),
            key(SessionState::RunQueue, None, UPDATE),
            key(SessionState::Waiting, sync, UPDATE),
        ],
        steps: (0..220).map(step).collect(),
        schemas: (1..=4).map(|schema| (schema, 220)).collect(),
    }
}

fn timeline() -> Vec<TimelineEvent> {
    let event = |number, at_ns, kind, text: &str| TimelineEvent {
        number,
        at_ns,
        wall: String::new(),
        kind,
        text: text.to_owned(),
        from: None,
        to: None,
        output: None,
        end: None,
    };
    vec![
        TimelineEvent {
            output: Some("at-1.out".to_owned()),
            end: Some(CommandEnd { status: "exit 0".to_owned(), good: true, took_ns: 20 * MS }),
            ..event(1, 10 * NS_PER_S, TimelineKind::Command, "echo one CPU less")
        },
        TimelineEvent {
            from: Some("0-3".to_owned()),
            to: Some("0-2".to_owned()),
            ..event(2, 10_050 * MS, TimelineKind::Affinity, "of the driver threads")
        },
    ]
}

/// The whole run: warm-up of 2 s, a window of 20 s, drained 50 ms later.
pub fn run() -> RunData {
    let mut drained = snapshot(22);
    drained.at_ns += 50 * MS;
    drained.driver.in_flight = 0;
    drained.driver.in_flight_ns = 0;
    drained.driver.sessions_active = 0;
    let setting = |(name, value, origin): (&str, &str, &str)| SettingLine {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: origin.to_owned(),
    };
    RunData {
        run_id: "7f3a9c".to_owned(),
        workload: "slob".to_owned(),
        engine: "native".to_owned(),
        version: "0.1.0".to_owned(),
        started: "2026-11-21T03:00:00Z".to_owned(),
        seed: 42,
        verdict: Verdict::Complete,
        sessions: 4,
        settings: [
            ("UPDATE_PCT", "10", "default"),
            ("WORK_UNIT", "64", "file slob.conf:7"),
            ("SCALE", "256M", "default"),
            ("RUN_TIME", "20", "cli"),
        ]
        .map(setting)
        .to_vec(),
        host: facts(&[("kernel", "6.1.0"), ("cpu_model", "Some CPU")]),
        engine_facts: facts(&[
            ("block_bytes", "8192"),
            ("log_block_bytes", "4096"),
            ("cache_blocks", "8192"),
            ("device_disk", "vda"),
            ("device_model", "n/a (absent)"),
            ("device_scheduler", "none"),
            ("device_fs_type", "ext4"),
            ("io_mode_achieved", "setall (O_DIRECT, io_uring)"),
            ("page_cache_bypassed", "yes"),
        ]),
        gate: snapshot(0),
        begin: snapshot(2),
        end: snapshot(22),
        drained,
        series: (1..=22).map(snapshot).collect(),
        per_session: (1..=4)
            .map(|session| SessionReading {
                session,
                schema: session,
                ops: 550,
                rows: 550 * 64,
                busy_ns: 22 * NS_PER_S,
                think_ns: 0,
                first_op_ns: Some(1000),
                last_op_ns: Some(22 * NS_PER_S + 40 * MS),
            })
            .collect(),
        activity: Some(activity()),
        timeline: timeline(),
        floor_ns_per_op: Some(28.0),
        clock_read_ns: Some(22.5),
        ..RunData::default()
    }
}
