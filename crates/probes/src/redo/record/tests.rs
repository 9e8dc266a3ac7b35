use super::compat;
use super::info::{RedoInfo, SecondRow, StandbyInfo};
use super::{KIND, integrity, is_here, merge};
use crate::redo::wire::Found;
use assay_measure::kind::Kind;
use assay_measure::record::{Figure, Record, Truth};

/// A second of one message after the other, each so long, ms.
fn second(at: usize, count: u64, length: u64, total_ms: f64, disk_ms: f64) -> SecondRow {
    SecondRow {
        messages_count: count,
        bytes: count * (length + 12),
        total_us: count as f64 * total_ms * 1e3,
        disk_us: count as f64 * disk_ms * 1e3,
        end_s: (at + 1) as f64,
        ..SecondRow::default()
    }
}

/// The published run's settings.
fn published(mode: &str, write: &str) -> RedoInfo {
    RedoInfo {
        mode: mode.to_owned(),
        length_bytes: 4096,
        content: "random".to_owned(),
        connections_count: 1,
        inflight_count: 1,
        delay_ms: Figure::decimal(0.0),
        asked_s: 60.0,
        interval_s: 1,
        asked_write: write.to_owned(),
        write: write.to_owned(),
        ready_clock_s: 12 * 3600 + 11 * 60 + 41,
        standbys: vec![StandbyInfo {
            name: "standby".to_owned(),
            send_buffer_bytes: Figure::Count(23040),
            ..StandbyInfo::default()
        }],
        asked_send_buffer_bytes: Figure::na("the system's"),
        asked_timeout_s: Figure::na("not given"),
        asked_per_s: Figure::na("as fast as possible"),
        ..RedoInfo::default()
    }
}

/// Its first rows and its last, as printed.
fn with_rows(mut info: RedoInfo, rows: &[(f64, f64)]) -> RedoInfo {
    for (at, (total_ms, disk_ms)) in rows.iter().enumerate() {
        let count = (1000.0 / total_ms).round() as u64;
        let mut row = second(at, count, info.length_bytes, *total_ms, *disk_ms);
        // As long as its messages took.
        let before = info.seconds.last().map_or(0.0, |row| row.end_s);
        row.end_s = before + count as f64 * total_ms / 1e3;
        info.seconds.push(row);
        info.messages_count += count;
    }
    let elapsed = info.seconds.last().map_or(0.0, |row| row.end_s);
    info.elapsed_s = Figure::decimal(elapsed);
    info.sent_count = info.messages_count;
    info
}

#[test]
fn redo_02_the_synchronous_report_with_writes_is_the_published_one() {
    let info = with_rows(published("sync", "direct-dsync"), &[(1.708, 1.025), (1.568, 0.961)]);
    let wanted = "[Requesting a test]\n\
        \tMessage payload        = 4 kbytes\n\
        \tPayload content type   = RANDOM\n\
        \tDelay between messages = NO\n\
        \tNumber of connections  = 1\n\
        \tSocket send buffer     = (system default)\n\
        \tTransport mode         = SYNC\n\
        \tDisk write             = YES\n\
        \tStatistics interval    = 1 second\n\
        \tTest duration          = 1 minute\n\
        \tTest frequency         = NO\n\
        \tNetwork Timeout        = NO\n\
        \t(1 Mbyte = 1024x1024 bytes)\n\
        \n\
        (12:11:41) The server is ready.\n\
        \x20                   Throughput             Latency\n\
        (12:11:42)      2.294 Mbytes/s            1.708 ms   (disk-write 1.025 ms)\n\
        (12:11:43)      2.499 Mbytes/s            1.568 ms   (disk-write 0.961 ms)\n\
        (12:11:43) Test finished.\n\
        \t       Socket send buffer = 23040 bytes\n\
        \t          Avg. throughput = 2.396 Mbytes/s\n\
        \t             Avg. latency = 1.635 ms (disk-write 0.992 ms)\n";
    assert_eq!(compat::report(&info), wanted);
}

#[test]
fn redo_02_without_writes_the_columns_are_wider_and_async_has_no_latency() {
    let info = with_rows(published("sync", "none"), &[(0.680, 0.0)]);
    let report = compat::report(&info);
    let line = |text: &str, at: usize| text.lines().nth(at).unwrap_or_default().to_owned();
    assert_eq!(line(&report, 6), "\tTransport mode         = SYNC");
    assert_eq!(line(&report, 7), "\tDisk write             = NO");
    assert_eq!(line(&report, 15), format!("{:24}Throughput{:17}Latency", "", ""));
    assert_eq!(line(&report, 16), format!("(12:11:42){:>15} Mbytes/s{:>21} ms", "5.761", "0.680"));
    assert!(report.ends_with("\t             Avg. latency = 0.680 ms\n"), "{report}");
    for (write, wide) in [("direct-dsync", 11), ("none", 15)] {
        let mut info = published("async", write);
        info.length_bytes = 8192;
        info.interval_s = 2;
        info = with_rows(info, &[(0.931, 0.0), (0.931, 0.0)]);
        let report = compat::report(&info);
        assert_eq!(line(&report, 1), "\tMessage payload        = 8 kbytes");
        assert_eq!(line(&report, 8), "\tStatistics interval    = 2 seconds");
        assert_eq!(line(&report, 15).trim_end(), line(&report, 15));
        assert!(line(&report, 15).ends_with("Throughput"), "{report}");
        assert_eq!(line(&report, 16), format!("(12:11:43){:>wide$} Mbytes/s", "8.404"));
        assert!(!report.contains("ms"), "{report}");
    }
}

#[test]
fn redo_02_units_are_the_largest_that_divide() {
    let head = |length_bytes, asked_s| {
        let mut info = published("sync", "none");
        (info.length_bytes, info.asked_s) = (length_bytes, asked_s);
        info.connections_count = 4;
        info.delay_ms = Figure::decimal(10.0);
        info.asked_send_buffer_bytes = Figure::Count(65536);
        info.asked_timeout_s = Figure::decimal(30.0);
        compat::report(&info)
    };
    let report = head(1 << 20, 10.0);
    for told in [
        "payload        = 1 Mbyte\n",
        "duration          = 10 seconds\n",
        "connections  = 4\n",
        "buffer     = 65536 bytes\n",
        "Timeout        = 30 seconds\n",
    ] {
        assert!(report.contains(told), "{told}: {report}");
    }
    for (bytes, told) in [(0, "0 bytes"), (1, "1 byte"), (1000, "1000 bytes"), (3 << 20, "3 Mbytes")] {
        assert!(head(bytes, 1.0).contains(&format!("= {told}\n")), "{told}");
    }
    for (seconds, told) in [(3600.0, "1 hour"), (120.0, "2 minutes"), (61.0, "61 seconds")] {
        assert!(head(0, seconds).contains(&format!("duration          = {told}\n")), "{told}");
    }
}

#[test]
fn redo_03_and_04_throughput_times_latency_is_the_message_and_the_mean_is_weighted_by_messages() {
    // Two phases of the published run: 585 messages of 1.708 ms in the first second, 300 of 3.331 ms in the second.
    let info = with_rows(published("sync", "direct-dsync"), &[(1.708, 1.025), (3.331, 2.644)]);
    for row in compat::rows(&info) {
        let latency_s = row.elapsed_s / row.messages as f64;
        let product = row.mbytes_per_s() * 1_048_576.0 * latency_s;
        assert!((product - 4108.0).abs() < 0.01, "{product}");
    }
    let elapsed = info.elapsed_s.value().expect("known");
    let mean = format!("{:.3} ms", 1e3 * elapsed / info.messages_count as f64);
    assert!(compat::tail(&info).join("\n").contains(&mean), "{mean}");
    assert!(integrity::judge(&info).iter().any(|one| one.id == "I39" && one.ok == Truth::Holds));
}

#[test]
fn redo_05_a_message_of_nothing_is_its_header() {
    let mut info = published("sync", "none");
    info.length_bytes = 0;
    let info = with_rows(info, &[(0.1, 0.0)]);
    // 10,000 headers of 12 bytes a second.
    assert!(compat::report(&info).contains("0.114 Mbytes/s"));
}

#[test]
fn an_edited_record_is_drawn() {
    let mut record = Record { kind: "redo".to_owned(), ..Record::default() };
    let kind = KIND;
    let _ = (kind.sections(&record), kind.headline(&record), kind.metrics(&record));
    kind.charts(&record, &mut drop);
    assert!(kind.in_words_of_tool(&record).is_some());
    record.parts.put(&RedoInfo {
        asked_s: f64::INFINITY,
        interval_s: 0,
        ready_clock_s: i64::MAX,
        seconds: vec![SecondRow::default(); 3],
        ..published("sync", "apply:5")
    });
    let _ = (kind.sections(&record), kind.headline(&record), kind.metrics(&record));
    assert!(kind.in_words_of_tool(&record).is_some());
}

#[test]
fn what_is_left_of_the_last_second_is_drawn_as_no_rate() {
    let info = |elapsed_s, count| RedoInfo {
        elapsed_s: Figure::decimal(elapsed_s),
        seconds: (0..count).map(|at| second(at, 100, 4096, 1.0, 0.5)).collect(),
        ..RedoInfo::default()
    };
    for (elapsed_s, count, whole) in [(3.002, 4, 3), (2.98, 3, 3), (0.5, 1, 1), (2.5, 3, 2)] {
        let info = info(elapsed_s, count);
        assert_eq!(super::whole(&info).len(), whole, "{elapsed_s}");
        let inside = super::series(&info).in_window;
        assert_eq!(inside.len(), count);
        assert_eq!(inside.iter().filter(|is| **is).count(), whole, "{elapsed_s}");
    }
}

#[test]
fn what_standbys_say_of_themselves_does_not_wrap() {
    let boast = || Found { messages: u64::MAX, bytes: u64::MAX, cpu_ns: u64::MAX, ..Found::default() };
    let mut found = boast();
    merge(&mut found, &boast());
    assert_eq!(found, boast());
}

fn advised(change: impl FnOnce(&mut RedoInfo)) -> Record {
    let mut info = published("sync", "direct-dsync");
    info.content = "mix:2".to_owned();
    change(&mut info);
    KIND.complete(Record::default(), &info)
}

#[test]
fn a_standby_on_loopback_is_this_host_whatever_its_notation_and_no_other_is() {
    for here in
        ["localhost", "localhost:7", "127.0.0.1", "127.1.2.3:7", "::1", "[::1]", "[::1]:7", "[::ffff:127.0.0.1]:7"]
    {
        assert!(is_here(here), "{here}");
    }
    for there in
        ["db2", "db2:7", "127.example.org", "10.0.0.1:7", "2001:db8::1", "[2001:db8::1]:7", "fe80::1", "[fe80::1]:7"]
    {
        assert!(!is_here(there), "{there}");
    }
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("R41", |fires| KIND.complete(assay_testkit::rules::capped("redo_transport_per_s", fires), &RedoInfo::default())),
    ("RT2", |fires| advised(|info| info.standbys[0].min_rtt_us = Figure::decimal(if fires { 5000.0 } else { 4999.0 }))),
    ("RT3", |fires| {
        advised(|info| {
            info.commit.us_avg = Figure::decimal(1000.0);
            info.inflight_count = if fires { 1 } else { 2 };
        })
    }),
    ("RT4", |fires| {
        advised(|info| {
            info.disk_alone.us_avg = Figure::decimal(500.0);
            info.standbys[0].total.us_avg = Figure::decimal(1500.0);
            info.network_alone.us_avg = if fires { Figure::decimal(900.0) } else { Figure::na("not alone") };
        })
    }),
    ("RT5", |fires| {
        advised(|info| {
            *info = with_rows(info.clone(), &[(1.0, 0.5)]);
            info.redo_bytes_per_s = Figure::decimal(1e6);
            info.redo_writes_per_s = Figure::decimal(if fires { 500.0 } else { 0.0 });
        })
    }),
    ("RT6", |fires| {
        advised(|info| {
            info.compress = "lz4".to_owned();
            info.content = if fires { "zeros" } else { "mix:2" }.to_owned();
        })
    }),
    ("RT7", |fires| {
        advised(|info| {
            info.content = "file:/redo".to_owned();
            info.zero_pct = Figure::decimal(if fires { 50.0 } else { 49.9 });
        })
    }),
    ("RT8", |fires| advised(|info| info.write_why = if fires { "no direct I/O" } else { "" }.to_owned())),
    ("RT9", |fires| advised(|info| info.standbys[0].lost = if fires { "it closed" } else { "" }.to_owned())),
    ("RT10", |fires| advised(|info| info.standbys[0].name = if fires { "127.0.0.1:5" } else { "db2:5" }.to_owned())),
    ("RT11", |fires| advised(|info| info.inflight_count = if fires { 2 } else { 1 })),
    ("RT12", |fires| advised(|info| info.backlog_count = Figure::Count(u64::from(fires)))),
    ("RT13", |fires| {
        let record = assay_testkit::rules::beside(if fires { 10.0 } else { 9.9 });
        KIND.complete(record, &RedoInfo::default())
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&KIND.rules(), CASES);
}

#[test]
fn rt4_is_high_where_the_rest_is_more_than_a_tenth_and_rt2_from_twice_the_distance() {
    let severity = |record: Record| record.advice.into_iter().map(|found| found.severity).collect::<Vec<_>>();
    let sums = |both: f64| {
        advised(|info| {
            info.disk_alone.us_avg = Figure::decimal(500.0);
            info.network_alone.us_avg = Figure::decimal(500.0);
            info.standbys[0].total.us_avg = Figure::decimal(both);
        })
    };
    assert_eq!(severity(sums(1101.0)), ["high"]);
    assert_eq!(severity(sums(1099.0)), ["note"]);
    let far = |us: f64| advised(|info| info.standbys[0].min_rtt_us = Figure::decimal(us));
    assert_eq!(severity(far(10_000.0)), ["high"]);
    assert_eq!(severity(far(9_999.0)), ["note"]);
}
