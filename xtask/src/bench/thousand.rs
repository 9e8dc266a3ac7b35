//! A thousand sessions that read single blocks, against fio with as many reads in flight.

use super::Options;
use super::assay::{DataSet, settings};
use super::fio::{self, FioResult};
use super::physical;
use super::table::{alternate, figure, median, print_pairs};
use anyhow::Result;
use std::path::Path;

const CACHE_BYTES: f64 = 16.0 * 1_048_576.0;

/// 8 schemas x 125 sessions, READ_MODE=single, 16 MiB cache; fio with one job per CPU, 1000 reads in flight in all.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (set, _) = DataSet::prepare(
        options,
        "thousand",
        8,
        &settings(&[("SCALE", options.size("256M", "32M")), ("REDO_LOG_MB", "8"), ("UNDO_MB", "96")]),
    )?;
    let file = super::largest_file(&set.dir)?;
    let mut rows = physical::rows([">= 0.95", ">= 0.95", ""]);
    let (mut rss, mut threads, mut queued) = (Vec::new(), Vec::new(), Vec::new());
    for pair in 0..options.pairs {
        let ours = || set.run(125, &physical::reads(), options.warmup_s(), options.run_s());
        let theirs = || read_with_fio(options, &file);
        let (ours, theirs) = alternate(pair, ours, theirs)?;
        physical::record_pair(&mut rows, &ours, &theirs);
        let (record, window) = ours;
        rss.push((window.peak_rss_bytes - CACHE_BYTES) / 1_048_576.0);
        threads.push(window.threads);
        let share = record.number(&["instance", "time_model", "run_queue_us"])
            / record.number(&["instance", "time_model", "db_time_us"]);
        queued.push(100.0 * share);
    }
    print_pairs(options, "", ["assay", "fio"], &rows);
    println!(
        "1000 sessions: {} threads, peak resident memory {} MiB beyond the cache (<= 128), {} % of DB time in the run queue",
        figure(median(&threads)),
        figure(median(&rss)),
        figure(median(&queued))
    );
    Ok(())
}

fn read_with_fio(options: &Options, file: &Path) -> Result<FioResult> {
    let jobs = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let how = [
        "--rw=randread",
        "--bs=8k",
        "--group_reporting",
        &format!("--numjobs={jobs}"),
        &format!("--iodepth={}", 1000 / jobs),
    ];
    fio::read(options, file, &how)
}
