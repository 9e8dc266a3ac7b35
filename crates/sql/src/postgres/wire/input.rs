//! Messages of a server as they arrive, each one a kind and a body, in a buffer that is kept.

use crate::input;
use std::io::{Error, ErrorKind, Read};
use std::ops::Range;
use std::time::Duration;

/// No message we ask for is larger: a bad length is found before it is believed.
const MESSAGE_BYTES_MAX: usize = 16 << 20;
/// Kind and length.
const HEADER_BYTES: usize = 5;

/// A message: its kind, and where its body lies in the buffer until the next one is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Message {
    pub(super) kind: u8,
    pub(super) body: Range<usize>,
}

/// The receiving half of a connection.
#[derive(Debug, Default)]
pub(super) struct Input(input::Input);

impl Input {
    /// The body of a message that was the last one read.
    pub(super) fn body(&self, message: &Message) -> &[u8] {
        self.0.at(message.body.clone())
    }

    /// Waits for the next message, which from its first byte on may take no longer than `within`.
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
