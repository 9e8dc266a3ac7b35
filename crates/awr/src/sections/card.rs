//! The test card: the figures people put side by side, ready to paste.

use assay_measure::facts::{self, FactKey};
use assay_measure::record::{EventRow, Figure, Record};
use assay_measure::section::{Sections, number, number_or_reason};
use assay_measure::snapshot::Fact;
use assay_measure::units::size;

const MIB: f64 = 1_048_576.0;

pub(super) fn test_card(page: &mut Sections, record: &Record) {
    page.heading("Test Card");
    page.two_columns(&platform(record), &processor(record));
    page.line("");
    page.two_columns(&work(record), &storage(record));
    let mut top: Vec<&EventRow> =
        record.instance.events.iter().filter(|event| event.actor == "foreground" && event.class != "Idle").collect();
    top.truncate(2);
    for (nth, event) in top.iter().enumerate() {
        let known = |figure: &Figure, before: &str, after: &str| match figure.reason() {
            Some(_) => String::new(),
            None => format!(", {before}{}{after}", number(figure, 0)),
        };
        page.named(
            &format!("Wait event {}", nth + 1),
            24,
            format!(
                "{}{}{}, {} % DB time{}",
                event.name,
                known(&event.count, "", " waits"),
                known(&event.us_avg, "average ", " us"),
                number(&event.db_time_pct, 1),
                if event.is_sampled() { " (sampled)" } else { "" },
            ),
        );
    }
}

fn pair(name: &str, value: String) -> (String, String) {
    (name.to_owned(), value)
}

fn fact(facts: &[Fact], key: FactKey) -> String {
    key.told(facts).unwrap_or("n/a (absent)").to_owned()
}

fn platform(record: &Record) -> Vec<(String, String)> {
    let host = &record.host.facts;
    let memory = record.os.memory_bytes.get("total");
    let bytes = memory.and_then(|row| row.end.value());
    vec![
        pair("Kernel", fact(host, facts::KERNEL)),
        pair("Virtualisation", fact(host, facts::VIRTUALISATION)),
        pair("CPU model", fact(host, facts::CPU_MODEL)),
        pair("CPUs", number_or_reason(&record.os.cpus_count, 0)),
        pair(
            "Memory",
            match bytes {
                Some(bytes) => size(bytes as u64),
                None => fact(host, facts::MEMORY_BYTES),
            },
        ),
        pair("Device", device(record)),
        pair("File system", fact(&record.plan.engine_facts, facts::FILE_SYSTEM)),
    ]
}

/// Kernel name, model and kind of the disk under the data.
fn device(record: &Record) -> String {
    let engine = &record.plan.engine_facts;
    if record.instance.server.is_some() && facts::DISK.find(engine).is_none() {
        return fact(engine, facts::DISK);
    }
    let parts = [facts::DISK, facts::DISK_MODEL, facts::DISK_SCHEDULER];
    let parts: Vec<&str> = parts.iter().filter_map(|key| key.find(engine)).collect();
    if parts.is_empty() { "n/a (absent)".to_owned() } else { parts.join(", ") }
}

fn work(record: &Record) -> Vec<(String, String)> {
    let engine = &record.plan.engine_facts;
    let block = facts::BLOCK_BYTES.find(engine);
    let block = block.and_then(|bytes| bytes.parse::<f64>().ok());
    let bytes_of = |blocks: &Figure| match (blocks.value(), block) {
        (Some(blocks), Some(block)) => size((blocks * block) as u64),
        _ => number_or_reason(blocks, 0),
    };
    let setting = |name: &str| {
        let line = record.plan.settings.iter().find(|line| line.name == name);
        line.map_or_else(|| "n/a (absent)".to_owned(), |line| line.value.clone())
    };
    let update_pct = setting("UPDATE_PCT");
    let ratio = match update_pct.parse::<u64>() {
        Ok(update @ 0..=100) => format!("{}:{update}", 100 - update),
        _ => update_pct,
    };
    vec![
        pair("Block size", fact(engine, facts::BLOCK_BYTES)),
        pair("Cache", bytes_of(&record.checks.cache_blocks)),
        pair("Active data", bytes_of(&record.checks.active_blocks)),
        pair("Sessions", number(&Figure::Count(record.run.sessions), 0)),
        pair("Select:update %", ratio),
        pair("WORK_UNIT", setting("WORK_UNIT")),
        pair("I/O mode achieved", fact(engine, facts::IO_MODE_ACHIEVED)),
        pair("Hit % expected", number_or_reason(&record.checks.hit_expected_pct, 1)),
        pair("Hit % measured", number_or_reason(&record.checks.hit_measured_pct, 1)),
    ]
}

fn processor(record: &Record) -> Vec<(String, String)> {
    let pct = |name: &str| {
        let figure = record.os.cpu_pct.get(name).cloned().unwrap_or_default();
        number_or_reason(&figure, 1)
    };
    let load = record.os.load_end.first().cloned().unwrap_or_default();
    vec![
        pair("User %", pct("user")),
        pair("System %", pct("system")),
        pair("I/O wait %", pct("iowait")),
        pair("Steal %", pct("steal")),
        pair("Idle %", pct("idle")),
        pair("Load average at end", number_or_reason(&load, 2)),
        pair("DB CPU per s", number_or_reason(&per_s(record, "DB CPU(s)"), 2)),
    ]
}

fn per_s(record: &Record, name: &str) -> Figure {
    let row = record.instance.load_profile.iter().find(|row| row.name == name);
    row.map_or_else(Figure::default, |row| row.per_s.clone())
}

fn storage(record: &Record) -> Vec<(String, String)> {
    let rate = |name: &str| number_or_reason(&per_s(record, name), 1);
    let average = |name: &str, actor: &str| {
        let mut events = record.instance.events.iter();
        let event = events.find(|event| event.name == name && event.actor == actor);
        event.map_or_else(
            || "n/a (no waits)".to_owned(),
            |event| match event.us_p99.reason() {
                Some(_) => number_or_reason(&event.us_avg, 0),
                None => format!("{} (p99 {})", number(&event.us_avg, 0), number(&event.us_p99, 0)),
            },
        )
    };
    let device = |bytes: &Figure| {
        let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
        number_or_reason(&bytes.scaled(1.0 / MIB).per(elapsed, "no measured window"), 1)
    };
    vec![
        pair("Operations/s", rate("Operations")),
        pair("Logical reads/s", rate("Logical read (blocks)")),
        pair("Read requests/s", rate("Read IO requests")),
        pair("Write requests/s", rate("Write IO requests")),
        pair("Read MB/s", rate("Read IO (MB)")),
        pair("Write MB/s", rate("Write IO (MB)")),
        pair("Device read MB/s", device(&record.checks.device_read_bytes)),
        pair("Device write MB/s", device(&record.checks.device_write_bytes)),
        pair("Read latency us", average("db file sequential read", "foreground")),
        pair("Commit latency us", average("log file sync", "foreground")),
        pair("Write batch latency us", average("db file parallel write", "background")),
    ]
}
