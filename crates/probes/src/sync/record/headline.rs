//! The first things to know of a durable-write curve: what one durable write costs.

use super::info::{SyncInfo, SyncStep};
use assay_measure::cpu;
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::record::{Figure, Record};
use assay_measure::units::fixed;
use std::path::Path;

/// The headline of a curve.
pub(super) fn of(record: &Record, info: &SyncInfo) -> Headline {
    let flush = |get: fn(&SyncStep) -> &Figure| {
        let mut steps = info.steps.iter();
        let step = steps.find(|step| step.part == "flush");
        step.map_or_else(Figure::default, |step| get(step).clone())
    };
    let spread = flush(|step| &step.per_s_ci95_pct).value();
    let spread =
        spread.map_or_else(String::new, |pct| format!("; F0's rate is known to within {} % (95 %)", fixed(pct, 1)));
    let line = |title, figure: &Figure, unit| HeadlineLine::told(title, vec![HeadlineFigure::new(figure, unit)]);
    Headline {
        tested: format!("Durable writes, the cost of a commit, on {}.", info.path),
        rows: vec![
            line("Rate", &flush(|step| &step.per_s), "durable writes/s by one stream"),
            line("p99 at that rate", &flush(|step| &step.latency.us_p99), "us"),
            line("F0", &info.durable_write_us_p50, "us, median of one durable 4 KiB write"),
        ],
        steadiness: format!("n/a (a curve of short steps, no window){spread}"),
        verbatim: Vec::new(),
        rerun_command: rerun_command(record),
        limit: cpu::limit(record).unwrap_or_else(|| limit(info)),
        next: vec![
            Next::new(
                format!("assay run --target native:{}/data --set UPDATE_PCT=100", directory(info)),
                "commits of a whole engine, including this cost",
            ),
            Next::new(format!("assay io {}", directory(info)), "reads and writes in the same place"),
        ],
    }
}

/// The directory of the file that was written.
fn directory(info: &SyncInfo) -> &str {
    let parent = Path::new(&info.path).parent().and_then(Path::to_str);
    parent.filter(|parent| !parent.is_empty()).unwrap_or(".")
}

/// What a durable write costs more than one that need not be.
fn limit(info: &SyncInfo) -> Limit {
    let Some(ratio) = info.sync_over_unsynced_ratio.value() else {
        return Limit::unknown("assay did not measure writes that need not be durable");
    };
    let evidence = format!(
        "A durable write takes {} times as long as a write without a flush ({} us against {} us).",
        fixed(ratio, 1),
        info.durable_write_us_p50.value().map_or_else(|| "n/a".to_owned(), |us| fixed(us, 0)),
        info.unsynced_write_us_p50.value().map_or_else(|| "n/a".to_owned(), |us| fixed(us, 0)),
    );
    if ratio >= 1.5 {
        Limit::new("the flush: waiting until the device has stored the data durably", evidence)
    } else {
        Limit::new("the write itself: the flush costs almost nothing", evidence)
    }
}
