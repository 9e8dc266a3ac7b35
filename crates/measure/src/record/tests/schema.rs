//! The JSON Schema of a record, from the types that serde writes and their comments. A test holds the published one to
//! it, and writes that anew with `INSTA_UPDATE=always cargo test -p assay-measure --lib schema`.

use crate::histogram::Histogram;
use crate::record::{Figure, Record, SCHEMA, Truth};
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::Value;
use std::borrow::Cow;
use std::fs;
use std::path::Path;

/// There is none, for this reason.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "the shape of what a figure and a verdict write themselves")]
struct Na {
    na: String,
}

/// The types that write themselves.
macro_rules! by_hand {
    ($name:ident, $schema:expr) => {
        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                stringify!($name).into()
            }

            fn json_schema(generator: &mut SchemaGenerator) -> Schema {
                $schema(generator)
            }
        }
    };
}

by_hand!(Figure, |generator: &mut SchemaGenerator| json_schema!({
    "description": "A number, or why there is none.",
    "anyOf": [{"type": "number"}, generator.subschema_for::<Na>()]
}));
by_hand!(Truth, |generator: &mut SchemaGenerator| json_schema!({
    "description": "Whether it holds, or why that is unknown.",
    "anyOf": [{"type": "boolean"}, generator.subschema_for::<Na>()]
}));
by_hand!(Histogram, |generator: &mut SchemaGenerator| json_schema!({
    "type": "object",
    "description": "Durations: 64 slots for each power of two of ns; `slots` has slot and count of the slots that are not empty.",
    "properties": {
        "count": generator.subschema_for::<u64>(), "sum_ns": generator.subschema_for::<u64>(),
        "min_ns": generator.subschema_for::<u64>(), "max_ns": generator.subschema_for::<u64>(),
        "slots": generator.subschema_for::<Vec<(u64, u64)>>()
    }
}));

/// A comment as a sentence: a link to another item is its name. What a missing key stands for is said once for all.
fn plain(schema: &mut Schema) {
    schema.remove("default");
    if let Some(Value::String(text)) = schema.get_mut("description") {
        let mut parts = text.split("](");
        let first = parts.next().unwrap_or_default().to_owned();
        let rest = parts.map(|part| part.split_once(')').map_or("", |(_, rest)| rest));
        let whole = rest.fold(first, |text, rest| text + rest).replace("[`", "`").replace("`]", "`");
        *text = whole.split_whitespace().collect::<Vec<_>>().join(" ");
    }
}

fn made() -> String {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(plain));
    let mut schema = settings.into_generator().into_root_schema_for::<Record>();
    schema.insert("title".to_owned(), format!("A record of assay ({SCHEMA})").into());
    schema.insert("required".to_owned(), vec!["schema", "kind", "run", "metrics"].into());
    let version = json_schema!({"const": SCHEMA, "description": "The version of this shape."});
    *schema.pointer_mut("/properties/schema").expect("a version") = version.into();
    serde_json::to_string_pretty(&schema).expect("plain data") + "\n"
}

#[test]
fn the_published_schema_is_what_the_types_say() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/record.schema.json");
    let made = made();
    if std::env::var_os("INSTA_UPDATE").is_some_and(|value| value == "always") {
        fs::write(&path, made).expect("written");
    } else {
        let again = "INSTA_UPDATE=always cargo test -p assay-measure --lib schema";
        assert!(fs::read_to_string(&path).expect("the schema") == made, "write it anew: {again}");
    }
}
