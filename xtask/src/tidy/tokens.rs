//! What a token is where the size of the code is counted: what two regular expressions find, so that anyone can count
//! again in any language and figures of different years compare.
//!
//! STRING is `r#*"(?:.|\n)*?"#*|"(?:\\.|[^"\\])*"`. Comments are `//[^\n]*|/\*(?:.|\n)*?\*/` outside STRING; tokens are
//! STRING, `'(?:\\.|[^'\\])'`, `[A-Za-z_]\w*`, `\d[\w.]*`, or one other mark. They take a string that goes on in the next
//! line for its two quotes, and all up to the next quote for a string: a tenth of the code is not counted for that. The
//! lexer knows better; it is not what the figures were made with.

/// The tokens of a text, but for its test module.
pub(crate) fn count(text: &str) -> usize {
    let code = without_comments(text.split("\n#[cfg(test)]\nmod tests {").next().unwrap_or_default());
    let bytes = code.as_bytes();
    let run = |at: usize, of: fn(u8) -> bool| at + bytes[at..].iter().take_while(|byte| of(**byte)).count();
    let (mut at, mut tokens) = (0, 0);
    while let Some(byte) = bytes.get(at) {
        tokens += usize::from(!byte.is_ascii_whitespace());
        at = string(bytes, at).unwrap_or_else(|| match *byte {
            b'\'' => character(bytes, at).unwrap_or(at + 1),
            b'0'..=b'9' => run(at, |byte| is_word(byte) || byte == b'.'),
            byte if is_word(byte) => run(at, is_word),
            _ => at + 1,
        });
    }
    tokens
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn without_comments(text: &str) -> String {
    let bytes = text.as_bytes();
    let find = |at: usize, what: &str| text[at..].find(what).map(|found| at + found);
    let (mut at, mut code) = (0, String::new());
    while at < bytes.len() {
        let comment = match &bytes[at..] {
            [b'/', b'/', ..] => Some(find(at, "\n").unwrap_or(bytes.len())),
            [b'/', b'*', ..] => find(at + 2, "*/").map(|end| end + 2),
            _ => None,
        };
        let end = comment.or_else(|| string(bytes, at)).unwrap_or(at + 1);
        code.push_str(if comment.is_some() { " " } else { &text[at..end] });
        at = end;
    }
    code
}

/// Where the string that begins at `at` ends.
fn string(bytes: &[u8], at: usize) -> Option<usize> {
    let hashes = |at: usize| at + bytes[at..].iter().take_while(|byte| **byte == b'#').count();
    if bytes[at] == b'r' {
        let open = hashes(at + 1);
        let length = bytes[open..].strip_prefix(b"\"")?.iter().position(|byte| *byte == b'"')?;
        return Some(hashes(open + length + 2));
    }
    let mut end = at + 1;
    bytes[at..].strip_prefix(b"\"")?;
    loop {
        match *bytes.get(end)? {
            b'"' => return Some(end + 1),
            b'\\' if *bytes.get(end + 1)? == b'\n' => return None,
            b'\\' => end += 2,
            _ => end += 1,
        }
    }
}

fn character(bytes: &[u8], at: usize) -> Option<usize> {
    let end = match bytes.get(at + 1..)? {
        [b'\\', escaped, b'\'', ..] if *escaped != b'\n' => at + 4,
        [b'\\' | b'\'', ..] => return None,
        [_, b'\'', ..] => at + 3,
        _ => return None,
    };
    Some(end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_what_the_expressions_find() {
        for (text, tokens) in [
            ("fn f<'a>(x: &'a u8) -> u8 { *x }", 21),
            ("0..10 1.5e3 'x' '\\n' b\"x\" r#\"a\"# \"a\\\"b\"", 8),
            ("a // b\n/* c \n d */ e \"// f\"", 3),
            ("a(\"b \\\n c\"); d(1, 2, 3); e(\"f\");", 11),
            ("a\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n", 1),
            ("\"a", 2),
            ("r#\"a", 4),
            ("/* a", 3),
            ("'", 1),
        ] {
            assert_eq!(count(text), tokens, "{text}");
        }
    }
}
