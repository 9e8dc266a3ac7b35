//! `assay redo` as a workload asks for it: compressed, in commits that share messages, against a redo rate.

use crate::common::relay::Relay;
use crate::common::{Place, with};
use crate::redo::{Standby, figure, identities_hold, scoped, tested};
use serde_json::Value;
use std::time::Duration;

fn warns(record: &Value, told: &str) -> bool {
    record["advice"].to_string().contains(told)
}

#[test]
fn redo_16_zeros_that_are_compressed_mean_nothing_and_random_bytes_get_no_smaller() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    let run = |name: &str, more: &[&str]| {
        let more = with(&["--time", "1s", "--length", "16k"], more);
        let (ran, record) = tested(&place, standby.port, name, &more);
        identities_hold(&record);
        let info = &record["parts"]["redo"];
        assert_eq!(info["standbys"][0]["consumed_count"], info["sent_count"], "{name}");
        assert!(ran.out.contains("Compression"), "{}", ran.out);
        record
    };
    for how in ["lz4", "zstd:1", "zstd:3"] {
        let zeros = run(&format!("zeros-{how}"), &["--compress", how, "--content", "zeros"]);
        assert!(warns(&zeros, "The test compressed zeros"), "{how}");
        assert!(figure(&zeros, "redo_compression_ratio") > 10.0);
        let random = run(&format!("random-{how}"), &["--compress", how]);
        let ratio = figure(&random, "redo_compression_ratio");
        assert!((1.0..=1.01).contains(&ratio), "{how}: {ratio}");
        assert!(!warns(&random, "The test compressed zeros"), "{how}");
        let more = ["--compress", how, "--content", "mix:2.5", "--write-mode", "pagecache"];
        for mode in ["sync", "async"] {
            let name = format!("mix-{mode}-{how}");
            let mixed = run(&name, &with(&more, &["--mode", mode]));
            let ratio = figure(&mixed, "redo_compression_ratio");
            assert!((2.35..=2.65).contains(&ratio), "{how}: {ratio}");
            assert!(figure(&mixed, "redo_compression_cpu_us") > 0.0);
            let unpack = &mixed["parts"]["redo"]["standbys"][0]["unpack"]["us_min"];
            assert!(unpack.as_f64().is_some_and(|us| us > 0.0), "{unpack}");
        }
    }
}

#[test]
fn a_file_of_real_redo_is_sent_and_never_written_to() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    // What a log of text and counters looks like to a compressor.
    let lines = (0..20_000).map(|at| format!("{at:08} update t set v = {} where k = {at}\n", at * 7));
    let content: String = lines.collect();
    place.write("wal", &content);
    let more = ["--length", "8k", "--time", "1s", "--compress", "lz4", "--content", "file:wal"];
    let (_, record) = tested(&place, standby.port, "run", &more);
    identities_hold(&record);
    assert!(figure(&record, "redo_compression_ratio") > 1.5);
    assert_eq!(place.read("wal"), content);
    let number = standby.port.to_string();
    let base = ["redo", "127.0.0.1", "--port", &number, "--content"];
    for (content, told) in [
        ("file:none", "--content file:none"),
        ("file:.", "give a regular file"),
        ("file:wal", "are fewer than a message of 1048576 (--length)"),
    ] {
        let ran = place.assay(&with(&base, &[content])).code(2);
        assert!(ran.err.contains(told), "{}", ran.err);
    }
}

#[test]
fn commits_that_come_while_a_message_is_under_way_share_the_next() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    let relay = Relay::to(standby.port);
    relay.delay(Duration::from_micros(5000));
    let more = ["--commit-rate", "2000", "--commit-size", "512", "--time", "1s"];
    let (ran, record) = tested(&place, relay.port(), "run", &more);
    identities_hold(&record);
    let info = &record["parts"]["redo"];
    let count = |key: &str| info[key].as_u64().unwrap_or_else(|| panic!("{key}: {}", info[key]));
    // Each commit that was due is in one message, or told as left over.
    assert_eq!(count("commits_count") + count("backlog_count"), 2000);
    // 10 ms of round trip at 2000 commits/s: about twenty share a message, and none waits for less than the round trip.
    assert!(figure(&record, "redo_commits_per_message_ratio") >= 10.0);
    assert!(figure(&record, "redo_commit_us_p50") >= 10_000.0);
    let shares = info["group_messages"].as_array().expect("sizes");
    let messages: u64 = shares.iter().filter_map(Value::as_u64).sum();
    assert_eq!(messages, count("messages_count"));
    assert!(ran.out.contains("Group commit"), "{}", ran.out);
    assert!(place.read("run/report.txt").contains("Commits That Share Messages"));
}

#[test]
fn a_workload_is_carried_or_not_and_the_report_says_which() {
    let place = Place::new();
    let standby = Standby::new(&place, &[]);
    for (run, rate, writes, told) in
        [("little", "200k", "50", "carried with the usual reserve"), ("much", "1g", "9000000", "not carried")]
    {
        let more = ["--redo-rate", rate, "--redo-writes", writes, "--time", "1s"];
        let (ran, record) = tested(&place, standby.port, run, &more);
        identities_hold(&record);
        assert!(ran.out.contains(&format!("Workload          {told}")), "{}", ran.out);
        assert!(place.read(&format!("{run}/report.txt")).contains("follows Oracle's rule of thumb"));
        assert!(record["advice"].to_string().contains(told), "{run}");
    }
    let little = place.record("little");
    assert_eq!(little["parts"]["redo"]["length_bytes"], 4096);
    // 204,800 bytes/s / 0.7 x 8 / 1,000,000.
    let required = figure(&little, "redo_required_mbit_per_s");
    assert!((required - 2.3406).abs() < 1e-3, "{required}");
}

#[test]
fn what_contradicts_itself_is_one_error_before_anything_is_connected() {
    let place = Place::new();
    for (args, told) in [
        (&["--redo-rate", "1m"][..], "--redo-rate needs --redo-writes"),
        (
            &["--redo-rate", "1m", "--redo-writes", "100", "--length", "8k"],
            "--length: --redo-rate over --redo-writes sets",
        ),
        (&["--redo-rate", "1m", "--redo-writes", "100", "--rate", "10"], "leave out --rate and --delay"),
        (&["--commit-rate", "10", "--commit-size", "1k", "--mode", "async"], "--commit-rate simulates one log writer"),
        (&["--compress", "gzip"], "--compress gzip: give lz4"),
        (&["--compress", "lz4", "--standby", "b"], "--compress: assay tests compressed messages with one standby"),
        (&["--content", "mix:0"], "--content mix:0: give mix:1 to mix:100"),
    ] {
        let ran = place.assay(&with(&["redo", "a"], args)).code(2);
        assert_eq!(ran.errors().len(), 1, "{args:?}: {}", ran.err);
        assert!(ran.err.contains(told), "{args:?}: {}", ran.err);
    }
    assert!(place.files().is_empty());
}

#[test]
fn every_way_to_write_is_measured_for_a_quarter_of_the_time() {
    let place = Place::new();
    let standby = Standby::writing(&place, &[]);
    let more = ["--write-mode", "all", "--length", "4k", "--time", "4s"];
    let (ran, record) = tested(&place, standby.port, "run", &more);
    identities_hold(&record);
    let modes = record["parts"]["redo"]["modes"].as_array().expect("modes");
    let names: Vec<&str> = modes.iter().filter_map(|row| row["mode"].as_str()).collect();
    assert_eq!(names[..3], ["pagecache", "fdatasync", "dsync"]);
    for name in names {
        assert!(scoped(&record, name, "redo_write_mode_us_avg") > 0.0, "{name}");
        assert!(ran.out.contains(&format!("{name}: ")), "{}", ran.out);
    }
    assert_eq!(record["parts"]["redo"]["asked_s"], 1.0);
    let refused = ["redo", "a", "--write-mode", "all", "--mode", "async"];
    let ran = place.assay(&refused).code(2);
    assert!(ran.err.contains("--write-mode all compares"), "{}", ran.err);
}
