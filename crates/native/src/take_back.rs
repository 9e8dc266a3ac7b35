//! Giving up an addition of schemas that was cut short.

use super::control::{Control, State};
use super::control_file::{ControlFile, sync_dir};
use super::errors::io_error;
use super::files::file_paths;
use super::paths::Places;
use assay_run::engine::EngineError;
use rustix::fs::OFlags;
use std::fs;
use std::os::unix::fs::OpenOptionsExt;

/// Gives up an addition that was cut short, so that what was loaded before can be used.
///
/// # Errors
/// I/O errors; it can be tried again.
pub(super) fn take_back(places: &Places, control: &mut ControlFile) -> Result<(), EngineError> {
    let mut kept = control.control().clone();
    trim(places, &kept)?;
    kept.geometry.schemas = kept.loaded_schemas;
    kept.state = State::Clean;
    control.store(kept)
}

/// Cuts the data files back to the schemas that are loaded, after an addition that did not finish.
/// What is beyond them on a device is nobody's and stays.
pub(super) fn trim(places: &Places, control: &Control) -> Result<(), EngineError> {
    let mut kept = control.clone();
    kept.geometry.schemas = kept.loaded_schemas;
    let kept_paths = file_paths(places, &kept);
    let on_device = |file: u16| places.list()[usize::from(control.path_of_file(file))].device;
    for (file, path) in (0..).zip(file_paths(places, control)) {
        if on_device(file) {
            continue;
        }
        let Some(index) = kept_paths.iter().position(|kept| *kept == path) else {
            if path.exists() {
                fs::remove_file(&path).map_err(|e| io_error("removing", &path, e))?;
            }
            continue;
        };
        if index < usize::from(kept.geometry.data_files()) {
            fs::OpenOptions::new()
                .write(true)
                // A link in the place of a file would have another one cut.
                .custom_flags(OFlags::NOFOLLOW.bits().cast_signed())
                .open(&path)
                .and_then(|open| {
                    open.set_len(kept.geometry.data_file_bytes(index as u16))?;
                    open.sync_all()
                })
                .map_err(|e| io_error("trimming", &path, e))?;
        }
    }
    sync_places(places, &[])
}

/// Makes names durable in every directory of a data set; with `present`, of those marked so.
pub(super) fn sync_places(places: &Places, present: &[bool]) -> Result<(), EngineError> {
    for (number, place) in places.list().iter().enumerate() {
        if !place.device && present.get(number) != Some(&false) {
            sync_dir(&place.path)?;
        }
    }
    Ok(())
}
