//! A session with a server: text and prepared statements, and files that the server may request. Every wait is bounded.

use super::address::Address;
use super::dial::{Server, Stream, dial};
use super::error::refused;
pub(super) use super::error::{MyError, op_error, op_error_of, told};
use super::login::log_in;
use super::product::Product;
use super::wire::{
    Bind, COM_QUERY, COM_QUIT, COM_STMT_PREPARE, Call, Done, Kind, LOCAL_FILE, OnRow, Packets, Value, binary_row,
    execute, packets, text_row,
};
use crate::patience::{Patience, Peer, Wait};
use crate::patient::Limit;
use assay_run::engine::EngineError;
use std::io::Write;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a file sent in one packet.
const FILE_BYTES: usize = 64 * 1024;

/// A prepared statement on the server.
pub(super) struct Prepared {
    pub(super) id: u32,
    /// Types of its columns when they were last described.
    kinds: Vec<Kind>,
}

/// A session with a server.
pub(crate) struct Connection {
    pub(super) product: Product,
    stream: Stream,
    packets: Packets,
    patience: Patience,
    id: u32,
    /// Error that left the connection in an unknown state.
    over: Option<MyError>,
    /// Final status of the last answer.
    pub(super) done: Done,
}

impl Connection {
    /// Logs in.
    ///
    /// # Errors
    /// `Unusable`, with the remedy: no server, wrong password, no such database.
    pub(super) fn open(address: &Address) -> Result<Self, EngineError> {
        let entered = dial(address).map_err(MyError::from).and_then(|stream| log_in(stream, address));
        let (mut stream, packets, id) = entered.map_err(|error| refused(address, &error))?;
        stream.set_limit(Limit::Answers);
        stream.peer().session = Some((Arc::new(address.clone()), id));
        let patience = address.patience.clone();
        let mut connection =
            Self { product: Product::MariaDb, stream, packets, patience, id, over: None, done: Done::default() };
        connection.pin().map_err(told("preparing the session"))?;
        Ok(connection)
    }

    /// Fixes session settings regardless of the server's, and finds out which product it is.
    fn pin(&mut self) -> Result<(), MyError> {
        self.run("set names latin1, sql_mode = 'STRICT_ALL_TABLES'")?;
        self.product = Product::of(&self.value("select version()")?);
        Ok(())
    }

    /// Runs `work`; any error except one from the server makes the session unusable.
    fn with<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T, MyError>) -> Result<T, MyError> {
        if let Some(why) = &self.over {
            return Err(why.again());
        }
        work(self).inspect_err(|error| self.over = error.is_fatal().then(|| error.again()))
    }

    fn send(&mut self, bytes: &[u8], next: u8) -> Result<(), MyError> {
        self.packets.expect(next)?;
        self.stream.write_all(bytes)?;
        Ok(self.stream.flush()?)
    }

    fn command(&mut self, payload: &[u8]) -> Result<(), MyError> {
        let (bytes, next) = packets(payload, 0);
        self.send(&bytes, next)
    }

    fn query(&mut self, sql: &str, row: &mut OnRow<'_>) -> Result<(), MyError> {
        self.with(|this| {
            this.command(&[&[COM_QUERY], sql.as_bytes()].concat())?;
            let first = this.packets.next(&mut this.stream)?;
            this.done = this.packets.rows(first, &mut this.stream, &mut Vec::new(), row)?;
            Ok(())
        })
    }

    /// Executes statements and ignores their results.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), MyError> {
        self.query(sql, &mut |_, _| Some(()))
    }

    /// Executes a statement that loads a file; sends this text, whichever file the server requests.
    pub(super) fn load(&mut self, sql: &str, text: &[u8]) -> Result<(), MyError> {
        self.with(|this| {
            this.command(&[&[COM_QUERY], sql.as_bytes()].concat())?;
            let mut first = this.packets.next(&mut this.stream)?;
            if this.packets.at(first.clone()).first() == Some(&LOCAL_FILE) {
                // An empty packet ends the file.
                for part in text.chunks(FILE_BYTES).chain([&[][..]]) {
                    let (bytes, next) = packets(part, this.packets.number);
                    this.send(&bytes, next)?;
                }
                first = this.packets.next(&mut this.stream)?;
            }
            this.done = this.packets.rows(first, &mut this.stream, &mut Vec::new(), &mut |_, _| Some(()))?;
            Ok(())
        })
    }

    /// All rows, as text; `None` is NULL.
    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, MyError> {
        let mut rows = Vec::new();
        self.query(sql, &mut |packet, kinds| {
            rows.push(text_row(packet, kinds.len())?);
            Some(())
        })?;
        Ok(rows)
    }

    /// The first value of the first row; empty if there is no row.
    pub(super) fn value(&mut self, sql: &str) -> Result<String, MyError> {
        let first = self.rows(sql)?.into_iter().flatten().next();
        Ok(first.flatten().unwrap_or_default())
    }

    /// The first value as a number; 0 if it is not one.
    pub(super) fn number(&mut self, sql: &str) -> Result<u64, MyError> {
        Ok(self.value(sql)?.parse().unwrap_or(0))
    }

    /// Prepares a statement.
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Prepared, MyError> {
        self.with(|this| {
            this.command(&[&[COM_STMT_PREPARE], sql.as_bytes()].concat())?;
            let (id, kinds) = this.packets.prepared(&mut this.stream)?;
            Ok(Prepared { id, kinds })
        })
    }

    /// Executes a prepared statement with these values, and passes on each row.
    pub(super) fn execute(
        &mut self,
        statement: &mut Prepared,
        values: &[Bind<'_>],
        mut row: impl FnMut(&[Value<'_>]),
    ) -> Result<(), MyError> {
        self.with(|this| {
            this.command(&execute(statement.id, values))?;
            let first = this.packets.next(&mut this.stream)?;
            this.done = this.packets.rows(first, &mut this.stream, &mut statement.kinds, &mut |packet, kinds| {
                row(&binary_row(packet, kinds)?);
                Some(())
            })?;
            Ok(())
        })
    }

    /// Sends a request.
    ///
    /// # Errors
    /// A lost connection.
    #[inline]
    pub(super) fn ask_call(&mut self, call: &Call) -> Result<(), MyError> {
        self.with(|this| this.send(&call.bytes, 1))
    }

    /// Waits for the answer and returns the number of rows counted or changed.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<u64, MyError> {
        self.with(|this| this.packets.counted(&mut this.stream))
    }

    /// Callers that wait for the answer outside (in `epoll`) call this now and then to ask whether they may go on;
    /// `wait` is a new one for each answer.
    ///
    /// # Errors
    /// They may not.
    pub(super) fn may_wait(&mut self, wait: &mut Wait) -> Result<(), MyError> {
        self.with(|this| Ok(this.patience.look(wait, this.stream.peer())?))
    }

    /// The socket, to wait until it is readable.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// The session's number on the server.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// The process that listens at the other end of a Unix socket.
    pub(super) fn listener(&self) -> Option<i32> {
        self.stream.listener_pid()
    }
}

/// Logs off, ignoring errors.
impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.with(|this| this.command(&[COM_QUIT]));
    }
}

impl Peer for Server {
    /// Whether the server greets a new connection; one with frozen threads does not.
    fn shows_life(&self, within: Duration) -> bool {
        matches!(self.way.hears(&[], within), Ok(1))
    }

    /// From the server's own list of sessions, over a separate session.
    fn is_at_work(&self, within: Duration) -> Option<bool> {
        let (address, id) = self.session.as_ref()?;
        let mut asking = Connection::open(&address.brief(within)).ok()?;
        let rows = asking.rows(&format!(
            "select connection_id(), s.id, s.command, s.state \
             from (select 1 as n) as one left join information_schema.processlist s on s.id = {id}"
        ));
        is_at_work(asking.id(), rows.ok()?.first()?)
    }
}

/// States of a session that sends to its client, in MariaDB and in MySQL.
const TO_CLIENT: [&str; 2] = ["Writing to net", "Sending to client"];

/// Interprets a row: our own connection number, the session's number, its command and its state.
fn is_at_work(own: u32, row: &[Option<String>]) -> Option<bool> {
    let [told, id, command, state] = row else { return None };
    // Behind a proxy the numbers mean something else.
    if told.as_deref() != Some(own.to_string().as_str()) {
        return None;
    }
    match id {
        None => Some(false),
        // Waiting for the client does not count as work, even inside a transaction.
        Some(_) => Some(command.as_deref()? != "Sleep" && !TO_CLIENT.contains(&state.as_deref().unwrap_or_default())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_at_work_unless_it_sleeps_writes_to_us_or_is_gone() {
        let says = |row: [&str; 4]| is_at_work(7, &row.map(|text| (!text.is_empty()).then(|| text.to_owned())));
        assert_eq!(says(["7", "5", "Query", "Sending data"]), Some(true));
        assert_eq!(says(["7", "5", "Execute", ""]), Some(true));
        assert_eq!(says(["7", "5", "Sleep", ""]), Some(false));
        assert_eq!(says(["7", "", "", ""]), Some(false));
        assert_eq!(says(["7", "5", "Query", "Writing to net"]), Some(false));
        assert_eq!(says(["7", "5", "Query", "Sending to client"]), Some(false));
        assert_eq!(says(["7", "5", "", ""]), None);
        assert_eq!(says(["9", "", "", ""]), None);
    }
}
