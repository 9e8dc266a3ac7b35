//! Order entry in PostgreSQL's SQL: tables, keys, indexes, views, sequences.

use crate::orders::marker::LOADED;
use crate::orders::text::views;
use crate::postgres::layout::{literal, quote};
use assay_orders::checks::Words;
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::model::{
    Column, INDEXES, METADATA, METADATA_CHARS, REFERENCES, RULES, SEQUENCES, TABLES, Table, Type,
};
use assay_orders::params::Indexes;

/// Sequence values that a session caches.
const SEQUENCE_CACHE: u32 = 100;

/// Names in the schema of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The schema, unquoted.
    pub schema: String,
}

impl Named {
    /// Place name for messages.
    pub(super) fn place(&self) -> String {
        format!("schema {}", self.schema)
    }

    /// A relation of the schema, for SQL.
    pub(super) fn relation(&self, name: &str) -> String {
        format!("{}.{}", quote(&self.schema), quote(name))
    }
}

impl Words for Named {
    fn relation(&self, name: &str) -> String {
        Self::relation(self, name)
    }

    fn name(&self, column: &str) -> String {
        quote(column)
    }

    fn counted(&self, column: &Column) -> String {
        let name = quote(column.name);
        let day = |of: String| format!("coalesce({of} - date '2000-01-01', 0)");
        let number = match column.kind {
            Type::Big | Type::Int | Type::Small | Type::Money(_) => format!("coalesce({name}, 0)"),
            Type::Text(_) => format!("coalesce(char_length({name}) * 256 + ascii({name}), 0)"),
            Type::Date => day(name),
            Type::Time => day(format!("{name}::date")),
            Type::Instant => day(format!("({name} at time zone 'UTC')::date")),
            Type::Months => {
                format!("coalesce(extract(year from {name}) * 12 + extract(month from {name}), 0)")
            }
        };
        format!("({number})::int8")
    }

    fn last_of(&self, sequence: &str) -> String {
        format!("(select last_value from {})", self.relation(sequence))
    }
}

fn type_of(kind: Type) -> String {
    match kind {
        Type::Big => "bigint".to_owned(),
        Type::Int => "integer".to_owned(),
        Type::Small => "smallint".to_owned(),
        Type::Money(digits) => format!("numeric({digits}, 2)"),
        Type::Text(chars) => format!("varchar({chars})"),
        Type::Date => "date".to_owned(),
        Type::Time => "timestamp(0)".to_owned(),
        Type::Instant => "timestamptz(6)".to_owned(),
        Type::Months => "interval year to month".to_owned(),
    }
}

/// The partitions of a data set: table, number, and name.
pub(super) fn partitions(count: u32) -> impl Iterator<Item = (Table, u32, String)> {
    let cut = TABLES.into_iter().filter(|table| table.hashed_by_key().is_some());
    cut.flat_map(move |table| (0..count).map(move |at| (table, at, format!("{}_p{at}", table.name()))))
}

/// Creates all tables that are loaded.
pub(super) fn create_tables(names: &Named, tablespace: &str, partitions: u32) -> Vec<String> {
    let clause = match tablespace {
        "" => String::new(),
        name => format!(" tablespace {}", quote(name)),
    };
    let column = |column: &Column| {
        let required = if column.required { " not null" } else { "" };
        format!("{} {}{required}", quote(column.name), type_of(column.kind))
    };
    let mut sql: Vec<String> = TABLES
        .into_iter()
        .map(|table| {
            let columns: Vec<String> = table.columns().iter().map(column).collect();
            // Stock is updated in place, so half of each page stays free for that.
            let room = match table {
                Table::Inventories => " with (fillfactor = 50)",
                _ => "",
            };
            let cut = match (partitions, table.hashed_by_key()) {
                (1.., Some(column)) => format!(" partition by hash ({})", quote(column)),
                _ => String::new(),
            };
            let name = names.relation(table.name());
            format!("create table {name} ({}){cut}{room}{clause}", columns.join(", "))
        })
        .collect();
    sql.extend(self::partitions(partitions).map(|(table, remainder, name)| {
        format!(
            "create table {} partition of {} for values with (modulus {partitions}, remainder {remainder})",
            names.relation(&name),
            names.relation(table.name())
        )
    }));
    let text = format!("varchar({METADATA_CHARS})");
    for (name, columns) in [
        (METADATA, format!("metadata_key varchar(30) primary key, metadata_value {text}")),
        (BASELINE, "k text primary key, v numeric not null".to_owned()),
        (LEDGER, "k text primary key, acked numeric not null, in_doubt numeric not null default 0".to_owned()),
        (
            LOADED,
            "tbl text, first bigint, rows bigint not null, checksum numeric not null, primary key (tbl, first)"
                .to_owned(),
        ),
    ] {
        sql.push(format!("create table {} ({columns}){clause}", names.relation(name)));
    }
    sql
}

/// Primary keys, one statement per table.
pub(super) fn keys(names: &Named, indexes: Indexes) -> Vec<String> {
    if indexes == Indexes::None {
        return Vec::new();
    }
    let with_key = TABLES.into_iter().filter(|table| !table.key().is_empty());
    with_key
        .map(|table| {
            let columns: Vec<String> = table.key().iter().map(|column| quote(column)).collect();
            format!(
                "alter table {} add constraint {} primary key ({})",
                names.relation(table.name()),
                quote(&format!("{}_pk", table.name())),
                columns.join(", ")
            )
        })
        .collect()
}

/// Secondary indexes, one statement each.
pub(super) fn indexes(names: &Named, indexes: Indexes) -> Vec<String> {
    if indexes != Indexes::All {
        return Vec::new();
    }
    let column = |lower: bool| move |name: &&str| if lower { format!("lower({})", quote(name)) } else { quote(name) };
    INDEXES
        .iter()
        .map(|index| {
            let columns: Vec<String> = index.columns.iter().map(column(index.lower)).collect();
            format!(
                "create index {} on {} ({})",
                quote(index.name),
                names.relation(index.table.name()),
                columns.join(", ")
            )
        })
        .collect()
}

/// Foreign keys and check constraints, one after the other, since two of them may lock the same table.
pub(super) fn constraints(names: &Named, indexes: Indexes) -> Vec<String> {
    let rule = |(name, table, what): (&str, Table, &str)| {
        format!("alter table {} add constraint {} check ({what})", names.relation(table.name()), quote(name))
    };
    let mut sql: Vec<String> = RULES.into_iter().map(rule).collect();
    if indexes == Indexes::None {
        return sql;
    }
    sql.extend(REFERENCES.iter().map(|one| {
        format!(
            "alter table {} add constraint {} foreign key ({column}) references {} ({column}) {}",
            names.relation(one.table.name()),
            quote(one.name),
            names.relation(one.parent.name()),
            one.on_delete,
            column = quote(one.column)
        )
    }));
    sql
}

/// Sequences that continue after the loaded values, and views.
pub(super) fn sequences_and_views(names: &Named) -> Vec<String> {
    let mut sql = Vec::new();
    for (sequence, table, column) in SEQUENCES {
        let (sequence, table) = (names.relation(sequence), names.relation(table.name()));
        sql.push(format!("create sequence if not exists {sequence} cache {SEQUENCE_CACHE}"));
        sql.push(format!("select setval({}, (select max({}) from {table}))", literal(&sequence), quote(column)));
    }
    let language = "current_setting('assay.language', true)";
    sql.extend(views(names, "create or replace view", language));
    sql
}

/// Metadata that describe the data set.
pub(super) fn metadata(names: &Named, entries: &[(&str, String)]) -> Vec<String> {
    let metadata = names.relation(METADATA);
    let insert = |(key, value): &(&str, String)| {
        format!("insert into {metadata} (metadata_key, metadata_value) values ({}, {})", literal(key), literal(value))
    };
    let mut sql = vec![format!("delete from {metadata}")];
    sql.extend(entries.iter().map(insert));
    sql
}
