//! What a run holds on a server besides its sessions: the claim, the readers of counters and of session activity, and
//! the server's host.

use super::activity::Activity;
use super::address::Address;
use super::conn::Connection;
use super::host::{self, Host};
use super::server::Server;
use super::stats::ServerStats;
use crate::claim::Company;
use crate::here::SOURCE;
use crate::patience::Patience;
use crate::running::{Attachment, Running};
use crate::watch::Cancel;
use assay_measure::config::Settings;
use assay_measure::counter_catalog::{DB_CPU, SERVER_OTHER_CPU, SERVER_RUN_DELAY};
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, Reading, StatSet};
use assay_run::engine::{Doing, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest wait for a cancel request, which costs a healthy server no effort.
const CANCEL: Duration = Duration::from_secs(5);
/// Connections for claim, statistics, activity and cancelling.
pub(super) const OWN_CONNECTIONS: u64 = 4;
const OF_FLEET: &str = "unknowable: the server does not tell other hosts' sessions of the run from other clients'";

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
    pub(super) running: Running<Token>,
    place: String,
    server: ServerStats,
    /// Other hosts have sessions of the run, too.
    is_of_fleet: bool,
    /// The server's process and threads, and the device under its files.
    host: Host,
    activity: Activity,
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
        let company = Company::of(control.id(), Some(plan));
        Ok(Self {
            place: server.place.clone(),
            is_of_fleet: plan.other_hosts() > 0,
            server: ServerStats::open(&address, server, company, in_server)?,
            activity: Activity::open(&address, &host)?,
            running: Running::open(plan, settings, stop, "MYSQL_GRACE")?,
            address: Arc::new(address),
            host,
            control: Mutex::new(Some(control)),
        })
    }

    /// Connects a session.
    pub(super) fn session(&self, number: u32) -> Result<Connection, EngineError> {
        let mut connection = Connection::open(&self.address.strict())?;
        let token = Token { address: Arc::clone(&self.address), id: connection.id() };
        let thread = host::thread_of(&mut connection);
        self.running.backends.connected(number, thread, token);
        Ok(connection)
    }

    /// Runs `work` on the connection that holds the claim, unless it was released.
    pub(super) fn control<T>(&self, work: impl FnOnce(&mut Connection) -> T) -> Option<T> {
        locked(&self.control).as_mut().map(work)
    }

    /// Hands over the connection that holds the claim, once; this ends the claim.
    pub(super) fn release(&self) -> Option<Connection> {
        self.running.unwatch();
        self.server.claim_ends();
        locked(&self.control).take()
    }
}

impl Attachment for Attached {
    type Token = Token;

    fn running(&self) -> &Running<Token> {
        &self.running
    }

    fn patience(&self) -> Option<&Patience> {
        Some(&self.address.patience)
    }

    fn last_look(&self, pid: i32) {
        self.host.last_look(pid);
    }

    fn facts(&self) -> Vec<Fact> {
        [self.host.facts(), self.server.facts(), self.activity.facts()].concat()
    }

    fn remarks(&self) -> Remarks {
        self.server.remarks()
    }

    fn server(&self) -> Option<String> {
        Some(format!("MySQL or MariaDB at {}", self.place))
    }

    fn sample(&self) -> StatSet {
        let (mut stats, read) = self.server.sample();
        self.host.sample(&self.running.pids(), &read.clients, &read.ahead_bytes, &mut stats);
        if self.is_of_fleet {
            for of_sessions in [DB_CPU, SERVER_RUN_DELAY, SERVER_OTHER_CPU] {
                stats.put(of_sessions, Reading::Na(OF_FLEET.to_owned()), SOURCE);
            }
        }
        stats
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity.look(&self.host, &self.running.backends.pids(), sessions)
    }

    fn watched_disks(&self) -> Vec<String> {
        self.host.disks()
    }
}
