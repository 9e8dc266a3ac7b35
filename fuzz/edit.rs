//! Edits of a JSON tree: a node found by numbers, and what takes its place.

use serde_json::{Value, json};

/// An edit: which node, by numbers that are taken modulo what there is, and what becomes of it.
#[derive(Clone, Debug)]
pub(crate) struct Edit {
    /// The way down.
    pub(crate) way: Vec<u16>,
    /// What takes the node's place; `None` removes it, and of a list all that follows.
    pub(crate) with: Option<Value>,
}

/// What an edit puts in, by its number from 0.
pub(crate) fn replacement(kind: u8) -> Option<Value> {
    let values = [
        Value::Null,
        json!([]),
        json!({}),
        json!({"na": "edited"}),
        json!(""),
        json!("\u{1b}[2J=1+1,\"\n\u{202e}"),
        json!(true),
        json!(0),
        json!(-1),
        json!(u64::MAX),
        json!(1e308),
        json!(-1e308),
        json!(5e-324),
        json!(0.5),
    ];
    values.get(kind as usize % (values.len() + 1)).cloned()
}

/// Walks down as far as the way and the tree go, and edits what is there.
pub(crate) fn apply(node: &mut Value, edit: &Edit) {
    walk(node, &edit.way, edit.with.as_ref());
}

fn walk(node: &mut Value, way: &[u16], with: Option<&Value>) {
    let Some((step, rest)) = way.split_first() else {
        return;
    };
    let ends = |child: &Value| rest.is_empty() || !(child.is_array() || child.is_object());
    match node {
        Value::Array(list) if !list.is_empty() => {
            let at = *step as usize % list.len();
            match with {
                _ if !ends(&list[at]) => walk(&mut list[at], rest, with),
                Some(with) => list[at] = with.clone(),
                None => list.truncate(at),
            }
        }
        Value::Object(map) if !map.is_empty() => {
            let name = map.keys().nth(*step as usize % map.len()).cloned();
            let name = name.unwrap_or_default();
            match (map.get_mut(&name), with) {
                (Some(child), _) if !ends(child) => walk(child, rest, with),
                (Some(child), Some(with)) => *child = with.clone(),
                _ => {
                    map.remove(&name);
                }
            }
        }
        _ => {}
    }
}
