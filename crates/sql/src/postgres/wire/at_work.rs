//! Whether the server works for a session, as its own list of sessions has it.

use super::connection::Connection;
use super::reach::Session;
use crate::postgres::conninfo::{ConnectOptions, SessionAttrs};
use std::time::{Duration, Instant};

/// Asks on a session of its own; `None` where that is not let in, or cannot know.
pub(super) fn is_at_work(of: &Session, within: Duration) -> Option<bool> {
    let mut options = ConnectOptions::clone(&of.options);
    options.connect_timeout = Some(within);
    options.session_attrs = SessionAttrs::Any;
    let mut connection = Connection::open(&options).ok()?;
    connection.set_deadline(Instant::now() + within);
    let asked = connection.query(&format!(
        "select pg_catalog.pg_backend_pid(), a.pid, a.state, a.wait_event_type \
         from (select 1) one left join pg_catalog.pg_stat_activity a on a.pid = {}",
        of.pid
    ));
    let own = connection.backend_pid().to_string();
    connection.close();
    judged(&own, asked.ok()?.rows.first()?)
}

/// What a row of our own process, of the session's, its state and what it waits for says.
fn judged(own: &str, row: &[Option<String>]) -> Option<bool> {
    let [told, pid, state, waits_for] = row else { return None };
    // Behind a pooler the numbers mean something else.
    if told.as_deref() != Some(own) {
        return None;
    }
    match (pid, state.as_deref()) {
        (None, _) => Some(false),
        // Nobody may see it, or nobody keeps it.
        (_, None | Some("disabled")) => None,
        // Waiting for its client is no work, whatever it is in the middle of.
        (_, Some(state)) => Some(!state.starts_with("idle") && waits_for.as_deref() != Some("Client")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_at_work_unless_its_process_waits_for_us_or_is_gone() {
        let says =
            |own: &str, row: [&str; 4]| judged(own, &row.map(|text| (!text.is_empty()).then(|| text.to_owned())));
        assert_eq!(says("7", ["7", "5", "active", ""]), Some(true));
        assert_eq!(says("7", ["7", "5", "active", "Lock"]), Some(true));
        assert_eq!(says("7", ["7", "5", "active", "Client"]), Some(false));
        assert_eq!(says("7", ["7", "5", "idle", "Client"]), Some(false));
        assert_eq!(says("7", ["7", "5", "idle in transaction", ""]), Some(false));
        assert_eq!(says("7", ["7", "", "", ""]), Some(false));
        assert_eq!(says("7", ["7", "5", "", ""]), None);
        assert_eq!(says("7", ["7", "5", "disabled", ""]), None);
        assert_eq!(says("0", ["7", "", "", ""]), None);
    }
}
