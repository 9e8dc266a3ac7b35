//! One figure over runs: which of them lie outside its usual range. Text, page, JSON and CSV show it.

use assay_measure::chart::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use assay_measure::palette::{BLUE, GREY, VERMILION};
use assay_measure::plain::csv_field;
use assay_measure::record::Figure;
use assay_measure::section::{Align, Cell, Sections, Weight};
use assay_measure::statistics::median;
use assay_measure::units::{six, with_unit};
use serde_json::{Value as Json, json};

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
/// Characters of the drawing.
const DRAWN: usize = 41;

/// A figure over runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trend {
    /// Its stable key.
    pub key: String,
    /// Its name for people.
    pub name: String,
    /// Its unit.
    pub unit: String,
    /// `higher`, `lower` or `neither`.
    pub better: String,
    /// The runs that have it or a reason for none, oldest first.
    pub points: Vec<TrendPoint>,
}

/// One run of a trend.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TrendPoint {
    /// Short id of the run.
    pub run: String,
    /// Wall time of its start, UTC; empty if not known.
    pub started: String,
    /// Its label; empty if it has none.
    pub label: String,
    /// The figure, in the trend's unit.
    pub value: Figure,
    /// `complete`, `incomplete` or `invalid`.
    pub verdict: String,
    /// Tags, in words.
    pub tags: Vec<String>,
    /// Usual range before this run, in the trend's unit; filled by [`Trend::with_usual`].
    pub usual: Option<(f64, f64)>,
}

impl TrendPoint {
    /// `above`, `below` or `within` its usual range; empty if there is none.
    fn place(&self) -> &'static str {
        match (self.value.value(), self.usual) {
            (Some(value), Some((low, _))) if value < low => "below",
            (Some(value), Some((_, high))) if value > high => "above",
            (Some(_), Some(_)) => "within",
            _ => "",
        }
    }

    /// Outside its usual range, in the figure's good or bad direction; else empty.
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

impl Trend {
    /// The trend, with the usual range before each of its runs.
    #[must_use]
    pub fn with_usual(mut self) -> Self {
        let mut before: Vec<f64> = Vec::new();
        for point in &mut self.points {
            point.usual = usual(&before[before.len().saturating_sub(BEFORE_MAX)..]);
            before.extend(point.value.value());
        }
        self
    }

    /// Key, name, unit and better way.
    pub(crate) fn title(&self) -> String {
        let unit = match self.unit.as_str() {
            "" => String::new(),
            unit => format!(", {unit}"),
        };
        let better = match self.better.as_str() {
            "higher" => ", higher is better",
            "lower" => ", lower is better",
            _ => "",
        };
        format!("{}: {}{unit}{better}", self.key, self.name)
    }

    /// As text, for people.
    #[must_use]
    pub fn render(&self) -> String {
        crate::text::write(&self.sections())
    }

    fn values(&self) -> Vec<f64> {
        let values = self.points.iter().filter_map(|point| point.value.value());
        values.collect()
    }

    /// What there is to say, for text and page.
    pub(crate) fn sections(&self) -> Sections {
        let mut page = Sections::default();
        page.line(&self.title());
        page.judgement("Usual Range");
        self.found(&mut page);
        if !self.points.is_empty() {
            page.heading("Runs");
            self.runs(&mut page);
        }
        page
    }

    fn found(&self, page: &mut Sections) {
        let values = self.values();
        let told = |value: f64| with_unit(value, &self.unit);
        let ends = values.iter().copied().reduce(f64::min);
        let ends = ends.zip(values.iter().copied().reduce(f64::max));
        let Some(((least, most), middle)) = ends.zip(median(&values)) else {
            page.line("n/a (no run has a value)");
            return;
        };
        let text = format!("{} values, median {}, from {} to {}.", values.len(), told(middle), told(least), told(most));
        page.wrapped("", &text);
        let judged = self.points.iter().filter(|point| !point.place().is_empty());
        let judged: Vec<&TrendPoint> = judged.collect();
        let Some((newest, (low, high))) = judged.last().and_then(|p| Some((p, p.usual?))) else {
            let text = format!("No usual range: a run needs at least {BEFORE_MIN} runs before it.");
            page.line(&text);
            return;
        };
        let (weight, word) = match newest.word(&self.better) {
            "" => (Weight::Plain, "within its usual range"),
            word @ "worse than usual" => (Weight::Warning, word),
            word => (Weight::Plain, word),
        };
        let value = newest.value.value().map_or_else(String::new, told);
        let text = format!(
            "The newest run with a value, {}, is {word}: {value}; the usual range is {} to {}.",
            newest.run,
            told(low),
            told(high)
        );
        page.finding(weight, "", &text);
        let outside = judged.iter().filter(|p| p.place() != "within").count();
        let text = format!(
            "{outside} of {} runs lie outside their usual range: the median of the {BEFORE_MIN} to {BEFORE_MAX} runs \
             before, plus or minus {WIDTH} x {NORMAL} x their median distance from it (at least {} %). The trend does \
             not check the platform or the settings; `assay compare` shows whether they were the same.",
            judged.len(),
            100.0 * LEAST
        );
        page.wrapped("", &text);
    }

    /// A line for each run; columns that would be empty are left out.
    fn runs(&self, page: &mut Sections) {
        let has = |of: fn(&TrendPoint) -> bool| self.points.iter().any(of);
        let usual = self.points.iter().filter_map(|point| point.usual);
        let ends = usual.flat_map(|(low, high)| [low, high]);
        let all: Vec<f64> = ends.chain(self.values()).collect();
        let low = all.iter().copied().fold(f64::INFINITY, f64::min);
        let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let drawn = format!("{} .. {}, usual -", six(low), six(high));
        let columns = [
            (true, ("Started (UTC)", Align::Left)),
            (true, ("Run", Align::Left)),
            (has(|p| !p.label.is_empty()), ("Label", Align::Left)),
            (true, ("Value", Align::Right)),
            (true, ("Change", Align::Right)),
            (has(|p| p.usual.is_some()), ("Usual", Align::Left)),
            (!all.is_empty(), (drawn.as_str(), Align::Drawn)),
            (true, ("Found", Align::Left)),
            (has(|p| p.verdict != "complete"), ("State", Align::Left)),
            (has(|p| !p.tags.is_empty()), ("Tags", Align::Left)),
        ];
        let mut before: Option<f64> = None;
        let row = |point: &TrendPoint| {
            let value = point.value.value();
            let reason = point.value.reason().unwrap_or_default();
            let change = value.zip(before.filter(|before| *before != 0.0));
            before = value.or(before);
            let cells: [Cell; 10] = [
                point.started.clone().into(),
                point.run.clone().into(),
                point.label.clone().into(),
                Cell { text: value.map_or("n/a".to_owned(), six), reason: reason.to_owned() },
                change
                    .map_or_else(String::new, |(to, from)| format!("{:+.1} %", 100.0 * (to - from) / from.abs()))
                    .into(),
                point.usual.map_or_else(String::new, |(low, high)| format!("{} to {}", six(low), six(high))).into(),
                value.map_or_else(String::new, |value| drawing(point, value, low, high)).into(),
                match value {
                    Some(_) => point.word(&self.better).into(),
                    None => format!("({reason})").into(),
                },
                point.verdict.clone().into(),
                point.tags.join(", ").into(),
            ];
            let kept = cells.into_iter().zip(&columns);
            kept.filter(|(_, (is_there, _))| *is_there).map(|(cell, _)| cell).collect()
        };
        let rows = self.points.iter().map(row).collect();
        let titles = columns.iter().filter(|(is_there, _)| *is_there);
        let titles: Vec<(&str, Align)> = titles.map(|(_, title)| *title).collect();
        page.fitted(&titles, rows);
    }

    /// For programs.
    #[must_use]
    pub fn json(&self) -> Json {
        let rows = self.points.iter().map(|point| {
            json!({
                "id": point.run,
                "started": point.started,
                "label": point.label,
                "tags": point.tags,
                "value": point.value,
                "usual_from": point.usual.map(|usual| usual.0),
                "usual_to": point.usual.map(|usual| usual.1),
                "place": point.place(),
            })
        });
        json!({
            "metric": self.key,
            "name": self.name,
            "unit": self.unit,
            "better": self.better,
            "runs": rows.collect::<Vec<_>>(),
        })
    }

    /// A line for each run; unknown values are empty.
    #[must_use]
    pub fn csv(&self) -> String {
        let mut out = format!("id,started,label,tags,{},usual_from,usual_to,place\n", csv_field(&self.key));
        for point in &self.points {
            let decimal = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
            let cells = [
                csv_field(&point.run),
                csv_field(&point.started),
                csv_field(&point.label),
                csv_field(&point.tags.join(";")),
                decimal(point.value.value()),
                decimal(point.usual.map(|usual| usual.0)),
                decimal(point.usual.map(|usual| usual.1)),
                csv_field(point.place()),
            ];
            out.push_str(&cells.join(","));
            out.push('\n');
        }
        out
    }

    /// The figure of each run, with what was usual before it.
    pub(crate) fn chart(&self) -> Drawn {
        let points = &self.points;
        let complete = |point: &TrendPoint| point.verdict == "complete";
        let column = |keep: &dyn Fn(&TrendPoint) -> bool| {
            let value = |point: &TrendPoint| point.value.value().filter(|_| keep(point));
            points.iter().map(value).collect()
        };
        let mut chart = Chart {
            id: "c-trend".to_owned(),
            title: self.title(),
            note: "One point for each run, at its start time; incomplete runs have their own mark. The dashed lines \
                enclose the usual range before each run."
                .to_owned(),
            x: Axis::of("run", ""),
            y: Axis::of(&self.name, &self.unit),
            rows: Rows::Names(points.iter().map(on_axis).collect()),
            ..Chart::default()
        };
        chart.traces = vec![
            Trace::new("complete runs", Stroke::Joined, BLUE, column(&complete)),
            Trace::new("other runs", Stroke::Hollow, VERMILION, column(&|p| !complete(p))),
        ];
        if points.iter().any(|point| point.usual.is_some()) {
            let end = |of: fn((f64, f64)) -> f64| points.iter().map(|p| p.usual.map(of)).collect();
            for (name, y) in [("usual, from", end(|usual| usual.0)), ("usual, to", end(|usual| usual.1))] {
                let line = Trace::new(name, Stroke::Dashed, GREY, y);
                chart.traces.push(line);
            }
        }
        Drawn::or(chart, "no run has this figure")
    }
}

/// A run on the axis: names must differ.
fn on_axis(point: &TrendPoint) -> String {
    let at: String = point.started.chars().take(16).collect();
    format!("{} {}", at.replace('T', " "), point.run)
}

/// The value's place between the least and the most, and the usual range around it.
fn drawing(point: &TrendPoint, value: f64, low: f64, high: f64) -> String {
    let place = |value: f64| {
        if high > low {
            ((value - low) / (high - low) * (DRAWN - 1) as f64).round().clamp(0.0, (DRAWN - 1) as f64) as usize
        } else {
            DRAWN / 2
        }
    };
    let mut cells = vec![' '; DRAWN];
    if let Some((from, to)) = point.usual {
        cells[place(from)..=place(to)].fill('-');
    }
    cells[place(value)] = '*';
    format!("|{}|", cells.into_iter().collect::<String>())
}
