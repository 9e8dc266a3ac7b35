//! Messages of a server as they arrive, each one a kind and a body, in a buffer that is kept.

use std::io::{Error, ErrorKind, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes asked of the socket at once; answers of the loop are far smaller.
const READ_BYTES: usize = 16 * 1024;
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

    /// Waits for the next message, which from its first byte on may take no longer than `within`.
    pub(super) fn next(&mut self, from: &mut impl Read, within: Duration) -> std::io::Result<Message> {
        let mut begun = None;
        self.fill(HEADER_BYTES, from, &mut begun, within)?;
        let header = &self.bytes[self.begin..self.begin + HEADER_BYTES];
        let kind = header[0];
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]) as usize;
        if !(4..=MESSAGE_BYTES_MAX).contains(&length) {
            return Err(Error::new(
                ErrorKind::InvalidData,
                format!("a message of kind {kind:#04x} claims {length} bytes: the server does not follow the protocol"),
            ));
        }
        self.fill(1 + length, from, &mut begun, within)?;
        let body = self.begin + HEADER_BYTES..self.begin + 1 + length;
        self.begin += 1 + length;
        Ok(Message { kind, body })
    }

    /// Reads until so many bytes wait.
    fn fill(
        &mut self,
        wanted: usize,
        from: &mut impl Read,
        begun: &mut Option<Instant>,
        within: Duration,
    ) -> std::io::Result<()> {
        while self.end - self.begin < wanted {
            if self.end > self.begin {
                let begun = begun.get_or_insert_with(Instant::now);
                if begun.elapsed() > within {
                    return Err(Error::new(
                        ErrorKind::ConnectionAborted,
                        format!("a message of the server stayed unfinished for {} s", within.as_secs()),
                    ));
                }
            }
            self.make_room(wanted);
            match from.read(&mut self.bytes[self.end..]) {
                Ok(0) => {
                    return Err(Error::new(
                        ErrorKind::UnexpectedEof,
                        "the server closed the connection without a message; see its log",
                    ));
                }
                Ok(n) => self.end += n,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Room to read into. It grows with what has arrived, not with what is claimed.
    fn make_room(&mut self, wanted: usize) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        let have = self.end - self.begin;
        let room = wanted.min(2 * have).max(have + 1).max(READ_BYTES);
        if self.bytes.len() < self.begin + room {
            self.bytes.copy_within(self.begin..self.end, 0);
            (self.begin, self.end) = (0, have);
            if self.bytes.len() < room {
                self.bytes.resize(room, 0);
            }
        }
    }
}
