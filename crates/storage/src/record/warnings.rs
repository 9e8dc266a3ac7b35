//! Warnings about doubtful figures: the cause, its likely effect on them and what to try.

use super::options::Options;
use super::options::{fact, goes, in_memory, is_random, no_file};
use super::rows::ios_of;
use super::view::{View, led};
use crate::readings::JobReading;
use crate::record::info::StorageJob;
use assay_measure::cpu::STEAL_TOLD_PCT;
use assay_measure::record::{Advice, Figure};
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, size};

/// Minimum number of bytes for a statement on where they came from.
const SOME_BYTES: u64 = 16 << 20;
/// Regions up to this size fit into the caches of arrays and drives.
const CACHE_BYTES: u64 = 1 << 30;
/// A clone that uses this much of a CPU is limited by it.
pub(super) const CPU_BOUND_PCT: f64 = 90.0;
/// Below this share, the requested depth was not reached.
const DEPTH_REACHED: f64 = 0.9;

/// A warning follows if the devices delivered less than this share of what the jobs read.
const DELIVERED_RATIO: f64 = 0.5;
/// Bytes that the devices moved beyond the jobs' bytes, as a share of them, that indicate other load.
const FOREIGN_RATIO: f64 = 0.2;
/// The host's CPUs count as busy from this share on, %.
const BUSY_PCT: f64 = 95.0;

pub(super) const IN_MEMORY: Rule = Rule {
    id: "A15",
    title: "The files are in memory",
    changes_figures: true,
    fires_when: || "The files lie on a file system in memory (tmpfs); always high".to_owned(),
    why: "No figure describes a device.",
    what_to_do: "Name a file on the disk that you want to measure.",
    cannot_judge_when: "Never: the file system is known.",
    source: "Decided here.",
};

pub(super) const ANSWERED_ABOVE: Rule = Rule {
    id: "A16",
    title: "The device did not deliver what was read",
    changes_figures: true,
    fires_when: || {
        format!(
            "The devices delivered less than {} % of what the jobs read, of at least {}; high below half of that",
            100.0 * DELIVERED_RATIO,
            size(SOME_BYTES)
        )
    },
    why: "The page cache answered, or with direct I/O holes and unwritten extents: the figures describe memory.",
    what_to_do: "Use direct=1, a region several times as large as memory, or a file laid out with real data.",
    cannot_judge_when: "The devices of the files are not known: then the rule is silent.",
    source: "Decided here.",
};

const OTHERS_ON_THE_DEVICE: Rule = Rule {
    id: "A17",
    title: "Other processes used the devices",
    changes_figures: true,
    fires_when: || {
        format!(
            "With direct I/O, the devices moved more than {} % and {} beyond what the jobs asked for in a direction",
            100.0 * FOREIGN_RATIO,
            size(SOME_BYTES)
        )
    },
    why: "Latencies include the load of other processes.",
    what_to_do: "Measure again when the devices are quiet.",
    cannot_judge_when: "A job is buffered, warms up (ramp_time) or searches for a latency goal: then the rule is silent.",
    source: "Decided here.",
};

const ERRORS: Rule = Rule {
    id: "A18",
    title: "I/Os failed",
    changes_figures: true,
    fires_when: || "An I/O of the job failed; high where that ended the run".to_owned(),
    why: "Rates and latencies cover the time before the error, or do not include the I/Os that failed.",
    what_to_do: "Remove the cause, and repeat the run.",
    cannot_judge_when: "Never: every I/O is counted.",
    source: "Decided here.",
};

const BUFFERED: Rule = Rule {
    id: "A19",
    title: "Asynchronous I/O went through the page cache",
    changes_figures: true,
    fires_when: || "libaio or io_uring without direct=1".to_owned(),
    why: "A buffered submission blocks, or the kernel hands it to helper threads.",
    what_to_do: "Use direct=1 to measure the device.",
    cannot_judge_when: "Never: the options are known.",
    source: "Decided here.",
};

const DEPTH_NOT_REACHED: Rule = Rule {
    id: "A20",
    title: "The depth was not reached",
    changes_figures: true,
    fires_when: || {
        format!("A saturating job had less than {} % of the I/Os in flight that it asked for", 100.0 * DEPTH_REACHED)
    },
    why: "The device saw the smaller load.",
    what_to_do: "Give the driver more CPU, direct I/O or smaller batches.",
    cannot_judge_when: "The job does not saturate by its options: then the rule is silent.",
    source: "Decided here.",
};

const CPU_BOUND: Rule = Rule {
    id: "A21",
    title: "A clone used up its CPU",
    changes_figures: true,
    fires_when: || format!("A clone of the job used at least {CPU_BOUND_PCT} % of a CPU"),
    why: "The run measures the CPU, not the storage.",
    what_to_do: "Add clones (numjobs) if CPUs are free.",
    cannot_judge_when: "The engine does no I/O (null, nop): then the rule is silent.",
    source: "Decided here.",
};

const SAME_OFFSETS: Rule = Rule {
    id: "A22",
    title: "Clones access the same blocks in the same order",
    changes_figures: true,
    fires_when: || "Clones of a sequential job share a file without offset_increment".to_owned(),
    why: "Only the first clone that reaches a block surely reads it, and the last write stays.",
    what_to_do: "Set offset_increment, or use random access.",
    cannot_judge_when: "Never: the options are known.",
    source: "Decided here.",
};

const SMALL_REGION: Rule = Rule {
    id: "A23",
    title: "The region fits into a cache",
    changes_figures: true,
    fires_when: || {
        format!(
            "The region is smaller than {} with direct I/O, or than the memory of this host with buffered I/O where A16 does not fire",
            size(CACHE_BYTES)
        )
    },
    why: "Arrays, controllers, drives and the page cache answer from memory.",
    what_to_do: "Use a region at least as large as the future data.",
    cannot_judge_when: "The region, or for buffered I/O the memory of the host, is not known: then the rule is silent.",
    source: "Decided here.",
};

const SAME_BLOCKS: Rule = Rule {
    id: "A24",
    title: "A later job reads the blocks of an earlier one",
    changes_figures: true,
    fires_when: || "Random reads of two groups have the same files and the same seed".to_owned(),
    why: "A cache in the array or drive makes the later job look faster.",
    what_to_do: "Set randrepeat=0 or another randseed.",
    cannot_judge_when: "Never: files and seeds are known.",
    source: "Decided here.",
};

const STOLEN: Rule = Rule {
    id: "A25",
    title: "The hypervisor withheld CPU time",
    changes_figures: true,
    fires_when: || format!("Steal is at least {STEAL_TOLD_PCT} %"),
    why: "Another guest or a cap slowed the driver.",
    what_to_do: "Compare only with runs of equal steal.",
    cannot_judge_when: "The kernel exposes no steal: then the rule is silent.",
    source: "Decided here.",
};

const THROTTLED: Rule = Rule {
    id: "A26",
    title: "A CPU limit throttled the process",
    changes_figures: true,
    fires_when: || "The CPU limit of the control group throttled the process at all".to_owned(),
    why: "Latencies include this time.",
    what_to_do: "Raise the limit, or state it beside the figures.",
    cannot_judge_when: "The kernel exposes no throttled time: then the rule is silent.",
    source: "Decided here.",
};

const CPUS_BUSY: Rule = Rule {
    id: "A27",
    title: "The host's CPUs were busy",
    changes_figures: true,
    fires_when: || format!("The CPUs were at least {BUSY_PCT} % busy with no more clones than CPUs"),
    why: "Latencies include waiting for a CPU.",
    what_to_do: "Measure on an idle host.",
    cannot_judge_when: "The CPU use of the host is n/a: then the rule is silent.",
    source: "Decided here.",
};

/// The rules on doubtful figures, by number.
pub(super) const RULES: [Rule; 13] = [
    IN_MEMORY,
    ANSWERED_ABOVE,
    OTHERS_ON_THE_DEVICE,
    ERRORS,
    BUFFERED,
    DEPTH_NOT_REACHED,
    CPU_BOUND,
    SAME_OFFSETS,
    SMALL_REGION,
    SAME_BLOCKS,
    STOLEN,
    THROTTLED,
    CPUS_BUSY,
];

/// All warnings about doubtful figures.
pub(super) fn all(view: &View<'_>) -> Vec<Advice> {
    let mut found: Vec<Advice> = assay_awr::rules::numbers_disagree(view.record).into_iter().collect();
    found.extend(view.memory());
    found.extend(view.below_our_reads());
    found.extend(view.others());
    for (reading, job) in view.readings.jobs.iter().zip(&view.info.jobs) {
        let lead = if view.info.jobs.len() > 1 { format!("{}: ", job.name) } else { String::new() };
        let of_job = [
            view.errors(job),
            view.buffered(reading),
            view.depth(reading, job),
            view.cpu_bound(job),
            view.same_offsets(reading),
            view.small_region(reading, job),
        ];
        found.extend(led(&lead, of_job));
    }
    found.extend([view.same_blocks(), view.stolen(), view.throttled(), view.cpus_busy()].into_iter().flatten());
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|found| seen.insert(found.text.clone()));
    found
}

impl View<'_> {
    fn memory(&self) -> Option<Advice> {
        let in_memory = in_memory(self.readings) && !no_file(self.readings);
        in_memory.then(|| IN_MEMORY.explain(true, "The files are in memory (tmpfs).", &[]))
    }

    /// The devices delivered less than the jobs read: a layer above them answered.
    fn below_our_reads(&self) -> Option<Advice> {
        let devices = &self.info.devices;
        let ratio = devices.read_ratio.value()?;
        if in_memory(self.readings) || no_file(self.readings) {
            return None;
        }
        if devices.job_read_bytes < SOME_BYTES || ratio >= DELIVERED_RATIO {
            return None;
        }
        let jobs = self.readings.jobs.iter();
        let direct = jobs.clone().all(|job| Options::of(self.readings, job).direct());
        // The remedy depends on what answered.
        let cause = if direct {
            ", although the jobs requested direct I/O: the file has holes or unwritten extents, or the file system \
                 answers from memory. Lay out the file with real data"
        } else if jobs.clone().any(|job| self.buffered(job).is_some()) {
            // That rule already recommends direct I/O.
            ": the page cache answered the rest. These figures describe memory as long as the region is not several \
                 times as large as it"
        } else {
            ": the page cache answered the rest. These figures describe memory; use direct=1, or a region several \
                 times as large as memory"
        };
        let text = format!(
            "The jobs read {}, the devices delivered {}{cause}.",
            size(devices.job_read_bytes),
            size(devices.device_read_bytes.value()? as u64)
        );
        Some(ANSWERED_ABOVE.finding(ratio < DELIVERED_RATIO / 2.0, text, &[("device_read_ratio", ratio)]))
    }

    /// Someone else used the device; only direct I/O allows a comparison.
    fn others(&self) -> Option<Advice> {
        let mut jobs = self.readings.jobs.iter();
        if !jobs.all(|job| Options::of(self.readings, job).direct()) {
            return None;
        }
        // Activity before the measurement is in none of the jobs' figures.
        let begins_late =
            |job: &JobReading| job.latency_goal().is_some() || Options::of(self.readings, job).has(&["ramp_time"]);
        if self.readings.jobs.iter().any(begins_late) {
            return None;
        }
        let devices = &self.info.devices;
        let foreign = |device: &Figure, ours: u64| {
            let device = device.value()? as u64;
            let more = device.saturating_sub(ours);
            (more > SOME_BYTES && more as f64 > FOREIGN_RATIO * ours as f64).then_some(more)
        };
        let read = foreign(&devices.device_read_bytes, devices.job_read_bytes);
        let written = foreign(&devices.device_write_bytes, devices.job_write_bytes);
        let what: Vec<String> = [(read, "read"), (written, "written")]
            .into_iter()
            .filter_map(|(bytes, word)| Some(format!("{} {word}", size(bytes?))))
            .collect();
        (!what.is_empty()).then(|| {
            let text = format!(
                "The devices moved more than the jobs requested ({}): other processes used them, \
                 unless it was the layout of the files.",
                what.join(", ")
            );
            OTHERS_ON_THE_DEVICE.explain(false, text, &[])
        })
    }

    fn errors(&self, job: &StorageJob) -> Option<Advice> {
        if let Some(first) = job.errors.first() {
            let more = match job.errors.len() {
                1 => String::new(),
                n => format!(" and {} more", n - 1),
            };
            let text =
                format!("An error ended the run: {first}{more}. Rates and latencies cover the time before the error.");
            return Some(ERRORS.advise(true, text, &[]));
        }
        (job.errors_count > 0).then(|| {
            let text = format!(
                "{} I/Os failed, and the jobs continued: rates and latencies do not include these I/Os.",
                job.errors_count
            );
            ERRORS.advise(false, text, &[("errors_count", job.errors_count as f64)])
        })
    }

    /// Asynchronous submission through the page cache is not asynchronous.
    fn buffered(&self, job: &JobReading) -> Option<Advice> {
        let engine = job.label.ioengine.as_str();
        if Options::of(self.readings, job).direct() || !matches!(engine, "libaio" | "io_uring") {
            return None;
        }
        let blocks = match engine {
            "libaio" => "a buffered submission blocks until the I/O is done, so the effective depth is 1",
            _ => "the kernel hands uncached requests to helper threads, whose CPU time no clone's figures include",
        };
        let text = format!("{engine} without direct=1 goes through the page cache: {blocks}.");
        Some(BUFFERED.advise(false, text, &[]))
    }

    fn depth(&self, reading: &JobReading, job: &StorageJob) -> Option<Advice> {
        let options = Options::of(self.readings, reading);
        options.saturating().ok()?;
        let asked = (options.depth() * job.numjobs_count.max(1)) as f64;
        let reached = job.in_flight_mean_count.value()?;
        if reached >= DEPTH_REACHED * asked {
            return None;
        }
        let text = format!(
            "{} I/Os were in flight on average, but {} were requested: the driver could not keep the depth (because of \
             CPU, buffered I/O, or completions taken in large batches).",
            fixed(reached, 1),
            fixed(asked, 0)
        );
        Some(DEPTH_NOT_REACHED.explain(false, text, &[("in_flight_count", reached), ("depth_count", asked)]))
    }

    fn cpu_bound(&self, job: &StorageJob) -> Option<Advice> {
        let share = job.cpu.thread_cpu_max_pct.value()?;
        if share < CPU_BOUND_PCT || matches!(job.ioengine.as_str(), "null" | "nop") {
            return None;
        }
        let text = format!("A clone used {} % of a CPU.", fixed(share, 0));
        Some(CPU_BOUND.explain(false, text, &[("thread_cpu_pct_max", share)]))
    }

    /// Clones of a sequential job on one file visit the same blocks concurrently.
    fn same_offsets(&self, job: &JobReading) -> Option<Advice> {
        let options = Options::of(self.readings, job);
        let shared = options.has(&["filename"]) && job.label.numjobs > 1;
        if is_random(&job.label.rw) || !shared || options.has(&["offset_increment"]) {
            return None;
        }
        let (reads, _) = goes(&job.label.rw);
        let effect = if reads {
            "only the first clone that reaches a block certainly reads it; the others may find it in a cache"
        } else {
            "each clone writes each block, and the last write stays"
        };
        let text =
            format!("{} clones access the same file sequentially from the same offset: {effect}.", job.label.numjobs);
        Some(SAME_OFFSETS.advise(false, text, &[]))
    }

    fn small_region(&self, reading: &JobReading, job: &StorageJob) -> Option<Advice> {
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
            && self.below_our_reads().is_none()
        {
            let text = format!(
                "The region of {} fits into this host's memory of {}, and the I/O is buffered: the page cache answers \
                 a longer run.",
                size(region),
                size(memory)
            );
            return Some(SMALL_REGION.advise(false, text, &[("region_bytes", region as f64)]));
        }
        let small = region > 0 && region < CACHE_BYTES;
        (direct && small).then(|| {
            let text = format!(
                "The region of {} fits into the caches that arrays, controllers and drives have.",
                size(region)
            );
            SMALL_REGION.advise(false, text, &[("region_bytes", region as f64)])
        })
    }

    fn host_fact(&self, name: &str) -> Option<&str> {
        self.record.host.facts.iter().find(|fact| fact.name == name).map(|fact| fact.value.as_str())
    }

    /// Consecutive jobs that read the same blocks because they share file and seed.
    fn same_blocks(&self) -> Option<Advice> {
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
            let text = format!("{b} reads the blocks that {a} read before, in the same order (same file, same seed).");
            SAME_BLOCKS.explain(false, text, &[])
        })
    }

    fn cpu_pct(&self, name: &str) -> Option<f64> {
        self.record.os.cpu_pct.get(name).and_then(Figure::value)
    }

    fn stolen(&self) -> Option<Advice> {
        let steal = self.cpu_pct("steal").filter(|pct| *pct >= STEAL_TOLD_PCT)?;
        let text = format!("The hypervisor withheld {} % of CPU time (steal).", fixed(steal, 1));
        Some(STOLEN.explain(false, text, &[("steal_pct", steal)]))
    }

    fn throttled(&self) -> Option<Advice> {
        let s = self.record.os.cgroup_throttled_us.value().filter(|us| *us > 0.0)? / 1e6;
        let text = format!("The CPU limit of this control group throttled the process for {} s.", fixed(s, 2));
        Some(THROTTLED.explain(false, text, &[("throttled_s", s)]))
    }

    fn cpus_busy(&self) -> Option<Advice> {
        let busy = self.cpu_pct("busy").filter(|pct| *pct >= BUSY_PCT)?;
        let cpus = self.record.os.cpus_count.value().unwrap_or(0.0);
        let clones = &self.readings.clones;
        (clones.len() as f64 <= cpus && clones.iter().any(|clone| ios_of(clone) > 0)).then(|| {
            let text = format!("The host's CPUs were {} % busy.", fixed(busy, 0));
            CPUS_BUSY.explain(false, text, &[("busy_pct", busy)])
        })
    }
}
