//! `io`: fio's words to a probe, its readings to fio's reports and to our record.

pub(super) mod help;
mod keep;
mod sink;
mod usual;
mod watch;

use crate::cli::IoArgs;
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{plan_text, signals, ui};
use assay_measure::record::Record;
use assay_report::{answer, text};
use assay_run::engine::EngineError;
use assay_run::probe::{Aimed, Measured};
use assay_run::standstill::Standstill;
use assay_run::stop::Stop;
use assay_storage::StorageMeasured;
use assay_storage::language::{self, World};
use assay_storage::readings::StorageReadings;
use assay_storage::record::fio;
use assay_storage::spec::{Invocation, OutputFormat, OutputOptions};
use sink::Sink;
use std::any::Any;
use std::cell::RefCell;
use std::fmt::Write;
use std::path::Path;
use watch::Watch;

/// The command's name, and the workload in its records.
const NAME: &str = "io";

pub(super) fn io(args: &IoArgs) -> Result<Code, Failure> {
    if let Some(text) = help::asked(&args.words)? {
        ui::product(&text)?;
        return Ok(Code::Good);
    }
    let (words, scratch) = usual::expanded(&args.words);
    let (invocation, files) = parse(&words)?;
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
    let given = keep::Given::new(&args.words, &invocation, files);
    let options = invocation.output.clone();
    let aimed = aim(invocation)?;
    perform(&*aimed, &options, &given, scratch.as_deref())
}

/// The jobs, and the text of every job file and include in the order of reading.
fn parse(words: &[String]) -> Result<(Invocation, Vec<String>), Failure> {
    let here = World::here();
    let files = RefCell::new(Vec::new());
    let keep = |text: std::io::Result<String>| {
        files.borrow_mut().extend(text.as_ref().ok().cloned());
        text
    };
    let (read_file, stdin) = (here.read_file, here.stdin);
    let world = World { read_file: &|path| keep(read_file(path)), stdin: &|| keep(stdin()), ..here };
    let invocation = language::parse(words, &world)
        .map_err(|mistakes| Failure { code: Code::Usage, lines: mistakes.iter().map(ToString::to_string).collect() })?;
    Ok((invocation, files.into_inner()))
}

fn aim(invocation: Invocation) -> Result<Box<dyn Aimed>, Failure> {
    assay_storage::aim(invocation).map_err(refused)
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
    match aim(invocation) {
        Ok(aimed) => ui::say(&plan_text::lines(&aimed.plan())),
        Err(failure) => {
            for line in &failure.lines {
                ui::say(&format!("notice: assay would refuse the run: {line}"));
            }
        }
    }
    Code::Good
}

fn perform(
    aimed: &dyn Aimed,
    options: &OutputOptions,
    given: &keep::Given,
    scratch: Option<&Path>,
) -> Result<Code, Failure> {
    let id = rundir::new_id();
    let place = rundir::place(options.run_directory.as_deref(), NAME, &id);
    if options.run_directory.is_some() && !options.no_record {
        rundir::refuse_used(&place)?;
    }
    let sink = Sink::open(options.file.as_deref())?;
    ui::say(&plan_text::lines(&aimed.plan()));
    if let Some(place) = scratch.and_then(Path::parent) {
        ui::left_in(place);
    }
    let dir = (!options.no_record).then(|| RunDir::create(place)).transpose().inspect_err(|_| sink.discard())?;
    let stop = signals::watch()?;
    let started = jiff::Timestamp::now().to_string();
    let watch = Watch::new(options, &sink);
    let standstill = Standstill::watch();
    let measured = given
        .write(dir.as_ref())
        .and_then(|()| usual::marked(scratch, || aimed.measure(&stop, &watch).map_err(refused)));
    let readings = match measured.and_then(ours) {
        Ok(readings) => named(readings),
        Err(failure) => {
            dir.iter().for_each(RunDir::discard);
            sink.discard();
            return Err(failure);
        }
    };
    let found = standstill.finding();
    let (first, unsaid) = watch.ended();
    let mut record = assay_storage::record::build(&keep::labels(given, id, started), &readings);
    record.advice.splice(0..0, found);
    let reports = reports(options, &readings, Some(&record), first);
    leave(&reports, &sink, dir.as_ref(), &readings, &record)?;
    unsaid?;
    Ok(code(&readings, &record, &stop))
}

fn ours(readings: Box<dyn Measured>) -> Result<StorageReadings, Failure> {
    let readings: Box<dyn Any> = readings;
    match readings.downcast::<StorageMeasured>() {
        Ok(measured) => Ok(measured.0),
        Err(_) => Err(Failure::new(Code::Bug, "the storage probe brought another probe's readings")),
    }
}

/// Whatever `ASSAY_FIO_VERSION` says stands where fio names its version: some readers of fio's
/// JSON insist on `fio-3.33`.
fn named(mut readings: StorageReadings) -> StorageReadings {
    if let Ok(version) = std::env::var("ASSAY_FIO_VERSION") {
        readings.fio_version = version;
    }
    readings
}

/// Writes the record and prints the product; the record's failure is told after the product.
fn leave(
    reports: &str,
    sink: &Sink,
    dir: Option<&RunDir>,
    readings: &StorageReadings,
    record: &Record,
) -> Result<(), Failure> {
    let written = dir.map_or(Ok(()), |dir| keep::write(dir, readings, record));
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
    let failed: Vec<_> = readings.clones.iter().filter(|clone| clone.error != 0 || clone.errors_passed > 0).collect();
    for clone in &failed {
        let job = readings.jobs.get(clone.job).map_or("?", |job| &job.name);
        let mut what = clone.error_text.clone().unwrap_or_default();
        if clone.errors_passed > 0 {
            let _ = write!(
                what,
                "{}{} I/Os failed, and the job continued",
                if what.is_empty() { "" } else { "; " },
                clone.errors_passed
            );
        }
        ui::say(&format!("error: {job}, clone {}: {what}", clone.clone));
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
    let ended: u64 = readings.clones.iter().flat_map(|clone| clone.ways.iter().map(|way| way.ios)).sum();
    match (failed.is_empty(), ended) {
        (true, _) if void.is_empty() && !invalid => Code::Good,
        // Not one I/O got through: it is the target that cannot serve.
        (false, 0) => Code::Unusable,
        _ => Code::Invalid,
    }
}
