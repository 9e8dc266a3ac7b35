//! A scripted listener and server of Oracle's network protocol (TNS), as far as packets go: what the real driver makes of each
//! failure is one clear error within its time. It knows no login; what comes after the first answers is death.

use super::super::driver::Thin;
use super::super::session::Way;
use super::{settings, told_by};
use crate::oracle::address::Address;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

/// Types of packets.
const CONNECT: u8 = 1;
const ACCEPT: u8 = 2;
const REFUSE: u8 = 4;
const REDIRECT: u8 = 5;
const DATA: u8 = 6;
const RESEND: u8 = 11;
const MARKER: u8 = 12;
/// One that nobody knows.
const STRANGE: u8 = 99;

/// What the peer does next on a connection.
#[derive(Clone, Debug)]
enum Step {
    /// Waits for a packet of this type; lengths have two bytes until the connection is accepted.
    Take(u8),
    /// The same afterwards, with four.
    TakeLong(u8),
    Send(Vec<u8>),
    /// Says nothing more until the other end is gone.
    Silence,
}

use Step::{Send, Silence, Take, TakeLong};

fn packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u16::try_from(payload.len() + 8).expect("small");
    [&len.to_be_bytes()[..], &[0, 0, kind, 0, 0, 0], payload].concat()
}

fn long_packet(kind: u8, payload: &[u8]) -> Vec<u8> {
    let len = u32::try_from(payload.len() + 8).expect("small");
    [&len.to_be_bytes()[..], &[kind, 0, 0, 0], payload].concat()
}

/// Version 319 with a packet size of 8192 and no further abilities.
fn accept() -> Vec<u8> {
    let mut payload = 319_u16.to_be_bytes().to_vec();
    payload.extend([0; 12]);
    payload.push(0);
    payload.extend([0; 9]);
    payload.extend(8192_u32.to_be_bytes());
    payload.extend([0; 5]);
    payload.extend(0_u32.to_be_bytes());
    packet(ACCEPT, &payload)
}

fn refuse(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).expect("short");
    packet(REFUSE, &[&[0, 0], &len.to_be_bytes()[..], text.as_bytes()].concat())
}

fn redirect(text: &str) -> Vec<u8> {
    let len = u16::try_from(text.len()).expect("short");
    let data = packet(DATA, &[&[0, 0], text.as_bytes()].concat());
    [packet(REDIRECT, &len.to_be_bytes()), data].concat()
}

fn read_packet(stream: &mut TcpStream, long: bool) -> Option<u8> {
    let mut header = [0; 8];
    stream.read_exact(&mut header).ok()?;
    let len = if long {
        u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize
    } else {
        usize::from(u16::from_be_bytes([header[0], header[1]]))
    };
    let mut rest = vec![0; len.saturating_sub(8)];
    stream.read_exact(&mut rest).ok()?;
    Some(header[4])
}

fn play(mut stream: TcpStream, steps: Vec<Step>) {
    for step in steps {
        match step {
            Take(kind) => assert_eq!(read_packet(&mut stream, false), Some(kind)),
            TakeLong(kind) => assert_eq!(read_packet(&mut stream, true), Some(kind)),
            // Whoever has hung up meanwhile hears no more.
            Send(bytes) => drop(stream.write_all(&bytes)),
            Silence => {
                let mut rest = Vec::new();
                let _ = stream.read_to_end(&mut rest);
            }
        }
    }
}

/// Plays a script for each connection, one after the other.
fn peer(scripts: Vec<Vec<Step>>) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    std::thread::spawn(move || {
        for (script, stream) in scripts.into_iter().zip(listener.incoming()) {
            play(stream.expect("a connection"), script);
        }
    });
    address
}

/// What the driver says of it; a login may take a second.
fn said(address: SocketAddr) -> String {
    let location = format!("//slob:Kq9secret@//{address}/orclpdb1");
    let address = Address::new(&location, &settings(&[])).expect("an address");
    let error = Thin.open(&address.data, Duration::from_secs(1)).map(|_| ());
    assert!(matches!(&error, Err(assay_run::engine::EngineError::Unusable(_))), "{error:?}");
    let text = told_by(error);
    assert!(text.starts_with("cannot connect to //127.0.0.1:") && !text.contains("Kq9"), "{text}");
    assert!(!text.contains('\n'), "{text}");
    text
}

fn has(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not in {text:?}");
    }
}

#[test]
fn a_port_where_nobody_listens_is_told() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    drop(listener);
    has(&said_patiently(address), &["refused"]);
}

#[test]
fn a_listener_that_refuses_is_told_with_its_reason_and_the_way_out() {
    for (error, parts) in [
        (12514, &["\"orclpdb1\" is not registered", "ORA-12514", "lsnrctl"][..]),
        (12528, &["refused connection", "ORA-12528"]),
    ] {
        let text = format!("(DESCRIPTION=(TMP=)(VSNNUM=0)(ERR={error})(ERROR_STACK=(ERROR=(CODE={error})(EMFI=4))))");
        let refuses = vec![Take(CONNECT), Send(refuse(&text))];
        let text = said_patiently(peer(vec![refuses]));
        has(&text, parts);
    }
    let wordless = vec![Take(CONNECT), Send(refuse("go away"))];
    has(&said_patiently(peer(vec![wordless])), &["unexpected error format", "port of a listener"]);
}

/// The driver sleeps a second after a refusal before it tells.
fn said_patiently(address: SocketAddr) -> String {
    let location = format!("//slob:Kq9secret@//{address}/orclpdb1");
    let address = Address::new(&location, &settings(&[])).expect("an address");
    told_by(Thin.open(&address.data, address.answer).map(|_| ()))
}

#[test]
fn a_redirect_leads_to_another_server_and_one_to_nowhere_is_told() {
    let refuses = "(DESCRIPTION=(ERR=12516))";
    let second = peer(vec![vec![Take(CONNECT), Send(refuse(refuses))]]);
    let there = format!(
        "(ADDRESS=(PROTOCOL=tcp)(HOST=127.0.0.1)(PORT={}))\0(DESCRIPTION=(CONNECT_DATA=(SERVICE_NAME=orclpdb1)))",
        second.port()
    );
    let first = peer(vec![vec![Take(CONNECT), Send(redirect(&there)), Silence]]);
    // The answer is the second server's.
    has(&said_patiently(first), &["ORA-12516"]);
    let nowhere = peer(vec![vec![Take(CONNECT), Send(redirect("nowhere")), Silence]]);
    has(&said_patiently(nowhere), &["invalid redirect"]);
}

#[test]
fn a_request_to_send_again_is_obeyed() {
    let refuses = "(DESCRIPTION=(ERR=12514))";
    let again = vec![Take(CONNECT), Send(packet(RESEND, &[])), Take(CONNECT), Send(refuse(refuses))];
    has(&said_patiently(peer(vec![again])), &["ORA-12514"]);
}

#[test]
fn a_marker_out_of_place_garbage_and_an_unknown_packet_are_errors_and_no_panic_reaches_us() {
    let scripts: [(&str, Vec<u8>); 5] = [
        ("a web server", b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n".to_vec()),
        ("a length of nothing", vec![0; 64]),
        ("noise", (0..200_u8).map(|byte| byte.wrapping_mul(37) ^ 0x5A).collect()),
        ("an unknown type", packet(STRANGE, &[1, 2, 3])),
        ("a marker", packet(MARKER, &[1, 0, 2])),
    ];
    for (what, bytes) in scripts {
        let text = said_patiently(peer(vec![vec![Take(CONNECT), Send(bytes)]]));
        assert!(text.starts_with("cannot connect to"), "{what}: {text}");
    }
}

#[test]
fn silence_before_and_after_the_connection_is_accepted_ends_with_the_time() {
    let before = peer(vec![vec![Take(CONNECT), Silence]]);
    has(&said(before), &["no answer within 1 s", "ORACLE_ANSWER_TIMEOUT"]);
    let after = peer(vec![vec![Take(CONNECT), Send(accept()), TakeLong(DATA), Silence]]);
    has(&said(after), &["no answer within 1 s", "ORACLE_ANSWER_TIMEOUT"]);
}

#[test]
fn a_server_that_dies_in_the_midst_of_a_call_is_told() {
    let at_once = vec![Take(CONNECT), Send(accept()), TakeLong(DATA)];
    let half = long_packet(DATA, &[0; 100])[..40].to_vec();
    let in_an_answer = vec![Take(CONNECT), Send(accept()), TakeLong(DATA), Send(half)];
    for script in [at_once, in_an_answer] {
        has(&said_patiently(peer(vec![script])), &["closed the connection"]);
    }
    // A marker asks for a reset, and then nobody is there to do it.
    let marker = long_packet(MARKER, &[1, 0, 2]);
    let reset = vec![Take(CONNECT), Send(accept()), TakeLong(DATA), Send(marker), TakeLong(MARKER)];
    has(&said_patiently(peer(vec![reset])), &["connection has been closed"]);
}

#[test]
fn an_alias_that_nobody_defined_and_a_wallet_that_is_not_there_are_told_before_anything_connects() {
    let open = |location: &str, said: &[(&str, &str)]| {
        let address = Address::new(location, &settings(said)).expect("an address");
        told_by(Thin.open(&address.data, address.answer).map(|_| ()))
    };
    let alias = open("//slob:Kq9@NO_SUCH_ALIAS", &[]);
    has(&alias, &["NO_SUCH_ALIAS", "TNS_ADMIN"]);
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let place = listener.local_addr().expect("its address");
    let wallet = open(&format!("//slob:Kq9@tcps://{place}/orclpdb1"), &[("ORACLE_WALLET", "/nowhere/wallet")]);
    has(&wallet, &["/nowhere/wallet/ewallet.pem", "ORACLE_WALLET"]);
}
