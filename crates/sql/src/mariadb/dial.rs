//! From an address to a socket, and whether a server lives there.

use super::address::{Address, Host};
use crate::patient::{Limit, Patient};
use crate::reach::{connect_tcp, connect_unix, left};
use std::io::{ErrorKind, Read, Result as IoResult};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The server at the other end of a session.
pub(super) struct Server {
    way: Way,
    /// How the session came in, and its number there; none before it is in.
    pub(super) session: Option<(Arc<Address>, u32)>,
}

/// Where it was reached.
enum Way {
    Unix(PathBuf),
    Tcp(SocketAddr),
}

/// Its bytes.
pub(super) type Stream = crate::stream::Stream<Server>;

impl Server {
    /// Whether it greets a new connection, which a server whose threads are frozen does not.
    pub(super) fn greets(&self, within: Duration) -> bool {
        let end = Instant::now() + within;
        let greeted = match &self.way {
            Way::Unix(path) => connect_unix(path, Some(end)).and_then(|mut stream| {
                stream.set_read_timeout(Some(left(end)))?;
                stream.read(&mut [0])
            }),
            Way::Tcp(address) => TcpStream::connect_timeout(address, within).and_then(|mut stream| {
                stream.set_read_timeout(Some(left(end)))?;
                stream.read(&mut [0])
            }),
        };
        matches!(greeted, Ok(1))
    }
}

/// A socket to the server, over which somebody must be in when [`Address::login`] has passed: once an address was found, for
/// each that its name has.
pub(super) fn dial(address: &Address) -> IoResult<Stream> {
    let patience = &address.patience;
    let end = || Some(Instant::now() + address.login);
    match &address.host {
        Host::Socket(path) => {
            let end = end();
            let peer = Server { way: Way::Unix(path.clone()), session: None };
            let socket = connect_unix(path, end)?;
            Ok(Stream::Unix(Patient::new(socket, peer, Limit::Until(end), patience.clone())?))
        }
        Host::Tcp { host, port } => {
            let mut last = ErrorKind::NotFound.into();
            for place in (host.as_str(), *port).to_socket_addrs()? {
                let end = end();
                match connect_tcp(place, end, patience) {
                    Ok(socket) => {
                        // No gathering of small packets.
                        socket.set_nodelay(true)?;
                        let peer = Server { way: Way::Tcp(place), session: None };
                        return Ok(Stream::Tcp(Patient::new(socket, peer, Limit::Until(end), patience.clone())?));
                    }
                    Err(error) => last = error,
                }
            }
            Err(last)
        }
    }
}
