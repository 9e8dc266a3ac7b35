//! The data set that every seed starts from: the smallest that has everything.

use super::bugs::Bug;
use assay_measure::config::{Settings, Tables, command_line, resolve};
use assay_native::control::Control;
use assay_native::control_file::ControlFile;
use assay_native::engine::stepped::{self, ChecksumMode, CommitMode, EngineOptions, Watch};
use assay_native::params::PARAMS;
use assay_native::paths::Places;
use assay_run::engine::{EngineError, Progress};
use assay_run::plan::{Plan, RedoStress};
use assay_run::stop::Stop;
use assay_testkit::sim::SimImage;
use std::path::{Path, PathBuf};

/// Rows of each schema: far fewer than a user may have.
pub(super) const ROWS: u64 = 40;
/// Schemas.
pub(super) const SCHEMAS: u32 = 2;
/// Bytes of a block, which is also what images share.
pub(super) const BLOCK_BYTES: u32 = 4096;
/// Sessions at most; so many transaction headers lead the undo file.
pub(super) const MOST_SESSIONS: u64 = 3;
/// Undo extents: what the sessions keep, and what their longest transactions take.
const UNDO_EXTENTS: u64 = 14;
/// The identity is fixed, so that a seed says every byte.
const DATA_SET: u64 = 0x00fa_0175;

/// Nobody watches.
pub(super) struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// A freshly prepared data set, on disk and as an image.
#[derive(Debug)]
pub(crate) struct Base {
    pub(super) dir: PathBuf,
    pub(super) places: Places,
    pub(super) image: SimImage,
    pub(super) control: Control,
    pub(super) settings: Settings,
}

/// The settings of the data set and of its runs.
fn settings(log_block_bytes: u32) -> Settings {
    let log_block = log_block_bytes.to_string();
    let given = [
        ("SCALE", "1000"),
        ("BLOCK_SZ", "4096"),
        ("SCAN_TABLE_SZ", "2"),
        ("UNDO_MB", "4"),
        ("REDO_LOGS", "2"),
        ("REDO_LOG_MB", "4"),
        ("SEED", "7"),
        ("CACHE_MB", "1"),
        ("WORK_UNIT", "4"),
        ("LOAD_PARALLEL_DEGREE", "1"),
        ("LOG_BLOCK_BYTES", log_block.as_str()),
    ];
    let options = given.iter().map(|(name, value)| ("--set".to_owned(), (*name).to_owned(), (*value).to_owned()));
    let tables =
        Tables { target: "native", params: PARAMS, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
    resolve(&tables, &[command_line(options)]).settings
}

impl Base {
    /// Prepares the data set in `dir`, which must be absent or empty, and takes its image.
    ///
    /// # Errors
    /// As `prepare`.
    pub(crate) fn prepare(dir: &Path, log_block_bytes: u32) -> Result<Self, EngineError> {
        let settings = settings(log_block_bytes);
        let small = |control: &mut Control| {
            control.data_set = DATA_SET;
            control.created_unix_s = 0;
            control.geometry.scale = ROWS;
            control.geometry.scan_blocks = 2;
            control.geometry.undo_blocks = MOST_SESSIONS + 8 * UNDO_EXTENTS;
            control.redo_file_bytes = 96 * 1024;
        };
        let (stop, progress) = (&Stop::new(), &Silent);
        stepped::prepare(dir, &settings, SCHEMAS, small, Watch { stop, progress })?;
        let control = ControlFile::read(dir)?
            .ok_or_else(|| EngineError::Unusable(format!("{} has no control file", dir.display())))?;
        let image = SimImage::import(dir).map_err(|error| EngineError::Unusable(error.to_string()))?;
        Ok(Self { dir: dir.to_path_buf(), places: Places::directory(dir), image, control, settings })
    }

    /// The path of one of its files.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }
}

/// How one run of the engine is set up.
#[derive(Clone, Debug)]
pub(super) struct Setup {
    pub(super) sessions: u64,
    pub(super) drivers: usize,
    pub(super) writers: usize,
    /// Sessions update each other's rows; each operation then commits.
    pub(super) shared: bool,
    pub(super) commit_every: u64,
    pub(super) heavy: bool,
    pub(super) commit: CommitMode,
    pub(super) full_checksums: bool,
    pub(super) batched: bool,
    pub(super) cache_frames: usize,
    pub(super) no_cache: bool,
    pub(super) operations: u64,
    pub(super) most_rows: u64,
}

impl Setup {
    pub(super) fn plan(&self) -> Plan {
        Plan {
            sessions_asked: Some(self.sessions as u32),
            work_unit: 4,
            update_work_unit: self.most_rows as u32,
            redo_stress: if self.heavy { RedoStress::Heavy } else { RedoStress::Lite },
            block_bytes: u64::from(BLOCK_BYTES),
            ..Plan::plain(SCHEMAS, self.sessions as u32, ROWS)
        }
    }

    /// What the engine is opened with: sizes no user may ask for, so that everything happens soon.
    pub(super) fn options(&self, base: &Base, bug: Option<Bug>) -> Result<EngineOptions, EngineError> {
        let mut options = EngineOptions::resolve(&base.settings, &self.plan(), &base.control)?;
        options.cache_frames = self.cache_frames;
        options.drop_on_unpin = self.no_cache;
        options.huge_pages = false;
        options.log_buffer_bytes = 128 * 1024;
        options.batched = self.batched;
        options.io_depth = 4;
        options.commit = if bug == Some(Bug::CommitBeforeWrite) { CommitMode::None } else { self.commit };
        options.shared_rows = self.shared;
        options.writers = self.writers;
        options.writer_requests = 6;
        options.writer_bytes = 4 * BLOCK_BYTES as usize;
        options.sessions = self.sessions as usize;
        options.rules = Bug::rules(bug);
        if self.full_checksums {
            options.checksum = ChecksumMode::Full;
        }
        Ok(options)
    }
}
