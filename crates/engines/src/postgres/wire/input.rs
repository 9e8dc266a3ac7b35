//! Messages of a server as they arrive, each one a kind and a body, in a buffer that is kept.

use std::io::{Error, ErrorKind, Read};
use std::ops::Range;

/// Bytes asked of the socket at once; answers of the loop are far smaller.
const READ_BYTES: usize = 16 * 1024;
/// No message we ask for is larger: a bad length is found before it is believed.
const MESSAGE_BYTES_MAX: usize = 64 << 20;
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
pub(super) struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    /// The body of a message that was the last one read.
    pub(super) fn body(&self, message: &Message) -> &[u8] {
        &self.bytes[message.body.clone()]
    }

    /// Waits for the next message.
    pub(super) fn next(&mut self, from: &mut impl Read) -> std::io::Result<Message> {
        self.fill(HEADER_BYTES, from)?;
        let header = &self.bytes[self.begin..self.begin + HEADER_BYTES];
        let kind = header[0];
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!(
                    "a message of kind {kind:#04x} claims {length} bytes: the server does not speak the protocol"
                ),
            ));
        }
        self.fill(1 + length, from)?;
        let body = self.begin + HEADER_BYTES..self.begin + 1 + length;
        self.begin += 1 + length;
        Ok(Message { kind, body })
    }

    /// Reads until so many bytes wait.
    fn fill(&mut self, wanted: usize, from: &mut impl Read) -> std::io::Result<()> {
        if self.end - self.begin >= wanted {
            return Ok(());
        }
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        if self.bytes.len() < self.begin + wanted.max(READ_BYTES) {
            self.bytes.copy_within(self.begin..self.end, 0);
            self.end -= self.begin;
            self.begin = 0;
            let room = wanted.max(READ_BYTES);
            if self.bytes.len() < room {
                self.bytes.resize(room, 0);
            }
        }
        while self.end - self.begin < wanted {
            match from.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::UnexpectedEof,
                        "the server closed the connection without a word; see its log",
                    ));
                }
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
