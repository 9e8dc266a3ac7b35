//! From an address to a socket, and whether a server lives there.

use super::address::{Address, Host};
use crate::patient::{Limit, Patient};
use crate::reach::{Way, addresses, connect_tcp, connect_unix};
use std::io::{ErrorKind, Result as IoResult};
use std::sync::Arc;
use std::time::Instant;

/// The server at the other end of a session.
pub(super) struct Server {
    pub(super) way: Way,
    /// How the session came in, and its number there; none before it is in.
    pub(super) session: Option<(Arc<Address>, u32)>,
}

/// Its bytes.
pub(super) type Stream = crate::stream::Stream<Server>;

/// A socket to the server, over which somebody must be in when [`Address::login`] has passed: once an address was found, for
/// each that its name has.
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
