//! A number with its place in the source, before its place in the record is known; and the units that tools print.

use super::draft::Reading;
use super::number::{self, Printed, Suffix};
use super::text::At;

/// A printed number and where.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LocatedNumber {
    /// Where.
    pub(crate) at: At,
    /// What.
    pub(crate) printed: Printed,
}

impl LocatedNumber {
    /// A number at a place, if there is one.
    pub(crate) fn some(at: At, printed: Option<Printed>) -> Option<Self> {
        printed.map(|printed| Self { at, printed })
    }

    /// The number, if it is one.
    pub(crate) fn value(&self) -> Option<f64> {
        self.printed.number()
    }

    /// The same in another unit; what was printed stays.
    #[must_use]
    pub(crate) fn scaled(&self, factor: f64) -> Self {
        Self { at: self.at, printed: self.printed.clone().scaled(factor) }
    }

    /// The same, off by so much more: a tool that cuts instead of rounding.
    #[must_use]
    pub(crate) fn looser(mut self, by: f64) -> Self {
        self.printed.rounding += by;
        self
    }

    /// For the draft.
    pub(crate) fn reading(&self, key: impl Into<String>) -> Reading {
        Reading::new(self.at, key, self.printed.clone())
    }
}

/// Bytes in powers of 1024 where the unit says so (`KiB`), else of 1000.
pub(crate) const BYTES: &[(&str, f64)] = &[
    ("B", 1.0),
    ("kB", 1e3),
    ("KB", 1e3),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
];

/// Bytes of tools that write `KB` and mean 1024.
pub(crate) const OLD_BYTES: &[(&str, f64)] =
    &[("", 1.0), ("B", 1.0), ("KB", 1024.0), ("MB", 1_048_576.0), ("GB", 1_073_741_824.0), ("TB", 1_099_511_627_776.0)];

/// A number and its unit, with or without blanks between them: `40.5MiB`, `1.49 Gbits`.
pub(crate) fn amount(token: &str, units: &[(&str, f64)]) -> Option<Printed> {
    let token = token.trim();
    let end = token.find(|c: char| !c.is_ascii_digit() && !".,+-".contains(c)).unwrap_or(token.len());
    let unit = token[end..].trim();
    let (_, factor) = units.iter().find(|(name, _)| *name == unit)?;
    let mut printed = number::measure(&token[..end])?.scaled(*factor);
    token.clone_into(&mut printed.text);
    Some(printed)
}

/// A whole number that may be shortened to `10.4k`; exact where it is not.
pub(crate) fn short_count(token: &str) -> Option<Printed> {
    let mut printed = number::suffixed(token, Suffix::Decimal)?;
    if matches!(printed.value, assay_measure::record::Figure::Count(_)) {
        printed.rounding = 0.0;
    }
    // What is left of the step to thousands is gone.
    printed.rounding += 1e3 * f64::from(token.ends_with('M'));
    Some(printed)
}

/// The text behind `name=`, up to the next comma outside of parentheses or the end; blanks aside.
pub(crate) fn after<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let mut from = 0;
    loop {
        let at = line[from..].find(name)? + from;
        let rest = &line[at + name.len()..];
        let is_begin = line[..at].chars().next_back().is_none_or(|c| !c.is_alphanumeric() && c != '_');
        if let Some(value) = rest.strip_prefix('=').filter(|_| is_begin) {
            let end = value.find(", ").or_else(|| value.find(" ,"));
            let value = &value[..end.unwrap_or(value.len())];
            return Some(value.trim().trim_end_matches(',').trim());
        }
        from = at + name.len();
    }
}

/// The part of a text between two marks.
pub(crate) fn between<'a>(text: &'a str, open: &str, close: &str) -> Option<&'a str> {
    let begin = text.find(open)? + open.len();
    let end = text[begin..].find(close)? + begin;
    Some(&text[begin..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_have_the_unit_they_say() {
        let value = |token, units| amount(token, units).map(|p| (p.number(), p.rounding));
        assert_eq!(value("4096B", BYTES), Some((Some(4096.0), 0.5)));
        assert_eq!(value("1.5 KiB", BYTES), Some((Some(1536.0), 51.2)));
        assert_eq!(value("1KB", OLD_BYTES), Some((Some(1024.0), 512.0)));
        assert_eq!(value("1XB", BYTES), None);
        assert_eq!(short_count("10.4k").map(|p| p.rounding), Some(50.0));
        assert_eq!(short_count("10.4M").map(|p| p.rounding), Some(51_000.0));
        assert_eq!(short_count("9460").map(|p| p.rounding), Some(0.0));
    }

    #[test]
    fn values_are_found_by_their_whole_name() {
        let line = "clat (usec): min=  85, max=18461 , avg=239.42, stdev= 1.5";
        assert_eq!(after(line, "min"), Some("85"));
        assert_eq!(after(line, "max"), Some("18461"));
        assert_eq!(after(line, "avg"), Some("239.42"));
        assert_eq!(after(line, "stdev"), Some("1.5"));
        assert_eq!(after(line, "dev"), None);
        assert_eq!(between("a [ 62] b", "[", "]"), Some(" 62"));
    }
}
