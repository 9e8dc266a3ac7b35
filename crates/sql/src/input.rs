//! Bytes that a server has sent and no reader has taken yet, in a buffer that is kept.

use std::io::{Error, ErrorKind, Read};
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes asked of the socket at once; answers of the loop are far smaller.
const READ_BYTES: usize = 16 * 1024;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    /// What was taken last lies here until more is asked for.
    pub(crate) fn at(&self, place: Range<usize>) -> &[u8] {
        &self.bytes[place]
    }

    /// Bytes that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.end - self.begin
    }

    /// Takes bytes that wait.
    pub(crate) fn take(&mut self, bytes: usize) -> Range<usize> {
        let taken = self.begin..self.begin + bytes;
        self.begin = taken.end;
        taken
    }

    /// Reads until so many bytes wait, and shows them. From `begun` on, or from the first byte, that may take no longer than `within`.
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

    /// Room to read into. It grows with what has arrived, not with what is claimed.
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
