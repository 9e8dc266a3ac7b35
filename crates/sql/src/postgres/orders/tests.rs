//! Order entry on a real server: one small data set, made once, which runs, faults and the other form share.

use super::*;
use crate::orders::testing::{Bench, catches, holds, ran, verdicts};
use crate::postgres::testing::{self, Server};
use crate::testing::settings_of;
use assay_measure::clock::NS_PER_S;
use assay_orders::checks::BROKEN;
use assay_orders::model::Table;
use assay_run::engine::{LineValue, Presence};
use std::sync::OnceLock;
use std::time::Duration;

const SCALE: &str = ".002";

fn settings(given: &[(&str, &str)]) -> Settings {
    let usual = [("ORDERS_SCALE", SCALE), ("SEED", "7"), ("CONNECT_RATE", "1000")];
    let said: Vec<(&str, &str)> = usual.iter().chain(given).copied().collect();
    settings_of("postgres", &ALL_PARAMS, &said)
}

fn connection(place: &str) -> Connection {
    Connection::open(&own::options(&Place::new(place).unwrap()).unwrap()).unwrap()
}

const BENCH: Bench = Bench { target: PostgresOrders::TARGET, settings, connect: |place| Box::new(connection(place)) };

/// Rows and checksums of all tables, without what is told by the clock or dealt by a sequence.
fn sums(place: &str) -> Vec<String> {
    let sql = [
        "select count(*), sum(order_total), sum(order_status), sum(warehouse_id), sum(customer_id), sum(cost_of_delivery), \
         sum(coalesce(card_id, 0)), sum(coalesce(delivery_address_id, 0)) from assay_orders.orders",
        "select count(*), sum(quantity), sum(unit_price), sum(product_id * line_item_id) from assay_orders.order_items",
        "select sum(quantity_on_hand * warehouse_id::numeric * product_id) from assay_orders.inventories",
        "select count(*), sum(preferred_address), sum(credit_limit), sum(ascii(cust_last_name)) from assay_orders.customers",
        "select count(*), sum(customer_id), sum(ascii(town)), sum(char_length(house_no_or_name)) from assay_orders.addresses",
        "select count(*), sum(card_number), sum(security_code) from assay_orders.card_details",
        "select count(*), sum(customer_id) from assay_orders.logon",
    ];
    let mut connection = connection(place);
    let row = |sql: &str| format!("{:?}", connection.query(sql).unwrap().rows);
    sql.map(row).to_vec()
}

fn server() -> Option<&'static Server> {
    testing::server(15)
}

/// A database of this name with a whole data set as it is loaded: made once, by one thread, and copied for each test that
/// does not ask how it was loaded. What takes the first rows takes them as they lie, which loading threads decide
/// between them.
fn loaded(server: &Server, name: &str) -> String {
    static LOADED: OnceLock<()> = OnceLock::new();
    LOADED.get_or_init(|| {
        let place = server.database("orders_loaded");
        BENCH.prepare(&place, &[("LOAD_PARALLEL_DEGREE", "1")]).unwrap();
    });
    server.copy("orders_loaded", name)
}

#[test]
fn a_data_set_lives_is_run_on_and_each_fault_is_caught() {
    let Some(server) = server() else { return };
    let place = &server.database("orders_life");
    BENCH.loads(place, 2);
    for form in ["server", "client"] {
        BENCH.performs_every_transaction(place, form);
    }
    a_rate_is_kept(place);
    others_take_over_what_a_blocked_session_leaves(place);
    faults(place);
    // After the faults: what is in doubt is allowed to be missing.
    a_logon_is_committed_on_its_own_where_that_is_asked_for(place);
    strangers_are_left_alone(place);
    PostgresOrders::TARGET.destroy(place, &settings(&[])).unwrap();
    let left = connection(place).query("select 1 from pg_namespace where nspname = 'assay_orders'").unwrap();
    assert!(left.rows.is_empty());
}

fn a_logon_is_committed_on_its_own_where_that_is_asked_for(place: &str) {
    for form in ["server", "client"] {
        let early = [
            ("ORDERS_MIX", "classic"),
            ("ORDERS_FORM", form),
            ("SESSIONS", "4"),
            ("WORK_LOOP", "60"),
            ("COMMIT_LOGON", "TRUE"),
        ];
        let (data, part) = BENCH.run(place, &early, &[]);
        assert_eq!(part.ledger.commits, 240, "{:?}", data.drained.driver.errors);
        holds(&part);
        let refuse = [
            "create or replace function public.refuse() returns trigger language plpgsql as $$ begin raise 'refused'; end $$",
            "create trigger refuse before insert on assay_orders.orders for each row execute function public.refuse()",
        ];
        let allow = "drop trigger refuse on assay_orders.orders";
        BENCH.commits_logons_where_asked(place, form, &refuse, allow);
    }
}

fn a_rate_is_kept(place: &str) {
    let given = [("RATE", "200"), ("ARRIVALS", "poisson"), ("SESSIONS", "8"), ("WORK_LOOP", "25")];
    let (data, part) = BENCH.run(place, &given, &[]);
    assert_eq!(part.ledger.commits, 200);
    let later = |op: &assay_measure::snapshot::OpReading| op.response.sum_ns() >= op.service.sum_ns();
    assert!(data.drained.driver.ops.iter().all(later), "a response begins when it is due");
}

/// One session of four waits for a lock until the other three have performed more than their share.
fn others_take_over_what_a_blocked_session_leaves(place: &str) {
    let settings =
        settings(&[("RATE", "100"), ("SESSIONS", "4"), ("ORDERS_DISABLE", "NCR,UCD,BP,PO,BO"), ("VERIFY", "FALSE")]);
    let mut holder = connection(place);
    // A trigger of the test's own, which the data set may have during the claim alone.
    let waits = [
        "create sequence public.turns",
        "create function public.wait_once() returns trigger language plpgsql as $$ begin \
         if nextval('public.turns') = 20 then perform pg_advisory_xact_lock(42); end if; return new; end $$",
        "create trigger wait_once before insert on assay_orders.orders for each row execute function public.wait_once()",
        "select pg_advisory_lock(42)",
    ];
    // Of 320 arrivals three sessions would have 240, had each session its own; most that come late are not needed.
    let hold = |mut holder: Connection| {
        // Where they do not take over, nothing more is done: a net, for the lock has to be let go.
        let net = Duration::from_secs(60);
        let (mut done, mut since) = (0, std::time::Instant::now());
        while done < 260 && since.elapsed() < net {
            std::thread::sleep(Duration::from_millis(20));
            let rows = holder.query("select last_value from public.turns").unwrap();
            let now = rows.rows[0][0].as_deref().unwrap().parse().unwrap();
            if std::mem::replace(&mut done, now) != now {
                since = std::time::Instant::now();
            }
        }
        holder.query("select pg_advisory_unlock(42)").unwrap();
        done
    };
    let mut holding = None;
    let act = || {
        for sql in waits {
            holder.query(sql).unwrap();
        }
        holding = Some(std::thread::spawn(move || hold(holder)));
    };
    let (data, _) = ran(PostgresOrders::TARGET, place, &settings, 16 * NS_PER_S / 5, act);
    let holding = holding.expect("the run was opened");
    let done: u64 = holding.join().unwrap();
    assert!(done >= 260, "{done} of 320 while one session waited");
    let fewest = data.per_session.iter().map(|session| session.ops).min();
    // With a queue of its own each session has a quarter of the arrivals, whatever the others do.
    assert!(fewest < Some(320 / 4), "{:?}", data.per_session);
    // The blocked transaction alone was late for long: what came meanwhile did not wait for it.
    let op = &data.drained.driver.ops[0];
    assert!(op.response.max_ns() >= op.service.max_ns());
    let sql =
        "drop trigger wait_once on assay_orders.orders; drop function public.wait_once(); drop sequence public.turns";
    connection(place).query(sql).unwrap();
}

fn faults(place: &str) {
    let new = "order_id > (select v from soe_baseline where k = 'ord_max')";
    let faults: [(&str, String, &[&str]); 10] = [
        ("double ship", "update orders set order_status = 1 where order_id = (select max(order_id) from orders where order_status > 4)".to_owned(), &["C17"]),
        ("lost line", format!("delete from order_items where ctid = (select ctid from order_items where {new} limit 1)"), &["C1", "C5"]),
        ("lost order", format!("delete from orders where order_id = (select max(order_id) from orders where {new})"), &["C7"]),
        ("lost update of stock", "update inventories set quantity_on_hand = quantity_on_hand + 1 where product_id = 5 and warehouse_id = 5".to_owned(), &["C5"]),
        ("changed total", "update orders set order_total = order_total + 1 where order_id = 1".to_owned(), &["C2"]),
        ("wrong sum", format!("update orders set order_total = order_total + 1 where order_id = (select max(order_id) from orders where {new})"), &["C1"]),
        ("lost card", "delete from card_details where card_id = (select max(card_id) from card_details)".to_owned(), &["C8", "C9"]),
        ("lost logon", "delete from logon where logon_id = (select max(logon_id) from logon)".to_owned(), &["C8"]),
        ("torn order", format!("update order_items set unit_price = unit_price + 1 where ctid = (select ctid from order_items where {new} limit 1)"), &["C1", "C14"]),
        ("changed product", "update product_information set list_price = list_price + 1 where product_id = (select product_id from product_information p where not exists (select 1 from order_items i where i.product_id = p.product_id and i.order_id > (select v from soe_baseline where k = 'ord_max')) limit 1)".to_owned(), &["C16"]),
    ];
    let names = named(&settings(&[])).unwrap();
    let mut connection = connection(place);
    connection.query("set search_path = assay_orders").unwrap();
    catches(&mut connection, &names, faults);
}

fn strangers_are_left_alone(place: &str) {
    let mut connection = connection(place);
    connection.query("create table assay_orders.mine (a int)").unwrap();
    BENCH.leaves_alone(place, "mine");
    connection.query("drop table assay_orders.mine").unwrap();
    connection.query("create schema theirs").unwrap();
    let theirs = [("ORDERS_SCHEMA", "theirs")];
    let error = BENCH.prepare(place, &theirs).unwrap_err().to_string();
    assert!(error.contains("assay did not make it"), "{error}");
}

#[test]
fn both_forms_leave_the_same_rows_for_the_same_seed() {
    let Some(server) = server() else { return };
    let left = ["server", "client"].map(|form| {
        let place = loaded(server, &format!("orders_{form}"));
        let given = [("ORDERS_MIX", "classic"), ("ORDERS_FORM", form), ("SESSIONS", "1"), ("WORK_LOOP", "400")];
        let (_, part) = BENCH.run(&place, &given, &[]);
        (sums(&place), part.ledger)
    });
    assert_eq!(left[0], left[1]);
}

#[test]
fn a_load_that_was_cut_short_is_finished_as_it_was_begun() {
    let Some(server) = server() else { return };
    let place = &loaded(server, "orders_resumed");
    // As if it had been killed after some pieces and some keys.
    let mut connection = connection(place);
    let names = named(&settings(&[])).unwrap();
    let mut marker = marker::find(&mut connection, &names).unwrap().unwrap();
    marker.complete = false;
    let torn = [
        marker::sql(&marker, &names),
        "alter table assay_orders.order_items drop constraint order_items_pk".to_owned(),
        "delete from assay_orders.order_items".to_owned(),
        "delete from assay_orders.soe_load where tbl = 'order_items'".to_owned(),
    ];
    all(&mut connection, &torn, "tearing").unwrap();
    let absent = PostgresOrders::TARGET.inspect(place, &settings(&[])).unwrap();
    assert!(matches!(absent, Presence::Absent { .. }), "{absent:?}");
    let other = BENCH.prepare(place, &[("ORDERS_SCALE", ".003")]).unwrap_err().to_string();
    assert!(other.contains("ORDERS_SCALE asks for another"), "{other}");
    let summary = BENCH.prepare(place, &[]).unwrap();
    let resumed = summary.iter().find(|line| line.key == "resumed_rows");
    assert!(resumed.is_some(), "{summary:?}");
    let checked = BENCH.check(place, &[]).unwrap();
    assert_eq!(checked.len(), 18);
    // What is not what was generated is told by its table.
    connection.query("update assay_orders.customers set credit_limit = 1 where customer_id = 1").unwrap();
    let wanted = (2000, 0);
    let error = crate::orders::load::compare(&mut connection, &names, Table::Customers, wanted).unwrap_err();
    assert!(error.to_string().contains("table customers: 2000 rows"), "{error}");
}

#[test]
fn deadlocks_and_serialization_failures_are_attempted_again_and_counted_by_transaction() {
    let Some(server) = server() else { return };
    let place = &loaded(server, "orders_deadlock");
    // A trigger of a test's own, which the data set may not have during the claim: it fails updates as a deadlock and
    // as a serialization failure would, before anything else is refused.
    let given = [("SESSIONS", "2"), ("WORK_LOOP", "120"), ("ORDERS_MIX", "classic")];
    let clashes = [
        // Each session has five numbers of its own at a time: none fails twice running.
        "create sequence public.tries cache 5",
        "create function public.clash() returns trigger language plpgsql as $$ begin \
         case nextval('public.tries') % 5 when 1 then raise exception 'clash' using errcode = '40P01'; \
         when 3 then raise exception 'order' using errcode = '40001'; else return new; end case; end $$",
        "create trigger clash before update on assay_orders.orders for each row execute function public.clash()",
    ];
    let (data, part) = BENCH.run(place, &given, &clashes);
    let by_kind = &data.drained.driver.by_kind;
    for class in ["deadlock", "serialization"] {
        let key = format!("retried order_products {class}");
        assert!(by_kind.get(&key).is_some_and(|n| *n > 0), "{by_kind:?}");
    }
    assert_eq!(data.drained.driver.ops_ended(), 240, "{by_kind:?}");
    assert_eq!(part.ledger.rollbacks, data.drained.driver.retries);
    holds(&part);
}

#[test]
fn a_data_set_with_partitions_is_loaded_resumed_run_on_checked_and_removed() {
    let Some(server) = server() else { return };
    let place = &server.database("orders_hash");
    let hash = [("ORDERS_PARTITIONS", "hash"), ("ORDERS_PARTITION_COUNT", "4")];
    let composite = BENCH.prepare(place, &[("ORDERS_PARTITIONS", "composite")]).unwrap_err();
    assert!(composite.to_string().contains("not supported"), "{composite}");
    let planned = PostgresOrders::TARGET.plan_prepare(place, &settings(&hash), 1).unwrap();
    let told = planned.iter().find(|line| line.key == "partitions").unwrap();
    assert_eq!(told.value, LineValue::Text("hash, 4 of each table that grows".to_owned()));
    BENCH.prepare(place, &hash).unwrap();
    let mut connection = connection(place);
    let cut = "select count(distinct inhparent), count(*) from pg_inherits i join pg_class c on c.oid = i.inhrelid \
               where c.relkind = 'r'";
    let number = |text: &str| Some(text.to_owned());
    assert_eq!(connection.query(cut).unwrap().rows, [[number("6"), number("24")]]);
    // As if it had been killed after some pieces and all keys.
    let names = named(&settings(&[])).unwrap();
    let mut marker = marker::find(&mut connection, &names).unwrap().unwrap();
    assert_eq!(marker.partitions, 4);
    marker.complete = false;
    let torn = [
        marker::sql(&marker, &names),
        "delete from assay_orders.order_items".to_owned(),
        "delete from assay_orders.soe_load where tbl = 'order_items'".to_owned(),
    ];
    all(&mut connection, &torn, "tearing").unwrap();
    let other = BENCH.prepare(place, &[("ORDERS_PARTITIONS", "none")]).unwrap_err().to_string();
    assert!(other.contains("ORDERS_PARTITIONS asks for another"), "{other}");
    BENCH.prepare(place, &[]).unwrap();
    let references = "select count(*) from pg_constraint where contype = 'f' and conparentid = 0";
    assert_eq!(connection.query(references).unwrap().rows, [[number("7")]]);
    for form in ["server", "client"] {
        let given = [
            ("ORDERS_MIX", "classic"),
            ("ORDERS_FORM", form),
            ("SESSIONS", "4"),
            ("WORK_LOOP", "60"),
            ("ORDERS_PARTITIONS", "hash"),
        ];
        let (data, part) = BENCH.run(place, &given, &[]);
        assert_eq!(part.ledger.commits, 240, "{:?}", data.drained.driver.errors);
        assert_eq!(part.partitions, 4);
        holds(&part);
    }
    let refused = PostgresOrders::TARGET
        .share(place, &settings(&[("ORDERS_PARTITIONS", "none")]))
        .err()
        .map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("ORDERS_PARTITIONS asks for another")));
    // A line that is lost from a partition is missed as it is from a whole table.
    connection
        .query("delete from assay_orders.order_items where order_id = (select max(order_id) from assay_orders.order_items)")
        .unwrap();
    let checked = books::check(&mut connection, &names).unwrap();
    assert_eq!(verdicts(&checked, BROKEN)[..2], ["C1", "C5"]);
    PostgresOrders::TARGET.destroy(place, &settings(&[])).unwrap();
    let left = "select 1 from pg_class where relname like 'orders%'";
    assert!(connection.query(left).unwrap().rows.is_empty());
}
