//! Rules over several records: R24.

use super::setting;
use assay_measure::facts::IO_MODE_ACHIEVED;
use assay_measure::record::{Advice, Record};

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

/// R24: settings that decide what is measured are not the same.
#[must_use]
pub fn settings_differ(records: &[&Record]) -> Option<Advice> {
    let thinks = |record: &Record| setting(record, "THINK_TM_FREQUENCY") != Some("0");
    let mut differing = Vec::new();
    for (name, what) in DECIDING {
        if THINKING.contains(&name) && !records.iter().any(|record| thinks(record)) {
            continue;
        }
        differing
            .extend(values(records, |record| setting(record, name)).map(|values| format!("{what} ({name}): {values}")));
    }
    let modes = values(records, |record| IO_MODE_ACHIEVED.told(&record.plan.engine_facts));
    differing.extend(modes.map(|values| format!("I/O mode achieved: {values}")));
    if differing.is_empty() {
        return None;
    }
    let text = format!(
        "Settings that decide what is measured differ between these runs: {}. The runs did not do the same work, so \
         these figures cannot show that one is faster than another.",
        differing.join("; ")
    );
    let evidence = [("settings_differing_count", differing.len() as f64)];
    Some(Advice::of("R24", true, text, &evidence))
}

/// `single, batched` where records that know it differ.
fn values<'r>(records: &[&'r Record], of: impl Fn(&'r Record) -> Option<&'r str>) -> Option<String> {
    let mut found: Vec<&str> = Vec::new();
    for value in records.iter().filter_map(|record| of(record)) {
        if !found.contains(&value) {
            found.push(value);
        }
    }
    (found.len() > 1).then(|| found.join(", "))
}
