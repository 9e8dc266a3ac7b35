//! How often the collector queries the activity of a server's sessions: at every tick, or less often if a query is too
//! expensive.

use assay_measure::snapshot::Fact;
use std::time::{Duration, Instant};

/// A query may take one part in this many of the interval.
const SHARE: u32 = 5;
/// Interval between queries, and the next ones to use if a query is too expensive.
const STEPS: [Duration; 3] = [Duration::from_millis(100), Duration::from_millis(500), Duration::from_secs(1)];
/// After so many expensive queries in a row, the next interval is used.
const DEAR_MAX: u32 = 3;
/// Pause after a failed query.
const RETRY: Duration = Duration::from_secs(1);
/// Tolerance for a tick that comes early.
const EARLY: Duration = Duration::from_millis(20);

#[derive(Debug, Default)]
pub(crate) struct Looks {
    failed: Option<Instant>,
    /// Index into [`STEPS`].
    step: usize,
    dear: u32,
    last: Option<Instant>,
    looks: u64,
    failures: u64,
    spent: Duration,
    longest: Duration,
}

impl Looks {
    /// Whether a query is due at this tick.
    pub(crate) fn due(&self) -> bool {
        if self.failed.is_some_and(|since| since.elapsed() < RETRY) {
            return false;
        }
        self.last.is_none_or(|last| last.elapsed() + EARLY >= STEPS[self.step])
    }

    /// The query that started at `begun` failed.
    pub(crate) fn failed(&mut self, begun: Instant) {
        self.failures += 1;
        self.failed = Some(begun);
    }

    /// The query that started at `begun` succeeded.
    pub(crate) fn had(&mut self, begun: Instant) {
        let spent = begun.elapsed();
        self.failed = None;
        self.last = Some(begun);
        self.looks += 1;
        self.spent += spent;
        self.longest = self.longest.max(spent);
        self.dear = if spent * SHARE > STEPS[self.step] { self.dear + 1 } else { 0 };
        if self.dear >= DEAR_MAX && self.step + 1 < STEPS.len() {
            self.step += 1;
            self.dear = 0;
        }
    }

    /// For the report: how many queries of `what` were made, and how long they took.
    pub(crate) fn fact(&self, what: &str) -> Fact {
        let mean = self.spent.as_secs_f64() * 1e3 / (self.looks.max(1) as f64);
        let mut value = format!(
            "{} queries of {what}, mean {mean:.2} ms, longest {:.1} ms",
            self.looks,
            self.longest.as_secs_f64() * 1e3
        );
        if self.step > 0 {
            value.push_str(&format!(
                "; a query took more than a fifth of a tick, so assay queries every {} ms instead of every 100 ms",
                STEPS[self.step].as_millis()
            ));
        }
        if self.failures > 0 {
            value.push_str(&format!("; {} queries failed", self.failures));
        }
        Fact::new("activity_sampling", value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_that_are_too_dear_become_rarer() {
        let mut looks = Looks::default();
        assert!(looks.due());
        for _ in 0..DEAR_MAX {
            looks.had(Instant::now() - Duration::from_millis(50));
        }
        assert!(looks.fact("x").value.contains("every 500 ms"));
        looks.failed(Instant::now());
        assert!(!looks.due());
    }
}
