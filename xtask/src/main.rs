//! Project chores: `cargo xtask tidy` checks the rules no compiler checks,
//! `cargo xtask size` counts the code and holds it to a budget, `cargo xtask bench` prints how fast assay is beside its yardsticks,
//! `cargo xtask dist` packs what is handed on.
#![forbid(unsafe_code)]
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a command line tool of the project itself, never a library"
)]

mod bench;
mod dist;
mod lexer;
mod notices;
mod source;
mod tidy;

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tidy::size;

const USAGE: &str = "\
usage: cargo xtask tidy                 check the project's own rules
       cargo xtask size [--lower]       tokens of product code by crate beside their budgets; lower these to what there is
       cargo xtask bench [NAME...]      print ratios to the yardsticks; `bench --help` lists them
       cargo xtask dist [ARGS...]       pack the program to be installed; `dist --help` lists its arguments
       cargo xtask faults [--dev] ARGS...   run the fault harness; `faults --help` lists its arguments
       cargo xtask get FILE PATH        print one value of a JSON file (PATH: run.workload, stats.0.name)
       cargo xtask keys FILE            print the sorted paths of a JSON file's keys, array places as []";

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match dispatch(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn dispatch(args: &[String]) -> Result<ExitCode> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["tidy"] => run_tidy(),
        ["size"] => {
            print!("{}", size::table(&tidy::Tree::load(&workspace_root())?)?);
            Ok(ExitCode::SUCCESS)
        }
        ["size", "--lower"] => {
            let root = workspace_root();
            std::fs::write(root.join(size::FILE), size::lowered(&tidy::Tree::load(&root)?))?;
            Ok(ExitCode::SUCCESS)
        }
        [bench::helper::WORD, rest @ ..] => {
            bench::helper::run(rest)?;
            Ok(ExitCode::SUCCESS)
        }
        ["bench", "--help" | "-h"] => {
            println!("{}", bench::usage()?);
            Ok(ExitCode::SUCCESS)
        }
        ["bench", rest @ ..] => {
            bench::run(&workspace_root(), rest)?;
            Ok(ExitCode::SUCCESS)
        }
        ["dist", "--help" | "-h"] => {
            println!("{}", dist::USAGE);
            Ok(ExitCode::SUCCESS)
        }
        ["dist", rest @ ..] => {
            dist::run(&workspace_root(), rest)?;
            Ok(ExitCode::SUCCESS)
        }
        ["faults", "--dev", rest @ ..] => run_faults("dev", rest),
        ["faults", rest @ ..] => run_faults("release", rest),
        ["get", file, path] => {
            println!("{}", get(Path::new(file), path)?);
            Ok(ExitCode::SUCCESS)
        }
        ["keys", file] => {
            let mut paths = BTreeSet::new();
            key_paths(&document(Path::new(file))?, "", &mut paths);
            paths.iter().for_each(|path| println!("{path}"));
            Ok(ExitCode::SUCCESS)
        }
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            Ok(ExitCode::SUCCESS)
        }
        _ => bail!("no such chore\n{USAGE}"),
    }
}

fn run_tidy() -> Result<ExitCode> {
    let tree = tidy::Tree::load(&workspace_root())?;
    let violations = tidy::check(&tree);
    for violation in &violations {
        println!("{violation}");
    }
    if violations.is_empty() {
        println!("tidy: {} files, all rules hold", tree.files.len());
        return Ok(ExitCode::SUCCESS);
    }
    println!("tidy: {} violations", violations.len());
    Ok(ExitCode::FAILURE)
}

/// Builds the fault harness, which is never part of the shipped program, and runs it.
fn run_faults(profile: &str, args: &[&str]) -> Result<ExitCode> {
    let status = std::process::Command::new("cargo")
        .current_dir(workspace_root())
        .args(["run", "--quiet", "--locked", "--profile", profile])
        .args(["--package", "assay-testkit", "--example", "faults", "--"])
        .args(args)
        .status()
        .context("cargo")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The directory of the workspace's `Cargo.toml`, known since this crate was compiled in it.
fn workspace_root() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here).to_path_buf()
}

fn document(file: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(file).with_context(|| format!("{}", file.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{}", file.display()))
}

/// The paths of all keys below `value`: what two programs' documents are compared by.
fn key_paths(value: &Value, at: &str, paths: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            for (key, value) in map {
                let path = format!("{at}/{key}");
                key_paths(value, &path, paths);
                paths.insert(path);
            }
        }
        Value::Array(items) => {
            for item in items {
                key_paths(item, &format!("{at}[]"), paths);
            }
        }
        _ => {}
    }
}

/// One value of a JSON file: shell tests read records with it, so that no JSON tool must be installed.
fn get(file: &Path, path: &str) -> Result<String> {
    let document = document(file)?;
    let mut value = &document;
    for step in path.split('.') {
        let next = match step.parse::<usize>() {
            Ok(index) if value.is_array() => value.get(index),
            _ => value.get(step),
        };
        value = next.with_context(|| format!("{}: no `{step}` of `{path}`", file.display()))?;
    }
    Ok(match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_paths_are_sorted_and_know_no_places_in_arrays() {
        let value = serde_json::json!({"b": [{"x": 1}, {"y": {"z": 2}}], "a": 3});
        let mut paths = BTreeSet::new();
        key_paths(&value, "", &mut paths);
        let paths: Vec<String> = paths.into_iter().collect();
        assert_eq!(paths, ["/a", "/b", "/b[]/x", "/b[]/y", "/b[]/y/z"]);
    }
}
