//! Order entry on SQLite: the life cycle of the data set, and runs on it.
//!
//! `ddl` and `statements` hold the SQL, `load` creates the data set, `run` performs the transactions. Parts that are not
//! specific to SQLite are in `assay_orders` and `crate::orders`; parts that are not specific to order entry are in the
//! parent folder.

mod ddl;
mod load;
mod run;
mod statements;
#[cfg(test)]
mod tests;

use super::file::{Db, File};
use super::marker::{MADE, foreign};
use super::{Held, Sqlite, gone, params};
use crate::claim::{Purpose, settled};
use crate::orders::marker::{Marker, relations};
use crate::orders::target::{Life, OrderEntryOn, There};
use crate::orders::{books, refuse_strangers};
use crate::slob::{Dialect, SlobOn};
use assay_measure::config::{ParamDef, Settings};
use assay_orders::checks::Checked;
use assay_orders::model::{INDEXES, VIEWS};
use assay_orders::params::PARAMS;
use assay_run::engine::{EngineError, Target};
use assay_run::stop::Stop;
use ddl::{DATA_SET, Named};
use std::sync::LazyLock;

static ALL_PARAMS: LazyLock<Vec<ParamDef>> = LazyLock::new(|| [params::PARAMS, PARAMS].concat());

/// Order entry in a database of SQLite.
#[derive(Clone, Copy, Debug)]
pub struct SqliteOrders;

impl SqliteOrders {
    /// The target.
    pub const TARGET: &dyn Target = &OrderEntryOn::<Self>(Sqlite::SLOB);
}

fn there(db: &Db, at: &File) -> Result<There<Named>, EngineError> {
    let found = find(db, at)?;
    Ok(There { names: Named, schema: at.shown(), place: at.shown(), block_bytes: at.page(db)?, found })
}

/// The data set in the database; `None` if the database is empty.
fn find(db: &Db, at: &File) -> Result<Option<Marker>, EngineError> {
    let rows = |sql: &str| db.rows(sql, []).map_err(at.told("looking for the data set"));
    let content = rows(&format!("select name, type {MADE}"))?;
    let name = |row: &[Option<String>]| row.first().cloned().flatten().unwrap_or_default();
    let ours = || db.ours().map_err(at.told("looking for the data set"));
    if content.is_empty() {
        return ours().map(|()| None);
    }
    let names: Vec<String> = content.iter().map(|row| name(row)).collect();
    if !names.iter().any(|name| name == DATA_SET) {
        return Err(foreign(at, names.iter().map(String::as_str), DATA_SET));
    }
    let marker = rows(ddl::READ)?.into_iter().flatten().flatten().next().unwrap_or_default();
    let marker = Marker::read(&marker, &at.shown(), "name another file")?;
    let is_ours = |name: &str, kind: &str| match kind {
        "view" => VIEWS.contains(&name),
        "index" => INDEXES.iter().any(|index| index.name == name),
        "table" => name == DATA_SET || relations().contains(&name),
        _ => false,
    };
    let kind = |row: &[Option<String>]| row.last().cloned().flatten().unwrap_or_default();
    let strange = content.iter().filter(|row| !is_ours(&name(row), &kind(row)));
    let strange = strange.map(|row| vec![Some(format!("{} {}", kind(row), name(row)))]);
    refuse_strangers(&at.shown(), strange.collect())?;
    ours()?;
    Ok(Some(marker))
}

impl Life for SqliteOrders {
    /// There is one place in a file, one way to perform a transaction, and no partitions.
    const UNHEEDED: &'static [&'static str] = &[
        "ORDERS_SCHEMA",
        "ORDERS_FORM",
        "ORDERS_PARTITIONS",
        "ORDERS_PARTITION_COUNT",
        "LOAD_PARALLEL_DEGREE",
        "CONNECT_RATE",
        "CHECK",
    ];
    const HEEDED: &'static [&'static str] = &["BLOCK_SZ"];

    type Slob = SlobOn<Sqlite>;
    type At = File;
    type Names = Named;
    type Claim = Held;

    fn params() -> &'static [ParamDef] {
        &ALL_PARAMS
    }

    fn at(slob: &Self::Slob, location: &str, settings: &Settings, stop: &Stop) -> Result<File, EngineError> {
        Ok(slob.at(location, settings, stop)?.1)
    }

    fn look(at: &File) -> Result<There<Named>, EngineError> {
        settled(|| there(&at.look()?, at), || Sqlite::claim(at, Purpose::Series))
    }

    fn claim(at: &File, purpose: Purpose) -> Result<(Held, There<Named>), EngineError> {
        Self::look(at)?.some()?;
        let held = Sqlite::claim(at, purpose)?.ok_or_else(|| crate::orders::nothing(&at.shown()))?;
        // Look again: the data set may have been replaced before the claim.
        let there = there(&held.keeper, at)?;
        Ok((held, there))
    }

    /// SQLite has one writer at a time.
    fn load_threads(_: &Settings) -> usize {
        1
    }

    fn check(_: &File, mut held: Held, names: &Named) -> Result<Vec<Checked>, EngineError> {
        books::check(&mut held.keeper, names)
    }

    fn remove(at: &File, held: Held, there: &There<Named>) -> Result<(), EngineError> {
        let doing = at.told("removing the data set");
        held.keeper.atomic(&ddl::removal(there.some()?).join("; ")).map_err(&doing)?;
        gone(at, held)
    }
}
