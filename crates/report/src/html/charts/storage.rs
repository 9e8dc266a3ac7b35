//! Charts of the storage probe, and of what other storage tools left.

use super::latency::{of_buckets, percentile_chart};
use crate::html::chart::{Axis, Chart, Drawn, Kind, Mark, Rows, Trace};
use crate::html::palette::{BLUE, GREY, ORANGE, SKY, VERMILION, nth};
use assay_measure::record::{Figure, Record, StorageGroup, StorageInfo, StorageLatency};

/// Directions with the colour of each.
const WAYS: [(&str, &str); 3] = [("read", BLUE), ("write", VERMILION), ("trim", ORANGE)];

/// All charts of a probe.
pub(super) fn all(record: &Record, info: &StorageInfo) -> Vec<Drawn> {
    let mut all = Vec::new();
    for group in &info.groups {
        all.extend(over_time(record, group, info.groups.len() > 1));
    }
    all.push(percentiles(info));
    for job in &info.jobs {
        for way in &job.ways {
            let id = format!(
                "c-hist-{}-{}",
                crate::record::slug(&job.name).replace('_', "-"),
                way.way
            );
            let title = format!(
                "Histogram: {} of {} (lat, layer {})",
                way.way, job.name, info.layer
            );
            all.push(match way.lat.hist_ns.is_empty() {
                true => Drawn::missing(&title, "no distribution"),
                false => of_buckets(&id, &title, &way.lat.hist_ns.pow2_us()),
            });
        }
    }
    all.push(in_flight(info));
    all
}

/// Rows of the series that are of this group.
fn rows_of(record: &Record, group: u32) -> Vec<usize> {
    let groups = record.series.metrics.get("group");
    let of_group = |row: &usize| match groups.and_then(|groups| groups.get(*row)) {
        Some(figure) => figure.value() == Some(f64::from(group)),
        None => group == 0,
    };
    (0..record.series.t_s.len()).filter(of_group).collect()
}

fn over_time(record: &Record, group: &StorageGroup, several: bool) -> Vec<Drawn> {
    let rows = rows_of(record, group.group);
    let of = match several {
        true => format!(": group {} ({})", group.group, group.jobs.join(", ")),
        false => String::new(),
    };
    let column = |key: &str| -> Option<Vec<Option<f64>>> {
        let column = record.series.metrics.get(key)?;
        Some(
            rows.iter()
                .map(|row| column.get(*row).and_then(Figure::value))
                .collect(),
        )
    };
    let base = |id: &str, title: &str, y: Axis, note: &str| Chart {
        id: format!("c-{id}-{}", group.group),
        title: format!("{title}{of}"),
        note: note.to_owned(),
        x: Axis::of("time after the first measured instant", "s"),
        y,
        rows: Rows::Numbers(rows.iter().map(|row| record.series.t_s[*row]).collect()),
        marks: changes(group),
        ..Chart::default()
    };
    let note = "Whole, synchronised seconds (layer syscall); dashed is what the devices completed (layer device, whoever asked).";
    let mut iops = base("iops", "IOPS", Axis::of("I/Os", "1/s"), note);
    let mut bytes = base(
        "bytes",
        "MB per second",
        Axis::of("throughput", "10^6 bytes/s"),
        "Whole, synchronised seconds (layer syscall).",
    );
    let mut latency = base(
        "latency",
        "Latency over time",
        Axis::log("latency", "us"),
        "Of the I/Os that ended in each second (layer syscall), from preparation to reaping.",
    );
    let mut busy = base(
        "busy",
        "Device busy",
        Axis::of("share of time", "%"),
        "Time with a request at the device (layer device, source diskstats).",
    );
    for (way, color) in WAYS {
        let put = |chart: &mut Chart, key: String, name: String, kind: Kind| {
            chart
                .traces
                .extend(column(&key).map(|y| Trace::new(&name, kind, color, y)));
        };
        put(
            &mut iops,
            format!("{way}_ios_count_per_s"),
            format!("{way}s"),
            Kind::Line,
        );
        put(
            &mut bytes,
            format!("{way}_mb_per_s"),
            format!("{way}s"),
            Kind::Line,
        );
        for (part, kind) in [
            ("p50", Kind::Line),
            ("p99", Kind::Dashed),
            ("max", Kind::Dotted),
        ] {
            put(
                &mut latency,
                format!("{way}_lat_{part}_us"),
                format!("{way} {part}"),
                kind,
            );
        }
    }
    for (part, kind) in [
        ("p50", Kind::Line),
        ("p99", Kind::Dashed),
        ("max", Kind::Dotted),
    ] {
        let y = column(&format!("response_{part}_us"));
        latency
            .traces
            .extend(y.map(|y| Trace::new(&format!("response {part}"), kind, GREY, y)));
    }
    for (at, disk) in disks(record).iter().enumerate() {
        let y = column(&format!("device_{disk}_busy_pct"));
        busy.traces
            .extend(y.map(|y| Trace::new(disk, Kind::Line, nth(at), y)));
        for (way, color) in [("reads", SKY), ("writes", ORANGE)] {
            let y = column(&format!("device_{disk}_{way}_count_per_s"));
            let name = format!("{way}, device {disk}");
            iops.traces
                .extend(y.map(|y| Trace::new(&name, Kind::Dashed, color, y)));
        }
    }
    let charts = [iops, bytes, latency, busy].into_iter();
    charts
        .map(|chart| Drawn::or(chart, "no whole second was measured"))
        .collect()
}

/// Changes of level, as marks.
fn changes(group: &StorageGroup) -> Vec<Mark> {
    let marks = group.changes.iter().filter_map(|change| {
        let at = change.at_s.value()?;
        let ratio = change.ratio.value().unwrap_or(f64::NAN);
        let text = format!("{at:.0} s: the level changes to {ratio:.2} times the one before");
        Some(Mark { at, text })
    });
    marks.collect()
}

fn disks(record: &Record) -> Vec<String> {
    let keys = record.series.metrics.keys();
    let names = keys.filter_map(|key| key.strip_prefix("device_")?.strip_suffix("_busy_pct"));
    names.map(str::to_owned).collect()
}

/// The percentiles of every job and direction, side by side.
fn percentiles(info: &StorageInfo) -> Drawn {
    let mut all = Vec::new();
    for job in &info.jobs {
        for way in &job.ways {
            all.push((format!("{} {}", job.name, way.way), figures(&way.lat)));
        }
    }
    let note = format!(
        "From preparation to reaping (lat), layer {}; a percentile with fewer than ten samples beyond it is n/a.",
        info.layer
    );
    percentile_chart("c-percentiles", "Latency percentiles by job", &note, &all)
}

fn figures(lat: &StorageLatency) -> Vec<(&'static str, Figure)> {
    vec![
        ("min", lat.min_us.clone()),
        ("p50", lat.p50_us.clone()),
        ("p90", lat.p90_us.clone()),
        ("p95", lat.p95_us.clone()),
        ("p99", lat.p99_us.clone()),
        ("p99.9", lat.p999_us.clone()),
        ("p99.99", lat.p9999_us.clone()),
        ("p99.999", lat.p99999_us.clone()),
        ("max", lat.max_us.clone()),
    ]
}

/// What was asked for, what was counted, and what Little's law gives.
fn in_flight(info: &StorageInfo) -> Drawn {
    let jobs = &info.jobs;
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..jobs.len()).map(of).collect();
    let chart = Chart {
        id: "c-in-flight".to_owned(),
        title: "I/Os in flight".to_owned(),
        note: "Depth times jobs as asked for, the mean that was counted, and IOPS times mean latency: the last two must agree.".to_owned(),
        x: Axis::of("job", ""),
        y: Axis::of("I/Os in flight", "count"),
        rows: Rows::Names(jobs.iter().map(|job| job.name.clone()).collect()),
        traces: vec![
            Trace::new("asked for", Kind::Bar, GREY, column(&|at| {
                let asked = jobs[at].iodepth_count * jobs[at].numjobs_count;
                (asked > 0).then_some(asked as f64)
            })),
            Trace::new("counted", Kind::Bar, BLUE, column(&|at| jobs[at].in_flight_mean_count.value())),
            Trace::new("Little's law", Kind::Bar, ORANGE, column(&|at| jobs[at].little_count.value())),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "no job says it")
}
