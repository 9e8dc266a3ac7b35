//! Encryption as libpq's `sslmode` has it, against a server with certificates of an authority of our own.

use super::server::{Server, installed, options, shared};
use super::{encoded, value};
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::wire::{Connection, PgError};
use crate::testing::until;

/// Options for a role of the server by a name its certificate is for, or not.
fn named(server: &Server, role: &str, name: &str, more: &str) -> ConnectOptions {
    options(&format!("//{role}:{}@{name}:{}/postgres?hostaddr=127.0.0.1&{more}", encoded(), server.port))
}

fn said(outcome: Result<Connection, PgError>, words: &[&str]) {
    let text = outcome.expect_err("refused").to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

#[test]
fn every_mode_encrypts_when_it_should_and_no_other() {
    let Some(server) = shared() else { return };
    let ca = format!("sslrootcert={}", server.directory.join("ca.crt").display());
    for (role, mode, encrypted) in [
        ("trusted", "sslmode=disable", false),
        ("trusted", "sslmode=allow", false),
        ("trusted", "sslmode=prefer", true),
        ("trusted", "sslmode=require", true),
        ("trusted", &format!("sslmode=require&{ca}"), true),
        ("trusted", &format!("sslmode=verify-ca&{ca}"), true),
        ("trusted", &format!("sslmode=verify-full&{ca}"), true),
        ("trusted", "sslmode=require&ssl_max_protocol_version=TLSv1.2", true),
        ("trusted", "sslmode=require&sslsni=0", true),
        // The server lets these in one way only: the other way is tried second.
        ("overtls", "sslmode=allow", true),
        ("plainly", "sslmode=prefer", false),
    ] {
        let mut session = Connection::open(&named(server, role, "db.example", mode))
            .unwrap_or_else(|why| panic!("{role} {mode}: {why}"));
        let seen = value(&mut session, "select ssl from pg_stat_ssl where pid = pg_backend_pid()");
        assert_eq!(seen, if encrypted { "t" } else { "f" }, "{role} {mode}");
        assert_eq!(session.is_encrypted(), encrypted, "{role} {mode}");
    }
}

#[test]
fn a_server_that_is_not_who_it_should_be_is_refused() {
    let Some(server) = shared() else { return };
    let file = |name: &str| format!("sslrootcert={}", server.directory.join(name).display());
    let open = |name: &str, more: &str| Connection::open(&named(server, "trusted", name, more));
    for mode in ["require", "verify-ca", "verify-full"] {
        let wrong = format!("sslmode={mode}&{}", file("other.crt"));
        said(open("db.example", &wrong), &["no authority in", "other.crt", "sslrootcert"]);
    }
    let full = format!("sslmode=verify-full&{}", file("ca.crt"));
    said(open("elsewhere.example", &full), &["not for host elsewhere.example", "verify-ca"]);
    open("one.wild.example", &full).expect("a star is one label").close();
    said(open("a.b.wild.example", &full), &["is not for host"]);
    said(open("127.0.0.1", &full), &["is not for host"]);
    open("127.0.0.1", &format!("sslmode=verify-ca&{}", file("ca.crt"))).expect("any name").close();
    said(open("db.example", "sslrootcert=system"), &["no authority in the system's"]);
    said(open("db.example", &format!("sslmode=require&{}", file("ca.key"))), &["ca.key", "PEM"]);
}

#[test]
fn a_client_certificate_is_shown_where_it_is_asked_for() {
    let Some(server) = shared() else { return };
    let path = |name: &str| server.directory.join(name).display().to_string();
    let with = |certificate: &str, key: &str| {
        let more = format!("sslmode=require&sslcert={}&sslkey={}", path(certificate), path(key));
        Connection::open(&named(server, "bycert", "db.example", &more))
    };
    let mut session = with("client.crt", "client.key").expect("it is of the authority");
    assert_eq!(value(&mut session, "select current_user"), "bycert");
    said(with("client.crt", "other.key"), &["client.crt", "other.key"]);
    said(with("client.crt", "absent.key"), &["absent.key"]);
    let none = named(server, "bycert", "db.example", "sslmode=require");
    said(Connection::open(&none), &["bycert"]);
    let open_key = server.directory.join("open.key");
    std::fs::copy(path("client.key"), &open_key).expect("a copy");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o644);
    std::fs::set_permissions(&open_key, mode).expect("ours");
    said(with("client.crt", "open.key"), &["open.key", "chmod 600"]);
}

#[test]
fn authentication_is_bound_to_the_channel_where_it_can_be() {
    let Some(server) = shared() else { return };
    let open = |role: &str, more: &str| Connection::open(&named(server, role, "db.example", more));
    for more in [
        "sslmode=require&channel_binding=require",
        "sslmode=require&channel_binding=prefer",
        "sslmode=require&channel_binding=disable",
        "sslmode=disable&channel_binding=prefer",
    ] {
        open("scram", more).unwrap_or_else(|why| panic!("{more}: {why}")).close();
    }
    for (role, more) in [
        ("scram", "sslmode=disable&channel_binding=require"),
        ("md5role", "sslmode=require&channel_binding=require"),
        ("trusted", "sslmode=require&channel_binding=require"),
    ] {
        said(open(role, more), &["channel_binding=require"]);
    }
}

/// A server of its own whose certificate changes.
#[test]
fn certificates_expire_lack_names_and_sign_themselves() {
    if !installed() {
        return;
    }
    let server = Server::start("ssl = off");
    server.as_superuser("CREATE ROLE trusted LOGIN");
    let open = |name: &str, more: &str| Connection::open(&named(&server, "trusted", name, more));
    said(open("db.example", "sslmode=require"), &["does not support TLS", "sslmode=prefer"]);
    open("db.example", "sslmode=prefer").expect("in the clear").close();

    let ca = format!("sslrootcert={}", server.directory.join("ca.crt").display());
    let full = format!("sslmode=verify-full&{ca}");
    serve(&server, "expired");
    said(open("db.example", &full), &["has expired (on 20"]);
    open("db.example", "sslmode=require").expect("nobody asked").close();
    // Not even a warning keeps libpq from going on in the clear.
    assert!(!open("db.example", &format!("sslmode=prefer&{ca}")).expect("in the clear").is_encrypted());

    serve(&server, "commonname");
    open("by.common.name", &full).expect("as libpq takes it").close();
    said(open("db.example", &full), &["by.common.name", "is not for host"]);

    serve(&server, "other");
    let own = format!("sslrootcert={}", server.directory.join("other.crt").display());
    open("other", &format!("sslmode=verify-full&{own}")).expect("listed itself").close();
    said(open("other", &full), &["self-signed", "ca.crt", "sslrootcert"]);

    serve(&server, "old");
    open("db.example", "sslmode=require&channel_binding=prefer").expect("version 1").close();
    said(open("db.example", &full), &["version 1", "subjectAltName"]);
}

/// Has the server show another certificate, and waits until it does.
fn serve(server: &Server, name: &str) {
    let at = |end: &str| server.directory.join(format!("{name}.{end}")).display().to_string();
    for sql in [
        format!("ALTER SYSTEM SET ssl_cert_file = '{}'", at("crt")),
        format!("ALTER SYSTEM SET ssl_key_file = '{}'", at("key")),
        "ALTER SYSTEM SET ssl = on".to_owned(),
        "SELECT pg_reload_conf()".to_owned(),
    ] {
        server.as_superuser(&sql);
    }
    until("the new certificate", || {
        let mut session = server.connect("?user=postgres&dbname=postgres").expect("it may");
        value(&mut session, "show ssl_cert_file") == at("crt")
    });
}
