//! Updates only: commits per second, and how many share a log write.

use super::assay::{DataSet, settings};
use super::table::{figure, median};
use super::{Options, warn};
use anyhow::Result;

/// What limits the sessions, and the settings that make it so.
const BOUNDS: [(&str, [(&str, &str); 2]); 2] = [
    (
        "bound by reads and writes of blocks (cache 64 MiB, 64 blocks an update)",
        [("CACHE_MB", "64"), ("WORK_UNIT", "64")],
    ),
    ("bound by commits (all cached, 1 block an update)", [("CACHE_MB", "1024"), ("WORK_UNIT", "1")]),
];

/// 8 and 64 sessions on 8 schemas, group commit.
pub(crate) fn run(options: &Options) -> Result<()> {
    let scale = options.size("64M", "16M");
    let (set, _) = DataSet::prepare(options, "updates", 8, &settings(&[("SCALE", scale)]))?;
    for (bound, wanted) in BOUNDS {
        println!("{bound}");
        println!(
            "  {:<9} {:>11} {:>13} {:>18} {:>12} {:>16}  goal",
            "sessions", "commits/s", "log writes/s", "commits per write", "per session", "log sync p99 us"
        );
        for (sessions, goal) in [(8, ""), (64, "commits per write >= 0.5 x sessions")] {
            measure(options, &set, sessions, &settings(&wanted), goal)?;
        }
    }
    Ok(())
}

fn measure(options: &Options, set: &DataSet<'_>, sessions: u32, wanted: &[String], goal: &str) -> Result<()> {
    let mut wanted = wanted.to_vec();
    wanted.push("UPDATE_PCT=100".to_owned());
    let (mut commits, mut writes, mut shared, mut sync) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.pairs {
        let (record, _) = set.run(sessions / 8, &wanted, options.warmup_s(), options.run_s())?;
        warn(&record);
        commits.push(record.per_s("user_commits_count"));
        writes.push(record.per_s("redo_writes_count"));
        shared.push(record.total("user_commits_count") / record.total("redo_writes_count"));
        sync.push(record.event("log file sync", "p99_us"));
    }
    let per_write = median(&shared);
    println!(
        "  {sessions:<9} {:>11} {:>13} {per_write:>18.2} {:>12.3} {:>16}  {goal}",
        figure(median(&commits)),
        figure(median(&writes)),
        per_write / f64::from(sessions),
        figure(median(&sync))
    );
    Ok(())
}
