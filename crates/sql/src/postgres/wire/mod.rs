//! PostgreSQL's frontend/backend protocol 3.0, blocking: a request and its answer are two calls for who serves several sessions.
//!
//! A session of the workload costs two system calls an operation here, one write and one read: a client
//! library with an event loop inside costs more, and what the client costs is part of every figure.
//! Message bodies and SCRAM come from `postgres-protocol`; the order of messages is ours.
//! Public documentation: "Frontend/Backend Protocol" in the PostgreSQL manual.

mod batch;
mod cancel;
mod connection;
mod copy;
mod dial;
mod error;
mod input;
mod login;
mod open;
mod peer;
mod reach;
#[cfg(test)]
mod tests;
mod tls;

pub use batch::{Answer, Call};
pub use cancel::CancelToken;
pub use connection::{Bind, Connection, Prepared, Rows, Values};
pub use copy::{CopyIn, FRAME_BYTES};
pub(in crate::postgres) use error::clean;
pub use error::{PgError, ServerError};
