//! The record of a clock: its kind, and how its figures follow from the readings.

use super::info::{CALLS, CALLS_NOT, ClockInfo, ClockRow, LEAVES, PairRow, StepRow, TimedRow};
use super::reading::{CLOCKS, ClockReading, Offset, RAW, Walk};
use super::{ClockReadings, findings, page};
use crate::conditions::{Conditions, NOT_EXPOSED};
use assay_measure::figures::of_layer;
use assay_measure::identity::{IdentityRule, Scope};
use assay_measure::kind::{Finding, OwnKind, TestConditions};
use assay_measure::record::{Figure, Identity, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::statistics::{half_width, mean, median, stddev};
use assay_measure::units::many;

/// Reads of a step that is timed: at its begin and at its end.
const READS: f64 = 2.0;

/// The kind of its records.
pub(super) const KIND: OwnKind<ClockInfo> = OwnKind {
    judges: findings::RULES,
    charts: |info| vec![page::chart(info)],
    conditions,
    in_words_of_tool: |info| Some(page::of_pg_test_timing(info)),
    ..OwnKind::new(|info| of_layer("cpu", info), page::render, page::headline)
};

fn conditions(info: &ClockInfo) -> TestConditions {
    vec![
        ("clock source", info.source.clone(), Finding::Tolerable),
        ("optimised build", info.is_optimised.to_string(), Finding::Forbids),
    ]
}

/// Builds the record. `run` brings the labels and the host's facts; of the measurements in it nothing is read.
pub(super) fn build(run: &RunData, readings: &ClockReadings) -> Record {
    let info = info(readings);
    let mut run = run.clone();
    run.sessions = 1;
    if readings.is_stopped {
        let rounds = many(readings.system_call_ns.len() as u64, "round");
        run.verdict = Verdict::Incomplete(format!("stopped on request after {rounds}"));
    }
    let mut record = readings.host.record(run);
    record.integrity = integrity(readings);
    KIND.complete(record, &info)
}

/// Clocks may run apart by so much of the time: NTP slews by a twentieth of that, and threads lose their CPUs between two readings.
const DRIFT: f64 = 0.01;

fn integrity(readings: &ClockReadings) -> Vec<Identity> {
    let sum = |of: &dyn Fn(&Walk) -> u64| Ok(readings.clocks.iter().map(|clock| of(&clock.walk)).sum::<u64>() as f64);
    let raw = readings.clocks.get(RAW).map_or_else(Walk::default, |clock| clock.walk.clone());
    let elapsed = raw.elapsed_ns as f64;
    vec![
        IdentityRule::exact("K1", Scope::Whole, "steps of every size = readings")
            .compare(sum(&Walk::count), sum(&|walk| walk.readings)),
        IdentityRule::within("K2", Scope::Whole, "time by MONOTONIC_RAW = time by MONOTONIC, ns", DRIFT * elapsed)
            .compare(Ok(raw.own_ns as f64), Ok(elapsed)),
    ]
}

fn known(value: Option<f64>) -> Figure {
    Figure::known(value, "not measured")
}

fn info(readings: &ClockReadings) -> ClockInfo {
    let clocks: Vec<ClockRow> =
        readings.clocks.iter().zip(CLOCKS).map(|(of, (name, _, about))| row(of, name, about)).collect();
    let monotonic = clocks.first().cloned().unwrap_or_default();
    let reading = readings.clocks.first().cloned().unwrap_or_default();
    let system_call_ns_p50 = known(median(&readings.system_call_ns));
    let ratio = monotonic.read_ns_p50.value().zip(system_call_ns_p50.value()).map(|(read, call)| read / call);
    let path = match ratio {
        Some(ratio) if ratio <= CALLS_NOT => "user space",
        Some(ratio) if ratio >= CALLS => LEAVES,
        _ => "not clear",
    };
    let pairs: Vec<PairRow> = readings.offsets.iter().map(pair).collect();
    let [clocks_apart_ns_min, clocks_apart_ns_max] = farthest(&pairs);
    let pct = |part: u64| Figure::decimal(100.0 * part as f64).per(readings.host.elapsed_ns as f64, "no time passed");
    let rounds = &reading.rounds_ns;
    let steps = steps(&reading);
    ClockInfo {
        source: readings.source.current.clone(),
        available: readings.source.available.clone(),
        path: path.to_owned(),
        read_cv_pct: Figure::decimal(100.0 * stddev(rounds)).per(mean(rounds), "not measured"),
        system_call_ns_p50,
        below_1us_pct: steps.first().map_or_else(Figure::default, |row| row.share_pct.clone()),
        backwards_count: clocks.iter().map(|row| row.backwards_count).sum(),
        clocks_apart_ns_max,
        clocks_apart_ns_min,
        timed: TIMED.map(|step| timed(step, &monotonic.read_ns_p50)).into(),
        clock_read_ns_p50: monotonic.read_ns_p50,
        read_ns_half_width: monotonic.read_ns_half_width,
        loop_ns_avg: monotonic.loop_ns_avg,
        loop_cpu_ns_avg: monotonic.loop_cpu_ns_avg,
        step_ns_min: monotonic.step_ns_min,
        conditions: Conditions::of(
            &readings.host,
            Figure::na("two threads that exchange readings had their CPUs too"),
            readings.thread.run_delay_ns.map_or_else(|| Figure::na(NOT_EXPOSED), pct),
        ),
        is_optimised: readings.is_optimised,
        loop_s: reading.walk.elapsed_ns as f64 / 1e9,
        rounds_ns: reading.rounds_ns,
        clocks,
        pairs,
        steps,
    }
}

fn row(of: &ClockReading, name: &str, about: &str) -> ClockRow {
    let walk = &of.walk;
    let each = |ns: u64| Figure::decimal(ns as f64).per(walk.count() as f64, "not measured");
    ClockRow {
        clock: name.to_owned(),
        read_ns_p50: known(median(&of.rounds_ns)),
        read_ns_half_width: known(half_width(&of.rounds_ns)),
        loop_ns_avg: each(walk.elapsed_ns),
        loop_cpu_ns_avg: each(walk.cpu_ns),
        step_ns_min: match walk.least_ns {
            u64::MAX => Figure::na("it did not move"),
            ns => Figure::Count(ns),
        },
        backwards_count: walk.backwards,
        backwards_ns_max: Figure::Count(walk.back_ns),
        about: about.to_owned(),
    }
}

fn steps(of: &ClockReading) -> Vec<StepRow> {
    let (buckets, all) = (&of.walk.buckets, of.walk.count() as f64);
    let used = buckets.iter().rposition(|count| *count > 0).map_or(0, |last| last + 1);
    let row = |(at, count): (usize, &u64)| StepRow {
        below_us: 1 << at,
        share_pct: Figure::decimal(100.0 * *count as f64).per(all, "no step"),
        steps_count: *count,
    };
    buckets.iter().take(used).enumerate().map(row).collect()
}

/// Steps of databases: what, how long it takes in us, and who times it. Decided here: round lengths, each ten times the one before, so that
/// those of a reader's own steps are easily told from them.
const TIMED: [(&str, f64, &str); 3] = [
    ("row of 1 us", 1.0, "EXPLAIN ANALYZE, each row at each node of the plan"),
    ("page of 10 us", 10.0, "track_io_timing, a page that the operating system has"),
    ("read of 100 us", 100.0, "track_io_timing, wait events: a page from an SSD"),
];

fn timed((step, us, by): (&str, f64, &str), read_ns: &Figure) -> TimedRow {
    let longer_pct = read_ns.scaled(READS / (10.0 * us));
    TimedRow { step: step.to_owned(), longer_pct, by: by.to_owned() }
}

/// What the exchanges say of two CPUs, and no more.
fn pair(of: &Offset) -> PairRow {
    let (low, high) = (of.low_ns as f64, of.high_ns as f64);
    let of_pair = |value: f64| match of.exchanges {
        0 => Figure::na("no exchange: stopped before, or threads of assay did not run on both CPUs"),
        _ if low > high => Figure::na("a clock moved while they were compared"),
        _ => Figure::decimal(value),
    };
    PairRow {
        from: of.from,
        to: of.to,
        offset_ns: of_pair(f64::midpoint(low, high)),
        bound_ns: of_pair((high - low) / 2.0),
        apart_ns_max: of_pair(most(&(low, high))),
        apart_ns_min: of_pair(least(&(low, high))),
        trip_ns_min: if of.exchanges > 0 { Figure::Count(of.trip_ns) } else { of_pair(0.0) },
        exchanges_count: of.exchanges,
    }
}

/// The smallest and the largest distance of two clocks whose offset is between both, ns.
fn least((low, high): &(f64, f64)) -> f64 {
    low.max(-high).max(0.0)
}

fn most((low, high): &(f64, f64)) -> f64 {
    high.max(-low)
}

/// How far some two CPUs are apart at least, and any two at most. Where each was compared with the first alone, the offset of two others
/// is the difference of theirs to it.
fn farthest(pairs: &[PairRow]) -> [Figure; 2] {
    let bounds = |row: &PairRow| row.offset_ns.value().zip(row.bound_ns.value()).map(|(at, by)| (at - by, at + by));
    let mut known: Vec<(f64, f64)> = pairs.iter().filter_map(bounds).collect();
    if pairs.iter().all(|row| row.from == pairs[0].from) {
        let first = known.clone();
        for (at, one) in first.iter().enumerate() {
            known.extend(first[..at].iter().map(|other| (one.0 - other.1, one.1 - other.0)));
        }
    }
    let unknown = pairs.iter().map(|row| &row.apart_ns_max).find(|ns| ns.value().is_none()).cloned();
    let farthest = |of: fn(&(f64, f64)) -> f64| known.iter().map(of).reduce(f64::max).map(Figure::decimal);
    [farthest(least).or_else(|| unknown.clone()), unknown.or_else(|| farthest(most))]
        .map(|ns| ns.unwrap_or_else(|| Figure::na("this process may use one CPU")))
}
