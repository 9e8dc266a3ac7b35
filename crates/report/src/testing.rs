//! What tests share.

/// The fuzzer's list of kinds.
#[path = "../../../fuzz/kinds.rs"]
mod every;

/// The records that the fuzzer edits, among them one of each probe, which may be a frozen one.
pub(crate) fn of_the_fuzzer() -> impl Iterator<Item = serde_json::Value> {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
    let entries = std::fs::read_dir(format!("{root}/fuzz/records")).expect("its directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    for kind in assay_probes::PROBES.iter().map(|probe| probe.kind.name()) {
        if !paths.iter().any(|path| path.file_stem().is_some_and(|stem| stem == kind)) {
            paths.push(format!("{root}/testdata/frozen/{kind}/record.json").into());
        }
    }
    paths.sort();
    let read =
        |path| serde_json::from_str(&std::fs::read_to_string(&path).expect("a record")).expect("a record is JSON");
    paths.into_iter().map(read)
}

/// Makes all kinds known, and the parameters of a target.
pub(crate) fn install() {
    assay_measure::config::install(vec![assay_slob::params::PARAMS, assay_native::params::PARAMS]);
    crate::kinds::install(every::all());
}
