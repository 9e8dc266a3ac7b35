//! One run directory as the catalogue knows it.

use super::tags;
use crate::exit::Failure;
use crate::rundir::{self, RECORD, REPEAT, SERIES, TAGS, killed_io};
use crate::stored;
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::statistics::median;
use assay_report::compare::Repeats;
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

/// Files that say what a directory is once its run has ended.
const FACES: [&str; 2] = [REPEAT, RECORD];

/// What tells whether a directory changed since it was read: its record's and its tags' time and size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Stamp {
    /// The file that says what it is.
    pub(super) file: String,
    pub(super) mtime_ns: i64,
    pub(super) size: i64,
    pub(super) tags_mtime_ns: i64,
    pub(super) tags_size: i64,
}

/// A directory of ours.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    pub(crate) name: String,
    pub(super) stamp: Stamp,
    pub(crate) path: PathBuf,
}

/// What is shown and looked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Entry {
    /// Name of the directory.
    pub(crate) name: String,
    /// `run`, `sweep`, `repeat`, `io`, `sync`, `recovery`, `import`; `killed` where there is no record.
    pub(crate) kind: String,
    pub(crate) id: String,
    /// UTC, to the second; empty if not known.
    pub(crate) started: String,
    pub(crate) workload: String,
    pub(crate) engine: String,
    pub(crate) label: String,
    pub(crate) host: String,
    pub(crate) verdict: String,
    /// Of assay.
    pub(crate) version: String,
    pub(crate) sessions: Option<i64>,
    pub(crate) elapsed_s: Option<f64>,
    pub(crate) ops_per_s: Option<f64>,
    pub(crate) tags: Vec<String>,
}

/// The runs in a directory, by name; the directory may be absent.
pub(crate) fn places(dir: &Path) -> Result<Vec<Found>, Failure> {
    let entries = match fs::read_dir(dir) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Failure::usage(format!("{}: {error}", dir.display()))),
    };
    let mut found: Vec<Found> = entries.flatten().filter_map(|entry| look(&entry)).collect();
    found.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(found)
}

fn look(entry: &fs::DirEntry) -> Option<Found> {
    // A link to a run's directory is one too; a file costs no further look.
    if entry.file_type().is_ok_and(|kind| kind.is_file()) {
        return None;
    }
    look_at(entry.path())
}

/// What a directory of ours says it is.
pub(crate) fn look_at(path: PathBuf) -> Option<Found> {
    // A name that is no text cannot be given on the command line either.
    let name = path.file_name().unwrap_or_default().to_str()?.to_owned();
    let about = |file: &str| fs::metadata(path.join(file)).ok().filter(fs::Metadata::is_file);
    let of = |file: &str| about(file).map(|about| (file.to_owned(), about));
    let (file, about_it) = [REPEAT, RECORD, SERIES]
        .iter()
        .find_map(|file| of(file))
        .or_else(|| of("config/given").filter(|_| killed_io(&path)))
        // What goes on there, or below, has written nothing yet.
        .or_else(|| Some((String::new(), fs::metadata(&path).ok().filter(|_| rundir::is_claimed(&path))?)))?;
    let (mut mtime_ns, size) = time_and_size(&about_it);
    let has_no_record = !FACES.contains(&file.as_str());
    if has_no_record && rundir::is_claimed(&path) {
        // A time that no file has: it is looked at again when the run has ended.
        mtime_ns = -mtime_ns;
    }
    let (tags_mtime_ns, tags_size) = about(TAGS).map_or((0, 0), |tags| time_and_size(&tags));
    let stamp = Stamp { file, mtime_ns, size, tags_mtime_ns, tags_size };
    Some(Found { name, stamp, path })
}

fn time_and_size(about: &fs::Metadata) -> (i64, i64) {
    let size = i64::try_from(about.size()).unwrap_or(i64::MAX);
    (about.mtime() * 1_000_000_000 + about.mtime_nsec(), size)
}

/// Reads what a directory holds, and its metrics.
pub(super) fn read(found: &Found) -> (Entry, Vec<Metric>) {
    let path = found.path.join(&found.stamp.file);
    let (mut entry, metrics) = match found.stamp.file.as_str() {
        REPEAT => match stored::read_repeats(&path) {
            Ok(repeats) => of_repeats(found, &repeats),
            Err(_) => unrecorded(found, "unreadable"),
        },
        RECORD => match stored::read(&path) {
            Ok(record) => of_record(&record),
            Err(_) => unrecorded(found, "unreadable"),
        },
        _ if found.stamp.mtime_ns < 0 => unrecorded(found, "under way"),
        _ => unrecorded(found, "not recovered"),
    };
    entry.name.clone_from(&found.name);
    entry.tags = tags::read(&found.path);
    (entry, metrics)
}

/// One directory, read now; `None` if it is none of ours.
pub(crate) fn card(dir: &Path) -> Option<Entry> {
    Some(read(&look_at(dir.to_path_buf())?).0)
}

impl Entry {
    /// Whether it may be of a record with the same figures: what it says of its own is what such a record says.
    pub(crate) fn shows(&self, record: &Record) -> bool {
        let told = |entry: &Self| (entry.sessions, entry.elapsed_s, entry.ops_per_s);
        let own = entry_of(record);
        self.kind == own.kind && own.started.starts_with(&self.started) && told(self) == told(&own)
    }
}

fn of_record(record: &Record) -> (Entry, Vec<Metric>) {
    (entry_of(record), record.metrics.clone())
}

fn entry_of(record: &Record) -> Entry {
    let run = &record.run;
    let host = record.host.facts.iter().find(|fact| fact.name == "hostname");
    let ops = find(&record.metrics, "ops_per_s");
    Entry {
        kind: record.kind.clone(),
        id: run.id.clone(),
        started: to_the_second(&run.started),
        workload: run.workload.clone(),
        engine: run.engine.clone(),
        label: run.label.clone().unwrap_or_default(),
        host: host.map_or_else(String::new, |fact| fact.value.clone()),
        verdict: run.verdict.clone(),
        version: run.version.clone(),
        sessions: i64::try_from(run.sessions).ok().filter(|n| *n > 0),
        elapsed_s: record.interval.elapsed_s.value(),
        ops_per_s: ops.and_then(|metric| metric.value.value()),
        ..Entry::default()
    }
}

fn to_the_second(started: &str) -> String {
    started.chars().take(19).collect()
}

/// Repeats of one run: each figure is the median of what they found.
fn of_repeats(found: &Found, repeats: &Repeats) -> (Entry, Vec<Metric>) {
    let members = repeats.runs.iter().filter_map(|run| {
        let record = stored::read(&found.path.join(&run.directory).join(RECORD));
        Some(of_record(&record.ok()?))
    });
    let members: Vec<(Entry, Vec<Metric>)> = members.collect();
    let middle = |key: &str| {
        let figures = members.iter().filter_map(|(_, metrics)| find(metrics, key));
        let values: Vec<f64> = figures.filter_map(|metric| metric.value.value()).collect();
        median(&values)
    };
    let (first, figures) = members.first().cloned().unwrap_or_default();
    let metrics = figures.into_iter().map(|metric| Metric {
        value: middle(&metric.full_key()).map_or_else(|| metric.value.clone(), Figure::decimal),
        ..metric
    });
    let entry = Entry {
        kind: "repeat".to_owned(),
        id: repeats.id.clone(),
        started: to_the_second(&repeats.started),
        workload: repeats.workload.clone(),
        label: repeats.label.clone(),
        verdict: repeats.verdict.clone(),
        version: repeats.version.clone(),
        ops_per_s: middle("ops_per_s"),
        ..first
    };
    (entry, metrics.collect())
}

fn id_of(name: &str) -> String {
    name.rsplit('-').next().unwrap_or_default().to_owned()
}

fn unrecorded(found: &Found, verdict: &str) -> (Entry, Vec<Metric>) {
    let entry =
        Entry { kind: "killed".to_owned(), id: id_of(&found.name), verdict: verdict.to_owned(), ..Entry::default() };
    (entry, Vec::new())
}
