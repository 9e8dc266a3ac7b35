//! `cargo xtask bench`: assay beside its yardsticks on this machine, alternating, medians, ratios.
//!
//! What is measured is the table in `table.toml`. Nothing here passes or fails by speed: it prints what was measured, the
//! goal and the ratio. A speed is never asserted by a test.

mod figures;
pub(crate) mod helper;
mod print;
mod process;
mod ratios;
mod run;
mod spec;

use anyhow::{Context, Result, bail, ensure};
use ratios::Ratios;
use run::Runner;
use std::path::{Path, PathBuf};
use std::process::Command;

const USAGE: &str = "\
usage: cargo xtask bench [NAME...] [--pairs N] [--dir DIR] [--program FILE] [--smoke]
";
const OPTIONS: &str = "  no NAME    all of them
  --only PART  this part of io or postgres alone: ";
const MORE: &str = "
  --pairs N  alternating pairs, 5 if not given
  --dir DIR  where files are made and removed again, ./target/bench if not given
  --program FILE  measures this assay instead of building one
  --save FILE     keeps the ratios of every pair in a new file
  --against FILE  compares the ratios with those that --save kept, with their spread; fails if one became worse
  --smoke    tiny sizes: shows that the benches work, its figures mean nothing";

/// What `cargo xtask bench` understands.
///
/// # Errors
/// When the table of benches cannot be read.
pub(crate) fn usage() -> Result<String> {
    let table = spec::table()?;
    let named =
        |bench: &spec::Bench| format!("  {:<10} {}\n", bench.name, bench.about.replace('\n', "\n             "));
    let mut parts: Vec<&str> = table.bench.iter().flat_map(spec::Bench::parts).collect();
    parts.dedup();
    Ok([USAGE, &table.bench.iter().map(named).collect::<String>(), OPTIONS, &parts.join(", "), MORE].concat())
}

/// Runs the benches named in `words`.
///
/// # Errors
/// A wrong name, a missing tool, or a measurement that failed.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let table = spec::table()?;
    let mut dir = root.join("target/bench");
    let (mut pairs, mut smoke, mut only) = (None, false, None);
    let (mut program, mut save, mut against) = (None, None, None);
    let mut chosen = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().copied().with_context(|| format!("{word} wants a value"));
        match *word {
            "--smoke" => smoke = true,
            "--pairs" => pairs = Some(value()?.parse().context("--pairs")?),
            "--only" => only = Some(value()?),
            "--save" => save = Some(new_file(value()?)?),
            "--against" => {
                let path = Path::new(value()?);
                against = Some((path, ratios::read(path)?));
            }
            "--dir" => dir = PathBuf::from(value()?),
            "--program" => {
                let file = value()?;
                // Runs start in a directory of their own.
                program = Some(Path::new(file).canonicalize().with_context(|| file.to_owned())?);
            }
            name => match table.bench.iter().find(|bench| bench.name == name) {
                Some(bench) => chosen.push(bench),
                None => bail!("no bench `{name}`\n{}", usage()?),
            },
        }
    }
    if chosen.is_empty() {
        chosen.extend(&table.bench);
    }
    if let Some(part) = only {
        let known = chosen.iter().flat_map(|bench| bench.parts()).any(|known| known == part);
        ensure!(known, "--only {part}: no such part of these benches");
    }
    let program = program.map_or_else(|| build(root), Ok)?;
    let scratch = Scratch::new(&dir)?;
    let memory = is_tmpfs("/dev/shm").then(|| Scratch::new(Path::new("/dev/shm"))).transpose()?;
    let pairs = pairs.unwrap_or(if smoke { 1 } else { 5 });
    let mut runner = Runner::new(
        &table,
        &scratch.0,
        memory.as_ref().map(|memory| memory.0.as_path()),
        &program,
        (pairs, smoke, only),
    );
    let failed = measure(&mut runner, &chosen);
    let ratios: Vec<Ratios> = runner.kept.iter().filter_map(Ratios::of).collect();
    if let Some(path) = save {
        ratios::save(path, &ratios)?;
        println!("\nratios: {}", path.display());
    }
    let compared = against.map_or(Ok(()), |(path, then)| ratios::compare(path, &then, &ratios));
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    compared
}

/// Runs the benches; the names of those that failed.
fn measure<'a>(runner: &mut Runner<'a>, chosen: &[&'a spec::Bench]) -> Vec<&'a str> {
    let mut failed = Vec::new();
    for bench in chosen {
        println!("\n== {}", bench.name);
        // The others are worth measuring all the same.
        if let Err(error) = runner.bench(bench) {
            println!("!! {} failed: {error:#}", bench.name);
            failed.push(bench.name.as_str());
        }
    }
    failed
}

/// A path where nothing is yet: better said before hours of measuring.
fn new_file(path: &str) -> Result<&Path> {
    let path = Path::new(path);
    ensure!(!path.exists(), "--save {}: the file exists; name a new one", path.display());
    Ok(path)
}

/// Whether a file system in memory is mounted exactly there.
fn is_tmpfs(point: &str) -> bool {
    let table = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    table.lines().filter_map(|row| row.split(' ').nth(1).zip(row.split(' ').nth(2))).any(|row| row == (point, "tmpfs"))
}

fn build(root: &Path) -> Result<PathBuf> {
    let done = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "assay"])
        .current_dir(root)
        .status()?;
    ensure!(done.success(), "the release build failed");
    Ok(root.join("target/release/assay"))
}

/// Removes what a directory holds.
fn clear(dir: &Path) -> Result<()> {
    std::fs::remove_dir_all(dir).and_then(|()| std::fs::create_dir(dir)).with_context(|| dir.display().to_string())
}

/// A new directory, removed with all it holds at the end, also after an error.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Self> {
        let dir = parent.join(format!("xtask-{}", std::process::id()));
        std::fs::create_dir_all(&dir).with_context(|| format!("{}", dir.display()))?;
        Ok(Self(dir.canonicalize()?))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            eprintln!("xtask: {} is left behind: {error}", self.0.display());
        }
    }
}
