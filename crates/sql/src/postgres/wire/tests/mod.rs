//! The wire against a real server.

mod failures;
mod login;
mod psql;
mod server;
mod tls;

use super::{Bind, Connection};
use crate::testing::until;
use server::{PASSWORD, shared};
use std::sync::atomic::{AtomicBool, Ordering};

fn encoded() -> String {
    PASSWORD.bytes().map(|byte| format!("%{byte:02x}")).collect()
}

/// The one value of a statement.
fn value(connection: &mut Connection, sql: &str) -> String {
    let rows = connection.query(sql).expect("the statement is right").rows;
    rows[0][0].clone().expect("not NULL")
}

#[test]
fn every_way_of_logging_in_with_a_password_works() {
    let Some(server) = shared() else { return };
    for role in ["md5role", "scram", "clear"] {
        let given = server.tcp(role, &format!("password={}", encoded()));
        let mut session = Connection::open(&given).unwrap_or_else(|why| panic!("{role}: {why}"));
        assert_eq!(value(&mut session, "select current_user"), role);
        session.close();
    }
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("trust");
    assert_eq!(value(&mut session, "select current_user"), "trusted");
}

#[test]
fn prepared_statements_take_and_give_binary_values() {
    let Some(server) = shared() else { return };
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("trust");
    let sum = session
        .prepare("select $1 + $2, $3::text, null::int8 from generate_series(1, cardinality($4))", &[20, 23, 25, 1016])
        .expect("right");
    let mut seen = Vec::new();
    let touched = session
        .execute(
            &sum,
            &[Bind::Int8(1 << 40), Bind::Int4(-1), Bind::Text("abc"), Bind::Int8s(&[1, 2, 3])],
            &mut |values| seen.push(values.iter().map(|value| value.map(<[u8]>::to_vec)).collect::<Vec<_>>()),
        )
        .expect("right");
    assert_eq!(touched, 3);
    let row = vec![Some(((1_i64 << 40) - 1).to_be_bytes().to_vec()), Some(b"abc".to_vec()), None];
    assert_eq!(seen, [row.clone(), row.clone(), row]);
}

#[test]
fn a_refused_statement_leaves_the_session_usable() {
    let Some(server) = shared() else { return };
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("trust");
    let refused = session.query("select 1/0").expect_err("by zero");
    assert_eq!(refused.code(), Some("22012"));
    assert!(!refused.is_fatal());
    let half = session.prepare("select 1/$1", &[23]).expect("right");
    let refused = session.execute(&half, &[Bind::Int4(0)], &mut |_| {}).expect_err("by zero");
    assert_eq!(refused.code(), Some("22012"));
    assert_eq!(session.prepare("selec", &[]).expect_err("no SQL").code(), Some("42601"));
    assert_eq!(value(&mut session, "select 7"), "7");
}

#[test]
fn rows_go_in_by_copy_and_a_broken_copy_leaves_nothing() {
    let Some(server) = shared() else { return };
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("trust");
    session.query("create temp table t(a int8)").expect("right");
    let mut copy = session.copy_in("copy t from stdin").expect("right");
    for number in 0..100_000 {
        copy.send(format!("{number}\n").as_bytes()).expect("right");
    }
    assert_eq!(copy.finish().expect("right"), 100_000);
    let copy = session.copy_in("copy t from stdin").expect("right");
    copy.abort("not today").expect("right");
    let mut copy = session.copy_in("copy t from stdin").expect("right");
    copy.send(b"no number\n").expect("sent");
    assert_eq!(copy.finish().expect_err("no number").code(), Some("22P02"));
    assert_eq!(session.copy_in("copy absent from stdin").expect_err("absent").code(), Some("42P01"));
    assert_eq!(value(&mut session, "select count(*) from t"), "100000");
}

#[test]
fn a_statement_is_cancelled_from_another_thread_also_over_tls() {
    let Some(server) = shared() else { return };
    let plain = server.options("?user=trusted&dbname=postgres");
    let secured = server.tcp("overtls", &format!("password={}&sslmode=require", encoded()));
    for options in [plain, secured] {
        let mut session = Connection::open(&options).expect("it may");
        let token = session.cancel_token();
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // Until the statement has begun there is nothing to cancel: then it is asked again.
            scope.spawn(|| {
                until("the end of the statement", || {
                    token.cancel().expect("the server is there");
                    over.load(Ordering::Acquire)
                });
            });
            let cancelled = session.query("select pg_sleep(600)");
            over.store(true, Ordering::Release);
            assert_eq!(cancelled.expect_err("cancelled").code(), Some("57014"));
        });
    }
}

#[test]
fn sessions_say_who_they_are_and_what_they_talk_to() {
    let Some(server) = shared() else { return };
    let url =
        "?user=trusted&dbname=postgres&application_name=mine&options=-c%20work_mem%3D77kB&max_protocol_version=3.2";
    let mut session = server.connect(url).expect("it may");
    assert_eq!(value(&mut session, "show application_name"), "mine");
    assert_eq!(value(&mut session, "show work_mem"), "77kB");
    assert_eq!(value(&mut session, "show client_encoding"), "UTF8");
    let pid = value(&mut session, "select pg_backend_pid()");
    assert_eq!(session.backend_pid().to_string(), pid);
    let number = value(&mut session, "show server_version_num");
    let (major, _) = session.server_version().expect("told");
    assert_eq!(number[..2], major.to_string());
    assert!(!session.in_recovery().expect("answered"));
    assert!(!session.is_read_only().expect("answered"));
}
