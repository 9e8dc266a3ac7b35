//! How much of a file the page cache holds, found without reading the file.
//!
//! A non-blocking read (`RWF_NOWAIT`) does not work for this: newer kernels start to read missing pages.

use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::ptr::null_mut;

const PAGE_BYTES: usize = 4096;
/// Bytes of the file examined in one step.
const WINDOW_BYTES: usize = 1 << 30;

/// Number of 4 KiB pages of a file in the page cache. `None` if the kernel hides this: it reports real residency only
/// to root and the owner, and claims to others that all pages are present (`mincore(2)`).
///
/// # Errors
/// As the kernel reports them, including for a file system that cannot map files.
pub fn cached_pages(file: &File) -> io::Result<Option<u64>> {
    let about = file.metadata()?;
    if !is_told_residency(about.uid()) {
        return Ok(None);
    }
    let len = usize::try_from(about.len()).map_err(io::Error::other)?;
    let mut held = 0;
    for from in (0..len).step_by(WINDOW_BYTES) {
        held += within(file, from as u64, WINDOW_BYTES.min(len - from))?;
    }
    Ok(Some(held))
}

/// Whether the kernel tells this process what is resident of a file with that owner.
pub(crate) fn is_told_residency(owner: u32) -> bool {
    let user = rustix::process::geteuid();
    user.is_root() || user.as_raw() == owner
}

/// Pages held of `len` bytes from `from`, which is where a page begins.
pub(crate) fn within(file: impl AsFd, from: u64, len: usize) -> io::Result<u64> {
    let mut pages = vec![0_u8; len.div_ceil(PAGE_BYTES)];
    // SAFETY: a new mapping at an address of the kernel's choice, which is never read, only queried and then unmapped;
    // the vector has a byte for each of its pages.
    let asked = unsafe {
        let address = mmap(null_mut(), len, ProtFlags::READ, MapFlags::SHARED, file, from)?;
        let asked = libc::mincore(address, len, pages.as_mut_ptr());
        let error = io::Error::last_os_error();
        munmap(address, len)?;
        match asked {
            0 => Ok(()),
            _ => Err(error),
        }
    };
    asked?;
    Ok(pages.iter().filter(|page| **page & 1 == 1).count() as u64)
}
