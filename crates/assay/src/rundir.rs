//! Run directories: made once, never overwritten, every file written whole or not at all.

use crate::dir_handle::{DirHandle, PARTIAL};
use crate::exit::{Code, Failure};
use crate::ui;
use assay_run::bounded;
use assay_run::host::random_u32;
use rustix::fs::FileType;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Where runs are kept unless `-o` says otherwise.
pub(crate) const RUNS_DIR: &str = "assay-runs";
/// The record within a run directory.
pub(crate) const RECORD: &str = "record.json";
/// The text report.
pub(crate) const REPORT: &str = "report.txt";
/// The page with charts.
pub(crate) const REPORT_HTML: &str = "report.html";
/// The series, appended to while the run goes on.
pub(crate) const SERIES: &str = "series.jsonl";
/// The summary of repeats, above their runs.
pub(crate) const REPEAT: &str = "repeat.json";
/// The same as text.
pub(crate) const REPEAT_TEXT: &str = "repeat.txt";
/// What `io` measured in fio's own JSON.
pub(crate) const FIO_JSON: &str = "fio.json";
/// Words by which the user finds a run again, a line each.
pub(crate) const TAGS: &str = "tags";
/// The configuration as given and as effective.
pub(crate) const CONFIG: &str = "config";

/// What is known of the runs in a directory, beside them.
pub(crate) const CATALOGUE: &str = "catalogue.jsonl";
/// What `recovery` keeps while it kills.
pub(crate) const JOURNAL: &str = "journal";
/// How long a claim that another process holds is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);
/// Changes of tags are short and may be many at once.
const PATIENCE_OF_TAGS: Duration = Duration::from_secs(5);

/// What may be in the directory of a run or a sweep, beside outputs of commands and `config`.
pub(crate) const FILES: [&str; 10] =
    [TAGS, REPEAT, REPEAT_TEXT, RECORD, REPORT, REPORT_HTML, FIO_JSON, SERIES, JOURNAL, assay_report::html::SHARED];

/// The directory of one run.
#[derive(Debug)]
pub(crate) struct RunDir {
    held: DirHandle,
    config: Option<DirHandle>,
}

/// A new run's short id: eight hexadecimal digits.
pub(crate) fn new_id() -> String {
    format!("{:08x}", random_u32())
}

/// Where a run will be kept: `-o`, else a name of time, workload and id.
pub(crate) fn place(output: Option<&Path>, workload: &str, id: &str) -> PathBuf {
    output.map_or_else(
        || {
            let time = jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string();
            Path::new(RUNS_DIR).join(format!("{time}-{workload}-{id}"))
        },
        Path::to_path_buf,
    )
}

/// Refuses a directory that holds anything, before any work is done.
pub(crate) fn refuse_used(path: &Path) -> Result<(), Failure> {
    match fs::read_dir(path) {
        Ok(mut entries) => match entries.next() {
            None => Ok(()),
            Some(_) => Err(Failure::usage(format!(
                "-o {}: the directory is not empty, and assay never overwrites a run; name a new directory",
                path.display()
            ))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Failure::usage(format!("-o {}: is a file; name a new directory", path.display())))
        }
        Err(error) => Err(cannot(path, &error)),
    }
}

impl RunDir {
    /// Makes the directory of a run and claims it.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Failure> {
        let mut dir = Self::above(&path)?;
        let config = dir.held.make_sub(CONFIG);
        dir.config = Some(config.map_err(|error| cannot(&path.join(CONFIG), &error))?);
        Ok(dir)
    }

    /// Makes the directory above several runs and claims it.
    pub(crate) fn above(path: &Path) -> Result<Self, Failure> {
        fs::create_dir_all(path).map_err(|error| cannot(path, &error))?;
        let dir = Self::claimed(path)?;
        // Somebody else may have come first since it was looked at.
        refuse_used(path)?;
        Ok(dir)
    }

    /// An existing one.
    pub(crate) fn existing(path: &Path) -> Result<Self, Failure> {
        let held = DirHandle::open(path).map_err(|error| cannot(path, &error))?;
        let config = held.sub(CONFIG).ok();
        Ok(Self { held, config })
    }

    /// An existing one that nobody writes to.
    pub(crate) fn claimed(path: &Path) -> Result<Self, Failure> {
        let dir = Self::existing(path)?;
        claim(&dir.held, PATIENCE)?;
        Ok(dir)
    }

    pub(crate) fn path(&self) -> &Path {
        self.held.path()
    }

    /// The directory itself.
    pub(crate) fn held(&self) -> &DirHandle {
        &self.held
    }

    /// Writes a file whole: beside it, synced, renamed into place.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let missing = || io::Error::from(io::ErrorKind::NotFound);
        let written = match (split_config(name), &self.config) {
            (None, _) => self.held.write(name, text.as_bytes()),
            (Some(name), Some(config)) => config.write(name, text.as_bytes()),
            (Some(_), None) => Err(missing()),
        };
        written.map_err(|error| cannot(&self.path().join(name), &error))
    }

    /// Opens the series for appending; it must not exist yet.
    pub(crate) fn create_series(&self) -> Result<File, Failure> {
        let created = self.held.create(SERIES);
        created.map_err(|error| cannot(&self.path().join(SERIES), &error))
    }

    /// Removes what a run that never started left behind.
    pub(crate) fn discard(&self) {
        match remove(&self.held) {
            Ok(left) if left.is_empty() => {}
            Ok(left) => tell_left(&self.held, &left),
            Err(error) => ui::say(&format!("notice: {}: {error}", self.path().display())),
        }
    }
}

/// Claims a directory that is about to be changed.
///
/// # Errors
/// Another process writes there.
pub(crate) fn claim(held: &DirHandle, patience: Duration) -> Result<(), Failure> {
    if held.claim(patience) {
        Ok(())
    } else {
        Err(Failure::new(
            Code::Unusable,
            format!(
                "{}: another assay is writing there; wait until it ends, or stop it with Ctrl-C",
                held.path().display()
            ),
        ))
    }
}

/// Claims a directory for a change of its tags.
pub(crate) fn claim_for_tags(path: &Path) -> Result<RunDir, Failure> {
    let dir = RunDir::existing(path)?;
    claim(&dir.held, PATIENCE_OF_TAGS)?;
    Ok(dir)
}

/// Removes the files that assay writes into a run's directory, then the directory; whatever else is there stays and
/// is named. The directory is held by the caller, its `config` here, so no name leads anywhere else.
pub(crate) fn remove(held: &DirHandle) -> io::Result<Vec<String>> {
    let mut left = remove_files(held, is_file)?;
    if let Ok(config) = held.sub(CONFIG) {
        let foreign = remove_files(&config, is_config_file)?;
        left.retain(|name| name != CONFIG);
        left.extend(foreign.iter().map(|name| format!("{CONFIG}/{name}")));
        if foreign.is_empty() && held.remove_sub(&config).is_err() {
            left.push(CONFIG.to_owned());
        }
    }
    if left.is_empty() {
        let above = held.path().parent().filter(|path| !path.as_os_str().is_empty());
        let above = DirHandle::open(above.unwrap_or(Path::new(".")))?;
        above.remove_sub(held)?;
    }
    Ok(left)
}

/// Says what a removal left.
pub(crate) fn tell_left(held: &DirHandle, left: &[String]) {
    ui::say(&format!(
        "notice: {} contains files that assay did not write and did not remove: {}",
        held.path().display(),
        left.join(", ")
    ));
}

/// Removes the plain files whose names are `ours`; names what is left.
fn remove_files(held: &DirHandle, ours: fn(&str) -> bool) -> io::Result<Vec<String>> {
    let mut left = Vec::new();
    let mut names = held.names()?;
    // What says that this is a run of ours goes last: a removal that is cut short can be repeated.
    names.sort_by_key(|(name, _)| [RECORD, SERIES, REPEAT].contains(&name.as_str()));
    for (name, kind) in names {
        let gone = kind == FileType::RegularFile && ours(&name);
        match gone.then(|| held.remove_file(&name)) {
            Some(Ok(())) => {}
            Some(Err(error)) if error.kind() != io::ErrorKind::InvalidInput => return Err(error),
            _ => left.push(name),
        }
    }
    Ok(left)
}

/// The name of a file in `config`.
fn split_config(name: &str) -> Option<&str> {
    name.strip_prefix(CONFIG)?.strip_prefix('/')
}

/// Whether assay writes a file of this name into a run's directory.
fn is_file(name: &str) -> bool {
    let whole = name.strip_suffix(PARTIAL).unwrap_or(name);
    FILES.contains(&whole) || is_output(whole) || is_catalogue(name)
}

/// Whether the catalogue of a directory has files of this name: itself, one that is being written and those set aside.
fn is_catalogue(name: &str) -> bool {
    let end = name.strip_prefix(CATALOGUE);
    end.is_some_and(|end| end.is_empty() || end.ends_with(PARTIAL) || end.starts_with(".damaged"))
}

fn is_config_file(name: &str) -> bool {
    let whole = name.strip_suffix(PARTIAL).unwrap_or(name);
    let job = whole.strip_prefix("job-").and_then(|name| name.strip_suffix(".fio"));
    ["given", "effective"].contains(&whole) || job.is_some_and(is_number)
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// A job file as given, by its place on the command line from 1.
pub(crate) fn job_file(number: usize) -> String {
    format!("{CONFIG}/job-{number}.fio")
}

/// The files that belong to a run or a sweep in `dir`, by name.
pub(crate) fn files(dir: &Path) -> Vec<String> {
    let Ok(held) = DirHandle::open(dir) else {
        return Vec::new();
    };
    let plain = |held: &DirHandle| {
        let names = held.names().unwrap_or_default().into_iter();
        names.filter(|(_, kind)| *kind == FileType::RegularFile).map(|(name, _)| name)
    };
    let mut found: Vec<String> = plain(&held).filter(|name| is_file(name)).collect();
    if let Ok(config) = held.sub(CONFIG) {
        let names = plain(&config).filter(|name| is_config_file(name));
        found.extend(names.map(|name| format!("{CONFIG}/{name}")));
    }
    found
}

/// What a killed `io` leaves: it keeps no series, only what it was asked.
pub(crate) fn killed_io(path: &Path) -> bool {
    DirHandle::open(path).is_ok_and(|held| is_killed_io(&held))
}

/// The same of an open directory.
pub(crate) fn is_killed_io(held: &DirHandle) -> bool {
    let given = || held.sub(CONFIG).and_then(|config| config.read("given", bounded::CONFIGURATION));
    !held.has(RECORD) && given().is_ok_and(|given| given.starts_with("assay io "))
}

/// Whether a process writes to the directory now.
pub(crate) fn is_claimed(path: &Path) -> bool {
    DirHandle::open(path).is_ok_and(|held| held.is_claimed())
}

/// The run that a process measures now in a directory of ours, or below it.
pub(crate) fn under_way(place: &Path) -> Option<PathBuf> {
    if !is_claimed(place) {
        return None;
    }
    if place.join(SERIES).is_file() {
        return (!place.join(RECORD).is_file()).then(|| place.to_path_buf());
    }
    let is_dir = |entry: &fs::DirEntry| entry.file_type().is_ok_and(|kind| kind.is_dir());
    fs::read_dir(place).ok()?.flatten().filter(is_dir).find_map(|entry| under_way(&entry.path()))
}

fn is_output(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".out") else {
        return false;
    };
    let number = stem.strip_prefix("at-").unwrap_or_default();
    ["script-pre", "script-post", "script-end"].contains(&stem) || is_number(number)
}

/// The failure of an output path, with the operating system's reason.
pub(crate) fn cannot(path: &Path, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": make room, or keep runs elsewhere with -o DIR",
        io::ErrorKind::FileTooLarge => ": the file has reached the size limit; raise the limit (ulimit -f)",
        _ => "",
    };
    Failure::output(format!("{}: {error}{hint}", path.display()))
}

/// Writes a file that is in no run directory, whole.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text.as_bytes()).map_err(|error| cannot(path, &error))
}

fn write_whole(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let name = target.file_name().and_then(|name| name.to_str());
    let name = name.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
    // A link, a pipe or a device that somebody named is written to, not replaced.
    if fs::symlink_metadata(target).is_ok_and(|about| !about.is_file()) {
        return File::create(target)?.write_all(bytes);
    }
    let above = target.parent().filter(|above| !above.as_os_str().is_empty());
    let above = DirHandle::open(above.unwrap_or(Path::new(".")))?;
    // Nobody else's file has such a name.
    let partial = format!(".{name}.{}{PARTIAL}", std::process::id());
    above.write_through(&partial, name, bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_written_whole_and_replaced_whole() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run = RunDir::create(dir.path().join("run")).expect("created");
        run.write(RECORD, "one").expect("written");
        run.write(RECORD, "two").expect("replaced");
        let text = fs::read_to_string(run.path().join(RECORD)).expect("readable");
        assert_eq!(text, "two");
        let names: Vec<_> =
            fs::read_dir(run.path()).expect("readable").map(|entry| entry.expect("an entry").file_name()).collect();
        assert_eq!(names.len(), 2, "{names:?}");
    }

    #[test]
    fn a_used_directory_is_refused_and_a_new_or_empty_one_is_not() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        assert!(refuse_used(dir.path()).is_ok());
        assert!(refuse_used(&dir.path().join("new")).is_ok());
        fs::write(dir.path().join("file"), "x").expect("written");
        assert!(refuse_used(dir.path()).is_err());
        assert!(refuse_used(&dir.path().join("file")).is_err());
    }

    #[test]
    fn the_run_that_goes_on_below_another_directory_is_found() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let place = dir.path().join("sweep");
        let above = RunDir::above(&place).expect("created");
        assert_eq!(under_way(&place), None, "it has not begun");
        let [first, second] = ["step-1", "step-2"].map(|name| place.join(name));
        let step = RunDir::create(first.clone()).expect("created");
        step.create_series().expect("created");
        assert_eq!(under_way(&place), Some(first.clone()));
        assert_eq!(under_way(&first), Some(first));
        step.write(RECORD, "{}").expect("written");
        assert_eq!(under_way(&place), None, "it has ended");
        above.write(RECORD, "{}").expect("written");
        drop(step);
        let step = RunDir::create(second.clone()).expect("created");
        step.create_series().expect("created");
        assert_eq!(under_way(&place), Some(second), "above it is a record of the first step");
        drop(above);
        assert_eq!(under_way(&place), None, "nobody writes there any more");
    }

    #[test]
    fn an_unstarted_run_leaves_nothing_and_removes_nothing_else() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let run = RunDir::create(dir.path().join("run")).expect("created");
        run.create_series().expect("created");
        run.write("config/effective", "x").expect("written");
        run.write("script-pre.out", "x").expect("written");
        run.write("at-12.out", "x").expect("written");
        run.write(&job_file(1), "x").expect("written");
        run.write(&job_file(2), "x").expect("written");
        run.write(FIO_JSON, "x").expect("written");
        run.discard();
        assert!(!run.path().exists());
    }

    #[test]
    fn two_runs_of_one_place_do_not_mix_and_what_is_no_link_of_ours_is_not_followed() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("run");
        let run = RunDir::create(path.clone()).expect("created");
        let refused = RunDir::create(path.clone()).expect_err("claimed");
        assert_eq!(refused.code, Code::Unusable);
        assert!(is_claimed(&path));
        run.held().release();
        assert!(!is_claimed(&path));
        assert!(RunDir::create(path.clone()).is_err(), "it is not empty");
        let elsewhere = dir.path().join("elsewhere");
        fs::write(&elsewhere, "theirs").expect("written");
        for name in ["record.json", "record.json.partial"] {
            std::os::unix::fs::symlink(&elsewhere, path.join(name)).expect("linked");
        }
        assert!(run.write(RECORD, "ours").is_err(), "a link is in the way");
        fs::remove_file(path.join("record.json.partial")).expect("removed");
        run.write(RECORD, "ours").expect("written");
        assert_eq!(fs::read_to_string(&elsewhere).expect("there"), "theirs");
    }
}
