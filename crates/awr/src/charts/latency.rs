//! Latency: percentiles over time, heat maps, and histograms in waits and in time.

use super::time::{self, NO_SERIES};
use crate::record::slug;
use assay_measure::chart::buckets::bucket_name;
use assay_measure::chart::buckets::of_buckets;
use assay_measure::chart::{Axis, Chart, Drawn, Heat, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREEN, GREY, ORANGE, SKY, VERMILION, nth};
use assay_measure::record::{EventRow, Figure, HeatRow, Record};

/// Events with charts of their own, by time; the others are in the tables.
const EVENTS: usize = 6;
/// Background events among them.
const BACKGROUND: usize = 2;

/// The events with the most time whose waits were timed one by one.
pub(crate) fn leading(record: &Record) -> Vec<&EventRow> {
    let of = |actor: &'static str| {
        let events = record.instance.events.iter();
        events.filter(move |e| e.actor == actor && e.class != "Idle" && has_waits(e))
    };
    let foreground = of("foreground").take(EVENTS - BACKGROUND);
    foreground.chain(of("background").take(BACKGROUND)).collect()
}

fn has_waits(event: &EventRow) -> bool {
    event.hist_us.iter().any(|count| *count > 0) || event.is_timed_singly()
}

/// Percentiles by step of operations, of the leading events and of the ring's requests.
pub(super) fn over_time(record: &Record) -> Vec<Drawn> {
    let mut all = vec![percentiles(record, "operations", "op", "client")];
    for event in leading(record) {
        let background = event.actor == "background";
        let prefix = if background { "background_" } else { "" };
        let stem = format!("{prefix}{}", slug(&event.name));
        all.push(percentiles(record, &event.name, &stem, "engine"));
    }
    let ring: Vec<&str> =
        (record.series.metrics.keys()).filter_map(|key| key.strip_prefix("ring_")?.strip_suffix("_us_p99")).collect();
    for name in ring {
        let title = format!("{} requests", name.replace('_', " "));
        all.push(percentiles(record, &title, &format!("ring_{name}"), "syscall"));
    }
    let y = Axis::log("mean latency", "us");
    let note = "Mean time of the requests that the devices completed in each step, from all processes (layer device; \
        source diskstats). The kernel keeps no distribution for devices.";
    let title = "Latency over time: device requests (layer device)";
    let mut device = time::chart(record, "c-latency-device", title, y, note);
    let columns = [
        ("device_read_us_avg", "reads, mean", Stroke::Line, BLUE),
        ("device_write_us_avg", "writes, mean", Stroke::Line, VERMILION),
    ];
    device.traces = time::traces(record, &columns);
    if device.traces.iter().any(Trace::has_data) {
        all.push(Drawn::or(device, NO_SERIES));
    }
    all
}

fn percentiles(record: &Record, name: &str, stem: &str, layer: &str) -> Drawn {
    let title = format!("Latency over time: {name} (layer {layer})");
    let note = "Percentiles of each step; a percentile with fewer than ten samples beyond it is n/a and is not drawn.";
    let y = Axis::log("latency", "us");
    let id = format!("c-latency-{}", stem.replace('_', "-"));
    let mut chart = time::chart(record, &id, &title, y, note);
    const COLUMNS: [(&str, &str, Stroke, &str); 5] = [
        ("max", "max", Stroke::Dotted, VERMILION),
        ("p99", "p99", Stroke::Line, ORANGE),
        ("p90", "p90", Stroke::Dashed, GREEN),
        ("p50", "p50", Stroke::Line, SKY),
        ("avg", "mean", Stroke::Dotted, GREY),
    ];
    for (column, name, kind, color) in COLUMNS {
        if let Some(y) = time::column(record, &format!("{stem}_us_{column}")) {
            chart.traces.push(Trace::new(name, kind, color, y));
        }
    }
    let reason = if record.series.t_s.is_empty() { NO_SERIES } else { "no step has enough samples for a percentile" };
    Drawn::or(chart, reason)
}

/// Heat maps of the events that have percentiles over time, and of operations.
pub(super) fn heat(record: &Record) -> Vec<Drawn> {
    if record.series.heat.is_empty() {
        let reason = "the record has no distribution per step";
        return vec![Drawn::missing("Latency heat maps", reason)];
    }
    let wanted: Vec<&str> = leading(record).iter().map(|e| e.name.as_str()).collect();
    let shown = record
        .series
        .heat
        .iter()
        .filter(|row| row.layer != "engine" || wanted.is_empty() || wanted.contains(&row.name.as_str()));
    shown.map(heat_map).collect()
}

fn heat_map(row: &HeatRow) -> Drawn {
    let title = format!("Latency heat map: {} (layer {})", row.name, row.layer);
    let used = row.buckets.iter().flatten().filter(|(_, count)| *count > 0);
    let (mut low, mut high) = (u8::MAX, 0);
    for (bucket, _) in used {
        low = low.min(*bucket);
        high = high.max(*bucket);
    }
    if low > high {
        return Drawn::missing(&title, "no waits");
    }
    let mut counts = vec![vec![0; row.t_s.len()]; usize::from(high - low) + 1];
    for (column, buckets) in row.buckets.iter().enumerate().take(row.t_s.len()) {
        for (bucket, count) in buckets.iter().filter(|(_, count)| *count > 0) {
            counts[usize::from(bucket - low)][column] += count;
        }
    }
    Drawn::Chart(Box::new(Chart {
        id: format!("c-heat-{}-{}", row.layer, slug(&row.name).replace('_', "-")),
        note: "The number of waits per step and duration; the colour is the logarithm of the count. Two bands show \
            two storage tiers; a rising band shows a growing queue."
            .to_owned(),
        x: Axis::of("time after the gate", "s"),
        y: Axis::of("below", ""),
        heat: Some(Heat {
            columns: Rows::Numbers(row.t_s.clone()),
            rows: (low..=high).map(|bucket| bucket_name(usize::from(bucket))).collect(),
            values: counts
                .into_iter()
                .map(|row| row.into_iter().map(|count: u64| Some(count as f64)).collect())
                .collect(),
            ..Heat::default()
        }),
        title,
        ..Chart::default()
    }))
}

/// Buckets of an event: as imported, else the sum of the fine histogram.
pub(crate) fn buckets(event: &EventRow) -> Vec<u64> {
    if event.hist_us.is_empty() { event.hist_ns.pow2_us().to_vec() } else { event.hist_us.clone() }
}

/// Histograms of the leading events: where the waits are, and where the time is.
pub(super) fn histograms(record: &Record) -> Vec<Drawn> {
    let leading = leading(record);
    if leading.is_empty() {
        let reason = "the waits of no event were timed individually";
        return vec![Drawn::missing("Wait event histograms", reason)];
    }
    leading.into_iter().map(histogram).collect()
}

fn histogram(event: &EventRow) -> Drawn {
    let title = format!("Histogram: {} ({})", event.name, event.actor);
    let id = format!("c-hist-{}-{}", event.actor, slug(&event.name).replace('_', "-"));
    of_buckets(&id, &title, &buckets(event))
}

/// A name and its percentiles by name.
pub(super) type Percentiles = (String, Vec<(&'static str, Figure)>);

/// Percentiles of several things side by side.
pub fn percentile_chart(id: &str, title: &str, note: &str, all: &[Percentiles]) -> Drawn {
    let names = all.first().map_or(&[][..], |(_, figures)| figures);
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        note: note.to_owned(),
        x: Axis::of("percentile", ""),
        y: Axis::log("latency", "us"),
        rows: Rows::Names(names.iter().map(|(name, _)| (*name).to_owned()).collect()),
        ..Chart::default()
    };
    for (at, (name, figures)) in all.iter().enumerate() {
        let y = figures.iter().map(|(_, figure)| figure.value()).collect();
        chart.traces.push(Trace::new(name, Stroke::Joined, nth(at), y));
    }
    Drawn::or(chart, "no percentile is known")
}
