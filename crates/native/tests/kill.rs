//! Real crashes: a child process updates a data set and is killed at a random instant; then every
//! acknowledged commit must be there, no operation may be half there, and every block must pass the check.
//!
//! `ASSAY_KILLS` sets how many (10), `ASSAY_KILL_SEED` the first seed: the failing command is printed.
//! The child journals what it is about to do and what was acknowledged; the kernel keeps what a killed
//! process has written.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test: what fails ends it, and says where")]

use assay_measure::clock::Clock;
use assay_measure::config::{Settings, Tables, command_line, resolve};
use assay_measure::permutation::Permutation;
use assay_measure::prng::SplitMix64;
use assay_native::Native;
use assay_native::block_format::{self, column_range, word};
use assay_native::control::{Control, State};
use assay_native::control_file::ControlFile;
use assay_native::files::Files;
use assay_native::params::PARAMS;
use assay_native::paths::Places;
use assay_run::engine::{Assignment, Engine, Op, Outcome, Progress, Submit, Target};
use assay_run::plan::{Plan, RedoStress};
use assay_run::stop::Stop;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const SCALE: u64 = 1000;
const ROLE: &str = "ASSAY_KILL_ROLE";
const PLACE: &str = "ASSAY_KILL_PLACE";
const SEED: &str = "ASSAY_KILL_SEED";

struct Silent;

impl Progress for Silent {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// One case: how the child runs. Every decision follows from its seed, except the instant of the kill.
#[derive(Clone, Debug)]
struct Case {
    seed: u64,
    schemas: u32,
    threads_per_schema: u32,
    width: u32,
    commit_every: u64,
    commit_mode: &'static str,
    stress: RedoStress,
    cache_mb: &'static str,
    writers: &'static str,
}

impl Case {
    fn of(seed: u64) -> Self {
        let mut random = SplitMix64(seed);
        let shared = random.below(3) == 0;
        Self {
            seed,
            schemas: if shared { 1 } else { 3 },
            threads_per_schema: if shared { 4 } else { 1 },
            width: random.pick(&[1, 7, 16, 64]),
            commit_every: random.pick(&[1, 1, 3]),
            // Without waiting, acknowledged commits may be lost: only private schemas have an order to judge by.
            commit_mode: random.pick(if shared { &["group", "sync"] } else { &["group", "group", "sync", "none"] }),
            stress: random.pick(&[RedoStress::Lite, RedoStress::Heavy]),
            cache_mb: random.pick(&["2", "4", "32"]),
            writers: random.pick(&["1", "2"]),
        }
    }

    fn is_shared(&self) -> bool {
        self.threads_per_schema > 1
    }

    fn settings(&self) -> Settings {
        let given = [
            ("SCALE", "1000"),
            ("REDO_LOGS", "2"),
            ("REDO_LOG_MB", "4"),
            ("LOG_BUFFER_MB", "1"),
            ("UNDO_MB", "16"),
            ("SEED", "7"),
            ("CACHE_MB", self.cache_mb),
            ("COMMIT_MODE", self.commit_mode),
            ("DB_WRITERS", self.writers),
            ("UPDATE_PCT", "100"),
        ];
        let tables =
            Tables { target: "native", params: PARAMS, workload: &assay_slob::SETTINGS, concerns: &[], others: &[] };
        let options = given.map(|(n, v)| ("--set".to_owned(), n.to_owned(), v.to_owned()));
        let resolved = resolve(&tables, &[command_line(options)]);
        assert!(!resolved.has_errors(), "{:?}", resolved.problems);
        resolved.settings
    }

    fn plan(&self) -> Plan {
        Plan {
            update_pct: 100,
            work_unit: self.width,
            update_work_unit: self.width,
            redo_stress: self.stress,
            commit_every: self.commit_every,
            scan_blocks: 16,
            ..Plan::plain(self.schemas, self.threads_per_schema, SCALE)
        }
    }

    /// Operation `i` of a session. Stamps name session and operation, and differ from case to case.
    fn op(&self, session: u32, schema: u32, i: u64) -> Op {
        let mut random = SplitMix64(self.seed ^ (u64::from(session) << 40) ^ (i << 8));
        Op::Update {
            schema,
            first_key: 1 + random.below(SCALE - u64::from(self.width) + 1),
            width: self.width,
            stamp: ((self.seed + 1) << 44) | (u64::from(session) << 32) | (i + 1),
            commit: (i + 1).is_multiple_of(self.commit_every),
        }
    }
}

/// What the child writes down: 17 bytes each, one write each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Entry {
    acknowledged: bool,
    session: u64,
    i: u64,
}

impl Entry {
    fn write(self, journal: &mut File) {
        let mut bytes = [0; 17];
        bytes[0] = u8::from(self.acknowledged);
        bytes[1..9].copy_from_slice(&self.session.to_le_bytes());
        bytes[9..].copy_from_slice(&self.i.to_le_bytes());
        journal.write_all(&bytes).unwrap();
    }

    fn read(bytes: &[u8]) -> Self {
        let word = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap());
        Self { acknowledged: bytes[0] == 1, session: word(1), i: word(9) }
    }
}

fn journal_of(place: &Path) -> PathBuf {
    place.join("journal")
}

/// The child's life: updates without end.
fn update_until_killed(case: &Case, place: &Path) {
    let location = place.join("data");
    let (settings, plan) = (case.settings(), case.plan());
    let stop = Stop::new();
    let engine = Native.open(location.to_str().unwrap(), &plan, &settings, &stop, &Silent).unwrap();
    std::thread::scope(|scope| {
        for assignment in plan.assignments(2) {
            let engine = &*engine;
            scope.spawn(move || drive(case, place, engine, &assignment));
        }
    });
}

fn drive(case: &Case, place: &Path, engine: &dyn Engine, assignment: &Assignment) {
    let mut journal = OpenOptions::new().append(true).create(true).open(journal_of(place)).unwrap();
    let clock = Clock::real();
    let mut driver = engine.driver(assignment).unwrap();
    let mut counts = vec![0u64; assignment.sessions.len()];
    let mut due: Vec<u32> = (0..counts.len() as u32).collect();
    let mut ended = Vec::new();
    loop {
        while let Some(tag) = due.pop() {
            let (session, schema) = assignment.sessions[tag as usize];
            let i = counts[tag as usize];
            let entry = Entry { acknowledged: false, session: u64::from(session), i };
            entry.write(&mut journal);
            let op = case.op(session, schema, i);
            match driver.submit(tag, &op, clock.now_ns()) {
                Submit::Done(outcome) => ended.push((tag, outcome)),
                Submit::Queued => {}
                Submit::Full => panic!("one operation of a session always fits"),
            }
        }
        let mut completions = Vec::new();
        driver.reap(Duration::from_millis(10), &mut completions).unwrap();
        ended.extend(completions.into_iter().map(|c| (c.tag, c.outcome)));
        for (tag, Outcome { result, .. }) in ended.drain(..) {
            result.unwrap();
            let entry = Entry {
                acknowledged: true,
                session: u64::from(assignment.sessions[tag as usize].0),
                i: counts[tag as usize],
            };
            entry.write(&mut journal);
            counts[tag as usize] += 1;
            due.push(tag);
        }
    }
}

/// This test binary again, in another role.
fn start(role: &str, seed: u64, place: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "the_child", "--nocapture"])
        .env(ROLE, role)
        .env(SEED, seed.to_string())
        .env(PLACE, place)
        .stdout(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn the_child() {
    let Ok(role) = std::env::var(ROLE) else {
        return;
    };
    let place = PathBuf::from(std::env::var(PLACE).unwrap());
    let case = Case::of(std::env::var(SEED).unwrap().parse().unwrap());
    match role.as_str() {
        "update" => update_until_killed(&case, &place),
        _ => {
            recover(&case, &place);
        }
    }
}

/// Opens what was left, which recovers it, and verifies every block.
fn recover(case: &Case, place: &Path) {
    let data = place.join("data");
    Native
        .check(data.to_str().unwrap(), &case.settings(), &Stop::new(), &Silent)
        .unwrap_or_else(|error| panic!("{error}"));
}

/// The stamp in each row, by (schema, key); 0 as loaded. Every row's columns must be of one update each.
fn stamps(place: &Path) -> BTreeMap<(u32, u64), u64> {
    let dir = place.join("data");
    let control: Control = ControlFile::read(&dir).unwrap().unwrap();
    assert_eq!(control.state, State::Clean);
    let files = Files::open(&Places::directory(&dir), &control, false).unwrap();
    let map = control.geometry.map();
    let mut found = BTreeMap::new();
    let mut block = vec![0; control.geometry.block_bytes as usize];
    for schema in 1..=control.loaded_schemas {
        let permutation = Permutation::new(control.geometry.seed, schema, SCALE);
        for key in 1..=SCALE {
            let page = map.data_page(schema, permutation.slot_of_key(key));
            let (file, offset) = map.locate(page);
            files.list[usize::from(file)].read_at(offset, &mut block).unwrap();
            assert_eq!(block_format::get(&block, word::KEY), key);
            let stamp = |column: usize| {
                let digits = std::str::from_utf8(&block[column_range(column)][..16]).unwrap();
                u64::from_str_radix(digits, 16).unwrap_or(0)
            };
            assert_eq!(stamp(2), stamp(20), "schema {schema} key {key} is half there");
            assert!((4..20).all(|column| stamp(column) == stamp(3)), "schema {schema} key {key} is half there");
            found.insert((schema, key), stamp(2));
        }
    }
    found
}

/// What one session did: operations begun, operations acknowledged.
#[derive(Clone, Copy, Debug, Default)]
struct Done {
    begun: u64,
    acknowledged: u64,
}

struct Journal {
    entries: Vec<Entry>,
    by_session: BTreeMap<u64, Done>,
}

fn read_journal(place: &Path) -> Journal {
    let bytes = std::fs::read(journal_of(place)).unwrap_or_default();
    let entries: Vec<Entry> = bytes.chunks_exact(17).map(Entry::read).collect();
    let mut by_session: BTreeMap<u64, Done> = BTreeMap::new();
    for entry in &entries {
        let done = by_session.entry(entry.session).or_default();
        let count = if entry.acknowledged { &mut done.acknowledged } else { &mut done.begun };
        *count = (*count).max(entry.i + 1);
    }
    Journal { entries, by_session }
}

fn keys(op: &Op) -> (u32, std::ops::Range<u64>, u64) {
    let Op::Update { schema, first_key, width, stamp, .. } = *op else { unreachable!("only updates are made") };
    (schema, first_key..first_key + u64::from(width), stamp)
}

type Rows = BTreeMap<(u32, u64), u64>;

/// One session a schema: what is there must be the first k transactions, all that were acknowledged at least.
fn judge_private(case: &Case, journal: &Journal, before: &Rows, after: &Rows) -> String {
    let mut seen = String::new();
    for (session, done) in &journal.by_session {
        let schema = case.plan().home_schema(*session as u32);
        let ops: Vec<Op> = (0..done.begun).map(|i| case.op(*session as u32, schema, i)).collect();
        let number: BTreeMap<u64, u64> = (0..).zip(&ops).map(|(i, op)| (keys(op).2, i)).collect();
        let last = (1..=SCALE).filter_map(|key| number.get(&after[&(schema, key)]).copied());
        let there = last.max().map_or(0, |i| i + 1).next_multiple_of(case.commit_every);
        let acknowledged = done.acknowledged / case.commit_every * case.commit_every;
        assert!(there <= done.begun, "session {session}: part of an uncommitted transaction is there");
        assert!(
            case.commit_mode == "none" || there >= acknowledged,
            "session {session}: {acknowledged} operations were acknowledged, {there} are there"
        );
        let mut expected: Rows = (1..=SCALE).map(|key| ((schema, key), before[&(schema, key)])).collect();
        for op in &ops[..there as usize] {
            let (schema, keys, stamp) = keys(op);
            expected.extend(keys.map(|key| ((schema, key), stamp)));
        }
        for (row, stamp) in &expected {
            assert_eq!(after[row], *stamp, "session {session}, row {row:?}, {there} there");
        }
        seen.push_str(&format!(" {there}/{acknowledged}"));
    }
    seen
}

/// When an operation was begun and acknowledged: positions in the journal.
#[derive(Clone, Copy)]
struct Life {
    begun: usize,
    /// Of the commit that covers it; the end of the journal if there was none.
    acknowledged: usize,
}

/// Sessions that share rows: a row carries an operation that no other, acknowledged one surely followed, and what
/// is there of an operation that was not acknowledged is all of it. (Not of a transaction: before a session waits
/// for a row lock it commits what it did before.)
fn judge_shared(case: &Case, journal: &Journal, before: &Rows, after: &Rows) -> String {
    let end = journal.entries.len();
    let mut lives: BTreeMap<u64, (Op, Life, u64)> = BTreeMap::new();
    let mut by_op: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for (at, entry) in journal.entries.iter().enumerate() {
        let op = case.op(entry.session as u32, 1, entry.i);
        let stamp = keys(&op).2;
        if !entry.acknowledged {
            let life = Life { begun: at, acknowledged: end };
            lives.insert(stamp, (op, life, (entry.session << 32) | entry.i));
            by_op.insert((entry.session, entry.i), stamp);
        } else if (entry.i + 1).is_multiple_of(case.commit_every) {
            for i in entry.i + 1 - case.commit_every..=entry.i {
                let stamp = by_op[&(entry.session, i)];
                lives.get_mut(&stamp).unwrap().1.acknowledged = at;
            }
        }
    }
    let mut touching: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
    for (stamp, (op, ..)) in &lives {
        keys(op).1.for_each(|key| touching.entry(key).or_default().push(*stamp));
    }
    // Whether `later` may have come after `earlier`, or is it.
    let may_follow =
        |later: u64, earlier: u64| later == earlier || lives[&later].1.acknowledged > lives[&earlier].1.begun;
    let mut there: BTreeSet<u64> = BTreeSet::new();
    for (key, stamps) in &touching {
        let now = after[&(1, *key)];
        if lives.contains_key(&now) {
            there.insert(lives[&now].2);
        } else {
            assert_eq!(now, before[&(1, *key)], "key {key}");
        }
        for stamp in stamps.iter().filter(|s| lives[s].1.acknowledged < end) {
            assert!(
                lives.contains_key(&now) && may_follow(now, *stamp),
                "key {key} has {now:x}, older than the acknowledged {stamp:x}"
            );
        }
    }
    for (stamp, (op, life, number)) in &lives {
        let is_there = life.acknowledged < end || there.contains(number);
        for key in keys(op).1 {
            let now = after[&(1, key)];
            if is_there {
                assert!(
                    lives.contains_key(&now) && may_follow(now, *stamp),
                    "operation {stamp:x} is half there: key {key} has {now:x}"
                );
            } else {
                assert_ne!(now, *stamp);
            }
        }
    }
    format!(" {} operations", lives.len())
}

fn one_case(seed: u64, place: &Path) {
    let case = Case::of(seed);
    let before = stamps(place);
    let _ = std::fs::remove_file(journal_of(place));
    let mut child = start("update", seed, place);
    // From before the first operation to long after the first log switches.
    let mut random = SplitMix64(seed.wrapping_mul(77) ^ u64::from(std::process::id()));
    let longest_ms = random.pick(&[100, 400, 1500]);
    std::thread::sleep(Duration::from_millis(random.below(longest_ms)));
    while read_journal(place).entries.is_empty() && random.below(4) > 0 {
        assert!(child.try_wait().unwrap().is_none(), "the child ended by itself");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    if random.below(3) == 0 {
        // Recovery itself is killed, too.
        let mut child = start("recover", seed, place);
        std::thread::sleep(Duration::from_millis(random.below(60)));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let was_open = ControlFile::read(&place.join("data")).unwrap().unwrap().state;
    recover(&case, place);
    let after = stamps(place);
    let journal = read_journal(place);
    let seen = if case.is_shared() {
        judge_shared(&case, &journal, &before, &after)
    } else {
        judge_private(&case, &journal, &before, &after)
    };
    println!("seed {seed}: {was_open:?},{seen} ({case:?})");
}

#[test]
fn slob_47_every_acknowledged_commit_survives_a_kill_and_no_other_is_half_there() {
    let number = |name: &str, default: u64| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    if std::env::var(ROLE).is_ok() {
        return;
    }
    let executable = std::env::current_exe().unwrap();
    let place = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let case = Case::of(0);
    let data = place.path().join("data");
    Native.prepare(data.to_str().unwrap(), &case.settings(), 3, &Stop::new(), &Silent).unwrap();
    let first = number(SEED, 1);
    for seed in first..first + number("ASSAY_KILLS", 10) {
        let place = place.path();
        let judged = std::panic::catch_unwind(|| one_case(seed, place));
        if let Err(panic) = judged {
            eprintln!("again: {SEED}={seed} ASSAY_KILLS=50 cargo test -p assay-native --test kill");
            std::panic::resume_unwind(panic);
        }
    }
}
