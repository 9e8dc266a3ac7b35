//! The data that the rules of advice examine, with helpers.

use super::info::{StorageGroup, StorageInfo, StorageLevel};
use crate::readings::StorageReadings;
use assay_measure::record::{Advice, Figure, Record};

/// Maximum variation of the seconds of a level that something holds.
pub(super) const FLAT: f64 = 0.02;
/// Minimum duration of a level that counts as sustained.
pub(super) const SUSTAINED_S: f64 = 5.0;

/// The data for the rules.
pub(super) struct View<'a> {
    pub(super) readings: &'a StorageReadings,
    pub(super) info: &'a StorageInfo,
    pub(super) record: &'a Record,
}

/// `Group 1 (a, b): ` if there are several groups.
pub(super) fn lead(info: &StorageInfo, group: &StorageGroup) -> String {
    match info.groups.len() {
        1 => String::new(),
        _ => format!("Group {} ({}): ", group.group, group.jobs.join(", ")),
    }
}

/// Prefixes findings with this text.
pub(super) fn led(lead: &str, found: impl IntoIterator<Item = Option<Advice>>) -> impl Iterator<Item = Advice> {
    found.into_iter().flatten().map(move |found| Advice { text: format!("{lead}{}", found.text), ..found })
}

pub(super) fn value(figure: &Figure) -> f64 {
    figure.value().unwrap_or(0.0)
}

/// Duration of a level, s.
pub(super) fn length(level: &StorageLevel) -> f64 {
    value(&level.to_s) - value(&level.from_s)
}

pub(super) fn is_flat(level: &StorageLevel) -> bool {
    let variation = level.variation_ratio.value();
    length(level) >= SUSTAINED_S && variation.is_some_and(|variation| variation <= FLAT)
}
