//! What a run holds on a server besides its sessions: the claim, the readers of the instance's counters and of session
//! activity, and repositories.

use super::address::{Address, Door};
use super::claim::Claim;
use super::licensed::Snapshots;
use super::server::{Instance, Server};
use super::session::{Bind, Id, Session, Way, told};
use super::sql::{self, Views};
use super::stats::ServerStats;
use crate::claim::Company;
use crate::running::{Attachment, Running};
use crate::watch::Cancel;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longest wait for a cancel request, which costs a healthy server no effort.
const CANCEL: Duration = Duration::from_secs(5);
/// Sessions for claim, statistics, activity and cancelling.
const OWN_SESSIONS: u64 = 4;

/// The server access of a command.
pub(super) struct Site {
    pub(super) way: Arc<dyn Way>,
    pub(super) address: Address,
    /// Holds the claim.
    pub(super) claim: Claim,
}

/// Cancels a session's statement from another session.
#[derive(Clone)]
pub(super) struct Token {
    way: Arc<dyn Way>,
    door: Door,
    sql: String,
}

impl Token {
    /// For a session on a server of this major version.
    pub(super) fn new(way: &Arc<dyn Way>, address: &Address, id: Id, major: u32) -> Self {
        Self { way: Arc::clone(way), door: address.admin().clone(), sql: sql::cancel(id.sid, id.serial, major) }
    }
}

impl Cancel for Token {
    fn cancel(&self) -> std::io::Result<()> {
        let mut session = self.way.open(&self.door, CANCEL).map_err(std::io::Error::other)?;
        // If the session has ended or this user lacks the privilege, nothing can be done.
        let _ = session.run(&self.sql, &[]);
        Ok(())
    }
}

pub(super) struct Attached {
    pub(super) way: Arc<dyn Way>,
    pub(super) address: Address,
    /// The login of each session, from the first.
    doors: Vec<Door>,
    major: u32,
    place: String,
    running: Running<Token>,
    pub(super) instance: Instance,
    warnings: Vec<String>,
    /// Positions of sessions by their number on the server.
    sids: Mutex<HashMap<u32, usize>>,
    server: ServerStats,
    snapshots: Mutex<Snapshots>,
    /// Why the claim was lost, if it was.
    claim_lost: Mutex<Option<String>>,
    claim: Mutex<Option<Claim>>,
}

impl Attached {
    /// Attaches with the claim in `site`.
    pub(super) fn open(
        site: Site,
        about: &Server,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
    ) -> Result<Self, EngineError> {
        let Site { way, address, claim } = site;
        let mut admin = way.open(address.admin(), address.answer)?;
        let instance = Instance::ask(&mut *admin);
        let wanted = plan.sessions() as u64 + OWN_SESSIONS - 1;
        instance.refuse_too_few_sessions(wanted, "the run")?;
        let snapshots = Snapshots::begin(settings, &mut *admin, &instance)?;
        drop(admin);
        let (doors, uneven) = address.sessions(plan);
        let views = Views { global: instance.number("instances").is_some_and(|count| count > 1) };
        let log_block = instance.number("log block bytes");
        let company = Company::of(claim.id().sid, Some(plan));
        let server = ServerStats::open(&way, &address, views, log_block, company)?;
        let mut warnings = instance.warnings();
        warnings.extend(uneven.map(|text| format!("{text}.")));
        Ok(Self {
            running: Running::open(plan, settings, stop, "ORACLE_GRACE")?,
            doors,
            major: about.major,
            place: about.place(views.global),
            instance,
            warnings,
            sids: Mutex::default(),
            server,
            snapshots: Mutex::new(snapshots),
            claim_lost: Mutex::default(),
            claim: Mutex::new(Some(claim)),
            way,
            address,
        })
    }

    /// Connects a session, and names it in V$SESSION.
    pub(super) fn session(&self, number: u32) -> Result<Box<dyn Session>, EngineError> {
        let door = &self.doors[number as usize - 1];
        let mut session = self.way.open(door, self.address.answer)?;
        let id = session.id();
        let token = Token::new(&self.way, &self.address, id, self.major);
        self.running.backends.connected(number, id.sid as i32, token);
        locked(&self.sids).insert(id.sid, number as usize - 1);
        let action = format!("session {number}");
        session
            .run(sql::NAME_SESSION, &[Bind::Text("assay"), Bind::Text(&action)])
            .map_err(told("preparing a session"))?;
        Ok(session)
    }

    /// Ends the run's own work, and hands over the session that holds the claim, once.
    pub(super) fn release(&self) -> Option<Claim> {
        self.running.unwatch();
        let mut claim = locked(&self.claim).take()?;
        let mut snapshots = locked(&self.snapshots);
        if snapshots.is_wanted()
            && let Ok(mut admin) = self.way.open(self.address.admin(), self.address.answer)
        {
            snapshots.end(&mut *admin);
        }
        self.server.claim_ends();
        if let Err(error) = claim.number(sql::LIFE, &[]) {
            *locked(&self.claim_lost) = Some(error.to_string());
        }
        Some(claim)
    }
}

impl Attachment for Attached {
    type Token = Token;

    fn running(&self) -> &Running<Token> {
        &self.running
    }

    fn facts(&self) -> Vec<Fact> {
        let mut facts = self.server.facts();
        facts.extend(locked(&self.snapshots).facts());
        facts
    }

    fn remarks(&self) -> Remarks {
        let mut remarks = self.server.remarks();
        remarks.warnings.extend(self.warnings.iter().cloned());
        if let Some(why) = locked(&self.claim_lost).as_ref() {
            remarks.invalid.push(format!(
                "the claim on the data set was lost ({why}): after that, other commands could change or remove its tables"
            ));
        }
        remarks
    }

    fn server(&self) -> Option<String> {
        Some(self.place.clone())
    }

    fn sample(&self) -> StatSet {
        self.server.sample()
    }

    fn look(&self, sessions: &mut [Doing]) -> bool {
        self.server.look(&locked(&self.sids), sessions)
    }
}
