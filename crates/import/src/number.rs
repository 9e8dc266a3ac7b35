//! How tools print numbers: thousands separators, exponents, suffixes, durations, torn columns.
//!
//! A number keeps its printed form and its possible rounding error, half a unit of its last place: a figure printed as
//! `12.3K` is known to 50.

use assay_measure::record::Figure;

/// Why a figure is n/a whose column was too narrow for it.
pub(crate) const TORN: &str = "torn column";
/// Why a figure is n/a that whoever passed the text on took out.
pub(crate) const REDACTED: &str = "redacted";
/// Why a figure is n/a for which the tool itself printed none.
pub(crate) const NOT_GIVEN: &str = "n/a in the source";

/// A number as it was printed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Printed {
    /// The number, or why there is none.
    pub(crate) value: Figure,
    /// Half a unit of the last place, in the unit of `value`; 0 where the number is exact.
    pub(crate) rounding: f64,
    /// As printed.
    pub(crate) text: String,
}

/// What the letters K, M, G, T, P mean behind a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Suffix {
    /// They are no part of a number here.
    None,
    /// Powers of 1000.
    Decimal,
    /// Powers of 1024.
    Binary,
}

impl Printed {
    /// No number, for this reason.
    pub(crate) fn na(reason: &str, text: &str) -> Self {
        Self { value: Figure::na(reason), rounding: 0.0, text: text.to_owned() }
    }

    /// The same in another unit.
    #[must_use]
    pub(crate) fn scaled(self, factor: f64) -> Self {
        Self { value: self.value.scaled(factor), rounding: self.rounding * factor.abs(), text: self.text }
    }

    /// The number, if there is one.
    pub(crate) fn number(&self) -> Option<f64> {
        self.value.value()
    }
}

/// A count: exact where it is printed whole and without suffix, else rounded as any other number.
pub(crate) fn count(token: &str) -> Option<Printed> {
    let mut printed = read(token, Suffix::Decimal)?;
    if matches!(printed.value, Figure::Count(_)) {
        printed.rounding = 0.0;
    }
    Some(printed)
}

/// A measured number without suffix; a `%` behind it is passed over.
pub(crate) fn measure(token: &str) -> Option<Printed> {
    let bare = token.strip_suffix('%').unwrap_or(token);
    let mut printed = read(bare, Suffix::None)?;
    token.clone_into(&mut printed.text);
    Some(printed)
}

/// A number that may have a suffix: `12.3K`, `4.5G`, `16.093M`.
pub(crate) fn suffixed(token: &str, suffix: Suffix) -> Option<Printed> {
    read(token, suffix)
}

/// A duration in us: `12us`, `3.4ms`, `1.2s`, `87.3ns`, `2.5m`, `1.1h`; without a unit it is of `bare_us` us each.
pub(crate) fn duration_us(token: &str, bare_us: f64) -> Option<Printed> {
    const UNITS: [(&str, f64); 11] = [
        ("nsec", 1e-3),
        ("usec", 1.0),
        ("msec", 1e3),
        ("sec", 1e6),
        ("ns", 1e-3),
        ("us", 1.0),
        ("ms", 1e3),
        ("min", 6e7),
        ("s", 1e6),
        ("m", 6e7),
        ("h", 3.6e9),
    ];
    let unit = UNITS.iter().find_map(|(unit, us)| token.strip_suffix(unit).map(|bare| (bare, *us)));
    let (bare, us) = unit.unwrap_or((token, bare_us));
    let mut printed = read(bare.trim_end(), Suffix::None)?.scaled(us);
    token.clone_into(&mut printed.text);
    Some(printed)
}

/// Any number of the grammar; `None` where the token is none at all.
fn read(token: &str, suffix: Suffix) -> Option<Printed> {
    let token = token.trim();
    if let Some(reason) = reason_for_none(token) {
        return Some(Printed::na(reason, token));
    }
    if let Some(bound) = token.strip_prefix('<') {
        // Somewhere between 0 and the bound: the middle, give or take half the bound.
        let bound = read(bound, suffix)?.value.value()?;
        return Some(Printed { value: Figure::decimal(bound / 2.0), rounding: bound / 2.0, text: token.to_owned() });
    }
    let (digits, factor) = split_suffix(token, suffix);
    let (mantissa, exponent) = split_exponent(digits)?;
    let (plain, decimals) = plain_digits(mantissa)?;
    let scale = factor * 10_f64.powi(exponent);
    let last_place = 10_f64.powi(-i32::try_from(decimals).ok()?);
    let value = match plain.parse::<u64>() {
        Ok(whole) if decimals == 0 && scale == 1.0 => Figure::Count(whole),
        // Parsed with its exponent, so that 7.1E+04 is 71000 and not its neighbour.
        _ => {
            let number: f64 = format!("{plain}e{exponent}").parse().ok()?;
            Figure::decimal(number * factor)
        }
    };
    value.value()?;
    Some(Printed { value, rounding: 0.5 * last_place * scale, text: token.to_owned() })
}

/// Why a token that stands for a number is none.
fn reason_for_none(token: &str) -> Option<&'static str> {
    const NONE: [&str; 9] = ["n/a", "na", "nan", "-nan", "inf", "-inf", "null", "-", "--"];
    const TAKEN_OUT: [&str; 3] = ["redacted", "<redacted>", "[redacted]"];
    let all = |c: char| token.len() > 1 && token.chars().all(|each| each == c);
    let is = |words: &[&str]| words.iter().any(|word| token.eq_ignore_ascii_case(word));
    if all('#') || all('*') {
        Some(TORN)
    } else if is(&NONE) {
        Some(NOT_GIVEN)
    } else if is(&TAKEN_OUT) || all('x') || all('X') {
        Some(REDACTED)
    } else {
        None
    }
}

fn split_suffix(token: &str, suffix: Suffix) -> (&str, f64) {
    let base: f64 = match suffix {
        Suffix::None => return (token, 1.0),
        Suffix::Decimal => 1000.0,
        Suffix::Binary => 1024.0,
    };
    let Some(last) = token.chars().last() else {
        return (token, 1.0);
    };
    let power = match last.to_ascii_uppercase() {
        'K' => 1,
        'M' => 2,
        'G' => 3,
        'T' => 4,
        'P' => 5,
        'B' => 0,
        _ => return (token, 1.0),
    };
    let bare = &token[..token.len() - last.len_utf8()];
    // A B for bytes may follow the letter.
    if power == 0 {
        return split_suffix(bare, suffix);
    }
    (bare, base.powi(power))
}

fn split_exponent(digits: &str) -> Option<(&str, i32)> {
    match digits.find(['e', 'E']) {
        None => Some((digits, 0)),
        Some(at) => {
            let exponent: i32 = digits[at + 1..].parse().ok()?;
            (-300..=300).contains(&exponent).then_some((&digits[..at], exponent))
        }
    }
}

/// The digits without separators, and how many stand behind the point.
fn plain_digits(mantissa: &str) -> Option<(String, usize)> {
    let (sign, unsigned) = match mantissa.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", mantissa.strip_prefix('+').unwrap_or(mantissa)),
    };
    let (whole, fraction) = unsigned.split_once('.').unwrap_or((unsigned, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let mut groups = whole.split(',');
    let first = groups.next().unwrap_or_default();
    let rest: Vec<&str> = groups.collect();
    let is_grouped = rest.iter().all(|group| group.len() == 3 && is_digits(group));
    let has_digit = !first.is_empty() || !fraction.is_empty();
    if !is_digits(first) || !is_digits(fraction) || !is_grouped || !has_digit {
        return None;
    }
    if first.is_empty() && !rest.is_empty() {
        return None;
    }
    let point = if fraction.is_empty() { "" } else { "." };
    let first = if first.is_empty() { "0" } else { first };
    let plain = format!("{sign}{first}{}{point}{fraction}", rest.concat());
    Some((plain, fraction.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(printed: Option<Printed>) -> (Figure, f64) {
        let printed = printed.expect("a number");
        (printed.value, printed.rounding)
    }

    #[test]
    fn numbers_are_read_as_tools_print_them() {
        let decimal = |v: f64, r: f64| (Figure::Decimal(v), r);
        assert_eq!(value(measure("1,234.5")), decimal(1234.5, 0.05));
        assert_eq!(value(measure("7.1E+04")), decimal(71_000.0, 500.0));
        assert_eq!(value(measure(".5")), decimal(0.5, 0.05));
        assert_eq!(value(measure("-3.25")), decimal(-3.25, 0.005));
        assert_eq!(value(measure("12.5%")), decimal(12.5, 0.05));
        assert_eq!(value(measure("12")), (Figure::Count(12), 0.5));
        assert_eq!(value(count("1,501,209")), (Figure::Count(1_501_209), 0.0));
        assert_eq!(value(count("254.6K")), decimal(254_600.0, 50.0));
        let (data, rounding) = value(suffixed("1.9G", Suffix::Binary));
        assert_eq!(data, Figure::Decimal(1.9 * 1_073_741_824.0));
        assert!((rounding - 0.05 * 1_073_741_824.0).abs() < 1e-6);
        assert_eq!(value(suffixed("0M", Suffix::Binary)).0.value(), Some(0.0));
        assert_eq!(value(measure("<1")), decimal(0.5, 0.5));
    }

    #[test]
    fn durations_are_read_in_every_unit_and_era() {
        for (token, us) in [
            ("12us", 12.0),
            ("3.4ms", 3400.0),
            ("1.2s", 1_200_000.0),
            ("87ns", 0.087),
            ("4.5", 4500.0),
            ("1,234.5us", 1234.5),
            ("5usec", 5.0),
        ] {
            let printed = duration_us(token, 1000.0).expect(token);
            let found = printed.number().expect("a number");
            assert!((found - us).abs() < 1e-9, "{token}: {found}");
            assert_eq!(printed.text, token);
        }
    }

    #[test]
    fn what_cannot_be_known_is_not_zero() {
        assert_eq!(value(measure("#######")).0, Figure::na(TORN));
        assert_eq!(value(measure("N/A")).0, Figure::na(NOT_GIVEN));
        assert_eq!(value(count("redacted")).0, Figure::na(REDACTED));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for token in ["", "abc", "1,23", "1.2.3", "1e", "12.3K", ",123", "1e999", "."] {
            assert_eq!(measure(token), None, "{token}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_token_is_a_number_or_none(token in ".{0,24}") {
            for printed in [measure(&token), count(&token), duration_us(&token, 1.0),
                            suffixed(&token, Suffix::Binary)].into_iter().flatten() {
                proptest::prop_assert!(printed.rounding.is_finite());
            }
        }

        #[test]
        fn a_printed_number_is_within_its_rounding(n in 0_u64..1_000_000_000_000, decimals in 0_usize..4) {
            let value = n as f64 / 997.0;
            let text = assay_measure::units::fixed(value, decimals);
            let printed = measure(&text).expect("printed by us");
            let off = (printed.number().expect("a number") - value).abs();
            proptest::prop_assert!(off <= printed.rounding * (1.0 + 1e-9), "{text} {value}");
        }
    }
}
