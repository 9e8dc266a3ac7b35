//! The objects of a data set in SQL, the same on every server but for the words of [`Ddl`].

use super::marker::LOADED;
use assay_orders::checks::Words;
use assay_orders::ledger::{BASELINE, LEDGER};
use assay_orders::model::{
    Column, INDEXES, METADATA, METADATA_CHARS, REFERENCES, RULES, Reference, TABLES, Table, Type,
};
use assay_orders::params::Indexes;

/// A server's words for the objects of a data set.
pub(crate) trait Ddl: Words {
    const CREATE: &'static str = "create table";
    const CREATE_INDEX: &'static str = "create index";

    /// Types of a short text without its length, a count, a checksum, and a sum of money.
    const TYPES: [&'static str; 4];

    fn type_of(&self, kind: Type) -> String;

    /// Further parts of a table's definition.
    fn parts(&self, _table: Table, _indexes: Indexes) -> Vec<String> {
        Vec::new()
    }

    /// What follows a table's definition: where it is and how it is partitioned; `None` for a table of assay's own.
    fn storage(&self, table: Option<Table>, partitions: u32) -> String;

    /// What follows an index, or the primary key of a table.
    fn index_storage(&self, _key: Option<Table>) -> String {
        String::new()
    }
}

fn names(words: &impl Ddl, columns: &[&str], lower: bool) -> String {
    let name = |column: &&str| {
        let name = words.name(column);
        if lower { format!("lower({name})") } else { name }
    };
    let names: Vec<String> = columns.iter().map(name).collect();
    names.join(", ")
}

/// Creates assay's own tables, the metadata first.
pub(crate) fn own_tables<D: Ddl>(words: &D) -> [String; 4] {
    let [text, count, checksum, money] = D::TYPES;
    let metadata = format!("metadata_key {text}(30) primary key, metadata_value {text}({METADATA_CHARS})");
    let ledger = format!("k {text}(40) primary key, acked {count} not null, in_doubt {count} default 0 not null");
    let loaded = format!(
        "tbl {text}(40), first {count}, row_count {count} not null, checksum {checksum} not null, \
         primary key (tbl, first)"
    );
    [
        (METADATA, metadata),
        (BASELINE, format!("k {text}(40) primary key, v {money} not null")),
        (LEDGER, ledger),
        (LOADED, loaded),
    ]
    .map(|(name, columns)| create_table(words, name, &columns, None, 0))
}

fn create_table<D: Ddl>(words: &D, name: &str, parts: &str, table: Option<Table>, partitions: u32) -> String {
    let storage = words.storage(table, partitions);
    format!("{} {} ({parts}){storage}", D::CREATE, words.relation(name))
}

/// Creates all tables that are loaded.
pub(crate) fn create_tables(words: &impl Ddl, indexes: Indexes, partitions: u32) -> Vec<String> {
    let column = |column: &Column| {
        let required = if column.required { " not null" } else { "" };
        format!("{} {}{required}", words.name(column.name), words.type_of(column.kind))
    };
    let tables = TABLES.into_iter().map(|table| {
        let mut parts: Vec<String> = table.columns().iter().map(column).collect();
        parts.extend(words.parts(table, indexes));
        create_table(words, table.name(), &parts.join(", "), Some(table), partitions)
    });
    tables.chain(own_tables(words)).collect()
}

/// Primary keys, one statement per table.
pub(crate) fn keys(words: &impl Ddl, indexes: Indexes) -> Vec<String> {
    if indexes == Indexes::None {
        return Vec::new();
    }
    let with_key = TABLES.into_iter().filter(|table| !table.key().is_empty());
    with_key
        .map(|table| {
            let name = table.name();
            let (relation, constraint) = (words.relation(name), words.name(&format!("{name}_pk")));
            let (key, storage) = (names(words, table.key(), false), words.index_storage(Some(table)));
            format!("alter table {relation} add constraint {constraint} primary key ({key}){storage}")
        })
        .collect()
}

/// Secondary indexes, one statement each.
pub(crate) fn indexes<D: Ddl>(words: &D, indexes: Indexes) -> Vec<String> {
    if indexes != Indexes::All {
        return Vec::new();
    }
    let of = |index: &assay_orders::model::Index| {
        let columns = names(words, index.columns, index.lower);
        let (name, table) = (words.name(index.name), words.relation(index.table.name()));
        format!("{} {name} on {table} ({columns}){}", D::CREATE_INDEX, words.index_storage(None))
    };
    INDEXES.iter().map(of).collect()
}

/// Check constraints.
pub(crate) fn rules(words: &impl Ddl) -> Vec<String> {
    let rule = |(name, table, what): (&str, Table, &str)| {
        format!("alter table {} add constraint {} check ({what})", words.relation(table.name()), words.name(name))
    };
    RULES.into_iter().map(rule).collect()
}

/// Foreign keys that are `wanted`, to be created one after the other, since two of them may lock the same table.
pub(crate) fn references(words: &impl Ddl, indexes: Indexes, wanted: impl Fn(&Reference) -> bool) -> Vec<String> {
    if indexes == Indexes::None {
        return Vec::new();
    }
    let one = |one: &Reference| {
        let sql = format!(
            "alter table {} add constraint {} foreign key ({column}) references {} ({column}) {}",
            words.relation(one.table.name()),
            words.name(one.name),
            words.relation(one.parent.name()),
            one.on_delete,
            column = words.name(one.column)
        );
        sql.trim_end().to_owned()
    };
    REFERENCES.iter().filter(|one| wanted(one)).map(one).collect()
}

/// Metadata that describe the data set: plain names and numbers.
pub(crate) fn metadata(words: &dyn Words, entries: &[(&str, String)]) -> Vec<String> {
    let table = words.relation(METADATA);
    let insert = |(key, value): &(&str, String)| {
        format!("insert into {table} (metadata_key, metadata_value) values ('{key}', '{value}')")
    };
    let mut sql = vec![format!("delete from {table}")];
    sql.extend(entries.iter().map(insert));
    sql
}
