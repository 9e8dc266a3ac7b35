//! What is refused on file systems, and that nothing was touched by it.

use super::super::super::spec::IoEngine;
use super::*;
use std::os::unix::fs::symlink;
use std::process::Command;

fn named(mode: Mode, file: &Path, bytes: u64) -> Invocation {
    let mut invocation = one(mode, file, bytes);
    invocation.output.destroy = vec![file.to_path_buf()];
    invocation
}

#[test]
fn what_is_no_file_is_refused_by_what_it_is() {
    let place = directory();
    let pipe = place.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let cases: [(&Path, &str); 7] = [
        (place.path(), "directory"),
        (&pipe, "a pipe"),
        (Path::new("/dev/null"), "ioengine=null"),
        (Path::new("/proc/version"), "exposes kernel state"),
        (Path::new("/sys/kernel/uevent_seqnum"), "exposes kernel state"),
        (Path::new("/dev/no-such-disk"), "device does not exist"),
        (Path::new("/proc/new"), "device does not exist"),
    ];
    for (path, expected) in cases {
        for mode in [Mode::Read, Mode::Write] {
            let why = refused(&one(mode, path, MIB));
            assert!(why.contains(expected), "{}: {why}", path.display());
        }
    }
    let below_a_file = place.path().join("f/g");
    fs::write(place.path().join("f"), "x").unwrap();
    assert!(refused(&one(Mode::Read, &below_a_file, MIB)).contains("not a directory"));
}

#[test]
fn a_link_is_judged_by_what_it_points_to() {
    let place = directory();
    let (file, link) = (place.path().join("theirs"), place.path().join("link"));
    fs::write(&file, vec![7; MIB as usize]).unwrap();
    symlink(&file, &link).unwrap();
    let why = refused(&one(Mode::Write, &link, MIB));
    assert!(why.contains("was not made by assay io"), "{why}");
    assert!(why.contains("theirs"), "it names the real file: {why}");
    let reading = plan(&one(Mode::Read, &link, 0)).unwrap();
    assert_eq!(reading.files[0].resolved, fs::canonicalize(&file).unwrap());
    // Naming either name is naming the file.
    let mut by_name = one(Mode::Write, &link, MIB);
    by_name.output.destroy = vec![file.clone()];
    plan(&by_name).map_err(join_errors).unwrap();
    // Both names are one file, held once.
    let both = of(vec![job(Mode::Read, &link, 0), job(Mode::Read, &file, 0)]);
    assert_eq!(plan(&both).unwrap().files.len(), 1);
    fs::remove_file(&file).unwrap();
    for mode in [Mode::Read, Mode::Write] {
        assert!(refused(&one(mode, &link, MIB)).contains("symbolic link to nothing"));
    }
}

#[test]
fn destroy_names_exactly_what_is_written() {
    let place = directory();
    let (theirs, other) = (place.path().join("theirs"), place.path().join("other"));
    for path in [&theirs, &other] {
        fs::write(path, vec![7; MIB as usize]).unwrap();
    }
    let mut wrong = one(Mode::Write, &theirs, MIB);
    wrong.output.destroy = vec![other.clone()];
    let errors = plan(&wrong).unwrap_err();
    let text = errors.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(text.len(), 2, "{text:?}");
    assert!(text[1].contains("no job uses"), "{text:?}");
    // Not a directory above it, not a pattern.
    let mut above = one(Mode::Write, &theirs, MIB);
    above.output.destroy = vec![place.path().to_path_buf()];
    assert_eq!(plan(&above).unwrap_err().len(), 2);
    // For a file that is yet to be made it may stay in a script.
    plan(&named(Mode::Write, &place.path().join("new"), MIB)).unwrap();
}

#[test]
fn somebody_else_s_content_in_a_file_of_ours_is_not_ours() {
    let place = directory();
    let path = place.path().join("f");
    run(&one(Mode::Write, &path, MIB));
    plan(&one(Mode::Write, &path, MIB)).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(20));
    let theirs = vec![9; MIB as usize];
    fs::write(&path, &theirs).unwrap();
    let why = refused(&one(Mode::Write, &path, MIB));
    assert!(why.contains("written to it since"), "{why}");
    assert!(refused(&one(Mode::Read, &path, 2 * MIB)).contains("never extends"));
    // Nor is it removed at the end of a job that only reads it.
    let mut reading = one(Mode::Read, &path, MIB);
    reading.jobs[0].options.files.unlink = true;
    run(&reading);
    assert_eq!(fs::read(&path).unwrap(), theirs);
}

#[test]
fn new_files_stay_out_of_the_directories_of_databases() {
    for (name, whose) in [("PG_VERSION", "PostgreSQL"), ("ibdata1", "MySQL"), ("control.assay", "assay data set")] {
        let place = directory();
        fs::write(place.path().join(name), "15").unwrap();
        let deep = place.path().join("base");
        fs::create_dir(&deep).unwrap();
        for path in [place.path().join("new"), deep.join("new"), deep.join("a/b")] {
            let why = refused(&one(Mode::Read, &path, MIB));
            assert!(why.contains(whose), "{why}");
            assert!(!path.exists());
        }
        // Reading what lies there is fine, and writing a new file when it is named.
        plan(&one(Mode::Read, &place.path().join(name), 0)).unwrap_err();
        fs::write(deep.join("1"), vec![1; 8192]).unwrap();
        plan(&one(Mode::Read, &deep.join("1"), 0)).unwrap();
        plan(&named(Mode::Write, &deep.join("new"), MIB)).unwrap();
    }
}

#[test]
fn io_11_readonly_makes_nothing_and_opens_for_reading_alone() {
    let place = directory();
    let path = place.path().join("f");
    let mut invocation = one(Mode::RandRead, &path, MIB);
    invocation.output.readonly = true;
    assert!(refused(&invocation).contains("--readonly"));
    assert!(!path.exists());
    fs::write(&path, vec![1; MIB as usize]).unwrap();
    let opened = opened(&invocation);
    let files = opened.files_of(0, 0, &Stop::new()).unwrap();
    files[0].write_at(0, &[0; 4096]).unwrap_err();
    drop(files);
    opened.finish().unwrap();
    // A writing job slips through to here only by mistake of the language: refused all the same.
    let mut writing = named(Mode::RandRw, &path, MIB);
    writing.output.readonly = true;
    assert!(refused(&writing).contains("--readonly"));
}

#[test]
fn options_that_forbid_or_mislead_are_heard() {
    let place = directory();
    let path = place.path().join("f");
    let mut no_create = one(Mode::Read, &path, MIB);
    no_create.jobs[0].options.files.allow_create = false;
    assert!(refused(&no_create).contains("allow_file_create=0"));
    let mut empty = one(Mode::Read, &path, MIB);
    empty.jobs[0].options.files.create_on_open = true;
    assert!(refused(&empty).contains("create_on_open"));
    let mut mounted = one(Mode::Read, &path, MIB);
    mounted.jobs[0].options.files.allow_mounted_write = true;
    let notes = plan(&mounted).unwrap().notes;
    assert!(notes[0][0].contains("no option lets assay"), "{notes:?}");
    assert!(!path.exists());
}

#[test]
fn a_directory_that_is_not_there_is_not_made() {
    let place = directory();
    let missing = place.path().join("no/such");
    let mut invocation = one(Mode::Read, Path::new("f"), MIB);
    invocation.jobs[0].options.files.directories = vec![missing.clone()];
    for engine in [IoEngine::Psync, IoEngine::Null] {
        invocation.jobs[0].options.engine = engine;
        let errors = plan(&invocation).unwrap_err();
        assert_eq!(errors.len(), 1);
        let error = join_errors(errors);
        assert!(matches!(error, EngineError::Usage(_)));
        assert!(error.to_string().contains("not a directory"), "{error}");
    }
    assert!(!place.path().join("no").exists());
}

#[test]
fn all_that_is_wrong_is_said_at_once_and_the_host_s_refusal_decides() {
    let place = directory();
    let theirs = place.path().join("theirs");
    fs::write(&theirs, vec![7; MIB as usize]).unwrap();
    let missing = place.path().join("missing");
    let jobs = vec![job(Mode::Read, &missing, 0), job(Mode::Write, &theirs, 0)];
    let errors = plan(&of(jobs)).unwrap_err();
    assert_eq!(errors.len(), 2);
    let all = join_errors(errors);
    assert!(matches!(all, EngineError::Unusable(_)));
    let text = all.to_string();
    assert!(text.contains("you need to specify size=") && text.contains("--destroy"));
    let only = plan(&one(Mode::Read, &missing, 0)).unwrap_err();
    assert!(matches!(join_errors(only), EngineError::Usage(_)));
}

#[test]
fn more_than_the_free_space_is_refused_before_anything_is_made() {
    let place = directory();
    let path = place.path().join("f");
    let why = refused(&one(Mode::Read, &path, 1 << 60));
    assert!(why.contains("must stay free for other uses"), "{why}");
    assert!(!path.exists());
}

#[test]
fn the_plan_says_of_each_file_what_it_is_and_what_happens_to_it() {
    let place = directory();
    let ours = place.path().join("ours");
    run(&one(Mode::Read, &ours, MIB));
    let theirs = place.path().join("theirs");
    fs::write(&theirs, vec![7; MIB as usize]).unwrap();
    let mut invocation = of(vec![
        job(Mode::RandWrite, &ours, 0),
        job(Mode::Read, &place.path().join("new"), 2 * MIB),
        job(Mode::Write, &theirs, 0),
        job(Mode::Write, &place.path().join("log"), MIB),
    ]);
    invocation.output.destroy = vec![theirs.clone()];
    let planned = plan(&invocation).map_err(join_errors).unwrap();
    let verdicts: Vec<String> = planned.files.iter().map(PlannedFile::verdict).collect();
    let expected = [
        "assay's file of 1 MiB; written",
        "new file, 2 MiB written with random data first; then only read",
        "file of 1 MiB not made by assay; DESTRUCTIVE: WRITTEN OVER",
        "new file, 1 MiB allocated, not filled; written",
    ];
    for (verdict, expected) in verdicts.iter().zip(expected) {
        assert!(verdict.ends_with(expected), "{verdict}");
    }
    let lines = planned.lines();
    assert_eq!(lines.len(), 4 + 2);
    assert_eq!(lines[4].value, assay_run::engine::LineValue::Count(3 * MIB));
}

#[test]
fn files_in_memory_are_fine_and_said() {
    let shared = Path::new("/dev/shm");
    if !look::is_in_memory(shared) {
        return super::devices::skipped("/dev/shm is no tmpfs here");
    }
    let place = tempfile::tempdir_in(shared).unwrap();
    let path = place.path().join("f");
    let invocation = one(Mode::Read, &path, MIB);
    let planned = plan(&invocation).map_err(join_errors).unwrap();
    assert!(planned.files[0].in_memory);
    assert!(planned.notes[0][0].contains("is in memory"));
    run(&invocation);
    assert_eq!(plan(&one(Mode::Write, &path, 0)).unwrap().files[0].target, PathState::File(Whose::Ours));
    assert!(!look::is_in_memory(&directory().path().join("not/there")));
}

#[test]
fn thousands_of_files_are_planned_in_no_time_worth_naming() {
    let place = directory();
    let mut invocation = one(Mode::Write, Path::new(""), 65_535 * 4096);
    let options = &mut invocation.jobs[0].options;
    options.files.names.clear();
    options.files.directories = vec![place.path().to_path_buf()];
    options.files.count = 65_535;
    let planned = plan(&invocation).map_err(join_errors).unwrap();
    assert_eq!(planned.files.len(), 65_535);
    assert_eq!(planned.clones[0].regions.len(), 65_535);
    options_too_many(&mut invocation);
    assert!(refused(&invocation).contains("at most 65535"));
}

fn options_too_many(invocation: &mut Invocation) {
    let files = &mut invocation.jobs[0].options.files;
    files.count = 65_537;
    files.size = Some(Amount::Bytes(65_537 * 4096));
}
