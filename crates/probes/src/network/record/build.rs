//! From the client's readings to the record.

use super::info::{IntervalInfo, IntervalStream, NetworkInfo, StreamInfo, rate};
use super::metrics::side_of;
use crate::conditions::Conditions;
use crate::dial::plain;
use crate::network::NetReadings;
use crate::network::meter::{Meter, StreamTick};
use crate::network::results::StreamEnd;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::plain::slug;
use assay_measure::record::{Figure, Identity, Record, Series};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::{mean, stddev};

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(in crate::network) fn build(run: &RunData, readings: &NetReadings) -> Record {
    let info = info(readings);
    let mut run = run.clone();
    run.sessions = info.streams.len() as u64;
    if !info.failed.is_empty() {
        run.verdict = Verdict::Invalid(vec![info.failed.clone()]);
    } else if info.is_stopped {
        run.verdict = Verdict::Incomplete(format!(
            "stopped on request after {} s; the bytes that the other end received are unknown",
            assay_measure::units::fixed(info.elapsed_s, 1)
        ));
    } else if info.streams.iter().all(|stream| {
        let got = stream.received.as_ref();
        got.is_none_or(|got| got.bytes == 0)
    }) {
        run.verdict = Verdict::Invalid(vec!["nothing arrived at the receiving end".to_owned()]);
    }
    let mut record = readings.host.record(run);
    own_cpu(&mut record, &info);
    record.interval.elapsed_s = Figure::decimal(info.elapsed_s);
    record.series = series(&info);
    steadiness(&mut record, &info);
    record.integrity = integrity(&info);
    super::KIND.complete(record, &info)
}

/// The other end, where it is on this host, is part of the test, not one of the others who take its CPUs.
pub(super) fn own_cpu(record: &mut Record, info: &NetworkInfo) {
    if let Some(there) = info.cpu_remote.filter(|_| info.is_loopback) {
        let served = Figure::decimal(there.total / 100.0 * info.elapsed_s);
        let cpu = &mut record.os.process.cpu_s;
        *cpu = cpu.plus(&served);
    }
}

/// Two ways to the same number: this side's count and its kernel's, one end and the other.
fn integrity(info: &NetworkInfo) -> Vec<Identity> {
    let none = "only for TCP, and for streams that this host sends and that were idle at the end";
    let own: Vec<&StreamEnd> = info.way(true).filter_map(|(_, stream)| stream.sent.as_ref()).collect();
    let counted: u64 = own.iter().map(|end| end.bytes_in_all).sum();
    let kernel: Option<u64> = own.iter().map(|end| end.kernel_bytes_in_all).sum();
    let kernel = kernel.filter(|_| !own.is_empty() && !info.is_udp());
    let kernel = kernel.map(|bytes| bytes as f64).ok_or_else(|| none.to_owned());
    let rule = "bytes sent by our count = kernel's bytes sent + not yet sent";
    let mut all = vec![IdentityRule::within("N1", Scope::Whole, rule, 0.0).compare(Ok(counted as f64), kernel)];
    let in_flight = (info.block_bytes * 2).max(1 << 16) * info.streams_count;
    // Where the first seconds are left out, the two ends begin to count at instants of their own.
    let begin = if info.omit_s > 0 { rate(counted, info.elapsed_s).max(1e6) / 8.0 } else { 0.0 };
    let rule =
        IdentityRule::within("N2", Scope::Window, "bytes received <= bytes sent", in_flight as f64 + begin).at_most();
    for way in info.ways() {
        let streams: Vec<&StreamInfo> = info.way(way).map(|(_, stream)| stream).collect();
        let side = |is_sender| {
            let end = side_of(&streams, is_sender).map(|end| end.bytes as f64);
            end.ok_or_else(|| "the other end did not report it".to_owned())
        };
        all.push(rule.compare(side(false), side(true)));
    }
    all
}

fn info(readings: &NetReadings) -> NetworkInfo {
    let (ask, seen) = (&readings.ask, &readings.seen);
    let params = &ask.params;
    let theirs = seen.theirs.as_ref();
    let to = plain(seen.to);
    let elapsed_s = seen.own.streams.first().map_or(0.0, |stream| stream.seconds);
    NetworkInfo {
        host: ask.host.clone(),
        address: to.ip().to_string(),
        port: ask.port,
        protocol: if params.is_udp { "udp" } else { "tcp" }.to_owned(),
        is_reverse: params.is_reverse,
        is_bidirectional: params.is_bidirectional,
        streams_count: params.streams,
        block_bytes: seen.block,
        omit_s: params.omit,
        time_s: params.time,
        bytes_asked: params.bytes,
        blocks_asked: params.blocks,
        rate_bits_per_s: params.rate,
        is_strict: ask.is_strict,
        window_bytes: params.window.unwrap_or(0),
        send_buffer_bytes: seen.buffers.map_or(0, |(send, _)| send as u64),
        receive_buffer_bytes: seen.buffers.map_or(0, |(_, receive)| receive as u64),
        max_segment_bytes: seen.max_segment.map_or(0, u64::from),
        is_zero_copy: params.zero_copy,
        is_no_delay: params.no_delay,
        tos: params.tos.map_or(0, u64::from),
        fq_rate_bits_per_s: params.pacing.unwrap_or(0),
        is_loopback: to.ip().is_loopback() || seen.connected.iter().any(|(_, a, b)| a.ip() == b.ip()),
        cookie: seen.cookie.clone(),
        started_s: readings.started_s,
        system: readings.system.clone(),
        congestion_local: seen.own.congestion.clone().unwrap_or_default(),
        congestion_remote: theirs.and_then(|t| t.congestion.clone()).unwrap_or_default(),
        elapsed_s,
        streams: streams(readings),
        intervals: intervals(&seen.meter),
        cpu_local: seen.own.cpu,
        cpu_remote: theirs.map(|theirs| theirs.cpu),
        conditions: conditions(readings, elapsed_s),
        native_local: seen.own.native.clone(),
        native_remote: theirs.and_then(|theirs| theirs.native.clone()),
        server_output: theirs.and_then(|t| t.server_output.clone()).unwrap_or_default(),
        is_verbose: ask.is_verbose,
        units: ask.units.clone(),
        is_stopped: seen.is_stopped,
        failed: seen.failed.clone(),
    }
}

fn conditions(readings: &NetReadings, elapsed_s: f64) -> Conditions {
    let own = &readings.seen.own;
    let delays: Option<f64> = own.streams.iter().map(|stream| stream.run_delay_s).sum();
    let run_delay = match delays {
        Some(s) => Figure::decimal(100.0 * s).per(elapsed_s, "no time passed"),
        None => Figure::na(crate::conditions::NOT_EXPOSED),
    };
    Conditions::of(&readings.host, Figure::na("threads of this test wait for the network"), run_delay)
}

fn streams(readings: &NetReadings) -> Vec<StreamInfo> {
    let seen = &readings.seen;
    let of_peer = |id: i64| {
        let theirs = seen.theirs.as_ref()?;
        theirs.streams.iter().find(|stream| stream.id == id).cloned()
    };
    let all = seen.own.streams.iter().zip(&seen.connected);
    all.map(|(own, (socket, local, remote))| {
        let theirs = of_peer(own.id).map(|theirs| timed(theirs, own));
        let (sent, received) = if own.is_sender { (Some(own.clone()), theirs) } else { (theirs, Some(own.clone())) };
        let (local, remote) = (plain(*local), plain(*remote));
        StreamInfo {
            id: own.id,
            socket: *socket,
            local_host: local.ip().to_string(),
            local_port: local.port(),
            remote_host: remote.ip().to_string(),
            remote_port: remote.port(),
            is_sent_here: own.is_sender,
            sent,
            received,
        }
    })
    .collect()
}

/// Some versions do not tell how long they counted: then it is as long as we did.
fn timed(theirs: StreamEnd, own: &StreamEnd) -> StreamEnd {
    if theirs.seconds > 0.0 { theirs } else { StreamEnd { seconds: own.seconds, ..theirs } }
}

fn intervals(meter: &Meter) -> Vec<IntervalInfo> {
    let ticks = &meter.ticks;
    let pairs = ticks.iter().zip(ticks.iter().skip(1)).enumerate();
    let row = |(at, (then, now)): (usize, (&crate::network::meter::Tick, &crate::network::meter::Tick))| {
        let is_omitted = at < meter.base;
        let zero = if is_omitted { 0.0 } else { ticks[meter.base].at_s };
        let streams = then.streams.iter().zip(&now.streams);
        IntervalInfo {
            start_s: then.at_s - zero,
            end_s: now.at_s - zero,
            is_omitted,
            streams: streams.map(|(then, now)| between(then, now)).collect(),
        }
    };
    // What is left of an interval says little: iperf3 leaves it out too.
    let whole = |row: &IntervalInfo| row.seconds() >= 0.05 || ticks.len() == 2;
    pairs.map(row).filter(whole).collect()
}

fn between(then: &StreamTick, now: &StreamTick) -> IntervalStream {
    let (before, did, info) = (then.counts, now.counts, now.info);
    let rose = then.info.zip(now.info);
    let spent = then.times.zip(now.times);
    IntervalStream {
        bytes: did.bytes - before.bytes,
        retransmits: rose.map(|(then, now)| u64::from(now.total_retrans - then.total_retrans)),
        cwnd_bytes: info.map(|info| info.cwnd_bytes()),
        window_bytes: info.map(|info| u64::from(info.snd_wnd)),
        rtt_us: info.map(|info| u64::from(info.rtt)),
        rttvar_us: info.map(|info| u64::from(info.rttvar)),
        mtu_bytes: info.map(|info| u64::from(info.pmtu)),
        delivery_bytes_per_s: info.map(|info| info.delivery_rate),
        datagrams: did.datagrams - before.datagrams,
        lost: did.lost.saturating_sub(before.lost),
        jitter_us: did.jitter_us,
        cpu_s: spent.map(|(then, now)| now.since(&then).cpu_ns as f64 / 1e9),
    }
}

/// The same names that an imported iperf3 has.
fn series(info: &NetworkInfo) -> Series {
    let mut series = Series::default();
    let whole: Vec<&IntervalInfo> = info.measured().collect();
    series.t_s = whole.iter().map(|interval| interval.end_s).collect();
    series.in_window = vec![true; whole.len()];
    series.step_s = whole.first().map_or_else(Figure::default, |i| Figure::decimal(i.seconds()));
    for way in info.ways() {
        let role = match (info.is_bidirectional, way) {
            (false, _) => String::new(),
            (true, true) => format!("_{}", slug("TX-C")),
            (true, false) => format!("_{}", slug("RX-C")),
        };
        let mut put = |key: &str, of: &dyn Fn(&IntervalInfo) -> Figure| {
            let name = format!("{}_{key}{role}", info.protocol);
            let column = whole.iter().map(|interval| of(interval)).collect();
            series.metrics.insert(name, column);
        };
        put("throughput_bits_per_s", &|interval| {
            Figure::decimal(rate(interval.bytes(info.way(way)), interval.seconds()))
        });
        let sum = |interval: &IntervalInfo, get: fn(&IntervalStream) -> Option<u64>| {
            let streams = info.way(way).filter_map(|(at, _)| interval.streams.get(at));
            let all: Option<Vec<u64>> = streams.map(get).collect();
            all.map_or_else(|| Figure::na("not exposed"), |all| Figure::Count(all.iter().sum()))
        };
        match (info.is_udp(), way) {
            (false, true) => {
                put("retransmits_count", &|interval| sum(interval, |s| s.retransmits));
                if info.streams_count == 1 {
                    put("cwnd_bytes", &|interval| sum(interval, |s| s.cwnd_bytes));
                    put("rtt_us", &|interval| sum(interval, |s| s.rtt_us));
                }
            }
            (true, false) => {
                put("lost_count", &|interval| sum(interval, |s| Some(s.lost)));
                put("datagrams_count", &|interval| sum(interval, |s| Some(s.datagrams)));
            }
            (true, true) => put("datagrams_count", &|interval| sum(interval, |s| Some(s.datagrams))),
            (false, false) => {}
        }
    }
    series
}

fn steadiness(record: &mut Record, info: &NetworkInfo) {
    let rates = info.rates();
    if rates.len() < 2 {
        return;
    }
    let quarter = rates.len().div_ceil(4);
    let middle = mean(&rates);
    let of = &mut record.checks.steadiness;
    of.steps_count = Figure::Count(rates.len() as u64);
    of.mean_per_s = Figure::decimal(middle);
    of.min_per_s = Figure::decimal(rates.iter().copied().fold(f64::INFINITY, f64::min));
    of.max_per_s = Figure::decimal(rates.iter().copied().fold(0.0, f64::max));
    of.variation_ratio = Figure::decimal(stddev(&rates)).per(middle, "nothing moved");
    let last = mean(&rates[rates.len() - quarter..]);
    of.last_over_first_ratio = Figure::decimal(last).per(mean(&rates[..quarter]), "nothing moved");
}
