//! Durations by step and power of two of a microsecond; a long run's steps are joined.

use crate::deltas::{Span, seconds};
use assay_measure::histogram::{Histogram, POW2_US_BUCKETS};
use assay_measure::record::HeatRow;
use assay_measure::snapshot::Actor;
use std::collections::BTreeMap;

/// Columns at most: more than a screen shows side by side.
pub(super) const COLUMNS_MAX: usize = 600;

type Buckets = [u64; POW2_US_BUCKETS];

/// See the module. Every row has every column.
#[derive(Clone, Debug, Default)]
pub(super) struct Heat {
    /// Ends of the columns, ns after the gate.
    ends_ns: Vec<u64>,
    /// Doublings so far: a column holds two to this power of steps.
    joined: u32,
    /// Steps in the last column.
    filled: usize,
    /// By layer and name.
    rows: BTreeMap<(&'static str, String), Vec<Buckets>>,
}

impl Heat {
    /// Adds a step's durations: of waits of sessions, of requests, of operations.
    pub(super) fn push(&mut self, span: &Span<'_>) {
        self.begin_step(span.to.at_ns);
        for event in &span.stats.events {
            if event.actor == Actor::Foreground {
                self.add("engine", &event.name, &event.waits);
            }
        }
        for request in &span.stats.requests {
            self.add("syscall", &request.event, &request.completions);
        }
        for op in &span.driver.ops {
            self.add("client", &op.kind, &op.service);
        }
    }

    fn begin_step(&mut self, end_ns: u64) {
        if self.filled == 1 << self.joined && self.ends_ns.len() == COLUMNS_MAX {
            self.join();
        }
        if self.ends_ns.is_empty() || self.filled == 1 << self.joined {
            self.ends_ns.push(end_ns);
            self.filled = 1;
            for row in self.rows.values_mut() {
                row.push([0; POW2_US_BUCKETS]);
            }
        } else {
            self.filled += 1;
            if let Some(end) = self.ends_ns.last_mut() {
                *end = end_ns;
            }
        }
    }

    /// Joins columns two by two; their number is even.
    fn join(&mut self) {
        self.ends_ns = self.ends_ns.iter().skip(1).step_by(2).copied().collect();
        self.joined += 1;
        self.filled *= 2;
        for row in self.rows.values_mut() {
            *row = row.chunks(2).map(|pair| sum(&pair[0], &pair[1])).collect();
        }
    }

    fn add(&mut self, layer: &'static str, name: &str, durations: &Histogram) {
        if durations.is_empty() {
            return;
        }
        let columns = self.ends_ns.len();
        let row = self.rows.entry((layer, name.to_owned())).or_default();
        row.resize(columns, [0; POW2_US_BUCKETS]);
        if let Some(last) = row.last_mut() {
            *last = sum(last, &durations.pow2_us());
        }
    }

    pub(super) fn finish(self) -> Vec<HeatRow> {
        let t_s: Vec<f64> = self.ends_ns.iter().map(|ns| seconds(*ns)).collect();
        let rows = self.rows.into_iter();
        rows.map(|((layer, name), columns)| HeatRow {
            name,
            layer: layer.to_owned(),
            t_s: t_s.clone(),
            buckets: columns.iter().map(sparse).collect(),
        })
        .collect()
    }
}

fn sum(left: &Buckets, right: &Buckets) -> Buckets {
    std::array::from_fn(|bucket| left[bucket].saturating_add(right[bucket]))
}

fn sparse(column: &Buckets) -> Vec<(u8, u64)> {
    let used = column.iter().enumerate().filter(|(_, n)| **n > 0);
    // There are 34 buckets.
    used.map(|(bucket, n)| (bucket as u8, *n)).collect()
}
