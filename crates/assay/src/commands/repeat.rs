//! `run --repeat`: the same run several times, and how much its figures differ when nothing changes.

use super::report::of_repeats;
use super::shown::Shown;
use crate::cli::RunArgs;
use crate::cli::format::{ANSWER, FULL, JSON};
use crate::configure::Configured;
use crate::exit::{Code, Failure};
use crate::perform;
use crate::rundir::{self, REPEAT, REPEAT_TEXT, RunDir};
use crate::{plan_text, ui};
use assay_measure::record::Record;
use assay_report::compare::{Detectable, REPEAT_SCHEMA, RepeatRun, Repeats};
use assay_report::formats::{Format, find};
use assay_report::html::Assets;
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::path::{Path, PathBuf};

/// What cannot be repeated, told before anything is made.
pub(super) fn refuse(configured: &Configured, format: &'static Format) -> Result<(), Failure> {
    if of_repeats(told(format), &Repeats::default(), &Assets::Embedded).is_none() {
        let name = format.name;
        return Err(Failure::usage(format!("--format {name} shows one run: it cannot be printed of --repeat")));
    }
    match configured.settings.text("TRACE") {
        "" => Ok(()),
        _ => Err(Failure::usage("TRACE belongs to one run: every repeat would write the same file; leave it out")),
    }
}

/// What repeats are for is their noise, which the whole report has.
fn told(format: &'static Format) -> &'static Format {
    if format.name == ANSWER { find(FULL).unwrap_or_default() } else { format }
}

/// The repeats under way.
struct Running {
    repeats: Repeats,
    records: Vec<Record>,
    /// The exit code: the first failure, if any.
    worst: Code,
}

/// Runs the plan again and again, each time with the target opened anew and with the same seed.
pub(super) fn run(
    args: &RunArgs,
    configured: &Configured,
    plan: &Plan,
    stop: &Stop,
    id: String,
    place: PathBuf,
    shown: &mut Shown,
) -> Result<Code, Failure> {
    let _shared = configured.target.share(&configured.location, &configured.settings)?;
    let dir = RunDir::above(&place)?;
    crate::html::share_in(&dir)?;
    let wanted = args.more.repeat;
    let mut running = Running {
        repeats: Repeats {
            schema: REPEAT_SCHEMA.to_owned(),
            id,
            label: configured.settings.text("LABEL").to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started: jiff::Timestamp::now().to_string(),
            workload: configured.workload.to_owned(),
            target: configured.shown(),
            wanted_count: wanted,
            ..Repeats::default()
        },
        records: Vec::new(),
        worst: Code::Good,
    };
    for number in 1..=wanted {
        if stop.requested() {
            break;
        }
        let which = format!("repeat {number} of {wanted}");
        ui::say(&which);
        let directory = format!("repeat-{number}");
        shown.goes_on(&place.join(&directory), &which)?;
        running.one(configured, plan, stop, &place, directory)?;
        running.settle(wanted, stop);
        write(&dir, &running.repeats)?;
    }
    shown.give_way();
    if let Some(wanted) = args.more.detect {
        let found = running.detectable(wanted);
        write(&dir, &running.repeats)?;
        ui::say(&format!("repeats: {}", place.display()));
        let is_data = args.more.format.name == JSON;
        ui::product(&if is_data { plan_text::pretty(&running.repeats) } else { found.lines().join("\n") + "\n" })?;
        let code = if found.cannot.is_empty() { Code::Good } else { Code::Invalid };
        return Ok(if stop.requested() { Code::Interrupted } else { code });
    }
    let text = of_repeats(told(args.more.format), &running.repeats, &Assets::Embedded);
    ui::product(&text.unwrap_or_default())?;
    ui::say(&format!("repeats: {}", place.display()));
    Ok(if stop.requested() { Code::Interrupted } else { running.worst })
}

impl Running {
    /// One run. Only an output that cannot be written ends the repeats.
    fn one(
        &mut self,
        configured: &Configured,
        plan: &Plan,
        stop: &Stop,
        place: &Path,
        directory: String,
    ) -> Result<(), Failure> {
        let mut found = None;
        let ended = perform::perform(configured, plan, stop, rundir::new_id(), place.join(&directory), &mut |record| {
            found = Some(record.clone());
            Ok(())
        });
        let code = match ended {
            Ok(code) => code,
            Err(failure) if failure.code == Code::Output => return Err(failure),
            Err(failure) => ui::failure(&failure),
        };
        if self.worst == Code::Good {
            self.worst = code;
        }
        if let Some(record) = found {
            let rate = record.interval.ops_count.clone();
            let elapsed_s = record.interval.elapsed_s.value().unwrap_or(0.0);
            self.repeats.runs.push(RepeatRun {
                directory,
                id: record.run.id.clone(),
                started: record.run.started.clone(),
                verdict: record.run.verdict.clone(),
                ops_per_s: rate.per(elapsed_s, "no time passed"),
            });
            self.records.push(record);
        }
        Ok(())
    }

    /// Verdict and noise of the runs there are. A run that was cut short or is invalid is no repeat of the others.
    fn settle(&mut self, wanted: u64, stop: &Stop) {
        let runs = &self.repeats.runs;
        let whole = runs.iter().filter(|run| run.verdict == "complete").count() as u64;
        let mut reasons = Vec::new();
        if stop.requested() {
            reasons.push(format!("stopped on request after {} run(s)", runs.len()));
        }
        if whole < wanted {
            reasons.push(format!("{whole} of {wanted} runs are complete"));
        }
        self.repeats.verdict = if reasons.is_empty() { "complete" } else { "incomplete" }.to_owned();
        self.repeats.verdict_reasons = reasons;
        let complete: Vec<&Record> = (self.records.iter()).filter(|record| record.run.verdict == "complete").collect();
        self.repeats = std::mem::take(&mut self.repeats).with_noise(&complete);
    }

    /// What it takes to see a difference of this share.
    fn detectable(&mut self, wanted: f64) -> Detectable {
        let complete: Vec<&Record> = (self.records.iter()).filter(|record| record.run.verdict == "complete").collect();
        let found = Detectable::of(&complete, wanted);
        self.repeats.detectable = Some(found.clone());
        found
    }
}

fn write(dir: &RunDir, repeats: &Repeats) -> Result<(), Failure> {
    dir.write(REPEAT, &plan_text::pretty(repeats))?;
    dir.write(REPEAT_TEXT, &repeats.render())
}
