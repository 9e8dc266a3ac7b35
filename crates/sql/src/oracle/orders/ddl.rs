//! Order entry in Oracle's SQL: types, storage, rows, sequences, views. Names need no quotes, since none is reserved.

use super::super::sql::in_tablespace;
use crate::orders::ddl::Ddl;
use crate::orders::text::views;
use assay_orders::checks::Words;
use assay_orders::generate::Counts;
use assay_orders::model::{Column, SEQUENCES, Table, Type};

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

impl Ddl for Named {
    const TYPES: [&'static str; 4] = ["varchar2", "number(19)", "number(38)", "number(38, 2)"];

    fn type_of(&self, kind: Type) -> String {
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

    fn storage(&self, table: Option<Table>, partitions: u32) -> String {
        // As in the original: few rows of stock per block, so that sessions do not contend for a block.
        let room = if table == Some(Table::Inventories) { " pctfree 80 initrans 16" } else { "" };
        let cut = match (partitions, table.and_then(Table::hashed_by)) {
            (1.., Some(column)) => format!(" partition by hash ({column}) partitions {partitions}"),
            _ => String::new(),
        };
        format!("{room}{}{cut}", self.index_storage(None))
    }

    fn index_storage(&self, key: Option<Table>) -> String {
        let place = in_tablespace(self.tablespace.as_deref());
        match key {
            None => place,
            Some(table) if GROWING.contains(&table) => format!(" using index reverse{place}"),
            Some(_) if place.is_empty() => place,
            Some(_) => format!(" using index{place}"),
        }
    }
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
