//! fio's JSON and json+, with all keys in fio's order.

use super::entry::{Entry, WayEntry, entries, group_way};
use super::latency;
use super::number::rate;
use super::options;
use super::percentile;
use super::text::{BATCHES, DEPTHS, DiskFigures, shares};
use super::tree::Tree;
use super::wall;
use crate::readings::{LatencyReading, SteadyReading, StorageReadings, Way};
use assay_measure::snapshot::DiskReading;
use serde_json::Value;

/// Job options that plotters look for, whether given or not.
const EFFECTIVE: [&str; 4] = ["rw", "iodepth", "numjobs", "bs"];
/// fio's value for an unknown time.
const UNKNOWN_ETA: u64 = i32::MAX as u64;

/// fio's JSON document; with `plus` every latency has its `bins`.
///
/// `native` becomes the last top-level key. Its `effective_options` list, entry by entry, the options in `job options`
/// that were not typed: `rw`, `iodepth`, `numjobs` and `bs` are always present, because plotters need them.
#[must_use]
pub fn json(readings: &StorageReadings, plus: bool, native: Option<Value>) -> String {
    let entries = entries(readings);
    let mut document = Tree::object([
        ("fio version", Tree::text(super::version(readings))),
        ("timestamp", Tree::Natural(readings.timestamp_ms / 1000)),
        ("timestamp_ms", Tree::Natural(readings.timestamp_ms)),
        ("time", Tree::text(wall::date(readings.timestamp_ms))),
    ]);
    if !readings.global_options.is_empty() {
        document.push("global options", given(&readings.global_options));
    }
    let jobs = entries.iter();
    let jobs = jobs.map(|entry| job(readings, &entries, entry, plus));
    document.push("jobs", Tree::Array(jobs.collect()));
    if !readings.disks.is_empty() {
        let disks = readings.disks.iter();
        let disks = disks.map(|reading| disk(reading, readings.elapsed_ns));
        document.push("disk_util", Tree::Array(disks.collect()));
    }
    document.push("native", own(readings, &entries, native));
    document.document()
}

/// Options with a value, as typed; fio leaves bare flags out.
fn given(options: &[(String, Option<String>)]) -> Tree {
    let valued = options.iter().filter_map(|(name, value)| {
        let value = value.as_deref()?;
        Some((name.clone(), Tree::text(value)))
    });
    Tree::Object(valued.collect())
}

/// The effective options that were not typed.
fn untyped<'a>(readings: &'a StorageReadings, entry: &Entry<'a>) -> Vec<(&'static str, &'a str)> {
    let missing = EFFECTIVE.into_iter().filter_map(|name| {
        let value = entry.job.effective.get(name)?;
        let typed = options::value(readings, entry.job, name).is_some();
        (!typed).then_some((name, value.as_str()))
    });
    missing.collect()
}

fn own(readings: &StorageReadings, entries: &[Entry<'_>], native: Option<Value>) -> Tree {
    let mut own = match native {
        Some(Value::Object(members)) => {
            let members = members.into_iter();
            Tree::Object(members.map(|(key, value)| (key, Tree::Other(value))).collect())
        }
        Some(value) => Tree::object([("record", Tree::Other(value))]),
        None => Tree::object([]),
    };
    let names = entries.iter().map(|entry| {
        let untyped = untyped(readings, entry);
        Tree::Array(untyped.iter().map(|(name, _)| Tree::text(*name)).collect())
    });
    own.push("effective_options", Tree::Array(names.collect()));
    own
}

fn job(readings: &StorageReadings, entries: &[Entry<'_>], entry: &Entry<'_>, plus: bool) -> Tree {
    let mut job_options = given(&entry.job.options);
    for (name, value) in untyped(readings, entry) {
        job_options.push(name, Tree::text(value));
    }
    let eta = if readings.running { UNKNOWN_ETA } else { 0 };
    let elapsed_s = readings.elapsed_ns.div_ceil(1_000_000_000);
    let mut job = Tree::object([
        ("jobname", Tree::text(&entry.job.name)),
        ("groupid", Tree::Natural(entry.job.group.into())),
        ("error", Tree::Whole(entry.error.0.into())),
        ("eta", Tree::Natural(eta)),
        ("elapsed", Tree::Natural(elapsed_s)),
        ("job options", job_options),
    ]);
    let list = &entry.label().percentiles;
    for way in Way::ALL {
        job.push(way.name(), direction(entries, entry, way, plus));
    }
    let sync = Tree::object([
        ("total_ios", Tree::Natural(entry.sync.histogram.count())),
        ("lat_ns", spread(&entry.sync, Some(list), plus)),
    ]);
    job.push("sync", sync);
    job.push("job_runtime", Tree::Natural(entry.job_runtime_ms));
    job.push("usr_cpu", Tree::Float(entry.user_percent()));
    job.push("sys_cpu", Tree::Float(entry.system_percent()));
    job.push("ctx", Tree::Natural(entry.context_switches));
    job.push("majf", Tree::Natural(entry.major_faults));
    job.push("minf", Tree::Natural(entry.minor_faults));
    job.push("iodepth_level", slots(&DEPTHS, &entry.depths));
    job.push("iodepth_submit", slots(&BATCHES, &entry.submits));
    job.push("iodepth_complete", slots(&BATCHES, &entry.completes));
    for ((_, shares), name) in
        latency::families(&entry.families, entry.ios()).into_iter().zip(["latency_ns", "latency_us", "latency_ms"])
    {
        let shares = shares.into_iter();
        let shares = shares.map(|(bound, share)| (bound.to_owned(), Tree::Float(share)));
        job.push(name, Tree::Object(shares.collect()));
    }
    if options::passes_errors(readings, entry) {
        job.push("total_err", Tree::Natural(entry.errors_passed));
        job.push("first_error", Tree::Whole(entry.error.0.into()));
    }
    let goal = entry.goal();
    job.push("latency_depth", Tree::Natural(goal.depth.into()));
    job.push("latency_target", Tree::Natural(goal.target_ns));
    job.push("latency_percentile", Tree::Float(goal.percentile));
    job.push("latency_window", Tree::Natural(goal.window_us));
    if let Some(description) = &entry.label().description {
        job.push("desc", Tree::text(description));
    }
    if let Some(steady) = &entry.job.steady {
        job.push("steadystate", steady_state(steady));
    }
    job
}

fn slots(names: &[&str; 7], counts: &[u64; 7]) -> Tree {
    let shares = names.iter().zip(shares(counts));
    let shares = shares.map(|(&name, share)| (name.to_owned(), Tree::Float(share)));
    Tree::Object(shares.collect())
}

fn direction(entries: &[Entry<'_>], entry: &Entry<'_>, way: Way, plus: bool) -> Tree {
    let figures = entry.way(way);
    let label = entry.label();
    let iops = match figures.runtime_ms {
        0 => 0.0,
        runtime_ms => 1000.0 * figures.ios as f64 / runtime_ms as f64,
    };
    let bw = rate(figures.bytes, figures.runtime_ms);
    let asked = |wanted: bool| wanted.then_some(label.percentiles.as_slice());
    let mut tree = Tree::object([
        ("io_bytes", Tree::Natural(figures.bytes)),
        ("io_kbytes", Tree::Natural(figures.bytes / 1024)),
        ("bw_bytes", Tree::Natural(bw)),
        ("bw", Tree::Natural(bw / 1024)),
        ("iops", Tree::Float(iops)),
        ("runtime", Tree::Natural(figures.runtime_ms)),
        ("total_ios", Tree::Natural(figures.ios)),
        ("short_ios", Tree::Natural(figures.short_ios)),
        ("drop_ios", Tree::Natural(0)),
        ("slat_ns", spread(&figures.slat, asked(label.slat_percentiles), plus)),
        ("clat_ns", spread(&figures.clat, asked(label.clat_percentiles), plus)),
        // The main latency always has percentiles.
        ("lat_ns", spread(&figures.lat, asked(true), plus)),
    ]);
    let group = group_way(entries, entry.job.group, way);
    push_samples(&mut tree, figures, group.percent_of(figures.bw.mean));
    tree
}

fn push_samples(tree: &mut Tree, figures: &WayEntry, percent: f64) {
    let (bw, iops) = (&figures.bw, &figures.iops);
    for (key, value) in [
        ("bw_min", Tree::Natural(bw.min)),
        ("bw_max", Tree::Natural(bw.max)),
        ("bw_agg", Tree::Float(percent)),
        ("bw_mean", Tree::Float(bw.mean)),
        ("bw_dev", Tree::Float(bw.stddev())),
        ("bw_samples", Tree::Natural(bw.count)),
        ("iops_min", Tree::Natural(iops.min)),
        ("iops_max", Tree::Natural(iops.max)),
        ("iops_mean", Tree::Float(iops.mean)),
        ("iops_stddev", Tree::Float(iops.stddev())),
        ("iops_samples", Tree::Natural(iops.count)),
    ] {
        tree.push(key, value);
    }
}

/// Extremes, mean and deviation of durations; zeroes if there are none, as in fio.
fn spread(latency: &LatencyReading, list: Option<&[f64]>, plus: bool) -> Tree {
    let histogram = &latency.histogram;
    let mut tree = Tree::object([
        ("min", Tree::Natural(histogram.min_ns().unwrap_or(0))),
        ("max", Tree::Natural(histogram.max_ns().unwrap_or(0))),
        ("mean", Tree::Float(histogram.mean_ns().unwrap_or(0.0))),
        ("stddev", Tree::Float(latency.stddev_ns().unwrap_or(0.0))),
        ("N", Tree::Natural(histogram.count())),
    ]);
    if histogram.is_empty() {
        return tree;
    }
    if let Some(list) = list {
        let found = percentile::percentiles(histogram, list).into_iter();
        let found = found.map(|(percent, ns)| (format!("{percent:.6}"), Tree::Natural(ns)));
        tree.push("percentile", Tree::Object(found.collect()));
        if plus {
            let bins = percentile::bins(histogram).into_iter();
            let bins = bins.map(|(midpoint, n)| (midpoint.to_string(), Tree::Natural(n)));
            tree.push("bins", Tree::Object(bins.collect()));
        }
    }
    tree
}

fn steady_state(steady: &SteadyReading) -> Tree {
    let (metric, limit) = (steady.criterion).split_once(':').unwrap_or((&steady.criterion, ""));
    let percent = if limit.ends_with('%') { "%" } else { "" };
    let limit = limit.trim_end_matches('%').parse().unwrap_or(0.0_f64);
    let list = |values: &[u64], scale: u64| {
        let values = values.iter().map(|value| Tree::Natural(value * scale));
        Tree::Array(values.collect())
    };
    let mean = |values: &[u64], scale: u64| match values.len() as u64 {
        0 => Tree::Natural(0),
        n => Tree::Natural(values.iter().sum::<u64>() * scale / n),
    };
    Tree::object([
        ("ss", Tree::Text(format!("{metric}:{limit:.6}{percent}"))),
        ("duration", Tree::Natural(steady.duration_s)),
        ("attained", Tree::Natural(steady.attained.into())),
        ("criterion", Tree::Text(format!("{:.6}{percent}", steady.last.unwrap_or(0.0)))),
        ("max_deviation", Tree::Float(steady.deviation_pct.unwrap_or(0.0) / 100.0 * watched_mean(metric, steady))),
        ("slope", Tree::Float(steady.slope.unwrap_or(0.0))),
        (
            "data",
            Tree::object([
                ("bw_mean", mean(&steady.bw_kib_per_s, 1024)),
                ("iops_mean", mean(&steady.iops, 1)),
                ("iops", list(&steady.iops, 1)),
                ("bw", list(&steady.bw_kib_per_s, 1024)),
            ]),
        ),
    ])
}

/// Mean of the watched quantity: I/Os or bytes per second, or ns.
fn watched_mean(metric: &str, steady: &SteadyReading) -> f64 {
    let mean = |sum: f64, n: usize| if n == 0 { 0.0 } else { sum / n as f64 };
    let whole = |values: &[u64]| mean(values.iter().sum::<u64>() as f64, values.len());
    if metric.starts_with("bw") {
        return 1024.0 * whole(&steady.bw_kib_per_s);
    }
    if metric.starts_with("lat") {
        return mean(steady.lat_ns.iter().sum(), steady.lat_ns.len());
    }
    whole(&steady.iops)
}

fn disk(disk: &DiskReading, elapsed_ns: u64) -> Tree {
    let figures = DiskFigures::of(disk, elapsed_ns);
    Tree::object([
        ("name", Tree::text(&disk.name)),
        ("read_ios", Tree::Natural(disk.reads)),
        ("write_ios", Tree::Natural(disk.writes)),
        ("read_merges", Tree::Natural(disk.read_merges)),
        ("write_merges", Tree::Natural(disk.write_merges)),
        ("read_ticks", Tree::Natural(figures.read_ms)),
        ("write_ticks", Tree::Natural(figures.write_ms)),
        ("in_queue", Tree::Natural(figures.in_queue_ms)),
        ("util", Tree::Float(figures.util)),
    ])
}
