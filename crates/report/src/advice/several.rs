//! Rules over several records: R9, R10, R11, R24.
//!
//! R28 needs prices ([`super::costs()`]), R29 projections: the sweep that computes them says it.

use assay_measure::record::{Advice, Record, StorageGroup, StorageInfo};
use assay_measure::units::{fixed, size, thousands};

/// Rates within this part of each other are the same.
const SAME: f64 = 0.05;
/// Sizes this far apart are different sizes.
const APART: f64 = 1.8;

/// Findings over runs, imports or probes taken together, the weightiest first; nothing of what one record says alone.
#[must_use]
pub fn several(records: &[&Record]) -> Vec<Advice> {
    let mut found: Vec<Advice> = settings_differ(records).into_iter().collect();
    if records.len() > 1 {
        found.extend(crate::sweep::over_records(records));
    }
    // A probe that ran all the sizes has said it itself.
    let is_said = records
        .iter()
        .any(|record| record.advice.iter().any(|advice| advice.id == "R11"));
    if !is_said {
        found.extend(two_limits(&groups(records)));
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}

/// What decides which work a figure is of.
const DECIDING: [(&str, &str); 7] = [
    ("DB_BLOCK_CHECKSUM", "checksum"),
    ("READ_MODE", "prefetch"),
    ("CACHE_PREFETCH", "prefetch"),
    ("THINK_TM_FREQUENCY", "think time"),
    ("THINK_TM_MIN", "think time"),
    ("THINK_TM_MAX", "think time"),
    ("IO_MODE", "I/O mode"),
];

/// Settings that have no effect while think time is off.
const THINKING: [&str; 2] = ["THINK_TM_MIN", "THINK_TM_MAX"];

/// R24.
fn settings_differ(records: &[&Record]) -> Option<Advice> {
    let thinks = |record: &Record| super::setting(record, "THINK_TM_FREQUENCY") != Some("0");
    let mut differing = Vec::new();
    for (name, what) in DECIDING {
        if THINKING.contains(&name) && !records.iter().any(|record| thinks(record)) {
            continue;
        }
        differing.extend(
            values(records, |record| super::setting(record, name))
                .map(|values| format!("{what} ({name}): {values}")),
        );
    }
    let modes = values(records, |record| {
        let mut facts = record.plan.engine_facts.iter();
        let found = facts.find(|fact| fact.name == "io_mode_achieved")?;
        Some(found.value.as_str())
    });
    differing.extend(modes.map(|values| format!("I/O mode achieved: {values}")));
    if differing.is_empty() {
        return None;
    }
    let text = format!(
        "Settings that decide what is measured differ between these runs: {}. None of them may be called faster than another by these figures: they did not do the same work.",
        differing.join("; ")
    );
    let evidence = [("settings_differing_count", differing.len() as f64)];
    Some(Advice::of("R24", true, text, &evidence))
}

/// `single, batched` where records that know it differ.
fn values<'r>(
    records: &[&'r Record],
    of: impl Fn(&'r Record) -> Option<&'r str>,
) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    for value in records.iter().filter_map(|record| of(record)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    (found.len() > 1).then(|| found.join(", "))
}

/// Requests of one size in one direction, and how many of them there were.
#[derive(Clone, Copy, Debug)]
struct Point {
    request_bytes: f64,
    ios_per_s: f64,
}

impl Point {
    fn bytes_per_s(self) -> f64 {
        self.request_bytes * self.ios_per_s
    }
}

fn groups(records: &[&Record]) -> Vec<StorageGroup> {
    let parts = records
        .iter()
        .filter_map(|record| record.parts.get::<StorageInfo>());
    parts.flat_map(|info| info.groups).collect()
}

/// Rates of requests of one direction.
fn points(groups: &[StorageGroup], way: &str) -> Vec<Point> {
    let of_group = |group: &StorageGroup| {
        // Both directions at once share the device.
        let [row] = group.ways.as_slice() else {
            return None;
        };
        let ios = row
            .ios_per_s
            .value()
            .filter(|ios| *ios > 0.0 && row.way == way)?;
        let bytes = match row.ios_count {
            // An import has rates alone.
            0 => row.mb_per_s.value()? * 1e6 / ios,
            count => row.moved_bytes as f64 / count as f64,
        };
        Some(Point {
            request_bytes: bytes,
            ios_per_s: ios,
        })
    };
    let mut points: Vec<Point> = (groups.iter())
        .filter_map(of_group)
        .filter(|point| point.request_bytes > 0.0)
        .collect();
    points.sort_by(|a, b| a.request_bytes.total_cmp(&b.request_bytes));
    points
}

/// R11 of one record with several groups.
pub(super) fn two_limits_of(record: &Record) -> super::Judged {
    Ok(two_limits(&groups(&[record])))
}

/// R11: as many requests at one size and its double, and as many bytes from there to the next.
pub(crate) fn two_limits(groups: &[StorageGroup]) -> Option<Advice> {
    let same = |a: f64, b: f64| (a / b - 1.0).abs() <= SAME;
    for way in ["read", "write"] {
        let points = points(groups, way);
        let pairs = || {
            let pairs = points.iter().enumerate();
            pairs
                .flat_map(|(at, a)| points[at + 1..].iter().map(move |b| (*a, *b)))
                .filter(|(a, b)| b.request_bytes >= APART * a.request_bytes)
        };
        let by_count = pairs().filter(|(a, b)| same(a.ios_per_s, b.ios_per_s));
        for (small, middle) in by_count {
            let mut by_bytes = pairs().filter(|(a, b)| {
                a.request_bytes >= 0.99 * middle.request_bytes
                    && same(a.bytes_per_s(), b.bytes_per_s())
            });
            let Some((from, large)) = by_bytes.next() else {
                continue;
            };
            let mib = large.bytes_per_s() / 1_048_576.0;
            let kib = |point: Point| size(point.request_bytes.round() as u64);
            let text = format!(
                "Two limits show over the sizes of {way}s: {} a second at {} and at {} alike, so I/Os are limited; {} MiB/s at {} and at {} alike, so bytes are too. Below about {} the first holds, above it the second; the device itself shows neither.",
                thousands(middle.ios_per_s.round() as u64),
                kib(small),
                kib(middle),
                fixed(mib, 0),
                kib(from),
                kib(large),
                kib(from)
            );
            let evidence = [
                ("ios_limit_per_s", middle.ios_per_s),
                ("bytes_limit_mib_per_s", mib),
            ];
            return Some(Advice::of("R11", true, text, &evidence));
        }
    }
    None
}
