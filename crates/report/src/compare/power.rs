//! How often a comparison gives a false alarm, and how often it finds a true slow-down of 5 %, on simulated pairs whose
//! noise is resampled in blocks from the seconds of real runs (`testdata/compare/real_rates.txt`), so that its
//! autocorrelation stays. Pairs of `testdata/compare/real_runs.txt` are of different real runs, each with its own
//! level, so they include the variation of host and disk from run to run.

use super::tests::{set_pace, set_seconds};
use super::*;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::statistics::mean;

const REAL: &str = include_str!("../../../../testdata/compare/real_rates.txt");
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

const REAL_RUNS: &str = include_str!("../../../../testdata/compare/real_runs.txt");

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
