//! The reference holds: the example file does what it says.

use crate::common::{Place, SMALL, json, with};
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the project")
}

const EXAMPLE: &str = "docs/examples/assay.toml";

#[test]
fn the_example_file_runs() {
    let place = Place::new();
    place.write("assay.toml", &read(EXAMPLE));
    let small = [
        "run",
        "-c",
        "assay.toml",
        "--time",
        "1s",
        "--warmup",
        "0",
        "-o",
        "run",
        "-s",
        "2",
    ];
    place.assay(&with(&small, SMALL)).code(0);
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["run"]["label"], "nightly, 20 % updates");
    assert_eq!(record["run"]["sessions"], 4);
    let shown = place.assay(&["config", "show", "-c", "assay.toml"]).code(0);
    for name in ["CACHE_MB", "UPDATE_PCT", "SEED"] {
        let line = shown
            .out
            .lines()
            .find(|line| line.contains(name))
            .expect(name);
        assert!(line.contains("file assay.toml:"), "{line}");
    }
}

#[test]
fn what_the_example_file_leaves_out_is_there_with_its_default() {
    let place = Place::new();
    place.write("assay.toml", &read(EXAMPLE));
    // A line that is a setting but for its mark, told from a sentence by its `=`.
    let is_setting = |line: &str| {
        line.split(" = ")
            .next()
            .is_some_and(|name| !name.contains(' '))
    };
    let text = read(EXAMPLE);
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = ") && is_setting(setting) => setting,
        _ => line,
    });
    place.write("all.toml", &lines.collect::<Vec<_>>().join("\n"));
    for target in ["native:./assay-data", "postgres://me@db1/bench"] {
        let show = |file: &str| {
            let words = [
                "config", "show", "--format", "json", "-c", file, "--target", target,
            ];
            json(&place.assay(&words).code(0).out)
        };
        let (given, all) = (show("assay.toml"), show("all.toml"));
        let mut commented = 0;
        for (name, setting) in all.as_object().expect("settings") {
            assert_eq!(setting["value"], given[name]["value"], "{target}: {name}");
            commented += usize::from(setting["origin"] != given[name]["origin"]);
        }
        assert!(commented > 10, "{target}: {commented}");
    }
}
