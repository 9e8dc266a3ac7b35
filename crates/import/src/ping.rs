//! ping's replies and summary: iputils, BusyBox, BSD, macOS and Windows.

use super::lines::{PLAIN, Reader, Table};
use super::number::{self, Printed};
use super::rows::op_row;
use super::text::At;
use assay_measure::record::{Figure, percentile_us};

#[rustfmt::skip]
pub(super) const PING: Table = Table {
    format: "ping text",
    layer: "network",
    op: "rtt",
    marks: &[
        (90, &["packets transmitted", "packet loss"]),
        (80, &[" bytes from ", "time="]),
        (80, &[" bytes from ", "time<"]),
        (80, &["Packets: Sent = ", "Lost = "]),
        (70, &["Reply from ", " TTL="]),
    ],
    lines: &[
        ("+", "PING {=test}"),
        ("+", "Pinging {=test}"),
        (".", "{packets_sent_count} packets transmitted, {packets_received_count|received} [packets] received[, +{packets_duplicate_count|duplicates} duplicates][, +{packets_in_error_count|errors} errors], {packets_lost_pct:?|packet loss} packet loss[, time {elapsed_s:?}]..."),
        (".", "Packets: Sent = {packets_sent_count}, Received = {packets_received_count}, Lost = {packets_lost_count} ({packets_lost_pct:?|loss} loss)..."),
        ("", "[rtt][round-trip] min/avg/max[/mdev][/stddev][/std-dev] = {rtt_us_min:ms|min}/{rtt_us_avg:ms|avg}/{rtt_us_max:ms|max}[/{rtt_us_mdev:ms|mdev}] ms..."),
        ("", "Minimum = {rtt_us_min:?}, Maximum = {rtt_us_max:?}, Average = {rtt_us_avg:?}"),
        ("!", "Reply from ...: Destination ..."),
        ("!", "From ... icmp_seq={} ..."),
    ],
    other: reply,
    end: distribution,
    ..PLAIN
};

/// `... time=0.085 ms`, `time<1 ms`, `time=1ms`
fn reply(reader: &mut Reader<'_>, at: At, text: &str) -> bool {
    if !text.contains(" bytes from ") && !text.starts_with("Reply from ") {
        return false;
    }
    let time = text.rsplit_once("time").map_or("", |(_, time)| time);
    let token = time.trim_start_matches('=').split_whitespace().next();
    let token = token.unwrap_or_default().trim_end_matches("ms");
    let row = op_row(reader.draft, "rtt");
    match number::measure(token).and_then(|ms| ms.number()) {
        Some(ms) if ms >= 0.0 => {
            let histogram = &mut reader.draft.record.driver.ops[row].service.hist_ns;
            histogram.record((ms * 1e6).round() as u64);
        }
        _ => reader.draft.note(at, "a reply without a time was skipped"),
    }
    if text.contains("DUP!") {
        reader.draft.note(at, "a duplicate reply: as in ping, it is included in the sums");
    }
    // Nothing else is read of replies without a summary: their number is what was counted.
    reader.count = if reader.count == 0 { at.line as u32 } else { reader.count };
    true
}

/// The distribution of the replies, where they were printed.
fn distribution(reader: &mut Reader<'_>) {
    let row = op_row(reader.draft, "rtt");
    let all = reader.draft.record.driver.ops[row].service.hist_ns.clone();
    if all.is_empty() {
        return;
    }
    // A number that was printed stays, be it 0 beside replies.
    if !reader.draft.has("", "packets_received_count") {
        let at = At { line: u64::from(reader.count), ..reader.at };
        let printed = Printed { value: all.count().into(), rounding: 0.0, text: String::new() };
        reader.put(at, "packets_received_count", "replies counted", "", printed, None);
    }
    let us = |ns: Option<u64>| ns.map_or_else(Figure::default, |ns| Figure::decimal(ns as f64 / 1e3));
    let mean = all.mean_ns().map_or_else(Figure::default, |ns| Figure::decimal(ns / 1e3));
    let service = &mut reader.draft.record.driver.ops[row].service;
    for (figure, counted) in
        [(&mut service.us_avg, mean), (&mut service.us_min, us(all.min_ns())), (&mut service.us_max, us(all.max_ns()))]
    {
        if figure.value().is_none() {
            *figure = counted;
        }
    }
    [service.us_p50, service.us_p90, service.us_p99, service.us_p999] =
        [0.5, 0.9, 0.99, 0.999].map(|q| percentile_us(&all, q));
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, record_of, survives, told};

    const SAMPLES: [&str; 4] = ["ping-iputils.txt", "ping-quiet.txt", "ping-busybox.txt", "ping-bsd.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn replies_give_the_distribution_that_the_summary_hides() {
        let record = imported("ping-iputils.txt");
        let op = &record.driver.ops[0];
        assert_eq!(op.service.hist_ns.count(), 5);
        assert_eq!(op.service.us_avg.value(), Some(51.0));
        let mean = op.service.hist_ns.mean_ns().expect("counted") / 1e3;
        assert!((mean - 51.0).abs() < 0.5, "{mean}");
        assert_eq!(number(&record, "", "rtt_us_mdev"), 17.0);
        let metrics = &record.metrics;
        let avg = assay_measure::record::metric::find(metrics, "rtt_us_avg").expect("a metric");
        assert_eq!(avg.value.value(), Some(51.0));
    }

    #[test]
    fn replies_alone_will_do() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.250 ms\n64 bytes from 10.0.0.1: icmp_seq=2 ttl=64 time=0.350 ms\n";
        let record = record_of("pasted", text);
        assert_eq!(record.driver.ops[0].service.us_avg.value(), Some(300.0));
        assert_eq!(record.driver.ops[0].count, 2);
    }

    #[test]
    fn a_host_with_time_in_its_name_keeps_its_replies() {
        let text = "64 bytes from time.google.com (216.239.35.0): icmp_seq=1 ttl=64 time=0.250 ms\n64 bytes from time.google.com (216.239.35.0): icmp_seq=2 ttl=64 time=0.350 ms\n";
        let record = record_of("pasted", text);
        assert_eq!(record.driver.ops[0].service.us_avg.value(), Some(300.0));
        assert_eq!(record.driver.ops[0].count, 2);
    }

    #[test]
    fn a_printed_number_of_replies_stays_whatever_was_counted() {
        let text = "64 bytes from 10.0.0.1: icmp_seq=1 ttl=64 time=0.250 ms\n1 packets transmitted, 0 received, 100% packet loss\n";
        let record = record_of("torn", text);
        assert_eq!(record.driver.ops[0].count, 0);
        assert_eq!(assay_testkit::places::misplaced(&record), [""; 0]);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
