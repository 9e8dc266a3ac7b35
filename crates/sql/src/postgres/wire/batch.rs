//! The hot path of a session: prebuilt messages that are patched and sent together.
//!
//! A [`Call`] holds the Bind and Execute messages of one prepared statement as bytes; its numbers and texts are patched
//! in place before each use. A round trip is one write of all calls and a Sync, and usually one read of all answers. It
//! allocates nothing.

use super::connection::{Bind, Connection, Prepared, touched_by};
use super::error::PgError;
use bytes::BytesMut;
use postgres_protocol::message::frontend;

/// No table has so many rows: larger or negative counts are cut, so that sums do not overflow.
const COUNT_MAX: u64 = 1 << 40;

/// Bind and Execute of one statement, ready to be patched and sent.
#[derive(Clone, Debug)]
pub struct Call {
    bytes: BytesMut,
    /// Positions of the parameter values.
    values: Vec<std::ops::Range<usize>>,
}

impl Call {
    /// Builds the messages for a statement and values of the final lengths; results are binary.
    #[must_use]
    pub fn new(statement: &Prepared, values: &[Bind<'_>]) -> Self {
        let mut bytes = BytesMut::new();
        let mut ends = Vec::with_capacity(values.len());
        let bound = frontend::bind(
            "",
            &statement.name,
            [1_i16],
            values,
            |value, buffer| {
                let begin = buffer.len();
                let null = value.write(buffer);
                ends.push(begin..buffer.len());
                Ok(null)
            },
            [1_i16],
            &mut bytes,
        );
        debug_assert!(bound.is_ok(), "a handful of values fit a message");
        let executed = frontend::execute("", 0, &mut bytes);
        debug_assert!(executed.is_ok(), "an empty name fits a message");
        Self { bytes, values: ends }
    }

    /// The bytes of parameter `index` (from 0), to be overwritten; their number stays.
    #[inline]
    pub fn value(&mut self, index: usize) -> &mut [u8] {
        let range = self.values[index].clone();
        &mut self.bytes[range]
    }

    /// Overwrites an `int8` parameter.
    #[inline]
    pub fn set_int8(&mut self, index: usize, n: i64) {
        self.value(index).copy_from_slice(&n.to_be_bytes());
    }
}

/// The result of a round trip.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Answer {
    /// Sum of the numbers in the command tags of INSERT, UPDATE, DELETE (not of SELECT).
    pub changed: u64,
    /// Sum of the `int8` values in the first column of all rows.
    pub counted: u64,
    /// The transaction state that the server reports: `I` idle, `T` in a transaction, `E` in a failed one.
    pub state: u8,
}

impl Connection {
    /// Adds a call to the next round trip.
    #[inline]
    pub fn add(&mut self, call: &Call) {
        self.output.extend_from_slice(&call.bytes);
    }

    /// Sends the added calls with a Sync and waits for all answers. All calls form one transaction unless they contain
    /// its begin and end. After an error the server skips the rest.
    ///
    /// # Errors
    /// The server's first error, or a lost connection.
    pub fn round_trip(&mut self, state: &mut u8) -> Result<Answer, PgError> {
        self.send_calls()?;
        self.answers(state)
    }

    /// The first half of [`Connection::round_trip`].
    ///
    /// # Errors
    /// A lost connection.
    pub fn send_calls(&mut self) -> Result<(), PgError> {
        frontend::sync(&mut self.output);
        self.send("execute")
    }

    /// The second half: waits for all answers, which the server sends together when it reaches the Sync.
    ///
    /// # Errors
    /// As [`Connection::round_trip`].
    pub fn answers(&mut self, state: &mut u8) -> Result<Answer, PgError> {
        let mut answer = Answer::default();
        let mut refused = None;
        loop {
            let message = self.receive("execute")?;
            let body = self.input.body(&message);
            match message.kind {
                b'D' => answer.counted = answer.counted.saturating_add(first_int8(body)),
                b'C' if !body.starts_with(b"SELECT") => {
                    answer.changed = answer.changed.saturating_add(touched_by(body).min(COUNT_MAX))
                }
                b'2' | b'C' | b'I' | b'n' | b's' => {}
                b'E' => refused = Some(self.server_error(&message)),
                b'Z' => {
                    answer.state = self.ready(&message)?;
                    *state = answer.state;
                    return refused.map_or(Ok(answer), Err);
                }
                other => return Err(self.unexpected(other, "execute")),
            }
        }
    }
}

/// The first value of a `DataRow` if it is an `int8`, else 0.
#[inline]
fn first_int8(body: &[u8]) -> u64 {
    match body.get(2..14).map(|value| value.split_at(4)) {
        Some(([0, 0, 0, 8], value)) => value.try_into().map_or(0, |bytes| u64::from_be_bytes(bytes).min(COUNT_MAX)),
        _ => 0,
    }
}
