//! Where DB time went: R1, R3, R17, R22.

use super::{Judged, Missing, busy, elapsed, finding, foreground, need, only_reads, share};
use assay_measure::record::{Record, RequestLayers};
use assay_measure::units::fixed;

/// Share of DB CPU in DB time from which on one of them is wrong: Oracle rounds both up by some percent at most.
const CONTRADICTS_PCT: f64 = 110.0;

/// R1. Sessions that share a thread wait for it in the run queue, so that counts as well.
pub(super) fn cpu_bound(record: &Record) -> Judged {
    const THRESHOLD: f64 = 80.0;
    let Some((pct, cpu_s)) = on_cpu(record)? else {
        return Ok(None);
    };
    if record.import.is_some() && pct > CONTRADICTS_PCT {
        return Err(Missing("DB time: DB CPU exceeds it".to_owned()));
    }
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text = format!(
        "CPU-bound: {} % of DB time is execution and waiting for a CPU ({} CPUs used by {}). This run measures \
         logical I/O, not storage.",
        fixed(pct, 1),
        fixed(cpu_s, 2),
        match (&record.instance.server, &record.import) {
            (Some(_), _) => "the server's sessions",
            (_, Some(_)) => "the sessions",
            _ => "the driver threads",
        }
    );
    let evidence = [("on_cpu_pct", pct), ("db_cpu_s_per_s", cpu_s)];
    finding("R1", pct, THRESHOLD, text, &evidence)
}

/// Share of DB time on or waiting for a CPU, 0..100, and DB CPU in s a second; none without any DB time. A load profile
/// alone, as people paste it, says both per second without the length of the window.
pub(crate) fn on_cpu(record: &Record) -> Result<Option<(f64, f64)>, Missing> {
    let model = &record.instance.time_model;
    let per_s = |name: &str| {
        let mut rows = record.instance.load_profile.iter();
        rows.find(|row| row.name == name).and_then(|row| row.per_s.value())
    };
    if model.db_time_us.value().is_none()
        && let (Some(db_time), Some(cpu)) = (per_s("DB Time(s)"), per_s("DB CPU(s)"))
    {
        return Ok((db_time > 0.0).then(|| (100.0 * cpu / db_time, cpu)));
    }
    let db_time = need(&model.db_time_us, "DB time")?;
    if db_time <= 0.0 {
        return Ok(None);
    }
    let cpu = need(&model.db_cpu_us, "DB CPU")?;
    let on_cpu = match (model.on_thread_us.value(), model.run_queue_us.value()) {
        (Some(on_thread), Some(queue)) => on_thread + queue,
        _ => cpu,
    };
    Ok(Some((100.0 * on_cpu / db_time, cpu / 1e6 / elapsed(record)?)))
}

/// R3.
pub(super) fn storage_bound(record: &Record) -> Judged {
    const THRESHOLD: f64 = 60.0;
    let pct = share(record, |event| event.class == "User I/O")?;
    let busy = busy(record)?;
    let read = foreground(record, |event| event.class == "User I/O").next();
    let (true, true, Some(read)) = (pct >= THRESHOLD, busy < 80.0, read) else {
        return Ok(None);
    };
    // A server's time may be sampled: then there is no average.
    let avg = read.avg_us.value();
    let mut evidence = vec![("user_io_pct", pct), ("busy_pct", busy)];
    evidence.extend(avg.map(|us| ("read_avg_us", us)));
    let p99 = read.p99_us.value();
    evidence.extend(p99.map(|us| ("read_p99_us", us)));
    let checks = &record.checks;
    let little = checks.little_sessions.value().zip(checks.little_expected_sessions.value());
    let little_text = little.map_or_else(String::new, |(found, there)| {
        format!(" Little's law accounts for {} of {} sessions.", fixed(found, 2), fixed(there, 0))
    });
    evidence.extend(little.map(|(found, _)| ("little_sessions", found)));
    let average = avg.map(|us| format!("average {} us", fixed(us, 0)));
    let slow = p99.map(|us| format!("p99 {} us", fixed(us, 0)));
    let figures: Vec<String> = average.into_iter().chain(slow).collect();
    let text = format!(
        "Storage-latency-bound: {} % of DB time is User I/O while the host is {} % busy. {}{}.{little_text}",
        fixed(pct, 1),
        fixed(busy, 1),
        read.name,
        if figures.is_empty() { " accounts for most of it".to_owned() } else { format!(": {}", figures.join(", ")) },
    );
    finding("R3", pct, THRESHOLD, text, &evidence)
}

/// R17.
pub(super) fn contention(record: &Record) -> Judged {
    const THRESHOLD: f64 = 5.0;
    let pct = share(record, |event| {
        event.name == "read by other session" || event.name == "buffer busy waits" || event.name.starts_with("enq: TX")
    })?;
    if pct < THRESHOLD {
        return Ok(None);
    }
    let text = format!(
        "Sessions contend for the same blocks: {} % of DB time waits for another session. A test of I/O \
         alone needs one session per schema.",
        fixed(pct, 1)
    );
    finding("R17", pct, THRESHOLD, text, &[("shared_block_waits_pct", pct)])
}

/// R22. Of the requests one wait stands for, the kind that cost most time in all.
pub(super) fn above_the_device(record: &Record) -> Judged {
    const THRESHOLD: f64 = 2.0;
    /// Fewer requests say nothing of a mean.
    const LEAST: f64 = 100.0;
    let means = |row: &RequestLayers| {
        let count = row.engine.count.value().filter(|count| *count >= LEAST)?;
        let engine = row.engine.latency.avg_us.value()?;
        let device = row.device.latency.avg_us.value().filter(|us| *us > 0.0)?;
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
                need(&row.device.latency.avg_us, "device latency")?;
                Ok(None)
            }
            None => Err(Missing("latency by layer: no request with a wait of its own".to_owned())),
        };
    };
    let ratio = engine / device;
    if ratio < THRESHOLD {
        return Ok(None);
    }
    let ring = row.syscall.latency.avg_us.value();
    let mut evidence = vec![("engine_over_device_ratio", ratio), ("engine_avg_us", engine), ("device_avg_us", device)];
    evidence.extend(ring.map(|us| ("syscall_avg_us", us)));
    if let Some(room) = full_queue(record, row) {
        evidence.push(("reads_in_flight_max_count", room));
        let text = format!(
            "The device's queue was full: it takes {} reads of this run, and the others waited for room. A {} took {} us \
             for the waiting session, {} us of them in the device. Fewer sessions would read as much.",
            fixed(room, 0),
            row.request,
            fixed(engine, 0),
            fixed(device, 0)
        );
        return finding("R22", ratio, THRESHOLD, text, &evidence);
    }
    let text = format!(
        "Time is lost above the device: a {} takes {} us for the waiting session, {}{} us in the device. The rest is \
         queueing, scheduling or the hypervisor; see Latency by Layer.",
        row.request,
        fixed(engine, 0),
        ring.map_or_else(String::new, |us| format!("{} us in the ring, ", fixed(us, 0))),
        fixed(device, 0)
    );
    finding("R22", ratio, THRESHOLD, text, &evidence)
}

/// The reads that the device's queue takes of all driver threads, where as many were in flight on average (Little's law
/// for the ring): what sessions wait beyond it, they wait for the device.
fn full_queue(record: &Record, row: &RequestLayers) -> Option<f64> {
    const FULL: f64 = 0.8;
    let mut facts = record.plan.engine_facts.iter();
    let room = facts.find(|fact| fact.name == "reads_in_flight_per_thread_max")?;
    let room = room.value.parse::<f64>().ok()? * record.driver.threads_count as f64;
    let ring_s = row.syscall.count.value()? * row.syscall.latency.avg_us.value()? / 1e6;
    let in_flight = ring_s / record.interval.elapsed_s.value()?;
    (in_flight >= FULL * room).then_some(room)
}
