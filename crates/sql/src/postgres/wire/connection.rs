//! One blocking session with a server: simple queries, prepared statements, COPY.

use super::error::{PgError, ServerError, clean};
use super::input::{Input, Message};
use super::peer::Stream;
use crate::patience::Wait;
use crate::patient::Limit;
use crate::postgres::conninfo::{ConnectOptions, Host};
use bytes::BytesMut;
use postgres_protocol::IsNull;
use postgres_protocol::message::frontend;
use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Write};
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Instant;

/// Largest answer accepted. assay's queries return far less, and rows are kept in memory.
const ANSWER_BYTES_MAX: usize = 16 << 20;
/// Most parameters a server may report; real servers report about twenty.
const PARAMETERS_MAX: usize = 200;
/// Most columns a server can return.
const COLUMNS_MAX: usize = 1664;

/// A parameter value of a prepared statement, sent in binary.
#[derive(Clone, Copy, Debug)]
pub enum Bind<'a> {
    /// `int8`
    Int8(i64),
    /// `int4`
    Int4(i32),
    /// `text`
    Text(&'a str),
    /// `int8[]`
    Int8s(&'a [i64]),
    /// `int4[]`
    Int4s(&'a [i32]),
    /// `text[]` of equally long texts, one after the other.
    Texts {
        /// All texts.
        bytes: &'a [u8],
        /// Bytes of each text.
        each: usize,
    },
    /// `bool`
    Bool(bool),
    /// `float8`
    Float8(f64),
    /// NULL of any type.
    Null,
}

/// The values of a row in binary, by column; `None` is NULL.
pub type Values<'a> = [Option<&'a [u8]>];

/// A prepared statement on the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    pub(super) name: String,
}

impl Prepared {
    /// The name, for EXPLAIN EXECUTE.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// The result of a simple query, as text; `None` is NULL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rows {
    /// Column names.
    pub columns: Vec<String>,
    /// Values by row and column.
    pub rows: Vec<Vec<Option<String>>>,
    /// Command tag of the last statement, e.g. `UPDATE 64`
    pub tag: String,
}

/// A session.
#[derive(Debug)]
pub struct Connection {
    pub(super) stream: Stream,
    pub(super) input: Input,
    pub(super) output: BytesMut,
    pub(super) pid: i32,
    /// Secret that proves to the server that a cancel request is ours.
    pub(super) secret: Vec<u8>,
    /// The server, with the address in use.
    pub(super) host: Host,
    pub(super) options: Arc<ConnectOptions>,
    parameters: BTreeMap<String, String>,
    statements: u32,
    /// Bytes received of the current answer.
    received: usize,
}

impl Connection {
    /// A session before login.
    pub(super) fn new(stream: Stream, host: Host, options: Arc<ConnectOptions>) -> Self {
        Self {
            stream,
            input: Input::default(),
            output: BytesMut::with_capacity(1024),
            pid: 0,
            secret: Vec::new(),
            host,
            options,
            parameters: BTreeMap::new(),
            statements: 0,
            received: 0,
        }
    }

    /// The server process of this session.
    #[must_use]
    pub fn backend_pid(&self) -> i32 {
        self.pid
    }

    /// The process that listens at the other end of a Unix socket, if visible from here.
    #[must_use]
    pub fn listener_pid(&self) -> Option<i32> {
        self.stream.listener_pid()
    }

    /// The socket, to wait until it is readable.
    #[must_use]
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// Our own port, for TCP.
    #[must_use]
    pub fn local_port(&self) -> Option<u16> {
        self.stream.local_port()
    }

    /// A parameter that the server reported: `server_version`, `TimeZone`, `in_hot_standby` (14+), ...
    #[must_use]
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// The server, with the address in use.
    #[must_use]
    pub fn host(&self) -> &Host {
        &self.host
    }

    /// Whether the traffic is encrypted.
    #[must_use]
    pub fn is_encrypted(&self) -> bool {
        self.stream.is_encrypted()
    }

    /// Sets a deadline for the answers to all later requests.
    pub fn set_deadline(&mut self, end: Instant) {
        self.stream.set_limit(Limit::Until(Some(end)));
    }

    /// Callers that wait for the answer outside (in `epoll`) call this now and then to ask whether they may go on;
    /// `wait` is a new one for each answer.
    ///
    /// # Errors
    /// They may not: the server shows no life, or the answer is no longer wanted.
    pub fn may_wait(&mut self, wait: &mut Wait) -> Result<(), PgError> {
        let may = self.options.patience.look(wait, self.stream.peer());
        may.map_err(|source| self.lost("execute", source))
    }

    /// Runs statements without parameters; returns the rows of the last one that has any, as text.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn query(&mut self, sql: &str) -> Result<Rows, PgError> {
        let begun = frontend::query(sql, &mut self.output);
        begun.map_err(|source| self.lost("query", source))?;
        self.send("query")?;
        let mut answer = Rows::default();
        let mut refused = None;
        loop {
            let message = self.receive("query")?;
            let body = self.input.body(&message);
            match message.kind {
                b'T' => {
                    let columns = column_names(body);
                    answer.columns = columns.ok_or_else(|| self.malformed(b'T', "query"))?;
                    answer.rows.clear();
                }
                b'D' => {
                    let row = text_row(body).filter(|row| row.len() == answer.columns.len());
                    let row = row.ok_or_else(|| self.malformed(b'D', "query"))?;
                    answer.rows.push(row);
                }
                b'C' => answer.tag = text(body),
                b'E' => refused = Some(self.server_error(&message)),
                b'Z' => {
                    self.ready(&message)?;
                    return refused.map_or(Ok(answer), Err);
                }
                b'I' => {}
                other => return Err(self.unexpected(other, "query")),
            }
        }
    }

    /// Prepares a statement; `types` are the parameters' types (OIDs; 0 lets the server decide).
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn prepare(&mut self, sql: &str, types: &[u32]) -> Result<Prepared, PgError> {
        self.statements += 1;
        let name = format!("assay_{}", self.statements);
        let begun = frontend::parse(&name, sql, types.iter().copied(), &mut self.output);
        begun.map_err(|source| self.lost("prepare", source))?;
        frontend::sync(&mut self.output);
        self.send("prepare")?;
        let mut refused = None;
        loop {
            let message = self.receive("prepare")?;
            match message.kind {
                b'1' => {}
                b'E' => refused = Some(self.server_error(&message)),
                b'Z' => {
                    self.ready(&message)?;
                    return refused.map_or(Ok(Prepared { name }), Err);
                }
                other => return Err(self.unexpected(other, "prepare")),
            }
        }
    }

    /// Executes a prepared statement with binary results and passes each row's values to `row`. Returns the number of
    /// rows in the command tag (`SELECT 1` is 1, `UPDATE 64` is 64).
    ///
    /// # Errors
    /// The server's, or a lost connection.
    pub fn execute(
        &mut self,
        statement: &Prepared,
        values: &[Bind<'_>],
        row: &mut dyn FnMut(&Values<'_>),
    ) -> Result<u64, PgError> {
        self.ask(statement, values)?;
        self.rows(row)
    }

    /// The first half of [`Connection::execute`]: sends the request.
    ///
    /// # Errors
    /// A lost connection.
    pub fn ask(&mut self, statement: &Prepared, values: &[Bind<'_>]) -> Result<(), PgError> {
        self.bind(statement, values);
        self.send("execute")
    }

    /// The second half: waits for the answer.
    ///
    /// # Errors
    /// As [`Connection::execute`].
    pub fn rows(&mut self, row: &mut dyn FnMut(&Values<'_>)) -> Result<u64, PgError> {
        let (mut refused, mut touched) = (None, 0);
        loop {
            let message = self.receive("execute")?;
            match message.kind {
                b'2' | b'n' | b's' | b'I' => {}
                b'D' if is_row(self.input.body(&message)) => hand_over(self.input.body(&message), row),
                b'D' => return Err(self.malformed(b'D', "execute")),
                b'C' => touched = touched_by(self.input.body(&message)),
                b'E' => refused = Some(self.server_error(&message)),
                b'Z' => {
                    self.ready(&message)?;
                    return refused.map_or(Ok(touched), Err);
                }
                other => return Err(self.unexpected(other, "execute")),
            }
        }
    }

    /// Puts Bind, Execute and Sync of a statement into the output buffer.
    fn bind(&mut self, statement: &Prepared, values: &[Bind<'_>]) {
        let bound = frontend::bind(
            "",
            &statement.name,
            [1_i16],
            values,
            |value, buffer| Ok(value.write(buffer)),
            [1_i16],
            &mut self.output,
        );
        debug_assert!(bound.is_ok(), "a handful of values fit a message");
        let executed = frontend::execute("", 0, &mut self.output);
        debug_assert!(executed.is_ok(), "an empty name fits a message");
        frontend::sync(&mut self.output);
    }

    /// Logs off, ignoring errors.
    pub fn close(mut self) {
        self.output.clear();
        frontend::terminate(&mut self.output);
        let _ = self.send("close");
    }

    pub(super) fn send(&mut self, doing: &str) -> Result<(), PgError> {
        self.received = 0;
        let sent = self.stream.write_all(&self.output).and_then(|()| self.stream.flush());
        self.output.clear();
        sent.map_err(|source| self.goodbye(doing, source))
    }

    /// Why nothing can be sent any more: the server's last message, if there is one.
    fn goodbye(&mut self, doing: &str, source: std::io::Error) -> PgError {
        loop {
            match self.receive(doing) {
                Ok(_) => {}
                Err(said @ PgError::Server(_)) => return said,
                Err(_) => return self.lost(doing, source),
            }
        }
    }

    /// The next message that belongs to the request; stores parameters and drops notices.
    pub(super) fn receive(&mut self, doing: &str) -> Result<Message, PgError> {
        loop {
            let within = self.options.patience.answer();
            let message = self.input.next(&mut self.stream, within).map_err(|source| self.lost(doing, source))?;
            self.received += message.body.len();
            if self.received > ANSWER_BYTES_MAX {
                return Err(PgError::Refused(format!(
                    "{} answered {doing} with more than {} MiB: no request of assay has such an answer, so this is \
                     not a PostgreSQL server",
                    self.host,
                    ANSWER_BYTES_MAX >> 20
                )));
            }
            match message.kind {
                b'S' => {
                    let body = self.input.body(&message);
                    let mut parts = body.split(|byte| *byte == 0).map(clean);
                    if let (Some(name), Some(value)) = (parts.next(), parts.next())
                        && (self.parameters.len() < PARAMETERS_MAX || self.parameters.contains_key(&name))
                    {
                        self.parameters.insert(name, value);
                    }
                }
                b'A' | b'N' => {}
                b'E' => {
                    let error = ServerError::parse(self.input.body(&message));
                    // Only the end of the connection follows it.
                    if error.is_fatal() {
                        return Err(PgError::Server(Box::new(error)));
                    }
                    return Ok(message);
                }
                _ => return Ok(message),
            }
        }
    }

    pub(super) fn server_error(&self, message: &Message) -> PgError {
        PgError::Server(Box::new(ServerError::parse(self.input.body(message))))
    }

    pub(super) fn lost(&self, doing: &str, source: std::io::Error) -> PgError {
        PgError::Io {
            what: format!("the session at {} is lost ({doing})", self.host),
            source: match source.kind() {
                ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => Error::new(
                    source.kind(),
                    "the server or the network closed it without a message; see the server's log",
                ),
                _ => source,
            },
        }
    }

    /// The transaction state in a `ReadyForQuery`.
    pub(super) fn ready(&self, message: &Message) -> Result<u8, PgError> {
        match self.input.body(message) {
            [state @ (b'I' | b'T' | b'E')] => Ok(*state),
            _ => Err(self.malformed(b'Z', "its readiness")),
        }
    }

    pub(super) fn malformed(&self, kind: u8, doing: &str) -> PgError {
        PgError::Refused(format!(
            "{} answered {doing} with a message of kind {:?} that does not follow the protocol",
            self.host,
            char::from(kind)
        ))
    }

    pub(super) fn unexpected(&self, kind: u8, doing: &str) -> PgError {
        PgError::Refused(format!(
            "{} answered {doing} with a message of kind {:?}, which the protocol does not allow here",
            self.host,
            char::from(kind)
        ))
    }
}

impl Bind<'_> {
    /// Writes its binary form.
    pub(super) fn write(&self, buffer: &mut BytesMut) -> IsNull {
        const OID_INT8: i32 = 20;
        const OID_INT4: i32 = 23;
        match self {
            Self::Int8(n) => buffer.extend_from_slice(&n.to_be_bytes()),
            Self::Int4(n) => buffer.extend_from_slice(&n.to_be_bytes()),
            Self::Text(text) => buffer.extend_from_slice(text.as_bytes()),
            Self::Int8s(values) => write_array(OID_INT8, values.iter().map(|n| n.to_be_bytes()), buffer),
            Self::Int4s(values) => write_array(OID_INT4, values.iter().map(|n| n.to_be_bytes()), buffer),
            Self::Texts { bytes, each } => {
                const OID_TEXT: i32 = 25;
                let texts = bytes.chunks_exact(*each);
                for word in [1, 0, OID_TEXT, texts.len() as i32, 1] {
                    buffer.extend_from_slice(&i32::to_be_bytes(word));
                }
                for text in texts {
                    buffer.extend_from_slice(&(text.len() as i32).to_be_bytes());
                    buffer.extend_from_slice(text);
                }
            }
            Self::Bool(yes) => buffer.extend_from_slice(&[u8::from(*yes)]),
            Self::Float8(number) => buffer.extend_from_slice(&number.to_be_bytes()),
            Self::Null => return IsNull::Yes,
        }
        IsNull::No
    }
}

/// Writes one dimension from index 1, without NULLs: dimensions, null flag, element type, length, lower bound, elements.
fn write_array<const N: usize>(element: i32, values: impl ExactSizeIterator<Item = [u8; N]>, buffer: &mut BytesMut) {
    for word in [1, 0, element, values.len() as i32, 1] {
        buffer.extend_from_slice(&i32::to_be_bytes(word));
    }
    for value in values {
        buffer.extend_from_slice(&(N as i32).to_be_bytes());
        buffer.extend_from_slice(&value);
    }
}

/// A zero-terminated text.
fn text(body: &[u8]) -> String {
    let end = body.iter().position(|byte| *byte == 0).unwrap_or(body.len());
    String::from_utf8_lossy(&body[..end]).into_owned()
}

/// The number at the end of a command tag, or 0.
pub(super) fn touched_by(tag: &[u8]) -> u64 {
    tag.iter().skip_while(|byte| **byte != b' ').fold(0_u64, |n, byte| match byte {
        b'0'..=b'9' => n.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
        // `INSERT 0 64`: only the last number counts.
        b' ' => 0,
        _ => n,
    })
}

/// Column names of a `RowDescription`: each ends with a zero and is followed by 18 bytes.
fn column_names(body: &[u8]) -> Option<Vec<String>> {
    let (count, mut rest) = body.split_first_chunk()?;
    let count = usize::from(u16::from_be_bytes(*count));
    let mut names = Vec::with_capacity(count.min(COLUMNS_MAX));
    while !rest.is_empty() {
        let end = rest.iter().position(|byte| *byte == 0)?;
        names.push(clean(&rest[..end]));
        rest = rest.get(end + 1 + 18..)?;
    }
    (names.len() == count && count <= COLUMNS_MAX).then_some(names)
}

/// Rows with at most so many columns are passed on without allocating.
const FEW: usize = 32;

/// Passes a row's values on.
fn hand_over(body: &[u8], row: &mut dyn FnMut(&Values<'_>)) {
    let mut few = [None; FEW];
    let mut count = 0;
    for value in values_of(body) {
        if count == FEW {
            return row(&values_of(body).collect::<Vec<_>>());
        }
        few[count] = value;
        count += 1;
    }
    row(&few[..count]);
}

/// Whether a `DataRow` contains exactly the number of values it declares.
fn is_row(body: &[u8]) -> bool {
    let Some((count, mut rest)) = body.split_first_chunk() else {
        return false;
    };
    for _ in 0..u16::from_be_bytes(*count) {
        let Some((length, tail)) = rest.split_first_chunk() else {
            return false;
        };
        let after = match i32::from_be_bytes(*length) {
            -1 => Some(tail),
            length => usize::try_from(length).ok().and_then(|n| tail.get(n..)),
        };
        let Some(after) = after else { return false };
        rest = after;
    }
    rest.is_empty()
}

/// Values of a `DataRow`.
fn values_of(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, tail) = rest.split_first_chunk()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = tail;
            return Some(None);
        };
        let (value, more) = tail.split_at_checked(length)?;
        rest = more;
        Some(Some(value))
    })
}

fn text_row(body: &[u8]) -> Option<Vec<Option<String>>> {
    is_row(body)
        .then(|| values_of(body).map(|value| value.map(|bytes| String::from_utf8_lossy(bytes).into_owned())).collect())
}
