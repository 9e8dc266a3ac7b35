//! A sweep in progress: the results of its steps so far, and its record.

use crate::info::{SweepAxis, SweepInfo};
use crate::step::{StepPlace, SweepStep};
use crate::{Sweep, advice, curve, rules};
use assay_measure::kind::attach_metrics;
use assay_measure::record::{Checks, Figure, Record};
use assay_measure::snapshot::{Fact, RunData, SettingLine, Verdict};

/// Why the record of a sweep has no window.
const NO_WINDOW: &str = "every step has a window of its own";

/// A sweep being measured: its labels, its request, and its steps so far.
#[derive(Clone, Debug, Default)]
pub struct UnderWay {
    /// Labels; settings and facts as the steps' records have them.
    run: RunData,
    info: SweepInfo,
    /// Of each step its warnings, numbers left out, with the steps that have them.
    warnings: Vec<Warning>,
    /// Blocks of the cache, and of the data.
    data: Option<(Figure, Figure)>,
}

#[derive(Clone, Debug, Default)]
struct Warning {
    /// Its words: the same finding of another step differs only in its numbers.
    words: String,
    /// As the first step that has it says it.
    text: String,
    /// Numbers of the steps that have it.
    steps: Vec<u64>,
}

impl UnderWay {
    /// A sweep without a step. `run` supplies the labels; `goal_us_p99` is n/a if there is no goal.
    #[must_use]
    pub fn new(run: RunData, target: String, axes: Vec<SweepAxis>, goal_us_p99: Figure) -> Self {
        Self {
            run,
            info: SweepInfo { target, axes, goal_us_p99, rules: rules::all(), ..SweepInfo::default() },
            warnings: Vec::new(),
            data: None,
        }
    }

    /// The plural name of its workload's operations.
    #[must_use]
    pub fn doing(mut self, operations: &str) -> Self {
        operations.clone_into(&mut self.info.operations);
        self
    }

    /// Reads the law at this load too.
    #[must_use]
    pub fn projected_to(mut self, load: u64) -> Self {
        self.info.projected.push(load);
        self
    }

    /// The unit of its rates.
    #[must_use]
    pub fn per_s(&self) -> String {
        self.info.per_s()
    }

    /// The steps so far.
    #[must_use]
    pub fn steps(&self) -> &[SweepStep] {
        &self.info.steps
    }

    /// The master seed of every step.
    #[must_use]
    pub fn seed(&self) -> u64 {
        self.run.seed
    }

    /// Takes in a step that was measured.
    pub fn measured(&mut self, place: StepPlace, record: &Record) -> &SweepStep {
        let run = &mut self.run;
        if self.info.steps.iter().any(|step| step.verdict != "failed") {
            merge(&mut run.settings, &record.plan.settings);
            keep_common(&mut run.engine_facts, &record.plan.engine_facts);
            keep_common(&mut run.host, &record.host.facts);
        } else {
            run.settings.clone_from(&record.plan.settings);
            run.engine_facts.clone_from(&record.plan.engine_facts);
            run.host.clone_from(&record.host.facts);
        }
        for (_, text) in record.doubts() {
            self.warn(place.step, text);
        }
        self.data(&record.checks);
        let mut step = SweepStep::of(place, record);
        if !self.info.operations.is_empty() {
            step.op.name.clone_from(&self.info.operations);
        }
        self.push(step)
    }

    /// Takes in a step that could not be run, and why.
    pub fn failed(&mut self, place: StepPlace, reason: &str) -> &SweepStep {
        self.push(SweepStep::failed(place, reason))
    }

    fn push(&mut self, step: SweepStep) -> &SweepStep {
        let at = self.info.steps.len();
        self.info.steps.push(step);
        &self.info.steps[at]
    }

    /// The most data that any step could touch, and the cache, if it is that of all steps.
    fn data(&mut self, checks: &Checks) {
        let known = self.data.get_or_insert_with(|| (checks.cache_blocks.clone(), checks.active_blocks.clone()));
        if known.0 != checks.cache_blocks {
            known.0 = Figure::na("differs from step to step");
        }
        if known.1.value() < checks.active_blocks.value() {
            known.1.clone_from(&checks.active_blocks);
        }
    }

    fn warn(&mut self, step: u64, text: &str) {
        let words = text.replace(|c: char| c.is_ascii_digit() || ".,".contains(c), "");
        match self.warnings.iter_mut().find(|known| known.words == words) {
            Some(known) => known.steps.push(step),
            None => self.warnings.push(Warning { words, text: text.to_owned(), steps: vec![step] }),
        }
    }

    /// The record of the steps so far. `end` is the wall time, RFC 3339, `elapsed_s` what passed since the start, s.
    #[must_use]
    pub fn record(&self, verdict: Verdict, end: &str, elapsed_s: f64) -> Record {
        let mut info = self.info.clone();
        curve::conclude(&mut info, self.run.seed);
        let run = RunData { verdict, ..self.run.clone() };
        let mut record = Record::labelled(&run);
        record.interval.begin.clone_from(&run.started);
        record.interval.end = end.to_owned();
        record.interval.elapsed_s = Figure::na(NO_WINDOW);
        record.interval.whole_run_s = Figure::decimal(elapsed_s);
        let data = self.data.clone();
        (record.checks.cache_blocks, record.checks.active_blocks) = data.unwrap_or_default();
        record.advice = advice::advise(&info);
        record.warnings = self.warnings.iter().map(Warning::told).collect();
        record.parts.put(&info);
        attach_metrics(&Sweep, &mut record);
        record
    }
}

impl Warning {
    fn told(&self) -> String {
        let steps: Vec<String> = self.steps.iter().map(u64::to_string).collect();
        match steps.len() {
            1 => format!("Step {}: {}", steps[0], self.text),
            _ => format!("Steps {} (figures of step {}): {}", steps.join(", "), steps[0], self.text),
        }
    }
}

/// What differs from step to step becomes the list of its values.
fn merge(settings: &mut [SettingLine], more: &[SettingLine]) {
    for line in settings {
        let Some(other) = more.iter().find(|other| other.name == line.name) else {
            continue;
        };
        if line.value.split(',').all(|value| value != other.value) && line.value != other.value {
            line.value = format!("{},{}", line.value, other.value);
        }
    }
}

/// Leaves out what is true of some steps alone.
fn keep_common(facts: &mut Vec<Fact>, more: &[Fact]) {
    facts.retain(|fact| more.contains(fact));
}
