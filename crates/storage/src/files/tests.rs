//! Plans and layouts on real files.

use super::super::spec::{Amount, Invocation, Mode, StorageJob};
use super::*;
use assay_run::probe::Steps;
use assay_run::stop::Stop;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

/// A directory on a real file system, beside the build products: the system's own may be a tmpfs.
fn directory() -> tempfile::TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

/// Remembers what it is told.
#[derive(Default)]
struct Told {
    steps: Mutex<Vec<String>>,
    /// Calls after which `stop` is requested, where there is one.
    stop: Option<Stop>,
    calls: AtomicU64,
}

impl Steps for Told {
    fn step(&self, number: usize, _of: usize, what: &str) {
        assert_eq!(number, 0);
        self.steps.lock().unwrap().push(what.to_owned());
        self.calls.fetch_add(1, Ordering::Relaxed);
        if let Some(stop) = &self.stop {
            stop.request();
        }
    }
}

fn job(mode: Mode, file: &Path, bytes: u64) -> StorageJob {
    let mut job = StorageJob { name: "j".to_owned(), ..StorageJob::default() };
    job.options.clones = 1;
    job.options.pattern.mode = mode;
    job.options.files.names = vec![file.to_path_buf()];
    if bytes > 0 {
        job.options.files.size = Some(Amount::Bytes(bytes));
    }
    job
}

fn of(jobs: Vec<StorageJob>) -> Invocation {
    Invocation { jobs, ..Invocation::default() }
}

fn one(mode: Mode, file: &Path, bytes: u64) -> Invocation {
    of(vec![job(mode, file, bytes)])
}

fn refused(invocation: &Invocation) -> String {
    join_errors(plan(invocation).expect_err("it must be refused")).to_string()
}

fn opened(invocation: &Invocation) -> Opened {
    let plan = plan(invocation).map_err(join_errors).unwrap();
    open(plan, invocation, &Stop::new(), &Told::default()).unwrap()
}

fn run(invocation: &Invocation) {
    opened(invocation).finish().unwrap();
}

const MIB: u64 = 1 << 20;

#[test]
fn a_missing_file_is_laid_out_once_with_random_data_and_is_ours_from_then_on() {
    let place = directory();
    let path = place.path().join("f");
    let mut invocation = one(Mode::RandRead, &path, 3 * MIB + 5000);
    invocation.jobs[0].options.clones = 3;
    let planned = plan(&invocation).unwrap();
    assert_eq!(planned.files.len(), 1);
    assert_eq!(planned.clones.len(), 3);
    assert!(!path.exists(), "planning touches nothing");
    let told = Told::default();
    let opened = open(planned, &invocation, &Stop::new(), &told).unwrap();
    assert_eq!(*told.steps.lock().unwrap(), ["j: Laying out IO file (1 file / 3MiB)"]);
    let files = opened.files_of(0, 2, &Stop::new()).unwrap();
    assert_eq!(files[0].len().unwrap(), 3 * MIB + 5000);
    opened.finish().unwrap();
    let content = fs::read(&path).unwrap();
    // Random bytes: every value about as often, no block twice.
    let mut counts = [0_u32; 256];
    content.iter().for_each(|byte| counts[usize::from(*byte)] += 1);
    let mean = content.len() as u32 / 256;
    assert!(counts.iter().all(|count| count.abs_diff(mean) < mean / 10));
    let blocks: std::collections::HashSet<&[u8]> = content.chunks(4096).collect();
    assert_eq!(blocks.len(), content.len().div_ceil(4096));
    assert_eq!(content::hole_bytes(&path, 0, content.len() as u64), 0);
    // Now it is ours, complete, and nothing is left to do.
    let again = plan(&one(Mode::Write, &path, 0)).unwrap();
    assert_eq!(again.files[0].target, PathState::File(Whose::Ours));
    assert_eq!(again.files[0].fill, Fill::Nothing);
}

#[test]
fn a_file_of_ours_that_is_short_or_has_holes_is_completed_from_there() {
    let place = directory();
    let path = place.path().join("f");
    run(&one(Mode::Read, &path, MIB));
    let before = fs::read(&path).unwrap();
    let longer = plan(&one(Mode::Read, &path, 2 * MIB)).unwrap();
    assert_eq!(longer.files[0].fill, Fill::Write { from: MIB });
    run(&one(Mode::Read, &path, 2 * MIB));
    let after = fs::read(&path).unwrap();
    assert_eq!(after.len() as u64, 2 * MIB);
    assert_eq!(after[..MIB as usize], before);
    assert_eq!(content::hole_bytes(&path, 0, 2 * MIB), 0);
    // A pure write allocates only; a read after it needs content.
    let other = place.path().join("g");
    run(&one(Mode::RandWrite, &other, MIB));
    assert_eq!(fs::metadata(&other).unwrap().len(), MIB);
    let reading = plan(&one(Mode::Read, &other, MIB)).unwrap();
    assert_eq!(reading.files[0].fill, Fill::Write { from: 4096 });
}

#[test]
fn io_12_a_foreign_file_is_neither_written_nor_extended_without_its_name() {
    let place = directory();
    let path = place.path().join("theirs");
    let content: Vec<u8> = (0..MIB).map(|at| (at % 251) as u8).collect();
    fs::write(&path, &content).unwrap();
    for mode in [Mode::Write, Mode::RandWrite, Mode::RandRw, Mode::ReadWrite] {
        let why = refused(&one(mode, &path, MIB));
        assert!(why.contains("--destroy"), "{why}");
        assert!(why.contains(path.to_str().unwrap()), "{why}");
    }
    // Too short: not even for reading, not even when named.
    let why = refused(&one(Mode::Read, &path, 2 * MIB));
    assert!(why.contains("never extends"), "{why}");
    let mut named = one(Mode::Write, &path, 2 * MIB);
    named.output.destroy = vec![path.clone()];
    assert!(refused(&named).contains("never extends"));
    // Reading it is fine and leaves no mark.
    run(&one(Mode::Read, &path, 0));
    assert_eq!(fs::read(&path).unwrap(), content);
    assert!(refused(&one(Mode::Write, &path, 0)).contains("was not made by assay io"));
    // By its name it may be written over, and stays foreign.
    let mut named = one(Mode::Write, &path, MIB);
    named.output.destroy = vec![path.clone()];
    run(&named);
    assert!(refused(&one(Mode::Write, &path, 0)).contains("was not made by assay io"));
    assert_eq!(fs::read(&path).unwrap(), content);
}

#[test]
fn a_layout_has_the_content_that_the_job_s_buffers_have() {
    let place = directory();
    let path = place.path().join("zero");
    let mut zero = one(Mode::Read, &path, MIB);
    zero.jobs[0].options.payload.zero = true;
    run(&zero);
    assert!(fs::read(&path).unwrap().iter().all(|byte| *byte == 0));
    assert_eq!(content::hole_bytes(&path, 0, MIB), 0, "written zeroes");
    let path = place.path().join("half");
    let mut half = one(Mode::Read, &path, MIB);
    half.jobs[0].options.payload.compress_percent = 50;
    run(&half);
    let zeroes = fs::read(&path).unwrap().iter().filter(|byte| **byte == 0).count() as u64;
    assert!((MIB / 2..MIB * 52 / 100).contains(&zeroes), "{zeroes}");
    let path = place.path().join("pattern");
    let mut pattern = one(Mode::Read, &path, MIB + 100);
    pattern.jobs[0].options.payload.pattern = Some(b"abcd".to_vec());
    run(&pattern);
    let content = fs::read(&path).unwrap();
    assert_eq!(content.len() as u64, MIB + 100);
    assert!(content.chunks(4).all(|word| word == b"abcd"));
}

#[test]
fn made_up_names_are_private_and_unlinked_files_are_gone_at_the_end() {
    let place = directory();
    let mut invocation = one(Mode::Read, Path::new(""), MIB);
    let options = &mut invocation.jobs[0].options;
    options.files.names.clear();
    options.files.directories = vec![place.path().to_path_buf()];
    options.files.unlink = true;
    options.clones = 2;
    options.files.count = 2;
    let opened = opened(&invocation);
    let mut names: Vec<PathBuf> = fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
    names.sort();
    let expected = ["j.0.0", "j.0.1", "j.1.0", "j.1.1"].map(|name| place.path().join(name));
    assert_eq!(names, expected);
    opened.finish().unwrap();
    assert!(fs::read_dir(place.path()).unwrap().next().is_none());
}

mod devices;
mod faults;
mod precondition;
mod refusals;
