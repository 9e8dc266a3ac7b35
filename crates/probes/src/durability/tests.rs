use super::info::{DurabilityInfo, ORDERLY, POWER, PROCESS, RESET};
use super::record::{KIND, build};
use super::stamps::{BLOCK_BYTES, BLOCKS, Held, Stamp, fill, held, judge, offset_of, path_in, position_of};
use super::witness::{CLOSED, IN_ORDER, Known, SERVICE, SILENT, WRITING, bytes_of};
use super::*;
use crate::peer::hello::greet;
use crate::peer::line::Line as Peer;
use crate::peer::testing::Served;
use assay_measure::histogram::Histogram;
use assay_measure::kind::Kind as _;
use assay_testkit::conformance::probe_suite;
use assay_testkit::rules::{Case, just_fire};
use info::Cut;
use proptest::prelude::*;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Below the build directory: the system's temporary directory may be memory.
fn directory() -> tempfile::TempDir {
    let executable = std::env::current_exe().unwrap();
    tempfile::tempdir_in(executable.parent().unwrap()).unwrap()
}

#[test]
fn it_passes_the_suite() {
    let violations = probe_suite(&SPEC, directory().path());
    assert!(violations.is_empty(), "{violations:#?}");
}

const SESSION: u128 = 0x1234_5678_9abc_def0_0fed_cba9_8765_4321;

/// A block as the file holds it.
fn block(sequence: u64, position: u32) -> Vec<u8> {
    let mut block = vec![0; BLOCK_BYTES];
    fill(&mut block, SESSION, sequence, position);
    block
}

/// A file of a few blocks after so many stamps, and what the witness has of them.
fn written(blocks: u32, last: u64) -> (Vec<Vec<u8>>, Vec<Stamp>) {
    let mut file = vec![vec![0; BLOCK_BYTES]; blocks as usize];
    let mut known = vec![Stamp::default(); blocks as usize];
    for sequence in 1..=last {
        let position = position_of(sequence, blocks);
        let place = position as usize;
        known[place] = fill(&mut file[place], SESSION, sequence, position);
    }
    (file, known)
}

fn judged(file: &[Vec<u8>], known: &[Stamp], last: u64) -> Cut {
    let held: Vec<Held> = file.iter().map(|block| held(block, SESSION)).collect();
    judge(known, last, &held)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Whichever stamps a device loses, tears or swaps: each is counted once, as what it is.
    #[test]
    fn any_subset_that_is_lost_torn_or_swapped_is_counted_exactly(
        blocks in 2_u32..24,
        turns in 0_u64..3,
        fates in prop::collection::vec(0_u8..4, 24),
        cut_at in 1_usize..15,
    ) {
        let last = u64::from(blocks) * (turns + 1) - 1;
        let (mut file, known) = written(blocks, last);
        let whole = file.clone();
        let under_way = position_of(last + 1, blocks) as usize;
        let places: Vec<usize> = (0..blocks as usize).filter(|place| *place != under_way).collect();
        let fate = |fate: u8| places.iter().copied().filter(|place| fates[*place] == fate).collect::<Vec<_>>();
        // The stamp of the turn before, or nothing in the first.
        let older = |place: usize| match known[place].sequence.checked_sub(u64::from(blocks)) {
            None | Some(0) => vec![0; BLOCK_BYTES],
            Some(sequence) => block(sequence, place as u32),
        };
        let (lost, torn) = (fate(1), fate(2));
        for place in &lost {
            file[*place] = older(*place);
        }
        for place in &torn {
            file[*place][..cut_at * 512].copy_from_slice(&block(last + 7, *place as u32)[..cut_at * 512]);
        }
        let mut swapped = fate(3);
        swapped.truncate(swapped.len() / 2 * 2);
        for pair in swapped.chunks(2) {
            file[pair[0]].clone_from(&whole[pair[1]]);
            file[pair[1]].clone_from(&whole[pair[0]]);
        }
        let cut = judged(&file, &known, last);
        let there = |place: &&usize| ![&lost, &torn, &swapped].iter().any(|fate| fate.contains(place));
        let newest = places.iter().filter(there).map(|place| known[*place].sequence).max().unwrap_or(0);
        let overtaken = lost.iter().filter(|place| known[**place].sequence < newest).count();
        // The place under way holds the last stamp of its turn before, which is acknowledged from the second turn on.
        prop_assert_eq!(cut.acknowledged_count, places.len() as u64 + u64::from(turns > 0));
        prop_assert_eq!(cut.lost_count, lost.len() as u64);
        prop_assert_eq!(cut.torn_count, torn.len() as u64);
        prop_assert_eq!(cut.reordered_count, swapped.len() as u64);
        prop_assert_eq!(cut.overtaken_count, overtaken as u64);
    }
}

#[test]
fn the_write_under_way_may_be_anything_and_is_no_loss() {
    let (file, known) = written(4, 6);
    let place = position_of(7, 4) as usize;
    let after = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut file = file.clone();
        change(&mut file[place]);
        let cut = judged(&file, &known, 6);
        (cut.under_way.clone(), cut.missing())
    };
    assert_eq!(after(&|_| ()), ("not there".to_owned(), 0));
    assert_eq!(after(&|old| *old = block(7, place as u32)), ("whole".to_owned(), 0));
    assert_eq!(after(&|old| old[..4096].copy_from_slice(&block(7, place as u32)[..4096])), ("torn".to_owned(), 0));
    // What was there before is acknowledged: nothing in its place is a loss.
    assert_eq!(after(&|old| old.fill(0)), ("not there".to_owned(), 1));
}

fn run(dir: &Path, words: &[&str]) -> Result<DurabilityInfo, EngineError> {
    struct Quiet;
    impl Steps for Quiet {
        fn step(&self, _: usize, _: usize, _: &str) {}
    }
    let request = Request {
        place: dir.to_path_buf(),
        time: Duration::from_millis(300),
        words: words.iter().map(|word| (*word).to_owned()).collect(),
    };
    let measured = (SPEC.aim)(&request)?.measure(&Stop::new(), &Quiet)?;
    Ok(measured.record(&RunData::default()).unwrap().parts.get().unwrap())
}

/// A witness with its journals, and a directory for stamps.
struct Both {
    witness: Served,
    journals: tempfile::TempDir,
    dir: tempfile::TempDir,
}

impl Both {
    fn new() -> Self {
        let journals = directory();
        let journal = format!("journal={}", journals.path().display());
        Self { witness: Served::new(&SPEC, &[&journal]), journals, dir: directory() }
    }

    fn at(&self) -> String {
        format!("witness=127.0.0.1:{}", self.witness.port)
    }

    fn stamps(&self) -> Result<DurabilityInfo, EngineError> {
        run(self.dir.path(), &[&self.at()])
    }

    fn back(&self) -> Result<DurabilityInfo, EngineError> {
        run(self.dir.path(), &[&self.at(), "resume"])
    }

    fn file(&self) -> fs::File {
        fs::File::options().read(true).write(true).open(path_in(self.dir.path())).unwrap()
    }
}

/// What was acknowledged last, and what each block held before: a device that lies puts it back.
#[test]
fn a_device_that_lies_is_found_and_the_next_cut_is_counted_anew() {
    let both = Both::new();
    let stamped = both.stamps().unwrap();
    assert_eq!(stamped.durability, "unknown");
    let back = both.back().unwrap();
    assert_eq!((back.durability.as_str(), back.cuts[0].end.as_str(), back.cuts[0].missing()), ("unknown", ORDERLY, 0));
    let before = fs::read(path_in(both.dir.path())).unwrap();
    let (first, mut count) = (stamped.stamps_count + 1, 0);
    // A slow disk makes few in the time of a test; ends in order add up.
    while count < 4 {
        count += both.stamps().unwrap().stamps_count;
    }
    // The first is torn, the second and third are swapped, and of the rest nothing was kept.
    let place = |nth: u64| offset_of(position_of(first + nth, BLOCKS));
    let read = |nth: u64| {
        let mut block = vec![0; BLOCK_BYTES];
        both.file().read_exact_at(&mut block, place(nth)).unwrap();
        block
    };
    let (one, two) = (read(1), read(2));
    both.file().write_all_at(&vec![7; 512], place(0)).unwrap();
    both.file().write_all_at(&two, place(1)).unwrap();
    both.file().write_all_at(&one, place(2)).unwrap();
    for nth in 3..count.min(u64::from(BLOCKS)) {
        let at = place(nth);
        both.file().write_all_at(&before[at as usize..][..BLOCK_BYTES], at).unwrap();
    }
    let found = both.back().unwrap();
    let cut = &found.cuts[1];
    assert_eq!((cut.torn_count, cut.reordered_count, cut.lost_count), (1, 2, count - 3), "{cut:?}");
    assert_eq!(found.durability, "lying");
    // Asked again, it says the same; the next writing starts behind it.
    assert_eq!(both.back().unwrap().cuts, found.cuts);
    both.stamps().unwrap();
    assert_eq!(both.back().unwrap().cuts[2].missing(), 0);
}

#[test]
fn who_is_not_the_witness_of_this_file_is_told_and_nothing_is_touched() {
    let both = Both::new();
    let said = |result: Result<DurabilityInfo, EngineError>| result.unwrap_err().to_string();
    assert!(said(both.back()).contains("nothing to read back"));
    // Nobody there: no file is made.
    let gone = "witness=127.0.0.1:1";
    assert!(said(run(both.dir.path(), &[gone])).contains("cannot connect"));
    assert!(!path_in(both.dir.path()).exists());
    both.stamps().unwrap();
    let mine = fs::read(path_in(both.dir.path())).unwrap();
    // Another witness has never seen this session.
    let other = Both::new();
    for words in [&[&*other.at()][..], &[&*other.at(), "resume"]] {
        let told = said(run(both.dir.path(), words));
        assert!(told.contains("no journal of session"), "{told}");
    }
    // A damaged journal.
    let journal = fs::read_dir(both.journals.path()).unwrap().next().unwrap().unwrap().path();
    let kept = fs::read(&journal).unwrap();
    fs::write(&journal, "theirs").unwrap();
    assert!(said(both.back()).contains("no journal of this session"));
    assert_eq!(fs::read_to_string(&journal).unwrap(), "theirs");
    fs::write(&journal, kept).unwrap();
    assert_eq!(both.back().unwrap().cuts.len(), 1);
    assert_eq!(fs::read(path_in(both.dir.path())).unwrap(), mine);
    // A journal that was lost with the host that was cut.
    let older = fs::read(&journal).unwrap();
    both.stamps().unwrap();
    let newer = fs::read(&journal).unwrap();
    fs::write(&journal, &older).unwrap();
    for result in [both.stamps(), both.back()] {
        assert!(said(result).contains("its journal is older than the file"));
    }
    fs::write(&journal, newer).unwrap();
    both.back().unwrap();
    let mine = fs::read(path_in(both.dir.path())).unwrap();
    // A file that is not ours, and one of ours that is not whole.
    for foreign in [&b"theirs"[..], &mine[..BLOCK_BYTES]] {
        fs::write(path_in(both.dir.path()), foreign).unwrap();
        assert!(said(both.stamps()).contains("no whole file of stamps"));
        assert_eq!(fs::read(path_in(both.dir.path())).unwrap(), foreign);
    }
    for (words, told) in [
        (&["resume"][..], "name the witness"),
        (&["cut=power"], "goes with --resume"),
        (&["witness=:5"], "HOST or HOST:PORT"),
    ] {
        assert!(said(run(both.dir.path(), words)).contains(told), "{words:?}");
    }
}

/// A client of the witness by hand.
fn client(both: &Both, session: &str) -> (Peer, Known) {
    let mut line = Peer::connect("127.0.0.1", both.witness.port, Duration::from_secs(60), &Stop::new()).unwrap();
    greet(&mut line, SERVICE, None).unwrap();
    let asked = witness::Asked { session: session.to_owned(), is_new: true, ..witness::Asked::default() };
    line.tell(&asked, "in a test").unwrap();
    let known = line.hear(1 << 16, "in a test").unwrap();
    (line, known)
}

#[test]
fn a_stranger_a_second_writer_and_a_wrong_stamp_are_refused_and_leave_the_journal_as_it_was() {
    use std::io::Write as _;
    let both = Both::new();
    let mut stranger = std::net::TcpStream::connect(("127.0.0.1", both.witness.port)).unwrap();
    stranger.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(fs::read_dir(both.journals.path()).unwrap().count(), 0);
    let session = format!("{SESSION:032x}");
    assert!(client(&both, "../../etc/passwd").1.refused.contains("no such session"));
    let (mut line, known) = client(&both, &session);
    assert_eq!((known.refused.as_str(), known.last), ("", 0));
    assert!(client(&both, &session).1.refused.contains("somebody else"));
    let mut answer = [0; 8];
    line.write(&bytes_of(Stamp { sequence: 1, position: 0, checksum: 5 }), "in a test").unwrap();
    line.read(&mut answer, "in a test").unwrap();
    assert_eq!(u64::from_le_bytes(answer), 1);
    // Not the next one, and at no place.
    line.write(&bytes_of(Stamp { sequence: 9, position: BLOCKS, checksum: 5 }), "in a test").unwrap();
    assert!(line.read(&mut answer, "in a test").is_err());
    // Acknowledged, and nobody has read it back.
    let refused =
        std::iter::repeat_with(|| client(&both, &session).1.refused).find(|why| !why.contains("somebody else"));
    assert!(refused.unwrap().contains("do that first (--resume)"));
}

#[test]
fn what_an_end_was_follows_from_the_restart_and_the_witness_and_a_claim_against_them_is_refused() {
    let known = |ended: &str| Known { boot: "one".to_owned(), ended: ended.to_owned(), ..Known::default() };
    let end = |ended, boot, said| writer::end(&known(ended), boot, said).map_err(|error| error.to_string());
    assert_eq!(end(IN_ORDER, "two", None), Ok(ORDERLY));
    assert_eq!(end(SILENT, "two", None), Ok(RESET));
    assert!(end(CLOSED, "two", None).unwrap_err().contains("say what the end was"));
    assert_eq!(end(CLOSED, "two", Some(PROCESS)), Ok(PROCESS));
    assert_eq!(end(WRITING, "one", None), Ok(PROCESS));
    assert_eq!(end(CLOSED, "two", Some("power")), Ok("power"));
    assert!(end(SILENT, "one", Some("power")).unwrap_err().contains("has not restarted"));
    assert!(end(IN_ORDER, "two", Some("power")).unwrap_err().contains("no cut"));
}

/// A cut of this sort that left nothing missing.
fn cut(end: &str) -> Cut {
    Cut { end: end.to_owned(), acknowledged_count: 100, under_way: "whole".to_owned(), ..Cut::default() }
}

/// A device on which a sync takes so long, after these cuts.
fn readings(us: u64, cuts: &[Cut]) -> DurabilityReadings {
    let known = |bytes: u64| Ok(bytes);
    let mut facts = device_facts(Path::new("/nowhere"));
    facts.is_tmpfs = false;
    facts.mount_options = Ok("rw,relatime".to_owned());
    facts.disk = Ok("sda".to_owned());
    facts.rotational = Ok(false);
    facts.write_cache = Ok("write back".to_owned());
    let mut latency = Histogram::new();
    latency.record_n(us * 1000, 1000);
    let cost = Cost { latency, elapsed_ns: us * 1_000_000, rates: vec![1e6 / us as f64; 5] };
    DurabilityReadings {
        path: "/data/assay-durability.stamps".to_owned(),
        part: COSTS,
        facts,
        is_direct: true,
        is_virtual: false,
        units: Some(TearUnits { file: known(0), device: known(0), alignment: known(1 << 20) }),
        costs: vec![cost; costs::WAYS.len()],
        witness: String::new(),
        stamped: Some(Stamped { cuts: cuts.to_vec(), ..Stamped::default() }),
        host: HostWindow::default(),
        is_stopped: false,
    }
}

fn verdict_of(readings: &DurabilityReadings) -> String {
    let record = build(&RunData::default(), readings);
    KIND.headline(&record).verdict
}

#[test]
fn nothing_is_durable_without_a_cut_and_each_cut_lowers_the_bound() {
    let told = |us, cuts: &[Cut]| verdict_of(&readings(us, cuts));
    assert_eq!(told(500, &[]), "unknown (no cut seen)");
    assert_eq!(told(12, &[cut(PROCESS)]), "unknown (no cut seen, 1 kill of the writer lost nothing)");
    let power = vec![cut("power"); 59];
    assert!(told(500, &power[..1]).starts_with(
        "durable (nothing lost in 1 power cut; with 95 % confidence a power cut loses something in at most 95 %"
    ));
    assert!(told(500, &power).ends_with("in at most 5 % of cases)"));
    assert!(told(500, &[cut(RESET)]).starts_with("durable (across 1 reset only"));
    // Resets do not lower the bound of power cuts.
    let both = told(500, &[power[0].clone(), cut(RESET), cut(RESET)]);
    assert!(
        both.contains("1 power cut and 2 resets; with 95 % confidence a power cut loses something in at most 95 %"),
        "{both}"
    );
    let lossy = Cut { lost_count: 3, ..cut(PROCESS) };
    assert!(
        told(500, &[power[0].clone(), lossy.clone()])
            .starts_with("lying (3 acknowledged stamps missing after 1 of 2 ends")
    );
    let memory = |cuts: &[Cut]| {
        let mut readings = readings(500, cuts);
        readings.facts.is_tmpfs = true;
        verdict_of(&readings)
    };
    assert_eq!(memory(&[]), "volatile (the file lies in memory, tmpfs)");
    assert!(memory(&[lossy]).starts_with("volatile (3 acknowledged stamps missing"));
    assert!(told(3, &[]).starts_with("volatile (a sync takes 3.0 us"));
    let rotates = |us, is_virtual| {
        let mut readings = DurabilityReadings { is_virtual, ..readings(us, &[]) };
        readings.facts.rotational = Ok(true);
        verdict_of(&readings)
    };
    assert!(rotates(999, false).starts_with("lying (the device says that it rotates"));
    assert!(rotates(1001, false).starts_with("unknown"));
    // A hypervisor may cache safely.
    assert!(rotates(999, true).starts_with("unknown"));
}

fn built(us: u64, cuts: &[Cut], change: impl FnOnce(&mut DurabilityReadings)) -> Record {
    let mut readings = readings(us, cuts);
    change(&mut readings);
    build(&RunData::default(), &readings)
}

fn atomic(bytes: u64) -> impl FnOnce(&mut DurabilityReadings) {
    move |readings| readings.units = Some(TearUnits { file: Ok(bytes), device: Ok(bytes), alignment: Ok(1 << 20) })
}

/// Rule by rule.
const CASES: &[Case] = &[
    ("D1", |fires| built(500, &[Cut { torn_count: fires.into(), ..cut(PROCESS) }], |_| ())),
    ("D2", |fires| built(if fires { 4 } else { 6 }, &[], |_| ())),
    ("D3", |fires| {
        built(if fires { 990 } else { 1010 }, &[], |readings| {
            readings.is_virtual = true;
            readings.facts.rotational = Ok(true);
        })
    }),
    ("D4", |fires| built(500, &[cut(RESET), cut(if fires { RESET } else { POWER })], |_| ())),
    ("D5", |fires| built(500, &[], atomic(if fires { 4096 } else { 8192 }))),
    ("D7", |fires| {
        built(500, &[], |readings| readings.stamped = Some(Stamped { is_here: fires, ..Stamped::default() }))
    }),
    ("D6", |fires| built(500, &[cut("power")], atomic(if fires { 8192 } else { 4096 }))),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}
