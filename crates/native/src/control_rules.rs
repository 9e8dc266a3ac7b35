//! Which words a control file can hold: alone, and together.
//!
//! A checksum detects rot, not nonsense: a crafted record, or one written by a bug, has a good one. Computing with
//! words that pass here is safe (no sum wraps, no table exceeds its bound); opening the files shows whether they have
//! the stated lengths. `prepare` checks what it writes by the same rules.

use super::control::{Control, FRESH_LOG_WORD, MOST_NUMBER, SESSIONS_WORD, State};
use super::layout::{Geometry, MAX_STRIPES};
use assay_run::plan::SESSIONS_MAX;
use std::os::unix::ffi::OsStrExt;

/// Most schemas: as many as SLOB was ever run with.
pub(super) const MOST_SCHEMAS: u32 = 4096;

/// Largest undo file, bytes.
pub(super) const MOST_UNDO_BYTES: u64 = 1 << 40;

/// Smallest and largest redo log file, bytes; `prepare` asks for more than the least.
const FEWEST_REDO_BYTES: u64 = 64 << 10;
pub(super) const MOST_REDO_BYTES: u64 = 1 << 44;

impl Control {
    /// Whether this program can have written it.
    ///
    /// # Errors
    /// A fragment naming the word, its value and its range.
    pub(super) fn validate(&self) -> Result<(), String> {
        let g = &self.geometry;
        // The other checks rest on a block size that is one.
        g.validate()?;
        within("schemas", g.schemas, 1, MOST_SCHEMAS)?;
        let standard = Geometry::standard_blocks_per_file(g.block_bytes);
        within("blocks of a data file", g.blocks_per_file, 2, standard)?;
        let most_undo = MOST_UNDO_BYTES / u64::from(g.block_bytes);
        within("undo blocks", g.undo_blocks, 1, most_undo)?;
        let fewest = match self.state {
            State::Loading => 0,
            State::Clean | State::Open => g.schemas,
        };
        within("schemas loaded", self.loaded_schemas, fewest, g.schemas)?;
        within("COMPRESS_PCT", self.compress_pct, 0, 100)?;
        within("seconds of its creation", self.created_unix_s, 0, 1 << 40)?;
        self.validate_log()?;
        self.validate_paths()
    }

    fn validate_log(&self) -> Result<(), String> {
        within("redo log files", self.redo_files, 2, 99)?;
        within("log block bytes", self.log_block_bytes, 512, 65_536)?;
        if !self.log_block_bytes.is_power_of_two() {
            return Err(format!("log block bytes: {} is not a power of two", self.log_block_bytes));
        }
        within("bytes of a redo log file", self.redo_file_bytes, FEWEST_REDO_BYTES, MOST_REDO_BYTES)?;
        if !self.redo_file_bytes.is_multiple_of(u64::from(self.log_block_bytes)) {
            return Err(format!(
                "bytes of a redo log file: {} is not a multiple of the log block of {}",
                self.redo_file_bytes, self.log_block_bytes
            ));
        }
        within("checkpoint LSN", self.checkpoint_lsn, 0, MOST_NUMBER)?;
        within("log sequence", self.log_sequence, 0, MOST_NUMBER)?;
        within("transaction number", self.change_number, 0, MOST_NUMBER)?;
        let fresh = self.engine[FRESH_LOG_WORD];
        within("log sequence of the last recovery", fresh, 0, self.log_sequence)?;
        let sessions = self.engine[SESSIONS_WORD];
        let most = self.geometry.undo_blocks.min(SESSIONS_MAX);
        within("sessions of the last run", sessions, 0, most)
    }

    fn validate_paths(&self) -> Result<(), String> {
        let stripes = usize::from(self.geometry.stripes);
        let count = self.paths.len();
        within("paths", count, stripes.max(1), usize::from(MAX_STRIPES) + 2)?;
        within("path of undo", usize::from(self.undo_path), 0, count - 1)?;
        within("path of redo", usize::from(self.redo_path), 0, count - 1)?;
        for (number, place) in self.paths.iter().enumerate() {
            let name = place.path.as_os_str().as_bytes();
            if !place.path.is_absolute() || name.contains(&0) {
                return Err(format!("path {}: {:?} is not an absolute path", number + 1, place.path));
            }
            if self.paths[..number].iter().any(|other| other.path == place.path) {
                return Err(format!("path {}: {:?} is listed twice", number + 1, place.path));
            }
            let used = [self.undo_path, self.redo_path].map(usize::from);
            if number >= stripes && !used.contains(&number) {
                return Err(format!("path {}: {:?} has no content", number + 1, place.path));
            }
        }
        Ok(())
    }
}

fn within<T: PartialOrd + Copy + std::fmt::Display>(word: &str, value: T, least: T, most: T) -> Result<(), String> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(format!("{word}: {value} is not in the range {least} to {most}"))
}
