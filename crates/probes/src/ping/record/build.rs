//! From the tally to the record.

use super::KIND;
use super::info::{LoadedInfo, PingInfo, ReplyRow, SecondRow, WorstRow};
use crate::conditions::Conditions;
use crate::dial::plain;
use crate::ping::PingReadings;
use crate::ping::loaded::Loaded;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Identity, Latency, Record, Series, percentile_us};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::{mean, stddev};

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(in crate::ping) fn build(run: &RunData, readings: &PingReadings) -> Record {
    let info = info(readings);
    let mut run = run.clone();
    run.sessions = 1;
    if readings.tally.is_stopped {
        run.verdict = Verdict::Incomplete(format!("stopped on request after {} requests", info.sent_count));
    }
    if info.received_count == 0 {
        run.verdict = Verdict::Invalid(vec![format!("none of {} requests was answered", info.sent_count)]);
    }
    if !info.failed.is_empty() {
        run.verdict = Verdict::Invalid(vec![info.failed.clone()]);
    }
    if let Some(failed) = info.loaded.as_ref().map(|loaded| &loaded.failed)
        && !failed.is_empty()
        && info.failed.is_empty()
    {
        let reason = format!("the stream of --load failed, so nothing was measured beside it: {failed}");
        run.verdict = Verdict::Invalid(vec![reason]);
    }
    let mut record = readings.host.record(run);
    record.series = series(&info);
    steadiness(&mut record, &info);
    record.integrity = integrity(&info);
    KIND.complete(record, &info)
}

fn info(readings: &PingReadings) -> PingInfo {
    let (ask, tally) = (&readings.ask, &readings.tally);
    let to = plain(readings.to);
    let us = |ns: u64| ns as f64 / 1e3;
    let above = |ms: u64| {
        let slow = tally.service.sparse().into_iter();
        let from = assay_measure::histogram::slot_of(ms * 1_000_000);
        slow.filter(|(slot, _)| *slot as usize >= from).map(|(_, count)| count).sum()
    };
    PingInfo {
        host: ask.host.clone(),
        address: to.ip().to_string(),
        port: if readings.method.starts_with("icmp") { 0 } else { ask.port },
        method: readings.method.to_owned(),
        holds: readings.holds.to_owned(),
        why_not: readings.why_not.clone(),
        size_bytes: ask.size,
        reply_bytes: ask.reply,
        rate_per_s: if ask.is_flood { 0.0 } else { readings.rate },
        timeout_s: ask.timeout.as_secs_f64(),
        sent_count: tally.sent,
        received_count: tally.service.count(),
        lost_count: tally.lost,
        strays_count: tally.strays,
        errors_count: tally.errors,
        first_error: tally.error.clone(),
        elapsed_s: tally.elapsed_ns as f64 / 1e9,
        service: Latency::of(&tally.service),
        response: Latency::of(&tally.response),
        server: Latency::of(&tally.server),
        network: Latency::of(&tally.network),
        ping_us_avg: Figure::known(tally.us_avg(), "nothing counted"),
        ping_us_mdev: Figure::known(tally.us_mdev(), "nothing counted"),
        us_p9999: percentile_us(&tally.service, 0.9999),
        response_us_p9999: percentile_us(&tally.response, 0.9999),
        above_ms: [above(1), above(10), above(100)],
        late_us_p99: percentile_us(&tally.late, 0.99),
        worst: tally.worst.iter().map(worst).collect(),
        replies: (tally.lines.iter())
            .map(|line| ReplyRow { seq: line.seq, ttl: line.ttl, us: us(line.service_ns) })
            .collect(),
        seconds: tally.seconds.iter().map(second).collect(),
        retransmits_count: tally.retransmits,
        conditions: conditions(readings),
        is_loopback: readings.is_here,
        loaded: readings.loaded.as_ref().map(loaded),
        failed: match &readings.loaded {
            Some(loaded) if !loaded.tally.gone.is_empty() => {
                format!("beside the stream: {}", loaded.tally.gone)
            }
            _ => tally.gone.clone(),
        },
    }
}

fn loaded(of: &Loaded) -> LoadedInfo {
    let stream = of.stream.as_deref();
    let rate = |end: &str| {
        let key = format!("{end}.tcp_throughput_bits_per_s_mean");
        let found = stream.ok().and_then(|record| find(&record.metrics, &key));
        found.map(|metric| metric.value.clone())
    };
    // Of a stream that was stopped the other end tells nothing.
    let arrived = rate("receiver").filter(|figure| figure.value().is_some());
    LoadedInfo {
        sent_count: of.tally.sent,
        lost_count: of.tally.lost,
        service: Latency::of(&of.tally.service),
        response: Latency::of(&of.tally.response),
        stream_bits_per_s: arrived.or_else(|| rate("sender")).unwrap_or_else(|| Figure::na("no stream was requested")),
        failed: stream.err().map(ToString::to_string).unwrap_or_default(),
    }
}

fn conditions(readings: &PingReadings) -> Conditions {
    let tally = &readings.tally;
    let run_delay = match readings.run_delay_s {
        Some(s) => Figure::decimal(100.0 * s).per(tally.elapsed_ns as f64 / 1e9, "no time passed"),
        None => Figure::na(crate::conditions::NOT_EXPOSED),
    };
    Conditions::of(&readings.host, Figure::na("this test waits for the network"), run_delay)
}

fn worst(slow: &crate::ping::measure::Slow) -> WorstRow {
    WorstRow {
        seq: slow.seq,
        at_s: slow.at_ns as f64 / 1e9,
        service_us: slow.service_ns as f64 / 1e3,
        response_us: slow.response_ns as f64 / 1e3,
        is_lost: slow.is_lost,
    }
}

fn second(of: &crate::ping::measure::Second) -> SecondRow {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    SecondRow {
        replies_count: of.service.count(),
        lost_count: of.lost,
        us_p50: us(of.service.median_ns()),
        us_max: us(of.service.max_ns()),
        response_us_max: us(of.response.max_ns()),
    }
}

fn series(info: &PingInfo) -> Series {
    let rows = &info.seconds;
    let known = |value: Option<f64>| Figure::known(value, "no reply in this second");
    let mut series = Series {
        step_s: Figure::decimal(1.0),
        t_s: (1..=rows.len()).map(|at| at as f64).collect(),
        in_window: vec![true; rows.len()],
        ..Series::default()
    };
    let mut put = |name: &str, of: &dyn Fn(&SecondRow) -> Figure| {
        series.metrics.insert(name.to_owned(), rows.iter().map(of).collect());
    };
    put("rtt_us_p50", &|row| known(row.us_p50));
    put("rtt_us_max", &|row| known(row.us_max));
    put("rtt_response_us_max", &|row| known(row.response_us_max));
    put("packets_lost_count", &|row| Figure::Count(row.lost_count));
    series
}

fn steadiness(record: &mut Record, info: &PingInfo) {
    let middles: Vec<f64> = info.seconds.iter().filter_map(|row| row.us_p50).collect();
    if middles.len() < 3 {
        return;
    }
    let quarter = middles.len().div_ceil(4);
    let of = &mut record.checks.steadiness;
    of.steps_count = Figure::Count(middles.len() as u64);
    let middle = mean(&middles);
    of.variation_ratio = Figure::decimal(stddev(&middles)).per(middle, "nothing was answered");
    let last = mean(&middles[middles.len() - quarter..]);
    of.last_over_first_ratio = Figure::decimal(last).per(mean(&middles[..quarter]), "nothing was answered");
}

fn integrity(info: &PingInfo) -> Vec<Identity> {
    let whole = Scope::Whole;
    let count = |count: u64| Ok(count as f64);
    let sums = |latency: &Latency| Ok(latency.hist_ns.sum_ns() as f64);
    let echo = |side: Result<f64, String>| {
        if info.server.hist_ns.is_empty() { Err("only for an echo".to_owned()) } else { side }
    };
    let both = info.server.hist_ns.sum_ns() as f64 + info.network.hist_ns.sum_ns() as f64;
    let of_load = |of: fn(&LoadedInfo) -> u64| {
        let loaded = info.loaded.as_ref();
        let known = loaded.map(|loaded| of(loaded) as f64);
        known.ok_or_else(|| "only for a test with --load".to_owned())
    };
    vec![
        IdentityRule::exact("P5", whole, "beside the stream: sent = answered + lost").compare(
            of_load(|loaded| loaded.sent_count),
            of_load(|loaded| loaded.service.hist_ns.count() + loaded.lost_count),
        ),
        IdentityRule::exact("P1", whole, "sent = answered + lost")
            .compare(count(info.sent_count), count(info.received_count + info.lost_count)),
        IdentityRule::exact("P2", whole, "times counted = answered")
            .compare(count(info.service.hist_ns.count()), count(info.received_count)),
        IdentityRule::within("P3", whole, "time in the server + network = round trip", 1e3)
            .compare(echo(Ok(both)), echo(sums(&info.service))),
        IdentityRule::within("P4", whole, "round trip <= time since it was due", 0.0)
            .at_most()
            .compare(sums(&info.service), sums(&info.response)),
    ]
}
