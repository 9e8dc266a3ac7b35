//! A ring over simulated files: requests end when it is submitted, in an order that the disk's seed decides.

use super::{How, SimDisk};
use assay_block::{BackendCall, BackendRequest, BackendRing, RequestMemory};
use std::collections::VecDeque;
use std::io;

#[derive(Debug)]
pub(super) struct SimRing {
    disk: SimDisk,
    /// Number of each file on the disk.
    files: Vec<usize>,
    /// Queued and not handed over.
    queued: Vec<Job>,
    /// Handed over: the disk may do them at any time, in any order.
    sent: Vec<Job>,
    /// Ended, and the owner does not know it yet: slot, result, and whether that is a failure to write.
    done: VecDeque<(u32, i32, bool)>,
}

#[derive(Debug)]
struct Job {
    request: BackendRequest,
    /// Handed over while there was power.
    under_way: bool,
    /// Requested before any failure was reported.
    early: bool,
}

impl SimRing {
    pub(super) fn new(disk: SimDisk, files: Vec<usize>) -> Self {
        Self { disk, files, queued: Vec::new(), sent: Vec::new(), done: VecDeque::new() }
    }

    fn hand_over(&mut self) {
        for mut job in self.queued.drain(..) {
            job.under_way = self.disk.has_power();
            self.sent.push(job);
        }
    }

    fn perform(&self, job: &Job, memory: &mut dyn RequestMemory) -> io::Result<usize> {
        let Job { request, under_way, early } = *job;
        let file = self.files.get(usize::from(request.file)).copied();
        let file = file.ok_or(io::Error::from(io::ErrorKind::InvalidInput));
        Ok(match request.kind {
            BackendCall::Nop => 0,
            BackendCall::Sync => self.disk.state().asked_sync(file?, early).map(|()| 0)?,
            BackendCall::Read => {
                let file = file?;
                memory.fill(&request, &mut |out| Ok(self.disk.state().asked_read(file, request.offset, out)?))?
            }
            BackendCall::Write { durable } => {
                let how = How { durable, under_way, whole: false, early };
                self.disk.state().asked_write(file?, (request.offset, memory.data(&request)), how)?
            }
        })
    }
}

impl BackendRing for SimRing {
    fn queue(&mut self, request: BackendRequest) {
        let early = !self.disk.failure_told();
        self.queued.push(Job { request, under_way: false, early });
    }

    /// Hands everything over, then ends at least as many requests as are waited for, drawn by the seed.
    fn submit(&mut self, wait_for: u32, memory: &mut dyn RequestMemory) {
        self.hand_over();
        if self.sent.is_empty() {
            return;
        }
        let missing = (wait_for as usize).saturating_sub(self.done.len());
        let least = missing.min(self.sent.len());
        let most = least + self.disk.random_below(self.sent.len() - least + 1);
        for _ in 0..most {
            let drawn = self.disk.random_below(self.sent.len());
            let job = self.sent.swap_remove(drawn);
            let outcome = self.perform(&job, memory);
            let failed = match job.request.kind {
                BackendCall::Write { .. } => !outcome.as_ref().is_ok_and(|count| *count == job.request.len),
                BackendCall::Sync => outcome.is_err(),
                BackendCall::Read | BackendCall::Nop => false,
            };
            self.done.push_back((job.request.slot, as_the_kernel(&outcome), failed));
        }
    }

    fn reap(&mut self, done: &mut VecDeque<(u32, i32)>) {
        let Some((slot, result, failed)) = self.done.pop_front() else { return };
        if failed {
            self.disk.tell_failure();
        }
        done.push_back((slot, result));
    }

    /// What was under way when the power went may leave part of itself.
    fn drain(&mut self, memory: &mut dyn RequestMemory) {
        self.hand_over();
        for job in std::mem::take(&mut self.sent) {
            // Nobody is there any more who could be told.
            let _ = self.perform(&job, memory);
        }
    }
}

/// A count, or the negated error number.
fn as_the_kernel(outcome: &io::Result<usize>) -> i32 {
    match outcome {
        Ok(count) => i32::try_from(*count).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error().unwrap_or(rustix::io::Errno::INVAL.raw_os_error()),
    }
}
