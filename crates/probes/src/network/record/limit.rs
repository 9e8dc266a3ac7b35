//! What kept a test from being faster, by evidence.

use super::info::{NetworkInfo, StreamInfo, rate};
use super::metrics::{busiest, exact_loss, side_of};
use crate::network::results::StreamEnd;
use assay_measure::kind::Limit;
use assay_measure::record::Record;
use assay_measure::statistics::{mean, stddev};
use assay_measure::units::{fixed, size};
use assay_measure::{cap, cpu};

/// A thread that uses more of its CPU than this has no more to give, %.
const CPU_FULL_PCT: f64 = 85.0;
/// A window or a buffer that holds a sender back for this share of the time is its limit.
const HELD_RATIO: f64 = 0.4;
/// Bytes sent again from this share on make a congestion window small.
const LOSS_RATIO: f64 = 0.0005;
/// Datagrams lost from this share on are the limit of UDP, %.
const UDP_LOSS_PCT: f64 = 0.5;
/// A rate this close to the one asked for was reached.
const REACHED: f64 = 0.98;
/// Rates that vary less than this are flat.
const FLAT_CV: f64 = 0.1;
/// A queue stands before a shaper: the round trip is so many times its shortest.
const QUEUE_RATIO: f64 = 2.0;

fn mbit(bits: f64) -> String {
    if bits < 1e9 { format!("{} Mbit/s", fixed(bits / 1e6, 1)) } else { format!("{} Gbit/s", fixed(bits / 1e9, 2)) }
}

/// What was the limit of a test.
pub(super) fn of(record: &Record, info: &NetworkInfo) -> Limit {
    let slower = |a: &bool, b: &bool| of_way(info, *a).total_cmp(&of_way(info, *b));
    let Some(way) = info.ways().into_iter().min_by(slower) else {
        return Limit::unknown("nothing was measured");
    };
    let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
    let sent = side_of(&streams, true);
    let got = side_of(&streams, false);
    let (from, to) = if way { ("this host", "the other host") } else { ("the other host", "this host") };
    asked(info, got.as_ref())
        .or_else(|| cap::of(record).map(|cap| cap.limit()))
        .or_else(|| udp_loss(info, &streams, way, got.as_ref()))
        .or_else(|| one_cpu(record, info, way))
        .or_else(|| held(info, sent.as_ref(), from, to))
        .or_else(|| backed_up(info, sent.as_ref(), got.as_ref(), from))
        .or_else(|| loss(info, sent.as_ref()))
        .or_else(|| shaper(info, sent.as_ref()))
        .or_else(|| cpu::limit(record))
        .unwrap_or_else(|| {
            Limit::unknown(
                "no CPU was saturated, and no window or loss limited the sender; the link, or a cap of the platform, \
                 remains",
            )
        })
}

/// Bits per second that arrived on a way, or were sent where that is not known.
pub(super) fn of_way(info: &NetworkInfo, way: bool) -> f64 {
    let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
    let end = side_of(&streams, false).or_else(|| side_of(&streams, true));
    end.map_or(0.0, |end| rate(end.bytes, end.seconds))
}

/// What arrived must be known: what was sent may still lie in buffers.
fn asked(info: &NetworkInfo, got: Option<&StreamEnd>) -> Option<Limit> {
    let asked = (info.rate_bits_per_s * info.streams_count) as f64;
    let got = got.map(|got| rate(got.bytes, got.seconds))?;
    (asked > 0.0 && got >= REACHED * asked).then(|| {
        Limit::new(
            "the requested rate",
            format!("{} of the requested {} arrived: the network carries at least that.", mbit(got), mbit(asked)),
        )
    })
}

fn udp_loss(info: &NetworkInfo, streams: &[&StreamInfo], way: bool, got: Option<&StreamEnd>) -> Option<Limit> {
    if !info.is_udp() {
        return None;
    }
    let (lost, sent) = exact_loss(streams).or_else(|| got.map(|got| (got.lost, got.datagrams)))?;
    let pct = 100.0 * lost as f64 / sent.max(1) as f64;
    if pct < UDP_LOSS_PCT {
        return None;
    }
    let there = if way { &info.native_remote } else { &info.native_local };
    let full = there.as_ref().and_then(|native| native.udp).map(|udp| udp.receive_buffer);
    let told = format!("{lost} of {sent} datagrams ({} %) did not arrive", fixed(pct, 2));
    Some(match full {
        Some(full) if full * 2 >= lost => Limit::new(
            "the receiver's socket buffer",
            format!(
                "{told}; its kernel dropped {full} because the socket buffer was full. Give --window, or a lower \
                 --bitrate."
            ),
        ),
        Some(full) => Limit::new(
            "the network, which loses datagrams",
            format!("{told}; the receiver's kernel dropped {full} of them."),
        ),
        None => Limit::new("datagrams are lost", format!("{told}; only an assay at the other end can show where.")),
    })
}

fn one_cpu(record: &Record, info: &NetworkInfo, way: bool) -> Option<Limit> {
    let sides = [
        (way, "this host", &info.native_local, Some(info.cpu_local.total)),
        (!way, "the other host", &info.native_remote, info.cpu_remote.map(|cpu| cpu.total)),
    ];
    let busy = sides.iter().filter_map(|(sends, where_, native, total)| {
        // A peer that is no assay tells one figure of all its threads.
        let share = busiest(native.as_ref()).or(*total)?;
        let does = if *sends { "sending" } else { "receiving" };
        (share >= CPU_FULL_PCT).then(|| (share, format!("one CPU of {where_}, {does}"), does))
    });
    let (share, what, does) = busy.max_by(|a, b| a.0.total_cmp(&b.0))?;
    let more = match cpu::disturbed(record) {
        Some(others) => format!(" Meanwhile {others}."),
        None => String::new(),
    };
    Some(Limit::new(what, format!("The thread {does} used {} % of a CPU.{more}", fixed(share, 0))))
}

/// A window or a buffer, by the kernel's own clocks.
fn held(info: &NetworkInfo, sent: Option<&StreamEnd>, from: &str, to: &str) -> Option<Limit> {
    let sent = sent?;
    let busy = sent.busy_us.filter(|busy| *busy > 0)? as f64;
    let share = |held: Option<u64>| held.map_or(0.0, |us| us as f64 / busy);
    let product = sent.min_rtt_us.map(|us| {
        let bits = rate(sent.bytes, sent.seconds);
        format!(
            " This rate over the shortest round trip of {} ms needs {} in flight.",
            fixed(us as f64 / 1e3, 2),
            size((bits / 8.0 * us as f64 / 1e6) as u64)
        )
    });
    let product = product.unwrap_or_default();
    let (window, buffer) = (share(sent.rwnd_limited_us), share(sent.sndbuf_limited_us));
    let asked = if info.window_bytes > 0 { " --window is too small, or" } else { "" };
    if window >= HELD_RATIO && window >= buffer {
        return Some(Limit::new(
            format!("the receive window of {to}"),
            format!(
                "The sender waited for it {} % of the time:{asked} the receiver does not read fast enough, or \
                 net.ipv4.tcp_rmem is too small.{product}",
                fixed(100.0 * window, 0)
            ),
        ));
    }
    (buffer >= HELD_RATIO).then(|| {
        Limit::new(
            format!("the send buffer of {from}"),
            format!(
                "It limited the connection {} % of the time:{asked} net.ipv4.tcp_wmem is too small.{product}",
                fixed(100.0 * buffer, 0)
            ),
        )
    })
}

/// Datagrams that could not be sent at the rate asked for, although no CPU was full.
fn backed_up(info: &NetworkInfo, sent: Option<&StreamEnd>, got: Option<&StreamEnd>, from: &str) -> Option<Limit> {
    let asked = (info.rate_bits_per_s * info.streams_count) as f64;
    let (sent, got) = sent.zip(got).filter(|_| info.is_udp() && asked > 0.0)?;
    let bits = rate(sent.bytes, sent.seconds);
    (bits < REACHED * asked).then(|| {
        Limit::new(
            format!("the link of {from}, or a shaper on it"),
            format!(
                "{} of the requested {} could be sent, and {} arrived: the socket's buffer stayed full in front of the \
                 link.",
                mbit(bits),
                mbit(asked),
                mbit(rate(got.bytes, got.seconds))
            ),
        )
    })
}

fn loss(info: &NetworkInfo, sent: Option<&StreamEnd>) -> Option<Limit> {
    let sent = sent?;
    let again = sent.retransmits.filter(|again| *again > 0)?;
    let bytes = sent.bytes_retransmitted.unwrap_or(again * info.max_segment_bytes);
    let share = bytes as f64 / sent.bytes.max(1) as f64;
    (share >= LOSS_RATIO && !info.is_loopback).then(|| {
        Limit::new(
            "lost segments, which keep the congestion window small",
            format!(
                "{again} segments ({} % of the bytes) were retransmitted; the window reached {}.",
                fixed(100.0 * share, 2),
                size(sent.cwnd_max_bytes.unwrap_or(0))
            ),
        )
    })
}

/// A flat rate with a queue before it.
fn shaper(info: &NetworkInfo, sent: Option<&StreamEnd>) -> Option<Limit> {
    let sent = sent?;
    // The first interval also carries what fills the buffers on the way: a third more than the link takes.
    let rates = info.rates();
    let rates = rates.get(1..)?;
    let cv = stddev(rates) / mean(rates);
    let (floor, [_, middle, _]) = (sent.min_rtt_us?, sent.rtt_us?);
    let is_queue = middle as f64 >= QUEUE_RATIO * floor.max(1) as f64;
    (rates.len() >= 3 && cv <= FLAT_CV && is_queue && !info.is_loopback).then(|| {
        Limit::new(
            "the link, or a shaper before it",
            format!(
                "The rate is flat at {} ({} % between intervals), and there is a queue: the round trip is {} ms under \
                 this load and {} ms without.",
                mbit(mean(rates)),
                fixed(100.0 * cv, 1),
                fixed(middle as f64 / 1e3, 2),
                fixed(floor as f64 / 1e3, 2)
            ),
        )
    })
}
