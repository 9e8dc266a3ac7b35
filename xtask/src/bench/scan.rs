//! Multi-block direct path reads against fio's sequential read of the same file, and random
//! single-block reads at depth 1 with fio's own times beside ours, layer by layer.

use super::assay::{DataSet, Record, settings};
use super::fio::{self, FioResult};
use super::process::Window;
use super::table::{Pairs, alternate, figure, median, print_pairs, push};
use super::{Options, warn};
use anyhow::Result;
use std::path::Path;

const GB: f64 = 1e9;

/// One session scans with 2 streams of 4 reads of 1 MiB; fio reads the same data file with bs=1M at depth 8.
pub(crate) fn run(options: &Options) -> Result<()> {
    let table = options.size("2G", "64M");
    let (set, summary) = DataSet::prepare(
        options,
        "scan",
        1,
        &settings(&[
            ("SCALE", options.size("512M", "16M")),
            ("SCAN_TABLE_SZ", table),
            ("REDO_LOG_MB", "8"),
            ("UNDO_MB", "16"),
        ]),
    )?;
    let written = summary["summary"]["load_mb_per_s"].as_f64();
    println!("written by prepare (direct path write, synced): {} MB/s", figure(written.unwrap_or(f64::NAN)));
    let file = super::largest_file(&set.dir)?;
    bandwidth(options, &set, &file)?;
    single_reads(options, &set, &file)?;
    Ok(())
}

fn bandwidth(options: &Options, set: &DataSet<'_>, file: &Path) -> Result<()> {
    let mut rows = [
        Pairs::new("MB/s, own report", ">= 0.95"),
        Pairs::new("MB/s, seen by the kernel", ">= 0.95"),
        Pairs::new("CPU per GB, s", ""),
        Pairs::new("latency p50, us", ""),
        Pairs::new("latency p99, us", ""),
    ];
    let scans = settings(&[("UPDATE_PCT", "0"), ("SCAN_PCT", "100"), ("SCAN_PARALLEL", "2"), ("SCAN_DEPTH", "4")]);
    for pair in 0..options.pairs {
        let ours = || set.run(1, &scans, options.warmup_s(), options.run_s());
        let theirs = || fio::read(options, file, &["--rw=read", "--bs=1M", "--iodepth=8"]);
        let (ours, theirs) = alternate(pair, ours, theirs)?;
        record_pair(&mut rows, &ours, &theirs);
    }
    print_pairs(options, "bandwidth", ["assay", "fio"], &rows);
    println!("(assay verifies a checksum of every block, fio looks at none)");
    Ok(())
}

fn record_pair(rows: &mut [Pairs; 5], (record, window): &(Record, Window), theirs: &FioResult) {
    warn(record);
    let event = "direct path read";
    let kernel = |window: &Window| window.read_bytes / window.elapsed_s / 1e6;
    let cpu = |window: &Window| window.cpu_s / (window.read_bytes / GB);
    let figures = [
        (record.number(&["instance", "scan", "direct_mb_per_s"]), theirs.bytes_per_s / 1e6),
        (kernel(window), kernel(&theirs.window)),
        (cpu(window), cpu(&theirs.window)),
        (record.layer(event, "syscall", "p50_us"), theirs.p50_us),
        (record.layer(event, "syscall", "p99_us"), theirs.p99_us),
    ];
    push(rows, &figures);
}

/// One session, one random block at a time, no cache: fio's latency is what our ring should show.
fn single_reads(options: &Options, set: &DataSet<'_>, file: &Path) -> Result<()> {
    let mut rows = [
        Pairs::new("mean, us (syscall; slat+clat)", "1 +- 0.05"),
        Pairs::new("p50, us (syscall; clat)", "1 +- 0.05"),
        Pairs::new("p99, us (syscall; clat)", ""),
        Pairs::new("mean, us (engine; slat+clat)", "1 +- 0.05"),
    ];
    let (mut slat, mut device) = (Vec::new(), Vec::new());
    let reads = settings(&[("UPDATE_PCT", "0"), ("INDEX", "computed"), ("CACHE_MB", "0")]);
    let event = "db file sequential read";
    for pair in 0..options.pairs {
        let ours = || set.run(1, &reads, options.warmup_s(), options.run_s());
        let theirs = || fio::read(options, file, &["--rw=randread", "--bs=8k", "--iodepth=1"]);
        let ((record, _), theirs) = alternate(pair, ours, theirs)?;
        warn(&record);
        let their_mean = theirs.slat_mean_us + theirs.clat_mean_us;
        let figures = [
            (record.layer(event, "syscall", "avg_us"), their_mean),
            (record.layer(event, "syscall", "p50_us"), theirs.p50_us),
            (record.layer(event, "syscall", "p99_us"), theirs.p99_us),
            (record.layer(event, "engine", "avg_us"), their_mean),
        ];
        push(&mut rows, &figures);
        slat.push(theirs.slat_mean_us);
        device.push(record.layer(event, "device", "avg_us"));
    }
    println!("\nrandom 8 KiB reads, one at a time:");
    print_pairs(options, "depth 1", ["assay", "fio"], &rows);
    println!(
        "fio's submission alone (slat): {} us; the device's mean by diskstats during ours: {} us",
        figure(median(&slat)),
        figure(median(&device))
    );
    Ok(())
}
