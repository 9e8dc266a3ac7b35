//! The bounds of measurable values: a number beyond them was edited, and sums of such numbers mean nothing.

/// Digits of the smallest whole number that is too large: 10^18 ns are 32 years, 10^18 bytes an exabyte.
const DIGITS: usize = 19;
/// Any whole number may be one.
const SEED: &[u8] = b"seed";

/// What is wrong with such a text.
pub const WHY: &str = "it contains a number larger than anything that can be measured";

/// Whether a JSON text contains a whole number of 10^18 or more other than a seed.
pub fn are_broken(text: &[u8]) -> bool {
    let (mut key, mut at) = (&text[..0], 0);
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let length = match byte {
            b'"' => {
                let length = string(rest);
                key = &rest[1..(length - 1).max(1)];
                length
            }
            b'0'..=b'9' => {
                let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
                let whole = digits(rest);
                let is_decimal = matches!(rest.get(whole), Some(b'.' | b'e' | b'E'));
                if whole >= DIGITS && !is_decimal && key != SEED {
                    return true;
                }
                let word = |b: &&u8| b.is_ascii_alphanumeric() || b".+-".contains(b);
                rest.iter().take_while(word).count()
            }
            _ => 1,
        };
        at += length;
    }
    false
}

/// What an object of a record takes in memory at most, and any other value, bytes: a job of a storage test, a figure in a list that grows.
const OBJECT_BYTES: usize = 1536;
const VALUE_BYTES: usize = 64;
/// The reason of a figure that is not available, bytes.
const REASON_BYTES: usize = 64;
/// What a record takes at most: so many times its length, and as much as a small one may take whatever is in it: a day of seconds has
/// 4.5 million figures in fifty metrics, most of them as short as a zero.
const TIMES: usize = 8;
const SMALL_BYTES: usize = 256 << 20;

/// What is wrong with a text that [`is_too_dense`].
pub const TOO_DENSE: &str = "it consists of so many empty values that it would take far more memory than its size";

/// Whether a JSON text could take far more memory than its length: an empty object is two bytes there, and in a list of jobs a
/// thousand here. In the series of a record a figure that is not available is an object of its reason: a day of seconds has
/// 600,000 of them where seven of fifty metrics are not available. Elsewhere the same text may be a job.
pub fn is_too_dense(text: &[u8]) -> bool {
    let (mut needed, mut at, mut depth) = (0, 0, 0_usize);
    let (mut key, mut is_series) = (&text[..0], false);
    while let Some(byte) = text.get(at) {
        let rest = &text[at..];
        let length = if *byte == b'"' { string(rest) } else { 1 };
        match byte {
            b'"' => key = &rest[..length],
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        // The series is a member of the record itself.
        is_series = if depth < 2 { false } else { is_series || (depth == 2 && *byte == b'{' && key == br#""series""#) };
        needed += match byte {
            b'{' if is_series && rest[1..].trim_ascii_start().starts_with(br#""na""#) => REASON_BYTES,
            b'{' => OBJECT_BYTES,
            b',' | b'[' => VALUE_BYTES,
            _ => 0,
        };
        at += length;
    }
    needed > SMALL_BYTES + TIMES * text.len()
}

/// Bytes of the string that a text begins with, its quotes included.
fn string(text: &[u8]) -> usize {
    let mut escaped = false;
    let end = text[1..].iter().position(|byte| {
        let ends = *byte == b'"' && !escaped;
        escaped = *byte == b'\\' && !escaped;
        ends
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_would_take_more_memory_than_its_length_is_dense_and_commas_of_words_are_none() {
        let of = |unit: &str| format!("[{}0]", unit.repeat(16 << 20));
        for (unit, dense) in [("{},", true), ("0,", true), ("\",,,,{{{{\"  ,", false), ("0.123456789,", false)] {
            assert_eq!(is_too_dense(of(unit).as_bytes()), dense, "{unit}");
        }
        assert!(!is_too_dense("0,".repeat(52 * 86_400).as_bytes()), "a day of seconds");
        let within = |member: &str, unit: &str| {
            let text = format!(
                r#"{{"x":[1],"{member}":{{"metrics":{{"a":[{unit}0]}}}},"y":[]}}"#,
                unit = unit.repeat(700_000)
            );
            is_too_dense(text.as_bytes())
        };
        let na = "{\n  \"na\": \"absent\"\n},";
        assert!(!within("series", na), "a day of seconds without figures");
        assert!(within("parts", na), "the same may be a list of jobs");
        assert!(within("series", "{},"), "and an empty object is none");
    }

    #[test]
    fn only_whole_numbers_beyond_measure_are_found_and_seeds_are_any_number() {
        for (text, broken) in [
            (r#"{"at_ns":18446744073709551615}"#, true),
            (r#"{"a":[1,-1000000000000000000]}"#, true),
            (r#"{"at_ns":999999999999999999}"#, false),
            (r#"{"seed":18446744073709551615,"x":1}"#, false),
            (r#"{"seed":1,"x":18446744073709551615}"#, true),
            (r#"{"text":"18446744073709551615 \" 18446744073709551615"}"#, false),
            (r#"{"x":1000000000000000000000.0,"y":0.12345678901234567890123}"#, false),
            (r#"{"x":"open 18446744073709551615"#, false),
            ("\"", false),
            ("", false),
        ] {
            assert_eq!(are_broken(text.as_bytes()), broken, "{text}");
        }
    }
}
