//! `cargo xtask bench`: assay beside its yardsticks on this machine, alternating, medians, ratios.
//!
//! Nothing here passes or fails by speed: it prints what was measured, the goal
//! and the ratio. A speed is never asserted by a test.

mod assay;
mod cached;
mod commits;
mod fio;
mod floor;
mod io;
mod mariadb;
mod net;
mod physical;
mod postgres;
mod prepare;
mod process;
mod ratios;
mod recovery;
pub(crate) mod redo;
mod report;
mod scan;
mod sync;
mod table;
mod thousand;
mod updates;

use anyhow::{Context, Result, bail};
use process::When;
use ratios::Ratios;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::process::Command;
use table::Pairs;

/// What `cargo xtask bench` understands.
pub(crate) const USAGE: &str = "\
usage: cargo xtask bench [NAME...] [--pairs N] [--dir DIR] [--program FILE] [--smoke]
  physical   random 8 KiB reads of 8, 32 and 128 sessions, against fio at the same depth
  cached     logical reads per second and core, 64 MiB and 1 GiB, and what each technique gains
  updates    commits per second and per log write, 8 and 64 sessions
  commits    commits per second of 1, 8 and 64 sessions on cached data, against fio's durable writes of the same size
  thousand   random 8 KiB reads, 1000 sessions, against fio with 1000 in flight
  recovery   redo read and applied after a KILL, against plain reading of a log file
  prepare    the load of 8 GiB against fio's sequential write
  scan       a scan table read back by direct path reads, against fio's sequential read of the same file; and
             single reads at depth 1, fio's own times against ours by layer
  sync       durable 4 KiB writes of assay sync, 1 and 32 streams, against fio --fdatasync=1
  net        assay net against iperf3, both ends on loopback: one and four TCP streams, UDP, with the CPU of both ends
  redo       assay redo on loopback against the same messages by a bare socket and a write + fdatasync loop
  io         assay io against fio and t/io_uring (ASSAY_T_IO_URING=FILE, else looked for beside fio): no engine, the ring
             alone, random reads at depth 32 and 1, memory, writes, mixed, libaio, scans, layout
  postgres   selects of postgres: against pgio 1.0 (ASSAY_PGIO=its directory, archive or git repository), cached and
             from the page cache, its load, and pgbench with the same statement; on a private server of the newest
             version installed (ASSAY_PG_BIN=DIR: of that one)
  orders     order entry on PostgreSQL against pgbench scripts that call the same functions, at 1, 8 and 64 clients, and
             its load against COPY of the same rows by psql
  mariadb    one prepared select of mariadb at 1, 8 and 64 clients, the loop in the client and in the server, against
             sysbench with the same statement; on a private server
  report     reports of a record of 24 hours of seconds with 50 figures each, and the import of 10 MB of text and of HTML: time
             and memory
  floor      what the harness itself costs per operation
  no NAME    all of them
  --only PART  this part of io alone: null, nop, read, depth1, tmpfs, write, mixed, libaio, scan, layout;
             or of postgres: load, pgio, pgbench
  --pairs N  alternating pairs, 5 if not given
  --dir DIR  where files are made and removed again, ./target/bench if not given
  --program FILE  measures this assay instead of building one
  --save FILE     keeps the ratios of every pair in a new file
  --against FILE  compares the ratios with those that --save kept, with their spread; fails if one became worse
  --smoke    tiny sizes: shows that the benches work, its figures mean nothing";

/// What was asked for.
pub(crate) struct Options {
    /// The program under test, release build.
    pub(crate) assay: PathBuf,
    /// A directory of our own for data sets and files.
    pub(crate) dir: PathBuf,
    /// Alternating pairs, or repetitions where there is no second.
    pub(crate) pairs: usize,
    /// Tiny sizes.
    pub(crate) smoke: bool,
    /// The part of a bench that is wanted alone.
    pub(crate) only: Option<String>,
    /// The bench under way.
    pub(crate) bench: Cell<&'static str>,
    /// The rows of all tables printed so far, each with its bench and part.
    pub(crate) kept: RefCell<Vec<(String, Pairs)>>,
}

impl Options {
    /// `full`, or `small` under `--smoke`.
    pub(crate) fn size<T>(&self, full: T, small: T) -> T {
        if self.smoke { small } else { full }
    }

    /// Seconds one measurement lasts.
    pub(crate) fn window_s(&self) -> u64 {
        self.size(8, 1)
    }

    /// Seconds of load before it.
    pub(crate) fn warmup_s(&self) -> u64 {
        self.size(2, 1)
    }

    /// Seconds a run measures: a window seen from outside lies in their middle.
    pub(crate) fn run_s(&self) -> u64 {
        self.window_s() + self.size(2, 1)
    }

    /// The window in which a process is looked at from outside.
    pub(crate) fn middle(&self) -> When {
        When::seconds(self.warmup_s() + self.size(1, 0), self.window_s())
    }
}

type Bench = fn(&Options) -> Result<()>;

const BENCHES: [(&str, Bench); 17] = [
    ("floor", floor::run),
    ("net", net::run),
    ("physical", physical::run),
    ("cached", cached::run),
    ("updates", updates::run),
    ("commits", commits::run),
    ("thousand", thousand::run),
    ("recovery", recovery::run),
    ("report", report::run),
    ("scan", scan::run),
    ("sync", sync::run),
    ("redo", redo::run),
    ("io", io::run),
    ("prepare", prepare::run),
    ("postgres", postgres::run),
    ("orders", postgres::orders::run),
    ("mariadb", mariadb::run),
];

/// Runs the benches named in `words`.
///
/// # Errors
/// A wrong name, a missing tool, or a measurement that failed.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<()> {
    let mut options = Options {
        assay: root.join("target/release/assay"),
        dir: root.join("target/bench"),
        pairs: 5,
        smoke: false,
        only: None,
        bench: Cell::new(""),
        kept: RefCell::default(),
    };
    let (mut save, mut against) = (None, None);
    let mut chosen = Vec::new();
    let mut built = false;
    let mut words = words.iter();
    while let Some(word) = words.next() {
        match *word {
            "--smoke" => {
                options.smoke = true;
                options.pairs = 1;
            }
            "--pairs" => {
                let count = words.next().context(USAGE)?;
                options.pairs = count.parse().with_context(|| format!("--pairs {count}"))?;
            }
            "--only" => options.only = Some((*words.next().context(USAGE)?).to_owned()),
            "--save" => save = Some(new_file(words.next().context(USAGE)?)?),
            "--against" => {
                let path = Path::new(words.next().context(USAGE)?);
                against = Some((path, ratios::read(path)?));
            }
            "--dir" => options.dir = PathBuf::from(words.next().context(USAGE)?),
            "--program" => {
                let program = words.next().context(USAGE)?;
                // Runs start in a directory of their own.
                options.assay = Path::new(program).canonicalize().context((*program).to_owned())?;
                built = true;
            }
            name => match BENCHES.iter().find(|(known, _)| *known == name) {
                Some(bench) => chosen.push(bench),
                None => bail!("no bench `{name}`\n{USAGE}"),
            },
        }
    }
    if chosen.is_empty() {
        chosen.extend(&BENCHES);
    }
    if !built {
        build(root)?;
    }
    let scratch = Scratch::new(&options.dir)?;
    options.dir.clone_from(&scratch.0);
    let failed = measure(&options, &chosen);
    let kept = options.kept.borrow();
    let ratios: Vec<Ratios> = kept.iter().filter_map(Ratios::of).collect();
    if let Some(path) = save {
        ratios::save(path, &ratios)?;
        println!("\nratios: {}", path.display());
    }
    let compared = against.map_or(Ok(()), |(path, then)| ratios::compare(path, &then, &ratios));
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    compared
}

/// Runs the benches; the names of those that failed.
fn measure(options: &Options, chosen: &[&(&'static str, Bench)]) -> Vec<&'static str> {
    let mut failed = Vec::new();
    for (name, bench) in chosen {
        println!("\n== {name}");
        options.bench.set(name);
        // The others are worth measuring all the same.
        if let Err(error) = bench(options) {
            println!("!! {name} failed: {error:#}");
            failed.push(*name);
        }
    }
    failed
}

/// A path where nothing is yet: better said before hours of measuring.
fn new_file(path: &str) -> Result<&Path> {
    let path = Path::new(path);
    if path.exists() {
        bail!("--save {}: the file exists; name a new one", path.display());
    }
    Ok(path)
}

/// Says so when a run's own checks found something: its figures then mean little.
fn warn(record: &assay::Record) {
    let faults = record.faults();
    if !faults.is_empty() {
        println!("!! this run is not sound: {}", faults.join(", "));
    }
}

/// The data file: far larger than the logs beside it.
fn largest_file(dir: &Path) -> Result<PathBuf> {
    let mut largest = (0, PathBuf::new());
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let bytes = entry.metadata()?.len();
        if bytes > largest.0 {
            largest = (bytes, entry.path());
        }
    }
    (largest.0 > 0).then_some(largest.1).with_context(|| format!("no file in {}", dir.display()))
}

fn build(root: &Path) -> Result<()> {
    let done = Command::new(env!("CARGO"))
        .args(["build", "--release", "--quiet", "--package", "assay"])
        .current_dir(root)
        .status()?;
    if !done.success() {
        bail!("the release build failed");
    }
    Ok(())
}

/// A new directory, removed with all it holds at the end, also after an error.
struct Scratch(PathBuf);

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
