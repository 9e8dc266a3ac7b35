//! Any text as another tool's output: never a panic, and what is read stands where the list of values says.
//!
//! Texts between lines of `---` are files of one import.
#![no_main]

#[path = "../kinds.rs"]
mod kinds;

use assay_import::{Source, import_all};
use assay_testkit::places::misplaced;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    assay_report::kinds::install(kinds::all());
    let text = String::from_utf8_lossy(bytes);
    let files = text.split("\n---\n").enumerate();
    let sources: Vec<Source> = files.map(|(i, text)| Source { path: i.to_string(), text: text.to_owned() }).collect();
    for imported in import_all(sources) {
        match imported.result {
            Ok(record) => {
                assert_eq!(misplaced(&record), Vec::<String>::new());
                let _ = assay_report::text::render(&record);
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
});
