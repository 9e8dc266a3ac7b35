//! `assay recovery`: kills, recovers, counts what was lost, and leaves a data set that passes its check.

use crate::common::{Place, SMALL, with};
use serde_json::Value;

#[test]
fn kills_lose_nothing_and_are_timed() {
    let place = Place::new();
    place.assay(&with(&["prepare", "-s", "2"], SMALL)).code(0);
    let args = ["recovery", "--time", "3s", "--distances", "512K,8M", "-o", "run", "--format", "json"];
    let done = place.assay(&with(&args, SMALL)).code(0);
    let record: Value = serde_json::from_str(&done.out).expect("JSON");
    assert_eq!(record["run"]["workload"], "recovery");
    assert_eq!(record["run"]["verdict"], "complete", "{}", done.err);
    let steps = record["parts"]["recovery"]["steps"].as_array().expect("steps");
    assert_eq!(steps.len(), 2);
    for step in steps {
        assert_eq!(step["lost_count"], 0, "{step}");
        assert_eq!(step["half_there_count"], 0, "{step}");
        assert!(step["acknowledged_count"].as_u64().is_some_and(|n| n > 0), "{step}");
        assert!(step["rows_compared_count"].as_u64().is_some_and(|n| n > 0), "{step}");
        let replayed = step["replayed_bytes"].as_f64().expect("a recovery");
        assert!(replayed > 0.0, "{step}");
        let (open, first) = (step["open_s"].as_f64(), step["first_commit_s"].as_f64());
        assert!(first.expect("a commit") >= open.expect("an open"), "{step}");
    }
    let files: Vec<String> = place.files();
    assert!(!files.iter().any(|file| file.ends_with("journal")), "{files:?}");
    let text = place.assay(&["report", "run"]).code(0);
    assert!(text.out.contains("Kill by Kill: Commits"), "{}", text.out);
    place.assay(&with(&["check"], SMALL)).code(0);
}

#[test]
fn what_cannot_be_judged_or_killed_is_refused() {
    let place = Place::new();
    for args in [
        &["recovery", "--target", "null:"][..],
        &["recovery", "--time", "1s"],
        &["recovery", "--distances", "1T"],
        &["recovery", "--distances", "1"],
        &["recovery", "--rto", "soon"],
    ] {
        let refused = place.assay(args).code(2);
        assert_eq!(refused.errors().len(), 1, "{args:?}: {}", refused.err);
    }
    let plan = place.assay(&["recovery", "--dry-run"]).code(0);
    assert!(plan.out.contains("checkpoint distances"), "{}", plan.out);
    assert!(place.files().is_empty());
}

#[test]
fn the_journal_of_a_killed_one_is_named_and_goes_with_the_command() {
    let place = Place::new();
    place.assay(&with(&["prepare", "-s", "1"], SMALL)).code(0);
    let args = with(&["recovery", "--time", "60s", "--distances", "8M"], SMALL);
    let journals = || -> Vec<String> {
        let files = place.files().into_iter();
        files.filter(|file| file.contains("journal")).collect()
    };
    place.start(&args).until("journal", || journals().len() == 2).kill();
    let dry = || place.assay(&with(&args, &["--dry-run"])).code(0).err;
    let told = dry();
    let (_, command) = told.split_once("remove with: ").expect("it is named");
    assert!(command.contains("/journal.mark"), "{command}");
    let ran = std::process::Command::new("sh").args(["-c", command]).status();
    assert!(ran.expect("a shell").success(), "{command}");
    assert_eq!(journals(), Vec::<String>::new());
    assert!(!dry().contains("left by"));
}
