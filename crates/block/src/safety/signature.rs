//! Signatures that show that a device holds data.
//!
//! Offsets and magic numbers are those of libblkid's superblock probes (util-linux) and of the specifications of the
//! formats. A missed signature is a lost disk, so doubtful cases count as signatures.

use crate::{BlockError, DirectFile, OpenMode};
use std::path::Path;

/// Bytes examined at each end.
const SPAN: usize = 256 << 10;

/// Magic bytes at fixed offsets from the start.
const AT_START: &[(usize, &[u8], &str)] = &[
    (0x438, &[0x53, 0xef], "an ext2/ext3/ext4 file system"),
    (0, b"XFSB", "an XFS file system"),
    (0x1_0040, b"_BHRfS_M", "a btrfs file system"),
    (0x400, &[0x10, 0x20, 0xf5, 0xf2], "an F2FS file system"),
    (0x1018, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca], "a bcache or bcachefs device"),
    (3, b"NTFS    ", "an NTFS file system"),
    (3, b"EXFAT   ", "an exFAT file system"),
    (0x36, b"FAT", "a FAT file system"),
    (0x52, b"FAT32", "a FAT file system"),
    (0x8001, b"CD001", "an ISO 9660 file system"),
    (0x8000, b"JFS1", "a JFS file system"),
    (0x1_0034, b"ReIsEr", "a ReiserFS file system"),
    (0x1_0000, &[0x01, 0x16, 0x19, 0x70], "a GFS2 file system"),
    (0x2000, b"OCFSV2", "an OCFS2 file system"),
    (0x1000, b"OCFSV2", "an OCFS2 file system"),
    (0x800, b"OCFSV2", "an OCFS2 file system"),
    (0x400, b"OCFSV2", "an OCFS2 file system"),
    (0x20, b"NXSB", "an APFS container"),
    (0, b"hsqs", "a SquashFS file system"),
    (0x400, &[0xe2, 0xe1, 0xf5, 0xe0], "an EROFS file system"),
    (0, b"LUKS\xba\xbe", "a LUKS encrypted volume"),
    (0, b"-FVE-FS-", "a BitLocker volume"),
    (0x20, b"ORCLDISK", "an Oracle ASM disk header"),
    (0, b"bluestore block device", "a Ceph BlueStore device"),
    (0, &[0xfc, 0x4e, 0x2b, 0xa9], "a member of an md array"),
    (0x1000, &[0xfc, 0x4e, 0x2b, 0xa9], "a member of an md array"),
    (512, b"EFI PART", "a GPT partition table"),
    (4096, b"EFI PART", "a GPT partition table"),
    (0, b"ASSAYMBR", "a part of an assay data set"),
    (510, &[0x55, 0xaa], "an MBR partition table or boot sector"),
];

/// The content of a device in words, or `None` if unknown.
pub(super) fn found_on(path: &Path) -> Result<Option<&'static str>, BlockError> {
    let device = DirectFile::open(path, OpenMode { read: true, write: false, direct: false })?;
    let len = device.len()?;
    let mut start = vec![0; SPAN];
    let got = device.read_at(0, &mut start)?;
    start.truncate(got);
    let end_at = len.saturating_sub(SPAN as u64) & !511;
    let mut end = vec![0; SPAN + 512];
    let got = device.read_at(end_at, &mut end)?;
    end.truncate(got);
    Ok(found_in(&start, &end, end_at, len))
}

/// Searches the start of a device and its end, which begins at `end_at` of `len` bytes.
fn found_in(start: &[u8], end: &[u8], end_at: u64, len: u64) -> Option<&'static str> {
    let has = |place: usize, magic: &[u8]| start.get(place..).is_some_and(|rest| rest.starts_with(magic));
    // The swap signature lies at the end of the first page, whose size is 4 to 64 KiB.
    let swap = [4096, 8192, 16_384, 32_768, 65_536]
        .iter()
        .any(|page| has(page - 10, b"SWAPSPACE2") || has(page - 10, b"SWAP-SPACE"));
    if swap {
        return Some("swap space");
    }
    // LVM puts its label into one of the first four sectors.
    if (0..4).any(|sector| has(sector * 512, b"LABELONE")) {
        return Some("an LVM physical volume");
    }
    if let Some((.., what)) = AT_START.iter().find(|(place, magic, _)| has(*place, magic)) {
        return Some(what);
    }
    // ZFS: uberblocks from 128 KiB on, one per KiB at least, in either byte order.
    let zfs = (0..128).any(|slot| {
        let place = (128 << 10) + slot * 1024;
        has(place, &0x00ba_b10c_u64.to_le_bytes()) || has(place, &0x00ba_b10c_u64.to_be_bytes())
    });
    if zfs {
        return Some("a ZFS device");
    }
    let has_at_end = |place: u64, magic: &[u8]| {
        let place = place.checked_sub(end_at).and_then(|place| usize::try_from(place).ok());
        place.and_then(|place| end.get(place..)).is_some_and(|rest| rest.starts_with(magic))
    };
    let md = [0xfc, 0x4e, 0x2b, 0xa9];
    // md 0.90: 64 KiB before the last boundary of 64 KiB; md 1.0: 8 KiB before the end, on a boundary of 4 KiB.
    let md_places = [(len & !0xffff).checked_sub(0x1_0000), (len & !511).checked_sub(8192).map(|place| place & !4095)];
    if md_places.iter().flatten().any(|&place| has_at_end(place, &md)) {
        return Some("a member of an md array");
    }
    if [512, 4096].iter().any(|sector| len.checked_sub(*sector).is_some_and(|place| has_at_end(place, b"EFI PART"))) {
        return Some("the backup of a GPT partition table");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEN: usize = 1 << 20;

    fn search(image: &[u8]) -> Option<&'static str> {
        let end_at = image.len() - SPAN;
        found_in(&image[..SPAN], &image[end_at..], end_at as u64, image.len() as u64)
    }

    #[test]
    fn every_signature_is_found_where_it_stands() {
        for (place, magic, what) in AT_START {
            let mut image = vec![0; LEN];
            image[*place..place + magic.len()].copy_from_slice(magic);
            let found = search(&image).expect(what);
            // A FAT boot sector is found by either of its two names.
            assert_eq!(found, *what);
        }
        let elsewhere: [(usize, &[u8], &str); 8] = [
            (4086, b"SWAPSPACE2", "swap"),
            (65_526, b"SWAPSPACE2", "swap"),
            (512, b"LABELONE", "LVM"),
            ((128 << 10) + 5 * 1024, &0x00ba_b10c_u64.to_be_bytes(), "ZFS"),
            ((255 << 10), &0x00ba_b10c_u64.to_le_bytes(), "ZFS"),
            (LEN - 0x1_0000, &[0xfc, 0x4e, 0x2b, 0xa9], "md"),
            (LEN - 8192, &[0xfc, 0x4e, 0x2b, 0xa9], "md"),
            (LEN - 512, b"EFI PART", "GPT"),
        ];
        for (place, magic, what) in elsewhere {
            let mut image = vec![0; LEN];
            image[place..place + magic.len()].copy_from_slice(magic);
            assert!(search(&image).expect(what).contains(what));
        }
    }

    #[test]
    fn an_empty_or_random_device_carries_none() {
        assert_eq!(search(&vec![0; LEN]), None);
        assert_eq!(search(&vec![0xa5; LEN]), None);
        assert_eq!(found_in(&[], &[], 0, 0), None);
        assert_eq!(found_in(&[0; 512], &[0; 512], 0, 512), None);
    }

    #[test]
    fn real_tools_leave_signatures_that_are_found() {
        let place = crate::testing::directory();
        let path = place.path().join("image");
        std::fs::write(&path, vec![0; 8 << 20]).unwrap();
        assert_eq!(found_on(&path).unwrap(), None);
        let Ok(made) = std::process::Command::new("mkswap").arg(&path).output() else {
            eprintln!("skipped: no mkswap in the search path");
            return;
        };
        assert!(made.status.success(), "{made:?}");
        assert_eq!(found_on(&path).unwrap(), Some("swap space"));
    }
}
