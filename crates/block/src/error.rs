//! The one error type of this crate.

use std::io;
use std::path::{Path, PathBuf};

/// What went wrong with a file, a device, memory or a ring.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BlockError {
    /// A system call on a file or directory failed.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The file or directory.
        path: PathBuf,
        /// What was attempted, as a verb ("open", "allocate").
        what: &'static str,
        /// The operating system's answer.
        source: io::Error,
    },
    /// The file system has too little free space.
    #[error("no space for {}: {needed} bytes needed, {free} bytes free; free some space or choose a smaller size", path.display())]
    NoSpace {
        /// The file or directory that was to grow.
        path: PathBuf,
        /// Requested bytes.
        needed: u64,
        /// Bytes an unprivileged user may still allocate there.
        free: u64,
    },
    /// Another process holds the lock of this file.
    #[error("{} is in use by another process; wait until it ends, or stop it", path.display())]
    InUse {
        /// The locked file.
        path: PathBuf,
    },
    /// Memory could not be obtained from the operating system.
    #[error("cannot get {bytes} bytes of memory for {what}: {source}")]
    Memory {
        /// What the memory was for.
        what: &'static str,
        /// Requested bytes.
        bytes: u64,
        /// The operating system's answer.
        source: io::Error,
    },
    /// An option is outside what can work.
    #[error("{what}")]
    Invalid {
        /// Which option, its value, and the allowed values.
        what: String,
    },
    /// The ring could not be set up or entered.
    #[error("cannot {what}: {source}")]
    Ring {
        /// What was attempted, as a verb.
        what: &'static str,
        /// The operating system's answer.
        source: io::Error,
    },
    /// Asynchronous I/O was requested by name and the kernel refuses it.
    #[error("io_uring cannot be used: {why}")]
    NoUring {
        /// The reason, with the setting that causes it where one can be named.
        why: String,
    },
    /// The older asynchronous interface was requested by name and the kernel refuses it.
    #[error("libaio cannot be used: {why}")]
    NoAio {
        /// The reason, with the setting that causes it where one can be named.
        why: String,
    },
    /// A target must not be written to.
    #[error("refusing to write to {}: {why}; {remedy}", path.display())]
    Refused {
        /// The target as it was named.
        path: PathBuf,
        /// What was found there.
        why: String,
        /// The remedy.
        remedy: &'static str,
    },
}

impl BlockError {
    /// An [`BlockError::Io`] made of its parts.
    pub(crate) fn io(path: &Path, what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { path: path.to_path_buf(), what, source: source.into() }
    }
}
