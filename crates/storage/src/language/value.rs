//! Values: numbers with units, percentages, times, lists by direction, choices.
//!
//! The grammar is fio's (fio(1), "PARAMETER TYPES"); where the page and the program differ, fio 3.33 decides. One rule
//! is deliberately stricter: fio parses the start of a value and ignores the rest (`4.5k` is 4, `5sec` is 5 us), which
//! is never what the user meant. Here the whole value must parse.

use super::expression;
use super::number::{Read, split_unit, with_unit};
use crate::readings::DIRECTIONS;
use crate::spec::Amount;
use assay_measure::clock::Ns;
use std::fmt;

/// The text before a letter, and the text after it if the letter occurs.
pub(super) fn halves(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, behind)) => (before, Some(behind)),
        None => (text, None),
    }
}

/// The values an option takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// On when named; or `=1`, `=0`.
    Flag,
    /// `0` or `1`, always given.
    Bool,
    /// A whole number with an optional unit, within a range.
    Int(u64, u64),
    /// A whole number that may be negative, within a range.
    Signed(i64, i64),
    /// Up to three numbers, `read,write,trim`; a missing one repeats the one before.
    Ints(u64, u64),
    /// Up to three ranges `low-high`.
    Ranges,
    /// Bytes, or percent of the file's size.
    Size,
    /// Time; a bare number is in seconds.
    Seconds,
    /// Time; a bare number is in microseconds.
    Micros,
    /// A number of milliseconds, without a unit.
    Millis,
    /// One of these words, perhaps with arguments after a colon.
    Choice(&'static [&'static str]),
    /// Numbers with decimals, separated by colons, within a range.
    Floats(f64, f64),
    /// Any text.
    Text,
    /// Any text, or none at all.
    OptionalText,
}

impl Kind {
    /// Whether the option may be given without a value.
    #[must_use]
    pub fn may_be_bare(self) -> bool {
        matches!(self, Self::Flag | Self::OptionalText)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Flag => f.write_str("flag: no value, or 0 or 1"),
            Self::Bool => f.write_str("0 or 1"),
            Self::Int(low, u64::MAX | 0xffff_ffff) => write!(f, "number from {low}"),
            Self::Int(low, high) => write!(f, "number from {low} to {high}"),
            Self::Signed(low, high) => write!(f, "number from {low} to {high}"),
            Self::Ints(..) => f.write_str("number, or read,write,trim"),
            Self::Ranges => f.write_str("range low-high, or one range each for read,write,trim"),
            Self::Size => f.write_str("bytes, or percent of the file"),
            Self::Seconds => f.write_str("time; a bare number is in seconds"),
            Self::Micros => f.write_str("time; a bare number is in microseconds"),
            Self::Millis => f.write_str("number of milliseconds"),
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::Floats(low, high) => {
                write!(f, "numbers from {low} to {high}, separated by colons")
            }
            Self::Text => f.write_str("text"),
            Self::OptionalText => f.write_str("text, or bare"),
        }
    }
}

/// A value as typed, with the context to parse it.
#[derive(Clone, Copy, Debug)]
pub struct Value<'a> {
    /// The text; `None` for a bare flag.
    pub text: Option<&'a str>,
    /// The expected kind.
    pub kind: Kind,
    /// `kb_base=1000`: `k` is 1000 and `kib` 1024; otherwise, as in fio, the reverse.
    pub decimal: bool,
}

impl<'a> Value<'a> {
    /// The text, which is required.
    ///
    /// # Errors
    /// A message that the value is missing.
    pub fn text(&self) -> Read<&'a str> {
        match self.text {
            Some(text) if !text.is_empty() => Ok(text),
            _ => Err(format!("needs a value ({})", self.kind)),
        }
    }

    /// A flag or a boolean.
    ///
    /// # Errors
    /// The message says what is expected.
    pub fn on(&self) -> Read<bool> {
        let Some(text) = self.text else {
            return if self.kind == Kind::Flag { Ok(true) } else { Err("needs a value: 0 or 1".into()) };
        };
        match (number(text, self.decimal), self.kind) {
            (Ok(0), _) => Ok(false),
            // fio accepts any number for a flag; a boolean is 0 or 1.
            (Ok(1), _) | (Ok(_), Kind::Flag) => Ok(true),
            _ => Err("is neither 0 nor 1".into()),
        }
    }

    /// A number within the option's range.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn int(&self) -> Read<u64> {
        let (low, high) = self.range();
        within(number(self.text()?, self.decimal)?, low, high)
    }

    /// As [`Value::int`], for 32-bit values.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn int32(&self) -> Read<u32> {
        let number = self.int()?;
        u32::try_from(number).map_err(|_| format!("is above {}", u32::MAX))
    }

    /// A number that may be negative.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn signed(&self) -> Read<i64> {
        let text = self.text()?;
        let number = signed(text, self.decimal)?;
        match self.kind {
            Kind::Signed(low, high) if number < low || number > high => Err(format!("is not within {low} to {high}")),
            _ => Ok(number),
        }
    }

    /// Up to three numbers; `None` where none was given.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn ints(&self) -> Read<[Option<u64>; DIRECTIONS]> {
        let (low, high) = self.range();
        by_direction(self.text()?, |part| {
            if part.contains('-') && !part.starts_with('-') {
                return Err("is a range; use bsrange".into());
            }
            within(number(part, self.decimal)?, low, high)
        })
    }

    /// Up to three ranges.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn ranges(&self) -> Read<[Option<(u64, u64)>; DIRECTIONS]> {
        by_direction(self.text()?, |part| {
            let (low, high) = part.split_once(['-', ':']).ok_or("is not a range low-high")?;
            let (low, high) = (number(low, self.decimal)?, number(high, self.decimal)?);
            Ok((low.min(high), low.max(high)))
        })
    }

    /// Bytes, or percent.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn amount(&self) -> Read<Amount> {
        let text = self.text()?;
        match text.trim().strip_suffix('%') {
            Some(percent) => match number(percent, self.decimal)? {
                // fio(1): a percentage above 100 is taken as 100.
                percent @ 0..=100 => Ok(Amount::Percent(u32::try_from(percent).unwrap_or(100))),
                _ => Ok(Amount::Percent(100)),
            },
            None => number(text, self.decimal).map(Amount::Bytes),
        }
    }

    /// A duration.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn ns(&self) -> Read<Ns> {
        let text = self.text()?;
        match self.kind {
            Kind::Seconds => time(text, 1_000_000_000),
            Kind::Micros => time(text, 1_000),
            _ => number(text, self.decimal)?.checked_mul(1_000_000).ok_or_else(|| "is too long".into()),
        }
    }

    /// One of the words, and the text after its colon.
    ///
    /// # Errors
    /// The message lists the words.
    pub fn choice(&self) -> Read<(&'a str, Option<&'a str>)> {
        let text = self.text()?;
        let (word, rest) = halves(text, ':');
        match self.kind {
            Kind::Choice(words) if !words.contains(&word) => Err(format!("is none of {}", words.join(", "))),
            _ => Ok((word, rest)),
        }
    }

    /// Numbers with decimals.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn floats(&self) -> Read<Vec<f64>> {
        let (low, high) = match self.kind {
            Kind::Floats(low, high) => (low, high),
            _ => (f64::MIN, f64::MAX),
        };
        let mut floats = Vec::new();
        for part in self.text()?.split(':') {
            let float = float(part)?;
            if float < low || float > high {
                return Err(format!("{part:?} is not within {low} to {high}"));
            }
            floats.push(float);
        }
        Ok(floats)
    }

    /// Checks that the value is valid for its kind.
    ///
    /// # Errors
    /// The message says what is wrong.
    pub fn check(&self) -> Read<()> {
        match self.kind {
            Kind::Flag | Kind::Bool => self.on().map(drop),
            Kind::Int(..) => self.int().map(drop),
            Kind::Signed(..) => self.signed().map(drop),
            Kind::Ints(..) => self.ints().map(drop),
            Kind::Ranges => self.ranges().map(drop),
            Kind::Size => self.amount().map(drop),
            Kind::Seconds | Kind::Micros | Kind::Millis => self.ns().map(drop),
            Kind::Choice(_) => self.choice().map(drop),
            Kind::Floats(..) => self.floats().map(drop),
            Kind::Text => self.text().map(drop),
            Kind::OptionalText => Ok(()),
        }
    }

    fn range(&self) -> (u64, u64) {
        match self.kind {
            Kind::Int(low, high) | Kind::Ints(low, high) => (low, high),
            _ => (0, u64::MAX),
        }
    }
}

fn within(number: u64, low: u64, high: u64) -> Read<u64> {
    if number < low {
        return Err(format!("is below {low}"));
    }
    if number > high {
        return Err(format!("is above {high}"));
    }
    Ok(number)
}

/// Up to three values separated by commas. A single value applies to all directions; of two, trims take the second. An
/// empty one keeps the earlier value.
fn by_direction<T: Copy>(text: &str, read: impl Fn(&str) -> Read<T>) -> Read<[Option<T>; DIRECTIONS]> {
    let parts: Vec<&str> = text.split(',').collect();
    if parts.len() > DIRECTIONS {
        return Err("has more values than read,write,trim".into());
    }
    let mut values = [None; DIRECTIONS];
    for (place, value) in values.iter_mut().enumerate() {
        let part = match parts.get(place) {
            Some(part) => part.trim(),
            None => parts.last().map_or("", |part| part.trim()),
        };
        if !part.is_empty() {
            *value = Some(read(part)?);
        }
    }
    Ok(values)
}

/// A whole number: decimal or `0x` hexadecimal, with a byte unit, or an expression in parentheses.
///
/// # Errors
/// The message says what is wrong.
pub fn number(text: &str, decimal: bool) -> Read<u64> {
    let text = text.trim();
    if text.starts_with('(') {
        return expression::evaluate(text, decimal);
    }
    with_unit(text, decimal)
}

/// As [`number`], optionally with a sign.
///
/// # Errors
/// The message says what is wrong.
pub fn signed(text: &str, decimal: bool) -> Read<i64> {
    let text = text.trim();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let number = i64::try_from(number(digits, decimal)?).map_err(|_| "is too large")?;
    Ok(if negative { -number } else { number })
}

/// A duration: a number and a unit.
///
/// # Errors
/// The message says what is wrong.
pub fn time(text: &str, bare_ns: u64) -> Read<Ns> {
    let text = text.trim();
    if text.starts_with('(') {
        let number = expression::evaluate(text, false)?;
        return number.checked_mul(bare_ns).ok_or_else(|| "is too long".into());
    }
    let (digits, unit) = split_unit(text)?;
    let factor = match unit.to_ascii_lowercase().as_str() {
        "" => bare_ns,
        "us" | "usec" => 1_000,
        "ms" | "msec" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => {
            return Err(format!("{unit:?} is not a unit of time; the units are d, h, m, s, ms, us"));
        }
    };
    digits.checked_mul(factor).ok_or_else(|| "is too long".into())
}

/// A number with decimals.
///
/// # Errors
/// The message says what is wrong.
pub fn float(text: &str) -> Read<f64> {
    match text.trim().parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(float),
        _ => Err(format!("{:?} is not a number", text.trim())),
    }
}
