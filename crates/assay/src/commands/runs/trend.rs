//! `runs trend`: one figure over the runs, and which runs lie outside its usual range.

use super::list::{chosen, field, number};
use crate::catalogue::{Catalogue, Entry, KeyInfo, Value};
use crate::cli::{TrendFormat, WhichArgs};
use crate::exit::{Code, Failure};
use crate::{plan_text, ui};
use assay_measure::record::Figure;
use assay_measure::sample::median;
use assay_report::html::{self, Assets, TrendPoint};
use serde_json::{Value as Json, json};
use std::collections::BTreeMap;

/// Runs before a run from which its usual range can be told.
const BEFORE_MIN: usize = 5;
/// Runs before it that are looked at: what was usual last year is not what is usual now.
const BEFORE_MAX: usize = 20;
/// Half the width of the usual range, in standard deviations estimated from the median distance to the median.
const WIDTH: f64 = 3.0;
/// Standard deviation over median distance to the median, of a normal distribution.
const NORMAL: f64 = 1.4826;
/// A range is never narrower than this share of the median: some figures repeat to the last digit.
const LEAST: f64 = 0.01;
/// Characters of the chart.
const CHART: usize = 41;

struct Point {
    run: Entry,
    value: Value,
    /// Usual range before this run, if enough runs were before it.
    usual: Option<(f64, f64)>,
}

impl Point {
    /// `above`, `below` or `within` its usual range.
    fn place(&self) -> &'static str {
        match (&self.value, self.usual) {
            (Ok(value), Some((low, _))) if *value < low => "below",
            (Ok(value), Some((_, high))) if *value > high => "above",
            (Ok(_), Some(_)) => "within",
            _ => "",
        }
    }

    /// Outside its usual range, in the figure's good or bad direction.
    fn word(&self, better: &str) -> &'static str {
        match (self.place(), better) {
            ("above", "higher") | ("below", "lower") => "better than usual",
            ("below", "higher") | ("above", "lower") => "worse than usual",
            ("above", _) => "higher than usual",
            ("below", _) => "lower than usual",
            _ => "",
        }
    }
}

pub(super) fn trend(key: &str, which: &WhichArgs, format: TrendFormat) -> Result<Code, Failure> {
    let catalogue = Catalogue::open(&which.dir)?;
    let (info, values) = catalogue.metric(key)?;
    let points = points(chosen(&catalogue, which)?, &values);
    if points.is_empty() {
        ui::say(&format!(
            "{}: no run that is as asked for has {key}",
            which.dir.display()
        ));
    }
    ui::product(&match format {
        TrendFormat::Text => text(&info, &points),
        TrendFormat::Json => plan_text::pretty(&json_of(&info, &points)),
        TrendFormat::Csv => csv(&info, &points),
        TrendFormat::Html => html(&info, &points),
    })?;
    Ok(Code::Good)
}

/// The runs that have the figure or a reason for none, each with what was usual before it.
fn points(runs: Vec<Entry>, values: &BTreeMap<i64, Value>) -> Vec<Point> {
    let mut before: Vec<f64> = Vec::new();
    let mut points = Vec::new();
    for run in runs {
        let Some(value) = values.get(&run.number).cloned() else {
            continue;
        };
        let usual = usual(&before[before.len().saturating_sub(BEFORE_MAX)..]);
        before.extend(&value);
        points.push(Point { run, value, usual });
    }
    points
}

/// Median and spread of the runs before: neither is moved by a single odd run.
fn usual(before: &[f64]) -> Option<(f64, f64)> {
    if before.len() < BEFORE_MIN {
        return None;
    }
    let middle = median(before)?;
    let off: Vec<f64> = before.iter().map(|value| (value - middle).abs()).collect();
    let half = (WIDTH * NORMAL * median(&off)?).max(LEAST * middle.abs());
    Some((middle - half, middle + half))
}

/// Least and most of the values and of what was usual: the ends of the chart.
fn range(points: &[Point]) -> Option<(f64, f64)> {
    let usual = |point: &Point| point.usual.map(|(low, high)| [low, high]);
    let ends = points.iter().filter_map(usual).flatten();
    let values = points
        .iter()
        .filter_map(|point| point.value.as_ref().ok().copied());
    let all: Vec<f64> = values.chain(ends).collect();
    let low = all.iter().copied().reduce(f64::min)?;
    let high = all.iter().copied().reduce(f64::max)?;
    Some((low, high))
}

fn title(info: &KeyInfo) -> String {
    let unit = match info.unit.as_str() {
        "" => String::new(),
        unit => format!(", {unit}"),
    };
    let better = match info.better.as_str() {
        "higher" => ", higher is better",
        "lower" => ", lower is better",
        _ => "",
    };
    format!("{}: {}{unit}{better}", info.key, info.name)
}

fn text(info: &KeyInfo, points: &[Point]) -> String {
    let mut out = format!("{}\n", title(info));
    let Some((low, high)) = range(points) else {
        return out + "n/a (no run has a value)\n";
    };
    let label_width = points
        .iter()
        .map(|p| p.run.label.chars().count())
        .max()
        .unwrap_or(0)
        .clamp(5, 24);
    out.push_str(&format!(
        "\n{:<19}  {:<8}  {:<label_width$}  {:>14}  {:<9}  {} .. {}\n",
        "STARTED (UTC)",
        "ID",
        "LABEL",
        "VALUE",
        "CHANGE",
        number(low),
        number(high),
    ));
    let mut before: Option<f64> = None;
    for point in points {
        let label: String = point.run.label.chars().take(label_width).collect();
        let (value, change, chart) = match &point.value {
            Ok(value) => {
                let change = before.filter(|before| *before != 0.0);
                let change = change.map_or(String::new(), |b| {
                    format!("{:+.1} %", 100.0 * (value - b) / b.abs())
                });
                before = Some(*value);
                (number(*value), change, chart(point, *value, low, high))
            }
            Err(reason) => ("n/a".to_owned(), String::new(), format!("({reason})")),
        };
        let line = format!(
            "{:<19}  {:<8}  {label:<label_width$}  {value:>14}  {change:<9}  {chart}  {}",
            point.run.started,
            point.run.id,
            point.word(&info.better)
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out.push('\n');
    out.push_str(&closing(info, points));
    out
}

/// The value's place between the least and the most, and the usual range around it.
fn chart(point: &Point, value: f64, low: f64, high: f64) -> String {
    let place = |value: f64| match high > low {
        true => ((value - low) / (high - low) * (CHART - 1) as f64)
            .round()
            .clamp(0.0, (CHART - 1) as f64) as usize,
        false => CHART / 2,
    };
    let mut cells = vec![' '; CHART];
    if let Some((from, to)) = point.usual {
        cells[place(from)..=place(to)].fill('-');
    }
    cells[place(value)] = '*';
    format!("|{}|", cells.into_iter().collect::<String>())
}

fn closing(info: &KeyInfo, points: &[Point]) -> String {
    let values: Vec<f64> = points
        .iter()
        .filter_map(|point| point.value.as_ref().ok().copied())
        .collect();
    let judged = points
        .iter()
        .filter(|point| !point.place().is_empty())
        .count();
    let outside = points
        .iter()
        .filter(|point| !point.word(&info.better).is_empty())
        .count();
    let middle = median(&values).map_or_else(|| "n/a".to_owned(), number);
    let mut out = format!(
        "{} values, median {middle} {}. The chart goes from the least to the most of what is in it.\n",
        values.len(),
        info.unit
    );
    out.push_str(&match judged {
        0 => format!("No usual range: it takes {BEFORE_MIN} runs before a run.\n"),
        _ => format!(
            "{outside} of {judged} runs lie outside their usual range (-): the median of the {BEFORE_MIN} to {BEFORE_MAX} runs before, give or take \
             3 x 1.4826 x their median distance from it, 1 % at least. Runs are compared as they are: whether platform and settings were the same, `assay compare` says.\n"
        ),
    });
    out
}

fn json_of(info: &KeyInfo, points: &[Point]) -> Json {
    let rows = points.iter().map(|point| {
        let value = match &point.value {
            Ok(value) => json!(value),
            Err(reason) => json!({ "na": reason }),
        };
        json!({
            "id": point.run.id,
            "started": point.run.started,
            "label": point.run.label,
            "tags": point.run.tags,
            "value": value,
            "usual_from": point.usual.map(|usual| usual.0),
            "usual_to": point.usual.map(|usual| usual.1),
            "place": point.place(),
        })
    });
    json!({
        "metric": info.key,
        "name": info.name,
        "unit": info.unit,
        "better": info.better,
        "runs": rows.collect::<Vec<_>>(),
    })
}

fn csv(info: &KeyInfo, points: &[Point]) -> String {
    let mut out = format!(
        "id,started,label,tags,{},usual_from,usual_to,place\n",
        field(&info.key)
    );
    for point in points {
        let decimal =
            |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
        let cells = [
            field(&point.run.id),
            field(&point.run.started),
            field(&point.run.label),
            field(&point.run.tags.join(";")),
            decimal(point.value.as_ref().ok().copied()),
            decimal(point.usual.map(|usual| usual.0)),
            decimal(point.usual.map(|usual| usual.1)),
            field(point.place()),
        ];
        out.push_str(&cells.join(","));
        out.push('\n');
    }
    out
}

fn html(info: &KeyInfo, points: &[Point]) -> String {
    let point = |point: &Point| TrendPoint {
        run: point.run.id.clone(),
        started: format!("{}Z", point.run.started),
        label: point.run.label.clone(),
        value: match &point.value {
            Ok(value) => Figure::decimal(*value),
            Err(reason) => Figure::na(reason),
        },
        verdict: point.run.verdict.clone(),
        tags: point.run.tags.clone(),
    };
    let points: Vec<TrendPoint> = points.iter().map(point).collect();
    html::trend(&title(info), &info.unit, &points, &Assets::Embedded)
}
