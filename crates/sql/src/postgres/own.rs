//! Connections of our own: what names mean on them, and what is said where the server refuses.

use super::conninfo::ConnectOptions;
use super::wire::{Connection, PgError};
use assay_run::engine::EngineError;

/// Names of functions, operators and tables mean PostgreSQL's own, whatever the role, the database or the URL says:
/// nobody's schema is searched, and temporary objects come last.
pub(super) const PINNED: &str = "set search_path = pg_catalog, pg_temp";

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
