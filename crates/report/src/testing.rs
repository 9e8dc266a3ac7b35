//! What tests share.

/// The fuzzer's list of kinds.
#[path = "../../../fuzz/kinds.rs"]
mod every;

pub(crate) use every::all as kinds;

/// The records that the fuzzer edits: one of each probe, and others.
pub(crate) fn of_the_fuzzer() -> impl Iterator<Item = serde_json::Value> {
    let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/records");
    let entries = std::fs::read_dir(directory).expect("its directory");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == "json"));
    paths.sort();
    let missing = |name: &str| !paths.iter().any(|path| path.file_stem().is_some_and(|stem| stem == name));
    let kinds = assay_probes::PROBES.iter().map(|probe| probe.kind.name());
    let without: Vec<&str> = kinds.filter(|name| missing(name)).collect();
    assert!(without.is_empty(), "fuzz/records has no record of {without:?}");
    let text = |path| std::fs::read_to_string(path).expect("a record");
    paths.into_iter().map(move |path| serde_json::from_str(&text(path)).expect("a record is JSON"))
}
