//! Samples what our sessions are doing, ten times a second, from `pg_stat_activity` on a separate connection.

use super::classes;
use super::{OwnWork, collector, sql};
use crate::looks::{Looks, intern};
use crate::postgres::conninfo::ConnectOptions;
use crate::postgres::own::PINNED;
use crate::postgres::wire::{Connection, PgError, Prepared};
use assay_measure::facts::WAITS_ARE;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, WaitClass};
use assay_run::engine::{Doing, EngineError};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard};

/// Backend pids by session number, from 1.
pub(in crate::postgres) type Pids = Box<dyn Fn() -> Vec<(u32, i32)> + Send + Sync>;

struct Session {
    connection: Connection,
    look: Prepared,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    looks: Looks,
}

pub(in crate::postgres) struct Activity {
    options: ConnectOptions,
    pids: Pids,
    own: Arc<OwnWork>,
    version: u32,
    state: Mutex<State>,
}

impl fmt::Debug for Activity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Activity").finish_non_exhaustive()
    }
}

/// One row of a sample: pid, state, type and name of the wait event.
type Row = (i32, String, String, String);

impl Activity {
    /// Logs in; `stats` are the statistics of the same server.
    ///
    /// # Errors
    /// The server refuses the connection.
    pub(in crate::postgres) fn open(
        options: &ConnectOptions,
        stats: &super::ServerStats,
        pids: Pids,
    ) -> Result<Self, EngineError> {
        let activity = Self {
            options: collector(options),
            pids,
            own: stats.own_work(),
            version: stats.about.version,
            state: Mutex::default(),
        };
        let session =
            activity.connect().map_err(|error| EngineError::Unusable(format!("activity of the sessions: {error}")))?;
        activity.lock().session = Some(session);
        Ok(activity)
    }

    fn connect(&self) -> Result<Session, PgError> {
        let mut connection = Connection::open(&self.options)?;
        connection.query(&format!("{PINNED}; set statement_timeout = '2s'; set jit = off"))?;
        self.own.note();
        let look = connection.prepare(&sql::activity(self.version), &[])?;
        self.own.note();
        Ok(Session { connection, look })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }

    /// Sets what each session does, entry k for session k + 1; sessions unknown to the server keep their entry. Returns
    /// false if no sample was taken, because none is due or it failed.
    pub(in crate::postgres) fn look(&self, sessions: &mut [Doing]) -> bool {
        let mut state = self.lock();
        let State { session, looks } = &mut *state;
        let Some(rows) = looks.query(|| self.rows(session)) else {
            return false;
        };
        drop(state);
        let by_pid: BTreeMap<i32, &Row> = rows.iter().map(|row| (row.0, row)).collect();
        for (session, pid) in (self.pids)() {
            let doing = sessions.get_mut((session as usize).wrapping_sub(1));
            if let (Some(doing), Some((_, state, kind, event))) = (doing, by_pid.get(&pid)) {
                *doing = translate(state, kind, event);
            }
        }
        true
    }

    /// What the server shows; the session is kept for the next query unless this one failed.
    fn rows(&self, kept: &mut Option<Session>) -> Option<Vec<Row>> {
        let mut session = kept.take().map_or_else(|| self.connect(), Ok).ok()?;
        let mut rows = Vec::new();
        let text =
            |value: &Option<&[u8]>| value.map_or_else(String::new, |bytes| String::from_utf8_lossy(bytes).into_owned());
        let read = session.connection.execute(&session.look, &[], &mut |values| {
            if let [Some(pid), state, kind, event, ..] = values
                && let Ok(pid) = (*pid).try_into()
            {
                rows.push((i32::from_be_bytes(pid), text(state), text(kind), text(event)));
            }
        });
        read.ok()?;
        self.own.note();
        *kept = Some(session);
        Some(rows)
    }

    /// For the report: the number of samples and their cost.
    pub(in crate::postgres) fn facts(&self) -> Vec<Fact> {
        vec![self.lock().looks.fact("pg_stat_activity"), WAITS_ARE.fact(classes::WAITS)]
    }
}

/// What a session does that is inside one of our operations.
fn translate(state: &str, kind: &str, event: &str) -> Doing {
    match (state, kind) {
        // Visible and without a wait event: it works. So does a fastpath function call.
        ("active" | "fastpath function call", "") => Doing::OnCpu,
        // The statement has not arrived yet, or the answer is on its way.
        ("idle" | "idle in transaction" | "idle in transaction (aborted)", _) | (_, "Client") => {
            let event = if kind == "Client" { event } else { "ClientRead" };
            Doing::Waiting { event: intern(format!("Client:{event}")), class: WaitClass::Network }
        }
        (_, "") => Doing::OnCpu,
        (_, kind) => Doing::Waiting { event: intern(format!("{kind}:{event}")), class: classes::class(kind, event) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(event: &'static str, class: WaitClass) -> Doing {
        Doing::Waiting { event, class }
    }

    #[test]
    fn a_session_inside_an_operation_works_waits_or_is_between_us_and_the_server() {
        assert_eq!(translate("active", "", ""), Doing::OnCpu);
        assert_eq!(translate("active", "IO", "DataFileRead"), waiting("IO:DataFileRead", WaitClass::UserIo));
        assert_eq!(translate("active", "LWLock", "WALWrite"), waiting("LWLock:WALWrite", WaitClass::Commit));
        for state in ["idle", "idle in transaction"] {
            assert_eq!(translate(state, "Client", "ClientRead"), waiting("Client:ClientRead", WaitClass::Network));
        }
        // Between two states the server may show no wait yet.
        assert_eq!(translate("idle", "", ""), waiting("Client:ClientRead", WaitClass::Network));
    }
}
