//! Turns a chart into the plotting script's input: traces and a layout, as JSON.
//!
//! The page sets fonts and the colours of text, grid and background, since they change with its theme.

use super::sample::{self, POINTS};
use assay_measure::chart::{Axis, Chart, Heat, Rows, Stroke, Trace};
use assay_measure::palette::{GREY, INK};
use assay_measure::units::{fixed, short};
use serde_json::{Value, json};

/// Height of a chart, pixels.
const HEIGHT: usize = 360;
/// More marks than this are drawn without their numbers.
const MARKS_NUMBERED: usize = 20;
/// Numbers below the pointer: five digits say all that a chart shows, its table has the others.
const HOVER: &str = ",.5~r";

/// The chart as `{"data": [...], "layout": {...}}`, safe inside a script element.
pub(crate) fn json(chart: &Chart) -> String {
    let traces = match &chart.heat {
        Some(heat) => vec![heat_map(heat, &chart.x.unit)],
        None => sampled(chart),
    };
    let json = json!({ "data": traces, "layout": layout(chart) }).to_string();
    // Nothing in a script element ends it but "</"; "<!--" must not stand there either, and without "&" the page is XML.
    json.replace('<', "\\u003c").replace('&', "\\u0026")
}

/// The traces with as few points as a screen can show.
fn sampled(chart: &Chart) -> Vec<Value> {
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
        let y: Vec<Option<f64>> = match &kept {
            Some(kept) => kept.iter().map(|row| trace.y[*row]).collect(),
            None => trace.y.clone(),
        };
        drawn.push(match rows {
            Rows::Numbers(all) => {
                let x: Vec<f64> = match &kept {
                    Some(kept) => kept.iter().filter_map(|row| all.get(*row).copied()).collect(),
                    None => all.clone(),
                };
                plotted(trace, &json!(x), &y, &hover)
            }
            Rows::Names(all) if trace.kind == Stroke::Span => span(trace, all),
            Rows::Names(all) => plotted(trace, &json!(all.iter().map(|n| escaped(n)).collect::<Vec<_>>()), &y, &hover),
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
    if is_cloud(chart) { format!("%{{x:{HOVER}}}: %{{y:{HOVER}}} {unit}") } else { format!("%{{y:{HOVER}}} {unit}") }
}

/// A trace as the script takes it.
fn plotted(trace: &Trace, x: &Value, y: &[Option<f64>], hover: &str) -> Value {
    let line = |dash: &str| json!({ "color": trace.color, "width": 1.6, "dash": dash });
    let marker = |size: u32| json!({ "color": trace.color, "size": size });
    let mut drawn = match trace.kind {
        Stroke::Bar => json!({ "type": "bar", "marker": { "color": trace.color } }),
        Stroke::Line | Stroke::Span => json!({ "mode": "lines", "line": line("solid") }),
        Stroke::Dashed => json!({ "mode": "lines", "line": line("dash") }),
        Stroke::Dotted => json!({ "mode": "lines", "line": line("dot") }),
        Stroke::Stacked => json!({
            "mode": "lines", "stackgroup": "one", "fillcolor": trace.color,
            "line": { "color": trace.color, "width": 0.5 },
        }),
        Stroke::Points => json!({ "mode": "markers", "marker": marker(6) }),
        Stroke::Joined => json!({ "mode": "lines+markers", "line": line("solid"), "marker": marker(8) }),
        Stroke::Hollow => json!({
            "mode": "markers", "marker": { "color": trace.color, "size": 9, "symbol": "circle-open" },
        }),
    };
    if trace.kind != Stroke::Bar {
        drawn["type"] = json!("scatter");
        drawn["connectgaps"] = json!(false);
    }
    drawn["name"] = json!(escaped(&trace.name));
    drawn["hovertemplate"] = json!(hover);
    drawn["x"] = x.clone();
    drawn["y"] = json!(y);
    if let Some((low, high)) = &trace.error {
        drawn["error_y"] =
            json!({ "type": "data", "symmetric": false, "array": high, "arrayminus": low, "visible": true });
    }
    drawn
}

/// A part and its share of the longest bar, which holds them all.
fn span(trace: &Trace, names: &[String]) -> Value {
    let known = trace.y.iter().flatten().copied();
    let whole = known.fold(f64::MIN_POSITIVE, f64::max);
    let told = |us: f64| format!("{} ({} %)", short(us), fixed(100.0 * us / whole, 1));
    json!({
        "type": "bar",
        "orientation": "h",
        "name": escaped(&trace.name),
        "x": trace.y,
        "y": names.iter().map(|name| escaped(name)).collect::<Vec<_>>(),
        "base": trace.begins,
        "text": trace.y.iter().map(|us| us.map_or_else(String::new, told)).collect::<Vec<_>>(),
        "textposition": "auto",
        "cliponaxis": false,
        "hoverinfo": "y+text",
        "marker": { "color": trace.color },
    })
}

/// The heat map: colour by the logarithm of the value, the value itself as text; inside its cell where columns have names.
fn heat_map(heat: &Heat, along: &str) -> Value {
    let log = |value: &Option<f64>| value.filter(|value| *value > 0.0).map(f64::log10);
    let z: Vec<Vec<Option<f64>>> = (heat.values.iter()).map(|row| row.iter().map(log).collect()).collect();
    let count = |value: &Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let text: Vec<Vec<String>> = if heat.texts.is_empty() {
        (heat.values.iter()).map(|row| row.iter().map(count).collect()).collect()
    } else {
        heat.texts.clone()
    };
    let highest = heat.values.iter().flatten().flatten().copied().fold(1.0, f64::max);
    let powers: Vec<f64> = (0..=highest.log10() as u32).map(f64::from).collect();
    let names: Vec<String> =
        (powers.iter()).map(|power| assay_measure::units::count_suffix(10_u64.pow(*power as u32))).collect();
    let (x, hover, what) = match &heat.columns {
        Rows::Numbers(ends) => {
            let unit = if heat.unit.is_empty() { String::new() } else { format!(" {}", heat.unit) };
            let hover = format!("until %{{x}} {along}, %{{y}}: %{{text}}{unit}<extra></extra>");
            (json!(ends), hover, if heat.unit.is_empty() { "count" } else { heat.unit })
        }
        Rows::Names(names) => {
            let names: Vec<String> = names.iter().map(|name| escaped(name)).collect();
            (json!(names), "%{y}, %{x}: %{text}<extra></extra>".to_owned(), heat.unit)
        }
    };
    let mut drawn = json!({
        "type": "heatmap",
        "x": x, "y": heat.rows, "z": z, "text": text,
        "hoverinfo": "all",
        "hovertemplate": hover,
        "colorscale": "Viridis",
        "colorbar": { "title": { "text": what }, "tickvals": powers, "ticktext": names },
    });
    if has_named_columns(heat) {
        drawn["texttemplate"] = json!("%{text}");
    }
    drawn
}

fn has_named_columns(heat: &Heat) -> bool {
    matches!(heat.columns, Rows::Names(_))
}

fn layout(chart: &Chart) -> Value {
    let numbers = matches!(chart.rows, Rows::Numbers(_)) && chart.heat.is_none();
    let bars = chart.traces.iter().any(|trace| trace.kind == Stroke::Bar);
    let named = !numbers && chart.heat.is_none();
    let lies = chart.traces.iter().any(|trace| trace.kind == Stroke::Span);
    let (across, up) = if lies {
        let mut names = axis(&chart.x, true);
        names["title"] = json!({});
        // The first row at the top.
        names["range"] = json!([chart.rows.len() as f64 - 0.5, -0.5]);
        // A bar's figures stand behind it where they do not fit in.
        let longest = chart.traces.iter().flat_map(|trace| trace.y.iter().flatten()).copied().fold(0.0, f64::max);
        let mut values = axis(&chart.y, false);
        values["range"] = json!([0.0, 1.35 * longest]);
        (values, names)
    } else {
        let has_names = chart.heat.as_ref().is_some_and(has_named_columns);
        (axis(&chart.x, named || has_names), axis(&chart.y, chart.heat.is_some()))
    };
    let closest = chart.heat.is_some() || lies || is_cloud(chart);
    let mut layout = json!({
        "height": HEIGHT,
        "autosize": true,
        "margin": { "l": 70, "r": 20, "t": 30, "b": 50 },
        "hovermode": if closest { "closest" } else { "x unified" },
        "showlegend": chart.heat.is_none() && !lies,
        "legend": { "orientation": "h", "y": 1.02, "yanchor": "bottom", "x": 0.0 },
        "xaxis": across,
        "yaxis": up,
        "shapes": shapes(chart),
        "annotations": annotations(chart),
    });
    if bars {
        layout["barmode"] = json!("group");
    }
    layout
}

fn axis(axis: &Axis, names: bool) -> Value {
    let mut plotted = json!({
        "title": { "text": escaped(&axis.label()) },
        "automargin": true,
        "separatethousands": true,
        "hoverformat": HOVER,
    });
    let more: &[(&str, Value)] = match (names, axis.log) {
        (true, _) => &[("type", json!("category"))],
        // Few ticks with whole numbers; left alone the axis names its small ticks by their first digit.
        (false, true) => &[("type", json!("log")), ("nticks", json!(4)), ("tickformat", json!(","))],
        (false, false) => &[("rangemode", json!("tozero")), ("tickformat", json!(","))],
    };
    for (key, value) in more {
        plotted[*key] = value.clone();
    }
    plotted
}

/// Lines across; on a logarithmic axis they stand by the value itself, unlike annotations.
fn shapes(chart: &Chart) -> Vec<Value> {
    let line = |dash: &str| json!({ "color": GREY, "width": 1.0, "dash": dash });
    let upright = chart.marks.iter().map(|mark| {
        json!({
            "type": "line", "xref": "x", "yref": "paper", "x0": mark.at, "x1": mark.at, "y0": 0.0, "y1": 1.0,
            "line": line("dot"),
        })
    });
    let level = chart.limits.iter().map(|mark| {
        json!({
            "type": "line", "xref": "paper", "yref": "y", "x0": 0.0, "x1": 1.0, "y0": mark.at, "y1": mark.at,
            "line": line("dash"),
        })
    });
    upright.chain(level).collect()
}

/// Marks carry numbers that the list below the chart explains; goals their own words.
fn annotations(chart: &Chart) -> Vec<Value> {
    let scaled = |value: f64, axis: &Axis| if axis.log { value.log10() } else { value };
    let words = |text: &str, x: (&str, f64), y: (&str, f64), y_anchor: &str| {
        json!({
            "text": escaped(text), "showarrow": false, "font": { "color": INK, "size": 11 },
            "xref": x.0, "x": x.1, "xanchor": "left", "yref": y.0, "y": y.1, "yanchor": y_anchor,
        })
    };
    let numbered = chart.marks.iter().enumerate().filter(|_| chart.marks.len() <= MARKS_NUMBERED);
    let marks = numbered
        .map(|(nth, mark)| words(&(nth + 1).to_string(), ("x", scaled(mark.at, &chart.x)), ("paper", 1.0), "top"));
    let limits =
        chart.limits.iter().map(|mark| words(&mark.text, ("paper", 0.0), ("y", scaled(mark.at, &chart.y)), "bottom"));
    marks.chain(limits).collect()
}

/// Text that the plotting script, which knows a few tags, shows as it is.
pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
