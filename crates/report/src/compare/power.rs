//! How often a comparison cries wolf, and how often it finds a true slow-down of 5 %, on simulated pairs whose noise is
//! resampled in blocks from the seconds of real runs (`fixture/real_rates.txt`), so that its autocorrelation stays.

use super::tests::{set_pace, set_seconds};
use super::*;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::sample::mean;

const REAL: &str = include_str!("../../../awr/src/fixture/real_rates.txt");
/// Pairs of each trial.
const PAIRS: u64 = 100;
/// Seconds of real time that stay together.
const BLOCK: usize = 10;

/// A real run's rates over their mean.
fn real(name: &str) -> Vec<f64> {
    let line = REAL
        .lines()
        .find_map(|line| line.strip_prefix(name))
        .expect("a frozen run");
    let rates: Vec<f64> = line
        .split_whitespace()
        .map(|rate| rate.parse().expect("a rate"))
        .collect();
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
    let mut record = assay_awr::record::build(&assay_awr::fixture::run());
    record.instance.stats.clear();
    record.instance.efficiency.clear();
    record.instance.io_profile.clear();
    record.os.cpu_pct.clear();
    record.driver.ops.clear();
    record.integrity.clear();
    record
        .instance
        .events
        .retain(|event| event.name == "db file sequential read");
    crate::kinds::figure(&mut record);
    record
}

fn group(records: &[Record]) -> Group<'_> {
    Group {
        name: String::new(),
        records: records.iter().collect(),
    }
}

/// What became of a trial's pairs.
#[derive(Debug, Default)]
struct Trial {
    false_alarms: u32,
    found: u32,
}

impl Trial {
    /// Draws `side` twice for each pair; the second also at 95 % of its pace.
    fn run(seed: u64, mut side: impl FnMut(&mut Stream) -> Vec<Record>) -> Self {
        let mut trial = Self::default();
        for pair in 0..PAIRS {
            let mut draw = Stream::new(seed, pair, Purpose::Keys);
            let (a, b) = (side(&mut draw), side(&mut draw));
            let mut slow = b.clone();
            slow.iter_mut().for_each(|record| set_pace(record, 0.95));
            let verdicts = |to: &[Record]| -> Vec<(String, Verdict)> {
                let comparison = of(&[group(&a), group(to)], &Options::default());
                assert!(!comparison.pairs[0].forbids_faster);
                let rows = comparison.rows.iter().filter(|row| row.is_primary);
                rows.map(|row| {
                    let against = &row.against[0];
                    let seen = against.detectable_95_pct.value();
                    assert!(
                        against.method == "values" || seen.is_some_and(|pct| pct > 0.0),
                        "{row:?}"
                    );
                    (row.key.clone(), against.verdict)
                })
                .collect()
            };
            trial.false_alarms +=
                u32::from(verdicts(&b).iter().any(|(_, verdict)| verdict.is_shown()));
            let worse = |(key, verdict): &(String, Verdict)| {
                key == "ops_per_s" && *verdict == Verdict::Worse
            };
            trial.found += u32::from(verdicts(&slow).iter().any(worse));
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
    crate::kinds::figure(&mut base);
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
        assert!(
            single.false_alarms <= 5 && single.found < 95,
            "{noise}: {single:?}"
        );
    }
    let many = repeats("crowded", 12, 600, 3);
    assert!(many.false_alarms <= 5 && many.found >= 95, "{many:?}");
}
