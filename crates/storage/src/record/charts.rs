//! Charts of the storage probe, and of imported results of other storage tools.

use crate::record::info::{StorageGroup, StorageInfo, StorageLatency};
use assay_awr::charts::latency::percentile_chart;
use assay_measure::chart::buckets::of_buckets;
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, ORANGE, SKY, VERMILION, nth};
use assay_measure::record::{Figure, Record};

/// Directions with their colours.
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
            let id = format!("c-hist-{}-{}", assay_measure::plain::slug(&job.name).replace('_', "-"), way.way);
            let title = format!("Histogram: {} of {} (lat, layer {})", way.way, job.name, info.layer);
            all.push(if way.lat.hist_ns.is_empty() {
                Drawn::missing(&title, "no distribution")
            } else {
                of_buckets(&id, &title, &way.lat.hist_ns.pow2_us())
            });
        }
    }
    all.push(in_flight(info));
    all
}

/// A last second shorter than this allows no statement on a rate, s.
const LEAST_S: f64 = 0.5;

/// Rows of the series that belong to this group, without a short last second.
fn rows_of(record: &Record, group: u32) -> Vec<usize> {
    let groups = record.series.metrics.get("group");
    let of_group = |row: &usize| match groups.and_then(|groups| groups.get(*row)) {
        Some(figure) => figure.value() == Some(f64::from(group)),
        None => group == 0,
    };
    let lengths = record.series.metrics.get("length_s");
    let is_long = |row: &usize| {
        let length = lengths.and_then(|lengths| lengths.get(*row)?.value());
        length.is_none_or(|s| s >= LEAST_S)
    };
    let rows = (0..record.series.t_s.len()).filter(of_group);
    rows.filter(is_long).collect()
}

/// The seconds of a group: its rows of the series.
struct Seconds<'a> {
    record: &'a Record,
    group: &'a StorageGroup,
    rows: Vec<usize>,
    /// The name of the group if there are several.
    of: String,
}

/// Percentiles of a second and how to draw them.
const PARTS: [(&str, Stroke); 3] = [("p50", Stroke::Line), ("p99", Stroke::Dashed), ("max", Stroke::Dotted)];

impl Seconds<'_> {
    fn chart(&self, id: &str, title: &str, y: Axis, note: &str) -> Chart {
        let t_s = &self.record.series.t_s;
        Chart {
            id: format!("c-{id}-{}", self.group.group),
            title: format!("{title}{}", self.of),
            note: note.to_owned(),
            x: Axis::of("time after the first measured instant", "s"),
            y,
            rows: Rows::Numbers(self.rows.iter().map(|row| t_s[*row]).collect()),
            marks: changes(self.group),
            ..Chart::default()
        }
    }

    /// Adds a column of the series, if there is one.
    fn put(&self, chart: &mut Chart, key: &str, name: &str, kind: Stroke, color: &'static str) {
        if let Some(column) = self.record.series.metrics.get(key) {
            let value = |row: &usize| column.get(*row).and_then(Figure::value);
            let y = self.rows.iter().map(value).collect();
            chart.traces.push(Trace::new(name, kind, color, y));
        }
    }

    fn iops(&self, disks: &[String]) -> Chart {
        let note = "Whole, synchronised seconds (layer syscall); dashed: what the devices completed, from all \
            processes (layer device).";
        let mut chart = self.chart("iops", "IOPS", Axis::of("I/Os", "1/s"), note);
        for (way, color) in WAYS {
            let key = format!("{way}_ios_count_per_s");
            self.put(&mut chart, &key, &format!("{way}s"), Stroke::Line, color);
        }
        for disk in disks {
            for (way, color) in [("reads", SKY), ("writes", ORANGE)] {
                let key = format!("device_{disk}_{way}_count_per_s");
                let name = format!("{way}, device {disk}");
                self.put(&mut chart, &key, &name, Stroke::Dashed, color);
            }
        }
        chart
    }

    fn bytes(&self) -> Chart {
        let y = Axis::of("throughput", "10^6 bytes/s");
        let note = "Whole, synchronised seconds (layer syscall).";
        let mut chart = self.chart("bytes", "MB per second", y, note);
        for (way, color) in WAYS {
            let key = format!("{way}_mb_per_s");
            self.put(&mut chart, &key, &format!("{way}s"), Stroke::Line, color);
        }
        chart
    }

    fn latency(&self) -> Chart {
        let note = "Latency of the I/Os that ended in each second (layer syscall), from preparation to reaping.";
        let y = Axis::log("latency", "us");
        let mut chart = self.chart("latency", "Latency over time", y, note);
        for (way, color) in WAYS {
            for (part, kind) in PARTS {
                let key = format!("{way}_lat_us_{part}");
                self.put(&mut chart, &key, &format!("{way} {part}"), kind, color);
            }
        }
        for (part, kind) in PARTS {
            let key = format!("response_us_{part}");
            self.put(&mut chart, &key, &format!("response {part}"), kind, GREY);
        }
        chart
    }

    fn busy(&self, disks: &[String]) -> Chart {
        let y = Axis::of("share of time", "%");
        let note = "Time with a request at the device (layer device, source diskstats).";
        let mut chart = self.chart("busy", "Device busy", y, note);
        for (at, disk) in disks.iter().enumerate() {
            let key = format!("device_{disk}_busy_pct");
            self.put(&mut chart, &key, disk, Stroke::Line, nth(at));
        }
        chart
    }
}

fn over_time(record: &Record, group: &StorageGroup, several: bool) -> Vec<Drawn> {
    let seconds = Seconds {
        record,
        group,
        rows: rows_of(record, group.group),
        of: if several { format!(": group {} ({})", group.group, group.jobs.join(", ")) } else { String::new() },
    };
    let disks = disks(record);
    let charts = [seconds.iops(&disks), seconds.bytes(), seconds.latency(), seconds.busy(&disks)];
    let charts = charts.into_iter();
    charts.map(|chart| Drawn::or(chart, "no whole second was measured")).collect()
}

/// Changes of level, as marks.
fn changes(group: &StorageGroup) -> Vec<ChartMark> {
    let marks = group.changes.iter().filter_map(|change| {
        let at = change.at_s.value()?;
        let ratio = change.ratio.value().unwrap_or(f64::NAN);
        let text = format!("{at:.0} s: the level changes to {ratio:.2} times the one before");
        Some(ChartMark { at, text })
    });
    marks.collect()
}

fn disks(record: &Record) -> Vec<String> {
    let keys = record.series.metrics.keys();
    let names = keys.filter_map(|key| key.strip_prefix("device_")?.strip_suffix("_busy_pct"));
    names.map(str::to_owned).collect()
}

/// The percentiles of all jobs and directions, side by side.
fn percentiles(info: &StorageInfo) -> Drawn {
    let mut all = Vec::new();
    for job in &info.jobs {
        for way in &job.ways {
            // Other tools only print percentiles of the completion latency.
            let known =
                figures(&way.lat).iter().any(|(name, figure)| name.starts_with('p') && figure.value().is_some());
            let (part, latency) = if known { ("", &way.lat) } else { (" (clat)", &way.clat) };
            all.push((format!("{} {}{part}", job.name, way.way), figures(latency)));
        }
    }
    let note = format!(
        "From preparation to reaping (lat), or from submission to reaping where named clat; layer {}; a percentile \
         with fewer than ten samples beyond it is n/a.",
        info.layer
    );
    percentile_chart("c-percentiles", "Latency percentiles by job", &note, &all)
}

fn figures(lat: &StorageLatency) -> Vec<(&'static str, Figure)> {
    vec![
        ("min", lat.us_min.clone()),
        ("p50", lat.us_p50.clone()),
        ("p90", lat.us_p90.clone()),
        ("p95", lat.us_p95.clone()),
        ("p99", lat.us_p99.clone()),
        ("p99.9", lat.us_p999.clone()),
        ("p99.99", lat.us_p9999.clone()),
        ("p99.999", lat.us_p99999.clone()),
        ("max", lat.us_max.clone()),
    ]
}

/// I/Os in flight as requested, as counted, and by Little's law.
fn in_flight(info: &StorageInfo) -> Drawn {
    let jobs = &info.jobs;
    let column = |of: &dyn Fn(usize) -> Option<f64>| (0..jobs.len()).map(of).collect();
    let chart = Chart {
        id: "c-in-flight".to_owned(),
        title: "I/Os in flight".to_owned(),
        note: "The requested depth times jobs, the counted mean, and IOPS times mean latency: the last two must \
            agree."
            .to_owned(),
        x: Axis::of("job", ""),
        y: Axis::of("I/Os in flight", "count"),
        rows: Rows::Names(jobs.iter().map(|job| job.name.clone()).collect()),
        traces: vec![
            Trace::new(
                "asked for",
                Stroke::Bar,
                GREY,
                column(&|at| {
                    let asked = jobs[at].iodepth_count * jobs[at].numjobs_count;
                    (asked > 0).then_some(asked as f64)
                }),
            ),
            Trace::new("counted", Stroke::Bar, BLUE, column(&|at| jobs[at].in_flight_mean_count.value())),
            Trace::new("Little's law", Stroke::Bar, ORANGE, column(&|at| jobs[at].little_count.value())),
        ],
        ..Chart::default()
    };
    Drawn::or(chart, "no job states it")
}
