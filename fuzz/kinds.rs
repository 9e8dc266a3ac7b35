//! Every kind of record there is, so that each edited record is drawn by its own.

use assay_measure::kind::Kind;

pub(crate) fn all() -> Vec<&'static dyn Kind> {
    let own: [&dyn Kind; 10] = [
        &assay_storage::record::Storage,
        &assay_native::crash::Recovery,
        &assay_sweep::Sweep,
        &assay_probes::sync::DurableWrites,
        &assay_probes::cpu::CpuKernels,
        &assay_probes::memory::Memory,
        &assay_probes::topology::Topology,
        &assay_probes::network::Network,
        &assay_probes::ping::Ping,
        &assay_probes::redo::RedoTransport,
    ];
    [assay_awr::KINDS, &own].concat()
}
