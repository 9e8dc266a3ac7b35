//! A configuration file's text: lines, and which of the grammars it is written in.

use super::layer::Layer;
use super::line::{Line, is_blank, split_name};
use super::{banner, shell, toml_file};

/// The grammars a file can be written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `NAME=VALUE` lines of SLOB.
    SlobConf,
    /// The same grammar with pgio's names (`NUM_SCHEMAS`, `NUM_THREADS`).
    PgioConf,
    /// `NAME: value` lines as SLOB prints them at the start of a run.
    Banner,
    /// assay's own: TOML with parameter names as keys.
    Toml,
}

/// Reads a file of any of the grammars. Never fails: the layer's problems list the errors.
#[must_use]
pub fn parse(path: &str, bytes: &[u8]) -> Layer {
    let mut layer = Layer::default();
    let lines = lines(path, bytes, &mut layer);
    match recognise(path, &lines) {
        Format::SlobConf => shell::parse(path, &lines, &mut layer),
        Format::PgioConf => {
            shell::parse(path, &lines, &mut layer);
            super::pgio::translate(path, &mut layer);
        }
        Format::Banner => banner::parse(path, &lines, &mut layer),
        Format::Toml => toml_file::parse(path, bytes, &mut layer),
    }
    layer
}

/// Which grammar a file is written in.
#[must_use]
pub fn format_of(path: &str, bytes: &[u8]) -> Format {
    recognise(path, &lines(path, bytes, &mut Layer::default()))
}

/// Copies the file with every secret's value replaced by `***`.
#[must_use]
pub fn redact(path: &str, bytes: &[u8], is_secret: &dyn Fn(&str) -> bool) -> String {
    let mut ignored = Layer::default();
    let lines = lines(path, bytes, &mut ignored);
    match recognise(path, &lines) {
        Format::SlobConf | Format::PgioConf | Format::Banner => redact_lines(&lines, is_secret),
        Format::Toml => toml_file::redact(bytes, is_secret),
    }
}

fn redact_lines(lines: &[Line<'_>], is_secret: &dyn Fn(&str) -> bool) -> String {
    let mut out = String::new();
    for line in lines {
        // A commented assignment may hold a secret as well.
        let body = line.text.trim_start_matches(|c| is_blank(c) || c == '#');
        let name = split_name(body).map_or("", |(name, _)| name);
        match line.text.find(['=', ':']) {
            Some(sign) if is_secret(name) => {
                out.push_str(&line.text[..=sign]);
                out.push_str("***");
            }
            Some(sign) if !name.is_empty() => {
                let (said, value) = line.text.split_at(sign + 1);
                out.push_str(said);
                out.push_str(&super::mask(name, value));
            }
            _ => out.push_str(&super::mask_url_password(line.text)),
        }
        out.push('\n');
    }
    // What follows the last line end is no line.
    if lines.last().is_some_and(|line| line.text.is_empty()) {
        out.pop();
    }
    out
}

fn lines<'a>(path: &str, bytes: &'a [u8], layer: &mut Layer) -> Vec<Line<'a>> {
    let (bytes, marked) = match bytes.strip_prefix(b"\xEF\xBB\xBF") {
        Some(rest) => (rest, true),
        None => (bytes, false),
    };
    if marked {
        layer.notice(format!("{path}:1"), "a UTF-8 byte order mark was skipped");
    }
    let mut out = Vec::new();
    let mut returns: Option<usize> = None;
    for (index, raw) in bytes.split(|b| *b == b'\n').enumerate() {
        let number = index + 1;
        let mut raw = raw;
        while let Some(rest) = raw.strip_suffix(b"\r") {
            raw = rest;
            returns.get_or_insert(number);
        }
        match std::str::from_utf8(raw) {
            Ok(text) => out.push(Line { number, text }),
            Err(error) => layer.error(
                format!("{path}:{number}"),
                format!("byte {} of the line is not UTF-8; save the file as UTF-8", error.valid_up_to() + 1),
            ),
        }
    }
    if let Some(number) = returns {
        layer.notice(
            format!("{path}:{number}"),
            "carriage returns at line ends were removed (is the file from Windows?)",
        );
    }
    out
}

fn recognise(path: &str, lines: &[Line<'_>]) -> Format {
    let extension = path.rsplit_once('.').map(|(_, extension)| extension);
    if extension.is_some_and(|extension| extension.eq_ignore_ascii_case("toml")) {
        return Format::Toml;
    }
    let mut assignments = 0;
    let mut banner = 0;
    for line in lines {
        let text = line.text.trim();
        if text.starts_with('[') && text.ends_with(']') {
            return Format::Toml;
        }
        let Some((name, rest)) = split_name(text) else {
            continue;
        };
        let rest = rest.trim_start();
        if rest.starts_with('=') {
            if matches!(name, "NUM_SCHEMAS" | "NUM_THREADS") {
                return Format::PgioConf;
            }
            assignments += 1;
        } else if rest.starts_with(':') {
            banner += 1;
        }
    }
    if banner > assignments { Format::Banner } else { Format::SlobConf }
}
