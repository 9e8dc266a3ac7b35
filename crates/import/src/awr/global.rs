//! A report on all instances of a cluster (awrgrpt): the cluster's figures take the place of an instance's; those of
//! each instance are beside them, with the instance as their scope.
//!
//! Its tables are transposed: a row is an instance, `Sum` or `*` all of them, and a column a figure. The mean of the
//! instances' ratios is not the cluster's ratio, so `Avg` is not read.

use super::part::Part;
use super::table::{Row, Table};
use super::{Reader, Section, activity, events, header, histogram, io, load, passed_over, section};
use crate::draft::{Reading, step};
use crate::number::{self, Printed, Suffix};
use assay_measure::plain::slug;
use assay_measure::record::{Figure, IoRow, WaitClassRow};
use assay_measure::snapshot::Fact;

const MIB: f64 = 1_048_576.0;

/// Sections of a report on all instances of a cluster.
pub(super) const SECTIONS: &[Section] = &[
    section("Database Summary", "", "", summary),
    section("Database Instances Included", "", "", instances),
    section("OS Statistics By Instance", "", "", hosts),
    section("Time Model -", "", "", passed_over),
    section("Time Model", "", "", time_model),
    section("Foreground Wait Classes -", "", "", passed_over),
    section("Foreground Wait Classes", "", "", classes),
    section("Foreground Wait Events (Global)", "", "", events::foreground),
    section("Background Wait Events (Global)", "", "", events::background),
    section("Top Timed Events", "", "", passed_over),
    section("Top Timed Foreground Events", "", "", events::per_instance),
    section("Top Timed Background Events", "", "", passed_over),
    section("Wait Event Histogram (Global)", "", "", histogram::shares),
    section("System Statistics - Per Second", "", "", rates),
    section("System Statistics - Per Transaction", "", "", rates),
    section("System Statistics (Absolute", "", "", sessions),
    section("System Statistics (Global)", "", "", activity::read),
    section("System Statistics", "", "", passed_over),
    section("IO Profile (Global)", "", "", io::profile),
    section("IOStat by Function", "", "", by_function),
    section("IOStat by File Type", "", "", passed_over),
    section("init.ora Multi", "", "", passed_over),
    section("init.ora Parameters", "", "", header::parameters),
];

/// What a row is of.
enum Of {
    /// The whole cluster.
    All,
    /// The instance of this number.
    One(String),
}

/// Rows of the cluster and of its instances. Where one instance alone is in the report, it is the cluster.
fn rows(table: &Table) -> Vec<(Of, &Row)> {
    let Some(first) = table.ruler.titled("i#") else {
        return Vec::new();
    };
    let name = |row: &Row| row.cells[first].trim().to_owned();
    let is_number = |name: &str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_digit());
    let mut instances: Vec<String> = table.rows.iter().map(name).collect();
    instances.retain(|name| is_number(name));
    instances.dedup();
    let mut found = Vec::new();
    for row in &table.rows {
        match name(row).as_str() {
            "Sum" | "*" => found.push((Of::All, row)),
            number if is_number(number) => {
                if instances.len() == 1 && table.rows.iter().all(|row| name(row) != "*") {
                    found.push((Of::All, row));
                }
                found.push((Of::One(number.to_owned()), row));
            }
            _ => {}
        }
    }
    found
}

/// A number of a row under a title with these parts and without those.
fn cell(table: &Table, row: &Row, with: &[&str], without: &[&str]) -> Option<Printed> {
    let i = table.ruler.find(with, without)?;
    number::suffixed(row.cells.get(i)?, Suffix::Decimal)
}

impl Reader<'_> {
    fn of_instance(&mut self, row: &Row, number: &str, key: &str, printed: Printed) {
        let reading = Reading::new(row.at, key, printed);
        let reading = reading.scope(&format!("instance {number}"));
        self.draft.alone(reading);
    }
}

/// `Database Summary`.
pub(super) fn summary(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 2).iter() {
        let Some(row) = table.rows.first() else {
            continue;
        };
        let Some(elapsed) = cell(table, row, &["elapsed time"], &[]) else {
            continue;
        };
        let reading = Reading::new(row.at, "elapsed_s", elapsed.scaled(60.0));
        reader.elapsed = Some(reading.name("Elapsed time"));
        if let Some(time) = cell(table, row, &["db time"], &[]) {
            let reading = Reading::new(row.at, "db_time_us", time.scaled(6e7)).name("DB time");
            put!(reader.draft, reading.again(), instance.time_model.db_time_us);
        }
        for (column, cell) in table.ruler.columns.iter().zip(&row.cells) {
            let name = match column.title.trim_start_matches("database ") {
                "name" => "db_name",
                "id" => "db_id",
                "block size" => "block_bytes",
                "rac" => "rac",
                "cdb" => "cdb",
                _ => continue,
            };
            reader.draft.record.plan.engine_facts.push(Fact { name: name.to_owned(), value: cell.clone() });
        }
    }
}

/// `Database Instances Included In Report`.
pub(super) fn instances(reader: &mut Reader<'_>, part: &Part<'_>) {
    let mut names = Vec::new();
    for table in part.tables(1, 2).iter() {
        let of = |row: &Row, title: &str| {
            let i = table.ruler.titled(title);
            i.map_or_else(String::new, |i| row.cells[i].clone())
        };
        for (whose, row) in rows(table) {
            let Of::One(number) = whose else {
                continue;
            };
            names.push(of(row, "instance"));
            reader.hosts.push(of(row, "host"));
            if reader.release.is_empty() {
                reader.release = of(row, "release");
            }
            for (title, key, factor) in [
                ("elapsed", "elapsed_s", 60.0),
                ("db time", "db_time_us", 6e7),
                ("avg active", "active_sessions_count", 1.0),
            ] {
                if let Some(printed) = cell(table, row, &[title], &[]) {
                    reader.of_instance(row, &number, key, printed.scaled(factor));
                }
            }
        }
    }
    for (name, list) in [("instances", &names), ("hosts", &reader.hosts)] {
        let (name, value) = (name.to_owned(), list.join(", "));
        reader.draft.record.plan.engine_facts.push(Fact { name, value });
    }
}

/// `OS Statistics By Instance`. Instances of one host would count its CPUs twice.
pub(super) fn hosts(reader: &mut Reader<'_>, part: &Part<'_>) {
    let mut distinct = reader.hosts.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let is_apart = !reader.hosts.is_empty() && distinct.len() == reader.hosts.len();
    let mut cpus = 0.0;
    for table in part.tables(1, 2).iter() {
        for (whose, row) in rows(table) {
            match whose {
                Of::All if is_apart => {
                    for (title, key) in [("busy", "busy"), ("idle", "idle_awr")] {
                        if let Some(printed) = cell(table, row, &[title], &["%"]) {
                            let base = format!("/os/cpu_s/{}", step(key));
                            let reading = Reading::new(row.at, format!("host_cpu_{key}_s"), printed);
                            if let Some(figure) = reader.draft.keep(reading, base) {
                                reader.draft.record.os.cpu_s.insert(key.to_owned(), figure);
                            }
                        }
                    }
                }
                Of::All => {}
                Of::One(number) => {
                    for (with, key) in [
                        ("#cpus", "cpus_count"),
                        ("% busy", "host_cpu_busy_pct"),
                        ("% usr", "host_cpu_user_pct"),
                        ("% sys", "host_cpu_system_pct"),
                        ("% wio", "host_cpu_iowait_pct"),
                        ("% idl", "host_cpu_idle_awr_pct"),
                    ] {
                        if let Some(printed) = cell(table, row, &[with], &["end values"]) {
                            if key == "cpus_count" {
                                cpus += printed.number().unwrap_or(0.0);
                            }
                            reader.of_instance(row, &number, key, printed);
                        }
                    }
                }
            }
        }
    }
    if is_apart && cpus > 0.0 {
        // Of all hosts: it is derived, so no value of it is listed as imported.
        reader.draft.record.os.cpus_count = Figure::Count(cpus as u64)
    } else {
        reader.draft.note(
            part.heading.at,
            "instances share a host, or their hosts are not known: CPUs and CPU time of all hosts are n/a",
        )
    }
}

/// `Time Model`.
pub(super) fn time_model(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 2).iter() {
        for (whose, row) in rows(table) {
            for (title, key) in [
                ("db time", "db_time_us"),
                ("db cpu", "db_cpu_us"),
                ("bg cpu", "bg_cpu_us"),
                ("bg time", "bg_elapsed_us"),
            ] {
                let Some(printed) = cell(table, row, &[title], &["%"]) else {
                    continue;
                };
                let printed = printed.scaled(1e6);
                let Of::All = whose else {
                    let Of::One(number) = &whose else { continue };
                    // The time of each stands above, in minutes.
                    if key != "db_time_us" {
                        reader.of_instance(row, number, key, printed);
                    }
                    continue;
                };
                let reading = Reading::new(row.at, key, printed).again();
                let draft = &mut *reader.draft;
                match key {
                    "db_time_us" => put!(draft, reading, instance.time_model.db_time_us),
                    "db_cpu_us" => put!(draft, reading, instance.time_model.db_cpu_us),
                    "bg_cpu_us" => put!(draft, reading, instance.time_model.bg_cpu_us),
                    _ => put!(draft, reading, instance.time_model.bg_elapsed_us),
                }
            }
        }
    }
}

/// Titles of wait classes and their names.
const CLASSES: [(&str, &str); 11] = [
    ("user i/o", "User I/O"),
    ("sys i/o", "System I/O"),
    ("other", "Other"),
    ("applic", "Application"),
    ("commit", "Commit"),
    ("network", "Network"),
    ("concurcy", "Concurrency"),
    ("config", "Configuration"),
    ("cluster", "Cluster"),
    ("admin", "Administrative"),
    ("scheduler", "Scheduler"),
];

/// `Foreground Wait Classes`: seconds.
pub(super) fn classes(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 2).iter() {
        for (whose, row) in rows(table) {
            for (title, name) in CLASSES {
                let Some(printed) = cell(table, row, &[title], &["%"]) else {
                    continue;
                };
                let printed = printed.scaled(1e6);
                let key = format!("{}_total_us", slug(name));
                if let Of::One(number) = &whose {
                    reader.of_instance(row, number, &key, printed);
                    continue;
                }
                let draft = &mut *reader.draft;
                let new = || WaitClassRow {
                    class: name.to_owned(),
                    source: "sysstat".to_owned(),
                    timeouts_pct: Figure::default(),
                    ..WaitClassRow::default()
                };
                let list = &mut draft.record.instance.wait_classes;
                if let Some(i) = super::row_of(list, |row| row.class == name, new) {
                    let reading = Reading::new(row.at, key, printed).name(name);
                    let reading = reading.scope("wait class");
                    put!(draft, reading, instance.wait_classes[i].total_us);
                }
            }
        }
    }
}

/// Titles of rates, the rows of a load profile they are, and what one is of that row's unit.
const RATES: [(&str, &str, f64); 10] = [
    ("logical reads", "Logical reads", 1.0),
    ("physical reads", "Physical reads", 1.0),
    ("physical writes", "Physical writes", 1.0),
    ("redo size (k)", "Redo size", 1024.0),
    ("block changes", "Block changes", 1.0),
    ("user calls", "User calls", 1.0),
    ("execs", "Executes", 1.0),
    ("parses", "Parses", 1.0),
    ("logons", "Logons", 1.0),
    ("txns", "Transactions", 1.0),
];

/// `System Statistics - Per Second` and `- Per Transaction`.
pub(super) fn rates(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 3).iter() {
        for (whose, row) in rows(table) {
            for (title, label, factor) in RATES {
                for (per, is_rate) in [("/s", true), ("/tx", false)] {
                    let Some(printed) = cell(table, row, &[title, per], &[]) else {
                        continue;
                    };
                    let printed = printed.scaled(factor);
                    let number = match &whose {
                        Of::All => None,
                        Of::One(number) => Some(number.as_str()),
                    };
                    load::of_cluster(reader, row, label, (is_rate, number), printed);
                }
            }
        }
    }
}

/// `System Statistics (Absolute Values)`: sessions.
pub(super) fn sessions(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 2).iter() {
        for (whose, row) in rows(table) {
            let number = match whose {
                Of::All => None,
                Of::One(number) => Some(number),
            };
            for when in ["begin", "end"] {
                let Some(printed) = cell(table, row, &["sessions", when], &["cached"]) else {
                    continue;
                };
                let key = format!("sessions_{when}_count");
                match &number {
                    Some(number) => reader.of_instance(row, number, &key, printed),
                    None => {
                        let reading = Reading::new(row.at, key, printed).name("Sessions");
                        match when {
                            "begin" => put!(reader.draft, reading, interval.sessions_begin_count),
                            _ => put!(reader.draft, reading, interval.sessions_end_count),
                        }
                    }
                }
            }
        }
    }
}

/// `IOStat by Function`.
pub(super) fn by_function(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(2, 2).iter() {
        let Some(function) = table.ruler.find(&["function"], &[]) else {
            continue;
        };
        for (whose, row) in rows(table) {
            let name = match row.cells[function].trim() {
                "Total" => "TOTAL",
                name => name,
            };
            let scope = match &whose {
                Of::All => name.to_owned(),
                Of::One(number) => format!("instance {number}, {name}"),
            };
            for (with, key, factor) in [
                ("reads/s", "read_requests_per_s", 1.0),
                ("writes/s", "write_requests_per_s", 1.0),
                ("read mb/s", "read_bytes_per_s", MIB),
                ("write mb/s", "write_bytes_per_s", MIB),
            ] {
                if let Some(printed) = cell(table, row, &[with], &[]) {
                    let key = format!("iostat_{key}");
                    let reading = Reading::new(row.at, key, printed.scaled(factor));
                    reader.draft.alone(reading.scope(&scope));
                }
            }
            let avg = table.ruler.find(&["avg"], &[]).map(|i| row.cells[i].as_str());
            if let Some(avg) = avg.and_then(|cell| number::duration_us(cell, 1e3)) {
                let reading = Reading::new(row.at, "iostat_wait_us_avg", avg).scope(&scope);
                reader.draft.alone(reading);
            }
            if matches!(whose, Of::All) && name != "TOTAL" {
                waits(reader, row, name, cell(table, row, &["waits"], &[]));
            }
        }
    }
}

fn waits(reader: &mut Reader<'_>, row: &Row, name: &str, printed: Option<Printed>) {
    let draft = &mut *reader.draft;
    let new = || IoRow { function: name.to_owned(), source: "sysstat".to_owned(), ..IoRow::default() };
    let list = &mut draft.record.instance.io_functions;
    let i = super::row_of(list, |row| row.function == name, new);
    if let (Some(i), Some(printed)) = (i, printed) {
        let reading = Reading::new(row.at, "iostat_waits_count", printed).scope(name);
        put!(draft, reading, instance.io_functions[i].waits_count);
    }
}
