//! Asks a server to cancel what a session does, from another thread.

use super::connection::{Connection, stream};
use super::error::PgError;
use crate::postgres::conninfo::{ConnectOptions, Host};
use bytes::BytesMut;
use postgres_protocol::message::frontend;
use std::io::{Read, Write};

/// Knows a session well enough to cancel its statement.
#[derive(Clone, Debug)]
pub struct CancelToken {
    host: Host,
    options: ConnectOptions,
    pid: i32,
    secret: i32,
}

impl Connection {
    /// For another thread.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken {
            host: self.host.clone(),
            options: self.options.clone(),
            pid: self.pid,
            secret: self.secret,
        }
    }
}

impl CancelToken {
    /// Asks for it, on a connection of its own; whether a statement was running to be cancelled is not known.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn cancel(&self) -> Result<(), PgError> {
        let asked = || -> std::io::Result<()> {
            let mut stream = stream(&self.host, &self.options)?;
            let mut request = BytesMut::new();
            frontend::cancel_request(self.pid, self.secret, &mut request);
            stream.write_all(&request)?;
            // The server closes when it has passed the request on.
            stream.read(&mut [0]).map(drop)
        };
        asked().map_err(|source| PgError::Io {
            what: format!("cancelling at {}", self.host),
            source,
        })
    }
}
