//! Each way a server says no is one line that tells where, why and the way out.

use super::encoded;
use super::server::{options, shared};
use crate::postgres::wire::{Connection, PgError};
use crate::testing::until;
use assay_run::engine::EngineError;
use std::io::{Read, Write};
use std::net::TcpListener;

/// The text of a refused connection: one line with every one of these words.
fn refused(options: &crate::postgres::conninfo::ConnectOptions, words: &[&str]) -> PgError {
    let error = Connection::open(options).expect_err("refused");
    let text = error.to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
    error
}

#[test]
fn who_may_not_connect_is_told_why_and_what_to_do() {
    let Some(server) = shared() else { return };
    let at = format!("127.0.0.1, port {}", server.port);
    for (role, more, code, words) in [
        ("scram", "password=wrong", "28P01", ["as scram to database postgres", "PGPASSWORD"]),
        ("md5role", "password=wrong", "28P01", ["md5role", "PGPASSWORD"]),
        ("unlisted", "", "28000", ["no pg_hba.conf entry", "reload"]),
        ("nologin", "", "28000", ["not permitted to log in", "CREATE ROLE"]),
        ("trusted", "dbname=absent", "3D000", ["absent", "createdb"]),
        ("plainly", "sslmode=require", "28000", ["no pg_hba.conf entry", "reload"]),
    ] {
        let error = refused(&server.tcp(role, more), &words);
        assert_eq!(error.code(), Some(code), "{error}");
        assert!(error.to_string().contains(&at), "{error}");
        assert!(!error.to_string().contains("wrong"), "the password: {error}");
        assert!(matches!(EngineError::from(error), EngineError::Unusable(_)));
    }
    refused(&server.tcp("scram", ""), &["password of scram", "PGPASSWORD"]);
}

#[test]
fn a_server_without_a_place_left_says_how_to_need_fewer() {
    let Some(server) = shared() else { return };
    let options = server.tcp("few", "");
    let first = Connection::open(&options).expect("one may");
    let error = refused(&options, &["too many connections", "max_connections", "-s, -t"]);
    assert_eq!(error.code(), Some("53300"));
    first.close();
}

#[test]
fn where_nobody_listens_is_named() {
    let free = assay_testkit::port::free_port();
    let port = free.to_string();
    let told = refused(&options(&format!("//u@127.0.0.1:{free}/")), &[&port, "no process listens", "listen_addresses"]);
    // Who is not there is not asked again without TLS.
    assert_eq!(told.to_string().matches("no process listens").count(), 1, "{told}");
    refused(&options(&format!("//u@/?host=/nowhere&port={free}")), &["/nowhere/.s.PGSQL", "is it running"]);
    refused(&options("//u@no.such.host.invalid/"), &["no.such.host.invalid", "cannot be resolved"]);
    // Every host of a list is told of.
    refused(
        &options(&format!("//u@127.0.0.1:{free},no.such.host.invalid/")),
        &["no process listens", "cannot be resolved"],
    );
}

#[test]
fn the_next_host_is_tried_where_one_does_not_answer() {
    let Some(server) = shared() else { return };
    let directory = server.directory.display();
    let port = server.port;
    let list = options(&format!("//trusted@/postgres?host=/nowhere,{directory}&port={port}"));
    Connection::open(&list).expect("the second answers").close();
}

#[test]
fn a_host_that_says_nothing_is_waited_for_no_longer_than_asked() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = silent.local_addr().expect("an address").port();
    for mode in ["disable", "require"] {
        let url = format!("//u@127.0.0.1:{port}/?connect_timeout=1&sslmode={mode}");
        refused(&options(&url), &["no answer within 1 s"]);
    }
}

/// Answers a startup as a server of some version would.
fn pretend(version: &'static str) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("we connect");
        let mut begin = [0; 1024];
        let _ = stream.read(&mut begin).expect("startup");
        let mut answer = vec![b'R', 0, 0, 0, 8, 0, 0, 0, 0];
        let told = format!("server_version\0{version}\0");
        answer.push(b'S');
        answer.extend((4 + told.len() as u32).to_be_bytes());
        answer.extend(told.bytes());
        answer.extend([b'K', 0, 0, 0, 12, 0, 0, 0, 1, 0, 0, 0, 2]);
        answer.extend([b'Z', 0, 0, 0, 5, b'I']);
        stream.write_all(&answer).expect("we read");
        let _ = stream.read(&mut begin);
    });
    port
}

#[test]
fn a_server_that_is_too_old_is_refused_and_a_newer_one_is_not() {
    for version in ["12.22 (Debian 12.22-1)", "9.6.24"] {
        let url = format!("//u@127.0.0.1:{}/?sslmode=disable", pretend(version));
        refused(&options(&url), &[version, "from 13 on"]);
    }
    let url = format!("//u@127.0.0.1:{}/?sslmode=disable", pretend("19devel"));
    let session = Connection::open(&options(&url)).expect("newer");
    assert_eq!(session.server_version(), Some((19, 0)));
}

#[test]
fn whatever_answers_that_is_no_server_is_refused() {
    for noise in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], b"S", b"N", b"\x00", b""] {
        for mode in ["prefer", "require", "disable"] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let port = listener.local_addr().expect("an address").port();
            // Answers every attempt until the process ends.
            std::thread::spawn(move || {
                for mut stream in listener.incoming().flatten() {
                    let _ = stream.read(&mut [0; 64]);
                    let _ = stream.write_all(noise);
                }
            });
            let url = format!("//u@127.0.0.1:{port}/?connect_timeout=120&sslmode={mode}");
            refused(&options(&url), &["127.0.0.1"]);
        }
    }
}

#[test]
fn what_the_server_says_last_is_what_is_told() {
    let Some(server) = shared() else { return };
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("it may");
    let pid = session.backend_pid();
    server.as_superuser(&format!("select pg_terminate_backend({pid}, 5000)"));
    let gone = session.query("select 1").expect_err("ended");
    assert_eq!(gone.code(), Some("57P01"), "{gone}");
    assert!(gone.is_fatal() && gone.to_string().contains("administrator"), "{gone}");
    let after = session.query("select 1").expect_err("ended");
    assert!(after.is_fatal(), "{after}");

    let sql = "set idle_session_timeout = 50; select pg_sleep(0)";
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("it may");
    session.query(sql).expect("14 and later");
    let ended = format!("select 1 from pg_stat_activity where pid = {}", session.backend_pid());
    let mut other = server.connect("?user=postgres&dbname=postgres").expect("it may");
    until("the end of the idle session", || other.query(&ended).expect("right").rows.is_empty());
    let gone = session.query("select 1").expect_err("ended");
    assert_eq!(gone.code(), Some("57P05"), "{gone}");
}

#[test]
fn an_answer_may_be_waited_for_no_longer_than_asked() {
    let Some(server) = shared() else { return };
    let mut session = server.connect("?user=trusted&dbname=postgres").expect("it may");
    session.set_deadline(std::time::Instant::now() + std::time::Duration::from_millis(100));
    let late = session.query("select pg_sleep(20)").expect_err("late");
    assert!(late.is_fatal() && late.to_string().contains("time limit"), "{late}");
}

#[test]
fn sessions_that_take_no_writes_are_told_apart() {
    let Some(server) = shared() else { return };
    let read_only = "?user=trusted&dbname=postgres&options=-c%20default_transaction_read_only%3Don";
    let mut session = server.connect(read_only).expect("it may");
    assert!(session.is_read_only().expect("answered"));
    for (wanted, said) in [("read-write", "read-only"), ("standby", "not a hot standby")] {
        let url = format!("{read_only}&target_session_attrs={wanted}");
        refused(&server.options(&url), &[said]);
    }
    for wanted in ["any", "primary", "read-only", "prefer-standby"] {
        let url = format!("{read_only}&target_session_attrs={wanted}");
        server.connect(&url).expect(wanted).close();
    }
}

#[test]
fn accepted_ways_of_authentication_are_kept_to() {
    let Some(server) = shared() else { return };
    let password = encoded();
    refused(
        &server.tcp("md5role", &format!("password={password}&require_auth=scram-sha-256")),
        &["md5", "require_auth"],
    );
    refused(&server.tcp("trusted", "require_auth=scram-sha-256"), &["without authentication", "require_auth"]);
    let right = server.tcp("scram", &format!("password={password}&require_auth=!none,!password"));
    Connection::open(&right).expect("scram is accepted").close();
}

#[test]
fn a_socket_may_be_held_to_its_servers_user() {
    let Some(server) = shared() else { return };
    let url = "?user=trusted&dbname=postgres&requirepeer=nobody-at-all";
    refused(&server.options(url), &["nobody-at-all", "runs as"]);
}
