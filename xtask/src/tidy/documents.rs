//! Rules about the documents: a short way in, and no reference that leads nowhere.

use super::{Tree, Violation};
use std::path::{Component, Path};

/// The way in is read in one sitting; the rest has guides.
const README: (&str, usize) = ("README.md", 150);
/// Where documents lie that any file may name by their path from the workspace root.
const DOCUMENTS: &str = "docs/";

/// What is promised, up to this heading.
const SECURITY: &str = "docs/SECURITY.md";
const NOT_PROMISED: &str = "## Not promised";

/// Every rule of this module.
pub(crate) fn check(tree: &Tree, violations: &mut Vec<Violation>) {
    let (readme, most) = README;
    let lines = tree.files.get(readme).map_or(0, |text| text.lines().count());
    if lines > most {
        let text = format!("{lines} lines, at most {most}: move the rest to docs/guides");
        violations.push(Violation::new(readme, 0, "readme-length", text));
    }
    promises(tree, violations);
    for (path, text) in &tree.files {
        let mut is_code = false;
        for (index, line) in text.lines().enumerate() {
            is_code ^= line.trim_start().starts_with("```");
            let links = if path.ends_with(".md") && !is_code { links(line) } else { Vec::new() };
            let from_here = links.iter().map(|link| (*link, resolved(path, link)));
            let named = named(line).map(|name| (name, Some(name.to_owned())));
            for (shown, target) in from_here.chain(named) {
                if !target.is_some_and(|target| exists(tree, &target)) {
                    let text = format!("`{shown}` leads nowhere");
                    violations.push(Violation::new(path, index + 1, "links", text));
                }
            }
        }
    }
}

/// Every promise names tests that hold it: functions of this workspace, by names that only tests have.
fn promises(tree: &Tree, violations: &mut Vec<Violation>) {
    let text = tree.files.get(SECURITY).map_or("", String::as_str);
    let promised = text.split(NOT_PROMISED).next().unwrap_or_default();
    // A promise is a row of a table or an item of a list; what is indented belongs to it.
    let mut all: Vec<(usize, String)> = Vec::new();
    for (index, line) in promised.lines().enumerate() {
        let is_row = line.starts_with("| ") && !line.starts_with("| promise |");
        match all.last_mut() {
            _ if is_row || line.starts_with("- ") => all.push((index + 1, line.to_owned())),
            Some((_, promise)) if line.starts_with("  ") => promise.push_str(line),
            _ => {}
        }
    }
    let is_test = |word: &&str| {
        word.matches('_').count() >= 3
            && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let is_there = |name: &str| {
        let function = format!("fn {name}(");
        tree.files.iter().any(|(path, text)| path.ends_with(".rs") && text.contains(&function))
    };
    for (line, promise) in all {
        let tests: Vec<&str> = promise.split('`').skip(1).step_by(2).filter(is_test).collect();
        let gone = tests.iter().find(|name| !is_there(name));
        let what = match gone {
            Some(name) => format!("no test `{name}` holds this promise any more"),
            None if tests.is_empty() => "a promise names no test that holds it".to_owned(),
            None => continue,
        };
        violations.push(Violation::new(SECURITY, line, "promises", what));
    }
}

/// Targets of the relative links of a line of Markdown; what stands between backticks is no link.
fn links(line: &str) -> Vec<&str> {
    let prose = line.split('`').step_by(2);
    let targets = prose.flat_map(|text| text.split("](").skip(1));
    targets
        .filter_map(|rest| rest.split([')', '#', ' ']).next())
        .filter(|link| !link.is_empty() && !link.contains(':'))
        .collect()
}

/// Documents that a line names by their path from the workspace root; a pattern is no name.
fn named(line: &str) -> impl Iterator<Item = &str> {
    let is_path = |c: char| c.is_ascii_alphanumeric() || "._-/*".contains(c);
    line.split(move |c| !is_path(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| word.starts_with(DOCUMENTS) && word.ends_with(".md") && !word.contains('*'))
}

/// The path from the workspace root of what `link` in the file `from` means; `None` above the root.
fn resolved(from: &str, link: &str) -> Option<String> {
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in Path::new(link).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?),
            Component::ParentDir => parts.pop().map(drop)?,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(parts.join("/"))
}

/// Whether there is such a file, or a folder with one.
fn exists(tree: &Tree, path: &str) -> bool {
    let inside = format!("{path}/");
    let texts = tree.files.keys();
    let mut all = texts.chain(&tree.others);
    all.any(|file| file == path || file.starts_with(&inside))
}
