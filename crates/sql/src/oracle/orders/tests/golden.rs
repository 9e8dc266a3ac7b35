//! The dialect of order entry as golden text, and what independent parsers say of it; see `oracle::tests::golden`.

use super::super::ddl::{self, Named};
use super::super::load::{INVALID, SETUP};
use super::super::package;
use super::super::statements::statement;
use super::super::{marker, sql};
use crate::oracle::tests::golden::{by_antlr, counted_from_one, read_but_for};
use crate::orders::ddl::{create_tables, indexes, keys, metadata, references, rules};
use crate::orders::load::note_sql;
use crate::orders::marker::Marker;
use assay_orders::checks::{self, STATIC};
use assay_orders::generate::Counts;
use assay_orders::ledger::{Ledger, opening_sql};
use assay_orders::mix::ALL;
use assay_orders::model::{TABLES, Table};
use assay_orders::params::Indexes;
use assay_orders::program::STATEMENTS;
use assay_orders::work::Piece;

fn named(tablespace: Option<&str>) -> Named {
    Named { user: "SOE".to_owned(), tablespace: tablespace.map(str::to_owned) }
}

/// Names for statements of a list.
fn listed(what: &str, all: Vec<String>) -> Vec<(String, String)> {
    let name = |(at, text): (usize, String)| (format!("{what} {at}"), text);
    (1..).zip(all).map(name).collect()
}

/// Every statement by a name of its own.
fn statements() -> Vec<(String, String)> {
    let names = named(Some("IOPS"));
    let marker = Marker::asked(&super::settings(&[("SEED", "7")])).expect("defaults");
    let piece = Piece { table: Table::Orders, units: 1..100, rows: 99 };
    let sums = STATIC.map(|table| (table, 12_345));
    let entries = [("ASSAY_SCALE", "0.05".to_owned())];
    let mut all = listed("create", create_tables(&names, Indexes::All, 0));
    all.extend(listed(
        "create where the user's tables are",
        create_tables(&named(None), Indexes::All, 0)[6..8].to_vec(),
    ));
    all.extend(listed("create with partitions", create_tables(&names, Indexes::All, 32)[..10].to_vec()));
    all.extend(listed("load", TABLES.map(ddl::insert).to_vec()));
    all.extend(listed("key", keys(&names, Indexes::All)));
    all.extend(listed("key where the user's tables are", keys(&named(None), Indexes::Keys)[..4].to_vec()));
    all.extend(listed("index", indexes(&names, Indexes::All)));
    all.extend(listed("constraint", [rules(&names), references(&names, Indexes::All, |_| true)].concat()));
    all.extend(listed("sequence or view", ddl::sequences_and_views(&names, Counts::of(50))));
    all.extend(listed("package", package::create(19).to_vec()));
    all.extend(listed("call", ALL.map(package::call).to_vec()));
    all.extend(STATEMENTS.map(|one| (format!("{one:?}"), statement(one).0)));
    all.extend(listed("baseline", checks::baseline_sql(&names, &sums)));
    all.extend(checks::all(&names).into_iter().map(|check| (check.id.to_owned(), check.sql)));
    all.extend(listed("checksum", TABLES.map(|table| checks::checksum_sql(&names, table)).to_vec()));
    all.extend(listed("statistics", vec![ddl::gather(Table::Orders)]));
    all.extend(listed("metadata", metadata(&names, &entries)));
    all.extend(listed("books", Ledger::default().closing_sql(str::to_owned)));
    all.extend(listed("remove", marker::removal()));
    let more = [
        ("open the books", opening_sql(str::to_owned)),
        ("open runs", checks::open_runs_sql(&names)),
        ("note a piece", note_sql(&names, &piece, 99, -17)),
        ("create marker", marker::create_sql(&names)),
        ("write marker", marker::WRITE.to_owned()),
        ("change marker", marker::change_sql(&marker)),
        ("read marker", marker::READ.to_owned()),
        ("forget marker", marker::FORGET.to_owned()),
        ("remove marker", sql::drop_table(marker::DATA_SET)),
        ("strange", marker::STRANGE.to_owned()),
        ("errors of the package", INVALID.to_owned()),
        ("prepare a session", SETUP.to_owned()),
        ("commit logons", package::COMMIT_LOGON.to_owned()),
    ];
    all.extend(more.map(|(name, text)| (name.to_owned(), text)));
    all
}

#[test]
fn the_dialect_is_as_it_was_reviewed() {
    let all: Vec<String> = statements().into_iter().map(|(name, text)| format!("-- {name}\n{text}\n")).collect();
    insta::assert_snapshot!(all.join("\n"));
}

#[test]
fn placeholders_of_a_statement_are_counted_from_one() {
    counted_from_one(&statements());
}

#[test]
fn independent_parsers_of_oracle_read_every_statement() {
    // Neither knows ALTER SESSION, which is as Oracle's SQL Language Reference has it.
    read_but_for(&statements(), &["prepare a session"]);
}

#[test]
fn before_18_a_pause_asks_for_another_package_and_nothing_else_differs() {
    let [head, body] = package::create(19);
    let before = body.replace("dbms_session.sleep", "dbms_lock.sleep");
    assert_ne!(before, body);
    assert_eq!(package::create(12), [head, before]);
}

/// The proof that a mistake within the package would be seen.
#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn a_package_with_a_word_missing_is_refused() {
    let [_, body] = package::create(19);
    let broken = |word: &str| (word.trim().to_owned(), body.replacen(word, "", 1));
    let all = ["end loop;", "returning "].map(broken);
    if let Some(refused) = by_antlr(&all) {
        assert_eq!(refused.len(), all.len(), "{refused:?}");
    }
}
