//! Rebuilds the record of a run from what it left in its directory.

use crate::dir_handle::DirHandle;
use crate::exit::Failure;
use crate::rundir::{self, SERIES};
pub(crate) use assay_awr::recover::Recovered;
use assay_awr::recover::{self as series, Unrecovered};
use assay_run::bounded;
use std::fs::File;
use std::io::{self, BufReader};

/// Whether its series begins as ours do.
pub(crate) fn is_ours(dir: &DirHandle) -> bool {
    let file = series_of(dir);
    file.is_ok_and(|file| series::is_ours(BufReader::new(file)))
}

/// Rebuilds a run from its series.
pub(crate) fn recover(dir: &DirHandle) -> Result<Recovered, Failure> {
    let path = dir.path().join(SERIES);
    let file = series_of(dir).map_err(|error| unreadable(&path, &error))?;
    series::recover(BufReader::new(file)).map_err(|error| match error {
        Unrecovered::Unreadable(error) => unreadable(&path, &error),
        Unrecovered::Bad(what) => Failure::usage(format!("{}: {what}", path.display())),
    })
}

fn series_of(dir: &DirHandle) -> io::Result<File> {
    bounded::judged(dir.file(SERIES)?, bounded::SERIES)
}

fn unreadable(path: &std::path::Path, error: &std::io::Error) -> Failure {
    if error.kind() == std::io::ErrorKind::NotFound {
        Failure::usage(format!("{}: the file does not exist; nothing can be recovered", path.display()))
    } else {
        rundir::cannot(path, error)
    }
}
