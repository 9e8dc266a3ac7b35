//! The single statement of a reading, by server version.
//!
//! It calls the functions below the views (`pg_stat_get_db_xact_commit` below `pg_stat_database`), because the views
//! join catalog tables, and a collector that reads tables would change what it counts. One statement is one transaction
//! and, from 15 on with `stats_fetch_consistency=snapshot`, one instant for all values.

use crate::postgres::claim::holders_json;

/// The tables of the data set to sum over, by OID.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Relations {
    /// `cf1_<n>`, the tables of the workload.
    pub tables: Vec<u32>,
    /// Their indexes.
    pub indexes: Vec<u32>,
    /// `cf2_<n>`, the scan tables.
    pub scan_tables: Vec<u32>,
}

impl Relations {
    /// Query for the tables of the data set in a schema; its rows are (oid, relkind, relname).
    pub(super) fn query(pg_schema: &str) -> String {
        format!(
            "select c.oid, c.relkind, c.relname from pg_catalog.pg_class c \
             join pg_catalog.pg_namespace n on n.oid = c.relnamespace \
             where n.nspname = {} and c.relkind in ('r', 'i') order by c.oid",
            literal(pg_schema)
        )
    }

    /// Parses the rows of [`Relations::query`]; other tables of the schema are left out.
    pub(super) fn from_rows(rows: &[Vec<Option<String>>]) -> Self {
        let mut relations = Self::default();
        for row in rows {
            let [Some(oid), Some(kind), Some(name)] = row.as_slice() else {
                continue;
            };
            let Ok(oid) = oid.parse() else { continue };
            match (kind.as_str(), name) {
                ("r", name) if name.starts_with("cf1_") => relations.tables.push(oid),
                ("r", name) if name.starts_with("cf2_") => relations.scan_tables.push(oid),
                ("i", name) if name.starts_with("i_cf1_") => relations.indexes.push(oid),
                _ => {}
            }
        }
        relations
    }
}

/// What a reading can query on this server.
#[derive(Clone, Debug)]
pub(super) struct Shape<'a> {
    /// Major version, 13 to 18.
    pub version: u32,
    /// Object identifier of the database.
    pub database: u32,
    /// Tables of the data set.
    pub relations: &'a Relations,
    /// PostgreSQL schema of the data set.
    pub pg_schema: &'a str,
    /// Quoted schema of `pg_stat_statements`, if readable.
    pub statements: Option<&'a str>,
}

/// The statement: one row with one JSON document of groups (`db`, `wal`, `io`, ...), keyed by the view's column names.
pub(super) fn reading(shape: &Shape<'_>) -> String {
    let mut groups = vec![
        ("recovery", "pg_is_in_recovery()".to_owned()),
        ("started", "pg_postmaster_start_time()".to_owned()),
        (
            "lsn",
            "case when pg_is_in_recovery() then null \
             else pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') end"
                .to_owned(),
        ),
        ("db", database(shape)),
        ("bgwriter", view("pg_stat_bgwriter")),
        ("table", tables(shape.version, &shape.relations.tables)),
        ("size", sums("sum(pg_relation_size(o)) as bytes", &shape.relations.tables)),
        ("index", blocks(&shape.relations.indexes)),
        ("scan", blocks(&shape.relations.scan_tables)),
        ("claims", holders_json(shape.pg_schema, shape.database)),
    ];
    if shape.version >= 14 {
        groups.push(("wal", view("pg_stat_wal")));
    }
    if shape.version >= 16 {
        let rows = "(select json_agg(row_to_json(v)) from pg_catalog.pg_stat_io v)";
        groups.push(("io", rows.to_owned()));
    }
    if shape.version >= 17 {
        groups.push(("checkpointer", view("pg_stat_checkpointer")));
    }
    if let Some(schema) = shape.statements {
        groups.push(("statements", statements(schema, shape.database)));
    }
    if shape.version >= 15 {
        // Publishes this session's own work before the next reading, so that it can be subtracted.
        groups.push(("flush", FLUSH.to_owned()));
    }
    let pairs: Vec<String> = groups.iter().map(|(name, sql)| format!("'{name}', {sql}")).collect();
    format!("select json_build_object({})::text", pairs.join(", "))
}

/// Has the session publish its counters when the statement ends (15 and later).
///
/// A session that has counted only transactions does not publish even when forced; one table scan makes it publish.
/// This catalog table has no pages unless foreign tables exist, so scanning it reads no block.
const FLUSH: &str = "pg_stat_force_next_flush()::text || (select count(*) from pg_catalog.pg_foreign_table)";

/// Prepares [`FLUSH`] separately in a session of the run: planning reads the table's empty index, which counts as a
/// block get that must not be among the run's.
pub(super) fn prepare_flush() -> String {
    format!("prepare assay_flush as select {FLUSH}")
}

/// Executes what [`prepare_flush`] prepared.
pub(super) const EXECUTE_FLUSH: &str = "execute assay_flush";

/// Every column of a view that has no join.
fn view(name: &str) -> String {
    format!("(select row_to_json(v) from pg_catalog.{name} v)")
}

/// `pg_stat_database` of one database.
fn database(shape: &Shape<'_>) -> String {
    let mut columns = vec![
        ("numbackends", "numbackends"),
        ("xact_commit", "xact_commit"),
        ("xact_rollback", "xact_rollback"),
        ("blks_fetched", "blocks_fetched"),
        ("blks_hit", "blocks_hit"),
        ("tup_returned", "tuples_returned"),
        ("tup_fetched", "tuples_fetched"),
        ("tup_inserted", "tuples_inserted"),
        ("tup_updated", "tuples_updated"),
        ("tup_deleted", "tuples_deleted"),
        ("temp_files", "temp_files"),
        ("temp_bytes", "temp_bytes"),
        ("deadlocks", "deadlocks"),
        ("blk_read_time", "blk_read_time"),
        ("blk_write_time", "blk_write_time"),
        ("stats_reset", "stat_reset_time"),
    ];
    if shape.version >= 14 {
        columns.push(("active_time", "active_time"));
        columns.push(("sessions", "sessions"));
    }
    let columns: Vec<String> =
        columns.iter().map(|(name, function)| format!("pg_stat_get_db_{function}(o) as {name}")).collect();
    format!(
        "(select row_to_json(d) from (select {} from (select {}::oid as o) x) d)",
        columns.join(", "),
        shape.database
    )
}

/// Sums of `pg_statio_user_tables` and `pg_stat_user_tables` over tables.
fn tables(version: u32, oids: &[u32]) -> String {
    let mut columns = BLOCKS.to_owned();
    columns.push_str(
        ", sum(pg_stat_get_tuples_updated(o)) as n_tup_upd, sum(pg_stat_get_tuples_hot_updated(o)) as n_tup_hot_upd, \
         sum(pg_stat_get_dead_tuples(o)) as n_dead_tup, sum(pg_stat_get_live_tuples(o)) as n_live_tup, \
         sum(pg_stat_get_autovacuum_count(o)) as autovacuum_count",
    );
    if version >= 16 {
        columns.push_str(", sum(pg_stat_get_tuples_newpage_updated(o)) as n_tup_newpage_upd");
    }
    sums(&columns, oids)
}

/// Gets and hits of blocks, `pg_statio_*`.
const BLOCKS: &str = "sum(pg_stat_get_blocks_fetched(o)) as blks_fetched, sum(pg_stat_get_blocks_hit(o)) as blks_hit";

fn blocks(oids: &[u32]) -> String {
    sums(BLOCKS, oids)
}

fn sums(columns: &str, oids: &[u32]) -> String {
    let oids: Vec<String> = oids.iter().map(u32::to_string).collect();
    format!("(select row_to_json(t) from (select {columns} from unnest('{{{}}}'::oid[]) o) t)", oids.join(","))
}

/// Sums of `pg_stat_statements` over a database, without the query texts, which would be read from a file.
fn statements(schema: &str, database: u32) -> String {
    format!(
        "(select row_to_json(s) from (select sum(calls) as calls, sum(shared_blks_dirtied) as shared_blks_dirtied \
         from {schema}.pg_stat_statements(false) where dbid = {database}) s)"
    )
}

/// What every session is doing, for the activity history; reads no table either.
pub(super) fn activity(version: u32) -> String {
    let flush = if version >= 15 { format!(", (select {FLUSH})") } else { String::new() };
    format!(
        "select pid, coalesce(state, ''), coalesce(wait_event_type, ''), coalesce(wait_event, ''){flush} \
         from pg_catalog.pg_stat_get_activity(null) where backend_type = 'client backend'"
    )
}

/// A text as an SQL literal.
pub(super) fn literal(text: &str) -> String {
    let escaped = text.replace('\'', "''").replace('\\', "\\\\");
    format!(" E'{escaped}'")
}

/// A name as an SQL identifier.
pub(super) fn identifier(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}
