//! From command line, environment and file to settings and a target.

use crate::cli::SettingArgs;
pub(crate) use crate::cli::params::{Said, said};
use crate::exit::{Code, Failure};
use crate::fleet_part::FleetPart;
use crate::registry;
use crate::{fleet_part, plan_text, progress, ui};
use assay_measure::clock::Ns;
use assay_measure::config::{self, Layer, Origin, ParamDef, Problem, Resolved, Settings, Tables, Value};
use assay_measure::snapshot::SettingLine;
use assay_run::bounded;
use assay_run::engine::{DataSet, Line, Running, Target};
use assay_run::host::random_u32;
pub(crate) use assay_run::life::imagined;
use assay_run::life::{self, Life};
use assay_run::plan::Plan;
use assay_run::stop::Stop;

/// A command of `--at`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct At {
    /// Its instant, ns after the gate.
    pub(crate) at_ns: Ns,
    /// A line for `sh -c`.
    pub(crate) command: String,
}

/// Settings that hold, and what they are for.
pub(crate) struct Configured {
    /// The workload's name.
    pub(crate) workload: &'static str,
    /// Every parameter.
    pub(crate) settings: Settings,
    /// The target's code.
    pub(crate) target: &'static dyn Target,
    /// Its place: what follows the scheme.
    pub(crate) location: String,
    /// `scheme:place`, perhaps with a password: shown to nobody but by [`Configured::shown`].
    pub(crate) url: String,
    /// The file as given with secrets replaced, if there was one.
    pub(crate) given: Option<String>,
    /// Commands planned for instants of the run.
    pub(crate) commands: Vec<At>,
    /// A server started for this command; it goes when the command ends.
    started: Option<Temporary>,
}

/// A server that goes with the command; what is told of its end goes to stderr.
struct Temporary {
    running: Option<Box<dyn Running>>,
    lines: Vec<Line>,
}

impl Drop for Temporary {
    fn drop(&mut self) {
        match self.running.take().map(Running::end) {
            None => {}
            Some(Ok(lines)) => ui::say(&plan_text::lines(&lines)),
            Some(Err(error)) => ui::say(&format!("error: {error}")),
        }
    }
}

impl Configured {
    /// Effective settings that the workload heeds, for people and records.
    pub(crate) fn lines(&self) -> Vec<SettingLine> {
        let mut lines = config::setting_lines(&self.settings);
        lines.retain(|line| self.target.heeds(&line.name));
        lines
    }

    /// What may be done with its data set; `shown` is [`Configured::shown`].
    pub(crate) fn life<'a>(&'a self, shown: &'a str) -> Life<'a> {
        Life { target: self.target, location: &self.location, shown }
    }

    /// The URL without its secrets.
    pub(crate) fn shown(&self) -> String {
        config::mask_url_password(&self.url)
    }

    /// Starts what the place needs started (a `temp:` server); the place is the running server from then on.
    pub(crate) fn start(&mut self, stop: &Stop) -> Result<(), Failure> {
        if self.started.is_some() {
            return Ok(());
        }
        let bar = progress::Bytes::new();
        let started = self.target.start(&self.location, &self.settings, stop, &bar)?;
        drop(bar);
        if let Some(started) = started {
            ui::say(&plan_text::lines(&started.lines));
            self.location = started.location;
            self.started = Some(Temporary { running: Some(started.keep), lines: started.lines });
        }
        Ok(())
    }

    /// Whether the target is a server that lives for one command.
    pub(crate) fn is_temporary(&self) -> bool {
        let scheme = self.url.split(':').next();
        scheme == Some(registry::TEMPORARY)
    }

    /// Refuses a command that would leave or look for something on a server that is gone when it ends.
    pub(crate) fn refuse_temporary(&self, command: &str) -> Result<(), Failure> {
        if self.is_temporary() {
            Err(Failure::usage(format!(
                "{0}: a temporary server and its data exist only during one command, so there is nothing to \
                 {command}; `assay run --target {0}` starts it, prepares it, runs the load and removes it",
                self.shown()
            )))
        } else {
            Ok(())
        }
    }

    /// What was started, for the record.
    pub(crate) fn started_lines(&self) -> &[Line] {
        self.started.as_ref().map_or(&[], |started| &started.lines)
    }

    /// Takes the running server of another for the same command.
    pub(crate) fn use_server_of(&mut self, other: &Self) {
        if other.started.is_some() {
            self.location = other.location.clone();
        }
    }
}

/// Reads everything and resolves it; notices go to stderr.
///
/// `also` checks relations that need more than the settings (the plan); its
/// problems are told together with the others.
pub(crate) fn configure(args: &SettingArgs, options: Vec<Said>) -> Result<Configured, Failure> {
    let (configured, notices) = configure_quietly(args, options)?;
    ui::notices(&notices);
    Ok(configured)
}

/// As [`configure`], but the notices are for the caller to tell.
pub(crate) fn configure_quietly(args: &SettingArgs, options: Vec<Said>) -> Result<(Configured, Vec<Problem>), Failure> {
    let mut layers = Vec::new();
    let mut file = None;
    if let Some(path) = &args.config {
        let name = path.display().to_string();
        let bytes = bounded::read(path, bounded::CONFIGURATION);
        let bytes = bytes.map_err(|error| Failure::usage(format!("{name}: {error}")))?;
        layers.push(config::parse(&name, &bytes));
        file = Some((name, bytes));
    }
    layers.push(config::environment(environment()));
    layers.push(command_line(args, options)?);

    let temporary = registry::temporary_forms();
    let schemes = registry::schemes(&temporary);
    let (url, origin) = config::target(&layers, &schemes).map_err(|problem| Failure::problems(&[problem]))?;
    let workload = args.workload.unwrap_or(assay_slob::NAME);
    let (target, location) = located(workload, &url, &origin)?;
    let scheme = target.name();
    let others: Vec<(&str, &'static [ParamDef])> = registry::bearing(workload)
        .filter(|other| other.name() != scheme)
        .map(|other| (other.name(), other.params()))
        .collect();
    let tables = Tables {
        target: scheme,
        params: target.params(),
        workload: &assay_slob::SETTINGS,
        concerns: target.concerns(),
        others: &others,
    };
    let mut resolved = config::resolve(&tables, &layers);
    set_text(&mut resolved.settings, "TARGET", &url, origin);
    set_text(&mut resolved.settings, "ENGINE", scheme, Origin::Implied("TARGET".to_owned()));
    let given = file.map(|(name, bytes)| config::redact(&name, &bytes, &|name| config::is_secret(&tables, name)));
    resolved.problems.extend(without_effect(&resolved.settings, target, workload));
    if resolved.has_errors() {
        also_the_plan(target, &mut resolved);
        for problem in &resolved.problems {
            ui::problem(problem);
        }
        return Err(Failure::said(Code::Usage));
    }
    let configured = Configured {
        workload,
        settings: resolved.settings,
        target,
        location,
        url: url.clone(),
        given,
        commands: Vec::new(),
        started: None,
    };
    Ok((configured, resolved.problems))
}

/// Where there are mistakes already, those of the plan are told in the same pass,
/// as far as they do not rest on a broken value.
fn also_the_plan(target: &dyn Target, resolved: &mut Resolved) {
    let mut settings = resolved.settings.clone();
    draw_seed(&mut settings);
    let data = imagined(&settings);
    let Err(problems) = plan(target, &settings, &data, 1) else {
        return;
    };
    let fresh: Vec<Problem> = problems
        .into_iter()
        .filter(|problem| !resolved.broken.iter().any(|name| problem.text.contains(name)))
        .filter(|problem| !resolved.problems.iter().any(|told| told.place == problem.place))
        .collect();
    resolved.problems.extend(fresh);
}

/// The target of a URL that bears the workload, and its place there.
fn located(workload: &str, url: &str, origin: &Origin) -> Result<(&'static dyn Target, String), Failure> {
    let known = registry::locate(url);
    // The usual place is SLOB's.
    let usual = workload != assay_slob::NAME && *origin == Origin::Default;
    match registry::locate_for(workload, url).filter(|_| !usual) {
        Some(found) => Ok(found),
        None if known.is_some() || workload != assay_slob::NAME => Err(not_borne(workload, url)),
        None => Err(Failure::usage(format!(
            "TARGET: there is no such temporary server; write one of {}",
            registry::temporary_forms()
        ))),
    }
}

/// A workload does not run there.
fn not_borne(workload: &str, url: &str) -> Failure {
    let forms: Vec<&str> = registry::bearing(workload).map(|target| target.form()).collect();
    let temporary: Vec<String> = registry::bearing(workload)
        .flat_map(|target| target.temporary())
        .map(|name| format!("{}:{name}", registry::TEMPORARY))
        .collect();
    Failure::usage(format!(
        "{}: {workload} does not run there; name its server with --target {} or {}",
        config::mask_url_password(url),
        forms.join(" or "),
        temporary.join(" or ")
    ))
}

/// Parameters that the user gave and the workload ignores.
fn without_effect(settings: &Settings, target: &dyn Target, workload: &str) -> Vec<Problem> {
    let given = settings
        .iter()
        .filter(|one| matches!(one.origin, Origin::CommandLine | Origin::File(..)) && !target.heeds(one.def.name));
    given
        .map(|one| Problem {
            error: true,
            place: config::place_of(&one.origin),
            text: format!("{} has no effect on {workload}: leave it out", one.def.name),
        })
        .collect()
}

/// The plan for a data set.
pub(crate) fn plan(
    target: &dyn Target,
    settings: &Settings,
    data: &DataSet,
    run_stamp: u32,
) -> Result<Plan, Vec<Problem>> {
    let mut plan = assay_slob::plan::from_settings(settings, data, run_stamp)?;
    let shaped = target.shape(settings, &mut plan).map_err(|error| error.to_string());
    let shared = shaped.and_then(|()| fleet_part::get().map_or(Ok(()), |part| part.share(&mut plan)));
    shared.map(|()| plan).map_err(|text| vec![Problem { error: true, place: "settings".to_owned(), text }])
}

/// Takes from a data set what nobody gave.
pub(crate) fn adopt(settings: &mut Settings, data: &DataSet) {
    if let Some(notice) = life::adopt(settings, data) {
        ui::say(&format!("notice: {notice}"));
    }
}

/// Draws a seed if none was given.
pub(crate) fn draw_seed(settings: &mut Settings) {
    take_seed(settings, fleet_part::get().map_or_else(|| u64::from(random_u32()), FleetPart::seed));
}

/// Takes a seed that was drawn, if none was given.
pub(crate) fn take_seed(settings: &mut Settings, seed: u64) {
    if settings.get("SEED").value == Value::Unset {
        let origin = Origin::Implied("a random draw".to_owned());
        settings.put("SEED", Value::Int(seed), seed.to_string(), origin);
    }
}

fn set_text(settings: &mut Settings, name: &str, text: &str, origin: Origin) {
    let shown = config::mask_url_password(text);
    settings.put(name, Value::Text(text.to_owned()), shown, origin);
}

fn environment() -> Vec<(String, String)> {
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
        .filter(|(name, _)| name.starts_with(config::ENVIRONMENT_PREFIX))
        .map(|(name, value)| (name, value.to_string_lossy().into_owned()))
        .collect()
}

fn command_line(args: &SettingArgs, options: Vec<Said>) -> Result<Layer, Failure> {
    let mut all: Vec<Said> =
        [said("--target", "TARGET", args.target.as_ref()), said("-s", "SCHEMAS", args.schemas.as_ref())]
            .into_iter()
            .flatten()
            .chain(options)
            .collect();
    if !args.pg_set.is_empty() {
        let joined = args.pg_set.join("; ");
        all.push(("--pg-set".to_owned(), "PG_SET".to_owned(), joined));
    }
    for set in &args.set {
        let Some((name, value)) = set.split_once('=') else {
            return Err(Failure::usage(format!("--set {set}: write --set NAME=VALUE")));
        };
        all.push((format!("--set {}", name.trim()), name.trim().to_owned(), value.trim().to_owned()));
    }
    Ok(config::command_line(all))
}
