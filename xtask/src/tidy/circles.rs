//! Modules of one folder use each other one way only, each taken with all that lies below it: so a folder can be read
//! from the module that uses no other upwards.
//!
//! The folder's own file is no part of that: it and what lies below it are one thing, whoever of them uses whom. Test
//! code is left out. A use is a path: of a `use`, or where it stands. Where it goes on from a module that only imports
//! the name, it is followed to where that comes from: a re-export hides nothing.

use super::{RustFile, Tree, Violation};
use crate::lexer::Kind;
use std::collections::{BTreeMap, BTreeSet};

/// Names of modules, outermost first; none is the crate's root.
type Place<'a> = Vec<&'a str>;

/// What one module says of others.
struct Module<'a> {
    /// Paths as they are written, with their lines.
    paths: Vec<(usize, Vec<&'a str>)>,
    /// The names it imports, each with its path.
    imports: BTreeMap<&'a str, Vec<&'a str>>,
}

/// The modules of a crate.
type Modules<'a> = BTreeMap<Place<'a>, (&'a RustFile<'a>, Module<'a>)>;

/// User and used, both modules of one folder, and a place where that stands.
type Uses<'a> = BTreeMap<(&'a str, &'a str), String>;

/// Every crate of the project.
pub(super) fn check(tree: &Tree, files: &[RustFile<'_>], violations: &mut Vec<Violation>) {
    let roots = tree.packages.iter().flat_map(|package| &package.roots);
    let folders: BTreeSet<&str> = roots
        .filter(|(_, test)| !test)
        .filter_map(|(path, _)| path.rsplit_once('/').map(|(folder, _)| folder))
        .collect();
    for folder in folders {
        for (place, uses) in uses(&modules(tree, files, folder)) {
            let path = [&[folder], &place[..]].concat().join("/");
            for group in loops(&uses) {
                violations.push(Violation::new(&path, 0, "circles", text(&group, &uses)));
            }
        }
    }
}

fn text(group: &BTreeSet<&str>, uses: &Uses<'_>) -> String {
    let within = |(user, used): &(&str, &str)| group.contains(user) && group.contains(used);
    let said: Vec<String> = uses
        .iter()
        .filter(|(pair, _)| within(pair))
        .map(|((user, used), at)| format!("`{user}` uses `{used}` ({at})"))
        .collect();
    format!("a loop: {}; move what they share to a module below them", said.join(", "))
}

fn modules<'a>(tree: &Tree, files: &'a [RustFile<'a>], folder: &str) -> Modules<'a> {
    let is_root = |path: &str| tree.packages.iter().any(|p| p.roots.iter().any(|r| r.0 == path));
    let mut modules = Modules::new();
    for file in files.iter().filter(|file| !file.test) {
        let below = file.path.strip_prefix(folder).and_then(|p| p.strip_prefix('/'));
        let Some(below) = below.and_then(|path| path.strip_suffix(".rs")) else {
            continue;
        };
        let mut place: Place<'a> = below.split('/').collect();
        if is_root(file.path) || place.last() == Some(&"mod") {
            place.pop();
        }
        modules.insert(place, (file, module(file)));
    }
    modules
}

fn module<'a>(file: &RustFile<'a>) -> Module<'a> {
    let code = &file.source.code;
    let (mut paths, mut imports) = (Vec::new(), BTreeMap::new());
    let mut index = 0;
    while index < code.len() {
        let begin = index;
        index += 1;
        if file.is_test(begin) || code[begin].kind != Kind::Ident {
            continue;
        }
        let is_use = code[begin].is("use");
        let mut read = Vec::new();
        index = read_paths(file, begin + usize::from(is_use), &[], &mut read).max(index);
        for (name, path) in read {
            if is_use {
                imports.insert(name, path.clone());
            }
            if path.len() > 1 {
                paths.push((code[begin].line, path));
            }
        }
    }
    Module { paths, imports }
}

/// Reads the path at `index`, or all those that a `use` has there in braces, each with the name it gets; returns where
/// they end.
fn read_paths<'a>(
    file: &RustFile<'a>,
    mut index: usize,
    before: &[&'a str],
    read: &mut Vec<(&'a str, Vec<&'a str>)>,
) -> usize {
    let code = &file.source.code;
    let is = |index: usize, word: &str| file.source.reads(index, &[word]);
    let mut path = before.to_vec();
    while let Some(word) = code.get(index).filter(|token| token.kind == Kind::Ident) {
        path.push(word.text);
        index += 1;
        if !file.source.reads(index, &[":", ":"]) {
            break;
        }
        index += 2;
    }
    if is(index, "{") && (is(index - 1, ":") || is(index - 1, "use")) {
        while index < code.len() && !is(index, "}") {
            index = read_paths(file, index + 1, &path, read);
            while index < code.len() && !is(index, ",") && !is(index, "}") {
                index += 1;
            }
        }
        return index + 1;
    }
    // A comma before the brace that closes has no path behind it.
    if path.len() > before.len() || is(index, "*") {
        let given = code.get(index + 1).filter(|_| is(index, "as"));
        let own = path.iter().rev().find(|word| **word != "self").copied();
        let name = given.map(|token| token.text).or(own);
        read.push((name.unwrap_or_default(), path));
    }
    index
}

/// The module a path leads to, seen from the module at `from`, as far as that can be told without a compiler.
fn find<'a>(modules: &Modules<'a>, from: &[&'a str], path: &[&'a str], patience: u8) -> Option<Place<'a>> {
    let mut at = from.to_vec();
    for (index, word) in path.iter().enumerate() {
        match *word {
            "crate" => at.clear(),
            "self" => {}
            "super" => {
                at.pop();
            }
            word => {
                at.push(word);
                if modules.contains_key(&at) {
                    continue;
                }
                at.pop();
                // An item of this module, a name that it imports, or another crate's.
                let Some(import) = modules.get(&at).and_then(|(_, m)| m.imports.get(word)) else {
                    return (index > 0).then_some(at);
                };
                let whole = [import, &path[index + 1..]].concat();
                return find(modules, &at, &whole, patience.checked_sub(1)?);
            }
        }
    }
    Some(at)
}

/// By folder, who in it uses whom.
fn uses<'a>(modules: &Modules<'a>) -> BTreeMap<Place<'a>, Uses<'a>> {
    let mut uses: BTreeMap<Place<'a>, Uses<'a>> = BTreeMap::new();
    for (from, (file, module)) in modules {
        for (line, path) in &module.paths {
            let to = find(modules, from, path, 8).unwrap_or_default();
            let common = from.iter().zip(&to).take_while(|(a, b)| a == b).count();
            if let (Some(user), Some(used)) = (from.get(common), to.get(common)) {
                let folder = uses.entry(from[..common].to_vec()).or_default();
                let at = || format!("{}:{line}", file.path);
                folder.entry((user, used)).or_insert_with(at);
            }
        }
    }
    uses
}

/// The modules that use each other, be it by way of others.
fn loops<'a>(uses: &Uses<'a>) -> Vec<BTreeSet<&'a str>> {
    let reached = |from: &'a str| {
        let (mut reached, mut todo) = (BTreeSet::new(), vec![from]);
        while let Some(user) = todo.pop() {
            let used = uses.keys().filter(|pair| pair.0 == user).map(|pair| pair.1);
            todo.extend(used.filter(|used| reached.insert(*used)));
        }
        reached
    };
    let all: BTreeMap<&str, BTreeSet<&str>> = uses.keys().map(|(user, _)| (*user, reached(user))).collect();
    let mut loops: Vec<BTreeSet<&str>> = Vec::new();
    for (name, used) in all.iter().filter(|(name, used)| used.contains(*name)) {
        if !loops.iter().any(|group| group.contains(name)) {
            let back = |other: &&str| all.get(other).is_some_and(|used| used.contains(name));
            loops.push(used.iter().copied().filter(back).collect());
        }
    }
    loops
}
