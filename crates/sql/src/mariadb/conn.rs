//! A session with a server: statements as text or prepared, and files that it may ask for. Every wait in it ends.

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

/// Of a file that is sent, in a packet.
const FILE_BYTES: usize = 64 * 1024;

/// A statement the server holds.
pub(super) struct Prepared {
    pub(super) id: u32,
    /// What its columns held when they were described last.
    kinds: Vec<Kind>,
}

/// See the module.
pub(crate) struct Connection {
    pub(super) product: Product,
    stream: Stream,
    packets: Packets,
    patience: Patience,
    id: u32,
    /// Why the next bytes of the connection are unknown.
    over: Option<MyError>,
    /// What the last answer said at its end.
    pub(super) done: Done,
}

impl Connection {
    /// Logs in.
    ///
    /// # Errors
    /// `Unusable`: nobody there, wrong password, no such database; with the way out.
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

    /// What a session needs that no setting of the server may change, and whose server it is.
    fn pin(&mut self) -> Result<(), MyError> {
        self.run("set names latin1, sql_mode = 'STRICT_ALL_TABLES'")?;
        self.product = Product::of(&self.value("select version()")?);
        Ok(())
    }

    /// Does something with the session that leaves it unusable if it fails otherwise than by the server's word.
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

    /// Statements whose answers do not matter.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), MyError> {
        self.query(sql, &mut |_, _| Some(()))
    }

    /// The same of one that loads a file, which is this text: whatever file the server asks for.
    pub(super) fn load(&mut self, sql: &str, text: &[u8]) -> Result<(), MyError> {
        self.with(|this| {
            this.command(&[&[COM_QUERY], sql.as_bytes()].concat())?;
            let mut first = this.packets.next(&mut this.stream)?;
            if this.packets.at(first.clone()).first() == Some(&LOCAL_FILE) {
                // An empty packet ends it.
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

    /// The first value of the first row; empty if there is none.
    pub(super) fn value(&mut self, sql: &str) -> Result<String, MyError> {
        let first = self.rows(sql)?.into_iter().flatten().next();
        Ok(first.flatten().unwrap_or_default())
    }

    /// A number there; 0 if it is none.
    pub(super) fn number(&mut self, sql: &str) -> Result<u64, MyError> {
        Ok(self.value(sql)?.parse().unwrap_or(0))
    }

    /// Has the server hold a statement.
    pub(super) fn prepare(&mut self, sql: &str) -> Result<Prepared, MyError> {
        self.with(|this| {
            this.command(&[&[COM_STMT_PREPARE], sql.as_bytes()].concat())?;
            let (id, kinds) = this.packets.prepared(&mut this.stream)?;
            Ok(Prepared { id, kinds })
        })
    }

    /// Executes it with these values, and hands over each row.
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

    /// Sends a question.
    ///
    /// # Errors
    /// A lost connection.
    #[inline]
    pub(super) fn ask_call(&mut self, call: &Call) -> Result<(), MyError> {
        self.with(|this| this.send(&call.bytes, 1))
    }

    /// Waits for its answer: the rows counted or changed.
    ///
    /// # Errors
    /// The server's, or a lost connection.
    #[inline]
    pub(super) fn answer(&mut self) -> Result<u64, MyError> {
        self.with(|this| this.packets.counted(&mut this.stream))
    }

    /// Whoever waits for the answer outside (in `epoll`) asks now and then whether it may wait any longer; `wait` is a new one
    /// for each answer.
    ///
    /// # Errors
    /// It may not.
    pub(super) fn may_wait(&mut self, wait: &mut Wait) -> Result<(), MyError> {
        self.with(|this| Ok(this.patience.look(wait, this.stream.peer())?))
    }

    /// To wait for answers.
    pub(super) fn socket(&self) -> BorrowedFd<'_> {
        self.stream.socket()
    }

    /// The session's number on the server.
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    /// Who listens at the other end, if this is a socket of the file system.
    pub(super) fn listener(&self) -> Option<i32> {
        self.stream.listener_pid()
    }
}

/// Says good-bye; what goes wrong then does not matter.
impl Drop for Connection {
    fn drop(&mut self) {
        let _ = self.with(|this| this.command(&[COM_QUIT]));
    }
}

impl Peer for Server {
    /// Whether it greets a new connection, which a server whose threads are frozen does not.
    fn shows_life(&self, within: Duration) -> bool {
        matches!(self.way.hears(&[], within), Ok(1))
    }

    /// As the server's own list of sessions has it, on a session of its own.
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

/// States of a session that writes to its client, on MariaDB and on MySQL.
const TO_CLIENT: [&str; 2] = ["Writing to net", "Sending to client"];

/// What a row of our own number, the session's, and what the server does for it says.
fn is_at_work(own: u32, row: &[Option<String>]) -> Option<bool> {
    let [told, id, command, state] = row else { return None };
    // Behind a proxy the numbers mean something else.
    if told.as_deref() != Some(own.to_string().as_str()) {
        return None;
    }
    match id {
        None => Some(false),
        // Waiting for its client is no work, whatever it is in the middle of.
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
