//! The PostgreSQL target against pgio 1.0 and pgbench on a private server of our own, alternating.

pub(super) mod orders;
mod ours;
mod pgbench;
mod pgio;
mod server;

use super::table::{Pairs, figure, print_pairs};
use super::{Options, assay, warn};
use anyhow::{Result, bail};
use ours::Assay;
use pgbench::Pgbench;
use pgio::{Case, Pgio};
use server::{Cluster, Reading};

/// What `--only` takes.
const PARTS: [&str; 3] = ["load", "pgio", "pgbench"];
/// All blocks of both sides fit.
const CACHED: [&str; 1] = ["shared_buffers=1GB"];
/// Next to none do; the page cache has them all.
const PAGE_CACHE: [&str; 1] = ["shared_buffers=16MB"];
/// Where the loop of operations runs.
const LOOPS: [&str; 2] = ["client", "server"];

/// Loads, selects, and what a transaction costs the client.
///
/// # Errors
/// An unknown part, a peer that is wanted and missing, or a measurement that failed.
pub(super) fn run(options: &Options) -> Result<()> {
    let wanted = options.only.as_deref();
    if let Some(name) = wanted
        && !PARTS.contains(&name)
    {
        bail!("--only {name}: no such part of postgres");
    }
    let Some(mut cluster) = Cluster::create(&options.dir)? else {
        println!("!! left out: no PostgreSQL server is installed (Debian package `postgresql`)");
        return Ok(());
    };
    if !(cluster.has("psql") && cluster.has("pgbench")) {
        println!("!! left out: psql and pgbench are wanted too (Debian package `postgresql`)");
        return Ok(());
    }
    let mut pgio = Pgio::find(&options.dir)?;
    println!("server: {}; each side's sessions over its Unix socket", cluster.version()?);
    if pgio.is_none() {
        println!(
            "!! no pgio: its rows are left out. Name its directory, archive or git repository in {}",
            pgio::VARIABLE
        );
    }
    cluster.start(&CACHED)?;
    let case = Case::of(options);
    let chosen = |name: &str| wanted.is_none_or(|wanted| wanted == name);
    // The last pair's tables stay for what follows.
    let loads = if chosen("load") { options.pairs } else { 1 };
    load(options, &cluster, pgio.as_ref(), &case, loads)?;
    if let Some(pgio) = &mut pgio
        && chosen("pgio")
    {
        selects(options, &cluster, pgio, &case, "all in shared buffers", ">= 1.2 (better one)")?;
        cluster.start(&PAGE_CACHE)?;
        selects(options, &cluster, pgio, &case, "from the page cache", ">= 1.05 (better one)")?;
        cluster.start(&CACHED)?;
    }
    if chosen("pgbench") {
        for &work_unit in options.size(&[1, 64][..], &[64]) {
            statements(options, &cluster, &Case { work_unit, ..case })?;
        }
    }
    Assay::new(options, &cluster).destroy(&case)
}

/// Rows loaded per second, and the bytes of the tables that came of it.
fn load(options: &Options, cluster: &Cluster, pgio: Option<&Pgio>, case: &Case, pairs: usize) -> Result<()> {
    let assay = Assay::new(options, cluster);
    let rows = case.scale as f64 * f64::from(case.schemas);
    let mut indexed = Pairs::new("rows/s, loaded and indexed", ">= 1.5");
    let mut without = Pairs::new("rows/s, without dense table", "");
    let mut ready = Pairs::new("rows/s, vacuumed and on disk", ">= 1.5");
    let mut bytes = Pairs::new("bytes of the tables", "1");
    // One that does not count: it creates the segments of the log that all later ones use again.
    assay.prepare(case)?;
    for pair in 0..pairs {
        let theirs_first = pair % 2 == 1;
        assay.destroy(case)?;
        let mut ours = None;
        if !theirs_first {
            cluster.query("checkpoint")?;
            ours = Some(assay.prepare(case)?);
        }
        if let Some(pgio) = pgio {
            pgio.configure(&Case { threads: 2, ..*case })?;
            cluster.query("checkpoint")?;
            let theirs = pgio.load(cluster)?;
            let settled_s = settle(cluster, case)?;
            let loaded_s = theirs.base_s + theirs.group_s;
            indexed.theirs.push(rows / loaded_s);
            without.theirs.push(rows / theirs.group_s);
            ready.theirs.push(rows / (loaded_s + settled_s));
            bytes.theirs.push(table_bytes(cluster, "public.pgio1", case)?);
        }
        let (whole_s, load_s) = match ours {
            Some(ours) => ours,
            None => {
                cluster.query("checkpoint")?;
                assay.prepare(case)?
            }
        };
        indexed.ours.push(rows / load_s);
        without.ours.push(rows / load_s);
        ready.ours.push(rows / whole_s);
        bytes.ours.push(table_bytes(cluster, "assay.cf1_1", case)?);
    }
    println!("\nload of {} x {} rows:", case.schemas, case.scale);
    let rows = [indexed, without, ready, bytes];
    print_pairs(options, "load", ["assay", "pgio"], &rows);
    println!(
        "(loaded and indexed: ours by its own summary; pgio's dense table and its tables with their indexes, by the \
         lines its setup.sh prints, without its drops and its sleep. Vacuumed and on disk: our whole command, which also \
         verifies; pgio's load, and then by us: vacuum (freeze, analyze) of its tables side by side, and a checkpoint)"
    );
    Ok(())
}

/// What assay does and pgio leaves to others: its tables vacuumed, side by side, and written. The time, s.
fn settle(cluster: &Cluster, case: &Case) -> Result<f64> {
    let begin = std::time::Instant::now();
    std::thread::scope(|scope| {
        let vacuums: Vec<_> = (1..=case.schemas)
            .map(|schema| {
                let sql = format!("vacuum (freeze, analyze) pgio{schema}");
                scope.spawn(move || cluster.query(&sql))
            })
            .collect();
        for vacuum in vacuums {
            match vacuum.join() {
                Ok(done) => done.map(drop)?,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        cluster.query("checkpoint")
    })?;
    Ok(begin.elapsed().as_secs_f64())
}

fn table_bytes(cluster: &Cluster, table: &str, case: &Case) -> Result<f64> {
    let one: f64 = cluster.query(&format!("select pg_relation_size('{table}')"))?.parse()?;
    Ok(one * f64::from(case.schemas))
}

/// Block accesses per second of both, with our loop in either place.
fn selects(
    options: &Options,
    cluster: &Cluster,
    pgio: &mut Pgio,
    case: &Case,
    what: &str,
    goal: &'static str,
) -> Result<()> {
    let assay = Assay::new(options, cluster);
    // Its load was vacuumed and analyzed as ours is.
    for schema in 1..=case.schemas {
        cluster.query(&format!("select sum(scratch) from pgio{schema}"))?;
        cluster.query(&format!("select count(c2) from assay.cf1_{schema}"))?;
    }
    let plan = pgio.choose_plan(cluster, case)?;
    let mut rows = LOOPS.map(|place| Rows::new(place, goal));
    let mut line = String::new();
    for pair in 0..options.pairs {
        let mut theirs = None;
        if pair % 2 == 1 {
            theirs = Some(pgio.run(cluster)?);
        }
        let mut ours = Vec::new();
        for place in LOOPS {
            ours.push(ours_run(cluster, &assay, case, place)?);
        }
        let theirs = match theirs {
            Some(theirs) => theirs,
            None => pgio.run(cluster)?,
        };
        for (rows, (delta, operations, told)) in rows.iter_mut().zip(&ours) {
            rows.push(case, (delta, *operations, *told), (&theirs.delta, theirs.selects));
        }
        line = theirs.line;
    }
    println!("\nselects {what}, WORK_UNIT {}, {} sessions:", case.work_unit, case.schemas * case.threads);
    for rows in rows {
        println!("LOOP={}", rows.place);
        let told = super::table::median(&rows.told);
        let part = format!("{what}, LOOP={}", rows.place);
        print_pairs(options, &part, ["assay", "pgio"], &rows.pairs);
        println!("our own report says {} block accesses/s", figure(told));
    }
    println!("pgio's own line: {line}");
    println!(
        "(pgio with the plan that served it best: {})",
        match plan {
            "" => "the planner's, a bitmap heap scan unless random_page_cost is low",
            options => options,
        }
    );
    println!(
        "(block accesses: increase of blks_hit + blks_read of pg_stat_database between two quiet points around the \
         sessions, over the {} s that each session loops)",
        case.run_s
    );
    Ok(())
}

type Told = (Reading, f64, f64);

/// The server's counters around a run of ours, its operations, and the block accesses it reports itself.
fn ours_run(cluster: &Cluster, assay: &Assay<'_>, case: &Case, place: &str) -> Result<Told> {
    let before = cluster.reading()?;
    let (record, _) = assay.run(case, 0, &assay::settings(&[("LOOP", place)]))?;
    let after = cluster.reading()?;
    warn(&record);
    Ok((after.since(&before), record.total("execute_count"), record.per_s("session_logical_reads_blocks")))
}

/// What is compared of two runs.
struct Rows {
    place: &'static str,
    pairs: [Pairs; 5],
    told: Vec<f64>,
}

impl Rows {
    fn new(place: &'static str, goal: &'static str) -> Self {
        Self {
            place,
            pairs: [
                Pairs::new("block accesses/s", goal),
                Pairs::new("of them not in buffers/s", ""),
                Pairs::new("operations/s", ""),
                Pairs::new("blocks an operation", ""),
                Pairs::new("server CPU a block access, us", ""),
            ],
            told: Vec::new(),
        }
    }

    fn push(&mut self, case: &Case, ours: (&Reading, f64, f64), theirs: (&Reading, f64)) {
        let seconds = case.run_s as f64;
        let figures = |delta: &Reading, operations: f64| {
            let blocks = delta.hits + delta.reads;
            [
                blocks / seconds,
                delta.reads / seconds,
                operations / seconds,
                blocks / operations,
                delta.cpu_s * 1e6 / blocks,
            ]
        };
        let (delta, operations, told) = ours;
        self.told.push(told);
        let figures = figures(delta, operations).into_iter().zip(figures(theirs.0, theirs.1));
        for (row, (our, their)) in self.pairs.iter_mut().zip(figures) {
            row.ours.push(our);
            row.theirs.push(their);
        }
    }
}

/// Transactions per second and client CPU each, 1, 8 and 64 clients on one table.
fn statements(options: &Options, cluster: &Cluster, case: &Case) -> Result<()> {
    let assay = Assay::new(options, cluster);
    let pgbench = Pgbench::new(options, cluster, case)?;
    cluster.query("select count(c2) from assay.cf1_1")?;
    println!("\none prepared select of WORK_UNIT {}, all in shared buffers:", case.work_unit);
    for &clients in options.size(&[1, 8, 64][..], &[8]) {
        let threads = pgbench.best_threads(clients)?;
        let mut rows = [Pairs::new("transactions/s", ">= 1.0"), Pairs::new("client CPU each, us", "<= 1.0")];
        let case = Case { schemas: 1, threads: clients, ..*case };
        for pair in 0..options.pairs {
            let mut theirs = None;
            if pair % 2 == 1 {
                theirs = Some(pgbench.run(clients, threads, case.run_s)?);
            }
            let (record, window) = assay.run(&case, 1, &[])?;
            let theirs = match theirs {
                Some(theirs) => theirs,
                None => pgbench.run(clients, threads, case.run_s)?,
            };
            warn(&record);
            let rate = record.per_s("execute_count");
            rows[0].ours.push(rate);
            rows[0].theirs.push(theirs.tps);
            rows[1].ours.push(window.cpu_s * 1e6 / (rate * window.elapsed_s));
            rows[1].theirs.push(theirs.cpu_us);
        }
        println!("{clients} clients (pgbench -j {threads}):");
        let part = format!("{clients} clients");
        print_pairs(options, &part, ["assay", "pgbench"], &rows);
    }
    Ok(())
}
