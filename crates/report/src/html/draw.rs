//! From a chart to what the plotting script takes: traces and a layout, as JSON.
//!
//! Fonts and the colours of text, grid and background are the page's and set there, since they change with its theme.

use super::sample::{self, POINTS};
use assay_measure::chart::{Axis, Chart, Heat, Rows, Stroke, Trace};
use assay_measure::palette::{GREY, INK};
use assay_measure::units::{fixed, short};
use plotly::common::{
    Anchor, ColorBar, ColorScale, ColorScalePalette, DashType, ErrorData, ErrorType, HoverInfo, Line, Marker,
    MarkerSymbol, Mode, Orientation, Title,
};
use plotly::layout::{
    Annotation, Axis as PlotAxis, AxisType, BarMode, HoverMode, Layout, Legend, Margin, Shape, ShapeLine, ShapeType,
};
use plotly::{Bar, HeatMap, Scatter, Trace as PlotTrace, Traces};
use serde::Serialize;

/// Height of a chart, pixels.
const HEIGHT: usize = 360;
/// More marks than this are drawn without their numbers.
const MARKS_NUMBERED: usize = 20;
/// Numbers below the pointer: five digits say all that a chart shows, its table has the others.
const HOVER: &str = ",.5~r";

/// The chart as `{"data": [...], "layout": {...}}`, safe inside a script element.
pub(crate) fn json(chart: &Chart) -> String {
    let mut traces = Traces::new();
    match &chart.heat {
        Some(heat) => traces.push(heat_map(heat)),
        None => sampled(chart).into_iter().for_each(|trace| traces.push(trace)),
    }
    // Not through `Plot`, which carries a copy of the script around.
    let json = format!("{{\"data\":{},\"layout\":{}}}", traces.to_json(), layout(chart).to_json());
    // Nothing in a script element ends it but "</"; "<!--" must not stand there either, and without "&" the page is XML.
    json.replace('<', "\\u003c").replace('&', "\\u0026")
}

/// The traces with as few points as a screen can show.
fn sampled(chart: &Chart) -> Vec<Box<dyn PlotTrace>> {
    let stacked: Vec<&[Option<f64>]> =
        (chart.traces.iter()).filter(|trace| trace.kind == Stroke::Stacked).map(|trace| trace.y.as_slice()).collect();
    let shared = sample::together(&stacked, POINTS);
    let mut drawn = Vec::new();
    let hover = hover(chart);
    for trace in &chart.traces {
        let rows = trace.x.as_ref().unwrap_or(&chart.rows);
        let kept = match trace.kind {
            Stroke::Stacked => shared.clone(),
            // What is a cloud of points has no order to keep extremes of, but its columns are those of time.
            _ => sample::line(&trace.y, POINTS),
        };
        let y = match &kept {
            Some(kept) => kept.iter().map(|row| trace.y[*row]).collect(),
            None => trace.y.clone(),
        };
        drawn.push(match rows {
            Rows::Numbers(all) => {
                let x = match &kept {
                    Some(kept) => kept.iter().filter_map(|row| all.get(*row).copied()).collect(),
                    None => all.clone(),
                };
                plotted(trace, x, y, &hover)
            }
            Rows::Names(all) if trace.kind == Stroke::Span => Box::new(span(trace, all)),
            Rows::Names(all) => plotted(trace, all.iter().map(|name| escaped(name)).collect(), y, &hover),
        });
    }
    drawn
}

/// Whether its points stand alone: then it is one of them that is pointed at, not a place along the axis.
fn is_cloud(chart: &Chart) -> bool {
    let points = |trace: &Trace| trace.kind == Stroke::Points;
    chart.traces.iter().any(points)
}

/// What stands at the pointer: a value with its unit, rounded.
fn hover(chart: &Chart) -> String {
    let unit = escaped(&chart.y.unit);
    match is_cloud(chart) {
        true => format!("%{{x:{HOVER}}}: %{{y:{HOVER}}} {unit}"),
        false => format!("%{{y:{HOVER}}} {unit}"),
    }
}

/// A trace as the script takes it.
fn plotted<X>(trace: &Trace, x: Vec<X>, y: Vec<Option<f64>>, hover: &str) -> Box<dyn PlotTrace>
where
    X: serde::Serialize + Clone + 'static,
{
    if trace.kind == Stroke::Bar {
        let bar =
            Bar::new(x, y).name(escaped(&trace.name)).hover_template(hover).marker(Marker::new().color(trace.color));
        return match error_of(trace) {
            Some(error) => bar.error_y(error),
            None => bar,
        };
    }
    let line = |dash: DashType| Line::new().color(trace.color).width(1.6).dash(dash);
    let scatter = Scatter::new(x, y).name(escaped(&trace.name)).hover_template(hover).connect_gaps(false);
    let scatter = match trace.kind {
        Stroke::Line | Stroke::Bar | Stroke::Span => scatter.mode(Mode::Lines).line(line(DashType::Solid)),
        Stroke::Dashed => scatter.mode(Mode::Lines).line(line(DashType::Dash)),
        Stroke::Dotted => scatter.mode(Mode::Lines).line(line(DashType::Dot)),
        Stroke::Stacked => scatter
            .mode(Mode::Lines)
            .stack_group("one")
            .line(Line::new().color(trace.color).width(0.5))
            .fill_color(trace.color),
        Stroke::Points => scatter.mode(Mode::Markers).marker(Marker::new().color(trace.color).size(6)),
        Stroke::Joined => scatter
            .mode(Mode::LinesMarkers)
            .line(line(DashType::Solid))
            .marker(Marker::new().color(trace.color).size(8)),
        Stroke::Hollow => scatter
            .mode(Mode::Markers)
            .marker(Marker::new().color(trace.color).size(9).symbol(MarkerSymbol::CircleOpen)),
    };
    match error_of(trace) {
        Some(error) => scatter.error_y(error),
        None => scatter,
    }
}

/// Bars with a beginning of their own, which the library's type of bars cannot tell.
#[derive(Clone, Serialize)]
struct Spans {
    r#type: &'static str,
    orientation: &'static str,
    name: String,
    x: Vec<Option<f64>>,
    y: Vec<String>,
    base: Vec<f64>,
    text: Vec<String>,
    textposition: &'static str,
    cliponaxis: bool,
    hoverinfo: &'static str,
    marker: Marker,
}

impl PlotTrace for Spans {
    fn to_json(&self) -> String {
        serde_json::to_string(self).expect("names and numbers")
    }
}

/// A part and its share of the longest bar, which holds them all.
fn span(trace: &Trace, names: &[String]) -> Spans {
    let known = trace.y.iter().flatten().copied();
    let whole = known.fold(f64::MIN_POSITIVE, f64::max);
    let told = |us: f64| format!("{} ({} %)", short(us), fixed(100.0 * us / whole, 1));
    Spans {
        r#type: "bar",
        orientation: "h",
        name: escaped(&trace.name),
        x: trace.y.clone(),
        y: names.iter().map(|name| escaped(name)).collect(),
        base: trace.begins.clone(),
        text: trace.y.iter().map(|us| us.map_or_else(String::new, told)).collect(),
        textposition: "auto",
        cliponaxis: false,
        hoverinfo: "y+text",
        marker: Marker::new().color(trace.color),
    }
}

fn error_of(trace: &Trace) -> Option<ErrorData> {
    let (low, high) = trace.error.as_ref()?;
    let error = ErrorData::new(ErrorType::Data).symmetric(false).array(high.clone()).array_minus(low.clone());
    Some(error.visible(true))
}

/// The heat map: colour by the logarithm of the count, the count itself as text.
fn heat_map(heat: &Heat) -> Box<dyn PlotTrace> {
    let log = |count: &u64| (*count > 0).then(|| (*count as f64).log10());
    let z: Vec<Vec<Option<f64>>> = (heat.counts.iter()).map(|row| row.iter().map(log).collect()).collect();
    let text: Vec<Vec<String>> = (heat.counts.iter()).map(|row| row.iter().map(u64::to_string).collect()).collect();
    let highest = heat.counts.iter().flatten().max().copied().unwrap_or(1);
    let powers: Vec<f64> = (0..=highest.max(1).ilog10()).map(f64::from).collect();
    let names: Vec<String> =
        (powers.iter()).map(|power| assay_measure::units::count_suffix(10_u64.pow(*power as u32))).collect();
    HeatMap::new(heat.t_s.clone(), heat.rows.clone(), z)
        .text_matrix(text)
        .hover_info(HoverInfo::All)
        .hover_template("until %{x} s, %{y}: %{text}<extra></extra>")
        .color_scale(ColorScale::Palette(ColorScalePalette::Viridis))
        .color_bar(ColorBar::new().title(Title::with_text("count")).tick_vals(powers).tick_text(names))
}

fn layout(chart: &Chart) -> Layout {
    let numbers = matches!(chart.rows, Rows::Numbers(_)) && chart.heat.is_none();
    let bars = chart.traces.iter().any(|trace| trace.kind == Stroke::Bar);
    let named = !numbers && chart.heat.is_none();
    let lies = chart.traces.iter().any(|trace| trace.kind == Stroke::Span);
    let (across, up) = match lies {
        true => {
            let names = axis(&chart.x, true).title(Title::new());
            // The first row at the top.
            let names = names.range(vec![chart.rows.len() as f64 - 0.5, -0.5]);
            // A bar's figures stand behind it where they do not fit in.
            let values = chart.traces.iter().flat_map(|trace| trace.y.iter().flatten());
            let longest = values.copied().fold(0.0, f64::max);
            (axis(&chart.y, false).range(vec![0.0, 1.35 * longest]), names)
        }
        false => (axis(&chart.x, named), axis(&chart.y, chart.heat.is_some())),
    };
    let mut layout = Layout::new()
        .height(HEIGHT)
        .auto_size(true)
        .margin(Margin::new().left(70).right(20).top(30).bottom(50))
        .hover_mode(match chart.heat.is_some() || lies || is_cloud(chart) {
            true => HoverMode::Closest,
            false => HoverMode::XUnified,
        })
        .show_legend(chart.heat.is_none() && !lies)
        .legend(Legend::new().orientation(Orientation::Horizontal).y(1.02).y_anchor(Anchor::Bottom).x(0.0))
        .x_axis(across)
        .y_axis(up)
        .shapes(shapes(chart))
        .annotations(annotations(chart));
    if bars {
        layout = layout.bar_mode(BarMode::Group);
    }
    layout
}

fn axis(axis: &Axis, names: bool) -> PlotAxis {
    let plotted = PlotAxis::new()
        .title(Title::with_text(escaped(&axis.label())))
        .auto_margin(true)
        .separate_thousands(true)
        .hover_format(HOVER);
    match (names, axis.log) {
        (true, _) => plotted.type_(AxisType::Category),
        // Few ticks with whole numbers; left alone the axis names its small ticks by their first digit.
        (false, true) => plotted.type_(AxisType::Log).n_ticks(4).tick_format(","),
        (false, false) => plotted.range_mode(plotly::layout::RangeMode::ToZero).tick_format(","),
    }
}

/// Lines across; on a logarithmic axis they stand by the value itself, unlike annotations.
fn shapes(chart: &Chart) -> Vec<Shape> {
    let line = |dash: DashType| ShapeLine::new().color(GREY).width(1.0).dash(dash);
    let upright = chart.marks.iter().map(|mark| {
        Shape::new()
            .shape_type(ShapeType::Line)
            .x_ref("x")
            .y_ref("paper")
            .x0(mark.at)
            .x1(mark.at)
            .y0(0.0)
            .y1(1.0)
            .line(line(DashType::Dot))
    });
    let level = chart.limits.iter().map(|mark| {
        Shape::new()
            .shape_type(ShapeType::Line)
            .x_ref("paper")
            .y_ref("y")
            .x0(0.0)
            .x1(1.0)
            .y0(mark.at)
            .y1(mark.at)
            .line(line(DashType::Dash))
    });
    upright.chain(level).collect()
}

/// Marks carry numbers that the list below the chart explains; goals their own words.
fn annotations(chart: &Chart) -> Vec<Annotation> {
    let words = |text: &str| {
        Annotation::new().text(escaped(text)).show_arrow(false).font(plotly::common::Font::new().color(INK).size(11))
    };
    let scaled = |value: f64, axis: &Axis| if axis.log { value.log10() } else { value };
    let mut all = Vec::new();
    if chart.marks.len() <= MARKS_NUMBERED {
        for (nth, mark) in chart.marks.iter().enumerate() {
            all.push(
                words(&(nth + 1).to_string())
                    .x_ref("x")
                    .x(scaled(mark.at, &chart.x))
                    .y_ref("paper")
                    .y(1.0)
                    .x_anchor(Anchor::Left)
                    .y_anchor(Anchor::Top),
            );
        }
    }
    for mark in &chart.limits {
        all.push(
            words(&mark.text)
                .x_ref("paper")
                .x(0.0)
                .x_anchor(Anchor::Left)
                .y_ref("y")
                .y(scaled(mark.at, &chart.y))
                .y_anchor(Anchor::Bottom),
        );
    }
    all
}

/// Text that the plotting script, which knows a few tags, shows as it is.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
