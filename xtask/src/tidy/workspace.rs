//! Rules about the project as a whole: who depends on whom, what is listed where.

use super::tree::Package;
use super::{RustFile, Tree, Violation};
use crate::lexer::Kind;
use crate::source::Source;
use std::collections::BTreeSet;

/// What a crate of targets or probes may depend on: never on another of them.
const FEATURE: &[&str] = &["assay-slob", "assay-run", "assay-awr", "assay-measure", "assay-block"];

/// The same of servers, which bring their own words for workloads that speak SQL.
const SERVER: &[&str] = &["assay-slob", "assay-orders", "assay-run", "assay-awr", "assay-measure", "assay-block"];

/// The same of workloads.
const WORKLOAD: &[&str] = &["assay-run", "assay-awr", "assay-measure"];

/// Which of our crates each crate may depend on.
const LAYERS: [(&str, &[&str]); 19] = [
    ("assay-derive", &[]),
    ("assay-measure", &["assay-derive"]),
    ("assay-block", &[]),
    ("assay-run", &["assay-measure"]),
    ("assay-awr", &["assay-measure"]),
    ("assay-native", FEATURE),
    ("assay-sql", SERVER),
    ("assay-slob", WORKLOAD),
    ("assay-orders", WORKLOAD),
    ("assay-storage", FEATURE),
    ("assay-probes", FEATURE),
    ("assay-sweep", &["assay-measure"]),
    ("assay-platform", &["assay-measure"]),
    // Of the kinds it needs the parts of records and the names of parameters alone.
    ("assay-import", &["assay-awr", "assay-measure", "assay-slob", "assay-storage"]),
    ("assay-report", &["assay-measure"]),
    ("assay-control", &["assay-run", "assay-report", "assay-measure"]),
    (
        "assay",
        &[
            "assay-measure",
            "assay-block",
            "assay-run",
            "assay-awr",
            "assay-import",
            "assay-native",
            "assay-sql",
            "assay-slob",
            "assay-orders",
            "assay-storage",
            "assay-probes",
            "assay-sweep",
            "assay-platform",
            "assay-report",
            "assay-control",
        ],
    ),
    // No list names it, so only tests may need it. What it needs is compiled for the tests of every crate.
    ("assay-testkit", &["assay-measure", "assay-block", "assay-run"]),
    ("xtask", &["assay-measure"]),
];

/// The one crate that may name an asynchronous runtime.
const RUNTIME_CRATE: &str = "assay-control";
const DEPENDENCIES: &str = "docs/DEPENDENCIES.md";
/// Where every target and every other probe than those of `PROBES` has its line.
const REGISTRY: &str = "crates/assay/src/registry.rs";
const PROBES: &str = "crates/probes/src/lib.rs";

/// Every rule of this module.
pub(crate) fn check(tree: &Tree, files: &[RustFile<'_>], violations: &mut Vec<Violation>) {
    for package in &tree.packages {
        layers(package, violations);
    }
    dependency_lines(tree, violations);
    targets(tree, files, violations);
    machine_paths(tree, violations);
}

fn layers(package: &Package, violations: &mut Vec<Violation>) {
    let allowed = LAYERS.iter().find(|(name, _)| *name == package.name);
    let in_workspace = package.manifest.starts_with("crates/");
    if allowed.is_none() && in_workspace {
        let text = format!("`{}` has no place in the dependency rules", package.name);
        violations.push(Violation::new(&package.manifest, 0, "layers", text));
    }
    for dependency in &package.dependencies {
        let name = dependency.name.as_str();
        let refused = allowed.is_some_and(|(_, list)| !list.contains(&name));
        if dependency.ours && !dependency.for_tests && refused {
            let text = format!("`{}` must not depend on `{name}`", package.name);
            violations.push(Violation::new(&package.manifest, 0, "layers", text));
        }
        if name == "tokio" && package.name != RUNTIME_CRATE {
            let text = format!("tokio belongs in {RUNTIME_CRATE} alone");
            violations.push(Violation::new(&package.manifest, 0, "runtime", text));
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
            violations.push(Violation::new(DEPENDENCIES, index + 1, "dependencies", text));
        }
        if cells.len() < 4 || cells.iter().any(|cell| cell.is_empty()) {
            let text = format!("`{name}` needs why, licence and exit plan");
            violations.push(Violation::new(DEPENDENCIES, index + 1, "dependencies", text));
        }
    }
    for name in used.difference(&listed) {
        let text = format!("`{name}` has no line here: crate, why, licence, exit plan");
        violations.push(Violation::new(DEPENDENCIES, 0, "dependencies", text));
    }
}

/// The list of workloads with the targets that bear another than SLOB. They lie in the folder of their server, and the suite, whose
/// operations are SLOB's, is not theirs to run.
fn listed_for_workloads(registry: &str) -> &str {
    list_of(registry, "static WORKLOADS")
}

/// A list of a source, from its name to its end.
fn list_of<'a>(source: &'a str, name: &str) -> &'a str {
    let list = source.split_once(name);
    list.and_then(|(_, rest)| rest.split_once("];")).map_or("", |(list, _)| list)
}

/// A target, found by its trait wherever it is made, or a probe, found by its constant, has a folder of its own with a README, its line in the
/// registry and tests that run the conformance suite.
fn targets(tree: &Tree, files: &[RustFile<'_>], violations: &mut Vec<Violation>) {
    let registry = tree.files.get(REGISTRY).map_or("", String::as_str);
    let probes = list_of(tree.files.get(PROBES).map_or("", String::as_str), "const PROBES");
    let named = &names(registry) | &names(probes);
    let of_workloads = names(listed_for_workloads(registry));
    let is_slobs = |name: &str| !of_workloads.contains(name);
    let made: Vec<Made<'_>> = files.iter().flat_map(made_in).collect();
    for target in &made {
        let Made { name, folder, .. } = target;
        // A crate that is one target describes it at its top.
        let home = folder.strip_suffix("/src").unwrap_or(folder);
        let readme = format!("{home}/README.md");
        if !tree.files.contains_key(&readme) {
            let text = format!("missing: privileges, versions, what `{name}` writes");
            violations.push(Violation::new(&readme, 0, "targets", text));
        }
        if !named.contains(name) && !named.contains(format!("assay_{name}").as_str()) {
            let text = format!("`{name}` is not listed");
            violations.push(Violation::new(REGISTRY, 0, "targets", text));
        }
        let inside = |path: &str| path.strip_prefix(folder).is_some_and(|rest| rest.starts_with('/'));
        if is_slobs(name) && !files.iter().any(|f| inside(f.path) && runs_suite(f)) {
            let text = format!("the tests of `{name}` do not run the conformance suite");
            violations.push(Violation::new(folder, 0, "targets", text));
        }
        let within = |other: &&Made<'_>| other.name != *name && inside(other.path) && is_slobs(other.name);
        if let Some(other) = made.iter().find(within) {
            let text = format!("`{name}` needs a folder of its own: `{}` lies in it", other.name);
            violations.push(Violation::new(target.path, 0, "targets", text));
        }
    }
}

/// A target or probe.
struct Made<'a> {
    /// The type of a target, the module or crate of a probe.
    name: &'a str,
    path: &'a str,
    folder: &'a str,
}

/// The targets and probes a file makes, tests' own left out. A target of order entry is made by its `Life`; what has it lead that is
/// generic.
fn made_in<'a>(file: &'a RustFile<'_>) -> Vec<Made<'a>> {
    let code = &file.source.code;
    let made = code.windows(4).enumerate().filter_map(|(index, words)| {
        let [kind, word, name, next] = words else {
            return None;
        };
        let folder = file.path.rsplit_once('/')?.0;
        let is_target = matches!(kind.text, "Target" | "Life") && word.is("for") && !next.is("<");
        let is_probe = kind.is("SPEC") && word.is(":") && name.is("ProbeSpec");
        if !(is_target || is_probe) || name.kind != Kind::Ident || file.is_test(index) {
            return None;
        }
        let module = folder.rsplit('/').find(|part| *part != "src")?;
        Some(Made { name: if is_probe { module } else { name.text }, path: file.path, folder })
    });
    made.collect()
}

/// Whether a test in this file names the suite.
fn runs_suite(file: &RustFile<'_>) -> bool {
    let mut code = file.source.code.iter().enumerate();
    code.any(|(index, token)| token.kind == Kind::Ident && token.text == "conformance" && file.is_test(index))
}

/// Identifiers a source uses, outside strings and comments.
fn names(text: &str) -> BTreeSet<&str> {
    let source = Source::new(text);
    let code = source.code.into_iter();
    code.filter(|t| t.kind == Kind::Ident).map(|t| t.text).collect()
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
                violations.push(Violation::new(path, index + 1, "machine-path", text));
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
