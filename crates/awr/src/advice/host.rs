//! The host: R2, R12, R21.

use super::{Judged, busy, elapsed, need, stat};
use assay_measure::record::Advice;
use assay_measure::record::{DiskRow, Record};
use assay_measure::units::fixed;

/// R2.
pub(super) fn cpu_saturated(record: &Record) -> Judged {
    const BUSY: f64 = 95.0;
    const QUEUE: f64 = 5.0;
    const LOAD: f64 = 1.5;
    let busy = busy(record)?;
    if busy < BUSY {
        return Ok(None);
    }
    let model = &record.instance.time_model;
    let load_known = !record.os.load_end.is_empty();
    let queue = match (model.db_time_us.value(), model.run_queue_us.value()) {
        (Some(db_time), Some(queue)) if db_time > 0.0 => Some(100.0 * queue / db_time),
        (Some(_), Some(_)) => Some(0.0),
        // Of an import the load is all there is.
        _ if load_known => None,
        _ => {
            need(&model.db_time_us, "DB time")?;
            need(&model.run_queue_us, "run queue time")?;
            None
        }
    };
    let load = record.os.load_end.first().and_then(|load| load.value());
    let per_cpu = load.zip(record.os.cpus_count.value().filter(|cpus| *cpus > 0.0)).map(|(load, cpus)| load / cpus);
    let queued = per_cpu.is_some_and(|load| load > LOAD);
    if queue.is_none_or(|queue| queue <= QUEUE) && !queued {
        return Ok(None);
    }
    let mut evidence = vec![("busy_pct", busy)];
    evidence.extend(queue.map(|queue| ("run_queue_pct", queue)));
    evidence.extend(per_cpu.map(|load| ("load_per_cpu", load)));
    let high = queue.is_some_and(|queue| queue >= 2.0 * QUEUE) || per_cpu.is_some_and(|load| load >= 2.0 * LOAD);
    let text = format!(
        "The host's CPUs are saturated: {} % busy{}{}. \
         Wait times include scheduling delay: do not read them as device latency.",
        fixed(busy, 1),
        queue
            .filter(|queue| *queue > QUEUE)
            .map_or_else(String::new, |queue| format!(", {} % of DB time in the run queue", fixed(queue, 1))),
        per_cpu.map_or_else(String::new, |load| format!(", load {} per CPU", fixed(load, 1)))
    );
    Ok(Some(Advice::of("R2", high, text, &evidence)))
}

/// A limit somebody set on a device, from the host's facts.
struct Cap<'a> {
    disk: &'a str,
    /// `read_iops`, `write_iops`, `read_bytes` or `write_bytes`, each per second.
    kind: &'a str,
    per_s: f64,
    by: &'a str,
}

/// `io_cap_vda_read_iops` = `5000 by blkio throttle of /load`.
fn caps(record: &Record) -> impl Iterator<Item = Cap<'_>> {
    const KINDS: [&str; 4] = ["read_iops", "write_iops", "read_bytes", "write_bytes"];
    record.host.facts.iter().filter_map(|fact| {
        let rest = fact.name.strip_prefix("io_cap_")?;
        let kind = KINDS.into_iter().find(|kind| rest.ends_with(kind))?;
        let disk = rest.strip_suffix(kind)?.strip_suffix('_')?;
        let (per_s, by) = fact.value.split_once(" by ")?;
        Some(Cap { disk, kind, per_s: per_s.parse().ok()?, by })
    })
}

/// R12. A rate within 3 % of its cap, while the other rate of that direction has room.
pub(super) fn pinned_at_a_cap(record: &Record) -> Judged {
    const WITHIN: f64 = 0.03;
    const ROOM: f64 = 0.9;
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
    let used = |cap: &Cap<'_>| {
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
    let direction = |cap: &Cap<'_>| cap.kind.starts_with("read");
    for cap in caps(record) {
        let Some(share) = used(&cap).filter(|share| (share - 1.0).abs() <= WITHIN) else {
            continue;
        };
        let others = caps(record)
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
        return Ok(Some(Advice::of("R12", high, text, &evidence)));
    }
    Ok(None)
}

/// R21.
pub(super) fn noisy_host(record: &Record) -> Judged {
    const STEAL: f64 = 1.0;
    const HOLE: f64 = 0.5;
    let pct = |name: &str| {
        let figure = record.os.cpu_pct.get(name).cloned().unwrap_or_default();
        need(&figure, &format!("host CPU {name}"))
    };
    let steal = pct("steal")?;
    let sum = pct("user")? + pct("system")? + pct("iowait")? + pct("idle")? + steal;
    let throttled = record.os.cgroup_throttled_us.value();
    let throttled_s = throttled.map(|us| us / 1e6).filter(|s| *s > 0.0);
    let hole = (sum - 100.0).abs() > HOLE;
    let mut said = Vec::new();
    if steal >= STEAL {
        said.push(format!("the hypervisor withheld {} % of CPU time (steal)", fixed(steal, 1)));
    }
    if let Some(seconds) = throttled_s {
        said.push(format!("the CPU limit of this cgroup throttled it for {} s", fixed(seconds, 2)));
    }
    if hole {
        said.push(format!("the CPU columns sum to {} %, so time is missing from the account", fixed(sum, 1)));
    }
    if said.is_empty() {
        return Ok(None);
    }
    let mut evidence = vec![("steal_pct", steal), ("cpu_columns_sum_pct", sum)];
    evidence.extend(throttled_s.map(|seconds| ("throttled_s", seconds)));
    let share = throttled_s.unwrap_or(0.0) / elapsed(record)?;
    let high = steal >= 2.0 * STEAL || share >= 0.02 || (sum - 100.0).abs() > 2.0 * HOLE;
    let text = format!(
        "The host was noisy or capped: {}. Compare this run only with runs on the same kind of host, or repeat it on \
         another host.",
        said.join("; ")
    );
    Ok(Some(Advice::of("R21", high, text, &evidence)))
}
