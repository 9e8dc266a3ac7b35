//! R13: reads come from the page cache.

use super::*;

/// Where a smaller part of the reads reached a device, they measure memory.
pub(crate) const THRESHOLD: f64 = 0.5;

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

/// What an engine read, and what of it came from a device.
pub(crate) struct DeliveredReads {
    engine_bytes: f64,
    device_bytes: f64,
    /// Who counted that.
    layer: &'static str,
}

impl DeliveredReads {
    /// Part of the bytes read that came from a device, 0..1; read-ahead makes it no more than all.
    pub(crate) fn ratio(&self) -> f64 {
        (self.device_bytes / self.engine_bytes).min(1.0)
    }
}

/// Where the reads came from; none of an engine that read next to nothing.
pub(crate) fn delivered(record: &Record) -> Result<Option<DeliveredReads>, Missing> {
    let checks = &record.checks;
    let Some(engine_bytes) = checks.engine_read_bytes.value().filter(|bytes| *bytes >= SOME_BYTES) else {
        return Ok(None);
    };
    let (device_bytes, layer) = match (checks.device_read_bytes.value(), checks.process_read_bytes.value()) {
        // A neighbour's reads would hide ours: where this run caused fewer, that is the sharper figure.
        (Some(device), process) if process.is_none_or(|process| device <= process) => (device, "the devices"),
        (_, Some(process)) if has_processes(record) => (process, "the kernel, for the server's processes,"),
        (_, Some(process)) => (process, "the kernel, for this process,"),
        (_, None) => {
            return Err(Missing("device and process read bytes: unknown".to_owned()));
        }
    };
    Ok(Some(DeliveredReads { engine_bytes, device_bytes, layer }))
}

pub(super) fn judge(record: &Record) -> RuleResult {
    let Some(found) = delivered(record)?.filter(|found| found.ratio() < THRESHOLD) else {
        return Ok(None);
    };
    let (ratio, DeliveredReads { engine_bytes, device_bytes, layer }) = (found.ratio(), found);
    let asked = match &record.instance.reads {
        Some(reads) if !reads.evict_asked.is_empty() => {
            format!(" EVICT={} did not keep the page cache out.", reads.evict_asked)
        }
        _ => String::new(),
    };
    let text = format!(
        "Reads come from the page cache: the engine read {}, {layer} only {}. {}The wait times are those of memory, \
         not of a device.{asked} For a test of storage: {}.",
        size(engine_bytes as u64),
        size(device_bytes as u64),
        record
            .os
            .disk
            .iter()
            .find_map(|disk| disk.read_us_avg.value())
            .map_or_else(String::new, |us| { format!("The device's own latency is {} per read. ", told(us, "us", 0)) }),
        device_reads(record)
    );
    let evidence =
        [("device_over_engine_ratio", ratio), ("engine_read_bytes", engine_bytes), ("device_read_bytes", device_bytes)];
    Ok(Some(RULE.finding(ratio <= THRESHOLD / 2.0, text, &evidence)))
}
