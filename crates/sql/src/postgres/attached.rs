//! What every run holds on a server besides its sessions: the claim, the readers of counters and of session activity,
//! the account of where blocks came from, and the thread that cancels abandoned statements.

use super::conninfo::ConnectOptions;
use super::own::told;
use super::reads::TrueReads;
use super::stats::{Activity, ServerStats, Timing};
use super::wire::{CancelToken, Connection};
use crate::place::Place;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::EngineError;
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Shortest grace, so that no run ends right after it has started an operation.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than it takes to cancel them.
const GRACE_STOPPED: Duration = Duration::from_secs(15);
/// How long the server may take to end the processes of closed sessions.
const GOODBYE_MAX: Duration = Duration::from_secs(10);
const GOODBYE_POLL: Duration = Duration::from_millis(5);

impl Cancel for CancelToken {
    fn cancel(&self) -> std::io::Result<()> {
        Self::cancel(self).map_err(std::io::Error::other)
    }
}

pub(super) struct Attached {
    pub connect: ConnectOptions,
    pub clock: Clock,
    pub stop: Stop,
    pub backends: Arc<Backends<CancelToken>>,
    /// Where blocks really came from.
    pub reads: TrueReads,
    /// Reads the server's counters.
    pub server: ServerStats,
    /// Reads what its sessions do.
    pub activity: Activity,
    pub turns: Turns,
    watch: Mutex<Option<Watch>>,
    /// Holds the claim, and runs queries about the whole server.
    control: Mutex<Option<Connection>>,
    /// The statistics of closed sessions were waited for.
    settled: AtomicBool,
    /// How long operations may go on after the end of the run (PG_GRACE).
    grace: Duration,
}

impl Attached {
    /// Attaches to the data set in `schema`, which `control` has claimed.
    pub(super) fn open(
        place: &Place,
        connect: ConnectOptions,
        mut control: Connection,
        schema: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
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
            connect,
            clock: Clock::real(),
            stop: stop.clone(),
            backends,
            reads,
            server,
            activity,
            control: Mutex::new(Some(control)),
            turns: Turns::new(settings.int("CONNECT_RATE")),
            settled: AtomicBool::new(false),
            grace,
        })
    }

    /// Facts about the server and about how it is observed.
    pub(super) fn facts(&self) -> Vec<Fact> {
        let parts = [self.reads.facts(), self.server.facts(), self.activity.facts()];
        parts.concat()
    }

    /// Counters of the server and of its host at this instant.
    pub(super) fn sample(&self) -> StatSet {
        self.settle();
        let mut stats = self.server.sample();
        let pids: Vec<i32> = self.backends.pids().iter().map(|(_, pid)| *pid).collect();
        self.reads.sample(&pids, &mut stats);
        stats
    }

    /// Limits every wait for the server to the phase.
    pub(super) fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.connect.patience.phase(name, within);
    }

    /// Called while sessions are still at work this long after they were told to end.
    pub(super) fn overdue(&self, late: Duration) {
        let (limit, after) = if self.stop.requested() {
            (self.grace.min(GRACE_STOPPED), "the request to stop")
        } else {
            (self.grace, "the end of the run (PG_GRACE)")
        };
        if late >= limit {
            self.connect
                .patience
                .give_up(format!("the server did not answer within {} s after {after}", limit.as_secs()));
        }
    }

    /// Waits before the reading that follows the last session's end, so that the reading includes what the sessions
    /// counted. Versions 13 and 14 publish counters on their own schedule; later versions have done so at the mark.
    fn settle(&self) {
        let late = self.server.published_late();
        if late.is_zero() || !self.backends.all_closed() || self.settled.swap(true, Relaxed) {
            return;
        }
        if let Some(control) = locked(&self.control).as_mut() {
            // `close` reports sessions that stay.
            let _ = self.await_gone(control);
            std::thread::sleep(late);
        }
    }

    /// Stops cancelling statements, and waits until the server has ended our sessions' processes.
    pub(super) fn close(&self) -> Result<(), EngineError> {
        drop(locked(&self.watch).take());
        let gone = match locked(&self.control).as_mut() {
            Some(control) => self.await_gone(control),
            None => Ok(()),
        };
        self.reads.close().and(gone)
    }

    /// Executes a statement on the connection that holds the claim.
    pub(super) fn tell(&self, sql: &str, doing: &str) -> Result<(), EngineError> {
        match locked(&self.control).as_mut() {
            Some(control) => control.query(sql).map(drop).map_err(told(doing)),
            None => Ok(()),
        }
    }

    /// Hands over the connection that holds the claim, once; the claim ends with the connection.
    pub(super) fn release(&self) -> Option<Connection> {
        let control = locked(&self.control).take()?;
        self.server.claim_ends();
        Some(control)
    }

    fn await_gone(&self, control: &mut Connection) -> Result<(), EngineError> {
        let pids = self.backends.pids();
        let begun = Instant::now();
        // A server that was given up does not answer any more.
        control.set_deadline(begun + GOODBYE_MAX + GOODBYE_MAX);
        let list: Vec<String> = pids.iter().map(|(_, pid)| pid.to_string()).collect();
        while !list.is_empty() {
            let sql = format!("select pid from pg_stat_activity where pid = any('{{{}}}')", list.join(","));
            let Ok(left) = control.query(&sql) else {
                // The server is gone, and the sessions with it; whoever lost one has reported it.
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
