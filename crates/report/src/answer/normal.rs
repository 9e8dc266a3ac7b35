//! What variation is normal where no earlier run tells it: that of the parts of this one.

use assay_measure::record::Record;
use assay_measure::statistics::{ALPHA, Difference, Sample, batch_means, stddev};
use assay_measure::units::{fixed, many, readable, short};

/// Steps below which their scatter says too little.
const STEPS_MIN: usize = 20;

/// How the main figure differed between equal parts of the window, and what two such runs would not show; nothing where it has no
/// steps.
#[must_use]
pub fn normal(record: &Record) -> Option<String> {
    let metric = record.metrics.iter().find(|metric| metric.is_primary && metric.series.is_some())?;
    let steps = record.series.metrics.get(metric.series.as_ref()?)?;
    let inside = steps.iter().zip(&record.series.in_window).filter(|(_, is_inside)| **is_inside);
    let values: Vec<f64> = inside.filter_map(|(figure, _)| figure.value()).collect();
    let parts = batch_means(&values);
    if values.len() < STEPS_MIN || parts.iter().any(|part| *part <= 0.0) {
        return None;
    }
    let step_s = record.series.step_s.value().unwrap_or(1.0);
    let logs: Vec<f64> = parts.iter().map(|part| part.ln()).collect();
    let side = Sample::in_order(&logs);
    let unseen = Difference::welch(&side, &side).detectable(ALPHA, 0.8).exp_m1();
    let (least, most) = parts.iter().fold((f64::INFINITY, 0.0_f64), |(a, b), part| (a.min(*part), b.max(*part)));
    let (factor, unit) = readable(most, &metric.unit);
    let unit = if unit.starts_with("1/") { unit.replacen("1/", "/", 1) } else { format!(" {unit}") };
    Some(format!(
        "no earlier run of this test is known here. {} of {} s of this one had {} to {}{unit} ({}; standard deviation {} %). By its \
         seconds alone, a difference below {} % between two such runs is noise; runs may differ by more.",
        many(parts.len() as u64, "part"),
        fixed((values.len() / parts.len()) as f64 * step_s, 0),
        short(least / factor),
        short(most / factor),
        metric.key,
        fixed(100.0 * stddev(&logs), 1),
        fixed(100.0 * unseen, 1),
    ))
}
