//! What a workload delivered, as far as it can be paid for.

use crate::kinds::FELL;
use assay_measure::kind::Delivered;
use assay_measure::record::metric::find;
use assay_measure::record::{Figure, Record};
use assay_measure::units::fixed;

const MIB: f64 = 1_048_576.0;
const MB: f64 = 1e6;

/// Sustained rates of the measured window.
pub(crate) fn of(record: &Record) -> Delivered {
    let known = |key: &str| {
        let metric = find(&record.metrics, key);
        metric.map_or_else(Figure::default, |metric| metric.value.clone())
    };
    let some_mib = |key: &str| known(key).value().map(|mib| mib * MIB / MB);
    let mb = match (some_mib("read_io_mb_per_s"), some_mib("write_io_mb_per_s")) {
        (None, None) => known("read_io_mb_per_s"),
        (read, write) => Figure::decimal(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
    };
    let mut notes = Vec::new();
    let trend = record.checks.steadiness.last_over_first_ratio.value();
    if let Some(trend) = trend.filter(|trend| *trend < FELL && *trend > 0.0) {
        notes.push(format!(
            "The rate fell over the window (last quarter {} % of the first): what lasts costs more per unit than stated here. Run longer before it is quoted.",
            fixed(100.0 * trend, 0)
        ));
    }
    Delivered {
        reads_per_s: known("reads_per_s"),
        writes_per_s: known("writes_per_s"),
        mb_per_s: mb,
        ops_per_s: known("ops_per_s"),
        transactions_per_s: known("transactions_per_s"),
        executes_per_s: known("executes_sql_per_s"),
        window_s: record.interval.elapsed_s.clone(),
        notes,
        ..Delivered::default()
    }
}
