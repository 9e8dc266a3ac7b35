//! What may change what the figures mean.

use super::info::PingInfo;
use assay_measure::cpu;
use assay_measure::record::Record;
use assay_measure::section::number;
use assay_measure::units::fixed;

/// Requests that go this late are not on schedule, us.
const LATE_US: f64 = 1000.0;
/// Linux sends a lost segment again after this at the earliest, and holds an acknowledgement back for at most that; us.
const RTO_US: std::ops::Range<f64> = 195_000.0..260_000.0;
const DELAYED_ACK_US: std::ops::Range<f64> = 38_000.0..48_000.0;

/// All of them.
pub(super) fn all(record: &Record, info: &PingInfo) -> Vec<String> {
    let mut all = Vec::new();
    if info.is_loopback {
        all.push(
            "The other end is this host: the packets never left it. This measures the kernel and the scheduler, not a \
             network."
                .to_owned(),
        );
    }
    if !info.why_not.is_empty() {
        all.push(format!(
            "The method is {}, because a better one was not possible: {}.",
            info.method,
            info.why_not.join("; ")
        ));
    }
    let rate = info.rate_per_s;
    let ideal = info.elapsed_s * rate;
    if rate > 0.0 && (info.sent_count as f64) < 0.95 * ideal.floor() {
        all.push(format!(
            "Sent only {} of {} requests/s: each waits for the previous reply, and the round trip is longer than the \
             gap. Ask for a lower --rate.",
            fixed(info.sent_count as f64 / info.elapsed_s, 0),
            fixed(rate, 0)
        ));
    } else if info.late_p99_us.value().is_some_and(|late| late > LATE_US) && rate > 0.0 {
        all.push(format!(
            "One request in a hundred was sent more than {} us after it was due: an earlier request stalled, or this \
             test had no CPU. Response times since due include this delay; round trips do not.",
            number(&info.late_p99_us, 0)
        ));
    }
    let within = |range: &std::ops::Range<f64>| {
        let slow = info.worst.iter().filter(|row| !row.is_lost);
        slow.filter(|row| range.contains(&row.service_us)).count()
    };
    if let (again, tcp @ 1..) = (info.retransmits_count, within(&RTO_US)) {
        let sent_again = match again {
            Some(count) => format!(" (the kernel sent {count} segments again)"),
            None => String::new(),
        };
        all.push(format!(
            "{tcp} of the worst took about 200 ms: a lost segment that TCP sent again after its shortest timeout is \
             the usual reason{sent_again}."
        ));
    }
    if let delayed @ 1.. = within(&DELAYED_ACK_US) {
        all.push(format!(
            "{delayed} of the worst took about 40 ms: an acknowledgement held back, with a sender that waits for it, \
             is the usual reason."
        ));
    }
    if !info.first_error.is_empty() {
        all.push(format!("{} requests met an error, the first: {}.", info.errors_count, info.first_error));
    }
    if let Some(others) = cpu::disturbed(record) {
        all.push(format!("While it was measured, {others}: round trips include the wait for a CPU."));
    }
    all
}
