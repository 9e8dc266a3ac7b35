//! The kernel's figures for the calling thread: CPU time and run delay.
//!
//! Reading costs some 360 ns (clock) and 10 us (file): at snapshots only.

use assay_measure::clock::Ns;
use rustix::time::{ClockId, clock_gettime};

/// Cumulative since the thread began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadTimes {
    /// `CLOCK_THREAD_CPUTIME_ID`, ns.
    pub cpu_ns: Ns,
    /// Runnable but not on a CPU, ns: second field of `/proc/thread-self/schedstat`; not every kernel counts it.
    pub run_delay_ns: Option<Ns>,
}

impl ThreadTimes {
    /// What was added since an earlier reading of the same thread.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let delay = self.run_delay_ns.zip(before.run_delay_ns);
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(before.cpu_ns),
            run_delay_ns: delay.map(|(now, then)| now.saturating_sub(then)),
        }
    }
}

/// Reads both for the calling thread.
#[must_use]
pub fn read() -> ThreadTimes {
    let cpu = clock_gettime(ClockId::ThreadCPUTime);
    let run_delay_ns = std::fs::read_to_string("/proc/thread-self/schedstat").ok().and_then(|text| run_delay(&text));
    ThreadTimes { cpu_ns: cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64, run_delay_ns }
}

/// `time on CPU, time runnable, slices` (kernel `Documentation/scheduler/sched-stats`).
fn run_delay(text: &str) -> Option<Ns> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_delay_is_the_second_field() {
        assert_eq!(run_delay("123 456 7\n"), Some(456));
        assert_eq!(run_delay(""), None);
        assert_eq!(run_delay("1 x 2"), None);
    }

    #[test]
    fn cpu_time_grows_with_work() {
        let before = read().cpu_ns;
        let mut x = 1_u64;
        while read().cpu_ns == before {
            x = std::hint::black_box(x.wrapping_mul(3));
        }
        assert!(read().cpu_ns > before);
    }
}
