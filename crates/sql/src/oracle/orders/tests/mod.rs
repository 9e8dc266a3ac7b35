//! Order entry over a stand-in for a server (`fake`), which performs its statements: the whole life, both forms, faults, retries, what
//! is refused. `golden` holds its words as text and has independent parsers read them.

mod fake;
mod golden;

use super::super::session::OraError;
use super::super::tests::fake::PASSWORD;
use super::*;
use crate::orders::load::compare;
use crate::orders::marker::Marker;
use crate::orders::testing::{Bench, holds, verdicts};
use assay_orders::checks::BROKEN;
use assay_orders::model::{TABLES, Table};
use assay_run::engine::Presence;
use fake::{Fake, database};
use std::sync::Arc;

/// The target, over the stand-in.
static FAKE: OrderEntryOn<OracleOrders> = OrderEntryOn(SlobOn(Oracle { way: || Ok(Arc::new(Fake)) }));

fn settings(given: &[(&str, &str)]) -> Settings {
    crate::oracle::tests::settings_of(&ALL_PARAMS, given)
}

fn small(more: &[(&str, &str)]) -> Settings {
    let usual = [("ORDERS_SCALE", ".001"), ("SEED", "7"), ("CONNECT_RATE", "1000")];
    settings(&[&usual, more].concat())
}

fn url(name: &str) -> String {
    format!("//soe:{PASSWORD}@//fake/{name}")
}

static BENCH: Bench = Bench {
    target: &FAKE,
    settings: small,
    connect: |url| {
        let visit = FAKE.0.at(url, &small(&[]), &Stop::new()).unwrap().1;
        Box::new(load::patient(&*visit.way, &visit.address).unwrap())
    },
};

fn told_by<T>(result: Result<T, EngineError>) -> String {
    match result {
        Ok(_) => panic!("it was not refused"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_data_set_lives_is_run_on_and_each_fault_is_caught() {
    let url = &url("orders_life");
    BENCH.loads(url, 1);
    assert_eq!(database("orders_life").db().gathered.len(), TABLES.len());
    for form in ["server", "client"] {
        BENCH.performs_every_transaction(url, form);
    }
    faults(url);
    // A destroy that is cut short leaves what can be removed, and not be used.
    let lost = OraError::said(3113, "ORA-03113: end-of-file on communication channel");
    database("orders_life").db().fail.push(("drop table logon", lost));
    told_by(FAKE.destroy(url, &small(&[])));
    let absent = FAKE.inspect(url, &small(&[])).unwrap();
    assert!(matches!(absent, Presence::Absent { .. }), "{absent:?}");
    FAKE.destroy(url, &small(&[])).unwrap();
    assert!(database("orders_life").db().objects.is_empty());
    let gone = told_by(BENCH.check(url, &[]));
    assert!(gone.contains("has no data set of order entry"), "{gone}");
}

/// Each fault is injected, caught by its checks, and taken back. The stand-in does not follow references: an order goes alone.
fn faults(url: &str) {
    let new = "order_id > (select v from soe_baseline where k = 'ord_max')";
    let last = |table: &str, of: &str| format!("rowid = (select max(rowid) from {table} where {of})");
    let faults: [(&str, String, &[&str]); 10] = [
        (
            "double ship",
            format!("update orders set order_status = 1 where {}", last("orders", "order_status > 4")),
            &["C17"],
        ),
        ("lost line", format!("delete from order_items where {}", last("order_items", new)), &["C1", "C5"]),
        ("lost order", format!("delete from orders where {}", last("orders", new)), &["C3", "C7"]),
        (
            "lost update of stock",
            "update inventories set quantity_on_hand = quantity_on_hand + 1 where product_id = 5 and warehouse_id = 5"
                .to_owned(),
            &["C5"],
        ),
        ("changed total", "update orders set order_total = order_total + 1 where order_id = 1".to_owned(), &["C2"]),
        (
            "wrong sum",
            format!("update orders set order_total = order_total + 1 where {}", last("orders", new)),
            &["C1"],
        ),
        ("lost card", format!("delete from card_details where {}", last("card_details", "1 = 1")), &["C8", "C9"]),
        ("lost logon", format!("delete from logon where {}", last("logon", "1 = 1")), &["C8"]),
        (
            "torn order",
            format!("update order_items set unit_price = unit_price + 1 where {}", last("order_items", new)),
            &["C1", "C14"],
        ),
        (
            "changed product",
            "update product_information set product_name = product_name || 'x' where product_id = 7".to_owned(),
            &["C16"],
        ),
    ];
    let visit = FAKE.0.at(url, &small(&[]), &Stop::new()).unwrap().1;
    let mut link = load::patient(&*visit.way, &visit.address).unwrap();
    let names = OracleOrders::look(&visit).unwrap().names;
    for (what, sql, caught) in faults {
        assert_eq!(link.0.run(&sql, &[]).unwrap(), 1, "{what}");
        let broken = verdicts(&books::check(&mut link, &names).unwrap(), BROKEN);
        link.0.rollback().unwrap();
        assert_eq!(broken, caught, "{what}");
    }
    // A run that was killed did not close its books: what rests on them cannot be told.
    let open = "update soe_ledger set acked = acked + 1 where k = 'open_runs'";
    link.0.run(open, &[]).unwrap();
    let killed = books::check(&mut link, &names).unwrap();
    assert_eq!(verdicts(&killed, "n/a"), ["C7", "C8", "C10", "C17"]);
    link.0.rollback().unwrap();
    let wanted = (1000, 0);
    let error = told_by(compare(&mut link, &names, Table::Customers, wanted));
    let both = ["table customers: ", "but 1000 rows with checksum 0 were generated"];
    assert!(both.iter().all(|text| error.contains(text)), "{error}");
}

/// Rows and checksums of all tables, without what is told by the clock or dealt by a sequence.
fn sums(name: &str) -> Vec<String> {
    let sql = [
        "select count(*), sum(order_total), sum(order_status), sum(warehouse_id), sum(customer_id), sum(cost_of_delivery), \
         sum(coalesce(card_id, 0)), sum(coalesce(delivery_address_id, 0)) from orders",
        "select count(*), sum(quantity), sum(unit_price), sum(product_id * line_item_id) from order_items",
        "select sum(quantity_on_hand * (warehouse_id + product_id)) from inventories",
        "select count(*), sum(preferred_address), sum(credit_limit), sum(unicode(cust_last_name)) from customers",
        "select count(*), sum(customer_id), sum(unicode(town)), sum(length(house_no_or_name)) from addresses",
        "select count(*), sum(card_number), sum(security_code) from card_details",
        "select count(*), sum(customer_id) from logon",
    ];
    let shared = database(name);
    let db = shared.db();
    let row = |sql: &str| {
        let mut prepared = db.sqlite.prepare(sql).unwrap();
        let columns = prepared.column_count();
        let values = |row: &rusqlite::Row<'_>| {
            let all: Result<Vec<rusqlite::types::Value>, _> = (0..columns).map(|at| row.get(at)).collect();
            Ok(format!("{:?}", all?))
        };
        prepared.query_row([], values).unwrap()
    };
    sql.map(row).to_vec()
}

/// The values of the calls mean to the package what they mean to the statements: the stand-in reads them by the package's order.
#[test]
fn both_forms_leave_the_same_rows_for_the_same_seed_and_retries_change_nothing() {
    let left = ["server", "client"].map(|form| {
        let name = format!("orders_form_{form}");
        // Which rows come first is a matter of how they lie.
        BENCH.prepare(&url(&name), &[("LOAD_PARALLEL_DEGREE", "1")]).unwrap();
        let given = [("ORDERS_MIX", "classic"), ("ORDERS_FORM", form), ("SESSIONS", "1"), ("WORK_LOOP", "300")];
        // The second has failures of each class that is attempted again, none where a sequence has dealt what is compared.
        if form == "client" {
            let shared = database(&name);
            let mut db = shared.db();
            db.fail.extend([
                ("update inventories", OraError::said(60, "ORA-00060: deadlock detected")),
                ("update orders set order_status", OraError::said(8177, "ORA-08177: can't serialize access")),
                ("insert into order_items", OraError::said(30_006, "ORA-30006: resource busy")),
                ("update order_items", OraError::said(54, "ORA-00054: resource busy")),
            ]);
        }
        let (data, part) = BENCH.run(&url(&name), &given, &[]);
        let driver = &data.drained.driver;
        let again = [
            "retried order_products deadlock",
            "retried process_orders serialisation",
            "retried order_products lock timeout",
            "retried browse_orders lock timeout",
        ];
        for class in again {
            let wanted = u64::from(form == "client");
            assert_eq!(driver.by_kind.get(class).copied().unwrap_or(0), wanted, "{class}: {:?}", driver.by_kind);
        }
        assert_eq!(part.ledger.rollbacks, driver.retries);
        holds(&part);
        (sums(&name), part.ledger.acked)
    });
    assert_eq!(left[0], left[1]);
}

#[test]
fn a_call_that_fails_is_rolled_back_and_attempted_again_and_a_lost_session_is_in_doubt() {
    let url = &url("orders_calls");
    BENCH.prepare(url, &[]).unwrap();
    let shared = database("orders_calls");
    let said = |code, text| OraError::said(code, text);
    shared.db().fail.extend([
        ("orderentry.order_products", said(60, "ORA-00060: deadlock detected")),
        ("update inventories", said(60, "ORA-00060: deadlock detected")),
        ("orderentry.customer_registration", said(1, "ORA-00001: unique constraint violated")),
    ]);
    let given = [("SESSIONS", "2"), ("WORK_LOOP", "60")];
    let (data, part) = BENCH.run(url, &given, &[]);
    let by_kind = &data.drained.driver.by_kind;
    assert_eq!(by_kind["retried order_products deadlock"], 2, "{by_kind:?}");
    assert_eq!(by_kind["failed customer_registration server"], 1, "{by_kind:?}");
    holds(&part);
    shared.db().fail.push(("orderentry.order_products", said(3113, "ORA-03113: end-of-file on communication channel")));
    let (_, part) = BENCH.run(url, &given, &[]);
    assert_eq!(part.ledger.in_doubt["OP"], 1, "{:?}", part.ledger);
    holds(&part);
}

#[test]
fn a_load_that_was_cut_short_is_finished_as_it_was_begun() {
    let url = &url("orders_resumed");
    let full = OraError::said(1653, "ORA-01653: unable to extend table SOE.LOGON");
    database("orders_resumed").db().fail.push(("insert into logon", full));
    let cut = told_by(BENCH.prepare(url, &[("LOAD_PARALLEL_DEGREE", "2")]));
    assert!(cut.contains("logon: ORA-01653") && cut.contains("tablespace larger"), "{cut}");
    let absent = FAKE.inspect(url, &small(&[])).unwrap();
    assert!(matches!(absent, Presence::Absent { .. }), "{absent:?}");
    let other = told_by(BENCH.prepare(url, &[("ORDERS_SCALE", ".003")]));
    assert!(other.contains("ORDERS_SCALE asks for another"), "{other}");
    // The second is cut short by a package that cannot compile, when keys and indexes are there.
    database("orders_resumed").db().invalid.push("PACKAGE BODY ORDERENTRY line 7: PL/SQL: ORA-00942");
    let cut = told_by(BENCH.prepare(url, &[]));
    assert!(cut.contains("cannot compile") && cut.contains("line 7"), "{cut}");
    database("orders_resumed").db().invalid.clear();
    let summary = BENCH.prepare(url, &[]).unwrap();
    assert!(summary.iter().any(|line| line.key == "resumed_rows"), "{summary:?}");
    assert_eq!(BENCH.check(url, &[]).unwrap().len(), 18);
}

#[test]
fn what_is_not_ours_and_what_cannot_be_is_refused_and_nothing_is_touched() {
    let url = &url("orders_foreign");
    let shared = database("orders_foreign");
    shared.db().objects.insert(("payroll".to_owned(), "TABLE"));
    let refused = told_by(BENCH.prepare(url, &[]));
    assert!(refused.contains("payroll") && refused.contains("nothing was touched"), "{refused}");
    assert_eq!(shared.db().objects.len(), 1);
    shared.db().objects.clear();
    let text = Marker::asked(&small(&[])).unwrap().json();
    let mark = format!(
        "create table soe_data_set (marker varchar2(4000) not null); insert into soe_data_set values ('{text}')"
    );
    shared.db().sqlite.execute_batch(&mark).unwrap();
    let ours = [("soe_data_set", "TABLE"), ("orders", "SYNONYM")];
    let ours = ours.map(|(name, kind)| (name.to_owned(), kind));
    shared.db().objects.extend(ours);
    shared.db().triggers.push("trigger EVE.LOGGER on LOGON");
    for error in [
        told_by(FAKE.destroy(url, &small(&[]))),
        told_by(FAKE.inspect(url, &small(&[]))),
        told_by(BENCH.prepare(url, &[])),
    ] {
        assert!(error.contains("orders (synonym)") && error.contains("EVE.LOGGER"), "{error}");
    }
    assert_eq!(shared.db().objects.len(), 2);
    assert!(!FAKE.heeds("ORDERS_SCHEMA") && !FAKE.heeds("READ_MODE"));
    assert!(FAKE.heeds("ORACLE_TABLESPACE") && FAKE.heeds("SQLNET_SERVICE_BASE"));
    let tablespace = told_by(BENCH.prepare(url, &[("ORACLE_TABLESPACE", "X; drop user")]));
    assert!(tablespace.contains("is not a name"), "{tablespace}");
    let wrong = told_by(BENCH.prepare("//soe:Kq9wrong@//fake/orders_foreign", &[]));
    assert!(wrong.contains("ORA-01017") && !wrong.contains("Kq9"), "{wrong}");
}
