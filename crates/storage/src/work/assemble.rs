//! Assembles [`StorageReadings`] from the counts of clones and monitor.

use super::monitor::{Monitor, difference};
use super::policy::{Policy, is_positional, is_synchronous, only_trims};
use super::search::goal_of;
use super::{Known, Work};
use crate::readings::{CloneReading, JobLabel, JobReading, StorageReadings, Way};
use crate::spec::{JobOptions, Mode, StorageJob};
use crate::verify::never_verifies;
use assay_block::device_facts;
use assay_measure::clock::{Clock, NS_PER_S, Ns};
use assay_measure::snapshot::{DiskReading, Fact, HostReading};
use assay_run::host::Sampler;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

/// What is known before the jobs run: their labels, facts about the platform, global options.
#[derive(Debug)]
pub(super) struct Jobs {
    jobs: Vec<JobReading>,
    facts: Vec<Fact>,
    globals: Vec<(String, Option<String>)>,
}

impl Jobs {
    pub(super) fn describe(work: &Work<'_>, paths: &[PathBuf]) -> Self {
        let jobs = work.invocation.jobs.iter().enumerate();
        Self {
            jobs: jobs.map(|(place, job)| describe(work, place, job)).collect(),
            facts: facts(paths),
            globals: work.invocation.global_options.clone(),
        }
    }
}

fn describe(work: &Work<'_>, place: usize, job: &StorageJob) -> JobReading {
    let options = &job.options;
    let plan = work.opened.plan();
    let regions = plan.clone_of(place, 0).map_or(&[][..], |clone| &clone.regions);
    JobReading {
        name: job.name.clone(),
        group: job.group,
        options: job.given.clone(),
        label: label(options),
        effective: effective(options),
        files: plan.paths_of(place).iter().map(|path| path.display().to_string()).collect(),
        region_bytes: regions.iter().map(|region| region.bytes).sum(),
        timing: timing(options).to_owned(),
        seed: work.seeds[place],
        notes: plan.notes[place].iter().cloned().chain(notes(options)).collect(),
        ..JobReading::default()
    }
}

/// How often times are taken.
fn timing(options: &JobOptions) -> &'static str {
    let measure = &options.measure;
    if measure.no_lat && measure.no_clat && measure.no_slat {
        return "none";
    }
    match Policy::of(options).submit {
        1 => "per I/O",
        _ => "per batch",
    }
}

/// Notes on the effect of the options on the figures.
fn notes(options: &JobOptions) -> Vec<String> {
    let measure = &options.measure;
    let mut notes = Vec::new();
    if measure.no_slat && !(measure.no_clat && measure.no_lat) && !is_synchronous(options) {
        notes.push(
            "without slat, one call submits requests and waits for them: clat counts from before that call".to_owned(),
        );
    }
    notes.extend(never_verifies(options).map(str::to_owned));
    if options.pace.time_based && options.pace.runtime_ns.is_none() {
        notes.push("time_based without runtime is ignored".to_owned());
    }
    if only_trims(options) && options.pace.depth > 1 {
        notes.push("a trim is one blocking call: one is in flight, whatever iodepth= says".to_owned());
    } else if is_positional(options.engine) && options.pace.depth > 1 {
        notes.push(format!("{} has one request in flight, whatever iodepth= says", options.engine.name()));
    }
    notes
}

fn label(options: &JobOptions) -> JobLabel {
    let measure = &options.measure;
    let pace = &options.pace;
    JobLabel {
        rw: options.pattern.mode.name().to_owned(),
        block_bytes: std::array::from_fn(|way| {
            let blocks = &options.pattern.blocks[way];
            (u64::from(blocks.min), u64::from(blocks.max))
        }),
        // As typed: sync, vsync and pvsync are other names of psync.
        ioengine: match options.engine_name.as_str() {
            "" => options.engine.name().to_owned(),
            name => name.to_owned(),
        },
        iodepth: pace.depth,
        numjobs: options.clones.max(1),
        synchronous: is_synchronous(options),
        clat_percentiles: measure.clat_percentiles,
        lat_percentiles: measure.lat_percentiles,
        slat_percentiles: measure.slat_percentiles,
        no_slat: measure.no_slat,
        no_clat: measure.no_clat,
        no_lat: measure.no_lat,
        no_bw: measure.no_bw,
        percentiles: measure.percentiles.clone(),
        significant_figures: measure.significant_figures,
        group_reporting: measure.group_reporting,
        description: options.description.clone(),
        rate_iops: std::array::from_fn(|way| target_iops(options, way)),
        latency_goal: goal_of(pace),
    }
}

/// Target rate of a direction, I/Os per second.
fn target_iops(options: &JobOptions, way: usize) -> Option<f64> {
    let pace = &options.pace;
    if !options.pattern.mode.goes(Way::ALL[way]) {
        return None;
    }
    let by_bytes = pace.rate[way].map(|bytes| {
        let blocks = &options.pattern.blocks[way];
        bytes as f64 / ((u64::from(blocks.min) + u64::from(blocks.max)) as f64 / 2.0)
    });
    pace.rate_iops[way].map(|ios| ios as f64).or(by_bytes)
}

/// The settings that fio-style plotters look for, whether given or not.
fn effective(options: &JobOptions) -> BTreeMap<String, String> {
    let way = match options.pattern.mode {
        Mode::Write | Mode::RandWrite => Way::Write,
        mode if mode.goes(Way::Trim) => Way::Trim,
        _ => Way::Read,
    };
    let blocks = &options.pattern.blocks[way.index()];
    let size = |bytes: u32| match bytes % 1024 {
        0 => format!("{}k", bytes / 1024),
        _ => bytes.to_string(),
    };
    let bs =
        if blocks.min == blocks.max { size(blocks.max) } else { format!("{}-{}", size(blocks.min), size(blocks.max)) };
    [
        ("rw", options.pattern.mode.name().to_owned()),
        ("iodepth", options.pace.depth.to_string()),
        ("numjobs", options.clones.max(1).to_string()),
        ("bs", bs),
    ]
    .into_iter()
    .map(|(key, value)| (key.to_owned(), value))
    .collect()
}

/// The platform under each file, each fact once.
fn facts(paths: &[PathBuf]) -> Vec<Fact> {
    let mut all: Vec<Fact> = assay_run::host::facts();
    for path in paths {
        for (name, value) in device_facts(path).lines() {
            let fact = Fact::new(name, value);
            if !all.contains(&fact) {
                all.push(fact);
            }
        }
    }
    all
}

/// The frame of the run: its start time, and the initial values of counters.
#[derive(Debug)]
pub(super) struct Frame {
    clock: Clock,
    begun_ns: Ns,
    started_ms: u64,
    host: HostReading,
    disks: Vec<DiskReading>,
    cpu_ns: Ns,
}

impl Frame {
    pub(super) fn begin(host: &mut Sampler, disks: Vec<DiskReading>) -> Self {
        let clock = Clock::real();
        Self {
            begun_ns: clock.now_ns(),
            clock,
            started_ms: wall_ms(),
            host: host.sample(),
            disks,
            cpu_ns: process_cpu_ns(),
        }
    }

    /// All readings up to now. With `host`, these are the final ones; without, intermediate ones.
    pub(super) fn readings(
        &self,
        jobs: &Jobs,
        known: &Known,
        mut clones: Vec<CloneReading>,
        monitor: &Monitor<'_>,
        host: Option<&mut Sampler>,
    ) -> StorageReadings {
        let running = host.is_none();
        for clone in &mut clones {
            monitor.add_samples(clone);
        }
        let mut described = jobs.jobs.clone();
        for (job, features) in described.iter_mut().zip(&known.features) {
            job.features.clone_from(features);
        }
        for (job, refused) in described.iter_mut().zip(&known.refused) {
            job.refused.clone_from(refused);
        }
        for (place, job) in described.iter_mut().enumerate() {
            job.notes.extend(known.notes[place].iter().cloned());
            job.steady = monitor.steady(place);
        }
        StorageReadings {
            fio_version: std::env::var("ASSAY_FIO_VERSION").unwrap_or_default(),
            global_options: jobs.globals.clone(),
            jobs: described,
            clones,
            seconds: monitor.seconds(),
            disks: difference(&monitor.read_disks(), &self.disks),
            host: host.map(|host| host.sample().difference(&self.host)),
            facts: jobs.facts.clone(),
            precondition: Vec::new(),
            timestamp_ms: wall_ms(),
            started_ms: self.started_ms,
            elapsed_ns: self.clock.now_ns() - self.begun_ns,
            process_cpu_ns: process_cpu_ns().saturating_sub(self.cpu_ns),
            stopped: monitor.stopped(),
            running,
        }
    }
}

fn wall_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// CPU time of all threads of the process, running and ended, ns.
fn process_cpu_ns() -> Ns {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as u64 * NS_PER_S + time.tv_nsec as u64
}
