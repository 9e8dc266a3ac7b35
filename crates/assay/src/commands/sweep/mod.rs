//! `sweep`: the same run under rising load, step by step, and the curve it makes.

mod axes;

use super::shown::Shown;
use crate::affinity::Confined;
use crate::cli::SweepArgs;
use crate::cli::format::is_json;
use crate::configure::{self, Configured, Said};
use crate::exit::{Code, Failure};
use crate::perform;
use crate::record;
use crate::rundir::{self, RunDir};
use crate::{answer, before, plan_text, progress, run_plan, signals, ui};
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_measure::units;
use assay_run::engine::{DataSet, Line};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_sweep::{StepPlace, SweepStep, UnderWay, auto};
use axes::{Axes, Held, Sessions};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Opening and closing the target and writing the record, about; for the plan alone.
const BETWEEN_NS: u64 = 1_000_000_000;
/// Steps of an automatic curve, about; for the plan alone.
const AUTO_STEPS: u64 = 10;
const PENDING: &str = "not finished yet, or killed: steps are missing";

pub(super) fn sweep(args: &SweepArgs) -> Result<Code, Failure> {
    let axes = Axes::read(args)?;
    let mut configured = first(args, &axes, 1)?;
    if !configured.settings.text("TRACE").is_empty() {
        return Err(Failure::usage(
            "TRACE belongs to one run: every step of a sweep would write the same file; leave it out",
        ));
    }
    let found = perform::data_set(&configured)?;
    let data = match &found {
        Some(data) => data.clone(),
        None => configure::imagined(&configured.settings),
    };
    let shown = configured.shown();
    let mut running = Running::new(args, axes, &configured, shown, By::Here { server: None, data: data.clone() })?;
    // Every step is planned before the first byte is written, automatic ones as far as they are known.
    let plan = running.plan_all()?;
    running.step_s = (plan.warmup_ns + plan.run_time_ns) as f64 / 1e9;
    let prepare = match found {
        Some(_) => None,
        None => Some(perform::plan_prepare(&configured)?),
    };
    if args.dry_run {
        return dry_run(&running, &configured, &plan, &data, prepare.as_ref().map(|load| load.plan.as_slice()));
    }
    running.shown = Shown::ready(&args.live, &running.place)?;
    signals::watch()?;
    // Refused now rather than measured on a server that was started with the first value.
    let of_server = configured.target.server_params();
    if configured.is_temporary() && running.axes.vary(of_server) {
        return Err(Failure::usage(format!(
            "{} apply to the temporary server, which starts once for the whole sweep: give one value",
            of_server.join(", ")
        )));
    }
    configured.start(&running.stop)?;
    if let (Some(load), By::Here { data, .. }) = (&prepare, &mut running.by) {
        *data = perform::prepare(&configured, load, &running.stop)?;
    }
    if let By::Here { server, .. } = &mut running.by {
        *server = Some(&configured);
    }
    let _shared = configured.target.share(&configured.location, &configured.settings)?;
    running.run()
}

/// The hosts of a fleet, of which every step is a run of all.
pub(super) struct OverHosts<'a> {
    /// How many: each has a session at least.
    pub(super) count: u64,
    /// What every step must be, for a run of hosts.
    pub(super) fits: &'a dyn Fn(&Configured) -> Result<(), Failure>,
    /// Has them run a step, whose record is left in this directory.
    pub(super) perform: &'a mut dyn FnMut(&Configured, &Path, &mut perform::Deliver<'_>) -> Result<Code, Failure>,
}

/// The same, each step on all hosts of a fleet at once.
pub(super) fn over_hosts<'a>(args: &'a SweepArgs, hosts: OverHosts<'a>) -> Result<Code, Failure> {
    let axes = Axes::read(args)?;
    let count = hosts.count;
    refuse_fewer_sessions(args, &axes, count)?;
    let configured = first(args, &axes, count)?;
    (hosts.fits)(&configured)?;
    let shown = format!("{} on {count} hosts", configured.shown());
    let mut running = Running::new(args, axes, &configured, shown, By::Hosts(hosts))?;
    running.step_s = configured.settings.ns("RUN_TIME") as f64 / 1e9;
    running.shown = Shown::ready(&args.live, &running.place)?;
    running.run()
}

fn refuse_fewer_sessions(args: &SweepArgs, axes: &Axes, hosts: u64) -> Result<(), Failure> {
    let (option, given) = match &axes.sessions {
        Sessions::List(list) => ("--sessions", list[0]),
        Sessions::Auto(max_load) => ("--max-sessions", *max_load),
    };
    if given >= hosts {
        return Ok(());
    }
    let said = if option == "--sessions" { args.sessions.clone() } else { given.to_string() };
    Err(Failure::usage(format!(
        "{option} {said}: {hosts} hosts take part, and each needs a session; give {hosts} or more"
    )))
}

/// The settings of the first step.
fn first(args: &SweepArgs, axes: &Axes, least_load: u64) -> Result<Configured, Failure> {
    let load = match &axes.sessions {
        Sessions::List(list) => list[0],
        Sessions::Auto(_) => least_load,
    };
    let mut configured = configure::configure(&args.settings_of(axes), options(args, &axes.held()[0], load))?;
    configure::draw_seed(&mut configured.settings);
    Ok(configured)
}

impl SweepArgs {
    /// The settings without the lists.
    fn settings_of(&self, axes: &Axes) -> crate::cli::SettingArgs {
        crate::cli::SettingArgs { set: axes.set.clone(), ..self.settings.clone() }
    }
}

fn options(args: &SweepArgs, held: &Held, sessions: u64) -> Vec<Said> {
    args.flags.said.iter().cloned().chain(held.options(sessions)).collect()
}

/// `shown` is what is measured.
fn under_way(axes: &Axes, configured: &Configured, id: String, shown: String) -> UnderWay {
    let labels = RunData {
        run_id: id,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        started: jiff::Timestamp::now().to_string(),
        label: perform::label(configured),
        workload: configured.workload.to_owned(),
        engine: configured.target.name().to_owned(),
        seed: configured.settings.int("SEED"),
        ..RunData::default()
    };
    UnderWay::new(labels, shown, axes.listed(), axes.goal()).doing(configured.target.operations())
}

/// Who runs the steps.
enum By<'a> {
    /// This process.
    Here {
        /// The target whose server is used, once it runs.
        server: Option<&'a Configured>,
        data: DataSet,
    },
    Hosts(OverHosts<'a>),
}

/// A sweep under way.
struct Running<'a> {
    args: &'a SweepArgs,
    axes: Axes,
    swept: UnderWay,
    begun: Instant,
    place: PathBuf,
    stop: Stop,
    by: By<'a>,
    /// The exit code: the first step's failure, if any.
    worst: Code,
    /// How long a step takes, s: as planned, then as measured.
    step_s: f64,
    shown: Shown,
}

impl<'a> Running<'a> {
    fn new(
        args: &'a SweepArgs,
        axes: Axes,
        configured: &Configured,
        shown: String,
        by: By<'a>,
    ) -> Result<Self, Failure> {
        let id = rundir::new_id();
        let place = rundir::place(args.output.as_deref(), "sweep", &id);
        if args.output.is_some() {
            rundir::refuse_used(&place)?;
        }
        Ok(Self {
            args,
            swept: under_way(&axes, configured, id, shown),
            axes,
            begun: Instant::now(),
            place,
            stop: Stop::of_process(),
            by,
            worst: Code::Good,
            step_s: 0.0,
            shown: Shown::default(),
        })
    }

    /// Settings of one step.
    fn configured(&self, held: &Held, sessions: u64) -> Result<Configured, Failure> {
        let settings = self.args.settings_of(&self.axes);
        let (mut configured, _) = configure::configure_quietly(&settings, options(self.args, held, sessions))?;
        configure::take_seed(&mut configured.settings, self.swept.seed());
        Ok(configured)
    }

    /// Plan of one step, in this process.
    fn plan(&self, configured: &mut Configured) -> Result<Plan, Failure> {
        let By::Here { server, data } = &self.by else {
            return Err(Failure::new(Code::Bug, "hosts plan their own steps"));
        };
        if let Some(server) = server {
            configured.use_server_of(server);
        }
        perform::plan(configured, data)
    }

    /// The loads of a curve that are known before it is begun.
    fn known_loads(&self) -> Vec<u64> {
        match &self.axes.sessions {
            Sessions::List(list) => list.clone(),
            Sessions::Auto(_) => vec![self.least_load()],
        }
    }

    fn least_load(&self) -> u64 {
        match &self.by {
            By::Here { .. } => 1,
            By::Hosts(hosts) => hosts.count,
        }
    }

    /// The plan of the first step, if those of all steps are good.
    fn plan_all(&self) -> Result<Plan, Failure> {
        let mut first = None;
        for held in self.axes.held() {
            for sessions in self.known_loads() {
                let plan = self.configured(&held, sessions).and_then(|mut configured| self.plan(&mut configured));
                let plan = plan.map_err(|failure| Failure {
                    lines: failure.lines.iter().map(|line| format!("{}: {line}", held.text(sessions))).collect(),
                    ..failure
                })?;
                first.get_or_insert(plan);
            }
        }
        Ok(first.expect("a sweep has at least one step"))
    }

    /// Runs every step, keeping the record up to date.
    fn run(mut self) -> Result<Code, Failure> {
        let dir = RunDir::above(&self.place)?;
        crate::html::share_in(&dir)?;
        for held in self.axes.held() {
            let begun = self.swept.steps().len();
            let mut loads = self.known_loads().into_iter();
            let mut refused = None;
            while let Some(sessions) = match &self.axes.sessions {
                Sessions::List(_) => loads.next(),
                Sessions::Auto(max_load) => self.next(begun, refused, *max_load),
            } {
                if self.stop.requested() {
                    break;
                }
                if !self.step(&dir, &held, sessions, 0)? {
                    refused = Some(refused.unwrap_or(sessions).min(sessions));
                } else if let Some(moving) = self.swept.steps().last().filter(|step| step.never_settled())
                    && !self.stop.requested()
                {
                    let number = moving.place.step;
                    ui::say(&format!("  step {number} never settled; assay runs it once more"));
                    self.step(&dir, &held, sessions, number)?;
                }
            }
        }
        let record = self.record(self.stop.requested());
        let written = record::write(&dir, &record);
        self.shown.give_way();
        answer::product(&record, self.args.format, dir.path())?;
        written?;
        ui::say(&format!("sweep: {}", dir.path().display()));
        self.shown.end();
        Ok(if self.stop.requested() { Code::Interrupted } else { self.worst })
    }

    /// The next load of the automatic curve whose first step is at `begun`.
    fn next(&self, begun: usize, refused: Option<u64>, max_load: u64) -> Option<u64> {
        let points = assay_sweep::points(&self.swept.steps()[begun..], |step| step.place.sessions);
        auto::next(&points, refused, &self.limits(max_load))
    }

    /// One step, which may repeat another: whether it can be used. Only an output that cannot be written ends the sweep.
    fn step(&mut self, dir: &RunDir, held: &Held, sessions: u64, repeats: u64) -> Result<bool, Failure> {
        let number = self.swept.steps().len() as u64 + 1;
        let begun = Instant::now();
        let which = format!("step {number} of {}: {}", self.ahead(number, repeats > 0), held.text(sessions));
        ui::say(&which);
        let directory = held.directory(number, sessions);
        self.shown.goes_on(&dir.path().join(&directory), &which)?;
        let place = StepPlace {
            step: number,
            directory: directory.display().to_string(),
            sessions,
            cpus: held.cpus.map_or_else(|| Figure::na("not confined"), |cpus| (cpus as u64).into()),
            over: held.over.clone(),
            repeats,
        };
        let mut found = None;
        let ended = self.perform(held, sessions, &dir.path().join(directory), &mut |record| {
            found = Some(record.clone());
            Ok(())
        });
        let mut failed = |code: Code| {
            if self.worst == Code::Good {
                self.worst = code;
            }
        };
        let reason = match ended {
            Ok(code) => {
                failed(code);
                String::new()
            }
            Err(failure) if failure.code == Code::Output => return Err(failure),
            Err(failure) => {
                failed(failure.code);
                ui::failure(&failure);
                failure.lines.join("; ")
            }
        };
        let step = match found {
            Some(record) => {
                let per_s = self.swept.per_s();
                let step = self.swept.measured(place, &record);
                ui::say(&format!("  {}", told(step, &per_s)));
                if let Some((before, _)) = before::previous_of(&record, Path::new(rundir::RUNS_DIR), "") {
                    ui::say(&format!("  {before}"));
                }
                step
            }
            None => self.swept.failed(place, &reason),
        };
        let counts = step.counts();
        self.step_s = begun.elapsed().as_secs_f64();
        record::write(dir, &self.record(true))?;
        Ok(counts)
    }

    /// `7, about 3 min left`; of an automatic sweep at most so many.
    fn ahead(&self, number: u64, is_repeat: bool) -> String {
        let curves = self.axes.held().len() as u64;
        let (bound, about, steps) = match &self.axes.sessions {
            Sessions::List(list) => ("", "about", list.len() as u64),
            Sessions::Auto(max_load) => {
                let steps = self.limits(*max_load).most_steps();
                ("at most ", "at most", steps)
            }
        };
        let repeated = self.swept.steps().iter().filter(|step| step.place.repeats > 0).count() as u64;
        let steps = steps * curves + repeated + u64::from(is_repeat);
        let left_s = steps.saturating_sub(number - 1) as f64 * self.step_s;
        format!("{bound}{steps}, {about} {} left", progress::left(left_s))
    }

    fn limits(&self, max_load: u64) -> auto::Limits {
        auto::Limits { least_load: self.least_load(), max_load, goal_us: self.axes.goal_us }
    }

    fn perform(
        &mut self,
        held: &Held,
        sessions: u64,
        place: &Path,
        deliver: &mut perform::Deliver<'_>,
    ) -> Result<Code, Failure> {
        let mut configured = self.configured(held, sessions)?;
        if let By::Hosts(hosts) = &mut self.by {
            return (hosts.perform)(&configured, place, deliver);
        }
        let _confined = held.cpus.map(Confined::to).transpose()?;
        let plan = self.plan(&mut configured)?;
        perform::perform(&configured, &plan, &self.stop, rundir::new_id(), place.to_path_buf(), deliver)
    }

    /// The record of the steps so far.
    fn record(&self, incomplete: bool) -> Record {
        let verdict = match (self.stop.requested(), incomplete) {
            (true, _) => Verdict::Incomplete(format!("stopped on request after {} step(s)", self.swept.steps().len())),
            (false, true) => Verdict::Incomplete(PENDING.to_owned()),
            (false, false) => Verdict::Complete,
        };
        let now = jiff::Timestamp::now().to_string();
        let elapsed_s = self.begun.elapsed().as_secs_f64();
        self.swept.record(verdict, &now, elapsed_s)
    }
}

/// A step in one line.
fn told(step: &SweepStep, per_s: &str) -> String {
    let rate = step.ops_per_s.value().unwrap_or(0.0);
    let p99 = match step.op.us_p99.value() {
        Some(us) => units::duration((us * 1e3) as u64),
        None => "n/a".to_owned(),
    };
    format!("{}: {} {per_s}, p99 {p99}, steady: {}", step.verdict, units::fixed(rate, 1), step.steady.state)
}

/// What would be run, and about how long it would take.
fn dry_run(
    running: &Running<'_>,
    configured: &Configured,
    plan: &Plan,
    data: &DataSet,
    prepare: Option<&[Line]>,
) -> Result<Code, Failure> {
    let held = running.axes.held();
    let loads = running.known_loads();
    let automatic = matches!(running.axes.sessions, Sessions::Auto(_));
    let steps = held.len() as u64 * if automatic { AUTO_STEPS } else { loads.len() as u64 };
    let each_ns = plan.warmup_ns + plan.run_time_ns + BETWEEN_NS;
    let listed: Vec<String> = held
        .iter()
        .flat_map(|held| loads.iter().map(move |load| held.text(*load)))
        .map(|text| if automatic { format!("from {text}") } else { text })
        .collect();
    let text = if is_json(running.args.format) {
        let first = run_plan::json(configured, plan, data, prepare);
        plan_text::pretty(&json!({
            "sweep": {
                "axes": running.axes.listed(),
                "goal_us_p99": running.axes.goal(),
                "steps": listed,
                "steps_count": steps,
                "estimated_s": steps as f64 * each_ns as f64 / 1e9,
            },
            "first_step": first,
        }))
    } else {
        let about = if automatic { "about " } else { "" };
        let mut out = format!("Sweep of {about}{steps} steps, about {} in all\n\n", units::duration(steps * each_ns));
        for text in listed {
            out.push_str(&format!("  {text}\n"));
        }
        out.push_str("\nThe first step:\n\n");
        out.push_str(&run_plan::whole(configured, plan, data, prepare));
        out
    };
    ui::product(&text)?;
    Ok(Code::Good)
}
