//! Crash recovery: it restores committed transactions and rolls back the others.
//!
//! Commands that open a data set whose last user did not close it call it. Redo is replayed from the recorded
//! checkpoint to the log's tail, then the transactions that have no commit record are rolled back, newest change first.
//! Redo and undo hold whole column images, so that replay is idempotent: after a crash during recovery, recovery simply
//! runs again. `docs/design/recovery.md` says why it is correct.

mod io;
mod log;
mod pages;
mod repair;
mod replay;

#[cfg(test)]
mod tests;

use super::bulk::Watch;
use super::control::{FRESH_LOG_WORD, SESSIONS_WORD, State};
use super::control_file::ControlFile;
use super::crash_rules::CrashRules;
use super::files::Files;
use super::paths::Places;
use super::survey::is_unfinished;
use assay_block::Backend;
use assay_measure::config::Settings;
use assay_run::dataset::lines::count;
use assay_run::engine::{EngineError, Line, LineValue};
use io::Io;
use log::LogReader;
use replay::Replay;
use std::time::Instant;

/// Memory for blocks at least, whatever the cache is.
const LEAST_BUDGET_BYTES: u64 = 64 << 20;

/// What a recovery found and did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Recovery {
    /// Redo replayed, from the checkpoint to the tail.
    pub(super) redo_bytes: u64,
    /// Bytes of log files read to find it.
    pub(super) log_bytes_read: u64,
    /// Redo records.
    pub(super) records: u64,
    /// Row changes among them.
    pub(super) rows: u64,
    /// Commit records among them.
    pub(super) transactions_committed: u64,
    /// Transactions without one, taken back.
    pub(super) transactions_rolled_back: u64,
    /// Their row changes.
    pub(super) rows_rolled_back: u64,
    /// Data and undo blocks read.
    pub(super) blocks_read: u64,
    /// Data and undo blocks written.
    pub(super) blocks_written: u64,
    /// Blocks that a cut had torn.
    pub(super) torn_blocks: u64,
    /// Wall time of reading and applying the log, s.
    pub(super) replay_s: f64,
    /// Wall time of all, s.
    pub(super) total_s: f64,
}

impl Recovery {
    /// For people and for JSON.
    #[must_use]
    pub(super) fn lines(&self) -> Vec<Line> {
        let decimal = |key, label: &str, value| Line { key, label: label.to_owned(), value: LineValue::Decimal(value) };
        let rate = |bytes: u64, seconds: f64| bytes as f64 / 1e6 / seconds.max(1e-9);
        vec![
            count("recovered_redo_bytes", "Redo replayed, bytes", self.redo_bytes),
            count("recovered_records", "Redo records replayed", self.records),
            count("recovered_rows", "Row changes replayed", self.rows),
            count("recovered_commits", "Commits replayed", self.transactions_committed),
            count("rolled_back_transactions", "Transactions rolled back", self.transactions_rolled_back),
            count("rolled_back_rows", "Row changes rolled back", self.rows_rolled_back),
            count("recovery_blocks_read", "Blocks read", self.blocks_read),
            count("recovery_blocks_written", "Blocks written", self.blocks_written),
            count("recovered_torn_blocks", "Torn blocks repaired", self.torn_blocks),
            decimal("replay_s", "Replay time, s", self.replay_s),
            decimal("replay_mb_per_s", "Replay rate, MB/s (10^6) of redo", rate(self.redo_bytes, self.replay_s)),
            decimal("recovery_s", "Recovery time, s", self.total_s),
        ]
    }
}

/// Recovers the data set if its last user did not close it; an addition that was cut short is taken back.
///
/// # Errors
/// `Unusable` when nothing of it was ever loaded to the end; as [`recover`].
pub(super) fn ensure_clean(
    places: &Places,
    control: &mut ControlFile,
    settings: &Settings,
    watch: Watch<'_>,
) -> Result<Option<Recovery>, EngineError> {
    match control.control().state {
        State::Clean => return Ok(None),
        State::Loading if is_unfinished(control.control()) => {
            return Err(super::load_plan::loading_error(places.home()));
        }
        State::Loading => {
            super::take_back::take_back(places, control)?;
            return Ok(None);
        }
        State::Open => {}
    }
    let io_mode = settings.text("IO_MODE");
    let direct = matches!(io_mode, "directio" | "setall");
    let backend = if matches!(io_mode, "asynch" | "setall") { Backend::Auto } else { Backend::Helpers };
    let files = Files::open(places, control.control(), direct)?;
    let budget = settings.bytes("CACHE_MB").max(LEAST_BUDGET_BYTES);
    recover(&files, control, backend, (budget, CrashRules::default()), watch).map(Some)
}

/// Rolls forward and back, writes everything, and marks the data set clean. Needs up to
/// `budget_bytes` of memory for blocks.
///
/// # Errors
/// `Damaged` when the log is broken before its tail, or a block is bad that no redo makes
/// right; I/O errors, never tried again; `Interrupted`. The data set then stays as it is,
/// to be recovered another time.
pub(super) fn recover(
    files: &Files,
    control_file: &mut ControlFile,
    backend: Backend,
    (budget_bytes, rules): (u64, CrashRules),
    watch: Watch<'_>,
) -> Result<Recovery, EngineError> {
    let begun = Instant::now();
    let control = control_file.control().clone();
    let mut io = Io::open(files, backend)?;
    let mut log = LogReader::open(&mut io, files, &control)?;
    let mut replay = Replay::new(files, &control, budget_bytes, rules);
    replay.find_active(&mut io, control.engine[SESSIONS_WORD])?;
    let end_lsn = forward(&mut io, &mut log, &mut replay, watch)?;
    replay.finish(&mut io, end_lsn)?;
    let replay_s = begun.elapsed().as_secs_f64();
    replay.pages.write_back(&mut io)?;
    io.sync()?;
    if replay.close_losers(&mut io, end_lsn)? {
        replay.pages.write_back(&mut io)?;
        io.sync()?;
    }
    replay.assert_done();
    let mut recovery = replay.totals();
    recovery.redo_bytes = end_lsn - log.start_lsn();
    recovery.log_bytes_read = log.progress().0;
    recovery.replay_s = replay_s;
    let mut recovered = control;
    recovered.state = State::Clean;
    recovered.checkpoint_lsn = end_lsn;
    recovered.log_sequence = recovered.log_sequence.max(log.last_sequence());
    recovered.engine[FRESH_LOG_WORD] = recovered.log_sequence;
    recovered.change_number = recovered.change_number.max(replay.last_transaction());
    control_file.store(recovered)?;
    recovery.total_s = begun.elapsed().as_secs_f64();
    Ok(recovery)
}

/// Replays to the tail; returns the LSN behind the last whole record.
fn forward(
    io: &mut Io<'_>,
    log: &mut LogReader<'_>,
    replay: &mut Replay<'_>,
    watch: Watch<'_>,
) -> Result<u64, EngineError> {
    let mut payload: Vec<u8> = Vec::new();
    let mut lsn = log.start_lsn();
    while log.next(io, &mut payload)? {
        if watch.stop.requested() {
            return Err(EngineError::Interrupted);
        }
        let used = replay.apply(io, &payload, lsn)?;
        payload.drain(..used);
        lsn += used as u64;
        let (done, total) = log.progress();
        watch.progress.update("recovery", done, total);
    }
    Ok(lsn)
}
