//! What about the hosts could explain a difference: facts that differ, and what other processes took during the runs.

use super::model::{Check, Disturbance, Finding};
use super::samples::RunGroup;
use assay_measure::cpu;
use assay_measure::record::Record;
use assay_measure::snapshot::Fact;
use assay_measure::statistics::mean;

/// What a condition that is a fact of the host begins with.
pub(super) const HOST: &str = "host: ";
/// What engines tell of the device under the data, without the prefix that some give it; its place and what it holds
/// differ between any two runs and say nothing.
const OF_THE_DEVICE: [&str; 14] = [
    "fs_type",
    "mount_options",
    "is_tmpfs",
    "dax",
    "disk",
    "slaves",
    "model",
    "rotational",
    "scheduler",
    "nr_requests",
    "hardware_queues",
    "logical_block_bytes",
    "write_cache",
    "fua",
];

fn is_of_the_device(fact: &&Fact) -> bool {
    let name = fact.name.strip_prefix("device_").unwrap_or(&fact.name);
    OF_THE_DEVICE.contains(&name)
}

/// Every fact of the host and of the device under the data that both sides tell and that differs.
pub(super) fn differences(a: &Record, b: &Record) -> Vec<Check> {
    let theirs = |name: &str| super::allowed::facts(b).find(|fact| fact.name == name);
    let devices = a.plan.engine_facts.iter().filter(is_of_the_device);
    let both = a.host.facts.iter().chain(devices);
    let both = both.filter_map(|fact| Some((fact, theirs(&fact.name)?)));
    let checks = both.map(|(ours, theirs)| {
        let what = format!("{HOST}{}", ours.name);
        Check::text(&what, &ours.value, &theirs.value, Finding::Tolerable)
    });
    checks.filter(|check| check.finding == Finding::Tolerable).collect()
}

/// What others did to the runs of a side; nothing where its hosts were left to them.
pub(super) fn disturbance(letter: &str, group: &RunGroup<'_>) -> Option<Disturbance> {
    let lost: Vec<f64> = group.records.iter().map(|r| cpu::lost_share(r)).collect();
    let most = lost.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(at, _)| group.records[at])?;
    let text = cpu::disturbed(most)?;
    Some(Disturbance { group: letter.to_owned(), run: most.run.id.clone(), lost_pct: 100.0 * mean(&lost), text })
}
