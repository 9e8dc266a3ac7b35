//! The pipe between an agent and the process that runs its part: a line of JSON for each word.

use super::message::{Begin, Tick};
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{Mark, Snapshot};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What the process says, on its standard output.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Said {
    /// The directory of its own record.
    Dir(String),
    /// Every session is ready; it waits for the start. The server that it can read for all of that server's clients.
    Ready(Option<String>),
    /// Of a plan: it waits for this step, which is above 0.
    Waits(u64),
    /// The instant of its gate by `CLOCK_MONOTONIC`, ns.
    Gate(u64),
    /// A second has passed.
    Tick(Box<Tick>),
    /// What it measured: its `RunData`, for nobody in between to read.
    Data(Box<RawValue>),
}

/// What the agent tells it, on its standard input. The end of that input is a stop: nobody would collect what it measures.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Begin, with the run or with a step of its plan.
    Start(Begin),
    /// End now, save and say what was measured.
    Stop,
}

/// A word as its line.
///
/// # Panics
/// Never: words are plain data.
#[must_use]
pub fn line(word: &impl Serialize) -> String {
    serde_json::to_string(word).expect("words are plain data") + "\n"
}

impl Tick {
    /// What was done since the snapshot before.
    #[must_use]
    pub fn of(mark: Mark, before: Option<&Snapshot>, now: &Snapshot) -> Self {
        let mut driver = before.map_or_else(|| now.driver.clone(), |before| now.driver.difference(&before.driver));
        for op in driver.ops.iter_mut().filter(|op| op.response == op.service) {
            op.response = Histogram::default();
        }
        Self { at_ns: now.at_ns, mark, ops: now.driver.ops_ended(), driver }
    }
}
