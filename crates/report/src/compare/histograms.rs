//! Waits of the same event in several groups, as shares of the waits and of their time.

use super::model::{SharedHistogram, WaitShares};
use super::samples::RunGroup;
use assay_measure::record::{EventRow, Record};

/// Events with a distribution in at least two groups, most waited for first.
const MOST_EVENTS: usize = 8;

/// The name an event goes by on usual storage.
pub(super) fn usual_event(name: &str) -> &str {
    match name {
        "cell single block physical read" => "db file sequential read",
        "cell multiblock physical read" => "db file scattered read",
        name => name,
    }
}

pub(super) fn shared(groups: &[RunGroup<'_>]) -> Vec<SharedHistogram> {
    let mut names: Vec<(&str, f64)> = Vec::new();
    for event in groups.iter().flat_map(|group| &group.records).flat_map(|record| waited(record)) {
        let name = usual_event(&event.name);
        let total = event.total_us.value().unwrap_or(0.0);
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, sum)) => *sum += total,
            None => names.push((name, total)),
        }
    }
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    let all = names.into_iter().map(|(name, _)| SharedHistogram {
        event: name.to_owned(),
        groups: groups.iter().map(|group| shares(group, name)).collect(),
    });
    all.filter(|histogram| histogram.groups.iter().filter(|g| g.waits_count > 0).count() > 1)
        .take(MOST_EVENTS)
        .collect()
}

fn waited(record: &Record) -> impl Iterator<Item = &EventRow> {
    let events = record.instance.events.iter();
    events.filter(|event| event.actor != "background" && event.hist_us.iter().any(|n| *n > 0))
}

/// Waits and time of all runs of a group together.
fn shares(group: &RunGroup<'_>, name: &str) -> WaitShares {
    let (mut waits, mut time_us) = (Vec::new(), Vec::new());
    for event in group.records.iter().flat_map(|record| waited(record)) {
        if usual_event(&event.name) != name {
            continue;
        }
        let length = waits.len().max(event.hist_us.len());
        waits.resize(length, 0_u64);
        time_us.resize(length, 0.0_f64);
        for (bucket, count) in event.hist_us.iter().enumerate() {
            waits[bucket] += count;
            time_us[bucket] += *count as f64 * middle_us(bucket);
        }
    }
    let all: u64 = waits.iter().sum();
    let whole: f64 = time_us.iter().sum();
    if all == 0 {
        return WaitShares::default();
    }
    WaitShares {
        waits_count: all,
        waits_pct: waits.iter().map(|n| 100.0 * *n as f64 / all as f64).collect(),
        time_pct: time_us.iter().map(|us| 100.0 * us / whole).collect(),
    }
}

/// The middle of 2^(i-1) <= us < 2^i, which a wait of the bucket is taken for.
fn middle_us(bucket: usize) -> f64 {
    match bucket {
        0 => 0.5,
        bucket => 0.75 * 2.0_f64.powi(bucket.min(1000) as i32),
    }
}
