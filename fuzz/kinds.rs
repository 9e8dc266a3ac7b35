//! Every kind of record there is, so that each edited record is drawn by its own.

use assay_measure::kind::Kind;

pub(crate) fn all() -> Vec<&'static dyn Kind> {
    let own: [&dyn Kind; 6] = [
        &assay_slob::SLOB,
        &assay_orders::kind::Orders,
        &assay_storage::record::Storage,
        &assay_native::crash::KIND,
        &assay_run::load_test::KIND,
        &assay_sweep::Sweep,
    ];
    let of_probes = assay_probes::PROBES.iter().map(|probe| probe.kind);
    [assay_awr::KINDS, &own].concat().into_iter().chain(of_probes).collect()
}
