//! Server errors, and what the user can do about them.

use super::address::{Address, CONNECT};
use assay_run::engine::{EngineError, OpError};
use std::io::{Error, ErrorKind};

/// Classes of failed operations by the server's error number, and whether a retry may help.
const CLASSES: &[(u16, &str, bool)] = &[
    (1213, "deadlock", true),
    (1205, "lock timeout", false),
    // A file could not grow; MariaDB reports this with a file-layer error number and no reason.
    (14, "disk full", false),
    (20, "disk full", false),
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

/// Why a request failed.
#[derive(Debug)]
pub(super) enum MyError {
    /// The server's error.
    Server { code: u16, message: String },
    /// Reading or writing failed, or the answer does not follow the protocol.
    Io(Error),
    /// The server cannot encrypt the connection.
    NoTls,
    /// The server requests something that assay does not support.
    Refused(String),
}

impl MyError {
    /// The server's error number.
    pub(super) fn code(&self) -> Option<u16> {
        match self {
            Self::Server { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// A copy of the error for a later caller.
    pub(super) fn again(&self) -> Self {
        match self {
            Self::Server { code, message } => Self::Server { code: *code, message: message.clone() },
            Self::Io(io) => Self::Io(Error::new(io.kind(), io.to_string())),
            Self::NoTls => Self::NoTls,
            Self::Refused(why) => Self::Refused(why.clone()),
        }
    }

    /// The server does not follow the protocol.
    pub(super) fn odd(what: &str) -> Self {
        Self::Io(Error::new(ErrorKind::InvalidData, format!("the server does not follow the protocol: {what}")))
    }

    /// The server did not answer in time.
    fn is_late(&self) -> bool {
        matches!(self, Self::Io(io) if matches!(io.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut))
    }

    /// The connection broke, or the server ended it.
    fn is_lost(&self) -> bool {
        match self {
            Self::Server { .. } => self.is_fatal(),
            Self::Io(_) => !self.is_late(),
            _ => false,
        }
    }

    /// Another session caused the error (a deadlock, a lock wait): retrying the transaction may help.
    pub(super) fn is_clash(&self) -> bool {
        matches!(self.code(), Some(1205 | 1213))
    }

    /// The connection is no longer usable: it broke, or the server ended it (1053 and 1927, shutdown and KILL).
    pub(super) fn is_fatal(&self) -> bool {
        match self.code() {
            Some(code) => matches!(code, 1053 | 1927),
            None => true,
        }
    }
}

impl std::fmt::Display for MyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            _ if self.is_late() => f.write_str("the server did not answer in time (MYSQL_ANSWER_TIMEOUT)"),
            Self::Io(io) => write!(f, "{io}"),
            Self::Server { code, message } => write!(f, "{message} (error {code})"),
            Self::NoTls => f.write_str("the server has no TLS"),
            Self::Refused(why) => f.write_str(why),
        }
    }
}

impl From<Error> for MyError {
    fn from(error: Error) -> Self {
        Self::Io(error)
    }
}

/// Adds to an error what was being done, and the remedy if there is one.
pub(super) fn told(doing: &str) -> impl Fn(MyError) -> EngineError + '_ {
    move |error| {
        let way_out = match error.code() {
            Some(1044 | 1142 | 1143 | 1227 | 1370) => {
                "; the user needs ALL PRIVILEGES on the data set's database (SELECT for a run without updates)"
            }
            Some(1290 | 1792 | 1836) => "; assay needs a server that accepts writes",
            Some(1176) => "; check the index with `assay check`",
            Some(14 | 20 | 1021 | 1114) => {
                "; the disk of the server may be full: make room, or use fewer schemas or a smaller SCALE"
            }
            _ => "",
        };
        let lost = if error.is_lost() { "the connection was lost: " } else { "" };
        EngineError::Unusable(format!("{doing}: {lost}{error}{way_out}"))
    }
}

/// Converts a server error to the failure of an operation.
pub(super) fn op_error(error: &MyError) -> OpError {
    if error.is_fatal() {
        OpError { class: "connection lost", text: error.to_string(), retryable: false }
    } else {
        op_error_of(error.code().unwrap_or(0), &error.to_string())
    }
}

/// The same for an error number and text.
pub(super) fn op_error_of(code: u16, text: &str) -> OpError {
    let known = CLASSES.iter().find(|(known, ..)| *known == code);
    let (class, retryable) = known.map_or(("server", false), |(_, class, again)| (*class, *again));
    OpError { class, text: text.to_owned(), retryable }
}

/// The error of a failed login.
pub(super) fn refused(address: &Address, error: &MyError) -> EngineError {
    let Address { host, user, database, .. } = address;
    let text = match error.code() {
        Some(1045) => format!(
            "the server at {host} refuses user {user}: {error}; check user and password (in the URL or MYSQL_PWD)"
        ),
        Some(1698) => format!(
            "the server at {host} refuses user {user}: {error}; this account logs in as its system user (unix_socket): \
             give another user, or run assay as that user with ?socket=PATH"
        ),
        Some(1049) => format!(
            "the server at {host} has no database {database}: create it (CREATE DATABASE), empty and only for assay, \
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
        None if matches!(error, MyError::NoTls) => format!(
            "the server at {host} has no TLS, but ssl-mode requires it: give it a certificate, or use ssl-mode=disabled"
        ),
        None if error.is_late() => {
            format!("cannot connect to the server at {host}: the login got no answer within {} s", CONNECT.as_secs())
        }
        None => format!("cannot connect to the server at {host}: {error}"),
    };
    EngineError::Unusable(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_could_not_grow_is_a_full_disk_by_whatever_number_the_server_gives() {
        // As one MariaDB said it of the same full disk on two days.
        for (code, message) in
            [(1114, "The table 'inventories' is full"), (14, "Can't change size of file (Errcode: -738158960)")]
        {
            let error = || MyError::Server { code, message: message.to_owned() };
            assert_eq!(op_error(&error()).class, "disk full");
            let said = told("loading")(error()).to_string();
            assert!(said.contains("the disk of the server may be full: make room"), "{said}");
        }
    }
}
