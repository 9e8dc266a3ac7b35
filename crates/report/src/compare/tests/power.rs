//! How often a comparison gives a false alarm, and how often it finds a true slow-down of 5 %, on simulated pairs whose
//! noise is resampled in blocks from the seconds of real runs (`testdata/compare/real_rates.txt`), so that its
//! autocorrelation stays. Pairs of `testdata/compare/real_runs.txt` are of different real runs, each with its own
//! level, so they include the variation of host and disk from run to run.

use super::*;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::record::OpRow;
use assay_measure::statistics::mean;

const REAL: &str = include_str!("../../../../../testdata/compare/real_rates.txt");
/// Pairs of each trial.
const PAIRS: u64 = 100;
/// Seconds of real time that stay together.
const BLOCK: usize = 10;

/// A real run's rates over their mean.
fn real(name: &str) -> Vec<f64> {
    let line = REAL.lines().find_map(|line| line.strip_prefix(name)).expect("a frozen run");
    let rates: Vec<f64> = line.split_whitespace().map(|rate| rate.parse().expect("a rate")).collect();
    let middle = mean(&rates);
    rates.iter().map(|rate| rate / middle).collect()
}

fn resampled(from: &[f64], seconds: usize, draw: &mut Stream) -> Vec<f64> {
    let mut out = Vec::new();
    while out.len() < seconds {
        let at = draw.below((from.len() - BLOCK + 1) as u64) as usize;
        out.extend(&from[at..at + BLOCK]);
    }
    out.truncate(seconds);
    out
}

/// A small record with the figures a comparison is judged by and nothing else, so that thousands are quick.
fn base() -> Record {
    let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
    record.instance.stats.clear();
    record.instance.efficiency.clear();
    record.instance.io_profile.clear();
    record.os.cpu_pct.clear();
    record.driver.ops.clear();
    record.integrity.clear();
    record.instance.events.retain(|event| event.name == "db file sequential read");
    crate::kinds::attach_metrics(&mut record);
    record
}

fn group(records: &[Record]) -> RunGroup<'_> {
    RunGroup { name: String::new(), records: records.iter().collect() }
}

/// What became of a trial's pairs.
#[derive(Debug, Default)]
struct Trial {
    false_alarms: u32,
    found: u32,
    /// Slower pairs whose verdict was "not measurable now".
    not_measurable: u32,
}

impl Trial {
    /// Draws `side` twice for each pair; the second also at 95 % of its pace.
    fn run(seed: u64, side: impl FnMut(&mut Stream) -> Vec<Record>) -> Self {
        Self::of_pairs(PAIRS, 0.95, seed, side)
    }

    /// The same with so many pairs, the slower ones at this pace.
    fn of_pairs(pairs: u64, pace: f64, seed: u64, mut side: impl FnMut(&mut Stream) -> Vec<Record>) -> Self {
        let mut trial = Self::default();
        for pair in 0..pairs {
            let mut draw = Stream::new(seed, pair, Purpose::Keys);
            let (a, b) = (side(&mut draw), side(&mut draw));
            let mut slow = b.clone();
            slow.iter_mut().for_each(|record| set_pace(record, pace));
            let verdicts = |to: &[Record]| -> Vec<(String, DifferenceVerdict)> {
                let comparison = of(&[group(&a), group(to)], &Options::default());
                assert!(!comparison.pairs[0].forbids_faster);
                let rows = comparison.rows.iter().filter(|row| row.is_primary);
                rows.map(|row| {
                    let against = &row.against[0];
                    let seen = against.detectable_95_pct.value();
                    assert!(against.method == "values" || seen.is_some_and(|pct| pct > 0.0), "{row:?}");
                    (row.key.clone(), against.verdict)
                })
                .collect()
            };
            trial.false_alarms += u32::from(verdicts(&b).iter().any(|(_, verdict)| verdict.is_shown()));
            let of_slow = verdicts(&slow);
            let is = |wanted: DifferenceVerdict| {
                let mut found = of_slow.iter();
                u32::from(found.any(|(key, verdict)| key == "ops_per_s" && *verdict == wanted))
            };
            trial.found += is(DifferenceVerdict::Worse);
            trial.not_measurable += is(DifferenceVerdict::NotMeasurable);
        }
        trial
    }
}

fn single_runs(noise: &str, seconds: usize, seed: u64) -> Trial {
    let (real, base) = (real(noise), base());
    Trial::run(seed, |draw| {
        let mut record = base.clone();
        set_seconds(&mut record, &resampled(&real, seconds, draw));
        vec![record]
    })
}

fn repeats(noise: &str, runs: usize, seconds: usize, seed: u64) -> Trial {
    let (real, mut base) = (real(noise), base());
    base.series = Default::default();
    crate::kinds::attach_metrics(&mut base);
    Trial::run(seed, |draw| {
        let one = |_| {
            let mut record = base.clone();
            set_pace(&mut record, mean(&resampled(&real, seconds, draw)));
            record
        };
        (0..runs).map(one).collect()
    })
}

#[test]
fn single_quiet_runs_of_ten_minutes_find_five_percent_and_rarely_cry_wolf() {
    for seed in [1, 2] {
        let trial = single_runs("quiet", 600, seed);
        assert!(trial.false_alarms <= 5 && trial.found >= 95, "{trial:?}");
    }
}

#[test]
fn five_quiet_repeats_of_two_minutes_find_five_percent_and_rarely_cry_wolf() {
    for seed in [1, 2] {
        let trial = repeats("quiet", 5, 120, seed);
        assert!(trial.false_alarms <= 5 && trial.found >= 95, "{trial:?}");
    }
}

/// On a host that others load, the same lengths show nothing, and the verdicts must say so instead of guessing.
#[test]
fn noise_of_a_crowded_host_raises_no_false_alarm_and_needs_more_runs() {
    for noise in ["crowded", "bursts"] {
        let single = single_runs(noise, 600, 3);
        assert!(single.false_alarms <= 5 && single.found < 95, "{noise}: {single:?}");
    }
    let many = repeats("crowded", 12, 600, 3);
    assert!(many.false_alarms <= 5 && many.found >= 95, "{many:?}");
}

const REAL_RUNS: &str = include_str!("../../../../../testdata/compare/real_runs.txt");

/// A real run: whether others were at work, and a record with its seconds and what others did.
fn real_runs(base: &Record) -> Vec<(bool, Record, Vec<f64>)> {
    let lines = || REAL_RUNS.lines().filter(|line| !line.starts_with('#'));
    let rates = |line: &str| -> Vec<f64> {
        let rates = line.split(' ').skip(3);
        rates.map(|rate| rate.parse().expect("a rate")).collect()
    };
    let quiet: Vec<f64> = lines().filter(|line| line.starts_with("quiet")).flat_map(rates).collect();
    let level = mean(&quiet);
    let run = |line: &str| {
        let shares: Vec<f64> = line.split(' ').skip(1).take(2).map(|pct| pct.parse().expect("percent")).collect();
        let mut record = base.clone();
        let elapsed = record.interval.elapsed_s.value().expect("a window");
        record.os.cpus_count = Figure::Count(2);
        record.os.cpu_pct.insert("busy".to_owned(), Figure::decimal(shares[0]));
        record.os.process.cpu_s = Figure::decimal(0.0);
        record.driver.threads_count = 1;
        record.driver.thread_run_delay_s = Figure::decimal(elapsed * shares[1] / 100.0);
        let shape = rates(line).iter().map(|rate| rate / level).collect();
        (line.starts_with("busy"), record, shape)
    };
    lines().map(run).collect()
}

/// Pairs of different real runs of one kind, or of both. Each side is its run from another second on: blocks of a few
/// seconds would lose how a disk wanders in a minute, which is most of what differs from run to run.
fn real_pairs(kinds: &[bool], pace: f64, seed: u64) -> Trial {
    let all = real_runs(&base());
    let runs: Vec<_> = all.into_iter().filter(|(busy, ..)| kinds.contains(busy)).collect();
    let mut last = runs.len();
    Trial::of_pairs(200, pace, seed, |draw| {
        let mut at = draw.below(runs.len() as u64) as usize;
        // The other side is another run.
        if at == last {
            at = (at + 1) % runs.len();
        }
        last = at;
        let (_, record, shape) = &runs[at];
        let (mut record, mut shape) = (record.clone(), shape.clone());
        let from = draw.below(shape.len() as u64) as usize;
        shape.rotate_left(from);
        set_seconds(&mut record, &shape);
        vec![record]
    })
}

/// 200 pairs of real runs each: quiet, busy, and one of each. What is not found is said to be not measurable now.
#[test]
fn real_runs_on_busy_and_quiet_hosts_are_rarely_called_different_and_ten_percent_is_found_or_not_measurable() {
    for kinds in [&[false][..], &[true], &[false, true]] {
        let trial = real_pairs(kinds, 0.9, 5);
        assert!(trial.false_alarms <= 10, "{kinds:?}: {trial:?}");
        assert!(trial.found + trial.not_measurable >= 190, "{kinds:?}: {trial:?}");
    }
}

/// Where the interval allows it, ten percent is found: long runs of a quiet host.
#[test]
fn ten_percent_is_found_where_the_interval_allows_it() {
    let real = real("quiet");
    let base = base();
    let trial = Trial::of_pairs(200, 0.9, 7, |draw| {
        let mut record = base.clone();
        set_seconds(&mut record, &resampled(&real, 600, draw));
        vec![record]
    });
    assert!(trial.false_alarms <= 10 && trial.found >= 190, "{trial:?}");
}

/// The seconds of a run under a cap at this level: a fifth of a rate's scatter is left, about 1 % of a quiet one.
fn capped(level: f64, from: &[f64]) -> Vec<f64> {
    from.iter().map(|rate| level * (1.0 + 0.2 * (rate - 1.0))).collect()
}

/// What is said of the rate of pairs of single runs, of which the second is under a cap that takes three tenths.
fn capped_pairs(noise: &str, seconds: usize, is_busy: bool) -> Vec<(DifferenceVerdict, String)> {
    let (real, base) = (real(noise), base());
    let pair = |seed: u64| {
        let mut draw = Stream::new(11, seed, Purpose::Keys);
        let (mut a, mut b) = (base.clone(), base.clone());
        set_seconds(&mut a, &resampled(&real, seconds, &mut draw));
        set_seconds(&mut b, &capped(0.7, &resampled(&real, seconds, &mut draw)));
        if is_busy {
            // Others took half of what two CPUs have.
            let elapsed = b.interval.elapsed_s.value().expect("a window");
            b.os.cpus_count = Figure::Count(2);
            b.os.process.cpu_s = Figure::decimal(0.6 * elapsed);
            b.os.cpu_pct.insert("busy".to_owned(), Figure::decimal(80.0));
        }
        let comparison = of(&[group(&[a]), group(&[b])], &Options::default());
        let ops = &comparison.row("ops_per_s").expect("its rate").against[0];
        assert!(ops.low_ratio.value().is_some(), "{ops:?}");
        (ops.verdict, ops.sentence.clone())
    };
    (0..60).map(pair).collect()
}

#[test]
fn three_tenths_less_under_a_cap_is_found_in_a_minute_of_a_quiet_host_and_told_with_its_interval_on_a_busy_one() {
    for (noise, seconds) in [("quiet", 60), ("quiet", 300), ("crowded", 300), ("bursts", 300)] {
        let quiet = capped_pairs(noise, seconds, false);
        let found = quiet.iter().filter(|(verdict, _)| *verdict == DifferenceVerdict::Worse).count();
        assert!(found >= 54, "{noise}, {seconds} s: {found} of 60; {:?}", quiet[0]);
        let busy = capped_pairs(noise, seconds, true);
        let is_told = |text: &str| {
            text.starts_with("lower, 95 % interval 0.") && text.ends_with(" x; other work may have part in it")
        };
        let told = busy.iter().filter(|(_, text)| is_told(text)).count();
        assert!(told >= 54, "{noise}, {seconds} s: {told} of 60; {:?}", busy[0]);
    }
    // Ten seconds find it less often, and never say that there is none.
    let short = capped_pairs("quiet", 10, false);
    assert!(short.iter().all(|(verdict, _)| *verdict != DifferenceVerdict::NoDifference), "{short:?}");
}

/// A run of so many operations, a tenth of which are updates as they happen to be drawn: only those change blocks.
fn drawn(base: &Record, ops: u64, draw: &mut Stream) -> Record {
    let updates = (0..ops).filter(|_| draw.below(10) == 0).count() as u64;
    // Of 64 blocks 60 are read, give or take.
    let reads: u64 = (0..ops).map(|_| 64 - draw.below(9)).sum();
    let mut record = base.clone();
    record.interval.ops_count = Figure::Count(ops);
    record.driver.ops = ["select", "update"].map(|kind| OpRow { kind: kind.to_owned(), ..OpRow::default() }).into();
    (record.driver.ops[0].count, record.driver.ops[1].count) = (ops - updates, updates);
    let per_op = |of_all: u64| Figure::decimal(of_all as f64 / ops as f64);
    for row in &mut record.instance.load_profile {
        match row.name.as_str() {
            "Block changes" => row.per_op = per_op(131 * updates),
            "Redo size (bytes)" => row.per_op = per_op(51_700 * updates),
            "Logical read (blocks)" => row.per_op = per_op(66 * ops + 69 * updates),
            "Physical read (blocks)" => row.per_op = per_op(reads),
            _ => {}
        }
    }
    record
}

/// Published pairs had 798 and 1,265 operations; six of sixty of one test had been called different tests.
#[test]
fn of_sixty_identical_pairs_none_is_called_two_different_tests() {
    let base = base();
    for ops in [300, 800] {
        let forbidden = (0..60).filter(|seed| {
            let mut draw = Stream::new(13, *seed, Purpose::Keys);
            let (a, b) = (drawn(&base, ops, &mut draw), drawn(&base, ops * 8 / 5, &mut draw));
            of(&[group(&[a]), group(&[b])], &Options::default()).pairs[0].forbids_faster
        });
        assert_eq!(forbidden.count(), 0, "{ops} operations");
    }
}
