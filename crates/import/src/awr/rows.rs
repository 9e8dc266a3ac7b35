//! Rows of the load and I/O profile that older layouts do not print, from the statistics that they do.

use assay_awr::record::LOAD_ROWS;
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::record::{Figure, IoProfileRow, LoadRow, Record, StatRow};

const PER_MIB: f64 = 1.0 / 1_048_576.0;

/// Label, unit, statistics of reads and writes, factor from their unit.
const IO: [(&str, &str, Stat, Stat, f64); 4] = [
    (
        "Total Requests",
        "count",
        counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS,
        counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS,
        1.0,
    ),
    (
        "Database Requests",
        "count",
        counter_catalog::PHYSICAL_READ_REQUESTS,
        counter_catalog::PHYSICAL_WRITE_REQUESTS,
        1.0,
    ),
    (
        "Total (MB)",
        "mib",
        counter_catalog::PHYSICAL_READ_TOTAL_BYTES,
        counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES,
        PER_MIB,
    ),
    ("Database (MB)", "mib", counter_catalog::PHYSICAL_READ_BYTES, counter_catalog::PHYSICAL_WRITE_BYTES, PER_MIB),
];

/// Adds the rows that are not there and whose statistics are. They are derived: none is listed as imported.
pub(super) fn complete(record: &mut Record) {
    for (name, unit, stat, factor) in LOAD_ROWS {
        let is_there = record.instance.load_profile.iter().any(|row| row.name == name);
        if let (false, Some(stat)) = (is_there, record.instance.stats.get(stat.key)) {
            let row = load(name, unit, stat, factor);
            record.instance.load_profile.push(row);
        }
    }
    for (name, unit, reads, writes, factor) in IO {
        let is_there = record.instance.io_profile.iter().any(|row| row.name == name);
        let rate = |stat: Stat| {
            let row = record.instance.stats.get(stat.key)?;
            Some(row.per_s.scaled(factor))
        };
        if let (false, Some(read), Some(write)) = (is_there, rate(reads), rate(writes)) {
            record.instance.io_profile.push(IoProfileRow {
                name: name.to_owned(),
                unit: unit.to_owned(),
                read_write_per_s: read.plus(&write),
                read_per_s: read,
                write_per_s: write,
            });
        }
    }
}

fn load(name: &str, unit: &str, stat: &StatRow, factor: f64) -> LoadRow {
    let scaled = |figure: &Figure| figure.scaled(factor);
    LoadRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        total: scaled(&stat.total),
        per_s: scaled(&stat.per_s),
        per_tx: scaled(&stat.per_tx),
        per_op: scaled(&stat.per_op),
        source: stat.source.clone(),
        ..LoadRow::default()
    }
}
