//! Which multiple of a load comes next, and whether a step held.

use super::load::{COMMIT_US, DatabaseLoad, READ_US};
use assay_measure::histogram::slot_low_and_width_ns;
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Record};
use assay_measure::statistics::{batch_means, half_width, mean};
use assay_measure::units::{short, told};

/// Multiples in the order in which they are tried, until one misses.
const RISING: [f64; 9] = [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0];
/// Below this part of the load nothing is looked for.
const LEAST: f64 = 0.1;
/// Between what holds and what misses no more than this ratio is left.
const CLOSE: f64 = 1.25;
/// A rate below this part of what was asked for is missed.
const KEPT: f64 = 0.98;
/// A mean without an interval may be off by this part.
const ROUGHLY: f64 = 0.05;

/// The next multiple, after those that were tried with whether they held; `None`: the answer is known.
#[must_use]
pub fn next(tried: &[(f64, bool)]) -> Option<f64> {
    let held = held(tried);
    let missed = tried.iter().filter(|(factor, holds)| !holds && *factor > held).map(|(factor, _)| *factor);
    match missed.reduce(f64::min) {
        None => RISING.into_iter().find(|factor| *factor > held),
        Some(missed) if held == 0.0 => (missed / 2.0 >= LEAST).then_some(missed / 2.0),
        Some(missed) if missed / held <= CLOSE => None,
        Some(missed) => {
            Some(((missed * held).sqrt() * 20.0).round() / 20.0).filter(|next| *next > held && *next < missed)
        }
    }
}

/// Steps that are tried at most, and usually, for the plan.
pub const USUAL_STEPS: u64 = 6;

/// The largest multiple that held and below which none missed; 0: none.
pub(super) fn held(tried: &[(f64, bool)]) -> f64 {
    let missed = tried.iter().filter(|(_, holds)| !holds).map(|(factor, _)| *factor).fold(f64::INFINITY, f64::min);
    tried.iter().filter(|(factor, holds)| *holds && *factor < missed).map(|(factor, _)| *factor).fold(0.0, f64::max)
}

/// A mean latency here beside the one there.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Side {
    pub(super) what: &'static str,
    pub(super) there_us: Figure,
    pub(super) here_us: Figure,
    /// Half of the 95 % interval of the one here.
    pub(super) off_us: f64,
}

impl Side {
    fn exceeds(&self) -> Option<String> {
        let (here, there) = self.here_us.value().zip(self.there_us.value())?;
        (here - self.off_us > there)
            .then(|| format!("{} take {} here, {} there", self.what, told(here, "us", 0), told(there, "us", 0)))
    }
}

/// Reads and commits of a step beside those there.
pub(super) fn sides(load: &DatabaseLoad, record: &Record) -> [Side; 2] {
    let ratio = spread(record);
    let side = |what, there: &str, event: &str, key: &str| {
        let here_us = metric(record, key);
        let off_us = here_us.value().map_or(0.0, |us| us * ratio).max(error_us(record, event));
        Side { what, there_us: load.figure(there), here_us, off_us }
    };
    [
        side("reads", READ_US, READ, "db_file_sequential_read_us_avg"),
        side("commits", COMMIT_US, COMMIT, "log_file_sync_us_avg"),
    ]
}

const READ: &str = "db file sequential read";
const COMMIT: &str = "log file sync";

/// Half of the 95 % interval of an event's mean, if its waits were independent: what few waits leave open.
fn error_us(record: &Record, event: &str) -> f64 {
    let row = record.instance.events.iter().find(|row| row.name == event && row.actor == "foreground");
    let Some((waits, middle)) = row.and_then(|row| Some((&row.hist_ns, row.hist_ns.mean_ns()?))) else { return 0.0 };
    let squares: f64 = (waits.sparse().into_iter())
        .map(|(slot, count)| {
            let (low, width) = slot_low_and_width_ns(slot as usize);
            count as f64 * (low as f64 + width as f64 / 2.0 - middle).powi(2)
        })
        .sum();
    let count = waits.count() as f64;
    if count > 1.0 { 1.96 * (squares / (count - 1.0) / count).sqrt() / 1e3 } else { f64::INFINITY }
}

/// How far a mean latency of the window may be off, as the means of its seconds' operations spread.
fn spread(record: &Record) -> f64 {
    let series = &record.series;
    let inside = series.metrics.get("op_us_avg").map(|steps| series.in_window.iter().zip(steps));
    let inside: Vec<f64> =
        inside.into_iter().flatten().filter(|(is_inside, _)| **is_inside).filter_map(|(_, us)| us.value()).collect();
    if inside.is_empty() {
        return ROUGHLY;
    }
    let middle = mean(&inside);
    half_width(&batch_means(&inside)).filter(|_| middle > 0.0).map_or(ROUGHLY, |half| (half / middle).max(ROUGHLY))
}

/// A figure of a step's record.
pub(super) fn metric(record: &Record, key: &str) -> Figure {
    find(&record.metrics, key).map_or_else(|| Figure::na("the step does not have it"), |metric| metric.value.clone())
}

/// Why a step missed the load, in sentences; empty: it held.
pub(super) fn missed(load: &DatabaseLoad, asked_per_s: u64, record: &Record) -> Vec<String> {
    let done = metric(record, "ops_per_s").value().unwrap_or(0.0);
    let rate = (done < KEPT * asked_per_s as f64)
        .then(|| format!("{} operations/s of {} asked", short(done), short(asked_per_s as f64)));
    // A run that missed its rate is invalid for that.
    let verdict = (rate.is_none() && record.run.verdict != "complete")
        .then(|| format!("the run is {}: {}", record.run.verdict, record.run.verdict_reasons.join("; ")));
    rate.into_iter().chain(verdict).chain(sides(load, record).iter().filter_map(Side::exceeds)).collect()
}

/// Whether a step held: the rate was kept, and neither reads nor commits took longer than there.
#[must_use]
pub fn holds(load: &DatabaseLoad, asked_per_s: u64, record: &Record) -> bool {
    missed(load, asked_per_s, record).is_empty()
}
