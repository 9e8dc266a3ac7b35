use super::info::{CLOSE, FASTER, InterferenceInfo, NOISE, SLOWER, UNKNOWN};
use super::matrix::matrix;
use super::record::{KIND, build};
use super::role::{CHECKPOINT, LOG, READS, SCAN, combinations, order};
use super::*;
use assay_measure::histogram::Histogram;
use assay_measure::kind::Kind as _;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::section::Part as SectionPart;
use assay_testkit::conformance::probe_suite_with;
use assay_testkit::rules::{Case, just_fire};
use std::f64::consts::TAU;

#[test]
fn it_passes_the_suite() {
    // Below the build directory: the system's temporary directory may be memory.
    let executable = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let violations = probe_suite_with(&SPEC, &["size=8M"], dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// A device that was never there: each role has its median and spread, each round its own mood, some slices a stall.
struct Simulated {
    random: Stream,
    /// Multiples by role and other role.
    times: fn(usize, usize) -> f64,
    /// Operations of each role in a slice of its own.
    operations: [f64; 5],
    rounds: u32,
}

impl Simulated {
    fn new(seed: u64, times: fn(usize, usize) -> f64) -> Self {
        let random = Stream::new(seed, 0, Purpose::Test);
        Self { random, times, operations: [600.0, 900.0, 300.0, 60.0, 200.0], rounds: 8 }
    }

    fn normal(&mut self) -> f64 {
        let (a, b) = (1.0 - self.random.uniform_f64(), self.random.uniform_f64());
        (-2.0 * a.ln()).sqrt() * (TAU * b).cos()
    }

    fn readings(&mut self) -> Vec<Reading> {
        let mut readings = Vec::new();
        let (mut mood, mut last) = (1.0, u32::MAX);
        for (round, roles) in order(self.rounds, 7) {
            if round != last {
                (mood, last) = ((0.3 * self.normal()).exp(), round);
            }
            let slice = mood * (0.1 * self.normal()).exp();
            for role in &roles {
                let beside = roles.iter().find(|other| *other != role).copied();
                let times = beside.map_or(1.0, |beside| (self.times)(*role, beside));
                let mut latency = Histogram::new();
                for _ in 0..(self.operations[*role] / times / slice) as usize {
                    let stall = if self.random.below(2000) == 0 { 20.0 } else { 1.0 };
                    latency.record((1e6 * slice * times * stall * (0.5 * self.normal()).exp()) as u64);
                }
                readings.push(Reading { round, role: *role, beside, latency: latency.clone() });
            }
        }
        readings
    }
}

/// A backup that hurts commits most and reads some, and a checkpoint that hurts commits.
fn noisy(role: usize, beside: usize) -> f64 {
    match (role, beside) {
        (LOG, BACKUP) => 6.0,
        (READS, BACKUP) => 2.3,
        (LOG, CHECKPOINT) => 1.8,
        _ => 1.0,
    }
}

#[test]
fn multiples_are_recovered_within_15_percent_though_the_device_drifts() {
    for seed in 0..10 {
        for cell in matrix(&Simulated::new(seed, noisy).readings()) {
            let times = noisy(cell.role, cell.beside);
            let found = cell.judged().unwrap();
            if times > 1.0 {
                assert!((found.times / times - 1.0).abs() <= 0.15, "{seed}: {cell:?}");
                assert_eq!(cell.verdict, SLOWER, "{seed}: {cell:?}");
            }
        }
    }
}

#[test]
fn no_pair_is_accused_where_there_is_no_interference() {
    // By the stated error rate 5 of 100 runs may accuse any of their 20 pairs.
    let is_accused = |seed: &u64| {
        let cells = matrix(&Simulated::new(*seed, |_, _| 1.0).readings());
        cells.iter().any(|cell| [SLOWER, FASTER].contains(&cell.verdict))
    };
    let accused: Vec<u64> = (0..100).filter(is_accused).collect();
    assert!(accused.len() <= 5, "{accused:?}");
}

#[test]
fn a_round_has_every_pair_once_and_its_order_is_that_of_the_seed() {
    let all = order(2, 1);
    let mut sorted: Vec<Vec<usize>> =
        all.iter().filter(|(round, _)| *round == 1).map(|(_, roles)| roles.clone()).collect();
    assert_ne!(sorted, combinations());
    sorted.sort();
    let mut wanted = combinations();
    wanted.sort();
    assert_eq!(sorted, wanted);
    assert_eq!(wanted.iter().filter(|roles| roles.len() == 2).count(), 10);
    assert_eq!(all, order(2, 1));
    assert_ne!(all, order(2, 2));
}

/// Every operation of a slice takes as long: `us` by role and other role, of which there are `operations`.
fn even(rounds: u32, operations: u64, us: impl Fn(usize, Option<usize>) -> f64) -> Vec<Reading> {
    let mut readings = Vec::new();
    for (round, roles) in order(rounds, 1) {
        for role in &roles {
            let beside = roles.iter().find(|other| *other != role).copied();
            let mut latency = Histogram::new();
            latency.record_n((1000.0 * us(*role, beside)) as u64, operations);
            readings.push(Reading { round, role: *role, beside, latency });
        }
    }
    readings
}

fn readings(readings: Vec<Reading>) -> InterferenceReadings {
    InterferenceReadings {
        directory: "/data".to_owned(),
        disk: Some("vda".to_owned()),
        is_direct: true,
        rounds: 6,
        slice_s: 0.5,
        readings,
        ..InterferenceReadings::default()
    }
}

fn slowed(times: f64) -> Vec<Reading> {
    even(6, 2000, move |role, beside| if (role, beside) == (LOG, Some(BACKUP)) { 1200.0 * times } else { 1200.0 })
}

fn part(record: &Record) -> InterferenceInfo {
    record.parts.get().unwrap()
}

#[test]
fn the_answer_leads_with_the_worst_pair_and_the_advice_fits_what_is_there() {
    let mut with_backup = readings(slowed(6.1));
    let record = build(&RunData::default(), &with_backup);
    assert_eq!(KIND.headline(&record).verdict, "a backup copy makes commits 6.1 x slower at p99: 1,200 us -> 7,320 us");
    let advice = |record: &Record| record.advice[0].text.clone();
    assert!(!advice(&record).contains("ionice") && !advice(&record).contains("control group"), "{}", advice(&record));
    with_backup.facts = vec![Fact::new("scheduler", "mq-deadline"), Fact::new(findings::RATE_LIMIT, "io.max")];
    for (kernel, fits) in [("5.13.0-1", false), ("5.14.2", true), ("6.1.0-18-amd64", true)] {
        let run = RunData { host: vec![Fact::new("kernel", kernel)], ..RunData::default() };
        let advice = advice(&build(&run, &with_backup));
        assert!(
            advice.contains("io.max of its control group") && advice.contains("ionice") == fits,
            "{kernel}: {advice}"
        );
    }
    let quiet = build(&RunData::default(), &readings(slowed(1.0)));
    assert!(quiet.advice.is_empty());
    assert!(KIND.headline(&quiet).verdict.starts_with("none of 20 pairs"), "{}", KIND.headline(&quiet).verdict);
}

#[test]
fn what_the_worst_pair_shares_is_said_only_where_the_rates_show_it() {
    // The scan moves 4194 MB/s alone, and beside the point reads less.
    let shares = even(6, 2000, |role, beside| if (role, beside) == (READS, Some(SCAN)) { 500.0 } else { 100.0 });
    let limit = |run: &RunData| KIND.headline(&build(run, &readings(shares.clone()))).limit;
    assert_eq!(limit(&RunData::default()).what, "what the storage moves at once");
    let cap = Fact::new("io_cap_vda_read_bytes", "4294967296 by io.max of /db");
    let capped = limit(&RunData { host: vec![cap], ..RunData::default() });
    assert_eq!(capped.what, "the limit of a control group");
    assert!(capped.evidence.ends_with("at the limit of io.max of /db."), "{}", capped.evidence);
}

#[test]
fn too_few_operations_have_a_p90_by_its_name_or_no_figure_and_a_stop_names_the_missing_pairs() {
    let of = |operations| part(&build(&RunData::default(), &readings(even(6, operations, |_, _| 100.0))));
    let row = of(100).pairs.remove(0);
    assert_eq!((row.statistic.as_str(), row.cell().as_str()), ("p90", "1.0 x p90 ?"));
    assert!(row.latency_ratio_p99.reason().unwrap().contains("use a longer --time"));
    let row = of(2).pairs.remove(0);
    assert_eq!((row.verdict.as_str(), row.cell().as_str()), (NOISE, "1.0 x rate ?"));
    let few = part(&build(&RunData::default(), &readings(even(3, 2000, |_, _| 100.0))));
    assert_eq!((few.pairs[0].verdict.as_str(), few.pairs[0].cell().as_str()), (UNKNOWN, "n/a"));
    assert!(few.pairs[0].latency_ratio_p99.reason().unwrap().starts_with("only 3 rounds"));
    let mut stopped = readings(slowed(6.1));
    stopped.is_stopped = true;
    stopped
        .readings
        .retain(|reading| [LOG, READS, BACKUP].contains(&reading.role) && reading.beside != Some(CHECKPOINT));
    let record = build(&RunData::default(), &stopped);
    let why = record.run.verdict_reasons.join("");
    assert!(why.contains(" of 120 slices; missing: scan alone, checkpoint alone, "), "{why}");
    assert!(why.contains("log writer beside checkpoint"), "{why}");
    assert!(KIND.headline(&record).verdict.contains("commits 6.1 x slower"));
    let is_said =
        |part: &SectionPart| matches!(part, SectionPart::Sentence { text, .. } if text.starts_with("Missing: "));
    assert!(KIND.sections(&record).all.iter().flat_map(|section| &section.parts).any(is_said));
}

#[test]
fn a_difference_within_the_noise_or_below_a_fifth_is_no_news() {
    // Every other round is three times as slow, only beside the backup.
    let restless = |readings: Vec<Reading>| -> Vec<Reading> {
        let slow = |mut reading: Reading| {
            if (reading.role, reading.beside) == (LOG, Some(BACKUP)) && reading.round == 2 {
                reading.latency = Histogram::new();
                reading.latency.record_n(9_000_000, 2000);
            }
            reading
        };
        readings.into_iter().map(slow).collect()
    };
    let verdict = |all: Vec<Reading>| {
        let info = part(&build(&RunData::default(), &readings(all)));
        info.pairs.into_iter().find(|pair| pair.role == "log writer" && pair.beside == "backup copy").unwrap().verdict
    };
    assert_eq!(verdict(restless(slowed(1.0))), NOISE);
    assert_eq!(verdict(slowed(1.1)), CLOSE);
    assert_eq!(verdict(slowed(1.3)), SLOWER);
}

/// Rule by rule.
const CASES: &[Case] = &[
    ("IF1", |fires| build(&RunData::default(), &readings(slowed(if fires { 1.23 } else { 1.17 })))),
    ("IF2", |fires| build(&RunData::default(), &InterferenceReadings { is_direct: !fires, ..readings(slowed(1.0)) })),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}

#[test]
fn a_role_that_stands_still_is_told_by_its_rate_for_its_percentiles_miss_it() {
    // Beside a scan the log writer stands still but for a few commits in one round, which are as fast as alone.
    let mut all = slowed(1.0);
    for reading in all.iter_mut().filter(|reading| (reading.role, reading.beside) == (LOG, Some(SCAN))) {
        reading.latency = Histogram::new();
        reading.latency.record_n(1_200_000, if reading.round == 3 { 40 } else { 2 });
    }
    let record = build(&RunData::default(), &readings(all));
    let told = KIND.headline(&record).verdict;
    assert_eq!(told, "a scan cuts commits to 0.20 % of their rate: 4,000/s -> 6.95/s");
    assert_eq!(ids(&record), ["IF1"]);
    let cell = part(&record).pairs.iter().find(|pair| pair.is_by_rate).unwrap().cell();
    assert_eq!(cell, "1/503 rate");
}

fn ids(record: &Record) -> Vec<&str> {
    record.advice.iter().map(|advice| advice.id.as_str()).collect()
}
