mod schema;

use super::*;
use crate::histogram::Histogram;
use proptest::prelude::*;

fn figures() -> impl Strategy<Value = Figure> {
    prop_oneof![
        any::<u64>().prop_map(Figure::Count),
        any::<f64>().prop_map(Figure::decimal),
        "[a-z ]{1,12}".prop_map(Figure::Na),
    ]
}

fn texts() -> impl Strategy<Value = String> {
    "[ -~]{0,20}"
}

fn histograms() -> impl Strategy<Value = Histogram> {
    proptest::collection::vec(0_u64..1 << 43, 0..40).prop_map(|durations| {
        let mut histogram = Histogram::new();
        durations.iter().for_each(|ns| histogram.record(*ns));
        histogram
    })
}

prop_compose! {
    fn load_rows()(name in texts(), total in figures(), per_s in figures(), per_tx in figures()) -> LoadRow {
        LoadRow { name, total, per_s, per_tx, ..LoadRow::default() }
    }
}

prop_compose! {
    fn event_rows()(name in texts(), hist_ns in histograms(), us_avg in figures()) -> EventRow {
        EventRow { name, hist_us: hist_ns.pow2_us().to_vec(), hist_ns, us_avg, ..EventRow::default() }
    }
}

prop_compose! {
    fn identities()(
        id in texts(),
        exact in any::<bool>(),
        ok in prop_oneof![Just(Truth::Holds), Just(Truth::Violated), texts().prop_map(Truth::Na)],
        lhs in figures(),
    ) -> Identity {
        Identity { id, exact, ok, lhs, ..Identity::default() }
    }
}

prop_compose! {
    fn records()(
        label in proptest::option::of(texts()),
        load_profile in proptest::collection::vec(load_rows(), 0..4),
        events in proptest::collection::vec(event_rows(), 0..3),
        integrity in proptest::collection::vec(identities(), 0..4),
        t_s in proptest::collection::vec(0.0_f64..1e9, 0..5),
        metrics in proptest::collection::btree_map(texts(), proptest::collection::vec(figures(), 0..5), 0..3),
        cpu_pct in proptest::collection::btree_map(texts(), figures(), 0..3),
        seed in any::<u64>(),
    ) -> Record {
        Record {
            schema: SCHEMA.to_owned(),
            run: RunInfo { label, seed, ..RunInfo::default() },
            instance: Instance { load_profile, events, ..Instance::default() },
            integrity,
            os: OsInfo { cpu_pct, ..OsInfo::default() },
            series: Series { t_s, metrics, ..Series::default() },
            ..Record::default()
        }
    }
}

proptest! {
    #[test]
    fn a_record_survives_json_bit_for_bit(record in records()) {
        let text = serde_json::to_string(&record).unwrap();
        let back: Record = serde_json::from_str(&text).unwrap();
        prop_assert_eq!(back, record);
    }

    #[test]
    fn reading_garbage_is_an_error_and_no_panic(text in ".{0,200}") {
        let _ = serde_json::from_str::<Record>(&text);
    }

    #[test]
    fn a_sum_with_an_unknown_part_is_unknown(figure in figures()) {
        let unknown = Figure::na("denied");
        prop_assert!(figure.plus(&unknown).reason().is_some());
        prop_assert!(unknown.plus(&figure).reason().is_some());
    }
}

#[test]
fn a_figure_is_a_number_or_its_reason() {
    let json = |figure: &Figure| serde_json::to_string(figure).unwrap();
    assert_eq!(json(&Figure::Count(7)), "7");
    assert_eq!(json(&Figure::decimal(0.5)), "0.5");
    assert_eq!(json(&Figure::na("denied")), r#"{"na":"denied"}"#);
    assert_eq!(json(&Figure::decimal(f64::NAN)), r#"{"na":"unknowable"}"#);
}

#[test]
fn an_na_may_carry_keys_of_later_versions() {
    let figure: Figure = serde_json::from_str(r#"{"why":[1,2],"na":"reset"}"#).unwrap();
    assert_eq!(figure, Figure::na("reset"));
    assert!(serde_json::from_str::<Figure>(r#"{"why":1}"#).is_err());
    assert!(serde_json::from_str::<Figure>(r#""12""#).is_err());
}

#[test]
fn a_zero_denominator_is_na_with_its_reason() {
    let per = Figure::Count(3).per(0.0, "no transactions");
    assert_eq!(per, Figure::na("no transactions"));
    assert_eq!(Figure::na("reset").per(0.0, "x"), Figure::na("reset"));
    assert_eq!(Figure::Count(0).per(2.0, "x"), Figure::decimal(0.0));
}

#[test]
fn a_factor_of_one_keeps_a_count_exact() {
    assert_eq!(Figure::Count(u64::MAX).scaled(1.0), Figure::Count(u64::MAX));
}

#[test]
fn keys_of_the_schema_end_in_their_unit_where_they_hold_a_figure() {
    // What says nothing at all is left out: each part gets one figure.
    let mut record = Record {
        instance: Instance {
            events: vec![EventRow::default()],
            load_profile: vec![LoadRow::default()],
            layers: vec![RequestLayers::default()],
            ..Instance::default()
        },
        ..Record::default()
    };
    record.os.cpus_count = Figure::Count(1);
    record.driver.threads_count = 1;
    record.checks.cache_blocks = Figure::Count(1);
    let json = serde_json::to_value(&record).unwrap();
    for part in ["os", "driver", "checks", "instance"] {
        assert!(json.get(part).is_some(), "{part}");
    }
    const UNITS: &[&str] = &[
        "_s",
        "_us",
        "_ns",
        "_ms",
        "_pct",
        "_count",
        "_bytes",
        "_blocks",
        "_ratio",
        "_fraction",
        "_per_op",
        "_per_tx",
        "_per_exec",
        "_per_call",
        "_sessions",
    ];
    // Totals of a row are in the row's own `unit`; `count` is its own unit.
    const ROW: &[&str] = &["total", "count", "begin", "end", "per_tx", "per_exec", "per_call", "per_op"];
    let mut bad = Vec::new();
    visit(&json, &mut |key, value| {
        let is_figure = value.get("na").is_some();
        // A statistic stands behind its unit.
        let unit_last = format!("_{}", metric::stem(key));
        if is_figure && !ROW.contains(&key) && !UNITS.iter().any(|unit| unit_last.ends_with(unit)) {
            bad.push(key.to_owned());
        }
    });
    assert!(bad.is_empty(), "{bad:?}");
}

fn visit(value: &serde_json::Value, look: &mut impl FnMut(&str, &serde_json::Value)) {
    match value {
        serde_json::Value::Object(map) => {
            for (key, value) in map {
                look(key, value);
                visit(value, look);
            }
        }
        serde_json::Value::Array(list) => list.iter().for_each(|value| visit(value, look)),
        _ => {}
    }
}
