//! assay.toml: parameter names as keys, at the top or in a table named after a
//! target (`[native]`), after the workload (`[slob]`) or `[run]`.

use super::layer::{Given, Layer};
use super::settings::Origin;
use toml::de::{DeTable, DeValue};

pub(super) fn parse(path: &str, bytes: &[u8], layer: &mut Layer) {
    // A byte that is not UTF-8 has been reported with its line already.
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let document = match DeTable::parse(text) {
        Ok(document) => document,
        Err(error) => {
            let line = error.span().map_or(1, |span| line_of(text, span.start));
            let message = error.message().replace('\n', ", ");
            layer.error(format!("{path}:{line}"), format!("not TOML: {message}"));
            return;
        }
    };
    for (key, value) in document.get_ref() {
        let line = line_of(text, key.span().start);
        if let DeValue::Table(table) = value.get_ref() {
            let scope = Some(key.get_ref().to_lowercase());
            for (key, value) in table {
                let line = line_of(text, key.span().start);
                add(path, line, key.get_ref(), value.get_ref(), scope.clone(), layer);
            }
        } else {
            add(path, line, key.get_ref(), value.get_ref(), None, layer);
        }
    }
    layer.given.sort_by_key(|given| match given.origin {
        Origin::File(_, line) => line,
        _ => 0,
    });
}

fn add(path: &str, line: usize, key: &str, value: &DeValue<'_>, scope: Option<String>, layer: &mut Layer) {
    let place = format!("{path}:{line}");
    let text = match value {
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) if number.radix() == 10 => number.to_string(),
        DeValue::Float(number) => number.to_string(),
        DeValue::Boolean(value) => value.to_string().to_uppercase(),
        _ => {
            layer.error(place, format!("{key} is not a string, a decimal number or a boolean; give one of them"));
            return;
        }
    };
    layer.given.push(Given {
        name: key.to_uppercase(),
        text,
        origin: Origin::File(path.to_owned(), line),
        place,
        scope,
    });
}

fn line_of(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())].iter().filter(|b| **b == b'\n').count()
}

/// The text with every secret's value replaced by `"***"`.
pub(super) fn redact(bytes: &[u8], is_secret: &dyn Fn(&str) -> bool) -> String {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let body = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let Ok(document) = DeTable::parse(body) else {
        return "# not shown: the file is not TOML\n".to_owned();
    };
    let mut secret_spans = Vec::new();
    let mut visit = |key: &str, value: &toml::Spanned<DeValue<'_>>| match value.get_ref() {
        _ if is_secret(key) => {
            secret_spans.push((value.span(), "\"***\"".to_owned()));
        }
        DeValue::String(plain) => {
            let masked = super::mask(key, plain);
            if masked != *plain {
                secret_spans.push((value.span(), format!("{masked:?}")));
            }
        }
        _ => {}
    };
    for (key, value) in document.get_ref() {
        if let DeValue::Table(table) = value.get_ref() {
            for (key, value) in table {
                visit(key.get_ref(), value);
            }
        } else {
            visit(key.get_ref(), value);
        }
    }
    secret_spans.sort_by_key(|(span, _)| std::cmp::Reverse(span.start));
    let mut out = body.to_owned();
    for (span, masked) in secret_spans {
        out.replace_range(span, &masked);
    }
    out.lines()
        .map(|line| match line.split_once('#') {
            // A commented assignment may hold a secret as well.
            Some((head, comment)) if is_secret(comment.split('=').next().unwrap_or("").trim()) => {
                format!("{head}# ***\n")
            }
            Some((head, comment)) => format!("{head}#{}\n", super::mask_url_password(comment)),
            _ => format!("{line}\n"),
        })
        .collect()
}
