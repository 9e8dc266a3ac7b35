//! Parses a whole number with its unit, as used in values and expressions.

/// A value, or a short description of what is wrong with it.
pub(super) type Read<T> = Result<T, String>;

/// A whole number: decimal or `0x` hexadecimal, with a unit of bytes.
pub(super) fn with_unit(text: &str, decimal: bool) -> Read<u64> {
    let (digits, unit) = split_unit(text)?;
    let factor = bytes_factor(unit, decimal)
        .ok_or_else(|| format!("{unit:?} is not a unit; the units are k, m, g, t, p, with b or ib"))?;
    digits.checked_mul(factor).ok_or_else(|| "is too large".into())
}

/// Splits a number into its digits and the rest.
pub(super) fn split_unit(text: &str) -> Read<(u64, &str)> {
    let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let (digits, radix) = match hexadecimal {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let digits = if radix == 10 { digits.strip_prefix('+').unwrap_or(digits) } else { digits };
    let end = digits.find(|letter: char| !letter.is_digit(radix)).unwrap_or(digits.len());
    if end == 0 {
        return Err("is not a whole number".into());
    }
    let number = u64::from_str_radix(&digits[..end], radix).map_err(|_| "is too large")?;
    let unit = &digits[end..];
    if unit.starts_with('.') {
        return Err("is not a whole number".into());
    }
    if radix == 16 && !unit.is_empty() {
        return Err("has a unit after a hexadecimal number".into());
    }
    Ok((number, unit))
}

/// Factor of a byte unit. `k`, `kb` and `ki` are 1024 and `kib` is 1000; `kb_base=1000` swaps the two (fio 3.33; its
/// manual page says so for `ki` too).
fn bytes_factor(unit: &str, decimal: bool) -> Option<u64> {
    let unit = unit.to_ascii_lowercase();
    let mut letters = unit.chars();
    let first = match letters.next() {
        None => return Some(1),
        Some(first) => first,
    };
    let power = match first {
        'b' => 0,
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        _ => return None,
    };
    let reversed = match (power, letters.as_str()) {
        (0, "") | (1.., "" | "b" | "i") => false,
        (1.., "ib") => true,
        _ => return None,
    };
    let base: u64 = if decimal == reversed { 1024 } else { 1000 };
    Some(base.pow(power))
}
