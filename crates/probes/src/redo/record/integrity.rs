//! What has to hold between the figures of a redo test.

use super::demand::is_grouped;
use super::info::{RedoInfo, StandbyInfo};
use crate::redo::wire::HEADER_BYTES;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::record::Identity;

/// What of a second's rate may be off where a message goes over its end.
const CLOSED_LOOP: f64 = 0.005;
const ENDED_EARLY: &str = "the test ended early";

/// All of them.
pub(super) fn judge(info: &RedoInfo) -> Vec<Identity> {
    let mut all = vec![consumed(info), seconds(info)];
    if is_grouped(info) {
        all.push(commits(info));
    }
    if info.mode != "async" {
        all.push(parts(info));
        all.push(stream(info));
    }
    all
}

/// Whatever was sent, the standbys have consumed.
fn consumed(info: &RedoInfo) -> Identity {
    let rule = IdentityRule::exact("RI1", Scope::Whole, "messages consumed by each standby = messages sent");
    if !info.failed.is_empty() {
        return rule.unknown(ENDED_EARLY);
    }
    let mut there = info.standbys.iter().filter(|one| one.lost.is_empty());
    let is_off = |one: &&StandbyInfo| one.consumed_count != one.sent_count;
    let found = there.clone().find(is_off).or_else(|| there.next());
    match found {
        Some(one) => rule.compare(Ok(one.consumed_count as f64), Ok(one.sent_count as f64)),
        None => rule.unknown("no standby was left"),
    }
}

/// The seconds add up.
fn seconds(info: &RedoInfo) -> Identity {
    let rule = IdentityRule::exact("RI2", Scope::Whole, "messages of all seconds = messages sent");
    if !info.failed.is_empty() {
        return rule.unknown(ENDED_EARLY);
    }
    if info.mode == "async" && info.standbys.iter().any(|one| !one.lost.is_empty()) {
        return rule.unknown("the last messages that a lost standby consumed are unknown");
    }
    rule.compare(Ok(info.messages_count as f64), Ok(info.sent_count as f64))
}

/// Every commit is in one message.
fn commits(info: &RedoInfo) -> Identity {
    let rule = IdentityRule::exact("RI4", Scope::Whole, "commits x bytes of a commit = payload of all messages");
    if !info.failed.is_empty() {
        return rule.unknown(ENDED_EARLY);
    }
    let bytes = info.commits_count * info.commit_bytes;
    rule.compare(Ok(bytes as f64), Ok(info.payload_bytes as f64))
}

/// Nothing of a message's time is lost.
fn parts(info: &RedoInfo) -> Identity {
    let rule = IdentityRule::exact(
        "RI3",
        Scope::Whole,
        "time of compression + in the network + at the standby = time of all messages, ns",
    );
    if info.standbys.iter().any(|one| one.negative_count > 0) {
        return rule.unknown("for some messages the standby's time exceeds the whole");
    }
    let sum = |of: &assay_measure::record::Latency| of.hist_ns.sum_ns() as f64;
    let both = info.standbys.iter().map(|one| sum(&one.pack) + sum(&one.network) + sum(&one.server));
    let whole = info.standbys.iter().map(|one| sum(&one.total));
    rule.compare(Ok(both.sum()), Ok(whole.sum()))
}

/// I39 of imports: one message at a time.
fn stream(info: &RedoInfo) -> Identity {
    let rule = IdentityRule::within(
        "I39",
        Scope::Window,
        "synchronous stream: bytes per second = (message + 12 bytes of framing) / latency",
        0.0,
    );
    let is_closed = info.delay_ms.value() == Some(0.0)
        && info.asked_per_s.value().is_none()
        && !is_grouped(info)
        && info.inflight_count == 1;
    if !is_closed {
        return rule.unknown("messages did not follow one another without a pause");
    }
    let size = (info.length_bytes + HEADER_BYTES as u64) as f64;
    let elapsed = info.elapsed_s.value().filter(|s| *s > 0.0);
    let total_us: f64 = info.seconds.iter().map(|row| row.total_us).sum();
    let Some(elapsed) = elapsed.filter(|_| total_us > 0.0) else {
        return rule.unknown("nothing was acknowledged");
    };
    let count = info.messages_count as f64;
    let rate = count * size / elapsed;
    let latency_s = total_us / count / 1e6;
    let rhs = info.connections_count as f64 * size / latency_s;
    // Connections begin and end one after the other, and a crowd looks at its sockets between two commits.
    let loose = if info.connections_count > 1 || info.standbys.len() > 1 { 10.0 } else { 1.0 };
    rule.tolerating(CLOSED_LOOP * loose * rate).compare(Ok(rate), Ok(rhs))
}
