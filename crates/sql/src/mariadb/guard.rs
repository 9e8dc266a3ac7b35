//! Statements that take as long as they take (a load's, a check's): ended when the user wants to stop.

use super::conn::Connection;
use assay_measure::locked::locked;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Between two looks at a request to stop.
pub(super) const TICK: Duration = Duration::from_millis(100);

/// Sessions that wait for such statements.
#[derive(Default)]
pub(super) struct Waiting(Mutex<Vec<u32>>);

impl Waiting {
    /// Another one.
    pub(super) fn add(&self, connection: &Connection) {
        locked(&self.0).push(connection.id());
    }
}

/// Ends them on the connection that holds the claim.
pub(super) struct Guard<'a> {
    keeper: &'a mut Connection,
    ended: Option<Instant>,
}

impl<'a> Guard<'a> {
    pub(super) fn new(keeper: &'a mut Connection) -> Self {
        Self { keeper, ended: None }
    }

    /// Somebody failed or the user wants to stop: called again and again, until they have ended. A server that does not hear of
    /// it is given up where they wait.
    pub(super) fn end(&mut self, waiting: &Waiting) {
        if self.ended.is_some_and(|at| at.elapsed() < TICK) {
            return;
        }
        let all = locked(&waiting.0).clone();
        for id in all {
            // One that has just ended has nothing to be ended.
            let _ = self.keeper.run(&format!("kill query {id}"));
        }
        self.ended = Some(Instant::now());
    }
}
