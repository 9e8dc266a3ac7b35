//! R22: time is lost above the device.

use super::*;

const THRESHOLD: f64 = 2.0;
/// Fewer requests say nothing of a mean.
const LEAST: f64 = 100.0;

pub(super) const RULE: Rule = Rule {
    id: "R22",
    title: "Time is lost above the device",
    changes_figures: false,
    fires_when: || {
        format!(
            "Of the request with most time the engine's mean is at least {THRESHOLD} times the device's, of {LEAST} requests or more; high at twice that"
        )
    },
    why: "Queueing, scheduling or the hypervisor takes the time, or the queue of the device is full.",
    what_to_do: "Read Latency by Layer; where the queue is full use fewer sessions.",
    cannot_judge_when: "The device's latency is n/a, or no request has a wait of its own.",
    source: "Published load tests of the method: 1.08 ms of 7.40 ms.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let means = |row: &RequestLayers| {
        let count = row.engine.count.value().filter(|count| *count >= LEAST)?;
        let engine = row.engine.latency.us_avg.value()?;
        let device = row.device.latency.us_avg.value().filter(|us| *us > 0.0)?;
        Some((count * engine, engine, device))
    };
    // A log nobody waits for makes no request slow.
    let counts = |row: &&RequestLayers| !row.is_batched && (row.request != "log write" || !only_reads(record));
    let judged = record.instance.layers.iter().filter(counts);
    let known = judged.filter_map(|row| Some((row, means(row)?)));
    let most = known.max_by(|(_, a), (_, b)| a.0.total_cmp(&b.0));
    let Some((row, (_, engine, device))) = most else {
        return match record.instance.layers.iter().find(counts) {
            Some(row) => {
                need(&row.device.latency.us_avg, "device latency")?;
                Ok(None)
            }
            None => Err(Missing("latency by layer: no request with a wait of its own".to_owned())),
        };
    };
    let ratio = engine / device;
    if ratio < THRESHOLD {
        return Ok(None);
    }
    let ring = row.syscall.latency.us_avg.value();
    let mut evidence = vec![("engine_over_device_ratio", ratio), ("engine_us_avg", engine), ("device_us_avg", device)];
    evidence.extend(ring.map(|us| ("syscall_us_avg", us)));
    if let Some(room) = full_queue(record, row) {
        evidence.push(("reads_in_flight_max_count", room));
        let text = format!(
            "The device's queue was full: it accepts {} reads of this run at once, and the others waited for room. A {} took {} \
             for the waiting session, {} of it in the device. Fewer sessions would reach the same rate.",
            fixed(room, 0),
            row.request,
            told(engine, "us", 0),
            told(device, "us", 0)
        );
        return Ok(Some(RULE.finding(ratio >= 2.0 * THRESHOLD, text, &evidence)));
    }
    let text = format!(
        "Time is lost above the device: a {} takes {} for the waiting session, {}{} in the device. The rest is \
         queueing, scheduling or the hypervisor; see Latency by Layer.",
        row.request,
        told(engine, "us", 0),
        ring.map_or_else(String::new, |us| format!("{} in the ring, ", told(us, "us", 0))),
        told(device, "us", 0)
    );
    Ok(Some(RULE.finding(ratio >= 2.0 * THRESHOLD, text, &evidence)))
}

/// The reads that the device's queue takes of all driver threads, where as many were in flight on average (Little's law
/// for the ring): what sessions wait beyond it, they wait for the device.
fn full_queue(record: &Record, row: &RequestLayers) -> Option<f64> {
    const FULL: f64 = 0.8;
    let mut facts = record.plan.engine_facts.iter();
    let room = facts.find(|fact| fact.name == "reads_in_flight_per_thread_max")?;
    let room = room.value.parse::<f64>().ok()? * record.driver.threads_count as f64;
    let ring_s = row.syscall.count.value()? * row.syscall.latency.us_avg.value()? / 1e6;
    let in_flight = ring_s / record.interval.elapsed_s.value()?;
    (in_flight >= FULL * room).then_some(room)
}
