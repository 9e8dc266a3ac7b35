//! Statements that take as long as they take (a load's, a check's): ended when the user wants to stop, and given up when
//! the server shows no life on another connection.

use super::conn::Connection;
use assay_run::engine::EngineError;
use rustix::net::{Shutdown, shutdown};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at a request to stop.
pub(super) const TICK: Duration = Duration::from_millis(100);
/// Between two signs of life.
const LIFE: Duration = Duration::from_secs(5);

/// Sessions that wait for such statements.
#[derive(Default)]
pub(super) struct Waiting {
    sessions: Mutex<Vec<(u32, Option<OwnedFd>)>>,
    given_up: AtomicBool,
}

impl Waiting {
    /// Another one.
    pub(super) fn add(&self, connection: &Connection) {
        let mut all = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        all.push((connection.id(), connection.socket().ok()));
    }

    /// Ends their statements, now.
    fn kill(&self, keeper: &mut Connection) -> bool {
        let all = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().all(|(id, _)| {
            // One that has just ended has nothing to be ended.
            let asked = keeper.run(&format!("kill query {id}"));
            !asked.is_err_and(|error| error.is_fatal())
        })
    }

    /// What an error means that came after the server was given up.
    pub(super) fn told(&self, error: EngineError) -> EngineError {
        match self.given_up.load(Ordering::Acquire) {
            true => {
                EngineError::Unusable(format!("the server answered no more, on another connection neither ({error})"))
            }
            false => error,
        }
    }

    /// Ends their waits: nobody answers them.
    fn give_up(&self) {
        self.given_up.store(true, Ordering::Release);
        let all = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        for socket in all.iter().filter_map(|(_, socket)| socket.as_ref()) {
            // One that is closed already waits for nothing.
            let _ = shutdown(socket, Shutdown::Both);
        }
    }
}

/// Looks after them on the connection that holds the claim.
pub(super) struct Guard<'a> {
    keeper: &'a mut Connection,
    looked: Instant,
}

impl<'a> Guard<'a> {
    pub(super) fn new(keeper: &'a mut Connection) -> Self {
        Self { keeper, looked: Instant::now() }
    }

    /// Called every [`TICK`] or so; `ending`: somebody failed or the user wants to stop.
    pub(super) fn look(&mut self, waiting: &Waiting, ending: bool) {
        if self.looked.elapsed() < if ending { TICK } else { LIFE } {
            return;
        }
        let lives = match ending {
            true => waiting.kill(self.keeper),
            false => !self.keeper.run("do 0").is_err_and(|error| error.is_fatal()),
        };
        self.looked = Instant::now();
        if !lives {
            waiting.give_up();
        }
    }
}
