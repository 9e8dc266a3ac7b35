//! A thousand sessions that read single blocks, against fio with as many reads in flight.

use super::assay::{DataSet, Record, settings};
use super::fio::{self, FioResult};
use super::process::Window;
use super::table::{Pairs, figure, median, print_pairs};
use super::{Options, warn};
use anyhow::Result;
use std::path::Path;

const BLOCK_BYTES: f64 = 8192.0;
const CACHE_BYTES: f64 = 16.0 * 1_048_576.0;

/// 8 schemas x 125 sessions, READ_MODE=single, 16 MiB cache; fio with one job per CPU, 1000 reads in flight in all.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (set, _) = DataSet::prepare(
        options,
        "thousand",
        8,
        &settings(&[
            ("SCALE", options.size("256M", "32M")),
            ("REDO_LOG_MB", "8"),
            ("UNDO_MB", "96"),
        ]),
    )?;
    let file = super::largest_file(&set.dir)?;
    let reads = settings(&[
        ("UPDATE_PCT", "0"),
        ("READ_MODE", "single"),
        ("CACHE_MB", "16"),
    ]);
    let mut rows = [
        Pairs::new("reads/s, own report", ">= 0.95"),
        Pairs::new("reads/s, seen by the kernel", ">= 0.95"),
        Pairs::new("CPU per read, us", ""),
        Pairs::new("latency p50, us", ""),
        Pairs::new("latency p99, us", ""),
    ];
    let (mut rss, mut threads, mut queued) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..options.pairs {
        let time_s = options.run_s();
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = set.run(125, &reads, options.warmup_s(), time_s)?;
            (ours, read_with_fio(options, &file)?)
        } else {
            let theirs = read_with_fio(options, &file)?;
            (set.run(125, &reads, options.warmup_s(), time_s)?, theirs)
        };
        record_pair(&mut rows, &ours, &theirs);
        let (record, window) = ours;
        rss.push((window.peak_rss_bytes - CACHE_BYTES) / 1_048_576.0);
        threads.push(window.threads);
        let share = record.number(&["instance", "time_model", "run_queue_us"])
            / record.number(&["instance", "time_model", "db_time_us"]);
        queued.push(100.0 * share);
    }
    print_pairs("assay", "fio", &rows);
    println!(
        "1000 sessions: {} threads, peak resident memory {} MiB beyond the cache (<= 128), {} % of DB time in the run queue",
        figure(median(&threads)),
        figure(median(&rss)),
        figure(median(&queued))
    );
    Ok(())
}

fn record_pair(rows: &mut [Pairs; 5], ours: &(Record, Window), theirs: &FioResult) {
    let (record, window) = ours;
    warn(record);
    let event = "db file sequential read";
    let seen = |w: &Window| w.read_bytes / BLOCK_BYTES / w.elapsed_s;
    let cpu = |w: &Window| w.cpu_s * 1e6 / (w.read_bytes / BLOCK_BYTES);
    let own = record.per_s("physical_read_total_io_requests_count");
    let figures = [
        (own, theirs.iops),
        (seen(window), seen(&theirs.window)),
        (cpu(window), cpu(&theirs.window)),
        (record.event(event, "p50_us"), theirs.p50_us),
        (record.event(event, "p99_us"), theirs.p99_us),
    ];
    for (row, (our, their)) in rows.iter_mut().zip(figures) {
        row.ours.push(our);
        row.theirs.push(their);
    }
}

fn read_with_fio(options: &Options, file: &Path) -> Result<FioResult> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let arguments = [
        "--rw=randread",
        "--bs=8k",
        "--time_based",
        "--group_reporting",
        &format!("--numjobs={jobs}"),
        &format!("--iodepth={}", 1000 / jobs),
        &format!("--ramp_time={}", options.warmup_s()),
        &format!("--runtime={}", options.run_s()),
    ]
    .map(str::to_owned);
    let when = options.middle();
    fio::run(file, "read", &arguments, Some(when))
}
