//! The figures of an instance's statistics, of the load generator, and of everything that no other part has.

use crate::rules;
use crate::waits::is_read;
use assay_measure::plain::slug;
use assay_measure::record::metric::{Better, Counted, Group, lower, of_key, plain};
use assay_measure::record::{EventRow, Figure, LoadRow, Metric, Record};

/// All of them; a record without a part has none of its figures.
pub fn all(record: &Record) -> Vec<Metric> {
    let mut all = primary(record);
    all.extend(load_profile(record));
    all.extend(operations(record));
    all.extend(events(record));
    all.extend(io_profile(record));
    all.extend(imported(record));
    all.extend(efficiency(record));
    all.extend(host(record));
    all.extend(statistics(record));
    all
}

fn load<'a>(record: &'a Record, name: &str) -> Option<&'a LoadRow> {
    record.instance.load_profile.iter().find(|row| row.name == name)
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
    ("ops_per_s", "Operations", "1/s", "client", "ops_count_per_s"),
    ("transactions_per_s", "Transactions", "1/s", "engine", "commits_count_per_s"),
    ("reads_per_s", "Read IO requests", "1/s", "engine", "read_io_requests_count_per_s"),
    ("writes_per_s", "Write IO requests", "1/s", "engine", "write_io_requests_count_per_s"),
    ("logical_reads_per_s", "Logical read (blocks)", "blocks/s", "engine", "logical_reads_blocks_per_s"),
    ("redo_bytes_per_s", "Redo size (bytes)", "bytes/s", "engine", ""),
];

/// The counters of rates that a report prints with one digit behind the point, and the unit of the rate in theirs.
const COUNTERS: [(&str, &str, f64); 4] = [
    ("Read IO requests", "physical_read_io_requests_count", 1.0),
    ("Write IO requests", "physical_write_io_requests_count", 1.0),
    ("Read IO (MB)", "physical_read_bytes", MIB),
    ("Write IO (MB)", "physical_write_bytes", MIB),
];

const MIB: f64 = 1_048_576.0;

/// A rate that an import prints with hardly any digits, from the count of the same thing: 0.3 transactions/s may be
/// 0.25 or 0.35.
fn finer(record: &Record, row: &LoadRow) -> Option<Figure> {
    const FEW_DIGITS: f64 = 10.0;
    record.import.as_ref()?;
    let rate = row.per_s.value().filter(|rate| *rate < FEW_DIGITS)?;
    let elapsed = record.interval.elapsed_s.value().filter(|s| *s > 0.0)?;
    let count = match row.name.as_str() {
        "Transactions" => record.interval.tx_count.value()?,
        name => {
            let (_, key, unit) = COUNTERS.iter().find(|(row, ..)| *row == name)?;
            record.instance.stats.get(*key)?.total.value()? / unit
        }
    };
    let finer = count / elapsed;
    // What is further off than a last digit is of something else.
    ((finer - rate).abs() <= 0.06).then_some(Figure::decimal(finer))
}

/// The events that a single read of a block waits for, by the names of engines and versions.
const READ_EVENTS: [&str; 3] = ["db file sequential read", "cell single block physical read", "db file parallel read"];

/// The event that speaks for the reads: the one with the most waits, of a read of a block in a run of ours, of any read in an
/// import; and its share of the waits for reads, %.
pub(super) fn of_reads(record: &Record) -> Option<(&EventRow, f64)> {
    let is_import = record.import.is_some();
    let is_one = |event: &EventRow| {
        READ_EVENTS.contains(&event.name.as_str()) || is_import && is_read(event) && event.name.contains(" read")
    };
    let waits = |event: &EventRow| event.count.value().unwrap_or(0.0);
    let reads = || rules::foreground(record, is_one).filter(|event| waits(event) > 0.0);
    let all: f64 = reads().map(waits).sum();
    let most = reads().reduce(|most, event| if waits(event) > waits(most) { event } else { most })?;
    Some((most, 100.0 * waits(most) / all))
}

fn primary(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for (key, row_name, unit, layer, series) in PRIMARY_RATES {
        if let Some(row) = load(record, row_name) {
            let value = finer(record, row).unwrap_or_else(|| row.per_s.clone());
            let better = Better::Higher;
            all.push(Metric {
                counter: Some(counted(row)),
                series: (!series.is_empty()).then(|| series.to_owned()),
                layer: layer.to_owned(),
                ..plain(Group::Primary, key, row_name, unit, better, value)
            });
        }
    }
    if let Some((event, _)) = of_reads(record) {
        for (suffix, figure) in [("avg", &event.us_avg), ("p50", &event.us_p50), ("p99", &event.us_p99)] {
            let name = format!("{} {suffix}", event.name);
            let key = format!("read_us_{suffix}");
            let series = (suffix != "avg").then(|| format!("{}_us_{suffix}", slug(&event.name)));
            all.push(Metric { series, ..lower(Group::Primary, &key, &name, figure) });
        }
    }
    if let Some(row) = load(record, "DB CPU(s)") {
        let value = row.per_op.scaled(1e6);
        all.push(lower(Group::Primary, "cpu_us_per_op", "DB CPU per operation", &value));
    }
    all
}

/// The unit of a rate of things counted in `unit`.
fn per_second(unit: &str) -> String {
    match unit {
        "count" => "1/s".to_owned(),
        "mib" => "MiB/s".to_owned(),
        unit => format!("{unit}/s"),
    }
}

fn load_profile(record: &Record) -> Vec<Metric> {
    let rows = record.instance.load_profile.iter();
    rows.map(|row| {
        let key = format!("{}_per_s", slug(&row.name));
        let unit = per_second(&row.unit);
        let value = finer(record, row).unwrap_or_else(|| row.per_s.clone());
        Metric {
            counter: Some(counted(row)),
            ..plain(Group::LoadProfile, &key, &row.name, &unit, Better::Neither, value)
        }
    })
    .collect()
}

fn operations(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for op in &record.driver.ops {
        let group = Group::Operation;
        let client = |metric: Metric| Metric { layer: "client".to_owned(), ..metric };
        let key = format!("{}_per_s", op.kind);
        let better = Better::Higher;
        all.push(client(plain(group, &key, &op.kind, "1/s", better, op.per_s.clone())));
        for (clock, latency) in [("", &op.service), ("_response", &op.response)] {
            for (suffix, figure) in [
                ("avg", &latency.us_avg),
                ("p50", &latency.us_p50),
                ("p90", &latency.us_p90),
                ("p99", &latency.us_p99),
                ("p999", &latency.us_p999),
                ("max", &latency.us_max),
            ] {
                let key = format!("{}{clock}_us_{suffix}", op.kind);
                let name = format!("{}{} {suffix}", op.kind, clock.replace('_', " "));
                all.push(client(lower(group, &key, &name, figure)));
            }
        }
    }
    all
}

fn events(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    for event in &record.instance.events {
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
            ("avg", &event.us_avg),
            ("p50", &event.us_p50),
            ("p90", &event.us_p90),
            ("p99", &event.us_p99),
            ("p999", &event.us_p999),
            ("max", &event.us_max),
        ] {
            let key = format!("{stem}_us_{suffix}");
            let name = format!("{} {suffix}", event.name);
            all.push(lower(Group::Event, &key, &name, figure));
        }
    }
    all
}

fn io_profile(record: &Record) -> Vec<Metric> {
    let mut all = Vec::new();
    for row in &record.instance.io_profile {
        for (suffix, figure) in [("", &row.read_write_per_s), ("_read", &row.read_per_s), ("_write", &row.write_per_s)]
        {
            let key = format!("io_{}{suffix}_per_s", slug(&row.name));
            let name = format!("{}{}", row.name, suffix.replace('_', " "));
            // AWR's MB are 2^20 bytes.
            let unit = if row.name.ends_with("(MB)") { "MiB/s" } else { "1/s" };
            let better = Better::Neither;
            all.push(plain(Group::IoProfile, &key, &name, unit, better, figure.clone()));
        }
    }
    all
}

/// Values of an import that have no home elsewhere in the record; those that have are metrics already.
fn imported(record: &Record) -> Vec<Metric> {
    let values = record.import.iter().flat_map(|info| &info.values);
    let homeless = values.filter(|value| value.at.is_empty());
    homeless
        .map(|value| {
            let (unit, better) = of_key(&value.key);
            Metric {
                scope: value.scope.clone(),
                layer: value.layer.clone(),
                ..plain(Group::Imported, &value.key, &value.name, unit, better, value.value.clone())
            }
        })
        .collect()
}

fn efficiency(record: &Record) -> Vec<Metric> {
    let rows = record.instance.efficiency.iter();
    rows.map(|row| {
        let key = format!("{}_pct", slug(&row.name));
        let value = row.value_pct.clone();
        plain(Group::Efficiency, &key, &row.name, "%", Better::Neither, value)
    })
    .collect()
}

fn host(record: &Record) -> Vec<Metric> {
    let shares = record.os.cpu_pct.iter();
    shares
        .map(|(name, share)| {
            let key = format!("host_cpu_{name}_pct");
            let title = format!("host CPU {name}");
            Metric {
                layer: "device".to_owned(),
                ..plain(Group::Host, &key, &title, "%", Better::Neither, share.clone())
            }
        })
        .collect()
}

fn statistics(record: &Record) -> Vec<Metric> {
    let rows = record.instance.stats.iter();
    rows.map(|(key, row)| {
        let unit = per_second(&row.unit);
        let key = format!("{key}_per_s");
        let value = row.per_s.clone();
        Metric {
            counter: Some(Counted {
                total: row.total.clone(),
                per_s: row.per_s.clone(),
                per_tx: row.per_tx.clone(),
                per_op: row.per_op.clone(),
            }),
            ..plain(Group::Statistic, &key, &row.name, &unit, Better::Neither, value)
        }
    })
    .collect()
}
