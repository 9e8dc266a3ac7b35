//! Edits of the lines of a real series: what is recovered becomes a record, which every face draws.
//!
//! The edits are those of `record`; the first step of each says which line. A first byte of 255 is followed by text
//! that takes the series' place.
#![no_main]

#[path = "../bytes.rs"]
mod bytes;
#[path = "../edit.rs"]
mod edit;
#[path = "../faces.rs"]
mod faces;
#[path = "../kinds.rs"]
mod kinds;

use assay_awr::{record, recover};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use std::sync::LazyLock;

static SERIES: LazyLock<Vec<Value>> = LazyLock::new(|| {
    assay_report::kinds::install(kinds::all());
    let lines = include_str!("../records/series.jsonl").lines();
    lines.map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
});

fuzz_target!(|input: &[u8]| {
    LazyLock::force(&SERIES);
    let text = match input.split_first() {
        None => return,
        Some((255, text)) => text.to_vec(),
        Some(_) => {
            let mut lines = SERIES.clone();
            for mut one in bytes::edits(input) {
                let line = one.way.remove(0) as usize % lines.len();
                edit::apply(&mut lines[line], &one);
            }
            let lines = lines.iter().map(|line| format!("{line}\n"));
            lines.collect::<String>().into_bytes()
        }
    };
    let Ok(run) = recover::recover(text.as_slice()) else {
        return;
    };
    let record = record::build_with(&run.data, run.series);
    let _ = faces::all(&record, &record);
});
