//! R13: reads come from the page cache.

use super::*;

const THRESHOLD: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    id: "R13",
    title: "Reads come from the page cache",
    changes_figures: true,
    fires_when: || {
        format!(
            "The devices, or the kernel for the processes that read, delivered less than {THRESHOLD} of what the engine read, of {} or more; high from half of that down",
            size(SOME_BYTES as u64)
        )
    },
    why: "No figure of reads says anything of the device.",
    what_to_do: "Bypass the page cache, or read more data than memory holds.",
    cannot_judge_when: "Neither the bytes that the devices read nor those of the process are known.",
    source: "Measured on a server that reads through the page cache: 20 GB read by it, 0.5 MB of that from devices.",
};

pub(super) fn judge(record: &Record) -> RuleResult {
    let checks = &record.checks;
    let Ok(engine) = need(&checks.engine_read_bytes, "engine read bytes") else {
        return Ok(None);
    };
    if engine < SOME_BYTES {
        return Ok(None);
    }
    let (below, layer) = match (checks.device_read_bytes.value(), checks.process_read_bytes.value()) {
        // A neighbour's reads would hide ours: where this run caused fewer, that is the sharper figure.
        (Some(device), process) if process.is_none_or(|process| device <= process) => (device, "the devices"),
        (_, Some(process)) if has_processes(record) => (process, "the kernel, for the server's processes,"),
        (_, Some(process)) => (process, "the kernel, for this process,"),
        (_, None) => {
            return Err(Missing("device and process read bytes: unknown".to_owned()));
        }
    };
    let ratio = below / engine;
    if ratio >= THRESHOLD {
        return Ok(None);
    }
    let asked = match &record.instance.reads {
        Some(reads) if !reads.evict_asked.is_empty() => {
            format!(" EVICT={} did not keep the page cache out.", reads.evict_asked)
        }
        _ => String::new(),
    };
    let text = format!(
        "Reads come from the page cache: the engine read {}, {layer} only {}. {}The wait times are those of memory, \
         not of a device.{asked} For a test of storage: {}.",
        size(engine as u64),
        size(below as u64),
        record
            .os
            .disk
            .iter()
            .find_map(|disk| disk.read_us_avg.value())
            .map_or_else(String::new, |us| { format!("The device's own latency is {} us per read. ", fixed(us, 0)) }),
        device_reads(record)
    );
    let evidence = [("device_over_engine_ratio", ratio), ("engine_read_bytes", engine), ("device_read_bytes", below)];
    Ok(Some(RULE.finding(ratio <= THRESHOLD / 2.0, text, &evidence)))
}
