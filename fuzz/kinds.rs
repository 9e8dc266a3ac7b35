//! Every kind of record there is, so that each edited record is drawn by its own.

use assay_measure::kind::Kind;
use assay_probes::{cpu, memory, network, ping, redo, sync, topology};

pub(crate) fn all() -> Vec<&'static dyn Kind> {
    let own: [&dyn Kind; 11] = [
        &assay_orders::kind::Orders,
        &assay_storage::record::Storage,
        &assay_native::crash::Recovery,
        &assay_sweep::Sweep,
        sync::SPEC.kind,
        cpu::SPEC.kind,
        memory::SPEC.kind,
        topology::SPEC.kind,
        network::SPEC.kind,
        ping::SPEC.kind,
        redo::SPEC.kind,
    ];
    [assay_awr::KINDS, &own].concat()
}
