//! Rules over several records: those of their kinds, and of a load that rises.

use crate::kinds;
use assay_measure::record::{Advice, Record};

/// Findings over runs, imports or probes taken together, the weightiest first; nothing of what one record says alone.
#[must_use]
pub fn several(records: &[&Record]) -> Vec<Advice> {
    let mut found = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let kind = kinds::of(record).name();
        let is_of_it = |other: &&&Record| kinds::of(other).name() == kind;
        if !records[..at].iter().any(|earlier| is_of_it(&earlier)) {
            let of_kind: Vec<&Record> = records.iter().filter(is_of_it).copied().collect();
            found.extend(kinds::of(record).several(&of_kind));
        }
    }
    if records.len() > 1 {
        found.extend(crate::sweep::over_records(records));
    }
    found.sort_by_key(|advice| advice.severity != "high");
    found
}
