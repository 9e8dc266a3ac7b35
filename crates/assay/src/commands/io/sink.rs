//! Where the reports go: standard output, or a file that holds nothing yet.

use crate::exit::Failure;
use crate::rundir::cannot;
use crate::ui;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// The product's way out.
#[derive(Debug)]
pub(super) enum Sink {
    /// Standard output.
    Stdout,
    /// `--output=FILE`
    File {
        /// As it was named.
        path: PathBuf,
        /// Open since before the first I/O, so that an unwritable path is reported in time.
        file: Mutex<File>,
        /// It was not there before.
        made: bool,
    },
}

impl Sink {
    /// Opens `--output=FILE`. fio writes over what is there; here nothing is ever lost.
    pub(super) fn open(path: Option<&Path>) -> Result<Self, Failure> {
        let Some(path) = path else {
            return Ok(Self::Stdout);
        };
        let refuse = |why: &str| Err(Failure::output(format!("--output={}: {why}", path.display())));
        let made = match fs::metadata(path) {
            Ok(about) if about.is_dir() => return refuse("is a directory; name a new file in it"),
            Ok(about) if about.file_type().is_block_device() => {
                return refuse("is a block device; name a new file");
            }
            Ok(about) if about.is_file() && about.len() > 0 => {
                return refuse(
                    "already exists and is not empty, and assay never overwrites a report; name a new file or remove \
                     it first",
                );
            }
            Ok(_) => false,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(cannot(path, &error)),
        };
        let file = File::options().write(true).create_new(made).open(path).map_err(|error| cannot(path, &error))?;
        Ok(Self::File { path: path.to_path_buf(), file: Mutex::new(file), made })
    }

    /// Prints a report.
    pub(super) fn put(&self, text: &str) -> Result<(), Failure> {
        match self {
            Self::Stdout => ui::product(text),
            Self::File { path, file, .. } => {
                // A thread that panicked in here left at worst half a report.
                let mut file = file.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                file.write_all(text.as_bytes()).and_then(|()| file.flush()).map_err(|error| cannot(path, &error))
            }
        }
    }

    /// Takes a file away that was made for reports that never came.
    pub(super) fn discard(&self) {
        if let Self::File { path, made: true, .. } = self
            && fs::metadata(path).is_ok_and(|about| about.len() == 0)
        {
            let _ = fs::remove_file(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Code;

    #[test]
    fn what_is_there_is_not_written_over_and_an_empty_file_is_taken() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let (full, empty) = (dir.path().join("full"), dir.path().join("empty"));
        fs::write(&full, "theirs").expect("written");
        fs::write(&empty, "").expect("written");
        for taken in [full.as_path(), dir.path(), &dir.path().join("no/such")] {
            let refused = Sink::open(Some(taken)).expect_err("refused");
            assert_eq!(refused.code, Code::Output, "{}", taken.display());
        }
        let sink = Sink::open(Some(&empty)).expect("opened");
        sink.discard();
        sink.put("one\n").expect("written");
        sink.put("two\n").expect("written");
        sink.discard();
        assert_eq!(fs::read_to_string(&empty).expect("readable"), "one\ntwo\n");
        assert_eq!(fs::read_to_string(&full).expect("readable"), "theirs");
    }

    #[test]
    fn a_file_made_for_nothing_is_taken_away_again() {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let path = dir.path().join("new");
        let sink = Sink::open(Some(&path)).expect("opened");
        assert!(path.exists());
        sink.discard();
        assert!(!path.exists());
        assert!(Sink::open(Some(Path::new("/dev/null"))).is_ok());
    }
}
