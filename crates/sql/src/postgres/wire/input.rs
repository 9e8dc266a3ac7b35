//! Messages from a server, each a kind and a body, in a reusable buffer.

use crate::input;
use std::io::{Error, ErrorKind, Read};
use std::ops::Range;
use std::time::Duration;

/// Largest message expected; a longer length is an error before any of it is read.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Bytes of kind and length.
const HEADER_BYTES: usize = 5;

/// A message: its kind, and the position of its body in the buffer, valid until the next message is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) body: Range<usize>,
}

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(super) struct Input(input::Input);

impl Input {
    /// The body of the message read last.
    pub(super) fn body(&self, message: &Message) -> &[u8] {
        self.0.at(message.body.clone())
    }

    /// Waits for the next message; `within` limits the time from its first byte to its last.
    pub(super) fn next(&mut self, from: &mut impl Read, within: Duration) -> std::io::Result<Message> {
        let mut begun = None;
        let header = self.0.fill(HEADER_BYTES, from, &mut begun, within)?;
        let kind = header[0];
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!("a message of kind {kind:#04x} claims {length} bytes: the server does not follow the protocol"),
            ));
        }
        self.0.fill(1 + length, from, &mut begun, within)?;
        self.0.take(HEADER_BYTES);
        Ok(Message { kind, body: self.0.take(1 + length - HEADER_BYTES) })
    }
}
