//! One test on several hosts: what each read travels as the data of a run, and is added up to readings of one test.

use super::RunData;
use assay_measure::clock::Ns;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{DriverReading, OpReading, Snapshot, Verdict};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What one host read.
#[derive(Debug, Default)]
pub struct OfHost {
    /// From the first request to the end.
    pub window_ns: Ns,
    /// What worked at the same time: clones, streams, connections.
    pub sessions: u64,
    /// Its operations, by what they are; those never made are left out.
    pub ops: Vec<(&'static str, Histogram)>,
    /// How it ended.
    pub verdict: Verdict,
}

impl OfHost {
    /// The data of a run, with all readings as its part.
    #[must_use]
    pub fn data(self, labels: &RunData, readings: &impl Serialize) -> RunData {
        let made = self.ops.into_iter().filter(|(_, times)| times.count() > 0);
        let op = |(kind, service): (&str, Histogram)| OpReading {
            kind: kind.to_owned(),
            rows: 0,
            response: service.clone(),
            service,
        };
        let driver = DriverReading { ops: made.map(op).collect(), ..DriverReading::default() };
        let end = Snapshot { at_ns: self.window_ns, driver, ..Snapshot::default() };
        RunData {
            sessions: self.sessions,
            verdict: self.verdict,
            began_ns: Some(0),
            drained: end.clone(),
            end,
            // As text: sums of squares exceed what a JSON value holds.
            part: serde_json::to_string(readings).ok().map(Value::String),
            ..labels.clone()
        }
    }
}

/// The readings of all hosts as one test's; `None` without any, and where one cannot be read.
pub fn added<T: DeserializeOwned>(parts: &[&Value], add: fn(T, T) -> T) -> Option<T> {
    let mut all = parts.iter().map(|part| serde_json::from_str(part.as_str()?).ok());
    let first = all.next()??;
    all.try_fold(first, |all, more| Some(add(all, more?)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readings_travel_as_text_and_are_added() {
        let mut times = Histogram::new();
        times.record(1000);
        let ops = || vec![("read", times.clone()), ("trim", Histogram::new())];
        let labels = RunData { workload: "x".to_owned(), ..RunData::default() };
        let of = |squares: u128| {
            OfHost { window_ns: 5, sessions: 2, ops: ops(), ..OfHost::default() }.data(&labels, &squares)
        };
        let data = of(u128::MAX / 4);
        assert_eq!((data.workload.as_str(), data.sessions, data.end.at_ns), ("x", 2, 5));
        assert_eq!((data.end.driver.ops.len(), data.end.driver.ops_ended()), (1, 1));
        let (a, b) = (of(u128::MAX / 4).part.expect("text"), of(7).part.expect("text"));
        assert_eq!(added(&[&a, &b], |a: u128, b| a + b), Some(u128::MAX / 4 + 7));
        assert_eq!(added(&[&a, &Value::from(1)], |a: u128, b| a + b), None);
        assert_eq!(added(&[], |a: u128, b| a + b), None);
    }
}
