//! Order entry in PostgreSQL's SQL: types, storage, partitions, views, sequences.

use crate::orders::ddl::Ddl;
use crate::orders::text::views;
use crate::postgres::layout::{literal, quote};
use assay_orders::checks::Words;
use assay_orders::model::{Column, SEQUENCES, TABLES, Table, Type};

/// Sequence values that a session caches.
const SEQUENCE_CACHE: u32 = 100;

/// Names in the schema of a data set.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    /// The schema, unquoted.
    pub schema: String,
    /// Of the tables; empty means the default.
    pub tablespace: String,
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

impl Ddl for Named {
    const TYPES: [&'static str; 4] = ["varchar", "bigint", "numeric", "numeric"];

    fn type_of(&self, kind: Type) -> String {
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

    fn storage(&self, table: Option<Table>, partitions: u32) -> String {
        let cut = match (partitions, table.and_then(Table::hashed_by_key)) {
            (1.., Some(column)) => format!(" partition by hash ({})", quote(column)),
            _ => String::new(),
        };
        // Stock is updated in place, so half of each page stays free for that.
        let room = if table == Some(Table::Inventories) { " with (fillfactor = 50)" } else { "" };
        match self.tablespace.as_str() {
            "" => cut + room,
            name => format!("{cut}{room} tablespace {}", quote(name)),
        }
    }
}

/// The partitions of a data set: table, number, and name.
pub(super) fn partitions(count: u32) -> impl Iterator<Item = (Table, u32, String)> {
    let cut = TABLES.into_iter().filter(|table| table.hashed_by_key().is_some());
    cut.flat_map(move |table| (0..count).map(move |at| (table, at, format!("{}_p{at}", table.name()))))
}

/// Creates the partitions of the tables.
pub(super) fn create_partitions(names: &Named, partitions: u32) -> impl Iterator<Item = String> {
    self::partitions(partitions).map(move |(table, remainder, name)| {
        format!(
            "create table {} partition of {} for values with (modulus {partitions}, remainder {remainder})",
            names.relation(&name),
            names.relation(table.name())
        )
    })
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
