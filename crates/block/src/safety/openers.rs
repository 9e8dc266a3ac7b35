//! Finds processes that use a device or a file: a virtual machine, a database on raw devices, another assay. The kernel
//! lets any process open an unclaimed device.

use super::bottom::Number;
use super::uses::Identity;
use crate::facts::{Roots, names_in};
use rustix::fs::{AtFlags, CWD, FileType, StatxFlags, makedev};
use std::path::Path;

/// Another process that has one of these open for writing, as "process 42 (qemu)". Only root sees processes of other
/// users.
pub(super) fn writer_of(roots: &Roots, devices: &[Number], files: &[Identity]) -> Option<String> {
    let own = std::process::id().to_string();
    let processes = names_in(&roots.proc).into_iter().filter(|name| name.parse::<u32>().is_ok() && *name != own);
    let mut writers = processes.filter(|name| {
        let process = roots.proc.join(name);
        let open = names_in(&process.join("fd"));
        open.iter().any(|number| is_one(&process.join("fd").join(number), devices, files) && writes(&process, number))
    });
    writers.next().map(|id| called(roots, &id))
}

/// A process that has locked one of these files (flock), as assay does with its data sets. Detects this without taking
/// a lock.
pub(super) fn locker_of(roots: &Roots, files: &[Identity]) -> Option<String> {
    let locks = std::fs::read_to_string(roots.proc.join("locks")).unwrap_or_default();
    locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let at = words.iter().position(|word| *word == "FLOCK")?;
        let [process, file] = [words.get(at + 3)?, words.get(at + 4)?];
        let mut parts = file.split(':');
        let mut device = || u32::from_str_radix(parts.next()?, 16).ok();
        let device = makedev(device()?, device()?);
        let inode = parts.next()?.parse().ok()?;
        files.contains(&(device, inode)).then(|| called(roots, process))
    })
}

fn called(roots: &Roots, id: &str) -> String {
    let name = std::fs::read_to_string(roots.proc.join(id).join("comm")).unwrap_or_default();
    let name = name.trim_end().replace(char::is_control, " ");
    format!("process {id} ({name})")
}

fn is_one(descriptor: &Path, devices: &[Number], files: &[Identity]) -> bool {
    // Uses cached attributes only: a file server that hangs must not be asked.
    let known = rustix::fs::statx(CWD, descriptor, AtFlags::STATX_DONT_SYNC, StatxFlags::TYPE | StatxFlags::INO);
    let Ok(stat) = known else {
        return false;
    };
    match FileType::from_raw_mode(stat.stx_mode.into()) {
        FileType::BlockDevice => devices.contains(&(stat.stx_rdev_major, stat.stx_rdev_minor)),
        FileType::RegularFile => files.contains(&(makedev(stat.stx_dev_major, stat.stx_dev_minor), stat.stx_ino)),
        _ => false,
    }
}

/// Whether a descriptor was opened for writing: the last octal digit of its flags is the access mode.
fn writes(process: &Path, number: &str) -> bool {
    let text = std::fs::read_to_string(process.join("fdinfo").join(number)).unwrap_or_default();
    let flags = text.lines().find_map(|line| line.strip_prefix("flags:"));
    flags.is_some_and(|flags| matches!(flags.trim().chars().last(), Some('1' | '2' | '3' | '5' | '6' | '7')))
}
