//! Figures step by step.

use super::figure::Figure;
use crate::figures::figures;
use std::collections::BTreeMap;

/// Per-second figures from the gate on. Row i of every metric belongs to `t_s[i]`.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Series {
    /// Nominal step, s: 1, or more where only every second, fourth ... snapshot of a long run was available.
    pub step_s: Figure,
    /// End of each step, s after the gate.
    pub t_s: Vec<f64>,
    /// Whether the step lies inside the measured window.
    pub in_window: Vec<bool>,
    /// By name with unit last, e.g. `ops_count_per_s`, `db_file_sequential_read_us_p99`; decimals of a run's own
    /// seconds have seven significant digits.
    #[serde(deserialize_with = "super::spelling::keys")]
    pub metrics: BTreeMap<String, Vec<Figure>>,
    /// Waits by step and power-of-two bucket, for the events with a distribution; a long run's steps are joined.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub heat: Vec<HeatRow>,
}

impl Series {
    /// Makes every column as long as the number of steps: missing values become n/a, surplus ones are dropped. A series
    /// that was read may have been edited; readers rely on this.
    pub fn square(&mut self) {
        let steps = self.t_s.len();
        self.in_window.resize(steps, false);
        for column in self.metrics.values_mut() {
            column.resize(steps, Figure::na("absent"));
        }
        for row in &mut self.heat {
            row.buckets.resize(row.t_s.len(), Vec::new());
            for (bucket, _) in row.buckets.iter_mut().flatten() {
                *bucket = (*bucket).min(BUCKETS - 1);
            }
        }
    }
}

/// Power-of-two buckets of a distribution, as in [`EventRow::hist_us`](super::EventRow::hist_us).
const BUCKETS: u8 = 34;

/// How the waits of one event, or the operations of one kind, were distributed from step to step.
#[figures]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeatRow {
    /// Event or kind of operation, e.g. `db file sequential read`.
    pub name: String,
    /// `engine` for waits, `client` for operations, `syscall` for requests.
    pub layer: String,
    /// End of each step, s after the gate.
    pub t_s: Vec<f64>,
    /// Counts of each step, sparse: (i, n) is n durations of 2^(i-1) <= us < 2^i, as in [`EventRow::hist_us`](super::EventRow::hist_us).
    pub buckets: Vec<Vec<(u8, u64)>>,
}
