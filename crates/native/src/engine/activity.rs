//! What each session of the engine does, one word a session, for the activity history.
//!
//! The driver thread writes a session's word when it polls, suspends and wakes it:
//! relaxed stores to a cache line of the session's own. The sampler reads them ten times a second.

use super::counters::{Event, event_name};
use assay_run::engine::Doing;
use std::sync::atomic::{AtomicU32, Ordering};

const ON_CPU: u32 = 0;
const RUN_QUEUE: u32 = 1;
/// Words from here on are a wait for the event of that number.
const WAITING: u32 = 2;

#[repr(align(64))]
#[derive(Debug, Default)]
struct Word(AtomicU32);

/// Every session's word, by number from 1.
#[derive(Debug)]
pub(crate) struct Activity(Box<[Word]>);

impl Activity {
    pub(crate) fn new(sessions: usize) -> Self {
        Self((0..sessions).map(|_| Word::default()).collect())
    }

    #[inline]
    fn set(&self, session: u32, word: u32) {
        self.0[session as usize - 1].0.store(word, Ordering::Relaxed);
    }

    /// Its thread polls it.
    #[inline]
    pub(crate) fn on_cpu(&self, session: u32) {
        self.set(session, ON_CPU);
    }

    /// It was suspended and waits for `event`.
    #[inline]
    pub(crate) fn waiting(&self, session: u32, event: Event) {
        self.set(session, WAITING + event as u32);
    }

    /// What it waited for has happened.
    #[inline]
    pub(crate) fn run_queue(&self, session: u32) {
        self.set(session, RUN_QUEUE);
    }

    /// Tells what every session does at this instant.
    pub(crate) fn read(&self, sessions: &mut [Doing]) {
        for (doing, word) in sessions.iter_mut().zip(&self.0) {
            *doing = match word.0.load(Ordering::Relaxed) {
                ON_CPU => Doing::OnCpu,
                RUN_QUEUE => Doing::RunQueue,
                word => {
                    let (event, class) = event_name((word - WAITING) as usize);
                    Doing::Waiting { event, class }
                }
            };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::snapshot::WaitClass;

    #[test]
    fn each_session_says_what_it_does() {
        let activity = Activity::new(3);
        activity.waiting(1, Event::LogFileSync);
        activity.waiting(2, Event::RowLock);
        activity.run_queue(2);
        let mut doing = [Doing::OnCpu; 3];
        activity.read(&mut doing);
        let commit = Doing::Waiting { event: "log file sync", class: WaitClass::Commit };
        assert_eq!(doing, [commit, Doing::RunQueue, Doing::OnCpu]);
        activity.on_cpu(1);
        activity.read(&mut doing);
        assert_eq!(doing[0], Doing::OnCpu);
    }
}
