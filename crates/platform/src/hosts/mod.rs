//! Several platforms that measured the same tests at the same time: which is unlike the others, and what all of them did together.
//!
//! Each host gives its own record, when it made each test, and the rates that may be added ([`data`]); [`build`] makes one record
//! of them.

mod info;
mod odd;
mod page;
mod record;
mod sums;

#[cfg(test)]
mod tests;

pub use record::{Given, KIND, build};

use crate::finished::Finished;
use assay_measure::clock::Ns;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, Snapshot, Verdict};
use serde::{Deserialize, Serialize};
use sums::Rate;

/// The kind of these records.
pub const NAME: &str = "platforms";

/// A test that a host made, and when: ns after its gate.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ran {
    /// Which.
    pub test: String,
    /// Its first request, or its begin where it has no such.
    pub begin_ns: Ns,
    /// Its end.
    pub end_ns: Ns,
}

/// What a host gives.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Gave {
    record: Record,
    ran: Vec<Ran>,
    rates: Vec<Rate>,
}

/// What this host measured, as the data of a run: its window is from the gate to the end of the last test.
#[must_use]
pub fn data(labels: &RunData, record: &Record, finished: &[Finished], ran: Vec<Ran>) -> RunData {
    let end = Snapshot { at_ns: ran.iter().map(|ran| ran.end_ns).max().unwrap_or(0), ..Snapshot::default() };
    let is_invalid = |one: &&Finished| one.record.as_ref().is_ok_and(|record| record.run.verdict == "invalid");
    let invalid: Vec<String> = finished.iter().filter(is_invalid).map(|one| format!("{}: invalid", one.test)).collect();
    let reasons = &record.run.verdict_reasons;
    let gave = Gave { record: record.clone(), ran, rates: sums::rates(finished) };
    RunData {
        workload: NAME.to_owned(),
        engine: "fleet".to_owned(),
        verdict: match record.run.verdict.as_str() {
            _ if !invalid.is_empty() => Verdict::Invalid(invalid),
            "complete" => Verdict::Complete,
            _ => Verdict::Incomplete(reasons.join("; ")),
        },
        drained: end.clone(),
        end,
        part: serde_json::to_value(gave).ok(),
        ..labels.clone()
    }
}
