//! R3: storage-latency-bound.

use super::*;

const THRESHOLD: f64 = 60.0;
const IDLE: f64 = 80.0;

pub(super) const RULE: Rule = Rule {
    id: "R3",
    title: "Storage-latency-bound",
    changes_figures: false,
    fires_when: || {
        format!("Waits for reads take at least {THRESHOLD} % of DB time while the host is less than {IDLE} % busy")
    },
    why: "The latency of reads limits the rate, so the figures describe the storage.",
    what_to_do: "Use storage with a lower latency; while the device has room, add sessions to raise throughput.",
    cannot_judge_when: "DB time or host CPU use is n/a.",
    source: "Published load tests of the method: 94.9 %.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let pct = share(record, is_read)?;
    let busy = busy(record)?;
    let read = foreground(record, is_read).next();
    let (true, true, Some(read)) = (pct >= THRESHOLD, busy < IDLE, read) else {
        return Ok(None);
    };
    // A server's time may be sampled: then there is no average.
    let avg = read.us_avg.value();
    let mut evidence = vec![("read_waits_pct", pct), ("busy_pct", busy)];
    evidence.extend(avg.map(|us| ("read_us_avg", us)));
    let p99 = read.us_p99.value();
    evidence.extend(p99.map(|us| ("read_us_p99", us)));
    let checks = &record.checks;
    let little = checks.little_sessions.value().zip(checks.little_expected_sessions.value());
    let little_text = little.map_or_else(String::new, |(found, there)| {
        format!(" Little's law accounts for {} of {} sessions.", fixed(found, 2), fixed(there, 0))
    });
    evidence.extend(little.map(|(found, _)| ("little_sessions", found)));
    let average = avg.map(|us| format!("average {}", told(us, "us", 0)));
    let slow = p99.map(|us| format!("p99 {}", told(us, "us", 0)));
    let figures: Vec<String> = average.into_iter().chain(slow).collect();
    let text = format!(
        "Storage-latency-bound: {} % of DB time is waiting for reads while the host is {} % busy. {}{}.{little_text}",
        fixed(pct, 1),
        fixed(busy, 1),
        read.name,
        if figures.is_empty() { " accounts for most of it".to_owned() } else { format!(": {}", figures.join(", ")) },
    );
    Ok(Some(RULE.advise(false, text, &evidence)))
}
