//! Errors of sessions that cannot continue.

use assay_run::engine::{EngineError, OpError};

/// The error of the thread's first lost session; `of` returns a session's number and why it lost its connection.
pub(crate) fn lost<S>(sessions: &[S], of: impl Fn(&S) -> (u32, Option<&str>)) -> Result<(), EngineError> {
    let lost = sessions.iter().find_map(|session| {
        let (number, why) = of(session);
        let why = why?;
        Some(EngineError::SessionLost(format!("session {number} lost its connection: {why}")))
    });
    lost.map_or(Ok(()), Err)
}

/// The session's connection is closed.
pub(crate) fn closed(session: u32) -> OpError {
    OpError { class: "connection lost", text: format!("session {session} is closed"), retryable: false }
}

/// The first select must touch as many rows as it requests.
pub(crate) fn probed(home: u32, width: u32, rows: u64) -> Result<(), EngineError> {
    if rows == u64::from(width) {
        return Ok(());
    }
    Err(EngineError::Damaged(format!(
        "a select of keys 1 to {width} of schema {home} touched {rows} rows: the data set is no longer as loaded \
         (`assay check` shows the details)"
    )))
}
