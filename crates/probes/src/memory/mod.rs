//! `assay memory`: the memory bandwidth of this host, the latency of a dependent access, the gain of huge pages, and
//! whether memory returns what was written.
//!
//! Owns the sizes (`sizes`), the measurements (`bandwidth`, `ladder`, `faults`, `numa`, `soak`) and its record with its
//! reports (`record`). The loops themselves are in `assay_block::memory`. See `README.md`.

mod bandwidth;
mod faults;
mod info;
mod ladder;
mod numa;
mod options;
mod record;
mod sizes;
mod soak;

#[cfg(test)]
mod tests;

use crate::conditions::{Around, HostWindow};
use crate::crew::effective_mhz;
use crate::host::Placement;
use crate::load;
use crate::machine::{Machine, ranges};
use assay_block::{BlockError, Pages};
use assay_measure::clock::Clock;
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::host::memory;
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps};
use assay_run::stop::Stop;
use assay_run::threads;
use info::{CacheRow, MemoryInfo, SET};
use options::{Ask, OPTIONS, word};
use sizes::Sizes;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure memory: bandwidth, the latency of every cache level, huge pages, page faults, NUMA",
    more: "This takes about 40 seconds. assay measures copy, scale, add, triad, read and fill with normal and non- temporal stores \
           on 1, 2, 4 ... CPUs; the latency of dependent loads from 4 KiB to beyond the last cache, in 4 KiB and in huge pages; \
           parallel and loaded latency; page faults; and every pair of NUMA nodes. With --soak, assay writes and verifies memory \
           for the given time instead and prints the metrics of `stress-ng --vm N --vm-bytes SIZE --timeout T --metrics-brief` in \
           the same layout; assay also accepts those spellings.",
    usual_time: Some("30s"),
    time_also: &["timeout"],
    follows: &[("rate", &["triad_gb_per_s_p50"]), ("", &["read_gb_per_s_p50"]), ("", &["latency_huge_ns_p50"])],
    options: &[OPTIONS],
    ..ProbeSpec::new("memory", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let placement = Placement::here();
    let ask = Ask::of(request, placement.cpus.len())?;
    let room = memory::room();
    if let Some(soak) = &ask.soak {
        threads::check_room(soak.workers as u64, "threads at once")?;
        if !soak.is_forced {
            sizes::check_load(soak.total_bytes(), room.as_ref())?;
        }
    }
    let machine = Machine::read(Path::new("/"));
    let last_level = machine.last_level_bytes();
    let sizes = Sizes::of(last_level, room.as_ref(), request.time, ask.array_bytes)?;
    let (pages, left_out) = kinds_of_pages(&ask, &machine, &sizes)?;
    Ok(Box::new(Aim { ask, time: request.time, placement, machine, sizes, pages, left_out }))
}

/// What was not measured, and why.
type LeftOut = Vec<(String, String)>;

/// Pages to climb ladders in: small ones, those asked for, and a pool that is there anyway; what of it was left out.
fn kinds_of_pages(ask: &Ask, machine: &Machine, sizes: &Sizes) -> Result<(Vec<Pages>, LeftOut), EngineError> {
    let free = |pages| {
        let bytes = if pages == Pages::Pool2M { 2 << 20 } else { 1 << 30 };
        let mut pools = machine.pools.iter();
        let pool = pools.find(|pool| pool.page_bytes == bytes);
        pool.map_or(0, |pool| pool.free.saturating_mul(bytes))
    };
    let wanted = (3 * sizes.arrays.bytes.next_multiple_of(1 << 30)).max(sizes.ladder_bytes);
    let mut all = vec![Pages::Base];
    let mut left_out = Vec::new();
    if let Some(pages @ (Pages::Pool2M | Pages::Pool1G)) = ask.huge
        && ask.soak.is_none()
        && free(pages) < wanted
    {
        return Err(EngineError::Unusable(format!(
            "--huge {}: its pool has {} free, and the arrays and the ladder need up to {}; reserve them \
             (/sys/kernel/mm/hugepages), or use --huge thp",
            word(pages),
            assay_measure::units::size(free(pages)),
            assay_measure::units::size(wanted)
        )));
    }
    all.extend(ask.huge);
    if ask.huge == Some(Pages::Transparent) {
        if free(Pages::Pool2M) >= sizes.ladder_bytes {
            all.push(Pages::Pool2M)
        } else {
            left_out.push((
                "ladder in 2 MiB pages of a pool".to_owned(),
                format!("the pool has {} free", assay_measure::units::size(free(Pages::Pool2M))),
            ))
        }
    }
    if !sizes.ladder_why.is_empty() {
        left_out.push(("ladder to eight times the last cache".to_owned(), sizes.ladder_why.clone()));
    }
    Ok((all, left_out))
}

/// What was measured, before it is a record.
#[derive(Clone, Debug, Default)]
pub(crate) struct MemoryReadings {
    pub(crate) info: MemoryInfo,
    pub(crate) host: HostWindow,
    /// What threads were given of their passes, and waited for a CPU within them, ns.
    pub(crate) time: Times,
    pub(crate) is_stopped: bool,
}

/// Sums over threads.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Times {
    pub(crate) elapsed_ns: u64,
    pub(crate) cpu_ns: u64,
    pub(crate) run_delay_ns: Option<u64>,
}

impl Measured for MemoryReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// What every part of the measurement is given.
struct Work<'a> {
    cpus: &'a [u32],
    counts: Vec<usize>,
    sizes: &'a Sizes,
    pages: &'a [Pages],
    /// Those of the arrays.
    huge: Pages,
    machine: &'a Machine,
    time: Duration,
    clock: &'a Clock,
    stop: &'a Stop,
    meter: Meter<'a>,
}

impl Work<'_> {
    /// A share of the time for each of so many things, ns.
    fn window_ns(&self, share: f64, of: usize) -> u64 {
        (self.time.as_nanos() as f64 * share / of.max(1) as f64) as u64
    }
}

/// Counts the steps.
struct Meter<'a> {
    steps: &'a dyn Steps,
    done: AtomicUsize,
    of: usize,
}

impl Meter<'_> {
    fn next(&self, what: &str) {
        let number = self.done.fetch_add(1, Ordering::AcqRel) + 1;
        self.steps.step(number, self.of, what);
    }
}

/// What the kernel refused, as the command tells it.
fn refused(error: BlockError) -> EngineError {
    EngineError::Unusable(error.to_string())
}

/// Has the kernel take this process before any other where memory runs out: no database shall die for a probe.
fn be_the_first_to_go() {
    // Where it is refused, the process is as likely to be chosen as any other.
    let _ = std::fs::write("/proc/self/oom_score_adj", "1000");
}

/// The probe with what was asked of it.
struct Aim {
    ask: Ask,
    time: Duration,
    placement: Placement,
    machine: Machine,
    sizes: Sizes,
    pages: Vec<Pages>,
    left_out: LeftOut,
}

impl Aim {
    fn counts(&self) -> Vec<usize> {
        self.placement.counts()
    }

    /// Steps of a measurement, in the order they are taken.
    fn steps(&self) -> usize {
        let counts = self.counts().len();
        bandwidth::steps(counts)
            + ladder::steps(&self.pages, self.sizes.ladder_bytes, counts)
            + faults::steps(&self.pages, counts)
            + numa::steps(&self.machine)
    }

    fn info(&self) -> MemoryInfo {
        let cache = |level: crate::machine::Level| CacheRow {
            name: level.name,
            bytes: level.bytes,
            count: level.count,
            shared_by: ranges(&level.shared_by),
        };
        let is_soak = self.ask.soak.is_some();
        MemoryInfo {
            kernel_set: SET.to_owned(),
            mode: if is_soak { "soak" } else { "bench" }.to_owned(),
            cpus: self.placement.cpus.clone(),
            is_pinned: true,
            // Profiles of this workspace that keep debug assertions do not optimise.
            is_optimised: !cfg!(debug_assertions),
            path: assay_block::memory::path().to_owned(),
            pages: word(self.ask.huge.unwrap_or(Pages::Base)).to_owned(),
            transparent_huge_pages: self.machine.transparent_huge_pages.clone(),
            caches: self.machine.data_levels().into_iter().map(cache).collect(),
            arrays: self.sizes.arrays.clone(),
            nodes: numa::with_memory(&self.machine),
            left_out: if is_soak { Vec::new() } else { self.left_out.clone() },
            ..MemoryInfo::default()
        }
    }

    fn bench(
        &self,
        readings: &mut MemoryReadings,
        clock: &Clock,
        stop: &Stop,
        steps: &dyn Steps,
    ) -> Result<(), EngineError> {
        let of = self.steps();
        steps.step(0, of, "taking memory");
        let work = Work {
            cpus: &self.placement.cpus,
            counts: self.counts(),
            sizes: &self.sizes,
            pages: &self.pages,
            huge: self.ask.huge.unwrap_or(Pages::Base),
            machine: &self.machine,
            time: self.time,
            clock,
            stop,
            meter: Meter { steps, done: AtomicUsize::new(0), of },
        };
        type Part = fn(&Work<'_>, &mut MemoryReadings) -> Result<(), EngineError>;
        let parts: [Part; 4] = [bandwidth::run, ladder::run, faults::run, numa::run];
        for part in parts {
            if stop.requested() {
                return Ok(());
            }
            part(&work, readings)?;
        }
        Ok(())
    }
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let mut lines = vec![text("kernel_set", "kernels", SET), self.placement.line()];
        if let Some(soak) = &self.ask.soak {
            lines.extend([
                count("workers", "workers", soak.workers as u64),
                count("worker_bytes", "memory of each", soak.worker_bytes),
                count("total_bytes", "memory of all", soak.total_bytes()),
            ]);
        } else {
            let arrays = &self.sizes.arrays;
            lines.push(count("array_bytes", "each of three arrays", arrays.bytes));
            if !arrays.is_met {
                let wanted = assay_measure::units::size(arrays.wanted_bytes);
                let told = format!("{wanted} for each array cannot be had: {}", arrays.why);
                lines.push(text("array_rule", "rule of four caches", told));
            }
            let pages: Vec<&str> = self.pages.iter().map(|pages| word(*pages)).collect();
            lines.extend([
                count("ladder_bytes", "ladder of latencies up to", self.sizes.ladder_bytes),
                text("pages", "pages", pages.join(", ")),
                count("steps", "steps", self.steps() as u64),
            ]);
            let left_out = self.left_out.iter();
            lines.extend(left_out.map(|(what, why)| text("left_out", "left out", format!("{what}: {why}"))));
        }
        lines.push(measuring(self.time));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let clock = Clock::real();
        be_the_first_to_go();
        let mut readings = MemoryReadings { info: self.info(), ..MemoryReadings::default() };
        let around = Around::begin();
        match &self.ask.soak {
            Some(soak) => {
                steps.step(0, load::seconds(self.time), "taking memory");
                soak::run(soak, &self.placement.cpus, self.time, &clock, stop, steps, &mut readings)?;
            }
            None => self.bench(&mut readings, &clock, stop, steps)?,
        }
        readings.host = around.end();
        readings.is_stopped = stop.requested();
        let info = &readings.info;
        if info.bandwidth.is_empty() && info.ladder.is_empty() && info.soak.is_none() {
            return Err(EngineError::Interrupted);
        }
        if readings.info.effective_mhz.value().is_none() {
            readings.info.effective_mhz = Figure::decimal(effective_mhz(&clock));
        }
        Ok(Box::new(readings))
    }
}
