//! Order entry on Oracle: the life cycle of the data set, and runs on it.
//!
//! `ddl`, `statements` and `package` hold the SQL, `marker` checks who owns a schema, `load` creates the data set,
//! `session` and `engine` run on it. Parts that are not specific to Oracle are in `assay_orders` and `crate::orders`;
//! parts that are not specific to order entry are in the parent folder.

mod ddl;
mod engine;
mod load;
mod marker;
mod package;
mod session;
mod statements;
#[cfg(test)]
mod tests;

use super::claim::Claim;
use super::server::Server;
use super::session::{Session, told};
use super::{Oracle, Visit, params, sql};
use crate::claim::{Purpose, settled};
use crate::orders::books;
use crate::orders::target::{Life, OrderEntryOn, There};
use crate::slob::{Dialect, SlobOn};
use assay_measure::config::{ParamDef, Settings};
use assay_orders::checks::Checked;
use assay_orders::params::PARAMS;
use assay_run::engine::{EngineError, Target};
use assay_run::stop::Stop;
use ddl::Named;
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());

/// Parameters of SLOB about services, the statistics user, and repositories.
const WORDS: &[&str] = &[
    "ADMIN_SQLNET_SERVICE",
    "SQLNET_SERVICE_BASE",
    "SQLNET_SERVICE_MAX",
    "DBA_PRIV_USER",
    "SYSDBA_PASSWD",
    "DATABASE_STATISTICS_TYPE",
    "AWR_SRC",
];

/// Order entry in an Oracle database, through Oracle's own driver.
#[derive(Clone, Copy, Debug)]
pub struct OracleOrders;

impl OracleOrders {
    /// The target.
    pub const TARGET: &dyn Target = &OrderEntryOn::<Self>(Oracle::SLOB);
}

/// A claim on the data set.
pub(crate) struct Held(Claim);

/// The server, and the names used there.
fn asked(session: &mut dyn Session, visit: &Visit) -> Result<(Server, Named), EngineError> {
    let server = Server::ask(session, &visit.tablespace)?;
    let names = Named { user: server.user.clone(), tablespace: sql::identifier(&visit.tablespace) };
    Ok((server, names))
}

fn there(session: &mut dyn Session, visit: &Visit) -> Result<There<Named>, EngineError> {
    let (server, names) = asked(session, visit)?;
    Ok(There {
        found: marker::find(session, &names)?,
        schema: names.user.clone(),
        place: names.place(),
        block_bytes: server.tablespace.block_bytes,
        names,
    })
}

impl Life for OracleOrders {
    /// The schema is always that of the URL's user.
    const UNHEEDED: &'static [&'static str] = &["ORDERS_SCHEMA", "READ_MODE", "CHECK"];
    const HEEDED: &'static [&'static str] = WORDS;

    type Slob = SlobOn<Oracle>;
    type At = Visit;
    type Names = Named;
    type Claim = Held;

    fn params() -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn at(slob: &Self::Slob, location: &str, settings: &Settings, stop: &Stop) -> Result<Visit, EngineError> {
        Ok(slob.at(location, settings, stop)?.1)
    }

    fn look(visit: &Visit) -> Result<There<Named>, EngineError> {
        let mut session = visit.open()?;
        settled(|| there(&mut *session, visit), || Oracle::claim(visit, Purpose::Series))
    }

    fn claim(visit: &Visit, purpose: Purpose) -> Result<(Held, There<Named>), EngineError> {
        Self::look(visit)?.some()?;
        let claim = super::claim::take(&*visit.way, &visit.address, purpose, None)?;
        // Look again: the data set may have been replaced before the claim.
        Ok((Held(claim), there(&mut *visit.open()?, visit)?))
    }

    fn check(visit: &Visit, _claim: Held, names: &Named) -> Result<Vec<Checked>, EngineError> {
        let mut reader = load::patient(&*visit.way, &visit.address)?;
        books::check(&mut reader, names)
    }

    fn remove(visit: &Visit, claim: Held, there: &There<Named>) -> Result<(), EngineError> {
        let mut session = load::patient(&*visit.way, &visit.address)?.0;
        let doing = told("removing the data set");
        marker::remove(&mut *session, there.some()?).map_err(&doing)?;
        drop(claim);
        super::claim::remove(&mut *session).map_err(&doing)
    }
}
