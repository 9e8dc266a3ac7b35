//! What follows from a redo test, in plain words.

use super::demand::{self, Verdict};
use super::info::{Cap, RedoInfo};
use assay_measure::cpu;
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::units::{fixed, size, thousands};

/// SYNC transport works best below this round trip, us; beyond twice it ASYNC or a near relay does better.
const SYNC_RTT_US: f64 = 5_000.0;
/// Disk, network and both should add up within this part.
const SUM_RATIO: f64 = 0.1;

/// What makes the figures doubtful.
pub(super) fn warnings(record: &Record, info: &RedoInfo) -> Vec<String> {
    let mut found = demand::warnings(info);
    if !info.write_why.is_empty() {
        found.push(format!("The standby wrote by {} instead of direct-dsync: {}.", info.write, info.write_why));
    }
    for standby in info.standbys.iter().filter(|one| !one.lost.is_empty()) {
        found.push(format!(
            "{} was lost {} s after the start: {}.",
            standby.name,
            standby.lost_s.value().map_or_else(String::new, |s| fixed(s, 1)),
            standby.lost
        ));
    }
    if info.standbys.iter().any(|one| super::is_here(&one.name)) {
        found.push(
            "The standby is this host: these figures include no network, and both ends share the CPUs.".to_owned(),
        );
    }
    if info.inflight_count > 1 {
        found.push(format!(
            "{} messages were in flight at once: a log writer has only one, so this is not a commit latency.",
            info.inflight_count
        ));
    }
    if let Some(count) = info.backlog_count.value().filter(|count| *count >= 1.0) {
        found.push(format!(
            "{} {} were still unsent at the end: the rate cannot be kept, and latencies grow with the length of the \
             test.",
            thousands(count as u64),
            if demand::is_grouped(info) { "commits" } else { "messages" }
        ));
    }
    if let Some(how) = cpu::disturbed(record) {
        found.push(format!("Meanwhile {how}: latencies include waiting for a CPU."));
    }
    found
}

/// The cap in a sentence.
pub(super) fn cap_text(info: &RedoInfo, cap: &Cap) -> String {
    format!(
        "It looks like an IOPS cap of {}/s starting at second {}: before it were {} messages/s, and every second since \
         lies within {} % of the same count. Messages of {} make {} MB/s of it.",
        fixed(cap.per_s, 0),
        fixed(cap.at_s, 0),
        fixed(cap.before_per_s, 0),
        fixed(cap.spread_pct.max(0.1), 1),
        size(info.length_bytes),
        fixed(cap.per_s * (info.length_bytes + 12) as f64 / 1e6, 1)
    )
}

pub(super) fn advise(info: &RedoInfo) -> Vec<Advice> {
    let mut found = Vec::new();
    if let Some(cap) = &info.cap {
        found.push(Advice::of(
            "RT1",
            true,
            format!(
                "{} Burst credits that are used up, a volume's limit and an array's policy look like this; a disk or a \
                 network does not. A test shorter than {} s does not see it.",
                cap_text(info, cap),
                fixed(cap.at_s + 10.0, 0)
            ),
            &[("cap_per_s", cap.per_s), ("at_s", cap.at_s)],
        ));
    }
    found.extend(distance(info));
    found.extend(session(info));
    found.extend(sums(info));
    found.extend(Verdict::of(info).map(|verdict| verdict.advice(info)));
    found
}

/// How far away the standby is for SYNC.
fn distance(info: &RedoInfo) -> Option<Advice> {
    let mut standbys = info.standbys.iter();
    let rtt = standbys.find_map(|one| one.min_rtt_us.value())?;
    if info.mode == "async" || rtt < SYNC_RTT_US {
        return None;
    }
    Some(Advice::of(
        "RT2",
        rtt >= 2.0 * SYNC_RTT_US,
        format!(
            "The round trip takes at least {} ms. SYNC transport succeeds most often below 5 ms; beyond 10 ms ASYNC, \
             or a relay near the primary (Far Sync), does better.",
            fixed(rtt / 1e3, 1)
        ),
        &[("min_rtt_us", rtt)],
    ))
}

/// What one session can have.
fn session(info: &RedoInfo) -> Option<Advice> {
    let is_scheduled = info.asked_per_s.value().is_some() || demand::is_grouped(info);
    if info.mode == "async" || is_scheduled || info.inflight_count > 1 {
        return None;
    }
    let us = info.commit.avg_us.value().filter(|us| *us > 0.0)?;
    Some(Advice::of(
        "RT3",
        false,
        format!(
            "A commit that waits for this takes at least {} us: one session makes at most {} commits/s. Group commit \
             lifts the total of many sessions, not that of one.",
            fixed(us, 0),
            thousands((1e6 / us) as u64)
        ),
        &[("commit_us_avg", us)],
    ))
}

/// Whether disk alone and network alone make both.
fn sums(info: &RedoInfo) -> Option<Advice> {
    let value = |figure: &Figure| figure.value();
    let disk = value(&info.disk_alone.avg_us)?;
    let network = value(&info.network_alone.avg_us)?;
    // Without the primary's own log.
    let both = value(&info.standbys.first()?.total.avg_us)?;
    let off = both / (disk + network) - 1.0;
    let told = format!(
        "The disk alone takes {} us, the network alone {} us, both together {} us ({} % {} than their sum)",
        fixed(disk, 0),
        fixed(network, 0),
        fixed(both, 0),
        fixed(100.0 * off.abs(), 0),
        if off >= 0.0 { "more" } else { "less" }
    );
    let evidence = [("disk_us", disk), ("network_us", network), ("both_us", both)];
    Some(if off > SUM_RATIO {
        Advice::of(
            "RT4",
            true,
            format!("{told}: the rest is CPU, or waiting in a queue, at one of the ends."),
            &evidence,
        )
    } else {
        Advice::of("RT4", false, format!("{told}."), &evidence)
    })
}
