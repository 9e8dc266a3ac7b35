//! What the kernel uses files and devices for: swap space, the content of loop devices, mounted images.
//!
//! A file can have any number of names: hard links, mounts of its directory or of itself, other mount namespaces, the
//! layers below an overlay. So this module compares device and inode. It asks the kernel for them where that is allowed
//! (`LOOP_GET_STATUS64`), and otherwise uses the name in sysfs.

use crate::facts::{Mount, Roots, block_device_at, mounts, names_in, number_pair, unescape};
use rustix::fs::{Mode, OFlags, major, minor};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Asks a loop device for its backing file or device (linux/loop.h).
const LOOP_GET_STATUS64: libc::Ioctl = 0x4C05;
/// `struct loop_info64` in 8-byte words: it starts with device, inode and, if a block device is below, that device's
/// number.
const LOOP_INFO_WORDS: usize = 232 / 8;

/// Device and inode.
pub(super) type Identity = (u64, u64);

/// A loop device in use.
#[derive(Debug)]
pub(super) struct Loop {
    /// "loop0"
    pub(super) name: String,
    pub(super) number: Option<(u32, u32)>,
    /// The files that change with its content.
    pub(super) files: Vec<Identity>,
    /// The backing block device.
    pub(super) device: Option<(u32, u32)>,
}

/// The files and devices in use by the kernel, at one moment.
#[derive(Debug)]
pub(super) struct Uses {
    pub(super) swaps: Vec<PathBuf>,
    pub(super) loops: Vec<Loop>,
    pub(super) mounts: Vec<Mount>,
}

impl Uses {
    pub(super) fn find(roots: &Roots, mountinfo: &str) -> Self {
        let mounts = mounts(mountinfo);
        Self { swaps: swap_areas(roots), loops: loops(roots, &mounts), mounts }
    }

    /// What a regular file is used for, and the remedy.
    pub(super) fn of_file(&self, path: &Path) -> Option<(String, &'static str)> {
        let wanted = identities(path, &self.mounts);
        if let Some((why, remedy)) = self.of_content(&wanted) {
            return Some((format!("it {why}"), remedy));
        }
        let is_below = |used: &&Loop| used.files.iter().any(|file| wanted.contains(file));
        let used = self.loops.iter().find(is_below)?;
        let remedy = "detach it first (losetup --detach) or name another file";
        Some((format!("it is the content of the loop device {}", used.name), remedy))
    }

    /// Uses of files other than as content of loop devices, and the remedy.
    pub(super) fn of_content(&self, wanted: &[Identity]) -> Option<(String, &'static str)> {
        let same = |other: &Path| {
            let others = identities(other, &self.mounts);
            others.iter().any(|other| wanted.contains(other))
        };
        if self.swaps.iter().any(|area| same(area)) {
            let remedy = "free it first (swapoff) or name another file";
            return Some(("is swap space in use".to_owned(), remedy));
        }
        // File systems that read images themselves, in the kernel or in user space.
        let is_source = |mount: &&Mount| {
            let source = Path::new(&mount.source);
            source.is_absolute() && source.is_file() && same(source)
        };
        let mount = self.mounts.iter().find(is_source)?;
        Some((format!("is mounted at {}", mount.mount_point.display()), "unmount it first or name another file"))
    }
}

/// The files and devices in use as swap space, from `/proc/swaps`. Kernels without swap have no such file.
fn swap_areas(roots: &Roots) -> Vec<PathBuf> {
    let text = std::fs::read_to_string(roots.proc.join("swaps")).unwrap_or_default();
    let names = text.lines().skip(1);
    names.filter_map(|line| line.split_ascii_whitespace().next()).map(|name| PathBuf::from(unescape(name))).collect()
}

/// The loop devices in use.
fn loops(roots: &Roots, mounts: &[Mount]) -> Vec<Loop> {
    let block = roots.sys.join("block");
    let names = names_in(&block).into_iter();
    names
        .filter_map(|name| {
            let directory = block.join(&name);
            let shown = std::fs::read_to_string(directory.join("loop/backing_file")).ok()?;
            // The name as this process sees it; the name of a removed file leads nowhere.
            let shown = PathBuf::from(shown.trim_end_matches('\n'));
            let mut files = identities(&shown, mounts);
            let mut device = block_device_at(&shown);
            let number = std::fs::read_to_string(directory.join("dev")).ok();
            let number = number.as_deref().and_then(number_pair);
            if let Some(asked) = number.and_then(|number| ask(&name, number)) {
                files.retain(|file| asked.file == *file || shown_is(&shown, asked.file));
                files.push(asked.file);
                device = asked.device.or(device.filter(|_| shown_is(&shown, asked.file)));
            }
            Some(Loop { name, number, files, device })
        })
        .collect()
}

/// Whether a name leads to this file.
fn shown_is(path: &Path, file: Identity) -> bool {
    std::fs::metadata(path).is_ok_and(|found| (found.dev(), found.ino()) == file)
}

/// The answer of a loop device about its backing file or device.
struct Asked {
    file: Identity,
    device: Option<(u32, u32)>,
}

/// Asks the loop device `name` of known number; `None` if that is not allowed or it has no node here.
fn ask(name: &str, number: (u32, u32)) -> Option<Asked> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let node = rustix::fs::open(Path::new("/dev").join(name), flags, Mode::empty()).ok()?;
    let stat = rustix::fs::fstat(node.as_fd()).ok()?;
    if (major(stat.st_rdev), minor(stat.st_rdev)) != number {
        return None;
    }
    let mut words = [0_u64; LOOP_INFO_WORDS];
    // SAFETY: the kernel writes one `loop_info64`, 232 bytes of plain numbers, to the address given, which is valid for
    // that many bytes and aligned for its largest field.
    let answer = unsafe { libc::ioctl(node.as_raw_fd(), LOOP_GET_STATUS64, words.as_mut_ptr()) };
    if answer != 0 {
        return None;
    }
    let [device, inode, below, ..] = words;
    let below = (decoded(below) != decoded(device) && below != 0).then(|| decoded(below));
    let (major, minor) = decoded(device);
    Some(Asked { file: (rustix::fs::makedev(major, minor), inode), device: below })
}

/// Decodes the kernel's packed device number (`huge_encode_dev`).
fn decoded(number: u64) -> (u32, u32) {
    let major = (number & 0xf_ff00) >> 8;
    let minor = (number & 0xff) | ((number >> 12) & 0xf_ff00);
    (major as u32, minor as u32)
}

/// The file at a path and those that change with it: the same file in the layers of an overlay.
fn identities(path: &Path, mounts: &[Mount]) -> Vec<Identity> {
    let Ok(found) = std::fs::metadata(path) else {
        return Vec::new();
    };
    let mut all = vec![(found.dev(), found.ino())];
    let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf());
    // Of the mounts with the longest matching prefix, the last one is visible.
    let above = mounts.iter().filter(|mount| real.starts_with(&mount.mount_point));
    let seen = above.max_by_key(|mount| mount.mount_point.components().count());
    let Some(overlay) = seen.filter(|mount| mount.fs_type == "overlay") else {
        return all;
    };
    let Ok(inside) = real.strip_prefix(&overlay.mount_point) else {
        return all;
    };
    // Only the uppermost layer that has the file is visible through the overlay.
    let lying = overlay_layers(overlay).iter().find_map(|layer| std::fs::metadata(layer.join(inside)).ok());
    all.extend(lying.map(|found| (found.dev(), found.ino())));
    all
}

/// The layers of an overlay, the upper one first, as far as they are visible from here.
fn overlay_layers(mount: &Mount) -> Vec<PathBuf> {
    let value = |option: &str, name: &str| {
        let value = option.strip_prefix(name)?.strip_prefix('=')?;
        Some(unescape(value))
    };
    let options = || mount.options.split(',');
    let upper = options().filter_map(|option| value(option, "upperdir"));
    let lower = options().filter_map(|option| value(option, "lowerdir").or_else(|| value(option, "lowerdir+")));
    let lower = lower.flat_map(|list| list.split(':').map(str::to_owned).collect::<Vec<_>>());
    upper.chain(lower).map(PathBuf::from).collect()
}
