//! Activity history: what the sessions were doing at each tick of a sampler.
//!
//! A tick counts the sessions inside a call by what they do; think time and idle are left out. Each tick stands for the
//! time since the one before, so that sums over ticks estimate DB time by class. For waits shorter than a tick the
//! estimated time is right, but their number is unknown: no average wait comes from samples.

use crate::class::WaitClass;
use crate::figures::figures;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Nominal distance of two ticks, ns.
pub const INTERVAL_NS: u64 = 100_000_000;
/// A tick represents at most this many nominal intervals; the rest of a longer gap is a hole.
pub const GAP_INTERVALS_MAX: u64 = 5;
/// Steps kept in memory at most: an hour of ticks. Beyond, neighbours are merged.
pub const STEPS_MAX: usize = 36_000;

/// What a session inside a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SessionState {
    /// Its thread works for it.
    OnCpu,
    /// It could continue, but its thread works for another session.
    RunQueue,
    /// It waits for the event named beside.
    Waiting,
}

/// The key of a count.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ActivityKey {
    /// What the session does.
    pub state: SessionState,
    /// The event it waits for; empty unless it waits.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub event: String,
    /// The event's wait class; only of a wait.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub class: Option<WaitClass>,
    /// Kind of its operation, by its name in the workload's table.
    pub op: String,
}

/// One tick, or several merged.
///
/// Identity: a merged step is the sum of its ticks, but `active_max`, which is their largest.
#[figures]
#[derive(Eq)]
pub struct ActivityStep {
    /// Instant of the (last) tick, ns after the gate.
    pub at_ns: u64,
    /// Ticks in it.
    pub ticks: u64,
    /// Time the ticks stand for, ns.
    pub span_ns: u64,
    /// Unsampled time, ns: gaps beyond [`GAP_INTERVALS_MAX`] intervals.
    pub hole_ns: u64,
    /// Most sessions active in one tick.
    pub active_max: u64,
    /// (index into the keys, sessions counted, their time in ns), keys without sessions left out.
    pub cells: Vec<(u32, u64, u64)>,
}

impl ActivityStep {
    /// Sessions counted, all keys.
    #[must_use]
    pub fn samples(&self) -> u64 {
        self.cells.iter().map(|(_, samples, _)| samples).sum()
    }

    /// Their time, ns, all keys.
    #[must_use]
    pub fn active_ns(&self) -> u64 {
        self.cells.iter().map(|(_, _, ns)| ns).sum()
    }

    /// Adds the step after this one.
    pub fn merge(&mut self, next: &Self) {
        self.at_ns = self.at_ns.max(next.at_ns);
        self.ticks += next.ticks;
        self.span_ns += next.span_ns;
        self.hole_ns += next.hole_ns;
        self.active_max = self.active_max.max(next.active_max);
        self.count(next);
    }

    /// Adds the same step of other sessions; the most active are those of both, since they may have been so together.
    fn join(&mut self, other: &Self) {
        self.ticks = self.ticks.max(other.ticks);
        self.span_ns = self.span_ns.max(other.span_ns);
        self.hole_ns = self.hole_ns.max(other.hole_ns);
        self.active_max += other.active_max;
        self.count(other);
    }

    fn count(&mut self, more: &Self) {
        for &(key, samples, ns) in &more.cells {
            match self.cells.binary_search_by_key(&key, |cell| cell.0) {
                Ok(at) => {
                    self.cells[at].1 += samples;
                    self.cells[at].2 += ns;
                }
                Err(at) => self.cells.insert(at, (key, samples, ns)),
            }
        }
    }
}

/// The history of a run, or the part of it since an earlier part.
#[figures]
#[derive(Eq)]
pub struct ActivityHistory {
    /// Nominal distance of two ticks, ns.
    pub interval_ns: u64,
    /// What is counted; in a part only what is new in it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<ActivityKey>,
    /// In order of their instants.
    pub steps: Vec<ActivityStep>,
    /// Samples by the schema their operation worked on, from 1.
    pub schemas: BTreeMap<u64, u64>,
}

impl ActivityHistory {
    /// Adds the part that follows; a very long history is thinned.
    pub fn append(&mut self, part: Self) {
        self.interval_ns = self.interval_ns.max(part.interval_ns);
        self.keys.extend(part.keys);
        self.steps.extend(part.steps);
        for (schema, samples) in part.schemas {
            *self.schemas.entry(schema).or_default() += samples;
        }
        while self.steps.len() > STEPS_MAX {
            self.thin();
        }
    }

    /// Adds what sessions of another host did at the same time: ticks of one instant, rounded to their distance, are one.
    pub fn merge(&mut self, other: &Self) {
        self.interval_ns = self.interval_ns.max(other.interval_ns);
        let keys: Vec<u32> = other.keys.iter().map(|key| self.key(key)).collect();
        let distance = self.interval_ns.max(1);
        let tick = |step: &ActivityStep| (step.at_ns + distance / 2) / distance;
        for step in &other.steps {
            let mut step = step.clone();
            step.cells.iter_mut().for_each(|cell| cell.0 = keys.get(cell.0 as usize).copied().unwrap_or(cell.0));
            step.cells.sort_unstable();
            match self.steps.binary_search_by_key(&tick(&step), tick) {
                Ok(at) => self.steps[at].join(&step),
                Err(at) => self.steps.insert(at, step),
            }
        }
        for (schema, samples) in &other.schemas {
            *self.schemas.entry(*schema).or_default() += samples;
        }
    }

    /// The place of a key, which is new if it is not there.
    fn key(&mut self, key: &ActivityKey) -> u32 {
        let at = self.keys.iter().position(|known| known == key).unwrap_or_else(|| {
            self.keys.push(key.clone());
            self.keys.len() - 1
        });
        at as u32
    }

    /// Merges the steps two by two.
    fn thin(&mut self) {
        let merged = self.steps.chunks(2).map(|pair| {
            let mut step = pair[0].clone();
            for next in &pair[1..] {
                step.merge(next);
            }
            step
        });
        self.steps = merged.collect();
    }

    /// The steps whose instant lies after `from_ns` and not after `to_ns`, ns after the gate.
    pub fn between(&self, from_ns: u64, to_ns: u64) -> impl Iterator<Item = &ActivityStep> {
        let first = self.steps.partition_point(|step| step.at_ns <= from_ns);
        let rest = &self.steps[first..];
        rest.iter().take_while(move |step| step.at_ns <= to_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn step(at_ns: u64, cells: &[(u32, u64, u64)]) -> ActivityStep {
        ActivityStep {
            at_ns,
            ticks: 1,
            span_ns: 10,
            hole_ns: 1,
            active_max: cells.iter().map(|cell| cell.1).sum(),
            cells: cells.to_vec(),
        }
    }

    #[test]
    fn hosts_that_were_looked_at_together_are_one_history() {
        let key =
            |op: &str| ActivityKey { state: SessionState::OnCpu, event: String::new(), class: None, op: op.to_owned() };
        let history = |ops: &[&str], steps: &[ActivityStep]| ActivityHistory {
            interval_ns: 100,
            keys: ops.iter().map(|op| key(op)).collect(),
            steps: steps.to_vec(),
            schemas: BTreeMap::from([(1, 2)]),
        };
        let mut all = history(&["a", "b"], &[step(100, &[(0, 1, 10), (1, 1, 10)]), step(300, &[(0, 1, 10)])]);
        all.merge(&history(&["b", "c"], &[step(104, &[(0, 2, 20), (1, 1, 10)]), step(201, &[(1, 3, 30)])]));
        let expected =
            [step(100, &[(0, 1, 10), (1, 3, 30), (2, 1, 10)]), step(201, &[(2, 3, 30)]), step(300, &[(0, 1, 10)])];
        assert_eq!(all.steps, expected);
        assert_eq!((all.keys.len(), all.schemas[&1]), (3, 4));
    }

    #[test]
    fn a_merged_step_is_the_sum_of_its_ticks() {
        let mut merged = step(10, &[(0, 2, 20), (3, 1, 10)]);
        merged.merge(&step(20, &[(1, 1, 10), (3, 4, 40)]));
        let expected = ActivityStep {
            at_ns: 20,
            ticks: 2,
            span_ns: 20,
            hole_ns: 2,
            active_max: 5,
            cells: vec![(0, 2, 20), (1, 1, 10), (3, 5, 50)],
        };
        assert_eq!(merged, expected);
        assert_eq!((merged.samples(), merged.active_ns()), (8, 80));
    }

    #[test]
    fn an_interval_holds_the_ticks_after_its_begin_up_to_its_end() {
        let history =
            ActivityHistory { steps: (1..=5).map(|at| step(at * 10, &[])).collect(), ..ActivityHistory::default() };
        let at: Vec<u64> = history.between(20, 40).map(|step| step.at_ns).collect();
        assert_eq!(at, [30, 40]);
    }

    proptest! {
        #[test]
        fn thinning_keeps_every_sum(n in 1_usize..200, samples in 0_u64..100) {
            let part = ActivityHistory {
                interval_ns: 10,
                keys: Vec::new(),
                steps: (1..=n as u64).map(|at| step(at, &[(at as u32 % 3, samples, at)])).collect(),
                schemas: BTreeMap::from([(1, samples)]),
            };
            let mut thinned = part.clone();
            thinned.thin();
            prop_assert_eq!(thinned.steps.len(), n.div_ceil(2));
            let sums = |history: &ActivityHistory| {
                let total = |of: fn(&ActivityStep) -> u64| history.steps.iter().map(of).sum::<u64>();
                (total(|s| s.ticks), total(|s| s.span_ns), total(|s| s.hole_ns),
                 total(ActivityStep::samples), total(ActivityStep::active_ns))
            };
            prop_assert_eq!(sums(&thinned), sums(&part));
        }
    }

    #[test]
    fn a_history_of_any_length_stays_bounded() {
        let mut history = ActivityHistory::default();
        for at in 0..40 {
            let steps = (0..1000).map(|i| step(at * 1000 + i, &[(0, 1, 10)])).collect();
            history.append(ActivityHistory { steps, ..ActivityHistory::default() });
        }
        assert!(history.steps.len() <= STEPS_MAX);
        let samples: u64 = history.steps.iter().map(ActivityStep::samples).sum();
        assert_eq!(samples, 40_000);
    }
}
