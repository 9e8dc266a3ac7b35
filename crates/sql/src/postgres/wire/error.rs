//! Failures between assay and a server, grouped by what a caller can do about them.

use assay_measure::plain::is_unprintable;
use assay_run::engine::EngineError;
use std::collections::BTreeMap;

/// An `ErrorResponse` or `NoticeResponse` of the server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerError {
    /// `ERROR`, `FATAL`, `PANIC`, `WARNING`, ... never translated.
    pub severity: String,
    /// SQLSTATE, five characters.
    pub code: String,
    /// Primary message, in the server's language.
    pub message: String,
    /// Detail, if any.
    pub detail: Option<String>,
    /// Hint, if any.
    pub hint: Option<String>,
    /// The function in the server that raised the error; unlike the message, it is never translated.
    pub routine: String,
}

impl ServerError {
    /// Parses the message body: a type byte and a zero-terminated text, repeated until a zero byte.
    pub(super) fn parse(body: &[u8]) -> Self {
        let mut fields = BTreeMap::new();
        let mut rest = body;
        while let [kind, tail @ ..] = rest {
            if *kind == 0 {
                break;
            }
            let end = tail.iter().position(|byte| *byte == 0).unwrap_or(tail.len());
            fields.insert(*kind, clean(&tail[..end]));
            rest = tail.get(end + 1..).unwrap_or_default();
        }
        let severity = fields.remove(&b'V').or_else(|| fields.remove(&b'S'));
        Self {
            severity: severity.unwrap_or_default(),
            code: fields.remove(&b'C').unwrap_or_default(),
            message: fields.remove(&b'M').unwrap_or_default(),
            detail: fields.remove(&b'D'),
            hint: fields.remove(&b'H'),
            routine: fields.remove(&b'R').unwrap_or_default(),
        }
    }

    /// Whether the error ended the session.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        matches!(self.severity.as_str(), "FATAL" | "PANIC")
    }

    /// What the operator can do about it, if the server does not say so itself.
    fn way_out(&self) -> Option<&'static str> {
        Some(match (self.code.as_str(), self.routine.as_str()) {
            ("28P01", _) => "give the right password with PGPASSWORD, the password file or the URL",
            // Source: the server's auth.c; the other routine looks up the role.
            ("28000", "ClientAuthentication" | "auth_failed") => {
                "add a line for it to the server's pg_hba.conf and reload, or connect another way"
            }
            ("28000", "InitializeSessionUserId") => "name a role that exists and may log in (CREATE ROLE ... LOGIN)",
            ("3D000", _) => "create it (createdb) or name another database in the URL",
            ("53300", _) => "use fewer sessions (-s, -t), or raise max_connections or the role's CONNECTION LIMIT",
            ("57P03", _) => "wait until the server accepts connections, then try again",
            ("57P01", _) => "an administrator or a shutdown ended the session",
            ("57P02", _) => "another server process crashed and took all sessions with it: see the server's log",
            ("57P05" | "25P03", _) => "the server's idle timeout ended the session: raise it for this role",
            ("25006", _) => "the session is read-only: name the primary, or set default_transaction_read_only off",
            _ => return None,
        })
    }
}

impl std::fmt::Display for ServerError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} (SQLSTATE {})", self.message, self.code)?;
        if let Some(detail) = &self.detail {
            write!(f, "; {detail}")?;
        }
        if let Some(hint) = &self.hint {
            write!(f, "; hint: {hint}")?;
        }
        if let Some(way_out) = self.way_out() {
            write!(f, ": {way_out}")?;
        }
        Ok(())
    }
}

/// Longest server text that is kept; real ones quote at most a statement.
const TEXT_CHARS_MAX: usize = 2000;

/// A server text made safe to print on one line: it cannot move a terminal's cursor, change its colours or the
/// direction of writing, and its length is limited.
pub(in crate::postgres) fn clean(bytes: &[u8]) -> String {
    // A character has at most four bytes, so the rest can be ignored.
    let kept = &bytes[..bytes.len().min(4 * TEXT_CHARS_MAX + 4)];
    let text = String::from_utf8_lossy(kept);
    let mut letters = text.chars().map(|letter| match letter {
        '\n' | '\r' | '\t' => ' ',
        letter if is_unprintable(letter) => char::REPLACEMENT_CHARACTER,
        letter => letter,
    });
    let mut kept: String = letters.by_ref().take(TEXT_CHARS_MAX).collect();
    if letters.next().is_some() {
        kept.push_str("...");
    }
    kept
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PgError {
    /// The server refused; the connection stays usable unless the severity is FATAL or PANIC.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The server refused the login.
    #[error("{to}: {error}{more}")]
    Login {
        /// Host, user and database.
        to: String,
        /// Its answer.
        error: Box<ServerError>,
        /// Further information: an ignored password file, or the answer to another way of connecting.
        more: String,
    },
    /// The request contradicts itself, or local files are unusable.
    #[error("{0}")]
    Usage(String),
    /// The connection is lost.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, and on which server.
        what: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// No server was reached.
    #[error("{0}")]
    Unreached(String),
    /// The connection is not possible as requested (TLS, authentication), or the server does not follow the protocol.
    #[error("{0}")]
    Refused(String),
}

impl PgError {
    /// SQLSTATE, if the server gave one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) | Self::Login { error, .. } => Some(&error.code),
            _ => None,
        }
    }

    /// Whether the connection is no longer usable.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Server(error) => error.is_fatal(),
            _ => true,
        }
    }
}

impl From<PgError> for EngineError {
    /// The operator must fix contradictions (exit 2); any error from the server or the network makes the target
    /// unusable (exit 3).
    fn from(error: PgError) -> Self {
        match error {
            PgError::Usage(text) => Self::Usage(text),
            other => Self::Unusable(other.to_string()),
        }
    }
}
