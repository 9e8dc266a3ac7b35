//! fio as a yardstick: its arguments and what we read from its JSON.

use super::Options;
use super::process::{self, When, Window};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// One fio result, as fio itself reports it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FioResult {
    /// I/Os per second.
    pub(crate) iops: f64,
    /// Bytes per second.
    pub(crate) bytes_per_s: f64,
    /// Median completion latency, us.
    pub(crate) p50_us: f64,
    /// 99th percentile of completion latency, us.
    pub(crate) p99_us: f64,
    /// Mean completion latency, us: from the submit to the completion.
    pub(crate) clat_mean_us: f64,
    /// Mean submission latency, us: the submit itself.
    pub(crate) slat_mean_us: f64,
    /// Measured from outside.
    pub(crate) window: Window,
}

/// Direct io_uring I/O on `file` with more arguments; `direction` is `read` or `write`.
///
/// # Errors
/// When fio is missing, fails, or prints what we cannot read.
pub(crate) fn run(file: &Path, direction: &str, arguments: &[String], when: Option<When>) -> Result<FioResult> {
    let mut command = Command::new("fio");
    command
        .arg("--name=bench")
        .arg(format!("--filename={}", file.display()))
        .args(["--ioengine=io_uring", "--direct=1", "--thread"])
        .arg("--output-format=json")
        .args(arguments);
    let (output, window) = process::run(&mut command, when).context("fio (Debian package `fio`)")?;
    parse(&output, direction, window)
}

/// Timed reads of `file` with more arguments, looked at from outside in their middle.
///
/// # Errors
/// As [`run`].
pub(crate) fn read(options: &Options, file: &Path, how: &[&str]) -> Result<FioResult> {
    let times = [
        "--readonly".to_owned(),
        "--time_based".to_owned(),
        format!("--ramp_time={}", options.warmup_s()),
        format!("--runtime={}", options.run_s()),
    ];
    let how = how.iter().map(|word| (*word).to_owned());
    let arguments: Vec<String> = how.chain(times).collect();
    run(file, "read", &arguments, Some(options.middle()))
}

/// Writes `size` to `file` in full, so that no read meets a hole, and synchronises it.
///
/// # Errors
/// As [`run`].
pub(crate) fn lay_out(file: &Path, size: &str) -> Result<FioResult> {
    let size = format!("--size={size}");
    let arguments = ["--rw=write", "--bs=1M", "--iodepth=8", "--end_fsync=1", &size];
    run(file, "write", &arguments.map(str::to_owned), None)
}

/// What a JSON document in fio's shape says of its first job.
///
/// # Errors
/// When there is no document, or it lacks what is read here.
pub(crate) fn parse(output: &str, direction: &str, window: Window) -> Result<FioResult> {
    // fio may print notes before its document.
    let start = output.find('{').context("no JSON from fio")?;
    let document: Value = serde_json::from_str(&output[start..]).context("fio's JSON")?;
    let side = &document["jobs"][0][direction];
    let number = |value: &Value, name: &str| {
        let found = value[name].as_f64();
        found.with_context(|| format!("no `{name}` in fio's JSON"))
    };
    let percentiles = &side["clat_ns"]["percentile"];
    let percentile_us = |name: &str| percentiles[name].as_f64().map_or(f64::NAN, |ns| ns / 1000.0);
    let mean_us = |name: &str| side[name]["mean"].as_f64().map_or(f64::NAN, |ns| ns / 1000.0);
    Ok(FioResult {
        iops: number(side, "iops")?,
        bytes_per_s: number(side, "bw_bytes")?,
        p50_us: percentile_us("50.000000"),
        p99_us: percentile_us("99.000000"),
        clat_mean_us: mean_us("clat_ns"),
        slat_mean_us: mean_us("slat_ns"),
        window,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fio_json_is_read_behind_its_notes() {
        let text = r#"note: both iodepth >= 1
{"jobs":[{"read":{"iops":51234.5,"bw_bytes":419713024,"clat_ns":{"percentile":{"50.000000":577536,"99.000000":1036288}}}}]}"#;
        let result = parse(text, "read", Window::default()).unwrap();
        assert_eq!(result.iops, 51234.5);
        assert_eq!(result.p99_us, 1036.288);
        assert!(parse(text, "write", Window::default()).is_err());
    }
}
