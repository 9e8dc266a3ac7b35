//! Sessions of a run: a thread and a connection each, every operation a prepared statement with its own start and end;
//! or, with LOOP=server, slices of operations that the server performs by itself.

mod calls;
mod driver;
mod facts;
mod session;
mod slices;

use super::activity::Activity;
use super::address::Address;
use super::claim;
use super::conn::Connection;
use super::host::Host;
use super::marker::{self, Found, Marked};
use super::server::Server;
use super::stats::ServerStats;
use crate::claim::Purpose;
use crate::slices::refuse_unfit;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Assignment, Doing, Driver, Engine, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use rustix::net::{Shutdown, shutdown};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// No run ends in the midst of what it has just begun.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than until they are cancelled.
const GRACE_STOPPED: Duration = Duration::from_secs(15);
/// Asking for a statement's end is no work for a server that is well.
const CANCEL: Duration = Duration::from_secs(5);
/// Claim, statistics, activity, cancelling.
const OWN_CONNECTIONS: u64 = 4;

/// Ends a session's statement, and its wait.
#[derive(Clone)]
struct Token {
    address: Arc<Address>,
    id: u32,
}

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        let mut connection =
            Connection::open(&self.address, Some(CANCEL)).map_err(std::io::Error::other)?;
        // Nobody is left to be told where the session is gone.
        let _ = connection.run(&format!("kill query {}", self.id));
        Ok(())
    }
}

/// An opened data set.
pub(super) struct MariaEngine {
    plan: Plan,
    address: Arc<Address>,
    /// READ_MODE=batched.
    batched: bool,
    /// LOOP=server.
    in_server: bool,
    /// Longest statement, bytes.
    packet_bytes: u64,
    clock: Clock,
    stop: Stop,
    facts: Vec<Fact>,
    backends: Arc<Backends<Token>>,
    /// The sockets of the sessions: shut down when nobody waits for the server any more.
    sockets: Mutex<Vec<Arc<OwnedFd>>>,
    watch: Mutex<Option<Watch>>,
    server: ServerStats,
    /// Its process and threads, and the device under its files.
    host: Host,
    activity: Activity,
    turns: Turns,
    grace: Duration,
    /// Holds the claim.
    control: Mutex<Option<Connection>>,
}

/// Values behind these locks are replaced whole: a panic elsewhere leaves them usable.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Opens the data set for a run.
pub(super) fn open(
    address: Address,
    plan: &Plan,
    settings: &Settings,
    stop: &Stop,
) -> Result<Box<dyn Engine>, EngineError> {
    let in_server = settings.text("LOOP") == "server";
    if in_server {
        refuse_unfit(plan)?;
    }
    let mut control = claim::take(&address, Purpose::Run)?;
    let server = Server::ask(&mut control)?;
    if plan.update_pct > 0 {
        server.refuse_read_only()?;
    }
    let wanted = plan.sessions() as u64 + OWN_CONNECTIONS - 1;
    server.refuse_too_few_connections(wanted, "the run")?;
    let marked = claimed(&mut control, &address.database, plan)?;
    let batched = settings.text("READ_MODE") == "batched";
    let modes = (batched, in_server);
    let facts = facts::facts(&mut control, &address.database, &server, &marked, modes)?;
    let host = Host::find(&mut control)?;
    let backends = Arc::new(Backends::new(plan.sessions()));
    let seconds = |name: &str| Duration::from_nanos(settings.ns(name));
    let grace = seconds("MYSQL_GRACE").max(GRACE_MIN);
    let stats = ServerStats::open(&address, &server, control.id(), in_server)?;
    let activity = Activity::open(&address, &host)?;
    Ok(Box::new(MariaEngine {
        watch: Mutex::new(Some(Watch::begin(
            Arc::clone(&backends),
            stop.clone(),
            (plan.work_loop == 0).then(|| grace * 2 / 3),
        )?)),
        plan: plan.clone(),
        address: Arc::new(address),
        batched,
        in_server,
        packet_bytes: server.packet_bytes,
        clock: Clock::real(),
        stop: stop.clone(),
        facts,
        backends,
        sockets: Mutex::default(),
        server: stats,
        host,
        activity,
        turns: Turns::new(settings.int("CONNECT_RATE")),
        grace,
        control: Mutex::new(Some(control)),
    }))
}

/// The data set as it is now that it is claimed: what was seen before may have been another.
fn claimed(
    control: &mut Connection,
    database: &str,
    plan: &Plan,
) -> Result<Box<Marked>, EngineError> {
    let Found::Ours(marked) = marker::find(control, database)? else {
        return Err(super::nothing_here(database));
    };
    let marker = &marked.marker;
    let is = (marked.usable(), marker.scale, marker.scan_blocks);
    let wanted = (plan.schemas, plan.scale, plan.scan_blocks);
    let fits = is.0 >= wanted.0 && is.1 >= wanted.1 && (plan.scan_pct == 0 || is.2 >= wanted.2);
    if fits && marker.block_bytes == plan.block_bytes {
        return Ok(marked);
    }
    Err(EngineError::Unusable(format!(
        "the data set in database {database} has changed since assay checked it: it has {} SLOB schemas of {} rows \
         and {} scan pages of {} bytes, but {} of {} and {} of {} were planned; run again",
        is.0, is.1, is.2, marker.block_bytes, wanted.0, wanted.1, wanted.2, plan.block_bytes
    )))
}

impl Engine for MariaEngine {
    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.facts.clone();
        facts.extend(self.host.facts());
        facts.extend(self.server.facts());
        facts.extend(self.activity.facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        self.server.remarks()
    }

    /// The driver waits for each answer in its socket.
    fn driver_threads(&self, sessions: usize, _cpus: usize) -> usize {
        sessions
    }

    fn driver<'a>(&'a self, assignment: &Assignment) -> Result<Box<dyn Driver + 'a>, EngineError> {
        Ok(Box::new(driver::MariaDriver::open(self, assignment)?))
    }

    fn sample(&self) -> StatSet {
        let pids: Vec<i32> = self.backends.pids().iter().map(|(_, pid)| *pid).collect();
        let (mut stats, read) = self.server.sample();
        self.host
            .sample(&pids, &read.clients, &read.ahead_bytes, &mut stats);
        stats
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.activity
            .look(&self.host, &self.backends.pids(), sessions)
    }

    fn overdue(&self, late: Duration) {
        let limit = match self.stop.requested() {
            true => self.grace.min(GRACE_STOPPED),
            false => self.grace,
        };
        if late >= limit {
            for socket in locked(&self.sockets).iter() {
                // One that is closed already waits for nothing.
                let _ = shutdown(socket, Shutdown::Both);
            }
        }
    }

    fn works_in_driver_threads(&self) -> bool {
        false
    }

    fn watched_disks(&self) -> Vec<String> {
        self.host.disks()
    }

    fn close(&self) -> Result<(), EngineError> {
        drop(locked(&self.watch).take());
        self.server.claim_ends();
        drop(locked(&self.control).take());
        Ok(())
    }
}
