//! A probe that is given a place and a time: aim, plan, measure, record, report.

use super::flag_time::time_within;
use super::rounds::Rounds;
use crate::cli::format::{TOOL_JSON, is_json};
use crate::cli::{ProbeArgs, ProbeCommand};
use crate::exit::{Code, Failure};
use crate::fleet_part;
use crate::progress;
use crate::record;
use crate::registry;
use crate::rundir::{self, RunDir};
use crate::{answer, perform, plan_text, signals, ui};
use assay_measure::locked::locked;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, SettingLine};
use assay_report::formats::Format;
use assay_run::engine::Line;
use assay_run::host;
use assay_run::probe::{Aimed, LOGFILE, ProbeSpec, Request, Serving, Steps, Takes};
use assay_run::standstill::Standstill;
use assay_run::stop::Stop;
use std::path::Path;
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

/// With less each step would see too few flushes to say anything.
const LEAST: Duration = Duration::from_secs(1);
const MOST: Duration = Duration::from_secs(24 * 3600);

pub(super) fn probe(command: &ProbeCommand) -> Result<Code, Failure> {
    let ProbeCommand { name, args } = command;
    let probe = registry::probe(name).expect("the command line comes from the registry");
    let rounds = Rounds::asked(probe, args.until.as_deref(), args.at_most.as_deref())?;
    let time = match &rounds {
        Some(rounds) => rounds.time,
        None => args.time.as_deref().map_or(Ok(LEAST), time)?,
    };
    let id = rundir::new_id();
    let place = rundir::place(args.output.as_deref(), name, &id);
    if args.output.is_some() {
        rundir::refuse_used(&place)?;
    }
    let request = Request { place: args.path.clone().unwrap_or_default(), time, words: args.words.clone() };
    if let Some(server) = probe.takes.server(&request.place) {
        return serve(&*server(&request)?, args);
    }
    let aimed = (probe.aim)(&request)?;
    let plan: Vec<Line> = aimed.plan().into_iter().chain(rounds.iter().map(Rounds::plan)).collect();
    if args.dry_run {
        return dry_run(args.format, &plan);
    }
    if let Some(file) = request.said(&LOGFILE) {
        ui::log_to(Path::new(file))?;
    }
    ui::say(&plan_text::lines(&plan));
    let stop = signals::watch()?;
    let labels = labels(probe, args, &request, id, jiff::Timestamp::now().to_string());
    let standstill = Standstill::watch();
    let mut record = match rounds {
        None => measured((args, &place), &*aimed, &labels, time, &stop)?,
        Some(rounds) => {
            rounds
                .measure(&stop, |number| {
                    ui::say(&format!("round {number}"));
                    Ok((measured((args, &place), &*(probe.aim)(&request)?, &labels, time, &stop)?, ()))
                })?
                .0
        }
    };
    let found = standstill.finding();
    record.advice.splice(0..0, found);
    leave(args, place, &record)?;
    let run = &record.run;
    if run.verdict == "invalid" {
        let said = run.verdict_reasons.iter();
        said.for_each(|reason| ui::say(&format!("invalid: {reason}")));
        return Ok(Code::Invalid);
    }
    if stop.requested() {
        return Ok(Code::Interrupted);
    }
    Ok(perform::code_of_precision(&record))
}

/// One end of a test between two hosts, which leaves nothing: calls `ready` and serves until it is stopped, or brings the record.
pub(super) fn one_end(command: &ProbeCommand, stop: &Stop, ready: &dyn Fn()) -> Result<Option<Record>, Failure> {
    let ProbeCommand { name, args } = command;
    let probe = registry::probe(name).expect("the command line comes from the registry");
    let time = args.time.as_deref().map_or(Ok(LEAST), time)?;
    let request = Request { place: args.path.clone().unwrap_or_default(), time, words: args.words.clone() };
    if let Some(server) = probe.takes.server(&request.place) {
        let server = server(&request)?;
        ready();
        server.serve(stop, &ui::say)?;
        return Ok(None);
    }
    let labels = labels(probe, args, &request, rundir::new_id(), jiff::Timestamp::now().to_string());
    // It leaves no directory.
    measured((args, Path::new("")), &*(probe.aim)(&request)?, &labels, time, stop).map(Some)
}

/// The record of one measurement.
fn measured(
    (args, place): (&ProbeArgs, &Path),
    aimed: &dyn Aimed,
    labels: &RunData,
    time: Duration,
    stop: &Stop,
) -> Result<Record, Failure> {
    let progress = Progress::new(time);
    let measured = aimed.measure(stop, &progress);
    drop(progress);
    match measured {
        Ok(measured) => {
            if fleet_part::get().is_some() {
                fleet_part::measured(place, measured.data(labels));
            }
            let lacking = || Failure::new(Code::Bug, format!("the probe {} brought no record", labels.workload));
            measured.record(labels).ok_or_else(lacking)
        }
        Err(error) => {
            // Who asked for JSON reads JSON of a failure too.
            if args.format.name == TOOL_JSON {
                let told = serde_json::json!({"error": error.to_string()});
                ui::product(&plan_text::pretty(&told))?;
            }
            Err(error.into())
        }
    }
}

/// The plan and nothing else.
pub(super) fn dry_run(format: &Format, plan: &[Line]) -> Result<Code, Failure> {
    let text =
        if is_json(format) { plan_text::pretty(&plan_text::lines_json(plan)) } else { plan_text::lines(plan) + "\n" };
    ui::product(&text)?;
    Ok(Code::Good)
}

/// The other end, until somebody stops it: that is its good end.
fn serve(server: &dyn Serving, args: &ProbeArgs) -> Result<Code, Failure> {
    if args.dry_run {
        return dry_run(args.format, &server.plan());
    }
    ui::say(&plan_text::lines(&server.plan()));
    let stop = signals::watch()?;
    server.serve(&stop, &ui::say)?;
    Ok(Code::Good)
}

pub(super) fn time(text: &str) -> Result<Duration, Failure> {
    time_within("--time", text, LEAST..=MOST, "1s to 24h")
}

/// What the record says beside the measurements.
fn labels(probe: &ProbeSpec, args: &ProbeArgs, request: &Request, id: String, started: String) -> RunData {
    let setting = |name: &str, value: String, is_default: bool| {
        SettingLine::new(name, value, if is_default { "default" } else { "cli" })
    };
    let path = args.path.as_ref().map(|path| path.display().to_string());
    let mut settings: Vec<SettingLine> = path
        .into_iter()
        .map(|path| match probe.takes {
            Takes::Peer(_) => setting("PEER", path, false),
            _ => setting("PATH", path.clone(), path == "."),
        })
        .collect();
    let time = args.time.iter().filter(|_| args.until.is_none()).cloned();
    settings.extend(time.map(|time| setting("TIME", time, !args.time_is_given)));
    settings.extend(args.until.iter().map(|until| setting("UNTIL", until.clone(), false)));
    settings.extend(args.at_most.iter().map(|most| setting("AT_MOST", most.clone(), false)));
    for option in probe.options() {
        let value = request.option(option);
        if !value.is_empty() {
            let name = option.name.to_uppercase().replace('-', "_");
            settings.push(setting(&name, value.to_owned(), value == option.default));
        }
    }
    stamped(probe.name, args.label.clone(), settings, id, started)
}

/// What the record of any probe says beside the measurements.
pub(super) fn stamped(
    probe: &str,
    label: Option<String>,
    settings: Vec<SettingLine>,
    run_id: String,
    started: String,
) -> RunData {
    RunData {
        run_id,
        label,
        workload: probe.to_owned(),
        engine: "probe".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        settings,
        host: host::facts(),
        ..RunData::default()
    }
}

/// Writes the record and prints the product; the record's failure is told after the product.
fn leave(args: &ProbeArgs, place: std::path::PathBuf, record: &Record) -> Result<(), Failure> {
    let written = RunDir::create(place.clone()).and_then(|dir| {
        record::write(&dir, record)?;
        Ok(dir)
    });
    answer::product(record, args.format, &place)?;
    ui::say(&format!("record: {}", written?.path().display()));
    Ok(())
}

/// `step 7 of 54, 13 %, about 52 s left: write + fdatasync, 4 x 4096 bytes, preallocated file`
struct Progress {
    line: Mutex<progress::Line>,
    /// When the first step began: earlier work does not count as measuring time.
    begun: OnceLock<Instant>,
    time: Duration,
}

impl Progress {
    fn new(time: Duration) -> Self {
        Self { line: Mutex::new(progress::Line::new()), begun: OnceLock::new(), time }
    }
}

impl Steps for Progress {
    fn ready(&self) {
        fleet_part::ready();
    }

    fn begin(&self) {
        fleet_part::begin();
    }

    fn is_one_of_many(&self) -> bool {
        fleet_part::get().is_some()
    }

    fn say(&self, how_far: &str) {
        locked(&self.line).show(how_far);
    }

    fn step(&self, number: usize, of: usize, what: &str) {
        let mut line = locked(&self.line);
        let spent = match number {
            0 => Duration::ZERO,
            _ => self.begun.get_or_init(Instant::now).elapsed(),
        };
        line.show(&format!(
            "step {number} of {of}, {}, about {} left: {what}",
            progress::share(spent.as_secs_f64(), self.time.as_secs_f64()),
            progress::left(self.time.saturating_sub(spent).as_secs_f64())
        ));
    }
}
