//! How long an answer may take: assay waits for a server that works, and not for one that shows no life.
//!
//! Nobody can know how long a statement may take (an index, a checkpoint, a lock of a stranger). So a wait that has
//! lasted for a while asks the server for a sign of life on a new connection: without one the server is given up, and
//! with it every wait of the command. A live server is asked what our session does: assay waits for a session at work;
//! one that waits for us has answered, and its answer will not arrive any more. What is never long (a look, the way to
//! the gate, the close) is a phase that ends at its deadline, whatever the server says. Sockets wait in short pieces,
//! so that a request to stop takes effect. The hot path pays nothing: only a piece that ended without an answer comes
//! here.

use assay_measure::locked::locked;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use std::io::{Error, ErrorKind};
use std::sync::atomic::AtomicBool;
use std::sync::atomic::Ordering::{Acquire, Release};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

/// A socket waits no longer than this before somebody looks at the clock and at requests to stop.
pub(crate) const PIECE: Duration = Duration::from_millis(250);
/// What somebody who has asked for the end waits for a sign of life.
const HURRY: Duration = Duration::from_secs(2);
/// Longest wait for a sign of life.
const LIFE_MAX: Duration = Duration::from_secs(10);
/// What a server that is well does in seconds, such as a look at a data set, on a host that others keep busy.
const BRIEF: Duration = Duration::from_mins(1);
/// Where nothing else is said.
const ANSWER: Duration = Duration::from_secs(30);

/// How long the answers of one command's sessions may take, and who may end the wait. Copies share what they know.
#[derive(Clone, Debug)]
pub struct Patience {
    answer: Duration,
    /// No sign of life prolongs a wait.
    strict: bool,
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    stop: Stop,
    /// Why the wait was given up.
    over: OnceLock<String>,
    /// The last sign of life.
    life: Mutex<Option<Instant>>,
    /// The present phase of the command, if it must not take long.
    phase: Mutex<Option<Phase>>,
    /// Whether there is one: cheap enough to test at every read.
    in_phase: AtomicBool,
}

/// Something that ends at an instant, and at a request to stop.
#[derive(Clone, Copy, Debug)]
struct Phase {
    name: &'static str,
    limit: Duration,
    ends: Instant,
}

/// The server at the other end of a session.
pub(crate) trait Peer {
    /// Whether it answers a new connection within a time.
    fn shows_life(&self, within: Duration) -> bool;

    /// Whether it works for this session; `None` where that cannot be known.
    fn is_at_work(&self, within: Duration) -> Option<bool>;
}

impl Default for Patience {
    fn default() -> Self {
        Self::new(ANSWER, &Stop::new())
    }
}

impl PartialEq for Patience {
    /// As asked for: what was seen since does not count.
    fn eq(&self, other: &Self) -> bool {
        (self.answer, self.strict) == (other.answer, other.strict)
    }
}

impl Eq for Patience {}

impl Patience {
    /// Asks for a sign of life when an answer has taken so long, and heeds this request to stop.
    #[must_use]
    pub fn new(answer: Duration, stop: &Stop) -> Self {
        Self { answer, strict: false, shared: Arc::new(Shared { stop: stop.clone(), ..Shared::default() }) }
    }

    /// What the command does from now on ends within this time and at a request to stop, whatever the server shows; `None`: it
    /// takes as long as the server works.
    pub(crate) fn phase(&self, name: &'static str, within: Option<Duration>) {
        let phase = within.map(|limit| Phase { name, limit, ends: Instant::now() + limit });
        *locked(&self.shared.phase) = phase;
        self.shared.in_phase.store(phase.is_some(), Release);
    }

    fn present(&self) -> Option<Phase> {
        let there = self.shared.in_phase.load(Acquire);
        there.then(|| *locked(&self.shared.phase)).flatten()
    }

    /// For sessions whose answers never take longer than this from a server that is well.
    #[must_use]
    pub fn strict(&self, answer: Duration) -> Self {
        Self { answer: answer.min(self.answer), strict: true, shared: Arc::clone(&self.shared) }
    }

    /// Ends every wait, now and later; the first reason stays.
    pub fn give_up(&self, why: String) {
        let _ = self.shared.over.set(why);
    }

    /// A wait was given up.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.shared.over.get().is_some()
    }

    /// The user waits for the end.
    #[must_use]
    pub fn hurries(&self) -> bool {
        self.shared.stop.requested()
    }

    /// The failure of a command that its user has asked to end is that end, once the server was given up.
    pub(crate) fn failed(&self, error: EngineError) -> EngineError {
        if self.is_over() && self.hurries() { EngineError::Interrupted } else { error }
    }

    /// How long something may take that a server which is well does in seconds, however many answers it has.
    pub(crate) fn brief(&self) -> Duration {
        BRIEF.max(3 * self.answer)
    }

    /// How long an answer may take without a sign of life, and a message from its first byte to its last.
    pub(crate) fn answer(&self) -> Duration {
        self.answer
    }

    /// Nothing more is waited for: cheap enough to be asked before every read.
    #[inline]
    pub(crate) fn ended(&self, wait: &mut Wait) -> std::io::Result<()> {
        if let Some(phase) = self.present().filter(|phase| Instant::now() >= phase.ends) {
            self.give_up(format!("{} did not end within {} s", phase.name, phase.limit.as_secs()));
        }
        if let Some(why) = self.shared.over.get() {
            return Err(gone(why.clone()));
        }
        if !self.shared.stop.abandoned() {
            return Ok(());
        }
        let since = *wait.abandoned.get_or_insert_with(Instant::now);
        if since.elapsed() < HURRY { Ok(()) } else { Err(gone("the wait was abandoned on request".to_owned())) }
    }

    /// A login has waited for another piece: whoever asks for the end is not kept by it.
    pub(crate) fn entering(&self, wait: &mut Wait) -> std::io::Result<()> {
        self.ended(wait)?;
        let now = Instant::now();
        if self.hurries() && now - *wait.hurried.get_or_insert(now) >= HURRY {
            Err(gone(format!("the server did not answer within {} s of the request to stop", HURRY.as_secs())))
        } else {
            Ok(())
        }
    }

    /// A wait has gone on for another piece: whether it may go on.
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
        // Whoever asks for the end does not shorten what the server may take.
        if self.strict && now - begun >= self.answer {
            return Err(Error::new(ErrorKind::TimedOut, late));
        }
        if !self.lives(life, peer) {
            self.give_up(format!("{late}, and a new connection did not answer within {} s", life.as_secs()));
            return self.ended(wait);
        }
        let is_idle = peer.is_at_work(life) == Some(false);
        // One that has ended a moment ago is idle as well, and its answer is on the way.
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

    /// A sign of life not long ago, or now. Sessions that ask together are told together.
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

/// One wait.
#[derive(Clone, Copy, Debug, Default)]
pub struct Wait {
    begun: Option<Instant>,
    /// The request to stop was seen.
    hurried: Option<Instant>,
    /// The request to abandon was seen.
    abandoned: Option<Instant>,
    /// The server was seen to work for this session no more.
    is_idle: bool,
}

fn gone(why: String) -> Error {
    Error::new(ErrorKind::ConnectionAborted, why)
}
