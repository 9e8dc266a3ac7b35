//! What a database session can do, implemented by the driver, or by a stand-in in tests.
//!
//! Values are returned as text; each statement in `sql` formats its numbers. Only the measured operations have methods
//! of their own.

use super::address::Door;
use assay_run::engine::{EngineError, OpError};
use std::time::Duration;

/// A value for a placeholder, by position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bind<'a> {
    /// A whole number.
    Int(i64),
    /// Text.
    Text(&'a str),
    /// NULL as a number.
    Null,
}

/// The server's identifier of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Id {
    /// Session number.
    pub(super) sid: u32,
    /// Distinguishes sessions that reuse a number.
    pub(super) serial: u32,
}

/// Rows as text; `None` is NULL.
pub(crate) type Rows = Vec<Vec<Option<String>>>;

/// One session. A failed call leaves it usable unless the error [is fatal](OraError::is_fatal).
pub(crate) trait Session: Send {
    /// The identifier of this session.
    fn id(&self) -> Id;

    /// Sets the time limit of the following statements. The server interrupts a longer one; if it does not react within
    /// the same time again, it is given up.
    fn patience(&mut self, statement: Duration) -> Result<(), OraError>;

    /// Executes a statement or block without results; returns the number of rows changed.
    fn run(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError>;

    /// Executes the statement for each row of values, in one call; returns the number of rows changed.
    fn batch(&mut self, sql: &str, rows: &[Vec<Bind<'_>>]) -> Result<u64, OraError>;

    /// All rows of a query.
    fn rows(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<Rows, OraError>;

    /// All rows of a query, with their first `columns` as text. The other columns are transferred and may have any type.
    fn leading(&mut self, sql: &str, binds: &[Bind<'_>], columns: usize) -> Result<Rows, OraError>;

    /// The result of a query that returns one number.
    fn number(&mut self, sql: &str, binds: &[Bind<'_>]) -> Result<u64, OraError>;

    /// Executes a block with `outs` placeholders after those of `binds`, which it fills with text of at most 4000 bytes.
    fn call(&mut self, sql: &str, binds: &[Bind<'_>], outs: usize) -> Result<Vec<String>, OraError>;

    /// Commits the transaction.
    fn commit(&mut self) -> Result<(), OraError>;

    /// Rolls the transaction back.
    fn rollback(&mut self) -> Result<(), OraError>;
}

/// Opens sessions.
pub(crate) trait Way: Send + Sync {
    /// Logs in. `answer` limits the login and each answer: after half of it a statement is interrupted.
    ///
    /// # Errors
    /// No server, login refused, or wrong password, with the remedy.
    fn open(&self, door: &Door, answer: Duration) -> Result<Box<dyn Session>, EngineError>;
}

/// Why a request failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OraError {
    /// NNNNN of ORA-NNNNN; `None` if the error is not from a server.
    pub(super) code: Option<u32>,
    /// The message.
    pub(super) text: String,
}

/// Errors that end the session: it was killed, hit a limit, or the instance or network failed.
const FATAL: &[u32] = &[
    28, 600, 1012, 1033, 1034, 1041, 1089, 1090, 1092, 2391, 2396, 2399, 3113, 3114, 3135, 12_514, 12_537, 12_547,
    12_570, 25_402, 25_403, 25_405, 25_408,
];

/// Classes of failed operations by error number, and whether a retry may help.
const CLASSES: &[(u32, &str, bool)] = &[
    (60, "deadlock", true),
    (8177, "serialisation", true),
    (54, "lock timeout", false),
    (30_006, "lock timeout", false),
    (1013, "cancelled", false),
    (1555, "snapshot too old", false),
    (30_036, "undo full", false),
    (1650, "undo full", false),
    (257, "disk full", false),
    (1536, "disk full", false),
    (1652, "disk full", false),
    (1653, "disk full", false),
    (1654, "disk full", false),
    (1688, "disk full", false),
    (1691, "disk full", false),
    (16_000, "read only", false),
    (4030, "out of memory", false),
    (4031, "out of memory", false),
    (1110, "io", false),
    (1115, "io", false),
    (1578, "corrupt", false),
    (942, "missing", false),
    (8103, "missing", false),
    (1031, "no privilege", false),
    (4068, "statement", false),
    (6550, "statement", false),
];

impl OraError {
    /// An error from a server.
    pub(super) fn said(code: u32, text: impl Into<String>) -> Self {
        Self { code: Some(code), text: text.into() }
    }

    /// A broken connection.
    pub(super) fn broken(text: impl Into<String>) -> Self {
        Self { code: None, text: text.into() }
    }

    /// Whether the session is no longer usable.
    pub(super) fn is_fatal(&self) -> bool {
        self.code.is_none_or(|code| FATAL.contains(&code))
    }

    /// Converts it to the failure of an operation.
    pub(super) fn of_operation(&self) -> OpError {
        let known = self.code.and_then(|code| CLASSES.iter().find(|(known, ..)| *known == code));
        let (class, retryable) = match known {
            _ if self.is_fatal() => ("connection lost", false),
            Some((_, class, again)) => (*class, *again),
            None => ("server", false),
        };
        OpError { class, text: self.to_string(), retryable }
    }
}

impl std::fmt::Display for OraError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The first line starts with the server's error number.
        f.write_str(self.text.lines().next().unwrap_or_default())
    }
}

/// Adds to an error what was being done, and the remedy if there is one.
pub(crate) fn told(doing: &str) -> impl Fn(OraError) -> EngineError + '_ {
    move |error| {
        let way_out = match error.code {
            Some(942 | 1031) => {
                "; see the privileges in docs/guides/oracle.md (for V$ views: GRANT SELECT_CATALOG_ROLE)"
            }
            Some(1536 | 1950) => "; give the user a quota on the tablespace (ALTER USER ... QUOTA UNLIMITED ON ...)",
            Some(1650 | 1652 | 1653 | 1654 | 1688 | 1691 | 30_036) => {
                "; make the tablespace larger, or use fewer schemas or a smaller SCALE"
            }
            Some(257) => "; the archiver has no room: free or enlarge the recovery area",
            Some(959) => "; ORACLE_TABLESPACE must name an existing tablespace",
            Some(16_000) => "; assay needs a database that accepts writes (not a standby)",
            Some(1013) => {
                "; the answer took longer than allowed (ORACLE_ANSWER_TIMEOUT), or another session cancelled it"
            }
            _ => "",
        };
        EngineError::Unusable(format!("{doing}: {error}{way_out}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_has_the_class_of_its_number_and_a_lost_session_is_known() {
        let class = |code, text: &str| OraError::said(code, text).of_operation();
        let deadlock = class(60, "ORA-00060: deadlock detected while waiting for resource\nORA-06512: at line 1");
        assert_eq!((deadlock.class, deadlock.retryable), ("deadlock", true));
        assert_eq!(deadlock.text, "ORA-00060: deadlock detected while waiting for resource");
        assert_eq!(class(1653, "ORA-01653: unable to extend table").class, "disk full");
        assert_eq!(class(3113, "ORA-03113: end-of-file on communication channel").class, "connection lost");
        assert_eq!(class(12_345, "ORA-12345: strange").class, "server");
        assert!(OraError::broken("closed").is_fatal());
        assert!(!OraError::said(1, "ORA-00001: unique constraint violated").is_fatal());
    }

    #[test]
    fn a_refusal_says_what_was_done_and_what_helps() {
        let text =
            told("creating cf1_1")(OraError::said(1950, "ORA-01950: no privileges on tablespace 'USERS'")).to_string();
        assert!(text.starts_with("creating cf1_1: ORA-01950"), "{text}");
        assert!(text.contains("QUOTA"), "{text}");
    }
}
