//! The load of a data set against fio's sequential write of as many bytes.

use super::Options;
use super::assay::{DataSet, settings};
use super::fio;
use super::table::{Pairs, alternate, print_pairs, push};
use anyhow::{Context, Result};
use serde_json::Value;

/// 8 schemas of 1 GiB, load phase with its final sync, against bs=1M, depth 8, direct, end_fsync.
pub(crate) fn run(options: &Options) -> Result<()> {
    let scale = options.size("1G", "16M");
    let size = options.size("8G", "128M");
    let mut rows = [Pairs::new("MB/s, final sync included", ">= 0.9")];
    for pair in 0..options.pairs {
        let ours = || -> Result<f64> {
            let wanted = settings(&[("SCALE", scale), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")]);
            let (_set, summary) = DataSet::prepare(options, "load", 8, &wanted)?;
            load_mb_per_s(&summary).with_context(|| format!("the load summary {summary}"))
        };
        let theirs = || write_with_fio(options, size);
        push(&mut rows, &[alternate(pair, ours, theirs)?]);
    }
    print_pairs(options, "", ["assay", "fio"], &rows);
    Ok(())
}

fn load_mb_per_s(summary: &Value) -> Option<f64> {
    summary["summary"].get("load_mb_per_s")?.as_f64()
}

fn write_with_fio(options: &Options, size: &str) -> Result<f64> {
    let file = options.dir.join("fio.dat");
    let result = fio::lay_out(&file, size)?;
    std::fs::remove_file(&file)?;
    Ok(result.bytes_per_s / 1e6)
}
