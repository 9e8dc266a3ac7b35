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

/// Where the sessions' loop runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loop {
    /// In assay: one round trip per operation.
    Client,
    /// In a procedure: one round trip per slice of operations.
    Server,
}

/// Session options.
#[derive(Clone, Debug)]
pub(super) struct Options {
    /// Names of the data set's schema and tables.
    pub names: Names,
    pub read_mode: ReadMode,
    pub run_loop: Loop,
    /// synchronous_commit of the sessions; `None` keeps the server's.
    pub commit_mode: Option<String>,
    /// DRIVER_THREADS; 0 lets assay choose.
    threads: usize,
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
        let run_loop = match settings.text("LOOP") {
            "server" => Loop::Server,
            _ => Loop::Client,
        };
        let commit_mode = match settings.text("COMMIT_MODE") {
            "" | "default" => None,
            mode => Some(mode.to_owned()),
        };
        let options = Self {
            names: Names::new(settings)?,
            read_mode,
            run_loop,
            commit_mode,
            threads: settings.int("DRIVER_THREADS") as usize,
        };
        options.fits(plan)?;
        Ok(options)
    }

    fn fits(&self, plan: &Plan) -> Result<(), EngineError> {
        if self.run_loop == Loop::Client {
            return Ok(());
        }
        refuse_unfit(plan)
    }

    /// Number of threads for so many sessions.
    ///
    /// If there are fewer CPUs than sessions, one thread serves many: taking the available answers one after the other
    /// costs less than a thread switch for each. One thread per CPU keeps all CPUs busy; fewer threads did not (one
    /// thread for 8 sessions left 14 % of two CPUs idle). Slices need one thread per session, since it blocks.
    pub(super) fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        match (self.run_loop, self.threads) {
            (Loop::Server, _) => sessions,
            (Loop::Client, 0) => sessions.min(cpus),
            (Loop::Client, asked) => asked.min(sessions),
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::postgres::testing;

    #[test]
    fn sessions_share_threads_where_not_each_can_have_a_cpu() {
        let threads = |given: &[(&str, &str)], sessions, cpus| {
            let plan = Plan::plain(1, sessions as u32, 1000);
            let options = Options::new(&testing::settings(given), &plan).expect("they fit");
            options.driver_threads(sessions, cpus)
        };
        assert_eq!(threads(&[], 2, 2), 2);
        assert_eq!(threads(&[], 3, 2), 2);
        assert_eq!(threads(&[], 64, 16), 16);
        assert_eq!(threads(&[], 64, 1), 1);
        assert_eq!(threads(&[("DRIVER_THREADS", "4")], 64, 2), 4);
        assert_eq!(threads(&[("DRIVER_THREADS", "4")], 2, 2), 2);
        assert_eq!(threads(&[("LOOP", "server")], 64, 2), 64);
    }
}
