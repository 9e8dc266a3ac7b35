//! What the rules need to know of one Rust file: its code, what of it is test
//! code, its functions, its `mod` declarations and its attributes.

use crate::lexer::{Kind, Token, lex};
use std::ops::Range;

/// One Rust file, analysed.
#[derive(Debug)]
pub(crate) struct Source<'a> {
    /// The text.
    pub(crate) text: &'a str,
    /// Tokens without comments.
    pub(crate) code: Vec<Token<'a>>,
    /// Ranges of `code` compiled for tests only.
    pub(crate) tests: Vec<Range<usize>>,
    /// Attributes in order.
    pub(crate) attributes: Vec<Attribute>,
}

/// `#[...]` or `#![...]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attribute {
    /// Its tokens in `code`, from `#` to `]`.
    pub(crate) span: Range<usize>,
    /// `#!`.
    pub(crate) inner: bool,
}

/// `mod name;`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ModDeclaration<'a> {
    /// Inline modules around it, outermost first.
    pub(crate) parents: Vec<&'a str>,
    /// Its name.
    pub(crate) name: &'a str,
    /// `#[path = "..."]`.
    pub(crate) path: Option<&'a str>,
    /// Whether it is test code.
    pub(crate) test: bool,
}

impl<'a> Source<'a> {
    /// Scans `text`.
    pub(crate) fn new(text: &'a str) -> Self {
        let mut code = lex(text);
        code.retain(|token| token.kind != Kind::Comment);
        let attributes = attributes(&code);
        let tests = test_ranges(&code, &attributes);
        Self { text, code, tests, attributes }
    }

    /// Whether the token at `index` of `code` is test code.
    pub(crate) fn is_test(&self, index: usize) -> bool {
        self.tests.iter().any(|range| range.contains(&index))
    }

    /// Whether the tokens from `index` on read like `words`.
    pub(crate) fn reads(&self, index: usize, words: &[&str]) -> bool {
        words.iter().enumerate().all(|(n, word)| self.code.get(index + n).is_some_and(|t| t.is(word)))
    }

    /// The tokens of an attribute.
    pub(crate) fn attribute(&self, attribute: &Attribute) -> &[Token<'a>] {
        &self.code[attribute.span.clone()]
    }

    /// Lines outside test code.
    pub(crate) fn lines_outside_tests(&self) -> usize {
        let in_tests: usize = self.tests.iter().map(|range| self.lines_of(range)).sum();
        self.text.lines().count().saturating_sub(in_tests)
    }

    /// Lines a range of `code` covers.
    pub(crate) fn lines_of(&self, range: &Range<usize>) -> usize {
        match self.code.get(range.clone()) {
            Some([only]) => only.last_line() - only.line + 1,
            Some([first, .., last]) => last.last_line() - first.line + 1,
            _ => 0,
        }
    }

    /// All `mod name;`.
    pub(crate) fn mod_declarations(&self) -> Vec<ModDeclaration<'a>> {
        let mut declarations = Vec::new();
        let mut parents: Vec<(usize, &'a str)> = Vec::new();
        for (index, token) in self.code.iter().enumerate() {
            parents.retain(|(end, _)| index < *end);
            let (Some(name), Some(after)) = (self.code.get(index + 1), self.code.get(index + 2)) else {
                continue;
            };
            if !token.is("mod") || name.kind != Kind::Ident {
                continue;
            }
            if after.is("{") {
                parents.push((item_end(&self.code, index), name.text));
            } else if after.is(";") {
                declarations.push(ModDeclaration {
                    parents: parents.iter().map(|(_, name)| *name).collect(),
                    name: name.text.trim_start_matches("r#"),
                    path: self.path_attribute(index),
                    test: self.is_test(index),
                });
            }
        }
        declarations
    }

    /// The value of `#[path = "..."]` on the item at `index`, past `pub` and its scope.
    fn path_attribute(&self, index: usize) -> Option<&'a str> {
        let attribute = self.attributes.iter().rev().find(|a| a.span.end <= index && index - a.span.end <= 4)?;
        if self.code[attribute.span.end..index].iter().any(|token| token.is(";")) {
            return None;
        }
        let tokens = self.attribute(attribute);
        match tokens {
            [_, _, path, _, value, _] if path.is("path") => Some(value.text.trim_matches('"')),
            _ => None,
        }
    }
}

fn attributes(code: &[Token<'_>]) -> Vec<Attribute> {
    let mut found: Vec<Attribute> = Vec::new();
    for index in 0..code.len() {
        let inner = code.get(index + 1).is_some_and(|t| t.is("!"));
        let open = index + 1 + usize::from(inner);
        let is_one = code[index].is("#") && code.get(open).is_some_and(|t| t.is("["));
        if is_one {
            let span = index..group_end(code, open) + 1;
            found.push(Attribute { span, inner });
        }
    }
    found
}

/// Items under `#[test]` or `#[cfg(test)]`, attributes included; the whole file under `#![cfg(test)]`.
fn test_ranges(code: &[Token<'_>], attributes: &[Attribute]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for attribute in attributes {
        if !is_test_attribute(&code[attribute.span.clone()]) {
            continue;
        }
        if attribute.inner {
            return std::iter::once(0..code.len()).collect();
        }
        let start = attribute.span.start;
        if ranges.last().is_some_and(|last| start < last.end) {
            continue;
        }
        let mut item = attribute.span.end;
        while let Some(next) = attributes.iter().find(|a| a.span.start == item) {
            item = next.span.end;
        }
        if item < code.len() {
            ranges.push(start..item_end(code, item) + 1);
        }
    }
    ranges
}

fn is_test_attribute(tokens: &[Token<'_>]) -> bool {
    let has = |word: &str| tokens.iter().any(|t| t.is(word));
    let words: Vec<&Token<'_>> = tokens.iter().filter(|t| t.kind == Kind::Ident).collect();
    match words.as_slice() {
        [only] => only.is("test"),
        [first, ..] => first.is("cfg") && has("test") && !has("not"),
        [] => false,
    }
}

/// Index of the token that closes the group opened at `open`, or the last token.
fn group_end(code: &[Token<'_>], open: usize) -> usize {
    let mut depth = 0_usize;
    for (index, token) in code.iter().enumerate().skip(open) {
        if token.is("(") || token.is("[") || token.is("{") {
            depth += 1;
        } else if token.is(")") || token.is("]") || token.is("}") {
            depth = depth.saturating_sub(1);
            if depth == 0 {
                return index;
            }
        }
    }
    code.len().saturating_sub(1)
}

/// Index of the last token of the item that begins at `start`: its `;` or the brace that closes its body.
fn item_end(code: &[Token<'_>], start: usize) -> usize {
    let mut index = start;
    while index < code.len() {
        let token = &code[index];
        if token.is(";") {
            return index;
        }
        if token.is("{") {
            return group_end(code, index);
        }
        if token.is("(") || token.is("[") {
            index = group_end(code, index);
        }
        index += 1;
    }
    code.len().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The identifiers that are test code.
    fn tests<'a>(source: &'a Source<'_>) -> Vec<&'a str> {
        let code =
            source.code.iter().enumerate().filter(|(index, token)| source.is_test(*index) && token.text.len() == 1);
        code.filter(|(_, token)| token.kind == Kind::Ident).map(|(_, token)| token.text).collect()
    }

    #[test]
    fn test_modules_and_functions_are_told_from_the_rest() {
        let text =
            "fn a() {}\n#[cfg(test)]\nmod tests {\n fn b() {}\n}\n#[test]\nfn c() {}\n#[cfg(not(test))]\nfn d() {}\n";
        let source = Source::new(text);
        assert_eq!(tests(&source), ["b", "c"]);
        assert_eq!(source.lines_outside_tests(), 3);
    }

    #[test]
    fn a_file_can_be_test_code_as_a_whole() {
        let source = Source::new("#![cfg(test)]\nfn a() {}\n");
        assert_eq!(tests(&source), ["a"]);
        assert_eq!(source.lines_outside_tests(), 0);
    }

    #[test]
    fn an_item_ends_with_its_brace_or_its_semicolon() {
        let text = "#[test]\nfn long(\n    a: [u8; 4],\n) -> u8\nwhere\n    T: Y,\n{\n    \"}\";\n}\nfn b() {}\n#[cfg(test)]\ntype F = fn(u8) -> c;\ntype G = fn(u8) -> d;\n";
        let source = Source::new(text);
        assert_eq!(tests(&source), ["a", "T", "Y", "F", "c"]);
        assert_eq!(source.lines_outside_tests(), 2);
    }

    #[test]
    fn modules_know_their_parents_their_path_and_whether_they_are_tests() {
        let text = "pub mod a;\nmod b { pub(crate) mod c; }\n#[cfg(test)]\nmod tests;\n#[path = \"x/y.rs\"]\npub mod d;\nmod e;\n";
        let source = Source::new(text);
        let found: Vec<_> = source.mod_declarations();
        assert_eq!(found.len(), 5);
        assert_eq!((found[0].name, found[0].test), ("a", false));
        assert_eq!((found[1].name, found[1].parents.clone()), ("c", vec!["b"]));
        assert!(found[2].test);
        assert_eq!((found[3].path, found[4].path), (Some("x/y.rs"), None));
    }
}
