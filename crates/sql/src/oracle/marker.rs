//! The marker of a data set: two small tables of its owner that describe what assay created there.
//!
//! `assay_data_set` has one row that describes the data set. `assay_schemas` has one row for each SLOB schema:
//! `loading` from before its tables exist until it is loaded and verified. Every DDL statement ends a transaction here,
//! so the order matters: the row of `assay_data_set` is written last. Both tables without that row, and the claim's
//! table, were left by a killed prepare, and the next prepare starts over.

use super::address::Door;
use super::claim::MISSING;
use super::session::{Bind, OraError, Session, told};
use super::sql::{self, CLAIM, DATA_SET, SCHEMAS};
use crate::marked::At;
pub(super) use crate::marked::{FORMAT, Marked, Marker};
use assay_run::engine::EngineError;
use std::collections::BTreeSet;

/// Examines the owner's objects without changing anything.
///
/// # Errors
/// `Unusable` for a user who has tables but no marker of assay, a newer format, triggers on its tables, or a missing
/// privilege; `Damaged` for a marker with values that no assay wrote.
pub(super) fn find(session: &mut dyn Session, door: &Door) -> Result<Option<Marked>, EngineError> {
    let doing = format!("reading the tables of user {}", door.user);
    let doing = told(&doing);
    let content: BTreeSet<String> = session
        .rows(sql::CONTENT, &[])
        .map_err(&doing)?
        .into_iter()
        .filter_map(|row| row.into_iter().next().flatten())
        .collect();
    let marks = [DATA_SET, SCHEMAS, CLAIM].map(str::to_owned);
    let has_row =
        content.contains(DATA_SET) && session.number("select count(*) from assay_data_set", &[]).map_err(&doing)? > 0;
    if content.iter().all(|name| marks.contains(name)) && !has_row {
        return Ok(None);
    }
    if !has_row || !content.contains(SCHEMAS) {
        let some: Vec<&str> = content.iter().take(3).map(String::as_str).collect();
        let more = if content.len() > some.len() { ", ..." } else { "" };
        return Err(EngineError::Unusable(format!(
            "the schema of user {} does not belong to assay: it contains {}{more} and no {DATA_SET}; nothing was \
             touched. Make a user only for the test and name it in the URL",
            door.user,
            some.join(", ")
        )));
    }
    let strange = session.rows(sql::STRANGE, &[]).map_err(&doing)?;
    if let Some(name) = strange.into_iter().flatten().flatten().next() {
        return Err(EngineError::Unusable(format!(
            "user {} has {name}, which assay did not make and which would execute foreign code in assay's statements: \
             remove it, or name another user",
            door.user
        )));
    }
    let mut marked = read(session, door)?;
    let schemas = marked.loaded.union(&marked.loading);
    let mut ours: BTreeSet<String> = schemas.flat_map(|n| [sql::rows_table(*n), sql::scan_table(*n)]).collect();
    ours.extend(marks);
    marked.foreign = content.difference(&ours).cloned().collect();
    Ok(Some(marked))
}

fn read(session: &mut dyn Session, door: &Door) -> Result<Marked, EngineError> {
    let place = format!("the schema of user {}", door.user);
    let mut rows = |sql: &str| session.rows(sql, &[]).map_err(told("reading the marker of the data set"));
    let at = At::tables(&place);
    Marked::<()>::known_format(&at, &rows(sql::READ_FORMAT)?)?;
    let values = rows(sql::READ_MARKER)?;
    Marked::read(&at, values, &rows(sql::READ_STATES)?)
}

/// Creates the marker; first drops what a killed prepare left of it.
pub(super) fn create(session: &mut dyn Session, marker: &Marker, tablespace: Option<&str>) -> Result<(), OraError> {
    for table in [DATA_SET, SCHEMAS] {
        drop_if_there(session, table)?;
    }
    for sql in sql::create_marker(tablespace) {
        session.run(&sql, &[])?;
    }
    let (values, checksum) = (marker.values(), marker.checksum());
    let mut binds = vec![Bind::Int(i64::from(FORMAT))];
    binds.extend(values.iter().map(|value| Bind::Text(value)));
    binds.push(Bind::Text(&checksum));
    session.run(sql::WRITE_MARKER, &binds)?;
    session.commit()
}

/// Records a state of a SLOB schema and commits.
pub(super) fn note(session: &mut dyn Session, sql: &str, n: u32) -> Result<(), OraError> {
    session.run(sql, &[Bind::Int(i64::from(n))])?;
    session.commit()
}

/// Drops a table, if it exists.
pub(super) fn drop_if_there(session: &mut dyn Session, table: &str) -> Result<(), OraError> {
    match session.run(&sql::drop_table(table), &[]) {
        Err(error) if error.code != Some(MISSING) => Err(error),
        _ => Ok(()),
    }
}

/// Drops the tables of a SLOB schema, then removes it from the marker. If killed meanwhile, the next destroy or prepare
/// finds the schema marked as unfinished.
pub(super) fn remove(session: &mut dyn Session, n: u32) -> Result<(), OraError> {
    note(session, sql::NOTE_GOING, n)?;
    drop_if_there(session, &sql::rows_table(n))?;
    drop_if_there(session, &sql::scan_table(n))?;
    note(session, sql::FORGET, n)
}

/// Drops the marker, the last step of a removal; first deletes the row that declares the data set.
pub(super) fn remove_all(session: &mut dyn Session) -> Result<(), OraError> {
    session.run(sql::FORGET_ALL, &[])?;
    session.commit()?;
    drop_if_there(session, SCHEMAS)?;
    drop_if_there(session, DATA_SET)
}
