//! A JSON tree that keeps the order of its keys and uses fio's layout: two blanks per level, a blank on both sides of
//! the colon, six decimals.

use super::latency::put;
use serde_json::Value;

/// A JSON value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Tree {
    Whole(i64),
    Natural(u64),
    /// Written with six decimals.
    Float(f64),
    Text(String),
    Array(Vec<Tree>),
    Object(Vec<(String, Tree)>),
    /// A foreign value whose numbers stay as they are.
    Other(Value),
}

impl Tree {
    pub(super) fn text(value: impl Into<String>) -> Self {
        Self::Text(value.into())
    }

    pub(super) fn object<const N: usize>(members: [(&str, Self); N]) -> Self {
        let owned = members.into_iter();
        Self::Object(owned.map(|(key, value)| (key.to_owned(), value)).collect())
    }

    /// Adds a member; only objects have members.
    pub(super) fn push(&mut self, key: impl Into<String>, value: Self) {
        if let Self::Object(members) = self {
            members.push((key.into(), value));
        }
    }

    /// The document with a final newline.
    pub(super) fn document(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text.push('\n');
        text
    }

    fn write(&self, text: &mut String, level: usize) {
        match self {
            Self::Whole(value) => put(text, format_args!("{value}")),
            Self::Natural(value) => put(text, format_args!("{value}")),
            // JSON has no infinities; none should occur here.
            Self::Float(value) if !value.is_finite() => text.push_str("0.000000"),
            Self::Float(value) => put(text, format_args!("{value:.6}")),
            Self::Text(value) => text.push_str(&quoted(value)),
            Self::Array(values) => {
                let values = values.iter().map(|value| (None, value));
                bracketed(text, level, ['[', ']'], values);
            }
            Self::Object(members) => {
                let members = members.iter().map(|(key, value)| (Some(key), value));
                bracketed(text, level, ['{', '}'], members);
            }
            Self::Other(Value::Array(values)) => {
                let values: Vec<Self> = values.iter().cloned().map(Self::Other).collect();
                Self::Array(values).write(text, level);
            }
            Self::Other(Value::Object(members)) => {
                let members = members.iter();
                let members = members.map(|(key, value)| (key.clone(), Self::Other(value.clone())));
                Self::Object(members.collect()).write(text, level);
            }
            Self::Other(value) => put(text, format_args!("{value}")),
        }
    }
}

fn quoted(value: &str) -> String {
    Value::from(value).to_string()
}

fn bracketed<'a>(
    text: &mut String,
    level: usize,
    [open, close]: [char; 2],
    members: impl ExactSizeIterator<Item = (Option<&'a String>, &'a Tree)>,
) {
    text.push(open);
    let last = members.len();
    for (i, (key, value)) in members.enumerate() {
        put(text, format_args!("\n{:1$}", "", 2 * (level + 1)));
        if let Some(key) = key {
            put(text, format_args!("{} : ", quoted(key)));
        }
        value.write(text, level + 1);
        if i + 1 < last {
            text.push(',');
        }
    }
    put(text, format_args!("\n{:1$}{close}", "", 2 * level));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_laid_out_as_fios() {
        let mut tree = Tree::object([
            ("fio version", Tree::text("assay-\"0\"\n")),
            ("error", Tree::Whole(-5)),
            ("iops", Tree::Float(2.5)),
            ("bad", Tree::Float(f64::NAN)),
            ("jobs", Tree::Array(vec![Tree::object([])])),
        ]);
        tree.push("native", Tree::Other(serde_json::json!({"a": [1, 2.25, null]})));
        let document = tree.document();
        assert_eq!(
            document,
            "{\n  \"fio version\" : \"assay-\\\"0\\\"\\n\",\n  \"error\" : -5,\n  \"iops\" : 2.500000,\n  \
             \"bad\" : 0.000000,\n  \"jobs\" : [\n    {\n    }\n  ],\n  \"native\" : {\n    \"a\" : [\n      1,\n      \
             2.25,\n      null\n    ]\n  }\n}\n"
        );
        let read: Value = serde_json::from_str(&document).unwrap();
        assert_eq!(read["native"]["a"][1], 2.25);
    }
}
