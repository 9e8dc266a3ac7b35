//! A ring over files of a [`StorageBackend`](crate::StorageBackend): the backend performs the requests on the caller's
//! own thread.

use super::waker::{Wake, Waker};
use super::{CompletionLease, Kind, Request, Setup, Slot};
use crate::backend::{BackendCall, BackendRequest, BackendRing, RequestMemory};
use crate::{BlockError, Features, Pool};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

pub(super) struct Backed {
    ring: Box<dyn BackendRing>,
    pool: Option<Arc<Pool>>,
    wake: Arc<Wake>,
    /// Whether something was queued since the last submit.
    fresh: bool,
}

impl Backed {
    /// Opens the backend's ring; `None` if the files are the operating system's.
    pub(super) fn open(setup: &Setup, features: &mut Features) -> Result<Option<Self>, BlockError> {
        let Some(first) = setup.files.iter().find_map(|file| file.backed()) else {
            return Ok(None);
        };
        if setup.files.iter().any(|file| file.backed().is_none()) {
            return Err(BlockError::Invalid {
                what: "a ring serves files of a backend or real ones, not both".to_owned(),
            });
        }
        features.backend = "installed backend";
        let paths: Vec<&Path> = setup.files.iter().map(|file| file.path()).collect();
        // The ring never parks, so there is no thread to wake.
        let wake = Wake::new(Box::new(|| {}));
        Ok(Some(Self { ring: first.ring(&paths), pool: setup.pool.clone(), wake, fresh: false }))
    }

    pub(super) fn waker(&self) -> Waker {
        self.wake.waker()
    }

    pub(super) fn queue(&mut self, request: &Request) {
        let kind = match request.kind {
            Kind::Read | Kind::ReadScattered => BackendCall::Read,
            Kind::Write => BackendCall::Write { durable: false },
            Kind::WriteDurable => BackendCall::Write { durable: true },
            Kind::Sync => BackendCall::Sync,
            Kind::Nop => BackendCall::Nop,
        };
        self.fresh = true;
        let (slot, file, offset, len) = (request.slot, request.file, request.offset, request.len as usize);
        self.ring.queue(BackendRequest { kind, slot, file, offset, len });
    }

    pub(super) fn submit(&mut self, slots: &mut [Slot], wait_for: u32, submits: &mut u64) {
        self.wake.resume();
        *submits += u64::from(std::mem::take(&mut self.fresh));
        self.ring.submit(wait_for, &mut Lent { slots, pool: self.pool.as_deref() });
    }

    pub(super) fn reap(&mut self, done: &mut VecDeque<(u32, i32)>) {
        self.ring.reap(done);
    }

    pub(super) fn drain(&mut self, slots: &mut [Slot]) -> bool {
        self.ring.drain(&mut Lent { slots, pool: self.pool.as_deref() });
        true
    }
}

/// The memory held by the slots of a ring.
struct Lent<'a> {
    slots: &'a mut [Slot],
    pool: Option<&'a Pool>,
}

impl RequestMemory for Lent<'_> {
    fn data(&self, request: &BackendRequest) -> &[u8] {
        match &self.slots[request.slot as usize].lease {
            CompletionLease::Buffer(buffer) => &buffer[..request.len],
            _ => &[],
        }
    }

    fn fill(
        &mut self,
        request: &BackendRequest,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize> {
        let frames = match &mut self.slots[request.slot as usize].lease {
            CompletionLease::Buffer(buffer) => return read(&mut buffer[..request.len]),
            CompletionLease::Frame(frame) => std::slice::from_mut(frame),
            CompletionLease::Frames(frames) => frames,
            CompletionLease::None => return read(&mut []),
        };
        let pool = self.pool.expect("a ring that reads into frames has their pool");
        let size = pool.frame_bytes();
        let mut bytes = vec![0; frames.len() * size];
        let count = read(&mut bytes)?;
        for (frame, data) in frames.iter_mut().zip(bytes[..count].chunks(size)) {
            pool.write(frame, 0, data);
        }
        Ok(count)
    }
}
