//! `cargo xtask schema`: the JSON Schema of a record, read from the types that serde writes and their comments.
//!
//! It knows what those types use and no more: named fields, plain enums, `rename`, `rename_all` and
//! `skip_serializing_if`. A test of the program holds real records to what it made.

use anyhow::{Context, Result, bail};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// Where the schema is kept, from the root of the tree.
pub(crate) const FILE: &str = "docs/reference/record.schema.json";
/// Where the types are.
const TYPES: [&str; 3] =
    ["crates/measure/src/record", "crates/measure/src/snapshot.rs", "crates/measure/src/snapshot/"];

/// A type as it was read: its comment, and its fields or words.
struct Type {
    doc: String,
    shape: Shape,
}

enum Shape {
    Fields(Vec<Field>),
    Words(Vec<String>),
}

struct Field {
    key: String,
    doc: String,
    holds: String,
    may_be_left_out: bool,
}

/// The schema of the record, from the sources by path.
///
/// # Errors
/// When a field has a type that this does not know.
pub(crate) fn of(files: &BTreeMap<String, String>) -> Result<String> {
    let mut types = BTreeMap::new();
    for (path, text) in files {
        if TYPES.iter().any(|place| path.starts_with(place)) && !path.ends_with("tests.rs") {
            read(text, &mut types);
        }
    }
    let mut defs = by_hand();
    let mut left = vec!["Record".to_owned()];
    let mut seen = BTreeSet::new();
    while let Some(name) = left.pop() {
        if defs.contains_key(&name) || !seen.insert(name.clone()) {
            continue;
        }
        let found = types.get(&name).with_context(|| format!("{name} is no type of a record"))?;
        defs.insert(name, described(found, &mut left)?);
    }
    let mut record = defs.remove("Record").context("the record")?;
    let schema = json!({"const": "assay/2", "description": "The version of this shape."});
    record["properties"]["schema"] = schema;
    record["required"] = json!(["schema", "kind", "run", "metrics"]);
    record["$schema"] = json!("https://json-schema.org/draft/2020-12/schema");
    record["title"] = json!("A record of assay (assay/2)");
    record["$defs"] = Value::Object(defs);
    Ok(serde_json::to_string_pretty(&record)? + "\n")
}

/// The types that write themselves.
fn by_hand() -> Map<String, Value> {
    let na = json!({
        "type": "object", "properties": {"na": {"type": "string"}}, "required": ["na"],
        "description": "There is none, for this reason."
    });
    let of = |kind: &str, about: &str| json!({"anyOf": [{"type": kind}, {"$ref": "#/$defs/Na"}], "description": about});
    let count = json!({"type": "integer", "minimum": 0});
    let histogram = json!({
        "type": "object",
        "description": "Durations: 64 slots for each power of two of ns; `slots` has slot and count of those that are not empty.",
        "properties": {
            "count": count, "sum_ns": count, "min_ns": count, "max_ns": count,
            "slots": {"type": "array", "items": {"type": "array", "items": count}}
        }
    });
    let parts = json!({"type": "object", "description": "What only one kind of test has, by the kind's name."});
    let all = [
        ("Na", na),
        ("Figure", of("number", "A number, or why there is none.")),
        ("Truth", of("boolean", "Whether it holds, or why nobody can say.")),
        ("Histogram", histogram),
        ("Parts", parts),
    ];
    all.map(|(name, value)| (name.to_owned(), value)).into_iter().collect()
}

fn described(found: &Type, left: &mut Vec<String>) -> Result<Value> {
    let fields = match &found.shape {
        Shape::Words(words) => return Ok(json!({"enum": words, "description": found.doc})),
        Shape::Fields(fields) => fields,
    };
    let mut properties = Map::new();
    for field in fields {
        let mut value = typed(&field.holds, field.may_be_left_out, left).with_context(|| field.key.clone())?;
        value["description"] = json!(field.doc);
        properties.insert(field.key.clone(), value);
    }
    Ok(json!({"type": "object", "description": found.doc, "properties": properties}))
}

/// The schema of a value of this type; `None` is left out of a field that may be, else it is `null`.
fn typed(name: &str, may_be_left_out: bool, left: &mut Vec<String>) -> Result<Value> {
    let inside = |outer: &str| name.strip_prefix(outer)?.strip_suffix('>');
    if let Some(one) = inside("Option<") {
        let one = typed(one, false, left)?;
        return Ok(match may_be_left_out {
            true => one,
            false => json!({"anyOf": [one, {"type": "null"}]}),
        });
    }
    if let Some(item) = inside("Vec<").or_else(|| inside("BTreeSet<")) {
        return Ok(json!({"type": "array", "items": typed(item, false, left)?}));
    }
    if let Some((_, value)) = inside("BTreeMap<").and_then(|both| both.split_once(", ")) {
        return Ok(json!({"type": "object", "additionalProperties": typed(value, false, left)?}));
    }
    if let Some(items) = name.strip_prefix('(').and_then(|name| name.strip_suffix(')')) {
        let items: Result<Vec<Value>> = items.split(", ").map(|item| typed(item, false, left)).collect();
        return Ok(json!({"type": "array", "prefixItems": items?}));
    }
    Ok(match name {
        "String" => json!({"type": "string"}),
        "bool" => json!({"type": "boolean"}),
        "f64" => json!({"type": "number"}),
        "u8" | "u32" | "u64" => json!({"type": "integer", "minimum": 0}),
        _ if name.chars().all(char::is_alphanumeric) => {
            left.push(name.to_owned());
            json!({"$ref": format!("#/$defs/{name}")})
        }
        _ => bail!("the type {name}"),
    })
}

/// The types of one file, which rustfmt has laid out: a comment, an attribute and a field have lines of their own.
fn read(text: &str, types: &mut BTreeMap<String, Type>) {
    let (mut doc, mut attributes) = (Vec::new(), String::new());
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let line = line.trim_end();
        let begins = |word: &str| line.strip_prefix(word)?.strip_suffix(" {");
        if let Some(comment) = line.strip_prefix("/// ") {
            doc.push(comment.to_owned());
        } else if line.starts_with("#[") || line.starts_with("    ") || line == ")]" {
            attributes.push_str(line);
        } else {
            let body = |lines: &mut std::str::Lines<'_>| -> Vec<String> {
                lines.take_while(|line| *line != "}").map(|line| line.trim().to_owned()).collect()
            };
            let shape = match (begins("pub struct "), begins("pub enum ")) {
                (Some(name), _) => Some((name, Shape::Fields(fields(&body(&mut lines))))),
                (_, Some(name)) => Some((name, Shape::Words(words(&body(&mut lines))))),
                _ => None,
            };
            let about = cleaned(&std::mem::take(&mut doc));
            if let Some((name, shape)) = shape.filter(|_| attributes.contains("Serialize")) {
                types.insert(name.to_owned(), Type { doc: about, shape });
            }
            attributes.clear();
        }
    }
}

fn fields(lines: &[String]) -> Vec<Field> {
    let (mut doc, mut attributes) = (Vec::new(), String::new());
    let mut found = Vec::new();
    for line in lines {
        if let Some(comment) = line.strip_prefix("/// ") {
            doc.push(comment.to_owned());
        } else if line.starts_with("#[") {
            attributes.push_str(line);
        } else if let Some((name, holds)) = line.strip_prefix("pub ").and_then(|line| line.split_once(": ")) {
            let renamed = attributes.split_once("rename = \"").and_then(|(_, rest)| rest.split_once('"'));
            found.push(Field {
                key: renamed.map_or(name, |(name, _)| name).to_owned(),
                doc: cleaned(&std::mem::take(&mut doc)),
                holds: holds.trim_end_matches(',').to_owned(),
                may_be_left_out: attributes.contains("skip_serializing_if"),
            });
            attributes.clear();
        }
    }
    found
}

/// The words of a plain enum, in snake case as serde writes them.
fn words(lines: &[String]) -> Vec<String> {
    let names = lines.iter().filter_map(|line| line.strip_suffix(','));
    let names = names.filter(|name| name.chars().all(char::is_alphanumeric));
    let snake = |name: &str| {
        let parts = name.chars().enumerate().map(|(at, letter)| match letter.is_uppercase() && at > 0 {
            true => format!("_{}", letter.to_ascii_lowercase()),
            false => letter.to_ascii_lowercase().to_string(),
        });
        parts.collect::<String>()
    };
    names.map(snake).collect()
}

/// A comment as a sentence: a link to another item is its name.
fn cleaned(lines: &[String]) -> String {
    let text = lines.join(" ").replace("[`", "`").replace("`]", "`");
    let mut out = String::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once("`(") {
        out.push_str(before);
        out.push('`');
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schema_in_the_documents_is_what_the_types_say() {
        let root = crate::workspace_root();
        let tree = crate::tidy::Tree::load(&root).expect("the tree");
        let kept = std::fs::read_to_string(root.join(FILE)).unwrap_or_default();
        let made = of(&tree.files).expect("a schema");
        assert!(kept == made, "write it anew: cargo xtask schema");
    }
}
