//! How long an answer may take: assay waits for a server that works, but not for one that shows no life.
//!
//! Nobody can predict how long a statement takes (building an index, a checkpoint, a lock held by another client). So
//! when a wait has lasted for a while, assay tests the server with a new connection. If that gets no answer, assay
//! gives up the server and ends every wait of the command. If the server answers, assay asks it what our session does.
//! It goes on waiting for a session at work; a session that is idle has already answered, and the answer is lost.
//! Actions that must be short (a query of activity, reaching the gate, the close) run as a phase with a deadline,
//! whatever the server reports. Sockets block only in short pieces, so that a request to stop takes effect. The hot
//! path pays nothing: only a piece that ended without an answer calls this module.

use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::io::{Error, ErrorKind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// Longest time a socket blocks before the clock and requests to stop are checked.
pub(crate) const PIECE: Duration = Duration::from_millis(250);
/// Longest wait for a sign of life after the user has asked to stop.
const HURRY: Duration = Duration::from_secs(2);
/// Longest wait for a sign of life.
const LIFE_MAX: Duration = Duration::from_secs(10);
/// Time for what a healthy server does in seconds, such as inspecting a data set, on a busy host.
const BRIEF: Duration = Duration::from_mins(1);
/// Default time for an answer.
const ANSWER: Duration = Duration::from_secs(30);

/// How long the answers of one command's sessions may take, and who may end the wait. Copies share their state.
#[derive(Clone, Debug)]
pub struct Patience {
    answer: Duration,
    /// A sign of life does not prolong a wait.
    strict: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: Stop,
    /// Why the wait was given up.
    over: OnceLock<String>,
    /// When the server last showed a sign of life.
    life: Mutex<Option<Instant>>,
    /// The current phase of the command, if it must not take long.
    phase: Mutex<Option<Phase>>,
    /// Whether a phase is set; cheap enough to test at every read.
    in_phase: AtomicBool,
}

/// Ends at a deadline or at a request to stop.
#[derive(Clone, Copy, Debug)]
struct Phase {
    name: &'static str,
    limit: Duration,
    ends: Instant,
}

/// The server at the other end of a session.
pub(crate) trait Peer {
    /// Whether it answers a new connection within this time.
    fn shows_life(&self, within: Duration) -> bool;

    /// Whether it works for this session; `None` if unknown.
    fn is_at_work(&self, within: Duration) -> Option<bool>;
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(ANSWER, &Stop::new())
    }
}

impl PartialEq for Patience {
    /// Compares the settings, not the state.
    fn eq(&self, other: &Self) -> bool {
        (self.answer, self.strict) == (other.answer, other.strict)
    }
}

impl Eq for Patience {}

impl Patience {
    /// Tests for a sign of life when an answer has taken this long; obeys this request to stop.
    #[must_use]
    pub fn new(answer: Duration, stop: &Stop) -> Self {
        Self { answer, strict: false, shared: Arc::new(Shared { stop: stop.clone(), ..Shared::default() }) }
    }

    /// The request to stop that it obeys.
    pub(crate) fn stop(&self) -> &Stop {
        &self.shared.stop
    }

    /// Bounds what the command does from now on: it ends within this time and at a request to stop, whatever the server
    /// reports. `None` lifts the bound.
    pub(crate) fn phase(&self, name: &'static str, within: Option<Duration>) {
        let phase = within.map(|limit| Phase { name, limit, ends: Instant::now() + limit });
        *locked(&self.shared.phase) = phase;
        self.shared.in_phase.store(phase.is_some(), Release);
    }

    fn present(&self) -> Option<Phase> {
        let there = self.shared.in_phase.load(Acquire);
        there.then(|| *locked(&self.shared.phase)).flatten()
    }

    /// For sessions that a healthy server always answers within this time.
    #[must_use]
    pub fn strict(&self, answer: Duration) -> Self {
        Self { answer: answer.min(self.answer), strict: true, shared: Arc::clone(&self.shared) }
    }

    /// Ends every wait, now and later; the first reason is kept.
    pub fn give_up(&self, why: String) {
        let _ = self.shared.over.set(why);
    }

    /// Whether the wait was given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.over.get().is_some()
    }

    /// Whether the user has asked to stop.
    #[must_use]
    pub fn hurries(&self) -> bool {
        self.stop().requested()
    }

    /// Returns `Interrupted` instead of `error` if the user has asked to stop and the server was given up.
    pub(crate) fn failed(&self, error: EngineError) -> EngineError {
        if self.is_over() && self.hurries() { EngineError::Interrupted } else { error }
    }

    /// Time limit for work that a healthy server does in seconds, however many answers it takes.
    pub(crate) fn brief(&self) -> Duration {
        BRIEF.max(3 * self.answer)
    }

    /// How long an answer may take without a sign of life, and a message from its first to its last byte.
    pub(crate) fn answer(&self) -> Duration {
        self.answer
    }

    /// Whether every wait must end; cheap enough to call before every read.
    #[inline]
    pub(crate) fn ended(&self, wait: &mut Wait) -> std::io::Result<()> {
        if let Some(phase) = self.present().filter(|phase| Instant::now() >= phase.ends) {
            self.give_up(format!("{} did not end within {} s", phase.name, phase.limit.as_secs()));
        }
        if let Some(why) = self.shared.over.get() {
            return Err(gone(why.clone()));
        }
        if !self.stop().abandoned() {
            return Ok(());
        }
        let since = *wait.abandoned.get_or_insert_with(Instant::now);
        if since.elapsed() < HURRY { Ok(()) } else { Err(gone("the wait was abandoned on request".to_owned())) }
    }

    /// Called after each piece of waiting in a login: a request to stop ends it soon.
    pub(crate) fn entering(&self, wait: &mut Wait) -> std::io::Result<()> {
        self.ended(wait)?;
        let now = Instant::now();
        if self.hurries() && now - *wait.hurried.get_or_insert(now) >= HURRY {
            Err(gone(format!("the server did not answer within {} s of the request to stop", HURRY.as_secs())))
        } else {
            Ok(())
        }
    }

    /// Called after each piece of waiting: whether the wait may go on.
    pub(crate) fn look(&self, wait: &mut Wait, peer: &impl Peer) -> std::io::Result<()> {
        self.ended(wait)?;
        let now = Instant::now();
        let begun = *wait.begun.get_or_insert(now - PIECE);
        let hurried = self.hurries().then(|| *wait.hurried.get_or_insert(now));
        let in_hurry = hurried.is_some_and(|since| now - since >= HURRY);
        if !in_hurry && now - begun < self.answer {
            return Ok(());
        }
        let (waited, life) = if in_hurry {
            (format!("{} s of the request to stop", HURRY.as_secs()), HURRY)
        } else {
            (format!("{} s", self.answer.as_secs()), self.answer.min(LIFE_MAX))
        };
        let late = format!("the server did not answer within {waited}");
        if in_hurry && self.present().is_some() {
            self.give_up(late);
            return self.ended(wait);
        }
        // A request to stop does not shorten the time a server has to answer.
        if self.strict && now - begun >= self.answer {
            return Err(Error::new(ErrorKind::TimedOut, late));
        }
        if !self.lives(life, peer) {
            self.give_up(format!("{late}, and a new connection did not answer within {} s", life.as_secs()));
            return self.ended(wait);
        }
        let is_idle = peer.is_at_work(life) == Some(false);
        // A session that has just finished is idle too, with its answer still on the way. So look twice.
        if is_idle && wait.is_idle {
            let why = format!(
                "{late}, although it no longer works for this session: an answer or a request was lost in transit"
            );
            if in_hurry {
                self.give_up(why.clone());
            }
            return Err(gone(why));
        }
        *wait = Wait { begun: Some(Instant::now()), hurried: None, is_idle, ..*wait };
        Ok(())
    }

    /// A recent sign of life, or a new one. Sessions that ask at the same time share one test.
    fn lives(&self, within: Duration, peer: &impl Peer) -> bool {
        let mut life = locked(&self.shared.life);
        if life.is_some_and(|seen| seen.elapsed() < within) {
            return true;
        }
        if self.is_over() {
            return false;
        }
        let lives = peer.shows_life(within);
        *life = lives.then(Instant::now);
        lives
    }
}

/// State of one wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    begun: Option<Instant>,
    /// When the request to stop was seen.
    hurried: Option<Instant>,
    /// When the request to abandon was seen.
    abandoned: Option<Instant>,
    /// The server was seen no longer working for this session.
    is_idle: bool,
}

fn gone(why: String) -> Error {
    Error::new(ErrorKind::ConnectionAborted, why)
}
