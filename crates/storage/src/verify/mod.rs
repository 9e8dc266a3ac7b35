//! Checks that the data read is the data written.
//!
//! Owns the header that `verify=crc32c` puts into each interval, the comparison with a pattern, and the list of
//! completed writes. The work loop stamps before a write and checks after a read. `docs/design/storage-payload.md` has
//! the header layout.

mod content;
mod written;

pub use content::{Content, never_verifies};
pub use written::{Written, WrittenBlock};

use super::payload::Template;
use super::spec::{PayloadOptions, SpecError, Verify};

/// Bytes of a header.
pub const HEADER_BYTES: usize = 48;
const MAGIC: [u8; 8] = *b"ASYVRFY1";
/// Bytes before the header's own checksum.
const CHECKED_BYTES: usize = HEADER_BYTES - 4;

/// A block that differs from what was written.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("verify: byte {offset} of {file}: {what}: expected {expected}, found {found}")]
pub struct BlockDifference {
    /// The file's path.
    pub file: String,
    /// First wrong byte, as far as it can be determined; otherwise the first of its interval.
    pub offset: u64,
    /// The part of the block that is wrong.
    pub what: &'static str,
    /// The expected content.
    pub expected: String,
    /// The content found.
    pub found: String,
}

/// What a reader knows of the write that a block should come from; by default nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExpectedWrite {
    /// The number of the run that wrote it; `None`: any run.
    pub run: Option<u64>,
    /// The number of the write; `None`: any.
    pub sequence: Option<u64>,
}

/// Stamps and checks blocks.
#[derive(Clone, Debug)]
pub struct Verifier {
    method: Method,
    /// Bytes covered by each header; 0: the whole I/O.
    interval: usize,
    run: u64,
}

#[derive(Clone, Debug)]
enum Method {
    Crc32c,
    Pattern(Template),
}

impl Verifier {
    /// The verifier of a job; `None` if nothing is to be verified. `run` is unique to this run.
    ///
    /// # Errors
    /// `verify=pattern` without a pattern; an interval too short for a header.
    pub fn new(options: &PayloadOptions, run: u64) -> Result<Option<Self>, SpecError> {
        let invalid = |what: String| SpecError { origin: "job".to_owned(), what };
        let interval = options.verify_interval as usize;
        let method = match options.verify {
            Verify::None => return Ok(None),
            Verify::Crc32c => {
                if interval > 0 && interval <= HEADER_BYTES {
                    return Err(invalid(format!(
                        "verify_interval={interval} has no room for content behind a header of {HEADER_BYTES} bytes"
                    )));
                }
                Method::Crc32c
            }
            Verify::Pattern => {
                let bytes = options.verify_pattern.as_deref().unwrap_or_default();
                let template = Template::new(bytes, &options.verify_pattern_offsets)
                    .ok_or_else(|| invalid("verify=pattern needs verify_pattern".to_owned()))?;
                Method::Pattern(template)
            }
        };
        Ok(Some(Self { method, interval, run }))
    }

    /// Smallest I/O that can be verified, bytes.
    #[must_use]
    pub fn least_bytes(&self) -> usize {
        match self.method {
            Method::Crc32c => HEADER_BYTES + 1,
            Method::Pattern(_) => 1,
        }
    }

    /// Writes the headers into a buffer for write `sequence` at `offset`. Its content must be final.
    pub fn stamp(&self, buffer: &mut [u8], offset: u64, sequence: u64) {
        if !matches!(self.method, Method::Crc32c) {
            return;
        }
        let mut at = 0;
        while at < buffer.len() {
            let len = self.interval_at(at, buffer.len());
            let piece = &mut buffer[at..at + len];
            let crc = crc32c::crc32c(piece.get(HEADER_BYTES..).unwrap_or_default());
            let header = Header { offset, sequence, run: self.run, len: len as u32, place: at as u32, crc };
            let bytes = header.to_bytes();
            let fits = piece.len().min(HEADER_BYTES);
            piece[..fits].copy_from_slice(&bytes[..fits]);
            at += len;
        }
    }

    /// Checks the data read from `offset` of `file`. `expected` describes the write it should come from, as far as that
    /// is known.
    ///
    /// # Errors
    /// The first mismatch.
    pub fn check(
        &self,
        buffer: &[u8],
        file: &str,
        offset: u64,
        expected: ExpectedWrite,
    ) -> Result<(), BlockDifference> {
        match &self.method {
            Method::Pattern(template) => match template.first_difference(buffer, 0, offset) {
                None => Ok(()),
                Some(at) => Err(BlockDifference {
                    file: file.to_owned(),
                    offset: offset + at as u64,
                    what: "pattern",
                    expected: format!("{:#04x}", template.byte(at, offset)),
                    found: format!("{:#04x}", buffer[at]),
                }),
            },
            Method::Crc32c => {
                let mut at = 0;
                while at < buffer.len() {
                    let len = self.interval_at(at, buffer.len());
                    self.check_interval(&buffer[at..at + len], offset, at, expected).map_err(|wrong| {
                        BlockDifference {
                            file: file.to_owned(),
                            offset: offset + at as u64,
                            what: wrong.0,
                            expected: wrong.1,
                            found: wrong.2,
                        }
                    })?;
                    at += len;
                }
                Ok(())
            }
        }
    }

    /// The number of this run, for [`ExpectedWrite::run`].
    #[must_use]
    pub fn run(&self) -> u64 {
        self.run
    }

    /// Length of the interval that starts at `at` in an I/O of `len` bytes: an interval too short for a header joins
    /// the one before.
    fn interval_at(&self, at: usize, len: usize) -> usize {
        let left = len - at;
        if self.interval == 0 || left < self.interval + HEADER_BYTES + 1 { left } else { self.interval }
    }

    fn check_interval(&self, piece: &[u8], offset: u64, place: usize, expected: ExpectedWrite) -> Result<(), Wrong> {
        let Some(header) = Header::from_bytes(piece) else {
            return Err(("header", "a header".into(), "less than one".into()));
        };
        if piece[..8] != MAGIC {
            let found = piece[..8].iter().map(|b| format!("{b:02x}")).collect();
            return Err(("magic", hex_of(&MAGIC), found));
        }
        let stored = word32(piece, CHECKED_BYTES);
        let own = crc32c::crc32c(&piece[..CHECKED_BYTES]);
        if own != stored {
            return Err(("header checksum", format!("{own:#010x}"), format!("{stored:#010x}")));
        }
        let numbers = [
            ("offset of the write", Some(offset), header.offset),
            ("place in the write", Some(place as u64), u64::from(header.place)),
            ("length", Some(piece.len() as u64), u64::from(header.len)),
            ("number of the run", expected.run, header.run),
            ("number of the write", expected.sequence, header.sequence),
        ];
        for (what, wanted, found) in numbers {
            if let Some(wanted) = wanted.filter(|wanted| *wanted != found) {
                return Err((what, wanted.to_string(), found.to_string()));
            }
        }
        let crc = crc32c::crc32c(&piece[HEADER_BYTES..]);
        if crc != header.crc {
            return Err(("checksum of the content", format!("{:#010x}", header.crc), format!("{crc:#010x}")));
        }
        Ok(())
    }
}

/// What, expected, found.
type Wrong = (&'static str, String, String);

fn hex_of(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn word32(bytes: &[u8], at: usize) -> u32 {
    let word = bytes[at..at + 4].try_into();
    u32::from_le_bytes(word.expect("the slice has 4 bytes"))
}

fn word64(bytes: &[u8], at: usize) -> u64 {
    let word = bytes[at..at + 8].try_into();
    u64::from_le_bytes(word.expect("the slice has 8 bytes"))
}

/// The header of an interval; all numbers are little-endian.
struct Header {
    offset: u64,
    sequence: u64,
    run: u64,
    len: u32,
    place: u32,
    crc: u32,
}

impl Header {
    fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        for (i, word) in [self.offset, self.sequence, self.run].into_iter().enumerate() {
            bytes[8 + i * 8..][..8].copy_from_slice(&word.to_le_bytes());
        }
        for (i, word) in [self.len, self.place, self.crc].into_iter().enumerate() {
            bytes[32 + i * 4..][..4].copy_from_slice(&word.to_le_bytes());
        }
        let own = crc32c::crc32c(&bytes[..CHECKED_BYTES]);
        bytes[CHECKED_BYTES..].copy_from_slice(&own.to_le_bytes());
        bytes
    }

    /// Parses a header; `None` if there are too few bytes.
    fn from_bytes(bytes: &[u8]) -> Option<Self> {
        (bytes.len() >= HEADER_BYTES).then(|| Self {
            offset: word64(bytes, 8),
            sequence: word64(bytes, 16),
            run: word64(bytes, 24),
            len: word32(bytes, 32),
            place: word32(bytes, 36),
            crc: word32(bytes, 40),
        })
    }
}

#[cfg(test)]
mod tests;
