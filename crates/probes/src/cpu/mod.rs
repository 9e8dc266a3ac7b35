//! `assay cpu`: the database work that this host's CPUs can do, kernel by kernel, and how it scales with threads.
//!
//! Owns the kernels (`kernels`), the threads that run them (`crew`, `pairs`, `soak`), what they read (`reading`,
//! `host`) and its record with its reports (`record`). See `README.md`.

mod bench;
mod crew;
mod host;
mod kernels;
mod options;
mod pairs;
mod reading;
mod record;

#[cfg(test)]
mod tests;

use crate::conditions::Around;
use crate::host::Placement;
use crate::load::{self, Load};
use assay_measure::clock::Clock;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::{count, measuring, text};
use assay_run::engine::{EngineError, Line};
use assay_run::host::usable_millicpus;
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps};
use assay_run::stop::Stop;
use assay_run::threads;
use kernels::{KERNELS, Kernel, LARGE, Ready, SET};
use options::{Ask, OPTIONS};
use reading::CpuReadings;
use std::time::Duration;

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Measure the CPUs with the computations of a database, per core and on all cores",
    more: "This takes about a minute. assay measures index lookups, hash joins, sorts, row decoding, checksums, encryption, copies \
           and others, each five times on one CPU and on all CPUs; the effective clock; the scaling curve; and the time to pass a \
           cache line, to switch and to wake a thread. With --soak, assay loads the CPUs for the given time instead and prints the \
           metrics of `stress-ng --cpu N --timeout T --metrics-brief` in the same layout; assay also accepts those spellings.",
    usual_time: Some("60s"),
    time_also: &["timeout"],
    follows: &[("rate", &["btree_16m_lookups_per_s"]), ("", &["tuple_rows_per_s"]), ("", &["effective_mhz"])],
    options: &[OPTIONS],
    ..ProbeSpec::new("cpu", &record::KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let ask = Ask::of(request)?;
    let placement = Placement::here();
    let workers = ask.workers(placement.cpus.len());
    threads::check_room(workers as u64, "threads at once")?;
    let (kernels, left_out) = match ask.soak {
        Some(_) => (KERNELS.iter().filter(|kernel| kernel.in_soak).collect(), Vec::new()),
        None => chosen(&ask),
    };
    Ok(Box::new(Aim { workers, is_soak: ask.soak.is_some(), time: request.time, placement, kernels, left_out }))
}

type LeftOut = Vec<(&'static str, String)>;

/// The kernels to measure; the largest sets only where they were asked for and where there is room.
fn chosen(ask: &Ask) -> (Vec<&'static Kernel>, LeftOut) {
    let mut left_out = LeftOut::new();
    let mut kernels: Vec<&'static Kernel> = KERNELS.iter().collect();
    if !ask.is_large {
        kernels.retain(|kernel| !LARGE.contains(&kernel.name));
    }
    let mut room = host::available_bytes().map_or(u64::MAX, |bytes| bytes / 2);
    kernels.retain(|kernel| {
        let fits = kernel.set_bytes() <= room;
        if fits {
            room -= kernel.set_bytes();
        } else {
            let why = format!("its {} MiB are more than half of the available memory", kernel.set_bytes() >> 20);
            left_out.push((kernel.name, why));
        }
        fits
    });
    (kernels, left_out)
}

impl Measured for CpuReadings {
    fn was_stopped(&self) -> bool {
        self.is_stopped
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        Some(record::build(labels, self))
    }
}

/// The probe with what was asked of it.
struct Aim {
    is_soak: bool,
    /// Threads of the soak, or those of the widest shot.
    workers: usize,
    time: Duration,
    placement: Placement,
    kernels: Vec<&'static Kernel>,
    left_out: LeftOut,
}

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        let bytes: u64 = self.kernels.iter().map(|kernel| kernel.set_bytes()).sum();
        let mut lines = vec![
            text("kernel_set", "kernels", SET),
            count("kernels", "how many of them", self.kernels.len() as u64),
            self.placement.line(),
            count("data_bytes", "data in memory", bytes),
        ];
        lines.push(if self.is_soak {
            count("workers", "workers", self.workers as u64)
        } else {
            count("steps", "steps", bench::steps(&self.kernels, &self.placement).len() as u64)
        });
        let left_out = self.left_out.iter();
        lines.extend(left_out.map(|(name, why)| text("left_out", "left out", format!("{name}: {why}"))));
        lines.push(measuring(self.time));
        lines
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        let clock = Clock::real();
        let of =
            if self.is_soak { load::seconds(self.time) } else { bench::steps(&self.kernels, &self.placement).len() };
        steps.step(0, of, "making the data of the kernels");
        let mut readings = CpuReadings {
            cpus: self.placement.cpus.clone(),
            cores: self.placement.cores,
            usable_millicpus: usable_millicpus(),
            // Profiles of this workspace that keep debug assertions do not optimise.
            is_optimised: !cfg!(debug_assertions),
            facts: host::facts(),
            clock_read_ns: host::clock_read_ns(&clock),
            left_out: self.left_out.clone(),
            ..CpuReadings::default()
        };
        let ready = self.prepared(&mut readings, stop)?;
        let around = Around::begin();
        if self.is_soak {
            let load = Load {
                workers: self.workers,
                labour: &kernels::ByTurns(&ready),
                cpus: &self.placement.cpus,
                time: self.time,
                clock: &clock,
                stop,
            };
            readings.is_pinned = load.is_pinned();
            readings.soak = load.run(steps)?;
            let wrong = readings.soak.iter().flat_map(|load| load.wrong.clone());
            readings.wrong.extend(wrong);
        } else {
            bench::run(&ready, self.time, &clock, stop, steps, &mut readings)?
        }
        readings.host = around.end();
        readings.is_stopped = stop.requested();
        if readings.shots.is_empty() && readings.soak.is_none() && readings.wrong.is_empty() {
            return Err(EngineError::Interrupted);
        }
        Ok(Box::new(readings))
    }
}

impl Aim {
    /// Makes the data of each kernel; one whose results are wrong from the start is not measured.
    fn prepared(&self, readings: &mut CpuReadings, stop: &Stop) -> Result<Vec<Ready>, EngineError> {
        let mut all = Vec::with_capacity(self.kernels.len());
        for kernel in &self.kernels {
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            let ready = Ready::new(kernel);
            match ready.check() {
                Ok(()) => all.push(ready),
                Err(wrong) => {
                    readings.wrong.push(wrong.to_string());
                    readings.left_out.push((kernel.name, "its results are wrong".to_owned()));
                }
            }
        }
        Ok(all)
    }
}
