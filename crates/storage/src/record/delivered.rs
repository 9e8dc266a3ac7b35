//! The performance that a storage probe delivered, in units that have a price.

use crate::record::info::StorageGroup;
use assay_measure::kind::{Delivered, FELL};
use assay_measure::record::Figure;
use assay_measure::units::thousands;

/// The best of a probe's groups, each at its final level: an exhausted burst does not count.
pub(super) fn of(groups: &[StorageGroup]) -> Delivered {
    let mut notes = Vec::new();
    let factors: Vec<f64> = groups.iter().map(|group| sustained(group, &mut notes, groups.len())).collect();
    let best = |of: &dyn Fn(&StorageGroup) -> Option<f64>| {
        let rates = groups.iter().zip(&factors);
        rates.filter_map(|(group, factor)| Some((of(group)? * factor, group))).max_by(|a, b| a.0.total_cmp(&b.0))
    };
    let way = |name: &'static str| {
        move |group: &StorageGroup| {
            let row = group.ways.iter().find(|row| row.way == name)?;
            row.ios_per_s.value()
        }
    };
    let bytes = |group: &StorageGroup| {
        let rates: Vec<f64> = group.ways.iter().filter_map(|row| row.mb_per_s.value()).collect();
        (!rates.is_empty()).then(|| rates.iter().sum())
    };
    let (reads, writes, moved) = (best(&way("read")), best(&way("write")), best(&bytes));
    if groups.len() > 1 {
        let of = |what: &str, found: &Option<(f64, &StorageGroup)>| {
            let (_, group) = found.as_ref()?;
            Some(format!("{what} of group {} ({})", group.group, group.jobs.join(", ")))
        };
        let parts = [of("reads", &reads), of("writes", &writes), of("MB/s", &moved)];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        notes.push(format!("The best of {} groups: {}.", groups.len(), parts.join("; ")));
    }
    let figure = |found: Option<(f64, &StorageGroup)>, none: &str| {
        found.map_or_else(|| Figure::na(none), |(rate, _)| Figure::decimal(rate))
    };
    let window = groups.iter().filter_map(|group| group.ways.iter().find_map(|row| row.runtime_s.value()));
    let none = "a storage probe has none";
    Delivered {
        window_s: window.reduce(f64::min).map_or_else(Figure::default, Figure::decimal),
        reads_per_s: figure(reads, "no reads"),
        writes_per_s: figure(writes, "no writes"),
        mb_per_s: figure(moved, "absent"),
        ops_per_s: Figure::na(none),
        transactions_per_s: Figure::na(none),
        executes_per_s: Figure::na(none),
        notes,
        ..Delivered::default()
    }
}

/// The last level of a group as a share of its mean if it fell, otherwise 1.
fn sustained(group: &StorageGroup, notes: &mut Vec<String>, groups: usize) -> f64 {
    let mean: f64 = group.ways.iter().filter_map(|row| row.ios_per_s.value()).sum();
    let last = group.levels.last().and_then(|level| level.median.value());
    let (Some(last), true) = (last, group.analysed == "IOPS" && !group.changes.is_empty()) else {
        return 1.0;
    };
    let factor = last / mean.max(f64::MIN_POSITIVE);
    if factor >= FELL {
        return 1.0;
    }
    let lead = match groups {
        1 => String::new(),
        _ => format!("Group {}: ", group.group),
    };
    notes.push(format!(
        "{lead}throughput fell during the probe: the cost uses the last level of {} I/Os per second, not the mean of \
         {}, because a burst does not last all month.",
        thousands(last as u64),
        thousands(mean as u64)
    ));
    factor
}
