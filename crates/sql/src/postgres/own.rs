//! assay's own connections: how they resolve names, and how they report errors.

use super::conninfo::{self, ConnectOptions};
use super::wire::{Connection, PgError};
use crate::place::Place;
use assay_run::engine::EngineError;

/// Resolves names to PostgreSQL's own functions, operators and tables, whatever the role, the database or the URL sets:
/// no other schema is searched, and temporary objects come last.
pub(super) const PINNED: &str = "set search_path = pg_catalog, pg_temp";

/// Connection options for the server of a place.
///
/// # Errors
/// `Usage`: the URL contains a parameter unknown to libpq, or the server does not run yet.
pub(super) fn options(place: &Place) -> Result<ConnectOptions, EngineError> {
    let (url, patience) = place.server()?;
    let options = conninfo::options(url, &conninfo::ThisHost)
        .map_err(|text| EngineError::Usage(format!("target postgres: {text}")))?;
    Ok(ConnectOptions { patience: patience.clone(), ..options })
}

/// A connection that resolves names to PostgreSQL's own objects.
///
/// # Errors
/// As [`Connection::open`].
pub(super) fn connect(options: &ConnectOptions) -> Result<Connection, PgError> {
    let mut connection = Connection::open(options)?;
    connection.query(PINNED)?;
    Ok(connection)
}

/// Adds to a server error what was being done.
pub(super) fn told(doing: &str) -> impl Fn(PgError) -> EngineError + '_ {
    move |error| EngineError::Unusable(format!("{doing}: {error}"))
}
