//! Lets a backend open files in place of the operating system.
//!
//! [`DirectFile::open`](crate::DirectFile::open) asks a [`StorageBackend`] that is installed on the thread before it
//! asks the operating system, and a [`Ring`](crate::Ring) over its files passes its requests to a [`BackendRing`]. The
//! backend is consulted only at the open, so real files pay nothing for it. Tests install a disk that loses power and
//! fails (crate `testkit`); programs install none.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// Opens files in place of the operating system.
pub trait StorageBackend {
    /// Opens the file at this path, or returns `None` to leave it to the operating system.
    fn open(&self, path: &Path) -> Option<Box<dyn BackendFile>>;
}

/// An open file of a backend, usable from any thread. Errors carry the operating system's error numbers.
#[expect(clippy::len_without_is_empty, reason = "an empty file is no special case for any caller")]
pub trait BackendFile: std::fmt::Debug + Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Extends the file to `len` bytes, filling with zeroes.
    fn allocate(&self, len: u64);

    /// Reads until `out` is full or the file ends; returns the bytes read.
    ///
    /// # Errors
    /// As the backend reports them.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `data`.
    ///
    /// # Errors
    /// As the backend reports them.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Makes all written data durable.
    ///
    /// # Errors
    /// As the backend reports them.
    fn sync_data(&self) -> io::Result<()>;

    /// Takes the exclusive lock, which the drop releases; false if another open of the file holds it.
    fn lock(&self) -> bool;

    /// Creates the request queue of a ring over these files, all of which belong to this backend.
    fn ring(&self, paths: &[&Path]) -> Box<dyn BackendRing>;
}

/// The requests of one [`Ring`](crate::Ring) over files of a backend. Runs on the ring's thread.
pub trait BackendRing {
    /// Queues a request; it starts with the next [`BackendRing::submit`].
    fn queue(&mut self, request: BackendRequest);

    /// Starts the queued requests. On return `wait_for` results can be reaped, or all if fewer are in flight.
    fn submit(&mut self, wait_for: u32, memory: &mut dyn RequestMemory);

    /// Appends the next result, if any: the slot and the result as the kernel reports it, a count or a negated error
    /// number.
    fn reap(&mut self, done: &mut VecDeque<(u32, i32)>);

    /// Finishes all requests: the ring is being dropped.
    fn drain(&mut self, memory: &mut dyn RequestMemory);
}

/// A request of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendRequest {
    /// The operation.
    pub kind: BackendCall,
    /// Identifies the request until its result is reaped.
    pub slot: u32,
    /// Index of the file among those of the ring.
    pub file: u16,
    /// First byte of the file.
    pub offset: u64,
    /// Bytes to write.
    pub len: usize,
}

/// The operation of a ring request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendCall {
    /// Reads into frames or a buffer.
    Read,
    /// Writes.
    Write {
        /// Whether completion means that the bytes are durable.
        durable: bool,
    },
    /// Makes everything written to the file durable.
    Sync,
    /// Does nothing.
    Nop,
}

/// The memory that the requests of a ring hold, lent to a backend while it performs them.
pub trait RequestMemory {
    /// The bytes to write.
    fn data(&self, request: &BackendRequest) -> &[u8];

    /// Lets `read` fill the memory of a read request and returns its result.
    ///
    /// # Errors
    /// As `read` reports them.
    fn fill(
        &mut self,
        request: &BackendRequest,
        read: &mut dyn FnMut(&mut [u8]) -> io::Result<usize>,
    ) -> io::Result<usize>;
}

thread_local! {
    static INSTALLED: RefCell<Option<Arc<dyn StorageBackend>>> = const { RefCell::new(None) };
}

/// Keeps a backend installed on this thread.
#[must_use = "the backend is installed until this is dropped"]
pub struct Installed {
    before: Option<Arc<dyn StorageBackend>>,
}

impl std::fmt::Debug for Installed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Installed").finish_non_exhaustive()
    }
}

impl Drop for Installed {
    fn drop(&mut self) {
        INSTALLED.replace(self.before.take());
    }
}

/// Installs a backend on this thread: it opens every path that it knows.
pub fn install(backend: Arc<dyn StorageBackend>) -> Installed {
    Installed { before: INSTALLED.replace(Some(backend)) }
}

/// Opens this path in the backend installed on this thread, if both exist.
pub(crate) fn open(path: &Path) -> Option<Box<dyn BackendFile>> {
    INSTALLED.with_borrow(|backend| backend.as_ref()?.open(path))
}
