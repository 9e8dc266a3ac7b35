//! Commits of cached one-block updates against the device's own syncs: 1, 8 and 64 sessions.

use super::assay::{DataSet, Record, settings};
use super::fio;
use super::process::Window;
use super::table::{Pairs, figure, median, print_pairs};
use super::{Options, warn};
use anyhow::{Context, Result};
use std::io::Write;
use std::path::Path;

const SCHEMAS: u32 = 8;
/// Written over by fio, as large as one log file.
pub(crate) const FILE_MIB: usize = 256;
/// (schemas, threads per schema)
const LOADS: [(u32, u32); 3] = [(1, 1), (SCHEMAS, 1), (SCHEMAS, 8)];

/// What one set of runs, taken one after the other, came to.
struct Round {
    syncs_per_s: f64,
    loads: Vec<Load>,
}

/// One run.
struct Load {
    commits_per_s: f64,
    per_write: f64,
    write_bytes: f64,
    sync_p99_us: f64,
    cpu_us: f64,
}

/// WORK_UNIT=1, UPDATE_PCT=100, all cached; fio overwrites a zero-written file, each write made durable.
pub(crate) fn run(options: &Options) -> Result<()> {
    let (set, _) = DataSet::prepare(options, "commits", SCHEMAS, &settings(&[("SCALE", "8M")]))?;
    let file = options.dir.join("fio.dat");
    write_zeroes(&file)?;
    let mut rounds = Vec::new();
    for pair in 0..options.pairs {
        rounds.push(measure(options, &set, &file, pair % 2 == 1)?);
    }
    print(options, &rounds);
    std::fs::remove_file(&file)?;
    Ok(())
}

/// fio needs the mean log write, so one session comes first; after that the order alternates.
fn measure(options: &Options, set: &DataSet<'_>, file: &Path, reverse: bool) -> Result<Round> {
    let one = load(options, set, LOADS[0])?;
    // Whole sectors: the log writes nothing else.
    let bytes = (one.write_bytes / 512.0).round() * 512.0;
    let mut syncs_per_s = f64::NAN;
    let mut loads = vec![one];
    if !reverse {
        syncs_per_s = sync_with_fio(options, file, bytes)?;
    }
    for wanted in &LOADS[1..] {
        loads.push(load(options, set, *wanted)?);
    }
    if reverse {
        syncs_per_s = sync_with_fio(options, file, bytes)?;
    }
    Ok(Round { syncs_per_s, loads })
}

fn load(options: &Options, set: &DataSet<'_>, (schemas, threads): (u32, u32)) -> Result<Load> {
    let wanted = settings(&[("CACHE_MB", "512"), ("WORK_UNIT", "1"), ("UPDATE_PCT", "100")]);
    let time_s = options.run_s();
    let (record, window) = set.run_on(schemas, threads, &wanted, options.warmup_s(), time_s)?;
    warn(&record);
    Ok(figures(&record, &window))
}

fn figures(record: &Record, window: &Window) -> Load {
    let commits_per_s = record.per_s("user_commits_count");
    let writes = record.total("redo_writes_count");
    Load {
        commits_per_s,
        per_write: record.total("user_commits_count") / writes,
        write_bytes: record.total("redo_bytes_written") / writes,
        sync_p99_us: record.event("log file sync", "p99_us"),
        cpu_us: window.cpu_s * 1e6 / (commits_per_s * window.elapsed_s),
    }
}

fn print(options: &Options, rounds: &[Round]) {
    let mut first = Pairs::new("1 session, commits/s", ">= 0.9");
    for round in rounds {
        first.ours.push(round.loads[0].commits_per_s);
        first.theirs.push(round.syncs_per_s);
    }
    let bytes: Vec<f64> = rounds.iter().map(|r| r.loads[0].write_bytes).collect();
    println!("mean log write of one session: {} bytes", figure(median(&bytes)));
    print_pairs(options, "", ["assay", "fio syncs/s"], &[first]);
    let names = ["8 sessions, commits/s", "64 sessions, commits/s"];
    let goals = ["", ">= 20"];
    let mut more: Vec<Pairs> = Vec::new();
    for (i, (name, goal)) in names.into_iter().zip(goals).enumerate() {
        let mut row = Pairs::new(name, goal);
        for round in rounds {
            row.ours.push(round.loads[i + 1].commits_per_s);
            row.theirs.push(round.loads[0].commits_per_s);
        }
        more.push(row);
    }
    print_pairs(options, "", ["assay", "1 session"], &more);
    println!(
        "{:<10} {:>16} {:>18} {:>16} {:>22}",
        "sessions", "commits a write", "CPU a commit, us", "commit p99, us", "p99 / sync time (<= 5)"
    );
    for (i, (schemas, threads)) in LOADS.into_iter().enumerate() {
        let of = |pick: fn(&Load) -> f64| median(&rounds.iter().map(|r| pick(&r.loads[i])).collect::<Vec<_>>());
        let relative = rounds.iter().map(|r| r.loads[i].sync_p99_us * r.syncs_per_s / 1e6);
        println!(
            "{:<10} {:>16} {:>18} {:>16} {:>22}",
            schemas * threads,
            figure(of(|load| load.per_write)),
            figure(of(|load| load.cpu_us)),
            figure(of(|load| load.sync_p99_us)),
            figure(median(&relative.collect::<Vec<_>>()))
        );
    }
}

/// A file of zeroes that were really written.
pub(crate) fn write_zeroes(path: &Path) -> Result<()> {
    let mut file = std::fs::File::create(path).with_context(|| path.display().to_string())?;
    let piece = vec![0; 1 << 20];
    for _ in 0..FILE_MIB {
        file.write_all(&piece)?;
    }
    file.sync_all()?;
    Ok(())
}

fn sync_with_fio(options: &Options, file: &Path, bytes: f64) -> Result<f64> {
    let arguments = [
        "--ioengine=psync",
        "--rw=write",
        "--overwrite=1",
        "--fdatasync=1",
        "--time_based",
        &format!("--bs={bytes:.0}"),
        &format!("--size={FILE_MIB}M"),
        &format!("--ramp_time={}", options.warmup_s()),
        &format!("--runtime={}", options.window_s()),
    ]
    .map(str::to_owned);
    Ok(fio::run(file, "write", &arguments, None)?.iops)
}
