//! What leaves for a server that wants the password another way than we give it: a server that keeps every byte.

use super::server::{PASSWORD, Server, installed, options, shared};
use super::{encoded, value};
use crate::postgres::wire::Connection;
use postgres_protocol::authentication::md5_hash;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

/// `R` with a code and what follows it.
fn ask(code: u32, rest: &[u8]) -> Vec<u8> {
    let mut message = vec![b'R'];
    message.extend((8 + rest.len() as u32).to_be_bytes());
    message.extend(code.to_be_bytes());
    message.extend(rest);
    message
}

const READY: &[u8] = b"Z\0\0\0\x05I";
const KEY: &[u8] = b"K\0\0\0\x0c\0\0\0\x01\0\0\0\x02";

/// A server that says this after the startup message, whatever it is told; what it was told comes back in the end.
fn keeper(says: Vec<u8>, tls: Option<Arc<ServerConfig>>) -> (u16, JoinHandle<Vec<u8>>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let thread = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("we connect");
        let raw = stream.try_clone().expect("a descriptor");
        match tls {
            None => keep(&mut stream, &raw, &says),
            Some(config) => {
                stream.read_exact(&mut [0; 8]).expect("asked for TLS");
                stream.write_all(b"S").expect("we listen");
                let session = ServerConnection::new(config).expect("it is right");
                keep(&mut StreamOwned::new(session, stream), &raw, &says)
            }
        }
    });
    (port, thread)
}

/// Whoever waits for more than it says hears that there is no more, and ends; what it told until then is kept.
fn keep(stream: &mut (impl Read + Write), raw: &TcpStream, says: &[u8]) -> Vec<u8> {
    let (mut told, mut part) = (Vec::new(), [0; 4096]);
    let begin = stream.read(&mut part).unwrap_or(0);
    told.extend_from_slice(&part[..begin]);
    let _ = stream.write_all(says).and_then(|()| stream.flush());
    let _ = raw.shutdown(Shutdown::Write);
    while let Ok(bytes @ 1..) = stream.read(&mut part) {
        told.extend_from_slice(&part[..bytes]);
    }
    told
}

/// With a certificate that names us, of the shared server's.
fn certified(server: &Server) -> Arc<ServerConfig> {
    let at = |name: &str| server.directory.join(name);
    let chain = CertificateDer::pem_file_iter(at("server.crt")).expect("a file");
    let key = PrivateKeyDer::from_pem_file(at("server.key")).expect("a key");
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("usual")
        .with_no_client_auth()
        .with_single_cert(chain.collect::<Result<_, _>>().expect("certificates"), key);
    Arc::new(config.expect("it is right"))
}

fn contains(told: &[u8], part: &[u8]) -> bool {
    told.windows(part.len()).any(|window| window == part)
}

/// What a server may say, by a name for it.
fn demands() -> Vec<(&'static str, Vec<u8>)> {
    let bound = b"SCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0";
    vec![
        ("let in at once", [&ask(0, &[]), KEY, READY].concat()),
        ("ready without a word", [KEY, READY].concat()),
        ("nothing but ready", READY.to_vec()),
        ("the password", ask(3, &[])),
        ("its md5", ask(5, b"salt")),
        ("GSSAPI", ask(7, &[])),
        ("a method of no name", ask(77, &[])),
        ("SCRAM that cannot be bound", ask(10, b"SCRAM-SHA-256\0\0")),
        ("no mechanism", ask(10, b"\0")),
        ("let in before SCRAM is done", [&ask(10, bound)[..], &ask(0, &[]), KEY, READY].concat()),
        ("the password after SCRAM began", [&ask(10, bound)[..], &ask(3, &[])].concat()),
    ]
}

#[test]
fn no_form_of_the_password_leaves_where_channel_binding_is_required() {
    let Some(server) = shared() else { return };
    for over_tls in [false, true] {
        for (name, says) in demands() {
            let (port, told) = keeper(says, over_tls.then(|| certified(server)));
            let mode = if over_tls { "require" } else { "disable" };
            let url = format!(
                "//role:{}@127.0.0.1:{port}/?channel_binding=require&sslmode={mode}&connect_timeout=120",
                encoded()
            );
            let refused = Connection::open(&options(&url));
            let told = told.join().expect("no panic");
            let why = refused.expect_err(name).to_string();
            assert_eq!(why.lines().count(), 1, "{why}");
            assert!(contains(&told, b"role"), "{name}: no startup message");
            let hash = md5_hash(b"role", PASSWORD.as_bytes(), *b"salt");
            for secret in [PASSWORD.as_bytes(), hash.as_bytes(), b",p=", b"md5"] {
                assert!(!contains(&told, secret), "{name}, TLS {over_tls}: {why}");
            }
            // The beginning of SCRAM tells nothing of it, and goes to a server that can be bound alone.
            let begun = contains(&told, b"SCRAM-SHA-256\0");
            assert!(!begun, "{name}, TLS {over_tls}: plain SCRAM was begun");
        }
    }
}

#[test]
fn a_way_that_is_not_accepted_is_answered_by_nothing() {
    for (accepted, name) in [
        ("scram-sha-256", "the password"),
        ("scram-sha-256", "its md5"),
        ("scram-sha-256", "let in at once"),
        ("scram-sha-256", "ready without a word"),
        ("none", "the password"),
        ("none", "its md5"),
        ("none", "SCRAM that cannot be bound"),
        ("!password", "the password"),
        ("!md5,!password", "its md5"),
        ("!none", "let in at once"),
        ("md5,none", "the password"),
    ] {
        let says = demands().into_iter().find(|(known, _)| *known == name).expect("a demand").1;
        let (port, told) = keeper(says, None);
        let url = format!(
            "//role:{}@127.0.0.1:{port}/?require_auth={accepted}&sslmode=disable&connect_timeout=120",
            encoded()
        );
        let refused = Connection::open(&options(&url));
        let told = told.join().expect("no panic");
        refused.expect_err(accepted);
        let (length, _) = told.split_first_chunk().expect("a startup message");
        assert_eq!(
            told.len(),
            u32::from_be_bytes(*length) as usize,
            "{accepted} {name}: more than the startup message left"
        );
    }
}

#[test]
fn a_server_that_asks_again_after_an_answer_is_told_nothing_more() {
    // First the one way, then the other: an answer to both would give the cheaper one away.
    for second in [ask(3, &[]), ask(5, b"salt")] {
        let says = [&ask(5, b"abcd")[..], &second].concat();
        let (port, told) = keeper(says, None);
        let url = format!("//role:{}@127.0.0.1:{port}/?sslmode=disable&connect_timeout=120", encoded());
        let why = Connection::open(&options(&url)).expect_err("refused");
        assert!(why.to_string().contains("asks twice"), "{why}");
        let told = told.join().expect("no panic");
        let answers = told.iter().filter(|byte| **byte == b'p').count();
        let hash = md5_hash(b"role", PASSWORD.as_bytes(), *b"abcd");
        assert!(contains(&told, hash.as_bytes()));
        assert!(!contains(&told, PASSWORD.as_bytes()), "{answers}");
    }
}

#[test]
fn what_a_server_says_in_scram_drives_no_terminal() {
    let first = ask(11, b"r=abc,s=c2Fs\x1b[2J,i=1");
    let says = [&ask(10, b"SCRAM-SHA-256\0\0")[..], &first].concat();
    let (port, told) = keeper(says, None);
    let url = format!("//role:{}@127.0.0.1:{port}/?sslmode=disable", encoded());
    let why = Connection::open(&options(&url)).expect_err("refused");
    let why = why.to_string();
    assert!(why.contains("does not follow SCRAM"), "{why}");
    assert!(!why.contains(char::is_control), "{why:?}");
    told.join().expect("no panic");
}

#[test]
fn real_servers_are_entered_by_the_accepted_way_and_no_other() {
    if !installed() {
        return;
    }
    let Some(server) = shared() else { return };
    let roles = [("trusted", "none"), ("clear", "password"), ("md5role", "md5"), ("scram", "scram-sha-256")];
    for (role, way) in roles {
        for (_, accepted) in roles {
            for (list, may) in [
                (accepted.to_owned(), accepted == way),
                (format!("!{accepted}"), accepted != way),
                (format!("{accepted},gss"), accepted == way),
            ] {
                let given = format!("password={}&require_auth={list}", encoded());
                match Connection::open(&server.tcp(role, &given)) {
                    Ok(mut session) => {
                        assert!(may, "{role} entered with require_auth={list}");
                        assert_eq!(value(&mut session, "select current_user"), role);
                    }
                    Err(why) => assert!(!may, "{role} require_auth={list}: {why}"),
                }
            }
        }
    }
}
