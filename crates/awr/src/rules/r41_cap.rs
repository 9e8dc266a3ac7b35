//! R41: a cap, by what the seconds look like.

use super::*;
use assay_measure::cap;

pub(super) use cap::RULE;

/// A limit that is known and reached needs no search.
pub(super) fn judge(record: &Record) -> RuleResult {
    let is_known = matches!(r12_pinned_at_a_cap::judge(record), Ok(Some(_)));
    Ok(cap::judge(record).filter(|_| !is_known))
}
