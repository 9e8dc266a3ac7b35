//! R23: the network is a large part of a remote call.

use super::*;

const THRESHOLD: f64 = 25.0;

pub(super) const RULE: Rule = Rule {
    id: "R23",
    title: "The network is a large part of a remote call",
    changes_figures: false,
    fires_when: || {
        format!("The remote call without its disk write takes at least {THRESHOLD} % of the call; high from twice that")
    },
    why: "Whichever part is larger is the one to improve first.",
    what_to_do: "Improve the larger part first: the network (distance, switches, socket buffers, interrupts) or the remote side's disk.",
    cannot_judge_when: "The call or its disk write is n/a.",
    source: "Published load tests: 0.644 ms of 2.532 ms.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some(call) = read(record, "redo_transport_us_avg") else {
        return Ok(None);
    };
    let call = need(&call, "latency of the remote call")?;
    let Some(disk) = read(record, "redo_transport_disk_write_us_avg") else {
        return Err(Missing("disk part of the remote call: not printed (no disk write)".to_owned()));
    };
    let disk = need(&disk, "disk part of the remote call")?;
    let network = call - disk;
    if call <= 0.0 || network < 0.0 || 100.0 * network / call < THRESHOLD {
        return Ok(None);
    }
    let pct = 100.0 * network / call;
    let text = format!(
        "The network is {} % of a remote call: {} of {}, {} is the disk write of the remote side.",
        fixed(pct, 0),
        told(network, "us", 0),
        told(call, "us", 0),
        told(disk, "us", 0)
    );
    let first = if network > disk {
        "Improve the network (distance, switches, socket buffers, interrupts) before you buy a faster disk for the remote side."
    } else {
        "The disk write is the larger part: a faster disk on the remote side helps more than a faster network."
    };
    let evidence = [("network_pct", pct), ("network_us", network), ("disk_us", disk)];
    fired(&RULE, pct, THRESHOLD, format!("{text} {first}"), &evidence)
}

/// The value of a key that an import read of the whole test. Those of its seconds have a scope.
fn read(record: &Record, key: &str) -> Option<Figure> {
    let mut values = record.import.iter().flat_map(|info| &info.values);
    values.find(|value| value.key == key && value.scope.is_empty()).map(|value| value.value.clone())
}
