//! `assay topology`: sockets, cores, threads, caches and NUMA nodes, as the kernel reports them.
//!
//! `crate::machine` reads them; this module reports them: lscpu's layout (`lscpu`), a picture (`picture`), the report.

mod advice;
mod headline;
mod lscpu;
mod picture;
mod sections;

#[cfg(test)]
mod tests;

use crate::machine::Machine;
use assay_measure::figures::figures;
use assay_measure::kind::{Finding, OwnKind, TestConditions, attach_metrics};
use assay_measure::record::metric::{Better, Group, plain};
use assay_measure::record::{Figure, Metric, Part, Record};
use assay_measure::snapshot::RunData;
use assay_run::dataset::lines::text;
use assay_run::engine::{EngineError, Line};
use assay_run::probe::{Aimed, Measured, ProbeSpec, Request, Steps};
use assay_run::probe_options;
use assay_run::stop::Stop;
use std::path::PathBuf;

probe_options! {
    OPTIONS:
    SYSROOT: "sysroot" ["DIR"] = "/", "Read DIR/proc and DIR/sys, captured on another machine, instead of this machine's";
}

/// The part of a record.
#[figures]
pub(crate) struct TopologyInfo {
    /// Where it was read: `/` is this machine.
    pub sysroot: String,
    pub machine: Machine,
}

impl Part for TopologyInfo {
    const NAME: &str = "topology";
}

/// The probe.
pub const SPEC: ProbeSpec = ProbeSpec {
    about: "Show what this machine consists of: sockets, cores, threads, caches, NUMA nodes",
    more: "Everything comes from /proc and /sys; assay measures nothing. --format tool prints the layout of lscpu that \
            scripts read, --format tool-json lscpu's JSON.",
    options: &[OPTIONS],
    ..ProbeSpec::new("topology", &KIND, aim)
};

fn aim(request: &Request) -> Result<Box<dyn Aimed>, EngineError> {
    let root = PathBuf::from(request.option(&SYSROOT));
    if root.is_dir() {
        Ok(Box::new(Aim(root)))
    } else {
        Err(SYSROOT.refused(&root.to_string_lossy(), "no such directory; it is to hold proc/ and sys/"))
    }
}

struct Aim(PathBuf);

impl Aimed for Aim {
    fn plan(&self) -> Vec<Line> {
        vec![text("sysroot", "reading /proc and /sys below", self.0.to_string_lossy())]
    }

    fn measure(&self, stop: &Stop, steps: &dyn Steps) -> Result<Box<dyn Measured>, EngineError> {
        steps.step(0, 1, "looking");
        if stop.requested() {
            return Err(EngineError::Interrupted);
        }
        steps.step(1, 1, "reading /proc and /sys");
        let info = TopologyInfo { sysroot: self.0.display().to_string(), machine: Machine::read(&self.0) };
        Ok(Box::new(info))
    }
}

impl Measured for TopologyInfo {
    fn was_stopped(&self) -> bool {
        false
    }

    fn record(&self, labels: &RunData) -> Option<Record> {
        let mut labels = labels.clone();
        labels.sessions = self.machine.online.len() as u64;
        let mut record = Record::labelled(&labels);
        record.parts.put(self);
        record.advice = advice::advise(self);
        attach_metrics(&KIND, &mut record);
        Some(record)
    }
}

/// A count that the kernel may not tell.
fn count(known: Option<usize>) -> Figure {
    known.map_or_else(|| Figure::na(crate::conditions::NOT_EXPOSED), |count| Figure::Count(count as u64))
}

/// The kind of its records.
const KIND: OwnKind<TopologyInfo> = OwnKind {
    rules: advice::rules,
    conditions,
    in_words_of_tool: |info| Some(lscpu::text(&info.machine)),
    in_json_of_tool: |info| Some(lscpu::json(&info.machine)),
    ..OwnKind::new(metrics, sections::render, headline::of)
};

fn metrics(info: &TopologyInfo) -> Vec<Metric> {
    let machine = &info.machine;
    let online = (!machine.online.is_empty()).then_some(machine.online.len());
    let bytes = |bytes: Option<u64>| Figure::known(bytes, crate::conditions::NOT_EXPOSED);
    let all = [
        ("cpus_online_count", "CPUs", count(online)),
        ("cores_count", "cores", count(machine.cores().map(|all| all.len()))),
        ("sockets_count", "sockets", count(machine.packages().map(|all| all.len()))),
        ("threads_per_core_count", "threads per core", count(machine.threads_per_core())),
        ("numa_nodes_count", "NUMA nodes", Figure::Count(machine.nodes.len() as u64)),
        ("last_level_cache_bytes", "last-level caches", bytes(machine.last_level_bytes())),
        ("memory_bytes", "memory", bytes(machine.memory.get("MemTotal").copied())),
    ];
    let metric = |(key, name, figure): (&str, &str, Figure)| {
        let unit = if key.ends_with("bytes") { "bytes" } else { "count" };
        Metric { layer: "cpu".to_owned(), ..plain(Group::Primary, key, name, unit, Better::Neither, figure) }
    };
    all.map(metric).into()
}

fn conditions(info: &TopologyInfo) -> TestConditions {
    let name = info.machine.identity.model_name.clone();
    vec![("CPU model", name, Finding::Tolerable)]
}
