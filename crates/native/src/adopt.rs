//! A data set at a new place: its paths learn where its control file is now, so that no copy of that can take them.

use super::control_file::ControlFile;
use super::device;
use super::errors::io_error;
use super::paths::{DataPath, MARKER_NAME, Marker, Places, absolute, fits, same};
use super::survey::{Here, look};
use assay_run::engine::EngineError;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Writes down where a data set whose paths were all named, or are all its own, is. Whether there was anything to write. Its
/// markers come first: cut short, each leads to the place where the data set is.
///
/// # Errors
/// `Usage` where the names have no room; I/O errors.
pub(super) fn adopt(places: &Places, lock: &mut ControlFile) -> Result<bool, EngineError> {
    let here = |place: &DataPath| DataPath { path: absolute(&place.path), device: place.device };
    let now: Vec<DataPath> = places.list().iter().map(here).collect();
    fits(&now)?;
    let home = &now[0].path;
    let mut is_new = false;
    for place in &now[1..] {
        let Here::Marked(marker) = look(&place.path)? else { continue };
        if !same(&marker.home, home) {
            rewrite(place, &Marker { home: home.clone(), ..marker })?;
            is_new = true;
        }
    }
    let known = &lock.control().paths;
    if !known.iter().zip(&now).all(|(known, now)| same(&known.path, &now.path)) {
        let mut control = lock.control().clone();
        control.paths = now;
        lock.store(control)?;
        is_new = true;
    }
    Ok(is_new)
}

/// In place: the file of a marker is what its lock is on.
fn rewrite(place: &DataPath, marker: &Marker) -> Result<(), EngineError> {
    if place.device {
        return device::mark(&place.path, marker);
    }
    let path = place.path.join(MARKER_NAME);
    let written = File::options().write(true).open(&path).and_then(|file| {
        file.write_all_at(&marker.encode(), 0)?;
        file.sync_all()
    });
    written.map_err(|error| io_error("writing", &path, error))
}
