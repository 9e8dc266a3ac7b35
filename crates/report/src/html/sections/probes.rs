//! Tables of probes and of what was imported.

use crate::html::table::{Cell, Table};
use assay_measure::record::{
    DiskRow, Figure, ImportInfo, ImportedValue, RecoveryInfo, StorageInfo, StorageJob,
    StorageLatency, SyncInfo,
};

/// Tables of `assay sync`.
pub(super) fn sync(info: &SyncInfo) -> Vec<Table> {
    let headline = [
        ("one 4 KiB write made durable, median (us)", &info.f0_us),
        ("the same without a flush, median (us)", &info.unsynced_us),
        (
            "durable over not durable, ratio",
            &info.sync_over_unsynced_ratio,
        ),
        (
            "commits/s above which a commit delay only adds latency",
            &info.commit_delay_limit_per_s,
        ),
    ];
    let rows = headline
        .iter()
        .map(|(name, value)| vec![Cell::words(*name), Cell::figure(value, 1)]);
    let caption = format!("Layer {}; file {}", info.layer, info.path);
    let first = Table::new("Durable Write", &caption, &["", "value"]);
    vec![
        first.with(rows.collect(), "absent"),
        safety(info),
        sync_steps(info),
    ]
}

fn safety(info: &SyncInfo) -> Table {
    let rows = info.safety.iter().map(|row| {
        vec![
            Cell::words(&row.level),
            Cell::figure(&row.single_per_s, 1),
            Cell::figure(&row.many_per_s, 1),
            Cell::count(row.many_streams_count),
            Cell::figure(&row.many_commits_per_flush, 2),
            Cell::figure(&row.single_p50_us, 1),
            Cell::figure(&row.many_p99_us, 1),
            Cell::words(&row.meaning),
        ]
    });
    let columns = [
        "level",
        "commits/s, one stream",
        "commits/s, many",
        "streams",
        "commits per flush",
        "p50, one (us)",
        "p99, many (us)",
        "meaning",
    ];
    Table::new(
        "What Safety Costs",
        "Commits per second by level of safety",
        &columns,
    )
    .with(rows.collect(), "absent")
}

fn sync_steps(info: &SyncInfo) -> Table {
    let rows = info.steps.iter().map(|step| {
        vec![
            Cell::words(&step.part),
            Cell::words(&step.method),
            Cell::words(&step.file),
            Cell::count(step.streams_count),
            Cell::count(step.bytes),
            Cell::figure(&step.per_s, 1),
            Cell::figure(&step.per_s_ci95_pct, 1),
            Cell::figure(&step.latency.p50_us, 1),
            Cell::figure(&step.latency.p99_us, 1),
            Cell::figure(&step.latency.max_us, 0),
        ]
    });
    let columns = [
        "part", "method", "file", "streams", "bytes", "writes/s", "+- %", "p50 (us)", "p99 (us)",
        "max (us)",
    ];
    let caption =
        "Every step in the order they were made; +- is half of the 95 % interval of the rate";
    Table::new("Steps", caption, &columns).with(rows.collect(), "absent")
}

/// Tables of `assay recovery`.
pub(super) fn recovery(info: &RecoveryInfo) -> Vec<Table> {
    let headline = [
        (
            "wanted time from open to first commit (s)",
            &info.rto_wanted_s,
            1,
        ),
        ("part that does not depend on the log (s)", &info.fixed_s, 3),
        ("each MiB of log adds (s)", &info.per_mib_s, 5),
        (
            "checkpoint distance that keeps the wanted time (bytes)",
            &info.recommended_distance_bytes,
            0,
        ),
        (
            "the same as LOG_CHECKPOINT_INTERVAL",
            &info.recommended_interval_blocks,
            0,
        ),
    ];
    let rows = headline.iter();
    let rows = rows.map(|(name, value, n)| vec![Cell::words(*name), Cell::figure(value, *n)]);
    let caption = match info.is_projection {
        true => "What follows from the kills; the recommendation is a projection, untested",
        false => "What follows from the kills",
    };
    let first = Table::new("Recovery Time", caption, &["", "value"]).with(rows.collect(), "absent");
    vec![first, kills(info)]
}

fn kills(info: &RecoveryInfo) -> Table {
    let rows = info.steps.iter().map(|step| {
        vec![
            Cell::count(step.distance_bytes),
            Cell::figure(&step.replayed_bytes, 0),
            Cell::figure(&step.replay_mb_per_s, 1),
            Cell::figure(&step.blocks_read_count, 0),
            Cell::figure(&step.recovery_s, 3),
            Cell::figure(&step.open_s, 3),
            Cell::figure(&step.first_commit_s, 3),
            Cell::figure(&step.rate_95_s, 3),
            Cell::count(step.acknowledged_count),
            Cell::count(step.lost_count),
            Cell::count(step.half_there_count),
        ]
    });
    let columns = [
        "checkpoint distance (bytes)",
        "replayed (bytes)",
        "replay (10^6 bytes/s)",
        "blocks read",
        "recovery (s)",
        "open (s)",
        "first commit (s)",
        "95 % of old rate (s)",
        "acknowledged",
        "lost",
        "half there",
    ];
    Table::new("Kills", "One kill each, by checkpoint distance", &columns)
        .with(rows.collect(), "absent")
}

/// Tables of `assay io`.
pub(super) fn storage(info: &StorageInfo) -> Vec<Table> {
    let rows = info.jobs.iter().flat_map(ways);
    let columns = [
        "job",
        "direction",
        "block sizes",
        "depth",
        "jobs",
        "IOPS",
        "MiB/s",
        "MB/s",
        "lat mean (us)",
        "p50",
        "p99",
        "p99.9",
        "max",
    ];
    let caption = format!(
        "Layer {}; latency from the preparation of a request to its reaping; MiB is 2^20 bytes, MB 10^6; achieved I/O mode: {}",
        info.layer, info.io_mode_achieved
    );
    let jobs = Table::new("Jobs", &caption, &columns).with(rows.collect(), "no I/O");
    vec![
        jobs,
        parts(info),
        cost(info),
        groups(info),
        disks("Devices", &info.disks),
    ]
}

fn ways(job: &StorageJob) -> Vec<Vec<Cell>> {
    let row = |way: &assay_measure::record::StorageWay| {
        vec![
            Cell::words(&job.name),
            Cell::words(&way.way),
            Cell::words(&job.block_sizes),
            Cell::count(job.iodepth_count),
            Cell::count(job.numjobs_count),
            Cell::figure(&way.ios_per_s, 1),
            Cell::figure(&way.mib_per_s, 1),
            Cell::figure(&way.mb_per_s, 1),
            Cell::figure(&way.lat.avg_us, 1),
            Cell::figure(&way.lat.p50_us, 1),
            Cell::figure(&way.lat.p99_us, 1),
            Cell::figure(&way.lat.p999_us, 1),
            Cell::figure(&way.lat.max_us, 0),
        ]
    };
    job.ways.iter().map(row).collect()
}

/// What a latency is made of: submission, completion, all of it, and with the wait for its turn.
fn parts(info: &StorageInfo) -> Table {
    let mut rows = Vec::new();
    for job in &info.jobs {
        for way in &job.ways {
            let all: [(&str, &StorageLatency); 4] = [
                ("submission (slat)", &way.slat),
                ("completion (clat)", &way.clat),
                ("both (lat)", &way.lat),
                ("from when it was due", &way.response),
            ];
            for (name, part) in all.iter().filter(|(_, part)| part.count > 0) {
                rows.push(vec![
                    Cell::words(format!("{}, {}", job.name, way.way)),
                    Cell::words(*name),
                    Cell::count(part.count),
                    Cell::figure(&part.avg_us, 2),
                    Cell::figure(&part.stddev_us, 2),
                    Cell::figure(&part.min_us, 2),
                    Cell::figure(&part.p50_us, 2),
                    Cell::figure(&part.p90_us, 2),
                    Cell::figure(&part.p99_us, 2),
                    Cell::figure(&part.p9999_us, 2),
                    Cell::figure(&part.max_us, 2),
                ]);
            }
        }
    }
    let columns = [
        "job",
        "part",
        "samples",
        "mean (us)",
        "stddev",
        "min",
        "p50",
        "p90",
        "p99",
        "p99.99",
        "max",
    ];
    Table::new("Latency by Part", "Which latency is which, us", &columns).with(rows, "no I/O")
}

fn cost(info: &StorageInfo) -> Table {
    let rows = info.jobs.iter().map(|job| {
        vec![
            Cell::words(&job.name),
            Cell::figure(&job.cpu.user_us_per_io, 2),
            Cell::figure(&job.cpu.system_us_per_io, 2),
            Cell::figure(&job.cpu.thread_cpu_max_pct, 1),
            Cell::figure(&job.in_flight_mean_count, 2),
            Cell::figure(&job.little_count, 2),
            Cell::count(job.errors_count),
        ]
    });
    let columns = [
        "job",
        "user CPU per I/O (us)",
        "system CPU per I/O (us)",
        "busiest thread (%)",
        "in flight, counted",
        "in flight, by Little's law",
        "errors",
    ];
    Table::new(
        "Cost and Little's Law",
        "What driving the I/O cost, and whether its figures agree",
        &columns,
    )
    .with(rows.collect(), "no jobs")
}

fn groups(info: &StorageInfo) -> Table {
    let rows = info.groups.iter().map(|group| {
        let spread = &group.iops_total_per_s;
        vec![
            Cell::words(format!("{}: {}", group.group, group.jobs.join(", "))),
            Cell::figure(&spread.mean, 1),
            Cell::figure(&spread.min, 1),
            Cell::figure(&spread.max, 1),
            Cell::figure(&spread.variation_ratio, 3),
            Cell::figure(&group.bw_total_mib_per_s.mean, 1),
            Cell::count(group.changes.len() as u64),
            Cell::figure(&group.device_busy_pct, 1),
        ]
    });
    let columns = [
        "group",
        "IOPS, mean second",
        "slowest",
        "fastest",
        "coefficient of variation",
        "MiB/s, mean second",
        "changes of level",
        "device busy (%)",
    ];
    Table::new(
        "Groups",
        "Jobs that ran side by side, whole seconds",
        &columns,
    )
    .with(rows.collect(), "no groups")
}

/// Block devices over the window.
pub(super) fn disks(title: &str, disks: &[DiskRow]) -> Table {
    let mib = |bytes: u64| Cell::figure(&Figure::Count(bytes).scaled(1.0 / 1_048_576.0), 1);
    let rows = disks.iter().map(|disk| {
        vec![
            Cell::words(&disk.name),
            Cell::count(disk.reads_count),
            mib(disk.read_bytes),
            Cell::figure(&disk.read_avg_us, 1),
            Cell::count(disk.writes_count),
            mib(disk.write_bytes),
            Cell::figure(&disk.write_avg_us, 1),
            Cell::count(disk.flushes_count),
            Cell::figure(&disk.flush_avg_us, 1),
            Cell::figure(&disk.busy_pct, 1),
            Cell::figure(&disk.queue_mean_count, 2),
        ]
    });
    let columns = [
        "device",
        "reads",
        "read (MB)",
        "per read (us)",
        "writes",
        "written (MB)",
        "per write (us)",
        "flushes",
        "per flush (us)",
        "busy (%)",
        "in flight, mean",
    ];
    Table::new(
        title,
        "Devices under the data, whoever used them (layer device)",
        &columns,
    )
    .with(rows.collect(), "no device is known")
}

/// Tables of an import: its files, every value with its line, and what was tolerated.
pub(super) fn imported(info: &ImportInfo) -> Vec<Table> {
    let files = info.files.iter().map(|file| {
        vec![
            Cell::words(&file.path),
            Cell::count(file.size_bytes),
            Cell::count(file.lines_count),
        ]
    });
    let caption = format!("Read as {} {}", info.format, info.tool_version);
    let files = Table::new(
        "Imported Files",
        caption.trim_end(),
        &["file", "bytes", "lines"],
    )
    .with(files.collect(), "none");
    let path = |file: u64| {
        info.files
            .get(file as usize)
            .map_or("?", |file| file.path.as_str())
    };
    let values = info
        .values
        .iter()
        .map(|value| imported_value(value, path(value.file)));
    let columns = [
        "name",
        "of",
        "printed",
        "taken for",
        "key",
        "layer",
        "file and line",
    ];
    let caption = "Every value that was read, with the place it was read at";
    let values = Table::new("Imported Values", caption, &columns).with(values.collect(), "none");
    let notes = info.notes.iter().map(|note| {
        let line = if note.line == 0 {
            String::new()
        } else {
            format!(":{}", note.line)
        };
        vec![
            Cell::words(format!("{}{line}", path(note.file))),
            Cell::words(&note.text),
        ]
    });
    let notes = Table::new(
        "Import Notes",
        "What was tolerated or left out",
        &["where", "what"],
    )
    .with(notes.collect(), "nothing had to be tolerated");
    vec![files, notes, values]
}

fn imported_value(value: &ImportedValue, path: &str) -> Vec<Cell> {
    vec![
        Cell::words(&value.name),
        Cell::words(&value.scope),
        Cell::words(&value.printed),
        Cell::exact(&value.value),
        Cell::words(&value.key),
        Cell::words(&value.layer),
        Cell::words(format!("{path}:{}", value.line)),
    ]
}
