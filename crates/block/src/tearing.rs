//! Into what a write may tear when the power goes: what the file system and the device announce, and how the pages of a file lie on the
//! device.

use crate::facts::{DeviceFacts, Known};
use rustix::fs::{AtFlags, StatxFlags, statx};
use std::fs::File;
use std::os::fd::{AsFd, AsRawFd};

/// `STATX_WRITE_ATOMIC` of `linux/stat.h`, since Linux 6.11.
const WRITE_ATOMIC: StatxFlags = StatxFlags::from_bits_retain(0x0001_0000);
/// `FS_IOC_FIEMAP` of `linux/fs.h`.
const FIEMAP: u32 = 0xC020_660B;
/// Write what is delayed before it is mapped.
const FLAG_SYNC: u64 = 1;
/// Extents whose place is unknown, delayed, encoded, not aligned or inline.
const NO_PLACE: u64 = 0x2 | 0x4 | 0x8 | 0x100 | 0x200;
const EXTENTS: usize = 64;
/// Words of the head, and of an extent.
const HEAD: usize = 4;
const EXTENT: usize = 7;
/// A better alignment helps nobody.
const MOST_ALIGNED: u64 = 1 << 20;

/// What is announced of tearing. Sizes in bytes; 0: announced that there is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TearUnits {
    /// The largest atomic write that the file takes (`statx`).
    pub file: Known<u64>,
    /// The largest atomic write of the device (`atomic_write_unit_max_bytes`).
    pub device: Known<u64>,
    /// The largest page, aligned in the file, that lies aligned and in one piece on the device.
    pub alignment: Known<u64>,
}

/// Asks for them. Writes delayed data of the file out, and changes nothing.
#[must_use]
pub fn tear_units(file: &File, facts: &DeviceFacts) -> TearUnits {
    let attribute = |device: &str, name: &str| -> Option<u64> {
        std::fs::read_to_string(format!("/sys/{device}/{name}")).ok()?.trim().parse().ok()
    };
    let device = facts.disk.clone().and_then(|disk| {
        let asked = attribute(&format!("block/{disk}/queue"), "atomic_write_unit_max_bytes");
        asked.ok_or_else(|| "this kernel does not tell (Linux 6.11 does)".to_owned())
    });
    let start = facts.device.clone().map(|(major, minor)| {
        // A whole disk has none.
        attribute(&format!("dev/block/{major}:{minor}"), "start").unwrap_or(0) * 512
    });
    let alignment = match &facts.fs_type {
        Ok(name) if name == "btrfs" || name == "zfs" => Err(format!("{name} does not tell where a file lies")),
        _ => start.and_then(|start| Ok(aligned(&extents(file)?, start))),
    };
    TearUnits { file: of_file(file), device, alignment }
}

fn of_file(file: impl AsFd) -> Known<u64> {
    let told = statx(file, "", AtFlags::EMPTY_PATH, WRITE_ATOMIC).map_err(|error| format!("statx: {error}"))?;
    if told.stx_mask & WRITE_ATOMIC.bits() == 0 {
        return Err("this kernel or file system does not tell (Linux 6.11 does, for ext4 and XFS)".to_owned());
    }
    Ok(u64::from(told.stx_atomic_write_unit_max))
}

/// Where the first pieces of a file lie: offset in the file, offset on the device, both in bytes.
fn extents(file: &File) -> Known<Vec<(u64, u64)>> {
    let mut words = [0_u64; HEAD + EXTENT * EXTENTS];
    // Start 0, the whole length, flags and the count of extents that came, room for so many.
    words[1] = u64::MAX;
    words[2] = u64::from_ne_bytes(pair(FLAG_SYNC as u32, 0));
    words[3] = u64::from_ne_bytes(pair(EXTENTS as u32, 0));
    // SAFETY: the kernel reads the head and writes as many extents as the head says there is room for, all within `words`, which
    // outlives the call and has the alignment of the structure (8).
    let done = unsafe { libc::ioctl(file.as_raw_fd(), FIEMAP as libc::Ioctl, words.as_mut_ptr()) };
    if done != 0 {
        return Err(format!("the file system does not tell where a file lies: {}", std::io::Error::last_os_error()));
    }
    let [_, _, _, _, a, b, c, d] = words[2].to_ne_bytes();
    let mapped = u32::from_ne_bytes([a, b, c, d]) as usize;
    let found: Vec<&[u64]> = words[HEAD..].chunks_exact(EXTENT).take(mapped).collect();
    let flags = |extent: &[u64]| {
        let [a, b, c, d, ..] = extent[5].to_ne_bytes();
        u64::from(u32::from_ne_bytes([a, b, c, d]))
    };
    if found.is_empty() || found.iter().any(|extent| flags(extent) & NO_PLACE != 0) {
        return Err("the file has no place of its own on the device".to_owned());
    }
    Ok(found.iter().map(|extent| (extent[0], extent[1])).collect())
}

fn pair(first: u32, second: u32) -> [u8; 8] {
    let (a, b) = (first.to_ne_bytes(), second.to_ne_bytes());
    [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]]
}

/// The largest power of two by which every piece begins in the file and lies on the device, which begins at `start` of its disk.
fn aligned(extents: &[(u64, u64)], start: u64) -> u64 {
    let bits = extents.iter().fold(MOST_ALIGNED, |bits, (logical, physical)| {
        bits | logical | physical.wrapping_sub(*logical).wrapping_add(start)
    });
    1 << bits.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device_facts;

    #[test]
    fn a_piece_that_begins_or_lies_at_4_kib_makes_larger_pages_two_pieces() {
        let mib = 1 << 20;
        assert_eq!(aligned(&[(0, 8 * mib)], mib), mib);
        assert_eq!(aligned(&[(0, 8 * mib), (4096, 9 * mib + 4096)], 0), 4096);
        assert_eq!(aligned(&[(0, 8 * mib + 4096)], 0), 4096);
        // A partition that begins at sector 63.
        assert_eq!(aligned(&[(0, 8 * mib)], 63 * 512), 512);
    }

    #[test]
    fn a_real_file_is_told_or_has_a_reason() {
        let dir = crate::testing::directory();
        let path = dir.path().join("file");
        std::fs::write(&path, vec![1; 1 << 20]).unwrap();
        let units = tear_units(&File::open(&path).unwrap(), &device_facts(&path));
        assert!(
            units.alignment.as_ref().map_or_else(|why| !why.is_empty(), |bytes| bytes.is_power_of_two()),
            "{units:?}"
        );
        for announced in [units.file, units.device] {
            assert!(announced.map_or_else(|why| !why.is_empty(), |bytes| bytes == 0 || bytes.is_power_of_two()));
        }
    }
}
