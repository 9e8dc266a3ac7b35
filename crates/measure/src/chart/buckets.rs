//! A chart of power-of-two buckets: where the waits are, and where the time is.

use super::{Axis, Chart, Drawn, Rows, Stroke, Trace};
use crate::palette::{BLUE, ORANGE};
use crate::units;

/// The upper bound of a power-of-two bucket, for people.
#[must_use]
pub fn bucket_name(bucket: usize) -> String {
    match bucket {
        0..=32 => units::duration((1_u64 << bucket) * 1000),
        _ => format!("over {}", units::duration((1_u64 << 32) * 1000)),
    }
}

/// The middle of a bucket, us: the assumed duration of a wait of which only the bucket is known.
#[must_use]
pub fn bucket_middle_us(bucket: usize) -> f64 {
    match bucket {
        0 => 0.5,
        _ => 0.75 * 2_f64.powi(bucket.min(33) as i32),
    }
}

/// Shares of all waits and of all their time by bucket, 0..100.
#[must_use]
pub fn shares(buckets: &[u64]) -> (Vec<f64>, Vec<f64>) {
    let time: Vec<f64> =
        (buckets.iter().enumerate()).map(|(bucket, count)| *count as f64 * bucket_middle_us(bucket)).collect();
    let waits: f64 = buckets.iter().map(|count| *count as f64).sum();
    let whole: f64 = time.iter().sum();
    let share = |part: f64, all: f64| if all > 0.0 { 100.0 * part / all } else { 0.0 };
    let of_waits = buckets.iter().map(|count| share(*count as f64, waits));
    (of_waits.collect(), time.iter().map(|us| share(*us, whole)).collect())
}

/// First and last used bucket, if any.
#[must_use]
pub fn used(buckets: &[u64]) -> Option<(usize, usize)> {
    let first = buckets.iter().position(|count| *count > 0)?;
    let last = buckets.iter().rposition(|count| *count > 0)?;
    Some((first, last))
}

/// A histogram in shares of waits and of time.
#[must_use]
pub fn of_buckets(id: &str, title: &str, buckets: &[u64]) -> Drawn {
    let Some((first, last)) = used(buckets) else {
        return Drawn::missing(title, "no waits");
    };
    let (waits, time) = shares(buckets);
    let part = |all: &[f64]| all[first..=last].iter().map(|v| Some(*v)).collect();
    let mut chart = Chart {
        id: id.to_owned(),
        title: title.to_owned(),
        note: "The name of a bucket is its upper bound; its lower bound is half of that. The share of time assumes \
            that every wait lies in the middle of its bucket (three quarters of its upper bound)."
            .to_owned(),
        x: Axis::of("below", ""),
        y: Axis::of("share", "%"),
        rows: Rows::Names((first..=last).map(bucket_name).collect()),
        ..Chart::default()
    };
    chart.traces = vec![
        Trace::new("% of waits", Stroke::Bar, BLUE, part(&waits)),
        Trace::new("% of time", Stroke::Bar, ORANGE, part(&time)),
    ];
    Drawn::or(chart, "no waits")
}
