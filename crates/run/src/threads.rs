//! Starting threads: if the host refuses one, the error names the limit.
//!
//! A thread that cannot get its own memory ends the whole process before any of our code runs in it. So code that
//! starts many threads checks first.

use crate::engine::EngineError;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::thread::{Builder, Scope, ScopedJoinHandle};

/// Memory maps of a thread at most: its stack and the one for signals, each with its guard; its buffers and its ring.
const MAPS: u64 = 10;
/// Where the kernel keeps how many memory maps a process may have.
const MOST_MAPS: &str = "/proc/sys/vm/max_map_count";

/// Whether this process can start that many threads (`what`, for messages), as far as this can be known beforehand.
///
/// # Errors
/// `Unusable`, with the limit and how many it allows.
pub fn check_room(count: u64, what: &str) -> Result<(), EngineError> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let most = read(MOST_MAPS).and_then(|text| text.trim().parse::<u64>().ok());
    let maps = read("/proc/self/maps").map_or(0, |text| text.lines().count() as u64);
    let Some(most) = most else { return Ok(()) };
    let room = most.saturating_sub(maps) / MAPS;
    if count <= room {
        return Ok(());
    }
    Err(EngineError::Unusable(format!(
        "{count} {what} are more than this host allows for one process: vm.max_map_count is {most}, enough for {room}; \
         use fewer, or raise it (sysctl vm.max_map_count={})",
        count.saturating_add(1000).saturating_mul(MAPS)
    )))
}

/// Starts a thread of a scope.
///
/// # Errors
/// `Unusable`: the host refuses one more.
pub fn spawn<'scope, T: Send + 'scope>(
    scope: &'scope Scope<'scope, '_>,
    name: String,
    work: impl FnOnce() -> T + Send + 'scope,
) -> Result<ScopedJoinHandle<'scope, T>, EngineError> {
    let started = Builder::new().name(name.clone()).spawn_scoped(scope, work);
    started.map_err(|source| refused(&name, &source))
}

/// The CPU of each of `count` threads that keep a CPU busy, where there are as many CPUs for them; empty otherwise. Left to
/// itself the kernel wakes them all where the disk's interrupt arrives, and they wait for each other while a CPU idles.
#[must_use]
pub(crate) fn homes(count: usize) -> Vec<usize> {
    let Ok(allowed) = sched_getaffinity(None) else {
        return Vec::new();
    };
    let cpus: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect();
    if cpus.len() == count && count > 1 { cpus } else { Vec::new() }
}

/// Keeps the calling thread on a CPU. Where that is refused it stays where the kernel likes.
pub(crate) fn stay_on(cpu: usize) {
    let mut only = CpuSet::new();
    only.set(cpu);
    let _ = sched_setaffinity(None, &only);
}

/// The error for a thread that the host refused.
#[must_use]
pub fn refused(name: &str, source: &std::io::Error) -> EngineError {
    EngineError::Unusable(format!(
        "the host refuses to start the thread {name}: {source}; the limits are ulimit -u (processes of the user), \
         pids.max (of the cgroup) and kernel.threads-max: raise the limit that was reached, or use fewer threads"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_is_started_and_what_does_not_is_refused_with_the_limit() {
        check_room(1, "threads").unwrap();
        let why = check_room(u64::MAX, "clones").unwrap_err();
        assert!(matches!(why, EngineError::Unusable(_)));
        assert!(why.to_string().contains("vm.max_map_count is"), "{why}");
        let answer = std::thread::scope(|scope| {
            let thread = spawn(scope, "one".to_owned(), || 7).unwrap();
            thread.join().unwrap()
        });
        assert_eq!(answer, 7);
    }
}
