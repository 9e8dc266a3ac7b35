//! The life cycle of data sets on real files.

mod copies;
mod interrupted;
mod paths;

use super::Native;
use super::block_format::{self, word};
use super::bulk::Watch;
use super::control::{CONTROL_NAME, Control, State};
use super::control_file::ControlFile;
use super::files::Files;
use super::layout::Page;
use super::load_plan::{LoadPlan, Start};
use super::params::PARAMS;
use super::paths::{Asked, Places};
use super::prepare::prepare;
use assay_measure::config::{Effective, Origin, ParamDef, ParamKind, Settings, Value};
use assay_run::engine::{EngineError, Line, LineValue, Presence, Progress, Target};
use assay_run::stop::Stop;
use assay_testkit::conformance::life;
use std::collections::BTreeSet;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use tempfile::TempDir;

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// A directory beside the build products: the system's temporary directory may be a tmpfs,
/// where direct I/O is accepted but not performed.
fn directory() -> TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

const WORKLOAD: &[(&str, ParamKind, &str)] = &[
    ("SCHEMAS", ParamKind::Int(1, 4096), ""),
    ("SCALE", ParamKind::Blocks, "2000"),
    ("SCAN_TABLE_SZ", ParamKind::Blocks, "64"),
    ("BLOCK_SZ", ParamKind::Int(0, u64::MAX), "8192"),
    ("WORK_UNIT", ParamKind::Int(0, u64::MAX), "64"),
    ("LOAD_PARALLEL_DEGREE", ParamKind::Int(0, u64::MAX), "2"),
    ("OBFUSCATE_COLUMNS", ParamKind::Bool, "FALSE"),
    ("COMPRESS_PCT", ParamKind::Int(0, 100), "0"),
    ("SEED", ParamKind::Int(0, u64::MAX), "7"),
];

/// Small defaults for these tests and what `given` says, as the command line would.
pub(super) fn settings(given: &[(&str, &str)]) -> Settings {
    let small = [("REDO_LOGS", "2"), ("REDO_LOG_MB", "4"), ("UNDO_MB", "4")];
    let workload = WORKLOAD.iter().map(|(name, kind, default)| ParamDef {
        name,
        kind: *kind,
        default,
        aliases: &[],
        help: "",
        flag: &[],
        commands: "",
        effect: Default::default(),
        idle_with: None,
        concerns: None,
    });
    let mut settings = Settings::default();
    for def in workload.chain(PARAMS.iter().copied()) {
        let said = given.iter().find(|(name, _)| *name == def.name);
        let quiet = small.iter().find(|(name, _)| *name == def.name);
        let text = said.or(quiet).map_or(def.default, |(_, text)| *text);
        let origin = said.map_or(Origin::Default, |_| Origin::CommandLine);
        settings.set(Effective { def, value: value(def.kind, text), text: text.to_owned(), origin });
    }
    settings
}

fn value(kind: ParamKind, text: &str) -> Value {
    let bytes = |unit: u64, text: &str| (text.parse::<f64>().unwrap() * unit as f64) as u64;
    match kind {
        _ if text.is_empty() => Value::Unset,
        ParamKind::Int(..) => Value::Int(text.parse().unwrap()),
        ParamKind::Mebibytes => Value::Bytes(bytes(1 << 20, text)),
        ParamKind::Blocks => match text.strip_suffix('M') {
            Some(number) => Value::Bytes(bytes(1 << 20, number)),
            None => match text.strip_suffix('G') {
                Some(number) => Value::Bytes(bytes(1 << 30, number)),
                None => Value::Blocks(text.parse().unwrap()),
            },
        },
        ParamKind::Bool => Value::Bool(text == "TRUE"),
        _ => Value::Text(text.to_owned()),
    }
}

fn load(dir: &Path, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    let stop = Stop::new();
    life::load(&Native, &location(dir), settings, schemas, &stop, &Silent)
}

fn check(dir: &Path) -> Result<Vec<Line>, EngineError> {
    let settings = settings(&[("CHECK", "full")]);
    life::check(&Native, &location(dir), &settings)
}

fn asked(dir: &Path) -> Asked {
    Asked::new(&location(dir), &settings(&[])).unwrap()
}

fn location(dir: &Path) -> String {
    dir.to_str().unwrap().to_owned()
}

fn number(lines: &[Line], key: &str) -> u64 {
    let line = lines.iter().find(|line| line.key == key);
    match &line.unwrap_or_else(|| panic!("no line {key}")).value {
        LineValue::Count(n) => *n,
        other => panic!("{key} is {other:?}"),
    }
}

fn read_control(dir: &Path) -> Control {
    ControlFile::read(dir).unwrap().unwrap()
}

/// Key words of all data blocks of one schema, in slot order, read without the code under test.
fn keys_on_disk(dir: &Path, schema: u32) -> Vec<u64> {
    let control = read_control(dir);
    let geometry = control.geometry;
    let files: Vec<Vec<u8>> =
        (0..geometry.data_files()).map(|file| fs::read(dir.join(super::control::data_name(file))).unwrap()).collect();
    (0..geometry.scale)
        .map(|slot| {
            let (file, offset) = geometry.map().locate(geometry.map().data_page(schema, slot));
            block_format::get(&files[usize::from(file)][offset as usize..], word::KEY)
        })
        .collect()
}

fn is_key_set(keys: &[u64]) -> bool {
    let distinct: BTreeSet<_> = keys.iter().copied().collect();
    distinct.len() == keys.len() && distinct.first() == Some(&1) && distinct.last() == Some(&(keys.len() as u64))
}

#[test]
fn a_data_set_is_created_checked_and_removed() {
    let home = directory();
    let dir = home.path().join("new/data");
    let settings = settings(&[]);
    let before = Native.inspect(&location(&dir), &settings).unwrap();
    assert_eq!(before, Presence::Absent { harmless: true });
    let plan = life::plan(&Native, &location(&dir), &settings, 3).unwrap();
    assert!(!dir.exists(), "planning must not write");
    let lines = load(&dir, &settings, 3).unwrap();
    assert_eq!(number(&lines, "loaded_rows"), 6000);
    assert_eq!(number(&lines, "load_bytes"), 6000 * 8192);
    assert_eq!(number(&lines, "index_levels"), 3);
    assert_eq!(number(&lines, "probe_blocks"), 64);
    assert!(number(&lines, "data_blocks_checked") >= 3000);

    let Presence::Present(set) = Native.inspect(&location(&dir), &settings).unwrap() else {
        panic!("the data set is there");
    };
    assert_eq!((set.schemas, set.scale_blocks, set.scan_blocks), (3, 2000, 64));
    let lines = check(&dir).unwrap();
    assert_eq!(number(&lines, "data_blocks_checked"), 6000);
    assert_eq!(number(&lines, "scan_blocks_checked"), 192);
    assert_eq!(number(&lines, "undo_blocks_checked"), 511);
    assert_eq!(number(&lines, "blocks_without_checksum"), 0);
    let occupied: u64 = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().metadata().unwrap().len()).sum();
    assert_eq!(number(&plan, "total_bytes"), occupied);
    let planned = Native.plan_destroy(&location(&dir), &settings).unwrap();
    assert_eq!(number(&planned, "total_bytes"), occupied);
    life::destroy(&Native, &location(&dir), &settings).unwrap();
    assert!(!dir.exists());
}

#[test]
fn slob_30_scale_is_loaded_exactly() {
    let home = directory();
    for (scale, rows, load_it) in [("10000", 10_000, true), ("80M", 10_240, true), ("1G", 131_072, false)] {
        let settings = settings(&[("SCALE", scale)]);
        let dir = home.path().join(scale);
        let plan = LoadPlan::new(&asked(&dir), &settings, 1).unwrap();
        assert_eq!(plan.control.geometry.scale, rows);
        if load_it {
            let lines = load(&dir, &settings, 1).unwrap();
            assert_eq!(number(&lines, "loaded_rows"), rows);
            assert_eq!(number(&lines, "max_key"), rows);
            assert_eq!(number(&lines, "data_blocks_per_schema"), rows);
            assert!(is_key_set(&keys_on_disk(&dir, 1)));
            fs::remove_dir_all(&dir).unwrap();
        }
    }
}

#[test]
fn slob_32_any_number_of_loaders_loads_each_key_once_and_the_same() {
    let home = directory();
    let mut by_degree = Vec::new();
    for degree in ["1", "7"] {
        let dir = home.path().join(degree);
        let settings = settings(&[("SCALE", "10007"), ("LOAD_PARALLEL_DEGREE", degree)]);
        load(&dir, &settings, 2).unwrap();
        check(&dir).unwrap();
        let (one, two) = (keys_on_disk(&dir, 1), keys_on_disk(&dir, 2));
        assert!(is_key_set(&one) && is_key_set(&two));
        assert_ne!(one, two);
        let pairs = (1..).zip(one.iter().copied());
        let r = assay_measure::permutation::rank_correlation(pairs);
        assert!(r.abs() < 0.05, "{r}");
        by_degree.push(one);
    }
    assert_eq!(by_degree[0], by_degree[1]);
}

#[test]
fn other_block_sizes_and_random_content_load_too() {
    for given in [
        [("BLOCK_SZ", "4096"), ("OBFUSCATE_COLUMNS", "FALSE"), ("COMPRESS_PCT", "0")],
        [("BLOCK_SZ", "65536"), ("OBFUSCATE_COLUMNS", "FALSE"), ("COMPRESS_PCT", "0")],
        [("BLOCK_SZ", "8192"), ("OBFUSCATE_COLUMNS", "TRUE"), ("COMPRESS_PCT", "30")],
    ] {
        let home = directory();
        let settings = settings(&[&given[..], &[("SCALE", "1000")]].concat());
        load(home.path(), &settings, 2).unwrap();
        check(home.path()).unwrap();
    }
}

#[test]
fn schemas_are_added_across_file_borders_without_touching_the_others() {
    let home = directory();
    let dir = home.path();
    let settings = settings(&[]);
    let mut plan = LoadPlan::new(&asked(dir), &settings, 2).unwrap();
    plan.control.geometry.blocks_per_file = 1500;
    let stop = Stop::new();
    let watch = Watch { stop: &stop, progress: &Silent };
    prepare(&plan, &settings, watch).unwrap();
    assert_eq!(read_control(dir).geometry.data_files(), 3);
    let first = fs::read(dir.join("data-0001.assay")).unwrap();

    let plan = life::plan(&Native, &location(dir), &settings, 5).unwrap();
    let before = read_control(dir).total_bytes();
    let lines = load(dir, &settings, 5).unwrap();
    assert_eq!(number(&lines, "loaded_schemas"), 3);
    let control = read_control(dir);
    assert_eq!(number(&plan, "total_bytes"), control.total_bytes() - before);
    assert_eq!((control.loaded_schemas, control.geometry.data_files()), (5, 7));
    assert_eq!(control.state, State::Clean);
    assert_eq!(fs::read(dir.join("data-0001.assay")).unwrap(), first);
    check(dir).unwrap();

    let refused = load(dir, &settings, 4).unwrap_err();
    assert!(matches!(refused, EngineError::Usage(_)), "{refused}");
    assert_eq!(read_control(dir), control);
}

#[test]
fn settings_that_contradict_the_data_set_are_refused_all_at_once() {
    let home = directory();
    load(home.path(), &settings(&[]), 1).unwrap();
    let other = settings(&[("SCALE", "3000"), ("BLOCK_SZ", "16384"), ("WORK_UNIT", "32")]);
    let error = load(home.path(), &other, 2).unwrap_err();
    assert!(matches!(error, EngineError::Usage(_)));
    let text = error.to_string();
    assert!(text.contains("SCALE=3000 but it has 2000 blocks"), "{text}");
    assert!(text.contains("BLOCK_SZ=16384 but it has 8192 bytes"), "{text}");
    // What nobody gave follows the data set.
    load(home.path(), &settings(&[]), 2).unwrap();
}

#[test]
fn impossible_settings_are_refused_before_anything_is_made() {
    let home = directory();
    let dir = home.path().join("data");
    for (given, schemas, says) in [
        (("SCALE", "999"), 1, "at least 1000"),
        (("WORK_UNIT", "4000"), 1, "at least 4000"),
        (("BLOCK_SZ", "12288"), 1, "power of two"),
        (("REDO_LOG_MB", "1"), 1, "REDO_LOG_MB=1 is too small"),
        (("UNDO_MB", "0"), 1, "UNDO_MB=0 is too small"),
        (("LOG_BLOCK_BYTES", "1000"), 1, "power of two"),
        (("SCALE", "2000"), 5000, "1 to 4096"),
    ] {
        let error = load(&dir, &settings(&[given]), schemas).unwrap_err();
        assert!(matches!(error, EngineError::Usage(_)), "{error}");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!dir.exists());
    }
}

#[test]
fn foreign_directories_are_refused_and_left_alone() {
    let home = directory();
    fs::write(home.path().join("ledger.txt"), "mine").unwrap();
    let settings = settings(&[]);
    let at = location(home.path());
    for error in [
        load(home.path(), &settings, 1).unwrap_err(),
        life::plan(&Native, &at, &settings, 1).unwrap_err(),
        Native.inspect(&at, &settings).unwrap_err(),
        check(home.path()).unwrap_err(),
        Native.plan_destroy(&at, &settings).unwrap_err(),
        life::destroy(&Native, &at, &settings).unwrap_err(),
    ] {
        assert!(matches!(error, EngineError::Unusable(_)));
        assert!(error.to_string().contains("ledger.txt"), "{error}");
    }
    assert_eq!(fs::read_dir(home.path()).unwrap().count(), 1);
}

#[test]
fn too_little_space_is_refused_before_anything_is_made() {
    let home = directory();
    let dir = home.path().join("data");
    let error = load(&dir, &settings(&[("SCALE", "200G")]), 4096).unwrap_err();
    assert!(matches!(error, EngineError::Unusable(_)));
    assert!(error.to_string().contains("must stay free"), "{error}");
    assert!(!dir.exists());
}

#[test]
fn a_flipped_byte_is_found_in_every_kind_of_block() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 2).unwrap();
    let g = read_control(dir).geometry.map();
    let at = |page: Page| g.locate(page).1;
    for (file, offset, says) in [
        ("data-0001.assay", at(g.data_page(1, 77)) + 3000, "schema 1, data slot 77): crc"),
        ("data-0001.assay", at(g.data_page(2, 1999)) + 24, "schema 2, data slot 1999): crc"),
        ("data-0001.assay", at(g.index_page(1, 0)) + 90, "schema 1, index node 0): crc"),
        ("data-0001.assay", at(g.index_page(2, 5)) + 4000, "schema 2, index node 5): crc"),
        ("data-0001.assay", at(g.scan_page(2, 63)) + 100, "schema 2, scan row 64): crc"),
        ("data-0001.assay", at(g.data_page(1, 5)), "schema 1, data slot 5): magic"),
        ("data-0001.assay", 900, "data-0001.assay, file header: crc"),
        ("undo.assay", 900, "undo.assay, file header: crc"),
        ("undo.assay", 8192 * 3 + 5, "undo block 2): magic"),
    ] {
        let path = dir.join(file);
        let raw = OpenOptions::new().read(true).write(true).open(&path).unwrap();
        let mut byte = [0];
        raw.read_exact_at(&mut byte, offset).unwrap();
        raw.write_all_at(&[byte[0] ^ 0x10], offset).unwrap();
        let error = check(dir).unwrap_err();
        assert!(matches!(error, EngineError::Damaged(_)), "{error}");
        let text = error.to_string();
        assert!(text.contains(file) && text.contains(says), "{text}");
        raw.write_all_at(&byte, offset).unwrap();
    }
    check(dir).unwrap();
}

#[test]
fn a_block_in_the_wrong_place_is_found_although_its_checksum_is_right() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 1).unwrap();
    let g = read_control(dir).geometry.map();
    let raw = OpenOptions::new().read(true).write(true).open(dir.join("data-0001.assay")).unwrap();
    let mut block = vec![0; 8192];
    raw.read_exact_at(&mut block, g.locate(g.data_page(1, 10)).1).unwrap();
    raw.write_all_at(&block, g.locate(g.data_page(1, 11)).1).unwrap();
    let text = check(dir).unwrap_err().to_string();
    assert!(text.contains("data slot 11): page is 10, expected 11"), "{text}");
}

/// Changes one block and gives it a right checksum again.
fn forge(dir: &Path, page: Page, change: impl Fn(&mut [u8])) {
    let (_, offset) = read_control(dir).geometry.map().locate(page);
    let path = dir.join("data-0001.assay");
    let raw = OpenOptions::new().read(true).write(true).open(path).unwrap();
    let mut block = vec![0; 8192];
    raw.read_exact_at(&mut block, offset).unwrap();
    change(&mut block);
    block_format::seal(&mut block);
    raw.write_all_at(&block, offset).unwrap();
}

#[test]
fn wrong_content_is_found_although_its_checksum_is_right() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 1).unwrap();
    let g = read_control(dir).geometry.map();
    let key = |block: &mut [u8]| {
        let key = block_format::get(block, word::KEY);
        block_format::put(block, word::KEY, key ^ 1);
    };
    let identity = |block: &mut [u8]| block_format::put(block, word::DATA_SET, 5);
    let child = |block: &mut [u8]| {
        let (first, page) = block_format::node_entry(block, 9);
        block_format::put_node_entry(block, 9, first, Page(page.0 ^ 1));
    };
    let entries = |block: &mut [u8]| block_format::format_node(block, 3, 0);
    type Change<'a> = &'a dyn Fn(&mut [u8]);
    let bad: [(Page, Change<'_>, &str); 5] = [
        (g.data_page(1, 500), &key, "data slot 500): key is"),
        (g.data_page(1, 501), &identity, "data slot 501): data set is 5"),
        (g.scan_page(1, 2), &key, "scan row 3): key is 2, expected 3"),
        (g.index_page(1, 3), &child, "index node 3): entry page is"),
        (g.index_page(1, 4), &entries, "index node 4): entry count is 3, expected 507"),
    ];
    let pristine = fs::read(dir.join("data-0001.assay")).unwrap();
    for (page, change, says) in bad {
        forge(dir, page, change);
        let text = check(dir).unwrap_err().to_string();
        assert!(text.contains(says), "{text}");
        fs::write(dir.join("data-0001.assay"), &pristine).unwrap();
    }
    check(dir).unwrap();
}

#[test]
fn missing_and_short_files_are_named() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 1).unwrap();
    let redo = dir.join("redo-02.assay");
    OpenOptions::new().write(true).open(&redo).unwrap().set_len(100).unwrap();
    let text = check(dir).unwrap_err().to_string();
    assert!(text.contains("redo-02.assay: it has 100 bytes"), "{text}");
    fs::remove_file(&redo).unwrap();
    let text = check(dir).unwrap_err().to_string();
    assert!(text.contains("redo-02.assay"), "{text}");
}

#[test]
fn a_data_set_in_use_is_left_alone() {
    let home = directory();
    let dir = home.path();
    load(dir, &settings(&[]), 1).unwrap();
    let lock = ControlFile::open_locked(dir).unwrap();
    let at = location(dir);
    let settings = settings(&[]);
    for error in [
        load(dir, &settings, 2).unwrap_err(),
        check(dir).unwrap_err(),
        Native.plan_destroy(&at, &settings).unwrap_err(),
        life::destroy(&Native, &at, &settings).unwrap_err(),
    ] {
        assert!(error.to_string().contains("another assay process"), "{error}");
    }
    drop(lock);
    check(dir).unwrap();
}

#[test]
fn a_data_set_that_was_not_closed_is_recovered_by_whoever_opens_it() {
    let home = directory();
    let dir = home.path().join("data");
    let settings = settings(&[]);
    load(&dir, &settings, 1).unwrap();
    let leave_open = || {
        let mut lock = ControlFile::open_locked(&dir).unwrap();
        let mut control = lock.control().clone();
        control.state = State::Open;
        lock.store(control).unwrap();
    };
    let state = || ControlFile::read(&dir).unwrap().unwrap().state;
    leave_open();
    let Presence::Present(data) = Native.inspect(&location(&dir), &settings).unwrap() else {
        panic!("it is there");
    };
    assert!(data.state.contains("needs recovery"), "{}", data.state);
    assert_eq!(state(), State::Open, "looking changes nothing");
    let lines = check(&dir).unwrap();
    assert!(lines.iter().any(|line| line.key == "recovered_records"));
    assert_eq!(state(), State::Clean);
    leave_open();
    load(&dir, &settings, 2).unwrap();
    assert_eq!(state(), State::Clean);
    check(&dir).unwrap();
    leave_open();
    life::destroy(&Native, &location(&dir), &settings).unwrap();
    assert!(!dir.exists());
}

#[test]
fn destroy_leaves_what_is_not_its_own_and_names_it() {
    let home = directory();
    let dir = home.path();
    let settings = settings(&[]);
    load(dir, &settings, 1).unwrap();
    fs::write(dir.join("notes.txt"), "mine").unwrap();
    fs::write(dir.join("data-0009.assay"), "mine too").unwrap();
    let lines = life::destroy(&Native, &location(dir), &settings).unwrap();
    let text = format!("{lines:?}");
    assert!(text.contains("data-0009.assay, notes.txt"), "{text}");
    assert_eq!(fs::read_dir(dir).unwrap().count(), 2);
}

#[test]
fn files_open_in_the_order_of_their_index() {
    let home = directory();
    load(home.path(), &settings(&[]), 1).unwrap();
    let control = read_control(home.path());
    let files = Files::open(&Places::directory(home.path()), &control, true).unwrap();
    assert_eq!((files.undo, files.redo_first, files.redo_count), (1, 2, 2));
    assert_eq!(files.name(0), "data-0001.assay");
    assert_eq!(files.name(files.undo), "undo.assay");
    assert_eq!(files.name(files.redo_first + 1), "redo-02.assay");
    assert!(home.path().join(CONTROL_NAME).exists());
}
