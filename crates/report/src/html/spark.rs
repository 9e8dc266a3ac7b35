//! The course of a figure in the space of a word: a line drawn into the page, which needs no script.

use super::sample;
use assay_measure::record::metric::Metric;
use assay_measure::record::{Figure, Series};
use assay_measure::units::short;
use std::fmt::Write as _;

/// Width of the drawing, in its own units; the page stretches it.
const WIDTH: f64 = 120.0;
/// Height of the drawing; its lower edge is 0.
const HEIGHT: f64 = 24.0;
/// Kept free above and below, so that the line is not cut.
const EDGE: f64 = 1.5;
/// Fewer steps than this show no course.
const STEPS: usize = 3;

/// A line and what it shows.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Spark {
    /// Path of an SVG of 120 by 24.
    pub(crate) path: String,
    /// For who does not see it.
    pub(crate) told: String,
}

/// The steps of the measured window from 0 up; nothing where there are too few, or nothing happened.
pub(crate) fn of(metric: &Metric, series: &Series) -> Option<Spark> {
    let column = series.metrics.get(metric.series.as_ref()?)?;
    let inside = |at: usize| series.in_window.get(at).copied().unwrap_or(true);
    let steps = column.iter().enumerate().filter(|(at, _)| inside(*at));
    let steps: Vec<_> = steps.map(|(_, step)| Figure::value(step)).collect();
    line(&steps, "over the window")
}

/// These values at equal distances, none for a gap; `over` says what they are of.
pub(crate) fn line(steps: &[Option<f64>], over: &str) -> Option<Spark> {
    let known = || steps.iter().filter_map(|step| *step);
    let (low, high) = (known().min_by(f64::total_cmp)?, known().max_by(f64::total_cmp)?);
    if known().count() < STEPS || high <= 0.0 || low < 0.0 {
        return None;
    }
    let all = || (0..steps.len()).collect();
    // As many points as it is wide: of each stretch the lowest and the highest.
    let kept: Vec<usize> = sample::line(steps, WIDTH as usize).unwrap_or_else(all);
    let mut path = String::new();
    let mut is_down = false;
    for at in kept {
        let Some(value) = steps[at] else {
            is_down = false;
            continue;
        };
        let x = WIDTH * at as f64 / (steps.len() - 1) as f64;
        let y = HEIGHT - EDGE - (HEIGHT - 2.0 * EDGE) * value / high;
        let pen = if is_down { 'L' } else { 'M' };
        write!(path, "{pen}{x:.1} {y:.1}").expect("a string");
        is_down = true;
    }
    Some(Spark { path, told: format!("{over} from {} to {}, drawn from 0", short(low), short(high)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_at_zero_and_a_gap_stays_a_gap() {
        let spark = line(&[Some(0.0), Some(5.0), None, Some(10.0), Some(10.0)], "over the window");
        let spark = spark.expect("a course");
        assert_eq!(spark.path, "M0.0 22.5L30.0 12.0M90.0 1.5L120.0 1.5");
        assert_eq!(spark.told, "over the window from 0.00 to 10.0, drawn from 0");
    }

    #[test]
    fn what_has_no_course_has_no_line() {
        assert_eq!(line(&[Some(1.0), None, Some(2.0)], ""), None);
        assert_eq!(line(&[Some(0.0); 10], ""), None);
        assert_eq!(line(&[None; 10], ""), None);
    }

    #[test]
    fn a_day_of_seconds_is_a_short_line_that_keeps_its_spike() {
        let mut day = vec![Some(1.0); 86_400];
        day[40_000] = Some(50.0);
        let spark = line(&day, "").expect("a course");
        assert!(spark.path.len() < 2000, "{} bytes", spark.path.len());
        assert!(spark.path.contains(" 1.5"), "{}", spark.path);
    }
}
