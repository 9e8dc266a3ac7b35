//! Lanes over io_uring, including those that only submit no-operations.

use super::{LaneDone, LaneKind, Request, Setup, UringMode};
use crate::facts::Roots;
use crate::features::Features;
use crate::kernel_ring::{KernelRing, Shape, Table, Wait, cut, note};
use crate::{BlockError, DirectFile};
use io_uring::{opcode, squeue, types};
use rustix::fs::OFlags;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

pub(super) struct UringLanes {
    kernel: KernelRing,
    mode: UringMode,
    /// Every request becomes a no-operation.
    nop: bool,
    files: Vec<RawFd>,
    files_registered: bool,
    buffers: Option<Table>,
    /// One address list per lane, for requests that name their buffer through a list.
    lists: Box<[libc::iovec]>,
    /// Requests left until the next one that is forced to a kernel worker.
    until_forced: u32,
    /// Entries not yet pushed because a kernel submission thread would start them at once.
    staged: Vec<squeue::Entry>,
    /// Whether the kernel can settle for one completion after a set time.
    has_patience: bool,
    /// Keeps the files open while requests may name them.
    _files: Vec<Arc<DirectFile>>,
}

impl UringLanes {
    /// Sets up the ring; the error is the reason in words.
    pub(super) fn open(setup: &Setup<'_>, mode: UringMode, nop: bool, features: &mut Features) -> Result<Self, String> {
        features.backend = if nop { "nop" } else { "io_uring" };
        let shape = Shape {
            entries: setup.lanes,
            polled: mode.polled && !nop,
            sq_thread: mode.sq_thread.then_some(mode.sq_thread_cpu),
        };
        let kernel = KernelRing::open(shape, features)?;
        if shape.polled {
            features.obtain("polled");
        }
        if mode.sq_thread {
            features.obtain("sq_thread");
        }
        if !nop && serve_memory_at_once(setup.files) {
            features.obtain("memory_at_once");
        }
        let descriptors: Vec<RawFd> = setup.files.iter().map(|file| file.as_fd().as_raw_fd()).collect();
        let files_registered = mode.registered_files && !nop && kernel.register_files(&descriptors, features);
        let buffers = (mode.fixed_buffers && !nop).then(|| register_buffers(&kernel, setup, features)).flatten();
        let has_patience = kernel.has_patience();
        if has_patience {
            features.obtain("min_wait");
        } else {
            features.refuse("min_wait", "the kernel is older than 6.12");
        }
        let nothing = libc::iovec { iov_base: std::ptr::null_mut(), iov_len: 0 };
        let listed = !mode.nonvectored && buffers.is_none();
        let lists = vec![nothing; if listed { setup.lanes as usize } else { 0 }];
        Ok(Self {
            kernel,
            mode,
            nop,
            files: descriptors,
            files_registered,
            buffers,
            lists: lists.into(),
            until_forced: mode.force_async,
            staged: Vec::with_capacity(if mode.sq_thread { setup.lanes as usize } else { 0 }),
            has_patience,
            _files: setup.files.to_vec(),
        })
    }

    /// Queues one request. There is always room: the ring has an entry for every lane.
    #[inline]
    pub(super) fn queue(&mut self, request: &Request) {
        let entry = if self.nop { opcode::Nop::new().build() } else { self.entry(request) };
        let entry = entry.user_data(u64::from(request.lane));
        if self.mode.sq_thread {
            self.staged.push(entry);
        } else {
            self.push(&entry);
        }
    }

    #[inline]
    fn push(&mut self, entry: &squeue::Entry) {
        // SAFETY: the entry names the buffer of a lane, and maybe its address list. `Lanes` owns the memory, marks the
        // lane busy before it queues and gives nobody the buffer of a busy lane; the list belongs to the lane and is
        // only written when the lane is queued. Both live until `Lanes` has drained this backend.
        unsafe { self.kernel.push(entry) };
    }

    #[inline]
    fn entry(&mut self, request: &Request) -> squeue::Entry {
        let Request { kind, lane, file, offset, address, len } = *request;
        // With registered files, the index of a file takes the place of its descriptor.
        let (descriptor, mut flags) = if self.files_registered {
            (RawFd::from(file), squeue::Flags::FIXED_FILE)
        } else {
            (self.files[usize::from(file)], squeue::Flags::empty())
        };
        let file = types::Fd(descriptor);
        if self.until_forced > 0 {
            self.until_forced -= 1;
            if self.until_forced == 0 {
                self.until_forced = self.mode.force_async;
                flags |= squeue::Flags::ASYNC;
            }
        }
        let rw_flags = if self.mode.nowait { libc::RWF_NOWAIT } else { 0 };
        let entry = match (kind, self.buffers) {
            (LaneKind::Read, Some(table)) => opcode::ReadFixed::new(file, address, len, table.index_of(lane))
                .offset(offset)
                .rw_flags(rw_flags)
                .build(),
            (LaneKind::Write, Some(table)) => opcode::WriteFixed::new(file, address, len, table.index_of(lane))
                .offset(offset)
                .rw_flags(rw_flags)
                .build(),
            (LaneKind::Sync { data_only }, _) => {
                let how = if data_only { types::FsyncFlags::DATASYNC } else { types::FsyncFlags::empty() };
                opcode::Fsync::new(file).flags(how).build()
            }
            (LaneKind::Read | LaneKind::Write, None) => self.unregistered(request, file, rw_flags),
        };
        entry.flags(flags)
    }

    /// An entry that names its buffer by address.
    fn unregistered(&mut self, request: &Request, file: types::Fd, rw_flags: i32) -> squeue::Entry {
        let Request { kind, lane, offset, address, len, .. } = *request;
        let writes = kind == LaneKind::Write;
        if self.mode.nonvectored {
            return if writes {
                opcode::Write::new(file, address, len).offset(offset).rw_flags(rw_flags).build()
            } else {
                opcode::Read::new(file, address, len).offset(offset).rw_flags(rw_flags).build()
            };
        }
        let list = &mut self.lists[lane as usize];
        *list = libc::iovec { iov_base: address.cast(), iov_len: len as usize };
        let list = &raw const *list;
        if writes {
            opcode::Writev::new(file, list, 1).offset(offset).rw_flags(rw_flags).build()
        } else {
            opcode::Readv::new(file, list, 1).offset(offset).rw_flags(rw_flags).build()
        }
    }

    /// Submits what is queued and returns how many requests the kernel took.
    #[inline]
    pub(super) fn submit(&mut self, queued: u32, submits: &mut u64) -> Result<u32, BlockError> {
        if queued == 0 && !self.kernel.must_enter() {
            return Ok(0);
        }
        self.submit_and_wait(queued, 0, None, None, submits)
    }

    #[inline]
    pub(super) fn submit_and_wait(
        &mut self,
        queued: u32,
        at_least: u32,
        patience: Option<Duration>,
        timeout: Option<Duration>,
        submits: &mut u64,
    ) -> Result<u32, BlockError> {
        if self.mode.sq_thread {
            let staged = std::mem::take(&mut self.staged);
            for entry in &staged {
                self.push(entry);
            }
            self.staged = staged;
            self.staged.clear();
        }
        let wait = Wait { at_least, patience: patience.filter(|_| self.has_patience), timeout };
        if patience.is_some() && !self.has_patience {
            self.kernel.enter(Wait::NOT, submits)?;
            self.wait(at_least, patience, timeout, submits)?;
        } else if self.mode.sq_thread && self.kernel.visible() >= at_least as usize {
            self.kernel.enter(Wait::NOT, submits)?;
        } else {
            self.kernel.enter(wait, submits)?;
        }
        // A kernel submission thread owns its entries from the push on.
        let left = if self.mode.sq_thread { 0 } else { self.kernel.pending().0 as u32 };
        Ok(queued - left)
    }

    /// Waits; queued entries stay queued.
    #[inline]
    pub(super) fn wait(
        &mut self,
        at_least: u32,
        patience: Option<Duration>,
        timeout: Option<Duration>,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        let visible = self.kernel.visible();
        if visible >= at_least as usize && (visible > 0 || !self.kernel.must_enter()) {
            return Ok(());
        }
        let mut wait = Wait { at_least, patience, timeout };
        if patience.is_some() && !self.has_patience {
            wait.patience = None;
            wait.timeout = patience.min(timeout).or(patience);
            self.kernel.wait(wait, submits)?;
            if self.kernel.visible() > 0 {
                return Ok(());
            }
            wait.at_least = 1;
            wait.timeout = timeout;
        }
        self.kernel.wait(wait, submits)
    }

    /// Takes completions that are visible without entering the kernel.
    #[inline]
    pub(super) fn reap(&mut self, out: &mut Vec<LaneDone>, at_most: u32) {
        if at_most == 0 {
            return;
        }
        let mut left = at_most;
        self.kernel.take_completions(|entry| {
            out.push(LaneDone { lane: entry.user_data() as u32, result: entry.result() });
            left -= 1;
            left > 0
        });
    }

    /// Waits until nothing is in flight. False if the kernel failed to complete the requests.
    pub(super) fn drain(&mut self, in_flight: u32) -> bool {
        let mut left = in_flight;
        let mut submits = 0;
        let wait = Wait { at_least: 1, timeout: Some(Duration::from_secs(1)), patience: None };
        loop {
            self.kernel.take_completions(|_| {
                left -= 1;
                true
            });
            if left == 0 {
                return true;
            }
            if self.kernel.wait(wait, &mut submits).is_err() {
                return false;
            }
        }
    }
}

/// Marks files of in-memory file systems so that the submitting thread serves their requests; true if there are any.
///
/// Such a file system (tmpfs, ramfs) never waits for a device but does not declare this (`FMODE_NOWAIT`), so io_uring
/// hands every request on it to a worker thread: two threads and a wake-up to copy some KiB. With `O_NONBLOCK` on the
/// file, io_uring assumes that it does not block. On a regular file the flag has no other effect (open(2)).
fn serve_memory_at_once(files: &[Arc<DirectFile>]) -> bool {
    /// `TMPFS_MAGIC` and `RAMFS_MAGIC` of `linux/magic.h`.
    const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];
    let mut any = false;
    for file in files {
        let in_memory = rustix::fs::fstatfs(file).is_ok_and(|stat| IN_MEMORY.contains(&(stat.f_type as u64)));
        let marked = in_memory
            && rustix::fs::fcntl_getfl(file)
                .is_ok_and(|flags| rustix::fs::fcntl_setfl(file, flags | OFlags::NONBLOCK).is_ok());
        any |= marked;
    }
    any
}

/// Registers the buffers of all lanes, if the kernel allows it.
fn register_buffers(kernel: &KernelRing, setup: &Setup<'_>, features: &mut Features) -> Option<Table> {
    let mut pieces = Vec::new();
    let table = cut(&mut pieces, setup.base, setup.lanes as usize, setup.lane_bytes);
    // SAFETY: the pieces are the memory of `Lanes`, which stays mapped until this backend has been drained; where it
    // cannot be drained, it is never unmapped.
    let outcome = unsafe { kernel.register_memory(&pieces) };
    note(features, "registered_buffers", outcome).then_some(table)
}

/// Refuses polled completions on files that can never deliver them: the kernel would answer every request with
/// `EOPNOTSUPP`, or never.
pub(super) fn check_polling(file: &DirectFile) -> Result<(), BlockError> {
    let refused = |why: String| {
        Err(BlockError::Invalid {
            what: format!("polling for completions of {} is not possible (hipri): {why}", file.path().display()),
        })
    };
    if !file.is_direct() {
        return refused("only direct I/O can be polled (direct=1)".to_owned());
    }
    match poll_queues(&Roots::real(), file.path()) {
        Ok(true) => Ok(()),
        Ok(false) => refused(
            "the device has no poll queues (/sys/block/*/queue/io_poll is 0); NVMe has them with the module parameter \
             nvme.poll_queues, for other devices leave hipri out"
                .to_owned(),
        ),
        Err(why) => refused(format!("{why}, so it has no poll queues")),
    }
}

/// Whether the disk that holds a path has poll queues (`queue/io_poll` in sysfs); the error says why no disk was found.
pub(super) fn poll_queues(roots: &Roots, path: &std::path::Path) -> Result<bool, String> {
    let facts = crate::facts::facts_of(roots, path);
    let disk = facts.disk?;
    let attribute = roots.sys.join("class/block").join(disk).join("queue/io_poll");
    match std::fs::read_to_string(&attribute) {
        Ok(text) => Ok(text.trim() != "0"),
        Err(error) => Err(format!("{} cannot be read: {error}", attribute.display())),
    }
}
