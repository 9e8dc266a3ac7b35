//! Rules about one Rust file.

use super::{RustFile, Tree, Violation};
use crate::lexer::Kind;

/// Lines a file may have outside its tests.
const FILE_LINES: usize = 800;
/// Lines a test module may have before it moves to a file of its own.
const INLINE_TEST_LINES: usize = 200;

/// Crates that learn what a server is from what it says of itself.
const OF_NO_DATABASE: [&str; 5] = ["crates/run/", "crates/awr/", "crates/sweep/", "crates/report/", "crates/native/"];
/// Other names of servers than those of their folders.
const DATABASES: [&str; 2] = ["mysql", "innodb"];

/// Names of servers: each has a folder with a README.
pub(crate) fn servers(tree: &Tree) -> Vec<&str> {
    let named = tree.files.keys().filter_map(|path| {
        path.strip_prefix("crates/sql/src/")?.strip_suffix("/README.md").filter(|name| !name.contains('/'))
    });
    named.chain(DATABASES).collect()
}

/// Every rule of this module on one file.
pub(crate) fn check(file: &RustFile<'_>, servers: &[&str], violations: &mut Vec<Violation>) {
    if file.dead {
        violations.push(file.violation(
            0,
            "dead-file",
            "no `mod` reaches this file: name it in its parent or remove it",
        ));
    }
    ascii(file, violations);
    lengths(file, violations);
    ignored_tests(file, violations);
    databases(file, servers, violations);
    documentation_tests(file, violations);
}

fn ascii(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    for (index, line) in file.source.text.lines().enumerate() {
        if let Some(character) = line.chars().find(|c| !c.is_ascii()) {
            let text =
                format!("`{character}` is not ASCII: use words, or \\u{{{:x}}} in a string", u32::from(character));
            violations.push(file.violation(index + 1, "ascii", text));
        }
    }
}

fn lengths(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    if file.test {
        return;
    }
    let lines = file.source.lines_outside_tests();
    if lines > FILE_LINES {
        let text = format!("{lines} lines outside tests, the limit is {FILE_LINES}: split it");
        violations.push(file.violation(0, "file-length", text));
    }
    for range in &file.source.tests {
        let lines = file.source.lines_of(range);
        // A file that is test code as a whole has moved already.
        if lines > INLINE_TEST_LINES && *range != (0..file.source.code.len()) {
            let text =
                format!("{lines} lines of tests in this file, the limit is {INLINE_TEST_LINES}: move them to tests.rs");
            violations.push(file.violation(file.source.code[range.start].line, "inline-tests", text));
        }
    }
}

/// The reason of the tests that `./test.sh --long` runs, and it alone.
const LONG: &str = "\"it takes long: ./test.sh --long has it\"";

fn ignored_tests(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    for attribute in &file.source.attributes {
        let tokens = file.source.attribute(attribute);
        let ignores = tokens.iter().find(|t| t.kind == Kind::Ident).is_some_and(|t| t.is("ignore"));
        if ignores && tokens.iter().all(|t| t.text != LONG) {
            let text = format!("a test that never runs proves nothing: run it, or give it the reason {LONG}");
            violations.push(file.violation(tokens[0].line, "ignored-test", text));
        }
    }
}

fn databases(file: &RustFile<'_>, servers: &[&str], violations: &mut Vec<Violation>) {
    if !OF_NO_DATABASE.iter().any(|p| file.path.starts_with(p)) {
        return;
    }
    for (index, token) in file.source.code.iter().enumerate() {
        let code = token.text.to_ascii_lowercase();
        if let Some(name) = servers.iter().find(|name| code.contains(**name) && !file.is_test(index)) {
            violations.push(file.violation(
                token.line,
                "database",
                format!("`{name}` belongs in its folder: let the server tell a fact"),
            ));
        }
    }
}

/// rustdoc would take such blocks for tests; nobody runs those, since each is compiled and linked by itself.
fn documentation_tests(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    let mut inside = false;
    for (index, line) in file.source.text.lines().enumerate() {
        let line = line.trim_start();
        let Some(text) = line.strip_prefix("///").or(line.strip_prefix("//!")) else {
            inside = false;
            continue;
        };
        let fence = text.trim_start().strip_prefix("```");
        let opens = fence.is_some() && !inside;
        if !inside && text.starts_with("     ") || opens && fence.is_some_and(|kind| kind.trim() != "text") {
            violations.push(file.violation(
                index + 1,
                "doc-test",
                "code in documentation is not run: fence it as ```text, and test it in a test",
            ));
        }
        inside = if fence.is_some() { opens } else { inside };
    }
}
