//! The control file on disk: making, locking, reading and replacing it, in a directory or at the head of a device.

use super::control::{CONTROL_NAME, CONTROL_TEMPORARY_NAME, Control, SLOT_BYTES, State};
use super::control_format::{Stored, first_slots, judge_slots};
use super::device;
use super::errors::{absent, engine_error, io_error};
use super::paths::Marker;
use assay_block::{BlockError, DeviceClaim, DirectFile, OpenMode, claim_device};
use assay_run::engine::EngineError;
use assay_run::lock::{Locked, is_held};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

/// Through the page cache: the slots are written whole and synchronised one at a time.
const READ_WRITE: OpenMode = OpenMode { read: true, write: true, direct: false };

/// An open, locked control file. Dropping it releases the lock and changes nothing.
#[derive(Debug)]
pub struct ControlFile {
    path: PathBuf,
    file: DirectFile,
    /// Of a device: what keeps others from it, as the lock does of a file.
    _claim: Option<DeviceClaim>,
    sequence: u64,
    control: Control,
}

impl ControlFile {
    /// Creates the control file of a new data set in `dir`, durable on return. On a block device, which the caller has
    /// checked to be overwritable, it is the head of the device.
    ///
    /// # Errors
    /// `Unusable` when there is one already or another process is creating it; I/O errors.
    pub fn create(dir: &Path, control: &Control) -> Result<Self, EngineError> {
        assert_eq!(control.state, State::Loading, "K5: a new data set is loading, before its first file exists");
        if device::is_device(dir) {
            return Self::create_on_device(dir, control);
        }
        let path = dir.join(CONTROL_NAME);
        let temporary = dir.join(CONTROL_TEMPORARY_NAME);
        let made = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(false)
            .open(&temporary)
            .map_err(|e| io_error("creating", &temporary, e))?;
        let file = DirectFile::open(&temporary, READ_WRITE).map_err(engine_error)?;
        lock(&file)?;
        // Only now is it certain that nobody else is between these two steps.
        if path.exists() {
            return Err(EngineError::Unusable(format!("{} exists already", path.display())));
        }
        let both = first_slots(control);
        made.set_len(0).map_err(|e| io_error("writing", &temporary, e))?;
        file.write_at(0, &both).and_then(|()| file.sync_data()).map_err(engine_error)?;
        std::fs::rename(&temporary, &path).map_err(|e| io_error("renaming", &temporary, e))?;
        sync_dir(dir)?;
        Self { path, file, _claim: None, sequence: 1, control: control.clone() }.with_both_slots()
    }

    /// Writes the second slot of a new control file, so that from here on an empty slot is a damaged one.
    fn with_both_slots(mut self) -> Result<Self, EngineError> {
        self.store(self.control.clone())?;
        Ok(self)
    }

    fn create_on_device(path: &Path, control: &Control) -> Result<Self, EngineError> {
        let claim = claim_home(path)?;
        device::wipe(path)?;
        let file = open_slots(path, READ_WRITE).map_err(engine_error)?;
        file.write_at(0, &first_slots(control)).and_then(|()| file.sync_data()).map_err(engine_error)?;
        // Only now is it ours: a marker never stands over a control file that is not there.
        let marker = Marker { data_set: control.data_set, path: 0, home: path.to_path_buf() };
        device::mark(path, &marker)?;
        Self { path: path.to_path_buf(), file, _claim: claim, sequence: 1, control: control.clone() }.with_both_slots()
    }

    /// Opens and locks the control file in `dir`.
    ///
    /// # Errors
    /// `Unusable` when there is none or it is in use, `Damaged` when no slot is valid; I/O errors.
    pub fn open_locked(dir: &Path) -> Result<Self, EngineError> {
        let (path, claim) = match claim_home(dir)? {
            Some(claim) => (dir.to_path_buf(), Some(claim)),
            None => (dir.join(CONTROL_NAME), None),
        };
        refuse_odd_file(&path)?;
        let file = match open_slots(dir, READ_WRITE) {
            Ok(file) => file,
            Err(BlockError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
                return Err(EngineError::Unusable(format!(
                    "{} has no data set (no {CONTROL_NAME}); run `assay prepare` first",
                    dir.display()
                )));
            }
            Err(e) => return Err(engine_error(e)),
        };
        if claim.is_none() {
            lock(&file)?;
        }
        let stored = read_slots(&file)?;
        Ok(Self { path, file, _claim: claim, sequence: stored.sequence, control: stored.control })
    }

    /// The content of the control file in `dir`, without locking it; `None` if there is none.
    ///
    /// # Errors
    /// `Damaged` when no slot is valid; I/O errors.
    pub fn read(dir: &Path) -> Result<Option<Control>, EngineError> {
        Ok(Self::look(dir)?.map(|stored| stored.control))
    }

    /// As [`ControlFile::read`], with what is wrong beside it.
    pub(super) fn look(dir: &Path) -> Result<Option<Stored>, EngineError> {
        refuse_odd_file(&dir.join(CONTROL_NAME))?;
        let mode = OpenMode { write: false, ..READ_WRITE };
        match open_slots(dir, mode) {
            Ok(file) => Ok(Some(read_slots(&file)?)),
            Err(BlockError::Io { source, .. }) if absent(&source) => Ok(None),
            Err(e) => Err(engine_error(e)),
        }
    }

    /// Whether another process (or another handle of this one) holds the control file in `dir`.
    ///
    /// # Errors
    /// I/O errors.
    pub fn in_use(dir: &Path) -> Result<bool, EngineError> {
        if device::is_device(dir) {
            return match claim_device(dir) {
                Ok(_) => Ok(false),
                Err(BlockError::InUse { .. }) => Ok(true),
                Err(error) => Err(engine_error(error)),
            };
        }
        let path = dir.join(CONTROL_NAME);
        match File::open(&path) {
            Ok(file) => match Locked::shared(file) {
                Ok(_) => Ok(false),
                Err(e) if is_held(&e) => Ok(true),
                Err(e) => Err(io_error("locking", &path, e)),
            },
            Err(e) if absent(&e) => Ok(false),
            Err(e) => Err(io_error("opening", &path, e)),
        }
    }

    /// What it says.
    #[must_use]
    pub fn control(&self) -> &Control {
        &self.control
    }

    /// Path of the control file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces its content, durable on return. It overwrites the slot not in force.
    ///
    /// # Errors
    /// I/O errors; `Damaged` for content that could not be read again; then the old content still counts.
    pub fn store(&mut self, control: Control) -> Result<(), EngineError> {
        control
            .validate()
            .map_err(|what| EngineError::Damaged(format!("{} would come to say {what}", self.path.display())))?;
        let sequence = self.sequence + 1;
        let slot = control.encode(sequence);
        // K4: never the slot of the record in force.
        let offset = (sequence % 2) * SLOT_BYTES as u64;
        let told = |c: &Control| [c.checkpoint_lsn, c.log_sequence, c.change_number];
        let (old, new) = (told(&self.control), told(&control));
        assert!(
            old.iter().zip(&new).all(|(old, new)| old <= new),
            "K1: checkpoint, log sequence and transaction number only rise; {old:?} would become {new:?}"
        );
        self.file.write_at(offset, &slot).and_then(|()| self.file.sync_data()).map_err(engine_error)?;
        self.sequence = sequence;
        self.control = control;
        Ok(())
    }
}

/// Removes the control file of the data set at `path`; on a device, the whole head.
pub(super) fn remove_control(path: &Path) -> Result<(), EngineError> {
    if device::is_device(path) {
        return device::unmark(path);
    }
    remove_if_there(&path.join(CONTROL_NAME))?;
    sync_dir(path)
}

/// Removes a file; one that is missing is fine.
pub(super) fn remove_if_there(path: &Path) -> Result<(), EngineError> {
    match std::fs::remove_file(path) {
        Ok(()) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(e) => Err(io_error("removing", path, e)),
    }
}

/// Opens the slots of the data set at `path`: a file in a directory, a place on a device.
fn open_slots(path: &Path, mode: OpenMode) -> Result<DirectFile, BlockError> {
    if device::is_device(path) {
        DirectFile::open_part(path, mode, device::CONTROL_AT, 2 * SLOT_BYTES as u64)
    } else {
        DirectFile::open(&path.join(CONTROL_NAME), mode)
    }
}

/// Keeps everybody else from a device that holds a control file; `None` for a directory.
fn claim_home(path: &Path) -> Result<Option<DeviceClaim>, EngineError> {
    if !device::is_device(path) {
        return Ok(None);
    }
    match claim_device(path) {
        Ok(claim) => Ok(Some(claim)),
        Err(BlockError::InUse { .. }) => Err(EngineError::Unusable(format!(
            "{} is in use: another assay process uses it, it is mounted, or it is part of another device; free it \
             first",
            path.display()
        ))),
        Err(error) => Err(engine_error(error)),
    }
}

fn lock(file: &DirectFile) -> Result<(), EngineError> {
    match file.lock_exclusive() {
        Err(BlockError::InUse { path }) => Err(EngineError::Unusable(format!(
            "{} is locked: another assay process is using this data set; wait until it ends",
            path.display()
        ))),
        other => other.map_err(engine_error),
    }
}

/// Refuses what is named as a control file and is none: a pipe would be waited for, a link leads elsewhere.
fn refuse_odd_file(path: &Path) -> Result<(), EngineError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() && !device::is_device(path) => Err(EngineError::Damaged(format!(
            "{} is not a regular file, so it is not a control file of assay: move it away",
            path.display()
        ))),
        _ => Ok(()),
    }
}

fn read_slots(file: &DirectFile) -> Result<Stored, EngineError> {
    let mut both = [0; 2 * SLOT_BYTES];
    let read = file.read_at(0, &mut both).map_err(engine_error)?;
    judge_slots(&both[..read]).map_err(|reasons| {
        EngineError::Damaged(format!(
            "{} has no valid record ({reasons}); if you need nothing in this directory, remove its *.assay files by \
             hand",
            file.path().display(),
        ))
    })
}

/// Makes created, renamed and removed names in `dir` durable.
pub(super) fn sync_dir(dir: &Path) -> Result<(), EngineError> {
    File::open(dir).and_then(|d| d.sync_all()).map_err(|e| io_error("syncing directory", dir, e))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control::tests::sample_control;
    use std::os::unix::fs::FileExt;
    use tempfile::tempdir;

    #[test]
    fn what_is_stored_is_read_back() {
        let dir = tempdir().unwrap();
        assert_eq!(ControlFile::read(dir.path()).unwrap(), None);
        let mut control = sample_control();
        let mut file = ControlFile::create(dir.path(), &control).unwrap();
        assert_eq!(ControlFile::read(dir.path()).unwrap(), Some(control.clone()));
        for lsn in 10..15 {
            control.checkpoint_lsn = lsn;
            control.state = State::Open;
            control.loaded_schemas = 4;
            file.store(control.clone()).unwrap();
            let read = ControlFile::read(dir.path()).unwrap();
            assert_eq!(read.as_ref(), Some(&control));
        }
        drop(file);
        let again = ControlFile::open_locked(dir.path()).unwrap();
        assert_eq!(again.control(), &control);
        assert!(!dir.path().join(CONTROL_TEMPORARY_NAME).exists());
    }

    #[test]
    fn a_torn_write_leaves_the_record_before_it() {
        let dir = tempdir().unwrap();
        let mut control = sample_control();
        let mut file = ControlFile::create(dir.path(), &control).unwrap();
        control.checkpoint_lsn = 100;
        file.store(control.clone()).unwrap();
        control.checkpoint_lsn = 200;
        file.store(control.clone()).unwrap();
        drop(file);
        // The newest record is sequence 4, in the first slot.
        let path = dir.path().join(CONTROL_NAME);
        let raw = OpenOptions::new().write(true).open(&path).unwrap();
        raw.write_all_at(&[0xff; 700], 2048).unwrap();
        let stored = ControlFile::look(dir.path()).unwrap().unwrap();
        assert_eq!(stored.control.checkpoint_lsn, 100);
        assert!(stored.damage.unwrap().contains("slot 1"));
        raw.write_all_at(&[0xff; 8], SLOT_BYTES as u64 + 40).unwrap();
        let error = ControlFile::read(dir.path()).unwrap_err();
        assert!(matches!(error, EngineError::Damaged(_)), "{error}");
    }

    #[test]
    fn a_second_user_is_refused() {
        let dir = tempdir().unwrap();
        let file = ControlFile::create(dir.path(), &sample_control()).unwrap();
        assert!(ControlFile::in_use(dir.path()).unwrap());
        let error = ControlFile::open_locked(dir.path()).unwrap_err();
        assert!(error.to_string().contains("another assay process"));
        drop(file);
        assert!(!ControlFile::in_use(dir.path()).unwrap());
        assert!(ControlFile::open_locked(dir.path()).is_ok());
    }

    #[test]
    fn an_existing_data_set_is_not_created_again() {
        let dir = tempdir().unwrap();
        drop(ControlFile::create(dir.path(), &sample_control()).unwrap());
        let error = ControlFile::create(dir.path(), &sample_control()).unwrap_err();
        assert!(error.to_string().contains("exists already"));
    }

    #[test]
    fn another_format_version_is_named() {
        let dir = tempdir().unwrap();
        drop(ControlFile::create(dir.path(), &sample_control()).unwrap());
        let path = dir.path().join(CONTROL_NAME);
        let raw = OpenOptions::new().write(true).open(&path).unwrap();
        for slot in [0, SLOT_BYTES as u64] {
            raw.write_all_at(&9u32.to_le_bytes(), slot + 8).unwrap();
        }
        let error = ControlFile::read(dir.path()).unwrap_err().to_string();
        assert!(error.contains("format version 9"), "{error}");
    }
}
