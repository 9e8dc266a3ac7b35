//! Whether a schema contains an order-entry data set or belongs to others; assay never touches the latter.
//!
//! The marker is the only row of a separate table, written as soon as the table exists. assay refuses, by name, a
//! schema without it that contains more than a killed prepare leaves, and one that contains objects foreign to a data
//! set.

use super::super::claim::MISSING;
use super::super::session::{Bind, OraError, Session, told};
use super::super::sql::{self, CLAIM, in_tablespace};
use super::ddl::Named;
use super::package::PACKAGE;
use crate::orders::marker::{Marker, tables};
use crate::orders::refuse_strangers;
use assay_orders::model::{SEQUENCES, VIEWS};
use assay_run::engine::EngineError;

/// The table of the marker.
pub(super) const DATA_SET: &str = "soe_data_set";
pub(super) const READ: &str = "select marker from soe_data_set";
pub(super) const WRITE: &str = "insert into soe_data_set (marker) values (:1)";
pub(super) const FORGET: &str = "delete from soe_data_set";
/// Query for objects that would execute foreign code in our statements.
pub(super) const STRANGE: &str = "select 'trigger '||owner||'.'||trigger_name||' on '||table_name from all_triggers where \
     table_owner = user union all select 'policy '||policy_name||' on '||object_name from user_policies";

pub(super) fn create_sql(names: &Named) -> String {
    let place = in_tablespace(names.tablespace.as_deref());
    format!("create table {DATA_SET} (marker varchar2(4000) not null){place}")
}

/// Types of a data set's objects, by their names.
fn kind_of(name: &str) -> Option<&'static [&'static str]> {
    let is = |names: &[&str]| names.contains(&name);
    match name {
        PACKAGE => Some(&["PACKAGE", "PACKAGE BODY"]),
        DATA_SET | CLAIM => Some(&["TABLE"]),
        _ if is(&SEQUENCES.map(|(name, ..)| name)) => Some(&["SEQUENCE"]),
        _ if is(&VIEWS) => Some(&["VIEW"]),
        _ if tables().any(|table| table == name) => Some(&["TABLE"]),
        _ => None,
    }
}

/// The data set in the schema; `None` if the schema is empty or contains only what a killed prepare left at its start.
///
/// # Errors
/// `Unusable`: assay must not touch the schema.
pub(super) fn find(session: &mut dyn Session, names: &Named) -> Result<Option<Marker>, EngineError> {
    let doing = told("looking for the data set");
    let content: Vec<(String, String)> = session
        .rows(sql::CONTENT, &[])
        .map_err(&doing)?
        .into_iter()
        .filter_map(|row| {
            let mut row = row.into_iter();
            Some((row.next()??, row.next()??))
        })
        .collect();
    if content.iter().all(|(name, _)| name == CLAIM) {
        return Ok(None);
    }
    let has = content.iter().any(|(name, _)| name == DATA_SET);
    let marker = if has { session.rows(READ, &[]).map_err(&doing)? } else { Vec::new() };
    let marks = [DATA_SET, CLAIM];
    match marker.into_iter().flatten().flatten().next() {
        None if content.iter().all(|(name, _)| marks.contains(&name.as_str())) => Ok(None),
        None => Err(foreign(names, &content)),
        Some(text) => {
            let marker = Marker::read(&text, &names.place(), "name another user in the URL")?;
            refuse_others(session, names, &content)?;
            Ok(Some(marker))
        }
    }
}

fn foreign(names: &Named, content: &[(String, String)]) -> EngineError {
    let some: Vec<&str> = content.iter().take(3).map(|(name, _)| name.as_str()).collect();
    let more = if content.len() > some.len() { ", ..." } else { "" };
    EngineError::Unusable(format!(
        "{} does not belong to order entry: it contains {}{more} and no {DATA_SET}; nothing was touched. Make a user \
         only for the test and name it in the URL",
        names.place(),
        some.join(", ")
    ))
}

/// Refuses a schema that contains objects foreign to a data set.
fn refuse_others(session: &mut dyn Session, names: &Named, content: &[(String, String)]) -> Result<(), EngineError> {
    let others = content
        .iter()
        .filter(|(name, kind)| !kind_of(name).is_some_and(|kinds| kinds.contains(&kind.as_str())))
        .map(|(name, kind)| vec![Some(format!("{name} ({})", kind.to_ascii_lowercase()))]);
    let mut strange: Vec<_> = others.collect();
    strange.extend(session.rows(STRANGE, &[]).map_err(told("looking at the data set"))?);
    refuse_strangers(&names.place(), strange)
}

/// Replaces the marker.
pub(super) fn change_sql(marker: &Marker) -> String {
    let text = marker.json().replace('\'', "''");
    format!("update {DATA_SET} set marker = '{text}'")
}

/// Writes the marker, the first step of a prepare.
pub(super) fn write(session: &mut dyn Session, marker: &Marker) -> Result<(), OraError> {
    session.run(WRITE, &[Bind::Text(&marker.json())])?;
    session.commit()
}

/// The statements that drop a data set's objects except its marker and the claim's table: code first, then objects that
/// depend on others.
pub(super) fn removal() -> Vec<String> {
    let mut sql = vec![format!("drop package {PACKAGE}")];
    sql.extend(VIEWS.map(|name| format!("drop view {name}")));
    sql.extend(SEQUENCES.map(|(name, ..)| format!("drop sequence {name}")));
    sql.extend(tables().map(|name| format!("drop table {name} cascade constraints purge")));
    sql
}

/// Errors for a missing table or view, sequence, object.
const GONE: [u32; 3] = [MISSING, 2289, 4043];

/// Removes the data set. If killed meanwhile, the marker stays and declares a data set that can be removed but not used.
pub(super) fn remove(session: &mut dyn Session, found: &Marker) -> Result<(), OraError> {
    let mut unusable = found.clone();
    unusable.complete = false;
    session.run(&change_sql(&unusable), &[])?;
    session.commit()?;
    let mut gone = |sql: &str| match session.run(sql, &[]) {
        Err(error) if !error.code.is_some_and(|code| GONE.contains(&code)) => Err(error),
        _ => Ok(()),
    };
    for sql in removal() {
        gone(&sql)?;
    }
    gone(FORGET)?;
    gone(&sql::drop_table(DATA_SET))
}
