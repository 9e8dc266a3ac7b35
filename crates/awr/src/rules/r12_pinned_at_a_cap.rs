//! R12: a configured limit caps the figures.

use super::*;
use assay_measure::facts::{IoCap, io_caps};

const WITHIN: f64 = 0.03;
const ROOM: f64 = 0.9;

pub(super) const RULE: Rule = Rule {
    id: "R12",
    title: "A configured limit caps the figures",
    changes_figures: false,
    fires_when: || {
        format!(
            "A rate of the run is within {WITHIN} of a limit set on the device, and no other limit of that direction is used to {ROOM} of it; high within half of that"
        )
    },
    why: "The figures show the limit, not the device.",
    what_to_do: "Raise the limit, or state it beside the figures.",
    cannot_judge_when: "The length of the window is n/a.",
    source: "Published load tests of the method: 237.2 MiB/s on a link of 2 Gbit/s.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let elapsed = elapsed(record)?;
    // The limit counts what this process does; with one device under the data that is known
    // apart from what others do to it.
    let own = |kind: &str| match (record.os.disk.len(), kind) {
        (1, "read_iops") => stat(record, "physical_read_total_io_requests_count").ok(),
        (1, "write_iops") => stat(record, "physical_write_total_io_requests_count").ok(),
        (1, "read_bytes") => record.checks.process_read_bytes.value(),
        (1, _) => record.checks.process_write_bytes.value(),
        _ => None,
    };
    let used = |cap: &IoCap<'_>| {
        let disk: &DiskRow = record.os.disk.iter().find(|disk| disk.name == cap.disk)?;
        let all = match cap.kind {
            "read_iops" => disk.reads_count,
            "write_iops" => disk.writes_count,
            "read_bytes" => disk.read_bytes,
            _ => disk.write_bytes,
        };
        let count = own(cap.kind).unwrap_or(all as f64);
        Some(count / elapsed / cap.per_s)
    };
    let direction = |cap: &IoCap<'_>| cap.kind.starts_with("read");
    for cap in io_caps(&record.host.facts) {
        let Some(share) = used(&cap).filter(|share| (share - 1.0).abs() <= WITHIN) else {
            continue;
        };
        let others = io_caps(&record.host.facts)
            .filter(|other| other.disk == cap.disk && other.kind != cap.kind && direction(other) == direction(&cap));
        if others.filter_map(|other| used(&other)).any(|share| share >= ROOM) {
            continue;
        }
        let rate = share * cap.per_s;
        let text = format!(
            "A configured limit caps the figures: on {} this run did {} {} per second, {} % of the limit of {} set \
             by {}. The figures show this limit, not the device.",
            cap.disk,
            fixed(rate, 0),
            cap.kind.replace('_', " "),
            fixed(100.0 * share, 1),
            fixed(cap.per_s, 0),
            cap.by
        );
        let evidence = [("cap_used_ratio", share), ("cap_per_s", cap.per_s)];
        let high = (share - 1.0).abs() <= WITHIN / 2.0;
        return Ok(Some(RULE.advise(high, text, &evidence)));
    }
    Ok(None)
}
