//! The hot path of a session: statements of a run, sent and answered over the socket of the crate's connection.
//!
//! The crate logs in, prepares and does everything that happens once. The protocol is question and answer, and between
//! two of them neither side keeps anything: a statement sent here, between two commands of the crate, is to the server
//! one of the same connection. A [`Call`] is COM_STMT_EXECUTE as bytes, made once; its values are patched in place.
//! Nothing is allocated, and a question and its answer are one system call each. The answer of a prepared select is a
//! count in one row of one column; that of a change the number of rows. The protocol is laid out in MariaDB's
//! documentation ("Clients & Utilities", "Server Response Packets").

use super::conn::{Connection, MyError};
use rustix::net::{RecvFlags, SendFlags, recv, send};
use std::io::{Error, ErrorKind, Result as IoResult};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// Length and number.
const HEADER_BYTES: usize = 4;
/// No packet that answers ours is longer: a bad length is found before it is believed.
const PACKET_BYTES_MAX: usize = 1 << 20;
/// Bytes asked of the socket at once.
const READ_BYTES: usize = 16 * 1024;
/// No table has so many rows: a larger count is kept from overflowing the sums it goes into.
const COUNT_MAX: u64 = 1 << 40;

const COM_QUERY: u8 = 0x03;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_VAR_STRING: u8 = 0xfd;
const UNSIGNED: u8 = 0x80;
const OK: u8 = 0x00;
const EOF: u8 = 0xfe;
const ERR: u8 = 0xff;
/// Its answer would ask us for a file.
const LOCAL_FILE: u8 = 0xfb;
/// An EOF packet is shorter: else it is a row whose first value is long.
const EOF_BYTES_MAX: usize = 9;

/// A question, ready to be patched and sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    bytes: Vec<u8>,
    texts: Vec<Range<usize>>,
    /// Where numbers lie, after the texts.
    numbers: Vec<usize>,
}

impl Call {
    /// A prepared statement with texts of `text_bytes` each, then numbers.
    pub(super) fn execute(id: u32, (texts, text_bytes): (usize, u8), numbers: usize) -> Self {
        debug_assert!(text_bytes < 0xfb, "a length of one byte");
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.push(COM_STMT_EXECUTE);
        bytes.extend(id.to_le_bytes());
        // No cursor; once.
        bytes.extend([0, 1, 0, 0, 0]);
        let values = texts + numbers;
        if values > 0 {
            // Nothing is NULL; types follow.
            bytes.extend(std::iter::repeat_n(0, values.div_ceil(8)));
            bytes.push(1);
            bytes.extend(std::iter::repeat_n([TYPE_VAR_STRING, 0], texts).flatten());
            bytes.extend(std::iter::repeat_n([TYPE_LONGLONG, UNSIGNED], numbers).flatten());
        }
        let mut call = Self { bytes, texts: Vec::new(), numbers: Vec::new() };
        for _ in 0..texts {
            call.bytes.push(text_bytes);
            let begin = call.bytes.len();
            call.bytes.resize(begin + usize::from(text_bytes), b' ');
            call.texts.push(begin..call.bytes.len());
        }
        for _ in 0..numbers {
            call.numbers.push(call.bytes.len());
            call.bytes.extend(0_u64.to_le_bytes());
        }
        call.numbered()
    }

    /// A statement as text.
    pub(super) fn query(sql: &str) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.push(COM_QUERY);
        bytes.extend(sql.bytes());
        Self { bytes, texts: Vec::new(), numbers: Vec::new() }.numbered()
    }

    /// With its header: three bytes of length, and the number of a first packet.
    fn numbered(mut self) -> Self {
        let length = (self.bytes.len() - HEADER_BYTES) as u32;
        debug_assert!(length < 0x00ff_ffff, "one packet");
        self.bytes[..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        self
    }

    /// Overwrites all texts, which come one after the other.
    pub(super) fn set_texts(&mut self, content: &[u8]) {
        let mut left = content;
        for range in &self.texts {
            let (text, rest) = left.split_at(range.len());
            self.bytes[range.clone()].copy_from_slice(text);
            left = rest;
        }
    }

    /// Overwrites a number, from 0.
    #[inline]
    pub(super) fn set_number(&mut self, index: usize, n: u64) {
        let at = self.numbers[index];
        self.bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }
}

/// See the module.
pub(super) struct Wire {
    socket: OwnedFd,
    input: Input,
}

impl Wire {
    /// Over the socket of a connection, if nothing stands between us and it.
    pub(super) fn over(connection: &Connection) -> Option<Self> {
        Some(Self { socket: connection.plain.then(|| connection.socket().ok())??, input: Input::default() })
    }

    /// To wait for answers.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Sends a question.
    ///
    /// # Errors
    /// A lost connection.
    #[inline]
    pub(super) fn ask(&mut self, call: &Call) -> Result<(), MyError> {
        let mut left = &call.bytes[..];
        while !left.is_empty() {
            match send(&self.socket, left, SendFlags::NOSIGNAL) {
                Ok(sent) => left = &left[sent..],
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => return Err(lost(error.into())),
            }
        }
        self.input.number = 1;
        Ok(())
    }

    /// Waits for the answer: the rows counted or changed.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub(super) fn answer(&mut self) -> Result<u64, MyError> {
        let socket = &self.socket;
        self.input.answer(|buffer| match recv(socket, buffer, RecvFlags::empty()) {
            Ok((_, read)) => Ok(read),
            Err(error) => Err(error.into()),
        })
    }
}

/// What has arrived.
#[derive(Debug, Default)]
struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
    /// Of the next packet.
    number: u8,
}

impl Input {
    /// Reads a whole answer.
    fn answer(&mut self, mut read: impl FnMut(&mut [u8]) -> IoResult<usize>) -> Result<u64, MyError> {
        let first = self.packet(&mut read).map_err(lost)?;
        let packet = &self.bytes[first];
        let columns = match *packet {
            [OK, ..] => return Ok(changed(packet).min(COUNT_MAX)),
            [ERR, ..] => return Err(refused(packet)),
            [LOCAL_FILE, ..] | [EOF, ..] | [] => return Err(lost(odd("an answer of no kind"))),
            // Some servers add whether they describe the columns: not if they are as they were.
            [_, 0] => 0,
            [columns, ..] => columns,
        };
        for _ in 0..columns {
            self.packet(&mut read).map_err(lost)?;
        }
        let end = self.packet(&mut read).map_err(lost)?;
        match &self.bytes[end] {
            [EOF, ..] => {}
            packet @ [ERR, ..] => return Err(refused(packet)),
            _ => return Err(lost(odd("columns without an end"))),
        }
        let mut rows = 0_u64;
        loop {
            let packet = self.packet(&mut read).map_err(lost)?;
            match &self.bytes[packet] {
                [EOF, rest @ ..] if rest.len() < EOF_BYTES_MAX - 1 => return Ok(rows),
                packet @ [ERR, ..] => return Err(refused(packet)),
                packet => rows = rows.saturating_add(counted(packet).map_err(lost)?),
            }
        }
    }

    /// The next packet without its header, where it lies until the one after it is read.
    fn packet(&mut self, read: &mut impl FnMut(&mut [u8]) -> IoResult<usize>) -> IoResult<Range<usize>> {
        self.fill(HEADER_BYTES, read)?;
        let header = &self.bytes[self.begin..self.begin + HEADER_BYTES];
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let number = header[3];
        if length > PACKET_BYTES_MAX {
            return Err(odd(&format!("a packet of {length} bytes")));
        }
        self.fill(HEADER_BYTES + length, read)?;
        let body = self.begin + HEADER_BYTES..self.begin + HEADER_BYTES + length;
        self.begin = body.end;
        // What a server says unasked, before it ends a connection, begins anew.
        if number != self.number && self.bytes[body.clone()].first() != Some(&ERR) {
            return Err(odd(&format!("packet {number} instead of {}", self.number)));
        }
        self.number = number.wrapping_add(1);
        Ok(body)
    }

    /// Reads until so many bytes wait.
    #[inline]
    fn fill(&mut self, bytes: usize, read: &mut impl FnMut(&mut [u8]) -> IoResult<usize>) -> IoResult<()> {
        if self.begin == self.end {
            (self.begin, self.end) = (0, 0);
        }
        while self.end - self.begin < bytes {
            if self.bytes.len() < self.begin + bytes.max(READ_BYTES) {
                self.bytes.copy_within(self.begin..self.end, 0);
                (self.begin, self.end) = (0, self.end - self.begin);
                self.bytes.resize(bytes.max(2 * READ_BYTES), 0);
            }
            match read(&mut self.bytes[self.end..]) {
                Ok(0) => return Err(Error::new(ErrorKind::BrokenPipe, "server disconnected")),
                Ok(got) => self.end += got,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

/// The rows that an OK packet says were changed: a number of one to nine bytes.
fn changed(packet: &[u8]) -> u64 {
    let number = |bytes: usize| {
        let mut wide = [0; 8];
        let there = packet.get(2..2 + bytes).unwrap_or_default();
        wide[..there.len()].copy_from_slice(there);
        u64::from_le_bytes(wide)
    };
    match packet.get(1) {
        Some(0xfc) => number(2),
        Some(0xfd) => number(3),
        Some(0xfe) => number(8),
        Some(&small) => small.into(),
        None => 0,
    }
}

/// The value of a row of one column, a count: a mark, the bits of what is NULL, the value.
fn counted(packet: &[u8]) -> IoResult<u64> {
    match packet {
        [0, 0, value @ ..] => match value.try_into() {
            Ok(value) => Ok(u64::from_le_bytes(value).min(COUNT_MAX)),
            Err(_) => Err(odd("a row that is no count")),
        },
        [0, _] => Ok(0),
        _ => Err(odd("a row that is no count")),
    }
}

/// What the server says is wrong: a number, a class of the standard, a text.
fn refused(packet: &[u8]) -> MyError {
    let code = match packet.get(1..3) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let text = packet.get(3..).unwrap_or_default();
    let (state, message) = match text {
        [b'#', rest @ ..] if rest.len() >= 5 => rest.split_at(5),
        text => (&b"HY000"[..], text),
    };
    let lossy = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    MyError::from(mysql::Error::MySqlError(mysql::MySqlError { state: lossy(state), message: lossy(message), code }))
}

fn lost(error: Error) -> MyError {
    MyError::from(mysql::Error::IoError(error))
}

fn odd(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, format!("the server does not follow the protocol: {what}"))
}

/// For fuzzing: the rows of an answer that arrives in pieces of at most so many bytes, or what is wrong.
#[doc(hidden)]
pub fn read_answer(bytes: &[u8], piece: usize) -> Result<u64, String> {
    let mut left = bytes;
    let read = |buffer: &mut [u8]| {
        let got = piece.min(left.len()).min(buffer.len());
        let (now, rest) = left.split_at(got);
        buffer[..got].copy_from_slice(now);
        left = rest;
        Ok(got)
    };
    let mut input = Input { number: 1, ..Input::default() };
    input.answer(read).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes of an answer that arrives in pieces of so many bytes.
    fn of(packets: &[&[u8]], piece: usize) -> Result<u64, String> {
        let mut bytes = Vec::new();
        for (n, packet) in packets.iter().enumerate() {
            let length = (packet.len() as u32).to_le_bytes();
            bytes.extend([length[0], length[1], length[2], n as u8 + 1]);
            bytes.extend_from_slice(packet);
        }
        read_answer(&bytes, piece)
    }

    const END: &[u8] = &[EOF, 0, 0, 2, 0];
    const ROW: &[u8] = &[0, 0, 7, 1, 0, 0, 0, 0, 0, 0];

    #[test]
    fn an_answer_is_read_however_it_arrives() {
        let column = [b'x'; 40];
        for piece in [1, 3, 5, 4096] {
            assert_eq!(of(&[&[1, 1], &column, END, ROW, END], piece), Ok(263));
            assert_eq!(of(&[&[1], &column, END, ROW, END], piece), Ok(263));
            assert_eq!(of(&[&[1, 0], END, ROW, END], piece), Ok(263));
            assert_eq!(of(&[&[1, 0], END, END], piece), Ok(0));
            assert_eq!(of(&[&[OK, 5, 0, 2, 0, 0, 0]], piece), Ok(5));
            assert_eq!(of(&[&[OK, 0xfc, 0, 2, 0, 2, 0, 0, 0]], piece), Ok(512));
        }
    }

    #[test]
    fn what_the_server_says_is_wrong_is_told() {
        let text = b"\xff\xbd\x04#40001Deadlock found";
        assert_eq!(of(&[text], 7), Err("Deadlock found (error 1213)".to_owned()));
        assert_eq!(of(&[&[1, 0], END, text], 7), Err("Deadlock found (error 1213)".to_owned()));
    }

    #[test]
    fn what_the_server_says_does_nothing_to_a_terminal() {
        assert_eq!(of(&[b"\xff\xbd\x04#40001a\x1b[2J\nb"], 7), Err("a [2J b (error 1213)".to_owned()));
    }

    #[test]
    fn an_answer_that_is_none_is_refused() {
        for packets in [
            &[&[LOCAL_FILE, 1][..]][..],
            &[END],
            &[&[]],
            &[&[1, 0], ROW],
            &[&[1, 0], END, &[0, 0, 1]],
            &[&[1, 0], END, b"text"],
        ] {
            let said = of(packets, 4096).expect_err("no answer");
            assert!(said.contains("does not follow the protocol"), "{said}");
        }
        let cut = of(&[&[1, 0], END], 4096);
        assert_eq!(cut, Err("server disconnected".to_owned()));
    }

    proptest::proptest! {
        /// Whatever a server sends, in whatever pieces: an answer or an error, never a panic, and no count out of bounds.
        #[test]
        fn any_bytes_are_an_answer_or_an_error(
            packets in proptest::collection::vec(proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..40), 0..6),
            kinds in proptest::collection::vec(proptest::sample::select(vec![OK, ERR, EOF, LOCAL_FILE, 1, 3]), 6),
            raw in proptest::collection::vec(proptest::arbitrary::any::<u8>(), 0..80),
            piece in 1_usize..50,
        ) {
            let mut packets = packets;
            // Kinds that there are, so that what lies behind them is reached.
            for (packet, kind) in packets.iter_mut().zip(kinds) {
                packet.insert(0, kind);
            }
            let packets: Vec<&[u8]> = packets.iter().map(Vec::as_slice).collect();
            proptest::prop_assert!(of(&packets, piece).unwrap_or(0) <= COUNT_MAX * 6);
            let _ = read_answer(&raw, piece);
        }
    }
}
