//! Order entry on real servers of both products: one small data set, made once, which runs, faults and a deadlock share.

use super::*;
use crate::mariadb::tests::Server;
use crate::mariadb::tests::mysql::MySql;
use crate::orders::testing::{Bench, catches, holds};
use crate::testing::settings_of;
use assay_orders::mix::Tx;
use assay_run::engine::{LineValue, Presence};

const SCALE: &str = ".002";

pub(super) fn settings(given: &[(&str, &str)]) -> Settings {
    let usual = [("ORDERS_SCALE", SCALE), ("SEED", "7"), ("CONNECT_RATE", "1000"), ("ORDERS_FORM", "client")];
    let said: Vec<(&str, &str)> = usual.iter().chain(given).copied().collect();
    settings_of("mysql", &ALL_PARAMS, &said)
}

// A load has 900,000 rows of stock however small its scale is: what differs little between the products is tested on one of them
// each time, on the other with `./test.sh --long`.

/// On a MariaDB that is there.
fn on_mariadb(test: fn(&Server)) {
    if let Some(server) = Server::shared() {
        test(server);
    }
}

/// On a MySQL that is there.
fn on_mysql(test: fn(&Server)) {
    if let Some(mysql) = MySql::shared() {
        test(&mysql.server);
    }
}

fn connection(place: &str) -> Connection {
    let at = MariadbOrders::at(&Mariadb::SLOB, place, &settings(&[]), &Stop::new());
    Connection::open(&at.unwrap().0).unwrap()
}

const BENCH: Bench = Bench { target: MariadbOrders::TARGET, settings, connect: |place| Box::new(connection(place)) };

#[test]
fn a_data_set_lives_is_run_on_and_each_fault_is_caught() {
    on_mariadb(lives);
}

#[test]
fn on_mysql_a_data_set_lives_is_run_on_and_each_fault_is_caught() {
    on_mysql(lives);
}

fn lives(server: &Server) {
    let url = server.database("orders_way");
    connection(&url).run("set global local_infile = 1").unwrap();
    let place = &server.database("orders_life");
    BENCH.loads(place, 2);
    for form in ["server", "client"] {
        BENCH.performs_every_transaction(place, form);
    }
    faults(place);
    attempted_again(place);
    // After the faults: what is in doubt is allowed to be missing.
    for form in ["server", "client"] {
        let refuse = "create trigger assay_orders.refuse before insert on assay_orders.orders for each row \
                      signal sqlstate '45000' set message_text = 'refused'";
        let allow = "drop trigger assay_orders.refuse";
        BENCH.commits_logons_where_asked(place, form, &[refuse], allow);
    }
    strangers_are_left_alone(place);
    MariadbOrders::TARGET.destroy(place, &settings(&[])).unwrap();
    let left =
        connection(place).rows("select 1 from information_schema.schemata where schema_name = 'assay_orders'").unwrap();
    assert!(left.is_empty());
}

fn faults(place: &str) {
    let new = "order_id > (select v from soe_baseline where k = 'ord_max')";
    let faults: [(&str, String, &[&str]); 10] = [
        (
            "double ship",
            "update orders set order_status = 1 where order_status > 4 order by order_id desc limit 1".to_owned(),
            &["C17"],
        ),
        ("lost line", format!("delete from order_items where {new} limit 1"), &["C1", "C5"]),
        ("lost order", format!("delete from orders where {new} order by order_id desc limit 1"), &["C7"]),
        (
            "lost update of stock",
            "update inventories set quantity_on_hand = quantity_on_hand + 1 where product_id = 5 and warehouse_id = 5"
                .to_owned(),
            &["C5"],
        ),
        ("changed total", "update orders set order_total = order_total + 1 where order_id = 1".to_owned(), &["C2"]),
        (
            "wrong sum",
            format!("update orders set order_total = order_total + 1 where {new} order by order_id desc limit 1"),
            &["C1"],
        ),
        ("lost card", "delete from card_details order by card_id desc limit 1".to_owned(), &["C8", "C9"]),
        ("lost logon", "delete from logon order by logon_id desc limit 1".to_owned(), &["C8"]),
        (
            "torn order",
            format!("update order_items set unit_price = unit_price + 1 where {new} limit 1"),
            &["C1", "C14"],
        ),
        (
            "changed product",
            format!(
                "update product_information set list_price = list_price + 1 where product_id not in (select i.product_id from order_items i where i.{new}) limit 1"
            ),
            &["C16"],
        ),
    ];
    let names = named(&settings(&[])).unwrap();
    let mut connection = connection(place);
    connection.run("use assay_orders").unwrap();
    // A sequence takes part in no transaction: it cannot be set back for a moment.
    let behind = "update orders_seq set next_not_cached_value = 2860";
    let behind = ("sequence behind", behind.to_owned(), &["C11"][..]);
    let sequence = (!connection.product.has_sequences()).then_some(behind);
    catches(&mut connection, &names, faults.into_iter().chain(sequence));
}

fn strangers_are_left_alone(place: &str) {
    let mut connection = connection(place);
    connection.run("create table assay_orders.mine (a int)").unwrap();
    BENCH.leaves_alone(place, "mine");
    connection.run("drop table assay_orders.mine").unwrap();
    connection.run("drop database if exists theirs").unwrap();
    connection.run("create database theirs").unwrap();
    if !connection.product.comments_databases() {
        // As a prepare leaves it that was killed before it could mark it.
        let empty = settings(&[("ORDERS_SCHEMA", "theirs")]);
        let presence = MariadbOrders::TARGET.inspect(place, &empty).unwrap();
        assert!(matches!(presence, Presence::Absent { harmless: false }));
    }
    connection.run("create table theirs.a (a int)").unwrap();
    let theirs = [("ORDERS_SCHEMA", "theirs")];
    let error = BENCH.prepare(place, &theirs).unwrap_err().to_string();
    assert!(error.contains("assay did not make it"), "{error}");
}

/// Rows and checksums of all tables, without what is told by the clock or dealt by a sequence.
fn sums(place: &str, database: &str) -> Vec<String> {
    let sql = [
        "select count(*), sum(order_total), sum(order_status), sum(warehouse_id), sum(customer_id), sum(cost_of_delivery), \
         sum(coalesce(card_id, 0)), sum(coalesce(delivery_address_id, 0)) from {database}.orders",
        "select count(*), sum(quantity), sum(unit_price), sum(product_id * line_item_id) from {database}.order_items",
        "select sum(quantity_on_hand * warehouse_id * product_id) from {database}.inventories",
        "select count(*), sum(preferred_address), sum(credit_limit), sum(ascii(cust_last_name)) from {database}.customers",
        "select count(*), sum(customer_id), sum(ascii(town)), sum(char_length(house_no_or_name)) from {database}.addresses",
        "select count(*), sum(card_number), sum(security_code) from {database}.card_details",
        "select count(*), sum(customer_id) from {database}.logon",
    ];
    let mut connection = connection(place);
    let row = |sql: &str| format!("{:?}", connection.rows(&sql.replace("{database}", database)).unwrap());
    sql.map(row).to_vec()
}

#[test]
fn a_setting_that_would_do_nothing_is_not_heeded() {
    for (name, heeded) in [("MYSQL_GRACE", true), ("DRIVER_THREADS", false), ("READ_MODE", false)] {
        assert_eq!(MariadbOrders::TARGET.heeds(name), heeded, "{name}");
    }
}

#[test]
fn both_forms_leave_the_same_rows_for_the_same_seed_however_they_were_loaded() {
    on_mariadb(both_forms);
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn on_mysql_both_forms_leave_the_same_rows_for_the_same_seed_however_they_were_loaded() {
    on_mysql(both_forms);
}

fn both_forms(server: &Server) {
    let place = &server.database("orders_forms");
    let left = [("server", "assay_orders_server"), ("client", "assay_orders_client")].map(|(form, database)| {
        let given = [
            ("ORDERS_SCHEMA", database),
            ("ORDERS_MIX", "classic"),
            ("ORDERS_FORM", form),
            ("SESSIONS", "1"),
            ("WORK_LOOP", "400"),
        ];
        match form {
            "client" => torn(place),
            _ => drop(BENCH.prepare(place, &given).unwrap()),
        }
        let (_, part) = BENCH.run(place, &given, &[]);
        (sums(place, database), part.ledger)
    });
    assert_eq!(left[0], left[1]);
    // A derived table with a long text is a file on the server's disk, at a millisecond each.
    let mut connection = connection(place);
    let call = procedures::name(Tx::BrowseProducts);
    connection.run(&format!("call assay_orders_server.{call}('00010002', 2, 0, 0)")).unwrap();
    let made = "show session status where variable_name in ('Created_tmp_tables', 'Created_tmp_disk_tables')";
    let made: Vec<Option<String>> = connection.rows(made).unwrap().concat();
    let is = ["Created_tmp_disk_tables", "0", "Created_tmp_tables", "2"];
    assert_eq!(made, is.map(|text| Some(text.to_owned())));
}

/// Deadlocks and lock waits are attempted again and counted by transaction.
fn attempted_again(place: &str) {
    let given = [("SESSIONS", "2"), ("WORK_LOOP", "120"), ("ORDERS_MIX", "classic")];
    // A trigger of a test's own, which the data set may not have when it is claimed: it fails as a deadlock and as a lock
    // wait would.
    let trigger = "create trigger assay_orders.clash before update on assay_orders.orders for each row begin \
         set @tries = coalesce(@tries, 0) + 1; \
         if @tries % 5 = 1 then signal sqlstate '40001' set mysql_errno = 1213, message_text = 'clash'; end if; \
         if @tries % 5 = 3 then signal sqlstate 'HY000' set mysql_errno = 1205, message_text = 'wait'; end if; end";
    let (data, part) = BENCH.run(place, &given, &[trigger]);
    let by_kind = &data.drained.driver.by_kind;
    assert!(by_kind["retried order_products deadlock"] > 0, "{by_kind:?}");
    assert!(by_kind["retried order_products lock timeout"] > 0, "{by_kind:?}");
    assert_eq!(data.drained.driver.ops_ended(), 240, "{by_kind:?}");
    assert_eq!(part.ledger.rollbacks, data.drained.driver.retries);
    holds(&part);
    connection(place).run("drop trigger assay_orders.clash").unwrap();
}

/// Rows go as inserts where the server takes no files; a load that was torn is finished.
fn torn(place: &str) {
    let given = [("ORDERS_SCHEMA", "assay_orders_client"), ("MYSQL_LOAD", "insert")];
    BENCH.prepare(place, &given).unwrap();
    // As if it had been killed after some pieces.
    let mut connection = connection(place);
    let names = named(&settings(&given)).unwrap();
    let mut marker = marker::find(&mut connection, &names).unwrap().unwrap();
    marker.complete = false;
    let torn = [
        marker::write_sql(&marker, &names, connection.product),
        "delete from assay_orders_client.order_items".to_owned(),
        "delete from assay_orders_client.soe_load where tbl = 'order_items'".to_owned(),
    ];
    all(&mut connection, &torn, "tearing").unwrap();
    let other = [("ORDERS_SCHEMA", "assay_orders_client"), ("ORDERS_SCALE", ".003")];
    let other = BENCH.prepare(place, &other).unwrap_err().to_string();
    assert!(other.contains("ORDERS_SCALE asks for another"), "{other}");
    let summary = BENCH.prepare(place, &given).unwrap();
    assert!(summary.iter().any(|line| line.key == "resumed_rows"), "{summary:?}");
    let checked = BENCH.check(place, &given).unwrap();
    assert_eq!(checked.len(), 18);
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn a_data_set_with_partitions_is_loaded_resumed_run_on_checked_and_removed() {
    on_mariadb(partitioned);
}

#[test]
fn on_mysql_a_data_set_with_partitions_is_loaded_resumed_run_on_checked_and_removed() {
    on_mysql(partitioned);
}

fn partitioned(server: &Server) {
    let place = &server.database("orders_hash");
    let own = |given: &[(&'static str, &'static str)]| [&[("ORDERS_SCHEMA", "assay_orders_hash")], given].concat();
    let hash = own(&[("ORDERS_PARTITIONS", "hash"), ("ORDERS_PARTITION_COUNT", "4")]);
    let planned = MariadbOrders::TARGET.plan_prepare(place, &settings(&hash), 1).unwrap();
    let told = planned.iter().find(|line| line.key == "references").unwrap();
    assert_eq!(told.value, LineValue::Text(NO_REFERENCES.to_owned()));
    BENCH.prepare(place, &hash).unwrap();
    let names = named(&settings(&hash)).unwrap();
    let mut control = connection(place);
    let number = |control: &mut Connection, sql: &str| control.number(sql).unwrap();
    let cut = "select count(*) from information_schema.partitions where table_schema = 'assay_orders_hash' and \
               partition_method = 'HASH'";
    assert_eq!(number(&mut control, cut), 24);
    let references =
        "select count(*) from information_schema.referential_constraints where constraint_schema = 'assay_orders_hash'";
    assert_eq!(number(&mut control, references), 3);
    // As if it had been killed after some pieces and all keys.
    let mut marker = marker::find(&mut control, &names).unwrap().unwrap();
    assert_eq!(marker.partitions, 4);
    marker.complete = false;
    let torn = [
        marker::write_sql(&marker, &names, control.product),
        "delete from assay_orders_hash.order_items".to_owned(),
        "delete from assay_orders_hash.soe_load where tbl = 'order_items'".to_owned(),
    ];
    all(&mut control, &torn, "tearing").unwrap();
    BENCH.prepare(place, &own(&[])).unwrap();
    for form in ["server", "client"] {
        let given = own(&[("ORDERS_MIX", "classic"), ("ORDERS_FORM", form), ("SESSIONS", "4"), ("WORK_LOOP", "60")]);
        let (data, part) = BENCH.run(place, &given, &[]);
        assert_eq!(part.ledger.commits, 240, "{:?}", data.drained.driver.errors);
        holds(&part);
        assert!(data.engine_facts.iter().any(|fact| fact.value == NO_REFERENCES));
    }
    let refused = MariadbOrders::TARGET
        .share(place, &settings(&own(&[("ORDERS_PARTITIONS", "none")])))
        .err()
        .map(|error| error.to_string());
    assert!(refused.is_some_and(|text| text.contains("ORDERS_PARTITIONS asks for another")));
    MariadbOrders::TARGET.destroy(place, &settings(&own(&[]))).unwrap();
    let left = "select count(*) from information_schema.schemata where schema_name = 'assay_orders_hash'";
    assert_eq!(number(&mut control, left), 0);
}
