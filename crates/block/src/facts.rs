//! Facts about the file system and the device behind a path.
//!
//! Everything comes from `/proc/self/mountinfo`, `/sys/dev/block`, `statvfs` and `fstat`; this module runs no program
//! and needs no privileges. A report prints these facts beside the figures, since the kernel's configuration is part of
//! the platform. An unknown value carries its reason.

use crate::place::nearest_existing;
use rustix::fs::{FileType, major, minor};
use std::path::{Path, PathBuf};

/// A value, or the reason why it is unknown, fit for `n/a (reason)`.
pub type Known<T> = Result<T, String>;

/// Facts about the file system and device that hold a path. Sizes in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceFacts {
    /// The requested path.
    pub path: PathBuf,
    /// Where its file system is mounted.
    pub mount_point: Known<PathBuf>,
    /// Type of the file system, as in `/proc/self/mountinfo` ("ext4", "xfs").
    pub fs_type: Known<String>,
    /// Options of the mount, then those of the file system, comma-separated.
    pub mount_options: Known<String>,
    /// Whether the file system is in memory (tmpfs, ramfs), so that no figure measured on it describes a device.
    pub is_tmpfs: bool,
    /// Whether the file system bypasses the page cache by mapping persistent memory (`dax` among the options).
    pub dax: Known<bool>,
    /// Bytes an unprivileged user may still allocate.
    pub free_bytes: Known<u64>,
    /// Size of the file system; of a block device named directly, its capacity.
    pub total_bytes: Known<u64>,
    /// Major and minor number of the block device.
    pub device: Known<(u32, u32)>,
    /// Kernel name of the block device ("vda1", "nvme0n1", "dm-0").
    pub kernel_name: Known<String>,
    /// The whole disk: the device itself, or the disk that contains the partition. The facts below describe this disk.
    pub disk: Known<String>,
    /// Kernel names of the devices that a device-mapper or md device is made of; empty for any other.
    pub slaves: Vec<String>,
    /// Vendor's model name.
    pub model: Known<String>,
    /// Whether the kernel treats it as a rotating disk.
    pub rotational: Known<bool>,
    /// The I/O scheduler in force.
    pub scheduler: Known<String>,
    /// Requests the block layer queues per hardware queue (`nr_requests`).
    pub nr_requests: Known<u64>,
    /// Hardware queues.
    pub hardware_queues: Known<u64>,
    /// Smallest addressable unit in bytes: the alignment that direct I/O needs.
    pub logical_block_bytes: Known<u64>,
    /// Smallest unit the device writes without reading first, in bytes.
    pub physical_block_bytes: Known<u64>,
    /// "write back" (volatile: a durable write needs a flush) or "write through".
    pub write_cache: Known<String>,
    /// Whether a single write can be forced to stable media without a flush of the whole cache.
    pub fua: Known<bool>,
}

/// Describes the location of `path`. If the path does not exist, its nearest existing ancestor counts. For a block
/// device, describes the device, not the file system that holds its node.
pub fn device_facts(path: &Path) -> DeviceFacts {
    facts_of(&Roots::real(), path)
}

/// Kernel names of the whole devices under `paths`, without repetition. A partition counts as its disk; a mapped or
/// striped device (dm, md) as itself. Paths on no block device (tmpfs, network file systems) yield none.
pub fn disks_under(paths: &[PathBuf]) -> Vec<String> {
    let disks = paths.iter().filter_map(|path| device_facts(path).disk.ok());
    let mut names: Vec<String> = disks.collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// As [`device_facts`], reading the kernel's file systems below `roots`.
pub(crate) fn facts_of(roots: &Roots, path: &Path) -> DeviceFacts {
    let mountinfo = std::fs::read_to_string(roots.proc.join("self/mountinfo")).unwrap_or_default();
    facts_in(roots, &mountinfo, path)
}

/// Where the kernel's file systems are mounted; tests substitute their own.
pub(crate) struct Roots {
    pub(crate) proc: PathBuf,
    pub(crate) sys: PathBuf,
}

impl Roots {
    pub(crate) fn real() -> Self {
        Self { proc: PathBuf::from("/proc"), sys: PathBuf::from("/sys") }
    }

    /// The directory of a block device in sysfs.
    pub(crate) fn device_dir(&self, (major, minor): (u32, u32)) -> Option<PathBuf> {
        std::fs::canonicalize(self.sys.join(format!("dev/block/{major}:{minor}"))).ok()
    }
}

impl DeviceFacts {
    /// Every fact as a name and a printable value, `n/a (reason)` where unknown, in the order of the fields.
    pub fn lines(&self) -> Vec<(&'static str, String)> {
        fn text<T: ToString>(value: &Known<T>) -> String {
            value.as_ref().map_or_else(|why| format!("n/a ({why})"), ToString::to_string)
        }
        fn yes_no(value: &Known<bool>) -> String {
            text(&value.as_ref().map(|&yes| if yes { "yes" } else { "no" }).map_err(Clone::clone))
        }
        let slaves = if self.slaves.is_empty() { "none".to_owned() } else { self.slaves.join(", ") };
        vec![
            ("path", self.path.display().to_string()),
            ("mount_point", text(&self.mount_point.as_ref().map(|path| path.display()).map_err(Clone::clone))),
            ("fs_type", text(&self.fs_type)),
            ("mount_options", text(&self.mount_options)),
            ("is_tmpfs", yes_no(&Ok(self.is_tmpfs))),
            ("dax", yes_no(&self.dax)),
            ("free_bytes", text(&self.free_bytes)),
            ("total_bytes", text(&self.total_bytes)),
            (
                "device",
                text(&self.device.as_ref().map(|(major, minor)| format!("{major}:{minor}")).map_err(Clone::clone)),
            ),
            ("kernel_name", text(&self.kernel_name)),
            ("disk", text(&self.disk)),
            ("slaves", slaves),
            ("model", text(&self.model)),
            ("rotational", yes_no(&self.rotational)),
            ("scheduler", text(&self.scheduler)),
            ("nr_requests", text(&self.nr_requests)),
            ("hardware_queues", text(&self.hardware_queues)),
            ("logical_block_bytes", text(&self.logical_block_bytes)),
            ("physical_block_bytes", text(&self.physical_block_bytes)),
            ("write_cache", text(&self.write_cache)),
            ("fua", yes_no(&self.fua)),
        ]
    }
}

/// One line of `/proc/self/mountinfo` (proc(5), "mountinfo").
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Major and minor number of the file system.
    pub device: (u32, u32),
    /// The directory inside the file system that is mounted.
    pub root: PathBuf,
    /// Where it is mounted.
    pub mount_point: PathBuf,
    /// Its type ("ext4", "cgroup2").
    pub fs_type: String,
    /// What is mounted ("/dev/vda1").
    pub source: String,
    /// Options of the mount, then those of the file system, comma-separated.
    pub options: String,
}

/// Parses mountinfo text, in mount order. Skips lines of unknown shape.
pub fn mounts(text: &str) -> Vec<Mount> {
    text.lines().filter_map(mount).collect()
}

fn mount(line: &str) -> Option<Mount> {
    let (before, after) = line.split_once(" - ")?;
    let mut fields = before.split(' ').skip(2);
    let device = number_pair(fields.next()?)?;
    let root = PathBuf::from(unescape(fields.next()?));
    let mount_point = PathBuf::from(unescape(fields.next()?));
    let mount_options = fields.next()?;
    let mut fields = after.split(' ');
    let fs_type = unescape(fields.next()?);
    let source = unescape(fields.next()?);
    let own_options = fields.next().unwrap_or_default();
    let mut options = mount_options.to_owned();
    for option in own_options.split(',').filter(|option| !option.is_empty()) {
        if !options.split(',').any(|present| present == option) {
            options.push(',');
            options.push_str(option);
        }
    }
    Some(Mount { device, root, mount_point, fs_type, source, options })
}

/// Parses a number pair such as "254:0".
pub(crate) fn number_pair(text: &str) -> Option<(u32, u32)> {
    let (major, minor) = text.trim().split_once(':')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

/// Decodes the octal escapes (`\040` for a blank) of mountinfo and `/proc/swaps`.
pub(crate) fn unescape(field: &str) -> String {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        let code = tail.get(..3).filter(|_| first == b'\\').and_then(|digits| {
            let digits = std::str::from_utf8(digits).ok()?;
            u8::from_str_radix(digits, 8).ok()
        });
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[3..];
            }
            None => {
                bytes.push(first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The device number, if the path is a block device.
pub(crate) fn block_device_at(path: &Path) -> Option<(u32, u32)> {
    let stat = rustix::fs::stat(path).ok()?;
    let is_block = FileType::from_raw_mode(stat.st_mode) == FileType::BlockDevice;
    is_block.then(|| (major(stat.st_rdev), minor(stat.st_rdev)))
}

fn facts_in(roots: &Roots, mountinfo: &str, path: &Path) -> DeviceFacts {
    let existing = nearest_existing(path);
    let real = std::fs::canonicalize(existing).unwrap_or_else(|_| existing.to_path_buf());
    if let Some(device) = block_device_at(&real) {
        let mut facts = on_device(roots, path, Ok(device));
        facts.total_bytes = number(&facts_dir(roots, device), "size").map(|sectors| sectors * 512);
        return facts;
    }
    // Of the mounts with the longest matching prefix, the last one is visible.
    let mount = mounts(mountinfo)
        .into_iter()
        .filter(|mount| real.starts_with(&mount.mount_point))
        .max_by_key(|mount| mount.mount_point.components().count());
    let mut facts = on_device(roots, path, device_of(mount.as_ref()));
    if let Ok(space) = rustix::fs::statvfs(&real) {
        facts.free_bytes = Ok(space.f_bavail.saturating_mul(space.f_frsize));
        facts.total_bytes = Ok(space.f_blocks.saturating_mul(space.f_frsize));
    }
    if let Some(mount) = mount {
        facts.is_tmpfs = matches!(mount.fs_type.as_str(), "tmpfs" | "ramfs");
        let dax = mount.options.split(',').any(|option| matches!(option, "dax" | "dax=always" | "dax=inode"));
        facts.dax = Ok(dax);
        facts.mount_point = Ok(mount.mount_point);
        facts.fs_type = Ok(mount.fs_type);
        facts.mount_options = Ok(mount.options);
    }
    facts
}

/// The block device below a mount. Some file systems (btrfs) show an anonymous number; then the mount source names the
/// device.
fn device_of(mount: Option<&Mount>) -> Known<(u32, u32)> {
    let mount = mount.ok_or("no mount in /proc/self/mountinfo contains this path")?;
    if mount.device.0 != 0 {
        return Ok(mount.device);
    }
    block_device_at(Path::new(&mount.source))
        .ok_or_else(|| format!("file system {} has no single block device", mount.fs_type))
}

fn facts_dir(roots: &Roots, device: (u32, u32)) -> Known<PathBuf> {
    roots.device_dir(device).ok_or_else(|| format!("/sys/dev/block has no {}:{}", device.0, device.1))
}

/// Fills in everything that follows from the device number and leaves the facts about the file system unknown.
fn on_device(roots: &Roots, path: &Path, device: Known<(u32, u32)>) -> DeviceFacts {
    let dir = device.clone().and_then(|device| facts_dir(roots, device));
    let disk_dir = dir.clone().map(|dir| match dir.parent() {
        Some(parent) if dir.join("partition").exists() => parent.to_path_buf(),
        _ => dir,
    });
    let queue = disk_dir.clone().map(|dir| dir.join("queue"));
    let none =
        || if device.is_ok() { "a block device, not a file system" } else { "no mount contains this path" }.to_owned();
    DeviceFacts {
        path: path.to_path_buf(),
        mount_point: Err(none()),
        fs_type: Err(none()),
        mount_options: Err(none()),
        is_tmpfs: false,
        dax: Err(none()),
        free_bytes: Err(none()),
        total_bytes: Err(none()),
        kernel_name: dir.clone().and_then(|dir| name_of(&dir)),
        disk: disk_dir.clone().and_then(|dir| name_of(&dir)),
        slaves: dir.as_ref().map(|dir| names_in(&dir.join("slaves"))).unwrap_or_default(),
        model: attribute(&disk_dir, "device/model"),
        rotational: number(&queue, "rotational").map(|value| value != 0),
        scheduler: attribute(&queue, "scheduler").map(|text| active_scheduler(&text)),
        nr_requests: number(&queue, "nr_requests"),
        hardware_queues: disk_dir.and_then(|dir| match names_in(&dir.join("mq")).len() as u64 {
            0 => Err("the driver has no multi-queue directory".to_owned()),
            queues => Ok(queues),
        }),
        logical_block_bytes: number(&queue, "logical_block_size"),
        physical_block_bytes: number(&queue, "physical_block_size"),
        write_cache: attribute(&queue, "write_cache"),
        fua: number(&queue, "fua").map(|value| value != 0),
        device,
    }
}

fn name_of(dir: &Path) -> Known<String> {
    dir.file_name().map(|name| name.to_string_lossy().into_owned()).ok_or_else(|| "the device has no name".to_owned())
}

/// The sorted entries of a directory; empty if there is no such directory.
pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .collect();
    names.sort_unstable();
    names
}

fn attribute(dir: &Known<PathBuf>, name: &str) -> Known<String> {
    let file = dir.clone()?.join(name);
    match std::fs::read_to_string(&file).as_deref().map(str::trim) {
        Ok("") => Err(format!("{name} is empty")),
        Ok(text) => Ok(text.to_owned()),
        Err(_) => Err(format!("the device does not report {name}")),
    }
}

fn number(dir: &Known<PathBuf>, name: &str) -> Known<u64> {
    let text = attribute(dir, name)?;
    text.parse().map_err(|_| format!("{name} is \"{text}\""))
}

/// The active scheduler: in brackets in "none [mq-deadline] kyber", or the only name.
fn active_scheduler(text: &str) -> String {
    text.split_once('[').and_then(|(_, rest)| rest.split_once(']')).map_or(text, |(name, _)| name).to_owned()
}

#[cfg(test)]
mod tests;
