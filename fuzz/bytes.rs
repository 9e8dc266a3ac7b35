//! Edits of a JSON tree as bytes: so that what a fuzzer tries is nearly always a tree, and gets deep.

use crate::edit::{Edit, replacement};

/// Each edit is a number of steps, two bytes a step, and what is put in.
pub(crate) fn edits(mut bytes: &[u8]) -> Vec<Edit> {
    let mut found = Vec::new();
    while let Some((head, rest)) = bytes.split_first() {
        let steps = 1 + (head % 8) as usize;
        let Some((way, rest)) = rest.split_at_checked(2 * steps) else {
            break;
        };
        let way = way.chunks_exact(2);
        found.push(Edit {
            way: way.map(|two| u16::from_le_bytes([two[0], two[1]])).collect(),
            with: replacement(head / 8),
        });
        bytes = rest;
    }
    found
}
