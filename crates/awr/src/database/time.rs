//! What the sessions' time went to: the CPU, and the waits. What limits a run is judged by the same shares.

use crate::rules;
use assay_measure::kind::{HeadlineFigure, HeadlineLine};
use assay_measure::record::{Figure, Record};

/// The title of the line.
const TITLE: &str = "Time went to";
/// Waits that are told: the dearest.
const WAITS: usize = 3;
/// Smaller shares of the sessions' time are no news, %.
const LEAST_PCT: f64 = 0.5;
/// From here on what nobody named is told, % of the sessions' time.
const UNNAMED_PCT: f64 = 10.0;

/// The dearest waits and the CPU, in % of the sessions' time, the largest first; they add up to at most 100.
pub(super) fn line(record: &Record) -> HeadlineLine {
    let mut waits = waits(record);
    let printed_some = record.import.is_none() || !waits.is_empty();
    // A wait that began before the window is counted whole in it, so that long ones can come to more than the time there was.
    let mut left = 100.0;
    for (_, pct) in &mut waits {
        *pct = pct.min(left);
        left -= *pct;
    }
    waits.truncate(WAITS);
    let on_cpu = cpu_pct(record);
    let mut told = waits;
    if let Some(pct) = on_cpu {
        told.push((on_cpu_words(record).to_owned(), pct));
        told.push((
            "time without a name".to_owned(),
            Some(left - pct).filter(|pct| *pct >= UNNAMED_PCT).unwrap_or(0.0),
        ));
    }
    told.retain(|(_, pct)| *pct >= LEAST_PCT && printed_some);
    told.sort_by(|a, b| b.1.total_cmp(&a.1));
    // Rounded as what limits is, and the smallest less where that makes more than there is.
    let mut left = 100;
    let told = told.iter().filter_map(|(name, pct)| {
        let whole = (pct.round() as u64).min(left);
        left -= whole;
        (whole > 0).then(|| HeadlineFigure::new(&Figure::Count(whole), &format!("% {name}")))
    });
    HeadlineLine::of(TITLE, told.collect(), "")
}

/// Every wait of the sessions with its share of their time, the dearest first; and what a table of classes has beyond the
/// events that are printed.
fn waits(record: &Record) -> Vec<(String, f64)> {
    let events = rules::foreground(record, |event| event.class != "Idle");
    let events = events.filter_map(|event| Some((event.name.clone(), event.db_time_pct.value()?)));
    // The table of classes has the CPU beside the waits.
    let classes = record.instance.wait_classes.iter().filter(|row| !["Idle", "DB CPU"].contains(&row.class.as_str()));
    let others = classes.map(|row| (format!("other waits of the class {}", row.class), beyond(record, &row.class)));
    let mut all: Vec<(String, f64)> = events.chain(others).collect();
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all
}

/// Share of DB time of a class of waits that no event of it has.
pub(super) fn beyond(record: &Record, class: &str) -> f64 {
    let row = record.instance.wait_classes.iter().find(|row| row.class == class);
    let Some(pct) = row.filter(|_| record.import.is_some()).and_then(|row| row.db_time_pct.value()) else {
        return 0.0;
    };
    let of_events = rules::foreground(record, |event| event.class == class);
    (pct - of_events.filter_map(|event| event.db_time_pct.value()).sum::<f64>()).max(0.0)
}

/// Share of DB time on or waiting for a CPU, as the times say or as the row of the top events does. A CPU that worked inside a
/// wait is counted in both, so this is what the waits leave.
pub(super) fn cpu_pct(record: &Record) -> Option<f64> {
    let by_times = rules::on_cpu(record).ok().flatten().map(|(pct, _)| pct);
    let counted = by_times.or_else(|| {
        let mut values = record.import.as_ref()?.values.iter();
        values.find(|value| value.key == "db_cpu_db_time_pct" && value.scope.is_empty())?.value.value()
    })?;
    let events = rules::foreground(record, |event| event.class != "Idle");
    let waited: f64 = events.filter_map(|event| event.db_time_pct.value()).sum();
    Some(counted.min((100.0 - waited).max(0.0)))
}

/// What the share on CPUs holds: only who counts a run queue knows who waited for a CPU.
pub(super) fn on_cpu_words(record: &Record) -> &'static str {
    if record.import.is_some() && record.instance.time_model.run_queue_us.value().is_none() {
        "on a CPU"
    } else {
        "on a CPU or waiting for one"
    }
}
