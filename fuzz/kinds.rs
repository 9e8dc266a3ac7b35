//! Every kind of record there is, so that each edited record is drawn by its own.

use assay_measure::kind::Kind;
use assay_run::probe::Probe;

pub(crate) fn all() -> Vec<&'static dyn Kind> {
    let own: [&dyn Kind; 4] = [
        &assay_orders::kind::Orders,
        &assay_storage::record::Storage,
        &assay_native::crash::Recovery,
        &assay_sweep::Sweep,
    ];
    let probes: [&dyn Probe; 7] = [
        &assay_probes::sync::DurableWrites,
        &assay_probes::cpu::CpuKernels,
        &assay_probes::memory::Memory,
        &assay_probes::topology::Topology,
        &assay_probes::network::Network,
        &assay_probes::ping::Ping,
        &assay_probes::redo::RedoTransport,
    ];
    let kinds = probes.into_iter().filter_map(|probe| probe.facts().kind);
    [assay_awr::KINDS, &own].concat().into_iter().chain(kinds).collect()
}
