//! assay's side: its data set on the benches' server, its loads and its runs.

use super::super::Options;
use super::super::assay::Record;
use super::super::process::{self, When, Window};
use super::pgio::Case;
use super::server::{Cluster, DATABASE};
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

/// The program under test on a cluster.
pub(super) struct Assay<'a> {
    options: &'a Options,
    cluster: &'a Cluster,
}

impl<'a> Assay<'a> {
    /// Ready to go.
    pub(super) fn new(options: &'a Options, cluster: &'a Cluster) -> Self {
        Self { options, cluster }
    }

    /// Loads the data set of a case; returns the seconds of the whole command, and those until it was loaded and indexed.
    pub(super) fn prepare(&self, case: &Case) -> Result<(f64, f64)> {
        let begin = std::time::Instant::now();
        let mut command = self.command("prepare", case);
        command.args(["--set", "LOAD_PARALLEL_DEGREE=2", "--format", "json"]);
        let (text, _) = process::run(&mut command, None)?;
        let took_s = begin.elapsed().as_secs_f64();
        let told: Value = serde_json::from_str(&text).context("the load summary")?;
        let load_s = told["summary"]["load_s"].as_f64();
        Ok((took_s, load_s.context("no load_s in the load summary")?))
    }

    /// Removes the data set.
    pub(super) fn destroy(&self, case: &Case) -> Result<()> {
        process::run(&mut self.command("destroy", case), None)?;
        Ok(())
    }

    /// A main job of selects; the window of its client lies inside it.
    pub(super) fn run(&self, case: &Case, warmup_s: u64, settings: &[String]) -> Result<(Record, Window)> {
        let place = self.options.dir.join("run");
        let mut command = self.command("run", case);
        command
            .args(["-t", &case.threads.to_string()])
            .args(["--warmup", &format!("{warmup_s}s")])
            .args(["--time", &format!("{}s", case.run_s)])
            .args(["--set", "UPDATE_PCT=0"])
            .args(["--set", &format!("WORK_UNIT={}", case.work_unit)])
            .args(["--format", "json", "-o"])
            .arg(&place);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let when = When::seconds(warmup_s, case.run_s.saturating_sub(2).max(1));
        let outcome = process::run_begun(&mut command, &place.join("series.jsonl"), when);
        let removed = std::fs::remove_dir_all(&place);
        let (text, window) = outcome?;
        removed.with_context(|| format!("{}", place.display()))?;
        Ok((Record::parse(&text)?, window))
    }

    fn command(&self, verb: &str, case: &Case) -> Command {
        let mut command = self.cluster.client(&self.options.assay);
        command
            .arg(verb)
            .arg(format!("--target=postgres:///{DATABASE}"))
            .args(["-s", &case.schemas.to_string()])
            .args(["--set", &format!("SCALE={}", case.scale)])
            .current_dir(&self.options.dir);
        command
    }
}
