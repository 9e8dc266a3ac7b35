//! From a path to the whole block device under it.

use super::text::{self, Mount};
use rustix::fs::{FileType, major, minor, stat};
use std::fs;
use std::path::{Path, PathBuf};

/// Kernel names of the whole devices under `paths`, without repetition. A partition
/// stands for its disk; a mapped or striped device (dm, md) for itself. Paths on no
/// block device (tmpfs, network file systems) yield none.
#[must_use]
pub fn under(paths: &[PathBuf]) -> Vec<String> {
    let mounts = text::mountinfo(&fs::read_to_string("/proc/self/mountinfo").unwrap_or_default());
    let mut names: Vec<String> = paths
        .iter()
        .filter_map(|path| device_of(path, &mounts))
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The mount that holds `path` or, if it does not exist yet, its nearest ancestor.
#[must_use]
pub fn mount_of(path: &Path) -> Option<Mount> {
    let mounts = text::mountinfo(&fs::read_to_string("/proc/self/mountinfo").ok()?);
    let existing = nearest(path)?;
    text::mount_of(&mounts, existing.to_str()?).cloned()
}

fn nearest(path: &Path) -> Option<PathBuf> {
    let absolute = std::path::absolute(path).ok()?;
    absolute
        .ancestors()
        .find_map(|ancestor| fs::canonicalize(ancestor).ok())
}

fn device_of(path: &Path, mounts: &[Mount]) -> Option<String> {
    let existing = nearest(path)?;
    let file = stat(&existing).ok()?;
    if FileType::from_raw_mode(file.st_mode) == FileType::BlockDevice {
        // A device named itself, not the file system its node lies in.
        return whole(major(file.st_rdev), minor(file.st_rdev));
    }
    if let Some(name) = whole(major(file.st_dev), minor(file.st_dev)) {
        return Some(name);
    }
    // Btrfs and overlays show an anonymous device: ask the mount for its source.
    let source = &text::mount_of(mounts, existing.to_str()?)?.source;
    let source = stat(source.as_str()).ok()?;
    whole(major(source.st_rdev), minor(source.st_rdev))
}

/// The whole device of a device number, by the links of `/sys/dev/block`.
fn whole(major: u32, minor: u32) -> Option<String> {
    let link = format!("/sys/dev/block/{major}:{minor}");
    let node = fs::canonicalize(link).ok()?;
    let node = if node.join("partition").exists() {
        node.parent()?.to_path_buf()
    } else {
        node
    };
    Some(node.file_name()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_found_exists_as_a_block_device() {
        for name in under(&[std::env::temp_dir(), PathBuf::from("/no/such/place")]) {
            assert!(Path::new("/sys/class/block").join(&name).exists(), "{name}");
            assert!(
                !Path::new("/sys/class/block")
                    .join(&name)
                    .join("partition")
                    .exists()
            );
        }
    }

    #[test]
    fn a_path_that_does_not_exist_yet_has_its_ancestors_mount() {
        let mount = mount_of(Path::new("/no/such/place")).expect("the root is mounted");
        assert_eq!(mount.point, "/");
    }

    #[test]
    fn a_device_stands_for_itself() {
        let Some(name) = under(&[std::env::temp_dir()]).pop() else {
            eprintln!("skipped: the temporary directory is on no device");
            return;
        };
        let node = Path::new("/dev").join(&name);
        if node.exists() {
            assert_eq!(under(&[node]), [name]);
        }
    }

    #[test]
    fn memory_file_systems_have_no_device() {
        assert!(under(&[PathBuf::from("/proc")]).is_empty());
    }
}
