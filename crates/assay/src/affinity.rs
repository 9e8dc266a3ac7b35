//! The CPUs this process may run on, as the kernel keeps them for its threads.

use crate::exit::{Code, Failure};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// How many CPUs this thread may use.
pub(crate) fn allowed() -> Result<usize, Failure> {
    Ok(current()?.count() as usize)
}

fn current() -> Result<CpuSet, Failure> {
    sched_getaffinity(None).map_err(|error| failed("reading", error))
}

fn failed(what: &str, error: rustix::io::Errno) -> Failure {
    Failure::new(Code::Unusable, format!("{what} the CPU affinity of this process: {error}"))
}

/// Confines this thread, and with it every thread it starts, until dropped.
#[derive(Debug)]
pub(crate) struct Confined {
    before: CpuSet,
}

impl Confined {
    /// To the first `cpus` of those it may use now.
    pub(crate) fn to(cpus: usize) -> Result<Self, Failure> {
        let before = current()?;
        let mut fewer = CpuSet::new();
        let own = (0..CpuSet::MAX_CPU).filter(|cpu| before.is_set(*cpu));
        for cpu in own.take(cpus) {
            fewer.set(cpu);
        }
        sched_setaffinity(None, &fewer).map_err(|error| failed("setting", error))?;
        Ok(Self { before })
    }
}

impl Drop for Confined {
    fn drop(&mut self) {
        // It was allowed before; should the CPUs be gone meanwhile, the kernel has moved us already.
        let _ = sched_setaffinity(None, &self.before);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_started_meanwhile_are_confined_and_the_old_set_comes_back() {
        let before = allowed().expect("readable");
        let confined = Confined::to(1).expect("one of them is allowed");
        let inside = std::thread::spawn(|| allowed().expect("readable"));
        assert_eq!(inside.join().expect("it ends"), 1);
        drop(confined);
        assert_eq!(allowed().expect("readable"), before);
    }
}
