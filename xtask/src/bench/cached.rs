//! Logical reads from the buffer cache, one driver thread, and what each technique gains.

use super::assay::{DataSet, settings};
use super::table::{Pairs, alternate, figure, median, print_pairs, push};
use super::{Options, warn};
use anyhow::Result;

/// Switches of the engine that turn one technique off each.
const TECHNIQUES: [(&str, &str); 4] = [
    ("all on", ""),
    ("no prefetch", "CACHE_PREFETCH=FALSE"),
    ("shared pins, no versions", "CACHE_READ=pinned"),
    ("no huge pages", "HUGE_PAGES=FALSE"),
];

/// 64 MiB and 1 GiB of data, all of it in the cache.
pub(crate) fn run(options: &Options) -> Result<()> {
    println!("logical reads/s per core (driver CPU); published: 0.8 million, PostgreSQL 1.4 million");
    measure(options, "64 MiB", 64, ">= 60 million")?;
    measure(options, "1 GiB", options.size(1024, 128), ">= 30 million")?;
    hot_block(options)
}

/// Operations of one block each, all on the same one and its index: by two driver threads at once, and by one.
fn hot_block(options: &Options) -> Result<()> {
    let size = settings(&[("SCALE", "16M"), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")]);
    let (set, _) = DataSet::prepare(options, "hot", 1, &size)?;
    let rate = |threads: u32| -> Result<f64> {
        let wanted = settings(&[
            ("UPDATE_PCT", "0"),
            ("CACHE_MB", "64"),
            ("DRIVER_THREADS", &threads.to_string()),
            ("WORK_UNIT", "1"),
            ("DO_HOTSPOT", "TRUE"),
            ("HOTSPOT_FREQUENCY", "1"),
            ("HOTSPOT_MB", "8K"),
            ("HOTSPOT_OFFSET_MB", "1"),
        ]);
        let (record, _) = set.run(threads, &wanted, 1, options.size(4, 1))?;
        warn(&record);
        Ok(record.per_s("session_logical_reads_blocks"))
    };
    let mut rows = [Pairs::new("logical reads/s", ">= 1.8")];
    for pair in 0..options.pairs {
        let figures = alternate(pair, || rate(2), || rate(1))?;
        push(&mut rows, &[figures]);
    }
    println!("one hot block and its index, WORK_UNIT=1");
    print_pairs(options, "one hot block", ["two threads", "one"], &rows);
    Ok(())
}

fn measure(options: &Options, label: &str, data_mb: u64, goal: &str) -> Result<()> {
    let scale = format!("{}M", data_mb / 4);
    let (set, _) = DataSet::prepare(
        options,
        "cached",
        4,
        &settings(&[("SCALE", &scale), ("REDO_LOG_MB", "8"), ("UNDO_MB", "16")]),
    )?;
    // Index, undo and the clock hand's freedom on top of the data.
    let cache = format!("{}", data_mb + data_mb / 4 + 16);
    let mut base = f64::NAN;
    println!("{label}{}, goal {goal}", options.size("", " (smaller here)"));
    println!(
        "  {:<26} {:>13} {:>13} {:>10} {:>9}  physical reads/s",
        "technique", "per core", "per thread", "ns a get", "to all on"
    );
    for (technique, switch) in TECHNIQUES {
        let mut wanted = settings(&[("UPDATE_PCT", "0"), ("CACHE_MB", &cache), ("DRIVER_THREADS", "1")]);
        if !switch.is_empty() {
            wanted.push(switch.to_owned());
        }
        let (mut per_core, mut per_s, mut physical) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..options.pairs {
            // Long enough to have met every block of the data.
            let warmup_s = options.size(2 + data_mb / 100, 1);
            let (record, _) = set.run(1, &wanted, warmup_s, options.size(6, 1))?;
            warn(&record);
            let reads = record.total("session_logical_reads_blocks");
            per_core.push(reads / (record.total("db_cpu_ns") / 1e9));
            per_s.push(record.per_s("session_logical_reads_blocks"));
            physical.push(record.per_s("physical_reads_blocks"));
        }
        let rate = median(&per_core);
        if switch.is_empty() {
            base = rate;
        }
        println!(
            "  {technique:<26} {:>13} {:>13} {:>10.1} {:>9.3}  {}",
            figure(rate),
            figure(median(&per_s)),
            1e9 / rate,
            rate / base,
            figure(median(&physical))
        );
    }
    Ok(())
}
