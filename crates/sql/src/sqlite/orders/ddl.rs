//! Order entry in SQLite's SQL: tables with their keys and references, indexes, sequences, views. Times are text in UTC,
//! as SQLite's own functions write them; a sequence is a table of one row.

use crate::orders::ddl::{Ddl, create_tables};
use crate::orders::marker::{Marker, relations};
use crate::orders::text::views;
use assay_orders::checks::Words;
use assay_orders::generate::Counts;
use assay_orders::model::{Column, REFERENCES, RULES, SEQUENCES, Table, Type, VIEWS};
use assay_orders::params::Indexes;

/// The table of the marker, whose only row is written with the first table.
pub(super) const DATA_SET: &str = "soe_data_set";
pub(super) const READ: &str = "select marker from soe_data_set";

/// The names need no more words: they are those of the model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Named;

impl Words for Named {
    fn relation(&self, name: &str) -> String {
        name.to_owned()
    }

    fn name(&self, column: &str) -> String {
        column.to_owned()
    }

    fn counted(&self, column: &Column) -> String {
        let name = column.name;
        match column.kind {
            Type::Big | Type::Int | Type::Small | Type::Money(_) | Type::Months => format!("ifnull({name}, 0)"),
            Type::Text(_) => format!("ifnull(length({name}) * 256 + unicode({name}), 0)"),
            Type::Date | Type::Time | Type::Instant => {
                format!("ifnull(cast(julianday(date({name})) - 2451544.5 as integer), 0)")
            }
        }
    }

    fn last_of(&self, sequence: &str) -> String {
        format!("(select value from {sequence})")
    }
}

impl Ddl for Named {
    /// An interrupted load may have created some.
    const CREATE_INDEX: &'static str = "create index if not exists";
    const TYPES: [&'static str; 4] = ["text", "integer", "integer", "numeric"];

    fn type_of(&self, kind: Type) -> String {
        let kind = match kind {
            Type::Big | Type::Int | Type::Small | Type::Months => "integer",
            Type::Money(_) => "numeric",
            Type::Text(_) | Type::Date | Type::Time | Type::Instant => "text",
        };
        kind.to_owned()
    }

    /// Rules, keys and references: none can be added later.
    fn parts(&self, table: Table, indexes: Indexes) -> Vec<String> {
        let rules = RULES.into_iter().filter(|(_, of, _)| *of == table);
        let mut parts: Vec<String> = rules.map(|(name, _, what)| format!("constraint {name} check ({what})")).collect();
        if indexes == Indexes::None {
            return parts;
        }
        if !table.key().is_empty() {
            parts.push(format!("primary key ({})", table.key().join(", ")));
        }
        parts.extend(REFERENCES.iter().filter(|one| one.table == table).map(|one| {
            let (name, column, parent) = (one.name, one.column, one.parent.name());
            format!("constraint {name} foreign key ({column}) references {parent} ({column}) {}", one.on_delete)
        }));
        parts
    }

    fn storage(&self, _table: Option<Table>, _partitions: u32) -> String {
        String::new()
    }
}

/// Creates all tables, the marker's last.
pub(super) fn create(marker: &Marker) -> Vec<String> {
    let mut sql = create_tables(&Named, marker.which(), 0);
    sql.push(format!("create table {DATA_SET} (marker text not null)"));
    sql.push(format!("insert into {DATA_SET} values ('{}')", marker.json()));
    sql
}

/// Inserts a row, with the values in column order.
pub(super) fn insert(table: Table) -> String {
    let values: Vec<String> = (1..=table.columns().len()).map(|at| format!("?{at}")).collect();
    format!("insert into {} values ({})", table.name(), values.join(", "))
}

/// Sequences that continue after the loaded values, and views.
pub(super) fn sequences_and_views(counts: Counts) -> Vec<String> {
    let mut sql = Vec::new();
    for (sequence, table, _) in SEQUENCES {
        sql.push(format!("create table if not exists {sequence} (value integer not null)"));
        sql.push(format!("delete from {sequence}"));
        sql.push(format!("insert into {sequence} values ({})", counts.units(table)));
    }
    sql.extend(views(&Named, "create view if not exists", "'US'"));
    sql
}

/// Changes the marker.
pub(super) fn change(marker: &Marker) -> String {
    format!("update {DATA_SET} set marker = '{}'", marker.json())
}

/// Drops everything, children before parents; the caller makes it one transaction.
pub(super) fn removal(found: &Marker) -> Vec<String> {
    let mut unusable = found.clone();
    unusable.complete = false;
    let mut sql = vec![change(&unusable)];
    sql.extend(VIEWS.map(|name| format!("drop view if exists {name}")));
    let tables = relations().into_iter().rev().filter(|name| !VIEWS.contains(name));
    sql.extend(tables.map(|name| format!("drop table if exists {name}")));
    sql.push(format!("drop table {DATA_SET}"));
    sql
}
