//! iperf3's outputs: one and several streams, both ways, UDP, a server's log, and both faces of one run.

use super::super::testing::{imported, info, number, record_of, sample, survives, told};
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
    assert_eq!(number(&record, "sender", "tcp_throughput_bits_per_s_mean"), 1.44e9);
    assert_eq!(number(&record, "sender", "tcp_retransmits_count"), 747.0);
    assert_eq!(record.interval.elapsed_s.value(), Some(10.0));
    let series = &record.series;
    assert_eq!(series.t_s.len(), 10);
    assert_eq!(series.metrics["tcp_retransmits_count"][9].value(), Some(54.0));
    assert_eq!(series.metrics["tcp_cwnd_bytes"][9].value(), Some(93.5 * 1024.0));
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
            assert!(number(&record, scope, "tcp_throughput_bits_per_s_mean") > 1e9, "{name}");
        }
        assert_eq!(record.series.metrics["tcp_throughput_bits_per_s_rx_c"].len(), 2, "{name}");
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
    assert!(info(&server).notes.iter().any(|note| note.text.contains("another run begins")));
}

#[test]
fn a_stream_of_events_is_read_as_the_document() {
    let document: serde_json::Value = serde_json::from_str(&sample("iperf3-3.12-tcp.json")).expect("JSON");
    let mut lines = vec![format!("{{\"event\":\"start\",\"data\":{}}}", document["start"])];
    for interval in document["intervals"].as_array().expect("an array") {
        lines.push(format!("{{\"event\":\"interval\",\"data\":{interval}}}"));
    }
    lines.push(format!("{{\"event\":\"end\",\"data\":{}}}", document["end"]));
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

#[test]
fn zeros_that_the_printing_end_did_not_measure_are_left_out() {
    let text = r#"{"start": {"version": "iperf 3.12", "test_start": {"protocol": "TCP", "reverse": 1}},
 "intervals": [],
 "end": {"streams": [{"sender": {"socket": 5, "seconds": 2.0, "bytes": 2000, "bits_per_second": 8000, "retransmits": 3,
   "max_snd_cwnd": 0, "max_rtt": 0, "min_rtt": 0, "mean_rtt": 0},
   "receiver": {"socket": 5, "seconds": 2.0, "bytes": 2000, "bits_per_second": 8000}}],
  "sum_sent": {"seconds": 2.0, "bytes": 2000, "bits_per_second": 8000, "retransmits": 3},
  "sum_received": {"seconds": 2.0, "bytes": 2000, "bits_per_second": 8000}}}"#;
    let record = record_of("reverse.json", text);
    assert_eq!(number(&record, "sender", "tcp_retransmits_count"), 3.0);
    let keys = info(&record).values.iter().map(|value| value.key.as_str());
    assert!(keys.clone().all(|key| !key.contains("rtt") && !key.contains("cwnd")), "{:?}", keys.collect::<Vec<_>>());
}

#[test]
fn the_bytes_of_an_old_udp_test_are_the_senders_and_its_losses_the_receivers() {
    let text = r#"{"start": {"version": "iperf 3.1.3", "test_start": {"protocol": "UDP"}},
 "intervals": [],
 "end": {"streams": [{"udp": {"socket": 4, "seconds": 10.0, "bytes": 1310720, "bits_per_second": 1048576, "jitter_ms": 0.05,
   "lost_packets": 8, "packets": 160, "lost_percent": 5, "out_of_order": 0}}],
  "sum": {"seconds": 10.0, "bytes": 1310720, "bits_per_second": 1048576, "jitter_ms": 0.05, "lost_packets": 8, "packets": 160,
   "lost_percent": 5}}}"#;
    let record = record_of("udp.json", text);
    assert_eq!(number(&record, "sender", "udp_moved_bytes"), 1_310_720.0);
    assert_eq!(number(&record, "receiver", "udp_lost_count"), 8.0);
    let of_receiver = info(&record).values.iter().filter(|value| value.scope == "receiver");
    assert!(of_receiver.into_iter().all(|value| value.key != "udp_moved_bytes"));
}

#[test]
fn iperf_2_is_read() {
    let text = "------------------------------------------------------------\n\
        Client connecting to 10.20.0.2, TCP port 5001\n\
        TCP window size: 85.0 KByte (default)\n\
        ------------------------------------------------------------\n\
        [  3] local 10.20.0.1 port 40000 connected with 10.20.0.2 port 5001\n\
        [ ID] Interval       Transfer     Bandwidth\n\
        [  3]  0.0- 5.0 sec  5.45 GBytes  9.36 Gbits/sec\n\
        [  3]  5.0-10.0 sec  5.46 GBytes  9.38 Gbits/sec\n\
        [  3]  0.0-10.0 sec  10.9 GBytes  9.37 Gbits/sec\n";
    let record = record_of("iperf2.txt", text);
    assert_eq!(record.series.t_s, [5.0, 10.0]);
    assert_eq!(number(&record, "sender", "tcp_throughput_bits_per_s_mean"), 9.37e9);
}
