//! Reading and printing sizes, rates, durations and plain numbers.
//!
//! Rules of everything printed here: rounded once, half away from zero;
//! thousands separated by commas; no scientific notation; and a value that is
//! not zero never prints as zero, it falls back to two significant digits.

mod parse;

pub use parse::{UnitError, parse_duration_ns, parse_size_bytes};

use crate::clock::{NS_PER_S, Ns};

/// Bytes in a kibibyte.
pub const KIB: u64 = 1 << 10;
/// Bytes in a mebibyte.
pub const MIB: u64 = 1 << 20;
/// Bytes in a gibibyte.
pub const GIB: u64 = 1 << 30;
/// Bytes in a tebibyte.
pub const TIB: u64 = 1 << 40;

/// A whole number with thousands separators: `1,234,567`.
#[must_use]
pub fn thousands(n: u64) -> String {
    group(&n.to_string())
}

/// So many of something that takes an s: `1 schema`, `1,000 sessions`.
#[must_use]
pub fn many(n: u64, what: &str) -> String {
    let s = if n == 1 { "" } else { "s" };
    format!("{} {what}{s}", thousands(n))
}

/// A number with so many decimals and thousands separators; `n/a` if not finite.
#[must_use]
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    let text = round(value, decimals);
    if value != 0.0 && is_zero(&text) {
        return significant(value, 2);
    }
    group(&text)
}

/// The exact quotient of two whole numbers with so many decimals, as [`fixed`];
/// `None` for a zero denominator, which is n/a.
#[must_use]
pub fn ratio(numerator: u128, denominator: u128, decimals: usize) -> Option<String> {
    if denominator == 0 {
        return None;
    }
    let quotient = |decimals: usize| {
        let scale = 10_u128.checked_pow(u32::try_from(decimals).ok()?)?;
        let doubled = numerator.checked_mul(scale)?.checked_mul(2)?;
        let rounded = doubled.checked_add(denominator)? / denominator.checked_mul(2)?;
        let digits = format!("{rounded:0>width$}", width = decimals + 1);
        let (whole, fraction) = digits.split_at(digits.len() - decimals);
        Some(match fraction {
            "" => whole.to_owned(),
            _ => format!("{whole}.{fraction}"),
        })
    };
    let text = quotient(decimals);
    match text {
        Some(text) if numerator == 0 || !is_zero(&text) => Some(group(&text)),
        // Too large for 128 bits, or a zero that is none.
        _ => Some(fixed(numerator as f64 / denominator as f64, decimals)),
    }
}

/// A number with six significant digits and without the zeros that end its decimals: `0.031`, `1.25`, `1,234`.
#[must_use]
pub fn six(value: f64) -> String {
    let text = significant(value, 6);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// Units whose large values read better in another one: from which value on, what a value is divided by, and the other unit.
const READABLE: [(&str, f64, f64, &str); 13] = [
    ("ns", 1e9, 1e9, "s"),
    ("ns", 1e7, 1e6, "ms"),
    ("ns", 1e4, 1e3, "us"),
    ("us", 1e6, 1e6, "s"),
    ("us", 1e4, 1e3, "ms"),
    ("ms", 1e4, 1e3, "s"),
    ("bits/s", 1e9, 1e9, "Gbit/s"),
    ("bits/s", 1e6, 1e6, "Mbit/s"),
    ("bytes/s", 1e9, 1e9, "GB/s"),
    ("bytes/s", 1e6, 1e6, "MB/s"),
    ("bytes", TIB as f64, TIB as f64, "TiB"),
    ("bytes", GIB as f64, GIB as f64, "GiB"),
    ("bytes", MIB as f64, MIB as f64, "MiB"),
];

/// How a figure is told in a sentence: what its value is divided by, and the words behind it, which begin with its unit.
/// 1,535,115 `us per operation` is 1.54 `s per operation`. Rates go by powers of ten, sizes by powers of two, as everywhere.
#[must_use]
pub fn readable(value: f64, words: &str) -> (f64, String) {
    let unit = words.split([' ', ',']).next().unwrap_or_default();
    let mut larger = READABLE.iter();
    match larger.find(|(of, least, ..)| *of == unit && value.abs() >= *least) {
        Some((_, _, factor, other)) => (*factor, words.replacen(unit, other, 1)),
        None => (1.0, words.to_owned()),
    }
}

/// A value for a sentence with so many decimals, in the unit that reads best: `144 us`, `24.3 ms` of `us`.
#[must_use]
pub fn told(value: f64, unit: &str, decimals: usize) -> String {
    let (factor, unit) = readable(value, unit);
    let number = if factor == 1.0 { fixed(value, decimals) } else { short(value / factor) };
    format!("{number} {unit}")
}

/// A value for a sentence, as [`six`] in the unit that reads best: `553.9/s` of `1/s`, `89.6 us`, `1.5 s` of `us`.
#[must_use]
pub fn with_unit(value: f64, unit: &str) -> String {
    match unit.strip_prefix('1').filter(|per| per.starts_with('/')) {
        Some(per) => format!("{}{per}", six(value)),
        None => {
            let (factor, unit) = readable(value, unit);
            format!("{} {unit}", six(value / factor)).trim_end().to_owned()
        }
    }
}

/// A number with so many significant digits, all whole digits kept: `0.031`,
/// `1.25`, `1,234`; `n/a` if not finite.
#[must_use]
pub fn significant(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "n/a".to_owned();
    }
    if value == 0.0 {
        return "0".to_owned();
    }
    let decimals = decimals_for(value, digits);
    let text = round(value, decimals);
    // Rounding may have made one more whole digit (9.996 to 10.00).
    let carried = text.parse::<f64>().map(|r| decimals_for(r, digits));
    match carried {
        Ok(fewer) if fewer < decimals => group(&round(value, fewer)),
        _ => group(&text),
    }
}

/// Enough digits to tell, none to impress.
#[must_use]
pub fn short(value: f64) -> String {
    let decimals = match value.abs() {
        large if large >= 100.0 => 0,
        some if some >= 10.0 => 1,
        _ => 2,
    };
    fixed(value, decimals)
}

/// Bytes for people, binary, three significant digits: `512 B`, `1.5 GiB`.
#[must_use]
pub fn size(bytes: u64) -> String {
    let (text, power) = scaled(bytes, 1024, 3);
    let unit = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"][power];
    format!("{text} {unit}")
}

/// Bytes as in IOStat tables, binary, three significant digits: `512`, `1.5G`.
#[must_use]
pub fn size_suffix(bytes: u64) -> String {
    let (text, power) = scaled(bytes, 1024, 3);
    let suffix = ["", "K", "M", "G", "T", "P", "E"][power];
    format!("{text}{suffix}")
}

/// A count as in IOStat tables, decimal, three significant digits: `999`, `24.1K`.
#[must_use]
pub fn count_suffix(n: u64) -> String {
    let (text, power) = scaled(n, 1000, 3);
    let suffix = ["", "K", "M", "G", "T", "P", "E"][power];
    format!("{text}{suffix}")
}

/// A duration for people, three significant digits below a minute: `250 ns`,
/// `1.25 us`, `3.4 ms`, `30 s`, then `5 min 3 s`, `2 h 10 min`.
#[must_use]
pub fn duration(ns: Ns) -> String {
    let units = [(NS_PER_S, "s"), (1_000_000, "ms"), (1_000, "us"), (1, "ns")];
    // From here on three significant digits would print 60.0 s.
    if ns >= 59_950_000_000 {
        let s = ns / NS_PER_S + u64::from(ns % NS_PER_S >= NS_PER_S / 2);
        let (h, min, s) = (s / 3600, s / 60 % 60, s % 60);
        return match (h, min, s) {
            (0, min, 0) => format!("{min} min"),
            (0, min, s) => format!("{min} min {s} s"),
            // Above an hour the seconds no longer matter to anyone.
            (h, 0, _) => format!("{} h", thousands(h)),
            (h, min, _) => format!("{} h {min} min", thousands(h)),
        };
    }
    // A value that rounds to 1000 of a unit is 1 of the next.
    let (unit_ns, unit) =
        units.into_iter().find(|&(unit_ns, _)| ns as f64 / unit_ns as f64 >= 0.9995).unwrap_or((1, "ns"));
    let text = significant(ns as f64 / unit_ns as f64, 3);
    format!("{} {unit}", trim_zeros(&text))
}

/// Text that fits `width` characters: what is too long ends in `~`.
#[must_use]
pub fn shorten(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    let kept = text.chars().take(width.saturating_sub(1));
    let end = (width > 0).then_some('~');
    kept.chain(end).collect()
}

/// `n` in the largest power of `base` that leaves at least 1, and that power.
fn scaled(n: u64, base: u64, digits: usize) -> (String, usize) {
    let mut unit = 1_u64;
    let mut power = 0;
    // What would print as the whole base is 1 of the next unit.
    let limit = base as f64 - 0.5;
    while n as f64 / unit as f64 >= limit && power < 6 {
        unit = unit.saturating_mul(base);
        power += 1;
    }
    let text = significant(n as f64 / unit as f64, digits);
    (trim_zeros(&text).to_owned(), power)
}

/// Decimals that give `value` (not 0) so many significant digits.
fn decimals_for(value: f64, digits: usize) -> usize {
    let exponent = value.abs().log10().floor() as i64;
    let decimals = digits as i64 - 1 - exponent;
    // The smallest f64 is 5e-324: more decimals cannot be needed.
    usize::try_from(decimals).unwrap_or(0).min(330)
}

/// Rounds half away from zero, from the value's exact binary expansion.
fn round(value: f64, decimals: usize) -> String {
    // `format!` is exact but rounds a tie to even. Thirty digits more show
    // whether there is a tie: no f64 comes nearer to one without being one.
    let exact = format!("{:.*}", decimals + 30, value.abs());
    let (kept, rest) = exact.split_at(exact.len() - 30);
    let mut digits: Vec<u8> = kept.bytes().collect();
    if digits.last() == Some(&b'.') {
        digits.pop();
    }
    if rest.as_bytes()[0] >= b'5' {
        increment(&mut digits);
    }
    let text: String = digits.into_iter().map(char::from).collect();
    if value < 0.0 && !is_zero(&text) { format!("-{text}") } else { text }
}

/// Adds one to the last place of a decimal number.
fn increment(digits: &mut Vec<u8>) {
    for digit in digits.iter_mut().rev() {
        match *digit {
            b'.' => {}
            b'9' => *digit = b'0',
            _ => {
                *digit += 1;
                return;
            }
        }
    }
    digits.insert(0, b'1');
}

fn is_zero(text: &str) -> bool {
    !text.bytes().any(|b| (b'1'..=b'9').contains(&b))
}

/// Drops zeros after the decimal point, and the point if nothing is left after it.
fn trim_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

/// Puts commas between groups of three whole digits.
fn group(text: &str) -> String {
    let (sign, text) = match text.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", text),
    };
    let whole = text.find('.').unwrap_or(text.len());
    let mut grouped = String::with_capacity(text.len() + whole / 3 + 1);
    grouped.push_str(sign);
    for (i, c) in text.chars().enumerate() {
        if i > 0 && i < whole && (whole - i).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(c);
    }
    grouped
}

#[cfg(test)]
mod tests;
