//! Removes a data set: its tables, its marker, and the PostgreSQL schema if prepare created it and it is then empty.
//!
//! Drops only what the marker names, and never with CASCADE: objects that others built on our tables stop the command.

use super::At;
use super::layout::{Names, literal};
use super::marker::{self, Ours};
use super::own::told;
use super::prepare::{drop_schemas, in_transaction};
use super::server::Server;
use super::site::Guard;
use super::wire::Connection;
use assay_run::dataset::lines::{bytes, count, text};
use assay_run::engine::{EngineError, Line};

/// Lists what would be removed, its size, and who uses it now.
///
/// # Errors
/// The server's; a standby cannot remove anything.
pub(super) fn going(connection: &mut Connection, names: &Names, ours: &Ours) -> Result<Vec<Line>, EngineError> {
    Server::ask(connection)?.refuse_read_only()?;
    let mut lines = lines(connection, names, ours)?;
    let users = users(connection, names)?;
    if !users.is_empty() {
        lines.push(text("in_use_by", "Sessions that use it now", users.join("; ")));
    }
    Ok(lines)
}

/// Removes a claimed data set.
///
/// # Errors
/// `Unusable`: the data set is in use, or other objects depend on it; the server's.
pub(super) fn remove(at: &At, mut connection: Connection, ours: &Ours) -> Result<(), EngineError> {
    let names = &at.names;
    let users = users(&mut connection, names)?;
    if !users.is_empty() {
        return Err(EngineError::Unusable(format!(
            "the data set in schema {} is in use: {}; wait until these sessions end. Nothing was removed",
            names.schema(),
            users.join("; ")
        )));
    }
    let dependent = dependent(&mut connection, names, ours)?;
    if !dependent.is_empty() {
        return Err(EngineError::Unusable(format!(
            "other objects depend on the tables of schema {}: {}; drop them first. Nothing was removed",
            names.schema(),
            dependent.join(", ")
        )));
    }
    let marked = &ours.marked;
    let all: Vec<u32> = marked.loaded.union(&marked.loading).copied().collect();
    // Dropping a table executes no code attached to it, but changing the marker could.
    let mut guard = Guard::stand(&at.options, names, &ours.owner, &[], true)?;
    ours.owner.act(&mut connection)?;
    drop_schemas(names, &mut connection, &all)?;
    guard.end();
    let schema = if goes_with_it(ours) { format!("; drop schema {}", names.schema_sql()) } else { String::new() };
    let script = format!("begin; {}{schema}; commit", marker::drop_tables(names));
    in_transaction(&mut connection, &script, "removing the marker")?;
    connection.close();
    Ok(())
}

/// Whether the PostgreSQL schema was created for the data set and contains nothing else.
fn goes_with_it(ours: &Ours) -> bool {
    ours.marked.marker.own.made_schema && ours.marked.foreign.is_empty()
}

fn lines(connection: &mut Connection, names: &Names, ours: &Ours) -> Result<Vec<Line>, EngineError> {
    let size = connection
        .query(&format!(
            "select coalesce(sum(pg_total_relation_size(c.oid)), 0) from pg_class c \
             join pg_namespace s on s.oid = c.relnamespace \
             where c.relkind = 'r' and s.nspname = {} and c.relname = any({})",
            literal(names.schema()),
            array(ours)
        ))
        .map_err(told("reading the size of the tables"))?;
    let size = size.rows.into_iter().flatten().flatten().next();
    let marked = &ours.marked;
    let schema = match (goes_with_it(ours), marked.marker.own.made_schema) {
        (true, _) => format!("{} (also removed)", names.schema()),
        (false, true) => format!("{} (stays: it contains {})", names.schema(), ours.marked.foreign.join(", ")),
        (false, false) => format!("{} (stays: it existed before)", names.schema()),
    };
    let tables = ours.present.iter().filter(|name| !name.starts_with("i_") && !name.ends_with("_pkey"));
    Ok(vec![
        text("pg_schema", "PostgreSQL schema", schema),
        text("data_set", "Data set", format!("{:016x}, created {}", marked.marker.data_set, marked.created)),
        count("schemas", "SLOB schemas", (marked.loaded.len() + marked.loading.len()) as u64),
        count("tables", "Tables", tables.count() as u64),
        bytes("removed_bytes", "To be removed", size.and_then(|text| text.parse().ok()).unwrap_or(0)),
    ])
}

/// The names of the data set's existing relations, as a value of type text[].
fn array(ours: &Ours) -> String {
    let names: Vec<&str> = ours.present.iter().map(String::as_str).collect();
    // These names are plain words that need no quoting inside an array.
    format!("{}::text[]", literal(&format!("{{{}}}", names.join(","))))
}

/// Other sessions that hold a lock on a relation of the schema.
fn users(connection: &mut Connection, names: &Names) -> Result<Vec<String>, EngineError> {
    let rows = connection
        .query(&format!(
            "select distinct l.pid, coalesce(a.usename, 'unknown role'), coalesce(nullif(a.application_name, ''), 'unnamed program') \
             from pg_locks l join pg_class c on c.oid = l.relation join pg_namespace s on s.oid = c.relnamespace \
             left join pg_stat_activity a on a.pid = l.pid \
             where l.locktype = 'relation' and l.pid <> pg_backend_pid() and s.nspname = {} \
             and l.database = (select oid from pg_database where datname = current_database()) order by 1",
            literal(names.schema())
        ))
        .map_err(told("looking for sessions that use the data set"))?;
    Ok(rows
        .rows
        .into_iter()
        .map(|row| {
            let [pid, role, program] = [0, 1, 2].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
            format!("process {pid} ({role}, {program})")
        })
        .collect())
}

/// Views, functions, constraints and other objects that depend on our tables.
fn dependent(connection: &mut Connection, names: &Names, ours: &Ours) -> Result<Vec<String>, EngineError> {
    let rows = connection
        .query(&format!(
            "select distinct pg_describe_object(d.classid, d.objid, d.objsubid) from pg_depend d \
             join pg_class c on c.oid = d.refobjid and d.refclassid = 'pg_class'::regclass \
             join pg_namespace s on s.oid = c.relnamespace \
             where d.deptype = 'n' and s.nspname = {} and c.relname = any({}) order by 1",
            literal(names.schema()),
            array(ours)
        ))
        .map_err(told("looking for what depends on the tables"))?;
    Ok(rows.rows.into_iter().flatten().flatten().collect())
}
