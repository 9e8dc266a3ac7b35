//! The report of a network.

use super::headline::test;
use super::info::{IntervalInfo, NetworkInfo, StreamInfo, rate};
use super::metrics::side_of;
use crate::network::results::{Native, StreamEnd};
use assay_measure::record::{Figure, Record};
use assay_measure::section::{Align, Cell, Sections, common};
use assay_measure::snapshot::Fact;

use Align::{Left, Right};

/// The whole report.
pub(super) fn render(record: &Record, info: &NetworkInfo) -> Sections {
    let mut page = Sections::default();
    let of = format!("{}, {}, port {}", test(info), info.address, info.port);
    common::opening(&mut page, record, "NETWORK", &of);
    common::warnings(&mut page, record);
    common::integrity(&mut page, record);
    sides(&mut page, info);
    streams(&mut page, info);
    held(&mut page, info);
    intervals(&mut page, info);
    udp(&mut page, info);
    page.heading("Who Else Used the Host");
    let shown = info.conditions.shown();
    let pairs: Vec<(String, String)> = shown.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    page.pairs(&pairs);
    common::facts(&mut page, "Test", &facts(info));
    if !info.server_output.is_empty() {
        page.heading("Server Output");
        info.server_output.lines().for_each(|line| page.line(line));
    }
    page.heading("How to Read It");
    PITFALLS.iter().for_each(|text| page.wrapped("  - ", text));
    common::identities(&mut page, record);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const PITFALLS: [&str; 5] = [
    "Rates count received data; sent data may still be buffered or lost.",
    "A rate says nothing about commits: a commit waits for round trips, which `assay ping` measures.",
    "Clouds cap a single stream below the whole instance: compare one stream with four.",
    "The rate of one TCP stream is at most its window over the round trip; the report names the window when it was the \
     limit.",
    "iperf3 takes the highest sequence number that arrived for the number of UDP datagrams sent, and counts a \
     duplicate as one that was not lost. The exact loss is the number sent less the number of distinct datagrams \
     received.",
];

fn known<T>(value: Option<T>, figure: impl Fn(T) -> Figure, why: &str) -> Figure {
    value.map_or_else(|| Figure::na(why), figure)
}

const OF_OTHERS: &str = "the other end did not report it";

fn sides(page: &mut Sections, info: &NetworkInfo) {
    page.heading("Sent and Received");
    let mut rows = Vec::new();
    for way in info.ways() {
        let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
        let (from, to) = if way { ("here", "there") } else { ("there", "here") };
        for (side, is_sender) in [(format!("sent {from}"), true), (format!("arrived {to}"), false)] {
            let end = side_of(&streams, is_sender);
            let of = |get: &dyn Fn(&StreamEnd) -> Figure| end.as_ref().map_or_else(|| Figure::na(OF_OTHERS), get);
            rows.push(vec![
                Cell::from(side),
                Cell::figure(&of(&|end| Figure::Count(end.bytes)), 0),
                Cell::figure(&of(&|end| Figure::decimal(end.seconds)), 3),
                Cell::figure(&of(&|end| Figure::decimal(rate(end.bytes, end.seconds) / 1e6)), 1),
            ]);
        }
    }
    let titles = [("Side", Left), ("bytes", Right), ("s", Right), ("Mbit/s", Right)];
    page.fitted(&titles, rows);
}

/// The ends of a stream that somebody has told.
fn ends(info: &NetworkInfo) -> impl Iterator<Item = (&StreamInfo, &StreamEnd)> {
    info.streams.iter().flat_map(|stream| {
        let both = [stream.sent.as_ref(), stream.received.as_ref()];
        both.into_iter().flatten().map(move |end| (stream, end))
    })
}

fn streams(page: &mut Sections, info: &NetworkInfo) {
    page.heading("Streams");
    let why = "not available on this side or protocol";
    let rows = ends(info).map(|(stream, end)| {
        let at = if end.is_sender == stream.is_sent_here { "here" } else { "there" };
        let does = if end.is_sender { "sends" } else { "receives" };
        vec![
            Cell::from(stream.id.to_string()),
            format!("{at} {does}").into(),
            Cell::figure(&Figure::decimal(rate(end.bytes, end.seconds) / 1e6), 1),
            Cell::figure(&known(end.retransmits, Figure::Count, why), 0),
            Cell::figure(&known(end.cwnd_max_bytes, |b| Figure::decimal(b as f64 / 1024.0), why), 0),
            Cell::figure(&known(end.rtt_us, |rtt| Figure::decimal(rtt[1] as f64 / 1e3), why), 3),
            Cell::figure(&known(end.min_rtt_us, |us| Figure::decimal(us as f64 / 1e3), why), 3),
            Cell::figure(&known(end.cpu_s, |s| Figure::decimal(100.0 * s).per(end.seconds, why), OF_OTHERS), 1),
        ]
    });
    let titles = [
        ("Stream", Left),
        ("end", Left),
        ("Mbit/s", Right),
        ("retr", Right),
        ("cwnd max KiB", Right),
        ("rtt mean ms", Right),
        ("rtt floor ms", Right),
        ("CPU %", Right),
    ];
    page.fitted(&titles, rows.collect());
}

fn held(page: &mut Sections, info: &NetworkInfo) {
    let busy: Vec<(&StreamInfo, &StreamEnd)> =
        ends(info).filter(|(_, end)| end.busy_us.is_some_and(|us| us > 0)).collect();
    if busy.is_empty() {
        return;
    }
    page.heading("What Limited the Senders");
    page.wrapped(
        "",
        "The sender's kernel counts how long it had data to send, and for how much of this time it waited for the \
         receiver's window or for space in its own buffer. The rest is the network and the CPUs.",
    );
    let rows = busy.iter().map(|(stream, end)| {
        let busy = end.busy_us.unwrap_or(0) as f64;
        let share = |us: Option<u64>| known(us, |us| Figure::decimal(100.0 * us as f64 / busy), OF_OTHERS);
        vec![
            Cell::from(stream.id.to_string()),
            Cell::figure(&Figure::decimal(busy / 1e6), 3),
            Cell::figure(&share(end.rwnd_limited_us), 1),
            Cell::figure(&share(end.sndbuf_limited_us), 1),
            Cell::figure(&known(end.bytes_retransmitted, Figure::Count, OF_OTHERS), 0),
        ]
    });
    let titles = [
        ("Stream", Left),
        ("had to send, s", Right),
        ("receiver's window %", Right),
        ("own buffer %", Right),
        ("bytes retransmitted", Right),
    ];
    page.fitted(&titles, rows.collect());
}

fn intervals(page: &mut Sections, info: &NetworkInfo) {
    page.heading("Intervals");
    if info.intervals.is_empty() {
        page.line("n/a (none ended)");
        return;
    }
    let why = "not available on this side or protocol";
    let rows = info.intervals.iter().map(|interval| {
        let (first, mut cells) = (
            interval.streams.first(),
            vec![Cell::from(format!(
                "{:.2}-{:.2}{}",
                interval.start_s,
                interval.end_s,
                if interval.is_omitted { " (left out)" } else { "" }
            ))],
        );
        for way in [true, false] {
            let is_there = info.way(way).next().is_some();
            let bits = rate(interval.bytes(info.way(way)), interval.seconds()) / 1e6;
            cells.push(Cell::figure(&known(is_there.then_some(bits), Figure::decimal, why), 1));
        }
        cells.push(Cell::figure(&known(retransmits(info, interval), Figure::Count, why), 0));
        let cwnd = first.and_then(|s| s.cwnd_bytes).filter(|_| info.way(true).next().is_some());
        cells.push(Cell::figure(&known(cwnd, |b| Figure::decimal(b as f64 / 1024.0), why), 0));
        let rtt = first.and_then(|s| s.rtt_us).filter(|_| info.way(true).next().is_some());
        cells.push(Cell::figure(&known(rtt, |us| Figure::decimal(us as f64 / 1e3), why), 3));
        cells
    });
    let titles = [
        ("Seconds", Left),
        ("sent Mbit/s", Right),
        ("received Mbit/s", Right),
        ("retr", Right),
        ("cwnd KiB", Right),
        ("rtt ms", Right),
    ];
    page.fitted(&titles, rows.collect());
    if info.streams.len() > 1 {
        page.line("Rates and retr cover all streams, cwnd and rtt the first.");
    }
}

/// Of the streams that this side sends.
fn retransmits(info: &NetworkInfo, interval: &IntervalInfo) -> Option<u64> {
    let streams = info.way(true).filter_map(|(at, _)| interval.streams.get(at));
    let all: Option<Vec<u64>> = streams.map(|stream| stream.retransmits).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.iter().sum())
}

fn udp(page: &mut Sections, info: &NetworkInfo) {
    if !info.is_udp() {
        return;
    }
    page.heading("Datagrams");
    let why = "the other end is not assay";
    let rows = info.streams.iter().filter_map(|stream| {
        let got = stream.received.as_ref()?;
        let sent = stream.sent.as_ref().and_then(|sent| sent.datagrams_in_all);
        let lost = sent.zip(got.unique).map(|(sent, unique)| sent.saturating_sub(unique));
        Some(vec![
            Cell::from(stream.id.to_string()),
            Cell::figure(&known(sent, Figure::Count, OF_OTHERS), 0),
            Cell::figure(&known(got.unique_in_all, Figure::Count, why), 0),
            Cell::figure(&known(lost, Figure::Count, why), 0),
            Cell::figure(&Figure::Count(got.lost), 0),
            Cell::figure(&Figure::Count(got.out_of_order), 0),
            Cell::figure(&known(got.duplicates, Figure::Count, why), 0),
            Cell::figure(&Figure::decimal(1e3 * got.jitter_s), 3),
        ])
    });
    let titles = [
        ("Stream", Left),
        ("sent", Right),
        ("arrived", Right),
        ("lost", Right),
        ("lost (iperf3)", Right),
        ("out of order", Right),
        ("twice", Right),
        ("jitter ms", Right),
    ];
    page.fitted(&titles, rows.collect());
    for (host, native) in [("This host", &info.native_local), ("The other host", &info.native_remote)] {
        if let Some(udp) = native.as_ref().and_then(|native: &Native| native.udp) {
            page.line(&format!(
                "{host} dropped {} datagrams on arrival ({} because a socket buffer was full), {} on sending; these \
                 counts cover all programs.",
                udp.in_errors, udp.receive_buffer, udp.send_buffer
            ));
        }
    }
}

fn facts(info: &NetworkInfo) -> Vec<Fact> {
    let fact = |name: &str, value: String| Fact { name: name.to_owned(), value };
    let or = |value: u64, otherwise: &str, unit: &str| match value {
        0 => otherwise.to_owned(),
        value => format!("{value}{unit}"),
    };
    let of = |text: &str| {
        if text.is_empty() { "not known".to_owned() } else { text.to_owned() }
    };
    let version = |native: &Option<Native>| {
        native.as_ref().map_or_else(|| "no assay".to_owned(), |native| native.version.clone())
    };
    vec![
        fact("Block", format!("{} bytes", info.block_bytes)),
        fact("Left out at the start", format!("{} s", info.omit_s)),
        fact("Requested rate", or(info.rate_bits_per_s, "none", " bit/s a stream")),
        fact("Requested buffers", or(info.window_bytes, "the kernel's own", " bytes")),
        fact("Buffers granted", format!("{} / {} bytes", info.send_buffer_bytes, info.receive_buffer_bytes)),
        fact("TCP segment", or(info.max_segment_bytes, "not known", " bytes")),
        fact("Congestion control, this host", of(&info.congestion_local)),
        fact("Congestion control, other host", of(&info.congestion_remote)),
        fact("Version here", version(&info.native_local)),
        fact("Version there", version(&info.native_remote)),
        fact("Cookie", info.cookie.clone()),
    ]
}
