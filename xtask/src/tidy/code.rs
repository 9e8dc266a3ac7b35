//! Rules about one Rust file.

use super::{RustFile, Violation};
use crate::lexer::Kind;

/// Lines a function may have, from `fn` to its closing brace.
pub(crate) const FUNCTION_LINES: usize = 70;
/// Lines a file may have outside its tests.
pub(crate) const FILE_LINES: usize = 800;
/// Lines a test module may have before it moves to a file of its own.
pub(crate) const INLINE_TEST_LINES: usize = 200;

/// The one crate that may hold `unsafe`.
const UNSAFE_CRATE: &str = "crates/block/";
/// Programs: the only ones that print and exit.
const PROGRAMS: [&str; 2] = ["crates/assay/", "xtask/"];

/// Crates that learn what a server is from what it says of itself.
const OF_NO_DATABASE: [&str; 5] = ["crates/run/", "crates/awr/", "crates/sweep/", "crates/report/", "crates/native/"];
const DATABASES: [&str; 5] = ["postgres", "mariadb", "mysql", "innodb", "oracle"];

/// Every rule of this module on one file.
pub(crate) fn check(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    ascii(file, violations);
    lengths(file, violations);
    unsafe_code(file, violations);
    attributes(file, violations);
    macros(file, violations);
    exits(file, violations);
    databases(file, violations);
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
    for function in file.source.functions() {
        if !function.test && function.lines > FUNCTION_LINES {
            let text =
                format!("`{}` has {} lines, the limit is {FUNCTION_LINES}: split it", function.name, function.lines);
            violations.push(file.violation(function.line, "function-length", text));
        }
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
            let line = file.source.code[range.start].line;
            violations.push(file.violation(line, "inline-tests", text));
        }
    }
}

fn unsafe_code(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    let allowed = file.path.starts_with(UNSAFE_CRATE);
    for token in &file.source.code {
        if !token.is("unsafe") {
            continue;
        }
        if !allowed {
            let text = "`unsafe` belongs in crates/block alone".to_owned();
            violations.push(file.violation(token.line, "unsafe", text));
        } else if !has_safety_note(file, token.line) {
            let text = "say why it is sound: `// SAFETY: ...` (or `# Safety` in a doc) just above";
            violations.push(file.violation(token.line, "safety-note", text.to_owned()));
        }
    }
    let name = file.path.rsplit('/').next().unwrap_or_default();
    let is_root = file.path.ends_with("/src/lib.rs") || file.path.ends_with("/src/main.rs");
    let forbids = file.source.attributes.iter().any(|attribute| {
        let tokens = file.source.attribute(attribute);
        attribute.inner && tokens.iter().any(|t| t.is("forbid")) && tokens.iter().any(|t| t.is("unsafe_code"))
    });
    if is_root && !allowed && !forbids {
        let text = format!("{name} must say `#![forbid(unsafe_code)]`");
        violations.push(file.violation(1, "forbid-unsafe", text));
    }
}

/// A note on the same line, or in the comments right above the statement that holds `line`.
fn has_safety_note(file: &RustFile<'_>, line: usize) -> bool {
    let is_note = |text: &str| text.contains("SAFETY:") || text.contains("# Safety");
    let lines: Vec<&str> = file.source.text.lines().collect();
    if is_note(lines[line - 1]) {
        return true;
    }
    let mut in_comment = false;
    for above in lines[..line - 1].iter().rev() {
        let text = above.trim();
        let comment = text.starts_with("//");
        if comment && is_note(text) {
            return true;
        }
        let attribute = text.starts_with("#[");
        let ends_statement = text.is_empty() || text.ends_with([';', '{', '}']);
        if !comment && !attribute && (in_comment || ends_statement) {
            return false;
        }
        in_comment = comment;
    }
    false
}

fn attributes(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    for attribute in &file.source.attributes {
        let tokens = file.source.attribute(attribute);
        let line = tokens[0].line;
        let called = |word: &str| tokens.windows(2).any(|w| w[0].is(word) && w[1].is("("));
        let first = tokens.iter().find(|t| t.kind == Kind::Ident);
        if called("allow") {
            let text = "use `#[expect(.., reason = \"..\")]`: it goes when its cause goes";
            violations.push(file.violation(line, "allow", text.to_owned()));
        }
        if first.is_some_and(|t| t.is("ignore")) {
            let text = "a test that never runs proves nothing: run it, or skip loudly inside it";
            violations.push(file.violation(line, "ignored-test", text.to_owned()));
        }
    }
}

fn macros(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    let prints = PROGRAMS.iter().any(|p| file.path.starts_with(p));
    for (index, token) in file.source.code.iter().enumerate() {
        if token.kind != Kind::Ident || !file.source.reads(index + 1, &["!"]) {
            continue;
        }
        match token.text {
            "todo" | "unimplemented" => {
                let text = format!("`{}!`: write it, or do not offer it", token.text);
                violations.push(file.violation(token.line, "unfinished", text));
            }
            "print" | "println" | "eprint" | "eprintln" | "dbg" if !prints && !file.is_test(index) => {
                let text = format!("`{}!`: only the assay program prints", token.text);
                violations.push(file.violation(token.line, "printing", text));
            }
            _ => {}
        }
    }
}

fn exits(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    if PROGRAMS.iter().any(|p| file.path.starts_with(p)) {
        return;
    }
    for index in 0..file.source.code.len() {
        if file.is_test(index) || !file.source.reads(index, &["process", ":", ":"]) {
            continue;
        }
        let named = file.source.code[index + 3..]
            .iter()
            .take_while(|t| t.kind == Kind::Ident || t.is("{") || t.is(","))
            .any(|t| t.is("exit") || t.is("abort"));
        if named {
            let text = "only the assay program ends the process: return an error".to_owned();
            violations.push(file.violation(file.source.code[index].line, "exit", text));
        }
    }
}

fn databases(file: &RustFile<'_>, violations: &mut Vec<Violation>) {
    let bound = OF_NO_DATABASE.iter().any(|p| file.path.starts_with(p));
    if !bound {
        return;
    }
    for (index, token) in file.source.code.iter().enumerate() {
        let code = token.text.to_ascii_lowercase();
        let named = DATABASES.iter().find(|name| code.contains(**name));
        if let Some(name) = named.filter(|_| !file.is_test(index)) {
            let text = format!("`{name}` belongs in its folder: let the server tell a fact");
            violations.push(file.violation(token.line, "database", text));
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
        let indented = !inside && text.starts_with("     ");
        if indented || opens && fence.is_some_and(|kind| kind.trim() != "text") {
            let text = "code in documentation is not run: fence it as ```text, and test it in a test";
            violations.push(file.violation(index + 1, "doc-test", text.to_owned()));
        }
        inside = if fence.is_some() { opens } else { inside };
    }
}
