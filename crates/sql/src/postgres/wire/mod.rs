//! PostgreSQL's frontend/backend protocol 3.0, blocking. A caller that serves several sessions can send a request and
//! read its answer in separate calls.
//!
//! An operation of the workload costs two system calls here, one write and one read. A client library with an event
//! loop would cost more, and the client's cost is part of every figure. Message bodies and SCRAM come from
//! `postgres-protocol`; the order of messages is implemented here.
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
