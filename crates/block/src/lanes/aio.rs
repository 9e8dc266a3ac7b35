//! Lanes over the kernel's older asynchronous interface. Makes the same system calls (`io_setup(2)` and related) as the
//! libaio library.
//!
//! The layouts are those of the kernel's `include/uapi/linux/aio_abi.h`, and of `struct aio_ring` in `fs/aio.c` for the
//! completion ring that `io_setup` maps into the process. With that ring, completions are taken without a system call.

use super::{LaneDone, LaneKind, Request, Setup};
use crate::features::Features;
use crate::{BlockError, DirectFile};
use std::io;
use std::os::fd::{AsFd, AsRawFd, RawFd};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// Operations (`IOCB_CMD_*` of `linux/aio_abi.h`).
const PREAD: u16 = 0;
const PWRITE: u16 = 1;
const FSYNC: u16 = 2;
const FDSYNC: u16 = 3;

/// Magic number of a completion ring of the known layout (`AIO_RING_MAGIC` of `fs/aio.c`).
const RING_MAGIC: u32 = 0xa10a_10a1;

/// One request, 64 bytes (`struct iocb` of `linux/aio_abi.h`, little endian).
#[repr(C, align(64))]
#[derive(Clone, Copy, Default)]
struct Iocb {
    /// Byte 0: comes back with the completion. Here: the lane.
    data: u64,
    /// Byte 8: for the kernel's use.
    key: u32,
    /// Byte 12: `RWF_*`.
    rw_flags: u32,
    /// Byte 16: the operation.
    opcode: u16,
    /// Byte 18: I/O priority.
    priority: i16,
    /// Byte 20: the file.
    descriptor: u32,
    /// Byte 24: address of the memory.
    address: u64,
    /// Byte 32: its length.
    len: u64,
    /// Byte 40: offset in the file.
    offset: i64,
    /// Byte 48: must be 0.
    reserved: u64,
    /// Byte 56: 0, no event counter.
    flags: u32,
    /// Byte 60: the event counter.
    event_descriptor: u32,
}

/// One completion, 32 bytes (`struct io_event` of `linux/aio_abi.h`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Event {
    /// Byte 0: the request's user data.
    data: u64,
    /// Byte 8: address of the request.
    request: u64,
    /// Byte 16: bytes moved or the negated error number.
    result: i64,
    /// Byte 24: 0 for files.
    second: i64,
}

/// Head of the completion ring, 32 bytes (`struct aio_ring` of `fs/aio.c`); the events follow.
#[repr(C)]
struct RingHead {
    /// Byte 0: for the kernel's use.
    id: u32,
    /// Byte 4: capacity in events.
    slots: u32,
    /// Byte 8: the next event to take, advanced by the reader.
    head: AtomicU32,
    /// Byte 12: one past the last event, advanced by the kernel.
    tail: AtomicU32,
    /// Byte 16: `RING_MAGIC`.
    magic: u32,
    /// Byte 20: feature flags that readers may ignore.
    compatible: u32,
    /// Byte 24: feature flags that readers must know; 0.
    incompatible: u32,
    /// Byte 28: size of this head in bytes.
    head_bytes: u32,
}

const _: () = assert!(size_of::<Iocb>() == 64 && size_of::<Event>() == 32);
const _: () = assert!(size_of::<RingHead>() == 32);

pub(super) struct AioLanes {
    /// Address of the completion ring, which is also the kernel's handle of the context (`aio_context_t`).
    context: libc::c_ulong,
    /// Whether completions may be taken from the ring directly.
    user_ring: bool,
    files: Vec<RawFd>,
    /// One per lane. Never moved while the kernel may read it, which it does only during `io_submit`.
    requests: Box<[Iocb]>,
    /// Requests to be submitted, oldest first.
    queued: Vec<*mut Iocb>,
    /// Completions taken by a system call, and requests the kernel refused; they come before those in the ring.
    collected: Vec<LaneDone>,
    events: Box<[Event]>,
    /// Keeps the files open while requests may name them.
    _files: Vec<Arc<DirectFile>>,
}

impl AioLanes {
    pub(super) fn open(setup: &Setup<'_>, features: &mut Features) -> Result<Self, BlockError> {
        features.backend = "libaio";
        let mut context: libc::c_ulong = 0;
        // SAFETY: the kernel writes one word through the pointer, which is valid for the call.
        let outcome = unsafe { libc::syscall(libc::SYS_io_setup, setup.lanes, &raw mut context) };
        if outcome < 0 {
            return Err(why_refused(io::Error::last_os_error(), setup.lanes));
        }
        let head = ptr::with_exposed_provenance::<RingHead>(context as usize);
        // SAFETY: `io_setup` maps the completion ring at the address it returns, readable and writable, until
        // `io_destroy`. Its first 32 bytes are the head in every version of the layout.
        let known = unsafe { (*head).magic == RING_MAGIC && (*head).incompatible == 0 && (*head).slots > 0 };
        if known {
            features.obtain("user_ring");
        } else {
            features.refuse("user_ring", "the completion ring has an unknown layout");
        }
        let lanes = setup.lanes as usize;
        Ok(Self {
            context,
            user_ring: known,
            files: setup.files.iter().map(|file| file.as_fd().as_raw_fd()).collect(),
            requests: vec![Iocb::default(); lanes].into(),
            queued: Vec::with_capacity(lanes),
            collected: Vec::with_capacity(lanes),
            events: vec![Event::default(); lanes].into(),
            _files: setup.files.to_vec(),
        })
    }

    #[inline]
    pub(super) fn queue(&mut self, request: &Request) {
        let opcode = match request.kind {
            LaneKind::Read => PREAD,
            LaneKind::Write => PWRITE,
            LaneKind::Sync { data_only: true } => FDSYNC,
            LaneKind::Sync { data_only: false } => FSYNC,
        };
        // A synchronisation must have neither a buffer nor an offset.
        let synchronises = matches!(request.kind, LaneKind::Sync { .. });
        let entry = &mut self.requests[request.lane as usize];
        *entry = Iocb {
            data: u64::from(request.lane),
            opcode,
            descriptor: self.files[usize::from(request.file)] as u32,
            address: if synchronises { 0 } else { request.address.expose_provenance() as u64 },
            len: u64::from(request.len),
            offset: request.offset as i64,
            ..Iocb::default()
        };
        self.queued.push(&raw mut *entry);
    }

    /// Submits what is queued and returns how many requests the kernel took. A refused request completes with its
    /// error.
    pub(super) fn submit(&mut self, in_flight: u32, submits: &mut u64) -> Result<u32, BlockError> {
        let mut taken = 0;
        while taken < self.queued.len() {
            let rest = &mut self.queued[taken..];
            *submits += 1;
            // SAFETY: the list holds addresses of requests in `self.requests`, whose lanes are busy: their buffers belong to
            // the kernel until the completion. The kernel copies requests during the call.
            let outcome = unsafe {
                libc::syscall(libc::SYS_io_submit, self.context, rest.len() as libc::c_long, rest.as_mut_ptr())
            };
            if let Ok(count) = usize::try_from(outcome) {
                taken += count;
                continue;
            }
            let error = io::Error::last_os_error();
            match error.raw_os_error() {
                Some(libc::EINTR) => {}
                Some(libc::EAGAIN) => {
                    // The kernel has no room until something completes.
                    if taken == 0 && in_flight == 0 {
                        return Err(BlockError::Ring { what: "submit to libaio", source: error });
                    }
                    break;
                }
                number => {
                    // The first of the remaining requests, and only that one, is at fault.
                    // SAFETY: it points into `self.requests`, which nothing else borrows here.
                    let lane = unsafe { (*self.queued[taken]).data } as u32;
                    self.collected.push(LaneDone { lane, result: -number.unwrap_or(libc::EIO) });
                    taken += 1;
                }
            }
        }
        self.queued.drain(..taken);
        Ok(taken as u32)
    }

    /// Number of completions in the ring, or 0 if the ring cannot be read.
    #[inline]
    fn visible(&self) -> usize {
        if !self.user_ring {
            return 0;
        }
        let ring = self.ring();
        let (head, tail) = (ring.head.load(Ordering::Relaxed), ring.tail.load(Ordering::Acquire));
        if tail >= head { (tail - head) as usize } else { (ring.slots - head + tail) as usize }
    }

    #[inline]
    fn ring(&self) -> &RingHead {
        // SAFETY: `io_setup` mapped it there until `io_destroy`, which only `drain` calls. Words that the kernel
        // changes are atomics.
        unsafe { &*ptr::with_exposed_provenance::<RingHead>(self.context as usize) }
    }

    pub(super) fn wait(
        &mut self,
        at_least: u32,
        patience: Option<Duration>,
        timeout: Option<Duration>,
        submits: &mut u64,
    ) -> Result<(), BlockError> {
        let Some(patience) = patience else {
            return self.wait_once(at_least, timeout, submits);
        };
        let begun = Instant::now();
        let first = timeout.map_or(patience, |timeout| timeout.min(patience));
        self.wait_once(at_least, Some(first), submits)?;
        if self.collected.is_empty() && self.visible() == 0 {
            let left = timeout.map(|timeout| timeout.saturating_sub(begun.elapsed()));
            return self.wait_once(at_least.min(1), left, submits);
        }
        Ok(())
    }

    fn wait_once(&mut self, at_least: u32, timeout: Option<Duration>, submits: &mut u64) -> Result<(), BlockError> {
        let at_hand = self.collected.len() + self.visible();
        if at_hand >= at_least as usize && (self.user_ring || at_least > 0) {
            return Ok(());
        }
        let wanted = (at_least as usize).saturating_sub(self.collected.len());
        let time = timeout.map(|timeout| libc::timespec {
            tv_sec: timeout.as_secs().min(1 << 30) as i64,
            tv_nsec: timeout.subsec_nanos() as libc::c_long,
        });
        let time = time.as_ref().map_or(ptr::null(), ptr::from_ref);
        *submits += 1;
        // SAFETY: the kernel writes at most as many events as the array holds; the time outlives the call.
        let outcome = unsafe {
            libc::syscall(
                libc::SYS_io_getevents,
                self.context,
                wanted as libc::c_long,
                self.events.len() as libc::c_long,
                self.events.as_mut_ptr(),
                time,
            )
        };
        match usize::try_from(outcome) {
            Ok(count) => {
                let done = self.events[..count].iter().map(lane_done);
                self.collected.extend(done);
                Ok(())
            }
            Err(_) => match io::Error::last_os_error() {
                error if error.raw_os_error() == Some(libc::EINTR) => Ok(()),
                error => Err(BlockError::Ring { what: "wait for libaio", source: error }),
            },
        }
    }

    pub(super) fn reap(&mut self, out: &mut Vec<LaneDone>, at_most: u32) {
        let before = out.len();
        super::take_first(&mut self.collected, out, at_most as usize);
        let left = at_most as usize - (out.len() - before);
        if self.user_ring && left > 0 {
            let count = left.min(self.visible());
            let ring = self.ring();
            let mut head = ring.head.load(Ordering::Relaxed);
            let events = ptr::from_ref(ring).wrapping_add(1).cast::<Event>();
            for _ in 0..count {
                // SAFETY: `slots` events follow the head. The kernel has written those from `head` up to the tail read
                // above (acquire), and leaves them alone until `head` passes them.
                out.push(lane_done(unsafe { &*events.wrapping_add(head as usize) }));
                head = (head + 1) % ring.slots;
            }
            ring.head.store(head, Ordering::Release);
        }
    }

    /// Waits until nothing is in flight: `io_destroy` does not return before. False if the kernel failed to do so.
    pub(super) fn drain(&mut self) -> bool {
        // SAFETY: takes no memory; the context is not used again, as only the owner's drop calls this.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.context) == 0 }
    }
}

#[inline]
fn lane_done(event: &Event) -> LaneDone {
    LaneDone { lane: event.data as u32, result: i32::try_from(event.result).unwrap_or(i32::MAX) }
}

/// The likely cause of a failed setup, in words.
fn why_refused(error: io::Error, lanes: u32) -> BlockError {
    let why = match error.raw_os_error() {
        Some(libc::ENOSYS) => "the kernel is built without it (CONFIG_AIO)".to_owned(),
        Some(libc::EPERM | libc::EACCES) => {
            "not permitted: a seccomp profile (containers have one) forbids it".to_owned()
        }
        Some(libc::EAGAIN) => format!(
            "{lanes} more requests would exceed fs.aio-max-nr ({}); raise it with sysctl",
            std::fs::read_to_string("/proc/sys/fs/aio-max-nr")
                .map_or_else(|_| "unknown".to_owned(), |text| text.trim().to_owned())
        ),
        _ => error.to_string(),
    };
    BlockError::NoAio { why }
}
