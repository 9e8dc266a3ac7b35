//! What a run holds on a server besides its sessions: the claim, the readers of counters and of session activity, and
//! the account of where blocks came from.

use super::conninfo::ConnectOptions;
use super::errors::unusable;
use super::layout::literal;
use super::own::told;
use super::reads::TrueReads;
use super::stats::{Activity, ServerStats, Timing};
use super::wire::{CancelToken, Connection};
use crate::claim::Company;
use crate::patience::Patience;
use crate::place::Place;
use crate::running::{Attachment, Running};
use crate::watch::Cancel;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

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
    pub running: Running<CancelToken>,
    /// Where blocks really came from.
    reads: TrueReads,
    /// Reads the server's counters.
    pub server: ServerStats,
    /// Reads what its sessions do.
    activity: Activity,
    /// Holds the claim, and runs queries about the whole server.
    control: Mutex<Option<Connection>>,
    /// Of a fleet's run: the server's processes of all hosts' sessions, found when all of them are connected.
    of_fleet: Option<OnceLock<Vec<i32>>>,
    /// The statistics of closed sessions were waited for.
    settled: AtomicBool,
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
        let server = ServerStats::open(&connect, schema, Timing::of(settings))?;
        server.claimed_by(Company::of(control.backend_pid().cast_unsigned(), Some(plan)));
        let running = Running::open(plan, settings, stop, "PG_GRACE")?;
        let seen = Arc::clone(&running.backends);
        let activity = Activity::open(&connect, &server, Box::new(move || seen.pids()))?;
        let (control, settled) = (Mutex::new(Some(control)), AtomicBool::new(false));
        let of_fleet = (plan.other_hosts() > 0).then(OnceLock::new);
        Ok(Self { connect, running, reads, server, activity, control, of_fleet, settled })
    }

    /// Connects a session; `settings` are statements that follow its login.
    pub(super) fn session(&self, number: u32, settings: &str) -> Result<Connection, EngineError> {
        let mut connection = Connection::open(&self.connect)
            .map_err(|error| EngineError::Unusable(format!("session {number} cannot connect: {error}")))?;
        self.running.backends.connected(number, connection.backend_pid(), connection.cancel_token());
        connection.query(settings).map_err(unusable)?;
        for sql in self.server.session_sql() {
            connection.query(sql).map_err(unusable)?;
        }
        Ok(connection)
    }

    /// Waits before the reading that follows the last session's end, so that the reading includes what the sessions
    /// counted. Versions 13 and 14 publish counters on their own schedule; later versions have done so at the mark.
    fn settle(&self) {
        let late = self.server.published_late();
        if late.is_zero() || !self.running.backends.all_closed() || self.settled.swap(true, Relaxed) {
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
        self.running.unwatch();
        let gone = match locked(&self.control).as_mut() {
            Some(control) => self.await_gone(control),
            None => Ok(()),
        };
        self.reads.close().and(gone)
    }

    /// The server's processes of the run's sessions, on whichever host these are.
    fn pids(&self) -> Vec<i32> {
        let Some(of_fleet) = &self.of_fleet else {
            return self.running.pids();
        };
        let asked = of_fleet.get_or_init(|| {
            let sql = format!(
                "select pid from pg_catalog.pg_stat_get_activity(null) where application_name = {} and datid = (select oid \
                 from pg_catalog.pg_database where datname = current_database())",
                literal(&self.connect.application_name)
            );
            self.server.own_work().note();
            let asked = locked(&self.control).as_mut().and_then(|control| control.query(&sql).ok());
            let rows = asked.map(|asked| asked.rows).unwrap_or_default();
            rows.iter().filter_map(|row| row.first()?.as_ref()?.parse().ok()).collect()
        });
        asked.clone()
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
        let begun = Instant::now();
        // A server that was given up does not answer any more.
        control.set_deadline(begun + GOODBYE_MAX + GOODBYE_MAX);
        let own = self.running.pids();
        // What the sessions of the other hosts did last belongs to the last reading, too.
        let others = self.of_fleet.as_ref().and_then(OnceLock::get);
        let list: Vec<String> = others.into_iter().flatten().chain(&own).map(i32::to_string).collect();
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
                let is_own = |row: &Vec<Option<String>>| own.iter().any(|pid| row[0] == Some(pid.to_string()));
                if !left.rows.iter().any(is_own) {
                    break;
                }
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

impl Attachment for Attached {
    type Token = CancelToken;

    fn running(&self) -> &Running<CancelToken> {
        &self.running
    }

    fn patience(&self) -> Option<&Patience> {
        Some(&self.connect.patience)
    }

    fn last_look(&self, pid: i32) {
        self.reads.last_look(pid);
    }

    fn facts(&self) -> Vec<Fact> {
        let parts = [self.reads.facts(), self.server.facts(), self.activity.facts()];
        parts.concat()
    }

    fn remarks(&self) -> Remarks {
        self.server.remarks()
    }

    fn server(&self) -> Option<String> {
        Some(self.server.server())
    }

    fn sample(&self) -> StatSet {
        self.settle();
        let mut stats = self.server.sample();
        self.reads.sample(&self.pids(), &mut stats);
        stats
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity.look(sessions)
    }

    fn watched_disks(&self) -> Vec<String> {
        assay_block::disks_under(&self.reads.watched_paths())
    }
}
