//! How large the code is: tokens of product code by crate, and the budget of each.

use super::tokens::count;
use super::{Tree, Violation};
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

/// Where the budgets stand, from the root of the tree.
pub(crate) const FILE: &str = "xtask/size.toml";

/// Tokens of product code by crate: identifiers, literals and marks of punctuation, each one; no comments, no tests.
fn tokens(tree: &Tree) -> BTreeMap<&str, usize> {
    let mut crates = BTreeMap::new();
    for (path, text) in &tree.files {
        if let Some(name) = owner(path) {
            *crates.entry(name).or_default() += count(text);
        }
    }
    crates
}

/// `report` of `crates/report/src/lib.rs`, `xtask` of `xtask/src/main.rs`; none of what is for tests by its name.
fn owner(path: &str) -> Option<&str> {
    let steps: Vec<&str> = path.strip_suffix(".rs")?.split('/').collect();
    let (file, folders) = steps.split_last()?;
    let is_for_tests = ["tests", "testing"].contains(file)
        || file.contains("fixture")
        || folders.iter().any(|folder| ["tests", "benches", "fuzz", "testkit"].contains(folder));
    let name = folders.iter().find(|folder| **folder != "crates")?;
    (!is_for_tests).then_some(name)
}

fn budgets(text: &str) -> Result<BTreeMap<String, usize>> {
    toml::from_str(text).context(FILE)
}

/// Each crate with its tokens and its budget.
///
/// # Errors
/// When the budgets cannot be read.
pub(crate) fn table(tree: &Tree) -> Result<String> {
    let budgets = budgets(tree.files.get(FILE).map_or("", String::as_str))?;
    let tokens = tokens(tree);
    let mut text = format!("{:<12} {:>9} {:>9}\n", "crate", "tokens", "budget");
    let rows = tokens.iter().map(|(name, tokens)| (*name, *tokens, budgets.get(*name).copied().unwrap_or(0)));
    for (name, tokens, budget) in rows.chain([("all", tokens.values().sum(), budgets.values().sum())]) {
        writeln!(text, "{name:<12} {tokens:>9} {budget:>9}")?;
    }
    Ok(text)
}

/// The budgets with the present figures where those are lower, and what else stands there untouched.
pub(crate) fn lowered(tree: &Tree) -> String {
    let tokens = tokens(tree);
    let line = |line: &str| {
        let (name, budget) = line.split_once(" = ")?;
        let now = tokens.get(name)?;
        budget.parse().is_ok_and(|budget: usize| *now < budget).then(|| format!("{name} = {now}\n"))
    };
    let lines = tree.files.get(FILE).map_or("", String::as_str).lines();
    lines.map(|text| line(text).unwrap_or_else(|| format!("{text}\n"))).collect()
}

/// The rule: no crate is above its budget, each has one, and each budget has its crate.
pub(super) fn check(tree: &Tree, violations: &mut Vec<Violation>) {
    let Some(text) = tree.files.get(FILE) else {
        return;
    };
    let mut tell = |text: String| violations.push(Violation::new(FILE, 0, "size", text));
    let budgets = match budgets(text) {
        Ok(budgets) => budgets,
        Err(error) => return tell(format!("cannot be read: {error:#}")),
    };
    let tokens = tokens(tree);
    let all: BTreeSet<&str> = tokens.keys().copied().chain(budgets.keys().map(String::as_str)).collect();
    for name in all {
        match (tokens.get(name), budgets.get(name)) {
            (Some(now), Some(budget)) if now > budget => tell(format!(
                "`{name}` has {now} tokens of product code, its budget is {budget}: make it smaller, or raise its line \
                 in a commit that says what the reader gets for it"
            )),
            (Some(now), None) => {
                tell(format!("`{name}` has {now} tokens of product code and no budget: give it a line"))
            }
            (None, _) => tell(format!("there is no crate `{name}`: remove its line")),
            _ => {}
        }
    }
}
