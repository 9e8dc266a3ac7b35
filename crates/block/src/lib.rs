//! Block devices, files and memory. Only this crate of the project contains `unsafe` code.
//!
//! It owns the memory the kernel reads into and writes from ([`Pool`] frames, [`Ring`] buffers and [`Lanes`]), the
//! requests in flight ([`Ring`]; [`Lanes`] for load generators), files opened for direct I/O ([`DirectFile`]), the
//! facts about the device behind a path ([`device_facts`]) and the checks that keep a run from overwriting foreign data
//! ([`check_writable_target`]). It must know nothing of blocks, schemas, sessions or statistics. Engines call it; it
//! calls no other crate of ours.
//!
//! Every public function here is safe to call. The rule behind all `unsafe` code: memory is lent to the kernel only
//! while this crate itself keeps it mapped and holds the lease that excludes others.
#![expect(
    unsafe_code,
    reason = "the kernel's interfaces for such memory have no safe API; every other crate forbids unsafe code"
)]

mod backend;
mod blocking;
mod bursts;
mod cached;
mod cpuid;
mod error;
mod facts;
mod features;
mod file;
mod kernel_ring;
mod lanes;
mod log_ring;
mod mapping;
pub mod memory;
#[cfg(all(target_arch = "x86_64", any(test, target_env = "musl")))]
mod musl_copy;
mod place;
mod pool;
mod prefetch;
mod ring;
mod safety;
pub mod socket;
mod tearing;
mod thread;
mod words;

pub use backend::{
    BackendCall, BackendFile, BackendRequest, BackendRing, Installed, RequestMemory, StorageBackend, install,
};
pub use blocking::BlockingWriter;
pub use bursts::Bursts;
pub use cached::cached_pages;
pub use cpuid::hypervisor_signature;
pub use error::BlockError;
pub use facts::{DeviceFacts, Known, Mount, device_facts, disks_under, mounts};
pub use features::Features;
pub use file::{DirectFile, DirectIo, FileOptions, OpenMode, Preallocate, WriteThrough};
pub use lanes::{LaneDone, LaneEngine, Lanes, LanesOptions, SyncCall, UringMode};
pub use log_ring::{Appended, LogRing, Taken};
pub use mapping::Pages;
pub use place::{free_bytes, is_dir_empty};
pub use pool::{Exclusive, Lease, Pool, PoolOptions, Shared, Version};
pub use prefetch::{prefetch, prefetch_of};
pub use ring::{Backend, Buffer, Completion, CompletionLease, FileCounters, Ring, RingCounters, RingOptions, Waker};
pub use safety::{DeviceClaim, UsedFiles, check_device_unused, check_writable_target, claim_device, device_signature};
pub use tearing::{TearUnits, tear_units};
pub use thread::{ThreadUsage, set_timer_slack};
pub use words::Words;

#[cfg(test)]
pub(crate) mod testing {
    /// A fresh directory on a real file system, beside the build products. The system's temporary directory may be a
    /// tmpfs, where direct I/O is accepted but not performed.
    pub(crate) fn directory() -> tempfile::TempDir {
        let executable = std::env::current_exe().unwrap();
        tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
    }
}
