//! Several sessions of one thread: sends requests as they arise, and takes answers in the order in which their sockets become readable.
//!
//! A server sends an answer in one piece after the request has completed. So a readable socket holds (nearly) the whole
//! answer, and the code blocks in the socket for the rest: no parser state is kept for partial answers.

use crate::patience::Wait;
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_run::engine::{Completion, EngineError, OpError, Outcome, Tag};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Most answers taken in one turn: small, so that the sessions answered first continue soon.
const TOGETHER: usize = 16;

/// Time between two checks of sessions that have waited long.
const LOOK_NS: Ns = NS_PER_S / 4;

/// A session that can be waited for.
pub(crate) trait Talks {
    /// The request under way.
    type Asked: Copy;

    /// The socket of the session's connection, while connected.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// Takes the answer to a request: the rows the operation touched, or `None` if the operation has sent another request.
    fn answer(&mut self, asked: Self::Asked) -> Result<Option<u64>, OpError>;

    /// Called when a wait has gone on for a while. An error ends the wait, and the operation fails.
    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError>;
}

pub(crate) struct Many<T: Talks> {
    epoll: OwnedFd,
    /// The request each session waits for.
    asked: Vec<Option<T::Asked>>,
    /// State of each wait at the last check.
    waits: Vec<Wait>,
    /// When that check was, ns of the clock.
    looked_ns: Ns,
    /// Sessions whose server sent something unrequested: a notice, or the end of the connection. The session's next
    /// operation reads it.
    spoke: Vec<bool>,
    events: Vec<epoll::Event>,
}

impl<T: Talks> Many<T> {
    /// Registers the sockets of all sessions.
    pub(crate) fn open(sessions: &[T]) -> Result<Self, EngineError> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(failed)?;
        let many = Self {
            epoll,
            asked: vec![None; sessions.len()],
            waits: vec![Wait::default(); sessions.len()],
            looked_ns: 0,
            spoke: vec![false; sessions.len()],
            events: Vec::with_capacity(TOGETHER),
        };
        for (tag, session) in sessions.iter().enumerate() {
            many.listen(tag, session).map_err(failed)?;
        }
        Ok(many)
    }

    /// The request a session waits for; from now on nobody waits for its answer.
    pub(crate) fn forget(&mut self, tag: usize) -> Option<T::Asked> {
        self.asked[tag].take()
    }

    /// Whether a session waits for an answer.
    pub(crate) fn waits(&self, tag: usize) -> bool {
        self.asked[tag].is_some()
    }

    fn listen(&self, tag: usize, session: &T) -> Result<(), Errno> {
        let Some(socket) = session.socket() else {
            return Ok(());
        };
        let data = epoll::EventData::new_u64(tag as u64);
        epoll::add(
            &self.epoll,
            socket,
            data,
            // Each answer is read completely once its socket is reported, so edge triggering suffices.
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )
    }

    /// Registers the request of a session. Returns the rows if the answer is already there.
    pub(crate) fn asked(&mut self, tag: Tag, session: &mut T, asked: T::Asked) -> Result<Option<u64>, OpError> {
        let tag = tag as usize;
        if !self.spoke[tag] {
            self.asked[tag] = Some(asked);
            self.waits[tag] = Wait::default();
            return Ok(None);
        }
        let rows = loop {
            if let Some(rows) = session.answer(asked)? {
                break rows;
            }
        };
        // If it cannot be registered again, its next operation blocks in the socket as this one did.
        self.spoke[tag] = self.listen(tag, session).is_err();
        Ok(Some(rows))
    }

    /// Takes the answers that have arrived, after waiting for the first one.
    pub(crate) fn reap(
        &mut self,
        sessions: &mut [T],
        clock: &Clock,
        timeout: Duration,
        out: &mut Vec<Completion>,
    ) -> Result<(), EngineError> {
        self.wait(timeout).map_err(failed)?;
        for event in &self.events {
            let tag = event.data.u64() as usize;
            let session = &mut sessions[tag];
            if let Some(asked) = self.asked[tag].take() {
                let Some(result) = session.answer(asked).transpose() else {
                    self.asked[tag] = Some(asked);
                    self.waits[tag] = Wait::default();
                    continue;
                };
                out.push(Completion { tag: tag as Tag, outcome: Outcome { end_ns: clock.now_ns(), result } });
            } else if let Some(socket) = session.socket() {
                epoll::delete(&self.epoll, socket).map_err(failed)?;
                self.spoke[tag] = true;
            }
        }
        let now_ns = match out.last() {
            Some(last) => last.outcome.end_ns,
            None => clock.now_ns(),
        };
        if now_ns.saturating_sub(self.looked_ns) >= LOOK_NS {
            self.looked_ns = now_ns;
            self.look(sessions, clock, out);
        }
        Ok(())
    }

    /// Ends waits that must not go on.
    fn look(&mut self, sessions: &mut [T], clock: &Clock, out: &mut Vec<Completion>) {
        for (tag, session) in sessions.iter_mut().enumerate() {
            if self.asked[tag].is_none() {
                continue;
            }
            if let Err(error) = session.may_wait(&mut self.waits[tag]) {
                self.asked[tag] = None;
                out.push(Completion {
                    tag: tag as Tag,
                    outcome: Outcome { end_ns: clock.now_ns(), result: Err(error) },
                });
                // This error ends the thread; its other sessions are counted as they stand.
                return;
            }
        }
    }

    /// Fills `events`. Waits whole milliseconds in one call, any other time exactly, in two calls.
    fn wait(&mut self, timeout: Duration) -> Result<(), Errno> {
        self.events.clear();
        // A server on this CPU answers all pending requests first, so one switch back to us brings several answers. If
        // the server runs elsewhere, nothing else wants this CPU, and the call costs a third of a microsecond.
        std::thread::yield_now();
        let time = Timespec { tv_sec: timeout.as_secs() as i64, tv_nsec: i64::from(timeout.subsec_nanos()) };
        let mut left = time;
        if !timeout.subsec_nanos().is_multiple_of(1_000_000) {
            let listens = &mut [PollFd::new(&self.epoll, PollFlags::IN)];
            match poll(listens, Some(&time)) {
                Ok(0) | Err(Errno::INTR) => return Ok(()),
                Ok(_) => {}
                Err(error) => return Err(error),
            }
            left = Timespec { tv_sec: 0, tv_nsec: 0 };
        }
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), Some(&left)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(error) => Err(error),
        }
    }
}

/// The kernel refused to wait for the sessions' sockets.
fn failed(error: Errno) -> EngineError {
    EngineError::Io { what: "waiting for the sessions' answers".to_owned(), source: error.into() }
}
