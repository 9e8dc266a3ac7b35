//! Order entry on Oracle: the data set's life, and what a run performs on it.
//!
//! `ddl`, `statements` and `package` are its words, `marker` says whose a schema is, `load` makes the data set, `session` and `engine`
//! run it. What is not Oracle's is in `assay_orders` and in `crate::orders`; what is not order entry's, in the folder above.

mod ddl;
mod engine;
mod load;
mod marker;
mod package;
mod session;
mod statements;
#[cfg(test)]
mod tests;

use super::attached::Site;
use super::claim::Claim;
use super::server::Server;
use super::session::{Session, told};
use super::{Oracle, Visit, params, sql};
use crate::claim::Purpose;
use crate::orders::marker::Marker;
use crate::orders::{already, books, checked_lines, nothing, removed};
use assay_measure::config::{ParamDef, Settings};
use assay_orders::params::{PARAMS, heeds, partitions};
use assay_orders::workload::{NAME, OPERATIONS, OrderEntry};
use assay_run::engine::{DataSet, Engine, EngineError, Line, Presence, Progress, Target};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use ddl::Named;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());

/// Words of SLOB that say where sessions go, who looks at the server, and what is done with its repositories.
const WORDS: &[&str] = &[
    "ADMIN_SQLNET_SERVICE",
    "SQLNET_SERVICE_BASE",
    "SQLNET_SERVICE_MAX",
    "DBA_PRIV_USER",
    "SYSDBA_PASSWD",
    "DATABASE_STATISTICS_TYPE",
    "AWR_SRC",
];

/// Order entry in an Oracle database.
#[derive(Clone, Copy, Debug)]
pub struct OracleOrders {
    oracle: Oracle,
}

impl OracleOrders {
    /// The target, by Oracle's own driver.
    pub const DRIVEN: Self = Self {
        oracle: Oracle::DRIVEN,
    };
}

/// The server, and names there.
fn asked(session: &mut dyn Session, settings: &Settings) -> Result<(Server, Named), EngineError> {
    let tablespace = settings.text("ORACLE_TABLESPACE");
    let server = Server::ask(session, tablespace)?;
    let names = Named {
        user: server.user.clone(),
        tablespace: sql::identifier(tablespace),
    };
    Ok((server, names))
}

/// What is at a place.
struct There {
    server: Server,
    names: Named,
    found: Option<Marker>,
}

fn look(visit: &Visit, settings: &Settings) -> Result<There, EngineError> {
    let mut session = visit.open()?;
    let (server, names) = asked(&mut *session, settings)?;
    let found = marker::find(&mut *session, &names)?;
    Ok(There {
        server,
        names,
        found,
    })
}

/// Claims the data set of a place.
fn claimed(
    visit: &Visit,
    settings: &Settings,
    purpose: Purpose,
) -> Result<(Claim, Named, Marker), EngineError> {
    let there = look(visit, settings)?;
    let place = there.names.place();
    there.found.ok_or_else(|| nothing(&place))?;
    let claim = visit.claim(purpose, None)?;
    // It may be another by now.
    let found = look(visit, settings)?.found;
    let found = found.ok_or_else(|| nothing(&place))?;
    Ok((claim, there.names, found))
}

impl Target for OracleOrders {
    fn name(&self) -> &'static str {
        self.oracle.name()
    }

    fn about(&self) -> &'static str {
        "order entry in an Oracle database, 12.2 to 26"
    }

    fn form(&self) -> &'static str {
        self.oracle.form()
    }

    fn params(&self) -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn workload(&self) -> &'static str {
        NAME
    }

    fn operations(&self) -> &'static str {
        OPERATIONS
    }

    /// The schema is the user's of the URL.
    fn heeds(&self, name: &str) -> bool {
        name != "ORDERS_SCHEMA" && (heeds(name, params::PARAMS) || WORDS.contains(&name))
    }

    fn shape(&self, settings: &Settings, plan: &mut Plan) -> Result<(), EngineError> {
        OrderEntry::shape(settings, plan)
    }

    fn inspect(&self, location: &str, settings: &Settings) -> Result<Presence, EngineError> {
        let there = look(&self.oracle.visit(location, settings)?, settings)?;
        let found = there.found.filter(|found| found.complete);
        Ok(found.map_or(Presence::Absent { harmless: false }, |found| {
            Presence::Present(DataSet {
                schemas: 1,
                scale_blocks: found.generator().counts().customers,
                scan_blocks: 0,
                block_bytes: there.server.tablespace.block_bytes,
                state: format!("order entry, scale {}, seed {}", found.scale(), found.seed),
                unfinished: None,
            })
        }))
    }

    fn refuse_again(&self, location: &str, settings: &Settings) -> Option<EngineError> {
        let visit = self.oracle.visit(location, settings).ok()?;
        let there = look(&visit, settings).ok()?;
        Some(already(&there.names.place(), &there.found?))
    }

    fn plan_prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
    ) -> Result<Vec<Line>, EngineError> {
        partitions(settings)?;
        let there = look(&self.oracle.visit(location, settings)?, settings)?;
        crate::orders::load::plan(there.found, &there.names.user, settings)
    }

    fn prepare(
        &self,
        location: &str,
        settings: &Settings,
        _schemas: u32,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let visit = self.oracle.visit(location, settings)?;
        load::prepare(&visit, settings, stop, progress)
    }

    fn check(
        &self,
        location: &str,
        settings: &Settings,
        _stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Vec<Line>, EngineError> {
        let visit = self.oracle.visit(location, settings)?;
        let (_claim, names, found) = claimed(&visit, settings, Purpose::Check)?;
        let mut reader = load::patient(&*visit.way, &visit.address)?;
        checked_lines(&names.place(), &found, books::check(&mut reader, &names)?)
    }

    fn plan_destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let there = look(&self.oracle.visit(location, settings)?, settings)?;
        let found = there.found.ok_or_else(|| nothing(&there.names.place()))?;
        Ok(removed(&there.names.user, &found))
    }

    fn destroy(&self, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
        let visit = self.oracle.visit(location, settings)?;
        let (claim, names, found) = claimed(&visit, settings, Purpose::Destroy)?;
        let mut session = load::patient(&*visit.way, &visit.address)?.0;
        let doing = told("removing the data set");
        marker::remove(&mut *session, &found).map_err(&doing)?;
        // Nobody else can have claimed what is no more; who waits for the lock now finds no table.
        drop(claim);
        super::marker::drop_if_there(&mut *session, sql::CLAIM).map_err(&doing)?;
        Ok(removed(&names.user, &found))
    }

    fn share(
        &self,
        location: &str,
        settings: &Settings,
    ) -> Result<Option<Box<dyn Send>>, EngineError> {
        let visit = self.oracle.visit(location, settings)?;
        let (claim, names, found) = claimed(&visit, settings, Purpose::Series)?;
        Marker::complete(Some(found), &names.place(), settings)?;
        Ok(Some(Box::new(claim)))
    }

    fn open(
        &self,
        location: &str,
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        _progress: &dyn Progress,
    ) -> Result<Box<dyn Engine>, EngineError> {
        let visit = self.oracle.visit(location, settings)?;
        let (claim, names, found) = claimed(&visit, settings, Purpose::Run)?;
        let found = Marker::complete(Some(found), &names.place(), settings)?;
        let site = Site {
            way: visit.way,
            address: visit.address,
            claim,
        };
        Ok(Box::new(engine::open(
            site, names, &found, plan, settings, stop,
        )?))
    }
}
