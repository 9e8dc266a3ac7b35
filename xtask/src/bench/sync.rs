//! The durable-write curve against fio: one stream and 32, write + fdatasync on a zero-written file.

use super::table::{Pairs, alternate, print_pairs, push};
use super::{Options, commits, fio, process};
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Parallel streams of the second comparison.
const MANY: u64 = 32;

/// Reported, not asserted: fio asks the same of the same file system.
pub(crate) fn run(options: &Options) -> Result<()> {
    let file = options.dir.join("fio.dat");
    commits::write_zeroes(&file)?;
    let mut rows = [Pairs::new("F0, 1 stream, writes/s", "about 1"), Pairs::new("32 streams, writes/s", "about 1")];
    for pair in 0..options.pairs {
        let theirs = |streams| with_fio(options, &file, streams);
        let both = || Ok((theirs(1)?, theirs(MANY)?));
        let (ours, (one, many)) = alternate(pair, || probe(options), both)?;
        let figures = [(rate(&ours, "flush", 1), one), (rate(&ours, "curve", MANY), many)];
        push(&mut rows, &figures);
    }
    print_pairs(options, "", ["assay", "fio"], &rows);
    std::fs::remove_file(&file)?;
    Ok(())
}

fn probe(options: &Options) -> Result<Value> {
    let place = options.dir.join("run");
    let mut command = Command::new(&options.assay);
    command
        .arg("sync")
        .arg(&options.dir)
        .args(["--time", options.size("40s", "2s"), "--format", "json", "-o"])
        .arg(&place);
    let outcome = process::run(&mut command, None);
    let removed = std::fs::remove_dir_all(&place);
    let (output, _) = outcome?;
    removed.with_context(|| format!("{}", place.display()))?;
    serde_json::from_str(&output).context("the record")
}

/// Writes per second of a step on the preallocated file by fdatasync; n/a is NaN.
fn rate(record: &Value, part: &str, streams: u64) -> f64 {
    let steps = record["parts"]["sync"]["steps"].as_array().into_iter().flatten();
    let mut steps = steps.filter(|step| {
        step["part"] == part
            && step["streams_count"] == streams
            && step["file"] == "preallocated"
            && step["method"] == "write + fdatasync"
    });
    let step = steps.next();
    step.and_then(|step| step["per_s"].as_f64()).unwrap_or(f64::NAN)
}

fn with_fio(options: &Options, file: &Path, streams: u64) -> Result<f64> {
    let part_mib = commits::FILE_MIB as u64 / streams;
    let arguments = [
        "--ioengine=psync",
        "--rw=write",
        "--overwrite=1",
        "--fdatasync=1",
        "--bs=4k",
        "--time_based",
        "--group_reporting",
        &format!("--numjobs={streams}"),
        &format!("--size={part_mib}M"),
        &format!("--offset_increment={part_mib}M"),
        &format!("--runtime={}", options.size(6, 1)),
    ]
    .map(str::to_owned);
    Ok(fio::run(file, "write", &arguments, None)?.iops)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_step_asked_for_is_found_and_an_absent_one_is_no_number() {
        let record = serde_json::json!({"parts": {"sync": {"steps": [
            {"part": "flush", "streams_count": 1, "file": "preallocated", "method": "write + fdatasync", "per_s": 12.5},
            {"part": "curve", "streams_count": 1, "file": "new", "method": "write + fdatasync", "per_s": 3.0},
        ]}}});
        assert_eq!(rate(&record, "flush", 1), 12.5);
        assert!(rate(&record, "curve", 1).is_nan());
    }
}
