//! Which files are compiled at all: a file no `mod` names is dead.

use super::Tree;
use crate::source::{ModDeclaration, Source};
use std::collections::BTreeMap;

/// Every file reachable from a target's root, and whether only test code reaches it.
pub(crate) fn reached<'a>(tree: &Tree, sources: &BTreeMap<&'a str, Source<'_>>) -> BTreeMap<&'a str, bool> {
    let mut reached: BTreeMap<&'a str, bool> = BTreeMap::new();
    let roots = tree.packages.iter().flat_map(|package| &package.roots);
    let mut todo: Vec<(String, bool, bool)> = roots.map(|(path, test)| (path.clone(), *test, true)).collect();
    while let Some((path, test, root)) = todo.pop() {
        let Some((path, source)) = sources.get_key_value(path.as_str()) else {
            continue;
        };
        // Reached once as code, a file stays code whatever else reaches it.
        let known = reached.get(path).copied();
        if known == Some(false) || (known.is_some() && test) {
            continue;
        }
        reached.insert(path, test);
        for declaration in source.mod_declarations() {
            for candidate in candidates(path, root, &declaration) {
                todo.push((candidate, test || declaration.test, false));
            }
        }
    }
    reached
}

/// Where the compiler looks for a module.
fn candidates(path: &str, root: bool, declaration: &ModDeclaration<'_>) -> Vec<String> {
    let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = file.trim_end_matches(".rs");
    let mut base: Vec<&str> = folder.split('/').filter(|s| !s.is_empty()).collect();
    if let Some(named) = declaration.path {
        return vec![joined(&base, named)];
    }
    if !root && stem != "mod" {
        base.push(stem);
    }
    base.extend(&declaration.parents);
    let name = declaration.name;
    vec![joined(&base, &format!("{name}.rs")), joined(&base, &format!("{name}/mod.rs"))]
}

/// `base` and `rest` as one path, `..` resolved.
fn joined(base: &[&str], rest: &str) -> String {
    let mut steps: Vec<&str> = base.to_vec();
    for step in rest.split('/') {
        if step == ".." {
            steps.pop();
        } else if step != "." {
            steps.push(step);
        }
    }
    steps.join("/")
}
