//! Per-second figures and how steady they were.

use super::deltas::{Deltas, Span, counter, micros, seconds};
use super::events::percentile_us;
use super::host::{cpu_delta_ns, cpu_total_ns};
use assay_measure::histogram::Histogram;
use assay_measure::record::{Figure, Series, Steadiness};
use assay_measure::snapshot::{Actor, Snapshot};
use assay_measure::stats::{self, Stat};
use std::collections::BTreeMap;

const MIB: f64 = 1_048_576.0;

/// Counters shown per second: metric name, statistic, factor from the stored unit.
const RATES: &[(&str, Stat, f64)] = &[
    (
        "logical_reads_blocks_per_s",
        stats::SESSION_LOGICAL_READS,
        1.0,
    ),
    (
        "read_io_requests_count_per_s",
        stats::PHYSICAL_READ_REQUESTS,
        1.0,
    ),
    (
        "write_io_requests_count_per_s",
        stats::PHYSICAL_WRITE_REQUESTS,
        1.0,
    ),
    ("redo_mib_per_s", stats::REDO_SIZE, 1.0 / MIB),
    ("commits_count_per_s", stats::USER_COMMITS, 1.0),
];

/// The snapshots to difference, in order, from the gate on.
fn marks<'a>(deltas: &Deltas<'a>) -> Vec<&'a Snapshot> {
    let data = deltas.data;
    let mut marks = vec![&data.gate];
    for snapshot in &data.series {
        if marks.last().is_some_and(|last| snapshot.at_ns > last.at_ns) {
            marks.push(snapshot);
        }
    }
    marks
}

/// The usual step in whole seconds: a long run keeps only every second, fourth ... second.
fn step(marks: &[&Snapshot]) -> Figure {
    let mut steps: Vec<u64> = marks
        .windows(2)
        .map(|pair| pair[1].at_ns - pair[0].at_ns)
        .collect();
    steps.sort_unstable();
    match steps.get(steps.len() / 2) {
        Some(middle) => Figure::decimal(seconds(*middle).round().max(1.0)),
        None => Figure::na("no series"),
    }
}

pub(super) fn series(deltas: &Deltas<'_>) -> Series {
    let marks = marks(deltas);
    let (begin, end) = (deltas.data.begin.at_ns, deltas.data.end.at_ns);
    let mut series = Series {
        step_s: step(&marks),
        ..Series::default()
    };
    for pair in marks.windows(2) {
        let span = Span::new(pair[0], pair[1]);
        let row = series.t_s.len();
        series.t_s.push(seconds(pair[1].at_ns));
        // A second snapshot and a window snapshot of the same instant differ by
        // their collection time; the middle of the step decides.
        let middle = pair[0].at_ns.midpoint(pair[1].at_ns);
        series.in_window.push(middle >= begin && middle <= end);
        let activity = deltas.data.activity.as_ref();
        let sampled = super::activity::step_metrics(activity, pair[0], pair[1]);
        for (name, figure) in step_metrics(&span).into_iter().chain(sampled) {
            let column = series.metrics.entry(name).or_default();
            column.resize(row, Figure::default());
            column.push(figure);
        }
    }
    let rows = series.t_s.len();
    for column in series.metrics.values_mut() {
        column.resize(rows, Figure::default());
    }
    series
}

fn step_metrics(span: &Span<'_>) -> BTreeMap<String, Figure> {
    let mut metrics = BTreeMap::new();
    let mut put = |name: &str, figure: Figure| {
        metrics.insert(name.to_owned(), figure);
    };
    let elapsed = span.elapsed_s;
    let per_s = |figure: Figure| figure.per(elapsed, "no time passed");
    put("ops_count_per_s", per_s(Figure::Count(span.ops())));
    for (name, stat, factor) in RATES {
        put(name, per_s(counter(&span.stats, *stat)).scaled(*factor));
    }
    let (read, written) = span.moved_bytes();
    put("read_mib_per_s", per_s(read).scaled(1.0 / MIB));
    put("write_mib_per_s", per_s(written).scaled(1.0 / MIB));
    put(
        "average_active_sessions_count",
        per_s(span.db_time_ns()).scaled(1e-9),
    );
    let mut all = Histogram::new();
    for op in &span.driver.ops {
        all.merge(&op.service);
    }
    put("op_avg_us", super::events::mean_us(&all));
    put("op_p99_us", percentile_us(&all, 0.99));
    put(
        "op_max_us",
        all.max_ns()
            .map_or_else(|| Figure::na("nothing counted"), micros),
    );
    for event in &span.stats.events {
        if event.waits.count() > 0 {
            let who = match event.actor {
                Actor::Foreground => "",
                Actor::Background => "background_",
            };
            let name = format!("{who}{}", slug(&event.name));
            put(
                &format!("{name}_waits_count_per_s"),
                per_s(Figure::Count(event.waits.count())),
            );
            put(&format!("{name}_p99_us"), percentile_us(&event.waits, 0.99));
        }
    }
    let host = &span.to.host;
    if let Some(cpus) = host.cpus {
        put("online_cpus_count", Figure::Count(cpus));
    }
    if let Some(millicpus) = host.usable_millicpus {
        put("usable_cpus_count", Figure::decimal(millicpus as f64 / 1e3));
    }
    if let Some(moved) = cpu_delta_ns(&span.from.host, &span.to.host) {
        let total = cpu_total_ns(&moved) as f64;
        let share = |ns: u64| Figure::decimal(100.0 * ns as f64).per(total, "no time passed");
        put("host_idle_pct", share(moved[3]));
        put("host_iowait_pct", share(moved[4]));
        put("host_steal_pct", share(moved[7]));
    }
    metrics
}

/// An event's name as a key: lower case, words joined by `_`.
pub(crate) fn slug(name: &str) -> String {
    let words = name
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut key = String::new();
    for word in words {
        if !key.is_empty() {
            key.push('_');
        }
        key.push_str(&word.to_ascii_lowercase());
    }
    key
}

/// Standard deviation over mean (of the sample, n - 1).
pub(crate) fn variation(values: &[f64]) -> Figure {
    let n = values.len() as f64;
    if values.len() < 2 {
        return Figure::na("fewer than two values");
    }
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
    Figure::decimal((squares / (n - 1.0)).sqrt()).per(mean, "nothing moved")
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

/// Ops/s over the whole steps of the window.
pub(crate) fn steadiness(series: &Series) -> Steadiness {
    let ops = series.metrics.get("ops_count_per_s");
    let (mut t, mut rates) = (Vec::new(), Vec::new());
    let step = series.step_s.value().unwrap_or(1.0);
    let mut previous = 0.0;
    for (row, now) in series.t_s.iter().enumerate() {
        // The step before the begin or the end may be a fraction: too short to judge.
        let whole = now - previous > 0.5 * step;
        previous = *now;
        let rate = ops.and_then(|ops| ops.get(row)).and_then(Figure::value);
        if let (true, true, Some(rate)) = (series.in_window[row], whole, rate) {
            t.push(*now);
            rates.push(rate);
        }
    }
    if rates.len() < 4 {
        let none = || Figure::na("fewer than four steps");
        return Steadiness {
            steps_count: (rates.len() as u64).into(),
            mean_per_s: none(),
            min_per_s: none(),
            max_per_s: none(),
            variation_ratio: none(),
            last_over_first_ratio: none(),
            change_points_s: Vec::new(),
        };
    }
    let quarter = rates.len() / 4;
    let first = mean(&rates[..quarter]);
    let last = mean(&rates[rates.len() - quarter..]);
    let mut change_points_s = Vec::new();
    change_points(&t, &rates, &mut change_points_s);
    Steadiness {
        steps_count: (rates.len() as u64).into(),
        mean_per_s: mean(&rates).into(),
        min_per_s: rates.iter().copied().fold(f64::INFINITY, f64::min).into(),
        max_per_s: rates.iter().copied().fold(0.0, f64::max).into(),
        variation_ratio: variation(&rates),
        last_over_first_ratio: Figure::decimal(last).per(first, "nothing moved"),
        change_points_s,
    }
}

/// Fewest seconds on either side of a change of level.
const LEVEL_SECONDS: usize = 5;
/// Smallest change of level worth a word.
const LEVEL_RATIO: f64 = 0.1;
/// Difference of means over its standard error from which a split counts. High, since
/// neighbouring seconds are correlated and every split of the window is tried.
const LEVEL_T: f64 = 6.0;

/// Binary segmentation: splits where the means of both sides differ most, relative to
/// the scatter inside the sides, and looks again inside both.
fn change_points(t: &[f64], rates: &[f64], found: &mut Vec<f64>) {
    let mut best = (0, 0.0);
    for split in LEVEL_SECONDS..rates.len().saturating_sub(LEVEL_SECONDS - 1) {
        let (left, right) = rates.split_at(split);
        let (a, b) = (mean(left), mean(right));
        let scatter =
            |side: &[f64], mean: f64| side.iter().map(|v| (v - mean).powi(2)).sum::<f64>();
        let within = (scatter(left, a) + scatter(right, b)) / (rates.len() - 2) as f64;
        let error = (within * (1.0 / left.len() as f64 + 1.0 / right.len() as f64)).sqrt();
        // Perfectly flat sides have no scatter: a tenth of a percent stands in for it.
        let score = (a - b).abs() / error.max(1e-3 * a.max(b));
        if (a - b).abs() >= LEVEL_RATIO * a.max(b) && score > best.1 {
            best = (split, score);
        }
    }
    if best.1 >= LEVEL_T {
        let split = best.0;
        change_points(&t[..split], &rates[..split], found);
        found.push(t[split - 1]);
        change_points(&t[split..], &rates[split..], found);
    }
}
