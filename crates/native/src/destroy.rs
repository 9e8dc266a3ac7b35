//! Removing a data set: exactly the files its control file names, nothing else.

use super::claim;
use super::control::{CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, State};
use super::control_file::{ControlFile, remove_control, remove_if_there, sync_dir};
use super::device;
use super::errors::io_error;
use super::files::file_paths;
use super::load_plan::{bytes, count, in_use_error, text};
use super::paths::{Asked, MARKER_NAME};
use super::survey::{Found, Ours, is_unborn_control, names, survey_for_removal};
use assay_measure::units::{many, size};
use assay_run::engine::{EngineError, Line};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// What [`destroy`] would remove.
///
/// # Errors
/// `Unusable` when there is no data set of ours or it is in use; I/O errors.
pub(super) fn plan_destroy(asked: &Asked) -> Result<Vec<Line>, EngineError> {
    let ours = ours(asked)?;
    let home = ours.places.home();
    if ControlFile::in_use(home)? {
        return Err(in_use_error(home));
    }
    lines(&ours)
}

/// Removes the files the control file names from every path, each path's marker, the control file
/// last, and every directory if nothing else is in it. A device loses its head. A path that is not proven to be the data
/// set's own (missing, its marker damaged, or of the data set this is a copy of) is left alone and named.
///
/// # Errors
/// As [`plan_destroy`]; an I/O error says what remains, the control file with it, and destroy can be run again.
pub(super) fn destroy(asked: &Asked) -> Result<Vec<Line>, EngineError> {
    // The survey first: its messages say more than a failed open.
    let ours = ours(asked)?;
    remove(&ours).map_err(|error| match (error, remains(&ours)) {
        (error @ EngineError::Io { .. }, Some(left)) => EngineError::Unusable(format!("{error}; {left}")),
        (error, _) => error,
    })
}

/// What a removal that failed has left, for people.
fn remains(ours: &Ours) -> Option<String> {
    let files = file_paths(&ours.places, &ours.control);
    let sizes: Vec<u64> = files.iter().filter_map(|path| Some(fs::metadata(path).ok()?.len())).collect();
    let (count, bytes) = (sizes.len() as u64, sizes.iter().sum());
    (count > 0).then(|| format!("{} with {} remain in {}", many(count, "file"), size(bytes), ours.places.display()))
}

fn remove(ours: &Ours) -> Result<Vec<Line>, EngineError> {
    let home = ours.places.home();
    let mut lock = claim::take(home)?;
    let claims = device::claim(&ours.own_places())?;
    let mut lines = lines(ours)?;
    if ours.control.paths.len() > 1 {
        // From here on paths may lack their marker: a removal that is cut short can go on.
        lock.store(unusable(lock.control()))?;
    }
    remove_named(ours)?;
    for (place, present) in ours.places.list().iter().zip(&ours.present).skip(1) {
        if *present {
            remove_path(&place.path, place.device)?;
        }
    }
    if !ours.places.list()[0].device {
        sync_dir(home)?;
    }
    remove_control(home)?;
    drop(claims);
    drop(lock);
    let mut outcomes = Vec::new();
    for (place, present) in ours.places.list().iter().zip(&ours.present) {
        if *present {
            let outcome = if place.device {
                "no longer marked; its content was not wiped".to_owned()
            } else {
                leave(&place.path)?
            };
            outcomes.push((place.path.display(), outcome));
        }
    }
    let after = match outcomes.as_slice() {
        [(_, only)] => only.clone(),
        all => {
            let all: Vec<String> = all.iter().map(|(path, end)| format!("{path}: {end}")).collect();
            all.join("; ")
        }
    };
    lines.push(text("directory_after", "Directory afterwards", after));
    Ok(lines)
}

/// The same data set, of which nothing may be used any more.
fn unusable(control: &Control) -> Control {
    let mut control = control.clone();
    control.state = State::Loading;
    control.loaded_schemas = 0;
    control
}

/// Removes a directory if nothing is left in it; says what became of it.
fn leave(dir: &Path) -> Result<String, EngineError> {
    if is_unborn_control(dir) {
        remove_if_there(&dir.join(CONTROL_TEMPORARY_NAME))?;
    }
    let left = names(dir)?;
    if !left.is_empty() {
        return Ok(format!("kept: it contains {}, which assay did not make", left.join(", ")));
    }
    Ok(match fs::remove_dir(dir) {
        Ok(()) => "removed".to_owned(),
        // A mount point or a directory in a place that may not be changed.
        Err(e) => format!("empty, kept ({e})"),
    })
}

fn ours(asked: &Asked) -> Result<Ours, EngineError> {
    match survey_for_removal(asked)? {
        Found::Ours(ours) => Ok(*ours),
        Found::Nothing => Err(EngineError::Unusable(format!(
            "{} has no data set: there is nothing to destroy",
            asked.first().display()
        ))),
    }
}

fn lines(ours: &Ours) -> Result<Vec<Line>, EngineError> {
    let control = &ours.control;
    let mut present = 1;
    let mut total = 0;
    let mut files: Vec<(u16, _)> = (0..).zip(file_paths(&ours.places, control)).collect();
    if !ours.places.list()[0].device {
        files.push((u16::MAX, ours.places.home().join(CONTROL_NAME)));
    }
    for (file, path) in &files {
        let is_control = *file == u16::MAX;
        let number = if is_control { 0 } else { usize::from(control.path_of_file(*file)) };
        if !ours.present[number] {
            continue;
        }
        if ours.places.list()[number].device {
            total += control.file_bytes(*file);
            present += 1;
            continue;
        }
        match fs::metadata(path) {
            Ok(meta) => {
                total += meta.len();
                present += u64::from(!is_control);
            }
            Err(e) if matches!(e.kind(), io::ErrorKind::NotFound) => {}
            Err(e) => return Err(io_error("examining", path, e)),
        }
    }
    let foreign = foreign_files(ours, &files)?;
    let mut lines = vec![text("directory", "Directory", ours.places.home().display().to_string())];
    if ours.places.list().len() > 1 || ours.places.list()[0].device {
        lines.push(text("paths", "Paths", ours.places.display()));
    }
    lines.extend([
        text("state", "State", control.state.word().to_owned()),
        count("schemas", "Schemas", u64::from(control.loaded_schemas)),
        count("files", "Files of the data set", present),
        bytes("total_bytes", "Their size", total),
        text("foreign_files", "Other files, left alone", foreign),
    ]);
    if !ours.skipped.is_empty() {
        let skipped = ours.skipped.join("; ");
        lines.push(text("skipped_paths", "Paths left alone, with all their files", skipped));
    }
    Ok(lines)
}

/// What is in the data set's directories beside its files, for people.
fn foreign_files(ours: &Ours, files: &[(u16, PathBuf)]) -> Result<String, EngineError> {
    let mut foreign = Vec::new();
    for (place, present) in ours.places.list().iter().zip(&ours.present) {
        if place.device || !present {
            continue;
        }
        for name in names(&place.path)? {
            let path = place.path.join(&name);
            if name != MARKER_NAME && !files.iter().any(|(_, ours)| *ours == path) {
                foreign.push(name);
            }
        }
    }
    Ok(if foreign.is_empty() { "none".to_owned() } else { foreign.join(", ") })
}

/// Removes every file a control file names, except itself, from the paths that are marked as its own;
/// missing ones are fine.
pub(super) fn remove_named(ours: &Ours) -> Result<(), EngineError> {
    for (file, path) in (0..).zip(file_paths(&ours.places, &ours.control)) {
        let number = usize::from(ours.control.path_of_file(file));
        if ours.present[number] && !ours.places.list()[number].device {
            remove_if_there(&path)?;
        }
    }
    Ok(())
}

/// Takes the mark off a path that does not hold the control file.
pub(super) fn remove_path(path: &Path, is_device: bool) -> Result<(), EngineError> {
    if is_device {
        return device::unmark(path);
    }
    // The files are gone for good before the marker that says whose they are.
    sync_dir(path)?;
    remove_if_there(&path.join(MARKER_NAME))?;
    sync_dir(path)
}
