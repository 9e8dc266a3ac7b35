//! `cargo xtask tidy`: the project's rules that no compiler checks.
//!
//! Every rule is a function from the [`Tree`] to violations and has its own
//! tests with a sample that keeps it and one that breaks it.

mod circles;
mod code;
mod documents;
mod modules;
pub(crate) mod size;
mod supply;
mod tokens;
mod tree;
mod workspace;

#[cfg(test)]
mod tests;

pub(crate) use tree::Tree;

use crate::source::Source;
use std::collections::BTreeMap;
use std::fmt;

/// One broken rule and where.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Violation {
    /// Path from the workspace root.
    pub(crate) path: String,
    /// Line, from 1; 0 when it concerns the whole file.
    pub(crate) line: usize,
    /// The rule's short name.
    pub(crate) rule: &'static str,
    /// What is wrong and what to do.
    pub(crate) text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, rule, text } = self;
        write!(f, "{path}:{line}: {rule}: {text}")
    }
}

impl Violation {
    /// This rule, broken on this line of this file.
    pub(crate) fn new(path: &str, line: usize, rule: &'static str, text: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line, rule, text: text.into() }
    }
}

/// A Rust file with what the module walk found out about it.
pub(crate) struct RustFile<'a> {
    /// Path from the workspace root.
    pub(crate) path: &'a str,
    /// Its code.
    pub(crate) source: Source<'a>,
    /// Whether all of it is test code: `tests/`, `benches/`, or under a test module.
    pub(crate) test: bool,
    /// Whether no `mod` reaches it.
    pub(crate) dead: bool,
}

impl RustFile<'_> {
    /// Whether the token at `index` is test code.
    pub(crate) fn is_test(&self, index: usize) -> bool {
        self.test || self.source.is_test(index)
    }

    /// A violation in this file.
    pub(crate) fn violation(&self, line: usize, rule: &'static str, text: impl Into<String>) -> Violation {
        Violation::new(self.path, line, rule, text)
    }
}

/// Runs every rule; sorted by file and line.
pub(crate) fn check(tree: &Tree) -> Vec<Violation> {
    let files = rust_files(tree);
    let mut violations = Vec::new();
    let servers = code::servers(tree);
    for file in &files {
        code::check(file, &servers, &mut violations);
    }
    workspace::check(tree, &files, &mut violations);
    circles::check(tree, &files, &mut violations);
    documents::check(tree, &mut violations);
    supply::check(tree, &mut violations);
    size::check(tree, &mut violations);
    violations.sort();
    violations
}

/// Every Rust file, and whether it is compiled for tests only.
fn rust_files(tree: &Tree) -> Vec<RustFile<'_>> {
    let files = tree.files.iter().filter(|(path, _)| path.ends_with(".rs"));
    let sources: BTreeMap<&str, Source<'_>> = files.map(|(path, text)| (path.as_str(), Source::new(text))).collect();
    let reached = modules::reached(tree, &sources);
    let file = |(path, source)| {
        let test = reached.get(path).copied();
        RustFile { path, source, test: test.unwrap_or(false), dead: test.is_none() }
    };
    sources.into_iter().map(file).collect()
}
