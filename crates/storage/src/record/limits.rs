//! Decides whether requests of several sizes show two limits.

use super::info::{StorageGroup, StorageInfo};
use assay_measure::record::{Advice, Record};
use assay_measure::rule::Rule;
use assay_measure::units::{fixed, size, thousands};

/// Rates that differ by at most this share are the same.
const SAME: f64 = 0.05;
/// Sizes that differ by this factor are different.
const APART: f64 = 1.8;

/// The rate of requests of one size in one direction.
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

/// The groups of all records.
pub(super) fn groups(records: &[&Record]) -> Vec<StorageGroup> {
    let parts = records.iter().filter_map(|record| record.parts.get::<StorageInfo>());
    parts.flat_map(|info| info.groups).collect()
}

/// Rates of requests of one direction.
fn points(groups: &[StorageGroup], way: &str) -> Vec<Point> {
    let of_group = |group: &StorageGroup| {
        // Directions used at the same time share the device.
        let [row] = group.ways.as_slice() else {
            return None;
        };
        let ios = row.ios_per_s.value().filter(|ios| *ios > 0.0 && row.way == way)?;
        let bytes = match row.ios_count {
            // An imported result has only rates.
            0 => row.mb_per_s.value()? * 1e6 / ios,
            count => row.moved_bytes as f64 / count as f64,
        };
        Some(Point { request_bytes: bytes, ios_per_s: ios })
    };
    let mut points: Vec<Point> =
        (groups.iter()).filter_map(of_group).filter(|point| point.request_bytes > 0.0).collect();
    points.sort_by(|a, b| a.request_bytes.total_cmp(&b.request_bytes));
    points
}

pub(super) const TWO_LIMITS: Rule = Rule {
    id: "R11",
    title: "Two limits, of I/Os and of bytes",
    changes_figures: false,
    fires_when: || {
        format!(
            "For one direction, IOPS agree within {} % at two sizes of request at least {APART} times apart, and bytes per second at two sizes from there on; always high",
            100.0 * SAME
        )
    },
    why: "Both figures are limits that somebody set, and neither is the device.",
    what_to_do: "Compare both with what the provider promises.",
    cannot_judge_when: "Each group moves both directions at once, or there are fewer than two sizes: then the rule is silent.",
    source: "Published load tests of the method: 14,500, 14,500 and 7,200 IOPS at 4, 8 and 16 KiB.",
};

pub(super) fn two_limits(groups: &[StorageGroup]) -> Option<Advice> {
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
                a.request_bytes >= 0.99 * middle.request_bytes && same(a.bytes_per_s(), b.bytes_per_s())
            });
            let Some((from, large)) = by_bytes.next() else {
                continue;
            };
            let mib = large.bytes_per_s() / 1_048_576.0;
            let kib = |point: Point| size(point.request_bytes.round() as u64);
            let text = format!(
                "The {way} sizes show two limits: {} per second at both {} and {}, so I/Os are limited; {} MiB/s at \
                 both {} and {}, so bytes are limited too. Below about {} the first limit applies, above it the \
                 second.",
                thousands(middle.ios_per_s.round() as u64),
                kib(small),
                kib(middle),
                fixed(mib, 0),
                kib(from),
                kib(large),
                kib(from)
            );
            let evidence = [("ios_limit_per_s", middle.ios_per_s), ("bytes_limit_mib_per_s", mib)];
            return Some(TWO_LIMITS.explain(true, text, &evidence));
        }
    }
    None
}
