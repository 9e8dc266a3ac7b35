//! All output formats of a record at once: the tests and the fuzzer use this to check that none fails.

use assay_measure::identity::violated_exact;
use assay_measure::record::Record;
use assay_report::advice;
use assay_report::compare::{self, Options, RunGroup};
use assay_report::cost::{self, Prices};
use assay_report::formats::{FORMATS, Input};
use assay_report::html::{self, Assets};
use assay_report::trend::{Trend, TrendPoint};

/// Draws a record in every format, alone, compared with `other`, priced and in a trend; returns the name and text of
/// each.
pub(crate) fn all(record: &Record, other: &Record) -> Vec<(&'static str, String)> {
    let assets = Assets::Shared("plot.js".to_owned());
    let mut faces: Vec<_> =
        FORMATS.iter().map(|format| (format.name, format.text(&Input::of(&[record])).unwrap_or_default())).collect();
    faces.push(("violated", format!("{:?}", violated_exact(record))));
    faces.push(("several", format!("{:?}", advice::several(&[record, other]))));
    faces.extend(compared(record, other, &assets));
    faces.extend(priced(record));
    faces.extend(trend(record, &assets));
    faces
}

fn compared(record: &Record, other: &Record, assets: &Assets) -> [(&'static str, String); 3] {
    let group = |name: &str, records| RunGroup { name: name.to_owned(), records };
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
    let records = [record];
    let priced = Input { cost: costs.first().cloned(), ..Input::of(&records) };
    vec![
        ("cost", cost::render(&each)),
        ("cost-json", cost::json(&each).unwrap_or_default()),
        ("priced-answer", FORMATS[0].text(&priced).unwrap_or_default()),
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
