//! `recovery`: kill a loaded data set, open it again, and time what comes after.

use super::probe;
use crate::cli::{RecoveryArgs, RecoveryLoadArgs, SettingArgs};
use crate::configure::{self, Configured, Said};
use crate::exit::{Code, Failure};
use crate::record;
use crate::rundir::{self, RunDir};
use crate::{answer, perform, progress, signals, ui};
use assay_measure::clock::Clock;
use assay_measure::config;
use assay_measure::record::Record;
use assay_measure::snapshot::{Fact, RunData};
use assay_measure::units;
use assay_native::crash::{self, KillBench, LEAST_LOAD, LoadTeller, RecoveryInfo};
use assay_run::dataset::lines::{count, text};
use assay_run::journal::Journaled;
use assay_run::left::{self, Kind};
use assay_run::stop::Stop;
use assay_run::{Options, execute};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

const NAME: &str = "recovery";
/// The loading process ends by itself if nobody kills it, this long after it should have been.
const GRACE_S: u64 = 60;

pub(super) fn recovery(args: &RecoveryArgs) -> Result<Code, Failure> {
    let time = duration("--time", &args.time)?;
    let rto = duration("--rto", &args.rto)?;
    if time < LEAST_LOAD {
        return Err(Failure::usage(format!(
            "--time {}: a kill needs a steady load before it; give at least 3s",
            args.time
        )));
    }
    let mut said_too = load_settings("0", &time.as_secs().max(1).to_string());
    said_too.extend(args.flags.said.clone());
    let mut configured = configure::configure(&args.settings, said_too)?;
    configure::draw_seed(&mut configured.settings);
    let id = rundir::new_id();
    let place = rundir::place(args.output.as_deref(), NAME, &id);
    if args.output.is_some() {
        rundir::refuse_used(&place)?;
    }
    if configured.target.name() != "native" {
        return Err(Failure::usage(format!(
            "{}: only a native data set can be killed and recovered",
            configured.shown()
        )));
    }
    let distances = crash::distances(args.distances.as_deref(), configured.settings.bytes("REDO_LOG_MB"))?;
    if let Some(runs) = place.parent() {
        ui::left_below(runs);
    }
    if args.dry_run {
        return dry_run(args, &configured, &distances);
    }
    let stop = signals::watch()?;
    let data = match perform::data_set(&configured)? {
        Some(data) => data,
        None => perform::prepare(&configured, &perform::plan_prepare(&configured)?, &stop)?,
    };
    let plan = perform::plan(&mut configured, &data)?;
    if plan.sessions() as u64 != u64::from(plan.schemas) {
        return Err(Failure::usage(format!(
            "{} sessions on {} schemas: recovery uses one session in each schema; leave SESSIONS out",
            plan.sessions(),
            plan.schemas
        )));
    }
    let settings = SettingArgs { target: Some(configured.url.clone()), ..args.settings.clone() };
    let bench = KillBench {
        target: configured.target,
        location: &configured.location,
        settings: &configured.settings,
        plan: &plan,
        stop: &stop,
        time,
        load: &|interval, journal| load_command(&settings, interval, journal, time),
        say: &ui::say,
        bar: &|| Box::new(progress::Bytes::new()),
    };
    let started = jiff::Timestamp::now().to_string();
    let (dir, info, facts) = killed(&bench, &distances, rto, place)?;
    let settings = config::setting_lines(&configured.settings);
    let run = RunData {
        engine: configured.target.name().to_owned(),
        seed: plan.seed,
        engine_facts: facts,
        ..probe::stamped(NAME, perform::label(&configured), settings, id, started)
    };
    leave(args, &configured, &dir, &crash::build(&run, info), &stop)
}

/// The kills, with their journal in a run's new directory.
fn killed(
    bench: &KillBench<'_>,
    distances: &[u64],
    rto: Duration,
    place: PathBuf,
) -> Result<(RunDir, RecoveryInfo, Vec<Fact>), Failure> {
    let (mut info, facts) = bench.begin(rto)?;
    let dir = RunDir::create(place)?;
    let journal = dir.path().join(rundir::JOURNAL);
    let marked = left::Mark::put(&journal, Kind::File).inspect_err(|_| dir.discard());
    let mark = marked.map_err(|error| rundir::cannot(&journal, &error))?;
    let killed = bench.kill_each(distances, &journal, &mut info);
    // It is gone after each kill; a mark whose journal could not be removed stays with it.
    if !journal.exists() {
        mark.take_away().map_err(|error| rundir::cannot(&journal, &error))?;
    }
    if info.steps.is_empty() {
        dir.discard();
        killed?;
        return Err(Failure::said(Code::Interrupted));
    }
    killed?;
    Ok((dir, info, facts))
}

fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    units::parse_duration_ns(text)
        .map(Duration::from_nanos)
        .map_err(|error| Failure::usage(format!("{option} {text}: {error}")))
}

fn load_settings(interval: &str, seconds: &str) -> Vec<Said> {
    let fixed = crash::load_settings(interval, seconds);
    fixed.map(|(name, value)| (NAME.to_owned(), name.to_owned(), value.to_owned())).to_vec()
}

fn dry_run(args: &RecoveryArgs, configured: &Configured, distances: &[u64]) -> Result<Code, Failure> {
    let sizes: Vec<String> = distances.iter().map(|bytes| units::size(*bytes)).collect();
    let lines = [
        text("target", "data set, updated and killed", configured.shown()),
        count("kills", "kills", distances.len() as u64),
        text("distances", "checkpoint distances", sizes.join(", ")),
        text("load", "maximum load before each kill", args.time.clone()),
    ];
    probe::dry_run(args.format, &lines)
}

/// This program as the process to be killed, with the settings that this command got.
fn load_command(settings: &SettingArgs, interval: u64, journal: &Path, time: Duration) -> std::io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("recovery-load");
    if let Some(config) = &settings.config {
        command.arg("-c").arg(config);
    }
    let said = [("--target", settings.target.as_ref()), ("-s", settings.schemas.as_ref())];
    let set = settings.set.iter().map(|set| ("--set", set));
    for (flag, value) in said.into_iter().filter_map(|(flag, value)| Some((flag, value?))).chain(set) {
        command.arg(flag).arg(value);
    }
    let (interval, seconds) = (interval.to_string(), (time.as_secs() + GRACE_S).to_string());
    command.arg("--journal").arg(journal).args(["--interval", &interval, "--time", &seconds]);
    Ok(command)
}

/// Writes the record and prints the product.
fn leave(
    args: &RecoveryArgs,
    configured: &Configured,
    dir: &RunDir,
    record: &Record,
    stop: &Stop,
) -> Result<Code, Failure> {
    let written = dir
        .write("config/effective", &config::slob_conf(&configured.settings))
        .and_then(|()| record::write(dir, record));
    answer::product(record, args.format, dir.path())?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    for reason in &record.run.verdict_reasons {
        ui::say(&format!("error: the run is invalid: {reason}"));
    }
    if stop.requested() {
        return Ok(Code::Interrupted);
    }
    match record.run.verdict.as_str() {
        "invalid" => Ok(Code::Invalid),
        _ => Ok(Code::Good),
    }
}

/// The process that is killed: updates until it is.
pub(super) fn load(args: &RecoveryLoadArgs) -> Result<Code, Failure> {
    // Whoever started it being gone, nobody would kill it.
    let _ = set_parent_process_death_signal(Some(Signal::KILL));
    let (mut configured, _told_already) =
        configure::configure_quietly(&args.settings, load_settings(&args.interval, &args.time))?;
    configure::draw_seed(&mut configured.settings);
    let Some(data) = perform::data_set(&configured)? else {
        return Err(Failure::usage("there is no data set to load"));
    };
    let plan = perform::plan(&mut configured, &data)?;
    let stop = Stop::new();
    let bar = progress::Bytes::new();
    let engine = configured.target.open(&configured.location, &plan, &configured.settings, &stop, &bar)?;
    drop(bar);
    let engine = Journaled::new(engine, Some(args.journal.clone()));
    let options = Options { host: false, calibrate: false, ..Options::default() };
    // Nobody reads it any more only when it is about to be killed.
    let mut teller = LoadTeller(&|line| drop(ui::product(line)));
    execute(&plan, &engine, &Clock::real(), &stop, &mut teller, options)
        .map(|_| Code::Good)
        .map_err(|error| Failure::new(Code::Unusable, error.to_string()))
}
