//! Several reports of one database: the one with the peak, and the range over all.

use super::load::{COMMITS, DatabaseLoad, READS, REDO, WRITES};
use assay_measure::figures::figures;
use assay_measure::record::Figure;

/// A report among others.
#[figures]
pub(crate) struct ReportRow {
    #[column("Report")]
    pub report: String,
    #[column("Begin")]
    pub begin: String,
    #[column("Reads/s", 1)]
    pub reads_per_s: Figure,
    #[column("Writes/s", 1)]
    pub writes_per_s: Figure,
    #[column("Commits/s", 1)]
    pub commits_per_s: Figure,
    #[column("Redo, bytes/s", 0)]
    pub redo_bytes_per_s: Figure,
    /// `peak`, or the figures that are largest here although the peak is elsewhere.
    #[column("Largest")]
    pub largest: String,
}

/// The report with the most reads and writes per second; of those that tell neither, the first.
#[must_use]
pub(super) fn peak(loads: &[DatabaseLoad]) -> usize {
    let ios = |load: &DatabaseLoad| load.ios_per_s().value().unwrap_or(-1.0);
    let all = loads.iter().enumerate();
    all.fold(0, |best, (at, load)| if ios(load) > ios(&loads[best]) { at } else { best })
}

pub(super) fn rows(loads: &[DatabaseLoad]) -> Vec<ReportRow> {
    let at = peak(loads);
    let largest = |figure: &str, of: usize| {
        let value = |load: &DatabaseLoad| load.value(figure).unwrap_or(-1.0);
        loads.iter().enumerate().all(|(other, load)| other == of || value(load) < value(&loads[of]))
    };
    let row = |(of, load): (usize, &DatabaseLoad)| {
        let others = [READS, WRITES, COMMITS, REDO].into_iter().filter(|figure| of != at && largest(figure, of));
        let peak = (of == at).then_some("peak").into_iter();
        ReportRow {
            report: load.name.clone(),
            begin: load.begin.clone(),
            reads_per_s: load.figure(READS),
            writes_per_s: load.figure(WRITES),
            commits_per_s: load.figure(COMMITS),
            redo_bytes_per_s: load.figure(REDO),
            largest: peak.chain(others).collect::<Vec<_>>().join(", "),
        }
    };
    loads.iter().enumerate().map(row).collect()
}

/// Least and most of a figure over all reports that tell it.
pub(super) fn range(loads: &[DatabaseLoad], figure: &str) -> Option<(f64, f64)> {
    let values: Vec<f64> = loads.iter().filter_map(|load| load.value(figure)).collect();
    let fold = |of: fn(f64, f64) -> f64| values.iter().copied().reduce(of);
    fold(f64::min).zip(fold(f64::max)).filter(|_| values.len() > 1)
}
