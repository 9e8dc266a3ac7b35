//! The head of a page: what ran, and on what.

use assay_measure::facts::{
    BLOCK_BYTES, CPU_MODEL, CPUS, DISK, FILE_SYSTEM, IO_MODE, IO_MODE_ACHIEVED, KERNEL, MEMORY_BYTES, VIRTUALISATION,
};
use assay_measure::record::Record;
use assay_measure::units::fixed;

/// A wall time to the second, for people.
pub(crate) fn wall(rfc3339: &str) -> String {
    let (day, rest) = rfc3339.split_once('T').unwrap_or((rfc3339, ""));
    let time: String = rest.chars().take(8).collect();
    if rest.ends_with('Z') { format!("{day} {time} UTC") } else { rfc3339.to_owned() }
}

/// What was run on what, for the head of the page.
pub(crate) fn facts(record: &Record) -> Vec<(String, String)> {
    let run = &record.run;
    let mut facts = vec![
        ("Started".to_owned(), wall(&run.started)),
        ("Workload".to_owned(), run.workload.clone()),
        ("Target".to_owned(), run.engine.clone()),
    ];
    if run.sessions > 0 {
        facts.push(("Sessions".to_owned(), run.sessions.to_string()));
    }
    if let Some(elapsed) = record.interval.elapsed_s.value() {
        facts.push(("Measured window".to_owned(), format!("{} s", fixed(elapsed, 1))));
    }
    if let Some(server) = &record.instance.server
        && !server.version.is_empty()
    {
        facts.push(("Server".to_owned(), server.version.clone()));
    }
    if let Some(import) = &record.import {
        facts.push(("Imported from".to_owned(), import.format.clone()));
    }
    let of_host = [CPU_MODEL, CPUS, MEMORY_BYTES, KERNEL, VIRTUALISATION];
    let of_engine = [IO_MODE, IO_MODE_ACHIEVED, BLOCK_BYTES, FILE_SYSTEM, DISK];
    let host = of_host.map(|key| (key, key.shown(&record.host.facts)));
    let engine = of_engine.map(|key| (key, key.shown(&record.plan.engine_facts)));
    for (key, value) in host.into_iter().chain(engine) {
        facts.extend(value.map(|value| (key.title.to_owned(), value)));
    }
    facts.push(("Seed".to_owned(), run.seed.to_string()));
    facts
}
