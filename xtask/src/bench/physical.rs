//! Random single-block reads against fio at the same depth on the same file system.

use super::assay::{DataSet, Record, settings};
use super::fio::{self, FioResult};
use super::process::Window;
use super::table::{Pairs, print_pairs};
use super::{Options, warn};
use anyhow::Result;
use std::path::Path;

const BLOCK_BYTES: f64 = 8192.0;

/// 32 sessions, READ_MODE=single, UPDATE_PCT=0, 16 MiB cache over 2 GiB; fio at depth 32 over as much.
pub(crate) fn run(options: &Options) -> Result<()> {
    let scale = options.size("512M", "32M");
    let fio_size = options.size("2G", "128M");
    let (set, _) = DataSet::prepare(
        options,
        "physical",
        4,
        &settings(&[("SCALE", scale), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")]),
    )?;
    let file = options.dir.join("fio.dat");
    lay_out(&file, fio_size)?;

    let mut rows = [
        Pairs::new("reads/s, own report", ">= 0.97"),
        Pairs::new("reads/s, seen by the kernel", ">= 0.97"),
        Pairs::new("CPU per read, us", "<= 1.0"),
        Pairs::new("latency p50, us", ""),
        Pairs::new("latency p99, us", ""),
    ];
    let reads = settings(&[
        ("UPDATE_PCT", "0"),
        ("READ_MODE", "single"),
        ("CACHE_MB", "16"),
    ]);
    for pair in 0..options.pairs {
        // Who goes first changes from pair to pair, so that neither always finds the device warm.
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = set.run(8, &reads, options.warmup_s(), options.run_s())?;
            (ours, read_with_fio(options, &file, fio_size)?)
        } else {
            let theirs = read_with_fio(options, &file, fio_size)?;
            let ours = set.run(8, &reads, options.warmup_s(), options.run_s())?;
            (ours, theirs)
        };
        record_pair(&mut rows, &ours, &theirs);
        if pair == 0 {
            report_mode(&ours.0);
        }
    }
    print_pairs("assay", "fio", &rows);
    std::fs::remove_file(&file)?;
    Ok(())
}

fn record_pair(rows: &mut [Pairs; 5], ours: &(Record, Window), theirs: &FioResult) {
    let (record, window) = ours;
    warn(record);
    let event = "db file sequential read";
    let figures = [
        (
            record.per_s("physical_read_total_io_requests_count"),
            theirs.iops,
        ),
        (
            window.read_bytes / BLOCK_BYTES / window.elapsed_s,
            theirs.window.read_bytes / BLOCK_BYTES / theirs.window.elapsed_s,
        ),
        (cpu_per_read_us(window), cpu_per_read_us(&theirs.window)),
        (record.event(event, "p50_us"), theirs.p50_us),
        (record.event(event, "p99_us"), theirs.p99_us),
    ];
    for (row, (our, their)) in rows.iter_mut().zip(figures) {
        row.ours.push(our);
        row.theirs.push(their);
    }
}

/// The CPU of the whole process, by the kernel's count of bytes it read: alike for both.
fn cpu_per_read_us(window: &Window) -> f64 {
    window.cpu_s * 1e6 / (window.read_bytes / BLOCK_BYTES)
}

fn report_mode(record: &Record) {
    match record.fact("io_mode_achieved") {
        Some(mode) => println!("assay's achieved I/O mode: {mode}"),
        None => println!("assay does not say which I/O mode it achieved"),
    }
}

/// Written in full, so that no read meets a hole.
fn lay_out(file: &Path, size: &str) -> Result<()> {
    let arguments = [
        "--rw=write",
        "--bs=1M",
        "--iodepth=8",
        "--end_fsync=1",
        &format!("--size={size}"),
    ]
    .map(str::to_owned);
    fio::run(file, "write", &arguments, None)?;
    Ok(())
}

fn read_with_fio(options: &Options, file: &Path, size: &str) -> Result<FioResult> {
    let arguments = [
        "--rw=randread",
        "--bs=8k",
        "--iodepth=32",
        "--time_based",
        &format!("--size={size}"),
        &format!("--ramp_time={}", options.warmup_s()),
        &format!("--runtime={}", options.run_s()),
    ]
    .map(str::to_owned);
    let when = options.middle();
    fio::run(file, "read", &arguments, Some(when))
}
