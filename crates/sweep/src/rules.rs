//! The rules by which a sweep is judged, in words.

use crate::usl;
use std::collections::BTreeMap;

/// Every rule, by name.
pub(crate) fn all() -> BTreeMap<String, String> {
    let usl = format!(
        "X(N) = lambda N / (1 + sigma (N-1) + kappa N (N-1)), 0 <= sigma <= 1, kappa >= 0; least squares of the \
         relative deviation; at least {} loads; no fit if the deviation (root mean square) is above {:.0} % and above twice \
         the steps' own standard error, above {:.0} %, or above {:.0} % at any step; 95 % intervals from a parametric bootstrap of {} redraws with the larger of the residual and each \
         step's own standard error (at most ten batch means of its seconds): within this sweep only, the variation from \
         one sweep to the next is unknown",
        usl::LEAST_POINTS,
        100.0 * usl::WORST_RMS,
        100.0 * usl::NOISY_RMS,
        100.0 * usl::WORST_MISS,
        usl::REDRAWS
    );
    let rules = [
        ("cpu", "CPU of this process, all threads".to_owned()),
        (
            "goal",
            "the last step before the first whose 99th percentile of operation latency is above the goal".to_owned(),
        ),
        (
            "knee",
            "the last step with a gain of at least 5 % over the best of all smaller loads (for less than a doubling of \
             the load, at the same rate per doubling); none is shown where that step, the one before it or a later one never \
             settled, or others used the host's CPUs meanwhile; a step that never settled is run once more, and the repeat \
             counts"
                .to_owned(),
        ),
        (
            "latency",
            "operations of all kinds together, as the client sees them, from the intended start".to_owned(),
        ),
        (
            "little",
            "sessions that Little's law accounts for, divided by the actual sessions; must be within 5 %".to_owned(),
        ),
        ("steady", assay_measure::record::steady::RULE.to_owned()),
        ("usl", usl),
    ];
    rules.into_iter().map(|(name, rule)| (name.to_owned(), rule)).collect()
}
