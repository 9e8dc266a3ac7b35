//! The server processes (or threads) of the sessions, and the thread that cancels abandoned statements.
//!
//! A blocking session cannot react while the server works for it. When the user abandons a run, or the last sessions
//! wait for something that does not come (a lock held by another client), this thread asks the server to cancel.

use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Interval between two checks.
const POLL: Duration = Duration::from_millis(20);
/// How long running operations may take to end after the user asked to stop.
const PATIENCE_STOPPED: Duration = Duration::from_secs(10);
/// Interval between two attempts: a cancel request that arrives between two statements has no effect.
const AGAIN: Duration = Duration::from_millis(500);

/// Can cancel a session's statement from another thread.
pub(crate) trait Cancel: Clone + Send + 'static {
    /// Asks the server to cancel the session's statement.
    ///
    /// # Errors
    /// The server does not answer.
    fn cancel(&self) -> std::io::Result<()>;
}

/// The server process of each session.
#[derive(Debug)]
pub(crate) struct Backends<T> {
    /// 0 means not connected.
    pids: Vec<AtomicI32>,
    tokens: Mutex<Vec<Option<T>>>,
    /// At least one session has completed its last operation.
    leaving: AtomicBool,
    /// Statements were cancelled on purpose.
    cancelled: AtomicBool,
}

impl<T: Cancel> Backends<T> {
    pub(crate) fn new(sessions: usize) -> Self {
        Self {
            pids: (0..sessions).map(|_| AtomicI32::new(0)).collect(),
            tokens: Mutex::new((0..sessions).map(|_| None).collect()),
            leaving: AtomicBool::new(false),
            cancelled: AtomicBool::new(false),
        }
    }

    /// Notes that process (or thread) `pid`, by the server's number, serves session `session` (from 1).
    pub(crate) fn connected(&self, session: u32, pid: i32, token: T) {
        let index = session as usize - 1;
        self.pids[index].store(pid, Ordering::Release);
        locked(&self.tokens)[index] = Some(token);
    }

    /// Notes that session `session` (from 1) is closed; its process number is kept.
    pub(crate) fn closed(&self, session: u32) {
        locked(&self.tokens)[session as usize - 1] = None;
    }

    /// Whether at least one session connected and all of them are closed.
    pub(crate) fn all_closed(&self) -> bool {
        let tokens = locked(&self.tokens);
        tokens.iter().all(Option::is_none) && !self.pids().is_empty()
    }

    /// Notes that a session has completed its last operation.
    pub(crate) fn leaves(&self) {
        self.leaving.store(true, Ordering::Release);
    }

    /// Process of session `session` (from 1), even after its end; `None` before it connected.
    pub(crate) fn pid(&self, session: u32) -> Option<i32> {
        let pid = self.pids.get(session as usize - 1)?;
        Some(pid.load(Ordering::Acquire)).filter(|pid| *pid != 0)
    }

    /// (session from 1, process) of all sessions that have connected.
    pub(crate) fn pids(&self) -> Vec<(u32, i32)> {
        (1..=self.pids.len() as u32).filter_map(|session| Some((session, self.pid(session)?))).collect()
    }

    /// Cancels the statement of session `session` (from 1); returns whether the server can be reached.
    pub(crate) fn cancel(&self, session: u32) -> bool {
        let token = locked(&self.tokens)[session as usize - 1].clone();
        token.is_none_or(|token| token.cancel().is_ok())
    }

    fn cancel_all(&self) {
        self.cancelled.store(true, Ordering::Release);
        let tokens: Vec<T> = locked(&self.tokens).iter().flatten().cloned().collect();
        for token in tokens {
            // A lost server has nothing to cancel; one that does not answer will not answer the next request either.
            if token.cancel().is_err() {
                return;
            }
        }
    }
}

/// The watching thread; dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Watch {
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    /// Starts the thread. `patience` is how long operations may take to end after others have ended; `None` if sessions
    /// do not end together.
    pub(crate) fn begin<T: Cancel>(
        backends: Arc<Backends<T>>,
        stop: Stop,
        patience: Option<Duration>,
    ) -> Result<Self, EngineError> {
        let ended = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&ended);
        let thread = std::thread::Builder::new()
            .name("cancel".to_owned())
            .spawn(move || watch(&backends, &stop, patience, &told))
            .map_err(|source| EngineError::Io {
                what: "starting the thread that cancels statements".to_owned(),
                source,
            })?;
        Ok(Self { ended, thread: Some(thread) })
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // The panic hook has already reported a panic there, and nothing depends on the thread any more.
            let _ = thread.join();
        }
    }
}

fn watch<T: Cancel>(backends: &Backends<T>, stop: &Stop, patience: Option<Duration>, ended: &AtomicBool) {
    let (mut stopped, mut left) = (None, None);
    while !ended.load(Ordering::Acquire) {
        let now = Instant::now();
        if stop.requested() {
            stopped.get_or_insert(now);
        }
        if backends.leaving.load(Ordering::Acquire) {
            left.get_or_insert(now);
        }
        let late = |since: Option<Instant>, patience| since.is_some_and(|at| now - at >= patience);
        let left_late = patience.is_some_and(|patience| late(left, patience));
        if stop.abandoned() || late(stopped, PATIENCE_STOPPED) || left_late {
            backends.cancel_all();
            std::thread::park_timeout(AGAIN);
        } else {
            std::thread::park_timeout(POLL);
        }
    }
}
