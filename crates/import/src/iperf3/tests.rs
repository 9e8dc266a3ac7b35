//! iperf3's outputs: one and several streams, both ways, UDP, a server's log, and both faces of one run.

use super::super::testing::{imported, info, number, sample, survives, told};
use super::super::{Tool, recognise};

const SAMPLES: [&str; 11] = [
    "iperf3-tcp.txt",
    "iperf3-3.12-tcp.txt",
    "iperf3-3.12-tcp.json",
    "iperf3-3.12-udp.txt",
    "iperf3-3.12-udp.json",
    "iperf3-3.12-parallel.txt",
    "iperf3-3.12-bidir.txt",
    "iperf3-3.12-bidir.json",
    "iperf3-3.12-verbose.txt",
    "iperf3-3.12-reverse.txt",
    "iperf3-3.12-server.txt",
];

#[test]
fn every_sample_is_recognised_and_read_as_frozen() {
    for name in SAMPLES {
        assert_eq!(recognise(&sample(name)), Some(Tool::Iperf3), "{name}");
        insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
    }
}

#[test]
fn the_published_run_gives_its_figures() {
    let record = imported("iperf3-tcp.txt");
    assert_eq!(
        number(&record, "sender", "tcp_throughput_bits_per_s_mean"),
        1.44e9
    );
    assert_eq!(number(&record, "sender", "tcp_retransmits_count"), 747.0);
    assert_eq!(record.interval.elapsed_s.value(), Some(10.0));
    let series = &record.series;
    assert_eq!(series.t_s.len(), 10);
    assert_eq!(
        series.metrics["tcp_retransmits_count"][9].value(),
        Some(54.0)
    );
    assert_eq!(
        series.metrics["tcp_cwnd_bytes"][9].value(),
        Some(93.5 * 1024.0)
    );
}

#[test]
fn sums_stand_for_parallel_streams() {
    let record = imported("iperf3-3.12-parallel.txt");
    let sum = number(&record, "sender", "tcp_throughput_bits_per_s_mean");
    assert_eq!(sum, 22.4e9);
    let streams = number(&record, "stream 5 sender", "tcp_throughput_bits_per_s_mean")
        + number(&record, "stream 7 sender", "tcp_throughput_bits_per_s_mean");
    assert!((sum - streams).abs() < 0.2e9, "{sum} {streams}");
    assert_eq!(record.series.t_s.len(), 2);
}

#[test]
fn both_directions_keep_their_roles() {
    for name in ["iperf3-3.12-bidir.txt", "iperf3-3.12-bidir.json"] {
        let record = imported(name);
        for scope in ["TX-C sender", "RX-C receiver"] {
            assert!(
                number(&record, scope, "tcp_throughput_bits_per_s_mean") > 1e9,
                "{name}"
            );
        }
        assert_eq!(
            record.series.metrics["tcp_throughput_bits_per_s_rx_c"].len(),
            2,
            "{name}"
        );
    }
}

#[test]
fn losses_and_jitter_are_the_receivers() {
    let record = imported("iperf3-3.12-udp.txt");
    assert_eq!(number(&record, "receiver", "udp_jitter_us_mean"), 46.0);
    assert_eq!(number(&record, "receiver", "udp_datagrams_count"), 573.0);
    let json = imported("iperf3-3.12-udp.json");
    assert_eq!(number(&json, "receiver", "udp_lost_count"), 0.0);
}

#[test]
fn omitted_seconds_and_other_tests_are_left_out() {
    let record = imported("iperf3-3.12-verbose.txt");
    assert_eq!(record.series.t_s, [1.0, 2.0]);
    assert_eq!(info(&record).tool_version, "3.12");
    let server = imported("iperf3-3.12-server.txt");
    assert!(
        info(&server)
            .notes
            .iter()
            .any(|note| note.text.contains("second test"))
    );
}

#[test]
fn a_stream_of_events_is_read_as_the_document() {
    let document: serde_json::Value =
        serde_json::from_str(&sample("iperf3-3.12-tcp.json")).expect("JSON");
    let mut lines = vec![format!(
        "{{\"event\":\"start\",\"data\":{}}}",
        document["start"]
    )];
    for interval in document["intervals"].as_array().expect("an array") {
        lines.push(format!("{{\"event\":\"interval\",\"data\":{interval}}}"));
    }
    lines.push(format!(
        "{{\"event\":\"end\",\"data\":{}}}",
        document["end"]
    ));
    let record = super::super::testing::record_of("stream", &lines.join("\n"));
    let whole = imported("iperf3-3.12-tcp.json");
    assert_eq!(record.series, whole.series);
    assert_eq!(
        number(&record, "sender", "tcp_throughput_bits_per_s_mean"),
        number(&whole, "sender", "tcp_throughput_bits_per_s_mean")
    );
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
        survives(SAMPLES[which], seed);
    }
}
