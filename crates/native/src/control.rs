//! The control file: what the data set is, and what state it is in.
//!
//! `control.assay` holds two 4,096-byte slots written alternately; the valid one with the higher sequence number
//! counts, so that a torn write loses at most the last change, never the file. It is locked (flock) while in use, and
//! it names every file that `destroy` may remove.

use super::layout::{Geometry, UNIT_BYTES};
use super::paths::DataPath;

/// Name of the control file in the data set's directory.
pub const CONTROL_NAME: &str = "control.assay";

/// Name under which the control file is first written, then renamed.
pub const CONTROL_TEMPORARY_NAME: &str = "control.assay.tmp";

/// Bytes of one of its slots.
pub const SLOT_BYTES: usize = 4096;

/// Bytes before the first file of a device.
pub(super) const HEAD_BYTES: u64 = UNIT_BYTES;

/// Words the engine keeps for itself in the control file.
pub const ENGINE_WORDS: usize = 16;

/// The engine's word that holds the sessions of the run that marked the data set open:
/// so many transaction headers lead the undo file.
pub(crate) const SESSIONS_WORD: usize = 0;

/// The engine's word that holds the log sequence after which the last recovery began the log anew; 0 without one.
pub(crate) const FRESH_LOG_WORD: usize = 1;

/// Log positions, sequences and transaction numbers stay below: nothing that is counted comes near, and sums cannot wrap.
pub(crate) const MOST_NUMBER: u64 = 1 << 62;

/// What state the data set is in.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum State {
    /// `prepare` has not finished: only schemas `1..=loaded_schemas` are whole.
    Loading = 1,
    /// Everything is on disk and checked.
    Clean = 2,
    /// In use, or its last user did not close it.
    Open = 3,
}

impl State {
    /// The operator's word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Loading => "loading",
            Self::Clean => "clean",
            Self::Open => "open",
        }
    }
}

/// Everything the control file says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Control {
    /// Random identity, repeated in every block.
    pub data_set: u64,
    /// Seconds since 1970 UTC at creation.
    pub created_unix_s: u64,
    /// State.
    pub state: State,
    /// Layout; `geometry.schemas` is the number of schemas that fit the files.
    pub geometry: Geometry,
    /// Schemas loaded and synced: `1..=loaded_schemas`.
    pub loaded_schemas: u32,
    /// Columns and block tails are pseudo-random.
    pub obfuscate: bool,
    /// Percent of each obfuscated column that is constant.
    pub compress_pct: u32,
    /// Redo log files.
    pub redo_files: u32,
    /// Bytes of each redo log file.
    pub redo_file_bytes: u64,
    /// Bytes of a log block.
    pub log_block_bytes: u32,
    /// Log position up to which every change is in the data files.
    pub checkpoint_lsn: u64,
    /// Number of the current log file's incarnation, from 1; 0 before the first use.
    pub log_sequence: u64,
    /// Highest transaction number given out, as of the last clean close.
    pub change_number: u64,
    /// Kept for the engine; 0 when new.
    pub engine: [u64; ENGINE_WORDS],
    /// Its paths: the first path holds the control file, the first `geometry.stripes` the data.
    pub paths: Vec<DataPath>,
    /// Index of the path that holds the undo file.
    pub undo_path: u16,
    /// Index of the path that holds the redo logs.
    pub redo_path: u16,
}

impl Control {
    /// Names of the data set's files, in the order of their file index: data files,
    /// undo, redo logs. The control file itself is not among them.
    #[must_use]
    pub fn file_names(&self) -> Vec<String> {
        let mut names: Vec<String> = (0..self.geometry.data_files()).map(data_name).collect();
        names.push(UNDO_NAME.to_owned());
        names.extend((0..self.redo_files).map(redo_name));
        names
    }

    /// Index of the path that holds file `file`, a position in [`Control::file_names`].
    #[must_use]
    pub fn path_of_file(&self, file: u16) -> u16 {
        let undo = self.geometry.data_files();
        match file {
            _ if file < undo => file % self.geometry.stripes,
            _ if file == undo => self.undo_path,
            _ => self.redo_path,
        }
    }

    /// Bytes of file `file`, a position in [`Control::file_names`].
    #[must_use]
    pub fn file_bytes(&self, file: u16) -> u64 {
        let undo = self.geometry.data_files();
        match file {
            _ if file < undo => self.geometry.data_file_bytes(file),
            _ if file == undo => self.geometry.undo_file_bytes(),
            _ => self.redo_file_bytes,
        }
    }

    /// How many files it has, the control file not counted.
    #[must_use]
    pub fn file_count(&self) -> u16 {
        let redo = u16::try_from(self.redo_files).unwrap_or(u16::MAX);
        self.geometry.data_files().saturating_add(1 + redo)
    }

    /// Where the files of one path lie if it is a device: for each its index, first byte and room, in
    /// the order redo logs, undo, data. Every place begins at a whole mebibyte.
    pub(super) fn places(&self, path: u16) -> Vec<(u16, u64, u64)> {
        let whole = |bytes: u64| bytes.next_multiple_of(UNIT_BYTES);
        let undo = self.geometry.data_files();
        let redo = undo + 1..self.file_count();
        let mut at = HEAD_BYTES;
        let mut list = Vec::new();
        for file in redo.chain([undo]).chain(0..undo) {
            if self.path_of_file(file) != path {
                continue;
            }
            // Room for a whole data file, so that added schemas move nothing; the last one may be short.
            let last = file + self.geometry.stripes >= undo;
            let room = if file < undo && !last { self.geometry.full_file_bytes() } else { self.file_bytes(file) };
            list.push((file, at, room));
            at += whole(room);
        }
        list
    }

    /// Bytes of a device that one path of the data set uses.
    pub(super) fn needed_bytes(&self, path: u16) -> u64 {
        self.places(path).last().map_or(HEAD_BYTES, |(_, at, room)| at + room)
    }

    /// Bytes of all its files, the control file included.
    #[must_use]
    pub fn total_bytes(&self) -> u64 {
        let files: u64 = (0..self.file_count()).map(|file| self.file_bytes(file)).sum();
        files + 2 * SLOT_BYTES as u64
    }
}

/// Name of the undo file.
pub const UNDO_NAME: &str = "undo.assay";

/// Name of data file `file`, from 0: `data-0001.assay`.
#[must_use]
pub fn data_name(file: u16) -> String {
    format!("data-{:04}.assay", u32::from(file) + 1)
}

/// Name of redo log file `file`, from 0: `redo-01.assay`.
#[must_use]
pub fn redo_name(file: u32) -> String {
    format!("redo-{:02}.assay", file + 1)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(crate) fn sample_control() -> Control {
        Control {
            data_set: 0xdead_beef,
            created_unix_s: 1_790_000_000,
            state: State::Loading,
            geometry: Geometry {
                block_bytes: 8192,
                schemas: 4,
                scale: 32_768,
                scan_blocks: 128,
                seed: 42,
                undo_blocks: 100,
                blocks_per_file: 1 << 21,
                stripes: 1,
            },
            loaded_schemas: 0,
            obfuscate: true,
            compress_pct: 25,
            redo_files: 2,
            redo_file_bytes: 1 << 20,
            log_block_bytes: 4096,
            checkpoint_lsn: 7,
            log_sequence: 8,
            change_number: 9,
            engine: std::array::from_fn(|i| i as u64),
            paths: vec![DataPath::directory("/some/where")],
            undo_path: 0,
            redo_path: 0,
        }
    }

    #[test]
    fn the_names_of_all_files_follow_from_it() {
        assert_eq!(sample_control().file_names(), ["data-0001.assay", "undo.assay", "redo-01.assay", "redo-02.assay"]);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_never_decode_by_chance(bytes: Vec<u8>, at in 0usize..4096, flip in 1u8..) {
            prop_assert!(Control::decode(&bytes).is_err());
            let mut slot = sample_control().encode(5);
            slot[at] ^= flip;
            prop_assert!(Control::decode(&slot).is_err());
        }
    }
}
