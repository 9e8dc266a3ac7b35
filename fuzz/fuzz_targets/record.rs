//! Edits of real records: what is still read is drawn by every face, and none of them panics.
//!
//! The first byte says which record; the rest are edits.
#![no_main]

#[path = "../bytes.rs"]
mod bytes;
#[path = "../edit.rs"]
mod edit;
#[path = "../faces.rs"]
mod faces;
#[path = "../kinds.rs"]
mod kinds;

use assay_report::json;
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::LazyLock;

static RECORDS: LazyLock<Vec<Value>> = LazyLock::new(|| {
    assay_report::kinds::install(kinds::all());
    [
        include_str!("../records/null.json"),
        include_str!("../records/native.json"),
        include_str!("../records/io.json"),
        include_str!("../records/sync.json"),
        include_str!("../../testdata/frozen/cpu/record.json"),
        include_str!("../../testdata/frozen/memory/record.json"),
        include_str!("../../testdata/frozen/topology/record.json"),
        include_str!("../records/sweep.json"),
    ]
    .iter()
    .map(|text| serde_json::from_str(text).expect("a record is JSON"))
    .collect()
});

fuzz_target!(|input: &[u8]| {
    let Some((which, rest)) = input.split_first() else {
        return;
    };
    let real = &RECORDS[*which as usize % RECORDS.len()];
    let mut edited = real.clone();
    for one in bytes::edits(rest) {
        edit::apply(&mut edited, &one);
    }
    let Ok(record) = json::read(&edited.to_string()) else {
        return;
    };
    let other = json::read(&real.to_string()).expect("it was written by assay");
    for (face, text) in faces::all(&record, &other) {
        // The others are cleaned where they are printed.
        let is_kept_as_it_is = ["full", "json"].contains(&face);
        assert!(!is_kept_as_it_is || !text.contains('\u{1b}'), "{face}");
    }
});
