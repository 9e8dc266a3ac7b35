//! What a run holds on a server besides its sessions: its clock, the server's processes of its sessions, and the thread
//! that cancels abandoned statements; and what each server adds to that.

use crate::patience::Patience;
use crate::turns::Turns;
use crate::watch::{Backends, Cancel, Watch};
use assay_measure::clock::Clock;
use assay_measure::config::Settings;
use assay_measure::locked::locked;
use assay_measure::snapshot::{Fact, StatSet};
use assay_run::engine::{Doing, EngineError, Remarks};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Shortest grace, so that no run ends right after it has started an operation.
const GRACE_MIN: Duration = Duration::from_secs(1);
/// How long operations may go on after a request to stop: longer than it takes to cancel them.
const GRACE_STOPPED: Duration = Duration::from_secs(15);

/// What a run holds on any server.
pub(crate) struct Running<T> {
    pub(crate) clock: Clock,
    pub(crate) backends: Arc<Backends<T>>,
    stop: Stop,
    turns: Turns,
    watch: Mutex<Option<Watch>>,
    /// How long operations may go on after the end of the run, and the parameter that says so.
    grace: (Duration, &'static str),
}

impl<T: Cancel> Running<T> {
    /// Starts the thread that cancels; `grace` names the server's parameter.
    pub(crate) fn open(
        plan: &Plan,
        settings: &Settings,
        stop: &Stop,
        grace: &'static str,
    ) -> Result<Self, EngineError> {
        let backends = Arc::new(Backends::new(plan.sessions()));
        let length = Duration::from_nanos(settings.ns(grace)).max(GRACE_MIN);
        let patience = (plan.work_loop == 0).then(|| length * 2 / 3);
        Ok(Self {
            clock: Clock::real(),
            watch: Mutex::new(Some(Watch::begin(Arc::clone(&backends), stop.clone(), patience)?)),
            backends,
            stop: stop.clone(),
            turns: Turns::new(settings.int("CONNECT_RATE")),
            grace: (length, grace),
        })
    }

    /// Waits until the next session may connect.
    pub(crate) fn turn(&self) -> Result<(), EngineError> {
        self.turns.wait(&self.stop)
    }

    /// Processes of the sessions.
    pub(crate) fn pids(&self) -> Vec<i32> {
        self.backends.pids().iter().map(|(_, pid)| *pid).collect()
    }

    /// Ends the thread that cancels.
    pub(crate) fn unwatch(&self) {
        drop(locked(&self.watch).take());
    }
}

/// What a run holds on a server of one kind.
pub(crate) trait Attachment: Send + Sync {
    type Token: Cancel;

    /// As [`Engine::works_in_driver_threads`](assay_run::engine::Engine::works_in_driver_threads).
    const IN_DRIVER_THREADS: bool = false;

    fn running(&self) -> &Running<Self::Token>;

    /// Limits every wait for the server; `None` if its driver does.
    fn patience(&self) -> Option<&Patience> {
        None
    }

    /// Reads the counters of a session's process while it still exists.
    fn last_look(&self, _pid: i32) {}

    /// Facts about the server and about how it is observed.
    fn facts(&self) -> Vec<Fact>;

    fn remarks(&self) -> Remarks;

    /// As [`Engine::server`](assay_run::engine::Engine::server).
    fn server(&self) -> Option<String> {
        None
    }

    /// Counters of the server and of its host at this instant.
    fn sample(&self) -> StatSet;

    fn look(&self, sessions: &mut [Doing]) -> bool;

    fn watched_disks(&self) -> Vec<String> {
        Vec::new()
    }

    /// Limits every wait for the server to the phase.
    fn phase(&self, name: &'static str, within: Option<Duration>) {
        if let Some(patience) = self.patience() {
            patience.phase(name, within);
        }
    }

    /// Called while sessions are still at work this long after they were told to end.
    fn overdue(&self, late: Duration) {
        let running = self.running();
        let (grace, name) = running.grace;
        let (limit, after) = if running.stop.requested() {
            (grace.min(GRACE_STOPPED), "the request to stop".to_owned())
        } else {
            (grace, format!("the end of the run ({name})"))
        };
        if let Some(patience) = self.patience().filter(|_| late >= limit) {
            patience.give_up(format!("the server did not answer within {} s after {after}", limit.as_secs()));
        }
    }
}

/// A run on a server.
pub(crate) trait OnServer: Send + Sync {
    type On: Attachment;

    fn on(&self) -> &Self::On;
}
