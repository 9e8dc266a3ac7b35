//! Edited records: any node of a real one removed, shortened, of another type or far out of bounds. If the result still
//! reads as a record, every output format draws it, and none panics.

/// The fuzzer's edits: one list of what goes wrong.
#[path = "../../../fuzz/edit.rs"]
mod edit;
/// What the fuzzer draws of a record.
#[path = "../../../fuzz/faces.rs"]
mod faces;

use assay_awr::recover;
use assay_measure::record::Record;
use assay_measure::snapshot::RunData;
use assay_native::crash::RecoveryInfo;
use edit::{Edit, apply, replacement};
use proptest::prelude::*;
use serde_json::Value;
use std::sync::LazyLock;

/// A record of every kind, as JSON.
static FROZEN: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let probe = assay_storage::record::build(&RunData::default(), &crate::storage_readings::readings());
    let import = |path: &str, text: &str| {
        let source = assay_import::Source { path: path.to_owned(), text: text.to_owned() };
        assay_import::import(&[source]).expect("it is read")
    };
    let mut recovered = assay_awr::record::build(&assay_testkit::fixtures::run());
    recovered.parts.put(&RecoveryInfo::default());
    recovered.kind = "recovery".to_owned();
    crate::kinds::attach_metrics(&mut recovered);
    let built = [
        assay_awr::record::build(&assay_testkit::fixtures::run()),
        assay_awr::record::build(&assay_testkit::fixtures::postgres(15)),
        probe,
        recovered,
        import("fio", include_str!("../../../testdata/import/fio-3.33-mixed.json")),
        import("iperf3", include_str!("../../../testdata/import/iperf3-3.12-tcp.json")),
    ];
    let built = built.iter().map(|record| serde_json::to_value(record).expect("JSON"));
    built.chain(crate::testing::of_the_fuzzer()).collect()
});

fn edit() -> impl Strategy<Value = Edit> {
    let way = proptest::collection::vec(any::<u16>(), 1..7);
    (way, any::<u8>()).prop_map(|(way, kind)| Edit { way, with: replacement(kind) })
}

fn drawn(value: &Value, other: &Record) -> bool {
    let Ok(record) = crate::json::read(&value.to_string()) else {
        return false;
    };
    for (face, text) in faces::all(&record, other) {
        // The others are cleaned where they are printed.
        let is_kept_as_it_is = ["full", "json"].contains(&face);
        assert!(!is_kept_as_it_is || !text.contains('\u{1b}'), "{face}");
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_edit_of_a_record_makes_a_face_panic(
        which in 0..64_usize,
        edits in proptest::collection::vec(edit(), 1..5),
    ) {
        let frozen = &FROZEN[which % FROZEN.len()];
        let mut value = frozen.clone();
        for edit in &edits {
            apply(&mut value, edit);
        }
        let other: Record = serde_json::from_value(frozen.clone()).expect("a record");
        drawn(&value, &other);
    }

    #[test]
    fn no_edit_of_a_series_makes_its_recovery_panic(edits in proptest::collection::vec((0..64_usize, edit()), 1..5)) {
        let mut lines = series();
        for (line, edit) in &edits {
            let at = line % lines.len();
            apply(&mut lines[at], edit);
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        if let Ok(run) = recover::recover(text.as_bytes()) {
            let record = assay_awr::record::build_with(&run.data, run.series);
            let _ = faces::all(&record, &record);
        }
    }
}

/// How many edits are tried; a soak sets more.
fn cases() -> u32 {
    let more = std::env::var("PROPTEST_CASES").ok();
    more.and_then(|cases| cases.parse().ok()).unwrap_or(64)
}

/// The lines of a series, as a run of the fixture would have written them.
fn series() -> Vec<Value> {
    use assay_measure::series::{SeriesWriter, SideLine};
    use assay_measure::snapshot::Mark;
    let run = assay_testkit::fixtures::run();
    let header = recover::Header {
        schema: recover::SERIES_SCHEMA.to_owned(),
        run: RunData { series: Vec::new(), activity: None, timeline: Vec::new(), ..run.clone() },
    };
    let mut writer = SeriesWriter::new("run");
    let mut lines = vec![serde_json::to_value(&header).expect("JSON")];
    let mut add = |text: String| lines.push(serde_json::from_str(&text).expect("JSON"));
    add(writer.line(Mark::Gate, &run.gate));
    for now in &run.series {
        add(writer.line(Mark::Second, now));
    }
    add(writer.line(Mark::End, &run.end));
    add(writer.line(Mark::Drained, &run.drained));
    add(SideLine::activity("run", assay_testkit::fixtures::activity()).line());
    for event in run.timeline {
        add(SideLine::event("run", event).line());
    }
    lines
}

#[test]
fn the_frozen_records_and_the_series_are_read_before_they_are_edited() {
    for value in FROZEN.iter() {
        let other = serde_json::from_value(value.clone()).expect("a record");
        assert!(drawn(value, &other));
    }
    let text: String = series().iter().map(|line| format!("{line}\n")).collect();
    assert!(recover::recover(text.as_bytes()).is_ok());
}
