//! Order entry on real files: the whole life, every transaction, each fault caught, what is refused.

use super::super::tests::{Place, told_by};
use super::*;
use crate::orders::testing::{Bench, catches};
use crate::testing::settings_of;
use assay_run::engine::Presence;
use assay_testkit::conformance::life::Unwatched;

fn small(more: &[(&str, &str)]) -> Settings {
    let usual = [("ORDERS_SCALE", ".001"), ("SEED", "7"), ("SQLITE_SYNCHRONOUS", "off")];
    settings_of("sqlite", &ALL_PARAMS, &[&usual, more].concat())
}

static BENCH: Bench = Bench {
    target: SqliteOrders::TARGET,
    settings: small,
    connect: |file| Box::new(File::new(file, &small(&[]), &Stop::new()).unwrap().work().unwrap()),
};

#[test]
fn a_data_set_lives_is_run_on_and_each_fault_is_caught() {
    let place = Place::new();
    let file = &place.file();
    BENCH.loads(file, 1);
    BENCH.performs_every_transaction(file, "server");
    let new = "order_id > (select v from soe_baseline where k = 'ord_max')";
    let faults: [(&str, String, &[&str]); 5] = [
        (
            "double ship",
            "update orders set order_status = 1 where order_id = (select max(order_id) from orders where order_status > 4)"
                .to_owned(),
            &["C17"],
        ),
        (
            "lost line",
            format!("delete from order_items where rowid = (select max(rowid) from order_items where {new})"),
            &["C1", "C5"],
        ),
        ("changed total", "update orders set order_total = order_total + 1 where order_id = 1".to_owned(), &["C2"]),
        ("lost logon", "delete from logon where rowid = (select max(rowid) from logon)".to_owned(), &["C8"]),
        (
            "changed product",
            "update product_information set product_name = product_name || 'x' where product_id = 7".to_owned(),
            &["C16"],
        ),
    ];
    catches(&mut *(BENCH.connect)(file), &Named, faults);
    BENCH.tell_stranger(file);
    assert!(!SqliteOrders::TARGET.heeds("ORDERS_FORM") && SqliteOrders::TARGET.heeds("SQLITE_CACHE_MB"));
    SqliteOrders::TARGET.destroy(file, &small(&[])).unwrap();
    assert_eq!(place.names(), [""; 0]);
    assert!(told_by(BENCH.check(file, &[])).contains("has no data set of order entry"));
}

impl Bench {
    fn tell_stranger(&self, file: &str) {
        (self.connect)(file).tell("create table payroll (a)", "").unwrap();
        self.leaves_alone(file, "table payroll");
        (self.connect)(file).tell("drop table payroll", "").unwrap();
    }
}

#[test]
fn a_load_that_was_cut_short_is_finished_as_it_was_begun() {
    let place = Place::new();
    let file = &place.file();
    let stop = Stop::new();
    stop.request();
    let cut = SqliteOrders::TARGET.prepare(file, &small(&[]), 1, &stop, &Unwatched);
    assert!(matches!(cut, Err(EngineError::Interrupted)), "{cut:?}");
    let absent = SqliteOrders::TARGET.inspect(file, &small(&[])).unwrap();
    assert!(matches!(absent, Presence::Absent { .. }), "{absent:?}");
    let at = File::new(file, &small(&[]), &Stop::new()).unwrap();
    let marker = Marker::asked(&small(&[])).unwrap();
    let db = at.work().unwrap();
    if find(&db, &at).unwrap().is_none() {
        crate::sqlite::marker::begin(&db, &at, 8192).unwrap();
        db.atomic(&ddl::create(&marker).join("; ")).unwrap();
    }
    drop(db);
    let other = told_by(BENCH.prepare(file, &[("ORDERS_SCALE", ".003")]));
    assert!(other.contains("ORDERS_SCALE asks for another"), "{other}");
    BENCH.prepare(file, &[]).unwrap();
    assert_eq!(BENCH.check(file, &[]).unwrap().len(), 18);
    // A data set of SLOB is not looked for beside it.
    let slob = crate::testing::settings_of("sqlite", params::PARAMS, &[]);
    assert!(told_by(Sqlite::TARGET.inspect(file, &slob)).contains("nothing was touched"));
}
