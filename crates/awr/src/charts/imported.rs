//! Charts of imports.

use super::{latency, time};
use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, VERMILION};
use assay_measure::plain::slug;
use assay_measure::record::Record;
use assay_measure::record::metric::of_key;
use std::collections::BTreeMap;

/// Colours of the series of one chart; there are no more of them in one.
const COLOURS: [&str; 7] = [BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY, GREY];

/// Every series that came with an import, those of one unit in one chart.
pub(super) fn steps(record: &Record) -> Vec<Drawn> {
    let mut by_unit: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for name in record.series.metrics.keys() {
        // A role that went both ways stands behind the unit.
        let bare = name.trim_end_matches("_tx_c").trim_end_matches("_rx_c");
        by_unit.entry(of_key(bare).0).or_default().push(name);
    }
    let mut all = Vec::new();
    for (unit, names) in by_unit {
        for (part, names) in names.chunks(COLOURS.len()).enumerate() {
            let axis = Axis::of(if unit.is_empty() { "value" } else { unit }, unit);
            let id = format!("c-steps-{}-{part}", slug(unit));
            let title = format!("Steps of the source, {}", if unit.is_empty() { "no unit" } else { unit });
            let note = "Values as the source printed them, step by step.";
            let mut chart = time::chart(record, &id, &title, axis, note);
            let columns = names.iter().zip(COLOURS);
            let columns: Vec<(&str, &str, Stroke, &'static str)> =
                columns.map(|(name, colour)| (*name, *name, Stroke::Line, colour)).collect();
            chart.traces = time::traces(record, &columns);
            all.push(Drawn::or(chart, time::NO_SERIES));
        }
    }
    all
}

/// Charts of an import: what its figures give.
pub(super) fn all(record: &Record) -> Vec<Drawn> {
    let mut all = vec![top_events(record)];
    let events =
        record.instance.events.iter().filter(|event| event.us_p50.value().is_some() || event.us_p99.value().is_some());
    let percentiles: Vec<_> = (events.take(8))
        .map(|event| {
            let figures = vec![
                ("p50", event.us_p50.clone()),
                ("p90", event.us_p90.clone()),
                ("p99", event.us_p99.clone()),
                ("p99.9", event.us_p999.clone()),
                ("max", event.us_max.clone()),
            ];
            (event.name.clone(), figures)
        })
        .collect();
    let operations: Vec<_> = (record.driver.ops.iter())
        .map(|op| {
            let latency = &op.response;
            let figures = vec![
                ("min", latency.us_min.clone()),
                ("p50", latency.us_p50.clone()),
                ("p90", latency.us_p90.clone()),
                ("p99", latency.us_p99.clone()),
                ("max", latency.us_max.clone()),
            ];
            (op.kind.clone(), figures)
        })
        .collect();
    if !operations.is_empty() {
        all.push(latency::percentile_chart(
            "c-op-percentiles",
            "Latency percentiles by operation",
            "As imported (layer client).",
            &operations,
        ));
    }
    all.push(latency::percentile_chart(
        "c-event-percentiles",
        "Latency percentiles by event",
        "As imported, or from the imported histogram.",
        &percentiles,
    ));
    all.extend(latency::histograms(record));
    all
}

fn top_events(record: &Record) -> Drawn {
    let mut rows: Vec<(String, f64)> = (record.instance.events.iter())
        .filter(|event| event.actor == "foreground" && event.class != "Idle")
        .filter_map(|event| Some((event.name.clone(), event.db_time_pct.value()?)))
        .take(10)
        .collect();
    let model = &record.instance.time_model;
    let cpu = model.db_time_us.value().filter(|all| *all > 0.0);
    if let Some((cpu, all)) = model.db_cpu_us.value().zip(cpu) {
        rows.push(("DB CPU".to_owned(), 100.0 * cpu / all));
    }
    rows.sort_by(|a, b| b.1.total_cmp(&a.1));
    let chart = Chart {
        id: "c-top-events".to_owned(),
        title: "Share of DB time".to_owned(),
        note: "Foreground events and DB CPU as imported (layer engine); CPU used inside waits counts twice, so the \
            shares can add up to more than 100 %."
            .to_owned(),
        x: Axis::of("event", ""),
        y: Axis::of("share of DB time", "%"),
        rows: Rows::Names(rows.iter().map(|(name, _)| name.clone()).collect()),
        traces: vec![Trace::new("% DB time", Stroke::Bar, BLUE, rows.iter().map(|(_, share)| Some(*share)).collect())],
        ..Chart::default()
    };
    Drawn::or(chart, "the import has no events with a share of DB time")
}
