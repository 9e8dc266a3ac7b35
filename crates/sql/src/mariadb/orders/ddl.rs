//! Order entry in MariaDB's SQL: tables with primary keys and check constraints, then indexes and foreign keys, sequences, views.

use super::super::layout::literal;
use super::super::product::Product;
use crate::orders::ddl::Ddl;
use crate::orders::text::views;
use assay_orders::checks::Words;
use assay_orders::generate::Counts;
use assay_orders::model::{Column, INDEXES, RULES, Reference, SEQUENCES, TABLES, Table, Type};
use assay_orders::params::Indexes;
use std::collections::BTreeSet;

/// Numbers that a sequence reserves for all sessions at once or, without sequences, a session for itself.
pub(super) const SEQUENCE_CACHE: i64 = 1000;
/// Rows compare by bytes, as on other servers.
const KIND: &str = "engine=InnoDB row_format=dynamic character set latin1 collate latin1_bin";
/// Columns with a name in lower case, since this server has no indexes on expressions.
pub(super) const LOWER: [(&str, &str); 2] = [("l_last", "cust_last_name"), ("l_first", "cust_first_name")];

/// Names in the database of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The database, unquoted.
    pub(super) database: String,
}

/// Quotes a name for SQL.
pub(super) fn quote(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

impl Named {
    /// Place name for messages.
    pub(super) fn place(&self) -> String {
        format!("database {}", self.database)
    }
}

impl Words for Named {
    fn relation(&self, name: &str) -> String {
        format!("{}.{}", quote(&self.database), quote(name))
    }

    fn name(&self, column: &str) -> String {
        quote(column)
    }

    fn counted(&self, column: &Column) -> String {
        let name = quote(column.name);
        let number = match column.kind {
            Type::Big | Type::Int | Type::Small | Type::Money(_) | Type::Months => name,
            Type::Text(_) => format!("char_length({name}) * 256 + ascii({name})"),
            Type::Date | Type::Time | Type::Instant => format!("datediff({name}, '2000-01-01')"),
        };
        format!("cast(coalesce({number}, 0) as signed)")
    }

    fn last_of(&self, sequence: &str) -> String {
        let sequence = self.relation(sequence);
        format!("(select next_not_cached_value - 1 from {sequence})")
    }
}

impl Ddl for Named {
    const CREATE: &'static str = "create table if not exists";
    const TYPES: [&'static str; 4] = ["varchar", "bigint", "decimal(40, 0)", "decimal(40, 2)"];

    fn type_of(&self, kind: Type) -> String {
        match kind {
            Type::Big => "bigint".to_owned(),
            Type::Int => "int".to_owned(),
            Type::Small | Type::Months => "smallint".to_owned(),
            Type::Money(digits) => format!("decimal({digits}, 2)"),
            Type::Text(chars) => format!("varchar({chars})"),
            Type::Date => "date".to_owned(),
            Type::Time => "datetime".to_owned(),
            Type::Instant => "datetime(6)".to_owned(),
        }
    }

    /// Primary keys and check constraints: rows arrive in key order, and adding either later would copy the whole table.
    fn parts(&self, table: Table, indexes: Indexes) -> Vec<String> {
        let mut parts = Vec::new();
        if table == Table::Customers {
            parts.extend(LOWER.map(|(name, of)| format!("{name} varchar(40) as (lower({of})) virtual")));
        }
        let key: Vec<String> = table.key().iter().map(|name| quote(name)).collect();
        if indexes != Indexes::None && !key.is_empty() {
            parts.push(format!("primary key ({})", key.join(", ")));
        }
        let rules = RULES.into_iter().filter(|(_, of, _)| *of == table);
        parts.extend(rules.map(|(name, _, what)| format!("constraint {} check ({what})", quote(name))));
        parts
    }

    fn storage(&self, table: Option<Table>, partitions: u32) -> String {
        let Some(table) = table else {
            return format!(" {KIND}");
        };
        let cut = match (partitions, table.hashed_by_key()) {
            (1.., Some(column)) => format!(" partition by hash ({}) partitions {partitions}", quote(column)),
            _ => String::new(),
        };
        format!(" {KIND} stats_persistent=1 stats_auto_recalc=0{cut}")
    }
}

/// Query for the names of existing indexes and foreign keys, after which an interrupted load continues.
pub(super) fn finished(names: &Named) -> String {
    let database = literal(&names.database);
    format!(
        "select index_name from information_schema.statistics where table_schema = {database} union \
         select constraint_name from information_schema.table_constraints where constraint_schema = {database}"
    )
}

/// The missing secondary indexes, one statement per table, so that its rows are read once.
pub(super) fn indexes(names: &Named, indexes: Indexes, there: &BTreeSet<String>) -> Vec<String> {
    if indexes != Indexes::All {
        return Vec::new();
    }
    let of = |table: Table| {
        let parts: Vec<String> = INDEXES
            .iter()
            .filter(|index| index.table == table && !there.contains(index.name))
            .map(|index| {
                let columns: Vec<String> = index.columns.iter().map(|name| column(name, index.lower)).collect();
                format!("add index {} ({})", quote(index.name), columns.join(", "))
            })
            .collect();
        let name = names.relation(table.name());
        (!parts.is_empty()).then(|| format!("alter table {name} {}", parts.join(", ")))
    };
    TABLES.into_iter().filter_map(of).collect()
}

/// A column of an index, or the column that contains it in lower case.
fn column(name: &str, lower: bool) -> String {
    let held = LOWER.iter().find(|(_, of)| lower && *of == name);
    quote(held.map_or(name, |(held, _)| held))
}

/// The missing foreign keys. Existing rows are not checked, since they were generated consistently. InnoDB supports no
/// foreign keys on partitioned tables or to them.
pub(super) fn references(names: &Named, indexes: Indexes, partitions: u32, there: &BTreeSet<String>) -> Vec<String> {
    let is_whole = |table: Table| partitions == 0 || table.hashed_by_key().is_none();
    let absent = |one: &Reference| is_whole(one.table) && is_whole(one.parent) && !there.contains(one.name);
    crate::orders::ddl::references(names, indexes, absent)
}

/// Sequences that continue after the loaded values, and views.
pub(super) fn sequences_and_views(names: &Named, product: Product, counts: Counts) -> Vec<String> {
    let mut sql: Vec<String> = SEQUENCES
        .into_iter()
        .flat_map(|(sequence, table, _)| {
            let (sequence, first) = (names.relation(sequence), counts.units(table) + 1);
            if product.has_sequences() {
                vec![format!("create or replace sequence {sequence} start with {first} cache {SEQUENCE_CACHE}")]
            } else {
                vec![
                    format!("drop table if exists {sequence}"),
                    format!("create table {sequence} (next_not_cached_value bigint not null) {KIND}"),
                    format!("insert into {sequence} values ({first})"),
                ]
            }
        })
        .collect();
    // A view cannot query a session's language here.
    let create = "create or replace sql security invoker view";
    sql.extend(views(names, create, "'US'"));
    sql
}
