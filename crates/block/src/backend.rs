//! The seam below files and rings: a backend that opens files in place of the operating system.
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
    /// The file of this path; `None` leaves it to the operating system.
    fn open(&self, path: &Path) -> Option<Box<dyn BackendFile>>;
}

/// A file of a backend, open, usable from any thread. Errors carry the operating system's numbers.
#[expect(clippy::len_without_is_empty, reason = "an empty file is no special case for any caller")]
pub trait BackendFile: std::fmt::Debug + Send + Sync {
    /// Length in bytes.
    fn len(&self) -> u64;

    /// Extends it to so many bytes, with zeroes.
    fn allocate(&self, len: u64);

    /// Reads until `out` is full or the file ends; returns the bytes read.
    ///
    /// # Errors
    /// Those of the backend.
    fn read_at(&self, offset: u64, out: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `data`.
    ///
    /// # Errors
    /// Those of the backend.
    fn write_at(&self, offset: u64, data: &[u8]) -> io::Result<()>;

    /// Makes all written data durable.
    ///
    /// # Errors
    /// Those of the backend.
    fn sync_data(&self) -> io::Result<()>;

    /// Takes the exclusive lock until it is dropped; false where another open of the file holds it.
    fn lock(&self) -> bool;

    /// What serves a ring over these files, all of this backend.
    fn ring(&self, paths: &[&Path]) -> Box<dyn BackendRing>;
}

/// The requests of one [`Ring`](crate::Ring) over files of a backend; on the thread of the ring.
pub trait BackendRing {
    /// Takes a request note; it begins with the next [`BackendRing::submit`].
    fn queue(&mut self, request: BackendRequest);

    /// Begins what is queued. On return `wait_for` results can be reaped, or all there are.
    fn submit(&mut self, wait_for: u32, memory: &mut dyn RequestMemory);

    /// Appends the next result, of which the caller of the ring learns now, if there is one: the slot and the result as the
    /// kernel gives it, a count or a negated error number.
    fn reap(&mut self, done: &mut VecDeque<(u32, i32)>);

    /// Ends everything: the ring is dropped.
    fn drain(&mut self, memory: &mut dyn RequestMemory);
}

/// A request of a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackendRequest {
    /// What it does.
    pub kind: BackendCall,
    /// Names the request until its result is reaped.
    pub slot: u32,
    /// Index of the file among those of the ring.
    pub file: u16,
    /// First byte of the file.
    pub offset: u64,
    /// Bytes that a write takes.
    pub len: usize,
}

/// What a request of a ring does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BackendCall {
    /// Reads, into frames or a buffer.
    Read,
    /// Writes.
    Write {
        /// Its result means that the bytes are durable.
        durable: bool,
    },
    /// Makes everything durable that was written to the file.
    Sync,
    /// Does nothing.
    Nop,
}

/// The memory that the requests of a ring hold, lent to a backend while it performs them.
pub trait RequestMemory {
    /// The bytes that a write is of.
    fn data(&self, request: &BackendRequest) -> &[u8];

    /// Lets `read` fill the memory of a read; returns what it returns.
    ///
    /// # Errors
    /// Those of `read`.
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

/// From now on files that this thread opens by path are the backend's, where it has them.
pub fn install(backend: Arc<dyn StorageBackend>) -> Installed {
    Installed { before: INSTALLED.replace(Some(backend)) }
}

/// The file of this path of the backend installed on this thread.
pub(crate) fn open(path: &Path) -> Option<Box<dyn BackendFile>> {
    INSTALLED.with_borrow(|backend| backend.as_ref()?.open(path))
}
