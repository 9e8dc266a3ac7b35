//! Rates that hosts measured at the same time: each host says its own, and what all did is their sum.

use super::Ran;
use super::info::{SumRow, TestRow};
use crate::finished::Finished;
use crate::plan::{COMMITS, DEPTHS, READS, STREAMS, WRITES};
use assay_measure::clock::Ns;
use assay_measure::record::Figure;
use assay_measure::units::fixed;
use serde::{Deserialize, Serialize};

/// The part of the time from the first begin to the last end that all hosts must share, %. Decided here: each rate is then of nearly
/// the same minutes.
const TOGETHER_PCT: f64 = 90.0;

const S: f64 = 1e9;
const MS: f64 = 1e6;

/// A rate that adds up.
struct Summed {
    test: &'static str,
    what: String,
    unit: &'static str,
    /// Of the metric of the sum, and its scope.
    key: &'static str,
    of: String,
    /// In the record of the test: scope, rate, 99th percentile.
    scope: String,
    rate: &'static str,
    us_p99: &'static str,
}

fn summed() -> Vec<Summed> {
    let of = |test, what: &str, unit, key, [scope, rate, us_p99]: [&'static str; 3]| Summed {
        test,
        what: what.to_owned(),
        unit,
        key,
        of: String::new(),
        scope: scope.to_owned(),
        rate,
        us_p99,
    };
    let reads = ["", "read_ios_per_s", "read_lat_us_p99"];
    let at_depth = |depth: u32| Summed {
        of: format!("depth {depth}"),
        scope: format!("depth {depth}"),
        ..of(READS, &format!("reads of 8 KiB, depth {depth} on each"), "1/s", "sum_reads_per_s", reads)
    };
    let commits = ["group", "many_commits_per_s", "many_commit_us_p99"];
    let scan = ["read", "read_mib_per_s", "read_lat_us_p99"];
    let fill = ["write", "write_mib_per_s", "write_lat_us_p99"];
    let writes = ["random", "write_ios_per_s", "write_lat_us_p99"];
    let others = [
        of(COMMITS, "commits of many sessions on each", "1/s", "sum_commits_per_s", commits),
        of(STREAMS, "sequential reads of 1 MiB", "MiB/s", "sum_read_mib_per_s", scan),
        of(STREAMS, "sequential writes of 1 MiB", "MiB/s", "sum_write_mib_per_s", fill),
        of(WRITES, "random writes of 16 KiB", "1/s", "sum_writes_per_s", writes),
    ];
    DEPTHS.into_iter().map(at_depth).chain(others).collect()
}

/// What one host says of a rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Rate {
    per_s: Figure,
    us_p99: Figure,
}

/// The rates of this host, in their order.
pub(super) fn rates(finished: &[Finished]) -> Vec<Rate> {
    let none = || Figure::na("its test has no result");
    let of = |summed: &Summed| {
        let test = Finished::of(finished, summed.test);
        let value = |key: &str| test.map_or_else(none, |test| test.value(key, &summed.scope));
        Rate { per_s: value(summed.rate), us_p99: value(summed.us_p99) }
    };
    summed().iter().map(of).collect()
}

/// A host as far as this goes: when its gate was by the controller's clock, what it ran after that, and its rates.
pub(super) struct Timed<'a> {
    pub(super) gate_ns: Option<Ns>,
    pub(super) ran: &'a [Ran],
    pub(super) rates: &'a [Rate],
}

impl Timed<'_> {
    /// When it made a test, by the controller's clock.
    fn of(&self, test: &str) -> Option<(Ns, Ns)> {
        let ran = self.ran.iter().find(|ran| ran.test == test)?;
        let gate_ns = self.gate_ns?;
        Some((gate_ns + ran.begin_ns, gate_ns + ran.end_ns))
    }

    fn rate(&self, at: usize) -> Option<&Rate> {
        self.rates.get(at).filter(|rate| rate.per_s.value().is_some())
    }
}

/// The tests that a host ran, in their order, with how well they coincide; `note` says what is missing of one.
pub(super) fn tests(hosts: &[Timed<'_>], note: impl Fn(&str) -> String) -> Vec<TestRow> {
    let start_ns = hosts.iter().filter_map(|host| host.gate_ns).min().unwrap_or(0);
    let mut names: Vec<&str> = Vec::new();
    for ran in hosts.iter().flat_map(|host| host.ran) {
        if !names.contains(&ran.test.as_str()) {
            names.push(&ran.test);
        }
    }
    let row = |test: &str| {
        let times: Vec<(Ns, Ns)> = hosts.iter().filter_map(|host| host.of(test)).collect();
        let of =
            |of: fn(&(Ns, Ns)) -> Ns, fold: fn(Ns, Ns) -> Ns| times.iter().map(of).reduce(fold).unwrap_or(start_ns);
        let [first, last] = [Ns::min, Ns::max].map(|fold| of(|time| time.0, fold));
        let [ended, all_ended] = [Ns::min, Ns::max].map(|fold| of(|time| time.1, fold));
        let known = |value: f64| {
            let figure = (!times.is_empty()).then(|| Figure::decimal(value));
            Figure::known(figure, "no host says when")
        };
        let (shared, whole) = (ended.saturating_sub(last) as f64, all_ended.saturating_sub(first) as f64);
        TestRow {
            test: test.to_owned(),
            hosts_count: times.len() as u64,
            begin_s: known((first.saturating_sub(start_ns) as f64 / MS).floor() / 1e3),
            begin_spread_ms: known((last - first) as f64 / MS),
            together_s: known(shared / S),
            together_pct: known(100.0 * shared).per(whole, "it took no time"),
            end_s: known((all_ended.saturating_sub(start_ns) as f64 / MS).floor() / 1e3),
            note: note(test),
        }
    };
    names.into_iter().map(row).collect()
}

/// The rates that were measured, each as the sum of those hosts that have it.
pub(super) fn rows(hosts: &[Timed<'_>], tests: &[TestRow]) -> Vec<SumRow> {
    let row = |(at, summed): (usize, Summed)| {
        let test = tests.iter().find(|row| row.test == summed.test)?;
        let rates: Vec<&Rate> = hosts.iter().filter_map(|host| host.rate(at)).collect();
        let over = |of: fn(&Rate) -> &Figure, fold: fn(f64, f64) -> f64| {
            let found = rates.iter().filter_map(|rate| of(rate).value()).reduce(fold);
            Figure::known(found.map(Figure::decimal), "no host has it")
        };
        let sum = match test.together_pct.value() {
            Some(pct) if pct >= TOGETHER_PCT => over(|rate| &rate.per_s, |a, b| a + b),
            Some(pct) => Figure::na(&format!(
                "not at the same time: the hosts shared {} % of the time that they took",
                fixed(pct, 0)
            )),
            None => test.together_pct.clone(),
        };
        Some(SumRow {
            what: summed.what,
            sum,
            unit: summed.unit.to_owned(),
            hosts_count: rates.len() as u64,
            least: over(|rate| &rate.per_s, f64::min),
            most: over(|rate| &rate.per_s, f64::max),
            slowest_us_p99: over(|rate| &rate.us_p99, f64::max),
            test: summed.test.to_owned(),
            key: summed.key.to_owned(),
            scope: summed.of,
        })
    };
    summed().into_iter().enumerate().filter_map(row).collect()
}
