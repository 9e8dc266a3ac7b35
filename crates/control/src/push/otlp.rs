//! The body of a request of OTLP over HTTP (<https://opentelemetry.io/docs/specs/otlp/#otlphttp>), an `ExportMetricsServiceRequest`
//! in the JSON of protocol buffers: integers of 64 bits are texts there, and enumerations numbers.

use super::Protocol;
use assay_measure::families::{Exposition, Family, Kind, Point, Value};
use serde_json::{Value as Json, json};

pub(super) const PROTOCOL: Protocol = Protocol { headers: &[("Content-Type", "application/json")], body, rejected };

/// `AGGREGATION_TEMPORALITY_CUMULATIVE`.
const CUMULATIVE: u32 = 2;
/// Our units, and what UCUM calls them. Others have no name there.
const UNITS: [(&str, &str); 3] = [("seconds", "s"), ("bytes", "By"), ("ratio", "1")];

fn body(figures: &Exposition) -> Result<Vec<u8>, String> {
    let [begin, end] = [figures.begin_s, figures.end_s].map(|s| ((s * 1e9) as u64).to_string());
    let metric = |family| metric(family, &json!({"startTimeUnixNano": begin, "timeUnixNano": end}));
    let metrics: Vec<Json> = figures.families.iter().map(metric).collect();
    let version = env!("CARGO_PKG_VERSION");
    let about = [attribute("service.name", "assay"), attribute("service.version", version)];
    let scope = json!({"name": "assay", "version": version});
    let request = json!({"resourceMetrics": [{
        "resource": {"attributes": about},
        "scopeMetrics": [{"scope": scope, "metrics": metrics}],
    }]});
    Ok(request.to_string().into_bytes())
}

fn attribute(key: &str, value: &str) -> Json {
    json!({"key": key, "value": {"stringValue": value}})
}

/// A family as a `Metric`. Who makes series of Prometheus of it adds what ends the name of a counter.
fn metric(family: &Family, times: &Json) -> Json {
    let points: Vec<Json> = family.points.iter().map(|at| point(at, times.clone())).collect();
    let (kind, data) = match family.kind {
        Kind::Gauge | Kind::Info => ("gauge", json!({"dataPoints": points})),
        Kind::Counter => {
            ("sum", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE, "isMonotonic": true}))
        }
        Kind::Histogram => ("histogram", json!({"dataPoints": points, "aggregationTemporality": CUMULATIVE})),
    };
    let ending = if family.kind == Kind::Info { family.kind.ending() } else { "" };
    let unit = UNITS.iter().find(|(ours, _)| *ours == family.unit).map_or("", |(_, theirs)| theirs);
    json!({"name": format!("{}{ending}", family.name), "description": family.help, "unit": unit, kind: data})
}

/// A `NumberDataPoint` or a `HistogramDataPoint`: `times` and what else it has.
fn point(Point { labels, value }: &Point, mut times: Json) -> Json {
    times["attributes"] = labels.iter().map(|(name, value)| attribute(name, value)).collect();
    match value {
        Value::Number(number) => times["asDouble"] = json!(number),
        Value::Durations { buckets, sum_s, count } => {
            // Each bucket has its own here, and the last what is above all bounds.
            let ends = buckets.iter().map(|(_, upto)| *upto).chain([*count]);
            let begins = [0].into_iter().chain(buckets.iter().map(|(_, upto)| *upto));
            let counts = ends.zip(begins).map(|(end, begin)| end.saturating_sub(begin).to_string());
            times["bucketCounts"] = counts.collect();
            times["explicitBounds"] = buckets.iter().map(|(bound, _)| *bound).collect();
            times["sum"] = json!(sum_s);
            times["count"] = json!(count.to_string());
        }
    }
    times
}

/// By an `ExportMetricsServiceResponse`.
fn rejected(answer: &str) -> Option<String> {
    let answer: Json = serde_json::from_str(answer).ok()?;
    let partly = &answer["partialSuccess"];
    let points = &partly["rejectedDataPoints"];
    let points = points.as_str().and_then(|text| text.parse().ok()).or_else(|| points.as_u64()).filter(|n| *n > 0)?;
    Some(format!("rejects {points} points: {}", partly["errorMessage"].as_str().unwrap_or("it does not say why")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_is_a_metric_of_its_kind_with_the_window_and_a_histogram_has_counts_by_bucket() {
        let family = |name: &str, kind, unit, value: Value| {
            let points = vec![Point { labels: vec![("run", "r".to_owned())], value }];
            Family { name: name.to_owned(), kind, unit, help: "Help".to_owned(), points }
        };
        let durations = Value::Durations { buckets: vec![(0.5, 2), (1.0, 5)], sum_s: 4.25, count: 6 };
        let families = vec![
            family("reads", Kind::Counter, "", 3.0.into()),
            family("idle_ratio", Kind::Gauge, "ratio", 0.5.into()),
            family("run", Kind::Info, "", 1.0.into()),
            family("op_seconds", Kind::Histogram, "seconds", durations),
        ];
        let body = body(&Exposition { begin_s: 1.0, end_s: 2.5, families }).expect("always");
        let body: Json = serde_json::from_slice(&body).expect("JSON");
        let of = json!([{"key": "run", "value": {"stringValue": "r"}}]);
        let number = |value: f64| json!([{"startTimeUnixNano": "1000000000", "timeUnixNano": "2500000000", "attributes": of, "asDouble": value}]);
        let durations = json!([{
            "startTimeUnixNano": "1000000000", "timeUnixNano": "2500000000", "attributes": of,
            "count": "6", "sum": 4.25, "explicitBounds": [0.5, 1.0], "bucketCounts": ["2", "3", "1"],
        }]);
        let wanted = json!([
            {"name": "reads", "description": "Help", "unit": "",
             "sum": {"dataPoints": number(3.0), "aggregationTemporality": 2, "isMonotonic": true}},
            {"name": "idle_ratio", "description": "Help", "unit": "1", "gauge": {"dataPoints": number(0.5)}},
            {"name": "run_info", "description": "Help", "unit": "", "gauge": {"dataPoints": number(1.0)}},
            {"name": "op_seconds", "description": "Help", "unit": "s",
             "histogram": {"dataPoints": durations, "aggregationTemporality": 2}},
        ]);
        assert_eq!(body["resourceMetrics"][0]["scopeMetrics"][0]["metrics"], wanted);
    }
}
