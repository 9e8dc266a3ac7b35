//! What variation is normal where no earlier run tells it: that of the parts of this one.

use super::detect::batches;
use assay_measure::record::Record;
use assay_measure::statistics::{ALPHA, Difference, stddev};
use assay_measure::units::{fixed, many, readable, short};

/// How the main figure differed between equal parts of the window, and what two such runs would not show; nothing where it has no
/// steps.
#[must_use]
pub fn normal(record: &Record) -> Option<String> {
    let metric = record.metrics.iter().find(|metric| metric.is_primary && metric.series.is_some())?;
    let parts = batches(record, &metric.full_key())?;
    let side = parts.sample();
    let unseen = Difference::welch(&side, &side).detectable(ALPHA, 0.8).exp_m1();
    let (least, most) =
        parts.logs.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), log| (a.min(*log), b.max(*log)));
    let (factor, unit) = readable(most.exp(), &metric.unit);
    let unit = if unit.starts_with("1/") { unit.replacen("1/", "/", 1) } else { format!(" {unit}") };
    // Beyond that the parts are not of one level.
    let noise = if unseen <= 1.0 {
        let pct = fixed(100.0 * unseen, 1);
        format!(
            "By its seconds alone, a difference below {pct} % between two such runs is noise; runs may differ by more."
        )
    } else {
        "They are not of one level: two such runs show no difference.".to_owned()
    };
    Some(format!(
        "no earlier run of this test is known here. In this one, {} was {} to {}{unit} in {} of {} s (standard deviation {} %). {noise}",
        metric.key,
        short(least.exp() / factor),
        short(most.exp() / factor),
        many(parts.logs.len() as u64, "part"),
        fixed(parts.batch_s, 0),
        fixed(100.0 * stddev(&parts.logs), 1),
    ))
}
