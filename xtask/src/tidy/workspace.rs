//! Rules about the project as a whole: who depends on whom, what is listed where.

use super::tree::Package;
use super::{Tree, Violation};
use crate::lexer::Kind;
use crate::source::Source;
use std::collections::BTreeSet;

/// Which of our crates each crate may depend on.
const LAYERS: [(&str, &[&str]); 8] = [
    ("assay-measure", &[]),
    ("assay-block", &[]),
    ("assay-run", &["assay-measure"]),
    (
        "assay-engines",
        &["assay-run", "assay-measure", "assay-block"],
    ),
    ("assay-report", &["assay-measure"]),
    (
        "assay-control",
        &["assay-run", "assay-report", "assay-measure"],
    ),
    (
        "assay",
        &[
            "assay-measure",
            "assay-block",
            "assay-run",
            "assay-engines",
            "assay-report",
            "assay-control",
        ],
    ),
    ("xtask", &["assay-measure"]),
];

/// The one crate that may name an asynchronous runtime.
const RUNTIME_CRATE: &str = "assay-control";
const DEPENDENCIES: &str = "docs/DEPENDENCIES.md";
const ENGINES: &str = "crates/engines/src/";

/// Every rule of this module.
pub(crate) fn check(tree: &Tree, violations: &mut Vec<Violation>) {
    for package in &tree.packages {
        layers(package, violations);
    }
    dependency_lines(tree, violations);
    engine_folders(tree, violations);
    machine_paths(tree, violations);
}

fn violation(path: &str, line: usize, rule: &'static str, text: String) -> Violation {
    Violation {
        path: path.to_owned(),
        line,
        rule,
        text,
    }
}

fn layers(package: &Package, violations: &mut Vec<Violation>) {
    let allowed = LAYERS.iter().find(|(name, _)| *name == package.name);
    let in_workspace = package.manifest.starts_with("crates/");
    if allowed.is_none() && in_workspace {
        let text = format!("`{}` has no place in the dependency rules", package.name);
        violations.push(violation(&package.manifest, 0, "layers", text));
    }
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        let refused = allowed.is_some_and(|(_, list)| !list.contains(&name));
        if dependency.ours && refused {
            let text = format!("`{}` must not depend on `{name}`", package.name);
            violations.push(violation(&package.manifest, 0, "layers", text));
        }
        if name == "tokio" && package.name != RUNTIME_CRATE {
            let text = format!("tokio belongs in {RUNTIME_CRATE} alone");
            violations.push(violation(&package.manifest, 0, "runtime", text));
        }
    }
}

/// Each foreign crate has its line in the table, and each line its crate.
fn dependency_lines(tree: &Tree, violations: &mut Vec<Violation>) {
    let used: BTreeSet<&str> = tree
        .packages
        .iter()
        .flat_map(|package| &package.dependencies)
        .filter(|dependency| !dependency.ours)
        .map(|dependency| dependency.name.as_str())
        .collect();
    let table = tree.files.get(DEPENDENCIES).map_or("", String::as_str);
    let mut listed = BTreeSet::new();
    for (index, line) in table.lines().enumerate() {
        let cells: Vec<&str> = line.trim_matches('|').split('|').map(str::trim).collect();
        let Some(name) = cells[0].strip_prefix('`').and_then(|c| c.strip_suffix('`')) else {
            continue;
        };
        listed.insert(name);
        if !used.contains(name) {
            let text = format!("no package depends on `{name}`: remove its line");
            violations.push(violation(DEPENDENCIES, index + 1, "dependencies", text));
        }
        if cells.len() < 4 || cells.iter().any(|cell| cell.is_empty()) {
            let text = format!("`{name}` needs why, licence and exit plan");
            violations.push(violation(DEPENDENCIES, index + 1, "dependencies", text));
        }
    }
    for name in used.difference(&listed) {
        let text = format!("`{name}` has no line here: crate, why, licence, exit plan");
        violations.push(violation(DEPENDENCIES, 0, "dependencies", text));
    }
}

/// A target is a folder with a README, named in the registry, that runs the conformance suite.
fn engine_folders(tree: &Tree, violations: &mut Vec<Violation>) {
    let below = |path: &str| path.strip_prefix(ENGINES).map(str::to_owned);
    let inside: Vec<String> = tree.files.keys().filter_map(|p| below(p)).collect();
    let folders: BTreeSet<&str> = inside
        .iter()
        .filter_map(|path| path.split_once('/').map(|(folder, _)| folder))
        .filter(|folder| !matches!(*folder, "conformance" | "dataset"))
        .collect();
    for path in &inside {
        let loose = !path.contains('/') && path.ends_with(".rs");
        if loose && !matches!(path.as_str(), "lib.rs" | "registry.rs" | "conformance.rs") {
            let text = "a target or probe is a folder with a README.md".to_owned();
            violations.push(violation(&format!("{ENGINES}{path}"), 0, "engines", text));
        }
    }
    let registry_path = format!("{ENGINES}registry.rs");
    let registry = tree.files.get(&registry_path).map_or("", String::as_str);
    let named = names(registry);
    for folder in folders {
        let path = format!("{ENGINES}{folder}/README.md");
        if !tree.files.contains_key(&path) {
            let text = "missing: privileges, versions, what the target writes".to_owned();
            violations.push(violation(&path, 0, "engines", text));
        }
        if !named.contains(folder) {
            let text = format!("`{folder}` is not listed");
            violations.push(violation(&registry_path, 0, "engines", text));
        }
        let folder_path = format!("{ENGINES}{folder}/");
        let suite = tree
            .files
            .iter()
            .filter(|(path, _)| path.starts_with(&folder_path) && path.ends_with(".rs"))
            .any(|(_, text)| names(text).contains("conformance"));
        if !suite {
            let text = "its tests do not run the conformance suite".to_owned();
            violations.push(violation(&folder_path, 0, "engines", text));
        }
    }
}

/// Identifiers a source uses, outside strings and comments.
fn names(text: &str) -> BTreeSet<&str> {
    let source = Source::new(text);
    let code = source.code.into_iter();
    code.filter(|t| t.kind == Kind::Ident)
        .map(|t| t.text)
        .collect()
}

/// Paths that exist on one machine only say nothing to anybody else.
fn machine_paths(tree: &Tree, violations: &mut Vec<Violation>) {
    // Written in pieces, so that this list does not break its own rule.
    let refused = [
        concat!("/", "root/"),
        concat!("/", "work/"),
        concat!("/", "home/"),
        concat!("/", "Users/"),
        concat!("/tmp/", "wt"),
        concat!("/tmp/", "brief"),
    ];
    for (path, text) in &tree.files {
        for (index, line) in text.lines().enumerate() {
            for prefix in refused.iter().filter(|prefix| starts_path(line, prefix)) {
                let text = format!("`{prefix}` is a path of one machine: use a relative one");
                violations.push(violation(path, index + 1, "machine-path", text));
            }
        }
    }
}

/// Whether `prefix` stands in `line` as the beginning of a path, not in the middle of one.
fn starts_path(line: &str, prefix: &str) -> bool {
    line.match_indices(prefix).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || "._-/}$*)".contains(c))
    })
}
