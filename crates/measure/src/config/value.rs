//! Reading one value by its [`ParamKind`]: exact integer arithmetic, one clear sentence per mistake.

use super::secrets::mask;
use super::settings::{ParamDef, ParamKind, Value};
use std::ops::RangeInclusive;

/// A value as read.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Parsed {
    /// Typed.
    pub value: Value,
    /// Normalised spelling that reads back to the same value; `***` for secrets.
    pub text: String,
    /// A notice, although it is not an error.
    pub notice: Option<String>,
}

impl Parsed {
    fn new(value: Value, text: impl Into<String>) -> Self {
        Self { value, text: text.into(), notice: None }
    }
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;
/// A year: longer durations are slips of a unit, and sums of them would overflow.
const LONGEST_NS: u128 = 366 * 86_400 * 1_000_000_000;
/// Sizes stay far from the end of the number range, so that sums of them cannot overflow.
const LARGEST_BYTES: u128 = 1 << 60;

impl ParamKind {
    /// The accepted values, as errors print them after `give` and the reference in a column.
    #[must_use]
    pub fn takes(&self) -> String {
        match self {
            Self::Int(min, u64::MAX) => format!("a whole number of {min} or more"),
            Self::Int(min, max) => format!("a whole number from {min} to {max}"),
            Self::Blocks => "a number of blocks (10000) or a size with one of K M G T (80M)".to_owned(),
            Self::Mebibytes => "mebibytes (64, 0.5) or a size with one of K M G T (64M, 1G)".to_owned(),
            Self::Seconds => "seconds (30, .1) or a duration such as 250ms, 30s, 5m, 1h".to_owned(),
            Self::Bool => "TRUE, FALSE".to_owned(),
            Self::Choice(words) => words.join(", "),
            Self::Text | Self::Secret => "text".to_owned(),
        }
    }

    /// The end of an error.
    fn way_out(&self) -> String {
        format!("give {}", self.takes())
    }
}

/// Reads `text` as `def` wants it.
///
/// # Errors
/// One sentence naming the value (never a secret's) and the way out.
pub(super) fn parse(def: &ParamDef, text: &str) -> Result<Parsed, String> {
    let name = def.name;
    if text.chars().any(char::is_control) {
        return Err(format!("{name} holds a control character; a value must be one line of plain text"));
    }
    if text.is_empty() {
        return Ok(Parsed::new(Value::Unset, ""));
    }
    match def.kind {
        ParamKind::Int(min, max) => int(def, text, min..=max),
        ParamKind::Blocks => blocks(name, text),
        ParamKind::Mebibytes => mebibytes(name, text),
        ParamKind::Seconds => seconds(name, text),
        ParamKind::Bool => boolean(name, text),
        ParamKind::Choice(words) => choice(name, text, words),
        ParamKind::Text => Ok(Parsed::new(Value::Text(text.to_owned()), mask(name, text))),
        ParamKind::Secret => Ok(Parsed::new(Value::Secret(text.to_owned()), "***")),
    }
}

fn int(def: &ParamDef, text: &str, range: RangeInclusive<u64>) -> Result<Parsed, String> {
    let (name, way_out) = (def.name, def.kind.way_out());
    let number = if text.bytes().all(|b| b.is_ascii_digit()) {
        text.parse::<u64>().ok()
    } else {
        return Err(format!("{name}={text} is not a number; {way_out}"));
    };
    match number {
        Some(n) if range.contains(&n) => Ok(Parsed::new(Value::Int(n), n.to_string())),
        _ => Err(format!("{name}={text} is out of range; {way_out}")),
    }
}

/// The multiple of a binary suffix, and whether it is the plain upper-case letter.
fn binary_suffix(suffix: &str) -> Option<(u64, char, bool)> {
    let upper = suffix.to_ascii_uppercase();
    let letter = upper.chars().next()?;
    let multiple = match letter {
        'K' => KIB,
        'M' => MIB,
        'G' => GIB,
        'T' => TIB,
        _ => return None,
    };
    matches!(&upper[1..], "" | "B" | "IB").then(|| (multiple, letter, suffix.len() == 1 && suffix == upper))
}

fn split_suffix(text: &str) -> (&str, &str) {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    text.split_at(end)
}

fn blocks(name: &str, text: &str) -> Result<Parsed, String> {
    let way_out = ParamKind::Blocks.way_out();
    let (digits, suffix) = split_suffix(text);
    if digits.contains('.') {
        return Err(format!(
            "{name}={text} has a decimal point; {way_out}: only whole numbers are allowed (1536M for 1.5G)"
        ));
    }
    let Ok(number) = digits.parse::<u64>() else {
        return Err(format!("{name}={text} is not a size; {way_out}"));
    };
    if u128::from(number) > LARGEST_BYTES {
        return Err(format!("{name}={text} is too large; {way_out}"));
    }
    if suffix.is_empty() {
        return Ok(Parsed::new(Value::Blocks(number), number.to_string()));
    }
    let Some((multiple, letter, plain)) = binary_suffix(suffix) else {
        return Err(format!("{name}={text} has an unknown unit; {way_out}"));
    };
    let bytes = u128::from(number) * u128::from(multiple);
    if bytes > LARGEST_BYTES {
        return Err(format!("{name}={text} is too large; {way_out}"));
    }
    let bytes = u64::try_from(bytes).expect("checked against LARGEST_BYTES");
    let canonical = format!("{number}{letter}");
    let notice =
        (!plain).then(|| format!("{name}={text} is read as {canonical}; units are always binary (1G = 2^30 bytes)"));
    Ok(Parsed { value: Value::Bytes(bytes), text: canonical, notice })
}

fn mebibytes(name: &str, text: &str) -> Result<Parsed, String> {
    let way_out = ParamKind::Mebibytes.way_out();
    let (digits, suffix) = split_suffix(text);
    let multiple = if suffix.is_empty() {
        MIB
    } else {
        binary_suffix(suffix).ok_or_else(|| format!("{name}={text} is not a size; {way_out}"))?.0
    };
    let bytes =
        scaled(digits, u128::from(multiple)).ok_or_else(|| format!("{name}={text} is not a size; {way_out}"))?;
    if bytes > LARGEST_BYTES {
        return Err(format!("{name}={text} is too large; {way_out}"));
    }
    let bytes = u64::try_from(bytes).expect("checked against LARGEST_BYTES");
    Ok(Parsed::new(Value::Bytes(bytes), text))
}

/// A duration as every setting takes it (`30`, `250ms`, `5m`), ns; `name` is what was set.
///
/// # Errors
/// A sentence with the remedy.
pub fn duration_ns(name: &str, text: &str) -> Result<u64, String> {
    match seconds(name, text)?.value {
        Value::Ns(ns) => Ok(ns),
        _ => Err(format!("{name}={text} is not a duration")),
    }
}

fn seconds(name: &str, text: &str) -> Result<Parsed, String> {
    let way_out = ParamKind::Seconds.way_out();
    let (digits, suffix) = split_suffix(text);
    let unit_ns: u128 = match suffix.to_ascii_lowercase().as_str() {
        "" | "s" => 1_000_000_000,
        "us" => 1_000,
        "ms" => 1_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => return Err(format!("{name}={text} is not a duration; {way_out}")),
    };
    let ns = scaled(digits, unit_ns).ok_or_else(|| format!("{name}={text} is not a duration; {way_out}"))?;
    if ns > LONGEST_NS {
        return Err(format!("{name}={text} is longer than a year; {way_out}"));
    }
    let ns = u64::try_from(ns).expect("checked against LONGEST_NS");
    Ok(Parsed::new(Value::Ns(ns), text))
}

fn boolean(name: &str, text: &str) -> Result<Parsed, String> {
    match text.to_ascii_uppercase().as_str() {
        "TRUE" => Ok(Parsed::new(Value::Bool(true), "TRUE")),
        "FALSE" => Ok(Parsed::new(Value::Bool(false), "FALSE")),
        _ => Err(format!("{name}={text} is neither TRUE nor FALSE; give one of them")),
    }
}

fn choice(name: &str, text: &str, words: &'static [&'static str]) -> Result<Parsed, String> {
    words
        .iter()
        .find(|word| word.eq_ignore_ascii_case(text))
        .map(|word| Parsed::new(Value::Text((*word).to_owned()), *word))
        .ok_or_else(|| format!("{name}={text} is not a valid value; give {}", words.join(", ")))
}

/// `digits` (a decimal number without sign) times `unit`, exact, truncated below 1.
fn scaled(digits: &str, unit: u128) -> Option<u128> {
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let plain = |part: &str| part.bytes().all(|b| b.is_ascii_digit());
    if (whole.is_empty() && fraction.is_empty())
        || !plain(whole)
        || !plain(fraction)
        || whole.len() > 15
        || fraction.len() > 15
    {
        return None;
    }
    let whole: u128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let scale = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let fraction: u128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    whole.checked_mul(unit)?.checked_add(fraction * unit / scale)
}

/// Nanoseconds as seconds that read back exactly: `3`, `0.25`.
#[must_use]
pub fn seconds_text(ns: u64) -> String {
    let whole = ns / 1_000_000_000;
    let rest = ns % 1_000_000_000;
    if rest == 0 {
        return whole.to_string();
    }
    let fraction = format!("{rest:09}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}
