//! Checks by PostgreSQL's catalog alone, before reading any of it, that a data set is exactly what assay creates.
//!
//! Everything attached to a table (triggers, rules, policies, expressions, types) is code of the table's owner, and
//! runs with the rights of whoever uses the table. So assay uses no table that has any of these. All objects must
//! belong to the role that owns the marker. A session of another role acts as the owner if the server allows it.

use super::conninfo::ConnectOptions;
use super::layout::{COLUMN_TYPES, Names, literal, quote};
use super::own::{connect, told};
use super::wire::{Connection, PgError};
use assay_run::engine::EngineError;

/// Names of a data set's relations.
const OURS: &str = "^(assay_data_set|assay_schemas|assay_schemas_pkey|cf[12]_[1-9][0-9]*|i_cf1_[1-9][0-9]*)$";
const INDEXES: &str = "^(assay_schemas_pkey|i_cf1_[1-9][0-9]*)$";
const TABLES: &str = "^cf[12]_[1-9][0-9]*$";

/// Number of findings that are named; the rest are only counted.
const NAMED: usize = 5;

/// Longest wait for another command that changes the tables; after that, ours gives up.
const LOCK_TIMEOUT: &str = "10s";

/// Who owns a data set, and what that means for us.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// Owner of the marker, and so of everything.
    pub(super) role: String,
    /// Not the role that logged in.
    pub(super) other: bool,
    /// Our session may act as this role.
    pub(super) may_act: bool,
}

impl Owner {
    /// Text for the report.
    pub(super) fn describe(&self) -> String {
        match (self.other, self.may_act) {
            (false, _) => format!("{} (ours)", self.role),
            (true, true) => format!("{} (sessions act as this role)", self.role),
            (true, false) => format!("{} (a different role, which this role may not act as)", self.role),
        }
    }

    /// The statement that makes a session act as the owner; `None` if it is the owner or may not.
    pub(super) fn acting(&self) -> Option<String> {
        (self.other && self.may_act).then(|| format!("set role {}", quote(&self.role)))
    }

    /// Makes a logged-in session act as the owner.
    ///
    /// # Errors
    /// The server's.
    pub(super) fn act(&self, connection: &mut Connection) -> Result<(), EngineError> {
        let Some(sql) = self.acting() else {
            return Ok(());
        };
        let acted = connection.query(&sql).map(drop);
        acted.map_err(told("acting as the role that owns the data set"))
    }
}

/// Examines the data set in the schema with this OID. The caller holds a lock on the marker's tables.
///
/// # Errors
/// `Unusable`, naming the objects that differ from assay's layout and their owners; the server's.
pub(super) fn examine(connection: &mut Connection, names: &Names, schema: &str) -> Result<Owner, EngineError> {
    let owner = owner(connection, names, schema)?;
    let found = connection
        .query(&format!(
            "with {} select distinct what, coalesce(pg_get_userbyid(whose), 'nobody') from ({}) as found order by 1",
            ours(schema),
            QUESTIONS.join(" union all ")
        ))
        .map_err(told("reading the objects of the data set"))?;
    if found.rows.is_empty() {
        return Ok(owner);
    }
    let mut named: Vec<String> = found
        .rows
        .iter()
        .take(NAMED)
        .map(|row| {
            let [what, whose] = [0, 1].map(|at| row.get(at).cloned().flatten().unwrap_or_default());
            format!("{what} of role {whose}")
        })
        .collect();
    if let Some(more) = found.rows.len().checked_sub(NAMED).filter(|more| *more > 0) {
        named.push(format!("{more} more"));
    }
    Err(EngineError::Unusable(format!(
        "schema {} contains objects that assay did not make, or not in this form, and the data set belongs to role \
         {}: {}; assay read and executed none of them. Drop or move these objects by hand, or name another schema \
         with PG_SCHEMA",
        names.schema(),
        owner.role,
        named.join("; ")
    )))
}

/// The owner of the marker.
fn owner(connection: &mut Connection, names: &Names, schema: &str) -> Result<Owner, EngineError> {
    let marker =
        format!("pg_class o on r.oid = o.relowner where o.relnamespace = {schema} and o.relname = 'assay_data_set'");
    owner_of(connection, names, &marker)
}

/// The owner of an empty schema. Objects created there must belong to that role, which could drop them anyway.
///
/// # Errors
/// The schema was just dropped; the server's.
pub(super) fn owner_of_schema(connection: &mut Connection, names: &Names, schema: &str) -> Result<Owner, EngineError> {
    let schema = format!("pg_namespace o on r.oid = o.nspowner where o.oid = {schema}");
    owner_of(connection, names, &schema)
}

fn owner_of(connection: &mut Connection, names: &Names, joined: &str) -> Result<Owner, EngineError> {
    let set = match connection.server_version() {
        Some((..=15, _)) => "member",
        _ => "set",
    };
    let rows = connection
        .query(&format!(
            "select r.rolname, r.oid <> (select oid from pg_roles where rolname = session_user), \
             pg_has_role(session_user, r.oid, '{set}') \
             from pg_roles r join {joined}"
        ))
        .map_err(told("reading the owner of the data set"))?;
    let Some([Some(role), other, may]) = rows.rows.first().map(Vec::as_slice) else {
        return Err(EngineError::Unusable(format!(
            "the data set in schema {} has just been removed; try again",
            names.schema()
        )));
    };
    Ok(Owner { role: role.clone(), other: other.as_deref() == Some("t"), may_act: may.as_deref() == Some("t") })
}

/// The data set's relations, and its owner.
fn ours(schema: &str) -> String {
    let types: Vec<String> = COLUMN_TYPES.iter().map(|name| format!("'pg_catalog.{name}'::regtype")).collect();
    format!(
        "ours as materialized (select * from pg_class where relnamespace = {schema} and relname ~ {}), \
         it as (select {schema}::oid as schema, relowner as owner, array[{}]::oid[] as types, {}::text as indexes, \
         {}::text as tables from ours where relname = 'assay_data_set')",
        literal(OURS),
        types.join(", "),
        literal(INDEXES),
        literal(TABLES)
    )
}

/// Queries for forbidden objects; each returns a description and the owner. They use PostgreSQL's own functions and
/// operators, since the session searches no other schema.
const QUESTIONS: &[&str] = &[
    // A view, a partitioned or foreign table in place of a table; another access method.
    "select pg_describe_object('pg_class'::regclass, c.oid, 0) as what, c.relowner as whose from ours c, it \
     where c.relkind <> case when c.relname ~ it.indexes then 'i' else 'r' end \
     or c.relam <> (select a.oid from pg_am a where a.amname = case when c.relkind = 'i' then 'btree' else 'heap' end) \
     or c.relpersistence <> 'p' or c.reloftype <> 0",
    "select pg_describe_object('pg_class'::regclass, c.oid, 0), c.relowner from ours c, it where c.relowner <> it.owner",
    "select 'row-level security on ' || pg_describe_object('pg_class'::regclass, c.oid, 0), c.relowner from ours c \
     where c.relrowsecurity or c.relforcerowsecurity",
    "select pg_describe_object('pg_policy'::regclass, p.oid, 0), c.relowner from ours c join pg_policy p on p.polrelid = c.oid",
    "select pg_describe_object('pg_trigger'::regclass, t.oid, 0), f.proowner from ours c \
     join pg_trigger t on t.tgrelid = c.oid join pg_proc f on f.oid = t.tgfoid",
    "select pg_describe_object('pg_rewrite'::regclass, r.oid, 0), c.relowner from ours c \
     join pg_rewrite r on r.ev_class = c.oid where c.relkind = 'r'",
    // Children are read and updated with their parent.
    "select pg_describe_object('pg_class'::regclass, i.inhrelid, 0) || ' that inherits from ' || \
     pg_describe_object('pg_class'::regclass, i.inhparent, 0), k.relowner from pg_inherits i \
     join pg_class k on k.oid = i.inhrelid \
     where i.inhrelid in (select oid from ours) or i.inhparent in (select oid from ours)",
    "select pg_describe_object('pg_class'::regclass, a.attrelid, a.attnum), c.relowner from ours c \
     join pg_attribute a on a.attrelid = c.oid, it where c.relkind in ('r', 'i') and a.attnum > 0 and not a.attisdropped \
     and (a.atttypid <> all(it.types) or a.attgenerated <> '' or a.attidentity <> '')",
    "select pg_describe_object('pg_attrdef'::regclass, d.oid, 0), c.relowner from ours c \
     join pg_attrdef d on d.adrelid = c.oid, it \
     where c.relname ~ it.tables or pg_get_expr(d.adbin, d.adrelid) <> 'now()'",
    "select pg_describe_object('pg_constraint'::regclass, k.oid, 0), c.relowner from ours c \
     join pg_constraint k on k.conrelid = c.oid \
     where k.contype <> 'n' and not (k.contype = 'p' and c.relname = 'assay_schemas')",
    // A foreign index; an expression, a condition or an operator class in one of ours.
    "select pg_describe_object('pg_class'::regclass, i.indexrelid, 0), x.relowner from ours c \
     join pg_index i on i.indrelid = c.oid join pg_class x on x.oid = i.indexrelid \
     where x.oid not in (select oid from ours) or i.indexprs is not null or i.indpred is not null \
     or exists (select from pg_opclass o where o.oid = any(i.indclass) and o.opcnamespace <> 'pg_catalog'::regnamespace)",
    "select pg_describe_object('pg_statistic_ext'::regclass, s.oid, 0), s.stxowner from ours c \
     join pg_statistic_ext s on s.stxrelid = c.oid",
    // Objects an unqualified name could resolve to if a session searched this schema.
    "select pg_describe_object('pg_proc'::regclass, f.oid, 0), f.proowner from pg_proc f, it where f.pronamespace = it.schema",
    "select pg_describe_object('pg_operator'::regclass, o.oid, 0), o.oprowner from pg_operator o, it \
     where o.oprnamespace = it.schema",
    "select pg_describe_object('pg_opclass'::regclass, o.oid, 0), o.opcowner from pg_opclass o, it \
     where o.opcnamespace = it.schema",
    "select pg_describe_object('pg_conversion'::regclass, n.oid, 0), n.conowner from pg_conversion n, it \
     where n.connamespace = it.schema",
];

/// Begins a transaction whose locks keep the marker unchanged while it is examined.
///
/// # Errors
/// The server's: no such table, no right to read it, or another command changes it.
pub(super) fn lock_marker(connection: &mut Connection, names: &Names) -> Result<(), PgError> {
    let locked = connection.query(&format!(
        "begin; set local lock_timeout = '{LOCK_TIMEOUT}'; lock table {}, {} in access share mode",
        names.relation("assay_data_set"),
        names.relation("assay_schemas")
    ));
    if locked.is_err() {
        // If the connection is lost, so is the transaction.
        let _ = connection.query("rollback");
    }
    locked.map(drop)
}

/// Keeps the tables of another role's data set as they were examined: while it lives, nobody can add triggers, rules or
/// policies to them, or replace them.
#[derive(Debug)]
pub(super) struct Guard(Option<Connection>);

impl Guard {
    /// For a data set of our own.
    pub(super) fn none() -> Self {
        Self(None)
    }

    /// Locks the marker and these tables (quoted, with their schema), then examines again. Does nothing for a data set
    /// of our own, since code attached to it is ours.
    ///
    /// # Errors
    /// As [`examine`]; the server's lock table is too small.
    pub(super) fn stand(
        options: &ConnectOptions,
        names: &Names,
        owner: &Owner,
        tables: &[String],
        writes: bool,
    ) -> Result<Self, EngineError> {
        if !owner.other {
            return Ok(Self(None));
        }
        let doing = format!("locking the tables of role {}", owner.role);
        let mut connection = connect(options).map_err(told("connecting"))?;
        let mode = if writes { "row exclusive" } else { "access share" };
        let mut all = vec![names.relation("assay_data_set"), names.relation("assay_schemas")];
        all.extend_from_slice(tables);
        // The connection stays in its transaction as long as the command takes.
        connection
            .query(
                "select set_config(name, '0', false) from pg_settings \
                 where name in ('idle_in_transaction_session_timeout', 'transaction_timeout', 'statement_timeout')",
            )
            .map_err(told(&doing))?;
        owner.act(&mut connection)?;
        connection
            .query(&format!(
                "begin; set local lock_timeout = '{LOCK_TIMEOUT}'; lock table {} in {mode} mode",
                all.join(", ")
            ))
            .map_err(told(&doing))?;
        let schema = connection
            .query(&format!("select oid from pg_namespace where nspname = {}", literal(names.schema())))
            .map_err(told(&doing))?;
        let schema = schema.rows.into_iter().flatten().flatten().next();
        let again = examine(&mut connection, names, &schema.unwrap_or_default())?;
        if again.role == owner.role {
            Ok(Self(Some(connection)))
        } else {
            Err(EngineError::Unusable(format!(
                "the data set in schema {} belonged to role {} and now belongs to {}; nothing was done",
                names.schema(),
                owner.role,
                again.role
            )))
        }
    }

    /// Releases the locks.
    pub(super) fn end(&mut self) {
        if let Some(connection) = self.0.take() {
            connection.close();
        }
    }
}

#[cfg(test)]
mod tests;
