use super::*;
use crate::peer::testing::{Served, against, figure};
use assay_measure::kind::Kind as _;
use assay_testkit::conformance::probe_suite_with;
use assay_testkit::port::free_port;
use std::net::TcpListener;
use std::time::Duration;

#[test]
fn it_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let violations = probe_suite_with(&SPEC, &["method=tcp-echo"], dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

#[test]
fn every_echo_answers_and_the_record_holds_together() {
    let served = Served::new(&SPEC, &[]);
    for more in [
        &["method=tcp-echo"][..],
        &["method=udp-echo"],
        &["method=tcp-echo", "size=8192", "reply=0"],
        &["method=udp-echo", "size=64", "reply=8192"],
        &["method=tcp-echo", "flood-one"],
        &["method=tcp-connect", "rate=50"],
    ] {
        let record = served.run(1, more).unwrap_or_else(|error| panic!("{more:?}: {error}"));
        assert_eq!(record.run.verdict, "complete", "{more:?}");
        let violated = assay_measure::identity::violated(&record).len();
        assert_eq!(violated, 0, "{more:?}: {:?}", record.integrity);
        assert_eq!(figure(&record, "packets_lost_pct"), 0.0, "{more:?}");
        assert!(figure(&record, "rtt_us_min") > 0.0, "{more:?}");
        assert!(figure(&record, "rtt_us_max") >= figure(&record, "rtt_us_min"), "{more:?}");
        let seconds: Vec<f64> =
            record.series.metrics["rtt_us_p50"].iter().filter_map(assay_measure::record::Figure::value).collect();
        // The median of all lies among those of the seconds.
        let middle = figure(&record, "rtt_us_p50");
        let (least, most) =
            (seconds.iter().copied().fold(f64::MAX, f64::min), seconds.iter().copied().fold(0.0, f64::max));
        assert!(least <= middle && middle <= most, "{more:?}: {middle} of {seconds:?}");
        let text = super::record::KIND.in_words_of_tool(&record).unwrap();
        assert!(text.contains("0% packet loss") && text.contains("rtt min/avg/max/mdev = "), "{text}");
    }
}

#[test]
fn the_same_beside_a_stream_and_without_one() {
    let echo = Served::new(&SPEC, &[]);
    let net = Served::new(&crate::network::SPEC, &[]);
    let port = format!("load={}", net.port);
    let record = echo.run(2, &["method=tcp-echo", &port]).unwrap();
    assert_eq!(record.run.verdict, "complete");
    let violated = assay_measure::identity::violated(&record).len();
    assert_eq!(violated, 0, "{:?}", record.integrity);
    assert!(figure(&record, "loaded.packets_sent_count") > 100.0);
    assert!(figure(&record, "loaded.rtt_us_p50") > 0.0);
    assert!(figure(&record, "loaded.tcp_throughput_bits_per_s_mean") > 1e6);
    // The figures without it are those of a test without --load.
    assert!(figure(&record, "packets_sent_count") <= 2000.0);
    let nobody = format!("load={}", free_port());
    let record = echo.run(1, &["method=tcp-echo", &nobody]).unwrap();
    let verdict = serde_json::to_string(&record.run).unwrap();
    assert!(verdict.contains("the stream of --load failed"), "{verdict}");
    assert!(figure(&record, "packets_received_count") > 0.0);
}

#[test]
fn ping_17_without_a_privilege_it_falls_back_and_says_so() {
    let served = Served::new(&SPEC, &[]);
    let record = served.run(1, &["count=5"]).unwrap();
    let part = serde_json::to_value(&record).unwrap()["parts"]["ping"].clone();
    let method = part["method"].as_str().unwrap();
    match method {
        "icmp-raw" | "icmp-dgram" => assert_eq!(part["why_not"], serde_json::json!([])),
        "tcp-echo" => {
            let why = part["why_not"][0].as_str().unwrap();
            assert!(why.contains("icmp is not allowed here"), "{why}");
            assert!(record.doubts().any(|(_, told)| told.contains("The method is tcp-echo")));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn ping_18_the_time_in_the_server_is_told_apart() {
    let slow = Served::new(&SPEC, &["reply-after=5ms"]);
    for method in ["method=tcp-echo", "method=udp-echo"] {
        let record = slow.run(1, &[method, "rate=100"]).unwrap();
        let of = |stem: &str| figure(&record, &format!("{stem}_us_avg"));
        assert!(figure(&record, "rtt_server_us_min") >= 5000.0, "{method}");
        // How long the network takes depends on who else runs here; with the server's time it is all of a round trip.
        let (whole, parts) = (of("rtt"), of("rtt_server") + of("rtt_network"));
        assert!((whole - parts).abs() < 0.01 * whole, "{method}: {whole} {parts}");
    }
}

#[test]
fn a_lost_datagram_is_counted_and_waited_for() {
    // A server whose client is unknown to it is silent over UDP: a token that has been taken back.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let stop = Stop::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept().unwrap().0;
            let mut peer = crate::peer::line::Line::of(stream, String::new(), Duration::from_secs(20), &stop);
            crate::peer::hello::welcome(&mut peer, echo::SERVICE, None, || true).unwrap();
            peer.write(&[7; 8], "the token").unwrap();
            let _held = std::net::UdpSocket::bind(("127.0.0.1", port)).unwrap();
            let mut byte = [0];
            let _ = peer.read(&mut byte, "the end");
        });
        let record = against(&SPEC, port, 1, &["method=udp-echo", "count=3", "timeout=50ms"]).unwrap();
        assert_eq!(record.run.verdict, "invalid");
        assert_eq!(figure(&record, "packets_lost_pct"), 100.0);
        assert!(figure(&record, "rtt_response_us_max") >= 50_000.0);
    });
}

#[test]
fn a_server_that_floods_holds_nobody_beyond_the_time_of_a_request() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let begun = std::time::Instant::now();
    let long = Duration::from_secs(180);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept().unwrap().0;
            let mut peer = crate::peer::line::Line::of(stream, String::new(), long, &Stop::new());
            crate::peer::hello::welcome(&mut peer, echo::SERVICE, None, || true).unwrap();
            peer.write(&[7; 8], "the token").unwrap();
            // Replies to a request that was never made.
            let mut reply = [0; echo::REPLY_BYTES];
            echo::Head { seq: 1 << 40, token: 0, payload: 0, reply: 0 }.write(&mut reply);
            let replies = reply.repeat(100);
            while begun.elapsed() < long && peer.write(&replies, "in a test").is_ok() {}
        });
        let words = ["method=tcp-echo", "count=3", "timeout=50ms", "size=0"];
        let record = against(&SPEC, port, 1, &words).unwrap();
        assert_eq!(figure(&record, "packets_lost_pct"), 100.0);
    });
}

#[test]
fn peers_that_are_none_and_words_that_contradict_are_told() {
    let told = against(&SPEC, free_port(), 1, &["method=tcp-echo"]).unwrap_err().to_string();
    assert!(told.contains("cannot connect") && told.contains("assay ping server"), "{told}");
    let served = Served::new(&SPEC, &[]);
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    std::fs::write(&file, "a secret of ours").unwrap();
    let secret = format!("secret-file={}", file.display());
    let told = served.run(1, &["method=tcp-echo", &secret]).unwrap_err().to_string();
    assert!(told.contains("--secret-file"), "{told}");
    let closed = Served::new(&SPEC, &[&secret]);
    assert!(closed.run(1, &["method=udp-echo"]).is_err());
    assert_eq!(closed.run(1, &["method=udp-echo", &secret, "count=5"]).unwrap().run.verdict, "complete");
    for (more, wanted) in [
        (&["method=carrier"][..], "--method carrier"),
        (&["rate=0"], "--rate 0"),
        (&["rate=10", "flood-one"], "exclude each other"),
        (&["size=70000"], "--size 70000"),
        (&["timeout=0s"], "--timeout 0s"),
        (&["count=0"], "--count 0"),
        (&["load=0"], "--load 0"),
        (&["load=5201", "count=5"], "--count and --load"),
    ] {
        let error = against(&SPEC, 1, 1, more).unwrap_err();
        assert!(matches!(&error, EngineError::Usage(why) if why.contains(wanted)), "{more:?}: {error}");
    }
}

proptest::proptest! {
    #[test]
    fn requests_and_packets_of_any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..100)) {
        fuzz(&bytes);
        let mut begun = b"asECHO01".to_vec();
        begun.extend(&bytes);
        fuzz(&begun);
    }
}
