//! Oracle by the program itself, as far as no server allows: what is refused, by whom, with which exit code. `assay selftest` on a
//! target that is here.

use crate::common::{Place, json};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

const PASSWORD: &str = "Kq9hunter2";

/// A listener that refuses the service, or never says anything.
fn listener(refuses: bool) -> (SocketAddr, Arc<AtomicU32>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("its address");
    let met = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&met);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::Relaxed);
            let mut stream = stream.expect("a connection");
            let mut asked = [0; 1024];
            let _ = stream.read(&mut asked);
            if refuses {
                let text = b"(DESCRIPTION=(ERR=12514))";
                let mut packet = vec![0, 12 + text.len() as u8, 0, 0, 4, 0, 0, 0, 0, 0, 0, text.len() as u8];
                packet.extend(text);
                let _ = stream.write_all(&packet);
            }
            // Until the other end has had enough.
            let mut rest = Vec::new();
            let _ = stream.read_to_end(&mut rest);
        }
    });
    (address, met)
}

#[test]
fn a_refusal_and_a_silence_are_one_clear_error_each_with_exit_code_3_and_no_password() {
    for (refuses, wanted) in [(true, "is not registered"), (false, "no answer within 1 s")] {
        let (address, met) = listener(refuses);
        let target = format!("oracle://slob@//{address}/orclpdb1");
        for verb in ["run", "prepare", "check", "destroy", "orders prepare", "orders check"] {
            let place = Place::new();
            let words: Vec<&str> = verb.split(' ').chain(["--target", &target]).collect();
            let mut command = place.command(&words);
            command.env("ASSAY_ORACLE_PASSWORD", PASSWORD);
            // A refusal is told a second late by the driver; silence is to end soon.
            command.env("ASSAY_ORACLE_ANSWER_TIMEOUT", if refuses { "60" } else { "1" });
            let output = command.output().expect("it starts");
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(3), "{verb}: {said}");
            assert!(said.contains(wanted), "{verb}: {said}");
            assert_eq!(said.lines().count(), 1, "{verb}: {said}");
            // Nobody waits for a silent server twice.
            assert_eq!(met.swap(0, Ordering::Relaxed), 1, "{verb}");
            let all = said + &String::from_utf8_lossy(&output.stdout);
            assert!(!all.contains(PASSWORD), "{verb}: {all}");
        }
    }
}

#[test]
fn what_the_url_lacks_is_a_usage_error_before_anything_connects() {
    let place = Place::new();
    for (target, wanted) in [
        ("oracle://slob@//127.0.0.1:1/s", "the password of user slob is missing"),
        ("oracle://127.0.0.1:1/s", "names no user"),
        ("oracle://system:x@//127.0.0.1:1/s", "the server's own tables"),
    ] {
        let output = place.command(&["run", "--target", target]).output().expect("it starts");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{target}: {said}");
        assert!(said.contains(wanted), "{target}: {said}");
    }
}

#[test]
fn order_entry_lies_in_the_schema_of_the_user_and_in_no_other() {
    let place = Place::new();
    let words = "orders run --target oracle://soe:x@//127.0.0.1:1/s --set ORDERS_SCHEMA=other";
    let words: Vec<&str> = words.split(' ').collect();
    let output = place.command(&words).output().expect("it starts");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("ORDERS_SCHEMA has no effect on orders"), "{said}");
}

#[test]
fn the_self_test_plays_its_script_and_leaves_one_file_and_no_data_set() {
    let place = Place::new();
    let url = "native:./selftest-data";
    let output = place
        .command(&["selftest", url, "--time", "1s", "-o", "sent-back.json", "--set", "CACHE_MB=4"])
        .output()
        .expect("it starts");
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let file = json(&std::fs::read_to_string(place.path("sent-back.json")).expect("it was written"));
    let code = |name: &str| {
        let steps = file["steps"].as_array().expect("steps");
        let step = steps.iter().find(|step| step["step"] == name);
        step.map(|step| (step["code"].clone(), step["expected_code"].clone())).expect(name)
    };
    for step in ["check of nothing", "load", "load again", "selects", "updates HEAVY", "destroy", "check after destroy"]
    {
        let (is, must) = code(step);
        assert_eq!(is, must, "{step}: {file:#}");
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
    for held in ["gets of a range select", "rows of a range select", "redo of a row"] {
        assert!(said.lines().any(|line| line.starts_with("holds") && line.contains(held)), "{held}: {said}");
    }
    assert!(!place.path("selftest-data").exists(), "{said}");
    assert!(file["records"].as_array().is_some_and(|records| records.len() >= 5));
}
