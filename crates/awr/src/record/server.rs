//! What only the run of a database server has: the field's result line, rows before and after, shares that only the
//! server knows, and the possible error of its late counters.

use crate::deltas::{Deltas, NO_WINDOW, UNSUPPORTED, counter};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::facts::{self, FactKey};
use assay_measure::record::{Figure, PercentRow, Record, ServerInfo, ServerRow};
use assay_measure::snapshot::Snapshot;
use std::collections::BTreeMap;

/// The section of a server; `None` where the target is none.
pub(super) fn server(deltas: &Deltas<'_>, record: &Record) -> Option<ServerInfo> {
    if !deltas.is_server() {
        return None;
    }
    let w = &deltas.window;
    let text = |key: FactKey| {
        let known = key.find(&deltas.data.engine_facts);
        known.unwrap_or_default().to_owned()
    };
    let (schemas, threads) = layout(deltas);
    Some(ServerInfo {
        version: text(facts::SERVER_VERSION),
        database: text(facts::DATABASE),
        loop_place: deltas.setting("LOOP").unwrap_or_default().to_lowercase(),
        schemas_count: schemas,
        threads_per_schema_count: threads,
        reads_blocks_per_s: w.rate(counter_catalog::PHYSICAL_READS),
        cache_hits_blocks_per_s: w.rate(counter_catalog::CACHE_HITS),
        rows: vec![row("BEFORE", w.from), row("AFTER", w.to)],
        shares: shares(deltas),
        end_point_error_pct: Figure::decimal(100.0 * ends_s(deltas)).per(w.elapsed_s, NO_WINDOW),
        published_late: late_s(deltas).is_some(),
        driver_of_host_pct: match facts::IN_PROCESS.find(&deltas.data.engine_facts) {
            Some(_) => Figure::na("the driver threads do the database's own work"),
            None => of_host(record, &record.driver.thread_cpu_s),
        },
    })
}

/// How late its sessions publish what they did at most, s; `None` where they do at every mark.
fn late_s(deltas: &Deltas<'_>) -> Option<f64> {
    let told = facts::LATE_S.find(&deltas.data.engine_facts)?;
    told.parse().ok()
}

/// By how much the two ends of a counter may be off together, s.
fn ends_s(deltas: &Deltas<'_>) -> f64 {
    let data = deltas.data;
    let skew = (data.begin.skew_ns + data.end.skew_ns) as f64 / 1e9;
    // Both ends of the window count.
    skew + 2.0 * late_s(deltas).unwrap_or(0.0)
}

/// CPU seconds as a share of what this host's CPUs had in the window.
fn of_host(record: &Record, cpu_s: &Figure) -> Figure {
    let cpus = record.os.cpus_count.clone();
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    match cpus.value() {
        Some(cpus) => cpu_s.scaled(100.0).per(cpus * elapsed, NO_WINDOW),
        None => cpus,
    }
}

/// Schemas that had sessions, and how many each had.
fn layout(deltas: &Deltas<'_>) -> (Figure, Figure) {
    let mut sessions: BTreeMap<u64, u64> = BTreeMap::new();
    for session in &deltas.data.per_session {
        *sessions.entry(session.schema).or_default() += 1;
    }
    let Some(first) = sessions.values().next().copied() else {
        let none = || Figure::na("no per-session readings");
        return (none(), none());
    };
    let even = sessions.values().all(|n| *n == first);
    let threads = if even { Figure::Count(first) } else { Figure::na("not the same in every schema") };
    (Figure::Count(sessions.len() as u64), threads)
}

fn row(when: &str, mark: &Snapshot) -> ServerRow {
    let get = |stat: Stat| counter(&mark.stats, stat);
    ServerRow {
        when: when.to_owned(),
        hits_blocks: get(counter_catalog::CACHE_HITS),
        reads_blocks: get(counter_catalog::PHYSICAL_READS),
        tuples_returned_count: get(counter_catalog::TUPLES_RETURNED),
        tuples_fetched_count: get(counter_catalog::TUPLES_FETCHED),
        tuples_updated_count: get(counter_catalog::TUPLES_UPDATED),
    }
}

/// A part of a whole, both counted by the server, as a percentage.
fn shares(deltas: &Deltas<'_>) -> Vec<PercentRow> {
    const SHARES: [(&str, Stat, Stat); 6] = [
        ("Table Block Hit %", counter_catalog::TABLE_HITS, counter_catalog::TABLE_GETS),
        ("Index Block Hit %", counter_catalog::INDEX_HITS, counter_catalog::INDEX_GETS),
        ("Heap-Only Updates %", counter_catalog::TABLE_UPDATES_HOT, counter_catalog::TABLE_UPDATES),
        ("Updates to Another Page %", counter_catalog::TABLE_UPDATES_NEW_PAGE, counter_catalog::TABLE_UPDATES),
        ("Full Page Images per Log Record %", counter_catalog::WAL_FULL_PAGES, counter_catalog::REDO_ENTRIES),
        ("Writes by Sessions %", counter_catalog::BUFFERS_WRITTEN_BY_BACKENDS, counter_catalog::PHYSICAL_WRITES),
    ];
    let w = &deltas.window;
    let share = |(name, part, whole): (&str, Stat, Stat)| {
        let (part, whole) = (w.get(part), w.get(whole));
        let value_pct = match whole.value() {
            Some(whole) => part.scaled(100.0).per(whole, "nothing counted"),
            None => whole,
        };
        PercentRow { name: name.to_owned(), value_pct }
    };
    let rows = SHARES.map(share).into_iter();
    rows.filter(|row| row.value_pct.reason() != Some(UNSUPPORTED)).collect()
}

#[cfg(test)]
mod tests {
    use assay_measure::facts;
    use assay_testkit::fixtures;

    #[test]
    fn counters_are_late_where_the_server_says_so_whatever_its_version() {
        let server = |late: Option<&str>| {
            let mut run = fixtures::postgres(15);
            run.engine_facts.retain(|fact| !fact.name.contains("version"));
            run.engine_facts.extend(late.map(|s| facts::LATE_S.fact(s)));
            let server = crate::record::build(&run).instance.server;
            let server = server.expect("a server");
            (server.published_late, server.end_point_error_pct.value())
        };
        let (at_marks, late) = (server(None), server(Some("1")));
        assert!(!at_marks.0 && late.0);
        assert!(late.1 > at_marks.1, "{late:?} {at_marks:?}");
    }

    #[test]
    fn a_database_in_this_process_has_no_driver_beside_it_and_no_processes() {
        let mut run = fixtures::postgres(15);
        run.engine_facts.push(facts::IN_PROCESS.fact("yes"));
        let mut record = crate::record::build(&run);
        let server = record.instance.server.as_ref().expect("a server");
        assert!(server.driver_of_host_pct.reason().is_some());
        let text = crate::testing::text(&record);
        assert!(text.contains(", session threads ") && !text.contains("server processes"), "{text}");
        assert!(text.contains("Database Library") && text.contains("blocks that the library asked"), "{text}");
        assert!(!text.contains("Database Server") && !text.contains("Scanned in the server"), "{text}");
        record.driver.thread_cpu_pct = 99.0.into();
        record.driver.thread_run_delay_s = 1e6.into();
        record.checks.hit_measured_pct = 100.0.into();
        record.instance.time_model.db_cpu_us = record.instance.time_model.db_time_us.clone();
        let found = crate::rules::advise(&record);
        for id in ["R1", "R18", "R35", "R36"] {
            let text = &found.iter().find(|found| found.id == id).expect(id).text;
            assert!(!text.contains("server") && !text.contains("DRIVER_THREADS"), "{id}: {text}");
        }
    }
}
