//! Several sessions of one thread: requests go out as they come up, answers are taken as the sockets have them.
//!
//! A server sends the answer to a request in one piece, when it has come to its end. So a socket that has something to
//! read has (nearly) all of it, and the rest is waited for in the socket: no state of half an answer is kept.

use crate::patience::Wait;
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_run::engine::{Completion, EngineError, OpError, Outcome, Tag};
use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::time::Duration;

/// Answers taken in one turn: few enough that the sessions whose answers came first need not wait long to go on.
const TOGETHER: usize = 16;

/// Between two looks at sessions that wait for long.
const LOOK_NS: Ns = NS_PER_S / 4;

/// A session as it is waited for.
pub(crate) trait Talks {
    /// What it was asked.
    type Asked: Copy;

    /// The socket of its connection, while it has one.
    fn socket(&self) -> Option<BorrowedFd<'_>>;

    /// Takes the answer to what was asked; the rows that the operation touched, or none: the operation has asked for more.
    fn answer(&mut self, asked: Self::Asked) -> Result<Option<u64>, OpError>;

    /// The wait has gone on for a while. An error if it may not go on: what was asked came to nothing.
    fn may_wait(&mut self, wait: &mut Wait) -> Result<(), OpError>;
}

/// See the module.
pub(crate) struct Many<T: Talks> {
    epoll: OwnedFd,
    /// What each session waits for.
    asked: Vec<Option<T::Asked>>,
    /// How long, as far as it was looked at.
    waits: Vec<Wait>,
    /// When that was, ns of the clock.
    looked_ns: Ns,
    /// Sessions whose server spoke without being asked: a notice, or its goodbye. The thread does not read from them
    /// until their next operation, which reads it.
    spoke: Vec<bool>,
    events: Vec<epoll::Event>,
}

impl<T: Talks> Many<T> {
    /// Listens to all of them.
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

    /// What a session waits for.
    pub(crate) fn waits_for(&self, tag: usize) -> Option<T::Asked> {
        self.asked[tag]
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
            // An answer is read to its end as soon as it is named, so its arrival alone is news.
            epoll::EventFlags::IN | epoll::EventFlags::ET,
        )
    }

    /// A session was asked. The rows, if it has answered already.
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
        // If it is not heard again, its next operation waits in the socket as this one did.
        self.spoke[tag] = self.listen(tag, session).is_err();
        Ok(Some(rows))
    }

    /// Takes the answers that are there, after waiting for the first one.
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

    /// Ends a wait that may not go on.
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
                // The thread ends with it, and the others are counted as they are.
                return;
            }
        }
    }

    /// Fills `events`. Whole milliseconds are waited for in one call, anything else exactly in two.
    fn wait(&mut self, timeout: Duration) -> Result<(), Errno> {
        self.events.clear();
        // A server on this CPU first answers what it was asked: then one switch to us brings several answers. Elsewhere
        // nobody else wants the CPU, and this costs a third of a microsecond.
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
