//! Sizes and durations as people write them.

use crate::clock::{NS_PER_S, Ns};

/// Why a text is not a size or a duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnitError {
    /// Nothing there.
    #[error("empty value")]
    Empty,
    /// No number where one must be.
    #[error("`{text}` is not a number with a unit")]
    Number {
        /// The text as given.
        text: String,
    },
    /// A unit nobody knows.
    #[error("unknown unit `{unit}` in `{text}`, known are {known}")]
    Unit {
        /// The text as given.
        text: String,
        /// The unit in it.
        unit: String,
        /// All units.
        known: &'static str,
    },
    /// More than 2^64 - 1 bytes or nanoseconds.
    #[error("`{text}` is too large")]
    TooLarge {
        /// The text as given.
        text: String,
    },
}

const SIZE_UNITS: &str = "B, K, M, G, T and P (base 2; KiB and KB mean the same)";
const DURATION_UNITS: &str = "ns, us, ms, s, m (or min), h and d";

/// Bytes of a size: a decimal number and a binary unit, any case: `8192`, `8K`,
/// `1.5G`, `256 MiB`. `KB`, `MB`, ... are base 2 as well. A bare number counts
/// bytes; a fraction of a byte is dropped.
///
/// # Errors
/// When there is no number, the unit is unknown, or the size does not fit 64 bits.
pub fn parse_size_bytes(text: &str) -> Result<u64, UnitError> {
    let trimmed = text.trim();
    let (number, unit, rest) = split(trimmed)?;
    if !rest.is_empty() {
        return Err(UnitError::Number { text: text.into() });
    }
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        "p" | "pb" | "pib" => 5,
        _ => return Err(unknown(trimmed, unit, SIZE_UNITS)),
    };
    scale(number, 1 << (10 * power)).ok_or_else(|| UnitError::TooLarge { text: text.into() })
}

/// Nanoseconds of a duration: `30`, `0.5`, `30s`, `5m`, `1h`, `250ms`, `1h30m`.
/// A bare number counts seconds; units may be in any case; a fraction of a
/// nanosecond is dropped.
///
/// # Errors
/// When there is no number, a unit is unknown, or the duration does not fit 64 bits.
pub fn parse_duration_ns(text: &str) -> Result<Ns, UnitError> {
    let too_large = || UnitError::TooLarge { text: text.into() };
    let mut rest = text.trim();
    let whole = rest;
    let mut total_ns = 0_u64;
    loop {
        let (number, unit, after) = split(rest)?;
        let unit_ns = match unit.to_ascii_lowercase().as_str() {
            // A bare number is only clear if it stands alone.
            "" if whole == rest => NS_PER_S,
            "s" | "sec" => NS_PER_S,
            "ns" => 1,
            "us" => 1_000,
            "ms" => 1_000_000,
            "m" | "min" => 60 * NS_PER_S,
            "h" => 3_600 * NS_PER_S,
            "d" => 86_400 * NS_PER_S,
            _ => return Err(unknown(whole, unit, DURATION_UNITS)),
        };
        let ns = scale(number, unit_ns).ok_or_else(too_large)?;
        total_ns = total_ns.checked_add(ns).ok_or_else(too_large)?;
        rest = after;
        if rest.is_empty() {
            return Ok(total_ns);
        }
    }
}

fn unknown(text: &str, unit: &str, known: &'static str) -> UnitError {
    UnitError::Unit { text: text.into(), unit: unit.into(), known }
}

/// A leading decimal number, the letters after it, and what follows them.
fn split(text: &str) -> Result<(&str, &str, &str), UnitError> {
    if text.is_empty() {
        return Err(UnitError::Empty);
    }
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let number_end = text.find(|c| !is_number(c)).unwrap_or(text.len());
    let (number, after) = text.split_at(number_end);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || number.len() > digits + 1 {
        return Err(UnitError::Number { text: text.into() });
    }
    let after = after.trim_start();
    let unit_end = after.find(is_number).unwrap_or(after.len());
    let (unit, rest) = after.split_at(unit_end);
    Ok((number, unit.trim_end(), rest))
}

/// `number` (digits with at most one point) times `unit`, cut to whole; `None` if too large.
fn scale(number: &str, unit: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = match whole {
        "" => 0,
        _ => whole.parse().ok()?,
    };
    // Beyond 18 decimals nothing of 2^50 is left.
    let fraction = &fraction[..fraction.len().min(18)];
    let tenths = 10_u128.pow(fraction.len() as u32);
    let fraction: u128 = match fraction {
        "" => 0,
        _ => fraction.parse().ok()?,
    };
    let part = fraction * u128::from(unit) / tenths;
    whole.checked_mul(unit)?.checked_add(u64::try_from(part).ok()?)
}
