//! The user's programs beside a run: the external script and the commands of `--at`.
//!
//! Nothing here runs under `--dry-run`, and only a command of `--at` is ever passed to a shell.

use crate::configure::{At, Configured};
use crate::exit::Failure;
use crate::rundir::RunDir;
use crate::ui;
use assay_measure::config;
use assay_measure::snapshot::RunData;
use assay_measure::timeline::{CommandEnd, TimelineEvent, TimelineKind};
use assay_run::Planned;
use assay_run::command::{Guards, Job, What, from_root};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The pairs of `--at TIME COMMAND`.
pub(crate) fn planned(args: &[String]) -> Result<Vec<At>, Failure> {
    let pairs = args.chunks_exact(2).map(|pair| {
        let at_ns = config::duration_ns("--at", &pair[0]).map_err(Failure::usage)?;
        if pair[1].trim().is_empty() {
            return Err(Failure::usage(format!("--at {}: the command is empty; give one for sh -c", pair[0])));
        }
        Ok(At { at_ns, command: pair[1].clone() })
    });
    pairs.collect()
}

/// Refuses commands that no run of this length would reach.
pub(crate) fn check(commands: &[At], plan: &Plan) -> Result<(), Failure> {
    if plan.work_loop > 0 {
        return Ok(());
    }
    let ends_ns = plan.warmup_ns + plan.run_time_ns;
    match commands.iter().find(|at| at.at_ns >= ends_ns) {
        None => Ok(()),
        Some(at) => Err(Failure::usage(format!(
            "--at {} s: the run ends after {} s, including the warm-up; give an earlier time",
            config::seconds_text(at.at_ns),
            config::seconds_text(ends_ns)
        ))),
    }
}

/// The external script of the settings, from the root, if there is one; it must be executable.
pub(crate) fn script(configured: &Configured) -> Result<Option<PathBuf>, Failure> {
    let given = configured.settings.text("EXTERNAL_SCRIPT");
    if given.is_empty() {
        return Ok(None);
    }
    let bad = |what: &str| {
        Failure::usage(format!("EXTERNAL_SCRIPT={given}: {what}; give an executable file, or \"\" for none"))
    };
    let path = from_root(Path::new(given)).map_err(|error| bad(&error.to_string()))?;
    let about = std::fs::metadata(&path).map_err(|error| bad(&error.to_string()))?;
    if !about.is_file() {
        return Err(bad("it is not a file"));
    }
    if about.permissions().mode() & 0o111 == 0 {
        return Err(bad("it is not executable (chmod +x)"));
    }
    Ok(Some(path))
}

/// One call of the script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    /// Every session is ready, none has begun.
    Pre,
    /// Every session has ended.
    Post,
    /// The record and the reports are written.
    End,
}

impl Call {
    fn name(self) -> &'static str {
        match self {
            Self::Pre => "pre",
            Self::Post => "post",
            Self::End => "end",
        }
    }

    /// Event numbers below ten are not the time line's own.
    fn number(self) -> u64 {
        match self {
            Self::Pre => 1,
            Self::Post => 2,
            Self::End => 3,
        }
    }
}

/// What runs beside one run.
#[derive(Clone, Debug)]
pub(crate) struct Hooks {
    script: Option<PathBuf>,
    /// As the user gave it.
    script_given: String,
    timeout: Duration,
    commands: Vec<At>,
    dir: PathBuf,
    /// Leads to the same directory whatever becomes of its path.
    outputs: PathBuf,
    run_id: String,
    /// Of all commands: dropped with this, in order; not where the process is killed.
    guards: Guards,
}

impl Hooks {
    pub(crate) fn new(configured: &Configured, dir: &RunDir, run_id: &str) -> Result<Self, Failure> {
        Ok(Self {
            script: script(configured)?,
            script_given: configured.settings.text("EXTERNAL_SCRIPT").to_owned(),
            timeout: Duration::from_nanos(configured.settings.ns("EXTERNAL_SCRIPT_TIMEOUT")),
            commands: configured.commands.clone(),
            dir: std::path::absolute(dir.path()).unwrap_or_else(|_| dir.path().to_owned()),
            outputs: dir.held().lasting_path(),
            run_id: run_id.to_owned(),
            guards: Guards::default(),
        })
    }

    /// The environment of every command. Names do not begin with `ASSAY_`: that is how
    /// settings are given, and a command may call assay itself.
    fn environment(&self) -> Vec<(String, String)> {
        let pair = |name: &str, value: String| (name.to_owned(), value);
        vec![
            pair("ASSAYRUN_ID", self.run_id.clone()),
            pair("ASSAYRUN_DIR", self.dir.display().to_string()),
            pair("ASSAYRUN_PID", std::process::id().to_string()),
        ]
    }

    /// The commands of `--at`, ready to start.
    pub(crate) fn commands(&self) -> Vec<Planned> {
        let commands = self.commands.iter().enumerate();
        commands
            .map(|(i, at)| Planned {
                at_ns: at.at_ns,
                text: at.command.clone(),
                job: Job {
                    what: What::Line(at.command.clone()),
                    output: self.outputs.join(format!("at-{}.out", i + 1)),
                    environment: self.environment(),
                    guards: self.guards.clone(),
                },
            })
            .collect()
    }

    /// Calls the script and waits for its end; `None` without a script.
    pub(crate) fn call(&self, call: Call, data: Option<&RunData>, give_up: &dyn Fn() -> bool) -> Option<Called> {
        let script = self.script.clone()?;
        let mut environment = self.environment();
        let mut add = |name: &str, value: &str| environment.push((name.to_owned(), value.to_owned()));
        add("ASSAYRUN_CALL", call.name());
        if let Some(data) = data {
            add("ASSAYRUN_GATE", &data.gate.wall);
            add("ASSAYRUN_BEGIN", &data.begin.wall);
            add("ASSAYRUN_END", &data.end.wall);
        }
        let output = format!("script-{}.out", call.name());
        let job = Job {
            what: What::File(script, call.name().to_owned()),
            output: self.outputs.join(&output),
            environment,
            guards: self.guards.clone(),
        };
        let wall = jiff::Timestamp::now().to_string();
        let end = job.run(self.timeout, give_up);
        let said = job.last_line().map_or_else(String::new, |line| format!(", its last output: {line}"));
        Some(Called {
            problem: (!end.good)
                .then(|| format!("EXTERNAL_SCRIPT {} {}: {}{said}", self.script_given, call.name(), end.status)),
            event: self.event(call, data, wall, output, end),
        })
    }

    fn event(
        &self,
        call: Call,
        data: Option<&RunData>,
        wall: String,
        output: String,
        end: CommandEnd,
    ) -> TimelineEvent {
        TimelineEvent {
            number: call.number(),
            at_ns: data.map_or(0, |data| data.drained.at_ns),
            wall,
            kind: TimelineKind::Script,
            text: format!("{} {}", self.script_given, call.name()),
            from: None,
            to: None,
            output: Some(output),
            end: Some(end),
        }
    }

    /// Every session has ended: calls the script; what goes wrong is a warning of the run.
    pub(crate) fn post(&self, data: &mut RunData, stop: &Stop) {
        if let Some(called) = self.call(Call::Post, Some(data), &|| stop.abandoned()) {
            if let Some(problem) = called.problem {
                ui::say(&format!("warning: {problem}"));
                data.warnings.push(format!(
                    "{problem}. This does not affect the measured figures; actions of the script after the run may \
                     be missing."
                ));
            }
            data.timeline.push(called.event);
        }
    }

    /// The reports are written: calls the script; nothing can be added to them any more.
    pub(crate) fn end(&self, data: &RunData, stop: &Stop) {
        let called = self.call(Call::End, Some(data), &|| stop.abandoned());
        if let Some(problem) = called.and_then(|called| called.problem) {
            ui::say(&format!("warning: {problem}"));
        }
    }
}

/// A call of the script that came back.
pub(crate) struct Called {
    /// For the time line.
    pub(crate) event: TimelineEvent,
    /// What went wrong, if anything.
    pub(crate) problem: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(args: &[&str]) -> Vec<String> {
        args.iter().map(|arg| (*arg).to_owned()).collect()
    }

    #[test]
    fn pairs_of_an_instant_and_a_command() {
        let commands = planned(&text(&["30s", "echo 1", "500ms", "date"])).ok();
        let expected = [
            At { at_ns: 30_000_000_000, command: "echo 1".to_owned() },
            At { at_ns: 500_000_000, command: "date".to_owned() },
        ];
        assert_eq!(commands.as_deref(), Some(&expected[..]));
        assert!(planned(&text(&["soon", "date"])).is_err());
        assert!(planned(&text(&["1s", " "])).is_err());
    }

    #[test]
    fn a_command_after_the_end_is_refused_unless_the_end_is_unknown() {
        let mut plan = Plan { warmup_ns: 1_000_000_000, run_time_ns: 9_000_000_000, ..Plan::plain(1, 1, 1000) };
        let at = |s: u64| vec![At { at_ns: s * 1_000_000_000, command: "date".to_owned() }];
        plan.work_loop = 0;
        assert!(check(&at(9), &plan).is_ok());
        assert!(check(&at(10), &plan).is_err());
        plan.work_loop = 5;
        assert!(check(&at(10), &plan).is_ok());
    }
}
