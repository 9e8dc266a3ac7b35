//! The helper-thread backend: a few threads make blocking positional reads and writes behind the same queue.
//!
//! It serves I/O modes that ask for synchronous calls, and kernels or containers that refuse io_uring. A request's
//! memory stays in its slot on the ring's side; the threads get only addresses, as the kernel does.

use super::waker::{Wake, Waker};
use super::{Kind, Request, Setup};
use crate::blocking::retried;
use crate::{BlockError, DirectFile, Features};
use std::collections::VecDeque;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

pub(super) struct Helpers {
    shared: Arc<Shared>,
    wake: Arc<Wake>,
    threads: Vec<JoinHandle<()>>,
    /// Queued and not handed over yet.
    queued: Vec<Job>,
}

struct Shared {
    files: Vec<Arc<DirectFile>>,
    work: Mutex<Work>,
    /// Helpers wait here for work.
    work_arrived: Condvar,
    meeting: Arc<Meeting>,
}

/// Passes results and wake-ups to the ring thread. Separate from the files: a waker may outlive the ring and must not
/// keep them open.
#[derive(Default)]
struct Meeting {
    results: Mutex<Results>,
    /// The ring thread waits here for results.
    result_arrived: Condvar,
}

#[derive(Default)]
struct Work {
    jobs: VecDeque<Job>,
    closed: bool,
}

#[derive(Default)]
struct Results {
    done: VecDeque<(u32, i32)>,
    /// Handed over and not in `done` yet.
    running: usize,
    waiting: bool,
}

struct Job {
    kind: Kind,
    slot: u32,
    file: u16,
    offset: u64,
    address: *mut u8,
    len: u32,
}

// SAFETY: the ring's slot keeps the memory at the address alive and unshared until the result is back, and dropping the
// ring waits for that (`drain`). The thread does not touch the memory but passes its address to the kernel.
unsafe impl Send for Job {}

impl Helpers {
    pub(super) fn open(setup: &Setup, features: &mut Features) -> Result<Self, BlockError> {
        features.backend = "helper threads";
        let meeting = Arc::new(Meeting::default());
        lock(&meeting.results).done.reserve(setup.entries as usize);
        let shared = Arc::new(Shared {
            files: setup.files.clone(),
            work: Mutex::new(Work::default()),
            work_arrived: Condvar::new(),
            meeting: Arc::clone(&meeting),
        });
        let wake = Wake::new(Box::new(move || {
            // The ring thread parks while it holds the lock, so by now it is either waiting or will see the token.
            drop(lock(&meeting.results));
            meeting.result_arrived.notify_one();
        }));
        let queued = Vec::with_capacity(setup.entries as usize);
        let mut helpers = Self { shared, wake, threads: Vec::new(), queued };
        for index in 0..setup.helpers.max(1) {
            let shared = Arc::clone(&helpers.shared);
            let thread = std::thread::Builder::new()
                .name(format!("assay-io-{index}"))
                .spawn(move || shared.serve())
                .map_err(|source| BlockError::Ring { what: "start a helper thread", source })?;
            helpers.threads.push(thread);
        }
        Ok(helpers)
    }

    pub(super) fn waker(&self) -> Waker {
        self.wake.waker()
    }

    pub(super) fn queue(&mut self, request: &Request) {
        let Request { kind, slot, file, offset, address, len, .. } = *request;
        self.queued.push(Job { kind, slot, file, offset, address, len });
    }

    pub(super) fn reap(&mut self, done: &mut VecDeque<(u32, i32)>) {
        done.append(&mut lock(&self.shared.meeting.results).done);
    }

    pub(super) fn submit(
        &mut self,
        done: &mut VecDeque<(u32, i32)>,
        wait_for: u32,
        timeout: Duration,
        submits: &mut u64,
    ) {
        let woken = self.wake.resume();
        *submits += u64::from(self.hand_over());
        let mut results = lock(&self.shared.meeting.results);
        done.append(&mut results.done);
        if woken || done.len() >= wait_for as usize {
            return;
        }
        let deadline = Instant::now().checked_add(timeout);
        let parked = self.wake.park();
        results.waiting = true;
        while parked && done.len() < wait_for as usize && !self.wake.is_notified() {
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                break;
            }
            results = self
                .shared
                .meeting
                .result_arrived
                .wait_timeout(results, left)
                .unwrap_or_else(PoisonError::into_inner)
                .0;
            done.append(&mut results.done);
        }
        results.waiting = false;
        drop(results);
        self.wake.resume();
    }

    /// Hands the queued jobs to the threads. False if there were none.
    fn hand_over(&mut self) -> bool {
        let count = self.queued.len();
        if count == 0 {
            return false;
        }
        lock(&self.shared.meeting.results).running += count;
        lock(&self.shared.work).jobs.extend(self.queued.drain(..));
        if count == 1 {
            self.shared.work_arrived.notify_one();
        } else {
            self.shared.work_arrived.notify_all();
        }
        true
    }

    /// Waits until nothing is in flight. Drops queued requests that were never handed over. Always true: the calls of
    /// the threads end when the device answers.
    pub(super) fn drain(&mut self) -> bool {
        self.queued.clear();
        let mut work = lock(&self.shared.work);
        let dropped = work.jobs.len();
        work.jobs.clear();
        work.closed = true;
        drop(work);
        self.shared.work_arrived.notify_all();
        let mut results = lock(&self.shared.meeting.results);
        results.running -= dropped;
        results.waiting = true;
        while results.running > 0 {
            results = self.shared.meeting.result_arrived.wait(results).unwrap_or_else(PoisonError::into_inner);
        }
        drop(results);
        for thread in self.threads.drain(..) {
            // A helper should never panic; if one did, the loop above would wait for its job forever.
            let _ = thread.join();
        }
        true
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        // Also reached when setup fails halfway; a second drain finds nothing to do.
        self.drain();
    }
}

impl Shared {
    /// The loop of a helper: takes a job, performs it and stores the result.
    fn serve(&self) {
        loop {
            let mut work = lock(&self.work);
            let job = loop {
                if let Some(job) = work.jobs.pop_front() {
                    break job;
                }
                if work.closed {
                    return;
                }
                work = self.work_arrived.wait(work).unwrap_or_else(PoisonError::into_inner);
            };
            drop(work);
            let outcome = self.perform(&job);
            let mut results = lock(&self.meeting.results);
            results.done.push_back((job.slot, outcome));
            results.running -= 1;
            let waiting = results.waiting;
            drop(results);
            if waiting {
                self.meeting.result_arrived.notify_one();
            }
        }
    }

    /// Performs a job; the result is a count or the negated error number, as from the kernel.
    fn perform(&self, job: &Job) -> i32 {
        let Some(file) = self.files.get(usize::from(job.file)) else {
            return 0;
        };
        let descriptor = file.as_fd().as_raw_fd();
        let Ok(offset) = libc::off_t::try_from(job.offset) else {
            return -libc::EINVAL;
        };
        let len = job.len as usize;
        let one = libc::iovec { iov_base: job.address.cast(), iov_len: len };
        retried(|| match job.kind {
            Kind::Nop => 0,
            // SAFETY: the memory is valid for `len` bytes and lent to this call alone; see `Job`.
            Kind::Read => unsafe { libc::pread(descriptor, one.iov_base, len, offset) },
            Kind::ReadScattered => {
                // SAFETY: `address` is a list of `len` entries in the slot of the request, which does not move until
                // the result is back, and each entry is a frame whose exclusive lease is in that slot.
                unsafe { libc::preadv(descriptor, job.address.cast(), job.len as libc::c_int, offset) }
            }
            // SAFETY: as for `Read`; the memory is only read.
            Kind::Write => unsafe { libc::pwrite(descriptor, one.iov_base, len, offset) },
            // SAFETY: as for `Write`; `one` outlives the call.
            Kind::WriteDurable => unsafe { libc::pwritev2(descriptor, &raw const one, 1, offset, libc::RWF_DSYNC) },
            // SAFETY: takes no memory.
            Kind::Sync => unsafe { libc::fdatasync(descriptor) as isize },
        })
    }
}

/// Locks a mutex. Every critical section is a single step, so a thread that panicked inside one left nothing half done.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
