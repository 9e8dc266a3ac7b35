//! What every probe that needs no other host does as a command, whichever it is: it measures, answers on one screen, and its record is
//! drawn by every face.

use crate::common::Place;
use assay_run::probe::Takes;

/// Columns of a screen, and lines of an answer with a list of caches.
const COLUMNS: usize = 100;
const LINES: usize = 40;

#[test]
fn each_probe_answers_on_one_screen_and_its_record_is_drawn_by_every_face() {
    let place = Place::new();
    // What reads what is there finds this.
    place.write("data", &"x".repeat(8 << 20));
    for probe in assay_probes::PROBES.iter().filter(|probe| !matches!(probe.takes, Takes::Peer(_))) {
        let name = probe.name;
        let time: &[&str] = if probe.usual_time.is_some() { &["--time", "1s"] } else { &[] };
        let plan = place.assay(&[&[name, "--dry-run", "--format", "json"], time].concat()).code(0).out;
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        assert!(plan.as_object().is_some_and(|lines| !lines.is_empty()), "{name}: {plan}");
        let answer = place.assay(&[&[name, "-o", name], time].concat()).code(0).out;
        assert!(answer.lines().count() <= LINES, "{name}:\n{answer}");
        assert!(answer.lines().all(|line| line.chars().count() <= COLUMNS), "{name}:\n{answer}");
        for row in ["Tested", "Steadiness", "Trust"] {
            assert!(answer.lines().any(|line| line.starts_with(row)), "{name}, {row}:\n{answer}");
        }
        let record = place.record(name);
        assert_eq!((&record["kind"], &record["run"]["verdict"]), (&probe.kind.name().into(), &"complete".into()));
        let metrics = record["metrics"].as_array().expect("metrics");
        // What takes longer than a second to judge says so.
        let is_told = |metric: &serde_json::Value| {
            let why = metric["value"]["na"].as_str();
            metric["value"].is_number() || why.is_some_and(|why| why.contains("use a longer --time"))
        };
        assert!(metrics.iter().any(is_told), "{name}: {metrics:?}");
        let full = place.assay(&["report", name, "--format", "full"]).code(0).out;
        assert!(full.contains("ASSAY ") && full.ends_with("End of Report\n"), "{name}:\n{full}");
        for format in ["answer", "html", "csv", "openmetrics", "summary"] {
            assert!(!place.assay(&["report", name, "--format", format]).code(0).out.is_empty(), "{name}: {format}");
        }
    }
}

#[test]
fn quick_is_the_probes_own_short_time() {
    let place = Place::new();
    let slice = |time: &[&str]| {
        let plan = place.assay(&[&["interference", "--dry-run", "--format", "json"], time].concat()).code(0).out;
        let plan: serde_json::Value = serde_json::from_str(&plan).expect("JSON");
        plan["slice_s"].clone()
    };
    assert!(slice(&["--quick"]).is_number());
    assert_eq!(slice(&["--quick"]), slice(&["--time", "1m"]));
    assert_ne!(slice(&["--quick"]), slice(&[]));
    place.assay(&["interference", "--quick", "--time", "1m"]).code(2);
    place.assay(&["throttle", "--quick"]).code(2);
}

#[test]
fn what_is_no_passport_is_refused_before_anything_is_measured() {
    let place = Place::new();
    let plan = place.assay(&["passport", ".", "--dry-run"]).code(0).out;
    assert!(plan.contains("6 of about 15 s"), "{plan}");
    assert!(place.assay(&["accept", "none.json"]).code(2).err.contains("none.json"));
    place.write("changed.json", "{}");
    assert!(place.assay(&["accept", "changed.json"]).code(2).err.contains("is no passport of assay"));
    let there = place.assay(&["passport", ".", "--file", "changed.json"]).code(2);
    assert!(there.err.contains("nothing is overwritten"), "{}", there.err);
    assert!(place.assay(&["passport", ".", "--time", "5s"]).code(2).err.contains("give 40s to 1h"));
}

#[test]
fn a_load_is_planned_without_a_box_and_without_a_byte() {
    let place = Place::new();
    let report = format!("{}/../../testdata/awr/awr-11.2.txt", env!("CARGO_MANIFEST_DIR"));
    let answer = place.assay(&["fit", &report, "--plan-only"]).code(0).out;
    assert!(answer.starts_with("fit: needs 5,644 IOPS and 46.9 MB/s"), "{answer}");
    let plan = place.assay(&["fit", &report, ".", "--size", "64M", "--dry-run"]).code(0).out;
    assert!(plan.contains("RATE=") && plan.contains("To be written"), "{plan}");
    assert!(place.assay(&["fit", "."]).code(2).err.contains("name the report before it"));
    let several = place.assay(&["fit", &report, "missing.txt", "--plan-only"]).code(2);
    assert!(several.err.contains("missing.txt"), "{}", several.err);
    assert!(place.assay(&["fit", &report, ".", "--time", "1s"]).code(2).err.contains("give 5s to 1h"));
    assert_eq!(place.files(), [] as [&str; 0]);
}
