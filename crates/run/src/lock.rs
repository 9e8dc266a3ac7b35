//! Locks of files (`flock`), given back at once.
//!
//! The lock belongs to the open file, not to the process that opened it. A process that is just being forked from this
//! one has the file open too, until it executes another program: closing only our descriptor would leave the file
//! locked until then, and the next command would be told of a process that no longer exists. So this module releases a
//! lock explicitly.

use crate::host::text;
use rustix::fs::{FlockOperation, flock};
use std::fs::{self, File};
use std::io;
use std::ops::Deref;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// An open file, locked as long as this value lives.
#[derive(Debug)]
pub struct Locked<F: AsFd = File>(F);

impl<F: AsFd> Locked<F> {
    /// Locks it for this value alone.
    ///
    /// # Errors
    /// `WouldBlock` if another process has it; I/O errors.
    pub fn exclusive(file: F) -> io::Result<Self> {
        Self::by(file, FlockOperation::NonBlockingLockExclusive)
    }

    /// Locks it against exclusive locks.
    ///
    /// # Errors
    /// `WouldBlock` if another process holds an exclusive lock; I/O errors.
    pub fn shared(file: F) -> io::Result<Self> {
        Self::by(file, FlockOperation::NonBlockingLockShared)
    }

    /// Waits until no other process has it.
    ///
    /// # Errors
    /// I/O errors.
    pub fn awaited(file: F) -> io::Result<Self> {
        Self::by(file, FlockOperation::LockExclusive)
    }

    fn by(file: F, operation: FlockOperation) -> io::Result<Self> {
        flock(&file, operation)?;
        Ok(Self(file))
    }
}

/// Whether an error says that another process has the lock.
#[must_use]
pub fn is_held(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::WouldBlock
}

impl<F: AsFd> Deref for Locked<F> {
    type Target = F;

    fn deref(&self) -> &F {
        &self.0
    }
}

impl<F: AsFd> Drop for Locked<F> {
    fn drop(&mut self) {
        // What cannot be unlocked is unlocked when the last one closes it.
        let _ = flock(&self.0, FlockOperation::Unlock);
    }
}

/// Command, number and age of a process that has locked this file, from the kernel's list of locks; `None` if it tells of none.
#[must_use]
pub fn holder(path: &Path) -> Option<String> {
    let file = fs::metadata(path).ok()?;
    let (major, minor) = (rustix::fs::major(file.dev()), rustix::fs::minor(file.dev()));
    let wanted = format!("{major:02x}:{minor:02x}:{}", file.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid: u32 = locks.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let held = words.get(1) == Some(&"FLOCK") && words.get(5) == Some(&wanted.as_str());
        held.then(|| words.get(4)?.parse().ok()).flatten()
    })?;
    let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let mut words = command.split(|byte| *byte == 0).map(String::from_utf8_lossy);
    // Its first word says which command it is; the others may be anything.
    let word = words.nth(1).filter(|word| word.chars().all(|c| c.is_ascii_lowercase()));
    let word = word.filter(|word| !word.is_empty()).map_or_else(String::new, |word| format!("assay {word}, "));
    let age = age_s(pid).map_or_else(String::new, |s| format!(", for {s} s"));
    Some(format!("{word}process {pid}{age}"))
}

/// Seconds since a process began.
fn age_s(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The 22nd field is the 20th after the name.
    let begun: u64 = text::process_stat(&stat).nth(19)?.parse().ok()?;
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime: f64 = uptime.split_whitespace().next()?.parse().ok()?;
    (uptime as u64).checked_sub(begun / rustix::param::clock_ticks_per_second().max(1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_lock_is_given_back_though_a_child_still_has_the_file() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let opened = || File::open(file.path()).expect("it is there");
        for take in [Locked::exclusive, Locked::shared, Locked::awaited] {
            let ours = take(opened()).expect("free");
            let of_a_child = ours.try_clone().expect("one file, opened once");
            assert!(is_held(&Locked::exclusive(opened()).expect_err("it is locked")));
            drop(ours);
            Locked::exclusive(opened()).expect("free again");
            drop(of_a_child);
        }
    }

    /// The real thing. Where closing gives the lock back, it is met in four of ten rounds.
    #[test]
    fn no_lock_is_met_that_was_given_back_while_programs_are_started() {
        let file = tempfile::NamedTempFile::new().expect("a file");
        let starts = 50;
        let started = AtomicU32::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..starts {
                    assert!(Command::new("true").status().expect("it starts").success());
                    started.fetch_add(1, Ordering::AcqRel);
                }
            });
            while started.load(Ordering::Acquire) < starts {
                let taken = Locked::exclusive(File::open(file.path()).expect("it is there"));
                assert!(taken.is_ok(), "{taken:?}");
            }
        });
    }
}
