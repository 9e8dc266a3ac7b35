//! A server's listener: where it listens, how many it serves at once, and that it ends when it is asked to.

use super::line::{Line, is_wait};
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How often a server without clients looks whether it may go.
const LOOK: Duration = Duration::from_millis(50);

/// A bound socket.
#[derive(Debug)]
pub(crate) struct Listener {
    socket: TcpListener,
}

/// One client being served; it no longer counts once this is gone.
#[derive(Debug)]
pub(crate) struct Serving(Arc<AtomicUsize>);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Listener {
    /// Listens on an address of this host, or on loopback where none is said.
    pub(crate) fn bind(address: &str, port: u16) -> Result<Self, EngineError> {
        let ip: IpAddr = match address {
            "" => Ipv4Addr::LOCALHOST.into(),
            given => given.parse().map_err(|_| {
                EngineError::Usage(format!(
                    "--bind {given}: an address of this host is needed, such as 127.0.0.1 or ::1; 0.0.0.0 is all of them"
                ))
            })?,
        };
        let at = SocketAddr::new(ip, port);
        let cannot = |source| EngineError::Io { what: format!("cannot listen on {at}"), source };
        let socket = TcpListener::bind(at).map_err(cannot)?;
        socket.set_nonblocking(true).map_err(cannot)?;
        Ok(Self { socket })
    }

    /// Where it listens, the port the kernel chose included.
    pub(crate) fn address(&self) -> String {
        let address = self.socket.local_addr();
        address.map_or_else(|_| "an unknown address".to_owned(), |at| at.to_string())
    }

    /// Serves each client on a thread of its own until asked to stop, then waits for them. `serve` is told when more than
    /// `most` are there already: it says so and ends.
    pub(crate) fn serve(&self, most: usize, patience: Duration, stop: &Stop, serve: impl Fn(Line, bool) + Sync) {
        let serving = Arc::new(AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let mut number = 0;
            while !stop.requested() {
                let (stream, from) = match self.socket.accept() {
                    Ok(client) => client,
                    Err(error) => {
                        // A client that left before it was accepted, or no descriptor left for it: the next may do.
                        let _ = is_wait(&error);
                        std::thread::sleep(LOOK);
                        continue;
                    }
                };
                // What cannot be made blocking is not served.
                if stream.set_nonblocking(false).is_err() {
                    continue;
                }
                let before = serving.fetch_add(1, Ordering::AcqRel);
                let here = Serving(Arc::clone(&serving));
                // Strangers at the door cost a thread each; beyond twice the clients there is no thread for them.
                if before >= 2 * most {
                    continue;
                }
                number += 1;
                let line = Line::of(stream, from.to_string(), patience, stop).numbered(number);
                let serve = &serve;
                let client = move || {
                    serve(line, before >= most);
                    drop(here);
                };
                // A thread that cannot be started is a client that finds its connection closed.
                let _ = std::thread::Builder::new().spawn_scoped(scope, client);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::net::TcpStream;
    use std::sync::Mutex;

    #[test]
    fn it_is_on_loopback_unless_told_and_ends_when_asked() {
        let listener = Listener::bind("", 0).unwrap();
        assert!(listener.address().starts_with("127.0.0.1:"));
        let error = Listener::bind("nowhere", 0).unwrap_err().to_string();
        assert!(error.contains("--bind nowhere"), "{error}");
        let stop = Stop::new();
        let seen = Mutex::new(Vec::new());
        std::thread::scope(|scope| {
            let served = scope.spawn(|| {
                listener.serve(1, Duration::from_secs(5), &stop, |_, busy| {
                    seen.lock().unwrap().push(busy);
                });
            });
            let mut client = TcpStream::connect(listener.address()).unwrap();
            assert_eq!(client.read(&mut [0]).unwrap(), 0, "served and closed");
            stop.request();
            served.join().unwrap();
        });
        assert_eq!(*seen.lock().unwrap(), [false]);
    }
}
