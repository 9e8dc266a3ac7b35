//! Random single-block reads against fio at the same depth on the same file system.

use super::assay::{DataSet, Record, settings};
use super::fio::{self, FioResult};
use super::process::Window;
use super::table::{Pairs, alternate, print_pairs, push};
use super::{Options, warn};
use anyhow::Result;

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
    fio::lay_out(&file, fio_size)?;

    let mut rows = rows([">= 0.97", ">= 0.97", "<= 1.0"]);
    for pair in 0..options.pairs {
        let ours = || set.run(8, &reads(), options.warmup_s(), options.run_s());
        let size = format!("--size={fio_size}");
        let how = ["--rw=randread", "--bs=8k", "--iodepth=32", &size];
        let (ours, theirs) = alternate(pair, ours, || fio::read(options, &file, &how))?;
        record_pair(&mut rows, &ours, &theirs);
        if pair == 0 {
            report_mode(&ours.0);
        }
    }
    print_pairs(options, "", ["assay", "fio"], &rows);
    std::fs::remove_file(&file)?;
    Ok(())
}

/// Settings of sessions that read one block at a time, hardly any of them from the cache.
pub(crate) fn reads() -> Vec<String> {
    settings(&[
        ("UPDATE_PCT", "0"),
        ("READ_MODE", "single"),
        ("CACHE_MB", "16"),
    ])
}

/// What is compared of such reads, with the goals of the first three.
pub(crate) fn rows(goals: [&'static str; 3]) -> [Pairs; 5] {
    [
        Pairs::new("reads/s, own report", goals[0]),
        Pairs::new("reads/s, seen by the kernel", goals[1]),
        Pairs::new("CPU per read, us", goals[2]),
        Pairs::new("latency p50, us", ""),
        Pairs::new("latency p99, us", ""),
    ]
}

/// Adds one pair of measurements to [`rows`].
pub(crate) fn record_pair(
    rows: &mut [Pairs],
    (record, window): &(Record, Window),
    theirs: &FioResult,
) {
    warn(record);
    let event = "db file sequential read";
    let reads = |window: &Window| window.read_bytes / BLOCK_BYTES;
    let seen = |window: &Window| reads(window) / window.elapsed_s;
    // The CPU of the whole process, by the kernel's count of bytes it read: alike for both.
    let cpu_us = |window: &Window| window.cpu_s * 1e6 / reads(window);
    let own = record.per_s("physical_read_total_io_requests_count");
    push(
        rows,
        &[
            (own, theirs.iops),
            (seen(window), seen(&theirs.window)),
            (cpu_us(window), cpu_us(&theirs.window)),
            (record.event(event, "p50_us"), theirs.p50_us),
            (record.event(event, "p99_us"), theirs.p99_us),
        ],
    );
}

fn report_mode(record: &Record) {
    match record.fact("io_mode_achieved") {
        Some(mode) => println!("assay's achieved I/O mode: {mode}"),
        None => println!("assay does not say which I/O mode it achieved"),
    }
}
