use super::wire::{Ack, END, Found, HEADER_BYTES, Ready, SERVICE, Wanted};
use super::{RedoTransport, hear_a_stranger};
use crate::peer::hello::{greet, welcome};
use crate::peer::line::Line;
use crate::peer::testing::{Served, against};
use assay_run::probe::{Probe, Request};
use assay_run::stop::Stop;
use assay_testkit::conformance;
use proptest::prelude::*;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

#[test]
fn it_passes_the_conformance_suite() {
    let dir = tempfile::tempdir().expect("a directory");
    let found = conformance::probe_suite(&RedoTransport, dir.path());
    assert!(found.is_empty(), "{found:#?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn redo_18_any_bytes_are_heard(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        hear_a_stranger(&bytes);
    }

    #[test]
    fn redo_18_any_parameters_are_judged(
        length in any::<u64>(),
        log_bytes in any::<u64>(),
        log_block in any::<u64>(),
        seconds in any::<f64>(),
        level in any::<i32>(),
        write in prop::sample::select(&["none", "dsync", "direct-dsync", "nonsense"][..]),
    ) {
        let text = serde_json::json!({
            "length": length, "log_bytes": log_bytes, "log_block": log_block, "seconds": seconds, "write": write,
            "compress": { "zstd": level },
        });
        hear_a_stranger(text.to_string().as_bytes());
    }
}

/// A standby whose log fails after three messages of 64 bytes.
fn fails_after_three(listener: &TcpListener, is_async: bool) {
    let stream = listener.accept().expect("a client").0;
    let stop = Stop::new();
    let mut line = Line::of(stream, String::new(), Duration::from_secs(20), &stop);
    welcome(&mut line, SERVICE, None, false).expect("it greets");
    let _: Wanted = line.hear(1 << 16, "in a test").expect("it asks");
    line.tell(&Ready::default(), "in a test").expect("ready");
    for sequence in 1..=3 {
        let mut message = [0; HEADER_BYTES + 64];
        line.read(&mut message, "in a test").expect("a message");
        if !is_async || sequence == 3 {
            let ack = Ack { sequence, messages: sequence, ..Ack::default() };
            line.write(&ack.bytes(), "in a test").expect("heard");
        }
    }
    let ack = Ack { sequence: END, messages: 3, ..Ack::default() };
    line.write(&ack.bytes(), "in a test").expect("heard");
    let found = Found { failed: "its log: No space left on device".to_owned(), ..Found::default() };
    line.tell(&found, "in a test").expect("heard");
    // The client closes when it has read it.
    let _ = line.read(&mut [0; 1 << 20], "in a test");
}

#[test]
fn what_a_standby_fails_of_is_told_and_what_came_before_is_kept() {
    for (mode, more) in [("sync", 0), ("async", 0), ("sync", 1)] {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("known").port();
        let served: Vec<_> = (0..more).map(|_| Served::new(&RedoTransport, &[])).collect();
        let others = served.iter().map(|one| format!("127.0.0.1:{}", one.port));
        let standby = format!("standby={}", others.collect::<Vec<_>>().join(","));
        let record = std::thread::scope(|scope| {
            scope.spawn(|| fails_after_three(&listener, mode == "async"));
            let mode = format!("mode={mode}");
            against(&RedoTransport, port, 30, &["length=64", &mode, &standby]).expect("a record")
        });
        assert_eq!(record.run.verdict, "invalid", "{mode}");
        let told = record.run.verdict_reasons.join("; ");
        assert!(told.contains("it failed: its log: No space left on device"), "{told}");
        let messages = serde_json::to_value(&record).expect("JSON")["parts"]["redo"]["messages_count"].clone();
        assert!((1..=3).contains(&messages.as_u64().expect("a count")), "{mode}: {messages}");
    }
}

/// Greets a real server rightly, then says anything.
#[test]
fn redo_18_a_server_outlives_clients_that_greet_well_and_then_talk_nonsense() {
    let port = assay_testkit::port::free_port();
    let request = Request { place: "server".into(), words: vec![format!("port={port}")], ..Request::default() };
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| {
            let server = RedoTransport.server(&request).expect("a server");
            server.serve(&stop, &|_| {}).map_err(|e| e.to_string())
        });
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            std::thread::sleep(Duration::from_millis(10));
        }
        let mut random = assay_measure::prng::SplitMix64(7);
        for turn in 0..100_usize {
            let patience = Duration::from_secs(20);
            let mut line = Line::connect("127.0.0.1", port, patience, &Stop::new()).expect("there");
            greet(&mut line, SERVICE, None).expect("welcome");
            let mut bytes = vec![0; turn * 37];
            random.fill(&mut bytes);
            if turn % 2 == 0 {
                let wanted = super::wire::Wanted { length: 512, ..Default::default() };
                line.tell(&wanted, "in a test").expect("taken");
            }
            // It may hang up in the middle.
            let _ = line.write(&bytes, "in a test");
        }
        stop.request();
        served.join().expect("it does not panic").expect("it ends well");
    });
}
