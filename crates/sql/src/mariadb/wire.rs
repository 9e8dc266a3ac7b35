//! The protocol: requests as packets, and answers as they arrive.
//!
//! Each request has one answer, and neither side keeps protocol state in between. A [`Call`] is a prebuilt
//! COM_STMT_EXECUTE whose values are patched in place. Sending it and reading its answer allocate nothing and take one
//! system call each. The answer to a prepared select is a count in a single row and column; that to an update is the
//! number of rows. Lengths that a server announces are not trusted before the bytes have arrived. MariaDB's
//! documentation describes the protocol ("Clients & Utilities", "Server Response Packets").

use super::error::MyError;
use crate::input::Input;
use std::io::Read;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Bytes of length and sequence number.
const HEADER_BYTES: usize = 4;
/// Longest packet; one of this length continues in the next.
const PACKET_BYTES_MAX: usize = 0x00ff_ffff;
/// Largest answer accepted. assay's queries return far less, and rows are kept in memory.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Most columns a server can return.
const COLUMNS_MAX: u64 = 4096;
/// No table has so many rows: larger counts are cut, so that sums do not overflow.
const COUNT_MAX: u64 = 1 << 40;

pub(super) const COM_QUIT: u8 = 0x01;
pub(super) const COM_QUERY: u8 = 0x03;
pub(super) const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const TYPE_TINY: u8 = 0x01;
const TYPE_SHORT: u8 = 0x02;
const TYPE_LONG: u8 = 0x03;
const TYPE_FLOAT: u8 = 0x04;
const TYPE_DOUBLE: u8 = 0x05;
const TYPE_NULL: u8 = 0x06;
const TYPE_TIMESTAMP: u8 = 0x07;
const TYPE_LONGLONG: u8 = 0x08;
const TYPE_INT24: u8 = 0x09;
const TYPE_DATE: u8 = 0x0a;
const TYPE_TIME: u8 = 0x0b;
const TYPE_DATETIME: u8 = 0x0c;
const TYPE_YEAR: u8 = 0x0d;
const TYPE_VAR_STRING: u8 = 0xfd;
const UNSIGNED: u8 = 0x80;
/// The same flag in a column's description.
const UNSIGNED_COLUMN: u8 = 0x20;
pub(super) const OK: u8 = 0x00;
pub(super) const EOF: u8 = 0xfe;
pub(super) const ERR: u8 = 0xff;
const NULL: u8 = 0xfb;
/// The server requests a file.
pub(super) const LOCAL_FILE: u8 = 0xfb;
/// An EOF packet is shorter than this; a longer packet is a row whose first value is long.
const EOF_BYTES_MAX: usize = 9;
/// Longest server message that is kept.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Status flag: another result set follows.
const MORE: u8 = 0x08;

/// Splits a payload into packets numbered from `number`; also returns the next number.
pub(super) fn packets(payload: &[u8], mut number: u8) -> (Vec<u8>, u8) {
    let mut bytes = Vec::with_capacity(payload.len() + HEADER_BYTES);
    let mut rest = payload;
    loop {
        let (now, after) = rest.split_at(rest.len().min(PACKET_BYTES_MAX));
        let length = (now.len() as u32).to_le_bytes();
        bytes.extend([length[0], length[1], length[2], number]);
        bytes.extend_from_slice(now);
        number = number.wrapping_add(1);
        if now.len() < PACKET_BYTES_MAX {
            return (bytes, number);
        }
        rest = after;
    }
}

/// A request, ready to be patched and sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) bytes: Vec<u8>,
    texts: Vec<Range<usize>>,
    /// Positions of the numbers, after the texts.
    numbers: Vec<usize>,
}

impl Call {
    /// Executes a prepared statement with texts of `text_bytes` each, followed by numbers.
    pub(super) fn execute(id: u32, (texts, text_bytes): (usize, u8), numbers: usize) -> Self {
        debug_assert!(text_bytes < 0xfb, "a length of one byte");
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.push(COM_STMT_EXECUTE);
        bytes.extend(id.to_le_bytes());
        // No cursor; one iteration.
        bytes.extend([0, 1, 0, 0, 0]);
        let values = texts + numbers;
        if values > 0 {
            // No NULL values; types follow.
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

    /// A text statement.
    pub(super) fn query(sql: &str) -> Self {
        let mut bytes = vec![0; HEADER_BYTES];
        bytes.push(COM_QUERY);
        bytes.extend(sql.bytes());
        Self { bytes, texts: Vec::new(), numbers: Vec::new() }.numbered()
    }

    /// Adds the header: three bytes of length, and the number of a first packet.
    fn numbered(mut self) -> Self {
        let length = (self.bytes.len() - HEADER_BYTES) as u32;
        debug_assert!(length < 0x00ff_ffff, "one packet");
        self.bytes[..HEADER_BYTES].copy_from_slice(&length.to_le_bytes());
        self
    }

    /// Overwrites all texts, given one after the other.
    pub(super) fn set_texts(&mut self, content: &[u8]) {
        let mut left = content;
        for range in &self.texts {
            let (text, rest) = left.split_at(range.len());
            self.bytes[range.clone()].copy_from_slice(text);
            left = rest;
        }
    }

    /// Overwrites number `index`, from 0.
    #[inline]
    pub(super) fn set_number(&mut self, index: usize, n: u64) {
        let at = self.numbers[index];
        self.bytes[at..at + 8].copy_from_slice(&n.to_le_bytes());
    }
}

/// A parameter value of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bind<'a> {
    Null,
    Int(i64),
    Double(f64),
    Text(&'a [u8]),
}

/// The packet that executes a prepared statement with these values.
pub(super) fn execute(id: u32, values: &[Bind<'_>]) -> Vec<u8> {
    let mut bytes = vec![COM_STMT_EXECUTE];
    bytes.extend(id.to_le_bytes());
    // No cursor; one iteration.
    bytes.extend([0, 1, 0, 0, 0]);
    if values.is_empty() {
        return bytes;
    }
    let mut nulls = vec![0_u8; values.len().div_ceil(8)];
    for (at, _) in values.iter().enumerate().filter(|(_, value)| matches!(value, Bind::Null)) {
        nulls[at / 8] |= 1 << (at % 8);
    }
    bytes.extend(nulls);
    // Types follow.
    bytes.push(1);
    bytes.extend(values.iter().flat_map(|value| match value {
        Bind::Null => [TYPE_NULL, 0],
        Bind::Int(_) => [TYPE_LONGLONG, 0],
        Bind::Double(_) => [TYPE_DOUBLE, 0],
        Bind::Text(_) => [TYPE_VAR_STRING, 0],
    }));
    for value in values {
        match value {
            Bind::Null => {}
            Bind::Int(n) => bytes.extend(n.to_le_bytes()),
            Bind::Double(x) => bytes.extend(x.to_le_bytes()),
            Bind::Text(text) => {
                bytes.push(EOF);
                bytes.extend((text.len() as u64).to_le_bytes());
                bytes.extend_from_slice(text);
            }
        }
    }
    bytes
}

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind {
    code: u8,
    unsigned: bool,
}

/// A value of a row in binary.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Value<'a> {
    Int(i64),
    Bytes(&'a [u8]),
    /// NULL, or a type that assay does not request.
    Other,
}

/// Final status of an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) changed: u64,
    /// `last_insert_id()`
    pub(super) inserted: u64,
    more: bool,
}

/// Handles a row with these column types; `None` if the row is malformed.
pub(super) type OnRow<'a> = dyn FnMut(&[u8], &[Kind]) -> Option<()> + 'a;

/// Packets as they arrive.
#[derive(Debug, Default)]
pub(super) struct Packets {
    input: Input,
    /// Sequence number of the next packet in either direction.
    pub(super) number: u8,
    /// Bytes received of the current answer.
    received: usize,
    /// When the wait for the rest of the answer began, and its time limit.
    begun: Option<Instant>,
    within: Duration,
}

impl Packets {
    /// `within` limits the time of an answer from its first packet to its last.
    pub(super) fn new(within: Duration) -> Self {
        Self { within, ..Self::default() }
    }

    /// Expects the answer to a request that ended before packet `number`.
    ///
    /// # Errors
    /// Bytes after the last answer that are not a closing message.
    #[inline]
    pub(super) fn expect(&mut self, number: u8) -> Result<(), MyError> {
        (self.number, self.received, self.begun) = (number, 0, None);
        if self.is_empty() {
            return Ok(());
        }
        match self.input.fill(HEADER_BYTES + 1, &mut std::io::empty(), &mut None, self.within) {
            Ok([.., ERR]) => Ok(()),
            _ => Err(MyError::odd("unrequested data")),
        }
    }

    /// Whether all received bytes were consumed.
    pub(super) fn is_empty(&self) -> bool {
        self.input.waiting() == 0
    }

    /// The packet read last.
    pub(super) fn at(&self, packet: Range<usize>) -> &[u8] {
        self.input.at(packet)
    }

    /// Reads the next packet; its position, without the header, is valid until the following packet is read.
    pub(super) fn next(&mut self, from: &mut impl Read) -> Result<Range<usize>, MyError> {
        if self.received > 0 && self.input.waiting() < HEADER_BYTES {
            self.begun.get_or_insert_with(Instant::now);
        }
        let header = self.input.fill(HEADER_BYTES, from, &mut self.begun, self.within)?;
        let length = u32::from_le_bytes([header[0], header[1], header[2], 0]) as usize;
        let number = header[3];
        self.keep(HEADER_BYTES + length)?;
        self.input.fill(HEADER_BYTES + length, from, &mut self.begun, self.within)?;
        self.input.take(HEADER_BYTES);
        let body = self.input.take(length);
        // An unrequested message before the server closes the connection starts a new numbering.
        if number != self.number && self.at(body.clone()).first() != Some(&ERR) {
            return Err(MyError::odd(&format!("packet {number} instead of {}", self.number)));
        }
        self.number = number.wrapping_add(1);
        Ok(body)
    }

    /// Counts bytes of the answer that are kept in memory.
    fn keep(&mut self, bytes: usize) -> Result<(), MyError> {
        self.received += bytes;
        if self.received <= ANSWER_BYTES_MAX {
            Ok(())
        } else {
            Err(MyError::odd(&format!("an answer of more than {} MiB", ANSWER_BYTES_MAX >> 20)))
        }
    }

    /// Reads the answer to a [`Call`]: the number of rows counted or changed.
    pub(super) fn counted(&mut self, from: &mut impl Read) -> Result<u64, MyError> {
        let first = self.next(from)?;
        let packet = self.at(first);
        let columns = match *packet {
            [OK, ..] => return Ok(done(packet)?.changed.min(COUNT_MAX)),
            [ERR, ..] => return Err(refused(packet)),
            [LOCAL_FILE, ..] | [EOF, ..] | [] => return Err(MyError::odd("an unexpected packet")),
            // Some servers add a flag for whether they describe the columns; they do not if the columns are unchanged.
            [_, 0] => 0,
            [columns, ..] => columns,
        };
        for _ in 0..columns {
            self.next(from)?;
        }
        self.end_of_columns(from)?;
        let mut rows = 0_u64;
        loop {
            let packet = self.next(from)?;
            match self.at(packet) {
                [EOF, rest @ ..] if rest.len() < EOF_BYTES_MAX - 1 => return Ok(rows),
                packet @ [ERR, ..] => return Err(refused(packet)),
                packet => rows = rows.saturating_add(count(packet)?),
            }
        }
    }

    /// Reads the rest of an answer whose first packet is `first`, including further result sets, and passes on the rows
    /// of the first set. `kinds` are the column types of the last set read, since servers do not repeat unchanged
    /// descriptions.
    pub(super) fn rows(
        &mut self,
        first: Range<usize>,
        from: &mut impl Read,
        kinds: &mut Vec<Kind>,
        row: &mut OnRow<'_>,
    ) -> Result<Done, MyError> {
        let (mut first, mut wanted) = (first, true);
        loop {
            let packet = self.at(first);
            let end = match packet {
                [OK, ..] => done(packet)?,
                [ERR, ..] => return Err(refused(packet)),
                [LOCAL_FILE, ..] => return Err(MyError::odd("it asks for a file that assay did not offer")),
                [EOF, _, ..] | [1..=0xfd, ..] => {
                    let (columns, rest) = length(packet).ok_or_else(|| MyError::odd("an unexpected packet"))?;
                    self.columns(columns, rest != [0], from, kinds)?;
                    let more = self.set(from, kinds, if wanted { Some(&mut *row) } else { None })?;
                    wanted = false;
                    Done { more, ..Done::default() }
                }
                _ => return Err(MyError::odd("an unexpected packet")),
            };
            if !end.more {
                return Ok(end);
            }
            first = self.next(from)?;
        }
    }

    fn columns(
        &mut self,
        columns: u64,
        described: bool,
        from: &mut impl Read,
        kinds: &mut Vec<Kind>,
    ) -> Result<(), MyError> {
        if columns > COLUMNS_MAX {
            return Err(MyError::odd(&format!("an answer of {columns} columns")));
        }
        if described {
            self.described(columns, from, kinds)?;
        } else if kinds.len() as u64 != columns {
            return Err(MyError::odd("columns without a description"));
        }
        self.end_of_columns(from)
    }

    fn described(&mut self, columns: u64, from: &mut impl Read, kinds: &mut Vec<Kind>) -> Result<(), MyError> {
        kinds.clear();
        for _ in 0..columns {
            let packet = self.next(from)?;
            let kind = match self.at(packet) {
                packet @ [ERR, ..] => return Err(refused(packet)),
                packet => kind(packet),
            };
            kinds.push(kind.ok_or_else(|| MyError::odd("a column that is none"))?);
        }
        Ok(())
    }

    fn end_of_columns(&mut self, from: &mut impl Read) -> Result<(), MyError> {
        let end = self.next(from)?;
        match self.at(end) {
            [EOF, ..] => Ok(()),
            packet @ [ERR, ..] => Err(refused(packet)),
            _ => Err(MyError::odd("columns without an end")),
        }
    }

    /// Reads the rows of a result set; returns whether another follows.
    fn set(&mut self, from: &mut impl Read, kinds: &[Kind], mut row: Option<&mut OnRow<'_>>) -> Result<bool, MyError> {
        // A one-byte value takes more space in memory.
        let overhead = kinds.len() * size_of::<Option<String>>();
        loop {
            let packet = self.next(from)?;
            match self.at(packet) {
                [EOF, rest @ ..] if rest.len() < EOF_BYTES_MAX - 1 => {
                    return Ok(rest.get(2).is_some_and(|status| status & MORE != 0));
                }
                packet @ [ERR, ..] => return Err(refused(packet)),
                packet => {
                    let taken = row.as_mut().map_or(Some(()), |row| row(packet, kinds));
                    taken.ok_or_else(|| MyError::odd("a row that is none"))?;
                }
            }
            self.keep(overhead)?;
        }
    }

    /// Reads the answer to a prepare: the statement's number and its column types.
    pub(super) fn prepared(&mut self, from: &mut impl Read) -> Result<(u32, Vec<Kind>), MyError> {
        let first = self.next(from)?;
        let (id, columns, marks) = match *self.at(first.clone()) {
            [OK, a, b, c, d, e, f, g, h, ..] => (
                u32::from_le_bytes([a, b, c, d]),
                u64::from(u16::from_le_bytes([e, f])),
                u64::from(u16::from_le_bytes([g, h])),
            ),
            [ERR, ..] => return Err(refused(self.at(first))),
            _ => return Err(MyError::odd("a malformed answer to a prepare")),
        };
        let mut kinds = Vec::new();
        for all in [marks, columns].into_iter().filter(|all| *all > 0) {
            self.columns(all, true, from, &mut kinds)?;
        }
        if columns == 0 {
            kinds.clear();
        }
        Ok((id, kinds))
    }
}

/// A length-encoded number of one to nine bytes, and the bytes after it.
fn length(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, rest) = bytes.split_first()?;
    let wide = match *first {
        0xfb | 0xff => return None,
        0xfc => 2,
        0xfd => 3,
        0xfe => 8,
        small => return Some((small.into(), rest)),
    };
    let (number, rest) = rest.split_at_checked(wide)?;
    let mut bytes = [0; 8];
    bytes[..wide].copy_from_slice(number);
    Some((u64::from_le_bytes(bytes), rest))
}

/// A length-encoded text, and the bytes after it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// Parses an OK packet.
fn done(packet: &[u8]) -> Result<Done, MyError> {
    let read = || {
        let (changed, rest) = length(packet.get(1..)?)?;
        let (inserted, rest) = length(rest)?;
        Some(Done { changed, inserted, more: rest.first()? & MORE != 0 })
    };
    read().ok_or_else(|| MyError::odd("an OK that is none"))
}

/// Column type in a column's description.
fn kind(packet: &[u8]) -> Option<Kind> {
    let mut rest = packet;
    // Catalog, schema, table and column, with their aliases.
    for _ in 0..6 {
        (_, rest) = text(rest)?;
    }
    // A length, the character set, the width.
    match rest.get(7..)? {
        [code, flags, ..] => Some(Kind { code: *code, unsigned: flags & UNSIGNED_COLUMN != 0 }),
        _ => None,
    }
}

/// The values of a text row; `None` is NULL.
pub(super) fn text_row(packet: &[u8], columns: usize) -> Option<Vec<Option<String>>> {
    let mut rest = packet;
    let mut row = Vec::with_capacity(columns);
    for _ in 0..columns {
        let value = match rest {
            [NULL, after @ ..] => {
                rest = after;
                None
            }
            _ => {
                let (value, after) = text(rest)?;
                rest = after;
                Some(String::from_utf8_lossy(value).into_owned())
            }
        };
        row.push(value);
    }
    rest.is_empty().then_some(row)
}

/// The values of a binary row: a mark, the NULL bitmap, then the other values in order.
pub(super) fn binary_row<'a>(packet: &'a [u8], kinds: &[Kind]) -> Option<Vec<Value<'a>>> {
    let (nulls, mut rest) = packet.strip_prefix(&[0])?.split_at_checked((kinds.len() + 9) / 8)?;
    let mut row = Vec::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        // The first two bits are unused.
        let bit = at + 2;
        if nulls[bit / 8] & 1 << (bit % 8) != 0 {
            row.push(Value::Other);
            continue;
        }
        let (value, after) = value(kind, rest)?;
        row.push(value);
        rest = after;
    }
    rest.is_empty().then_some(row)
}

fn value<'a>(kind: &Kind, bytes: &'a [u8]) -> Option<(Value<'a>, &'a [u8])> {
    let wide = match kind.code {
        TYPE_TINY => 1,
        TYPE_SHORT | TYPE_YEAR => 2,
        TYPE_LONG | TYPE_INT24 => 4,
        TYPE_LONGLONG => 8,
        TYPE_FLOAT => return Some((Value::Other, bytes.get(4..)?)),
        TYPE_DOUBLE => return Some((Value::Other, bytes.get(8..)?)),
        TYPE_NULL => return Some((Value::Other, bytes)),
        TYPE_DATE | TYPE_TIME | TYPE_DATETIME | TYPE_TIMESTAMP => return Some((Value::Other, text(bytes)?.1)),
        _ => {
            let (value, after) = text(bytes)?;
            return Some((Value::Bytes(value), after));
        }
    };
    let (number, after) = bytes.split_at_checked(wide)?;
    let negative = !kind.unsigned && number[wide - 1] & 0x80 != 0;
    let mut bytes = [if negative { 0xff } else { 0 }; 8];
    bytes[..wide].copy_from_slice(number);
    let number = i64::from_le_bytes(bytes);
    let value = if kind.unsigned && number < 0 { Value::Other } else { Value::Int(number) };
    Some((value, after))
}

/// Parses a binary row with a single count: a mark, the NULL bitmap, the value.
fn count(packet: &[u8]) -> Result<u64, MyError> {
    match packet {
        [0, 0, value @ ..] => match value.try_into() {
            Ok(value) => Ok(u64::from_le_bytes(value).min(COUNT_MAX)),
            Err(_) => Err(MyError::odd("a row without a count")),
        },
        [0, _] => Ok(0),
        _ => Err(MyError::odd("a row without a count")),
    }
}

/// Parses an error packet: number, SQLSTATE, text.
pub(super) fn refused(packet: &[u8]) -> MyError {
    let code = match packet.get(1..3) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let text = match packet.get(3..).unwrap_or_default() {
        [b'#', rest @ ..] if rest.len() >= 5 => &rest[5..],
        text => text,
    };
    // No real message is longer.
    let text = &text[..text.len().min(MESSAGE_BYTES_MAX)];
    MyError::Server { code, message: super::on_one_line(&String::from_utf8_lossy(text)) }
}

/// A scripted server for fuzzing, which sends in pieces of at most so many bytes.
pub(super) struct Script<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) piece: usize,
}

impl Read for Script<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let (now, rest) = self.bytes.split_at(self.piece.min(self.bytes.len()).min(buffer.len()));
        buffer[..now.len()].copy_from_slice(now);
        self.bytes = rest;
        Ok(now.len())
    }
}

/// For fuzzing: the number of rows in an answer, or what is wrong.
#[doc(hidden)]
pub fn read_answer(bytes: &[u8], piece: usize) -> Result<u64, String> {
    let mut packets = Packets::new(Duration::MAX);
    let counted = packets.expect(1).and_then(|()| packets.counted(&mut Script { bytes, piece }));
    counted.map_err(|error| error.to_string())
}

/// For fuzzing: the rows of an answer, as text and in binary, or what is wrong.
#[doc(hidden)]
pub fn read_rows(bytes: &[u8], piece: usize) -> Result<usize, String> {
    let mut values = 0;
    for binary in [false, true] {
        let (mut packets, mut from) = (Packets::new(Duration::MAX), Script { bytes, piece });
        packets.number = 1;
        let mut taken = |packet: &[u8], kinds: &[Kind]| {
            values += if binary { binary_row(packet, kinds)?.len() } else { text_row(packet, kinds.len())?.len() };
            Some(())
        };
        let first = packets.next(&mut from);
        let read = first.and_then(|first| packets.rows(first, &mut from, &mut Vec::new(), &mut taken));
        read.map_err(|error| error.to_string())?;
    }
    Ok(values)
}

#[cfg(test)]
mod tests;
