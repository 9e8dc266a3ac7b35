//! Run directories: made once, never overwritten, every file written whole or not at all.

use crate::exit::Failure;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

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
/// The summary of a sweep, above its steps.
pub(crate) const SWEEP: &str = "sweep.json";
/// The same as text.
pub(crate) const SWEEP_TEXT: &str = "sweep.txt";
/// The summary of repeats, above their runs.
pub(crate) const REPEAT: &str = "repeat.json";
/// The same as text.
pub(crate) const REPEAT_TEXT: &str = "repeat.txt";
/// The summary of a sweep as a page with charts.
pub(crate) const SWEEP_HTML: &str = "sweep.html";
/// What `io` measured in fio's own JSON.
pub(crate) const FIO_JSON: &str = "fio.json";
/// Words by which the user finds a run again, a line each.
pub(crate) const TAGS: &str = "tags";
/// The configuration as given and as effective.
pub(crate) const CONFIG: &str = "config";

/// The directory of one run.
#[derive(Debug)]
pub(crate) struct RunDir {
    path: PathBuf,
}

/// A new run's short id: eight hexadecimal digits.
pub(crate) fn new_id() -> String {
    format!("{:08x}", crate::configure::random_u32())
}

/// Where a run will be kept: `-o`, else a name of time, workload and id.
pub(crate) fn place(output: Option<&Path>, workload: &str, id: &str) -> PathBuf {
    output.map_or_else(
        || {
            let time = jiff::Timestamp::now()
                .strftime("%Y%m%dT%H%M%SZ")
                .to_string();
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
                "-o {}: the directory is not empty, and a run is never overwritten; name a new one",
                path.display()
            ))),
        },
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Err(Failure::usage(format!(
            "-o {}: is a file; name a new directory",
            path.display()
        ))),
        Err(error) => Err(cannot(path, &error)),
    }
}

impl RunDir {
    /// Makes the directory.
    pub(crate) fn create(path: PathBuf) -> Result<Self, Failure> {
        fs::create_dir_all(path.join(CONFIG)).map_err(|error| cannot(&path, &error))?;
        Ok(Self { path })
    }

    /// An existing one.
    pub(crate) fn existing(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes a file whole: beside it, synced, renamed into place.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), Failure> {
        let target = self.path.join(name);
        write_whole(&target, text.as_bytes()).map_err(|error| cannot(&target, &error))
    }

    /// Opens the series for appending; it must not exist yet.
    pub(crate) fn create_series(&self) -> Result<File, Failure> {
        let path = self.path.join(SERIES);
        File::options()
            .append(true)
            .create_new(true)
            .open(&path)
            .map_err(|error| cannot(&path, &error))
    }

    /// Removes what a run that never started left behind.
    pub(crate) fn discard(&self) {
        for name in [SERIES, FIO_JSON, "config/given", "config/effective"] {
            let _ = fs::remove_file(self.path.join(name));
        }
        let more = outputs(&self.path).into_iter().chain(job_files(&self.path));
        for name in more {
            let _ = fs::remove_file(self.path.join(name));
        }
        let _ = fs::remove_dir(self.path.join(CONFIG));
        let _ = fs::remove_dir(&self.path);
    }
}

/// Files in a run directory that hold what commands beside the run said.
pub(crate) fn outputs(dir: &Path) -> Vec<String> {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
    let mut found: Vec<String> = names.filter(|name| is_output(name)).collect();
    found.sort();
    found
}

/// A job file as given, by its place on the command line from 1.
pub(crate) fn job_file(number: usize) -> String {
    format!("{CONFIG}/job-{number}.fio")
}

/// Job files in a run directory, in their order.
pub(crate) fn job_files(dir: &Path) -> Vec<String> {
    (1..)
        .map(job_file)
        .take_while(|name| dir.join(name).is_file())
        .collect()
}

/// What a killed `io` leaves: it keeps no series, only what it was asked.
pub(crate) fn killed_io(path: &Path) -> bool {
    let given = fs::read_to_string(path.join("config/given"));
    !path.join(RECORD).exists() && given.is_ok_and(|given| given.starts_with("assay io "))
}

fn is_output(name: &str) -> bool {
    let Some(stem) = name.strip_suffix(".out") else {
        return false;
    };
    let number = stem.strip_prefix("at-").unwrap_or_default();
    ["script-pre", "script-post", "script-end"].contains(&stem)
        || (!number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The failure of an output path, with the operating system's reason.
pub(crate) fn cannot(path: &Path, error: &io::Error) -> Failure {
    let hint = if error.kind() == io::ErrorKind::StorageFull {
        ": make room, or keep runs elsewhere with -o DIR"
    } else {
        ""
    };
    Failure::output(format!("{}: {error}{hint}", path.display()))
}

/// Writes a file that is in no run directory, whole.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    write_whole(path, text.as_bytes()).map_err(|error| cannot(path, &error))
}

fn write_whole(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let partial = target.with_extension("partial");
    let written = File::create(&partial).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()
    });
    if let Err(error) = written.and_then(|()| fs::rename(&partial, target)) {
        let _ = fs::remove_file(&partial);
        return Err(error);
    }
    // The rename lasts once its directory is synced.
    let parent = target
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
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
        let names: Vec<_> = fs::read_dir(run.path())
            .expect("readable")
            .map(|entry| entry.expect("an entry").file_name())
            .collect();
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
}
