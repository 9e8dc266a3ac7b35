//! `runs`: the runs kept in a directory, and what is known of them.

mod list;
mod tag;
mod trend;

use crate::catalogue::{self, Catalogue};
use crate::cli::RunsCommand;
use crate::exit::{Code, Failure};
use crate::rundir::{
    self, CONFIG, FIO_JSON, RECORD, REPEAT, REPORT, REPORT_HTML, RunDir, SERIES, SWEEP, SWEEP_HTML,
    SWEEP_TEXT, TAGS, killed_io,
};
use crate::{record, recover, ui};
use assay_measure::units;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What may be in the directory of a run or a sweep.
const FILES: [&str; 14] = [
    TAGS,
    REPEAT,
    rundir::REPEAT_TEXT,
    RECORD,
    REPORT,
    REPORT_HTML,
    FIO_JSON,
    SERIES,
    SWEEP,
    SWEEP_TEXT,
    SWEEP_HTML,
    assay_report::html::SHARED,
    "config/given",
    "config/effective",
];

pub(super) fn runs(command: &RunsCommand) -> Result<Code, Failure> {
    match command {
        RunsCommand::List {
            which,
            metric,
            format,
        } => list::list(which, metric, *format),
        RunsCommand::Show { run, dir } => show(&find(run, dir)?),
        RunsCommand::Rm { runs, dir } => remove(runs, dir),
        RunsCommand::Tag { run, changes, dir } => tag::tag(run, changes, dir),
        RunsCommand::Trend {
            metric,
            which,
            format,
        } => trend::trend(metric, which, *format),
        RunsCommand::Rebuild { dir } => anew(dir),
        RunsCommand::Recover { run, dir } => rebuild(&find(run, dir)?),
    }
}

/// Reads every record again.
fn anew(dir: &Path) -> Result<Code, Failure> {
    let catalogue = Catalogue::rebuild(dir)?;
    ui::say(&format!(
        "{}: {} runs",
        dir.join(catalogue::FILE).display(),
        catalogue.entries.len()
    ));
    Ok(Code::Good)
}

/// The directory or record file that `run` names: a path, an id, or `last`.
pub(super) fn find(run: &str, dir: &Path) -> Result<PathBuf, Failure> {
    let path = Path::new(run);
    if path.exists() {
        return Ok(path.to_path_buf());
    }
    let kept = kept(dir)?;
    if run == "last" {
        return kept
            .into_iter()
            .next_back()
            .ok_or_else(|| Failure::usage(format!("{}: there are no runs", dir.display())));
    }
    let mut matching: Vec<PathBuf> = kept.into_iter().filter(|path| names(path, run)).collect();
    match (matching.pop(), matching.is_empty()) {
        (Some(only), true) => Ok(only),
        (Some(_), false) => Err(Failure::usage(format!(
            "{run} names several runs in {}; give more of the name",
            dir.display()
        ))),
        (None, _) => Err(Failure::usage(format!(
            "{run} is no path and names no run in {}; `assay runs list` shows them",
            dir.display()
        ))),
    }
}

/// Whether a directory's name is `run` or ends in that id.
fn names(path: &Path, run: &str) -> bool {
    let Some(name) = path.file_name().and_then(|name| name.to_str()) else {
        return false;
    };
    !run.is_empty() && (name == run || name.ends_with(&format!("-{run}")))
}

/// Directories of ours in `dir`, by name, which is by time; the directory may be absent.
fn kept(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let places = catalogue::places(dir)?;
    Ok(places.into_iter().map(|found| found.path).collect())
}

fn show(path: &Path) -> Result<Code, Failure> {
    let dir = directory_of(path);
    let card = catalogue::card(&dir).ok_or_else(|| not_ours(&dir, "shown"))?;
    let mut out = String::new();
    for (label, value) in list::card(&card) {
        out.push_str(&format!("{label:<14} {value}\n"));
    }
    out.push_str(&format!("{:<14} {}\n", "directory", dir.display()));
    if let Ok(record) = record::read(&dir.join(RECORD)) {
        out.push_str(&format!("{:<14} {}\n", "seed", record.run.seed));
        for reason in &record.run.verdict_reasons {
            out.push_str(&format!("{:<14} {reason}\n", "reason"));
        }
    }
    if let Ok(swept) = record::read_sweep(&dir.join(SWEEP)) {
        out.push_str(&format!("{:<14} {}\n", "steps", swept.steps.len()));
        for curve in &swept.curves {
            out.push_str(&format!("{:<14} {}\n", "knee", curve.knee.sentence));
        }
    }
    if let Ok(repeats) = record::read_repeats(&dir.join(REPEAT)) {
        for run in &repeats.runs {
            let rate = run.ops_per_s.value();
            let rate = rate.map_or("n/a".to_owned(), |rate| units::fixed(rate, 1));
            let (name, verdict) = (&run.directory, &run.verdict);
            out.push_str(&format!("{:<14} {name}: {rate} ops/s, {verdict}\n", "run"));
        }
    }
    for name in files(&dir) {
        if let Ok(about) = fs::metadata(dir.join(&name)) {
            out.push_str(&format!(
                "{:<14} {name} ({})\n",
                "file",
                units::size(about.len())
            ));
        }
    }
    ui::product(&out)?;
    Ok(Code::Good)
}

/// The run directory of a path that may be its record.
fn directory_of(path: &Path) -> PathBuf {
    if path.is_dir() {
        return path.to_path_buf();
    }
    path.parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Removes runs; nothing is removed if one of the names is not a run of ours.
fn remove(runs: &[String], dir: &Path) -> Result<Code, Failure> {
    let found: Vec<PathBuf> = runs
        .iter()
        .map(|run| find(run, dir).and_then(|path| ours(&path)))
        .collect::<Result<_, _>>()?;
    for path in found {
        if path.join(SWEEP).is_file() || path.join(REPEAT).is_file() {
            for step in kept(&path)? {
                if ours(&step).is_ok() {
                    remove_one(&step)?;
                }
            }
        }
        remove_one(&path)?;
        ui::say(&format!("removed {}", path.display()));
    }
    Ok(Code::Good)
}

/// The files that belong to a run or a sweep in `dir`.
fn files(dir: &Path) -> Vec<String> {
    let fixed = FILES.map(str::to_owned).into_iter();
    let more = rundir::outputs(dir)
        .into_iter()
        .chain(rundir::job_files(dir));
    fixed.chain(more).collect()
}

/// Files of a run or a sweep, and nothing else.
fn remove_one(path: &Path) -> Result<(), Failure> {
    for name in files(path) {
        remove_file(&path.join(name))?;
    }
    // Whatever else somebody put there stays, and then its directory too.
    let left = [path.join(CONFIG), path.to_path_buf()]
        .iter()
        .any(|dir| dir.exists() && fs::remove_dir(dir).is_err());
    if left {
        ui::say(&format!(
            "notice: {} holds files that are not a run's; they were left",
            path.display()
        ));
    }
    Ok(())
}

fn ours(path: &Path) -> Result<PathBuf, Failure> {
    if is_ours(path) {
        return Ok(path.to_path_buf());
    }
    Err(not_ours(path, "removed"))
}

/// Whether a directory holds a run, a sweep or repeats of ours that can be read, or what a killed one left.
fn is_ours(path: &Path) -> bool {
    let recorded = || record::read(&path.join(RECORD)).is_ok();
    let swept = || record::read_sweep(&path.join(SWEEP)).is_ok();
    let repeated = || record::read_repeats(&path.join(REPEAT)).is_ok();
    let interrupted = || path.join(SERIES).is_file() && recover::is_ours(path);
    path.is_dir() && (recorded() || interrupted() || swept() || repeated() || killed_io(path))
}

fn not_ours(path: &Path, done: &str) -> Failure {
    Failure::usage(format!(
        "{} holds no run of assay; it is not {done}",
        path.display()
    ))
}

fn remove_file(path: &Path) -> Result<(), Failure> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(rundir::cannot(path, &error)),
        _ => Ok(()),
    }
}

fn rebuild(path: &Path) -> Result<Code, Failure> {
    let dir = directory_of(path);
    if record::read(&dir.join(RECORD)).is_ok() {
        return Err(Failure::usage(format!(
            "{} has its record already; nothing is to be recovered",
            dir.display()
        )));
    }
    let recovered = recover::recover(&dir)?;
    let faces = record::faces(&recovered.data, recovered.series)?;
    record::write(&RunDir::existing(&dir), &faces)?;
    ui::product(&faces.text)?;
    ui::say(&format!("recovered: {}", dir.display()));
    Ok(Code::Good)
}
