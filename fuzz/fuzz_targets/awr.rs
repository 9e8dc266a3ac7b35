//! A report of a database as HTML or text, from its sections on: never a panic, what is read stands where the list of
//! values says, and the same figures are read twice.
//!
//! The bytes are put behind the title of a report, so that no input is lost on recognition: the first byte chooses the
//! form.
#![no_main]

#[path = "../kinds.rs"]
mod kinds;

use assay_import::{Source, import};
use assay_testkit::places::misplaced;
use libfuzzer_sys::fuzz_target;

const TITLES: [&str; 4] = [
    "<html><h1>WORKLOAD REPOSITORY report for</h1>\n",
    "<html><h1>WORKLOAD REPOSITORY REPORT (RAC)</h1>\n",
    "WORKLOAD REPOSITORY report for\n\n",
    "STATSPACK report for\n\n",
];

fuzz_target!(|bytes: &[u8]| {
    assay_report::kinds::install(kinds::all());
    let Some((first, rest)) = bytes.split_first() else {
        return;
    };
    let title = TITLES[usize::from(*first) % TITLES.len()];
    let text = format!("{title}{}", String::from_utf8_lossy(rest));
    let source = Source { path: "-".to_owned(), text };
    if let Ok(record) = import(std::slice::from_ref(&source)) {
        assert_eq!(misplaced(&record), Vec::<String>::new());
        let _ = assay_report::text::render(&record);
        let again = import(&[source]).expect("imported before");
        assert_eq!(again.import, record.import);
    }
});
