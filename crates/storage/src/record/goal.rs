//! The result of a job's search for a depth that meets a latency (`latency_target`).

use crate::readings::{CloneReading, JobReading};
use crate::record::info::{StorageJob, StorageSearch};
use assay_measure::record::Figure;
use assay_measure::units::{fixed, thousands};

/// The search of a job, if it has one.
pub(super) fn search(job: &JobReading, clones: &[&CloneReading]) -> Option<StorageSearch> {
    let goal = job.latency_goal()?;
    let found = || clones.iter().filter_map(|clone| clone.search);
    let measured: Vec<_> =
        (clones.iter()).filter(|clone| clone.runtime_ns > 0).filter_map(|clone| clone.search).collect();
    let ios: u64 = measured.iter().map(|search| search.ios).sum();
    let slow: u64 = measured.iter().map(|search| search.slow_ios).sum();
    let share = match (goal.adapts, ios) {
        (true, _) => Figure::na("the depth was adapted until the end"),
        (false, 0) => Figure::na("nothing was measured"),
        (false, _) => Figure::decimal(100.0 * (ios - slow) as f64 / ios as f64),
    };
    let seconds = |ns: u64| Figure::decimal(ns as f64 / 1e9);
    Some(StorageSearch {
        target_us: Figure::decimal(goal.target_ns as f64 / 1e3),
        window_s: seconds(goal.window_ns),
        percentile_pct: Figure::decimal(goal.percentile),
        adapts: goal.adapts,
        depths_count: found().map(|search| search.depth.into()).collect(),
        windows_count: found().map(|search| search.windows.into()).max().unwrap_or(0),
        searched_s: if goal.adapts {
            Figure::na("the depth was adapted until the end")
        } else {
            seconds(found().map(|search| search.searched_ns).max().unwrap_or(0))
        },
        attained: share.value().is_some_and(|share| share >= goal.percentile),
        within_target_pct: share,
    })
}

impl StorageJob {
    /// Maximum number of I/Os in flight over all clones: as requested, or as found by a search. 0 if unknown.
    #[must_use]
    pub fn in_flight_most_count(&self) -> u64 {
        match &self.search {
            Some(search) => search.depths_count.iter().sum(),
            // Trims are issued one at a time.
            None if ["trim", "randtrim"].contains(&self.rw.as_str()) => self.numjobs_count.max(1),
            None => self.iodepth_count * self.numjobs_count.max(1),
        }
    }
}

/// The result of the search in one sentence.
pub(super) fn sentence(search: &StorageSearch) -> String {
    let number = |figure: &Figure| figure.value().map_or_else(String::new, |value| format!("{value}"));
    let goal = format!(
        "latency_target {} us for {} % of the I/Os of {} s",
        number(&search.target_us),
        number(&search.percentile_pct),
        number(&search.window_s)
    );
    let depths: Vec<String> = search.depths_count.iter().map(|depth| thousands(*depth)).collect();
    let depths = format!("depth {}{}", depths.join(", "), if depths.len() > 1 { " (clone by clone)" } else { "" });
    let searched = format!(
        "{} window{}, {} s",
        thousands(search.windows_count),
        if search.windows_count == 1 { "" } else { "s" },
        search.searched_s.value().map_or_else(|| "n/a".to_owned(), |s| fixed(s, 1))
    );
    match search.within_target_pct.value() {
        None if search.adapts => {
            format!("{goal}: the depth was adapted until the end, where it was {depths}; the figures cover all depths")
        }
        None => {
            format!("{goal}: the job ended in the search ({searched}), so nothing was measured")
        }
        Some(share) if search.attained => format!(
            "{goal}: {depths} found ({searched}); {} % of the I/Os measured at it met the target, and the figures \
             cover only these I/Os",
            fixed(share, 2)
        ),
        Some(share) => format!(
            "{goal}: NOT met: only {} % of the I/Os measured at {depths}, the result of the search ({searched}), met \
             it; a longer latency_window judges more reliably, and if depth 1 misses the target, the storage cannot \
             meet it",
            fixed(share, 2)
        ),
    }
}
