//! The charts of a comparison, for a page: ratios with their intervals, histograms over each other, cost.

use super::model::{ComparedRow, Comparison, SharedHistogram};
use assay_measure::chart::buckets::{bucket_name, used};
use assay_measure::chart::{Axis, Chart, ChartMark, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, nth};
use assay_measure::record::Figure;

/// Every chart there is to draw.
pub(crate) fn charts(comparison: &Comparison) -> Vec<Drawn> {
    let pairs = 0..comparison.pairs.len();
    let mut all: Vec<Drawn> = pairs.map(|nth| forest(comparison, nth)).collect();
    for histogram in &comparison.histograms {
        all.extend([false, true].map(|of_time| overlaid(comparison, histogram, of_time)));
    }
    all.extend(cost(comparison));
    all
}

/// The declared figures' ratios with their intervals; 1 is no difference.
fn forest(comparison: &Comparison, nth: usize) -> Drawn {
    let pair = &comparison.pairs[nth];
    let title = format!("Ratios of {} to {}", pair.candidate, pair.baseline);
    let rows: Vec<&ComparedRow> = (comparison.rows.iter())
        .filter(|row| row.is_primary)
        .filter(|row| row.against.get(nth).is_some_and(|a| a.ratio.value().is_some()))
        .collect();
    let mut chart = Chart {
        id: format!("c-ratios-{}", nth + 1),
        title: title.clone(),
        note: "Ratio of the declared figures with its 95 % interval; an interval that contains 1 shows no \
            difference. A grey point has no interval: its noise is unknown."
            .to_owned(),
        x: Axis::of("figure", ""),
        y: Axis::log("ratio", ""),
        rows: Rows::Names(rows.iter().map(|row| row.name.clone()).collect()),
        limits: vec![ChartMark { at: 1.0, text: "no difference".to_owned() }],
        ..Chart::default()
    };
    let against = |row: &&ComparedRow| row.against[nth].clone();
    let with = |row: &&ComparedRow| against(row).low_ratio.value().is_some();
    let y = |keep: &dyn Fn(&&ComparedRow) -> bool| -> Vec<Option<f64>> {
        let value = |row| {
            if keep(row) { against(row).ratio.value() } else { None }
        };
        rows.iter().map(value).collect()
    };
    let off = |end: &dyn Fn(&&ComparedRow) -> Figure| -> Vec<f64> {
        let off = |row| Some((against(row).ratio.value()? - end(row).value()?).abs());
        rows.iter().map(|row| off(row).unwrap_or(0.0)).collect()
    };
    let low = off(&|row| against(row).low_ratio);
    let high = off(&|row| against(row).high_ratio);
    let mut sure = Trace::new("ratio, 95 % interval", Stroke::Points, BLUE, y(&with));
    sure.error = Some((low, high));
    let unsure = Trace::new("ratio alone", Stroke::Points, GREY, y(&|row| !with(row)));
    chart.traces = vec![sure, unsure];
    Drawn::or(chart, "no declared figure has a ratio")
}

fn overlaid(comparison: &Comparison, histogram: &SharedHistogram, of_time: bool) -> Drawn {
    let what = if of_time { "time" } else { "waits" };
    let title = format!("Histogram in % of {what}: {}", histogram.event);
    let count = |shares: &[f64]| shares.iter().map(|share| u64::from(*share > 0.0)).collect::<Vec<_>>();
    let bounds = histogram.groups.iter().filter_map(|group| used(&count(&group.waits_pct)));
    let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((first, last)) = bounds else {
        return Drawn::missing(&title, "no waits");
    };
    let slug = assay_measure::plain::slug(&histogram.event).replace('_', "-");
    let mut chart = Chart {
        id: format!("c-hist-{what}-{slug}"),
        title,
        note: "The name of a bucket is its upper bound; its lower bound is half of that. The share of time assumes \
            that every wait lies in the middle of its bucket."
            .to_owned(),
        x: Axis::of("below", ""),
        y: Axis::of(&format!("share of {what}"), "%"),
        rows: Rows::Names((first..=last).map(bucket_name).collect()),
        ..Chart::default()
    };
    for (at, (group, shares)) in comparison.groups.iter().zip(&histogram.groups).enumerate() {
        let all = if of_time { &shares.time_pct } else { &shares.waits_pct };
        let y = (first..=last).map(|bucket| all.get(bucket).copied()).collect();
        let name = format!("{} {}", group.letter, group.name);
        chart.traces.push(Trace::new(&name, Stroke::Bar, nth(at), y));
    }
    Drawn::or(chart, "no waits")
}

/// What each group costs a month against what it delivers.
fn cost(comparison: &Comparison) -> Option<Drawn> {
    let cost = comparison.row("cost_per_1000_read_iops_month")?;
    let reads = comparison.row("reads_per_s")?;
    let mut chart = Chart {
        id: "c-cost".to_owned(),
        title: "Cost against delivered read IOPS".to_owned(),
        note: "Monthly total from the price file (cost per 1,000 read IOPS times the measured read IOPS) against the \
            measured read requests."
            .to_owned(),
        x: Axis::of("read requests", "1/s"),
        y: Axis::of("cost", "per month, in the currency of the price file"),
        ..Chart::default()
    };
    let cells = comparison.groups.iter().zip(cost.cells.iter().zip(&reads.cells)).enumerate();
    for (at, (group, (price, rate))) in cells {
        if let (Some(price), Some(rate)) = (price.value.value(), rate.value.value()) {
            let name = format!("{} {}", group.letter, group.name);
            chart
                .traces
                .push(Trace::new(&name, Stroke::Points, nth(at), vec![Some(price * rate / 1000.0)]).at(vec![rate]));
        }
    }
    Some(Drawn::or(chart, "one side has no price or no reads"))
}
