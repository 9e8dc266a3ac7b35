//! The program under test: its data sets, its runs and what we read from its records.

use super::Options;
use super::process::{self, When, Window};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A native data set of ours, destroyed at the end.
pub(crate) struct DataSet<'a> {
    options: &'a Options,
    /// Its directory.
    pub(crate) dir: PathBuf,
    settings: Vec<String>,
    schemas: u32,
}

impl<'a> DataSet<'a> {
    /// Prepares `schemas` schemas with these settings; returns the load summary too.
    ///
    /// # Errors
    /// When prepare fails.
    pub(crate) fn prepare(
        options: &'a Options,
        name: &str,
        schemas: u32,
        settings: &[String],
    ) -> Result<(Self, Value)> {
        let set = Self { options, dir: options.dir.join(name), settings: settings.to_vec(), schemas };
        let mut command = set.command("prepare", schemas);
        command.args(["--format", "json"]);
        let (output, _) = process::run(&mut command, None)?;
        let summary = serde_json::from_str(&output).context("the load summary")?;
        Ok((set, summary))
    }

    /// Runs with `threads` sessions per schema and more settings; returns the record and the
    /// window measured from outside.
    ///
    /// # Errors
    /// When the run fails or is invalid.
    pub(crate) fn run(
        &self,
        threads: u32,
        settings: &[String],
        warmup_s: u64,
        time_s: u64,
    ) -> Result<(Record, Window)> {
        self.run_on(self.schemas, threads, settings, warmup_s, time_s)
    }

    /// As [`DataSet::run`], on the first `schemas` only.
    ///
    /// # Errors
    /// When the run fails or is invalid.
    pub(crate) fn run_on(
        &self,
        schemas: u32,
        threads: u32,
        settings: &[String],
        warmup_s: u64,
        time_s: u64,
    ) -> Result<(Record, Window)> {
        let place = self.options.dir.join("run");
        let mut command = self.command("run", schemas);
        command
            .args(["-t", &threads.to_string()])
            .args(["--warmup", &format!("{warmup_s}s")])
            .args(["--time", &format!("{time_s}s")])
            .args(["--format", "json", "-o"])
            .arg(&place);
        for setting in settings {
            command.args(["--set", setting]);
        }
        // The first second holds start-up; the window ends a second before the run does.
        let when = When::seconds(warmup_s + u64::from(time_s > 2), time_s.saturating_sub(2).max(1));
        let outcome = process::run(&mut command, Some(when));
        let removed = std::fs::remove_dir_all(&place);
        let (output, window) = outcome?;
        removed.with_context(|| format!("{}", place.display()))?;
        let document = serde_json::from_str(&output).context("the record")?;
        Ok((Record(document), window))
    }

    /// Runs and is killed after `time_s` without a chance to close the data set.
    ///
    /// # Errors
    /// When it does not start, or ends by itself before.
    pub(crate) fn run_and_kill(&self, threads: u32, settings: &[String], time_s: u64) -> Result<()> {
        let place = self.options.dir.join("killed");
        let mut command = self.command("run", self.schemas);
        command
            .args(["-t", &threads.to_string(), "--warmup", "0s"])
            .args(["--time", &format!("{}s", time_s + 60), "-o"])
            .arg(&place);
        for setting in settings {
            command.args(["--set", setting]);
        }
        let killed = process::kill_after(&mut command, &place.join("series.jsonl"), time_s);
        std::fs::remove_dir_all(&place)?;
        killed
    }

    fn command(&self, verb: &str, schemas: u32) -> Command {
        let mut command = Command::new(&self.options.assay);
        command
            .arg(verb)
            .arg(format!("--target=native:{}", self.dir.display()))
            .args(["-s", &schemas.to_string()])
            .current_dir(&self.options.dir);
        for setting in &self.settings {
            command.args(["--set", setting]);
        }
        command
    }
}

impl Drop for DataSet<'_> {
    fn drop(&mut self) {
        // Removed by hand as well with the benches' directory, should this fail.
        let target = format!("--target=native:{}", self.dir.display());
        let _ = Command::new(&self.options.assay).args(["destroy", &target]).output();
    }
}

/// `NAME=VALUE` settings.
pub(crate) fn settings(pairs: &[(&str, &str)]) -> Vec<String> {
    let pairs = pairs.iter();
    pairs.map(|(name, value)| format!("{name}={value}")).collect()
}

/// `record.json`, schema `assay/2`.
pub(crate) struct Record(Value);

impl Record {
    /// Of `--format json`.
    ///
    /// # Errors
    /// When the text is no JSON.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        Ok(Self(serde_json::from_str(text).context("the record")?))
    }

    /// A statistic's rate over the window by its key, per second; an absent statistic is n/a (NaN).
    pub(crate) fn per_s(&self, key: &str) -> f64 {
        self.number(&["instance", "stats", key, "per_s"])
    }

    /// A statistic's total over the window by its key.
    pub(crate) fn total(&self, key: &str) -> f64 {
        self.number(&["instance", "stats", key, "total"])
    }

    /// The number at a path; n/a is NaN.
    pub(crate) fn number(&self, path: &[&str]) -> f64 {
        let found = path.iter().try_fold(&self.0, |value, step| value.get(step));
        found.and_then(Value::as_f64).unwrap_or(f64::NAN)
    }

    /// A figure of an event, e.g. `p99_us` of `db file sequential read`.
    pub(crate) fn event(&self, name: &str, figure: &str) -> f64 {
        let events = self.0["instance"]["events"].as_array();
        let row = events.into_iter().flatten().find(|event| event["name"] == name && event["actor"] != "background");
        row.and_then(|event| event[figure].as_f64()).unwrap_or(f64::NAN)
    }

    /// A latency figure of one layer (`engine`, `syscall`, `device`) of an event's requests, e.g. `p99_us`.
    pub(crate) fn layer(&self, event: &str, layer: &str, figure: &str) -> f64 {
        let rows = self.0["instance"]["layers"].as_array();
        let row = rows.into_iter().flatten().find(|row| row["event"] == event);
        row.and_then(|row| row[layer]["latency"][figure].as_f64()).unwrap_or(f64::NAN)
    }

    /// A fact the engine states, e.g. its achieved I/O mode.
    pub(crate) fn fact(&self, name: &str) -> Option<&str> {
        let facts = self.0["plan"]["engine_facts"].as_array()?;
        let fact = facts.iter().find(|fact| fact["name"] == name)?;
        fact.get("value")?.as_str()
    }

    /// Whether the run is complete and each of its identities holds; else what does not.
    pub(crate) fn faults(&self) -> Vec<String> {
        let mut faults = Vec::new();
        let verdict = &self.0["run"]["verdict"];
        if verdict != "complete" {
            faults.push(format!("verdict {verdict}"));
        }
        for identity in self.0["integrity"].as_array().into_iter().flatten() {
            if identity["ok"] == false {
                faults.push(format!("identity {}", identity["id"]));
            }
        }
        faults
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_answers_by_key_and_admits_what_it_lacks() {
        let record = Record(serde_json::json!({
            "run": {"verdict": "complete"},
            "instance": {
                "stats": {"a_count": {"total": 10, "per_s": 2.5}, "b_count": {"total": {"na": "absent"}}},
                "events": [{"name": "x", "actor": "foreground", "p99_us": 7}],
            },
            "integrity": [{"id": "I2", "ok": true}, {"id": "I3", "ok": {"na": "absent"}}],
        }));
        assert_eq!(record.per_s("a_count"), 2.5);
        assert_eq!(record.event("x", "p99_us"), 7.0);
        assert!(record.total("b_count").is_nan() && record.total("c_count").is_nan());
        assert!(record.faults().is_empty());
    }

    #[test]
    fn a_violated_identity_is_a_fault() {
        let record = Record(serde_json::json!({
            "run": {"verdict": "invalid"},
            "integrity": [{"id": "I2", "ok": false}],
        }));
        assert_eq!(record.faults().len(), 2);
    }
}
