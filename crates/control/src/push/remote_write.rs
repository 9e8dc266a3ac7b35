//! The body of a request of remote write 1.0 (<https://prometheus.io/docs/specs/prw/remote_write_spec/>): a `WriteRequest` of
//! protocol buffers, compressed by Snappy's block format.

use super::Protocol;
use assay_measure::families::{Exposition, Family, Sample};

pub(super) const PROTOCOL: Protocol = Protocol {
    headers: &[
        ("Content-Type", "application/x-protobuf"),
        ("Content-Encoding", "snappy"),
        ("X-Prometheus-Remote-Write-Version", "0.1.0"),
    ],
    body,
    rejected: |_| None,
};

/// Wire types of protocol buffers.
const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const BYTES: u64 = 2;

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn key(out: &mut Vec<u8>, field: u64, wire: u64) {
    varint(out, field << 3 | wire);
}

fn bytes(out: &mut Vec<u8>, field: u64, content: &[u8]) {
    key(out, field, BYTES);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

/// `TimeSeries { repeated Label labels = 1; repeated Sample samples = 2; }`, with `Label { string name = 1; string value = 2; }` and
/// `Sample { double value = 1; int64 timestamp = 2; }`. Labels are sorted by name.
fn time_series(Sample { name, labels, value: number }: &Sample, at_ms: i64) -> Vec<u8> {
    let mut all = vec![("__name__", name.as_str())];
    all.extend(labels.iter().map(|(name, value)| (*name, value.as_str())));
    all.sort_unstable();
    let mut out = Vec::new();
    for (name, value) in all {
        let mut label = Vec::new();
        bytes(&mut label, 1, name.as_bytes());
        bytes(&mut label, 2, value.as_bytes());
        bytes(&mut out, 1, &label);
    }
    let mut sample = Vec::new();
    key(&mut sample, 1, FIXED_64);
    sample.extend_from_slice(&number.to_le_bytes());
    key(&mut sample, 2, VARINT);
    varint(&mut sample, at_ms as u64);
    bytes(&mut out, 2, &sample);
    out
}

/// The body: `WriteRequest { repeated TimeSeries timeseries = 1; }`.
fn body(figures: &Exposition) -> Result<Vec<u8>, String> {
    let mut request = Vec::new();
    for sample in figures.families.iter().flat_map(Family::samples) {
        bytes(&mut request, 1, &time_series(&sample, (figures.end_s * 1e3) as i64));
    }
    snap::raw::Encoder::new().compress_vec(&request).map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::families::{Kind, Point};

    /// The bytes by the specification's own rules, written out by hand.
    #[test]
    fn a_sample_is_what_the_specification_says() {
        let points = vec![Point { labels: vec![("run", "r".to_owned()), ("Z", "z".to_owned())], value: 1.0.into() }];
        let (name, help) = ("up".to_owned(), String::new());
        let families = vec![Family { name, kind: Kind::Gauge, unit: "", help, points }];
        let body = body(&Exposition { begin_s: 0.0, end_s: 0.3, families }).expect("small");
        let plain = snap::raw::Decoder::new().decompress_vec(&body).expect("Snappy");
        let mut expected = vec![0x0a, 46];
        expected.extend(b"\x0a\x06\x0a\x01Z\x12\x01z");
        expected.extend(b"\x0a\x0e\x0a\x08__name__\x12\x02up");
        expected.extend(b"\x0a\x08\x0a\x03run\x12\x01r");
        expected.extend(b"\x12\x0c\x09\x00\x00\x00\x00\x00\x00\xf0\x3f\x10\xac\x02");
        expected[1] = (expected.len() - 2) as u8;
        assert_eq!(plain, expected);
    }
}
