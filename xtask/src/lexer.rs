//! A scanner for Rust sources: enough to tell code from comments, strings,
//! characters and lifetimes, which a search by pattern cannot.

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Identifier or keyword; raw identifiers keep their `r#`.
    Ident,
    /// `'a`.
    Lifetime,
    /// String, byte string, character or number.
    Literal,
    /// One byte of punctuation.
    Punct,
    /// Line or block comment, doc comments included.
    Comment,
}

/// One token and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Token<'a> {
    /// What it is.
    pub(crate) kind: Kind,
    /// Its text.
    pub(crate) text: &'a str,
    /// Line of its first byte, from 1.
    pub(crate) line: usize,
}

impl Token<'_> {
    /// Line of its last byte, from 1.
    pub(crate) fn last_line(&self) -> usize {
        self.line + self.text.matches('\n').count()
    }

    /// Whether it is this keyword, identifier or punctuation.
    pub(crate) fn is(&self, text: &str) -> bool {
        matches!(self.kind, Kind::Ident | Kind::Punct) && self.text == text
    }
}

/// Cuts a source into tokens. Never fails: an unterminated literal or comment ends with the file.
pub(crate) fn lex(source: &str) -> Vec<Token<'_>> {
    let bytes = source.as_bytes();
    let mut tokens = Vec::new();
    let (mut at, mut line) = (0, 1);
    while at < bytes.len() {
        if bytes[at].is_ascii_whitespace() {
            line += usize::from(bytes[at] == b'\n');
            at += 1;
            continue;
        }
        let (kind, end) = token_at(source, at);
        let text = &source[at..end];
        tokens.push(Token { kind, text, line });
        line += text.matches('\n').count();
        at = end;
    }
    tokens
}

fn token_at(source: &str, at: usize) -> (Kind, usize) {
    let bytes = source.as_bytes();
    let rest = &bytes[at..];
    match rest[0] {
        b'/' if rest.get(1) == Some(&b'/') => {
            let end = source[at..].find('\n').map_or(bytes.len(), |n| at + n);
            (Kind::Comment, end)
        }
        b'/' if rest.get(1) == Some(&b'*') => (Kind::Comment, block_comment_end(bytes, at)),
        b'"' => (Kind::Literal, string_end(bytes, at + 1)),
        b'\'' => quote(source, at),
        first if is_word(first) && !first.is_ascii_digit() => word(source, at),
        first if first.is_ascii_digit() => (Kind::Literal, number_end(bytes, at)),
        _ => (Kind::Punct, at + 1),
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_' || byte >= 0x80
}

fn word_end(bytes: &[u8], at: usize) -> usize {
    let length = bytes[at..].iter().take_while(|b| is_word(**b)).count();
    at + length
}

/// An identifier, or a literal with a prefix: `b"` `c"` `r"` `br#"` `b'` and so on.
fn word(source: &str, at: usize) -> (Kind, usize) {
    let bytes = source.as_bytes();
    let end = word_end(bytes, at);
    match &source[at..end] {
        "b" | "c" if bytes.get(end) == Some(&b'"') => (Kind::Literal, string_end(bytes, end + 1)),
        "b" if bytes.get(end) == Some(&b'\'') => (Kind::Literal, quote(source, end).1),
        "r" | "br" | "cr" => {
            let hashes = bytes[end..].iter().take_while(|b| **b == b'#').count();
            match bytes.get(end + hashes) {
                Some(b'"') => (Kind::Literal, raw_string_end(source, end + hashes + 1, hashes)),
                Some(next) if hashes == 1 && is_word(*next) => (Kind::Ident, word_end(bytes, end + 1)),
                _ => (Kind::Ident, end),
            }
        }
        _ => (Kind::Ident, end),
    }
}

/// A character or a lifetime, at its quote.
fn quote(source: &str, at: usize) -> (Kind, usize) {
    let bytes = source.as_bytes();
    if bytes.get(at + 1) == Some(&b'\\') {
        // The escaped byte may itself be a quote, so the search starts behind it.
        let end = bytes.iter().skip(at + 3).position(|b| *b == b'\'');
        return (Kind::Literal, end.map_or(bytes.len(), |n| at + 3 + n + 1));
    }
    let Some(character) = source[at + 1..].chars().next() else {
        return (Kind::Punct, at + 1);
    };
    let behind = at + 1 + character.len_utf8();
    if bytes.get(behind) == Some(&b'\'') {
        return (Kind::Literal, behind + 1);
    }
    (Kind::Lifetime, word_end(bytes, at + 1))
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

fn raw_string_end(source: &str, at: usize, hashes: usize) -> usize {
    let close = format!("\"{}", "#".repeat(hashes));
    source[at..].find(&close).map_or(source.len(), |n| at + n + close.len())
}

fn block_comment_end(bytes: &[u8], mut at: usize) -> usize {
    let mut depth = 0;
    while at < bytes.len() {
        match (bytes[at], bytes.get(at + 1)) {
            (b'/', Some(b'*')) => {
                depth += 1;
                at += 2;
            }
            (b'*', Some(b'/')) => {
                depth -= 1;
                at += 2;
                if depth == 0 {
                    return at;
                }
            }
            _ => at += 1,
        }
    }
    bytes.len()
}

/// A point belongs to the number only before a digit: `0..n` and `1.max(2)` end before theirs.
fn number_end(bytes: &[u8], at: usize) -> usize {
    let end = word_end(bytes, at);
    let point = bytes.get(end) == Some(&b'.');
    if point && bytes.get(end + 1).is_some_and(u8::is_ascii_digit) {
        return word_end(bytes, end + 1);
    }
    end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(source: &str, kind: Kind) -> Vec<&str> {
        let tokens = lex(source).into_iter();
        tokens.filter(|t| t.kind == kind).map(|t| t.text).collect()
    }

    #[test]
    fn braces_in_strings_characters_and_comments_are_not_code() {
        let source = "fn f() { \"{\\\"{\"; '{'; '\\''; b'{'; r#\"}\"}\"#; /* } /* } */ */ } // }";
        let braces = texts(source, Kind::Punct);
        assert_eq!(braces.iter().filter(|t| **t == "{").count(), 1);
        assert_eq!(braces.iter().filter(|t| **t == "}").count(), 1);
        assert_eq!(texts(source, Kind::Comment).len(), 2);
    }

    #[test]
    fn lifetimes_are_not_characters() {
        assert_eq!(texts("fn f<'a>(x: &'a str, c: char) { 'b'; }", Kind::Lifetime), ["'a", "'a"]);
        assert_eq!(texts("'static 'x' '\u{e9}'", Kind::Literal), ["'x'", "'\u{e9}'"]);
    }

    #[test]
    fn raw_identifiers_and_raw_strings_differ() {
        assert_eq!(texts("r#fn r\"fn\" br##\"\"#\"##", Kind::Ident), ["r#fn"]);
        assert_eq!(texts("r#fn r\"fn\" br##\"\"#\"##", Kind::Literal).len(), 2);
    }

    #[test]
    fn ranges_and_methods_on_numbers_end_the_number() {
        assert_eq!(texts("0..10", Kind::Literal), ["0", "10"]);
        assert_eq!(texts("1.5e3 2.max(3)", Kind::Literal), ["1.5e3", "2", "3"]);
    }

    #[test]
    fn lines_count_inside_long_tokens() {
        let tokens = lex("\"a\nb\"\nx");
        assert_eq!((tokens[0].line, tokens[0].last_line()), (1, 2));
        assert_eq!(tokens[1].line, 3);
    }

    #[test]
    fn unterminated_text_ends_with_the_file() {
        for source in ["\"abc", "r#\"abc", "/* abc", "'", "'\\", "b\"", "\"\\"] {
            let end: usize = lex(source).iter().map(|t| t.text.len()).sum();
            assert!(end <= source.len(), "{source:?}");
        }
    }
}
