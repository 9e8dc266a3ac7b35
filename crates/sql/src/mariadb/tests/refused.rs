//! What is refused, and what the words say.

use super::*;
use assay_run::engine::Presence;

#[test]
fn a_foreign_database_is_refused_and_not_touched() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("theirs");
    let settings = settings(SMALL);
    let mut connection = Connection::open(&Address::parse(&url, Options::default()).unwrap()).unwrap();
    connection.run("create table customers (id int)").unwrap();
    let text = told_by(load(&url, &settings, 1));
    assert!(text.contains("does not belong to assay") && text.contains("customers"), "{text}");
    let text = told_by(life::destroy(&Mariadb::SLOB, &url, &settings));
    assert!(text.contains("does not belong to assay"), "{text}");
    let tables = "select count(*) from information_schema.tables where table_schema = 'theirs'";
    assert_eq!(connection.number(tables).unwrap(), 1);
    // What comes beside a data set later stays when that goes.
    connection.run("drop table customers").unwrap();
    load(&url, &settings, 1).unwrap();
    connection.run("create table later (id int)").unwrap();
    let text = told_by(load(&url, &settings, 2));
    assert!(text.contains("later"), "{text}");
    life::destroy(&Mariadb::SLOB, &url, &settings).unwrap();
    assert_eq!(connection.number(tables).unwrap(), 1);
}

#[test]
fn who_is_not_let_in_or_may_not_write_is_told_why_and_what_to_do() {
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("doors");
    let settings = settings(SMALL);
    server.run("create or replace user reader@localhost identified by 'Kq9'");
    server.run("grant select on doors.* to reader@localhost");
    let with = |user: &str| url.replacen("root@", &format!("{user}@"), 1);
    let inspect = |url: &str| told_by(Mariadb::SLOB.inspect(url, &settings));
    for (url, wanted) in [
        (with("reader:wrong"), "check user and password"),
        (url.replacen("/doors?", "/nothing?", 1), "no database nothing"),
        ("//me@127.0.0.1:1/d".to_owned(), "cannot connect to the server at 127.0.0.1:1"),
        ("//me@/d?socket=/no/such".to_owned(), "socket /no/such"),
        ("//me:Kq9@h".to_owned(), "write mysql://"),
    ] {
        let text = inspect(&url);
        assert!(text.contains(wanted) && !text.contains("Kq9"), "{url}: {text}");
    }
    let text = told_by(load(&with("reader:Kq9"), &settings, 1));
    assert!(text.contains("ALL PRIVILEGES") && !text.contains("Kq9"), "{text}");
    assert!(matches!(Mariadb::SLOB.inspect(&url, &settings), Ok(Presence::Absent { .. })));
}

#[test]
fn a_server_without_room_and_a_hidden_index_are_told_with_the_way_out() {
    // One file for all tables, which may not grow.
    let set = "innodb_file_per_table=0; innodb_data_file_path=ibdata1:12M";
    let Some(server) = Server::own("8192", set) else {
        return;
    };
    let url = server.database("full");
    for way in ["local", "insert"] {
        let large = settings(&[("SCALE", "4000"), ("MYSQL_LOAD", way)]);
        let text = told_by(load(&url, &large, 1));
        assert!(text.contains("make room"), "{way}: {text}");
        life::destroy(&Mariadb::SLOB, &url, &large).unwrap();
    }
    let Some(server) = Server::shared() else {
        return;
    };
    let url = server.database("hidden");
    load(&url, &settings(SMALL), 1).unwrap();
    let engine = |url: &str, update_pct| {
        let plan = Plan { update_pct, ..plan(8192, 1, 1000, 1) };
        let engine = Mariadb::SLOB
            .open(url, &plan, &settings(SMALL), &Stop::new(), &Unwatched)
            .unwrap_or_else(|error| panic!("{error}"));
        let assignment = assay_run::engine::Assignment { thread: 0, threads: 1, sessions: vec![(1, 1)] };
        let opened = engine.driver(&assignment).map(|_| ());
        engine.close().unwrap();
        opened
    };
    server.run("create or replace user looker@localhost identified by 'Kq9'");
    server.run("grant select on hidden.* to looker@localhost");
    let looker = url.replacen("root@", "looker:Kq9@", 1);
    engine(&looker, 0).unwrap();
    let text = told_by(engine(&looker, 50));
    assert!(text.contains("ALL PRIVILEGES") && !text.contains("Kq9"), "{text}");
    server.run("alter table hidden.cf1_1 alter index i_custid ignored");
    let text = told_by(engine(&url, 0));
    assert!(text.contains("assay check"), "{text}");
    server.run("alter table hidden.cf1_1 alter index i_custid not ignored");
    engine(&url, 50).unwrap();
}
