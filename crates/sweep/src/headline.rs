//! The first things to know of a sweep: how much, where it bends, whether it meets the goal, and which step is the most
//! relevant.

use crate::curve::{UNSHOWN, amount, held_text, is_load, load_of};
use crate::info::{Curve, SweepInfo};
use crate::metrics::fastest;
use crate::step::SweepStep;
use assay_measure::kind::{Delivered, Headline, HeadlineFigure, HeadlineLine, Limit};
use assay_measure::record::{Figure, Record};
use assay_measure::section::number;
use assay_measure::units::fixed;

/// The headline of a sweep.
pub(crate) fn of(record: &Record, info: &SweepInfo) -> Headline {
    let axes: Vec<String> = (info.axes.iter()).map(|axis| format!("{} {}", axis.name, axis.values.join(","))).collect();
    let rate = HeadlineFigure::new(&fastest(info), &format!("{} at the fastest step", info.per_s()));
    let mut rows = vec![HeadlineLine::of("Rate", vec![rate], "n/a (no step is valid)")];
    for (title, line) in [("Knee", knee as fn(&SweepInfo, &Curve) -> Option<HeadlineLine>), ("Goal for p99", goal)] {
        let lines = info.curves.iter().filter_map(|curve| line(info, curve));
        rows.extend(
            lines.enumerate().map(|(nth, line)| HeadlineLine { title: if nth == 0 { title } else { "" }, ..line }),
        );
    }
    rows.extend(info.curves.iter().flat_map(|curve| projected(info, curve)));
    Headline {
        tested: format!(
            "The {} workload on {} under rising load: {} steps ({}).",
            record.run.workload,
            info.target,
            info.steps.len(),
            axes.join("; ")
        ),
        rows,
        steadiness: steadiness(info),
        limit: limit(info),
        ..Headline::default()
    }
}

/// A step whose host was busier than this was short of CPU, %.
const BUSY_PCT: f64 = 90.0;

/// Where throughput stops to rise, and what the sessions did at the step the sweep is about.
fn limit(info: &SweepInfo) -> Limit {
    let Some(curve) = info.curves.iter().find(|curve| is_load(&curve.load)) else {
        return Limit::unknown("no load rises from step to step");
    };
    let Some((step, which)) = foremost(info) else {
        return Limit::unknown("no step is valid");
    };
    if curve.knee.load.reason() == Some(UNSHOWN) {
        return Limit::unknown(UNSHOWN);
    }
    let last = info.members(curve).last().map(|step| load_of(&curve.load, step));
    let knee = curve.knee.load.value().map(|load| load as u64);
    let what = match (knee, last) {
        (Some(knee), Some(last)) if knee < last => {
            format!("what stops the rise at {}", amount(&curve.load, knee))
        }
        // The last step is the best one: nothing has stopped it yet.
        (_, Some(last)) if load_of(&curve.load, step) == last => {
            let last = amount(&curve.load, last);
            match step.busy_pct() {
                Some(busy) if busy >= BUSY_PCT && !step.disturbed.is_empty() => {
                    format!("nothing shown up to {last}: others used the CPUs")
                }
                Some(busy) if busy >= BUSY_PCT => {
                    format!("the CPUs at {last}, although the rate still rose there")
                }
                _ => format!("nothing up to {last}: a higher load may give more"),
            }
        }
        _ => String::new(),
    };
    // A cap ends the rise whatever the sessions do.
    let capped = info.members(curve).into_iter().find(|step| step.counts() && !step.cap.is_empty());
    if let Some(step) = capped {
        let at = amount(&curve.load, load_of(&curve.load, step));
        return Limit::new(format!("a cap at {at}"), format!("{} See {}.", step.cap, step.place.directory));
    }
    let mut evidence = curve.knee.sentence.clone();
    if let Some(busy) = step.busy_pct() {
        let whose = match step.disturbed.as_str() {
            "" if busy >= BUSY_PCT => ", so CPU is the limit there".to_owned(),
            "" => String::new(),
            disturbed => format!("; {disturbed}"),
        };
        evidence.push_str(&format!(" In {which} the CPUs were {} % busy{whose}.", fixed(busy, 0)));
    }
    if !step.top_event.is_empty() {
        evidence.push_str(&format!(
            " Its sessions spent most of their time on {}; see {}.",
            step.top_event, step.place.directory
        ));
    }
    Limit::new(what, evidence)
}

/// `READ_MODE=single: `, or nothing.
fn lead(curve: &Curve) -> String {
    match held_text(&curve.held).as_str() {
        "" => String::new(),
        held => format!("{held}: "),
    }
}

/// A load with its unit, in the number of it there is.
fn load_told(curve: &Curve, load: &Figure) -> HeadlineFigure {
    let text = amount(&curve.load, load.value().unwrap_or_default() as u64);
    let unit = text.split_once(' ').map_or("", |(_, unit)| unit);
    HeadlineFigure::new(load, unit)
}

fn line(curve: &Curve, told: Vec<HeadlineFigure>, sentence: &str) -> HeadlineLine {
    HeadlineLine { lead: lead(curve), ..HeadlineLine::of("", told, sentence) }
}

fn knee(info: &SweepInfo, curve: &Curve) -> Option<HeadlineLine> {
    let told = vec![load_told(curve, &curve.knee.load), HeadlineFigure::new(&curve.knee.ops_per_s, &info.per_s())];
    is_load(&curve.load).then(|| line(curve, told, &curve.knee.sentence))
}

/// What the law says of loads that it was asked for, or why it says nothing.
fn projected(info: &SweepInfo, curve: &Curve) -> Vec<HeadlineLine> {
    let asked = info.projected.iter().enumerate().map(|(nth, load)| {
        let title = if nth == 0 { "Projected" } else { "" };
        let Some(point) = curve.usl.projections.iter().find(|point| point.load == *load) else {
            return HeadlineLine::of(title, Vec::new(), &curve.usl.sentence);
        };
        let range = [&point.ops_per_s.low, &point.ops_per_s.high].map(|bound| number(bound, 0));
        let unit = format!("{} (95 % interval {} to {}; {})", info.per_s(), range[0], range[1], point.label);
        let lead = format!("{}: ", amount(&curve.load, *load));
        HeadlineLine { lead, ..HeadlineLine::told(title, vec![HeadlineFigure::new(&point.ops_per_s.value, &unit)]) }
    });
    asked.collect()
}

fn goal(info: &SweepInfo, curve: &Curve) -> Option<HeadlineLine> {
    let told = vec![
        load_told(curve, &curve.goal.load),
        HeadlineFigure::new(&curve.goal.ops_per_s, &info.per_s()),
        HeadlineFigure::new(&curve.goal.us_p99, "us p99 there"),
    ];
    (!curve.goal.sentence.is_empty()).then(|| line(curve, told, &curve.goal.sentence))
}

/// Whether the steps that count had settled.
fn steadiness(info: &SweepInfo) -> String {
    let counted = || info.counted();
    let those = |is_one: &dyn Fn(&SweepStep) -> bool| {
        let numbers: Vec<String> =
            counted().filter(|step| is_one(step)).map(|step| step.place.step.to_string()).collect();
        match numbers.len() {
            0 => String::new(),
            1 => format!("step {}", numbers[0]),
            all if all == counted().count() => "every step".to_owned(),
            _ => format!("steps {}", numbers.join(", ")),
        }
    };
    let in_state = |state: &str| those(&|step| step.steady.state == state);
    let (never, late, unknown) = (in_state("no"), in_state("late"), in_state("n/a"));
    let disturbed = those(&|step| !step.disturbed.is_empty());
    if counted().next().is_none() {
        return "n/a (no step is valid)".to_owned();
    }
    if [&never, &late, &unknown, &disturbed].iter().all(|steps| steps.is_empty()) {
        return "steady: every valid step had settled when its window began".to_owned();
    }
    let told = [
        ("never settled", never),
        ("settled only inside the window", late),
        ("too short to judge", unknown),
        ("others used the host's CPUs", disturbed),
    ];
    let told = told.iter().filter(|(_, steps)| !steps.is_empty());
    let told: Vec<String> = told.map(|(what, steps)| format!("{steps}: {what}")).collect();
    let whose = if told.iter().any(|told| told.starts_with("every step")) { "" } else { " for every step" };
    format!("not shown{whose} ({})", told.join("; "))
}

/// The step that a sweep is about, and what it is there: the highest load that keeps its goal, else the knee, else the
/// one with most operations.
fn foremost(info: &SweepInfo) -> Option<(&SweepStep, &'static str)> {
    let at = |curve: &Curve, load: &Figure, what| {
        let load = load.value()? as u64;
        let mut members = info.members(curve).into_iter();
        let found = members.find(|step| step.counts() && load_of(&curve.load, step) == load);
        found.map(|step| (step, what))
    };
    let by_curve = info.curves.iter().find_map(|curve| {
        at(curve, &curve.goal.load, "the highest load that keeps the goal")
            .or_else(|| at(curve, &curve.knee.load, "the knee"))
    });
    let rate = |step: &SweepStep| step.ops_per_s.value().unwrap_or(0.0);
    let most = info.counted().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    by_curve.or_else(|| most.map(|step| (step, "the fastest")))
}

/// What the step that the sweep is about delivered.
pub(crate) fn delivered(info: &SweepInfo) -> Delivered {
    let Some((step, what)) = foremost(info) else {
        return Delivered::default();
    };
    let sessions = amount("sessions", step.place.sessions);
    let slope = step.steady.slope_ratio.value();
    let trend = slope.filter(|_| step.steady.state == "no");
    let mut notes = vec![format!("This is the step with {sessions}, {what} of the sweep.")];
    if let Some(slope) = trend {
        notes.push(format!(
            "That step never settled: over its last half the rate moved by {} %. Run it longer before you quote it.",
            fixed(100.0 * slope, 0)
        ));
    }
    Delivered {
        reads_per_s: step.read_requests_per_s.clone(),
        writes_per_s: step.write_requests_per_s.clone(),
        ops_per_s: step.ops_per_s.clone(),
        transactions_per_s: step.transactions_per_s.clone(),
        window_s: step.elapsed_s.clone(),
        notes,
        ..Delivered::default()
    }
}
