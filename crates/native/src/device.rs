//! Raw block devices as paths of a data set: the head of each, and the places of its files.
//!
//! The first mebibyte of a device holds the marker at 0 and, on the first path of a data set, the two slots of the
//! control file from 4,096 on. Files follow at places that the control file alone determines
//! ([`Control::places`](super::control::Control::places)): redo logs, undo, data files. Only [`may_overwrite`] decides
//! whether a device may be written to.

use super::control::HEAD_BYTES;
use super::errors::{absent, engine_error, io_error};
use super::paths::{MARKER_BYTES, MARKER_NAME, Marker, Places, same};
use assay_block::{DeviceClaim, check_device_unused, claim_device, device_signature};
use assay_run::engine::EngineError;
use assay_run::lock::{Locked, is_held};
use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::{Path, PathBuf};

/// Byte of a device at which the slots of the control file begin.
pub(super) const CONTROL_AT: u64 = MARKER_BYTES as u64;

/// Whether a path is a block device; what does not exist is none.
pub(super) fn is_device(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device())
}

/// The marker on a device, if it is ours.
///
/// # Errors
/// `Damaged` for a marker that cannot be read; I/O errors.
pub(super) fn marker(path: &Path) -> Result<Option<Marker>, EngineError> {
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(MARKER_BYTES as u64).read_to_end(&mut bytes))
        .map_err(|e| io_error("reading", path, e))?;
    match Marker::decode(&bytes) {
        None => Ok(None),
        Some(Ok(marker)) => Ok(Some(marker)),
        // Half a marker is nobody's: whoever names the device may have it.
        Some(Err(_)) => Ok(None),
    }
}

/// Bytes a device holds.
pub(super) fn capacity(path: &Path) -> Result<u64, EngineError> {
    File::open(path)
        .and_then(|mut file| file.seek(SeekFrom::End(0)))
        .map_err(|e| io_error("finding the size of", path, e))
}

/// The refusal of a device that is in use, or that nobody said may be overwritten.
///
/// # Errors
/// `Unusable` with what it is used for, or what it carries and the option that would overwrite it.
pub(super) fn may_overwrite(path: &Path, named: &[PathBuf]) -> Result<(), EngineError> {
    check_device_unused(path).map_err(engine_error)?;
    if named.iter().any(|allowed| same(allowed, path)) {
        return Ok(());
    }
    let carries = match marker(path)? {
        Some(marker) => format!("a part of assay data set {:016x}", marker.data_set),
        None => match device_signature(path).map_err(engine_error)? {
            Some(what) => what.to_owned(),
            None => "no signature that assay knows, but it may still hold data".into(),
        },
    };
    Err(EngineError::Unusable(format!(
        "{} is a block device with {carries}; all of this would be lost. If you want that, use --destroy {}",
        path.display(),
        path.display()
    )))
}

/// Wipes what others left at the beginning and the end of a device.
///
/// # Errors
/// I/O errors.
pub(super) fn wipe(path: &Path) -> Result<(), EngineError> {
    let end = capacity(path)?;
    // A backup partition table at the end would bring back what is gone.
    let tail = end.saturating_sub(HEAD_BYTES) & !4095;
    let file = OpenOptions::new().write(true).open(path).map_err(|e| io_error("opening", path, e))?;
    for from in [0, tail] {
        let zeroes = vec![0; HEAD_BYTES.min(end - from) as usize];
        file.write_all_at(&zeroes, from).map_err(|e| io_error("wiping", path, e))?;
    }
    file.sync_all().map_err(|e| io_error("wiping", path, e))
}

/// Makes a device this data set's.
///
/// # Errors
/// I/O errors.
pub(super) fn mark(path: &Path, marker: &Marker) -> Result<(), EngineError> {
    write_head(path, &marker.encode(), "marking")
}

/// Takes the marker, and with it the control file, off a device.
///
/// # Errors
/// I/O errors.
pub(super) fn unmark(path: &Path) -> Result<(), EngineError> {
    write_head(path, &vec![0; HEAD_BYTES as usize], "unmarking")
}

fn write_head(path: &Path, bytes: &[u8], doing: &str) -> Result<(), EngineError> {
    OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|file| {
            file.write_all_at(bytes, 0)?;
            file.sync_all()
        })
        .map_err(|e| io_error(doing, path, e))
}

/// What keeps others from one path of a data set while it is used.
#[derive(Debug)]
pub(super) struct Claim {
    _device: Option<DeviceClaim>,
    /// Its marker, locked.
    _marker: Option<Locked>,
}

/// Claims every path of a data set but the first, which its control file claims: devices are opened exclusively, the
/// markers of directories are locked. A path that has no marker yet is nobody's.
///
/// # Errors
/// `Unusable` when somebody else has one.
pub(super) fn claim(places: &Places) -> Result<Vec<Claim>, EngineError> {
    let others = places.list().iter().skip(1);
    others
        .map(|place| {
            if place.device {
                Ok(Claim { _device: Some(claim_device(&place.path).map_err(engine_error)?), _marker: None })
            } else {
                Ok(Claim { _device: None, _marker: lock_marker(&place.path.join(MARKER_NAME))? })
            }
        })
        .collect()
}

fn lock_marker(path: &Path) -> Result<Option<Locked>, EngineError> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(e) if absent(&e) => return Ok(None),
        Err(e) => return Err(io_error("opening", path, e)),
    };
    match Locked::exclusive(file) {
        Ok(locked) => Ok(Some(locked)),
        Err(e) if is_held(&e) => Err(EngineError::Unusable(format!(
            "{} is locked: another assay process is using this path, perhaps through a copy of its data set; wait \
             until it ends",
            path.display()
        ))),
        Err(e) => Err(io_error("locking", path, e)),
    }
}
