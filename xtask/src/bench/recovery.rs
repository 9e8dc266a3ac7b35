//! Recovery after a KILL under heavy updates, against plain reading of the log.

use super::assay::{DataSet, settings};
use super::table::{figure, median};
use super::{Options, fio};
use anyhow::{Context, Result};

/// REDO_STRESS=HEAVY on data that fits the cache, killed; the next open recovers.
pub(crate) fn run(options: &Options) -> Result<()> {
    let logs = [("SCALE", options.size("32M", "8M")), ("REDO_LOG_MB", options.size("512", "64")), ("REDO_LOGS", "2")];
    let (set, _) = DataSet::prepare(options, "recovery", 8, &settings(&logs))?;
    let load = settings(&[("CACHE_MB", "1024"), ("UPDATE_PCT", "100"), ("REDO_STRESS", "HEAVY")]);
    let log = set.dir.join("redo-01.assay");
    let mut figures: [Vec<f64>; 5] = Default::default();
    for _ in 0..options.pairs {
        set.run_and_kill(1, &load, options.size(6, 2))?;
        // A read-only run opens the data set, recovers it and says what that took.
        let idle = settings(&[("CACHE_MB", "1024"), ("UPDATE_PCT", "0"), ("WORK_UNIT", "1")]);
        let (record, _) = set.run(1, &idle, 0, 3)?;
        let fact = |name: &str| -> Result<f64> {
            let text = record.fact(name);
            let text = text.with_context(|| format!("the record has no fact {name}"))?;
            text.parse().with_context(|| format!("{name} = {text}"))
        };
        let read = ["--rw=read", "--bs=1M", "--iodepth=8"].map(str::to_owned);
        let plain = fio::run(&log, "read", &read, None)?.bytes_per_s / 1e6;
        let rate = fact("replay_mb_per_s")?;
        let values = [fact("recovered_redo_bytes")? / 1e6, rate, plain, rate / plain, fact("recovery_s")?];
        for (all, value) in figures.iter_mut().zip(values) {
            all.push(value);
        }
    }
    let names = [
        ("redo replayed, MB", ""),
        ("log read and applied, MB/s", ">= 200"),
        ("fio sequential read of a log file, MB/s", ""),
        ("ratio", ""),
        ("recovery in all, blocks written and synced, s", ""),
    ];
    println!("{:<48} {:>12}  goal", "median", "assay");
    for ((name, goal), values) in names.iter().zip(&figures) {
        println!("{name:<48} {:>12}  {goal}", figure(median(values)));
    }
    Ok(())
}
