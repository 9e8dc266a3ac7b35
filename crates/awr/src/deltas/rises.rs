//! Whether the counters of a run only rose.

use assay_measure::snapshot::{Reading, RunData, Snapshot};
use std::collections::BTreeMap;

/// Counters from snapshot to snapshot: of each whether it ever fell, and the sum of its steps. It takes the snapshots
/// one by one and keeps the counters of the last, so that no series of them has to be kept.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rises {
    /// Counters of the last snapshot; `None` before the first.
    last: Option<BTreeMap<String, Reading>>,
    by_name: BTreeMap<String, Rise>,
}

/// What one counter did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rise {
    /// Sum of the steps up.
    pub(crate) steps: u64,
    pub(crate) never_fell: bool,
}

impl Rises {
    /// Of the snapshots that the run kept.
    pub(crate) fn of(data: &RunData) -> Self {
        // The sort keeps this order where instants are equal: one thread may end and drain at once, and what
        // the writers wrote at close belongs to the drained snapshot.
        let mut marks: Vec<&Snapshot> =
            [&data.gate, &data.begin].into_iter().chain(&data.series).chain([&data.end, &data.drained]).collect();
        marks.sort_by_key(|mark| (mark.at_ns, mark.driver.busy_ns));
        let mut rises = Self::default();
        marks.into_iter().for_each(|mark| rises.push(mark));
        rises
    }

    /// Takes the next snapshot; one that was the last already changes nothing.
    pub(crate) fn push(&mut self, now: &Snapshot) {
        let counters = &now.stats.counters;
        let Some(last) = &mut self.last else {
            self.last = Some(counters.clone());
            return;
        };
        for (name, reading) in counters {
            let Reading::Count(now) = *reading else {
                continue;
            };
            // A counter that first appears later starts from 0.
            let before = match last.get(name) {
                Some(Reading::Count(before)) => *before,
                _ => 0,
            };
            if !self.by_name.contains_key(name) {
                self.by_name.insert(name.clone(), Rise::NONE);
            }
            if let Some(rise) = self.by_name.get_mut(name) {
                rise.never_fell &= now >= before;
                rise.steps = rise.steps.saturating_add(now.saturating_sub(before));
            }
        }
        last.clone_from(counters);
    }

    /// Whether no snapshot was taken yet.
    pub(crate) fn is_empty(&self) -> bool {
        self.last.is_none()
    }

    /// What each counter did, by its name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, Rise)> {
        let all = self.by_name.iter();
        all.map(|(name, rise)| (name.as_str(), *rise))
    }
}

impl Rise {
    const NONE: Self = Self { steps: 0, never_fell: true };
}
