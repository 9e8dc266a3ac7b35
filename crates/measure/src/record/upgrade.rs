//! Records of earlier schemas, brought into the shape of today's. They are read for good.

use super::SCHEMA;
use serde_json::{Map, Value, json};

/// The schema before this one.
const FIRST: &str = "assay/1";
/// What a sweep wrote in place of a record then.
const SWEEP: &str = "assay-sweep/1";
/// What stood at the top of a record of [`FIRST`] and is of the instance now.
const INSTANCE: [&str; 15] = [
    "load_profile",
    "efficiency",
    "stats",
    "gauges",
    "time_model",
    "wait_classes",
    "events",
    "layers",
    "scan",
    "reads",
    "io_functions",
    "paths",
    "io_profile",
    "ash",
    "server",
];
/// What stood at the top and is a kind's own part now.
const PARTS: [&str; 3] = ["recovery", "sync", "storage"];
/// Of which kind an import was by its tool, where it had no part of its own; any other was of [`WORKLOAD`].
const TOOLS: [(&str, &str); 9] = [
    ("awr", "instance"),
    ("statspack", "instance"),
    ("iperf3", "network"),
    ("ping", "ping"),
    ("oratcptest", "redo"),
    ("stress-ng", "cpu"),
    ("swingbench", "orders"),
    ("pgbench", "transactions"),
    ("sysbench", "transactions"),
];
/// The kind of a run.
const WORKLOAD: &str = "slob";

/// Brings a record of an earlier schema into the shape of [`SCHEMA`]; any other value is left as it is.
pub fn upgrade(record: &mut Value) {
    let Some(top) = record.as_object_mut() else {
        return;
    };
    match top.get("schema").and_then(Value::as_str) {
        Some(FIRST) => {}
        Some(SWEEP) => return sweep(top),
        _ => return,
    }
    top.insert("schema".to_owned(), SCHEMA.into());
    let kind = kind(top);
    top.insert("kind".to_owned(), kind.into());
    for (place, names) in [("instance", &INSTANCE[..]), ("parts", &PARTS[..])] {
        let moved = names.iter().filter_map(|name| top.remove_entry(*name));
        let moved: Map<String, Value> = moved.collect();
        top.insert(place.to_owned(), Value::Object(moved));
    }
    if let Some(mut import) = top.remove("import") {
        let values = import.get_mut("values").and_then(Value::as_array_mut);
        for at in values.into_iter().flatten().filter_map(|value| value.get_mut("at")) {
            if let Some(pointer) = at.as_str().and_then(moved) {
                *at = pointer.into();
            }
        }
        top.insert("provenance".to_owned(), import);
    }
}

/// A sweep had no envelope: what it said of itself is its run now, but for what was asked of it.
fn sweep(top: &mut Map<String, Value>) {
    let Some(Value::Object(mut run)) = top.remove("sweep") else {
        return;
    };
    let asked = ["target", "axes", "goal_p99_us"].map(|name| run.remove_entry(name));
    let found = ["rules", "steps", "curves"].map(|name| top.remove_entry(name));
    let part: Map<String, Value> = asked.into_iter().chain(found).flatten().collect();
    let target = part.get("target").and_then(Value::as_str);
    let engine = target.and_then(|target| target.split(':').next());
    run.insert("engine".to_owned(), engine.unwrap_or_default().into());
    let begin = run.get("started").cloned().unwrap_or("".into());
    top.insert("schema".to_owned(), SCHEMA.into());
    top.insert("kind".to_owned(), "sweep".into());
    top.insert("run".to_owned(), Value::Object(run));
    top.insert("interval".to_owned(), json!({"begin": begin}));
    top.insert("parts".to_owned(), json!({"sweep": part}));
}

/// What a record of [`FIRST`] did not say: the sort of test.
fn kind(top: &Map<String, Value>) -> &'static str {
    if let Some(part) = PARTS.into_iter().find(|part| top.contains_key(*part)) {
        return part;
    }
    let tool = top.get("import").and_then(|import| import.get("tool"));
    let tool = tool.and_then(Value::as_str).unwrap_or_default();
    let found = TOOLS.iter().find(|(name, _)| *name == tool);
    found.map_or(WORKLOAD, |(_, kind)| kind)
}

/// Where the figure at this JSON pointer of a record of [`FIRST`] stands now; `None` if it did not move.
fn moved(pointer: &str) -> Option<String> {
    let first = pointer.strip_prefix('/')?.split('/').next()?;
    let place = match first {
        _ if INSTANCE.contains(&first) => "instance",
        _ if PARTS.contains(&first) => "parts",
        _ => return None,
    };
    Some(format!("/{place}{pointer}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_moved_is_found_where_it_is_now_and_pointers_follow() {
        let mut record = json!({
            "schema": "assay/1",
            "run": {"id": "a"},
            "load_profile": [{"name": "x"}],
            "sync": {"path": "p"},
            "import": {"tool": "awr", "values": [{"at": "/load_profile/0/per_s"}, {"at": "/interval/elapsed_s"}, {"at": ""}]},
        });
        upgrade(&mut record);
        assert_eq!(
            record,
            json!({
                "schema": SCHEMA,
                "kind": "sync",
                "run": {"id": "a"},
                "instance": {"load_profile": [{"name": "x"}]},
                "parts": {"sync": {"path": "p"}},
                "provenance": {"tool": "awr", "values": [
                    {"at": "/instance/load_profile/0/per_s"},
                    {"at": "/interval/elapsed_s"},
                    {"at": ""},
                ]},
            })
        );
        for (import, kind) in [(json!({"tool": "ping"}), "ping"), (json!(null), WORKLOAD)] {
            let mut record = json!({"schema": FIRST, "import": import});
            upgrade(&mut record);
            assert_eq!(record["kind"], kind);
        }
        let before = record.clone();
        upgrade(&mut record);
        assert_eq!(record, before);
    }

    #[test]
    fn a_sweep_becomes_a_record_of_its_own_kind() {
        let mut swept = json!({
            "schema": SWEEP,
            "sweep": {"id": "a", "started": "then", "target": "native:data", "axes": [], "goal_p99_us": 5},
            "rules": {"knee": "x"},
            "steps": [1],
            "curves": [2],
            "advice": [3],
        });
        upgrade(&mut swept);
        assert_eq!(
            swept,
            json!({
                "schema": SCHEMA,
                "kind": "sweep",
                "run": {"id": "a", "started": "then", "engine": "native"},
                "interval": {"begin": "then"},
                "advice": [3],
                "parts": {"sweep": {
                    "target": "native:data",
                    "axes": [],
                    "goal_p99_us": 5,
                    "rules": {"knee": "x"},
                    "steps": [1],
                    "curves": [2],
                }},
            })
        );
        let mut without = json!({"schema": SWEEP});
        upgrade(&mut without);
        assert_eq!(without["schema"], SWEEP, "no sweep at all: it is refused");
    }
}
