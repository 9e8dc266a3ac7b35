//! How often the collector queries the activity of a server's sessions: at every tick, or less often if a query is too
//! expensive; and the names of the events it sees.

use assay_measure::locked::locked;
use assay_measure::snapshot::Fact;
use std::collections::BTreeSet;
use std::sync::Mutex;
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
    /// Queries if that is due at this tick; `None` if it is not, or if the query failed.
    pub(crate) fn query<T>(&mut self, query: impl FnOnce() -> Option<T>) -> Option<T> {
        if !self.due() {
            return None;
        }
        let begun = Instant::now();
        let found = query();
        match &found {
            Some(_) => self.had(begun),
            None => self.failed(begun),
        }
        found
    }

    fn due(&self) -> bool {
        if self.failed.is_some_and(|since| since.elapsed() < RETRY) {
            return false;
        }
        self.last.is_none_or(|last| last.elapsed() + EARLY >= STEPS[self.step])
    }

    /// The query that started at `begun` failed.
    fn failed(&mut self, begun: Instant) {
        self.failures += 1;
        self.failed = Some(begun);
    }

    /// The query that started at `begun` succeeded.
    fn had(&mut self, begun: Instant) {
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

/// Most event names kept: a server has up to about two thousand, but extensions can define any number.
const NAMES_MAX: usize = 4000;

/// Keeps an event's name for the life of the process.
pub(crate) fn intern(name: String) -> &'static str {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    intern_in(&mut locked(&NAMES), name)
}

fn intern_in(names: &mut BTreeSet<&'static str>, name: String) -> &'static str {
    if let Some(known) = names.get(name.as_str()) {
        return known;
    }
    if names.len() >= NAMES_MAX {
        return "Other:further events";
    }
    let name: &'static str = Box::leak(name.into_boxed_str());
    names.insert(name);
    name
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_kept_once_and_their_number_is_bounded() {
        // Names of its own: those of the process are for the looks of the other tests.
        let mut names = BTreeSet::new();
        let mut intern = |name: &str| intern_in(&mut names, name.to_owned());
        let first = intern("IO:DataFileRead");
        assert!(std::ptr::eq(first, intern("IO:DataFileRead")));
        for n in 1..NAMES_MAX {
            assert_ne!(intern(&format!("Extension:e{n}")), "Other:further events");
        }
        assert_eq!(intern("Extension:one more"), "Other:further events");
        assert_eq!(intern("Extension:e1"), "Extension:e1");
        assert_eq!(intern("IO:DataFileRead"), "IO:DataFileRead");
    }

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
