//! Whether the repetitions of a kernel agree, and what moved with them where they do not.

use super::super::reading::ShotReading;
use assay_measure::statistics::mean;

/// Above this coefficient of variation a kernel is called unsteady, %.
pub(super) const UNSTEADY_PCT: f64 = 3.0;
/// Correlation from which two things are said to have moved together.
const TOGETHER: f64 = 0.7;

/// Correlation coefficient; 0 where one of them did not move.
fn correlation(x: &[f64], y: &[f64]) -> f64 {
    let (mean_x, mean_y) = (mean(x), mean(y));
    let moment = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(of).sum::<f64>();
    let both = moment(&|at| (x[at] - mean_x) * (y[at] - mean_y));
    let own = moment(&|at| (x[at] - mean_x).powi(2)) * moment(&|at| (y[at] - mean_y).powi(2));
    if own > 0.0 { both / own.sqrt() } else { 0.0 }
}

/// What moved with the rates of an unsteady kernel: `steal`, `clock`, `run delay`, or `none of them`; empty of a steady one.
pub(super) fn cause(cv_pct: f64, rates: &[f64], shots: &[&ShotReading]) -> String {
    if cv_pct.is_nan() || cv_pct <= UNSTEADY_PCT {
        return String::new();
    }
    let share = |shot: &&ShotReading, part: &dyn Fn(usize) -> Option<u64>| {
        let parts: Option<u64> = (0..shot.threads.len()).map(part).sum();
        let elapsed: u64 = shot.threads.iter().map(|thread| thread.elapsed_ns).sum();
        Some(parts? as f64 / elapsed.max(1) as f64)
    };
    let delay: Option<Vec<f64>> = shots.iter().map(|shot| share(shot, &|at| shot.threads[at].run_delay_ns)).collect();
    let steal: Option<Vec<f64>> = shots.iter().map(|shot| shot.steal_pct).collect();
    let clock = |shot: &&ShotReading| mean(&shot.threads.iter().map(|t| t.mhz).collect::<Vec<_>>());
    let clock: Vec<f64> = shots.iter().map(clock).collect();
    // A clock pulls its rate up with it; the others take from it.
    let candidates = [
        ("steal", steal.map(|steal| -correlation(rates, &steal))),
        ("clock", Some(correlation(rates, &clock))),
        ("run delay", delay.map(|delay| -correlation(rates, &delay))),
    ];
    let known = candidates.into_iter().filter_map(|(name, r)| Some((name, r?)));
    let best = known.max_by(|a, b| a.1.total_cmp(&b.1));
    match best {
        Some((name, r)) if r >= TOGETHER => name.to_owned(),
        _ => "none of them".to_owned(),
    }
}
