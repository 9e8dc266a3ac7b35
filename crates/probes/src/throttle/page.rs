//! What is shown of caps: the answer, the report and the charts.

use super::info::{BUCKET, FELL, ThrottleInfo, ThrottleRow, UNKNOWN};
use assay_measure::chart::{Axis, Chart, Drawn, Stroke, Trace};
use assay_measure::kind::{Headline, HeadlineFigure, HeadlineLine, Limit, Next, rerun_command};
use assay_measure::palette::nth;
use assay_measure::record::Record;
use assay_measure::section::{Sections, common};
use assay_measure::units::fixed;
use std::path::Path;

const STOPPED: &str = "the probe was stopped before";

/// The first things to know.
pub(super) fn headline(record: &Record, info: &ThrottleInfo) -> Headline {
    let directory = Path::new(&info.path).parent().and_then(Path::to_str).filter(|dir| !dir.is_empty()).unwrap_or(".");
    Headline {
        tested: format!("Caps and token buckets of the storage at {}.", info.path),
        rows: info.loads.iter().map(line).collect(),
        steadiness: "n/a (loads with a pause between them, no window)".to_owned(),
        rerun_command: rerun_command(record),
        limit: limit(info),
        next: vec![
            Next::new(format!("assay throttle {directory} --time 10m"), "sees a bucket that lasts for minutes"),
            Next::new(format!("assay io {directory}"), "the rate and the latency of other sizes and depths"),
        ],
        ..Headline::default()
    }
}

fn title(row: &ThrottleRow) -> &'static str {
    match row.resource.as_str() {
        "reads" => "Reads",
        "bytes" => "Bytes",
        _ => "Sync",
    }
}

fn line(row: &ThrottleRow) -> HeadlineLine {
    let cap = match row.cap.as_str() {
        BUCKET => format!("a token bucket, {}", row.by),
        FELL => format!("it fell to that and did not come back after {} s", fixed(row.pause_s, 1)),
        _ if row.is_capped() => format!("a cap, {}", row.by),
        "" => "too little time to judge whether it is capped; use --time 20s or more".to_owned(),
        _ => format!("no cap within {} s", fixed(row.loaded_s.value().unwrap_or(0.0), 0)),
    };
    let told = |per_s, what: &str| {
        let (value, unit) = row.told(per_s);
        HeadlineFigure::new(&value, &format!("{} {what}", unit))
    };
    HeadlineLine::told(
        title(row),
        vec![
            told(&row.sustained_per_s, &format!("sustained ({}): {cap}", row.operation)),
            told(&row.burst_per_s, "in a burst"),
            HeadlineFigure::new(&row.burst_s, "s long"),
            HeadlineFigure::new(&row.refill_s, "s until it is back whole"),
        ],
    )
}

/// Who caps.
fn limit(info: &ThrottleInfo) -> Limit {
    let Some(capped) =
        info.loads.iter().find(|row| row.is_named()).or_else(|| info.loads.iter().find(|r| r.is_capped()))
    else {
        return Limit::unknown("assay saw no cap; one whose burst outlasts the load cannot be seen");
    };
    let held = format!("The load ({}) was held at {}", capped.operation, capped.sustained());
    if capped.is_named() {
        let evidence = format!("{held}, at the limit of {}.", capped.by);
        return Limit::new("the limit of a control group", evidence);
    }
    let evidence = format!("{held} ({}). Who caps is {UNKNOWN}.", capped.cap);
    Limit::new("a cap outside of this system", evidence)
}

/// The whole report.
pub(super) fn render(record: &Record, info: &ThrottleInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "THROTTLE", &info.path);
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    page.heading("Who Caps");
    page.wrapped("", &limit(info).evidence);
    page.table_of("Sustained Rates and Bursts", RATES, &info.loads, STOPPED);
    common::facts(&mut page, "Device", &record.plan.engine_facts);
    common::facts(&mut page, "Host", &record.host.facts);
    page
}

const RATES: &str = "Sustained: the last level of the first load. Token bucket: a burst that ended at that level and was back after the \
                     pause. Level: a rate as even as a limit keeps it, and the same at four times the depth, or at a limit of a control \
                     group. Fell once: it ended at a level, and the pause brought nothing back. None seen: no cap within the time loaded; a burst \
                     that lasts longer cannot be seen.";

/// The rates of each load by time.
pub(super) fn charts(info: &ThrottleInfo) -> Vec<Drawn> {
    let chart = |(at, row): (usize, &ThrottleRow)| {
        let begin = row.first_per_s.len() as f64 * info.slice_s + row.pause_s;
        let trace = |name, begin: f64, per_s: &[f64]| {
            let times = (1..=per_s.len()).map(|slice| begin + slice as f64 * info.slice_s).collect();
            Trace::new(name, Stroke::Joined, nth(0), per_s.iter().map(|rate| Some(*rate)).collect()).at(times)
        };
        let chart = Chart {
            id: format!("c-throttle-{at}"),
            title: format!("{} by time, a pause between the loads", row.operation),
            x: Axis::of("time", "s"),
            y: Axis::of("operations", "1/s"),
            traces: vec![
                trace("first load", 0.0, &row.first_per_s),
                trace("after the pause, four times as deep", begin, &row.second_per_s),
            ],
            ..Chart::default()
        };
        Drawn::or(chart, STOPPED)
    };
    info.loads.iter().enumerate().map(chart).collect()
}
