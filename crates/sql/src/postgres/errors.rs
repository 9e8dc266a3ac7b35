//! What server errors mean for an operation and for a run.

use crate::postgres::wire::PgError;
use assay_run::engine::{EngineError, OpError};

/// Classes of failed operations by SQLSTATE, and whether a retry may help.
const CLASSES: &[(&str, &str, bool)] = &[
    ("40P01", "deadlock", true),
    ("40001", "serialization", true),
    ("55P03", "lock timeout", false),
    ("53100", "disk full", false),
    ("53200", "out of memory", false),
    ("53300", "too many connections", false),
    ("25006", "read only", false),
    ("57014", "cancelled", false),
    ("58030", "io", false),
    ("XX001", "corrupt", false),
    ("XX002", "corrupt", false),
    ("42P01", "missing", false),
    ("42501", "no privilege", false),
];

/// Converts a server error to the failure of an operation.
pub(super) fn op_error(error: &PgError) -> OpError {
    let text = error.to_string();
    if error.is_fatal() {
        return OpError { class: "connection lost", text, retryable: false };
    }
    by_code(error.code().unwrap_or_default(), text)
}

/// The same for a SQLSTATE and its message.
pub(super) fn by_code(code: &str, text: String) -> OpError {
    if code == "57014" && text.contains("statement timeout") {
        return OpError { class: "statement timeout", text, retryable: false };
    }
    let known = CLASSES.iter().find(|(known, ..)| *known == code);
    let (class, retryable) = known.map_or(("server", false), |(_, class, again)| (*class, *again));
    OpError { class, text, retryable }
}

/// The error of a server that cannot serve as requested.
pub(super) fn unusable(error: PgError) -> EngineError {
    EngineError::Unusable(error.to_string())
}
