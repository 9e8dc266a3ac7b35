//! Text that is safe to print: texts of a server or a file cannot move a cursor, set a title or reverse letters.

use std::borrow::Cow;

/// Stands for a character that is not printed.
const SHOWN: char = '\u{fffd}';

/// Whether a character is not simply visible: the controls of ASCII and of Latin-1 but line end and tab, and letters
/// without a shape: marks of direction, joiners, line ends of other alphabets.
#[must_use]
pub fn is_unprintable(c: char) -> bool {
    c.is_control() && !matches!(c, '\n' | '\t')
        || matches!(c, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// The text with U+FFFD for every character that must not reach a terminal.
#[must_use]
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.contains(is_unprintable) {
        Cow::Owned(text.replace(is_unprintable, &SHOWN.to_string()))
    } else {
        Cow::Borrowed(text)
    }
}

/// A field of a CSV file: quoted where necessary, and with a `'` before anything that a spreadsheet would treat as a
/// formula.
#[must_use]
pub fn csv_field(text: &str) -> String {
    let begins = |signs: &[char]| text.trim_start_matches(' ').starts_with(signs);
    let calculates =
        begins(&['=', '@', '\t', '\r', '\n']) || begins(&['+', '-']) && !text.parse().is_ok_and(f64::is_finite);
    let safe = if calculates { Cow::Owned(format!("'{text}")) } else { Cow::Borrowed(text) };
    if safe.contains([',', '"', '\n', '\r']) { format!("\"{}\"", safe.replace('"', "\"\"")) } else { safe.into_owned() }
}

/// A word quoted for a shell.
#[must_use]
pub fn shell_word(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:@%+".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// An event's name as a key: lower case, words joined by `_`.
#[must_use]
pub fn slug(name: &str) -> String {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut key = String::new();
    for word in words {
        if !key.is_empty() {
            key.push('_');
        }
        key.push_str(&word.to_ascii_lowercase());
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_moves_a_cursor_or_turns_letters_is_left() {
        let evil = "a\x1b[2J\x07b\r\u{9b}31m\u{7f}\u{202e}c\u{2066}\u{2028}\u{feff}\td\n";
        let shown = plain(evil);
        assert!(!shown.contains(is_unprintable), "{shown:?}");
        assert_eq!(shown.chars().count(), evil.chars().count());
        assert!(shown.ends_with("\td\n"));
        assert_eq!(plain("plain \u{e4}\n"), "plain \u{e4}\n");
    }

    #[test]
    fn no_field_is_a_formula_and_numbers_are_numbers() {
        for (given, written) in [
            ("=1+1", "'=1+1"),
            ("=HYPERLINK(\"x\",\"y\")", "\"'=HYPERLINK(\"\"x\"\",\"\"y\"\")\""),
            ("+cmd|' /C calc'!A0", "'+cmd|' /C calc'!A0"),
            ("-2+3", "'-2+3"),
            (" =1", "' =1"),
            ("@SUM(A1)", "'@SUM(A1)"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("-1.5e-3", "-1.5e-3"),
            ("+7", "+7"),
            ("a,b", "\"a,b\""),
            ("two\nlines", "\"two\nlines\""),
            ("say \"x\"", "\"say \"\"x\"\"\""),
            ("plain", "plain"),
        ] {
            assert_eq!(csv_field(given), written);
        }
    }

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
        assert_eq!(shell_word("--bs=8k"), "--bs=8k");
        assert_eq!(shell_word("--name=a b"), "'--name=a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}
