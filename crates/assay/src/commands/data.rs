//! The data set's life: `prepare`, `check`, `destroy`.

use crate::cli::format::JSON;
use crate::cli::{DataArgs, DestroyArgs, PrepareArgs, SetupArgs};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{perform, plan_text, progress, record, signals, ui};
use assay_measure::config::{Origin, Value};
use assay_measure::snapshot::RunData;
use assay_run::engine::Line;
use assay_run::life::Load;
use assay_run::{host, load_test};
use serde_json::json;

pub(super) fn setup(mut args: SetupArgs) -> Result<Code, Failure> {
    super::slob_conf_here(&mut args.prepare.settings.config);
    args.prepare.settings.schemas = Some(args.count);
    prepare_in(&args.prepare, Some(&args.tablespace))
}

pub(super) fn prepare(args: &PrepareArgs) -> Result<Code, Failure> {
    prepare_in(args, None)
}

/// A target whose data lies in tablespaces has a parameter for theirs.
fn take_tablespace(configured: &mut Configured, name: &str) {
    let mut params = configured.target.params().iter();
    match params.find(|def| def.name.ends_with("_TABLESPACE")) {
        Some(def) => configured.settings.put(def.name, Value::Text(name.to_owned()), name, Origin::CommandLine),
        None => {
            ui::say(&format!("notice: tablespace {name} has no meaning on this target; use --target to name the place"))
        }
    }
}

fn prepare_in(args: &PrepareArgs, tablespace: Option<&str>) -> Result<Code, Failure> {
    let mut configured = configure::configure(&args.settings, args.flags.said.clone())?;
    configured.refuse_temporary("keep")?;
    if let Some(name) = tablespace {
        take_tablespace(&mut configured, name);
    }
    configure::draw_seed(&mut configured.settings);
    configured.settings.allow_overwriting(args.destroy.clone());
    let shown = configured.shown();
    let mut settings = configured.settings.clone();
    let life = configured.life(&shown);
    let load = life.plan_prepare(&mut settings)?;
    if let Some(notice) = &load.notice {
        ui::say(&format!("notice: {notice}"));
    }
    if args.dry_run {
        return print(args.format, &[("plan", &load.plan)]);
    }
    let id = rundir::new_id();
    let place = rundir::place(args.output.as_deref(), "prepare", &id);
    rundir::refuse_used(&place)?;
    let started = jiff::Timestamp::now().to_string();
    ui::say(&format!("preparing {shown}"));
    ui::say(&plan_text::lines(&load.plan));
    let stop = signals::watch()?;
    let summary = perform::load(&configured, &settings, &load, &stop)?;
    configured.settings = settings;
    let run = labels(&configured, &load, id, started);
    let record = load_test::build(&run, &summary, plan_text::pairs(&summary));
    let printed = print(args.format, &[("plan", &load.plan), ("summary", &summary)]);
    let dir = RunDir::create(place)?;
    record::write(&dir, &record)?;
    ui::say(&format!("record: {}", dir.path().display()));
    printed
}

/// What the record of a load says beside the figures.
fn labels(configured: &Configured, load: &Load, run_id: String, started: String) -> RunData {
    RunData {
        run_id,
        label: perform::label(configured),
        workload: "prepare".to_owned(),
        engine: configured.target.name().to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started,
        settings: configured.lines(),
        engine_facts: plan_text::facts(&load.plan),
        host: host::facts(),
        ..RunData::default()
    }
}

pub(super) fn check(args: &DataArgs) -> Result<Code, Failure> {
    let configured = configure::configure(&args.settings, Vec::new())?;
    configured.refuse_temporary("check")?;
    let hint = match configured.settings.get("TARGET").origin {
        Origin::Default => " (the default; --target names another)",
        _ => "",
    };
    let stop = signals::watch()?;
    let shown = configured.shown();
    let bar = progress::Bytes::new();
    let life = configured.life(&shown);
    let checked = life.check(&configured.settings, hint, &stop, &bar);
    drop(bar);
    print(args.format, &[("check", &checked?)])
}

pub(super) fn destroy(args: &DestroyArgs) -> Result<Code, Failure> {
    let configured = configure::configure(&args.data.settings, Vec::new())?;
    configured.refuse_temporary("destroy")?;
    let shown = configured.shown();
    let life = configured.life(&shown);
    let plan = || life.plan_destroy(&configured.settings);
    if args.dry_run {
        return print(args.data.format, &[("plan", &plan()?)]);
    }
    if !args.yes && !ui::agreed(|| Ok(plan_text::lines(&plan()?)))? {
        return Ok(Code::Good);
    }
    let done = life.destroy(&configured.settings)?;
    print(args.data.format, &[("destroyed", &done)])
}

/// The last part for people, all parts for programs.
fn print(format: &str, parts: &[(&str, &[Line])]) -> Result<Code, Failure> {
    let text = if format == JSON {
        let mut whole = json!({});
        for (name, lines) in parts {
            whole[*name] = plan_text::lines_json(lines);
        }
        plan_text::pretty(&whole)
    } else {
        let (_, lines) = parts.last().copied().unwrap_or_default();
        plan_text::lines(lines) + "\n"
    };
    ui::product(&text)?;
    Ok(Code::Good)
}
