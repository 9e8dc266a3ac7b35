//! `io`: fio's words to a probe, its readings to fio's reports and to our record.

mod sink;
mod watch;

use super::probe::stamped;
use super::rounds::Rounds;
use crate::cli::IoArgs;
use crate::exit::{Code, Failure};
use crate::record;
use crate::rundir::{self, FIO_JSON, RunDir, job_file};
use crate::{fleet_part, perform, plan_text, signals, ui};
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::{answer, text};
use assay_run::engine::EngineError;
use assay_run::probe::{Aimed, Measured};
use assay_run::standstill::Standstill;
use assay_run::stop::Stop;
use assay_storage::readings::StorageReadings;
use assay_storage::record::fio;
use assay_storage::spec::{Invocation, OutputFormat, OutputOptions};
use assay_storage::{StorageMeasured, StorageRun, language};
use sink::Sink;
use std::fmt::Write;
use std::path::Path;
use watch::Watch;

/// The command's name, and the workload in its records.
const NAME: &str = "io";

pub(super) fn io(args: &IoArgs) -> Result<Code, Failure> {
    if let Some(answer) = language::help_asked(&args.words) {
        ui::product(&answer.map_err(Failure::usage)?)?;
        return Ok(Code::Good);
    }
    let invocation = assay_storage::invocation(&args.words).map_err(refused)?;
    for note in &invocation.output.notes {
        ui::say(&format!("notice: {note}"));
    }
    if invocation.output.show_command {
        ui::product(&(language::command_line(&invocation) + "\n"))?;
        return Ok(Code::Good);
    }
    if invocation.output.parse_only {
        return Ok(parsed(invocation));
    }
    perform(&assay_storage::aim(invocation).map_err(refused)?, &args.words)
}

/// A refusal may name several files, a line each.
fn refused(error: EngineError) -> Failure {
    let failure = Failure::from(error);
    Failure {
        code: failure.code,
        lines: failure.lines.iter().flat_map(|text| text.lines().map(str::to_owned)).collect(),
    }
}

/// The words are legal, which is all that the exit code tells; what a run would do is told beside.
fn parsed(invocation: Invocation) -> Code {
    match assay_storage::aim(invocation).map_err(refused) {
        Ok(aimed) => ui::say(&plan_text::lines(&aimed.plan())),
        Err(failure) => {
            for line in &failure.lines {
                ui::say(&format!("notice: assay would refuse the run: {line}"));
            }
        }
    }
    Code::Good
}

fn perform(aimed: &StorageRun, words: &[String]) -> Result<Code, Failure> {
    let Invocation { output: options, scratch, .. } = &aimed.invocation;
    let rounds = Rounds::asked(&assay_storage::SPEC, options.until.as_deref(), options.at_most.as_deref())?;
    let id = rundir::new_id();
    let place = rundir::place(options.run_directory.as_deref(), NAME, &id);
    if options.run_directory.is_some() && !options.no_record {
        rundir::refuse_used(&place)?;
    }
    let sink = Sink::open(options.file.as_deref())?;
    ui::say(&plan_text::lines(&aimed.plan()));
    if let Some(place) = scratch.as_deref().and_then(Path::parent) {
        ui::left_in(place);
    }
    let dir = (!options.no_record).then(|| RunDir::create(place)).transpose().inspect_err(|_| sink.discard())?;
    let stop = signals::watch()?;
    let started = jiff::Timestamp::now().to_string();
    let watch = Watch::new(options, &sink);
    let standstill = Standstill::watch();
    let given = dir.as_ref().map_or(Ok(()), |dir| keep_given(dir, words, &aimed.invocation.files));
    let run = stamped(NAME, options.label.clone(), aimed.invocation.settings(), id, started);
    let one = |number| {
        // The files of the first round are there for the next.
        let again = (number > 1).then(|| assay_storage::aim(aimed.invocation.clone()).map_err(refused)).transpose()?;
        let readings = again.as_ref().unwrap_or(aimed).readings(&stop, &watch).map_err(refused)?;
        if fleet_part::get().is_some() {
            let readings = StorageMeasured(readings.clone());
            fleet_part::measured(dir.as_ref().map_or(Path::new(""), RunDir::path), readings.data(&run));
        }
        Ok((assay_storage::record::build(&run, &readings), readings))
    };
    let measured = given.and_then(|()| rounds.map_or_else(|| one(1), |rounds| rounds.measure(&stop, one)));
    let (mut record, readings) = measured.inspect_err(|_| {
        dir.iter().for_each(RunDir::discard);
        sink.discard();
    })?;
    let found = standstill.finding();
    let (first, unsaid) = watch.ended();
    record.advice.splice(0..0, found);
    let reports = reports(options, &readings, Some(&record), first);
    leave(&reports, &sink, dir.as_ref(), &readings, &record)?;
    unsaid?;
    Ok(code(&readings, &record, &stop))
}

/// `config/given`, the command line quoted for a shell, and the job files beside it.
fn keep_given(dir: &RunDir, words: &[String], files: &[String]) -> Result<(), Failure> {
    let quoted: Vec<String> = words.iter().map(|word| shell_word(word)).collect();
    dir.write("config/given", &format!("assay {NAME} {}\n", quoted.join(" ")))?;
    let mut files = files.iter().enumerate();
    files.try_for_each(|(index, text)| dir.write(&job_file(index + 1), text))
}

/// Writes the record and prints the product; the record's failure is told after the product.
fn leave(
    reports: &str,
    sink: &Sink,
    dir: Option<&RunDir>,
    readings: &StorageReadings,
    record: &Record,
) -> Result<(), Failure> {
    let written = dir.map_or(Ok(()), |dir| {
        record::write(dir, record)?;
        dir.write(FIO_JSON, &fio::json(readings, true, None))
    });
    let printed = sink.put(reports);
    // Both are told where both fail; the product comes first.
    if let (Err(_), Err(failure)) = (&printed, &written) {
        ui::aside(failure);
    }
    printed?;
    written?;
    if let Some(dir) = dir {
        ui::say(&format!("record: {}", dir.path().display()));
    }
    Ok(())
}

/// The reports in all formats asked for, in fio's order, which is not the order of the words.
/// The first says what runs; `record` is there at the end only.
fn reports(options: &OutputOptions, readings: &StorageReadings, record: Option<&Record>, first: bool) -> String {
    let wants = |format| options.formats.contains(&format);
    let plus = wants(OutputFormat::JsonPlus);
    let normal = options.formats.is_empty() || wants(OutputFormat::Normal);
    let mut out = String::new();
    if normal && first {
        out.push_str(&fio::header(&readings.jobs, fio::version(readings)));
    }
    if wants(OutputFormat::Terse) || options.append_terse {
        out.push_str(&fio::terse(readings));
    }
    if plus || wants(OutputFormat::Json) {
        let native = record.map(assay_storage::record::native);
        out.push_str(&fio::json(readings, plus, native));
    }
    if normal {
        out.push_str(&fio::text(readings));
        if let Some(record) = record {
            let below = text::write(&assay_storage::record::section(record));
            let answer = answer::of(&[record], &answer::Context::default()).text();
            let _ = write!(out, "\n{}\n{answer}", below.trim_start());
        }
    }
    out
}

/// What the shell is told of jobs that ran.
fn code(readings: &StorageReadings, record: &Record, stop: &Stop) -> Code {
    let failed = readings.failures();
    for what in &failed {
        ui::say(&format!("error: {what}"));
    }
    let void = assay_measure::identity::violated_exact(record);
    for identity in &void {
        ui::say(&format!("error: the run is invalid: identity {} does not hold: {}", identity.id, identity.rule));
    }
    let invalid = record.run.verdict == "invalid";
    if invalid && failed.is_empty() {
        for reason in &record.run.verdict_reasons {
            ui::say(&format!("error: the run is invalid: {reason}"));
        }
    }
    if stop.requested() {
        return Code::Interrupted;
    }
    match (failed.is_empty(), readings.ended()) {
        (true, _) if void.is_empty() && !invalid => perform::code_of_precision(record),
        // Not one I/O got through: it is the target that cannot serve.
        (false, 0) => Code::Unusable,
        _ => Code::Invalid,
    }
}
