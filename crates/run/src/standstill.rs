//! Whether this process stood still while it measured: stopped by a signal, frozen with its control group, or paused with its whole
//! machine.
//!
//! A thread that sleeps a tenth of a second at a time wakes late if it got no CPU, and the kernel reports how long it
//! waited for one. The rest of a long gap is time in which no thread of this process could run, and in which measured
//! waits say nothing about the platform.

use crate::thread_clock;
use assay_measure::clock::Ns;
use assay_measure::locked::locked;
use assay_measure::record::Advice;
use assay_measure::rule::Rule;
use assay_measure::units::fixed;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Between two looks.
const LOOK: Duration = Duration::from_millis(100);
/// Shorter gaps are nobody's finding.
const LEAST_NS: Ns = 1_000_000_000;

/// Of the records of every kind that this program measured.
pub const RULE: Rule = Rule {
    id: "H1",
    title: "The process stood still",
    changes_figures: false,
    fires_when: || {
        format!(
            "A thread that sleeps {} s at a time comes at least {} s late, less the time for which the kernel kept it from a CPU; always high",
            LOOK.as_secs_f64(),
            LEAST_NS / 1_000_000_000
        )
    },
    why: "The cause is a signal (SIGSTOP), a frozen control group or a paused machine, not the platform. Under a rate the latency from the intended start includes the gap; in a closed loop only the operations in flight show the gap, and percentiles do not.",
    what_to_do: "Run the test again.",
    cannot_judge_when: "The kernel does not count the delay of threads, or the host had no thread left: then the rule is silent.",
    source: "Decided here.",
};

/// A time without life, s after the begin of the watch.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Still {
    at_s: f64,
    length_s: f64,
}

#[derive(Debug, Default)]
struct Shared {
    seen: Mutex<Vec<Still>>,
    over: AtomicBool,
}

/// The watch; it ends when it is dropped.
#[derive(Debug)]
pub struct Standstill {
    shared: Arc<Shared>,
    begun: Instant,
    /// None if the host had no thread left; then nothing is found.
    thread: Option<JoinHandle<()>>,
}

impl Standstill {
    /// Begins to look.
    #[must_use]
    pub fn watch() -> Self {
        let (shared, begun) = (Arc::<Shared>::default(), Instant::now());
        let seen = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name("standstill".to_owned()).spawn(move || look(&seen, begun));
        Self { shared, begun, thread: thread.ok() }
    }

    /// Ends the watch and returns its finding, if any: `H1`, which outweighs all other findings.
    #[must_use]
    pub fn finding(self) -> Option<Advice> {
        let watched_s = self.begun.elapsed().as_secs_f64();
        let seen = locked(&self.shared.seen).clone();
        finding(&seen, watched_s)
    }
}

impl Drop for Standstill {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            // A panic there has been told by the hook, and cost the finding alone.
            let _ = thread.join();
        }
    }
}

fn look(shared: &Shared, begun: Instant) {
    let now = || (begun.elapsed().as_nanos() as Ns, thread_clock::read().run_delay_ns.unwrap_or(0));
    let mut before = now();
    while !shared.over.load(Ordering::Acquire) {
        std::thread::park_timeout(LOOK);
        let after = now();
        let still = still(before, after);
        locked(&shared.seen).extend(still);
        before = after;
    }
}

/// What lies between two looks, each an instant and the run delay until then.
fn still(before: (Ns, Ns), after: (Ns, Ns)) -> Option<Still> {
    // A kernel that does not count the delay cannot tell a starved thread from a stopped one.
    if after.1 == 0 {
        return None;
    }
    let slept_ns = LOOK.as_nanos() as Ns + (after.1 - before.1);
    let gap_ns = (after.0 - before.0).saturating_sub(slept_ns);
    (gap_ns >= LEAST_NS).then_some(Still { at_s: before.0 as f64 / 1e9, length_s: gap_ns as f64 / 1e9 })
}

fn finding(seen: &[Still], watched_s: f64) -> Option<Advice> {
    let longest = seen.iter().max_by(|one, two| one.length_s.total_cmp(&two.length_s))?;
    let all_s: f64 = seen.iter().map(|still| still.length_s).sum();
    let text = format!(
        "assay stood still for {} s of {} s: none of its threads ran. The longest gap was {} s, from second {} on.",
        fixed(all_s, 1),
        fixed(watched_s, 1),
        fixed(longest.length_s, 1),
        fixed(longest.at_s, 0)
    );
    let evidence =
        [("stood_still_s", all_s), ("stood_still_s_max", longest.length_s), ("stood_still_count", seen.len() as f64)];
    Some(RULE.explain(true, text, &evidence))
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::record::Record;

    const S: Ns = 1_000_000_000;

    #[test]
    fn a_thread_kept_from_its_cpu_is_no_standstill_and_a_stopped_process_is() {
        assert_eq!(still((S, 5), (S + S / 10, 6)), None);
        // Nine seconds late, all of them ready to run.
        assert_eq!(still((S, 5), (10 * S, 9 * S)), None);
        let stopped = still((2 * S, 5), (10 * S, S / 2)).expect("a gap");
        assert!((stopped.at_s - 2.0).abs() < 1e-9 && (stopped.length_s - 7.4).abs() < 1e-6, "{stopped:?}");
        // Nobody knows.
        assert_eq!(still((2 * S, 0), (10 * S, 0)), None);
    }

    const CASES: &[assay_testkit::rules::Case] = &[("H1", |fires| {
        let gap = if fires { S } else { S - 1 };
        let found = still((0, 5), (gap + LOOK.as_nanos() as Ns, 5));
        let advice = finding(&found.into_iter().collect::<Vec<_>>(), 20.0).into_iter().collect();
        Record { advice, ..Record::default() }
    })];

    #[test]
    fn the_rule_just_fires_and_just_does_not() {
        assay_testkit::rules::just_fire(&[RULE], CASES);
    }

    #[test]
    fn what_was_found_is_one_finding_of_high_weight_with_its_numbers() {
        assert_eq!(finding(&[], 20.0), None);
        let seen = [Still { at_s: 3.0, length_s: 1.5 }, Still { at_s: 9.0, length_s: 6.5 }];
        let found = finding(&seen, 20.0).expect("a finding");
        assert_eq!((found.id.as_str(), found.severity.as_str()), ("H1", "high"));
        assert!(found.text.starts_with("assay stood still for 8.0 s of 20.0 s"), "{}", found.text);
        assert!(found.text.contains("6.5 s, from second 9 on"), "{}", found.text);
        assert_eq!(found.evidence["stood_still_s_max"].value(), Some(6.5));
    }
}
