//! The page of a comparison: what was found first, then ratios with their intervals, then histograms over each other.

use super::page::{Finding as Found, Item, Page, Tile, View, advice, named, view};
use super::script::Assets;
use super::table::{Cell as Shown, Table};
use crate::compare::{Comparison, Finding, Pair, Row, SharedHistogram, Verdict};
use assay_measure::chart::buckets::{bucket_name, used};
use assay_measure::chart::{Axis, Chart, Drawn, Mark, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, nth};
use assay_measure::record::Figure;
use assay_measure::units::significant;

/// Sections of the rows, as the rows name them, with their headings.
const SECTIONS: [(&str, &str); 10] = [
    ("primary", "Declared Figures"),
    ("cost", "Cost"),
    ("load profile", "Load Profile"),
    ("operations", "Operations"),
    ("events", "Wait Events"),
    ("io profile", "IO Profile"),
    ("storage", "Storage"),
    ("imported", "Imported Figures"),
    ("efficiency", "Instance Efficiency"),
    ("host", "Host CPU"),
];

/// The page of a comparison.
#[must_use]
pub fn comparison(comparison: &Comparison, assets: &Assets) -> String {
    let names: Vec<String> = (comparison.groups.iter())
        .map(|group| format!("{} = {}", group.letter, group.name))
        .collect();
    let rows = || comparison.rows.iter();
    let shown = rows().filter(|row| row.is_primary);
    let shown = shown
        .flat_map(|row| &row.against)
        .filter(|a| a.verdict.is_shown())
        .count();
    let tiles = vec![
        tile(
            "Declared figures",
            rows().filter(|row| row.is_primary).count(),
        ),
        tile("Differences shown among them", shown),
    ];
    let statistics: Vec<&Row> = rows().filter(|row| row.section == "statistics").collect();
    let mut tables = vec![groups(comparison), checks(comparison)];
    for (section, title) in SECTIONS {
        let of: Vec<&Row> = rows().filter(|row| row.section == section).collect();
        if !of.is_empty() {
            tables.push(figures(comparison, title, &of));
        }
    }
    tables.push(figures(
        comparison,
        "Instance Activity Statistics",
        &statistics,
    ));
    let page = Page {
        title: format!("Comparison: {}", names.join(", ")),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        facts: facts(comparison),
        verdict: comparison.conclusion.first().cloned().unwrap_or_default(),
        verdict_class: match comparison.pairs.iter().any(|pair| pair.forbids_faster) {
            true => "warn",
            false => "good",
        },
        findings: findings(comparison),
        tiles,
        charts: charts(comparison),
        tables: named(tables),
        text: crate::compare::render(comparison),
        ..Page::default()
    };
    page.render(assets)
}

fn tile(name: &str, count: usize) -> Tile {
    Tile {
        name: name.to_owned(),
        value: count.to_string(),
        unit: String::new(),
    }
}

fn facts(comparison: &Comparison) -> Vec<(String, String)> {
    let of = comparison.groups.iter().map(|group| {
        let runs: Vec<&str> = group.runs.iter().map(|run| run.id.as_str()).collect();
        let kind = group.runs.first().map_or(String::new(), |run| {
            format!("{} on {}", run.workload, run.engine)
        });
        let name = format!("{} {}", group.letter, group.name);
        (
            name,
            format!("{kind}; {} run(s): {}", runs.len(), runs.join(", ")),
        )
    });
    of.collect()
}

/// Doubts and conditions before the conclusion, as in the text.
fn findings(comparison: &Comparison) -> Vec<Found> {
    let mut all = Vec::new();
    let items = comparison.integrity.iter().map(|doubt| Item {
        class: "warn",
        tag: format!("{} {}", doubt.group, doubt.run),
        text: doubt.text.clone(),
    });
    all.push(Found {
        title: "Integrity".to_owned(),
        lead: match comparison.integrity.is_empty() {
            true => "Every run is whole and agrees with itself.".to_owned(),
            false => String::new(),
        },
        items: items.collect(),
    });
    for pair in &comparison.pairs {
        all.push(conditions(pair));
    }
    if !comparison.advice.is_empty() {
        all.push(Found {
            title: "Advice".to_owned(),
            lead: String::new(),
            items: comparison.advice.iter().map(advice).collect(),
        });
    }
    let sentences = comparison.conclusion.iter().map(|text| Item {
        text: text.clone(),
        ..Item::default()
    });
    all.push(Found {
        title: "Conclusion".to_owned(),
        lead: String::new(),
        items: sentences.collect(),
    });
    all
}

fn conditions(pair: &Pair) -> Found {
    let differs = pair
        .checks
        .iter()
        .filter(|check| check.finding != Finding::Same);
    let known = differs.filter(|check| check.finding != Finding::Unknown);
    let items = known.map(|check| Item {
        class: if check.finding == Finding::Forbids {
            "bad"
        } else {
            ""
        },
        tag: format!("{} {}", check.what, check.finding.word()),
        text: format!(
            "{}: {}; {}: {}",
            pair.baseline, check.baseline, pair.candidate, check.candidate
        ),
    });
    let items: Vec<Item> = items.collect();
    Found {
        title: format!("Conditions of {} against {}", pair.candidate, pair.baseline),
        lead: match items.is_empty() {
            true => format!("No condition that is known differs. {}", pair.method_text),
            false => pair.method_text.clone(),
        },
        items,
    }
}

fn charts(comparison: &Comparison) -> Vec<View> {
    let mut all = Vec::new();
    for nth in 0..comparison.pairs.len() {
        all.push(view(forest(comparison, nth)));
    }
    for histogram in &comparison.histograms {
        for of_time in [false, true] {
            all.push(view(overlaid(comparison, histogram, of_time)));
        }
    }
    if let Some(drawn) = cost(comparison) {
        all.push(view(drawn));
    }
    all
}

/// The declared figures' ratios with their intervals; 1 is no difference.
fn forest(comparison: &Comparison, nth: usize) -> Drawn {
    let pair = &comparison.pairs[nth];
    let title = format!("Ratios of {} to {}", pair.candidate, pair.baseline);
    let rows: Vec<&Row> = (comparison.rows.iter())
        .filter(|row| row.is_primary)
        .filter(|row| {
            row.against
                .get(nth)
                .is_some_and(|a| a.ratio.value().is_some())
        })
        .collect();
    let mut chart = Chart {
        id: format!("c-ratios-{}", nth + 1),
        title: title.clone(),
        note: "Ratio of the declared figures with its 95 % interval; an interval that holds 1 shows no difference. A grey point has no interval: nothing is known of its noise.".to_owned(),
        x: Axis::of("figure", ""),
        y: Axis::log("ratio", ""),
        rows: Rows::Names(rows.iter().map(|row| row.name.clone()).collect()),
        limits: vec![Mark { at: 1.0, text: "no difference".to_owned() }],
        ..Chart::default()
    };
    let against = |row: &&Row| row.against[nth].clone();
    let with = |row: &&Row| against(row).low_ratio.value().is_some();
    let y = |keep: &dyn Fn(&&Row) -> bool| -> Vec<Option<f64>> {
        let value = |row| {
            if keep(row) {
                against(row).ratio.value()
            } else {
                None
            }
        };
        rows.iter().map(value).collect()
    };
    let off = |end: &dyn Fn(&&Row) -> Figure| -> Vec<f64> {
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
    let count = |shares: &[f64]| {
        shares
            .iter()
            .map(|share| u64::from(*share > 0.0))
            .collect::<Vec<_>>()
    };
    let bounds = histogram
        .groups
        .iter()
        .filter_map(|group| used(&count(&group.waits_pct)));
    let bounds = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    let Some((first, last)) = bounds else {
        return Drawn::missing(&title, "no waits");
    };
    let slug = assay_measure::plain::slug(&histogram.event).replace('_', "-");
    let mut chart = Chart {
        id: format!("c-hist-{what}-{slug}"),
        title,
        note: "Each bucket holds waits below its name and at least half of it; for the share of time every wait is taken for the middle of its bucket.".to_owned(),
        x: Axis::of("below", ""),
        y: Axis::of(&format!("share of {what}"), "%"),
        rows: Rows::Names((first..=last).map(bucket_name).collect()),
        ..Chart::default()
    };
    for (at, (group, shares)) in comparison.groups.iter().zip(&histogram.groups).enumerate() {
        let all = if of_time {
            &shares.time_pct
        } else {
            &shares.waits_pct
        };
        let y = (first..=last)
            .map(|bucket| all.get(bucket).copied())
            .collect();
        let name = format!("{} {}", group.letter, group.name);
        chart
            .traces
            .push(Trace::new(&name, Stroke::Bar, nth(at), y));
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
        note: "Monthly total of the price file (its cost per 1,000 read IOPS times those measured) against the read requests measured.".to_owned(),
        x: Axis::of("read requests", "1/s"),
        y: Axis::of("cost", "a month, in the currency of the prices"),
        ..Chart::default()
    };
    let cells = comparison
        .groups
        .iter()
        .zip(cost.cells.iter().zip(&reads.cells))
        .enumerate();
    for (at, (group, (price, rate))) in cells {
        if let (Some(price), Some(rate)) = (price.value.value(), rate.value.value()) {
            let name = format!("{} {}", group.letter, group.name);
            chart.traces.push(
                Trace::new(
                    &name,
                    Stroke::Points,
                    nth(at),
                    vec![Some(price * rate / 1000.0)],
                )
                .at(vec![rate]),
            );
        }
    }
    Some(Drawn::or(chart, "a side has no price or no reads"))
}

fn groups(comparison: &Comparison) -> Table {
    let mut rows = Vec::new();
    for group in &comparison.groups {
        for run in &group.runs {
            rows.push(vec![
                Shown::words(format!("{} {}", group.letter, group.name)),
                Shown::words(&run.id),
                Shown::words(&run.label),
                Shown::words(&run.workload),
                Shown::words(&run.engine),
                Shown::words(super::facts::wall(&run.started)),
                Shown::count(run.sessions),
                Shown::figure(&run.elapsed_s, 1),
                Shown::words(&run.verdict),
            ]);
        }
    }
    let columns = [
        "group",
        "run",
        "label",
        "workload",
        "target",
        "started",
        "sessions",
        "window (s)",
        "verdict",
    ];
    Table::new(
        "Runs",
        "What is compared; the first group is the baseline",
        &columns,
    )
    .with(rows, "none")
}

fn checks(comparison: &Comparison) -> Table {
    let mut rows = Vec::new();
    for pair in &comparison.pairs {
        for check in &pair.checks {
            rows.push(vec![
                Shown::words(&check.what),
                Shown::words(format!("{}: {}", pair.baseline, check.baseline)),
                Shown::words(format!("{}: {}", pair.candidate, check.candidate)),
                Shown::words(check.finding.word()),
            ]);
        }
    }
    let columns = ["condition", "baseline", "compared", "finding"];
    Table::new("Conditions", "What has to be alike", &columns).with(rows, "none")
}

/// Values of every group, then ratio, interval and verdict of every pair.
fn figures(comparison: &Comparison, title: &str, rows: &[&Row]) -> Table {
    let mut columns = vec!["figure".to_owned(), "unit".to_owned()];
    for group in &comparison.groups {
        columns.push(group.letter.clone());
        columns.push(format!("{} per transaction", group.letter));
        columns.push(format!("{} per operation", group.letter));
    }
    for pair in &comparison.pairs {
        let name = format!("{}/{}", pair.candidate, pair.baseline);
        columns.push(name.clone());
        columns.push(format!("{name}, 95 % interval"));
        columns.push(format!("{name}, verdict"));
    }
    let rows = rows.iter().map(|row| {
        let mut cells = vec![Shown::words(&row.name), Shown::words(&row.unit)];
        for cell in &row.cells {
            cells.push(Shown::exact(&cell.value));
            for per in [&cell.per_tx, &cell.per_op] {
                cells.push(match row.is_counter {
                    true => Shown::exact(per),
                    false => Shown::words(""),
                });
            }
        }
        for against in &row.against {
            cells.push(Shown::figure(&against.ratio, 3));
            cells.push(
                match (against.low_ratio.value(), against.high_ratio.value()) {
                    (Some(low), Some(high)) => Shown::words(format!(
                        "{} to {}",
                        significant(low, 4),
                        significant(high, 4)
                    )),
                    _ => Shown::words(""),
                },
            );
            let sentence = match against.verdict {
                Verdict::Na => "n/a".to_owned(),
                _ => against.sentence.clone(),
            };
            cells.push(Shown::words(sentence));
        }
        cells
    });
    Table {
        title: title.to_owned(),
        caption: format!("{title}: per second for counters, else as it is"),
        columns,
        rows: rows.collect(),
        reason: "neither side has any".to_owned(),
    }
}
