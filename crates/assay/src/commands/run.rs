//! `run`: plan, prepare where that harms nothing, run, record, report.

use crate::cli::{Format, RunArgs, RunOnlyArgs, RunitArgs};
use crate::configure::{self, Configured, Said, said};
use crate::exit::{Code, Failure, code_of};
use crate::observer::RunObserver;
use crate::record;
use crate::rundir::{self, RunDir};
use crate::{emergency, plan_text, progress, signals, ui};
use assay_measure::clock::Clock;
use assay_measure::config;
use assay_measure::snapshot::{RunData, Verdict};
use assay_run::engine::{DataSet, Engine, Line, Presence};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Labels, Options, RunError, execute, host, trace};
use std::path::PathBuf;

/// The only workload so far.
const WORKLOAD: &str = "slob";

pub(super) fn runit(mut args: RunitArgs) -> Result<Code, Failure> {
    super::slob_conf_here(&mut args.run.settings.config);
    if args.count.is_some() {
        args.run.settings.schemas = args.count;
    }
    run(&args.run)
}

pub(super) fn run(args: &RunArgs) -> Result<Code, Failure> {
    let mut configured = configure::configure(&args.settings, options(&args.more))?;
    configure::draw_seed(&mut configured.settings);
    let id = rundir::new_id();
    let place = rundir::place(args.more.output.as_deref(), WORKLOAD, &id);
    if args.more.output.is_some() {
        rundir::refuse_used(&place)?;
    }
    let presence = configured
        .target
        .inspect(&configured.location, &configured.settings)?;
    let data = match presence {
        Presence::Present(data) => data,
        Presence::Absent { harmless: true } => return absent(args, configured, id, place),
        Presence::Absent { harmless: false } => {
            return Err(Failure::new(
                Code::Unusable,
                format!(
                    "{0} holds no data set; `assay prepare --target {0}` makes one",
                    configured.url
                ),
            ));
        }
    };
    let plan = plan(&mut configured, &data)?;
    if args.more.dry_run {
        return dry_run(args, &configured, &plan, &data, None);
    }
    ui::say(&plan_text::one_line(&configured, &plan, &data));
    let stop = Stop::new();
    signals::watch(&stop)?;
    perform(args, &configured, &plan, &stop, id, place)
}

fn options(args: &RunOnlyArgs) -> Vec<Said> {
    [
        said("-t", "THREADS_PER_SCHEMA", args.threads.as_ref()),
        said("--time", "RUN_TIME", args.time.as_ref()),
        said("--warmup", "WARMUP", args.warmup.as_ref()),
        said("--seed", "SEED", args.seed.as_ref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The plan for a data set; its mistakes are usage errors.
fn plan(configured: &mut Configured, data: &DataSet) -> Result<Plan, Failure> {
    configure::adopt(&mut configured.settings, data);
    configure::plan(&configured.settings, data, configure::random_u32())
        .map_err(|problems| Failure::problems(&problems))
}

/// Nothing is there, and making it harms nothing: prepare first.
fn absent(
    args: &RunArgs,
    mut configured: Configured,
    id: String,
    place: PathBuf,
) -> Result<Code, Failure> {
    let imagined = configure::imagined(&configured.settings);
    let schemas = imagined.schemas;
    // A plan that cannot run is refused before anything is loaded.
    let plan_ahead = configure::plan(&configured.settings, &imagined, 1)
        .map_err(|problems| Failure::problems(&problems))?;
    let lines =
        configured
            .target
            .plan_prepare(&configured.location, &configured.settings, schemas)?;
    if args.more.dry_run {
        return dry_run(args, &configured, &plan_ahead, &imagined, Some(&lines));
    }
    ui::say(&format!(
        "{} holds no data set yet: it is prepared first",
        configured.url
    ));
    ui::say(&plan_text::lines(&lines));
    let stop = Stop::new();
    signals::watch(&stop)?;
    let bar = progress::Bytes::new();
    let summary = configured.target.prepare(
        &configured.location,
        &configured.settings,
        schemas,
        &stop,
        &bar,
    );
    drop(bar);
    ui::say(&plan_text::lines(&brief(summary?)));
    let presence = configured
        .target
        .inspect(&configured.location, &configured.settings)?;
    let Presence::Present(data) = presence else {
        return Err(Failure::new(
            Code::Bug,
            format!(
                "{} is prepared, but no data set is found there",
                configured.url
            ),
        ));
    };
    let plan = plan(&mut configured, &data)?;
    ui::say(&plan_text::one_line(&configured, &plan, &data));
    perform(args, &configured, &plan, &stop, id, place)
}

/// The figures of a load that matter before a run; `assay prepare` prints them all.
fn brief(summary: Vec<Line>) -> Vec<Line> {
    let wanted = ["loaded_rows", "table_bytes", "load_mb_per_s", "total_s"];
    let brief: Vec<Line> = summary
        .iter()
        .filter(|line| wanted.contains(&line.key))
        .cloned()
        .collect();
    if brief.is_empty() { summary } else { brief }
}

fn dry_run(
    args: &RunArgs,
    configured: &Configured,
    plan: &Plan,
    data: &DataSet,
    prepare: Option<&[Line]>,
) -> Result<Code, Failure> {
    let text = match args.more.format {
        Format::Text => plan_text::whole(configured, plan, data, prepare),
        Format::Json => plan_text::json(configured, plan, data, prepare)?,
    };
    ui::product(&text)?;
    Ok(Code::Good)
}

/// Opens the target, runs, and leaves the record.
fn perform(
    args: &RunArgs,
    configured: &Configured,
    plan: &Plan,
    stop: &Stop,
    id: String,
    place: PathBuf,
) -> Result<Code, Failure> {
    let bar = progress::Bytes::new();
    let engine =
        configured
            .target
            .open(&configured.location, plan, &configured.settings, stop, &bar)?;
    drop(bar);
    let dir = RunDir::create(place)?;
    let labels = labels(configured, id);
    let started = begin(&dir, configured, plan, &*engine, &labels);
    let (mut observer, trace) = match started {
        Ok(started) => started,
        Err(failure) => {
            dir.discard();
            return Err(failure);
        }
    };
    emergency::run_begins(dir.path());
    let options = Options {
        labels,
        trace,
        ..Options::default()
    };
    let clock = Clock::real();
    let ended = execute(plan, &*engine, &clock, stop, &mut observer, options);
    let series = observer.finish();
    drop(engine);
    let (data, lost) = match ended {
        Ok(data) => (data, None),
        Err(RunError::Lost { source, data }) => (*data, Some(source)),
        Err(error) => {
            emergency::run_ended();
            dir.discard();
            return Err(not_begun(error));
        }
    };
    let left = leave(args, &dir, &data, stop);
    emergency::run_ended();
    match lost {
        None => {
            let code = left?;
            series?;
            Ok(code)
        }
        Some(source) => {
            // What ended the run is the error; what it spoiled besides is told beside it.
            for failure in [left.err(), series.err()].into_iter().flatten() {
                ui::aside(&failure);
            }
            Err(source.into())
        }
    }
}

fn not_begun(error: RunError) -> Failure {
    let code = match &error {
        RunError::Interrupted => Code::Interrupted,
        RunError::NotReady { source, .. } => code_of(source),
        _ => Code::Unusable,
    };
    Failure::new(code, error.to_string())
}

fn labels(configured: &Configured, id: String) -> Labels {
    let label = configured.settings.text("LABEL");
    Labels {
        run_id: id,
        label: (!label.is_empty()).then(|| label.to_owned()),
        engine: configured.target.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        settings: config::setting_lines(&configured.settings),
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
        workload: WORKLOAD.to_owned(),
        engine: labels.engine.clone(),
        version: labels.version.clone(),
        started: jiff::Timestamp::now().to_string(),
        seed: plan.seed,
        sessions: plan.sessions() as u64,
        fixed_iterations: plan.work_loop > 0,
        settings: labels.settings.clone(),
        host: host::facts(),
        warnings: plan.notices(),
        ..RunData::default()
    };
    let ends_ns = (plan.work_loop == 0).then(|| plan.warmup_ns + plan.run_time_ns);
    let observer = RunObserver::begin(dir, known, engine, progress::Live::new(ends_ns))?;
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

/// Writes the record and prints the product; the record's failure is told after the product.
fn leave(args: &RunArgs, dir: &RunDir, data: &RunData, stop: &Stop) -> Result<Code, Failure> {
    let faces = record::faces(data)?;
    let written = record::write(dir, &faces);
    let product = match args.more.format {
        Format::Text => &faces.text,
        Format::Json => &faces.json,
    };
    ui::product(product)?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    Ok(code_of_run(data, &faces.void, stop))
}

/// What the shell is told of a run that was recorded.
fn code_of_run(data: &RunData, void: &[String], stop: &Stop) -> Code {
    if stop.requested() {
        return Code::Interrupted;
    }
    match &data.verdict {
        Verdict::Invalid(reasons) => {
            for reason in reasons {
                ui::say(&format!("error: the run is invalid: {reason}"));
            }
            Code::Invalid
        }
        _ if !void.is_empty() => {
            for identity in void {
                ui::say(&format!("error: the run is invalid: {identity}"));
            }
            Code::Invalid
        }
        Verdict::Incomplete(reason) => {
            ui::say(&format!("notice: the run is incomplete: {reason}"));
            Code::Good
        }
        Verdict::Complete => Code::Good,
    }
}
