//! One line of a configuration file, whatever its grammar: its name and what counts as blank.

/// One line of a file.
pub(super) struct Line<'a> {
    /// From 1.
    pub number: usize,
    /// Without line end and byte order mark.
    pub text: &'a str,
}

/// Splits a leading NAME off a line; an `export` before it is skipped.
pub(super) fn split_name(text: &str) -> Option<(&str, &str)> {
    let text = text.trim_start_matches(is_blank);
    let text = match text.strip_prefix("export") {
        Some(rest) if rest.starts_with(is_blank) => rest.trim_start_matches(is_blank),
        _ => text,
    };
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(text.len());
    let name = &text[..end];
    let starts_well = name.chars().next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    starts_well.then(|| (name, &text[end..]))
}

/// Blank to the eye: also the no-break spaces that word processors leave behind.
pub(super) fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\u{a0}' | '\u{202f}' | '\u{2007}')
}
