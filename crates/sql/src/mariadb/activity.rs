//! Samples what our sessions are doing, ten times a second, from the server's list of sessions and the kernel's state
//! of each session's thread. The server's list shows no waits; the kernel distinguishes a thread that waits for the
//! disk from one that waits for something else. So this needs the server on this host.

use super::address::Address;
use super::conn::Connection;
use super::host::Host;
use crate::looks::Looks;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, WaitClass};
use assay_run::engine::{Doing, EngineError};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

/// Longest query, so that it does not delay the time line.
const ANSWER_MAX: Duration = Duration::from_secs(2);

struct State {
    connection: Option<Connection>,
    looks: Looks,
}

pub(super) struct Activity {
    address: Address,
    /// `None` if no samples can be taken.
    state: Option<Mutex<State>>,
}

impl Activity {
    /// Logs in, if this host can see the threads.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub(super) fn open(address: &Address, host: &Host) -> Result<Self, EngineError> {
        let address = address.brief(ANSWER_MAX);
        let state = if host.sees_threads() {
            Some(Mutex::new(State { connection: Some(Connection::open(&address)?), looks: Looks::default() }))
        } else {
            None
        };
        Ok(Self { address, state })
    }

    /// Sets what each session does, entry k for session k + 1; `threads` are the sessions' threads. Returns false if no sample was taken.
    pub(super) fn look(&self, host: &Host, threads: &[(u32, i32)], sessions: &mut [Doing]) -> bool {
        let Some(state) = &self.state else {
            return false;
        };
        let mut state = locked(state);
        let State { connection, looks } = &mut *state;
        let looked = looks.query(|| {
            let rows = self.rows(connection)?;
            for (session, thread) in threads {
                let doing = sessions.get_mut((*session as usize).wrapping_sub(1));
                if let (Some(doing), Some((command, said))) = (doing, rows.get(thread)) {
                    *doing = translate(command, said, host.doing(*thread));
                }
            }
            Some(())
        });
        looked.is_some()
    }

    /// Command and state by thread; the connection is kept for the next query unless this one failed.
    fn rows(&self, kept: &mut Option<Connection>) -> Option<BTreeMap<i32, (String, String)>> {
        let mut connection = kept.take().map_or_else(|| Connection::open(&self.address), Ok).ok()?;
        let sessions = connection.product.sessions();
        let rows = connection.rows(&format!("select tid, command, state from {sessions}")).ok()?;
        *kept = Some(connection);
        Some(
            rows.into_iter()
                .filter_map(|row| {
                    let mut row = row.into_iter();
                    let mut next = || row.next().flatten();
                    let tid = next()?.parse().ok()?;
                    Some((tid, (next()?, next().unwrap_or_default())))
                })
                .collect(),
        )
    }

    /// For the report: the number of samples and their cost.
    pub(super) fn facts(&self) -> Vec<Fact> {
        vec![match &self.state {
            Some(state) => locked(state).looks.fact("the server's sessions"),
            None => Fact::new("activity_sampling", "n/a (this host cannot see the server's threads)".to_owned()),
        }]
    }
}

/// What a session does that is inside one of our operations, from the server's command and state and the kernel's letter for its thread.
fn translate(command: &str, state: &str, letter: Option<char>) -> Doing {
    let waiting = |event, class| Doing::Waiting { event, class };
    let commits = state.to_ascii_lowercase().contains("commit");
    match (command, letter) {
        // The statement has not arrived yet, or the answer is on its way.
        ("Sleep", _) => waiting("Client:network", WaitClass::Network),
        (_, Some('R') | None) => Doing::OnCpu,
        _ if commits => waiting("log file sync", WaitClass::Commit),
        (_, Some('D')) => waiting("db file sequential read", WaitClass::UserIo),
        _ if state.contains("lock") => waiting("Server:table lock", WaitClass::Application),
        _ => waiting("InnoDB:lock, latch or another's read", WaitClass::Concurrency),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_inside_an_operation_works_waits_or_is_between_us_and_the_server() {
        let waits = |command, state, letter| match translate(command, state, letter) {
            Doing::Waiting { class, .. } => Some(class),
            _ => None,
        };
        assert_eq!(waits("Sleep", "", Some('S')), Some(WaitClass::Network));
        assert_eq!(waits("Execute", "Sending data", Some('R')), None);
        assert_eq!(waits("Execute", "Sending data", Some('D')), Some(WaitClass::UserIo));
        assert_eq!(waits("Execute", "Commit", Some('D')), Some(WaitClass::Commit));
        assert_eq!(waits("Query", "Updating", Some('S')), Some(WaitClass::Concurrency));
        let locked = waits("Query", "Waiting for table metadata lock", Some('S'));
        assert_eq!(locked, Some(WaitClass::Application));
        assert_eq!(waits("Execute", "Updating", None), None);
    }
}
