//! COPY ... FROM STDIN: rows in bulk.

use super::connection::Connection;
use super::error::PgError;
use postgres_protocol::message::frontend;
use std::io::Write;

/// Bytes of a message's kind and length.
pub const FRAME_BYTES: usize = 5;

/// Bytes collected before they are sent.
const SEND_BYTES: usize = 256 * 1024;

/// A COPY in progress. Dropping it without [`CopyIn::finish`] makes the connection unusable: abort it instead.
#[derive(Debug)]
pub struct CopyIn<'a> {
    connection: &'a mut Connection,
}

impl Connection {
    /// Begins a COPY from the client.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn copy_in(&mut self, sql: &str) -> Result<CopyIn<'_>, PgError> {
        let begun = frontend::query(sql, &mut self.output);
        begun.map_err(|source| self.lost("copy", source))?;
        self.send("copy")?;
        let mut refused = None;
        loop {
            let message = self.receive("copy")?;
            match message.kind {
                b'G' => return Ok(CopyIn { connection: self }),
                b'E' => refused = Some(self.server_error(&message)),
                b'Z' => return Err(refused.unwrap_or_else(|| self.unexpected(b'Z', "copy"))),
                other => return Err(self.unexpected(other, "copy")),
            }
        }
    }
}

impl CopyIn<'_> {
    /// Sends a piece; its end need not be the end of a row.
    ///
    /// # Errors
    /// A lost connection. [`CopyIn::finish`] reports the server's errors about the rows.
    pub fn send(&mut self, piece: &[u8]) -> Result<(), PgError> {
        let data = frontend::CopyData::new(piece).map_err(|source| self.connection.lost("copy", source))?;
        data.write(&mut self.connection.output);
        if self.connection.output.len() >= SEND_BYTES {
            self.connection.send("copy")?;
        }
        Ok(())
    }

    /// Sends a message built in place: `framed` starts with [`FRAME_BYTES`] bytes for the header, which this fills in.
    /// The rows are not copied again on their way to the socket.
    ///
    /// # Errors
    /// A lost connection.
    pub fn send_framed(&mut self, framed: &mut [u8]) -> Result<(), PgError> {
        let length = u32::try_from(framed.len() - 1)
            .map_err(|_| PgError::Refused("a piece of a COPY has 4 GiB or more".to_owned()))?;
        framed[0] = b'd';
        framed[1..FRAME_BYTES].copy_from_slice(&length.to_be_bytes());
        if !self.connection.output.is_empty() {
            self.connection.send("copy")?;
        }
        let sent = self.connection.stream.write_all(framed);
        sent.map_err(|source| self.connection.lost("copy", source))
    }

    /// Ends the COPY; returns the number of rows the server accepted.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn finish(self) -> Result<u64, PgError> {
        frontend::copy_done(&mut self.connection.output);
        self.ended()
    }

    /// Aborts the COPY: the server keeps none of the rows.
    ///
    /// # Errors
    /// A lost connection.
    pub fn abort(self, why: &str) -> Result<(), PgError> {
        let failed = frontend::copy_fail(why, &mut self.connection.output);
        failed.map_err(|source| self.connection.lost("copy", source))?;
        match self.ended() {
            Ok(_) | Err(PgError::Server(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn ended(self) -> Result<u64, PgError> {
        self.connection.send("copy")?;
        let (mut refused, mut rows) = (None, 0);
        loop {
            let message = self.connection.receive("copy")?;
            match message.kind {
                b'C' => rows = super::connection::touched_by(self.connection.input.body(&message)),
                b'E' => refused = Some(self.connection.server_error(&message)),
                b'Z' => {
                    self.connection.ready(&message)?;
                    return refused.map_or(Ok(rows), Err);
                }
                other => return Err(self.connection.unexpected(other, "copy")),
            }
        }
    }
}
