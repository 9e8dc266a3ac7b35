//! Row locks: a changed block belongs to its transaction until commit.
//!
//! Only runs whose sessions share a schema use them. An operation takes its locks in ascending key order before it
//! changes anything, and holds none of an earlier operation while it waits, so sessions cannot deadlock.

use super::cache::SessionRef;
use super::page_table::mix;
use crate::layout::Page;
use assay_measure::locked::locked;
use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;

const SHARDS: usize = 64;

struct Lock {
    /// Thread and tag of the owner; its wait number does not matter.
    owner: (u16, u32),
    waiters: VecDeque<SessionRef>,
}

/// All row locks of an instance.
pub(crate) struct RowLocks {
    shards: Vec<Mutex<HashMap<Page, Lock>>>,
}

/// The answer to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acquire {
    /// Now the caller's, not before.
    Granted,
    /// The caller's already.
    Held,
    /// Another session's; the caller is queued and will own it when woken.
    Queued,
}

impl RowLocks {
    pub(crate) fn new() -> Self {
        Self { shards: (0..SHARDS).map(|_| Mutex::new(HashMap::new())).collect() }
    }

    fn shard(&self, page: Page) -> std::sync::MutexGuard<'_, HashMap<Page, Lock>> {
        locked(&self.shards[(mix(page) >> 40) as usize % SHARDS])
    }

    /// Asks for the lock; `queue` decides whether to wait for it.
    pub(crate) fn acquire(&self, page: Page, who: SessionRef, queue: bool) -> Acquire {
        let mut locks = self.shard(page);
        match locks.get_mut(&page) {
            None => {
                locks.insert(page, Lock { owner: (who.thread, who.tag), waiters: VecDeque::new() });
                Acquire::Granted
            }
            Some(lock) if lock.owner == (who.thread, who.tag) => Acquire::Held,
            Some(lock) => {
                if queue {
                    lock.waiters.push_back(who);
                }
                Acquire::Queued
            }
        }
    }

    /// Gives the lock to the next in line, if any, who is returned to be woken.
    pub(crate) fn release(&self, page: Page) -> Option<SessionRef> {
        let mut locks = self.shard(page);
        let lock = locks.get_mut(&page)?;
        if let Some(next) = lock.waiters.pop_front() {
            lock.owner = (next.thread, next.tag);
            return Some(next);
        }
        locks.remove(&page);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_lock_goes_to_who_waited_longest() {
        let locks = RowLocks::new();
        let who = |tag| SessionRef { thread: 0, tag, wait: 7 };
        assert_eq!(locks.acquire(Page(5), who(1), true), Acquire::Granted);
        assert_eq!(locks.acquire(Page(5), who(1), true), Acquire::Held);
        assert_eq!(locks.acquire(Page(5), who(2), true), Acquire::Queued);
        assert_eq!(locks.acquire(Page(5), who(3), true), Acquire::Queued);
        assert_eq!(locks.release(Page(5)), Some(who(2)));
        assert_eq!(locks.acquire(Page(5), who(2), true), Acquire::Held);
        assert_eq!(locks.release(Page(5)), Some(who(3)));
        assert_eq!(locks.release(Page(5)), None);
        assert_eq!(locks.acquire(Page(5), who(4), false), Acquire::Granted);
    }
}
