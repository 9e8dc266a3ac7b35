//! Connections of our own: what names mean on them, and what is said where the server refuses.

use super::conninfo::{self, ConnectOptions};
use super::wire::{Connection, PgError};
use crate::place::Place;
use assay_run::engine::EngineError;

/// Names of functions, operators and tables mean PostgreSQL's own, whatever the role, the database or the URL says:
/// nobody's schema is searched, and temporary objects come last.
pub(super) const PINNED: &str = "set search_path = pg_catalog, pg_temp";

/// How to connect to the server of a place.
///
/// # Errors
/// `Usage`: its URL says nothing that libpq knows, or there is no server yet.
pub(super) fn options(place: &Place) -> Result<ConnectOptions, EngineError> {
    let (url, patience) = place.server()?;
    let options = conninfo::options(url, &conninfo::ThisHost)
        .map_err(|text| EngineError::Usage(format!("target postgres: {text}")))?;
    Ok(ConnectOptions { patience: patience.clone(), ..options })
}

/// A connection whose names mean PostgreSQL's own.
///
/// # Errors
/// As [`Connection::open`].
pub(super) fn connect(options: &ConnectOptions) -> Result<Connection, PgError> {
    let mut connection = Connection::open(options)?;
    connection.query(PINNED)?;
    Ok(connection)
}

/// Says what was being done when the server refused, and for want of a privilege what to do about it.
pub(super) fn told(doing: &str) -> impl Fn(PgError) -> EngineError + '_ {
    move |error| EngineError::Unusable(format!("{doing}: {error}"))
}
