use super::RedoTransport;
use assay_run::conformance;

#[test]
fn it_passes_the_conformance_suite() {
    let dir = tempfile::tempdir().expect("a directory");
    let found = conformance::probe_suite(&RedoTransport, dir.path());
    assert!(found.is_empty(), "{found:#?}");
}
