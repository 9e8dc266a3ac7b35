//! `runs`: the runs kept in a directory.

pub(super) mod index;
mod list;
pub(super) mod tag;
pub(super) mod trend;

use crate::catalogue::{self, Catalogue};
use crate::cli::RunsCommand;
use crate::dir_handle::DirHandle;
use crate::exit::{Code, Failure};
use crate::rundir::{self, PATIENCE, RECORD, REPEAT, RunDir, SERIES};
use crate::stored;
use crate::{answer, record, recover, ui};
use assay_measure::units;
use assay_report::kinds;
use std::fs;
use std::path::{Path, PathBuf};

pub(super) fn runs(command: &RunsCommand) -> Result<Code, Failure> {
    match command {
        RunsCommand::List { which, metric, format, output } => list::list(which, metric, format, output.as_deref()),
        RunsCommand::Show { run, dir, .. } => show(&find(run, dir)?),
        RunsCommand::Rm { runs, dir, yes } => remove(runs, dir, *yes),
        RunsCommand::Tag { run, changes, dir } => tag::tag(run, changes, dir),
        RunsCommand::Trend { metric, which, format } => trend::trend(metric, which, format),
        RunsCommand::Rebuild { dir } => anew(dir),
        RunsCommand::Recover { run, dir } => rebuild(&find(run, dir)?),
    }
}

/// Reads every record again.
fn anew(dir: &Path) -> Result<Code, Failure> {
    let catalogue = Catalogue::rebuild(dir)?;
    ui::say(&format!("{}: {} runs", dir.join(rundir::CATALOGUE).display(), catalogue.entries.len()));
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
            "{run} matches several runs in {}; give a longer part of the name",
            dir.display()
        ))),
        (None, _) => Err(Failure::usage(format!(
            "{run} is not a path and matches no run in {}; `assay runs list` shows the runs",
            dir.display()
        ))),
    }
}

/// The runs among names that a shell may have made of `assay-runs/*`: the catalogue beside them is none.
pub(super) fn named(names: &[String]) -> Result<Vec<&String>, Failure> {
    let is_run = |name: &&String| Path::new(name).file_name().is_none_or(|file| file != rundir::CATALOGUE);
    let runs: Vec<&String> = names.iter().filter(is_run).collect();
    if runs.is_empty() && !names.is_empty() {
        return Err(Failure::usage(format!("no run is named: {} is the list of runs", rundir::CATALOGUE)));
    }
    Ok(runs)
}

/// The record files that one name stands for.
pub(super) fn records_of(name: &str, dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let found = find(name, dir)?;
    // Whatever it is: its reader says why it is none.
    if !found.is_dir() && !found.ends_with(REPEAT) {
        return Ok(vec![found]);
    }
    let at = if found.is_dir() { found } else { found.parent().unwrap_or(Path::new(".")).to_path_buf() };
    if at.join(REPEAT).is_file() {
        let repeats = stored::read_repeats(&at.join(REPEAT))?;
        let runs = repeats.runs.iter();
        return Ok(runs.map(|run| at.join(&run.directory).join(RECORD)).collect());
    }
    let path = at.join(RECORD);
    if path.exists() {
        return Ok(vec![path]);
    }
    let holds_none = || format!("{}: contains neither {RECORD} nor {REPEAT}: name a run", at.display());
    Err(missing(&at, holds_none))
}

/// Why a directory has no record: it may be one of a run that was killed, else it is what the caller says.
pub(super) fn missing(dir: &Path, else_said: impl Fn() -> String) -> Failure {
    Failure::usage(if dir.join(SERIES).is_file() {
        format!(
            "{0} has no record: the run was killed or is still running; `assay runs recover {0}` rebuilds the record",
            dir.display()
        )
    } else {
        else_said()
    })
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
    if let Ok(record) = stored::read(&dir.join(RECORD)) {
        out.push_str(&format!("{:<14} {}\n", "seed", record.run.seed));
        for reason in &record.run.verdict_reasons {
            out.push_str(&format!("{:<14} {reason}\n", "reason"));
        }
        for (title, text) in assay_report::answer::figures(&record) {
            let title = title.to_lowercase();
            out.push_str(&format!("{title:<14} {text}\n"));
        }
    }
    if let Ok(repeats) = stored::read_repeats(&dir.join(REPEAT)) {
        for run in &repeats.runs {
            let rate = run.ops_per_s.value();
            let rate = rate.map_or("n/a".to_owned(), |rate| units::fixed(rate, 1));
            let (name, verdict) = (&run.directory, &run.verdict);
            out.push_str(&format!("{:<14} {name}: {rate} ops/s, {verdict}\n", "run"));
        }
    }
    for name in rundir::files(&dir) {
        if let Ok(about) = fs::metadata(dir.join(&name)) {
            out.push_str(&format!("{:<14} {name} ({})\n", "file", units::size(about.len())));
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
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).map_or_else(|| PathBuf::from("."), Path::to_path_buf)
}

/// Removes runs; nothing is removed if one of the names is not a run of ours, or is under way.
fn remove(runs: &[String], dir: &Path, yes: bool) -> Result<Code, Failure> {
    let found: Vec<DirHandle> =
        named(runs)?.into_iter().map(|run| find(run, dir).and_then(|path| ours(&path))).collect::<Result<_, _>>()?;
    let places = || {
        let place = |run: &DirHandle| {
            let within = if stands_above_runs(run) { ", with the runs in it" } else { "" };
            format!("{}{within}", run.path().display())
        };
        Ok(found.iter().map(place).collect::<Vec<_>>().join("\n"))
    };
    if !yes && !ui::agreed(places)? {
        return Ok(Code::Good);
    }
    for run in found {
        if stands_above_runs(&run) {
            for step in steps(&run)? {
                remove_one(&step)?;
            }
        }
        remove_one(&run)?;
    }
    Ok(Code::Good)
}

/// Whether runs below a directory are part of what it holds.
fn stands_above_runs(dir: &DirHandle) -> bool {
    let record = stored::read(&dir.path().join(RECORD));
    dir.has(REPEAT) || record.is_ok_and(|record| kinds::stands_above_runs(&record))
}

/// The runs that such a directory stands above, claimed.
fn steps(above: &DirHandle) -> Result<Vec<DirHandle>, Failure> {
    let names = above.names().map_err(|error| rundir::cannot(above.path(), &error))?;
    let mut found = Vec::new();
    for (name, _) in names {
        if let Some(step) = above.sub(&name).ok().filter(is_ours) {
            rundir::claim(&step, PATIENCE)?;
            found.push(step);
        }
    }
    Ok(found)
}

/// Files of a run or a sweep, and nothing else.
fn remove_one(run: &DirHandle) -> Result<(), Failure> {
    let left = rundir::remove(run).map_err(|error| rundir::cannot(run.path(), &error))?;
    if left.is_empty() {
        ui::say(&format!("removed {}", run.path().display()))
    } else {
        rundir::tell_left(run, &left)
    }
    Ok(())
}

/// The directory of a run that is to be removed, claimed.
fn ours(path: &Path) -> Result<DirHandle, Failure> {
    // A slash at its end would hide that it is a link.
    let path: &Path = &path.components().collect::<PathBuf>();
    if path.symlink_metadata().is_ok_and(|about| about.is_symlink()) {
        return Err(Failure::usage(format!(
            "{}: is a link to a directory; name the directory, and remove the link yourself",
            path.display()
        )));
    }
    let held = DirHandle::open_itself(path).ok().filter(is_ours);
    let held = held.ok_or_else(|| not_ours(path, "removed"))?;
    rundir::claim(&held, PATIENCE)?;
    Ok(held)
}

/// Whether a directory holds a run, a sweep or repeats of ours that can be read, or what a killed one left.
fn is_ours(dir: &DirHandle) -> bool {
    stored::is_in(dir) || recover::is_ours(dir) || rundir::is_killed_io(dir)
}

fn not_ours(path: &Path, done: &str) -> Failure {
    Failure::usage(format!("{} contains no run of assay; it is not {done}", path.display()))
}

fn rebuild(path: &Path) -> Result<Code, Failure> {
    let dir = RunDir::claimed(&directory_of(path))?;
    let path = dir.path().display();
    if stored::is_in(dir.held()) {
        return Err(Failure::usage(format!("{path} already has its record; there is nothing to recover")));
    }
    let recovered = recover::recover(dir.held())?;
    let record = record::of(&recovered.data, recovered.series);
    record::write(&dir, &record)?;
    answer::product(&record, Default::default(), dir.path())?;
    ui::say(&format!("recovered: {path}"));
    Ok(Code::Good)
}
