//! What can go wrong between us and a server, told apart by what a caller can do about it.

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
}

impl ServerError {
    /// From the body of the message: a byte, a text ended by zero, and so on until a zero byte.
    pub(super) fn parse(body: &[u8]) -> Self {
        let mut fields = BTreeMap::new();
        let mut rest = body;
        while let [kind, tail @ ..] = rest {
            if *kind == 0 {
                break;
            }
            let end = tail
                .iter()
                .position(|byte| *byte == 0)
                .unwrap_or(tail.len());
            let text = String::from_utf8_lossy(&tail[..end]).into_owned();
            fields.insert(*kind, text);
            rest = tail.get(end + 1..).unwrap_or_default();
        }
        let severity = fields.remove(&b'V').or_else(|| fields.remove(&b'S'));
        Self {
            severity: severity.unwrap_or_default(),
            code: fields.remove(&b'C').unwrap_or_default(),
            message: fields.remove(&b'M').unwrap_or_default(),
            detail: fields.remove(&b'D'),
            hint: fields.remove(&b'H'),
        }
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
        Ok(())
    }
}

/// Why a request has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PgError {
    /// The server refused; the connection lives on unless the severity is FATAL or PANIC.
    #[error("{0}")]
    Server(Box<ServerError>),
    /// The connection is gone.
    #[error("{what}: {source}")]
    Io {
        /// What was being done, to which server.
        what: String,
        /// The operating system's answer.
        source: std::io::Error,
    },
    /// The connection cannot be made as asked (TLS, authentication), or the server does not speak the protocol.
    #[error("{0}")]
    Refused(String),
}

impl PgError {
    /// SQLSTATE, if the server gave one.
    #[must_use]
    pub fn code(&self) -> Option<&str> {
        match self {
            Self::Server(error) => Some(&error.code),
            _ => None,
        }
    }

    /// Nothing more can be asked on the connection.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        match self {
            Self::Server(error) => matches!(error.severity.as_str(), "FATAL" | "PANIC"),
            _ => true,
        }
    }
}
