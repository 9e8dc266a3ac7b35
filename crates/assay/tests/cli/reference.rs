//! The reference holds: records of every kind are what the published schema says, and the example file does what it says.

use crate::common::{Place, SMALL, json, with};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    std::fs::read_to_string(root().join(path)).expect("a file of the project")
}

/// What of a value the schema does not allow, or does not name: stricter than what is published, which lets readers
/// meet keys of later versions. It knows the words that our schema uses.
fn wrong(schema: &Value, whole: &Value, value: &Value, at: &str) -> Vec<String> {
    // A part is its kind's own.
    if schema == &Value::Bool(true) {
        return Vec::new();
    }
    if let Some(name) = schema["$ref"].as_str() {
        let pointer = name.strip_prefix('#').expect("a place in the schema");
        let target = whole.pointer(pointer).expect("a definition");
        return wrong(target, whole, value, at);
    }
    if let Some(choices) = schema["anyOf"].as_array().or(schema["oneOf"].as_array()) {
        let fits = |one: &Value| wrong(one, whole, value, at).is_empty();
        return if choices.iter().any(fits) {
            Vec::new()
        } else {
            vec![format!("{at}: {value} is none of {choices:?}")]
        };
    }
    let is = |kind: &Value| match kind.as_str().expect("a type") {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "integer" => value.is_u64(),
        "number" => value.is_number(),
        other => panic!("{at}: what is {other}?"),
    };
    let is_right = match (&schema["type"], schema.get("const")) {
        (kind, Some(word)) => word == value && (kind.is_null() || is(kind)),
        (Value::Array(kinds), None) => kinds.iter().any(is),
        (kind, None) => is(kind),
    };
    if !is_right {
        return vec![format!("{at}: {value} is no {schema}")];
    }
    if let Some(items) = value.as_array() {
        let of = |n: usize| schema["prefixItems"].get(n).unwrap_or(&schema["items"]);
        let each = items.iter().enumerate();
        return each.flat_map(|(n, item)| wrong(of(n), whole, item, &format!("{at}/{n}"))).collect();
    }
    let mut all = Vec::new();
    for key in schema["required"].as_array().into_iter().flatten() {
        if value.get(key.as_str().expect("a key")).is_none() {
            all.push(format!("{at}: no {key}"));
        }
    }
    for (key, value) in value.as_object().into_iter().flatten() {
        let at = format!("{at}/{key}");
        let is_number = key.bytes().all(|byte| byte.is_ascii_digit());
        let numbered = schema["patternProperties"].get(r"^\d+$").filter(|_| is_number);
        let any = schema.get("additionalProperties").filter(|any| **any != Value::Bool(false));
        match schema["properties"].get(key).or(numbered).or(any) {
            Some(schema) => all.extend(wrong(schema, whole, value, &at)),
            None => all.push(format!("{at}: the schema does not name it")),
        }
    }
    all
}

fn schema() -> Value {
    json(&read("docs/reference/record.schema.json"))
}

fn assert_fits(name: &str, record: &Value) {
    let schema = schema();
    let wrong = wrong(&schema, &schema, record, "");
    assert!(wrong.is_empty(), "{name}: {wrong:#?}");
}

#[test]
fn records_of_every_kind_are_what_the_schema_says_and_hold_nothing_that_it_does_not_name() {
    let place = Place::new();
    let run = ["run", "--time", "1", "--warmup", "0", "--at", "0s", "true", "-o", "slob"];
    let io = "io --name=a --filename=f --size=4m --rw=randrw --bs=8k --time_based --runtime=1 -o storage";
    let sweep = "sweep --target null: --sessions 1,2 --time 1 --warmup 0 -o sweep";
    let commands: Vec<Vec<&str>> = vec![
        with(&run, SMALL),
        io.split(' ').collect(),
        sweep.split(' ').collect(),
        "cpu --time 2s -o cpu".split(' ').collect(),
        "sync --time 2s -o sync".split(' ').collect(),
    ];
    for command in commands {
        let done = place.assay(&command).code(0);
        let name = command.last().filter(|_| command[0] != "run").unwrap_or(&"slob");
        let record = json(&place.read(&format!("{name}/record.json")));
        assert_eq!(record["kind"], **name, "{}", done.err);
        assert_fits(name, &record);
    }
    // Servers, kills and imports take more than a second: those that are frozen, in today's shape.
    let mut kinds = std::collections::BTreeSet::new();
    for entry in std::fs::read_dir(root().join("testdata/frozen")).expect("records") {
        let path = entry.expect("an entry").path().join("record.json");
        if !path.is_file() {
            continue;
        }
        let path = path.to_str().expect("a plain name");
        let record = json(&place.assay(&["report", path, "--format", "json"]).code(0).out);
        assert_fits(path, &record);
        kinds.insert(record["kind"].as_str().expect("a kind").to_owned());
    }
    for kind in ["recovery", "instance", "network", "orders", "transactions", "ping", "redo"] {
        assert!(kinds.contains(kind), "no record of {kind} among {kinds:?}");
    }
}

#[test]
fn a_key_that_the_schema_does_not_name_and_a_figure_that_is_none_are_found() {
    let mut record = serde_json::json!({"schema": "assay/2", "kind": "x", "run": {"id": "1"}, "metrics": []});
    assert_fits("the least", &record);
    record["run"]["colour"] = "red".into();
    record["interval"] = serde_json::json!({"elapsed_s": "30"});
    let schema = schema();
    let found = wrong(&schema, &schema, &record, "");
    assert_eq!(found.len(), 2, "{found:?}");
}

const EXAMPLE: &str = "docs/examples/assay.toml";

#[test]
fn the_example_file_runs() {
    let place = Place::new();
    place.write("assay.toml", &read(EXAMPLE));
    let small = ["run", "-c", "assay.toml", "--time", "1s", "--warmup", "0", "-o", "run", "-s", "2"];
    place.assay(&with(&small, SMALL)).code(0);
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["run"]["label"], "nightly, 20 % updates");
    assert_eq!(record["run"]["sessions"], 4);
    let shown = place.assay(&["config", "show", "-c", "assay.toml"]).code(0);
    for name in ["CACHE_MB", "UPDATE_PCT", "SEED"] {
        let line = shown.out.lines().find(|line| line.contains(name)).expect(name);
        assert!(line.contains("file assay.toml:"), "{line}");
    }
}

#[test]
fn what_the_example_file_leaves_out_is_there_with_its_default() {
    let place = Place::new();
    place.write("assay.toml", &read(EXAMPLE));
    // A line that is a setting but for its mark, told from a sentence by its `=`.
    let is_setting = |line: &str| line.split(" = ").next().is_some_and(|name| !name.contains(' '));
    let text = read(EXAMPLE);
    let lines = text.lines().map(|line| match line.strip_prefix("# ") {
        Some(setting) if setting.contains(" = ") && is_setting(setting) => setting,
        _ => line,
    });
    place.write("all.toml", &lines.collect::<Vec<_>>().join("\n"));
    for target in ["native:./assay-data", "postgres://me@db1/bench"] {
        let show = |file: &str| {
            let words = ["config", "show", "--format", "json", "-c", file, "--target", target];
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
