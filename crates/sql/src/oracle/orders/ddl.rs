//! Order entry in Oracle's SQL: tables, keys, indexes, foreign keys, sequences, views. Names need no quotes, since none is reserved.

use super::super::sql::in_tablespace;
use crate::orders::marker::LOADED;
use crate::orders::text::views;
use assay_orders::checks::Words;
use assay_orders::generate::Counts;
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::model::{
    Column, INDEXES, METADATA, METADATA_CHARS, REFERENCES, RULES, SEQUENCES, TABLES, Table, Type,
};
use assay_orders::params::Indexes;

/// Sequence values that an instance caches.
const SEQUENCE_CACHE: u32 = 1000;
/// Tables with growing keys: their primary keys have reverse indexes, so that sessions do not all insert into the last block.
const GROWING: [Table; 5] = [Table::Customers, Table::Addresses, Table::CardDetails, Table::Orders, Table::OrderItems];

/// Where the data set is: names in the user's schema, and a tablespace.
#[derive(Clone, Debug)]
pub(crate) struct Named {
    pub(super) user: String,
    /// Tablespace of tables and indexes; `None` means the user's default.
    pub(super) tablespace: Option<String>,
}

impl Named {
    /// Place name for messages.
    pub(super) fn place(&self) -> String {
        format!("the schema of user {}", self.user)
    }

    fn whereabouts(&self) -> String {
        in_tablespace(self.tablespace.as_deref())
    }
}

impl Words for Named {
    fn relation(&self, name: &str) -> String {
        name.to_owned()
    }

    fn name(&self, column: &str) -> String {
        column.to_owned()
    }

    fn counted(&self, column: &Column) -> String {
        let name = column.name;
        let days = |of: &str| format!("nvl(trunc({of}) - date '2000-01-01', 0)");
        match column.kind {
            Type::Big | Type::Int | Type::Small | Type::Money(_) => format!("nvl({name}, 0)"),
            Type::Text(_) => format!("nvl(length({name}) * 256 + ascii({name}), 0)"),
            Type::Date | Type::Time => days(name),
            Type::Instant => days(&format!("sys_extract_utc({name})")),
            Type::Months => {
                format!("nvl(extract(year from {name}) * 12 + extract(month from {name}), 0)")
            }
        }
    }

    fn last_of(&self, sequence: &str) -> String {
        let name = sequence.to_ascii_uppercase();
        format!("(select last_number - 1 from user_sequences where sequence_name = '{name}')")
    }

    fn of_nothing(&self) -> &'static str {
        " from dual"
    }
}

fn type_of(kind: Type) -> String {
    match kind {
        Type::Big => "number(12)".to_owned(),
        Type::Int => "number(8)".to_owned(),
        Type::Small => "number(4)".to_owned(),
        Type::Money(digits) => format!("number({digits}, 2)"),
        Type::Text(chars) => format!("varchar2({chars} char)"),
        Type::Date => "date".to_owned(),
        Type::Time => "timestamp(0)".to_owned(),
        Type::Instant => "timestamp(6) with time zone".to_owned(),
        Type::Months => "interval year(2) to month".to_owned(),
    }
}

/// Creates all tables that are loaded.
pub(super) fn create_tables(names: &Named, partitions: u32) -> Vec<String> {
    let place = names.whereabouts();
    let column = |column: &Column| {
        let required = if column.required { " not null" } else { "" };
        format!("{} {}{required}", column.name, type_of(column.kind))
    };
    let mut sql: Vec<String> = TABLES
        .into_iter()
        .map(|table| {
            let columns: Vec<String> = table.columns().iter().map(column).collect();
            // As in the original: few rows of stock per block, so that sessions do not contend for a block.
            let room = match table {
                Table::Inventories => " pctfree 80 initrans 16",
                _ => "",
            };
            let cut = match (partitions, table.hashed_by()) {
                (1.., Some(column)) => {
                    format!(" partition by hash ({column}) partitions {partitions}")
                }
                _ => String::new(),
            };
            format!("create table {} ({}){room}{place}{cut}", table.name(), columns.join(", "))
        })
        .collect();
    for (name, columns) in [
        (METADATA, format!("metadata_key varchar2(30) primary key, metadata_value varchar2({METADATA_CHARS})")),
        (BASELINE, "k varchar2(40) primary key, v number(38, 2) not null".to_owned()),
        (
            LEDGER,
            "k varchar2(40) primary key, acked number(19) not null, in_doubt number(19) default 0 not null".to_owned(),
        ),
        (
            LOADED,
            "tbl varchar2(40), first number(19), row_count number(19) not null, checksum number(38) not null, \
             primary key (tbl, first)"
                .to_owned(),
        ),
    ] {
        sql.push(format!("create table {name} ({columns}){place}"));
    }
    sql
}

/// Inserts a row, with the values in column order.
pub(super) fn insert(table: Table) -> String {
    let names: Vec<&str> = table.columns().iter().map(|column| column.name).collect();
    let value = |(at, column): (usize, &Column)| match column.kind {
        Type::Date => format!("to_date(:{at}, 'YYYY-MM-DD')"),
        Type::Time => format!("to_timestamp(:{at}, 'YYYY-MM-DD HH24:MI:SS')"),
        Type::Instant => format!("to_timestamp_tz(:{at}, 'YYYY-MM-DD HH24:MI:SSTZH:TZM')"),
        Type::Months => format!("numtoyminterval(:{at}, 'MONTH')"),
        _ => format!(":{at}"),
    };
    let values: Vec<String> = (1..).zip(table.columns()).map(value).collect();
    format!("insert into {} ({}) values ({})", table.name(), names.join(", "), values.join(", "))
}

/// Primary keys, one statement per table.
pub(super) fn keys(names: &Named, indexes: Indexes) -> Vec<String> {
    if indexes == Indexes::None {
        return Vec::new();
    }
    let with_key = TABLES.into_iter().filter(|table| !table.key().is_empty());
    let place = names.whereabouts();
    with_key
        .map(|table| {
            let name = table.name();
            let using = match (GROWING.contains(&table), place.as_str()) {
                (false, "") => String::new(),
                (false, place) => format!(" using index{place}"),
                (true, place) => format!(" using index reverse{place}"),
            };
            let key = table.key().join(", ");
            format!("alter table {name} add constraint {name}_pk primary key ({key}){using}")
        })
        .collect()
}

/// Secondary indexes, one statement each.
pub(super) fn indexes(names: &Named, indexes: Indexes) -> Vec<String> {
    if indexes != Indexes::All {
        return Vec::new();
    }
    let place = names.whereabouts();
    let of = |index: &assay_orders::model::Index| {
        let column = |name: &&str| if index.lower { format!("lower({name})") } else { (*name).to_owned() };
        let columns: Vec<String> = index.columns.iter().map(column).collect();
        format!("create index {} on {} ({}){place}", index.name, index.table.name(), columns.join(", "))
    };
    INDEXES.iter().map(of).collect()
}

/// Check constraints and foreign keys, one after the other, since two of them may lock the same table.
pub(super) fn constraints(indexes: Indexes) -> Vec<String> {
    let rule = |(name, table, what): (&str, Table, &str)| {
        format!("alter table {} add constraint {name} check ({what})", table.name())
    };
    let mut sql: Vec<String> = RULES.into_iter().map(rule).collect();
    if indexes == Indexes::None {
        return sql;
    }
    sql.extend(REFERENCES.iter().map(|one| {
        let sql = format!(
            "alter table {} add constraint {} foreign key ({column}) references {} ({column}) {}",
            one.table.name(),
            one.name,
            one.parent.name(),
            one.on_delete,
            column = one.column
        );
        sql.trim_end().to_owned()
    }));
    sql
}

/// Sequences that continue after the loaded values, and views.
pub(super) fn sequences_and_views(names: &Named, counts: Counts) -> Vec<String> {
    let mut sql: Vec<String> = SEQUENCES
        .into_iter()
        .map(|(sequence, table, _)| {
            let next = counts.units(table) + 1;
            format!("create sequence {sequence} start with {next} cache {SEQUENCE_CACHE} noorder")
        })
        .collect();
    let language = "sys_context('userenv', 'lang')";
    sql.extend(views(names, "create or replace view", language));
    sql
}

/// Gathers statistics of a table for the optimizer.
pub(super) fn gather(table: Table) -> String {
    format!(
        "begin dbms_stats.gather_table_stats(ownname => user, tabname => '{}', cascade => true, no_invalidate => false); end;",
        table.name().to_ascii_uppercase()
    )
}

/// Metadata that describe the data set.
pub(super) fn metadata(entries: &[(&str, String)]) -> Vec<String> {
    let mut sql = vec![format!("delete from {METADATA}")];
    sql.extend(entries.iter().map(|(key, value)| {
        format!(
            "insert into {METADATA} (metadata_key, metadata_value) values ('{key}', '{}')",
            value.replace('\'', "''")
        )
    }));
    sql
}
