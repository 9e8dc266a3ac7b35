//! The tables of a report, in the order of the text report.

mod probes;
mod run;

use super::table::{Cell, Table};
use assay_measure::record::{Record, Truth};
use assay_measure::units::fixed;

/// A wall time to the second, for people.
pub(crate) fn wall(rfc3339: &str) -> String {
    let (day, rest) = rfc3339.split_once('T').unwrap_or((rfc3339, ""));
    let time: String = rest.chars().take(8).collect();
    match rest.ends_with('Z') {
        true => format!("{day} {time} UTC"),
        false => rfc3339.to_owned(),
    }
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
        facts.push((
            "Measured window".to_owned(),
            format!("{} s", fixed(elapsed, 1)),
        ));
    }
    if let Some(server) = &record.server
        && !server.version.is_empty()
    {
        facts.push(("Server".to_owned(), server.version.clone()));
    }
    if let Some(import) = &record.import {
        facts.push(("Imported from".to_owned(), import.format.clone()));
    }
    let host = [
        "cpu_model",
        "cpu",
        "cpus",
        "memory",
        "kernel",
        "virtualization",
    ];
    for name in host {
        let found = record.host.facts.iter().find(|fact| fact.name == name);
        facts.extend(found.map(|fact| (fact.name.replace('_', " "), fact.value.clone())));
    }
    let engine = [
        "io_mode",
        "io_mode_achieved",
        "block_size",
        "device_fs_type",
        "device_disk",
    ];
    for name in engine {
        let found = record
            .plan
            .engine_facts
            .iter()
            .find(|fact| fact.name == name);
        facts.extend(found.map(|fact| (fact.name.replace('_', " "), fact.value.clone())));
    }
    facts.push(("Seed".to_owned(), run.seed.to_string()));
    facts
}

/// The tables of a record.
pub(crate) fn of(record: &Record) -> Vec<Table> {
    let mut tables = if let Some(info) = &record.recovery {
        probes::recovery(info)
    } else if let Some(info) = &record.sync {
        probes::sync(info)
    } else if let Some(info) = &record.storage {
        probes::storage(info)
    } else {
        run::tables(record)
    };
    if let Some(info) = &record.import {
        tables.retain(|table| !table.rows.is_empty());
        tables.extend(probes::imported(info));
    }
    tables.push(timeline(record));
    tables.push(identities(record));
    tables.push(parameters(record));
    tables.push(named_facts("Engine Facts", &record.plan.engine_facts));
    tables.push(named_facts("Host Facts", &record.host.facts));
    let matters = |table: &Table| !table.rows.is_empty() || table.title != "Time Line";
    tables.retain(matters);
    tables
}

fn timeline(record: &Record) -> Table {
    let rows = record.timeline.iter().map(|row| {
        vec![
            Cell::figure(&row.at_s, 3),
            Cell::words(wall(&row.wall)),
            Cell::words(&row.kind),
            Cell::words(&row.text),
            Cell::words(&row.from),
            Cell::words(&row.to),
            Cell::words(&row.status),
            Cell::figure(&row.took_s, 3),
        ]
    });
    let columns = [
        "after the gate (s)",
        "wall time",
        "kind",
        "what",
        "from",
        "to",
        "ended",
        "took (s)",
    ];
    Table::new("Time Line", "What happened during the run", &columns)
        .with(rows.collect(), "nothing happened")
}

fn identities(record: &Record) -> Table {
    let rows = record.integrity.iter().map(|identity| {
        let state = match (&identity.ok, identity.exact) {
            (Truth::Holds, _) => "holds".to_owned(),
            (Truth::Violated, true) => "VIOLATED, A BUG OF ASSAY".to_owned(),
            (Truth::Violated, false) => "violated".to_owned(),
            (Truth::Na(reason), _) => format!("n/a ({reason})"),
        };
        vec![
            Cell::words(&identity.id),
            Cell::words(state),
            Cell::words(if identity.exact { "exact" } else { "" }),
            Cell::words(&identity.scope),
            Cell::words(&identity.rule),
            Cell::words(&identity.sentence),
        ]
    });
    let columns = ["identity", "state", "kind", "scope", "rule", "outcome"];
    let caption =
        "exact: a violation is a bug of assay; whole run: gate to drained; window: begin to end";
    Table::new("Integrity Detail", caption, &columns)
        .with(rows.collect(), "no identity was evaluated")
}

fn parameters(record: &Record) -> Table {
    let rows = record.plan.settings.iter().map(|line| {
        let value = if line.value.is_empty() {
            "(unset)"
        } else {
            &line.value
        };
        vec![
            Cell::words(&line.name),
            Cell::words(value),
            Cell::words(&line.origin),
        ]
    });
    let columns = ["parameter", "value", "origin"];
    Table::new(
        "Parameters",
        "Effective configuration with origins",
        &columns,
    )
    .with(rows.collect(), "absent")
}

fn named_facts(title: &str, facts: &[assay_measure::snapshot::Fact]) -> Table {
    let rows = facts
        .iter()
        .map(|fact| vec![Cell::words(&fact.name), Cell::words(&fact.value)]);
    Table::new(title, title, &["fact", "value"]).with(rows.collect(), "absent")
}
