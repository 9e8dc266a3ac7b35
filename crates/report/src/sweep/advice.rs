//! R9 and R10 of awr-statistics 9: saturated, and by what.

use super::curve::amount;
use super::{Curve, Step, held_text};
use assay_measure::record::{Advice, Figure};
use assay_measure::units::fixed;

/// Load has to rise by so much for a level throughput to say something.
const LOAD: f64 = 1.5;
/// Throughput within this part is level.
const LEVEL: f64 = 0.05;
/// Latency grew in proportion if it did within this part of the load's growth.
const PROPORTION: f64 = 0.25;
/// From here on a CPU may be the limit, 0..100.
const BUSY: f64 = 95.0;
/// Growth of system CPU per I/O that speaks of contention in the kernel.
const KERNEL: f64 = 0.30;

/// At most one finding for each curve, then those over CPUs.
pub(super) fn advise(curves: &[Curve], steps: &[Step]) -> Vec<Advice> {
    let mut found: Vec<Advice> = curves
        .iter()
        .filter(|curve| curve.load == "sessions")
        .filter_map(|curve| saturated(curve, &members(curve, steps)))
        .collect();
    found.extend(cpus_without_gain(steps));
    found
}

fn members<'a>(curve: &Curve, steps: &'a [Step]) -> Vec<&'a Step> {
    let find = |number: &u64| steps.iter().find(|step| step.place.step == *number);
    curve.steps.iter().filter_map(find).collect()
}

/// Two steps with the numbers a rule reads.
struct Pair<'a> {
    from: &'a Step,
    to: &'a Step,
    rate: f64,
    latency: f64,
}

impl<'a> Pair<'a> {
    fn new(from: &'a Step, to: &'a Step) -> Option<Self> {
        let ratio = |of: fn(&Step) -> &Figure| {
            let before = of(from).value().filter(|value| *value > 0.0)?;
            Some(of(to).value()? / before)
        };
        Some(Self {
            from,
            to,
            rate: ratio(|step| &step.ops_per_s)?,
            latency: ratio(|step| &step.op.avg_us)?,
        })
    }

    /// Busy at both ends, the smaller of both; `None` if either is unknown.
    fn busy(&self) -> Option<f64> {
        Some(self.from.busy_pct()?.min(self.to.busy_pct()?))
    }

    fn does_io(&self) -> bool {
        self.from.does_io() || self.to.does_io()
    }

    fn kernel(&self) -> Option<f64> {
        let before = self.from.system_cpu_us_per_io.value()?;
        let after = self.to.system_cpu_us_per_io.value()?;
        (before > 0.0).then(|| after / before - 1.0)
    }

    fn evidence(&self) -> Vec<(&'static str, Figure)> {
        vec![
            ("sessions_from_count", self.from.place.sessions.into()),
            ("sessions_to_count", self.to.place.sessions.into()),
            ("ops_per_s_from", self.from.ops_per_s.clone()),
            ("ops_per_s_to", self.to.ops_per_s.clone()),
            ("op_avg_us_from", self.from.op.avg_us.clone()),
            ("op_avg_us_to", self.to.op.avg_us.clone()),
            ("busy_pct_from", busy_figure(self.from)),
            ("busy_pct_to", busy_figure(self.to)),
            (
                "system_cpu_us_per_io_from",
                self.from.system_cpu_us_per_io.clone(),
            ),
            (
                "system_cpu_us_per_io_to",
                self.to.system_cpu_us_per_io.clone(),
            ),
        ]
    }

    fn numbers(&self) -> String {
        format!(
            "{} to {} operations/s, {} to {} us on average",
            number(&self.from.ops_per_s),
            number(&self.to.ops_per_s),
            number(&self.from.op.avg_us),
            number(&self.to.op.avg_us)
        )
    }

    fn ambiguous(&self, lead: &str) -> Advice {
        let kernel = self.kernel().filter(|growth| *growth >= KERNEL);
        let kernel = kernel.map_or(String::new(), |growth| {
            format!(
                " System CPU per I/O rose by {} %: contention in the kernel is likely.",
                fixed(100.0 * growth, 0)
            )
        });
        advice(
            "R10",
            format!(
                "{lead} The CPUs were {} % and {} % busy, so the limit is ambiguous: storage or CPU. \
                 Repeat with fewer or more CPUs (--cpus) or with cheaper I/O to tell them apart.{kernel}",
                number(&busy_figure(self.from)),
                number(&busy_figure(self.to))
            ),
            self.evidence(),
        )
    }
}

fn busy_figure(step: &Step) -> Figure {
    match step.busy_pct() {
        Some(busy) => Figure::decimal(busy),
        None => Figure::na("CPU use unknown"),
    }
}

fn number(figure: &Figure) -> String {
    figure
        .value()
        .map_or_else(|| "n/a".to_owned(), |value| fixed(value, 0))
}

fn advice(id: &str, text: String, evidence: Vec<(&'static str, Figure)>) -> Advice {
    Advice {
        id: id.to_owned(),
        severity: "note".to_owned(),
        text,
        evidence: evidence
            .into_iter()
            .map(|(name, figure)| (name.to_owned(), figure))
            .collect(),
    }
}

/// R9, or R10 where the CPUs may be the limit: the first level stretch from the knee on.
fn saturated(curve: &Curve, steps: &[&Step]) -> Option<Advice> {
    let knee = curve.knee.load.value()?;
    let pair = steps.iter().enumerate().find_map(|(at, to)| {
        let far = |from: &&&Step| {
            let sessions = from.place.sessions as f64;
            sessions >= knee && to.place.sessions as f64 >= LOAD * sessions
        };
        let from = steps[..at].iter().rev().find(far)?;
        let load = to.place.sessions as f64 / from.place.sessions as f64;
        let pair = Pair::new(from, to)?;
        let level = (pair.rate - 1.0).abs() <= LEVEL;
        let in_proportion = (pair.latency / load - 1.0).abs() <= PROPORTION;
        (level && in_proportion).then_some(pair)
    })?;
    let held = held_text(&curve.held);
    let held = if held.is_empty() {
        held
    } else {
        format!(" ({held})")
    };
    let lead = format!(
        "Saturated{held}: from {} to {} throughput stayed within 5 % and latency grew in proportion ({}); the knee is at {} or below.",
        amount("sessions", pair.from.place.sessions),
        amount("sessions", pair.to.place.sessions),
        pair.numbers(),
        amount("sessions", pair.from.place.sessions),
    );
    if pair.busy().is_none_or(|busy| busy < BUSY) {
        return Some(advice("R9", lead, pair.evidence()));
    }
    if pair.does_io() {
        return Some(pair.ambiguous(&lead));
    }
    let text = format!("{lead} The CPUs were busy and there was hardly any I/O: the limit is CPU.");
    Some(advice("R9", text, pair.evidence()))
}

/// R10 over CPUs: more of them, the best throughput of each, no gain, and all busy.
fn cpus_without_gain(steps: &[Step]) -> Vec<Advice> {
    let mut best: Vec<&Step> = Vec::new();
    for step in steps.iter().filter(|step| step.counts()) {
        let Some(cpus) = step.place.cpus.value() else {
            continue;
        };
        let same = |other: &&mut &Step| {
            other.place.over == step.place.over && other.place.cpus.value() == Some(cpus)
        };
        match best.iter_mut().find(same) {
            Some(kept) if kept.ops_per_s.value() < step.ops_per_s.value() => *kept = step,
            Some(_) => {}
            None => best.push(step),
        }
    }
    let cpus = |step: &Step| step.place.cpus.value().unwrap_or(0.0);
    let mut found = Vec::new();
    for to in &best {
        let fewer = best
            .iter()
            .filter(|from| from.place.over == to.place.over && cpus(from) < cpus(to))
            .max_by(|a, b| cpus(a).total_cmp(&cpus(b)));
        let Some(pair) = fewer.and_then(|from| Pair::new(from, to)) else {
            continue;
        };
        if pair.rate - 1.0 < LEVEL && pair.does_io() && pair.busy().is_some_and(|busy| busy >= BUSY)
        {
            let held = held_text(&to.place.over);
            let held = if held.is_empty() {
                held
            } else {
                format!(" ({held})")
            };
            let mut advice = pair.ambiguous(&format!(
                "Added CPUs brought nothing{held}: {} and {} CPUs at their best give {}.",
                fixed(cpus(pair.from), 0),
                fixed(cpus(pair.to), 0),
                pair.numbers()
            ));
            advice
                .evidence
                .insert("cpus_from_count".to_owned(), pair.from.place.cpus.clone());
            advice
                .evidence
                .insert("cpus_to_count".to_owned(), pair.to.place.cpus.clone());
            found.push(advice);
        }
    }
    found
}
