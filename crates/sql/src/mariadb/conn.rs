//! A connection: the crate `mysql` with our addresses, times and words for errors.

use super::address::{Address, Host};
use super::product::Product;
use super::tls::{Mode, Tls};
use assay_run::engine::{EngineError, OpError};
use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::io::ErrorKind;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Duration;

/// No server that is well takes longer to let somebody in.
const CONNECT: Duration = Duration::from_secs(10);

/// Classes of failed operations by the server's number; whether another attempt may help.
const CLASSES: &[(u16, &str, bool)] = &[
    (1213, "deadlock", true),
    (1205, "lock timeout", false),
    (1021, "disk full", false),
    (1114, "disk full", false),
    (1037, "out of memory", false),
    (1041, "out of memory", false),
    (1040, "too many connections", false),
    (1290, "read only", false),
    (1792, "read only", false),
    (1317, "cancelled", false),
    (1969, "statement timeout", false),
    (1030, "io", false),
    (1877, "corrupt", false),
    (1146, "missing", false),
    (1142, "no privilege", false),
    (1044, "no privilege", false),
];

/// Why a server did not do as asked.
#[derive(Debug)]
pub(super) struct MyError(mysql::Error);

impl MyError {
    /// The server's number of the error.
    pub(super) fn code(&self) -> Option<u16> {
        match &self.0 {
            mysql::Error::MySqlError(error) => Some(error.code),
            _ => None,
        }
    }

    /// The server cannot protect the connection.
    fn lacks_tls(&self) -> bool {
        matches!(&self.0, mysql::Error::DriverError(mysql::DriverError::TlsNotSupported))
    }

    /// There is no connection.
    pub(super) fn gone() -> Self {
        Self(mysql::Error::IoError(ErrorKind::NotConnected.into()))
    }

    /// What came of reading or writing.
    fn io(&self) -> Option<&std::io::Error> {
        match &self.0 {
            mysql::Error::IoError(error) => Some(error),
            mysql::Error::CodecError(error) => std::error::Error::source(error)?.downcast_ref(),
            _ => None,
        }
    }

    /// The server was not heard of for too long.
    fn is_late(&self) -> bool {
        let late = |io: &std::io::Error| matches!(io.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        self.io().is_some_and(late)
    }

    /// The connection broke, or the server ended it.
    fn is_lost(&self) -> bool {
        let ended = self.code().is_some() && self.is_fatal();
        ended || (self.io().is_some() && !self.is_late())
    }

    /// Another session was in the way (a deadlock, a wait for a lock): another attempt at the transaction may help.
    pub(super) fn is_clash(&self) -> bool {
        matches!(self.code(), Some(1205 | 1213))
    }

    /// The connection cannot be used any more: it broke, or the server ended it (1053 and 1927, shutdown and KILL).
    pub(super) fn is_fatal(&self) -> bool {
        match self.code() {
            Some(code) => matches!(code, 1053 | 1927),
            None => true,
        }
    }
}

impl std::fmt::Display for MyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.0, self.io()) {
            _ if self.is_late() => f.write_str("the server did not answer in time (MYSQL_ANSWER_TIMEOUT)"),
            (_, Some(io)) => write!(f, "{io}"),
            (mysql::Error::MySqlError(error), _) => {
                let message = super::on_one_line(&error.message);
                write!(f, "{message} (error {})", error.code)
            }
            (mysql::Error::CodecError(error), _) => write!(f, "{error}"),
            (mysql::Error::DriverError(error), _) => write!(f, "{error}"),
            (other, _) => write!(f, "{other}"),
        }
    }
}

impl From<mysql::Error> for MyError {
    fn from(error: mysql::Error) -> Self {
        Self(error)
    }
}

/// Says what was being done when the server refused, and the way out where there is one.
pub(super) fn told(doing: &str) -> impl Fn(MyError) -> EngineError + '_ {
    move |error| {
        let way_out = match error.code() {
            Some(1044 | 1142 | 1143 | 1227 | 1370) => {
                "; the user needs ALL PRIVILEGES on the database of the data set (a run without updates: SELECT)"
            }
            Some(1290 | 1792 | 1836) => "; assay needs a server that can be written to",
            Some(1176) => "; check the index with `assay check`",
            Some(1021 | 1114) => "; make room, or use fewer schemas or a smaller SCALE",
            _ => "",
        };
        let lost = match error.is_lost() {
            true => "the connection was lost: ",
            false => "",
        };
        EngineError::Unusable(format!("{doing}: {lost}{error}{way_out}"))
    }
}

/// An operation's failure by what the server said.
pub(super) fn op_error(error: &MyError) -> OpError {
    match error.is_fatal() {
        true => OpError { class: "connection lost", text: error.to_string(), retryable: false },
        false => op_error_of(error.code().unwrap_or(0), &error.to_string()),
    }
}

/// The same from the server's number and text.
pub(super) fn op_error_of(code: u16, text: &str) -> OpError {
    let known = CLASSES.iter().find(|(known, ..)| *known == code);
    let (class, retryable) = known.map_or(("server", false), |(_, class, again)| (*class, *again));
    OpError { class, text: text.to_owned(), retryable }
}

/// See the module.
pub(crate) struct Connection {
    pub(super) product: Product,
    pub(super) conn: Conn,
    /// What goes through its socket is as it was written: no TLS.
    pub(super) plain: bool,
}

impl Connection {
    /// Logs in. No answer is waited for longer than `answer`; `None` waits for ever.
    ///
    /// # Errors
    /// `Unusable`: nobody there, wrong password, no such database; with the way out.
    pub(super) fn open(address: &Address, answer: Option<Duration>) -> Result<Self, EngineError> {
        let builder = OptsBuilder::new()
            .user(Some(&address.user))
            .pass(address.password.as_ref().map(|password| &password.0))
            .db_name(Some(&address.database))
            // The crate would look for a socket of a server that it was given the port of.
            .prefer_socket(false)
            .tcp_connect_timeout(Some(CONNECT))
            .read_timeout(answer)
            .write_timeout(answer)
            .stmt_cache_size(0);
        let builder = match &address.host {
            Host::Tcp { host, port } => builder.ip_or_hostname(Some(host)).tcp_port(*port),
            Host::Socket(path) => builder.socket(Some(path.display().to_string())),
        };
        let in_files = matches!(address.host, Host::Socket(_));
        let with = |tls: &Tls| {
            let options = tls.options();
            // Over a socket of the file system the crate has none.
            let plain = in_files || options.is_none();
            Conn::new(builder.clone().ssl_opts(options)).map(|conn| Self { product: Product::MariaDb, conn, plain })
        };
        let opened = match with(&address.tls) {
            Err(mysql::Error::DriverError(mysql::DriverError::TlsNotSupported))
                if address.tls.mode == Mode::Preferred =>
            {
                with(&Tls::none())
            }
            opened => opened,
        };
        match opened {
            Ok(mut connection) => {
                connection.pin().map_err(told("preparing the session"))?;
                Ok(connection)
            }
            Err(error) => Err(refused(address, &MyError(error))),
        }
    }

    /// What a session needs that no setting of the server may change, and whose server it is.
    fn pin(&mut self) -> Result<(), MyError> {
        self.run("set names latin1, sql_mode = 'STRICT_ALL_TABLES'")?;
        self.product = Product::of(&self.value("select version()")?);
        Ok(())
    }

    /// Statements whose answers do not matter.
    pub(super) fn run(&mut self, sql: &str) -> Result<(), MyError> {
        Ok(self.conn.query_drop(sql)?)
    }

    /// All rows, as text; `None` is NULL.
    pub(super) fn rows(&mut self, sql: &str) -> Result<Vec<Vec<Option<String>>>, MyError> {
        let rows: Vec<Row> = self.conn.query(sql)?;
        Ok(rows.into_iter().map(|row| row.unwrap().into_iter().map(text).collect()).collect())
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

    /// The session's number on the server.
    pub(super) fn id(&self) -> u32 {
        self.conn.connection_id()
    }

    /// Who listens at the other end, if this is a socket of the file system.
    pub(super) fn listener(&self) -> Option<i32> {
        let peer = rustix::net::sockopt::socket_peercred(self.socket().ok()?).ok()?;
        Some(peer.pid.as_raw_nonzero().get())
    }

    /// The socket once more, for a thread that ends waits in it. The crate keeps its own to itself.
    pub(super) fn socket(&self) -> std::io::Result<OwnedFd> {
        let this = pidfd_open(rustix::process::getpid(), PidfdFlags::empty())?;
        Ok(pidfd_getfd(this, self.conn.as_raw_fd(), PidfdGetfdFlags::empty())?)
    }
}

fn text(value: mysql::Value) -> Option<String> {
    match value {
        mysql::Value::NULL => None,
        mysql::Value::Bytes(bytes) => Some(String::from_utf8_lossy(&bytes).into_owned()),
        other => Some(other.as_sql(true)),
    }
}

/// Why nobody was let in.
fn refused(address: &Address, error: &MyError) -> EngineError {
    let Address { host, user, database, .. } = address;
    let text = match error.code() {
        Some(1045) => format!(
            "the server at {host} refuses user {user}: {error}; check user and password (in the URL or MYSQL_PWD)"
        ),
        Some(1698) => format!(
            "the server at {host} refuses user {user}: {error}; this account logs in by its system user (unix_socket): \
             give another user, or run assay as that user with ?socket=PATH"
        ),
        Some(1049) => format!(
            "the server at {host} has no database {database}: create it (CREATE DATABASE), empty and for assay alone, \
             or name another one"
        ),
        Some(1044) => format!(
            "user {user} may not use database {database} at {host}: {error}; GRANT ALL PRIVILEGES ON the database TO \
             this user"
        ),
        Some(1040 | 1203) => {
            format!("the server at {host} has no connection left: {error}; raise max_connections or use fewer sessions")
        }
        Some(_) => format!("the server at {host} refuses the connection: {error}"),
        None if error.lacks_tls() => format!(
            "the server at {host} has no TLS, which ssl-mode asks for: give it a certificate, or use ssl-mode=disabled"
        ),
        None => format!("cannot connect to the server at {host}: {error}"),
    };
    EngineError::Unusable(text)
}
