//! Looks up options of a job by name, and derives facts from them.

use crate::readings::{JobReading, StorageReadings};
use crate::record::info::StorageDevices;

/// Options of one job: its own come before the global ones, and the last of a name wins.
#[derive(Clone, Copy)]
pub(super) struct Options<'a> {
    readings: &'a StorageReadings,
    job: &'a JobReading,
}

impl<'a> Options<'a> {
    pub(super) fn of(readings: &'a StorageReadings, job: &'a JobReading) -> Self {
        Self { readings, job }
    }

    /// A value as typed, `1` for a bare flag; a resolved value takes precedence over a typed one.
    pub(super) fn get(self, names: &[&str]) -> Option<&'a str> {
        let resolved = names.iter().find_map(|name| self.job.effective.get(*name));
        if let Some(value) = resolved {
            return Some(value);
        }
        let typed = |options: &'a [(String, Option<String>)]| {
            let mut last = options.iter().rev();
            let found = last.find(|(name, _)| names.contains(&name.as_str()))?;
            Some(found.1.as_deref().unwrap_or("1"))
        };
        typed(&self.job.options).or_else(|| typed(&self.readings.global_options))
    }

    pub(super) fn has(self, names: &[&str]) -> bool {
        self.get(names).is_some()
    }

    /// A number as typed; `None` if it is absent or not a number.
    pub(super) fn number(self, names: &[&str]) -> Option<u64> {
        self.get(names)?.trim().parse().ok()
    }

    /// A flag; `default` if it was not given.
    pub(super) fn on(self, names: &[&str], default: bool) -> bool {
        match self.get(names) {
            None => default,
            Some(value) => !matches!(value.trim(), "0" | "false" | "no"),
        }
    }

    /// Whether the options bypass the page cache.
    pub(super) fn direct(self) -> bool {
        self.on(&["direct"], false) || !self.on(&["buffered"], true)
    }

    /// Checks that only the device limits the job: no rate, pause, sync or check in between, no option that lowers the
    /// depth.
    pub(super) fn saturating(self) -> Result<(), &'static str> {
        let rated = self.job.label.rate_iops.iter().any(Option::is_some);
        let waits = [
            (rated, "a rate limits it"),
            (self.has(&["thinktime"]), "thinktime limits it"),
            (self.syncs(), "syncs limit it"),
            (self.job.label.rw.contains("trim"), "trims are done one at a time"),
            (self.job.latency_goal().is_some(), "latency_target decides the depth"),
            (self.has(&["verify"]), "verification changes what is in flight"),
            (
                self.has(&[
                    "iodepth_batch",
                    "iodepth_batch_submit",
                    "iodepth_batch_complete",
                    "iodepth_batch_complete_min",
                    "iodepth_batch_complete_max",
                    "iodepth_low",
                ]),
                "the batch options reduce the depth",
            ),
            (matches!(self.job.label.ioengine.as_str(), "null" | "nop"), "the engine completes at once"),
            (!self.direct() || in_memory(self.readings), "memory answers, so the driver's own time dominates"),
        ];
        match waits.into_iter().find(|(found, _)| *found) {
            Some((_, why)) => Err(why),
            None => Ok(()),
        }
    }

    fn syncs(self) -> bool {
        const SYNCS: [&str; 3] = ["fsync", "fdatasync", "sync_file_range"];
        SYNCS.into_iter().any(|name| self.on(&[name], false))
    }

    /// I/Os in flight per clone that the engine supports.
    pub(super) fn depth(self) -> u64 {
        if self.job.label.synchronous { 1 } else { u64::from(self.job.label.iodepth.max(1)) }
    }
}

/// Whether a job of this mode reads, and whether it writes.
pub(super) fn goes(rw: &str) -> (bool, bool) {
    let mixed = matches!(rw, "rw" | "readwrite" | "randrw");
    let writes = mixed || rw.contains("write");
    (mixed || rw.contains("read"), writes)
}

/// Whether offsets are random.
pub(super) fn is_random(rw: &str) -> bool {
    rw.starts_with("rand")
}

/// The value of a platform fact; `None` if it is n/a or absent.
pub(super) fn fact<'a>(readings: &'a StorageReadings, name: &str) -> Option<&'a str> {
    let found = readings.facts.iter().find(|fact| {
        let bare = fact.name.strip_prefix("device_").unwrap_or(&fact.name);
        bare == name
    })?;
    (!found.value.starts_with("n/a")).then_some(found.value.as_str())
}

/// Whether the files are in memory.
pub(super) fn in_memory(readings: &StorageReadings) -> bool {
    fact(readings, "is_tmpfs") == Some("yes") || matches!(fact(readings, "fs_type"), Some("tmpfs" | "ramfs"))
}

/// Whether no job's requests reach a file.
pub(super) fn no_file(readings: &StorageReadings) -> bool {
    let synthetic = |job: &JobReading| matches!(job.label.ioengine.as_str(), "null" | "nop");
    readings.jobs.iter().all(synthetic)
}

/// Describes how the bytes reached the device.
pub(super) fn achieved(readings: &StorageReadings, devices: &StorageDevices) -> String {
    if no_file(readings) {
        return "none: the requests of this engine reach no file".to_owned();
    }
    if in_memory(readings) {
        return "memory (tmpfs): there is no device, whatever direct= says".to_owned();
    }
    let jobs = readings.jobs.iter();
    let direct = jobs.filter(|job| Options::of(readings, job).direct()).count();
    let mode = match direct {
        0 => "buffered (page cache)",
        n if n == readings.jobs.len() => "direct (O_DIRECT)",
        _ => "direct (O_DIRECT) in some jobs, buffered in others",
    };
    let seen = |ratio: &assay_measure::record::Figure, what: &str| {
        let ratio = ratio.value()?;
        Some(format!("the devices {what} {} times the jobs' bytes", assay_measure::units::fixed(ratio, 2)))
    };
    let beside: Vec<String> =
        [seen(&devices.read_ratio, "read"), seen(&devices.write_ratio, "wrote")].into_iter().flatten().collect();
    if beside.is_empty() { mode.to_owned() } else { format!("{mode}; {}", beside.join(", ")) }
}
