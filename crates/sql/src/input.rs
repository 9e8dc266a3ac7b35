//! A reusable buffer of bytes that were received and not yet consumed.

use std::io::{Error, ErrorKind, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes requested from the socket at once; answers of the loop are far smaller.
const READ_BYTES: usize = 16 * 1024;

#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    /// The bytes of the last `take`; valid until the next `fill`.
    pub(crate) fn at(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// Number of bytes not yet consumed.
    pub(crate) fn waiting(&self) -> usize {
        self.end - self.begin
    }

    /// Consumes bytes of the buffer.
    pub(crate) fn take(&mut self, bytes: usize) -> Range<usize> {
        let taken = self.begin..self.begin + bytes;
        self.begin = taken.end;
        taken
    }

    /// Reads until the buffer holds so many bytes, and returns them. `within` limits the time from `begun`, or from the
    /// message's first byte, to its last.
    #[inline]
    pub(crate) fn fill(
        &mut self,
        wanted: usize,
        from: &mut impl Read,
        begun: &mut Option<Instant>,
        within: Duration,
    ) -> std::io::Result<&[u8]> {
        while self.waiting() < wanted {
            if self.waiting() > 0 || begun.is_some() {
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
        Ok(&self.bytes[self.begin..self.begin + wanted])
    }

    /// Makes room to read into. The buffer grows with the bytes that arrive, not with the length a message claims.
    fn make_room(&mut self, wanted: usize) {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        let have = self.waiting();
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
