//! What is waited for on a real server, and what is not.

use super::*;
use crate::patience::Patience;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Nobody is deaf.
const NONE: usize = usize::MAX;

/// Passes what comes to a port of this host on to the server's socket, and back again, but for the session of the number in
/// `deaf`, from 0: that one hears nothing.
fn proxy(server: &Server, deaf: &Arc<AtomicUsize>) -> u16 {
    let Host::Socket(socket) = address(&server.url("x")).host else {
        panic!("a socket of its own");
    };
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let deaf = Arc::clone(deaf);
    std::thread::spawn(move || {
        for (number, client) in listener.incoming().flatten().enumerate() {
            let server = UnixStream::connect(&socket).unwrap();
            let (mut from, mut to) = (client.try_clone().unwrap(), server.try_clone().unwrap());
            std::thread::spawn(move || {
                let _ = std::io::copy(&mut from, &mut to);
                let _ = to.shutdown(Shutdown::Both);
            });
            let (mut from, mut to, deaf) = (server, client, Arc::clone(&deaf));
            std::thread::spawn(move || {
                let mut bytes = [0; 4096];
                while let Ok(got @ 1..) = from.read(&mut bytes) {
                    if deaf.load(Ordering::Acquire) != number && to.write_all(&bytes[..got]).is_err() {
                        break;
                    }
                }
                let _ = to.shutdown(Shutdown::Both);
            });
        }
    });
    port
}

#[test]
fn a_server_at_work_is_waited_for_and_a_lost_answer_is_not() {
    let Some(server) = Server::shared() else {
        return;
    };
    let deaf = Arc::new(AtomicUsize::new(NONE));
    let port = proxy(server, &deaf);
    let patience = Patience::new(Duration::from_secs(1), &Stop::new());
    let address = Address { patience, ..address(&format!("//root@127.0.0.1:{port}/mysql")) };
    let mut session = Connection::open(&address).unwrap();
    assert_eq!(session.value("select sleep(4)").unwrap(), "0");
    deaf.store(0, Ordering::Release);
    let error = session.value("select 1").unwrap_err();
    assert!(error.to_string().contains("no longer works for this session"), "{error}");
    assert!(error.is_fatal());
    let error = session.value("select 1").unwrap_err();
    assert!(error.is_fatal(), "{error}");
    // Whose answers are never long is not asked after.
    let strict = address.strict();
    let deaf = Arc::new(AtomicUsize::new(NONE));
    let port = proxy(server, &deaf);
    let host = Host::Tcp { host: "127.0.0.1".to_owned(), port };
    let mut session = Connection::open(&Address { host, ..strict }).unwrap();
    let error = session.value("select sleep(600)").unwrap_err();
    assert!(error.to_string().contains("MYSQL_ANSWER_TIMEOUT"), "{error}");
}

#[test]
fn a_request_to_stop_ends_a_login_and_a_phase_ends_an_answer() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Stop::new();
    stop.request();
    let silent = address(&format!("//root@127.0.0.1:{port}/mysql"));
    let hurried = Address { patience: Patience::new(Duration::from_secs(600), &stop), ..silent };
    let text = told_by(Connection::open(&hurried).map(drop));
    assert!(text.contains("of the request to stop") || text.contains("the login got no answer"), "{text}");
    let Some(server) = Server::shared() else {
        return;
    };
    let patience = Patience::new(Duration::from_secs(1), &Stop::new());
    let address = Address { patience, ..address(&server.url("mysql")) };
    let mut session = Connection::open(&address).unwrap();
    address.patience.phase("the test", Some(Duration::from_secs(2)));
    let error = session.value("select sleep(600)").unwrap_err();
    assert!(error.to_string().contains("the test did not end within 2 s"), "{error}");
    // Nobody of this command waits any more.
    assert!(Connection::open(&address).is_err());
}
