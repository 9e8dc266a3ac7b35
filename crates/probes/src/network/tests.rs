use super::wire::{Control, Cookie, State};
use super::*;
use crate::peer::testing::{Served, against, figure};
use assay_measure::kind::Kind as _;
use assay_run::engine::EngineError;
use assay_testkit::conformance::probe_suite;
use assay_testkit::port::free_port;
use std::net::{TcpListener, TcpStream};
use std::sync::Mutex;
use std::time::Instant;

/// No answer takes so long, however busy the machine is.
const LONG: Duration = Duration::from_secs(120);

#[test]
fn it_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Datagrams for which some socket of this machine had no room meanwhile.
fn dropped(record: &Record) -> f64 {
    let part = serde_json::to_value(record).unwrap()["parts"]["network"].clone();
    let side = |name: &str| part[name]["udp"]["in_errors"].as_f64().unwrap();
    side("native_local").max(side("native_remote"))
}

#[test]
fn both_ends_agree_on_what_was_moved_in_every_mode() {
    let served = Served::new(&SPEC, &[]);
    for more in [
        &[][..],
        &["reverse"],
        &["bidir", "parallel=2"],
        &["zerocopy", "no-delay", "length=64K"],
        &["udp", "bitrate=20M"],
        &["udp", "bitrate=20M", "reverse"],
        &["udp", "bitrate=20M", "bidir", "pace=strict"],
        &["set-mss=1000", "window=65536"],
    ] {
        let record = served.run(1, more).unwrap_or_else(|error| panic!("{more:?}: {error}"));
        let bad = assay_measure::identity::violated(&record).len();
        assert_eq!(bad, 0, "{more:?}: {:?}", record.integrity);
        assert_eq!(record.run.verdict, "complete", "{more:?}");
        let is_both = more.contains(&"bidir");
        let proto = if more.contains(&"udp") { "udp" } else { "tcp" };
        for role in if is_both { &["tx_c_", "rx_c_"][..] } else { &[""] } {
            let got = figure(&record, &format!("{role}receiver.{proto}_throughput_bits_per_s_mean"));
            assert!(got > 1e6, "{more:?} {role}: {got}");
            if proto == "udp" {
                // Nothing is lost on loopback but what the kernel says it dropped while this machine was busy.
                let lost = figure(&record, &format!("{role}receiver.udp_lost_exact_count"));
                assert!(lost <= dropped(&record), "{more:?}: {lost}");
            }
        }
    }
}

#[test]
fn net_11_what_is_left_out_counts_nowhere() {
    let served = Served::new(&SPEC, &[]);
    let record = served.run(3, &["omit=2s", "bitrate=80M"]).unwrap();
    let part = serde_json::to_value(&record).unwrap()["parts"]["network"].clone();
    let rows = part["intervals"].as_array().unwrap();
    let omitted = rows.iter().filter(|row| row["is_omitted"] == true).count();
    assert_eq!((rows.len(), omitted), (5, 2), "{rows:#?}");
    let text = super::record::KIND.in_words_of_tool(&record).unwrap();
    assert_eq!(text.matches("(omitted)").count(), 2, "{text}");
    let of_sender = text.lines().find(|line| line.ends_with("sender")).unwrap();
    // It is as long as the intervals that count, which a busy host may end a little late.
    let counted = rows.iter().filter(|row| row["is_omitted"] == false);
    let ends = counted.map(|row| row["end_s"].as_f64().unwrap());
    let end_s = ends.fold(0.0, f64::max);
    assert!(of_sender.contains(&format!("  0.00-{end_s:.2}   sec")), "{text}");
    // What counts is what was moved in these, to the byte.
    let bytes = |omitted: bool| -> u64 {
        let rows = rows.iter().filter(|row| row["is_omitted"] == omitted);
        rows.map(|row| row["streams"][0]["bytes"].as_u64().unwrap()).sum()
    };
    assert!(bytes(true) > 0, "{rows:#?}");
    assert_eq!(figure(&record, "sender.tcp_moved_bytes"), bytes(false) as f64);
}

#[test]
fn a_number_of_bytes_or_blocks_ends_a_test() {
    let served = Served::new(&SPEC, &[]);
    for (more, bytes) in [
        (&["bytes=10M"][..], 10 << 20),
        (&["blockcount=100"], 100 << 17),
        (&["udp", "bitrate=100M", "blockcount=50", "length=1000"], 50_000),
    ] {
        let record = served.run(60, more).unwrap();
        let proto = if more[0] == "udp" { "udp" } else { "tcp" };
        let sent = figure(&record, &format!("sender.{proto}_moved_bytes"));
        assert_eq!(sent, f64::from(bytes), "{more:?}");
    }
}

/// A script that calls one test after the other meets no busy server.
#[test]
fn a_client_that_begins_again_at_once_is_served() {
    let served = Served::new(&SPEC, &[]);
    let quick = ["blockcount=1"];
    for _ in 0..10 {
        served.run(60, &quick).unwrap();
    }
}

#[test]
fn net_07_a_busy_server_refuses_a_second_client_and_goes_on() {
    let served = Served::new(&SPEC, &[]);
    let stream = TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    let mut first = Control::new(stream, LONG).unwrap();
    first.send(&Cookie::new().0).unwrap();
    // It has begun with this one.
    assert_eq!(first.state().unwrap(), State::ParamExchange);
    let refused = served.run(1, &[]).unwrap_err().to_string();
    assert!(refused.contains("busy with another test"), "{refused}");
    first.send_json(&serde_json::json!({"tcp": true, "time": 1})).unwrap();
    assert_eq!(first.state().unwrap(), State::CreateStreams);
}

#[test]
fn a_server_outlives_clients_that_say_nothing_nonsense_or_too_much() {
    let served = Served::new(&SPEC, &["patience=1s"]);
    let dial = || TcpStream::connect(("127.0.0.1", served.port)).unwrap();
    let silent = dial();
    // The server may still be busy with the one before.
    let ask = || {
        let begun = Instant::now();
        while begun.elapsed() < LONG {
            let mut control = Control::new(dial(), LONG).unwrap();
            control.send(&Cookie::new().0).unwrap();
            if control.state().unwrap() == State::ParamExchange {
                return control;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("it is busy for good");
    };
    let mut held = Vec::new();
    for after in [&b"\xff\xff\xff\xff"[..], b"\0\0\0\x05{{{{{", b"\0\0\0\x0f{\"tcp\":\"maybe\"}"] {
        let mut control = ask();
        control.send(after).unwrap();
        // It closes, or says what it does not like.
        let _ = control.state();
        held.push(control);
    }
    // One that asks for streams and opens none, and one that is gone in the middle.
    let mut control = ask();
    control.send_json(&serde_json::json!({"tcp": true, "time": 1})).unwrap();
    assert_eq!(control.state().unwrap(), State::CreateStreams);
    drop(control);
    // Once it has given that one up.
    drop(ask());
    drop(silent);
}

/// What the client says of a server that answers its cookie with these bytes and is silent then.
fn told_of(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let held = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (mut stream, _) = listener.accept().unwrap();
            std::io::Write::write_all(&mut stream, answer).unwrap();
            held.lock().unwrap().push(stream);
        });
        against(&SPEC, port, 1, &["patience=500ms"]).unwrap_err().to_string()
    })
}

#[test]
fn a_peer_that_is_silent_or_no_peer_ends_in_one_sentence_within_the_patience() {
    for (answer, wanted) in [
        (&b""[..], "it was silent for 0.5 s"),
        (b"SSH-2.0-OpenSSH", "does not speak iperf3's protocol"),
        (b"\x0d", "not ParamExchange"),
        (b"\xff", "busy with another test"),
        (b"\xfe\0\0\0\x8e\0\0\0\0", "--secret-file"),
        (b"\x09\x0b", "the server was stopped"),
    ] {
        let told = told_of(answer);
        assert!(told.contains(wanted), "{answer:?}: {told}");
    }
    let told = against(&SPEC, free_port(), 1, &[]).unwrap_err().to_string();
    assert!(told.contains("cannot connect") && told.contains("assay net server"), "{told}");
}

#[test]
fn who_knows_the_secret_is_served_and_an_iperf3_is_told_why_not() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("secret");
    std::fs::write(&file, "a secret of ours").unwrap();
    let secret = format!("secret-file={}", file.display());
    let served = Served::new(&SPEC, &[&secret]);
    let record = served.run(1, &[&secret, "parallel=2", "bitrate=10M"]).unwrap();
    assert_eq!(record.run.verdict, "complete");
    let refused = served.run(1, &[]).unwrap_err().to_string();
    assert!(refused.contains("--secret-file"), "{refused}");
    std::fs::write(&file, "another secret").unwrap();
    let refused = served.run(1, &[&secret]).unwrap_err().to_string();
    assert!(refused.contains("secret"), "{refused}");
    let open = Served::new(&SPEC, &[]);
    let refused = open.run(1, &[&secret]).unwrap_err().to_string();
    assert!(refused.contains("without --secret-file"), "{refused}");
}

#[test]
fn words_that_contradict_or_exceed_are_told_before_anything_is_sent() {
    for (more, wanted) in [
        (&["reverse", "bidir"][..], "exclude each other"),
        (&["version4", "version6"], "exclude each other"),
        (&["bytes=1M", "blockcount=3"], "exclude each other"),
        (&["parallel=129"], "--parallel 129"),
        (&["length=2M"], "--length 2M"),
        (&["udp", "length=8"], "--length 8"),
        (&["bitrate=fast"], "--bitrate fast"),
        (&["bitrate=10M/5000"], "1 to 1000 blocks"),
        (&["omit=601s"], "--omit 601s"),
        (&["interval=5ms"], "--interval 5ms"),
        (&["pace=never"], "--pace never"),
        (&["udp", "zerocopy"], "--zerocopy"),
        (&["tos=256"], "--tos 256"),
        (&["bind=nowhere"], "--bind nowhere"),
        (&["patience=0s"], "--patience 0s"),
    ] {
        let error = against(&SPEC, 1, 1, more).unwrap_err();
        let told = error.to_string();
        assert!(matches!(error, EngineError::Usage(_)) && told.contains(wanted), "{more:?}: {told}");
    }
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(256))]
    #[test]
    fn net_15_frames_of_any_bytes_are_read_or_refused(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..400)) {
        fuzz(&bytes);
        let text = String::from_utf8_lossy(&bytes);
        let braced = format!("{{\"tcp\":true,\"streams\":[{{{text}}}],{text}}}");
        fuzz(braced.as_bytes());
    }
}
