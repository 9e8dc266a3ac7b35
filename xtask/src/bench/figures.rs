//! The figures of what a program printed, by name, and the expressions in which the table of benches combines them.

use serde_json::Value;
use std::collections::BTreeMap;

/// By name: numbers as they were written, and facts in words.
pub(super) type Figures = BTreeMap<String, String>;

/// The middle of the values; the mean of the two middle ones when there is an even number.
pub(super) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => f64::midpoint(sorted[n / 2 - 1], sorted[n / 2]),
    }
}

/// What tells the elements of a list apart, in the records and documents that are read here.
const NAMES: [&str; 8] = ["id", "key", "name", "event", "part", "streams_count", "file", "method"];

/// Reads a JSON document, `NAME=VALUE` lines, and lines of the patterns.
pub(super) fn read(text: &str, patterns: &Figures) -> Figures {
    let mut figures = Figures::new();
    // Notes may stand before the document, and lines of other programs behind it.
    let at = text.find('{').unwrap_or(text.len());
    let mut stream = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
    let rest = match stream.next() {
        Some(Ok(document)) => {
            flatten(&document, "", &mut figures);
            &text[at + stream.byte_offset()..]
        }
        _ => text,
    };
    for line in rest.lines() {
        if let Some((name, value)) = line.trim().split_once('=')
            && name.chars().all(|c| c == '_' || c.is_ascii_alphanumeric())
        {
            figures.insert(name.to_owned(), value.to_owned());
        }
    }
    for (name, pattern) in patterns {
        let found: Vec<f64> = rest.lines().filter_map(|line| matched(pattern, line)).collect();
        // Of several lines the first holds the start, or the time of connecting.
        let kept = if found.len() > 1 { &found[1..] } else { &found };
        if !kept.is_empty() {
            figures.insert(name.clone(), median(kept).to_string());
        }
    }
    figures
}

/// Numbers and words below their path; those that have a key of their own, as the metrics of a record, below that.
fn flatten(value: &Value, path: &str, out: &mut Figures) {
    let below = |step: &str| if path.is_empty() { step.to_owned() } else { format!("{path}.{step}") };
    match value {
        Value::Object(map) => match (map.get("key").and_then(Value::as_str), map.get("value")) {
            (Some(key), Some(value)) => flatten(value, key, out),
            _ => map.iter().for_each(|(step, value)| flatten(value, &below(step), out)),
        },
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                let names: Vec<String> =
                    NAMES.iter().filter_map(|name| item.get(name)).map(|name| bare(name).replace(' ', "_")).collect();
                flatten(item, &below(&if names.is_empty() { at.to_string() } else { names.join("/") }), out);
            }
        }
        Value::Null => {}
        other => drop(out.insert(path.to_owned(), bare(other))),
    }
}

fn bare(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The number at the `#` of a pattern, if a line begins so word by word; `*` is any word.
fn matched(pattern: &str, line: &str) -> Option<f64> {
    let mut words = line.split_whitespace();
    for part in pattern.split(' ') {
        let word = words.next()?;
        if let Some(before) = part.strip_suffix('#') {
            let text = word.strip_prefix(before)?;
            let digits = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let scale = [('M', 1e6), ('K', 1e3)].iter().find(|(unit, _)| digits.starts_with(*unit));
            let number: f64 = text[..text.len() - digits.len()].parse().ok()?;
            return Some(number * scale.map_or(1.0, |(_, scale)| *scale));
        }
        if part != "*" && part != word {
            return None;
        }
    }
    None
}

/// Computes from left to right, without precedence: `a * 1e6 / b max 1`; `~` rounds to a multiple. A name is a figure of
/// the shot number `own`, `name@2` one of shot 2 and `name@0` one of what was set up. What is not known is NaN.
pub(super) fn compute(expression: &str, own: usize, shots: &[Figures]) -> f64 {
    let mut words = expression.split_whitespace();
    let mut value = words.next().map_or(f64::NAN, |word| operand(word, own, shots));
    while let (Some(operator), Some(word)) = (words.next(), words.next()) {
        let other = operand(word, own, shots);
        value = match operator {
            _ if value.is_nan() || other.is_nan() => f64::NAN,
            "*" => value * other,
            "/" => value / other,
            "+" => value + other,
            "-" => value - other,
            "~" => (value / other).round() * other,
            "min" => value.min(other),
            "max" => value.max(other),
            _ => f64::NAN,
        };
    }
    value
}

fn operand(word: &str, own: usize, shots: &[Figures]) -> f64 {
    word.parse().unwrap_or_else(|_| named(word, own, shots).and_then(|text| text.parse().ok()).unwrap_or(f64::NAN))
}

/// Adds figures under short names: of each the first expression that is known and not 0.
pub(super) fn derive(figures: &mut Figures, derived: &[Vec<String>]) {
    for (name, expressions) in derived.iter().filter_map(|words| words.split_first()) {
        let of = |expression: &String| compute(expression, 0, std::slice::from_ref(figures));
        if let Some(value) = expressions.iter().map(of).find(|value| value.is_finite() && *value != 0.0) {
            figures.insert(name.clone(), value.to_string());
        }
    }
}

/// The text of `name` or `name@2`.
pub(super) fn named<'a>(word: &str, own: usize, shots: &'a [Figures]) -> Option<&'a String> {
    let (name, shot) = match word.rsplit_once('@') {
        Some((name, shot)) => (name, shot.parse().ok()?),
        None => (word, own),
    };
    shots.get(shot)?.get(name)
}

/// Why a record of ours should not be believed: it is not complete, or an identity does not hold; or pgbench failed transactions.
pub(super) fn faults(figures: &Figures) -> Vec<String> {
    let of = |(name, value): (&String, &String)| {
        let bad = (name == "run.verdict" && value != "complete")
            || (name == "failed" && value != "0")
            || (name.starts_with("integrity.") && name.ends_with(".ok") && value == "false");
        bad.then(|| format!("{name} {value}"))
    };
    figures.iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns() -> Figures {
        super::super::spec::table().unwrap().patterns
    }

    #[test]
    fn the_median_ignores_order_and_outliers() {
        assert_eq!(median(&[3.0, 1.0, 1000.0]), 3.0);
        assert_eq!(median(&[4.0, 1.0, 2.0, 1000.0]), 3.0);
        assert!(median(&[]).is_nan());
    }

    #[test]
    fn a_record_answers_by_key_and_admits_what_it_lacks() {
        let record = serde_json::json!({
            "run": {"verdict": "complete"},
            "metrics": [{"key": "reads_per_s", "value": 2.5}, {"key": "read_us_p99", "value": {"na": "none"}}],
            "plan": {"engine_facts": [{"name": "io_mode_achieved", "value": "io_uring"}]},
            "parts": {"sync": {"steps": [
                {"part": "flush", "streams_count": 1, "file": "preallocated", "method": "write + fdatasync", "per_s": 12.5},
                {"part": "curve", "streams_count": 1, "file": "new", "method": "write + fdatasync", "per_s": 3.0},
            ]}},
            "integrity": [{"id": "I2", "ok": true}, {"id": "I3", "ok": {"na": "absent"}}],
        });
        let shots = [read(&record.to_string(), &patterns())];
        assert_eq!(compute("reads_per_s * 2", 0, &shots), 5.0);
        assert!(compute("read_us_p99 max 1", 0, &shots).is_nan());
        assert_eq!(compute("parts.sync.steps.flush/1/preallocated/write_+_fdatasync.per_s", 0, &shots), 12.5);
        assert_eq!(named("plan.engine_facts.io_mode_achieved.value@0", 7, &shots).unwrap(), "io_uring");
        assert!(faults(&shots[0]).is_empty());
        let broken = r#"{"run": {"verdict": "invalid"}, "integrity": [{"id": "I2", "ok": false}]}"#;
        assert_eq!(faults(&read(broken, &patterns())), ["integrity.I2.ok false", "run.verdict invalid"]);
    }

    #[test]
    fn documents_of_peers_are_read_between_their_notes_and_the_lines_of_others() {
        let fio = "note: both iodepth >= 1\n{\"jobs\":[{\"read\":{\"iops\":51234.5,\
                   \"clat_ns\":{\"percentile\":{\"99.000000\":1036288}}}}]}\nblocks=12\n";
        let shots = [read(fio, &patterns())];
        assert_eq!(compute("jobs.0.read.iops", 0, &shots), 51234.5);
        assert_eq!(compute("jobs.0.read.clat_ns.percentile.99.000000 / 1000", 0, &shots), 1036.288);
        assert_eq!(compute("blocks", 0, &shots), 12.0);
        assert!(compute("jobs.0.write.iops", 0, &shots).is_nan());
    }

    #[test]
    fn lines_of_peers_are_read_by_their_patterns() {
        let of = |text: &str, name: &str| compute(name, 0, &[read(text, &patterns())]);
        // Before version 14 pgbench has two such lines; the one without the time of connecting comes last.
        let old = "tps = 10.5 (including connections establishing)\ntps = 11.5 (excluding connections establishing)\n";
        assert_eq!(of(old, "tps"), 11.5);
        assert_eq!(
            of("initial connection time = 3 ms\ntps = 21003.1 (without initial connection time)\n", "tps"),
            21003.1
        );
        assert!(of("pgbench: error", "tps").is_nan());
        let sysbench = "    transactions:   7200   (100.00 per sec.)\n    queries:    7200   (719.61 per sec.)\n";
        assert_eq!(of(sysbench, "queries_per_s"), 719.61);
        let ring = "polled=0\nIOPS=9.00M, IOS/call=32/32\nIOPS=11.50M, BW=1GiB/s\nIOPS=880.00K, x\nIOPS=11.00M, x\n";
        assert_eq!(of(ring, "ring_iops"), 11.0e6);
        assert_eq!(of("IOPS=900, x", "ring_iops"), 900.0);
        assert!(of("Maximum IOPS=1M", "ring_iops").is_nan());
    }

    #[test]
    fn expressions_are_computed_from_left_to_right_over_the_shots_of_a_round() {
        let shot = |value: &str| Figures::from([("x".to_owned(), value.to_owned())]);
        let shots = [shot("1"), shot("30"), shot("word")];
        assert_eq!(compute("x + 1 * 2", 1, &shots), 62.0);
        assert_eq!(compute("x@1 / 20 ~ 1 min 5 max x@0 - 1", 2, &shots), 1.0);
        assert!(compute("1 + x", 2, &shots).is_nan() && compute("x", 3, &shots).is_nan());
    }
}
