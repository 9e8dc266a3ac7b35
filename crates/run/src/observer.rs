//! The observer of a run: it receives phases, snapshots and events during the run.

use assay_measure::clock::Ns;
use assay_measure::history::ActivityHistory;
use assay_measure::snapshot::Snapshot;
use assay_measure::timeline::TimelineEvent;

/// A point of the run at which everything was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// Before the gate: all sessions ready, none begun.
    Gate,
    /// Begin of the measured window.
    Begin,
    /// A full second since the gate.
    Second,
    /// End of the measured window, while the sessions work.
    End,
    /// After the last operation.
    Drained,
}

/// Receives the events of a run while it lasts, on the thread that called [`execute`](crate::execute()). A slow
/// observer delays the next snapshot, never an operation.
pub trait Observer {
    /// A phase begins: `connect`, `warm-up`, `measure`, `drain`, `close`.
    fn phase(&mut self, name: &str);
    /// A snapshot was taken. One instant may serve two marks; each is told.
    fn snapshot(&mut self, mark: Mark, now: &Snapshot);
    /// Every session is ready and none has begun: the last moment to refuse the start.
    ///
    /// # Errors
    /// The reason, for the user; then no operation is done.
    fn ready(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// The instant of the gate by the run's clock, given the earliest possible one; asked once, when nothing can refuse the
    /// start any more.
    fn start_at(&mut self, earliest_ns: Ns) -> Ns {
        earliest_ns
    }
    /// Whether this run reads what a server counts for all of its clients ([`Engine::server`](crate::engine::Engine::server));
    /// asked before each snapshot. Of the hosts of a fleet that load one server, one does.
    fn reads_server(&mut self) -> bool {
        true
    }
    /// Whether the run's data must hold the snapshots between gate and end: some hundreds of KB each, which an
    /// observer that makes of them what it needs as they come can do without.
    fn needs_series(&self) -> bool {
        true
    }
    /// Whether what was measured suffices: the sessions stop, and the run is whole.
    fn is_enough(&self) -> bool {
        false
    }
    /// What the sessions did since the last call; told before the snapshot.
    fn activity(&mut self, part: &ActivityHistory) {
        let _ = part;
    }
    /// Something happened on the time line, or a later word on it.
    fn event(&mut self, event: &TimelineEvent) {
        let _ = event;
    }
}

/// An observer that does not look.
#[derive(Clone, Copy, Debug, Default)]
pub struct Unobserved;

impl Observer for Unobserved {
    fn phase(&mut self, _name: &str) {}
    fn snapshot(&mut self, _mark: Mark, _now: &Snapshot) {}
}
