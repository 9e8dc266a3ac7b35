//! How large the code is: lines of product code, of tests, of comments and blank ones, by crate.

use crate::tidy::{RustFile, Tree, rust_files};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::AddAssign;

/// Lines by what they are; each line is counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Lines {
    product: usize,
    tests: usize,
    comments: usize,
    blank: usize,
}

impl AddAssign for Lines {
    fn add_assign(&mut self, other: Self) {
        self.product += other.product;
        self.tests += other.tests;
        self.comments += other.comments;
        self.blank += other.blank;
    }
}

/// The table of a tree: product code is what is compiled outside tests, without comments and blank lines; comments and
/// blank lines of tests are counted as such.
pub(crate) fn table(tree: &Tree) -> String {
    let mut crates: BTreeMap<String, Lines> = BTreeMap::new();
    let mut all = Lines::default();
    for file in rust_files(tree) {
        let lines = count(&file);
        *crates.entry(owner(file.path).to_owned()).or_default() += lines;
        all += lines;
    }
    let mut text = format!("{:<12} {:>9} {:>9} {:>9} {:>9}\n", "crate", "product", "tests", "comments", "blank");
    let rows = crates.iter().map(|(name, lines)| (name.as_str(), lines));
    for (name, lines) in rows.chain([("all", &all)]) {
        // Writing into a text cannot fail.
        let _ = writeln!(
            text,
            "{name:<12} {:>9} {:>9} {:>9} {:>9}",
            lines.product, lines.tests, lines.comments, lines.blank
        );
    }
    text
}

/// `report` of `crates/report/src/lib.rs`, `xtask` of `xtask/src/main.rs`.
fn owner(path: &str) -> &str {
    let path = path.strip_prefix("crates/").unwrap_or(path);
    path.split('/').next().unwrap_or(path)
}

fn count(file: &RustFile<'_>) -> Lines {
    let (mut product, mut tests) = (BTreeSet::new(), BTreeSet::new());
    for (index, token) in file.source.code.iter().enumerate() {
        let set = match file.is_test(index) {
            true => &mut tests,
            false => &mut product,
        };
        set.extend(token.line..=token.last_line());
    }
    tests.retain(|line| !product.contains(line));
    let mut lines = Lines { product: product.len(), tests: tests.len(), ..Lines::default() };
    for (index, text) in file.source.text.lines().enumerate() {
        let is_code = product.contains(&(index + 1)) || tests.contains(&(index + 1));
        match (is_code, text.trim().is_empty()) {
            (true, _) => {}
            (false, true) => lines.blank += 1,
            (false, false) => lines.comments += 1,
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::Source;

    #[test]
    fn each_line_is_counted_once() {
        let text = "//! Doc.\n\nfn one() {\n    // why\n    two(); // and why\n}\n\n#[cfg(test)]\nmod tests {\n    fn three() {}\n}\n";
        let file = RustFile { path: "crates/run/src/lib.rs", source: Source::new(text), test: false, dead: false };
        let lines = count(&file);
        let expected = Lines { product: 3, tests: 4, comments: 2, blank: 2 };
        assert_eq!(lines, expected);
        assert_eq!(owner(file.path), "run");
        assert_eq!(owner("xtask/src/main.rs"), "xtask");
    }
}
