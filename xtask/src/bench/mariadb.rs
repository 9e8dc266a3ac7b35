//! The MariaDB target against sysbench with the same prepared statement, on a throw-away server of assay's, alternating.

use super::assay::Record;
use super::process::{self, When, Window};
use super::table::{Pairs, alternate, print_pairs};
use super::{Options, warn};
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

/// Rows of the one schema; all of them fit in the buffer pool.
const SCALE: u64 = 10_000;
const POOL: &str = "MYSQL_SET=innodb_buffer_pool_size=1G; max_connections=200";
/// sysbench's place if it is not in PATH.
const PEER: &str = "sysbench";

/// Statements per second and client CPU of each, at 1, 8 and 64 clients, and with the loop in the server.
///
/// # Errors
/// A measurement that failed.
pub(super) fn run(options: &Options) -> Result<()> {
    if Command::new(PEER).arg("--version").output().is_err() {
        println!("!! left out: no sysbench is installed (Debian package `sysbench`)");
        return Ok(());
    }
    let Some(server) = Server::start(options)? else {
        return Ok(());
    };
    println!("server: {}; each side's sessions over its Unix socket", server.version);
    prepare(options, &server)?;
    for &work_unit in options.size(&[1, 64][..], &[64]) {
        let peer = Sysbench::new(options, &server, work_unit)?;
        println!("\none prepared select of WORK_UNIT {work_unit}, all in the buffer pool:");
        for &clients in options.size(&[1, 8, 64][..], &[8]) {
            statements(options, &server, &peer, clients)?;
        }
    }
    Ok(())
}

/// A held server: it ends when its input does.
struct Server {
    child: Child,
    input: Option<ChildStdin>,
    url: String,
    socket: PathBuf,
    version: String,
}

impl Server {
    /// None, said aloud, where there are no programs.
    fn start(options: &Options) -> Result<Option<Self>> {
        let mut child = Command::new(&options.assay)
            .args(["temp-server", "--target", "temp:mariadb", "--set", POOL])
            .args(["--set", &format!("SCALE={SCALE}")])
            .args(["--set", &format!("MYSQL_DIR={}", options.dir.display())])
            .current_dir(&options.dir)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let output = child.stdout.take().context("its output")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        if line.is_empty() {
            child.wait()?;
            println!("!! left out: no MariaDB server (Debian packages `mariadb-server-core`, `mariadb-client-core`)");
            return Ok(None);
        }
        let said: Value = serde_json::from_str(&line).context("what temp-server says")?;
        let text = |key: &str| said[key].as_str().unwrap_or_default().to_owned();
        Ok(Some(Self {
            input: child.stdin.take(),
            child,
            url: text("server_url"),
            socket: Path::new(&text("server_directory")).join("data/server.sock"),
            version: text("server"),
        }))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.child.wait();
    }
}

fn command(options: &Options, server: &Server, verb: &str) -> Command {
    let mut command = Command::new(&options.assay);
    command
        .args([verb, "--target", &server.url, "-s", "1"])
        .args(["--set", &format!("SCALE={SCALE}")])
        .current_dir(&options.dir);
    command
}

fn prepare(options: &Options, server: &Server) -> Result<()> {
    let mut command = command(options, server, "prepare");
    command.args(["--format", "json"]);
    let (text, _) = process::run(&mut command, None)?;
    let told: Value = serde_json::from_str(&text).context("the load summary")?;
    let rate = told["summary"]["load_rows_per_s"].as_f64();
    println!("load: {:.0} rows/s", rate.context("no load_rows_per_s")?);
    // Every page is in the pool from here on.
    run_ours(options, server, (64, 2), "client").map(drop)
}

/// A run of selects, and the window of its client.
fn run_ours(
    options: &Options,
    server: &Server,
    (work_unit, clients): (u64, u32),
    place: &str,
) -> Result<(Record, Window)> {
    let run = options.dir.join("run");
    let run_s = options.run_s();
    let mut command = command(options, server, "run");
    command
        .args(["-t", &clients.to_string()])
        .args(["--warmup", "1s", "--time", &format!("{run_s}s")])
        .args(["--set", "UPDATE_PCT=0", "--set", "CONNECT_RATE=1000"])
        .args(["--set", &format!("WORK_UNIT={work_unit}")])
        .args(["--set", &format!("LOOP={place}")])
        .args(["--format", "json", "-o"])
        .arg(&run);
    let when = When::seconds(1, run_s.saturating_sub(2).max(1));
    let outcome = process::run_begun(&mut command, &run.join("series.jsonl"), when);
    let removed = std::fs::remove_dir_all(&run);
    let (text, window) = outcome?;
    removed.with_context(|| format!("{}", run.display()))?;
    Ok((Record::parse(&text)?, window))
}

/// The script of one width.
struct Sysbench<'a> {
    options: &'a Options,
    server: &'a Server,
    script: PathBuf,
    work_unit: u64,
}

impl<'a> Sysbench<'a> {
    /// A range of keys, drawn as assay draws it.
    fn new(options: &'a Options, server: &'a Server, work_unit: u64) -> Result<Self> {
        let script = options.dir.join("select.lua");
        let (last, more) = (SCALE - work_unit + 1, work_unit - 1);
        std::fs::write(
            &script,
            format!(
                "function thread_init()\n\
                 con = sysbench.sql.driver():connect()\n\
                 stmt = con:prepare('select count(c2) from cf1_1 force index (i_custid) where custid between ? and ?')\n\
                 first = stmt:bind_create(sysbench.sql.type.BIGINT)\n\
                 last = stmt:bind_create(sysbench.sql.type.BIGINT)\n\
                 stmt:bind_param(first, last)\n\
                 end\n\
                 function event()\n\
                 local key = sysbench.rand.uniform(1, {last})\n\
                 first:set(key) last:set(key + {more})\n\
                 stmt:execute():free()\n\
                 end\n"
            ),
        )?;
        Ok(Self { options, server, script, work_unit })
    }

    /// Statements per second, and the window of its process.
    fn run(&self, clients: u32) -> Result<(f64, Window)> {
        let run_s = self.options.run_s();
        let mut command = Command::new(PEER);
        command
            .args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=assay"])
            .arg(format!("--mysql-socket={}", self.server.socket.display()))
            .args([format!("--threads={clients}"), format!("--time={}", run_s + 1)])
            .args(["--rand-type=uniform", "--events=0"])
            .arg(&self.script)
            .arg("run")
            .current_dir(&self.options.dir);
        let when = When::seconds(1, run_s.saturating_sub(1).max(1));
        let (text, window) = process::run(&mut command, Some(when))?;
        let rate = rate(&text).with_context(|| format!("no queries per second in {text}"))?;
        Ok((rate, window))
    }
}

/// `    queries:                             7200   (719.61 per sec.)`
fn rate(text: &str) -> Option<f64> {
    let line = text.lines().find(|line| line.trim().starts_with("queries:"))?;
    let (_, rest) = line.split_once('(')?;
    rest.split_whitespace().next()?.parse().ok()
}

fn statements(options: &Options, server: &Server, peer: &Sysbench<'_>, clients: u32) -> Result<()> {
    let mut rows = [
        Pairs::new("block accesses/s, LOOP=client", ">= 1.2 (better one)"),
        Pairs::new("block accesses/s, LOOP=server", ">= 1.2 (better one)"),
        Pairs::new("statements/s, LOOP=client", ">= 1.0"),
        Pairs::new("client CPU each, us, LOOP=client", "<= 0.7"),
        Pairs::new("client CPU each, us, LOOP=server", "<= 0.7"),
    ];
    let mut gets = 0.0;
    for pair in 0..options.pairs {
        let (ours, theirs) = alternate(
            pair,
            || {
                let case = (peer.work_unit, clients);
                let client = run_ours(options, server, case, "client")?;
                let in_server = run_ours(options, server, case, "server")?;
                Ok([client, in_server])
            },
            || peer.run(clients),
        )?;
        let figures = ours.map(|(record, window)| {
            warn(&record);
            let rate = record.per_s("execute_count");
            let blocks = record.per_s("session_logical_reads_blocks");
            (rate, blocks, window.cpu_s * 1e6 / (rate * window.elapsed_s))
        });
        let (rate, window) = theirs;
        if rate <= 0.0 {
            bail!("sysbench did nothing");
        }
        // The same statement gets the same blocks.
        gets = figures[0].1 / figures[0].0;
        let cpu = window.cpu_s * 1e6 / (rate * window.elapsed_s);
        let all = [
            (figures[0].1, rate * gets),
            (figures[1].1, rate * gets),
            (figures[0].0, rate),
            (figures[0].2, cpu),
            (figures[1].2, cpu),
        ];
        super::table::push(&mut rows, &all);
    }
    println!("{clients} clients ({gets:.1} blocks a statement):");
    let part = format!("{clients} clients, WORK_UNIT {}", peer.work_unit);
    print_pairs(options, &part, ["assay", "sysbench"], &rows);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_of_queries_is_taken() {
        let text = "    transactions:   7200   (100.00 per sec.)\n    queries:    7200   (719.61 per sec.)\n";
        assert_eq!(rate(text), Some(719.61));
        assert_eq!(rate("FATAL: x"), None);
    }
}
