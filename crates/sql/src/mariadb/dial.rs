//! Turns an address into a socket, and tests whether a server is alive.

use super::address::{Address, Host};
use crate::patient::{Limit, Patient};
use crate::reach::{Way, addresses, connect_tcp, connect_unix};
use std::io::{ErrorKind, Result as IoResult};
use std::sync::Arc;
use std::time::Instant;

/// The server at the other end of a session.
pub(super) struct Server {
    pub(super) way: Way,
    /// How the session connected, and its number; `None` before the login.
    pub(super) session: Option<(Arc<Address>, u32)>,
}

/// A stream to the server.
pub(super) type Stream = crate::stream::Stream<Server>;

/// Connects a socket on which the login must be done within [`Address::login`]. The time starts when the name is
/// resolved, again for each of its addresses.
pub(super) fn dial(address: &Address) -> IoResult<Stream> {
    let patience = &address.patience;
    let end = || Some(Instant::now() + address.login);
    match &address.host {
        Host::Socket(path) => {
            let end = end();
            let peer = Server { way: Way::Unix(path.clone()), session: None };
            let socket = connect_unix(path, end, patience)?;
            Ok(Stream::Unix(Patient::new(socket, peer, Limit::Until(end), patience.clone())?))
        }
        Host::Tcp { host, port } => {
            let mut last = ErrorKind::NotFound.into();
            for place in addresses(host, *port, patience)? {
                let end = end();
                match connect_tcp(place, end, patience) {
                    Ok(socket) => {
                        // Disables Nagle's algorithm.
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
