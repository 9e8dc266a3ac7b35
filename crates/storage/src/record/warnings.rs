//! What makes the figures doubtful, in sentences: what it may have done to them and what to try.

use super::options::Options;
use super::options::{fact, goes, in_memory, is_random, no_file};
use super::rows::ios_of;
use crate::readings::{JobReading, StorageReadings};
use crate::record::info::{StorageInfo, StorageJob};
use assay_measure::record::{Figure, Record};
use assay_measure::units::{fixed, size};

/// Fewer bytes than this say nothing of where they came from.
const SOME_BYTES: u64 = 16 << 20;
/// Regions up to this size fit into the caches of arrays and drives.
const CACHE_BYTES: u64 = 1 << 30;
/// A clone that uses more of a CPU than this is limited by it.
const CPU_BOUND_PCT: f64 = 90.0;
/// Less of the depth asked for than this was not reached.
const DEPTH_REACHED: f64 = 0.9;

struct Run<'a> {
    readings: &'a StorageReadings,
    info: &'a StorageInfo,
    record: &'a Record,
}

/// All warnings, the weightiest first.
pub(super) fn warnings(readings: &StorageReadings, info: &StorageInfo, record: &Record) -> Vec<String> {
    let run = Run { readings, info, record };
    let mut found = Vec::new();
    found.extend(violations(record));
    found.extend(run.memory());
    found.extend(run.below_our_reads());
    found.extend(run.others());
    for (reading, job) in readings.jobs.iter().zip(&info.jobs) {
        let several = info.jobs.len() > 1;
        let lead = if several { format!("{}: ", job.name) } else { String::new() };
        let of_job = [
            run.errors(job),
            run.buffered(reading),
            run.depth(reading, job),
            run.cpu_bound(job),
            run.same_offsets(reading),
            run.small_region(reading, job),
        ];
        found.extend(of_job.into_iter().flatten().map(|text| lead.clone() + &text));
    }
    found.extend(run.same_blocks());
    found.extend(run.host());
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|text| seen.insert(text.clone()));
    found
}

fn violations(record: &Record) -> Option<String> {
    let violated = assay_measure::identity::violated_exact(record);
    let ids: Vec<&str> = violated.iter().map(|identity| identity.id.as_str()).collect();
    (!ids.is_empty()).then(|| {
        format!(
            "Numbers do not agree: exact identities {} are violated, which is a bug in assay. Do not use the figures \
             that they name.",
            ids.join(", ")
        )
    })
}

impl Run<'_> {
    fn memory(&self) -> Option<String> {
        let in_memory = in_memory(self.readings) && !no_file(self.readings);
        in_memory.then(|| {
            "The files are in memory (tmpfs): no figure describes a device. Name a file on the disk that you want to \
             measure."
                .to_owned()
        })
    }

    /// The devices delivered less than the jobs read: something above them answered.
    fn below_our_reads(&self) -> Option<String> {
        let devices = &self.info.devices;
        let ratio = devices.read_ratio.value()?;
        if in_memory(self.readings) || no_file(self.readings) {
            return None;
        }
        if devices.job_read_bytes < SOME_BYTES || ratio >= 0.5 {
            return None;
        }
        let jobs = self.readings.jobs.iter();
        let direct = jobs.clone().all(|job| Options::of(self.readings, job).direct());
        let cause = if direct {
            "although the jobs asked for direct I/O: the file has holes or unwritten extents, or the file system \
                 answers from memory. Lay out the file with real data"
        } else {
            "the page cache answered the rest. These figures describe memory; use direct=1, or a region several \
                 times as large as memory"
        };
        Some(format!(
            "The jobs read {}, the devices delivered {}: {cause}.",
            size(devices.job_read_bytes),
            size(devices.device_read_bytes.value()? as u64)
        ))
    }

    /// Somebody else used the device; only direct I/O can be compared.
    fn others(&self) -> Option<String> {
        let mut jobs = self.readings.jobs.iter();
        if !jobs.all(|job| Options::of(self.readings, job).direct()) {
            return None;
        }
        // What was done before the measurement is in no figure of the jobs.
        let begins_late =
            |job: &JobReading| job.latency_goal().is_some() || Options::of(self.readings, job).has(&["ramp_time"]);
        if self.readings.jobs.iter().any(begins_late) {
            return None;
        }
        let devices = &self.info.devices;
        let foreign = |device: &Figure, ours: u64| {
            let device = device.value()? as u64;
            let more = device.saturating_sub(ours);
            (more > SOME_BYTES && more > ours / 5).then_some(more)
        };
        let read = foreign(&devices.device_read_bytes, devices.job_read_bytes);
        let written = foreign(&devices.device_write_bytes, devices.job_write_bytes);
        let what: Vec<String> = [(read, "read"), (written, "written")]
            .into_iter()
            .filter_map(|(bytes, word)| Some(format!("{} {word}", size(bytes?))))
            .collect();
        (!what.is_empty()).then(|| {
            format!(
                "The devices moved more than the jobs asked for ({}): other processes used them, or the figure \
                 includes the layout of the files. Latencies include this load; measure again when the devices are \
                 quiet.",
                what.join(", ")
            )
        })
    }

    fn errors(&self, job: &StorageJob) -> Option<String> {
        if let Some(first) = job.errors.first() {
            let more = match job.errors.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            return Some(format!(
                "An error ended the run: {first}{more}. Rates and latencies cover the time before the error."
            ));
        }
        (job.errors_count > 0).then(|| {
            format!(
                "{} I/Os failed, and the jobs continued: rates and latencies do not include these I/Os.",
                job.errors_count
            )
        })
    }

    /// Asynchronous submission through the page cache is not asynchronous.
    fn buffered(&self, job: &JobReading) -> Option<String> {
        let engine = job.label.ioengine.as_str();
        if Options::of(self.readings, job).direct() || !matches!(engine, "libaio" | "io_uring") {
            return None;
        }
        let blocks = match engine {
            "libaio" => "a buffered submission blocks until the I/O is done, so the effective depth is 1",
            _ => "the kernel hands uncached requests to helper threads, whose CPU time no clone's figures include",
        };
        Some(format!(
            "{engine} without direct=1 goes through the page cache: {blocks}. Use direct=1 to measure the device."
        ))
    }

    fn depth(&self, reading: &JobReading, job: &StorageJob) -> Option<String> {
        let options = Options::of(self.readings, reading);
        options.saturating().ok()?;
        let asked = (options.depth() * job.numjobs_count.max(1)) as f64;
        let reached = job.in_flight_mean_count.value()?;
        if reached >= DEPTH_REACHED * asked {
            return None;
        }
        Some(format!(
            "{} I/Os were in flight on average where {} were asked for: the driver could not keep the depth (because \
             of CPU, buffered I/O, or completions taken in large batches). The device saw the smaller load.",
            fixed(reached, 1),
            fixed(asked, 0)
        ))
    }

    fn cpu_bound(&self, job: &StorageJob) -> Option<String> {
        let share = job.cpu.thread_cpu_max_pct.value()?;
        if share < CPU_BOUND_PCT || matches!(job.ioengine.as_str(), "null" | "nop") {
            return None;
        }
        Some(format!(
            "A clone used {} % of a CPU: this run measures the CPU, not the storage. More clones may give more if \
             CPUs are free.",
            fixed(share, 0)
        ))
    }

    /// Clones of a sequential job on one file walk the same blocks side by side.
    fn same_offsets(&self, job: &JobReading) -> Option<String> {
        let options = Options::of(self.readings, job);
        let shared = options.has(&["filename"]) && job.label.numjobs > 1;
        if is_random(&job.label.rw) || !shared || options.has(&["offset_increment"]) {
            return None;
        }
        let (reads, _) = goes(&job.label.rw);
        let effect = if reads {
            "only the first clone that reaches a block surely reads it; the others may find it in a cache"
        } else {
            "each clone writes each block, and the last write stays"
        };
        Some(format!(
            "{} clones access the same file sequentially from the same offset: {effect}. Set offset_increment, or \
             use random access.",
            job.label.numjobs
        ))
    }

    fn small_region(&self, reading: &JobReading, job: &StorageJob) -> Option<String> {
        if in_memory(self.readings) || matches!(job.ioengine.as_str(), "null" | "nop") {
            return None;
        }
        let memory: Option<u64> = fact(self.readings, "memory_bytes")
            .or_else(|| self.host_fact("memory_bytes"))
            .and_then(|bytes| bytes.parse().ok());
        let direct = Options::of(self.readings, reading).direct();
        let region = job.region_bytes;
        if let (false, Some(memory)) = (direct, memory)
            && region < memory
            && region > 0
        {
            return Some(format!(
                "The region of {} fits into this host's memory of {}, and the I/O is buffered: a longer run is \
                 answered by the page cache.",
                size(region),
                size(memory)
            ));
        }
        let small = region > 0 && region < CACHE_BYTES;
        (direct && small).then(|| {
            format!(
                "The region of {} fits into the caches that arrays, controllers and drives have: use a region at \
                 least as large as the future data.",
                size(region)
            )
        })
    }

    fn host_fact(&self, name: &str) -> Option<&str> {
        let facts = self.record.host.facts.iter();
        let found = facts.clone().find(|fact| fact.name == name)?;
        Some(found.value.as_str())
    }

    /// Jobs one after the other that read the same blocks, because they share file and seed.
    fn same_blocks(&self) -> Option<String> {
        let jobs = &self.readings.jobs;
        let reads = |job: &JobReading| is_random(&job.label.rw) && goes(&job.label.rw).0;
        let alike = |a: &JobReading, b: &JobReading| {
            a.group != b.group && a.seed == b.seed && a.files == b.files && !a.files.is_empty()
        };
        let pair = jobs.iter().enumerate().find_map(|(at, a)| {
            let mut later = jobs[at + 1..].iter();
            let b = later.find(|b| reads(a) && reads(b) && alike(a, b))?;
            Some((a.name.as_str(), b.name.as_str()))
        });
        pair.map(|(a, b)| {
            format!(
                "{b} reads the blocks that {a} read before, in the same order (same file, same seed): a cache in the \
                 array or drive makes the later job look faster. Set randrepeat=0 or another randseed."
            )
        })
    }

    fn host(&self) -> Vec<String> {
        let mut found = Vec::new();
        let pct = |name: &str| self.record.os.cpu_pct.get(name).and_then(Figure::value);
        if let Some(steal) = pct("steal").filter(|pct| *pct >= 1.0) {
            found.push(format!(
                "The hypervisor withheld {} % of CPU time (steal): another guest or a cap slowed the driver. Compare \
                 only with runs of equal steal.",
                fixed(steal, 1)
            ));
        }
        let throttled = self.record.os.cgroup_throttled_us.value();
        if let Some(us) = throttled.filter(|us| *us > 0.0) {
            found.push(format!(
                "The CPU limit of this cgroup throttled the process for {} s: latencies include this time. Raise the \
                 limit, or state it beside the figures.",
                fixed(us / 1e6, 2)
            ));
        }
        let cpus = self.record.os.cpus_count.value().unwrap_or(0.0);
        let driving: f64 = self.readings.clones.iter().map(|_| 1.0).sum();
        if let Some(busy) = pct("busy").filter(|pct| *pct >= 95.0)
            && driving <= cpus
            && self.readings.clones.iter().any(|clone| ios_of(clone) > 0)
        {
            found.push(format!(
                "The host's CPUs were {} % busy: latencies include waiting for a CPU. Measure on an idle host.",
                fixed(busy, 0)
            ));
        }
        found
    }
}
