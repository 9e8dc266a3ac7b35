//! `--allow NAME`: conditions that differ on purpose, since the comparison is about them.
//!
//! A name is a parameter (`CACHE_MB`), a fact of the host or the engine (`cpus_usable`, `device_mount_options`), or a word of a
//! condition (`sessions`). What follows from it goes with it: a larger cache reads fewer blocks.

use super::model::{Check, Finding};
use assay_measure::record::Record;
use assay_measure::snapshot::Fact;

/// The work of an operation.
const WORK: &str = "work: ";
/// Parameters that change how much of the data is in memory, hence what is read, and no other work of an operation.
const OF_THE_CACHE: [&str; 4] = ["CACHE_MB", "PG_SET", "SCALE", "CACHE_SCAN_PCT"];
/// What follows from those.
const FROM_THE_CACHE: [&str; 2] = ["cache : active data", "work: Physical read"];

/// Marks what `allow` names and what follows from it as varied on purpose, and adds the conditions that are not among the
/// checks.
pub(super) fn apply(allow: &[String], from: &Record, to: &Record, checks: &mut Vec<Check>) {
    for name in allow {
        let (a, b) = (value(from, name), value(to, name));
        let is_parameter = [from, to].iter().any(|record| setting(record, name).is_some());
        let is_listed = checks.iter().any(|check| names(check, name));
        for check in checks.iter_mut() {
            let goes_along = names(check, name) || (is_parameter && follows(check, name));
            if goes_along && matches!(check.finding, Finding::Forbids | Finding::Tolerable) {
                check.finding = Finding::Varied;
            }
        }
        if !is_listed && let (Some(a), Some(b)) = (a, b) {
            checks.insert(0, Check::text(name, &a, &b, Finding::Varied));
        }
    }
}

/// Whether a condition is the one of that name: one of its words.
pub(super) fn names(check: &Check, name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let mut words = check.what.split(|c| !is_part(c));
    check.what.eq_ignore_ascii_case(name) || words.any(|word| word.eq_ignore_ascii_case(name))
}

/// Whether a condition follows from that parameter. The host makes the same operations, a parameter of the workload others.
fn follows(check: &Check, name: &str) -> bool {
    if OF_THE_CACHE.iter().any(|cache| cache.eq_ignore_ascii_case(name)) {
        return FROM_THE_CACHE.iter().any(|what| check.what.starts_with(what));
    }
    check.what.starts_with(WORK)
}

pub(super) fn facts(record: &Record) -> impl Iterator<Item = &Fact> {
    record.plan.engine_facts.iter().chain(&record.host.facts)
}

fn setting(record: &Record, name: &str) -> Option<String> {
    let mut settings = record.plan.settings.iter();
    let setting = settings.find(|line| line.name.eq_ignore_ascii_case(name));
    setting.map(|line| line.value.clone())
}

/// What a record says of a parameter or a fact.
pub(super) fn value(record: &Record, name: &str) -> Option<String> {
    setting(record, name).or_else(|| {
        let found = facts(record).find(|fact| fact.name.eq_ignore_ascii_case(name));
        found.map(|fact| fact.value.clone())
    })
}
