//! Removing a data set: exactly the files its control file names, nothing else.

use super::control::{
    CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, ControlFile, io_error, sync_dir,
};
use super::load_plan::{bytes, count, in_use_error, text};
use super::survey::{Found, foreign_error, is_unborn_control, names, survey};
use assay_run::engine::{EngineError, Line};
use std::fs;
use std::io;
use std::path::Path;

/// What [`destroy`] would remove.
///
/// # Errors
/// `Unusable` when there is no data set of ours or it is in use; I/O errors.
pub(super) fn plan_destroy(dir: &Path) -> Result<Vec<Line>, EngineError> {
    let control = ours(dir)?;
    if ControlFile::in_use(dir)? {
        return Err(in_use_error(dir));
    }
    lines(dir, &control)
}

/// Removes the files the control file names, the control file last, and the directory if
/// nothing else is in it.
///
/// # Errors
/// As [`plan_destroy`]; after an I/O error the control file is still there and destroy can be run again.
pub(super) fn destroy(dir: &Path) -> Result<Vec<Line>, EngineError> {
    // The survey first: its messages say more than a failed open.
    ours(dir)?;
    let lock = ControlFile::open_locked(dir)?;
    let mut lines = lines(dir, lock.control())?;
    remove_named(dir, lock.control())?;
    sync_dir(dir)?;
    remove_if_there(&dir.join(CONTROL_NAME))?;
    sync_dir(dir)?;
    if is_unborn_control(dir) {
        remove_if_there(&dir.join(CONTROL_TEMPORARY_NAME))?;
    }
    let left = names(dir)?;
    let outcome = if left.is_empty() {
        match fs::remove_dir(dir) {
            Ok(()) => "removed".to_owned(),
            // A mount point or a directory in a place that may not be changed.
            Err(e) => format!("empty, kept ({e})"),
        }
    } else {
        format!("kept: {} not ours is in it", left.join(", "))
    };
    lines.push(text("directory_after", "Directory afterwards", outcome));
    Ok(lines)
}

fn ours(dir: &Path) -> Result<Control, EngineError> {
    match survey(dir)? {
        Found::Ours(control) => Ok(*control),
        Found::Foreign(names) => Err(foreign_error(dir, &names)),
        Found::Absent | Found::Empty => Err(EngineError::Unusable(format!(
            "{} holds no data set: there is nothing to destroy",
            dir.display()
        ))),
    }
}

fn lines(dir: &Path, control: &Control) -> Result<Vec<Line>, EngineError> {
    let named = control.file_names();
    let mut present = 1;
    let mut total = 0;
    for name in named.iter().map(String::as_str).chain([CONTROL_NAME]) {
        match fs::metadata(dir.join(name)) {
            Ok(meta) => {
                total += meta.len();
                present += u64::from(name != CONTROL_NAME);
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {}
            Err(e) => return Err(io_error("examining", &dir.join(name), e)),
        }
    }
    let mut foreign = names(dir)?;
    foreign.retain(|name| name != CONTROL_NAME && !named.contains(name));
    let foreign = if foreign.is_empty() {
        "none".to_owned()
    } else {
        foreign.join(", ")
    };
    Ok(vec![
        text("directory", "Directory", dir.display().to_string()),
        text("state", "State", control.state.word().to_owned()),
        count("schemas", "Schemas", u64::from(control.loaded_schemas)),
        count("files", "Files of the data set", present),
        bytes("total_bytes", "Their size", total),
        text("foreign_files", "Other files, left alone", foreign),
    ])
}

/// Removes every file a control file names, except itself; missing ones are fine.
pub(super) fn remove_named(dir: &Path, control: &Control) -> Result<(), EngineError> {
    for name in control.file_names() {
        remove_if_there(&dir.join(name))?;
    }
    Ok(())
}

fn remove_if_there(path: &Path) -> Result<(), EngineError> {
    match fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(io_error("removing", path, e)),
    }
}
