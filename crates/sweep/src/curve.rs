//! From steps to curves, and the conclusions from each curve.

use crate::info::{Curve, Estimate, Goal, Knee, Projection, SweepAxis, SweepInfo, Usl};
use crate::knee::{self, Kept, Point};
use crate::step::{SweepStep, counted};
use crate::usl::{self, Interval, Law, Redrawn};
use assay_measure::record::Figure;
use assay_measure::section::number;
use assay_measure::units::{fixed, many, significant, thousands};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// The rate parameter: an open loop's load.
pub(crate) const RATE: &str = "RATE";
/// Hosts of a fleet, each with as many sessions.
pub const HOSTS: &str = "hosts";
/// What may rise as a load, the first of them that varies.
const LOADS: [&str; 4] = [HOSTS, "sessions", RATE, "cpus"];
/// Why there is no knee where the steps that decide it are not sound.
pub(crate) const UNSHOWN: &str = "steps that decide it never settled, or others used the host's CPUs";
/// What stands beside every figure that was not measured.
pub(crate) const UNTESTED: &str = "projection, untested";
/// How far beyond the last step the law is read, in its load.
const BEYOND: [u64; 2] = [2, 4];

/// Reads every curve off the steps, in the order of its first step, and writes each step's gain.
pub(crate) fn conclude(info: &mut SweepInfo, seed: u64) {
    let mut steps = std::mem::take(&mut info.steps);
    info.curves = curves(info, seed, &mut steps);
    info.steps = steps;
}

fn curves(info: &SweepInfo, seed: u64, steps: &mut [SweepStep]) -> Vec<Curve> {
    let load = load_name(info);
    let mut groups: Vec<(BTreeMap<String, String>, Vec<usize>)> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let held = held(&load, step);
        match groups.iter_mut().find(|(key, _)| *key == held) {
            Some((_, members)) => members.push(at),
            None => groups.push((held, vec![at])),
        }
    }
    groups.into_iter().map(|(held, members)| curve(info, seed, &load, held, &members, steps)).collect()
}

/// What the curves are drawn over: sessions if they vary, else an open loop's rate, else CPUs,
/// else the first parameter that varies, which is no load.
fn load_name(info: &SweepInfo) -> String {
    let varies = |axis: &&SweepAxis| axis.values.len() > 1 || axis.values == ["auto"];
    let varying: Vec<&str> = info.axes.iter().filter(varies).map(|axis| axis.name.as_str()).collect();
    let load = LOADS.into_iter().find(|load| varying.contains(load));
    let found = load.or_else(|| varying.first().copied());
    found.unwrap_or("sessions").to_owned()
}

/// Whether more of it is more to do, so that there is a knee to look for.
pub(crate) fn is_load(name: &str) -> bool {
    LOADS.contains(&name)
}

/// The points of the steps that count, for choosing the next load.
#[must_use]
pub fn points(steps: &[SweepStep], load: impl Fn(&SweepStep) -> u64) -> Vec<Point> {
    let mut points: Vec<Point> = counted(steps)
        .map(|step| Point {
            load: load(step),
            rate: step.ops_per_s.value().unwrap_or(0.0),
            us_p99: step.op.us_p99.value(),
        })
        .collect();
    points.sort_by_key(|point| point.load);
    points
}

/// `READ_MODE=single, cpus=2`; empty if nothing else varies.
pub(crate) fn held_text(held: &BTreeMap<String, String>) -> String {
    let mut text = String::new();
    for (name, value) in held {
        let comma = if text.is_empty() { "" } else { ", " };
        let _ = write!(text, "{comma}{name}={value}");
    }
    text
}

fn held(load: &str, step: &SweepStep) -> BTreeMap<String, String> {
    let mut held = step.place.over.clone();
    if load != HOSTS {
        held.insert("sessions".to_owned(), step.place.sessions.to_string());
    }
    if let Some(cpus) = step.place.cpus.value() {
        held.insert("cpus".to_owned(), fixed(cpus, 0));
    }
    held.remove(load);
    held
}

/// A step's place on its curve; of what is no load, that in the order it ran.
pub(crate) fn load_of(load: &str, step: &SweepStep) -> u64 {
    match load {
        "cpus" => step.place.cpus.value().unwrap_or(0.0) as u64,
        RATE | HOSTS => step.place.over.get(load).and_then(|said| said.parse().ok()).unwrap_or(0),
        "sessions" => step.place.sessions,
        _ => step.place.step,
    }
}

/// What the curve is drawn over, at a step, as tables show it.
pub(crate) fn load_text(curve: &Curve, step: &SweepStep) -> String {
    match curve.load.as_str() {
        "sessions" => thousands(step.place.sessions),
        "cpus" => number(&step.place.cpus, 0),
        name => step.place.over.get(name).cloned().unwrap_or_default(),
    }
}

fn curve(
    info: &SweepInfo,
    seed: u64,
    load: &str,
    held: BTreeMap<String, String>,
    members: &[usize],
    steps: &mut [SweepStep],
) -> Curve {
    let counted: Vec<u64> = counted(steps).map(|step| step.place.step).collect();
    let is_used = |at: &usize| counted.contains(&steps[*at].place.step);
    let mut used: Vec<usize> = members.iter().copied().filter(is_used).collect();
    used.sort_by_key(|at| load_of(load, &steps[*at]));
    let points: Vec<Point> =
        used.iter().flat_map(|at| self::points(&steps[*at..=*at], |step| load_of(load, step))).collect();
    for (at, gain) in used.iter().zip(knee::gains(&points)) {
        if !is_load(load) {
            steps[*at].gain_pct = Figure::na("not over a load");
        } else if let Some(gain) = gain {
            steps[*at].gain_pct = Figure::decimal(100.0 * gain);
        }
    }
    let number = |at: &usize| steps[*at].place.step;
    let curve: Vec<&SweepStep> = used.iter().map(|at| &steps[*at]).collect();
    Curve {
        load: load.to_owned(),
        held,
        steps: used.iter().map(number).collect(),
        left_out: members.iter().filter(|at| !used.contains(at)).map(number).collect(),
        knee: knee_of((load, &info.per_s()), &points, &curve, seed),
        goal: goal_of((load, &info.per_s()), &points, &curve, info.goal_us_p99.value()),
        usl: usl_of((load, &info.projected), &points, &curve, seed),
    }
}

/// `4 sessions`, `1 CPU`, `2,000 a second asked for`.
pub(crate) fn amount(load: &str, n: u64) -> String {
    let number = thousands(n);
    match (load, n) {
        ("cpus", 1) => "1 CPU".to_owned(),
        ("cpus", _) => format!("{number} CPUs"),
        (HOSTS, _) => many(n, "host"),
        (RATE, _) => format!("{number} a second requested"),
        (_, 1) => "1 session".to_owned(),
        _ => format!("{number} sessions"),
    }
}

fn no_knee(why: &str, sentence: String) -> Knee {
    let none = || Figure::na(why);
    Knee { load: none(), low: none(), high: none(), ops_per_s: none(), sentence }
}

fn knee_of((load, per_s): (&str, &str), points: &[Point], steps: &[&SweepStep], seed: u64) -> Knee {
    let none = |sentence| no_knee("not found", sentence);
    if !is_load(load) {
        return none(format!("No knee: {load} is not a load."));
    }
    let at = match knee::knee(points) {
        knee::Knee::TooFew => {
            return none("Knee not found: a curve needs at least two valid steps.".to_owned());
        }
        knee::Knee::Beyond => {
            let last = points[points.len() - 1];
            return none(format!(
                "Knee not found: throughput still rose at the last step ({}); the knee is at that load or beyond.",
                amount(load, last.load)
            ));
        }
        knee::Knee::AtOrBelowFirst => 0,
        knee::Knee::At(at) => at,
    };
    let point = points[at];
    // The last gain is judged against the step before it, the level by all after it.
    if let Some(why) = shaky(&steps[at.saturating_sub(1)..]) {
        let (load, rate) = (amount(load, point.load), rate(point.rate));
        let seen = if at == 0 { "No step gained 5 % over" } else { "Throughput rose up to" };
        return no_knee(
            UNSHOWN,
            format!(
                "No knee is shown. {seen} {load} ({rate} {per_s}), but {why}. Repeat with a longer --time, or while the host \
             is quiet."
            ),
        );
    }
    let errors: Option<Vec<f64>> = steps.iter().map(|step| step.ops_error_ratio.value()).collect();
    let range = errors.and_then(|errors| knee::range(points, &errors, seed));
    let (low, high) = range.map_or_else(
        || {
            let none = || Figure::na("a step is too short for a standard error");
            (none(), none())
        },
        |(low, high)| (low.into(), high.into()),
    );
    let between = match range {
        Some((low, high)) if low < high => {
            format!(" (95 % interval {} to {})", thousands(low), thousands(high))
        }
        _ => String::new(),
    };
    let found = if at == 0 {
        format!(
            "Knee at {} or below{between}: no step gained 5 % over the first ({} {per_s})",
            amount(load, point.load),
            rate(point.rate)
        )
    } else {
        format!(
            "Knee at {}{between}: {} {per_s}, {}; more load gains less than 5 %",
            amount(load, point.load),
            rate(point.rate),
            p99(point.us_p99)
        )
    };
    Knee {
        load: point.load.into(),
        low,
        high,
        ops_per_s: point.rate.into(),
        sentence: format!("{found}{}.", unsettled(steps[at])),
    }
}

/// Why nothing can be read off some of these steps; `None` if all are sound.
fn shaky(steps: &[&SweepStep]) -> Option<String> {
    let numbers = |is_one: fn(&SweepStep) -> bool| {
        let found: Vec<String> =
            steps.iter().filter(|step| is_one(step)).map(|step| step.place.step.to_string()).collect();
        (!found.is_empty()).then(|| format!("step{} {}", if found.len() > 1 { "s" } else { "" }, found.join(", ")))
    };
    let moving = numbers(SweepStep::never_settled).map(|steps| format!("{steps} never settled"));
    let first = steps.iter().find(|step| !step.disturbed.is_empty());
    let busy = numbers(|step| !step.disturbed.is_empty()).zip(first);
    let busy = busy.map(|(steps, first)| {
        let whose = if steps.contains(',') { format!(" (step {})", first.place.step) } else { String::new() };
        format!("in {steps} {}{whose}", first.disturbed)
    });
    let told: Vec<String> = moving.into_iter().chain(busy).collect();
    (!told.is_empty()).then(|| told.join(", and "))
}

/// What has to be said of a step whose figures were still moving.
fn unsettled(step: &SweepStep) -> &'static str {
    match step.steady.state.as_str() {
        "no" => " (that step never settled)",
        "late" => " (that step settled only inside its window)",
        _ => "",
    }
}

fn rate(rate: f64) -> String {
    if rate < 100.0 { significant(rate, 3) } else { fixed(rate, 0) }
}

fn p99(us_p99: Option<f64>) -> String {
    match us_p99 {
        Some(us) => format!("p99 {}", us_text(us)),
        None => "p99 n/a (too few operations)".to_owned(),
    }
}

/// A time in us with the unit that suits it.
pub(crate) fn us_text(us: f64) -> String {
    assay_measure::units::duration((us * 1e3) as u64)
}

/// What follows where no step breaks the goal.
fn unbroken(all_judged: bool) -> &'static str {
    if all_judged {
        "no step misses it; the limit is beyond"
    } else {
        "no step misses it; higher loads had too few operations for a p99"
    }
}

fn goal_of((load, per_s): (&str, &str), points: &[Point], steps: &[&SweepStep], goal_us: Option<f64>) -> Goal {
    let none = |reason: &str, sentence: String| Goal {
        load: Figure::na(reason),
        ops_per_s: Figure::na(reason),
        us_p99: Figure::na(reason),
        sentence,
    };
    let Some(goal_us) = goal_us else {
        return none("not asked for", String::new());
    };
    let goal = us_text(goal_us);
    if !is_load(load) {
        return none(
            "not over a load",
            format!("{load} is not a load: the table shows the 99th percentile of each step."),
        );
    }
    let (at, more) = match knee::kept(points, goal_us) {
        Kept::Unknown => {
            return none("too few operations", format!("No step had enough operations to judge p99 within {goal}."));
        }
        Kept::Never => {
            return none(
                "no load keeps the goal",
                format!(
                    "No load keeps p99 within {goal}: {} already takes {}.",
                    amount(load, points[0].load),
                    us_text(points[0].us_p99.unwrap_or(0.0))
                ),
            );
        }
        Kept::Throughout(at) => (at, unbroken(at + 1 == points.len()).to_owned()),
        Kept::Until(at) => {
            let mut above = points[at + 1..].iter().filter(|p| p.us_p99.is_some());
            let first = above.next().map_or(String::new(), |broken| {
                format!("{} takes {}", amount(load, broken.load), us_text(broken.us_p99.unwrap_or(0.0)))
            });
            let again = if above.any(|point| point.us_p99.is_some_and(|us| us <= goal_us)) {
                ", although a higher load keeps the goal again"
            } else {
                ""
            };
            (at, format!("{first}{again}"))
        }
    };
    let point = points[at];
    Goal {
        load: point.load.into(),
        ops_per_s: point.rate.into(),
        us_p99: steps[at].op.us_p99.clone(),
        sentence: format!(
            "Highest load that keeps p99 within {goal}: {} at {} {per_s} ({}; {more}){}.",
            amount(load, point.load),
            rate(point.rate),
            p99(point.us_p99),
            unsettled(steps[at])
        ),
    }
}

fn usl_of((load, also): (&str, &[u64]), points: &[Point], steps: &[&SweepStep], seed: u64) -> Usl {
    let refused = |sentence: String| Usl { sentence, ..Usl::default() };
    if !is_load(load) {
        return refused(format!("No scalability law: {load} is not a load."));
    }
    if load == RATE {
        return refused("No scalability law: the rate of an open loop is not a number of users.".to_owned());
    }
    if points.len() < usl::LEAST_POINTS {
        return refused(format!(
            "No scalability law: {} step(s) are valid, at least {} are needed.",
            points.len(),
            usl::LEAST_POINTS
        ));
    }
    let measured: Vec<usl::Point> = points
        .iter()
        .zip(steps)
        .map(|(point, step)| usl::Point {
            load: point.load as f64,
            rate: point.rate,
            error: step.ops_error_ratio.value().unwrap_or(0.0),
        })
        .collect();
    let Some(law) = usl::fit(&measured) else {
        return refused(
            "No scalability law: the loads differ too little, or the lowest load fell behind the others.".to_owned(),
        );
    };
    let deviations = usl::deviations(&law, &measured);
    let squares: f64 = deviations.iter().map(|d| d * d).sum();
    let rms = (squares / deviations.len() as f64).sqrt();
    let worst = (0..deviations.len()).max_by(|i, j| deviations[*i].abs().total_cmp(&deviations[*j].abs())).unwrap_or(0);
    if rms > usl::tolerated_rms(&measured) || deviations[worst].abs() > usl::WORST_MISS {
        return Usl {
            deviation_rms_ratio: rms.into(),
            ..refused(format!(
                "No scalability law: the best fit is off by {} % on average and by {} % at {}{}.",
                fixed(100.0 * rms, 1),
                fixed(100.0 * deviations[worst], 1),
                amount(load, points[worst].load),
                misfit(points, steps, &deviations)
            ))
        };
    }
    let redrawn = Redrawn::new(law, &measured, seed);
    described((load, also), points, &redrawn, law, rms)
}

/// Why a fit may be bad.
fn misfit(points: &[Point], steps: &[&SweepStep], deviations: &[f64]) -> &'static str {
    const MORE: f64 = 1.1;
    let mut least = f64::INFINITY;
    for point in points {
        let each = point.rate / point.load as f64;
        if each > MORE * least {
            return "; throughput rose faster than the load, which the law cannot describe (sessions share work, or \
                something slowed the first steps)";
        }
        least = least.min(each);
    }
    let most = points.iter().map(|point| point.rate).fold(0.0, f64::max);
    let near = |point: &Point| point.rate >= (1.0 - 2.0 * knee::GAIN) * most;
    if let Some(bend) = points.iter().position(near)
        && bend > 0
        && bend + 1 < points.len()
        && points[bend..].iter().all(near)
        && deviations[bend] > usl::WORST_RMS
    {
        return "; the curve bends more sharply than the law (a hard limit: the knee shows where)";
    }
    let restless = steps.iter().filter(|step| step.steady.state == "no");
    if 3 * restless.count() > steps.len() {
        return "; many steps never settled: use a longer --time or a quieter host";
    }
    ""
}

fn described((load, also): (&str, &[u64]), points: &[Point], redrawn: &Redrawn, law: Law, rms: f64) -> Usl {
    let last = points.last().map_or(1, |point| point.load);
    let peak = redrawn.interval(Law::peak);
    // Without a peak the law rises for ever, towards lambda / sigma.
    let top = |law: &Law| match law.peak() {
        at if at.is_finite() => law.at(at),
        _ if law.sigma > 0.0 => law.lambda / law.sigma,
        _ => f64::INFINITY,
    };
    let projections = BEYOND
        .iter()
        .map(|times| last.saturating_mul(*times))
        .chain(also.iter().copied())
        .map(|load| Projection {
            load,
            ops_per_s: estimate(redrawn.interval(|law| law.at(load as f64)), "unbounded"),
            label: UNTESTED.to_owned(),
        })
        .collect();
    let sigma = redrawn.interval(|law| law.sigma);
    let kappa = redrawn.interval(|law| law.kappa);
    Usl {
        fitted: true,
        sentence: sentence(load, points, law, &peak, rms),
        lambda_per_s: estimate(redrawn.interval(|law| law.lambda), "unbounded"),
        sigma_ratio: estimate(sigma, "unbounded"),
        kappa_ratio: estimate(kappa, "unbounded"),
        deviation_rms_ratio: rms.into(),
        fitted_ops_per_s: points.iter().map(|point| law.at(point.load as f64).into()).collect(),
        peak_load: estimate(peak, "no peak"),
        peak_ops_per_s: estimate(redrawn.interval(top), "no limit"),
        projections,
    }
}

fn estimate(interval: Interval, unbounded: &str) -> Estimate {
    let figure = |value: f64| if value.is_finite() { Figure::decimal(value) } else { Figure::na(unbounded) };
    Estimate { value: figure(interval.value), low: figure(interval.low), high: figure(interval.high) }
}

fn sentence(load: &str, points: &[Point], law: Law, peak: &Interval, rms: f64) -> String {
    let last = points.last().map_or(1, |point| point.load);
    let first = points.first().map_or(1, |point| point.load);
    let quality = format!("Fits {} steps within {} % (root mean square)", points.len(), fixed(100.0 * rms, 1));
    let peak = if peak.value.is_infinite() && law.sigma <= 0.0 {
        "throughput is proportional to the load over the measured range".to_owned()
    } else if peak.value.is_infinite() {
        "the measured loads show no fall after a peak; the law levels off".to_owned()
    } else if peak.value > last as f64 {
        format!("the peak lies beyond the last step, at about {} ({UNTESTED})", amount(load, peak.value.round() as u64))
    } else {
        format!(
            "the peak lies within the measured loads, at about {}",
            amount(load, (peak.value.round() as u64).max(first))
        )
    };
    format!("{quality}; {peak}.")
}
