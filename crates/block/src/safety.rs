//! Checks that keep a run from overwriting foreign data.
//!
//! They compare device numbers, not names, so they recognise a symbolic link, or a whole disk with a mounted partition.
//! Errors say what was found and name the remedy. Other modules decide what is assay's own data set (markers, control
//! files).

mod bottom;
mod openers;
mod signature;
mod uses;

use crate::BlockError;
use crate::facts::{Roots, block_device_at, names_in};
use bottom::{Kinship, Number, Walked};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use uses::Uses;

/// Checks that writing to `path` destroys no foreign data: the path does not exist yet, or it is an unused block device
/// (by [`check_device_unused`]) without a known signature. Always refuses an existing regular file: only the code that
/// marked it knows whether it is assay's own.
///
/// The answer holds for the moment of the call. The check only reads the device.
///
/// # Errors
/// [`BlockError::Refused`] with the reason and the remedy, or [`BlockError::Io`] if the target cannot be examined.
pub fn check_writable_target(path: &Path) -> Result<(), BlockError> {
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let why = "it is a symbolic link to something that does not exist";
            return if path.is_symlink() { refuse(path, why, "name the target itself") } else { Ok(()) };
        }
        Err(error) => return Err(BlockError::io(path, "examine", error)),
    };
    if metadata.is_file() {
        return refuse(path, "it is an existing file that assay did not create", "remove it or name another one");
    }
    if metadata.is_dir() {
        return refuse(path, "it is a directory", "name a file in it or a block device");
    }
    check_device_unused(path)?;
    match signature::found_on(path)? {
        Some(what) => refuse(
            path,
            format!("it contains {what}"),
            "if you do not need its content, clear it with wipefs --all; otherwise name another device",
        ),
        None => Ok(()),
    }
}

/// Checks that a block device is unused, together with every other device on the same bytes (a partition, its disk, a
/// second loop device of the same file). None of them may be mounted, swap, the content of a loop device, part of
/// another device (device mapper, md, LVM, bcache), claimed in any other way, or open for writing in another process,
/// and no process may hold a lock on the file at the bottom. Refuses a device that cannot be followed to the bottom.
/// Does not look at the content: see [`device_signature`]. No option lifts this refusal.
///
/// # Errors
/// [`BlockError::Refused`] with the use and the remedy, or [`BlockError::Io`].
pub fn check_device_unused(path: &Path) -> Result<(), BlockError> {
    let Some(device) = block_device_at(path) else {
        return refuse(path, "it is neither a regular file nor a block device", "name a new file or a block device");
    };
    match use_of_device(&Roots::real(), device)? {
        Some((why, remedy)) => refuse(path, why, remedy),
        None => check_unclaimed(path),
    }
}

/// The regular files that the kernel uses for another purpose, at one moment.
#[derive(Debug)]
pub struct UsedFiles {
    uses: Uses,
}

impl UsedFiles {
    /// Finds what this host uses now.
    ///
    /// # Errors
    /// [`BlockError::Io`] if the mounts cannot be listed.
    pub fn find() -> Result<Self, BlockError> {
        let roots = Roots::real();
        let mountinfo = read(&roots.proc.join("self/mountinfo"))?;
        Ok(Self { uses: Uses::find(&roots, &mountinfo) })
    }

    /// Checks that an existing regular file, under any of its names, is not in use for another purpose: as swap space,
    /// the content of a loop device or a mounted image. No option lifts this refusal.
    ///
    /// # Errors
    /// [`BlockError::Refused`] with the use and the remedy.
    pub fn check(&self, path: &Path) -> Result<(), BlockError> {
        match self.uses.of_file(path) {
            Some((why, remedy)) => refuse(path, why, remedy),
            None => Ok(()),
        }
    }
}

/// The content of a device in words ("an ext4 file system"), or `None` if nothing known is found, which does not mean
/// that it is empty.
///
/// # Errors
/// [`BlockError::Io`].
pub fn device_signature(path: &Path) -> Result<Option<&'static str>, BlockError> {
    signature::found_on(path)
}

/// A block device opened exclusively: while this value lives, nobody else can mount it or claim it in the same way.
#[derive(Debug)]
pub struct DeviceClaim {
    _descriptor: OwnedFd,
}

/// How often to try a claim that someone else holds; the pause between tries follows.
const CLAIM_TRIES: u32 = 50;
const CLAIM_PAUSE: Duration = Duration::from_millis(10);

/// Claims a block device. Waits briefly for one that was just released: a child that the former holder is forking still
/// has it open until it executes another program, and unlike a lock the claim cannot be released explicitly.
///
/// # Errors
/// [`BlockError::InUse`] if another process has it, otherwise [`BlockError::Io`].
pub fn claim_device(path: &Path) -> Result<DeviceClaim, BlockError> {
    let flags = OFlags::RDONLY | OFlags::EXCL | OFlags::CLOEXEC;
    for _ in 0..CLAIM_TRIES {
        match rustix::fs::open(path, flags, Mode::empty()) {
            Ok(descriptor) => return Ok(DeviceClaim { _descriptor: descriptor }),
            Err(Errno::BUSY) => std::thread::sleep(CLAIM_PAUSE),
            Err(error) => return Err(BlockError::io(path, "claim", error)),
        }
    }
    Err(BlockError::InUse { path: path.to_path_buf() })
}

fn refuse(path: &Path, why: impl Into<String>, remedy: &'static str) -> Result<(), BlockError> {
    Err(BlockError::Refused { path: path.to_path_buf(), why: why.into(), remedy })
}

/// Asks the kernel: a device that is mounted or part of another one cannot be opened exclusively.
fn check_unclaimed(path: &Path) -> Result<(), BlockError> {
    match claim_device(path) {
        Ok(_) => Ok(()),
        Err(BlockError::InUse { .. }) => refuse(
            path,
            "the kernel says it is in use (mounted in another namespace, swap, or part of another device)",
            "free it first or name another device",
        ),
        Err(error) => Err(error),
    }
}

/// The remedies.
const FREE: &str = "free it first (umount, swapoff, remove it from the volume) or name another device";
const END: &str = "end the process or name another device";
const OTHER: &str = "name another device";

/// How this device, or another one on the same bytes, is used, in words, and the remedy.
fn use_of_device(roots: &Roots, device: Number) -> Result<Option<(String, &'static str)>, BlockError> {
    let mountinfo = read(&roots.proc.join("self/mountinfo"))?;
    let uses = Uses::find(roots, &mountinfo);
    let walked = match Walked::down(roots, &uses, device) {
        Ok(walked) => walked,
        // Another device may lead to the same bytes, and nothing could tell.
        Err(why) => {
            return Ok(Some(match use_in(roots, &uses, device, &|_| false) {
                Some(used) => (format!("it {used}"), FREE),
                None => (format!("assay cannot find out what it lies on: {why}"), OTHER),
            }));
        }
    };
    let all = bottom::all(roots, &uses);
    let mut kin: Vec<_> = all.iter().filter_map(|other| Some((walked.kinship(other)?, other))).collect();
    // Actual uses come before devices stacked on top, whatever the kernel's numbering.
    kin.sort_by_key(|(kinship, other)| (*kinship, in_use(&uses, other.number).is_none(), other.number));
    for (kinship, other) in &kin {
        // Devices in between only connect the two and are no use of their own.
        let is_between = |number| *kinship == Kinship::Below && walked.contains(number);
        let used = use_in(roots, &uses, other.number, &is_between);
        if let Some(why) = used.or_else(|| claimed(*kinship, other)) {
            return Ok(Some((format!("{} {why}", named(*kinship, &other.name)), FREE)));
        }
    }
    let files = walked.files();
    if let Some((why, _)) = uses.of_content(&files) {
        return Ok(Some((format!("the file it lies on {why}"), FREE)));
    }
    if let Some(process) = openers::locker_of(roots, &files) {
        return Ok(Some((format!("{process} has locked the file it lies on"), END)));
    }
    let devices: Vec<Number> = kin.iter().map(|(_, other)| other.number).collect();
    let writer = lasting(LASTING, || openers::writer_of(roots, &devices, &files));
    let opened = "has it open for writing, under this name or as another device on the same bytes";
    Ok(writer.map(|process| (format!("{process} {opened}"), END)))
}

/// How long an opener must keep a device open to count, and how often to wait again for a new opener.
const LASTING: Duration = Duration::from_millis(500);
const LASTING_TRIES: u32 = 10;

/// Returns an opener found twice in a row: `losetup` and `mount` open a device only for an instant. If the opener
/// differs each time, returns the last one.
fn lasting(pause: Duration, mut find: impl FnMut() -> Option<String>) -> Option<String> {
    let mut found = find()?;
    for _ in 0..LASTING_TRIES {
        std::thread::sleep(pause);
        let again = find()?;
        if again == found {
            break;
        }
        found = again;
    }
    Some(found)
}

/// Describes a device on the same bytes as the requested one.
fn named(kinship: Kinship, name: &str) -> String {
    match kinship {
        Kinship::Itself => "it".to_owned(),
        Kinship::Partition => format!("its partition {name}"),
        Kinship::Disk => format!("its disk {name}"),
        Kinship::Below => format!("the device {name}, on which it lies,"),
        Kinship::Beside => format!("the device {name}, which has the same bytes,"),
    }
}

/// Whether someone holds an exclusive claim on a device on the same bytes: another run of assay, a mount in another
/// namespace.
fn claimed(kinship: Kinship, other: &Walked) -> Option<String> {
    // The kernel checks a disk against its partitions itself; devices made of others have claimed those.
    let is_asked = matches!(kinship, Kinship::Below | Kinship::Beside);
    let node = Path::new("/dev").join(&other.name);
    let is_it = is_asked && !other.is_held && block_device_at(&node) == Some(other.number);
    let taken = is_it && matches!(claim_device(&node), Err(BlockError::InUse { .. }));
    taken.then(|| "is in use (by another assay, or mounted in another namespace)".to_owned())
}

/// Whether one device number is mounted or swap space.
fn in_use(uses: &Uses, device: Number) -> Option<String> {
    for mount in &uses.mounts {
        // Check the source as well: btrfs shows an anonymous device number.
        if mount.device == device || block_device_at(Path::new(&mount.source)) == Some(device) {
            return Some(format!("is mounted at {}", mount.mount_point.display()));
        }
    }
    let is_it = |path: &PathBuf| block_device_at(path) == Some(device);
    uses.swaps.iter().any(is_it).then(|| "is swap space".to_owned())
}

/// What one device number is used for, ignoring devices that `is_between`.
fn use_in(roots: &Roots, uses: &Uses, device: Number, is_between: &dyn Fn(Number) -> bool) -> Option<String> {
    if let Some(used) = in_use(uses, device) {
        return Some(used);
    }
    // sysfs does not list a loop device among the holders of the device below it.
    let is_below = |used: &&uses::Loop| used.device == Some(device) && !used.number.is_some_and(is_between);
    if let Some(used) = uses.loops.iter().find(is_below) {
        return Some(format!("is the content of the loop device {}", used.name));
    }
    let holders = roots.device_dir(device)?.join("holders");
    let names = names_in(&holders);
    // Devices made of the same parts share them as the tool that created them arranged.
    let is_shared = names.iter().any(|name| bottom::number_in(&holders.join(name)).is_some_and(is_between));
    (!names.is_empty() && !is_shared).then(|| format!("is part of {}", names.join(", ")))
}

fn read(path: &PathBuf) -> Result<String, BlockError> {
    std::fs::read_to_string(path).map_err(|error| BlockError::io(path, "read", error))
}

#[cfg(test)]
mod tests;
