//! iperf3's output, as text and as JSON, of 3.0 to 3.2x; also `--json-stream`.
//!
//! The whole test has the scopes `sender` and `receiver` (with the role before it where a test went both ways); single
//! streams of a parallel test have their own. Intervals become the series.

mod json;
mod text;

#[cfg(test)]
mod tests;

use super::draft::{Draft, Reading};
use super::number::Printed;
use super::text::{At, Text};
use super::{Confidence, ImportError};

pub(super) fn looks_like(text: &Text) -> Confidence {
    json::looks_like(text).or(text::looks_like(text))
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        match json::looks_like(text).missing {
            "" => json::read(text, draft)?,
            _ => text::read(text, draft),
        }
    }
    Ok(())
}

/// Lines at which further tests of one file begin: the log of a server, documents one after the other.
pub(super) fn runs(text: &Text) -> Vec<usize> {
    match json::looks_like(text).missing {
        "" => json::runs(text),
        _ => text::runs(text),
    }
}

/// Tests whose lines alternate.
pub(super) fn titled(text: &Text) -> Vec<Text> {
    text::titled(text)
}

/// So many intervals of single streams are read beside their sums.
const STREAM_INTERVALS_MAX: usize = 1000;

/// Lines without figures of the test.
pub(super) const IGNORED: &[&str] = &[
    "connected to",
    "Connecting to host",
    "Accepted connection",
    "Server listening on",
    "Client connecting to",
    "TCP window size",
    "UDP buffer size",
    "Sending ",
    "Receiving ",
    "Control connection MSS",
    "TCP MSS",
    "Time:",
    "Cookie:",
    "Starting Test:",
    "CPU Utilization",
    "iperf 3",
    "Test Complete",
];

/// A value of the network, under `tcp_...` or `udp_...`.
fn value(draft: &mut Draft, at: At, key: String, name: &str, scope: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        let reading = Reading::new(at, key, printed).name(name).scope(scope);
        draft.alone(reading.layer("network"));
    }
}

/// Name of a series: `tcp_throughput_bits_per_s`, with the role where there are two.
fn series_name(key: &str, role: &str) -> String {
    match role {
        "" => key.to_owned(),
        role => format!("{key}_{}", assay_measure::plain::slug(role)),
    }
}
