//! The open files of a data set, in the order of their file index.

use super::block_format::{self, Kind};
use super::control::{Control, data_name};
use super::errors::engine_error;
use super::layout::{Page, UNDO_BASE};
use super::paths::Places;
use assay_block::{DirectFile, OpenMode};
use assay_run::engine::EngineError;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Data files, the undo file, the redo log files.
#[derive(Clone, Debug)]
pub struct Files {
    /// All of them; indices are those of `Geometry::locate`.
    pub list: Vec<Arc<DirectFile>>,
    /// Index of the undo file.
    pub undo: u16,
    /// Index of the first redo log file.
    pub redo_first: u16,
    /// Redo log files.
    pub redo_count: u16,
    /// Path of each file in the data set, by its number in the control file.
    pub path_of: Vec<u16>,
    /// Names, for messages: a device's own name would not distinguish its files.
    names: Vec<PathBuf>,
}

impl Files {
    /// Opens every file the control file names for reading and writing, and verifies
    /// lengths and file headers.
    ///
    /// # Errors
    /// `Damaged` naming the file that is missing, too short or not of this data set; I/O errors.
    pub fn open(places: &Places, control: &Control, direct: bool) -> Result<Self, EngineError> {
        let files = Self::open_unverified(places, control, direct)?;
        let geometry = &control.geometry;
        for file in 0..files.undo {
            files.expect_bytes(file, geometry.data_file_bytes(file))?;
            let first = geometry.map().file_pages(file).0;
            files.expect_header(file, header_key(file), first, control)?;
        }
        files.expect_bytes(files.undo, geometry.undo_file_bytes())?;
        files.expect_header(files.undo, UNDO_HEADER_KEY, Page(UNDO_BASE), control)?;
        for redo in 0..files.redo_count {
            files.expect_bytes(files.redo_first + redo, control.redo_file_bytes)?;
        }
        Ok(files)
    }

    /// Opens every file the control file names; looks at none.
    pub(super) fn open_unverified(places: &Places, control: &Control, direct: bool) -> Result<Self, EngineError> {
        let mode = OpenMode { read: true, write: true, direct };
        let path_of: Vec<u16> = (0..control.file_count()).map(|file| control.path_of_file(file)).collect();
        let names = file_paths(places, control);
        let mut list: Vec<Option<Arc<DirectFile>>> = vec![None; names.len()];
        for (number, place) in (0..).zip(places.list()) {
            if place.device {
                for (file, base, room) in control.places(number) {
                    let part = DirectFile::open_part(&place.path, mode, base, room);
                    list[usize::from(file)] = Some(Arc::new(part.map_err(engine_error)?));
                }
            }
        }
        let list = list
            .into_iter()
            .zip(&names)
            .map(|(part, name)| match part {
                Some(part) => Ok(part),
                None => DirectFile::open(name, mode).map(Arc::new).map_err(engine_error),
            })
            .collect::<Result<Vec<_>, _>>()?;
        let undo = control.geometry.data_files();
        Ok(Self {
            undo,
            redo_first: undo + 1,
            redo_count: u16::try_from(control.redo_files).unwrap_or(u16::MAX),
            path_of,
            names,
            list,
        })
    }

    /// Name of file `index`, for messages.
    #[must_use]
    pub fn name(&self, index: u16) -> String {
        let path = self.path(index);
        path.file_name().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
    }

    /// Where file `index` is, for messages: its path, or its name as if the device were a directory.
    #[must_use]
    pub fn path(&self, index: u16) -> &Path {
        &self.names[usize::from(index)]
    }

    /// Whether every file accepted `O_DIRECT`.
    #[must_use]
    pub fn all_direct(&self) -> bool {
        self.list.iter().all(|file| file.is_direct())
    }

    fn expect_bytes(&self, index: u16, expected: u64) -> Result<(), EngineError> {
        let found = self.list[usize::from(index)].len().map_err(engine_error)?;
        // A part of a device has the room of a full file, whatever it holds.
        let device = self.list[usize::from(index)].is_part();
        if found == expected || (device && found > expected) {
            return Ok(());
        }
        Err(EngineError::Damaged(format!("{}: it has {found} bytes, expected {expected}", self.path(index).display())))
    }

    fn expect_header(&self, index: u16, key: u64, first: Page, control: &Control) -> Result<(), EngineError> {
        let file = &self.list[usize::from(index)];
        let mut block = vec![0; control.geometry.block_bytes as usize];
        let read = file.read_at(0, &mut block).map_err(engine_error)?;
        let verified = if read < block.len() {
            Err("the file ends inside it".to_owned())
        } else {
            block_format::verify(&block, Kind::FileHeader, first, 0, control.data_set, true)
                .and_then(|()| block_format::verify_key(&block, key))
                .map_err(|mismatch| mismatch.to_string())
        };
        verified.map_err(|why| EngineError::Damaged(format!("{}, file header: {why}", self.path(index).display())))
    }
}

/// Where every file of a data set is, in the order of their index; of a device's files, as if the
/// device were a directory.
pub(super) fn file_paths(places: &Places, control: &Control) -> Vec<PathBuf> {
    (0..)
        .zip(control.file_names())
        .map(|(file, name)| {
            let number = usize::from(control.path_of_file(file));
            places.list()[number].path.join(name)
        })
        .collect()
}

/// Key word of the header of data file `file`: its number, from 1, as in its name.
pub(super) fn header_key(file: u16) -> u64 {
    debug_assert!(data_name(file).contains(&(u32::from(file) + 1).to_string()));
    u64::from(file) + 1
}

/// Key word of the header of the undo file.
pub(super) const UNDO_HEADER_KEY: u64 = 0;

/// The header block of a data file or of the undo file.
pub(super) fn file_header(control: &Control, first: Page, key: u64) -> Vec<u8> {
    let mut block = vec![0; control.geometry.block_bytes as usize];
    block_format::format_header(&mut block, Kind::FileHeader, first, 0, key, control.data_set);
    block_format::seal(&mut block);
    block
}
