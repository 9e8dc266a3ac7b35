//! What iperf3, ping and oratcptest print twice: intervals and their whole, streams and their sum, both ends of a transfer.

use super::super::Side as Num;
use super::steps::{Step, sum};
use super::{Case, Read, at_most, equal, judge, rule};
use assay_measure::record::Identity;
use std::collections::BTreeMap;

/// Times of intervals have two decimals, and the last bit of a test may lie after its last interval.
const CLOCK: f64 = 0.01;
const PROTOCOLS: [&str; 2] = ["tcp", "udp"];

pub(super) fn identities(read: &Read<'_>) -> Vec<Option<Identity>> {
    vec![intervals(read), whole(read), streams(read), both_ends(read), datagrams(read), replies(read), redo(read)]
}

/// Roles that steps of a test have.
const ROLES: [&str; 3] = ["", "TX-C", "RX-C"];

/// Scopes of the whole under a role.
fn sides(role: &str) -> [String; 2] {
    ["sender", "receiver"].map(|side| format!("{role} {side}").trim().to_owned())
}

/// NET3: of each interval bytes and time give the rate.
fn intervals(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (protocol, role) in each() {
        let of = |what: &str| read.steps(&format!("{protocol}_{what}"), role);
        let (rates, bytes) = (of("throughput_bits_per_s"), of("moved_bytes"));
        for (rate, moved) in rates.iter().zip(&bytes) {
            if rate.end_s == moved.end_s {
                let by_time = moved.num.times(8.0 / moved.length_s);
                let name = format!("{:.2} s", rate.end_s);
                // Both ends of an interval are cut to hundredths.
                let loose = CLOCK + CLOCK / moved.length_s;
                cases.push(equal(name, rate.num, by_time, loose));
            }
        }
    }
    judge(rule("NET3", "bytes x 8 / time = bits per second, of each interval"), cases)
}

fn each() -> impl Iterator<Item = (&'static str, &'static str)> {
    PROTOCOLS.into_iter().flat_map(|protocol| ROLES.map(|role| (protocol, role)))
}

/// NET4: the intervals add up to the whole, at one of the two ends.
fn whole(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (protocol, role) in each() {
        for (what, total, is_rate) in [
            ("moved_bytes", "moved_bytes", false),
            ("throughput_bits_per_s", "throughput_bits_per_s_mean", true),
            ("retransmits_count", "retransmits_count", false),
            ("lost_count", "lost_count", false),
            ("datagrams_count", "datagrams_count", false),
        ] {
            let steps = read.steps(&format!("{protocol}_{what}"), role);
            let (Some(all), Some(last)) = (sum(&steps), steps.last()) else {
                continue;
            };
            let all = if is_rate { mean(&steps, last.end_s) } else { all };
            let ends = sides(role);
            let found = ends.iter().filter_map(|side| {
                let whole = read.num(side, &format!("{protocol}_{total}"))?;
                let time = read.num(side, &format!("{protocol}_interval_s"));
                // Steps that were cut out of the text are in no sum.
                let covered_s: f64 = steps.iter().map(|step| step.length_s).sum();
                let is_covered = time.is_none_or(|time| covered_s >= 0.98 * time.value);
                is_covered.then_some(whole)
            });
            let off = |num: &Num| (num.value - all.value).abs();
            let near = found.min_by(|a, b| off(a).total_cmp(&off(b)));
            let name = format!("{role} {what}").trim().to_owned();
            cases.extend(near.map(|near| equal(name, near, all, CLOCK)));
        }
    }
    judge(rule("NET4", "intervals add up to the whole"), cases)
}

fn mean(steps: &[Step], time_s: f64) -> Num {
    let all = steps.iter().map(|step| step.num.times(step.length_s / time_s));
    let zero = Num::exact(0.0);
    all.reduce(Num::plus).unwrap_or(zero)
}

/// NET5: streams add up to the sum of all.
fn streams(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (protocol, role) in each() {
        for what in ["moved_bytes", "throughput_bits_per_s_mean", "retransmits_count", "lost_count", "datagrams_count"]
        {
            let key = format!("{protocol}_{what}");
            for side in sides(role) {
                let is_of_side = |scope: &&str| {
                    let rest = scope.strip_prefix("stream ").and_then(|rest| rest.split_once(' '));
                    rest.is_some_and(|(_, end)| end == side)
                };
                let scopes = read.scopes(&key).into_iter().filter(is_of_side);
                let nums: Vec<Num> = scopes.filter_map(|scope| read.num(scope, &key)).collect();
                let Some(whole) = read.num(&side, &key).filter(|_| nums.len() > 1) else {
                    continue;
                };
                let all = nums.into_iter().reduce(Num::plus);
                cases.extend(all.map(|all| equal(format!("{side} {what}"), whole, all, CLOCK)));
            }
        }
    }
    cases.extend(stream_intervals(read));
    judge(rule("NET5", "streams add up to the sum"), cases)
}

/// The same of each interval in which every stream has its line.
fn stream_intervals(read: &Read<'_>) -> Vec<Case> {
    let mut sums: BTreeMap<(&str, &str), (Num, usize)> = BTreeMap::new();
    for value in read.of_scopes("stream ", |value| value.scope.ends_with(" s")) {
        let Some((_, interval)) = value.scope.split_once(", ") else {
            continue;
        };
        if let Some(number) = value.value.value() {
            let num = Num { value: number, off: value.rounding };
            let sum = sums.entry((value.key.as_str(), interval));
            sum.and_modify(|(sum, count)| (*sum, *count) = (sum.plus(num), *count + 1)).or_insert((num, 1));
        }
    }
    let most = sums.values().map(|(_, count)| *count).max().unwrap_or(0);
    let whole = sums.into_iter().filter(|(_, (_, count))| *count == most);
    let is_sum = |key: &str| ["_moved_bytes", "_bits_per_s", "_count"].iter().any(|end| key.ends_with(end));
    let cases = whole.filter(|((key, _), _)| is_sum(key)).filter_map(|((key, interval), (sum, _))| {
        Some(equal(format!("{interval} {key}"), read.num(interval, key)?, sum, CLOCK))
    });
    cases.collect()
}

/// NET6: nobody receives what nobody sent.
fn both_ends(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for (protocol, role) in each() {
        for what in ["moved_bytes", "throughput_bits_per_s_mean"] {
            let [sender, receiver] = sides(role).map(|side| read.num(&side, &format!("{protocol}_{what}")));
            let name = format!("{role} {what}").trim().to_owned();
            let both = sender.zip(receiver).filter(|(sent, _)| sent.value > 0.0);
            cases.extend(both.map(|(sent, got)| at_most(name.clone(), got, sent, CLOCK)));
            // What a stream did not lose arrives, but for what is in buffers at the end.
            if protocol == "tcp" {
                const IN_BUFFERS: f64 = 0.1;
                cases.extend(both.map(|(sent, got)| equal(name, got, sent, IN_BUFFERS)));
            }
        }
    }
    judge(rule("NET6", "received <= sent, and nearly all of it over TCP"), cases)
}

/// NET7: the size of a datagram is one.
fn datagrams(read: &Read<'_>) -> Option<Identity> {
    let mut cases = Vec::new();
    for role in ROLES {
        let of = |what: &str| read.steps(&format!("udp_{what}"), role);
        let (bytes, counts) = (of("moved_bytes"), of("datagrams_count"));
        let (Some(moved), Some(count)) = (sum(&bytes), sum(&counts)) else {
            continue;
        };
        let lost = sum(&of("lost_count")).map_or(0.0, |lost| lost.value);
        if bytes.len() != counts.len() || lost > 0.0 || count.value <= 0.0 {
            continue;
        }
        let size = moved.over(count);
        for (moved, count) in bytes.iter().zip(&counts) {
            let name = format!("{:.2} s", moved.end_s);
            cases.push(equal(name, moved.num, size.by(count.num), CLOCK));
        }
    }
    judge(rule("NET7", "datagrams are of one size"), cases)
}

/// NET10: what `ping` says of all replies is what it printed of each.
fn replies(read: &Read<'_>) -> Option<Identity> {
    let mut ops = read.record.driver.ops.iter();
    let op = ops.find(|op| op.kind == "rtt")?;
    let all = &op.service.hist_ns;
    let received = read.num("", "packets_received_count")?;
    (all.count() > 0 && all.count() as f64 == received.value).then_some(())?;
    let us = |ns: Option<u64>| Some(Num::exact(ns? as f64 / 1e3));
    let mean = all.sum_ns() / all.count();
    let found = [("rtt_us_min", us(all.min_ns())), ("rtt_us_avg", us(Some(mean))), ("rtt_us_max", us(all.max_ns()))];
    let cases = found.into_iter().filter_map(|(key, replies)| {
        let said = read.num("", key)?;
        // The mean is cut, not rounded, and each reply was rounded.
        let mut case = equal(key.to_owned(), said, replies?, 0.01);
        case.tolerance += 2.0 * said.off;
        Some(case)
    });
    judge(rule("NET10", "minimum, mean and maximum = those of the replies"), cases.collect())
}

/// RED1: the means are those of the rows.
fn redo(read: &Read<'_>) -> Option<Identity> {
    const OFF: f64 = 0.01;
    let (rate, us, disk) = ("redo_transport_bytes_per_s", "redo_transport_us_avg", "redo_transport_disk_write_us_avg");
    let mut cases: Vec<Case> = Vec::new();
    let (rates, times, disks) = (read.steps(rate, ""), read.steps(us, ""), read.steps(disk, ""));
    for (key, steps) in [(rate, &rates), (us, &times), (disk, &disks)] {
        let values = || steps.iter().map(|step| step.num.value);
        let is_cut = read.info.notes.iter().any(|note| note.text.contains("cut out"));
        let (Some(whole), false) = (read.num("", key), steps.len() < 2) else {
            continue;
        };
        let (least, most) = (values().fold(f64::INFINITY, f64::min), values().fold(0.0, f64::max));
        let near = if is_cut { whole.value.clamp(least, most) } else { values().sum::<f64>() / steps.len() as f64 };
        let near = Num { value: near, ..whole };
        // Means of latencies weigh by messages, those of rates by time.
        let loose = if is_cut { OFF } else { 0.1 };
        cases.push(equal(format!("mean of {key}"), whole, near, loose));
    }
    judge(rule("RED1", "means are those of the rows"), cases)
}
