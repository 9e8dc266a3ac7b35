//! The claim on a data set: one command at a time, by the lock of its control file.

use super::control::CONTROL_NAME;
use super::control_file::ControlFile;
use assay_run::engine::EngineError;
use assay_run::host::text;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Claims the data set in `dir` for as long as the control file is held.
///
/// # Errors
/// `Unusable`: another command has it, which is named where the kernel tells; I/O errors.
pub(super) fn take(dir: &Path) -> Result<ControlFile, EngineError> {
    match ControlFile::open_locked(dir) {
        Err(_) if ControlFile::in_use(dir)? => Err(in_use_error(dir)),
        opened => opened,
    }
}

/// The refusal of a data set that somebody uses.
pub(super) fn in_use_error(dir: &Path) -> EngineError {
    let who = holder(dir).map_or_else(String::new, |who| format!(" ({who})"));
    EngineError::Unusable(format!(
        "the data set in {} is in use by another assay process{who}; wait until it ends",
        dir.display()
    ))
}

/// Its command, number and age, from the kernel's list of locks.
fn holder(dir: &Path) -> Option<String> {
    let file = fs::metadata(dir.join(CONTROL_NAME)).ok()?;
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
