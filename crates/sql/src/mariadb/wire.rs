//! The protocol: questions as packets, and answers as they arrive.
//!
//! It is question and answer, and between two of them neither side keeps anything. A [`Call`] is COM_STMT_EXECUTE as bytes, made
//! once; its values are patched in place. Nothing is allocated for it and its answer, and each of them is one system call. The
//! answer of a prepared select is a count in one row of one column; that of a change the number of rows. Nothing a server
//! announces is believed before it has arrived. The protocol is laid out in MariaDB's documentation ("Clients & Utilities",
//! "Server Response Packets").

use super::error::MyError;
use crate::input::Input;
use std::io::Read;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Length and number.
const HEADER_BYTES: usize = 4;
/// Of a packet: one of this length goes on in the next.
const PACKET_BYTES_MAX: usize = 0x00ff_ffff;
/// Largest answer that is read: what is asked here has far smaller ones, and rows are kept in memory.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Columns a server can return.
const COLUMNS_MAX: u64 = 4096;
/// No table has so many rows: a larger count is kept from overflowing the sums it goes into.
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
/// The same of a column, among the flags that describe it.
const UNSIGNED_COLUMN: u8 = 0x20;
pub(super) const OK: u8 = 0x00;
pub(super) const EOF: u8 = 0xfe;
pub(super) const ERR: u8 = 0xff;
const NULL: u8 = 0xfb;
/// It asks us for a file.
pub(super) const LOCAL_FILE: u8 = 0xfb;
/// An EOF packet is shorter: else it is a row whose first value is long.
const EOF_BYTES_MAX: usize = 9;
/// Of a message of the server.
const MESSAGE_BYTES_MAX: usize = 4096;
/// Another answer follows, as its status says.
const MORE: u8 = 0x08;

/// What is said, as packets that begin with this number; and the number after them.
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

/// A question, ready to be patched and sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    pub(super) bytes: Vec<u8>,
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

/// A value for a mark of a statement.
#[derive(Clone, Copy, Debug)]
pub(super) enum Bind<'a> {
    Null,
    Int(i64),
    Double(f64),
    Text(&'a [u8]),
}

/// What executes a prepared statement with these values.
pub(super) fn execute(id: u32, values: &[Bind<'_>]) -> Vec<u8> {
    let mut bytes = vec![COM_STMT_EXECUTE];
    bytes.extend(id.to_le_bytes());
    // No cursor; once.
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

/// What a column holds.
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

/// What an answer says at its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Done {
    pub(super) changed: u64,
    /// `last_insert_id()`
    pub(super) inserted: u64,
    more: bool,
}

/// Takes a row by the kinds of its columns; none: it is no such row.
pub(super) type OnRow<'a> = dyn FnMut(&[u8], &[Kind]) -> Option<()> + 'a;

/// What has arrived.
#[derive(Debug, Default)]
pub(super) struct Packets {
    input: Input,
    /// Of the next packet, whoever sends it.
    pub(super) number: u8,
    /// Bytes of the present answer.
    received: usize,
    /// Since when more of it is waited for, and how long that may take.
    begun: Option<Instant>,
    within: Duration,
}

impl Packets {
    /// An answer takes no longer than this from its first packet to its last.
    pub(super) fn new(within: Duration) -> Self {
        Self { within, ..Self::default() }
    }

    /// An answer to what was said up to here begins.
    ///
    /// # Errors
    /// More has arrived than the last answer, and it is no goodbye.
    #[inline]
    pub(super) fn expect(&mut self, number: u8) -> Result<(), MyError> {
        (self.number, self.received, self.begun) = (number, 0, None);
        if self.is_empty() {
            return Ok(());
        }
        match self.input.fill(HEADER_BYTES + 1, &mut std::io::empty(), &mut None, self.within) {
            Ok([.., ERR]) => Ok(()),
            _ => Err(MyError::odd("an answer without a request")),
        }
    }

    /// Nothing has arrived that was not taken.
    pub(super) fn is_empty(&self) -> bool {
        self.input.waiting() == 0
    }

    /// A packet that was the last one read.
    pub(super) fn at(&self, packet: Range<usize>) -> &[u8] {
        self.input.at(packet)
    }

    /// The next packet without its header, where it lies until the one after it is read.
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
        // What a server says unasked, before it ends a connection, begins anew.
        if number != self.number && self.at(body.clone()).first() != Some(&ERR) {
            return Err(MyError::odd(&format!("packet {number} instead of {}", self.number)));
        }
        self.number = number.wrapping_add(1);
        Ok(body)
    }

    /// So much more of the answer is kept in memory.
    fn keep(&mut self, bytes: usize) -> Result<(), MyError> {
        self.received += bytes;
        if self.received <= ANSWER_BYTES_MAX {
            Ok(())
        } else {
            Err(MyError::odd(&format!("an answer of more than {} MiB", ANSWER_BYTES_MAX >> 20)))
        }
    }

    /// Reads the answer to a [`Call`]: the rows it counted or changed.
    pub(super) fn counted(&mut self, from: &mut impl Read) -> Result<u64, MyError> {
        let first = self.next(from)?;
        let packet = self.at(first);
        let columns = match *packet {
            [OK, ..] => return Ok(done(packet)?.changed.min(COUNT_MAX)),
            [ERR, ..] => return Err(refused(packet)),
            [LOCAL_FILE, ..] | [EOF, ..] | [] => return Err(MyError::odd("an answer of no kind")),
            // Some servers add whether they describe the columns: not if they are as they were.
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

    /// Reads the rest of an answer whose first packet this is, with all that follows it, and hands over the rows of the first set.
    /// `kinds` are those of the set that was read last: servers leave out what is as it was.
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
                    let (columns, rest) = length(packet).ok_or_else(|| MyError::odd("an answer of no kind"))?;
                    self.columns(columns, rest != [0], from, kinds)?;
                    let more = self.set(from, kinds, if wanted { Some(&mut *row) } else { None })?;
                    wanted = false;
                    Done { more, ..Done::default() }
                }
                _ => return Err(MyError::odd("an answer of no kind")),
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

    /// The rows of a set; whether another answer follows.
    fn set(&mut self, from: &mut impl Read, kinds: &[Kind], mut row: Option<&mut OnRow<'_>>) -> Result<bool, MyError> {
        // A value that takes a byte on the way takes more in memory.
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

    /// Reads what was prepared: its number there, and what its columns hold.
    pub(super) fn prepared(&mut self, from: &mut impl Read) -> Result<(u32, Vec<Kind>), MyError> {
        let first = self.next(from)?;
        let (id, columns, marks) = match *self.at(first.clone()) {
            [OK, a, b, c, d, e, f, g, h, ..] => (
                u32::from_le_bytes([a, b, c, d]),
                u64::from(u16::from_le_bytes([e, f])),
                u64::from(u16::from_le_bytes([g, h])),
            ),
            [ERR, ..] => return Err(refused(self.at(first))),
            _ => return Err(MyError::odd("a statement that is none")),
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

/// A number of one to nine bytes, and what follows it.
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

/// A text after its length, and what follows it.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = length(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

/// What an OK packet says.
fn done(packet: &[u8]) -> Result<Done, MyError> {
    let read = || {
        let (changed, rest) = length(packet.get(1..)?)?;
        let (inserted, rest) = length(rest)?;
        Some(Done { changed, inserted, more: rest.first()? & MORE != 0 })
    };
    read().ok_or_else(|| MyError::odd("an OK that is none"))
}

/// What a column's description says it holds.
fn kind(packet: &[u8]) -> Option<Kind> {
    let mut rest = packet;
    // Catalogue, schema, table and column with their aliases.
    for _ in 0..6 {
        (_, rest) = text(rest)?;
    }
    // A length, the character set, the width.
    match rest.get(7..)? {
        [code, flags, ..] => Some(Kind { code: *code, unsigned: flags & UNSIGNED_COLUMN != 0 }),
        _ => None,
    }
}

/// The values of a row of text; `None` is NULL.
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

/// The values of a row in binary: a mark, the bits of what is NULL, the others one after the other.
pub(super) fn binary_row<'a>(packet: &'a [u8], kinds: &[Kind]) -> Option<Vec<Value<'a>>> {
    let (nulls, mut rest) = packet.strip_prefix(&[0])?.split_at_checked((kinds.len() + 9) / 8)?;
    let mut row = Vec::with_capacity(kinds.len());
    for (at, kind) in kinds.iter().enumerate() {
        // The first two bits stand for nothing.
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

/// The value of a row of one column, a count: a mark, the bits of what is NULL, the value.
fn count(packet: &[u8]) -> Result<u64, MyError> {
    match packet {
        [0, 0, value @ ..] => match value.try_into() {
            Ok(value) => Ok(u64::from_le_bytes(value).min(COUNT_MAX)),
            Err(_) => Err(MyError::odd("a row that is no count")),
        },
        [0, _] => Ok(0),
        _ => Err(MyError::odd("a row that is no count")),
    }
}

/// What the server says is wrong: a number, a class of the standard, a text.
pub(super) fn refused(packet: &[u8]) -> MyError {
    let code = match packet.get(1..3) {
        Some(&[low, high]) => u16::from_le_bytes([low, high]),
        _ => 0,
    };
    let text = match packet.get(3..).unwrap_or_default() {
        [b'#', rest @ ..] if rest.len() >= 5 => &rest[5..],
        text => text,
    };
    // None that a server has is longer.
    let text = &text[..text.len().min(MESSAGE_BYTES_MAX)];
    MyError::Server { code, message: super::on_one_line(&String::from_utf8_lossy(text)) }
}

/// A server for fuzzing: what it sends, in pieces of at most so many bytes.
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

/// For fuzzing: the rows that an answer counts, or what is wrong.
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
