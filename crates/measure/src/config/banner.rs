//! The banner SLOB prints at the start of a run, pasted into a file: `NAME: value` lines.

use super::layer::{Given, Layer};
use super::line::{Line, is_blank, split_name};
use super::settings::Origin;

/// Words that begin SLOB's own log lines; such lines carry no setting.
const LOG_WORDS: &[&str] = &["NOTIFY", "WARNING", "FATAL", "ABORT"];

pub(super) fn parse(path: &str, lines: &[Line<'_>], layer: &mut Layer) {
    for line in lines {
        let place = format!("{path}:{}", line.number);
        let text = line.text.trim_matches(is_blank);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let Some((name, rest)) = split_name(text) else {
            layer.error(place, "the line is not NAME: value; start comments with #");
            continue;
        };
        let rest = rest.trim_start_matches(is_blank);
        if LOG_WORDS.contains(&name) {
            continue;
        }
        let Some(value) = rest.strip_prefix(':').or_else(|| rest.strip_prefix('=')) else {
            layer.error(place, "the line is not NAME: value; start comments with #");
            continue;
        };
        layer.given.push(Given {
            name: name.to_owned(),
            text: value_of(value.trim_matches(is_blank)).to_owned(),
            origin: Origin::File(path.to_owned(), line.number),
            place,
            scope: None,
        });
    }
}

/// The value without its quotes and without the remark in parentheses that
/// SLOB adds (`SCALE: 10000 (10000 blocks)`).
fn value_of(text: &str) -> &str {
    for quote in ['"', '\''] {
        if let Some(rest) = text.strip_prefix(quote)
            && let Some(end) = rest.rfind(quote)
        {
            return &rest[..end];
        }
    }
    match text.split_once(" (") {
        Some((value, remark)) if remark.ends_with(')') => value.trim_end_matches(is_blank),
        _ => text,
    }
}
