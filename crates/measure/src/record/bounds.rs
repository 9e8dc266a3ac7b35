//! The bounds of what can be measured: a number beyond them was edited, and sums of such numbers mean nothing.

/// Digits of the smallest whole number that is too large: 10^18 ns are 32 years, 10^18 bytes an exabyte.
const DIGITS: usize = 19;
/// Any whole number may be one.
const SEED: &[u8] = b"seed";

/// What is wrong with such a text.
pub const WHY: &str = "it contains a number larger than anything that can be measured";

/// Whether a JSON text holds a whole number of 10^18 or more that is no seed.
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
