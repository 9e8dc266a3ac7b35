//! The server at the other end of a session, and the types of its streams.

use crate::postgres::conninfo::{ConnectOptions, Host};
use std::sync::Arc;

/// The server of a session; `reach` tests whether it is alive.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// The server, with the address in use.
    pub(super) host: Host,
    /// How the session connected, and its process; `None` before the login.
    pub(super) session: Option<(Arc<ConnectOptions>, i32)>,
}

/// A socket to the server.
pub(super) type Patient<S> = crate::patient::Patient<S, Server>;
/// Any kind of stream to the server.
pub(super) type Stream = crate::stream::Stream<Server>;
