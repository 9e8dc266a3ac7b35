//! Reaching a server: its addresses, its sockets, whether it is alive, and what its silence means.

use super::connection::Connection;
use super::error::PgError;
use super::peer::Server;
use crate::patience::{Patience, Peer};
use crate::postgres::conninfo::{ConnectOptions, Host, SessionAttrs};
use crate::reach::{self, Way};
use std::io::{Error, ErrorKind};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Requests TLS: length 8, and a code that is not a protocol version.
pub(super) const SSL_REQUEST: [u8; 8] = [0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f];

impl Peer for Server {
    /// Whether a server answers the first request on a new connection. That needs no user and no password, and leaves
    /// nothing in its log. With frozen processes the kernel still accepts connections, but no answer comes.
    fn shows_life(&self, within: Duration) -> bool {
        let way = match &self.host {
            Host::Unix { directory, port } => Some(Way::Unix(directory.join(format!(".s.PGSQL.{port}")))),
            host @ Host::Tcp { .. } => {
                addresses(host, &Patience::default()).ok().and_then(|all| Some(Way::Tcp(*all.first()?)))
            }
        };
        // Any answer, or closing the connection, proves that the server is alive.
        way.is_some_and(|way| way.hears(&SSL_REQUEST, within).is_ok())
    }

    /// From the server's own list of sessions, over a separate session.
    fn is_at_work(&self, within: Duration) -> Option<bool> {
        let (options, pid) = self.session.as_ref()?;
        let mut options = ConnectOptions::clone(options);
        options.connect_timeout = Some(within);
        options.session_attrs = SessionAttrs::Any;
        let mut connection = Connection::open(&options).ok()?;
        connection.set_deadline(Instant::now() + within);
        let asked = connection.query(&format!(
            "select pg_catalog.pg_backend_pid(), a.pid, a.state, a.wait_event_type \
             from (select 1) one left join pg_catalog.pg_stat_activity a on a.pid = {pid}"
        ));
        let own = connection.backend_pid().to_string();
        connection.close();
        is_at_work(&own, asked.ok()?.rows.first()?)
    }
}

/// Interprets a row: our own process, the session's process, its state and its wait event type.
fn is_at_work(own: &str, row: &[Option<String>]) -> Option<bool> {
    let [told, pid, state, waits_for] = row else { return None };
    // Behind a pooler the process numbers mean something else.
    if told.as_deref() != Some(own) {
        return None;
    }
    match (pid, state.as_deref()) {
        (None, _) => Some(false),
        // The state is hidden from this role, or tracking is disabled.
        (_, None | Some("disabled")) => None,
        // Waiting for the client does not count as work, even inside a transaction.
        (_, Some(state)) => Some(!state.starts_with("idle") && waits_for.as_deref() != Some("Client")),
    }
}

pub(super) fn addresses(host: &Host, patience: &Patience) -> Result<Vec<SocketAddr>, PgError> {
    let Host::Tcp { name, address, port } = host else {
        return Ok(Vec::new());
    };
    if let Some(address) = address {
        return Ok(vec![SocketAddr::new(*address, *port)]);
    }
    reach::addresses(name, *port, patience).map_err(|error| {
        PgError::Unreached(format!(
            "host name {name:?} cannot be resolved ({error}): write its address, or name the host with hostaddr"
        ))
    })
}

pub(super) fn waited(options: &ConnectOptions) -> String {
    options
        .connect_timeout
        .map(|timeout| format!(" within {} s (connect_timeout)", timeout.as_secs()))
        .unwrap_or_default()
}

/// Reports a read that hit its time limit as a timeout, not as "resource temporarily unavailable".
pub(super) fn timed_out(error: Error, options: &ConnectOptions) -> Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => {
            Error::new(ErrorKind::TimedOut, format!("no answer{}", waited(options)))
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_at_work_unless_its_process_waits_for_us_or_is_gone() {
        let says =
            |own: &str, row: [&str; 4]| is_at_work(own, &row.map(|text| (!text.is_empty()).then(|| text.to_owned())));
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
