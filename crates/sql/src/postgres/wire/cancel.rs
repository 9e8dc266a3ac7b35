//! Asks a server, from another thread, to cancel a session's statement.

use super::connection::Connection;
use super::dial::{Way, dial};
use super::error::PgError;
use super::reach::timed_out;
use crate::postgres::conninfo::{ConnectOptions, Host};
use std::io::{ErrorKind, Read, Write};
use std::sync::Arc;
use std::time::Duration;

/// Longest wait; a healthy server handles a cancel request at once.
const ANSWER_MAX: Duration = Duration::from_secs(5);
/// Request code, in place of a protocol version.
const CANCEL_REQUEST: [u8; 4] = [0x04, 0xd2, 0x16, 0x2e];

/// Identifies a session in a cancel request.
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
    /// A token for another thread.
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
    /// Sends a cancel request on a separate connection, encrypted if the session is. Whether a statement was running is
    /// unknown.
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
        // The server closes the connection after forwarding the request; how it closes does not matter.
        let ended = asked.and_then(|()| match stream.read(&mut [0]) {
            Err(error) if error.kind() == ErrorKind::TimedOut => Err(timed_out(error, &options)),
            _ => Ok(()),
        });
        ended.map_err(|source| PgError::Io { what: format!("cancelling at {}", self.host), source })
    }
}
