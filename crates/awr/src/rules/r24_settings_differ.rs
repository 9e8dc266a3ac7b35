//! R24: settings that decide what is measured differ.

use super::*;
use assay_measure::config::known_params;
use facts::IO_MODE_ACHIEVED;

pub(super) const RULE: Rule = Rule {
    id: "R24",
    title: "Settings that decide what is measured differ",
    changes_figures: false,
    fires_when: || {
        "Compared runs differ in checksums, prefetching, think time or the I/O mode set or achieved; always high"
            .to_owned()
    },
    why: "The runs did not do the same work, so their figures cannot show that one is faster.",
    what_to_do: "Repeat one of them with the settings of the other.",
    cannot_judge_when: "Never: a setting that no record states is left out.",
    source: "Published comparisons that did so.",
};

/// Settings that decide which work a figure is of, of those that a reader of two reports overlooks.
const DECIDING: [&str; 7] = [
    "DB_BLOCK_CHECKSUM",
    "READ_MODE",
    "CACHE_PREFETCH",
    "THINK_TM_FREQUENCY",
    "THINK_TM_MIN",
    "THINK_TM_MAX",
    "IO_MODE",
];

/// The finding over runs that are compared.
#[must_use]
pub fn judge(records: &[&Record]) -> Option<Advice> {
    let known = known_params();
    let mut differing = Vec::new();
    for name in DECIDING {
        let def = known.iter().find(|def| def.name == name);
        let is_idle = |record: &&Record| def.is_some_and(|def| def.is_idle(|other| setting(record, other)));
        if records.iter().all(is_idle) {
            continue;
        }
        let title = def.map_or_else(|| name.to_owned(), |def| def.title());
        differing.extend(values(records, |record| setting(record, name)).map(|values| format!("{title}: {values}")));
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
