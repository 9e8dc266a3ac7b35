//! The kills: a loaded data set is killed, opened again, audited, and loaded until it is as quick as before.

use super::load::Load;
use super::{RecoveryInfo, RecoveryStep};
use assay_measure::clock::{Clock, NS_PER_S};
use assay_measure::config::Settings;
use assay_measure::record::Figure;
use assay_measure::snapshot::{Fact, Snapshot};
use assay_measure::units;
use assay_run::engine::{Engine, EngineError, Progress, Target};
use assay_run::journal::{self, Expected, Journaled};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Mark, Observer, Options, execute};
use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::time::Duration;

/// The rate must have come back to this much of the old one.
const BACK: f64 = 0.95;
/// A process killed sooner has shown no steady load.
pub const LEAST_LOAD: Duration = Duration::from_secs(3);
/// An incremental checkpoint keeps within this of one log file whatever is asked.
const OF_A_LOG: f64 = 0.9;

/// Checkpoint distances in ascending order, none beyond what log files of this size allow.
///
/// # Errors
/// `Usage` for one that is no size or beyond that.
pub fn distances(list: Option<&str>, log_bytes: u64) -> Result<Vec<u64>, EngineError> {
    let most = (log_bytes as f64 * OF_A_LOG) as u64;
    let Some(list) = list else {
        // Beyond half, the log switch often makes its checkpoint before the distance is there.
        return Ok(vec![most / 16, most / 4, most / 2]);
    };
    let mut distances = Vec::new();
    for text in list.split(',') {
        let refused = |why: String| EngineError::Usage(format!("--distances {text}: {why}"));
        let bytes = units::parse_size_bytes(text.trim()).map_err(|error| refused(error.to_string()))?;
        if !(65_536..=most).contains(&bytes) {
            let most = units::size(most);
            return Err(refused(format!("from 64K to {most}, which is 90 % of a log file (REDO_LOG_MB)")));
        }
        distances.push(bytes);
    }
    distances.sort_unstable();
    distances.dedup();
    Ok(distances)
}

/// What is the same in all kills.
pub struct KillBench<'a> {
    /// The data set's code.
    pub target: &'a dyn Target,
    /// Its place.
    pub location: &'a str,
    /// The settings, [`super::load_settings`] among them.
    pub settings: &'a Settings,
    /// The load after a kill.
    pub plan: &'a Plan,
    /// Ends the kills.
    pub stop: &'a Stop,
    /// Maximum load before each kill.
    pub time: Duration,
    /// The process to be killed: with checkpoints this many log blocks apart it loads the data set, journals its commits in this file,
    /// and prints what [`super::LoadTeller`] tells.
    pub load: &'a dyn Fn(u64, &Path) -> io::Result<Command>,
    /// Takes a line of what happens.
    pub say: &'a dyn Fn(&str),
    /// Shows how far an opening or an audit is.
    pub bar: &'a dyn Fn() -> Box<dyn Progress>,
}

impl KillBench<'_> {
    /// Opens the data set and closes it, which also recovers what somebody else left unclosed, so that every kill begins alike.
    /// Returns what is known before the first kill, and the engine's facts.
    ///
    /// # Errors
    /// It does not open.
    pub fn begin(&self, rto: Duration) -> Result<(RecoveryInfo, Vec<Fact>), EngineError> {
        let engine = self.open()?;
        let facts = engine.facts();
        engine.close()?;
        let info = RecoveryInfo {
            sessions_count: self.plan.sessions() as u64,
            commit_mode: self.settings.text("COMMIT_MODE").to_owned(),
            log_block_bytes: fact(&facts, "log_block_bytes").unwrap_or(4096.0) as u64,
            rto_wanted_s: Figure::decimal(rto.as_secs_f64()),
            ..RecoveryInfo::default()
        };
        Ok((info, facts))
    }

    /// The kills, with the journal removed after each; `info` has the steps that were measured, also after an error.
    ///
    /// # Errors
    /// A load, an opening or an audit failed.
    pub fn kill_each(&self, distances: &[u64], journal: &Path, info: &mut RecoveryInfo) -> Result<(), EngineError> {
        for (index, distance) in distances.iter().enumerate() {
            if self.stop.requested() {
                break;
            }
            let (all, size) = (distances.len(), units::size(*distance));
            (self.say)(&format!("kill {} of {all}: checkpoints within {size} of log", index + 1));
            let step = self.kill(*distance, info.log_block_bytes, journal);
            let _ = std::fs::remove_file(journal);
            info.steps.extend(step?);
        }
        Ok(())
    }

    /// One kill. `None` if stopped before it.
    fn kill(&self, distance: u64, log_block_bytes: u64, journal: &Path) -> Result<Option<RecoveryStep>, EngineError> {
        let mut load = Load::start((self.load)((distance / log_block_bytes).max(1), journal))?;
        let begun = load.wait_for_gate(self.stop)?;
        while begun && !self.stop.requested() {
            load.look()?;
            let aged = load.last().is_some_and(|last| last.age_bytes as f64 >= 0.8 * distance as f64);
            let elapsed = load.elapsed();
            if elapsed >= self.time || (aged && elapsed >= LEAST_LOAD) {
                break;
            }
        }
        let load_s = load.elapsed().as_secs_f64();
        load.kill();
        if !begun || self.stop.requested() {
            (self.say)("notice: the next command that opens the data set recovers it");
            return Ok(None);
        }
        let mut step = RecoveryStep {
            distance_bytes: distance,
            load_s: Figure::decimal(load_s),
            old_commits_per_s: load
                .commits_per_s()
                .map_or_else(|| Figure::na("killed before its second second"), Figure::decimal),
            age_at_kill_bytes: load.last().map_or_else(|| Figure::na("not seen"), |last| Figure::Count(last.age_bytes)),
            ..RecoveryStep::default()
        };
        self.recover(&mut step)?;
        self.audit(&mut step, journal)?;
        self.go_on(&mut step)?;
        Ok(Some(step))
    }

    fn open(&self) -> Result<Box<dyn Engine>, EngineError> {
        self.target.open(self.location, self.plan, self.settings, self.stop, &*(self.bar)())
    }

    /// Opens what the kill left, which recovers it, and closes it for the audit.
    fn recover(&self, step: &mut RecoveryStep) -> Result<(), EngineError> {
        let clock = Clock::real();
        let begun = clock.now_ns();
        let engine = self.open()?;
        step.open_s = seconds(clock.now_ns() - begun);
        let facts = engine.facts();
        engine.close()?;
        let figure =
            |name: &str| fact(&facts, name).map_or_else(|| Figure::na("nothing was recovered"), Figure::decimal);
        step.replayed_bytes = figure("recovered_redo_bytes");
        step.replay_mb_per_s = figure("replay_mb_per_s");
        step.blocks_read_count = figure("recovery_blocks_read");
        step.blocks_written_count = figure("recovery_blocks_written");
        step.rolled_back_count = figure("rolled_back_transactions");
        step.recovery_s = figure("recovery_s");
        Ok(())
    }

    /// Compares every row with what was acknowledged.
    fn audit(&self, step: &mut RecoveryStep, journal: &Path) -> Result<(), EngineError> {
        let entries = journal::read(journal)
            .map_err(|source| EngineError::Io { what: format!("cannot read {}", journal.display()), source })?;
        let expected = Mutex::new(Expected::of(&entries));
        let rows = |schema: u32, key: u64, stamp: Option<u64>| {
            // A thread that panicked ends the audit by its join.
            let mut expected = expected.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            expected.see(schema, key, stamp);
        };
        self.target.audit(self.location, self.settings, self.stop, &*(self.bar)(), &rows)?;
        let expected = expected.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = expected.found();
        step.acknowledged_count = found.acknowledged;
        step.lost_count = found.lost;
        step.half_there_count = found.half_there;
        step.unacknowledged_there_count = found.unacknowledged_there;
        step.rows_compared_count = found.rows;
        Ok(())
    }

    /// The same load again: its first commit, and when it is as quick as before.
    fn go_on(&self, step: &mut RecoveryStep) -> Result<(), EngineError> {
        let engine = Journaled::new(self.open()?, None);
        let wanted = step.old_commits_per_s.value().map(|rate| BACK * rate);
        let stop = Stop::new();
        let mut watcher = Watcher { engine: &engine, wanted, stop: &stop, all: self.stop };
        let options = Options { host: false, calibrate: false, ..Options::default() };
        let ran = execute(self.plan, &engine, &Clock::real(), &stop, &mut watcher, options);
        ran.map_err(|error| EngineError::Unusable(error.to_string()))?;
        let commits = engine.commits();
        let after_open = |ns: Option<u64>, why: String| match ns {
            Some(ns) => step.open_s.plus(&seconds(ns)),
            None => Figure::Na(why),
        };
        step.first_commit_s = after_open(commits.first_ns(), "no commit".to_owned());
        let why = match wanted {
            Some(_) => format!("not within {} s", self.time.as_secs()),
            None => "the old rate is unknown".to_owned(),
        };
        step.rate_95_s = after_open(wanted.and_then(|rate| commits.reached(rate)), why);
        Ok(())
    }
}

/// Ends the load once the old rate is back.
struct Watcher<'a> {
    engine: &'a Journaled,
    wanted: Option<f64>,
    stop: &'a Stop,
    all: &'a Stop,
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, _mark: Mark, _now: &Snapshot) {
        let back = self.wanted.is_some_and(|rate| self.engine.commits().reached(rate).is_some());
        if (back || self.all.requested()) && !self.stop.requested() {
            self.stop.request();
        }
    }

    fn needs_series(&self) -> bool {
        false
    }
}

fn seconds(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / NS_PER_S as f64)
}

/// A fact's number.
fn fact(facts: &[Fact], name: &str) -> Option<f64> {
    let fact = facts.iter().find(|fact| fact.name == name)?;
    fact.value.replace(',', "").split(' ').next()?.parse().ok()
}
