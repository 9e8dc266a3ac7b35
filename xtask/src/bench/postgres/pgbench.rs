//! pgbench as the peer: the same prepared statement, text and plan, over the same Unix socket.

use super::super::Options;
use super::super::process::{self, When};
use super::pgio::Case;
use super::server::Cluster;
use anyhow::{Context, Result};
use std::path::PathBuf;

/// What makes the planner choose for pgbench as assay lets it choose for its sessions with READ_MODE=single.
const PLAN: &str = "-c enable_bitmapscan=off -c enable_seqscan=off -c enable_indexonlyscan=off \
                    -c plan_cache_mode=force_generic_plan -c max_parallel_workers_per_gather=0";

/// The script of one case.
pub(super) struct Pgbench<'a> {
    options: &'a Options,
    cluster: &'a Cluster,
    script: PathBuf,
}

/// One run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ran {
    /// Transactions per second without the time of connecting, as pgbench reports them.
    pub(super) tps: f64,
    /// User and system time of the client a transaction, us.
    pub(super) cpu_us: f64,
}

impl<'a> Pgbench<'a> {
    /// Writes the script: a range of `work_unit` keys of schema 1, drawn as assay draws it.
    pub(super) fn new(options: &'a Options, cluster: &'a Cluster, case: &Case) -> Result<Self> {
        let script = options.dir.join("select.sql");
        let last = case.scale - u64::from(case.work_unit) + 1;
        let text = format!(
            "\\set first random(1, {last})\n\\set last :first + {}\n\
             select count(c2) from \"assay\".\"cf1_1\" where custid between :first and :last;\n",
            case.work_unit - 1
        );
        std::fs::write(&script, text)?;
        Ok(Self { options, cluster, script })
    }

    /// Runs `clients` sessions on `threads` threads.
    pub(super) fn run(&self, clients: u32, threads: u32, run_s: u64) -> Result<Ran> {
        let mut command = self.cluster.client("pgbench");
        command
            .env("PGOPTIONS", PLAN)
            .args(["-n", "-M", "prepared", "-f"])
            .arg(&self.script)
            .args(["-c", &clients.to_string(), "-j", &threads.to_string()])
            .args(["-T", &(run_s + 2).to_string()])
            .current_dir(&self.options.dir);
        let (text, window) = process::run(&mut command, Some(When::seconds(1, run_s)))?;
        let tps = tps(&text).with_context(|| format!("no tps in {text}"))?;
        Ok(Ran { tps, cpu_us: window.cpu_s * 1e6 / (tps * window.elapsed_s) })
    }

    /// As many threads as serve this many clients best here: one, or one a core.
    pub(super) fn best_threads(&self, clients: u32) -> Result<u32> {
        let cores = std::thread::available_parallelism()?.get();
        let most = u32::try_from(cores)?.min(clients);
        if most == 1 {
            return Ok(1);
        }
        let seconds = self.options.size(2, 1);
        let one = self.run(clients, 1, seconds)?;
        let all = self.run(clients, most, seconds)?;
        Ok(if one.tps > all.tps { 1 } else { most })
    }
}

pub(super) fn tps(text: &str) -> Option<f64> {
    // Before 14 there are two such lines; the one without the connections' time comes last.
    let line = text.lines().rev().find(|line| line.starts_with("tps = "))?;
    line.split_whitespace().nth(2)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rate_without_connecting_is_taken() {
        let old = "tps = 10.5 (including connections establishing)\ntps = 11.5 (excluding connections establishing)\n";
        assert_eq!(tps(old), Some(11.5));
        let new = "initial connection time = 3 ms\ntps = 21003.1 (without initial connection time)\n";
        assert_eq!(tps(new), Some(21003.1));
        assert_eq!(tps("pgbench: error"), None);
    }
}
