//! What the rules read: the project's files and what cargo says of its packages.

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// The project in memory, so that rules are tested without a disk.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    /// Text of every tracked text file by its path from the workspace root.
    pub(crate) files: BTreeMap<String, String>,
    /// Paths of tracked files that hold no text: pictures.
    pub(crate) others: BTreeSet<String>,
    /// Packages of the workspace and of workspaces of their own below it (`fuzz/`).
    pub(crate) packages: Vec<Package>,
    /// Every foreign crate that is built, and ours.
    pub(crate) crates: Vec<Crate>,
}

/// One package.
#[derive(Clone, Debug, Default)]
pub(crate) struct Package {
    /// Its name.
    pub(crate) name: String,
    /// Its manifest from the workspace root.
    pub(crate) manifest: String,
    /// Direct dependencies of every kind.
    pub(crate) dependencies: Vec<Dependency>,
    /// Root files of its library, binaries, tests and benches, and whether they are test code.
    pub(crate) roots: Vec<(String, bool)>,
}

/// One direct dependency.
#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    /// Name in the registry.
    pub(crate) name: String,
    /// Whether it lies in this project.
    pub(crate) ours: bool,
    /// Whether the tests alone need it.
    pub(crate) for_tests: bool,
    /// The versions that satisfy it; `*` for any.
    pub(crate) versions: String,
}

/// One crate of the build.
#[derive(Clone, Debug, Default)]
pub(crate) struct Crate {
    /// Its name.
    pub(crate) name: String,
    /// Its version.
    pub(crate) version: String,
    /// Where it comes from, unless that is the registry: a directory or a repository.
    pub(crate) place: Option<String>,
    /// The SPDX expression of its manifest; empty where it has none.
    pub(crate) licence: String,
}

impl Crate {
    /// Reads `NAME vVERSION [(proc-macro)] [(PLACE)]|LICENCE`, as `cargo tree` prints it.
    pub(crate) fn read(line: &str) -> Option<Self> {
        let (package, licence) = line.rsplit_once('|')?;
        let (name, rest) = package.split_once(" v")?;
        let (version, rest) = rest.split_once(' ').unwrap_or((rest, ""));
        let notes = rest.split_terminator(')').map(|note| note.trim_start_matches([' ', '(']));
        Some(Self {
            name: name.to_owned(),
            version: version.to_owned(),
            place: notes.filter(|note| *note != "proc-macro").map(str::to_owned).next(),
            // A crate that its own tests lead back to stands there twice, the second time with a mark.
            licence: licence.trim_end_matches(" (*)").to_owned(),
        })
    }
}

impl Tree {
    /// Reads the project at `root`.
    ///
    /// # Errors
    /// When cargo or a file cannot be read.
    pub(crate) fn load(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        let mut others = BTreeSet::new();
        for path in tracked(root)? {
            let full = root.join(&path);
            // A tracked file may be deleted in the work tree, and a link may point nowhere.
            if full.is_file() {
                let bytes = std::fs::read(&full).with_context(|| path.clone())?;
                match String::from_utf8(bytes) {
                    Ok(text) => drop(files.insert(path, text)),
                    Err(_) => drop(others.insert(path)),
                }
            }
        }
        let manifest = root.join("Cargo.toml");
        let mut packages = packages(root, &metadata(&manifest)?)?;
        let below = files.iter().filter(|(path, text)| path.ends_with("/Cargo.toml") && text.contains("[workspace]"));
        for (path, _) in below {
            let below = metadata(&root.join(path))?;
            packages.extend(self::packages(root, &below)?);
        }
        let crates = crates(&manifest)?;
        Ok(Self { files, others, packages, crates })
    }
}

/// Files git tracks or would track; without git, every file outside `target` and hidden folders.
fn tracked(root: &Path) -> Result<Vec<String>> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others"])
        .arg("--exclude-standard")
        .current_dir(root)
        .output();
    match listed {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8(output.stdout).context("file names")?;
            Ok(text.split_terminator('\0').map(str::to_owned).collect())
        }
        _ => {
            let mut found = Vec::new();
            walk(root, "", &mut found)?;
            Ok(found)
        }
    }
}

fn walk(root: &Path, below: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(below))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if below.is_empty() { name.clone() } else { format!("{below}/{name}") };
        let kind = entry.file_type()?;
        let skipped = name == "target" || name == ".git" || path.starts_with("assay-");
        if kind.is_dir() && !skipped {
            walk(root, &path, found)?;
        } else if kind.is_file() {
            found.push(path);
        }
    }
    Ok(())
}

fn cargo(command: &str, manifest: &Path, more: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new(env!("CARGO"))
        .arg(command)
        .args(more)
        .arg("--manifest-path")
        .arg(manifest)
        .output()
        .with_context(|| format!("cargo {command}"))?;
    if !output.status.success() {
        let why = String::from_utf8_lossy(&output.stderr);
        bail!("cargo {command} of {}: {why}", manifest.display());
    }
    Ok(output.stdout)
}

fn metadata(manifest: &Path) -> Result<Value> {
    let printed = cargo("metadata", manifest, &["--no-deps", "--format-version", "1"])?;
    serde_json::from_slice(&printed).context("cargo metadata")
}

/// What is built. `cargo tree` tells it by the features in use; `cargo metadata` lists crates that no feature brings in.
fn crates(manifest: &Path) -> Result<Vec<Crate>> {
    let shown = ["--prefix", "none", "--no-dedupe", "--format", "{p}|{l}"];
    let all = ["--workspace", "--all-features", "--locked"];
    let printed = cargo("tree", manifest, &[&shown[..], &all[..]].concat())?;
    let printed = String::from_utf8(printed).context("cargo tree")?;
    let lines: BTreeSet<&str> = printed.lines().filter(|line| !line.is_empty()).collect();
    lines.into_iter().map(|line| Crate::read(line).with_context(|| format!("cargo tree: `{line}`"))).collect()
}

fn packages(root: &Path, document: &Value) -> Result<Vec<Package>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let list = |value: &Value, key: &str| value[key].as_array().cloned().unwrap_or_default();
    let relative = |value: &Value| {
        let path = text(value);
        let below = Path::new(&path).strip_prefix(root);
        below.map_or(path.clone(), |p| p.to_string_lossy().into_owned())
    };
    let mut found = Vec::new();
    for package in list(document, "packages") {
        let dependencies = list(&package, "dependencies");
        let targets = list(&package, "targets");
        found.push(Package {
            name: text(&package["name"]),
            manifest: relative(&package["manifest_path"]),
            dependencies: dependencies
                .iter()
                .map(|dependency| Dependency {
                    name: text(&dependency["name"]),
                    ours: dependency["path"].is_string(),
                    for_tests: dependency["kind"] == "dev",
                    versions: text(&dependency["req"]),
                })
                .collect(),
            roots: targets
                .iter()
                .map(|target| {
                    let kind = text(&target["kind"][0]);
                    let test = matches!(kind.as_str(), "test" | "bench" | "example");
                    (relative(&target["src_path"]), test)
                })
                .collect(),
        });
    }
    Ok(found)
}
