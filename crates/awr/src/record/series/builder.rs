//! The series, a step at a time.

use super::super::activity::{CLASS_METRICS, step_metrics};
use super::columns::Columns;
use super::heat::Heat;
use super::step;
use crate::deltas::Rises;
use crate::deltas::{Span, seconds};
use assay_measure::history::ActivityHistory;
use assay_measure::record::{Figure, Series};
use assay_measure::snapshot::{RunData, Snapshot};

/// Builds a run's series from its snapshots as they come, so that none has to be kept. While it grows a figure takes
/// 8 bytes: a day of seconds with 100 figures each 69 MB, a run of an hour 3 MB.
#[derive(Clone, Debug, Default)]
pub struct SeriesBuilder {
    /// Begin and end of each step, ns after the gate.
    steps_ns: Vec<(u64, u64)>,
    /// Whether the sessions were sampled in the step.
    looked: Vec<bool>,
    columns: Columns,
    heat: Heat,
    /// What the sessions did since the last step.
    activity: Option<ActivityHistory>,
    /// What else is read from every snapshot.
    rises: Rises,
}

impl SeriesBuilder {
    /// Takes what the sessions did since the part before; it must come before the snapshots it belongs to.
    pub fn activity(&mut self, part: ActivityHistory) {
        self.activity.get_or_insert_default().append(part);
    }

    /// Adds the step between two snapshots of one run; the later one must be new. A step of no length is skipped: a
    /// full second and the begin of the window may be the same instant.
    pub fn push(&mut self, from: &Snapshot, to: &Snapshot) {
        if self.rises.is_empty() {
            self.rises.push(from);
        }
        self.rises.push(to);
        if to.at_ns <= from.at_ns {
            return;
        }
        let span = Span::new(from, to);
        let mut row = step::metrics(&span);
        let sampled = step_metrics(self.activity.as_ref(), from, to);
        self.looked.push(!sampled.is_empty());
        row.extend(sampled);
        self.columns.push(row);
        self.heat.push(&span);
        self.steps_ns.push((from.at_ns, to.at_ns));
        if let Some(activity) = &mut self.activity {
            activity.steps.retain(|step| step.at_ns > to.at_ns);
        }
    }

    /// What the counters did in all steps so far.
    pub(crate) fn take_rises(&mut self) -> Rises {
        std::mem::take(&mut self.rises)
    }

    /// The whole series; `data` says when the window began and ended.
    #[must_use]
    pub fn finish(mut self, data: &RunData) -> Series {
        // A class without a session in some second is 0 there, if the run knows it at all.
        self.columns.zero_where(&self.looked, CLASS_METRICS);
        let (begin, end) = (data.begin.at_ns, data.end.at_ns);
        // A second snapshot and a window snapshot of the same instant differ by
        // their collection time; the middle of the step decides.
        let inside = |(from, to): &(u64, u64)| (begin..=end).contains(&from.midpoint(*to));
        Series {
            step_s: usual_step(&self.steps_ns),
            t_s: self.steps_ns.iter().map(|(_, to)| seconds(*to)).collect(),
            in_window: self.steps_ns.iter().map(inside).collect(),
            metrics: self.columns.finish(),
            heat: self.heat.finish(),
        }
    }
}

/// The usual step in whole seconds: snapshots kept in memory may be every second, fourth ... one.
fn usual_step(steps_ns: &[(u64, u64)]) -> Figure {
    let mut steps: Vec<u64> = steps_ns.iter().map(|(from, to)| to - from).collect();
    steps.sort_unstable();
    match steps.get(steps.len() / 2) {
        Some(middle) => Figure::decimal(seconds(*middle).round().max(1.0)),
        None => Figure::na("no series"),
    }
}
