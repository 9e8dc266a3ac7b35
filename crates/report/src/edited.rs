//! Records that somebody edited: any node of a real one removed, shortened, of another kind or out of all bounds.
//! What is still read as a record is drawn by every face, and none of them panics.

use crate::faces;
use crate::recover;
use crate::storage::fixture as probe;
use assay_measure::record::{Record, RecoveryInfo};
use assay_measure::snapshot::RunData;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::LazyLock;

/// A record of every kind, as JSON.
static FROZEN: LazyLock<Vec<Value>> = LazyLock::new(|| {
    let probe = crate::storage::build(&RunData::default(), &probe::readings());
    let import = |path: &str, text: &str| {
        let source = crate::import::Source {
            path: path.to_owned(),
            text: text.to_owned(),
        };
        crate::import::import(&[source]).expect("it is read")
    };
    let mut recovered = crate::record::build(&crate::fixture::run());
    recovered.recovery = Some(RecoveryInfo::default());
    [
        crate::record::build(&crate::fixture::run()),
        crate::record::build(&crate::fixture::postgres(15)),
        probe,
        recovered,
        import(
            "fio",
            include_str!("../../../testdata/import/fio-3.33-mixed.json"),
        ),
        import(
            "iperf3",
            include_str!("../../../testdata/import/iperf3-3.12-tcp.json"),
        ),
    ]
    .iter()
    .map(|record| serde_json::to_value(record).expect("JSON"))
    .collect()
});

/// What takes a node's place; `None` removes it.
fn replacement() -> impl Strategy<Value = Option<Value>> {
    prop_oneof![
        Just(None),
        Just(Some(Value::Null)),
        Just(Some(json!([]))),
        Just(Some(json!({}))),
        Just(Some(json!({"na": "edited"}))),
        Just(Some(json!(""))),
        Just(Some(json!("\u{1b}[2J=1+1,\"\n\u{202e}"))),
        Just(Some(json!(true))),
        Just(Some(json!(0))),
        Just(Some(json!(-1))),
        Just(Some(json!(u64::MAX))),
        Just(Some(json!(1e308))),
        Just(Some(json!(-1e308))),
        Just(Some(json!(5e-324))),
        Just(Some(json!(0.5))),
    ]
}

/// An edit: which node, by numbers that are taken modulo what there is, and what becomes of it.
#[derive(Clone, Debug)]
struct Edit {
    way: Vec<u16>,
    with: Option<Value>,
}

fn edit() -> impl Strategy<Value = Edit> {
    let way = proptest::collection::vec(any::<u16>(), 1..7);
    (way, replacement()).prop_map(|(way, with)| Edit { way, with })
}

/// Walks down as far as the way and the tree go, and edits what is there.
fn apply(node: &mut Value, edit: &Edit) {
    let (Some((step, rest)), parent) = (edit.way.split_first(), node) else {
        return;
    };
    let is_last = |child: &Value| rest.is_empty() || !(child.is_array() || child.is_object());
    let rest = |with: &Option<Value>| Edit {
        way: rest.to_vec(),
        with: with.clone(),
    };
    match parent {
        Value::Array(list) if !list.is_empty() => {
            let at = *step as usize % list.len();
            match (&edit.with, is_last(&list[at])) {
                (_, false) => apply(&mut list[at], &rest(&edit.with)),
                (Some(with), true) => list[at] = with.clone(),
                (None, true) => list.truncate(at),
            }
        }
        Value::Object(map) if !map.is_empty() => {
            let name = map
                .keys()
                .nth(*step as usize % map.len())
                .cloned()
                .unwrap_or_default();
            let child = map.get_mut(&name).expect("it is there");
            match (&edit.with, is_last(child)) {
                (_, false) => apply(child, &rest(&edit.with)),
                (Some(with), true) => *child = with.clone(),
                (None, true) => {
                    map.remove(&name);
                }
            }
        }
        _ => {}
    }
}

fn drawn(value: &Value, other: &Record) -> bool {
    let Ok(record) = crate::json::read(&value.to_string()) else {
        return false;
    };
    for (face, text) in faces::all(&record, other) {
        // The others are cleaned where they are printed.
        let is_kept_as_it_is = ["text", "json"].contains(&face);
        assert!(!is_kept_as_it_is || !text.contains('\u{1b}'), "{face}");
    }
    true
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases()))]

    #[test]
    fn no_edit_of_a_record_makes_a_face_panic(
        which in 0..6_usize,
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
            let record = crate::record::build_with(&run.data, run.series);
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
    let run = crate::fixture::run();
    let header = recover::Header {
        schema: recover::SERIES_SCHEMA.to_owned(),
        run: RunData {
            series: Vec::new(),
            activity: None,
            timeline: Vec::new(),
            ..run.clone()
        },
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
    add(SideLine::activity("run", crate::fixture::activity()).line());
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
