//! The engine without threads of its own: its drivers and writers take a turn on request, on the caller's thread and by
//! its clock. For a harness that decides the order of events (`crates/testkit`); a run opens the target.

pub use super::driver::NativeDriver;
pub use super::options::{ChecksumMode, CommitMode, EngineOptions};
pub use super::writer::DatabaseWriter;
pub use crate::bulk::Watch;

use super::assemble;
use super::instance::Instance;
use super::redo::FLUSH_BYTES;
use super::writer::ring_options;
use crate::control::{Control, State};
use crate::control_file::ControlFile;
use crate::crash_rules::CrashRules;
use crate::errors::engine_error;
use crate::files::Files;
use crate::load_plan::{LoadPlan, loading_error};
use crate::paths::{Asked, Places};
use crate::prepare;
use crate::recovery;
use assay_block::{Backend, Ring, RingOptions};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_run::engine::{Assignment, EngineError};
use assay_run::plan::Plan;
use std::path::Path;
use std::sync::Arc;

/// Prepares a data set in `dir`, which must be absent or empty, after `change` made it smaller than any user may ask for.
///
/// # Errors
/// As [`Target::prepare`](assay_run::engine::Target::prepare).
pub fn prepare(
    dir: &Path,
    settings: &Settings,
    schemas: u32,
    change: impl FnOnce(&mut Control),
    watch: Watch<'_>,
) -> Result<(), EngineError> {
    let asked = Asked::new(&dir.display().to_string(), settings)?;
    let mut plan = LoadPlan::new(&asked, settings, schemas)?;
    change(&mut plan.control);
    prepare::prepare(&plan, settings, watch).map(drop)
}

/// Recovers the data set at these places if it was not closed, with the memory for blocks that `budget` then returns;
/// returns whether that was needed.
///
/// # Errors
/// As [`Target::open`](assay_run::engine::Target::open).
pub fn recover(
    places: &Places,
    budget: impl FnOnce() -> u64,
    rules: CrashRules,
    watch: Watch<'_>,
) -> Result<bool, EngineError> {
    let mut control = ControlFile::open_locked(places.home())?;
    let files = Files::open(places, control.control(), true)?;
    match control.control().state {
        State::Clean => Ok(false),
        State::Loading => Err(loading_error(places.home())),
        State::Open => recovery::recover(&files, &mut control, Backend::Auto, (budget(), rules), watch).map(|_| true),
    }
}

/// An open data set.
pub struct SteppedEngine {
    instance: Instance,
}

impl std::fmt::Debug for SteppedEngine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Instance { cache, redo, checkpoint_lsn, .. } = &self.instance;
        write!(
            out,
            "{} dirty frames of {}, checkpoint floor {:?} of {checkpoint_lsn:?}, log durable to {} of {}",
            cache.dirty_frames(),
            cache.pool.frames(),
            cache.checkpoint_floor(),
            redo.durable(),
            redo.tail(),
        )
    }
}

impl SteppedEngine {
    /// Opens the clean data set at these places, for at most this many drivers.
    ///
    /// # Errors
    /// As [`Target::open`](assay_run::engine::Target::open).
    pub fn open(
        places: &Places,
        plan: &Plan,
        options: EngineOptions,
        clock: Clock,
        drivers: usize,
    ) -> Result<Self, EngineError> {
        let control = ControlFile::open_locked(places.home())?;
        let files = Files::open(places, control.control(), true)?;
        Ok(Self { instance: assemble(control, files, options, plan, (clock, drivers))? })
    }

    /// The driver of these sessions, with at most this many reads in flight.
    ///
    /// # Errors
    /// Those of its ring.
    pub fn driver(&self, assignment: &Assignment, reads: usize) -> Result<NativeDriver<'_>, EngineError> {
        let instance = &self.instance;
        let ring = Ring::open(RingOptions {
            entries: 64,
            buffers: 4,
            buffer_bytes: FLUSH_BYTES.min(64 * 1024),
            pool: Some(Arc::clone(&instance.cache.pool)),
            files: instance.files.list.clone(),
            backend: Backend::Auto,
            helpers: 1,
        });
        Ok(NativeDriver::open(instance, assignment, ring.map_err(engine_error)?, reads))
    }

    /// Writer `number`, from 0; the first keeps the checkpoint and closes the data set.
    ///
    /// # Errors
    /// Those of its ring.
    pub fn writer(&self, number: usize) -> Result<DatabaseWriter<'_>, EngineError> {
        let ring = Ring::open(ring_options(&self.instance, Backend::Auto)).map_err(engine_error)?;
        Ok(DatabaseWriter::new(&self.instance, ring, number).stepped())
    }

    /// How far the log is durable.
    #[must_use]
    pub fn durable_lsn(&self) -> u64 {
        self.instance.redo.durable()
    }

    /// Stops the engine for good: operations fail with this reason from now on.
    pub fn fail(&self, reason: &str) {
        self.instance.fail(reason);
    }

    /// The reason the engine stopped, if it did.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.instance.failure()
    }
}
