//! oratcptest, the client's output: the request, one row per interval, the averages.

use super::lines::{PLAIN, Reader, Table};
use super::rows::op_row;

/// Bytes of framing that the tool counts with each message.
const FRAMING: f64 = 12.0;

#[rustfmt::skip]
pub(super) const ORATCPTEST: Table = Table {
    format: "oratcptest text",
    layer: "network",
    op: "redo_transport",
    marks: &[
        (92, &["Message payload", "Transport mode"]),
        (80, &["Mbytes/s", "Avg. throughput"]),
        (80, &["Mbytes/s", "The server is ready"]),
    ],
    lines: &[
        ("+", "[[Requesting a test]"),
        ("+ =", "Message payload = {redo_transport_message_bytes:?}"),
        ("", "Payload content type = {=}"),
        ("", "Delay between messages = {=}"),
        ("=", "Number of connections = {connections_count}"),
        ("=", "Socket send buffer = {socket_send_buffer_bytes:?}"),
        ("", "Socket send buffer = {=}"),
        ("", "Transport mode = {=}"),
        ("", "Disk write = {=}"),
        ("", "Statistics interval = {=}"),
        ("", "Test duration = {=}"),
        ("", "Test frequency = {=}"),
        ("", "Network Timeout = {=}"),
        ("", "(1 Mbyte = ..."),
        ("+", "({@:begin}) The server is ready."),
        ("", "({@:clock}) {redo_transport_bytes_per_s:?|Throughput}[ {redo_transport_us_avg:?|Latency}][ (disk-write {redo_transport_disk_write_us_avg:?|disk-write})]"),
        ("", "({@:end}) Test finished."),
        (".", "Avg. throughput = {redo_transport_bytes_per_s:?}"),
        (".", "Avg. latency = {redo_transport_us_avg:?}[ (disk-write {redo_transport_disk_write_us_avg:?|disk-write})]"),
    ],
    end: messages,
    ..PLAIN
};

/// Messages per second follow from bytes per second and the size, framing included.
fn messages(reader: &mut Reader<'_>) {
    let draft = &mut *reader.draft;
    let number = |key: &str| draft.number("", key);
    if let Some((rate, size)) = number("redo_transport_bytes_per_s").zip(number("redo_transport_message_bytes")) {
        let row = op_row(draft, "redo_transport");
        let per_s = rate / (size + FRAMING);
        let series = &mut draft.record.series.metrics;
        if let Some(bytes) = series.get("redo_transport_bytes_per_s") {
            let messages = bytes.iter().map(|bytes| bytes.scaled(1.0 / (size + FRAMING))).collect();
            series.insert("redo_transport_per_s".to_owned(), messages);
        }
        let op = &mut draft.record.driver.ops[row];
        op.per_s = per_s.into();
        if let Some(elapsed) = draft.record.interval.elapsed_s.value() {
            op.count = (per_s * elapsed).round() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, info, number, record_of, sample, survives, told};

    #[test]
    fn the_sample_is_read_as_frozen() {
        insta::assert_snapshot!(told(&imported("oratcptest-0.txt")));
    }

    #[test]
    fn network_and_disk_are_kept_apart() {
        let record = imported("oratcptest-0.txt");
        let whole = number(&record, "", "redo_transport_us_avg");
        let disk = number(&record, "", "redo_transport_disk_write_us_avg");
        assert!((whole - disk - 644.0).abs() < 1e-6, "{whole} {disk}");
        assert_eq!(record.interval.elapsed_s.value(), Some(60.0));
        assert_eq!(record.series.t_s.len(), 11);
        assert_eq!(record.run.sessions, 1);
        let cap = record.advice.iter().find(|advice| advice.id == "R41").expect("300 messages/s at the end");
        for words in ["a cap of 300 messages/s. From some second between 8 and 57 s on", "It is a round figure"] {
            assert!(cap.text.contains(words), "{}", cap.text);
        }
        let per_s = record.driver.ops[0].per_s.value().expect("derived");
        assert!((per_s - 394.9).abs() < 0.2, "{per_s}");
        assert!(info(&record).notes.iter().any(|note| note.text.contains("cut out")));
    }

    #[test]
    fn an_asynchronous_test_has_no_latency() {
        let text = sample("oratcptest-0.txt")
            .replace("= SYNC", "= ASYNC")
            .lines()
            .map(|line| line.split(" ms").next().unwrap_or_default().to_owned())
            .map(|line| match line.find("Mbytes/s") {
                Some(at) if line.starts_with('(') => line[..at + 8].to_owned(),
                _ => line,
            })
            .filter(|line| !line.contains("Avg. latency"))
            .collect::<Vec<_>>()
            .join("\n");
        let record = record_of("async", &text);
        assert!(!record.series.metrics.contains_key("redo_transport_us_avg"));
        assert_eq!(record.driver.ops[0].service.us_avg.value(), None);
        assert!(record.driver.ops[0].per_s.value().is_some());
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX) {
            survives("oratcptest-0.txt", seed);
        }
    }
}
