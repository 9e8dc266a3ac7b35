//! Sessions of a run: one connection each, every operation a prepared statement with its own start and end.
//!
//! [`server`] says whether the server can serve the plan, [`driver`] drives the sessions, [`session`] is one of them,
//! [`crate::watch`] ends statements that nobody waits for any more. Design: `docs/design/postgres-session.md`.

mod calls;
mod driver;
mod errors;
mod many;
mod options;
mod plans;
mod server;
mod session;
mod slices;
#[cfg(test)]
mod tests;

use super::check::nothing_here;
use super::claim::{self, Purpose};
use super::conninfo::ConnectOptions;
use super::growth;
use super::marker::{self, Found, Ours};
use super::own;
use super::reads::TrueReads;
use super::site::Guard;
use super::stats::{Activity, ServerStats, Timing};
use super::wire::{CancelToken, Connection};
use crate::place::Place;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Progress, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use options::Options;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// No run ends in the midst of what it has just begun.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than until they are cancelled.
const GRACE_STOPPED: Duration = Duration::from_secs(15);
/// How long the server may take to end the processes of sessions that said good-bye.
const GOODBYE_MAX: Duration = Duration::from_secs(10);
const GOODBYE_POLL: Duration = Duration::from_millis(5);

/// An opened data set.
struct PgEngine {
    plan: Plan,
    options: Options,
    connect: ConnectOptions,
    clock: Clock,
    stop: Stop,
    facts: Vec<Fact>,
    backends: Arc<Backends<CancelToken>>,
    /// Where blocks really came from.
    reads: TrueReads,
    /// What the server counts.
    server: ServerStats,
    /// What its sessions do.
    activity: Activity,
    watch: Mutex<Option<Watch>>,
    /// Keeps another role's tables as they were examined.
    guard: Mutex<Guard>,
    /// Makes a session act as the role the data set belongs to.
    acting: Option<String>,
    /// What has grown of the data set before this run; empty: nothing.
    grown: String,
    /// Holds the claim, and asks what concerns the whole server.
    control: Mutex<Option<Connection>>,
    turns: Turns,
    /// The statistics of sessions that left were waited for.
    settled: AtomicBool,
    /// How long operations may go on after the end of the run (PG_GRACE).
    grace: Duration,
}

/// Opens the data set for a run.
pub(super) fn open(
    place: &Place,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
    _progress: &dyn Progress,
) -> Result<Box<dyn Engine>, EngineError> {
    Ok(Box::new(PgEngine::open(place, plan, settings, stop)?))
}

impl Cancel for CancelToken {
    fn cancel(&self) -> std::io::Result<()> {
        Self::cancel(self).map_err(std::io::Error::other)
    }
}

/// Values behind these locks are replaced whole: a panic elsewhere leaves them usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PgEngine {
    fn open(
        place: &Place,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
        let options = Options::new(settings, plan)?;
        let connect = own::options(place)?;
        let mut control = claim::take(&connect, &options.names, Purpose::Run)?;
        let mut facts = server::examine(&mut control, plan, &options)?;
        let ours = claimed(&mut control, plan, &options)?;
        let tables = ours.marked.tables(&options.names, |n| n <= plan.schemas);
        let writes = plan.update_pct > 0;
        let guard = Guard::stand(&connect, &options.names, &ours.owner, &tables, writes)?;
        facts.push(Fact::new("data_set_owner", ours.owner.describe()));
        let grown = growth::find(&mut control, &options.names, &ours.marked)?;
        let schema = options.names.schema();
        let reads = TrueReads::open(place, &mut control, plan.sessions(), schema, settings)?;
        let backends = Arc::new(Backends::new(plan.sessions()));
        let grace = Duration::from_nanos(settings.ns("PG_GRACE")).max(GRACE_MIN);
        let server = ServerStats::open(&connect, schema, Timing::of(settings))?;
        server.claimed_by(control.backend_pid());
        let seen = Arc::clone(&backends);
        let activity = Activity::open(&connect, &server, Box::new(move || seen.pids()))?;
        Ok(Self {
            watch: Mutex::new(Some(Watch::begin(
                Arc::clone(&backends),
                stop.clone(),
                (plan.work_loop == 0).then(|| grace * 2 / 3),
            )?)),
            plan: plan.clone(),
            options,
            connect,
            clock: Clock::real(),
            stop: stop.clone(),
            facts,
            backends,
            reads,
            server,
            activity,
            guard: Mutex::new(guard),
            acting: ours.owner.acting(),
            grown: growth::told_of(&grown),
            control: Mutex::new(Some(control)),
            turns: Turns::new(settings.int("CONNECT_RATE")),
            settled: AtomicBool::new(false),
            grace,
        })
    }

    /// Waits until the server has ended our sessions' processes, and lets the control connection go.
    fn await_goodbye(&self) -> Result<(), EngineError> {
        let Some(mut control) = locked(&self.control).take() else {
            return Ok(());
        };
        let gone = self.await_gone(&mut control);
        self.server.claim_ends();
        locked(&self.guard).end();
        gone?;
        control.close();
        Ok(())
    }

    /// Before the reading that follows the last session's end: what the sessions counted is in it (13 and 14 publish
    /// by themselves, in their own time; later versions did so at the mark).
    fn settle(&self) {
        let late = self.server.published_late();
        if late.is_zero() || !self.backends.all_closed() || self.settled.swap(true, Relaxed) {
            return;
        }
        if let Some(control) = locked(&self.control).as_mut() {
            // Who stays is told when the run closes.
            let _ = self.await_gone(control);
            std::thread::sleep(late);
        }
    }

    fn await_gone(&self, control: &mut Connection) -> Result<(), EngineError> {
        let pids = self.backends.pids();
        let begun = Instant::now();
        // One that is given up answers no more.
        control.set_deadline(begun + GOODBYE_MAX + GOODBYE_MAX);
        let list: Vec<String> = pids.iter().map(|(_, pid)| pid.to_string()).collect();
        while !list.is_empty() {
            let sql = format!(
                "select pid from pg_stat_activity where pid = any('{{{}}}')",
                list.join(",")
            );
            let Ok(left) = control.query(&sql) else {
                // The server is gone, and the sessions with it; who lost one has told so.
                return Ok(());
            };
            if left.rows.is_empty() {
                break;
            }
            if begun.elapsed() > GOODBYE_MAX {
                return Err(EngineError::Unusable(format!(
                    "the server still has {} sessions of the run {} s after they were closed",
                    left.rows.len(),
                    GOODBYE_MAX.as_secs()
                )));
            }
            std::thread::sleep(GOODBYE_POLL);
        }
        Ok(())
    }
}

/// The data set as it is now that it is claimed: what was seen before may have been another.
fn claimed(
    control: &mut Connection,
    plan: &Plan,
    options: &Options,
) -> Result<Box<Ours>, EngineError> {
    let names = &options.names;
    let Found::Ours(ours) = marker::find(control, names)? else {
        return Err(nothing_here(names));
    };
    let marker = &ours.marked.marker;
    let is = (ours.marked.usable(), marker.scale, marker.scan_blocks);
    let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
    let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
    if fits && marker.block_bytes == plan.block_bytes {
        return Ok(ours);
    }
    Err(EngineError::Unusable(format!(
        "the data set in schema {} has changed since assay checked it: it has {} SLOB schemas of {} rows and {} scan \
         blocks, but {} of {} and {} were planned; run again",
        names.schema(),
        is.0,
        is.1,
        is.2,
        wanted.0,
        wanted.1,
        wanted.2
    )))
}

impl Engine for PgEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.reads.facts());
        facts.extend(self.server.facts());
        facts.extend(self.activity.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.server.remarks();
        if !self.grown.is_empty() {
            remarks.warnings.push(format!(
                "The data set had grown before this run: {}.",
                self.grown
            ));
        }
        remarks
    }

    fn driver_threads(&self, sessions: usize, cpus: usize) -> usize {
        self.options.driver_threads(sessions, cpus)
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(driver::PgDriver::open(self, assignment)?))
    }

    fn sample(&self) -> StatSet {
        self.settle();
        let mut stats = self.server.sample();
        let pids: Vec<i32> = self.backends.pids().iter().map(|(_, pid)| *pid).collect();
        self.reads.sample(&pids, &mut stats);
        stats
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity.look(sessions)
    }

    fn overdue(&self, late: Duration) {
        let (limit, after) = match self.stop.requested() {
            true => (self.grace.min(GRACE_STOPPED), "the request to stop"),
            false => (self.grace, "the end of the run (PG_GRACE)"),
        };
        if late >= limit {
            self.connect.patience.give_up(format!(
                "the server did not answer within {} s after {after}",
                limit.as_secs()
            ));
        }
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn watched_disks(&self) -> Vec<String> {
        assay_block::disks_under(&self.reads.watched_paths())
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(locked(&self.watch).take());
        let gone = self.await_goodbye();
        self.reads.close().and(gone)
    }
}
