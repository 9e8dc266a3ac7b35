//! What an import without operations, reads or writes of a database shows first: its results in the units of their keys.

use assay_measure::kind::HeadlineLine;
use assay_measure::record::metric::of_key;
use assay_measure::record::{Figure, ImportedValue, Record};
use assay_measure::units::{many, short, six, with_unit};
use std::collections::BTreeSet;

/// Values shown at most.
const MOST: usize = 6;
/// From here on a value is what was asked for, or how long it took: no result.
const NO_RESULT: u8 = 6;

/// What somebody looks for first among figures: rates of the whole, losses, times, the rest; never a step of a series.
pub(super) fn weight(value: &ImportedValue) -> u8 {
    const ASKED: [&str; 6] =
        ["elapsed_s", "interval_s", "sessions_count", "threads_count", "connections_count", "_bytes"];
    let ends = |all: &[&str]| all.iter().any(|end| value.key.ends_with(end));
    match () {
        () if ends(&ASKED) => NO_RESULT,
        () if ends(&["_per_s", "_per_s_mean", "_per_min"]) => 0,
        () if ends(&["_lost_pct"]) => 1,
        () if ends(&["_us_avg", "_us_mean", "_us_p99", "_us_p95"]) => 2,
        () if ends(&["_us_max", "_s"]) => 3,
        () if ends(&["_pct", "_count"]) => 4,
        () => 5,
    }
}

/// The most telling figures; of a text that has steps alone, their means.
pub(super) fn lines(record: &Record) -> Vec<HeadlineLine> {
    let values = record.import.iter().flat_map(|info| &info.values);
    let is_whole = |value: &&ImportedValue| value.value.value().is_some() && !value.at.starts_with("/series/");
    let mut known: Vec<&ImportedValue> = values.filter(is_whole).collect();
    let has_result = known.iter().any(|value| weight(value) < NO_RESULT);
    let of_steps = if has_result { Vec::new() } else { means(record) };
    // Of streams and of shares there are many: the whole comes first, and what arrived before what was sent.
    let is_detail = |value: &ImportedValue| value.scope.starts_with("stream ") || value.key.ends_with("_share_pct");
    let is_sent = |value: &ImportedValue| value.scope.ends_with("sender");
    known.sort_by_key(|value| (weight(value) == NO_RESULT, is_detail(value), weight(value), is_sent(value)));
    let mut texts = of_steps;
    texts.extend(known.into_iter().map(text));
    texts.truncate(MOST);
    if texts.is_empty() {
        let settings = many(record.plan.settings.len() as u64, "setting");
        let facts = many(record.host.facts.len() as u64, "fact");
        texts.push(format!("none; it contains {facts} about the host and {settings}"));
    }
    let line = |(at, text): (usize, String)| HeadlineLine::of(if at == 0 { "Figures" } else { "" }, Vec::new(), &text);
    texts.into_iter().enumerate().map(line).collect()
}

fn text(value: &ImportedValue) -> String {
    let scope = if value.scope.is_empty() { String::new() } else { format!("{}: ", value.scope) };
    let key = if value.name == value.key { String::new() } else { format!(" ({})", value.key) };
    let number = value.value.value().unwrap_or_default();
    format!("{scope}{} = {}{key}", value.name, in_unit(number, of_key(&value.key).0))
}

/// A value in the unit of its key, large rates in millions.
fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        "bytes" if value >= 1e6 => format!("{} MB (10^6)", short(value / 1e6)),
        "count" => six(value),
        unit => {
            let (factor, unit) = scale(value, unit);
            with_unit(value / factor, unit)
        }
    }
}

/// What large rates are told in.
fn scale(value: f64, unit: &str) -> (f64, &str) {
    match unit {
        "bits/s" if value >= 1e9 => (1e9, "Gbit/s"),
        "bits/s" if value >= 1e6 => (1e6, "Mbit/s"),
        "bytes/s" if value >= 1e6 => (1e6, "MB/s (10^6)"),
        unit => (1.0, unit),
    }
}

/// Both ends of a range in the unit of the larger.
fn range(least: f64, most: f64, unit: &str) -> String {
    let (factor, unit) = scale(most, unit);
    format!("{} to {}", six(least / factor), with_unit(most / factor, unit))
}

/// Means over the steps of a text that has no sums.
fn means(record: &Record) -> Vec<String> {
    const RATES: [(&str, &str); 6] = [
        ("commits_count_per_s", "transactions/s"),
        ("ops_count_per_s", "operations/s"),
        ("tcp_throughput_bits_per_s", "bits/s"),
        ("udp_throughput_bits_per_s", "bits/s"),
        ("redo_transport_bytes_per_s", "bytes/s"),
        ("memory_mib_per_s", "MiB/s"),
    ];
    let of = |name: &str| record.series.metrics.get(name).map_or_else(Vec::new, |steps| known(steps));
    let rate = RATES.iter().find(|(name, _)| !of(name).is_empty());
    let mut texts = Vec::new();
    if let Some((name, unit)) = rate {
        let steps = of(name);
        let (least, most) = steps.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), x| (a.min(*x), b.max(*x)));
        let (mean, count) = (in_unit(mean(&steps), unit), many(steps.len() as u64, "step"));
        texts.push(format!("{mean}, the mean of {count} ({}); no total was printed", range(least, most, unit)));
    }
    texts.extend(devices(record));
    let shares: Vec<String> = ["user", "system", "iowait", "steal", "idle"]
        .iter()
        .filter_map(|name| {
            let steps = of(&format!("host_{name}_pct"));
            (!steps.is_empty()).then(|| format!("{} % {name}", six(mean(&steps))))
        })
        .collect();
    if !shares.is_empty() {
        texts.push(format!("CPU: {}", shares.join(", ")));
    }
    texts
}

/// Series of a device, the words around its name, and what a unit is in that of the text.
const OF_DEVICE: [(&str, &str, f64, &str); 9] = [
    ("disk_read", "requests_per_s", 1.0, "reads/s"),
    ("disk_write", "requests_per_s", 1.0, "writes/s"),
    ("disk", "requests_per_s", 1.0, "requests/s"),
    ("disk_read", "kib_per_s", 1.024e-3, "MB/s read (10^6)"),
    ("disk_write", "kib_per_s", 1.024e-3, "MB/s written (10^6)"),
    ("disk_read", "us_avg", 1.0, "us a read"),
    ("disk_write", "us_avg", 1.0, "us a write"),
    ("disk", "us_avg", 1.0, "us a request"),
    ("disk_in_queue", "count", 1.0, "in flight"),
];

/// Each device of a host's statistics that did something, the busiest first.
fn devices(record: &Record) -> Vec<String> {
    const FULL_PCT: f64 = 90.0;
    let metrics = &record.series.metrics;
    let of = |begin: &str, name: &str, end: &str| {
        let steps = known(metrics.get(&format!("{begin}_{name}_{end}"))?);
        (!steps.is_empty()).then(|| mean(&steps)).filter(|mean| *mean > 0.0)
    };
    let name = |key: &str| {
        let bare = key.strip_prefix("disk_")?.strip_suffix("_requests_per_s")?;
        Some(bare.trim_start_matches("read_").trim_start_matches("write_").to_owned())
    };
    let names: BTreeSet<String> = metrics.keys().filter_map(|key| name(key)).collect();
    let mut all: Vec<(f64, String)> = Vec::new();
    for name in names {
        let told = |(begin, end, factor, words): &(&str, &str, f64, &str)| {
            of(begin, &name, end).map(|mean| format!("{} {words}", short(mean * factor)))
        };
        let mut figures: Vec<String> = OF_DEVICE.iter().filter_map(told).collect();
        let requests: f64 =
            ["disk", "disk_read", "disk_write"].iter().filter_map(|begin| of(begin, &name, "requests_per_s")).sum();
        if let Some(busy) = of("disk_busy", &name, "pct") {
            let full =
                if busy < FULL_PCT { "" } else { " (no sign of saturation where a device serves several at once)" };
            figures.push(format!("busy {} % of the time{full}", short(busy)));
        }
        if !figures.is_empty() {
            all.push((requests, format!("{name}: {}", figures.join(", "))));
        }
    }
    all.sort_by(|a, b| b.0.total_cmp(&a.0));
    all.into_iter().map(|(_, text)| text).collect()
}

fn known(steps: &[Figure]) -> Vec<f64> {
    steps.iter().filter_map(Figure::value).collect()
}

fn mean(steps: &[f64]) -> f64 {
    steps.iter().sum::<f64>() / steps.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::range;

    #[test]
    fn both_ends_of_a_range_have_one_unit() {
        assert_eq!(range(950e6, 1.05e9, "bits/s"), "0.95 to 1.05 Gbit/s");
        assert_eq!(range(117e6, 120e6, "bytes/s"), "117 to 120 MB/s (10^6)");
        assert_eq!(range(900.0, 1100.0, "transactions/s"), "900 to 1,100 transactions/s");
    }
}
