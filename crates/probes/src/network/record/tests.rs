//! What limits a test, by crafted records: each limit alone, and which of two is named first.

use super::info::{IntervalInfo, IntervalStream, NetworkInfo, StreamInfo};
use super::limit;
use crate::network::results::{CpuPct, Native, StreamEnd, UdpErrors};
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
        assert!(!what.contains("asked for"), "{what}: {evidence}");
    }
}

#[test]
fn what_was_asked_for_and_arrived_is_the_limit_before_all_others() {
    let reached = sent(|info, from, _| {
        info.rate_bits_per_s = 1_000_000_000;
        from.rwnd_limited_us = Some(5_000_000);
    });
    assert_eq!(limit_of(&reached).0, "the rate that was asked for");
    let missed = sent(|info, _, _| info.rate_bits_per_s = 2_000_000_000);
    assert_ne!(limit_of(&missed).0, "the rate that was asked for");
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
    assert_eq!(limit_of(&lost(Some(3))).0, "the way, which loses datagrams");
    assert_eq!(limit_of(&lost(None)).0, "datagrams are lost");
}

#[test]
fn warnings_name_what_changes_the_figures() {
    let all = |info: &NetworkInfo| limit::warnings(&Record::default(), info).join("\n");
    assert_eq!(all(&sent(|_, _, _| {})), "");
    let told = all(&sent(|info, _, _| {
        info.is_loopback = true;
        info.elapsed_s = 2.0;
        info.congestion_local = "cubic".to_owned();
        info.congestion_remote = "bbr".to_owned();
        info.native_remote = Some(Native { steal_pct: Some(12.5), ..Native::default() });
    }));
    for part in
        ["never left it", "shorter than 5 s", "cubic here and bbr there", "12.5 % of the CPU time of the other host"]
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
