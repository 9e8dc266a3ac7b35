//! Asks a server to cancel what a session does, from another thread.

use super::connection::Connection;
use super::dial::{Way, dial};
use super::error::PgError;
use super::reach::timed_out;
use crate::postgres::conninfo::{ConnectOptions, Host};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// A server that is well takes a request to cancel at once.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// In the place of a protocol version.
const CANCEL_REQUEST: [u8; 4] = [0x04, 0xd2, 0x16, 0x2e];

/// Knows a session well enough to cancel its statement.
#[derive(Clone)]
pub struct CancelToken {
    host: Host,
    way: Way,
    options: Arc<ConnectOptions>,
    pid: i32,
    /// 4 bytes, up to 256 with protocol 3.2.
    secret: Vec<u8>,
}

impl std::fmt::Debug for CancelToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CancelToken of server process {} at {}", self.pid, self.host)
    }
}

impl Connection {
    /// For another thread.
    #[must_use]
    pub fn cancel_token(&self) -> CancelToken {
        CancelToken {
            host: self.host.clone(),
            way: if self.stream.is_encrypted() { Way::Encrypted } else { Way::Plain },
            options: Arc::clone(&self.options),
            pid: self.pid,
            secret: self.secret.clone(),
        }
    }
}

impl CancelToken {
    /// Asks for it, on a connection of its own, encrypted where the session is; whether a statement was running to be
    /// cancelled is not known.
    ///
    /// # Errors
    /// The server cannot be reached.
    pub fn cancel(&self) -> Result<(), PgError> {
        let mut options = ConnectOptions::clone(&self.options);
        let given = options.connect_timeout.unwrap_or(ANSWER_MAX);
        options.connect_timeout = Some(given.min(ANSWER_MAX));
        let (mut stream, _) = dial(&self.host, self.way, &options)?;
        let length = u32::try_from(12 + self.secret.len()).unwrap_or(u32::MAX);
        let mut request = length.to_be_bytes().to_vec();
        request.extend(CANCEL_REQUEST);
        request.extend(self.pid.to_be_bytes());
        request.extend(&self.secret);
        let asked = stream.write_all(&request).and_then(|()| stream.flush());
        // The server closes when it has passed the request on; how it closes does not matter.
        let ended = asked.and_then(|()| match stream.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::TimedOut => Err(timed_out(error, &options)),
            _ => Ok(()),
        });
        ended.map_err(|source| PgError::Io { what: format!("cancelling at {}", self.host), source })
    }
}
