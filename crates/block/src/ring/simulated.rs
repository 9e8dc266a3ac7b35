//! The backend over simulated files: requests end when the ring is submitted, in an order that the disk's seed decides,
//! on the caller's own thread.

use super::waker::{Wake, Waker};
use super::{CompletionLease, Kind, Request, Setup, Slot};
use crate::sim::{How, SimFile};
use crate::{BlockError, DirectFile, Features, Pool};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::Arc;

pub(super) struct Simulated {
    files: Vec<Arc<DirectFile>>,
    pool: Option<Arc<Pool>>,
    wake: Arc<Wake>,
    /// Queued and not handed over.
    queued: Vec<Job>,
    /// Handed over: the disk may do them at any time, in any order.
    sent: Vec<Job>,
    /// Slots whose write or synchronisation failed and whose owner does not know it yet.
    failed: Vec<u32>,
}

struct Job {
    kind: Kind,
    slot: u32,
    file: u16,
    offset: u64,
    len: usize,
    /// Handed over while there was power.
    under_way: bool,
    /// Asked for before any failure was told.
    early: bool,
}

impl Simulated {
    /// Whether a ring over these files is this backend's.
    pub(super) fn serves(setup: &Setup) -> bool {
        setup.files.iter().any(|file| file.simulated().is_some())
    }

    pub(super) fn open(setup: &Setup, features: &mut Features) -> Result<Self, BlockError> {
        if setup.files.iter().any(|file| file.simulated().is_none()) {
            return Err(BlockError::Invalid {
                what: "a ring serves simulated files or real ones, not both".to_owned(),
            });
        }
        features.backend = "simulated";
        Ok(Self {
            files: setup.files.clone(),
            pool: setup.pool.clone(),
            // The one thread there is never waits.
            wake: Wake::new(Box::new(|| {})),
            queued: Vec::new(),
            sent: Vec::new(),
            failed: Vec::new(),
        })
    }

    pub(super) fn waker(&self) -> Waker {
        self.wake.waker()
    }

    pub(super) fn queue(&mut self, request: &Request) {
        let file = self.files.first().and_then(|file| file.simulated());
        self.queued.push(Job {
            kind: request.kind,
            slot: request.slot,
            file: request.file,
            offset: request.offset,
            len: request.len as usize,
            under_way: false,
            early: file.is_some_and(|file| !file.disk().failure_told()),
        });
    }

    fn file(&self, job: &Job) -> &SimFile {
        self.files[usize::from(job.file)].simulated().expect("checked when the ring was opened")
    }

    /// Hands everything over, then ends at least `wait_for` requests, drawn by the seed.
    pub(super) fn submit(
        &mut self,
        slots: &mut [Slot],
        done: &mut VecDeque<(u32, i32)>,
        wait_for: u32,
        submits: &mut u64,
    ) {
        self.wake.resume();
        *submits += u64::from(!self.queued.is_empty());
        self.hand_over();
        let Some(first) = self.sent.first() else {
            return;
        };
        let disk = self.file(first).disk().clone();
        let missing = (wait_for as usize).saturating_sub(done.len());
        let least = missing.min(self.sent.len());
        let most = least + disk.random_below(self.sent.len() - least + 1);
        for _ in 0..most {
            let drawn = disk.random_below(self.sent.len());
            let job = self.sent.swap_remove(drawn);
            let outcome = self.perform(&job, &mut slots[job.slot as usize]);
            let writes = matches!(job.kind, Kind::Write | Kind::WriteDurable);
            if (writes && outcome != job.len as i32) || (job.kind == Kind::Sync && outcome < 0) {
                self.failed.push(job.slot);
            }
            done.push_back((job.slot, outcome));
        }
    }

    /// The result of this slot goes to its owner.
    pub(super) fn deliver(&mut self, slot: u32) {
        if let Some(at) = self.failed.iter().position(|failed| *failed == slot) {
            self.failed.swap_remove(at);
            if let Some(file) = self.files.first().and_then(|file| file.simulated()) {
                file.disk().tell_failure();
            }
        }
    }

    fn hand_over(&mut self) {
        for mut job in self.queued.drain(..) {
            if let Some(file) = self.files.first() {
                let file = file.simulated().expect("checked when the ring was opened");
                job.under_way = file.disk().has_power();
            }
            self.sent.push(job);
        }
    }

    /// Ends everything. What was under way when the power went may leave part of itself.
    pub(super) fn drain(&mut self, slots: &mut [Slot]) -> bool {
        self.hand_over();
        for job in std::mem::take(&mut self.sent) {
            self.perform(&job, &mut slots[job.slot as usize]);
        }
        true
    }

    /// The result as the kernel gives it: a count, or the negated error number.
    fn perform(&self, job: &Job, slot: &mut Slot) -> i32 {
        let how =
            How { durable: job.kind == Kind::WriteDurable, under_way: job.under_way, whole: false, early: job.early };
        let outcome = match (job.kind, &mut slot.lease) {
            (Kind::Nop, _) => Ok(0),
            (Kind::Sync, _) => self.file(job).sync(job.early).map(|()| 0),
            (Kind::Read, CompletionLease::Buffer(buffer)) => self.file(job).read(job.offset, &mut buffer[..job.len]),
            (Kind::Read, CompletionLease::Frame(frame)) => self.read_frames(job, std::slice::from_mut(frame)),
            (Kind::ReadScattered, CompletionLease::Frames(frames)) => self.read_frames(job, frames),
            (Kind::Write | Kind::WriteDurable, CompletionLease::Buffer(buffer)) => {
                self.file(job).write(job.offset, &buffer[..job.len], how)
            }
            _ => Err(Errno::INVAL),
        };
        match outcome {
            Ok(count) => i32::try_from(count).unwrap_or(i32::MAX),
            Err(error) => -error.raw_os_error(),
        }
    }

    fn read_frames(&self, job: &Job, frames: &mut [crate::Exclusive]) -> Result<usize, Errno> {
        let pool = self.pool.as_deref().ok_or(Errno::INVAL)?;
        let size = pool.frame_bytes();
        let mut bytes = vec![0; frames.len() * size];
        let count = self.file(job).read(job.offset, &mut bytes)?;
        for (frame, data) in frames.iter_mut().zip(bytes[..count].chunks(size)) {
            pool.write(frame, 0, data);
        }
        Ok(count)
    }
}
