//! `runs`: the runs kept in a directory, found by looking into it.

use crate::cli::{Format, RunsCommand};
use crate::exit::{Code, Failure};
use crate::rundir::{
    self, CONFIG, FIO_JSON, RECORD, REPORT, REPORT_HTML, RunDir, SERIES, SWEEP, SWEEP_HTML,
    SWEEP_TEXT,
};
use crate::{plan_text, record, recover, ui};
use assay_measure::record::Record;
use assay_measure::units;
use assay_report::sweep::Sweep;
use serde_json::{Value, json};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What may be in the directory of a run or a sweep.
const FILES: [&str; 11] = [
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
        RunsCommand::List { dir, format } => list(dir, *format),
        RunsCommand::Show { run, dir } => show(&find(run, dir)?),
        RunsCommand::Rm { runs, dir } => remove(runs, dir),
        RunsCommand::Recover { run, dir } => rebuild(&find(run, dir)?),
    }
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

/// Directories of runs and sweeps in `dir`, by name, which is by time; the directory may be absent.
fn kept(dir: &Path) -> Result<Vec<PathBuf>, Failure> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => {
            return Err(Failure::usage(format!("{}: {error}", dir.display())));
        }
    };
    let mut kept: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| {
            let holds = |name: &&str| path.join(name).is_file();
            [RECORD, SERIES, SWEEP].iter().any(holds) || killed_io(path)
        })
        .collect();
    kept.sort();
    Ok(kept)
}

/// One run as `runs list` shows it.
struct Card {
    id: String,
    started: String,
    workload: String,
    engine: String,
    ops_per_s: Option<f64>,
    verdict: String,
    path: PathBuf,
}

impl Card {
    fn of(path: PathBuf) -> Self {
        if path.join(SWEEP).is_file() {
            return match record::read_sweep(&path.join(SWEEP)) {
                Ok(swept) => Self::swept(path, &swept),
                Err(_) => Self::unrecorded(path, "unreadable"),
            };
        }
        match record::read(&path.join(RECORD)) {
            Ok(record) => Self::recorded(path, &record),
            Err(_) => {
                let verdict = if path.join(RECORD).is_file() {
                    "unreadable"
                } else {
                    "not recovered"
                };
                Self::unrecorded(path, verdict)
            }
        }
    }

    fn recorded(path: PathBuf, record: &Record) -> Self {
        Self {
            id: record.run.id.clone(),
            started: record.run.started.chars().take(19).collect(),
            workload: record.run.workload.clone(),
            engine: record.run.engine.clone(),
            ops_per_s: ops_per_s(record),
            verdict: record.run.verdict.clone(),
            path,
        }
    }

    /// A sweep's throughput is that of its best step.
    fn swept(path: PathBuf, swept: &Sweep) -> Self {
        let rates = swept.steps.iter().filter_map(|step| step.ops_per_s.value());
        let (engine, _) = swept.sweep.target.split_once(':').unwrap_or_default();
        Self {
            id: swept.sweep.id.clone(),
            started: swept.sweep.started.chars().take(19).collect(),
            workload: format!("{} sweep", swept.sweep.workload),
            engine: engine.to_owned(),
            ops_per_s: rates.max_by(f64::total_cmp),
            verdict: swept.sweep.verdict.clone(),
            path,
        }
    }

    fn unrecorded(path: PathBuf, verdict: &str) -> Self {
        let name = path
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        Self {
            id: name.rsplit('-').next().unwrap_or_default().to_owned(),
            started: "-".to_owned(),
            workload: "-".to_owned(),
            engine: "-".to_owned(),
            ops_per_s: None,
            verdict: verdict.to_owned(),
            path,
        }
    }

    fn row(&self) -> [String; 7] {
        [
            self.id.clone(),
            self.started.clone(),
            self.workload.clone(),
            self.engine.clone(),
            self.ops_per_s
                .map_or("n/a".to_owned(), |rate| units::fixed(rate, 1)),
            self.verdict.clone(),
            self.path.display().to_string(),
        ]
    }

    fn json(&self) -> Value {
        json!({
            "id": self.id,
            "started": self.started,
            "workload": self.workload,
            "engine": self.engine,
            "ops_per_s": self.ops_per_s,
            "verdict": self.verdict,
            "path": self.path.display().to_string(),
        })
    }
}

fn ops_per_s(record: &Record) -> Option<f64> {
    let ops = record.interval.ops_count.value()?;
    let elapsed = record.interval.elapsed_s.value()?;
    (elapsed > 0.0).then(|| ops / elapsed)
}

fn list(dir: &Path, format: Format) -> Result<Code, Failure> {
    let cards: Vec<Card> = kept(dir)?.into_iter().map(Card::of).collect();
    let text = match format {
        Format::Json => plan_text::pretty(&Value::Array(cards.iter().map(Card::json).collect())),
        Format::Text => table(&cards),
    };
    if cards.is_empty() {
        ui::say(&format!("{}: there are no runs", dir.display()));
    }
    ui::product(&text)?;
    Ok(Code::Good)
}

fn table(cards: &[Card]) -> String {
    let head = [
        "ID",
        "STARTED (UTC)",
        "WORKLOAD",
        "TARGET",
        "OPS/S",
        "VERDICT",
        "DIRECTORY",
    ];
    let mut rows = vec![head.map(str::to_owned)];
    rows.extend(cards.iter().map(Card::row));
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut out = String::new();
    for row in &rows {
        let cells: Vec<String> = row
            .iter()
            .zip(&widths)
            .enumerate()
            .map(|(column, (cell, width))| {
                // Numbers line up at their right.
                if column == 4 {
                    format!("{cell:>width$}")
                } else {
                    format!("{cell:<width$}")
                }
            })
            .collect();
        out.push_str(cells.join("  ").trim_end());
        out.push('\n');
    }
    out
}

fn show(path: &Path) -> Result<Code, Failure> {
    let dir = directory_of(path);
    let card = Card::of(dir.clone());
    let mut out = String::new();
    let labels = [
        "id",
        "started (UTC)",
        "workload",
        "target",
        "ops/s",
        "verdict",
        "directory",
    ];
    for (label, value) in labels.iter().zip(card.row()) {
        out.push_str(&format!("{label:<14} {value}\n"));
    }
    if let Ok(record) = record::read(&dir.join(RECORD)) {
        out.push_str(&format!("{:<14} {}\n", "sessions", record.run.sessions));
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
        if path.join(SWEEP).is_file() {
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

/// What a killed `io` leaves: it keeps no series, only what it was asked.
fn killed_io(path: &Path) -> bool {
    let given = fs::read_to_string(path.join("config/given"));
    !path.join(RECORD).exists() && given.is_ok_and(|given| given.starts_with("assay io "))
}

fn ours(path: &Path) -> Result<PathBuf, Failure> {
    let recorded = record::read(&path.join(RECORD)).is_ok();
    let swept = record::read_sweep(&path.join(SWEEP)).is_ok();
    let interrupted = path.join(SERIES).is_file() && recover::is_ours(path);
    if path.is_dir() && (recorded || interrupted || swept || killed_io(path)) {
        return Ok(path.to_path_buf());
    }
    Err(Failure::usage(format!(
        "{} holds no run of assay; it is not removed",
        path.display()
    )))
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
