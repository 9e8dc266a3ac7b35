//! Monotonic counters of a ring and of its files.

use super::Kind;

/// Counters of a ring since it was opened. Requests are counted when popped, and only if successful. Identity: requests
/// queued = popped successes + `errors` + [`Ring::in_flight`](crate::Ring::in_flight).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RingCounters {
    /// Calls into the kernel to submit or wait (`io_uring_enter`); with helper threads, batches handed to them.
    pub submits: u64,
    /// Reads.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Synchronisations of a whole file (durable writes count as writes).
    pub syncs: u64,
    /// No-operations.
    pub nops: u64,
    /// Requests of any kind that failed.
    pub errors: u64,
}

/// Counters of one file of a ring, counted like [`RingCounters`]: when popped, successful requests only.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct FileCounters {
    /// Reads.
    pub read_requests: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes.
    pub write_requests: u64,
    /// Bytes written.
    pub write_bytes: u64,
}

impl RingCounters {
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind, bytes: Option<u32>) {
        let Some(bytes) = bytes else {
            self.errors += 1;
            return;
        };
        match kind {
            Kind::Read | Kind::ReadScattered => {
                self.read_requests += 1;
                self.read_bytes += u64::from(bytes);
            }
            Kind::Write | Kind::WriteDurable => {
                self.write_requests += 1;
                self.write_bytes += u64::from(bytes);
            }
            Kind::Sync => self.syncs += 1,
            Kind::Nop => self.nops += 1,
        }
    }
}

impl FileCounters {
    #[inline]
    pub(crate) fn count(&mut self, kind: Kind, bytes: u32) {
        match kind {
            Kind::Read | Kind::ReadScattered => {
                self.read_requests += 1;
                self.read_bytes += u64::from(bytes);
            }
            Kind::Write | Kind::WriteDurable => {
                self.write_requests += 1;
                self.write_bytes += u64::from(bytes);
            }
            Kind::Sync | Kind::Nop => {}
        }
    }
}
