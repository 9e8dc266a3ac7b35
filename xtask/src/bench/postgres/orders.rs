//! Order entry against pgbench scripts that call the same functions, and its load against COPY of the same rows by psql.

use super::super::assay::Record;
use super::super::process::{self, When, Window};
use super::super::table::{Pairs, print_pairs};
use super::super::{Options, warn};
use super::CACHED;
use super::pgbench::tps;
use super::server::{Cluster, DATABASE};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;
use std::time::Instant;

/// Both sides commit without waiting for the disk: the client's cost is measured, not the disk's mood.
const COMMIT: &str = "off";
/// What pgbench's sessions have as ours do.
const SESSION: &str = "-c search_path=pg_catalog,assay_orders -c plan_cache_mode=force_generic_plan -c jit=off \
                       -c max_parallel_workers_per_gather=0 -c synchronous_commit=off";
/// The four tables that hold nearly all rows, biggest first.
const BIG: [&str; 5] = ["order_items", "logon", "addresses", "card_details", "orders"];

/// Loads, then transactions of 1, 8 and 64 clients.
///
/// # Errors
/// A measurement that failed.
pub(in super::super) fn run(options: &Options) -> Result<()> {
    let Some(mut cluster) = Cluster::create(&options.dir)? else {
        println!("!! left out: no PostgreSQL server is installed (Debian package `postgresql`)");
        return Ok(());
    };
    if !(cluster.has("psql") && cluster.has("pgbench")) {
        println!("!! left out: psql and pgbench are wanted too (Debian package `postgresql`)");
        return Ok(());
    }
    println!("server: {}; each side's sessions over its Unix socket", cluster.version()?);
    cluster.start(&CACHED)?;
    let bench = Bench { options, cluster: &cluster };
    bench.load()?;
    for &clients in options.size(&[1, 8, 64][..], &[8]) {
        bench.transactions(clients)?;
    }
    process::run(&mut bench.command("destroy"), None)?;
    Ok(())
}

struct Bench<'a> {
    options: &'a Options,
    cluster: &'a Cluster,
}

impl Bench<'_> {
    fn command(&self, verb: &str) -> Command {
        let mut command = self.cluster.client(&self.options.assay);
        command.args(["orders", verb]).arg(format!("--target=postgres:///{DATABASE}")).current_dir(&self.options.dir);
        command
    }

    /// Rows a second: ours while rows are generated and copied, psql's while it copies files of the same rows into tables
    /// without keys.
    fn load(&self) -> Result<()> {
        let scale = self.options.size("0.2", "0.01");
        let mut row = Pairs::new("rows/s copied", ">= 1.0");
        for pair in 0..self.options.pairs {
            if pair > 0 {
                process::run(&mut self.command("destroy"), None)?;
            }
            self.cluster.query("checkpoint")?;
            let mut command = self.command("prepare");
            command.args(["--scale", scale, "--seed", "1", "--format", "json"]);
            let (text, _) = process::run(&mut command, None)?;
            let told: Value = serde_json::from_str(&text).context("the load summary")?;
            let rate = told["summary"]["rows_per_s"].as_f64();
            row.ours.push(rate.context("no rows_per_s in the load summary")?);
            row.theirs.push(self.copy_by_psql()?);
        }
        println!("\nload of scale {scale}:");
        print_pairs(self.options, "load", ["assay", "psql COPY"], &[row]);
        println!("(psql: the rows of {} from files, one table after the other)", BIG.join(", "));
        Ok(())
    }

    fn copy_by_psql(&self) -> Result<f64> {
        let mut rows = 0.0;
        let mut seconds = 0.0;
        for table in BIG {
            let file = self.options.dir.join(format!("{table}.copy"));
            self.psql(&format!("\\copy assay_orders.{table} to '{}'", file.display()))?;
            self.cluster.query(&format!("create table copied (like assay_orders.{table})"))?;
            self.cluster.query("checkpoint")?;
            let begin = Instant::now();
            let told = self.psql(&format!("\\copy copied from '{}'", file.display()))?;
            seconds += begin.elapsed().as_secs_f64();
            let count = told.trim().strip_prefix("COPY ").and_then(|n| n.parse::<f64>().ok());
            rows += count.with_context(|| format!("psql said {told}"))?;
            self.cluster.query("drop table copied")?;
            std::fs::remove_file(&file)?;
        }
        Ok(rows / seconds)
    }

    fn psql(&self, line: &str) -> Result<String> {
        let mut command = self.cluster.client("psql");
        command.args(["-XA", "-v", "ON_ERROR_STOP=1", "-c", line]);
        Ok(process::run(&mut command, None)?.0)
    }

    /// Transactions per second and client CPU each.
    fn transactions(&self, clients: u32) -> Result<()> {
        let scripts = self.scripts()?;
        let mut rows = [Pairs::new("transactions/s", ">= 1.0"), Pairs::new("client CPU each, us", "<= 0.9")];
        for pair in 0..self.options.pairs {
            let mut theirs = None;
            if pair % 2 == 1 {
                theirs = Some(self.pgbench(clients, &scripts)?);
            }
            let (record, window) = self.ours(clients)?;
            let theirs = match theirs {
                Some(theirs) => theirs,
                None => self.pgbench(clients, &scripts)?,
            };
            warn(&record);
            let rate = record.per_s("execute_count");
            let ours = (rate, window.cpu_s * 1e6 / (rate * window.elapsed_s));
            for (row, (our, their)) in rows.iter_mut().zip([(ours.0, theirs.0), (ours.1, theirs.1)]) {
                row.ours.push(our);
                row.theirs.push(their);
            }
        }
        println!("\n{clients} clients, current mix, synchronous_commit={COMMIT}:");
        print_pairs(self.options, &format!("{clients} clients"), ["assay", "pgbench"], &rows);
        Ok(())
    }

    fn ours(&self, clients: u32) -> Result<(Record, Window)> {
        let place = self.options.dir.join("run");
        let run_s = self.options.run_s();
        let mut command = self.command("run");
        command
            .args(["--sessions", &clients.to_string(), "--warmup", "1s"])
            .args(["--time", &format!("{run_s}s"), "--seed", "1"])
            .args(["--set", &format!("COMMIT_MODE={COMMIT}"), "--set", "CONNECT_RATE=1000"])
            .args(["--set", "VERIFY=FALSE", "--format", "json", "-o"])
            .arg(&place);
        let when = When::seconds(1, run_s.saturating_sub(2).max(1));
        let outcome = process::run_begun(&mut command, &place.join("series.jsonl"), when);
        let removed = std::fs::remove_dir_all(&place);
        let (text, window) = outcome?;
        removed.with_context(|| format!("{}", place.display()))?;
        Ok((Record::parse(&text)?, window))
    }

    /// Transactions per second and client CPU each, us; on as many threads as there are CPUs.
    fn pgbench(&self, clients: u32, scripts: &[(PathBuf, u32)]) -> Result<(f64, f64)> {
        let cores = u32::try_from(std::thread::available_parallelism()?.get())?;
        let run_s = self.options.run_s();
        let mut command = self.cluster.client("pgbench");
        command.env("PGOPTIONS", SESSION).args(["-n", "-M", "prepared"]);
        for (script, weight) in scripts {
            command.arg("-f").arg(format!("{}@{weight}", script.display()));
        }
        command
            .args(["-c", &clients.to_string(), "-j", &cores.min(clients).to_string()])
            .args(["-T", &(run_s + 2).to_string()])
            .current_dir(&self.options.dir);
        let (text, window) = process::run(&mut command, Some(When::seconds(1, run_s)))?;
        let rate = tps(&text).with_context(|| format!("no tps in {text}"))?;
        if text.contains("number of failed transactions") && !text.contains("failed transactions: 0 ") {
            bail!("pgbench failed transactions: {text}");
        }
        Ok((rate, window.cpu_s * 1e6 / (rate * window.elapsed_s)))
    }

    /// A script for each transaction of the current mix, with its weight: the calls that assay makes, with inputs drawn
    /// by pgbench.
    fn scripts(&self) -> Result<Vec<(PathBuf, u32)>> {
        let customers = self.cluster.query(
            "select metadata_value from assay_orders.orderentry_metadata where metadata_key = 'SOE_MAX_CUSTOMER_ID'",
        )?;
        let mut scripts = Vec::new();
        for Script { name, weight, inputs, call } in reading().into_iter().chain(writing(&customers)) {
            let path = self.options.dir.join(format!("{name}.sql"));
            std::fs::write(&path, format!("{inputs}select * from soe_{call}, 0::float8, 0::float8);\n"))?;
            scripts.push((path, weight));
        }
        Ok(scripts)
    }
}

/// A transaction as pgbench does it: its call lacks the pause, which is none.
struct Script {
    name: &'static str,
    weight: u32,
    inputs: String,
    call: String,
}

/// Draws numbers: a name, the lowest and the highest of each.
fn set(numbers: &[(&str, u32, &str)]) -> String {
    let one = |(name, low, high): &(&str, u32, &str)| format!("\\set {name} random({low}, {high})\n");
    numbers.iter().map(one).collect()
}

/// Draws so many numbers from 1.
fn many(name: &str, of: u32, high: &str) -> String {
    (1..=of).map(|at| set(&[(&format!("{name}{at}"), 1, high)])).collect()
}

fn array(name: &str, of: u32) -> String {
    let all: Vec<String> = (1..=of).map(|at| format!(":{name}{at}")).collect();
    format!("array[{}]::int4[]", all.join(", "))
}

/// A first name by the number `:f` and a last name by `:t`, both from 0 to 999, as assay draws them: what pgbench sends
/// otherwise is one name, whose pages every client has at hand. It costs the server 10 to 20 us a call, which one transaction
/// in five makes.
fn names() -> String {
    let begin = "array['al','be','cor','da','el','fa','gri','ho','jo','ka']";
    let middle = "array['ba','ce','do','li','mo','na','ri','sa','te','vi']";
    let first = "array['','an','el','ia','na','ne','ra','ron','s','tta']";
    let last = "array['berg','by','croft','dale','ford','ham','ley','man','son','ton']";
    let name = |of: &str, end: &str| {
        format!("({begin})[1 + :{of} / 100] || ({middle})[1 + :{of} / 10 % 10] || ({end})[1 + :{of} % 10]")
    };
    format!("{}, {}", name("f", first), name("t", last))
}

fn reading() -> [Script; 3] {
    let drawn = [("f", 0, "999"), ("t", 0, "999")];
    let place = "'Town'::text, 'County'::text, 'Country'::text, :h::int4";
    [
        Script {
            name: "ncr",
            weight: 15,
            inputs: set(&[
                ("h", 1, "199"),
                ("cr", 100, "4999"),
                ("m", 145, "170"),
                ("d", 7300, "21899"),
                ("k", 1_111_111_111, "1410065406"),
                ("e", 365, "1459"),
                ("s", 1111, "9998"),
                ("l", 0, "2"),
            ]) + &set(&drawn),
            call: format!(
                "customer_registration({}, 'EN'::text, 'Territory'::text, {place}, :cr::int4, :m::int4, \
                 :d::int4, :k::int8, :e::int4, :s::int4, (:l = 0)",
                names()
            ),
        },
        Script {
            name: "ucd",
            weight: 10,
            inputs: set(&[("h", 1, "199")]) + &set(&drawn),
            call: format!("update_customer_details({}, {place}", names()),
        },
        Script {
            name: "bp",
            weight: 50,
            inputs: set(&[("n", 1, "23")]) + &many("p", 24, "999"),
            call: format!("browse_products({}, :n::int4", array("p", 24)),
        },
    ]
}

fn writing(customers: &str) -> [Script; 3] {
    let customer = [("c", 1, customers), ("l", 0, "2")];
    let head = set(&[("n", 1, "23"), ("x", 1, "999"), ("co", 1, "4"), ("b", 2, "7"), ("s", 0, "3")]);
    [
        Script {
            name: "op",
            weight: 40,
            inputs: set(&customer) + &head + &many("g", 24, "198") + &many("w", 24, "999") + &many("st", 8, "999"),
            call: format!(
                "order_products(:c::int8, (:l = 0), {}, {}, :n::int4, :x::int4, :co::int4, :b::int4, {}, :s::int4",
                array("g", 24),
                array("w", 24),
                array("st", 8)
            ),
        },
        Script {
            name: "po",
            weight: 5,
            inputs: set(&[("w", 1, "999"), ("s", 5, "9")]),
            call: "process_orders(:w::int4, :s::int4".to_owned(),
        },
        Script {
            name: "bo",
            weight: 5,
            inputs: set(&customer) + &set(&[("a", 0, "1000000"), ("b", 0, "1000000")]),
            call: "browse_orders(:c::int8, (:l = 0), :a::int8, :b::int8".to_owned(),
        },
    ]
}
