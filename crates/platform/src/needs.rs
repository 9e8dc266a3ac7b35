//! The table of what a database needs: each need one entry, its figure taken from the test that measures it.

use crate::finished::Finished;
use crate::goals::{Goals, Limits};
use crate::info::NeedRow;
use crate::plan::{CLOCK, COLD, COMMITS, CPU, DURABILITY, MEMORY, READS, ROUND_TRIPS, STREAMS, TOGETHER, WRITES};
use crate::{class, facts};
use assay_measure::record::metric::{Better, Group, plain};
use assay_measure::record::{Figure, Metric};
use assay_measure::units::six;
use std::collections::BTreeMap;

/// A need.
pub(crate) struct Need {
    /// As a file of goals and the metric's scope name it; ends in the unit.
    pub(crate) name: &'static str,
    unit: &'static str,
    test: &'static str,
    value: Value,
    pub(crate) is_higher_better: bool,
    limits: Limits,
    source: &'static str,
}

enum Value {
    /// A metric of the test: its key and its scope.
    Metric(&'static str, &'static str),
    /// Most that keeps a latency.
    Class(fn(&[Finished]) -> Figure),
}

const HERE: &str = "decided here";

const fn need(
    name: &'static str,
    unit: &'static str,
    test: &'static str,
    value: Value,
    limits: [f64; 2],
    source: &'static str,
) -> Need {
    let [warn, fail] = limits;
    Need { name, unit, test, value, is_higher_better: warn > fail, limits: Limits { warn, fail }, source }
}

pub(crate) const NEEDS: &[Need] = &[
    need(
        "commit_us_p50",
        "us",
        COMMITS,
        Value::Metric("durable_write_us_p50", ""),
        [1000.0, 10_000.0],
        "decided here: a device with a safe cache needs less than 1 ms, a disk that rotates 10 ms",
    ),
    need(
        "commit_us_p99",
        "us",
        COMMITS,
        Value::Metric("many_commit_us_p99", "group"),
        [10_000.0, 100_000.0],
        "etcd's documentation: 99 % of the flushes in less than 10 ms",
    ),
    need("commits_per_s", "1/s", COMMITS, Value::Class(class::commits), [1000.0, 100.0], HERE),
    need(
        "page_images_pct",
        "%",
        DURABILITY,
        Value::Metric("page_image_shared_cost_pct", ""),
        [75.0, 95.0],
        "decided here: an image is 33 times a small log record of 256 bytes",
    ),
    need(
        "read_us_p99",
        "us",
        READS,
        Value::Metric("read_lat_us_p99", "depth 1"),
        [1000.0, 10_000.0],
        "Aerospike's certification tool ACT: less than 5 % above 1 ms",
    ),
    need("reads_per_s", "1/s", READS, Value::Class(|finished| class::reads(finished).per_s), [5000.0, 500.0], HERE),
    need("cold_pct", "%", COLD, Value::Metric("cold_pct", ""), [1.0, 10.0], HERE),
    need("read_mib_per_s", "MiB/s", STREAMS, Value::Metric("read_mib_per_s", "read"), [200.0, 50.0], HERE),
    need("write_mib_per_s", "MiB/s", STREAMS, Value::Metric("write_mib_per_s", "write"), [100.0, 25.0], HERE),
    need("writes_per_s", "1/s", WRITES, Value::Metric("writes_per_s", ""), [2000.0, 200.0], HERE),
    need("commit_slowdown_ratio", "x", TOGETHER, Value::Metric("commit_slowdown_ratio", ""), [3.0, 30.0], HERE),
    need("read_slowdown_ratio", "x", TOGETHER, Value::Metric("read_slowdown_ratio", ""), [3.0, 30.0], HERE),
    need(
        "clock_read_ns",
        "ns",
        CLOCK,
        Value::Metric("clock_read_ns_p50", ""),
        [100.0, 1000.0],
        "manual of pg_test_timing: less than 100 ns",
    ),
    need("memory_ns", "ns", MEMORY, Value::Metric("latency_huge_ns_p50", ""), [150.0, 400.0], HERE),
    need("cpu_mhz", "MHz", CPU, Value::Metric("effective_mhz", ""), [2000.0, 1000.0], HERE),
    need("steal_pct", "%", CPU, Value::Metric("steal_pct", ""), [2.0, 10.0], HERE),
    need("round_trip_us_p50", "us", ROUND_TRIPS, Value::Metric("rtt_us_p50", ""), [1000.0, 10_000.0], HERE),
];

impl NeedRow {
    /// What is beyond which limit; or why no load kept the latency.
    pub(crate) fn told(&self) -> String {
        let limit = if self.verdict == FAIL { &self.fail } else { &self.warn };
        match (self.need_value.value(), limit.value()) {
            (Some(value), Some(limit)) => {
                let sense = if self.is_higher_better { "less" } else { "more" };
                format!("{} is {} {}, {sense} than {}", self.need, six(value.round()), self.unit, six(limit))
            }
            _ => format!("{}: {}", self.need, self.need_value.reason().unwrap_or("not known")),
        }
    }
}

/// The needs' metrics, each under its own name, so that comparisons, trends and gates name it and know which way is better.
pub(crate) fn metrics(rows: &[NeedRow]) -> Vec<Metric> {
    let of = |row: &NeedRow| named(&row.need, &row.unit, row.is_higher_better, &row.need_value);
    rows.iter().map(of).collect()
}

/// A primary metric that is called by its key.
pub(crate) fn named(key: &str, unit: &str, is_higher_better: bool, value: &Figure) -> Metric {
    let better = if is_higher_better { Better::Higher } else { Better::Lower };
    plain(Group::Primary, key, key, unit, better, value.clone())
}

/// Words of a verdict beside those of facts.
pub(crate) const WARN: &str = "warn";
pub(crate) const FAIL: &str = "fail";

/// Every need of which a test was planned.
pub(crate) fn rows(finished: &[Finished], goals: &Goals, planned: &dyn Fn(&str) -> bool) -> Vec<NeedRow> {
    NEEDS.iter().filter(|need| planned(need.test)).map(|need| row(need, finished, goals)).collect()
}

fn row(need: &Need, finished: &[Finished], goals: &Goals) -> NeedRow {
    let value = match (&need.value, Finished::of(finished, need.test)) {
        (_, None) => Figure::na("its test has no result"),
        (Value::Metric(key, scope), Some(test)) => test.value(key, scope),
        (Value::Class(of), _) => of(finished),
    };
    let given = goals.of(need.name);
    let limits = given.unwrap_or(need.limits);
    NeedRow {
        need: need.name.to_owned(),
        verdict: verdict(need, limits, &value).to_owned(),
        need_value: value,
        unit: need.unit.to_owned(),
        warn: Figure::decimal(limits.warn),
        fail: Figure::decimal(limits.fail),
        test: need.test.to_owned(),
        source: if given.is_some() { "the file of goals" } else { need.source }.to_owned(),
        is_higher_better: need.is_higher_better,
    }
}

fn verdict(need: &Need, limits: Limits, value: &Figure) -> &'static str {
    let is_beyond = |value: f64, limit: f64| if need.is_higher_better { value < limit } else { value > limit };
    match value.value() {
        // No load keeps the latency, which was measured: that is worse than any rate.
        None if matches!(need.value, Value::Class(_))
            && value.reason().is_some_and(|why| why.contains("the lowest is")) =>
        {
            FAIL
        }
        None => facts::UNKNOWN,
        Some(value) if is_beyond(value, limits.fail) => FAIL,
        Some(value) if is_beyond(value, limits.warn) => WARN,
        Some(_) => facts::GOOD,
    }
}

/// Reads a file of goals: a table for each need, with `warn` and `fail`.
///
/// # Errors
/// What the file says wrong and where, in one sentence.
pub fn goals(text: &str) -> Result<Goals, String> {
    let given: BTreeMap<String, Limits> = toml::from_str(text).map_err(|error| error.to_string())?;
    for (name, limits) in &given {
        let Some(need) = NEEDS.iter().find(|need| need.name == name) else {
            let known: Vec<&str> = NEEDS.iter().map(|need| need.name).collect();
            return Err(format!("there is no need \"{name}\"; there are {}", known.join(", ")));
        };
        let in_order = if need.is_higher_better { limits.warn >= limits.fail } else { limits.warn <= limits.fail };
        if !in_order || !limits.warn.is_finite() || !limits.fail.is_finite() {
            let sense = if need.is_higher_better { "less" } else { "more" };
            return Err(format!(
                "{name}: warn {} and fail {}: a failure must be {sense} than a warning",
                six(limits.warn),
                six(limits.fail)
            ));
        }
    }
    Ok(Goals::given(given))
}

#[cfg(test)]
mod tests {
    use super::{Limits, goals};

    #[test]
    fn a_file_of_goals_names_needs_and_keeps_their_order() {
        let read = goals("[commit_us_p50]\nwarn = 300\nfail = 2000.5\n").expect("good");
        assert_eq!(read.of("commit_us_p50"), Some(Limits { warn: 300.0, fail: 2000.5 }));
        let error = |text: &str| goals(text).expect_err(text);
        assert!(error("[commits]\nwarn = 1\nfail = 2\n").contains("there is no need \"commits\""));
        assert!(error("[commit_us_p50]\nwarn = 3\nfail = 2\n").contains("must be more"));
        assert!(error("[commit_us_p50]\nwarn = 3\n").contains("fail"));
    }
}
