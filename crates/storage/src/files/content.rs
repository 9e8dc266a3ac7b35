//! Which parts of a file hold data: the rest reads as zeroes without any device being asked.

use rustix::fs::SeekFrom;
use rustix::io::Errno;
use std::fs::File;
use std::path::Path;

/// Maximum number of extents to examine before the count is abandoned.
const MOST_EXTENTS: usize = 4096;

/// First byte below `end` that was never written (a hole, or allocated space that reads as zeroes); `None` if all of it
/// is data, or the file system cannot tell.
pub(super) fn first_hole(file: &File, end: u64) -> Option<u64> {
    if end == 0 {
        return None;
    }
    match rustix::fs::seek(file, SeekFrom::Hole(0)) {
        Ok(hole) => (hole < end).then_some(hole),
        // The file is empty: nothing was ever written.
        Err(Errno::NXIO) => Some(0),
        Err(_) => None,
    }
}

/// Bytes from `start` to `end` that were never written; 0 if the file system cannot tell.
pub(super) fn hole_bytes(path: &Path, start: u64, end: u64) -> u64 {
    let Ok(file) = File::open(path) else {
        return 0;
    };
    let (mut at, mut holes) = (start, 0);
    for _ in 0..MOST_EXTENTS {
        if at >= end {
            break;
        }
        let Ok(hole) = rustix::fs::seek(&file, SeekFrom::Hole(at)) else {
            break;
        };
        if hole >= end {
            break;
        }
        let data = match rustix::fs::seek(&file, SeekFrom::Data(hole)) {
            Ok(data) => data.min(end),
            Err(_) => end,
        };
        holes += data - hole;
        at = data;
    }
    holes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    #[test]
    fn holes_are_found_and_counted() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("f");
        let file = File::create_new(&path).unwrap();
        assert_eq!(first_hole(&file, 0), None);
        assert_eq!(first_hole(&file, 1 << 20), Some(0));
        file.set_len(1 << 20).unwrap();
        assert_eq!(first_hole(&file, 1 << 20), Some(0));
        assert_eq!(hole_bytes(&path, 0, 1 << 20), 1 << 20);
        file.write_all_at(&[1; 65_536], 0).unwrap();
        file.write_all_at(&[1; 65_536], 512 << 10).unwrap();
        assert_eq!(first_hole(&file, 1 << 20), Some(65_536));
        assert_eq!(first_hole(&file, 65_536), None);
        assert_eq!(hole_bytes(&path, 0, 1 << 20), (1 << 20) - 131_072);
        assert_eq!(hole_bytes(&path, 65_536, 512 << 10), (512 << 10) - 65_536);
        assert_eq!(hole_bytes(&path, 0, 65_536), 0);
    }
}
