//! Rules over several records: those of their kinds.

use crate::kinds;
use assay_measure::record::{Advice, Record};

/// Findings over runs, imports or probes taken together, the weightiest first, without the findings of single records.
#[must_use]
pub fn several(records: &[&Record]) -> Vec<Advice> {
    // Each kind looks at all: what it has to say may lie between a record of its own and one of another.
    let mut found: Vec<Advice> = Vec::new();
    for kind in kinds::all() {
        for advice in kind.several(records) {
            if !found.contains(&advice) {
                found.push(advice);
            }
        }
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}
