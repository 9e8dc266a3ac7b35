//! One run, from a configured target to its record: shared by every command that runs a workload.

use crate::configure::{self, Configured};
use crate::exit::{Code, Failure, code_of};
use crate::follow::Follow;
use crate::hooks::Hooks;
use crate::observer::RunObserver;
use crate::record;
use crate::rundir::{self, RunDir};
use crate::{emergency, fleet_part, plan_text, progress, ui};
use assay_awr::record::SeriesBuilder;
use assay_control::fleet::worker::Said;
use assay_measure::clock::Clock;
use assay_measure::config::{self, Settings};
use assay_measure::plain::shell_word;
use assay_measure::record::{Advice, Precision, Record};
use assay_measure::snapshot::RunData;
use assay_measure::units;
use assay_run::engine::{DataSet, Engine, EngineError, Line};
use assay_run::host::{self, random_u32};
use assay_run::life::Load;
use assay_run::plan::Plan;
use assay_run::standstill::Standstill;
use assay_run::stop::Stop;
use assay_run::{Labels, Options, RunError, execute, trace};
use std::path::PathBuf;

/// What a run takes beside its cache and log buffer, at most.
const MEMORY_BESIDE_BYTES: u64 = 128 << 20;

/// What is done with a record before the run's directory is named: printing it, reading it.
pub(crate) type Deliver<'a> = dyn FnMut(&Record) -> Result<(), Failure> + 'a;

/// The data set that is there, or `None` where making one harms nothing; an error elsewhere.
pub(crate) fn data_set(configured: &Configured) -> Result<Option<DataSet>, Failure> {
    let shown = configured.shown();
    let life = configured.life(&shown);
    let found = life.data_set(&configured.settings)?;
    if let Some(notice) = found.as_ref().and_then(|data| life.unfinished(data)) {
        ui::say(&format!("notice: {notice}"));
    }
    Ok(found)
}

/// What preparing the absent data set would do.
pub(crate) fn plan_prepare(configured: &Configured) -> Result<Load, Failure> {
    let shown = configured.shown();
    Ok(configured.life(&shown).plan_first(&configured.settings)?)
}

/// Prepares the data set that is absent, as [`plan_prepare`] told.
pub(crate) fn prepare(configured: &Configured, told: &Load, stop: &Stop) -> Result<DataSet, Failure> {
    let shown = configured.shown();
    ui::say(&format!("{shown} has no data set yet: assay prepares it first"));
    ui::say(&plan_text::lines(&told.plan));
    let summary = load(configured, &configured.settings, told, stop)?;
    ui::say(&plan_text::lines(&brief(summary)));
    data_set(configured)?.ok_or_else(|| Failure::new(Code::Bug, format!("{shown} is prepared, but has no data set")))
}

/// Loads the data set with its progress shown; what an interrupted load leaves is said with the ways on.
pub(crate) fn load(
    configured: &Configured,
    settings: &Settings,
    told: &Load,
    stop: &Stop,
) -> Result<Vec<Line>, Failure> {
    let shown = configured.shown();
    let bar = progress::Bytes::new();
    let summary = configured.life(&shown).prepare(settings, told, stop, &bar);
    drop(bar);
    summary.map_err(|error| match error {
        EngineError::Interrupted if !configured.is_temporary() => Failure::new(
            Code::Interrupted,
            format!(
                "interrupted: {shown} has a part of the data set; the same command continues or starts over (its \
                 plan says which), and `assay destroy --target {}` removes it",
                shell_word(&shown)
            ),
        ),
        error => error.into(),
    })
}

/// The figures of a load that matter before a run; `assay prepare` prints them all.
fn brief(summary: Vec<Line>) -> Vec<Line> {
    let wanted = ["loaded_rows", "table_bytes", "load_mb_per_s", "total_s"];
    let brief: Vec<Line> = summary.iter().filter(|line| wanted.contains(&line.key)).cloned().collect();
    if brief.is_empty() { summary } else { brief }
}

/// Refuses a run that the kernel would kill: its memory does not fit into what its control group and the host leave.
pub(crate) fn check_memory(configured: &Configured) -> Result<(), Failure> {
    let settings = &configured.settings;
    let parts = configured.target.memory(settings);
    let Some(room) = host::memory::room().filter(|_| !parts.is_empty()) else {
        return Ok(());
    };
    if let Some(why) = host::memory::lacking(&room, &parts, settings) {
        return Err(Failure::new(Code::Unusable, why));
    }
    let needed = host::memory::sum(&parts);
    if needed.saturating_add(MEMORY_BESIDE_BYTES) > room.free_bytes {
        ui::say(&format!(
            "warning: the run needs {} of memory and more for its sessions, but the limit of {} ({}) leaves {}: the \
             kernel may kill the run",
            units::size(needed),
            units::size(room.limit_bytes),
            room.by.display(),
            units::size(room.free_bytes)
        ));
    }
    Ok(())
}

/// The plan for a data set; its mistakes are usage errors.
pub(crate) fn plan(configured: &mut Configured, data: &DataSet) -> Result<Plan, Failure> {
    check_memory(configured)?;
    configure::adopt(&mut configured.settings, data);
    configure::plan(configured.target, &configured.settings, data, random_u32())
        .map_err(|problems| Failure::problems(&problems))
}

/// Opens the target, runs, and leaves the record.
pub(crate) fn perform(
    configured: &Configured,
    plan: &Plan,
    stop: &Stop,
    id: String,
    place: PathBuf,
    deliver: &mut Deliver<'_>,
) -> Result<Code, Failure> {
    let bar = progress::Bytes::new();
    let engine = configured.target.open(&configured.location, plan, &configured.settings, stop, &bar)?;
    drop(bar);
    let dir = RunDir::create(place)?;
    if let Some(part) = fleet_part::get() {
        part.say(&Said::Dir(std::path::absolute(dir.path()).unwrap_or_default().display().to_string()));
    }
    let labels = labels(configured, id);
    let started = Hooks::new(configured, &dir, &labels.run_id)
        .and_then(|hooks| Ok((begin(&dir, configured, plan, &*engine, &labels)?, hooks)));
    let ((mut observer, trace), hooks) = match started {
        Ok(started) => started,
        Err(failure) => {
            dir.discard();
            return Err(failure);
        }
    };
    observer.hooks(&hooks, stop);
    observer.follow(Follow::of(&configured.settings));
    emergency::run_begins(dir.path());
    let options = Options { labels, trace, commands: hooks.commands(), ..Options::default() };
    let clock = Clock::real();
    let standstill = Standstill::watch();
    let ended = execute(plan, &*engine, &clock, stop, &mut observer, options);
    let found = standstill.finding();
    let pre = observer.take_pre();
    let precision = observer.take_precision(stop.requested());
    let (series, series_written) = observer.finish();
    drop(engine);
    let (mut data, lost) = match ended {
        Ok(data) => (data, None),
        Err(RunError::Lost { source, data }) => (*data, Some(source)),
        Err(error) => {
            emergency::run_ended();
            dir.discard();
            return Err(not_begun(error));
        }
    };
    data.timeline.extend(pre);
    hooks.post(&mut data, stop);
    if let Some(part) = fleet_part::get() {
        part.measured(&data);
    }
    let left = leave(&dir, &data, Beside { series, found, precision }, stop, deliver);
    emergency::run_ended();
    // Nothing more is written there: the script may tag, move or remove the run.
    dir.held().release();
    hooks.end(&data, stop);
    match lost {
        None => {
            let code = left?;
            series_written?;
            Ok(code)
        }
        Some(source) => {
            // What ended the run is the error; what it spoiled besides is told beside it.
            for failure in [left.err(), series_written.err()].into_iter().flatten() {
                ui::aside(&failure);
            }
            given_up(source.into(), stop)
        }
    }
}

/// A run that lost its target. Where its user has ended it, that is how it ended: the record has the rest.
fn given_up(failure: Failure, stop: &Stop) -> Result<Code, Failure> {
    if !stop.requested() {
        return Err(failure);
    }
    ui::aside(&failure);
    Ok(Code::Interrupted)
}

fn not_begun(error: RunError) -> Failure {
    let code = match &error {
        RunError::Interrupted => Code::Interrupted,
        RunError::NotReady { source, .. } => code_of(source),
        _ => Code::Unusable,
    };
    Failure::new(code, error.to_string())
}

/// The user's name for the run, if there is one.
pub(crate) fn label(configured: &Configured) -> Option<String> {
    let label = configured.settings.text("LABEL");
    (!label.is_empty()).then(|| label.to_owned())
}

fn labels(configured: &Configured, id: String) -> Labels {
    Labels {
        run_id: id,
        label: label(configured),
        engine: configured.target.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: configured.lines(),
        facts: plan_text::facts(configured.started_lines()),
    }
}

type Started<'a> = (RunObserver<'a>, Option<Box<dyn trace::Sink>>);

/// Writes what is known before the gate, so that a killed run can be rebuilt.
fn begin<'a>(
    dir: &RunDir,
    configured: &Configured,
    plan: &Plan,
    engine: &'a dyn Engine,
    labels: &Labels,
) -> Result<Started<'a>, Failure> {
    dir.write("config/effective", &config::slob_conf(&configured.settings))?;
    if let Some(given) = &configured.given {
        dir.write("config/given", given)?;
    }
    let known = RunData {
        run_id: labels.run_id.clone(),
        label: labels.label.clone(),
        workload: configured.workload.to_owned(),
        engine: labels.engine.clone(),
        version: labels.version.clone(),
        started: jiff::Timestamp::now().to_string(),
        seed: plan.seed,
        sessions: plan.sessions() as u64,
        fixed_iterations: plan.work_loop > 0,
        settings: labels.settings.clone(),
        engine_facts: labels.facts.clone(),
        host: host::facts(),
        warnings: plan.notices(),
        ..RunData::default()
    };
    let ends_ns = (plan.work_loop == 0).then(|| plan.warmup_ns + plan.run_time_ns);
    let live = progress::Live::new(ends_ns).by(engine.workload().live(plan.sessions()));
    let observer = RunObserver::begin(dir, known, engine, live)?;
    Ok((observer, open_trace(configured.settings.text("TRACE"))?))
}

fn open_trace(path: &str) -> Result<Option<Box<dyn trace::Sink>>, Failure> {
    if path.is_empty() {
        return Ok(None);
    }
    let path = PathBuf::from(path);
    let file = std::fs::File::create_new(&path).map_err(|error| rundir::cannot(&path, &error))?;
    let sink = trace::Csv::new(file).map_err(|error| rundir::cannot(&path, &error))?;
    Ok(Some(Box::new(sink)))
}

/// What a record has beside the run's readings.
struct Beside {
    series: SeriesBuilder,
    /// A host that stood still.
    found: Option<Advice>,
    precision: Option<Precision>,
}

/// Writes the record and delivers it; the record's failure is told after the delivery.
fn leave(
    dir: &RunDir,
    data: &RunData,
    Beside { series, found, precision }: Beside,
    stop: &Stop,
    deliver: &mut Deliver<'_>,
) -> Result<Code, Failure> {
    let mut record = record::of(data, series);
    record.advice.splice(0..0, found);
    record.precision = precision;
    let written = record::write(dir, &record);
    deliver(&record)?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    Ok(code_of_run(&record, stop))
}

/// What the shell is told of a measurement that was to end when a figure is known.
pub(crate) fn code_of_precision(record: &Record) -> Code {
    let Some(precision) = record.precision.as_ref().filter(|precision| !precision.is_reached()) else {
        return Code::Good;
    };
    ui::say(&format!("error: {}", precision.sentence()));
    Code::Invalid
}

/// What the shell is told of a run that was recorded: its kind may have found more than the run itself knew.
pub(crate) fn code_of_run(record: &Record, stop: &Stop) -> Code {
    if stop.requested() {
        return Code::Interrupted;
    }
    let (run, violations) = (&record.run, record::violations(record));
    let is_invalid = run.verdict == "invalid";
    let invalid = run.verdict_reasons.iter().filter(|_| is_invalid);
    for reason in invalid.chain(&violations) {
        ui::say(&format!("error: the run is invalid: {reason}"));
    }
    if is_invalid || !violations.is_empty() {
        return Code::Invalid;
    }
    for reason in &run.verdict_reasons {
        ui::say(&format!("notice: the run is incomplete: {reason}"));
    }
    code_of_precision(record)
}
