//! Resource usage of the calling thread as the kernel reports it, and the precision of its timers.

use crate::BlockError;
use std::io;
use std::mem::MaybeUninit;

/// Usage since the thread started (`getrusage(RUSAGE_THREAD)`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ThreadUsage {
    /// Time in user mode, ns, as precise as the kernel's split of the time.
    pub user_ns: u64,
    /// Time in the kernel, ns.
    pub system_ns: u64,
    /// Context switches, voluntary and involuntary.
    pub context_switches: u64,
    /// Page faults that needed I/O.
    pub major_faults: u64,
    /// Page faults that did not need I/O.
    pub minor_faults: u64,
}

impl ThreadUsage {
    /// The usage of the calling thread so far.
    #[must_use]
    pub fn now() -> Self {
        let mut usage = MaybeUninit::<libc::rusage>::zeroed();
        // SAFETY: the kernel writes one `rusage` to the address given, which is valid for it.
        let answer = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
        if answer != 0 {
            return Self::default();
        }
        // SAFETY: zeroed above, which is a valid value of this plain structure, and filled by the kernel.
        let usage = unsafe { usage.assume_init() };
        let ns = |time: libc::timeval| time.tv_sec as u64 * 1_000_000_000 + time.tv_usec as u64 * 1000;
        let count = |n: libc::c_long| u64::try_from(n).unwrap_or(0);
        Self {
            user_ns: ns(usage.ru_utime),
            system_ns: ns(usage.ru_stime),
            context_switches: count(usage.ru_nvcsw) + count(usage.ru_nivcsw),
            major_faults: count(usage.ru_majflt),
            minor_faults: count(usage.ru_minflt),
        }
    }

    /// The usage since `earlier`, a reading of the same thread.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            user_ns: self.user_ns.saturating_sub(earlier.user_ns),
            system_ns: self.system_ns.saturating_sub(earlier.system_ns),
            context_switches: self.context_switches.saturating_sub(earlier.context_switches),
            major_faults: self.major_faults.saturating_sub(earlier.major_faults),
            minor_faults: self.minor_faults.saturating_sub(earlier.minor_faults),
        }
    }
}

/// Limits how much later than requested the kernel may wake the calling thread, in ns; 50 us by default
/// (`PR_SET_TIMERSLACK`). A thread with a schedule should set 1.
///
/// # Errors
/// [`BlockError::Invalid`] if the kernel refuses it.
pub fn set_timer_slack(slack_ns: u64) -> Result<(), BlockError> {
    // SAFETY: this option of `prctl` takes a number and touches no memory of ours.
    let answer = unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, slack_ns as libc::c_ulong, 0, 0, 0) };
    if answer == 0 {
        return Ok(());
    }
    Err(BlockError::Invalid { what: format!("a timer slack of {slack_ns} ns: {}", io::Error::last_os_error()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_the_thread_grows_with_its_work() {
        let before = ThreadUsage::now();
        let mut x = 1_u64;
        let used = loop {
            x = std::hint::black_box(x.wrapping_mul(3));
            let used = ThreadUsage::now().since(&before);
            if used.user_ns + used.system_ns > 5_000_000 {
                break used;
            }
        };
        let other = std::thread::spawn(ThreadUsage::now).join().unwrap();
        assert!(other.user_ns + other.system_ns < used.user_ns + used.system_ns);
    }

    #[test]
    fn the_slack_can_be_set() {
        std::thread::spawn(|| set_timer_slack(1)).join().unwrap().unwrap();
    }
}
