//! Lanes over blocking positional calls: `submit` performs them one after another.

use super::{LaneDone, LaneKind, Request, Setup, SyncCall, take_first};
use crate::DirectFile;
use crate::blocking::retried;
use crate::features::Features;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;

pub(super) struct PsyncLanes {
    files: Vec<RawFd>,
    /// Flags of `preadv2`; 0 for plain calls.
    flags: libc::c_int,
    queued: Vec<Request>,
    done: Vec<LaneDone>,
    /// Keeps the files open.
    _files: Vec<Arc<DirectFile>>,
}

impl PsyncLanes {
    pub(super) fn open(setup: &Setup<'_>, call: SyncCall, features: &mut Features) -> Self {
        features.backend = "psync";
        let mut flags = 0;
        if call.high_priority {
            flags |= libc::RWF_HIPRI;
        }
        if call.nowait {
            flags |= libc::RWF_NOWAIT;
        }
        Self {
            files: setup.files.iter().map(|file| file.as_fd().as_raw_fd()).collect(),
            flags,
            queued: Vec::with_capacity(setup.lanes as usize),
            done: Vec::with_capacity(setup.lanes as usize),
            _files: setup.files.to_vec(),
        }
    }

    #[inline]
    pub(super) fn queue(&mut self, request: &Request) {
        self.queued.push(*request);
    }

    /// Performs everything queued and returns the number of requests.
    #[inline]
    pub(super) fn submit(&mut self, submits: &mut u64) -> u32 {
        for request in &self.queued {
            let result = perform(self.files[usize::from(request.file)], self.flags, request, submits);
            self.done.push(LaneDone { lane: request.lane, result });
        }
        let performed = self.queued.len() as u32;
        self.queued.clear();
        performed
    }

    #[inline]
    pub(super) fn reap(&mut self, out: &mut Vec<LaneDone>, at_most: u32) {
        take_first(&mut self.done, out, at_most as usize);
    }
}

/// Makes one call; the result is a count or the negated error number.
#[inline]
fn perform(descriptor: RawFd, flags: libc::c_int, request: &Request, submits: &mut u64) -> i32 {
    let Ok(offset) = libc::off_t::try_from(request.offset) else {
        return -libc::EINVAL;
    };
    let len = request.len as usize;
    let one = libc::iovec { iov_base: request.address.cast(), iov_len: len };
    retried(|| {
        *submits += 1;
        match request.kind {
            // SAFETY: the address is that of the lane's buffer, of at least `len` bytes, which `Lanes` owns and gives
            // to nobody while the lane is busy. The same holds for the three calls below.
            LaneKind::Read if flags == 0 => unsafe { libc::pread(descriptor, one.iov_base, len, offset) },
            // SAFETY: as above; the memory is only read.
            LaneKind::Write if flags == 0 => unsafe { libc::pwrite(descriptor, one.iov_base, len, offset) },
            // SAFETY: as above; `one` outlives the call.
            LaneKind::Read => unsafe { libc::preadv2(descriptor, &raw const one, 1, offset, flags) },
            // SAFETY: as above; `one` outlives the call and the memory is only read.
            LaneKind::Write => unsafe { libc::pwritev2(descriptor, &raw const one, 1, offset, flags) },
            // SAFETY: takes no memory.
            LaneKind::Sync { data_only: true } => unsafe { libc::fdatasync(descriptor) as isize },
            // SAFETY: takes no memory.
            LaneKind::Sync { data_only: false } => unsafe { libc::fsync(descriptor) as isize },
        }
    })
}
