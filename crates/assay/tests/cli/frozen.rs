//! Frozen runs by the program itself: what it finds in a directory of them, and that what it prints is the face that
//! `commands::frozen` compares in its own process.

use crate::common::{Place, with};
use std::path::{Path, PathBuf};

fn frozen() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/frozen")
}

/// Puts all frozen runs into a place of their own.
fn copied(place: &Place) {
    for entry in std::fs::read_dir(frozen()).expect("the frozen records") {
        let run = entry.expect("an entry").path();
        if run.join("record.json").exists() {
            copy(&run, &place.path(run.file_name().and_then(|name| name.to_str()).expect("a plain name")));
        }
    }
}

/// The records of a run, or of a sweep and its steps.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir(to).expect("a run directory");
    for entry in std::fs::read_dir(from).expect("a frozen run") {
        let from = entry.expect("an entry").path();
        let to = to.join(from.file_name().expect("a name"));
        if from.is_dir() {
            copy(&from, &to);
        } else if from.extension().is_some_and(|ending| ending == "json") {
            std::fs::copy(&from, to).expect("copied");
        }
    }
}

fn check(name: &str, face: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(frozen().join(name));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(face, text));
}

/// A trend is of one target; without it the first one is refused.
const NATIVE: &[&str] = &["--target", "native"];

#[test]
fn lists_trends_and_what_is_printed_look_as_frozen() {
    let place = Place::new();
    copied(&place);
    let listed = place.assay(&["runs", "list", "--dir", "."]);
    check("runs", "list", &(listed.out + &listed.err));
    for (metric, which) in [("ops_per_s", &[][..]), ("reads_per_s", NATIVE), ("read_us_p99", NATIVE), ("tx_per_s", &[])]
    {
        let ran = place.assay(&with(&["runs", "trend", metric, "--dir", "."], which));
        check("runs", metric, &(ran.out + &ran.err));
    }
    let printed = place.assay(&["report", "native-updates", "--format", "text"]).code(0);
    check("native-updates", "text", &printed.out);
}
