//! What the settings require of the sessions.

use crate::postgres::layout::Names;
use crate::postgres::own::PINNED;
use crate::slices::refuse_unfit;
use assay_measure::config::Settings;
use assay_run::engine::EngineError;
use assay_run::plan::Plan;

/// Upper bound of the default IO_DEPTH: an operation reads no more blocks than WORK_UNIT, and few devices benefit from more at once.
const IO_DEPTH_DEFAULT_MAX: u32 = 32;

/// How a range of keys is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMode {
    /// Index scan: one block after the other.
    Single,
    /// Bitmap heap scan: in block order, with so many reads ahead.
    Batched {
        /// effective_io_concurrency.
        depth: u32,
    },
}

/// Session options.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Names of the data set's schema and tables.
    pub names: Names,
    pub read_mode: ReadMode,
    /// LOOP=server: a procedure performs slices of operations, one round trip each.
    pub in_server: bool,
    /// synchronous_commit of the sessions; `None` keeps the server's.
    pub commit_mode: Option<String>,
    /// DRIVER_THREADS; 0 lets assay choose.
    pub threads: usize,
}

impl Options {
    pub(super) fn new(settings: &Settings, plan: &Plan) -> Result<Self, EngineError> {
        let read_mode = match settings.text("READ_MODE") {
            "batched" => ReadMode::Batched {
                depth: match settings.int("IO_DEPTH") as u32 {
                    0 => plan.work_unit.min(IO_DEPTH_DEFAULT_MAX),
                    depth => depth,
                },
            },
            _ => ReadMode::Single,
        };
        let in_server = settings.text("LOOP") == "server";
        if in_server {
            refuse_unfit(plan)?;
        }
        let commit_mode = match settings.text("COMMIT_MODE") {
            "" | "default" => None,
            mode => Some(mode.to_owned()),
        };
        Ok(Self {
            names: Names::new(settings)?,
            read_mode,
            in_server,
            commit_mode,
            threads: settings.int("DRIVER_THREADS") as usize,
        })
    }

    /// Statements that make a session plan and commit as requested.
    pub(super) fn session_settings(&self) -> String {
        let (index, bitmap) = match self.read_mode {
            ReadMode::Single => ("on", "off"),
            ReadMode::Batched { .. } => ("off", "on"),
        };
        let mut sql = format!(
            "{PINNED}; set enable_seqscan = off; set enable_indexscan = {index}; set enable_bitmapscan = {bitmap}; \
             set enable_indexonlyscan = off; set enable_tidscan = off; set max_parallel_workers_per_gather = 0; \
             set jit = off; set plan_cache_mode = force_generic_plan"
        );
        if let ReadMode::Batched { depth } = self.read_mode {
            sql.push_str(&format!("; set effective_io_concurrency = {depth}"));
        }
        if let Some(mode) = &self.commit_mode {
            sql.push_str(&format!("; set synchronous_commit = {mode}"));
        }
        sql
    }

    /// Name for the facts.
    pub(super) fn read_mode_name(&self) -> String {
        match self.read_mode {
            ReadMode::Single => "single".to_owned(),
            ReadMode::Batched { depth } => format!("batched, effective_io_concurrency {depth}"),
        }
    }
}
