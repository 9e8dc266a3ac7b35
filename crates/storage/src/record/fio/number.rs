//! fio's shortened numbers: `10.4k`, `977KiB`, `4096B`.

/// The step between unit prefixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// 1000: `k M G T P E`.
    Decimal,
    /// 1024: `Ki Mi Gi Ti Pi Ei`.
    Binary,
}

const DECIMAL: [&str; 7] = ["", "k", "M", "G", "T", "P", "E"];
const BINARY: [&str; 7] = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Formats `n` in at most `digits` characters with its prefix, then `unit`. Divides by the step while the number has
/// more digits; the remaining characters hold a point and decimals.
///
/// `digits` is 4 by default (`significant_figures`), and 6 for the extremes of latencies.
#[must_use]
pub fn short(n: u64, digits: u32, step: Step, unit: &str) -> String {
    let (base, prefixes) = match step {
        Step::Decimal => (1000, DECIMAL),
        Step::Binary => (1024, BINARY),
    };
    let (mut whole, mut rest, mut prefix) = (n, 0, 0);
    while length(whole) > digits && prefix + 1 < prefixes.len() {
        rest = whole % base;
        whole /= base;
        prefix += 1;
    }
    let prefix_text = prefixes[prefix];
    let room = digits.saturating_sub(length(whole));
    if prefix == 0 {
        return format!("{whole}{unit}");
    }
    if room <= 1 {
        let rounded = whole + u64::from(2 * rest >= base);
        return format!("{rounded}{prefix_text}{unit}");
    }
    let decimals = room as usize - 1;
    // The fraction is rounded as by C's printf, with ties of the exact binary value to even, and ten tenths carry into
    // the whole.
    let fraction = format!("{:.decimals$}", rest as f64 / base as f64);
    let (carry, fraction) = fraction.split_at(1);
    let whole = whole + u64::from(carry == "1");
    format!("{whole}{fraction}{prefix_text}{unit}")
}

fn length(n: u64) -> u32 {
    n.checked_ilog10().unwrap_or(0) + 1
}

/// Whole units per second: 1000 x `amount` / `runtime_ms`, 0 without a runtime.
#[must_use]
pub(super) fn rate(amount: u64, runtime_ms: u64) -> u64 {
    if runtime_ms == 0 {
        return 0;
    }
    let rate = u128::from(amount) * 1000 / u128::from(runtime_ms);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// `100 x part / whole`; 0 if the whole is 0.
pub(super) fn percent(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        return 0.0;
    }
    100.0 * part as f64 / whole as f64
}

/// A share of latencies in percent; a share above 0 shows as at least 0.01. Multiplies by the reciprocal, as fio's
/// compiled code does here, which decides ties (14.125 shows as 14.13).
pub(super) fn share(part: u64, whole: u64) -> f64 {
    at_least(0.01, part, part as f64 * (1.0 / whole as f64) * 100.0)
}

/// A share of depths or batches in percent; a share above 0 shows as at least 0.1. Divides 100 by the total first, as
/// fio's compiled code does here, which decides ties (11.85).
pub(super) fn depth_share(part: u64, whole: u64) -> f64 {
    at_least(0.1, part, 100.0 / whole as f64 * part as f64)
}

/// A part of 0 is always 0 %.
fn at_least(least: f64, part: u64, percent: f64) -> f64 {
    if part > 0 { percent.max(least) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn io_03_short_numbers_are_fios() {
        let count = |n| short(n, 4, Step::Decimal, "");
        assert_eq!(count(10_363), "10.4k");
        assert_eq!(count(9460), "9460");
        assert_eq!(count(1_736_660), "1737k");
        assert_eq!(count(5_547_123), "5547k");
        assert_eq!(count(12_700_000), "12.7M");
        assert_eq!(count(999), "999");
        assert_eq!(count(0), "0");
        let bytes = |n| short(n, 4, Step::Binary, "B");
        assert_eq!(bytes(4096), "4096B");
        assert_eq!(bytes(16_384), "16.0KiB");
        assert_eq!(bytes(999_999), "977KiB");
        assert_eq!(bytes(9_000_652), "8790KiB");
        assert_eq!(bytes(12 << 20), "12.0MiB");
        assert_eq!(bytes(206_569_472), "197MiB");
        // Ties round as in printf.
        assert_eq!(bytes(16_640), "16.2KiB");
        assert_eq!(bytes(17_152), "16.8KiB");
        let latency = |n| short(n, 6, Step::Decimal, "");
        assert_eq!(latency(88_773_123), "88773k");
        assert_eq!(latency(5_530_712), "5530.7k");
        assert_eq!(latency(826_689), "826689");
    }

    #[test]
    fn other_significant_figures_are_followed() {
        assert_eq!(short(341_333, 6, Step::Decimal, ""), "341333");
        assert_eq!(short(1_398_101_333, 6, Step::Decimal, "B"), "1398.1MB");
        assert_eq!(short(4 << 20, 6, Step::Binary, "B"), "4096.0KiB");
        assert_eq!(short(17_241, 2, Step::Decimal, ""), "17k");
        assert_eq!(short(4096, 2, Step::Binary, "B"), "4KiB");
        assert_eq!(short(u64::MAX, 1, Step::Decimal, ""), "18E");
    }

    #[test]
    fn decimals_carry_into_the_whole() {
        assert_eq!(short(102_359, 4, Step::Binary, "B"), "100.0KiB");
        assert_eq!(short(1_099_511_627_775, 4, Step::Binary, "B"), "1024GiB");
    }

    #[test]
    fn rates_without_time_are_nothing() {
        assert_eq!(rate(10, 0), 0);
        assert_eq!(rate(4_194_304, 466), 9_000_652);
        assert_eq!(rate(u64::MAX, 1), u64::MAX);
        assert!(share(1, 1_000_000) == 0.01);
        assert!(share(0, 1_000_000) == 0.0);
        assert!(depth_share(1, 1_000_000) == 0.1);
        assert_eq!(format!("{:.1}", depth_share(474, 4000)), "11.9");
        assert_eq!(format!("{:.2}", share(61, 4000)), "1.52");
        assert_eq!(format!("{:.2}", share(113, 800)), "14.13");
        assert_eq!(format!("{:.2}", share(581, 800)), "72.62");
    }

    proptest! {
        #[test]
        fn a_short_number_is_near_and_fits(n in any::<u64>(), bits in 0_u32..64, digits in 1_u32..10) {
            let n = n >> bits;
            let text = short(n, digits, Step::Decimal, "");
            let figures: String = text.chars().filter(|c| !c.is_ascii_alphabetic()).collect();
            let prefix = text.len() - figures.len();
            let power = DECIMAL.iter().position(|p| p.len() == prefix && text.ends_with(p)).unwrap();
            let value = figures.parse::<f64>().unwrap() * 1000_f64.powi(power as i32);
            // Half a unit of the last decimal shown, plus the remainder lost in earlier divisions.
            let shown = figures.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let place = 1000_f64.powi(power as i32) / 10_f64.powi(shown as i32);
            let left_over = 1000_f64.powi(power as i32 - 1);
            let slack = if power == 0 { 0.0 } else { place / 2.0 + left_over };
            prop_assert!((value - n as f64).abs() <= slack * 1.000001 + n as f64 * 1e-12, "{n}: {text}");
        }
    }
}
