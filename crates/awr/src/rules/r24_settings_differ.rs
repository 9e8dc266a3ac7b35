//! R24: settings that decide what is measured differ.

use super::*;
use facts::IO_MODE_ACHIEVED;

pub(super) const RULE: Rule = Rule {
    id: "R24",
    title: "Settings that decide what is measured differ",
    changes_figures: false,
    fires_when: || {
        "Compared runs differ in checksums, prefetching, think time or the I/O mode set or achieved".to_owned()
    },
    why: "The runs did not do the same work, so their figures cannot show that one is faster.",
    what_to_do: "Repeat one of them with the settings of the other.",
    cannot_judge_when: "Never: a setting that no record states is left out.",
    source: "Published comparisons that did so.",
};

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

/// The finding over runs that are compared.
#[must_use]
pub fn judge(records: &[&Record]) -> Option<Advice> {
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
    Some(RULE.finding(true, text, &evidence))
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
