//! The metrics of each part of a record.

use super::{Better, Counted, Group, Metric};
use crate::record::slug;
use assay_measure::record::{EventRow, Figure, LoadRow, Record, StorageLatency, StorageWay};

/// A metric with nothing but a name and a figure.
pub(super) fn plain(
    group: Group,
    key: &str,
    name: &str,
    unit: &str,
    better: Better,
    value: Figure,
) -> Metric {
    Metric {
        key: key.to_owned(),
        scope: String::new(),
        name: name.to_owned(),
        group,
        unit: unit.to_owned(),
        better,
        is_primary: group == Group::Primary,
        value,
        counter: None,
        series: None,
        layer: "engine".to_owned(),
    }
}

fn load<'a>(record: &'a Record, name: &str) -> Option<&'a LoadRow> {
    record.load_profile.iter().find(|row| row.name == name)
}

fn counted(row: &LoadRow) -> Counted {
    Counted {
        total: row.total.clone(),
        per_s: row.per_s.clone(),
        per_tx: row.per_tx.clone(),
        per_op: row.per_op.clone(),
    }
}

/// Rates that are primary: key, row of the load profile, unit, layer, series.
const PRIMARY_RATES: [(&str, &str, &str, &str, &str); 6] = [
    (
        "ops_per_s",
        "Operations",
        "1/s",
        "client",
        "ops_count_per_s",
    ),
    (
        "transactions_per_s",
        "Transactions",
        "1/s",
        "engine",
        "commits_count_per_s",
    ),
    (
        "reads_per_s",
        "Read IO requests",
        "1/s",
        "engine",
        "read_io_requests_count_per_s",
    ),
    (
        "writes_per_s",
        "Write IO requests",
        "1/s",
        "engine",
        "write_io_requests_count_per_s",
    ),
    (
        "logical_reads_per_s",
        "Logical read (blocks)",
        "blocks/s",
        "engine",
        "logical_reads_blocks_per_s",
    ),
    (
        "redo_bytes_per_s",
        "Redo size (bytes)",
        "bytes/s",
        "engine",
        "",
    ),
];

/// The events that a single read of a block waits for, by the names of engines and versions.
const READ_EVENTS: [&str; 3] = [
    "db file sequential read",
    "cell single block physical read",
    "db file parallel read",
];

pub(super) fn primary(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for (key, row_name, unit, layer, series) in PRIMARY_RATES {
        if let Some(row) = load(record, row_name) {
            let value = row.per_s.clone();
            let better = Better::Higher;
            all.push(Metric {
                counter: Some(counted(row)),
                series: (!series.is_empty()).then(|| series.to_owned()),
                layer: layer.to_owned(),
                ..plain(Group::Primary, key, row_name, unit, better, value)
            });
        }
    }
    let read = READ_EVENTS
        .iter()
        .find_map(|name| foreground(record, name).filter(|event| event.count.value() > Some(0.0)));
    if let Some(event) = read {
        for (suffix, figure) in [
            ("avg", &event.avg_us),
            ("p50", &event.p50_us),
            ("p99", &event.p99_us),
        ] {
            let name = format!("{} {suffix}", event.name);
            let key = format!("read_us_{suffix}");
            let series = (suffix != "avg").then(|| format!("{}_{suffix}_us", slug(&event.name)));
            all.push(Metric {
                series,
                ..lower(Group::Primary, &key, &name, figure)
            });
        }
    }
    if let Some(row) = load(record, "DB CPU(s)") {
        let value = row.per_op.scaled(1e6);
        all.push(lower(
            Group::Primary,
            "cpu_us_per_op",
            "DB CPU per operation",
            &value,
        ));
    }
    all.extend(primary_storage(record));
    all
}

/// The whole of a storage probe: its groups taken together, latency where there is but one.
fn primary_storage(record: &Record) -> Vec<Metric> {
    let Some(info) = &record.storage else {
        return Vec::new();
    };
    let mut all = Vec::new();
    let [group] = info.groups.as_slice() else {
        return all;
    };
    for way in &group.ways {
        let (plural, layer) = (format!("{}s_per_s", way.way), "syscall");
        let name = format!("{} IOPS", way.way);
        let better = Better::Higher;
        all.push(Metric {
            layer: layer.to_owned(),
            series: Some(format!("{}_ios_count_per_s", way.way)),
            ..plain(
                Group::Primary,
                &plural,
                &name,
                "1/s",
                better,
                way.ios_per_s.clone(),
            )
        });
        for (suffix, figure) in latencies(&way.lat) {
            if ["avg", "p50", "p99"].contains(&suffix) {
                let name = format!("{} latency {suffix}", way.way);
                let key = format!("{}_us_{suffix}", way.way);
                all.push(Metric {
                    layer: layer.to_owned(),
                    ..lower(Group::Primary, &key, &name, figure)
                });
            }
        }
        for (suffix, figure) in submitted_only(way) {
            if ["p50", "p99"].contains(&suffix) {
                let name = format!("{} clat {suffix}", way.way);
                let key = format!("{}_clat_us_{suffix}", way.way);
                all.push(Metric {
                    layer: layer.to_owned(),
                    ..lower(Group::Primary, &key, &name, figure)
                });
            }
        }
    }
    all
}

/// A time of which less is better, us.
pub(super) fn lower(group: Group, key: &str, name: &str, figure: &Figure) -> Metric {
    plain(group, key, name, "us", Better::Lower, figure.clone())
}

fn foreground<'a>(record: &'a Record, name: &str) -> Option<&'a EventRow> {
    let mut events = record.events.iter();
    events.find(|event| event.actor == "foreground" && event.name == name)
}

pub(super) fn load_profile(record: &Record) -> Vec<Metric> {
    let rows = record.load_profile.iter();
    rows.map(|row| {
        let key = format!("{}_per_s", slug(&row.name));
        let unit = match row.unit.as_str() {
            "count" => "1/s".to_owned(),
            unit => format!("{unit}/s"),
        };
        let value = row.per_s.clone();
        Metric {
            counter: Some(counted(row)),
            ..plain(
                Group::LoadProfile,
                &key,
                &row.name,
                &unit,
                Better::Neither,
                value,
            )
        }
    })
    .collect()
}

pub(super) fn operations(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for op in &record.driver.ops {
        let group = Group::Operation;
        let client = |metric: Metric| Metric {
            layer: "client".to_owned(),
            ..metric
        };
        let key = format!("{}_per_s", op.kind);
        let better = Better::Higher;
        all.push(client(plain(
            group,
            &key,
            &op.kind,
            "1/s",
            better,
            op.per_s.clone(),
        )));
        for (clock, latency) in [("", &op.service), ("_response", &op.response)] {
            for (suffix, figure) in [
                ("avg", &latency.avg_us),
                ("p50", &latency.p50_us),
                ("p90", &latency.p90_us),
                ("p99", &latency.p99_us),
                ("p999", &latency.p999_us),
                ("max", &latency.max_us),
            ] {
                let key = format!("{}{clock}_us_{suffix}", op.kind);
                let name = format!("{}{} {suffix}", op.kind, clock.replace('_', " "));
                all.push(client(lower(group, &key, &name, figure)));
            }
        }
    }
    all
}

pub(super) fn events(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    for event in &record.events {
        let who = match event.actor.as_str() {
            "background" => "background_",
            _ => "",
        };
        let stem = format!("{who}{}", slug(&event.name));
        let waits = event.count.per(elapsed, "no time passed");
        let neither = Better::Neither;
        let rate = format!("{stem}_waits_per_s");
        let name = format!("{} waits", event.name);
        all.push(Metric {
            series: Some(format!("{stem}_waits_count_per_s")),
            ..plain(Group::Event, &rate, &name, "1/s", neither, waits)
        });
        let share = format!("{stem}_db_time_pct");
        let name = format!("{} share of DB time", event.name);
        let pct = event.db_time_pct.clone();
        all.push(plain(Group::Event, &share, &name, "%", neither, pct));
        for (suffix, figure) in [
            ("avg", &event.avg_us),
            ("p50", &event.p50_us),
            ("p90", &event.p90_us),
            ("p99", &event.p99_us),
            ("p999", &event.p999_us),
            ("max", &event.max_us),
        ] {
            let key = format!("{stem}_us_{suffix}");
            let name = format!("{} {suffix}", event.name);
            all.push(lower(Group::Event, &key, &name, figure));
        }
    }
    all
}

pub(super) fn io_profile(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for row in &record.io_profile {
        for (suffix, figure) in [
            ("", &row.read_write_per_s),
            ("_read", &row.read_per_s),
            ("_write", &row.write_per_s),
        ] {
            let key = format!("io_{}{suffix}_per_s", slug(&row.name));
            let name = format!("{}{}", row.name, suffix.replace('_', " "));
            let better = Better::Neither;
            all.push(plain(
                Group::IoProfile,
                &key,
                &name,
                "1/s",
                better,
                figure.clone(),
            ));
        }
    }
    all
}

fn latencies(latency: &StorageLatency) -> [(&'static str, &Figure); 9] {
    [
        ("avg", &latency.avg_us),
        ("min", &latency.min_us),
        ("p50", &latency.p50_us),
        ("p90", &latency.p90_us),
        ("p95", &latency.p95_us),
        ("p99", &latency.p99_us),
        ("p999", &latency.p999_us),
        ("p9999", &latency.p9999_us),
        ("max", &latency.max_us),
    ]
}

/// Statistics that exist from the submission on alone: fio's own percentiles leave the way to it out.
fn submitted_only(way: &StorageWay) -> Vec<(&'static str, &Figure)> {
    let pairs = latencies(&way.lat).into_iter().zip(latencies(&way.clat));
    pairs
        .filter(|((_, lat), (_, clat))| lat.value().is_none() && clat.value().is_some())
        .map(|(_, clat)| clat)
        .collect()
}

pub(super) fn storage(record: &Record) -> Vec<Metric> {
    let Some(info) = &record.storage else {
        return Vec::new();
    };
    let mut all = Vec::new();
    for (i, job) in info.jobs.iter().enumerate() {
        // Several jobs may have one name; from the second on their place tells them apart.
        let is_second = info.jobs[..i].iter().any(|other| other.name == job.name);
        let scope = match is_second {
            true => format!("{} {}", job.name, i + 1),
            false => job.name.clone(),
        };
        all.extend(job.ways.iter().flat_map(|way| storage_way(&scope, way)));
    }
    all
}

fn storage_way(job: &str, way: &StorageWay) -> Vec<Metric> {
    let of_job = |metric: Metric| Metric {
        scope: job.to_owned(),
        layer: "syscall".to_owned(),
        ..metric
    };
    let way_name = &way.way;
    let (group, higher) = (Group::Storage, Better::Higher);
    let mut all = vec![
        of_job(plain(
            group,
            &format!("{way_name}_ios_per_s"),
            &format!("{way_name} IOPS"),
            "1/s",
            higher,
            way.ios_per_s.clone(),
        )),
        of_job(plain(
            group,
            &format!("{way_name}_mib_per_s"),
            &format!("{way_name} MiB/s"),
            "MiB/s",
            higher,
            way.mib_per_s.clone(),
        )),
    ];
    for (suffix, figure) in latencies(&way.lat) {
        let key = format!("{way_name}_lat_us_{suffix}");
        let name = format!("{way_name} latency {suffix}");
        all.push(of_job(lower(group, &key, &name, figure)));
    }
    for (suffix, figure) in submitted_only(way) {
        let key = format!("{way_name}_clat_us_{suffix}");
        let name = format!("{way_name} clat {suffix}");
        all.push(of_job(lower(group, &key, &name, figure)));
    }
    all
}

/// Values of an import that have no home elsewhere in the record; those that have are metrics already.
pub(super) fn imported(record: &Record) -> Vec<Metric> {
    let values = record.import.iter().flat_map(|info| &info.values);
    let homeless = values.filter(|value| value.at.is_empty());
    homeless
        .map(|value| {
            let (unit, better) = of_key(&value.key);
            Metric {
                scope: value.scope.clone(),
                layer: value.layer.clone(),
                ..plain(
                    Group::Imported,
                    &value.key,
                    &value.name,
                    unit,
                    better,
                    value.value.clone(),
                )
            }
        })
        .collect()
}

/// `read_us` of `read_us_p995`.
fn without_percentile(key: &str) -> &str {
    let is_digits = |text: &&str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let split = key.rsplit_once("_p");
    let found = split.filter(|(_, percent)| is_digits(percent));
    found.map_or(key, |(stem, _)| stem)
}

/// Unit and better way of a key, by its ending with the statistic left out.
pub(crate) fn of_key(key: &str) -> (&'static str, Better) {
    const STATISTICS: [&str; 7] = ["_avg", "_mean", "_min", "_max", "_stddev", "_mdev", "_sum"];
    const UNITS: [(&str, &str, Better); 16] = [
        ("_bits_per_s", "bits/s", Better::Higher),
        ("_bytes_per_s", "bytes/s", Better::Higher),
        ("_mib_per_s", "MiB/s", Better::Higher),
        ("_mb_per_s", "MB/s", Better::Higher),
        ("_blocks_per_s", "blocks/s", Better::Higher),
        ("_per_min", "1/min", Better::Higher),
        ("_per_s", "1/s", Better::Higher),
        ("_us", "us", Better::Lower),
        ("_ms", "ms", Better::Lower),
        ("_ns", "ns", Better::Lower),
        ("_s", "s", Better::Neither),
        ("_pct", "%", Better::Neither),
        ("_bytes", "bytes", Better::Neither),
        ("_blocks", "blocks", Better::Neither),
        ("_count", "count", Better::Neither),
        ("_ratio", "ratio", Better::Neither),
    ];
    let stem = STATISTICS
        .iter()
        .find_map(|statistic| key.strip_suffix(statistic))
        .unwrap_or_else(|| without_percentile(key));
    let found = UNITS.iter().find(|(ending, ..)| stem.ends_with(ending));
    found.map_or(("", Better::Neither), |(_, unit, better)| (unit, *better))
}

pub(super) fn efficiency(record: &Record) -> Vec<Metric> {
    let rows = record.efficiency.iter();
    rows.map(|row| {
        let key = format!("{}_pct", slug(&row.name));
        let value = row.value_pct.clone();
        plain(
            Group::Efficiency,
            &key,
            &row.name,
            "%",
            Better::Neither,
            value,
        )
    })
    .collect()
}

pub(super) fn host(record: &Record) -> Vec<Metric> {
    let shares = record.os.cpu_pct.iter();
    shares
        .map(|(name, share)| {
            let key = format!("host_cpu_{name}_pct");
            let title = format!("host CPU {name}");
            Metric {
                layer: "device".to_owned(),
                ..plain(
                    Group::Host,
                    &key,
                    &title,
                    "%",
                    Better::Neither,
                    share.clone(),
                )
            }
        })
        .collect()
}

pub(super) fn statistics(record: &Record) -> Vec<Metric> {
    let rows = record.stats.iter();
    rows.map(|(key, row)| {
        let unit = match row.unit.as_str() {
            "count" => "1/s".to_owned(),
            unit => format!("{unit}/s"),
        };
        let key = format!("{key}_per_s");
        let value = row.per_s.clone();
        Metric {
            counter: Some(Counted {
                total: row.total.clone(),
                per_s: row.per_s.clone(),
                per_tx: row.per_tx.clone(),
                per_op: row.per_op.clone(),
            }),
            ..plain(
                Group::Statistic,
                &key,
                &row.name,
                &unit,
                Better::Neither,
                value,
            )
        }
    })
    .collect()
}
