//! What limits a test, by crafted records: each limit alone, and which of two is named first.

use super::info::{IntervalInfo, IntervalStream, NetworkInfo, StreamInfo};
use super::{KIND, limit};
use crate::network::results::{CpuPct, Native, StreamEnd, UdpErrors};
use assay_measure::kind::Kind as _;
use assay_measure::record::{Figure, Record};

/// Five seconds of one stream that this host sends at 1 Gbit/s.
fn sent(change: impl FnOnce(&mut NetworkInfo, &mut StreamEnd, &mut StreamEnd)) -> NetworkInfo {
    let end =
        |is_sender: bool| StreamEnd { is_sender, id: 1, bytes: 625_000_000, seconds: 5.0, ..StreamEnd::default() };
    let (mut from, mut to) = (end(true), end(false));
    from.retransmits = Some(0);
    from.busy_us = Some(5_000_000);
    from.min_rtt_us = Some(1000);
    from.rtt_us = Some([1000, 1100, 1200]);
    let mut info = NetworkInfo {
        protocol: "tcp".to_owned(),
        streams_count: 1,
        max_segment_bytes: 1448,
        elapsed_s: 5.0,
        time_s: 5,
        cpu_local: CpuPct { total: 20.0, ..CpuPct::default() },
        ..NetworkInfo::default()
    };
    let interval = |second: u32| IntervalInfo {
        start_s: f64::from(second),
        end_s: f64::from(second + 1),
        streams: vec![IntervalStream { bytes: 125_000_000, ..IntervalStream::default() }],
        ..IntervalInfo::default()
    };
    info.intervals = (0..5).map(interval).collect();
    change(&mut info, &mut from, &mut to);
    info.streams =
        vec![StreamInfo { id: 1, is_sent_here: true, sent: Some(from), received: Some(to), ..StreamInfo::default() }];
    info
}

fn limit_of(info: &NetworkInfo) -> (String, String) {
    let limit = limit::of(&Record::default(), info);
    (limit.what, limit.evidence)
}

#[test]
fn nothing_that_shows_leaves_the_link_and_no_stream_nothing() {
    let (what, evidence) = limit_of(&sent(|_, _, _| {}));
    assert!(evidence.contains("the link, or a cap"), "{what}: {evidence}");
    let (_, evidence) = limit_of(&NetworkInfo::default());
    assert!(evidence.contains("nothing was measured"), "{evidence}");
}

#[test]
fn a_full_cpu_is_named_with_its_end() {
    let busy = |cpu_s| Native {
        streams: vec![StreamEnd { cpu_s: Some(cpu_s), seconds: 5.0, ..StreamEnd::default() }],
        ..Native::default()
    };
    let here = sent(|info, _, _| info.native_local = Some(busy(4.9)));
    assert_eq!(limit_of(&here).0, "one CPU of this host, sending");
    let there = sent(|info, _, _| {
        info.native_local = Some(busy(4.5));
        info.native_remote = Some(busy(4.95));
    });
    assert_eq!(limit_of(&there).0, "one CPU of the other host, receiving");
    // An iperf3 there tells one figure of all its threads.
    let stock = sent(|info, _, _| {
        info.cpu_remote = Some(CpuPct { total: 99.0, ..CpuPct::default() });
    });
    assert_eq!(limit_of(&stock).0, "one CPU of the other host, receiving");
}

#[test]
fn a_window_and_a_buffer_are_told_by_the_kernels_clocks() {
    let window = sent(|info, from, _| {
        info.window_bytes = 65_536;
        from.rwnd_limited_us = Some(4_500_000);
        from.sndbuf_limited_us = Some(100_000);
    });
    let (what, evidence) = limit_of(&window);
    assert_eq!(what, "the receive window of the other host");
    assert!(evidence.contains("90 % of the time: --window is too small"), "{evidence}");
    // 1 Gbit/s over 1 ms.
    assert!(evidence.contains("needs 122 KiB"), "{evidence}");
    let buffer = sent(|_, from, _| from.sndbuf_limited_us = Some(2_500_000));
    assert_eq!(limit_of(&buffer).0, "the send buffer of this host");
    let neither = sent(|_, from, _| from.rwnd_limited_us = Some(1_000_000));
    assert!(!limit_of(&neither).0.contains("window"));
}

#[test]
fn loss_and_a_queue_before_a_flat_rate_are_told_apart() {
    let lossy = sent(|_, from, _| {
        from.retransmits = Some(400);
        from.cwnd_max_bytes = Some(100_000);
    });
    let (what, evidence) = limit_of(&lossy);
    assert!(what.starts_with("lost segments"), "{what}");
    assert!(evidence.starts_with("400 segments (0.09 % of the bytes)"), "{evidence}");
    let queue = |from: &mut StreamEnd| from.rtt_us = Some([1000, 40_000, 45_000]);
    let shaped = sent(|_, from, _| queue(from));
    assert_eq!(limit_of(&shaped).0, "the link, or a shaper before it");
    // On the loopback neither means anything.
    let own = sent(|info, from, _| {
        queue(from);
        from.retransmits = Some(400);
        info.is_loopback = true;
    });
    assert!(!limit_of(&own).0.contains("shaper") && !limit_of(&own).0.contains("lost"));
    let uneven = sent(|info, from, _| {
        queue(from);
        info.intervals[2].streams[0].bytes /= 3;
    });
    assert!(!limit_of(&uneven).0.contains("shaper"));
}

/// Mbit/s of each second that stock iperf3 showed through `tbf rate 50mbit burst 64kb latency 100ms`, on two CPUs that a
/// score of compilers, or two busy loops, kept from it.
const SHAPED: [[f64; 6]; 14] = [
    [58.7, 49.5, 50.6, 44.8, 50.1, 47.4],
    [58.9, 46.6, 48.5, 48.4, 46.5, 54.2],
    [59.1, 47.8, 47.1, 47.0, 47.7, 48.0],
    [60.8, 43.3, 47.8, 52.3, 44.3, 48.0],
    [58.8, 47.5, 47.9, 52.0, 48.4, 43.1],
    [57.8, 47.5, 46.9, 48.0, 46.9, 46.9],
    [64.5, 45.9, 46.0, 48.9, 46.2, 46.6],
    [64.7, 46.6, 43.6, 52.5, 45.5, 50.2],
    [58.8, 47.4, 49.2, 48.3, 48.5, 45.9],
    [63.6, 46.9, 47.4, 48.8, 42.4, 49.5],
    [58.1, 47.3, 48.5, 49.7, 47.8, 50.0],
    [60.8, 46.8, 50.6, 46.6, 48.5, 46.4],
    [60.8, 49.5, 50.6, 45.9, 45.9, 45.0],
    [62.8, 43.3, 50.6, 47.6, 45.9, 52.7],
];
/// The same without a shaper.
const UNSHAPED: [[f64; 6]; 3] = [
    [5552.9, 7259.6, 9349.3, 5785.3, 6319.9, 8142.3],
    [1282.8, 3433.4, 8480.4, 3610.3, 8326.9, 8467.6],
    [1219.3, 1457.6, 8941.0, 10869.2, 6198.8, 4286.0],
];

#[test]
fn a_shaper_is_named_of_real_series_and_not_where_there_was_none() {
    // What fills the buffers on the way is in the first second: with it, half of these were not flat.
    let of = |series: &[f64; 6], rtt: [u64; 3]| {
        limit_of(&sent(|info, from, _| {
            (from.min_rtt_us, from.rtt_us) = (Some(60), Some(rtt));
            let last = info.intervals[4].clone();
            info.intervals.push(IntervalInfo { start_s: 5.0, end_s: 6.0, ..last });
            for (interval, mbit) in info.intervals.iter_mut().zip(series) {
                interval.streams[0].bytes = (mbit * 125_000.0) as u64;
            }
        }))
    };
    for series in &SHAPED {
        assert_eq!(of(series, [7000, 30_000, 80_000]).0, "the link, or a shaper before it", "{series:?}");
    }
    for series in &UNSHAPED {
        // With the queue of a shaper, so that the series alone decides.
        assert!(!of(series, [7000, 30_000, 80_000]).0.contains("shaper"), "{series:?}");
    }
}

#[test]
fn of_a_test_whose_other_end_told_nothing_no_limit_says_what_arrived() {
    for protocol in ["tcp", "udp"] {
        let mut info = sent(|info, _, _| {
            info.protocol = protocol.to_owned();
            info.rate_bits_per_s = 1_000_000_000;
        });
        info.streams[0].received = None;
        let (what, evidence) = limit_of(&info);
        assert!(!evidence.contains("arrived"), "{what}: {evidence}");
        assert!(!what.contains("requested"), "{what}: {evidence}");
    }
}

#[test]
fn what_was_asked_for_and_arrived_is_the_limit_before_all_others() {
    let reached = sent(|info, from, _| {
        info.rate_bits_per_s = 1_000_000_000;
        from.rwnd_limited_us = Some(5_000_000);
    });
    assert_eq!(limit_of(&reached).0, "the requested rate");
    let missed = sent(|info, _, _| info.rate_bits_per_s = 2_000_000_000);
    assert_ne!(limit_of(&missed).0, "the requested rate");
}

#[test]
fn datagrams_are_lost_on_the_way_or_at_the_receivers_socket() {
    let lost = |dropped: Option<u64>| {
        sent(|info, from, to| {
            info.protocol = "udp".to_owned();
            from.retransmits = None;
            from.datagrams_in_all = Some(10_000);
            to.unique_in_all = Some(9000);
            info.native_remote = dropped.map(|receive_buffer| Native {
                udp: Some(UdpErrors { receive_buffer, ..UdpErrors::default() }),
                ..Native::default()
            });
        })
    };
    let (what, evidence) = limit_of(&lost(Some(990)));
    assert_eq!(what, "the receiver's socket buffer");
    assert!(evidence.starts_with("1000 of 10000 datagrams (10.00 %)"), "{evidence}");
    assert_eq!(limit_of(&lost(Some(3))).0, "the network, which loses datagrams");
    assert_eq!(limit_of(&lost(None)).0, "datagrams are lost");
}

#[test]
fn warnings_name_what_changes_the_figures() {
    let all = |info: &NetworkInfo| {
        let found = KIND.complete(Record::default(), info).advice;
        found.into_iter().map(|found| found.text).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(all(&sent(|_, _, _| {})), "");
    let told = all(&sent(|info, _, _| {
        info.is_loopback = true;
        info.elapsed_s = 2.0;
        info.congestion_local = "cubic".to_owned();
        info.congestion_remote = "bbr".to_owned();
        info.native_remote = Some(Native { steal_pct: Some(12.5), ..Native::default() });
    }));
    for part in
        ["never left the host", "shorter than 5 s", "cubic here, bbr there", "12.5 % of the CPU time of the other host"]
    {
        assert!(told.contains(part), "{part}: {told}");
    }
}

#[test]
fn the_other_end_on_this_host_is_none_of_the_others_who_take_its_cpus() {
    let mut info = NetworkInfo {
        elapsed_s: 4.0,
        cpu_remote: Some(CpuPct { total: 50.0, ..CpuPct::default() }),
        ..NetworkInfo::default()
    };
    for (is_loopback, cpu_s) in [(false, 1.0), (true, 3.0)] {
        info.is_loopback = is_loopback;
        let mut record = Record::default();
        record.os.process.cpu_s = Figure::decimal(1.0);
        super::build::own_cpu(&mut record, &info);
        assert_eq!(record.os.process.cpu_s.value(), Some(cpu_s));
    }
}

fn advised(change: impl FnOnce(&mut NetworkInfo)) -> Record {
    let info = sent(|info, _, _| change(info));
    KIND.complete(Record::default(), &info)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("R41", |fires| {
        let record = assay_testkit::rules::capped("tcp_throughput_bits_per_s", fires);
        KIND.complete(record, &sent(|_, _, _| ()))
    }),
    ("N1", |fires| advised(|info| info.is_loopback = fires)),
    ("N2", |fires| advised(|info| info.elapsed_s = if fires { 4.9 } else { 5.0 })),
    ("N3", |fires| {
        advised(|info| {
            info.congestion_local = "cubic".to_owned();
            info.congestion_remote = if fires { "bbr" } else { "cubic" }.to_owned();
        })
    }),
    ("N4", |fires| {
        let steal_pct = Some(if fires { 5.0 } else { 4.9 });
        advised(|info| info.native_local = Some(Native { steal_pct, ..Native::default() }))
    }),
    ("N5", |fires| {
        let record = assay_testkit::rules::beside(if fires { 10.0 } else { 9.9 });
        KIND.complete(record, &NetworkInfo::default())
    }),
];

/// Steal of this host is said once, by the rule of both ends.
#[test]
fn steal_of_this_host_is_one_warning() {
    let mut record = assay_testkit::rules::beside(0.0);
    record.os.cpu_pct.insert("busy".to_owned(), 50.0.into());
    record.os.cpu_pct.insert("steal".to_owned(), 30.0.into());
    let native_local = Some(Native { steal_pct: Some(30.0), ..Native::default() });
    let found = KIND.complete(record, &NetworkInfo { native_local, ..NetworkInfo::default() }).advice;
    assert_eq!(found.iter().map(|found| found.id.as_str()).collect::<Vec<_>>(), ["N4"]);
}

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&KIND.rules(), CASES);
}
