//! R9 and R10: saturated, and by what; R29: loads that were not measured.

use crate::curve::{amount, held_text};
use crate::info::{Curve, SweepInfo};
use crate::step::{StepPlace, SweepStep, counted};
use assay_measure::record::{Advice, Figure, Record};
use assay_measure::rule::Rule;
use assay_measure::units::fixed;
use std::collections::BTreeMap;

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

const SATURATED: Rule = Rule {
    id: "R9",
    title: "Saturated",
    changes_figures: false,
    fires_when: || {
        format!(
            "Between two runs that differ in sessions alone, the sessions rise {LOAD} times or more, throughput stays within {} %, and latency rises within {} % of the growth of the load; in a sweep from the knee on",
            100.0 * LEVEL,
            100.0 * PROPORTION
        )
    },
    why: "More sessions add latency and no throughput: the knee is at the smaller load or below.",
    what_to_do: "Use no more sessions than that, or remove the limit that another finding names.",
    cannot_judge_when: "Throughput or latency of either run is n/a, other settings differ too, a run never settled, or others used the host's CPUs: then the rule is silent.",
    source: "Decided here.",
};

const AMBIGUOUS: Rule = Rule {
    id: "R10",
    title: "Saturated by storage or by CPU",
    changes_figures: false,
    fires_when: || {
        format!(
            "As R9, or added CPUs gain less than {} %, while the CPUs are at least {BUSY} % busy at both ends and there is I/O; contention in the kernel is named where system CPU per I/O rises by {} % or more",
            100.0 * LEVEL,
            100.0 * KERNEL
        )
    },
    why: "Busy CPUs and waiting for storage look alike.",
    what_to_do: "Repeat with fewer or more CPUs (--cpus), or with cheaper I/O, to tell them apart.",
    cannot_judge_when: "CPU use is n/a: then R9 fires, and of added CPUs none.",
    source: "Decided here.",
};

const PROJECTED: Rule = Rule {
    id: "R29",
    title: "A projection is no measurement",
    changes_figures: false,
    fires_when: || {
        "A curve has a fit of the Universal Scalability Law, which is computed at loads beyond the last step too"
            .to_owned()
    },
    why: "A fit knows nothing of a limit that lies beyond the last step.",
    what_to_do: "Do not quote it without the words projection, untested, or measure the load.",
    cannot_judge_when: "There is no fit: then the rule is silent.",
    source: "Decided here.",
};

/// The rules of sweeps.
pub(crate) const RULES: [Rule; 3] = [SATURATED, AMBIGUOUS, PROJECTED];

/// At most one finding for each curve, then those over CPUs.
pub(crate) fn advise(info: &SweepInfo) -> Vec<Advice> {
    let curves = || info.curves.iter();
    let mut found: Vec<Advice> = curves()
        .filter(|curve| curve.load == "sessions")
        .filter_map(|curve| saturated(curve, &info.members(curve)))
        .collect();
    found.extend(cpus_without_gain(&info.steps));
    found.extend(curves().filter_map(projected));
    found
}

/// R9 and R10 over runs that nobody called a sweep: those that differ in sessions or CPUs alone.
pub(crate) fn over_records(records: &[&Record]) -> Vec<Advice> {
    let steps = steps_of(records);
    let mut found = Vec::new();
    let mut done: Vec<&SweepStep> = Vec::new();
    for step in &steps {
        let alike = |other: &&SweepStep| other.place.over == step.place.over && other.place.cpus == step.place.cpus;
        if done.iter().any(alike) {
            continue;
        }
        done.push(step);
        let sound = |step: &&SweepStep| step.counts() && !step.is_shaky();
        let mut curve: Vec<&SweepStep> = steps.iter().filter(alike).filter(sound).collect();
        curve.sort_by_key(|step| step.place.sessions);
        found.extend(level(&curve, 0.0).map(|pair| pair.saturated(&step.place.over)));
    }
    found.extend(cpus_without_gain(&steps));
    found
}

/// Records as steps: what differs between them is what was swept.
fn steps_of(records: &[&Record]) -> Vec<SweepStep> {
    /// Settings that are the load itself, or do not change what is done.
    const LOAD: [&str; 9] =
        ["THREADS_PER_SCHEMA", "SCHEMAS", "SEED", "RUN_TIME", "WARMUP", "TARGET", "DRIVER_THREADS", "LABEL", "PG_SET"];
    let value = |record: &Record, name: &str| {
        let mut lines = record.plan.settings.iter();
        lines.find(|line| line.name == name).map(|line| line.value.clone())
    };
    let differs = |name: &str| {
        let mut values = records.iter().map(|record| value(record, name));
        let first = values.next();
        values.any(|other| Some(other) != first)
    };
    let mut names: Vec<&str> = (records.iter())
        .flat_map(|record| record.plan.settings.iter().map(|line| line.name.as_str()))
        .filter(|name| !LOAD.contains(name))
        .collect();
    names.sort_unstable();
    names.dedup();
    names.retain(|name| differs(name));
    let step = |record: &&Record| {
        let mut over: BTreeMap<String, String> =
            (names.iter()).filter_map(|name| Some(((*name).to_owned(), value(record, name)?))).collect();
        if records.iter().any(|other| other.run.engine != record.run.engine) {
            over.insert("target".to_owned(), record.run.engine.clone());
        }
        let place = StepPlace {
            sessions: record.run.sessions,
            cpus: record.os.cpus_count.clone(),
            over,
            ..StepPlace::default()
        };
        let mut step = SweepStep::of(place, record);
        step.confined_busy_pct = Figure::na("not confined");
        if step.verdict == "imported" {
            step.verdict = "complete".to_owned();
        }
        if step.ops_per_s.value().is_none() || step.op.us_avg.value().is_none() {
            // Of an import the reads are what is known.
            step.ops_per_s = step.read_requests_per_s.clone();
            step.op = step.read.clone();
        }
        step
    };
    records.iter().map(step).collect()
}

/// R29: loads that were not measured.
fn projected(curve: &Curve) -> Option<Advice> {
    let first = curve.usl.projections.first()?;
    let loads: Vec<String> = curve.usl.projections.iter().map(|point| point.load.to_string()).collect();
    let text = format!(
        "Throughput at {} {} is computed from a fit, not measured: projection, untested. {}",
        loads.join(", "),
        curve.load,
        PROJECTED.what_to_do
    );
    let evidence = vec![("load", Figure::Count(first.load)), ("ops_per_s", first.ops_per_s.value.clone())];
    Some(PROJECTED.of_figures(false, text, evidence))
}

/// The first stretch from `knee` on with more load, the same throughput, and latency in proportion.
fn level<'a>(steps: &[&'a SweepStep], knee: f64) -> Option<Pair<'a>> {
    steps.iter().enumerate().find_map(|(at, to)| {
        let far = |from: &&&SweepStep| {
            let sessions = from.place.sessions as f64;
            sessions >= knee.max(1.0) && to.place.sessions as f64 >= LOAD * sessions
        };
        let from = steps[..at].iter().rev().find(far)?;
        let load = to.place.sessions as f64 / from.place.sessions as f64;
        let pair = Pair::new(from, to)?;
        let level = (pair.rate - 1.0).abs() <= LEVEL;
        let in_proportion = (pair.latency / load - 1.0).abs() <= PROPORTION;
        (level && in_proportion).then_some(pair)
    })
}

/// Two steps with the numbers a rule reads.
struct Pair<'a> {
    from: &'a SweepStep,
    to: &'a SweepStep,
    rate: f64,
    latency: f64,
}

impl<'a> Pair<'a> {
    fn new(from: &'a SweepStep, to: &'a SweepStep) -> Option<Self> {
        let ratio = |of: fn(&SweepStep) -> &Figure| {
            let before = of(from).value().filter(|value| *value > 0.0)?;
            Some(of(to).value()? / before)
        };
        Some(Self { from, to, rate: ratio(|step| &step.ops_per_s)?, latency: ratio(|step| &step.op.us_avg)? })
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
            ("op_us_avg_from", self.from.op.us_avg.clone()),
            ("op_us_avg_to", self.to.op.us_avg.clone()),
            ("busy_pct_from", busy_figure(self.from)),
            ("busy_pct_to", busy_figure(self.to)),
            ("system_cpu_us_per_io_from", self.from.system_cpu_us_per_io.clone()),
            ("system_cpu_us_per_io_to", self.to.system_cpu_us_per_io.clone()),
        ]
    }

    fn numbers(&self) -> String {
        let what = match &self.to.op.name {
            event if *event == self.to.read.name => "reads",
            operations => operations,
        };
        format!(
            "{} to {} {what}/s, {} to {} us on average",
            number(&self.from.ops_per_s),
            number(&self.to.ops_per_s),
            number(&self.from.op.us_avg),
            number(&self.to.op.us_avg)
        )
    }

    /// R9, or R10 where the CPUs may be the limit.
    fn saturated(&self, held: &BTreeMap<String, String>) -> Advice {
        let held = held_text(held);
        let held = if held.is_empty() { held } else { format!(" ({held})") };
        let lead = format!(
            "Saturated{held}: from {} to {} throughput stayed within {} % and latency grew in proportion ({}); the knee is at {} or below.",
            amount("sessions", self.from.place.sessions),
            amount("sessions", self.to.place.sessions),
            100.0 * LEVEL,
            self.numbers(),
            amount("sessions", self.from.place.sessions),
        );
        if self.busy().is_none_or(|busy| busy < BUSY) {
            return SATURATED.of_figures(false, lead, self.evidence());
        }
        if self.does_io() {
            return self.ambiguous(&lead);
        }
        let text = format!("{lead} The CPUs were busy and there was hardly any I/O: the limit is CPU.");
        SATURATED.of_figures(false, text, self.evidence())
    }

    fn ambiguous(&self, lead: &str) -> Advice {
        let kernel = self.kernel().filter(|growth| *growth >= KERNEL);
        let kernel = kernel.map_or(String::new(), |growth| {
            format!(" System CPU per I/O rose by {} %: contention in the kernel is likely.", fixed(100.0 * growth, 0))
        });
        AMBIGUOUS.of_figures(
            false,
            format!(
                "{lead} The CPUs were {} % and {} % busy, so the limit is ambiguous: storage or CPU.{kernel} {}",
                number(&busy_figure(self.from)),
                number(&busy_figure(self.to)),
                AMBIGUOUS.what_to_do
            ),
            self.evidence(),
        )
    }
}

fn busy_figure(step: &SweepStep) -> Figure {
    match step.busy_pct() {
        Some(busy) => Figure::decimal(busy),
        None => Figure::na("CPU use unknown"),
    }
}

fn number(figure: &Figure) -> String {
    figure.value().map_or_else(|| "n/a".to_owned(), |value| fixed(value, 0))
}

/// R9, or R10 where the CPUs may be the limit: the first level stretch from the knee on.
fn saturated(curve: &Curve, steps: &[&SweepStep]) -> Option<Advice> {
    let knee = curve.knee.load.value()?;
    level(steps, knee).map(|pair| pair.saturated(&curve.held))
}

/// R10 over CPUs: more of them, the best throughput of each, no gain, and all busy.
fn cpus_without_gain(steps: &[SweepStep]) -> Vec<Advice> {
    let mut best: Vec<&SweepStep> = Vec::new();
    for step in counted(steps).filter(|step| !step.is_shaky()) {
        let Some(cpus) = step.place.cpus.value() else {
            continue;
        };
        let same =
            |other: &&mut &SweepStep| other.place.over == step.place.over && other.place.cpus.value() == Some(cpus);
        match best.iter_mut().find(same) {
            Some(kept) if kept.ops_per_s.value() < step.ops_per_s.value() => *kept = step,
            Some(_) => {}
            None => best.push(step),
        }
    }
    let cpus = |step: &SweepStep| step.place.cpus.value().unwrap_or(0.0);
    let mut found = Vec::new();
    for to in &best {
        let fewer = best
            .iter()
            .filter(|from| from.place.over == to.place.over && cpus(from) < cpus(to))
            .max_by(|a, b| cpus(a).total_cmp(&cpus(b)));
        let Some(pair) = fewer.and_then(|from| Pair::new(from, to)) else {
            continue;
        };
        if pair.rate - 1.0 < LEVEL && pair.does_io() && pair.busy().is_some_and(|busy| busy >= BUSY) {
            let held = held_text(&to.place.over);
            let held = if held.is_empty() { held } else { format!(" ({held})") };
            let mut advice = pair.ambiguous(&format!(
                "More CPUs gave no gain{held}: at their best, {} and {} CPUs give {}.",
                fixed(cpus(pair.from), 0),
                fixed(cpus(pair.to), 0),
                pair.numbers()
            ));
            advice.evidence.insert("cpus_from_count".to_owned(), pair.from.place.cpus.clone());
            advice.evidence.insert("cpus_to_count".to_owned(), pair.to.place.cpus.clone());
            found.push(advice);
        }
    }
    found
}
