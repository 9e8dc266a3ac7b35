//! Random single-block reads against fio at the same depth on the same file.

use super::assay::{DataSet, Record, settings};
use super::fio::{self, FioResult};
use super::process::Window;
use super::table::{Pairs, alternate, print_pairs, push};
use super::{Options, warn};
use anyhow::Result;

const BLOCK_BYTES: f64 = 8192.0;
const SCHEMAS: u32 = 4;

/// 8, 32 and 128 sessions, READ_MODE=single, UPDATE_PCT=0, 16 MiB cache over 2 GiB; fio reads the same data file at the
/// same depth: a virtual disk serves two files of one size and file system at very different speeds (5 and 47 thousand
/// reads/s were seen in one minute), by what its host has of them in memory.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (set, _) = DataSet::prepare(
        options,
        "physical",
        SCHEMAS,
        &settings(&[("SCALE", options.size("512M", "32M")), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")]),
    )?;
    let file = super::largest_file(&set.dir)?;
    for sessions in [8, 32, 128] {
        println!("\n{sessions} sessions:");
        let mut rows = rows([">= 0.97", ">= 0.97", "<= 1.0"]);
        let depth = format!("--iodepth={sessions}");
        let how = ["--rw=randread", "--bs=8k", &depth];
        for pair in 0..options.pairs {
            let each = sessions / SCHEMAS;
            let ours = || set.run(each, &reads(), options.warmup_s(), options.run_s());
            let (ours, theirs) = alternate(pair, ours, || fio::read(options, &file, &how))?;
            record_pair(&mut rows, &ours, &theirs);
            if pair == 0 && sessions == 8 {
                report_mode(&ours.0);
            }
        }
        print_pairs(options, &format!("{sessions} sessions"), ["assay", "fio"], &rows);
    }
    Ok(())
}

/// Settings of sessions that read one block at a time, hardly any of them from the cache.
pub(crate) fn reads() -> Vec<String> {
    settings(&[("UPDATE_PCT", "0"), ("READ_MODE", "single"), ("CACHE_MB", "16")])
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
pub(crate) fn record_pair(rows: &mut [Pairs], (record, window): &(Record, Window), theirs: &FioResult) {
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
