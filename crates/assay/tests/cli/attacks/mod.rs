//! Attacks that go on until their time is up: each case follows from its seed, which a failure tells. `./test.sh --long` gives them an
//! hour, and a seed of its own each time.
//!
//! `ASSAY_ATTACK_S` sets how long each goes on (10 s), `ASSAY_ATTACK_SEED` the first seed (0).

mod answers;
mod flips;
mod kills;
mod probes;

use crate::common::{Ran, told};
use assay_measure::prng::SplitMix64;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The cases of an attack, and what came of them.
struct Siege {
    name: &'static str,
    seed: u64,
    until: Instant,
    counts: BTreeMap<String, u64>,
    /// What is being done in this case.
    under_way: String,
}

impl Drop for Siege {
    fn drop(&mut self) {
        if std::thread::panicking() {
            told(&format!("- attack on {}: seed {}: {}", self.name, self.seed, self.under_way));
        }
    }
}

impl Siege {
    fn new(name: &'static str) -> Self {
        let number = |name| std::env::var(name).ok().map(|text| text.parse().expect("a number"));
        let time = Duration::from_secs(number("ASSAY_ATTACK_S").unwrap_or(10));
        let seed = number("ASSAY_ATTACK_SEED").unwrap_or(0);
        Self { name, seed, until: Instant::now() + time, counts: BTreeMap::new(), under_way: String::new() }
    }

    /// The seed of the next case and what it decides by; none once the time is up, but there is one at least.
    fn next(&mut self) -> Option<(u64, SplitMix64)> {
        let is_first = self.counts.is_empty();
        if !is_first && Instant::now() >= self.until {
            return None;
        }
        self.seed += 1;
        self.count("cases");
        Some((self.seed, SplitMix64(self.seed)))
    }

    fn count(&mut self, what: impl Into<String>) {
        *self.counts.entry(what.into()).or_default() += 1;
    }

    /// What is done next, told if it fails.
    fn begins(&mut self, what: String) {
        self.under_way = what;
    }

    /// That a command ended as one may that is attacked: by an answer or one clear error, never by a bug, never with what
    /// drives a terminal.
    fn judge(&mut self, ran: &Ran) {
        let ill = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
        let is_told = || !ran.errors().is_empty() || ran.err.lines().any(|line| line.starts_with("invalid: "));
        let well = matches!(ran.code, 0 | 2..=4 | 6 | 130)
            && (matches!(ran.code, 0 | 130) || is_told())
            && !ran.err.contains("panicked")
            && ran.err.len() < 20_000
            && !ran.err.contains(ill);
        assert!(well, "exit {}\n{:.4000}\n{:.2000}", ran.code, ran.err, ran.out);
        self.count(format!("exit {}", ran.code));
    }

    /// Tells how many cases there were, and what came of them.
    fn over(self) {
        let counts: Vec<_> = self.counts.iter().map(|(what, count)| format!("{what} {count}")).collect();
        told(&format!("- attack on {}: {}", self.name, counts.join(", ")));
    }
}
