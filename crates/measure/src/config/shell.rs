//! The grammar of `slob.conf` and `pgio.conf`: one `NAME=VALUE` a line.
//!
//! The originals let a shell execute these files. This is a parser: it accepts every possible assignment and reports
//! everything else as an error, because a silently ignored line changes the workload.

use super::layer::{Given, Layer};
use super::line::{Line, is_blank, split_name};
use super::secrets::{looks_secret, may_hold_secret};
use super::settings::Origin;

pub(super) fn parse(path: &str, lines: &[Line<'_>], layer: &mut Layer) {
    let mut hard_blank = None;
    for line in lines {
        let place = format!("{path}:{}", line.number);
        let text = line.text.trim_matches(is_blank);
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        match assignment(text) {
            Ok(Some(assignment)) => {
                for notice in assignment.notices {
                    layer.notice(&place, notice);
                }
                layer.given.push(Given {
                    name: assignment.name.to_owned(),
                    text: assignment.value,
                    origin: Origin::File(path.to_owned(), line.number),
                    place,
                    scope: None,
                });
            }
            Ok(None) => {}
            Err(problem) => layer.error(&place, problem),
        }
        if line.text.chars().any(|c| is_blank(c) && !c.is_ascii()) {
            hard_blank.get_or_insert(line.number);
        }
    }
    if let Some(number) = hard_blank {
        layer.notice(
            format!("{path}:{number}"),
            "no-break spaces were read as spaces (is the text from a word processor?)",
        );
    }
}

struct Assignment<'a> {
    name: &'a str,
    value: String,
    notices: Vec<String>,
}

/// One line; `None` for `export A B C`, which older files carry.
fn assignment(text: &str) -> Result<Option<Assignment<'_>>, String> {
    let Some((name, rest)) = split_name(text) else {
        return Err(format!("\"{}\" is not NAME=VALUE; start comments with #", shortened(text)));
    };
    let after_name = rest.trim_start_matches(is_blank);
    let Some(value) = after_name.strip_prefix('=') else {
        if is_export_list(text) {
            return Ok(None);
        }
        let way_out = if after_name.starts_with(':') {
            format!("write {name}=VALUE, with = for :")
        } else {
            "start comments with #".to_owned()
        };
        return Err(format!(
            "\"{}\" is not NAME=VALUE; {way_out}",
            if may_hold_secret(text) { name } else { shortened(text) }
        ));
    };
    let value = value.trim_start_matches(is_blank);
    let read = match value.chars().next() {
        Some(quote) if Quote::opening(quote).is_some() => quoted(name, value)?,
        _ => bare(name, value, after_name.len() - 1 != value.len())?,
    };
    Ok(Some(Assignment { name, value: read.value, notices: read.notices }))
}

fn is_export_list(text: &str) -> bool {
    let mut words = text.split(is_blank).filter(|word| !word.is_empty());
    words.next() == Some("export") && words.all(|word| word.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn shortened(text: &str) -> &str {
    match text.char_indices().nth(40) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

struct Read {
    value: String,
    notices: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
enum Quote {
    Single,
    Double,
    TypographicSingle,
    TypographicDouble,
}

impl Quote {
    fn opening(c: char) -> Option<Self> {
        match c {
            '\'' => Some(Self::Single),
            '"' => Some(Self::Double),
            '\u{2018}' | '\u{2019}' | '\u{201a}' | '\u{201b}' => Some(Self::TypographicSingle),
            '\u{201c}' | '\u{201d}' | '\u{201e}' | '\u{201f}' | '\u{ab}' | '\u{bb}' => Some(Self::TypographicDouble),
            _ => None,
        }
    }

    fn is_typographic(self) -> bool {
        matches!(self, Self::TypographicSingle | Self::TypographicDouble)
    }
}

/// A value in quotes; `text` begins with one.
fn quoted(name: &str, text: &str) -> Result<Read, String> {
    let mut chars = text.char_indices();
    let (_, open) = chars.next().expect("the caller saw a quote");
    let style = Quote::opening(open).expect("the caller saw a quote");
    let begin = open.len_utf8();
    // The first quote of any kind that could have been meant as the closing one.
    let closing = text[begin..].char_indices().find_map(|(at, c)| {
        let other = Quote::opening(c)?;
        let same_width = matches!(
            (style, other),
            (Quote::Single | Quote::TypographicSingle, Quote::Single | Quote::TypographicSingle)
                | (Quote::Double | Quote::TypographicDouble, Quote::Double | Quote::TypographicDouble)
        );
        same_width.then_some((begin + at, c, other))
    });
    let Some((end, close, other)) = closing else {
        return Err(format!(
            "the quotation mark of {name} is never closed; write {}",
            corrected(name, text[begin..].split(" #").next().unwrap_or_default())
        ));
    };
    let value = &text[begin..end];
    if style.is_typographic() != other.is_typographic() {
        return Err(format!("mixed quote styles around the value of {name}; write {}", corrected(name, value)));
    }
    rest_is_comment(name, &text[end + close.len_utf8()..])?;
    let mut notices = Vec::new();
    if style.is_typographic() {
        notices.push(format!("typographic quotes around the value of {name} were read as straight quotes"));
    }
    if style != Quote::Single {
        refuse_expansion(name, value)?;
    }
    Ok(Read { value: value.to_owned(), notices })
}

/// A value without quotes; `after_blank` says whether blanks follow the `=`.
fn bare(name: &str, text: &str, after_blank: bool) -> Result<Read, String> {
    if text.is_empty() || (after_blank && text.starts_with('#')) {
        return Ok(Read { value: String::new(), notices: Vec::new() });
    }
    let end = text.find(is_blank).unwrap_or(text.len());
    let value = &text[..end];
    refuse_expansion(name, value)?;
    if let Some(operator) = value.chars().find(|c| ";&|<>()".contains(*c)) {
        return Err(format!(
            "{name} contains \"{operator}\", which a shell would interpret; put the value in quotes if this is part \
             of it"
        ));
    }
    if value.chars().any(|c| Quote::opening(c).is_some()) {
        return Err(format!("there is a quotation mark inside the value of {name}; put quotes around the whole value"));
    }
    rest_is_comment(name, &text[end..])?;
    Ok(Read { value: value.to_owned(), notices: Vec::new() })
}

fn rest_is_comment(name: &str, rest: &str) -> Result<(), String> {
    let trimmed = rest.trim_start_matches(is_blank);
    if trimmed.is_empty() || (trimmed.starts_with('#') && trimmed.len() < rest.len()) {
        return Ok(());
    }
    // A value with blanks in it that lacks its quotes may be a secret's tail.
    let shown = if may_hold_secret(name) { String::new() } else { format!(" (\"{}\")", shortened(trimmed)) };
    Err(format!("there is text after the value of {name}{shown}; start comments with # after a space"))
}

fn refuse_expansion(name: &str, value: &str) -> Result<(), String> {
    match value.chars().find(|c| matches!(c, '$' | '`' | '\\')) {
        None => Ok(()),
        Some(c) => Err(format!(
            "{name} contains \"{c}\", but assay expands and executes nothing in this file; put the value in single \
             quotes if it is meant literally"
        )),
    }
}

/// The line as it should be, the value starred if it looks like a secret's.
fn corrected(name: &str, value: &str) -> String {
    let connects = value.contains(['/', '@', '=']) && may_hold_secret(name);
    if connects || looks_secret(name) {
        format!("{name}=\"***\"")
    } else {
        format!("{name}=\"{}\"", value.trim_end_matches(is_blank))
    }
}
