use super::wire::{ACK_BYTES, Ack, END, Found, HEADER_BYTES, Header, Ready, SERVICE, Wanted};
use super::{SPEC, hear_a_stranger, server};
use crate::peer::hello::{greet, welcome};
use crate::peer::line::Line;
use crate::peer::testing::{Served, against};
use assay_run::probe::{Request, Serving as _};
use assay_run::stop::Stop;
use assay_testkit::conformance;
use proptest::prelude::*;
use std::io::Read;
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// No answer takes so long, however busy the machine is.
const LONG: Duration = Duration::from_secs(180);

#[test]
fn it_passes_the_conformance_suite() {
    let dir = tempfile::tempdir().expect("a directory");
    let found = conformance::probe_suite(&SPEC, dir.path());
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
    welcome(&mut line, SERVICE, None, || true).expect("it greets");
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
        let served: Vec<_> = (0..more).map(|_| Served::new(&SPEC, &[])).collect();
        let others = served.iter().map(|one| format!("127.0.0.1:{}", one.port));
        let standby = format!("standby={}", others.collect::<Vec<_>>().join(","));
        let record = std::thread::scope(|scope| {
            scope.spawn(|| fails_after_three(&listener, mode == "async"));
            let mode = format!("mode={mode}");
            against(&SPEC, port, 30, &["length=64", &mode, &standby]).expect("a record")
        });
        assert_eq!(record.run.verdict, "invalid", "{mode}");
        let told = record.run.verdict_reasons.join("; ");
        assert!(told.contains("it failed: its log: No space left on device"), "{told}");
        let messages = serde_json::to_value(&record).expect("JSON")["parts"]["redo"]["messages_count"].clone();
        assert!((1..=3).contains(&messages.as_u64().expect("a count")), "{mode}: {messages}");
    }
}

/// A connection to a server that knows what is wanted, and the server's first answer that is more than a sign of life.
fn asked(port: u16, wanted: &serde_json::Value) -> (Line, Ready) {
    let mut line = Line::connect("127.0.0.1", port, LONG, &Stop::new()).expect("there");
    greet(&mut line, SERVICE, None).expect("welcome");
    line.tell(wanted, "in a test").expect("taken");
    loop {
        let ready: Ready = line.hear(1 << 20, "in a test").expect("an answer");
        if !ready.is_preparing {
            return (line, ready);
        }
    }
}

/// What a client may want at all is one of these, or lies between two of them.
#[test]
fn redo_18_parameters_at_every_edge_are_refused_or_served_and_the_server_ends_well() {
    let dir = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).expect("a directory");
    let words = [format!("allow-write={}", dir.path().display()), "max-log=1m".to_owned()];
    let served = Served::new(&SPEC, &words.each_ref().map(String::as_str));
    let (huge, most) = (u64::MAX, 1_u64 << 20);
    for (key, values, taken) in [
        ("length", &[0, 1, 4095, 4096, 4097, most, huge][..], 0..=4097),
        ("log_bytes", &[0, 1, 4096, most, most + 1, huge], 0..=most),
        ("log_block", &[0, 1, 511, 512, 513, 4096, most, 2 * most, huge], 512..=4096),
        ("apply_us", &[0, 1, 10_000_001, huge], 0..=1),
        ("alone_ms", &[0, 1, huge], 0..=1),
        ("patience_ms", &[0, huge], 0..=huge),
    ] {
        for value in values {
            for write in ["pagecache", "dsync"] {
                let length = if key == "length" { *value } else { 0 };
                let mut wanted = serde_json::json!({ "write": write, "log_block": 512 });
                wanted[key] = (*value).into();
                let (mut line, ready) = asked(served.port, &wanted);
                let is_taken = taken.contains(value) && *value != 513;
                assert_eq!(ready.refused.is_empty(), is_taken, "{key} {value}: {}", ready.refused);
                if !is_taken {
                    continue;
                }
                assert!((1..=most).contains(&ready.log_bytes), "{key} {value}: {}", ready.log_bytes);
                for sequence in 1..=3 {
                    let header = Header { length: length as u32, sequence, ..Header::default() };
                    line.write_both(&header.bytes(), &vec![7; length as usize], "in a test").expect("taken");
                    let mut ack = [0; ACK_BYTES];
                    line.read(&mut ack, "in a test").unwrap_or_else(|error| panic!("{key} {value}: {error}"));
                    assert_eq!(Ack::read(&ack).sequence, sequence);
                }
            }
        }
    }
    served.ended();
    assert_eq!(std::fs::read_dir(dir.path()).expect("there").count(), 0);
}

#[test]
fn who_holds_every_place_in_silence_gives_one_to_who_wants_it() {
    let served = Served::new(&SPEC, &["clients=2"]);
    let patient = serde_json::json!({ "length": 64, "patience_ms": u64::MAX });
    let held = [asked(served.port, &patient), asked(served.port, &patient)];
    let begun = std::time::Instant::now();
    // Until they have been silent for long enough it is busy.
    let record = loop {
        match served.run(1, &["length=64"]) {
            Ok(record) => break record,
            Err(error) => assert!(error.to_string().contains("places are taken"), "{error}"),
        }
        assert!(begun.elapsed() < LONG, "both are held for good");
    };
    assert_eq!(record.run.verdict, "complete");
    let is_closed = |(line, _): &&(Line, Ready)| {
        let mut stream = line.stream();
        stream.set_nonblocking(true).expect("set");
        matches!(stream.read(&mut [0]), Ok(0))
    };
    assert_eq!(held.iter().filter(is_closed).count(), 1, "one place was wanted");
}

/// What the client says of a standby that does this after the greeting and the parameters.
fn told_of(more: &[&str], serve: impl FnOnce(&mut Line) + Send) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("known").port();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let stream = listener.accept().expect("a client").0;
            let mut line = Line::of(stream, String::new(), LONG, &Stop::new());
            welcome(&mut line, SERVICE, None, || true).expect("it greets");
            let _: Wanted = line.hear(1 << 16, "in a test").expect("it asks");
            serve(&mut line);
        });
        match against(&SPEC, port, 1, more) {
            Ok(record) => record.run.verdict_reasons.join("; "),
            Err(error) => error.to_string(),
        }
    })
}

#[test]
fn a_standby_that_makes_ready_for_ever_holds_nobody_beyond_the_time_out() {
    let begun = std::time::Instant::now();
    let for_ever = |line: &mut Line| {
        let ready = Ready { is_preparing: true, ..Ready::default() };
        while begun.elapsed() < LONG && line.tell(&ready, "in a test").is_ok() {
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let told = told_of(&["timeout=300ms", "write"], for_ever);
    assert!(told.ends_with("it took more than 0.3 s while it prepared (--timeout)"), "{told}");
}

#[test]
fn a_standby_that_has_consumed_more_than_there_was_or_says_the_same_again_is_none() {
    for (messages, wanted) in [(u64::MAX, format!("it has consumed {} of ", u64::MAX)), (1, "and 1 before".to_owned())]
    {
        let lies = |line: &mut Line| {
            line.tell(&Ready::default(), "in a test").expect("ready");
            let mut message = [0; HEADER_BYTES + 64];
            line.read(&mut message, "in a test").expect("a message");
            let ack = Ack { sequence: 1, messages, ..Ack::default() };
            let _ = line.write(&ack.bytes().repeat(2), "in a test");
            // The client closes when it has read it.
            while line.read(&mut message, "in a test").is_ok() {}
        };
        let told = told_of(&["mode=async", "length=64"], lies);
        assert!(told.contains(&wanted), "{told}");
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
            let server = server::Server::of(&request).expect("a server");
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
