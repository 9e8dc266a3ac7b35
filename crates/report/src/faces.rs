//! Every face of a record at once, for whoever wants to know that none of them fails: the tests and the fuzzer.

use crate::compare::{self, Group, Options};
use crate::cost::{self, Prices};
use crate::html::{self, Assets};
use crate::trend::{Trend, TrendPoint};
use crate::{advice, answer, brief, csv, export, json, summary, text};
use assay_measure::identity::violated_exact;
use assay_measure::record::Record;

/// Draws every face of a record, alone, compared with `other`, priced and followed; the name and the text of each.
#[must_use]
pub fn all(record: &Record, other: &Record) -> Vec<(&'static str, String)> {
    let assets = Assets::Shared("plot.js".to_owned());
    let mut faces = vec![
        ("text", text::render(record)),
        ("html", html::page(record, &assets)),
        ("json", json::write(record).unwrap_or_default()),
        ("csv", csv::series(record)),
        ("csv-summary", export::csv_summary(record)),
        ("openmetrics", export::summary(record)),
        ("openmetrics-series", export::series(record).unwrap_or_default()),
        ("summary", summary::line(record)),
        ("answer", answer::of(&[record], &answer::Context::default()).plain()),
        ("brief", brief::render(&[record], None)),
        ("violated", format!("{:?}", violated_exact(record))),
        ("several", format!("{:?}", advice::several(&[record, other]))),
    ];
    faces.extend(compared(record, other, &assets));
    faces.extend(priced(record));
    faces.extend(trend(record, &assets));
    faces
}

fn compared(record: &Record, other: &Record, assets: &Assets) -> [(&'static str, String); 3] {
    let group = |name: &str, records| Group { name: name.to_owned(), records };
    let groups = [group("a", vec![other]), group("b", vec![record, other]), group("c", vec![record])];
    let comparison = compare::of(&groups, &Options::default());
    [
        ("compare", compare::render(&comparison, true)),
        ("compare-json", serde_json::to_string(&comparison).unwrap_or_default()),
        ("compare-html", html::comparison(&comparison, assets)),
    ]
}

fn priced(record: &Record) -> Vec<(&'static str, String)> {
    let prices: Option<Prices> = cost::parse("example", cost::EXAMPLE).ok();
    let costs = prices.iter().flat_map(|prices| {
        let named = prices.platforms.iter().map(|platform| platform.name.as_str());
        named.filter_map(|name| cost::of(prices, Some(name), record).ok())
    });
    let costs: Vec<cost::Cost> = costs.collect();
    let each: Vec<&cost::Cost> = costs.iter().collect();
    vec![
        ("cost", cost::render(&each)),
        ("cost-json", cost::json(&each).unwrap_or_default()),
        ("priced-brief", brief::render(&[record], each.first().copied())),
    ]
}

fn trend(record: &Record, assets: &Assets) -> [(&'static str, String); 2] {
    let points = record.metrics.iter().map(|metric| TrendPoint {
        run: metric.full_key(),
        value: metric.value.clone(),
        ..TrendPoint::default()
    });
    let trend =
        Trend { key: record.run.id.clone(), unit: "1/s".to_owned(), points: points.collect(), ..Trend::default() };
    let trend = trend.with_usual();
    [("trend", trend.render()), ("trend-html", html::trend(&trend, assets))]
}
