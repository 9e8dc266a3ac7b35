//! The server at the other end of a session, and what its bytes come over.

use crate::postgres::conninfo::{ConnectOptions, Host};
use std::sync::Arc;

/// See the module; `reach` finds out how it is.
#[derive(Clone, Debug)]
pub(super) struct Server {
    /// With the address it was reached at.
    pub(super) host: Host,
    /// How the session came in, and its process there; none before it is in.
    pub(super) session: Option<(Arc<ConnectOptions>, i32)>,
}

/// A socket to it.
pub(super) type Patient<S> = crate::patient::Patient<S, Server>;
/// Whatever its bytes come over.
pub(super) type Stream = crate::stream::Stream<Server>;
