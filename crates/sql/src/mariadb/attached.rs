//! What every run holds on a server besides its sessions: the claim, the readers of counters and of session activity,
//! the server's host, and the thread that cancels abandoned statements.

use super::activity::Activity;
use super::address::Address;
use super::conn::Connection;
use super::host::{self, Host};
use super::server::Server;
use super::stats::ServerStats;
use crate::orders::session::Around;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, EngineError};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Shortest grace, so that no run ends right after it has started an operation.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than it takes to cancel them.
const GRACE_STOPPED: Duration = Duration::from_secs(15);
/// Longest wait for a cancel request, which costs a healthy server no effort.
const CANCEL: Duration = Duration::from_secs(5);
/// Connections for claim, statistics, activity and cancelling.
pub(super) const OWN_CONNECTIONS: u64 = 4;

/// Cancels a session's statement and its wait.
#[derive(Clone)]
pub(super) struct Token {
    address: Arc<Address>,
    id: u32,
}

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        let mut connection = Connection::open(&self.address.brief(CANCEL)).map_err(std::io::Error::other)?;
        // If the session has ended, nothing is left to cancel.
        let _ = connection.run(&format!("kill query {}", self.id));
        Ok(())
    }
}

pub(super) struct Attached {
    pub(super) address: Arc<Address>,
    pub(super) clock: Clock,
    stop: Stop,
    pub(super) backends: Arc<Backends<Token>>,
    watch: Mutex<Option<Watch>>,
    pub(super) server: ServerStats,
    /// The server's process and threads, and the device under its files.
    pub(super) host: Host,
    activity: Activity,
    turns: Turns,
    grace: Duration,
    /// Holds the claim.
    control: Mutex<Option<Connection>>,
}

impl Attached {
    /// Attaches with the claim that `control` holds; `in_server` means that one statement performs many operations.
    pub(super) fn open(
        address: Address,
        (mut control, server): (Connection, &Server),
        plan: &Plan,
        settings: &Settings,
        (in_server, stop): (bool, &Stop),
    ) -> Result<Self, EngineError> {
        let host = Host::find(&mut control)?;
        let backends = Arc::new(Backends::new(plan.sessions()));
        let seconds = |name: &str| Duration::from_nanos(settings.ns(name));
        let grace = seconds("MYSQL_GRACE").max(GRACE_MIN);
        Ok(Self {
            server: ServerStats::open(&address, server, control.id(), in_server)?,
            activity: Activity::open(&address, &host)?,
            watch: Mutex::new(Some(Watch::begin(
                Arc::clone(&backends),
                stop.clone(),
                (plan.work_loop == 0).then(|| grace * 2 / 3),
            )?)),
            address: Arc::new(address),
            clock: Clock::real(),
            stop: stop.clone(),
            backends,
            host,
            turns: Turns::new(settings.int("CONNECT_RATE")),
            grace,
            control: Mutex::new(Some(control)),
        })
    }

    /// Connects a session when its turn has come.
    pub(super) fn session(&self, number: u32) -> Result<Connection, EngineError> {
        self.turns.wait(&self.stop)?;
        let mut connection = Connection::open(&self.address.strict())?;
        let token = self.token(&connection);
        let thread = host::thread_of(&mut connection);
        self.backends.connected(number, thread, token);
        Ok(connection)
    }

    /// A token that cancels the session's statements.
    pub(super) fn token(&self, connection: &Connection) -> Token {
        Token { address: Arc::clone(&self.address), id: connection.id() }
    }

    /// Takes the last reading of a session's CPU time before it closes.
    pub(super) fn closes(&self, number: u32) {
        if let Some(thread) = self.backends.pid(number) {
            self.host.last_look(thread);
        }
    }

    pub(super) fn facts(&self) -> Vec<Fact> {
        let mut facts = self.host.facts();
        facts.extend(self.server.facts());
        facts.extend(self.activity.facts());
        facts
    }

    pub(super) fn sample(&self) -> StatSet {
        let pids: Vec<i32> = self.backends.pids().iter().map(|(_, pid)| *pid).collect();
        let (mut stats, read) = self.server.sample();
        self.host.sample(&pids, &read.clients, &read.ahead_bytes, &mut stats);
        stats
    }

    pub(super) fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity.look(&self.host, &self.backends.pids(), sessions)
    }

    /// Starts a phase of the run with this time limit; `None` means no limit.
    pub(super) fn phase(&self, name: &'static str, within: Option<Duration>) {
        self.address.patience.phase(name, within);
    }

    /// Called while sessions are still at work this long after they were told to end.
    pub(super) fn overdue(&self, late: Duration) {
        let (limit, after) = if self.stop.requested() {
            (self.grace.min(GRACE_STOPPED), "the request to stop")
        } else {
            (self.grace, "the end of the run (MYSQL_GRACE)")
        };
        if late >= limit {
            let why = format!("the server did not answer within {} s after {after}", limit.as_secs());
            self.address.patience.give_up(why);
        }
    }

    /// Runs `work` on the connection that holds the claim, unless it was released.
    pub(super) fn control<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        locked(&self.control).as_mut().map(work)
    }

    /// Hands over the connection that holds the claim, once; this ends the claim.
    pub(super) fn release(&self) -> Option<Connection> {
        drop(locked(&self.watch).take());
        self.server.claim_ends();
        locked(&self.control).take()
    }
}

impl Around for Attached {
    fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    fn leaves(&self) {
        self.backends.leaves();
    }

    fn closes(&self, number: u32) {
        Self::closes(self, number);
    }

    fn closed(&self, number: u32) {
        self.backends.closed(number);
    }
}
