//! The first things to know of a durable-write curve: what one durable write costs.

use super::info::{SyncInfo, SyncStep};
use assay_measure::kind::{Headline, Line, Told};
use assay_measure::record::Figure;
use assay_measure::units::fixed;

/// The headline of a curve.
pub(super) fn of(info: &SyncInfo) -> Headline {
    let flush = |get: fn(&SyncStep) -> &Figure| {
        let mut steps = info.steps.iter();
        let step = steps.find(|step| step.part == "flush");
        step.map_or_else(Figure::default, |step| get(step).clone())
    };
    let spread = flush(|step| &step.per_s_ci95_pct).value();
    let spread = spread.map_or_else(String::new, |pct| {
        format!("; F0's rate is known to within {} % (95 %)", fixed(pct, 1))
    });
    let line = |title, figure: &Figure, unit| {
        Line::of(title, vec![Told::new(figure, unit)], "n/a (absent)")
    };
    Headline {
        tested: format!("Durable writes, the price of a commit, on {}.", info.path),
        rows: vec![
            line(
                "Rate",
                &flush(|step| &step.per_s),
                "durable writes/s by one stream",
            ),
            line(
                "p99 at that rate",
                &flush(|step| &step.latency.p99_us),
                "us",
            ),
            line("F0", &info.f0_us, "us, median of one durable 4 KiB write"),
        ],
        steadiness: format!("n/a (a curve of short steps, no window){spread}"),
    }
}
