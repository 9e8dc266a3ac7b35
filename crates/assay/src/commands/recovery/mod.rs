//! `recovery`: kill a loaded data set, open it again, and time what comes after.

mod child;

use crate::cli::format::is_json;
use crate::cli::{RecoveryArgs, SettingArgs};
use crate::configure::{self, Configured, Said};
use crate::exit::{Code, Failure};
use crate::record;
use crate::rundir::{self, RunDir};
use crate::{answer, perform, plan_text, progress, signals, ui};
use assay_measure::clock::{Clock, NS_PER_S};
use assay_measure::config;
use assay_measure::record::Figure;
use assay_measure::snapshot::{Fact, RunData, Snapshot};
use assay_measure::units;
use assay_native::crash::{RecoveryInfo, RecoveryStep};
use assay_run::dataset::lines::{count, text};
use assay_run::engine::Engine;
use assay_run::journal::{self, Expected, Journaled};
use assay_run::left::{self, Kind};
use assay_run::plan::Plan;
use assay_run::stop::Stop;
use assay_run::{Mark, Observer, Options, execute, host};
use child::Load;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

pub(super) use child::load;

const NAME: &str = "recovery";
/// The rate must have come back to this much of the old one.
const BACK: f64 = 0.95;
/// A process killed sooner has shown no steady load.
const LEAST_LOAD: Duration = Duration::from_secs(3);
/// An incremental checkpoint keeps within this of one log file whatever is asked.
const OF_A_LOG: f64 = 0.9;

/// What is the same in all steps.
struct Bench<'a> {
    args: &'a RecoveryArgs,
    configured: Configured,
    plan: Plan,
    stop: Stop,
    time: Duration,
    log_block_bytes: u64,
}

pub(super) fn recovery(args: &RecoveryArgs) -> Result<Code, Failure> {
    let time = duration("--time", &args.time)?;
    let rto = duration("--rto", &args.rto)?;
    if time < LEAST_LOAD {
        return Err(Failure::usage(format!(
            "--time {}: a kill needs a steady load before it; give at least 3s",
            args.time
        )));
    }
    let seconds = time.as_secs().max(1).to_string();
    let mut said_too = load_settings("0", &seconds);
    said_too.extend(args.flags.said.clone());
    let mut configured = configure::configure(&args.settings, said_too)?;
    configure::draw_seed(&mut configured.settings);
    let place = rundir::place(args.output.as_deref(), NAME, &rundir::new_id());
    if args.output.is_some() {
        rundir::refuse_used(&place)?;
    }
    if configured.target.name() != "native" {
        return Err(Failure::usage(format!(
            "{}: only a native data set can be killed and recovered",
            configured.shown()
        )));
    }
    let distances = distances(args, &configured)?;
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
    let bench = Bench { args, configured, plan, stop, time, log_block_bytes: 0 };
    bench.kill_all(&distances, rto, &place)
}

fn duration(option: &str, text: &str) -> Result<Duration, Failure> {
    units::parse_duration_ns(text)
        .map(Duration::from_nanos)
        .map_err(|error| Failure::usage(format!("{option} {text}: {error}")))
}

/// What the load fixes whatever the configuration says: updates only, one session in each schema,
/// a commit each, checkpoints by distance alone.
fn load_settings(interval: &str, seconds: &str) -> Vec<Said> {
    [
        ("UPDATE_PCT", "100"),
        ("SCAN_PCT", "0"),
        ("THREADS_PER_SCHEMA", "1"),
        ("COMMIT_EVERY", "1"),
        ("HOT_SCHEMA_FREQUENCY", "0"),
        ("THINK_TM_FREQUENCY", "0"),
        ("RATE", "0"),
        ("WORK_LOOP", "0"),
        ("WARMUP", "0"),
        ("RUN_TIME", seconds),
        ("LOG_CHECKPOINT_TIMEOUT", "0"),
        ("LOG_CHECKPOINT_INTERVAL", interval),
    ]
    .map(|(name, value)| (NAME.to_owned(), name.to_owned(), value.to_owned()))
    .to_vec()
}

/// Checkpoint distances in ascending order, none beyond what the log files allow.
fn distances(args: &RecoveryArgs, configured: &Configured) -> Result<Vec<u64>, Failure> {
    let log_bytes = configured.settings.bytes("REDO_LOG_MB");
    let most = (log_bytes as f64 * OF_A_LOG) as u64;
    let Some(list) = &args.distances else {
        // Beyond half, the log switch often makes its checkpoint before the distance is there.
        return Ok(vec![most / 16, most / 4, most / 2]);
    };
    let mut distances = Vec::new();
    for text in list.split(',') {
        let bytes = units::parse_size_bytes(text.trim())
            .map_err(|error| Failure::usage(format!("--distances {text}: {error}")))?;
        if !(65_536..=most).contains(&bytes) {
            return Err(Failure::usage(format!(
                "--distances {text}: from 64K to {}, which is 90 % of a log file (REDO_LOG_MB)",
                units::size(most)
            )));
        }
        distances.push(bytes);
    }
    distances.sort_unstable();
    distances.dedup();
    Ok(distances)
}

fn dry_run(args: &RecoveryArgs, configured: &Configured, distances: &[u64]) -> Result<Code, Failure> {
    let url = configured.shown();
    let sizes: Vec<String> = distances.iter().map(|bytes| units::size(*bytes)).collect();
    let lines = [
        text("target", "data set, updated and killed", url),
        count("kills", "kills", distances.len() as u64),
        text("distances", "checkpoint distances", sizes.join(", ")),
        text("load", "maximum load before each kill", args.time.clone()),
    ];
    ui::product(&if is_json(args.format) {
        plan_text::pretty(&plan_text::lines_json(&lines))
    } else {
        plan_text::lines(&lines) + "\n"
    })?;
    Ok(Code::Good)
}

impl Bench<'_> {
    fn kill_all(mut self, distances: &[u64], rto: Duration, place: &Path) -> Result<Code, Failure> {
        let started = jiff::Timestamp::now().to_string();
        // Also recovers what somebody else left unclosed, so that every kill begins alike.
        let engine = self.open()?;
        let facts = engine.facts();
        self.log_block_bytes = fact(&facts, "log_block_bytes").unwrap_or(4096.0) as u64;
        engine.close()?;
        drop(engine);
        let dir = RunDir::create(place.to_path_buf())?;
        let journal = dir.path().join(rundir::JOURNAL);
        let mut info = RecoveryInfo {
            sessions_count: self.plan.sessions() as u64,
            commit_mode: self.configured.settings.text("COMMIT_MODE").to_owned(),
            log_block_bytes: self.log_block_bytes,
            rto_wanted_s: Figure::decimal(rto.as_secs_f64()),
            ..RecoveryInfo::default()
        };
        let marked = left::Mark::put(&journal, Kind::File).inspect_err(|_| dir.discard());
        let mark = marked.map_err(|error| rundir::cannot(&journal, &error))?;
        let killed = self.kill_each(distances, &journal, &mut info);
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
        self.leave(&dir, info, started, facts)
    }

    /// The kills, with the journal removed after each.
    fn kill_each(&self, distances: &[u64], journal: &Path, info: &mut RecoveryInfo) -> Result<(), Failure> {
        for (index, distance) in distances.iter().enumerate() {
            if self.stop.requested() {
                break;
            }
            ui::say(&format!(
                "kill {} of {}: checkpoints within {} of log",
                index + 1,
                distances.len(),
                units::size(*distance)
            ));
            let step = self.kill(*distance, journal);
            let _ = std::fs::remove_file(journal);
            info.steps.extend(step?);
        }
        Ok(())
    }

    /// One kill. `None` if stopped before it.
    fn kill(&self, distance: u64, journal: &Path) -> Result<Option<RecoveryStep>, Failure> {
        let interval = (distance / self.log_block_bytes).max(1).to_string();
        let mut load = Load::start(&self.settings(), journal, &interval, self.time)?;
        let begun = load.wait_for_gate(&self.stop)?;
        while begun && !self.stop.requested() {
            load.look()?;
            let aged = load.age_bytes().is_some_and(|age| age as f64 >= 0.8 * distance as f64);
            let elapsed = load.elapsed();
            if elapsed >= self.time || (aged && elapsed >= LEAST_LOAD) {
                break;
            }
        }
        let seen = load.kill();
        if !begun || self.stop.requested() {
            ui::say("notice: the next command that opens the data set recovers it");
            return Ok(None);
        }
        let mut step = RecoveryStep {
            distance_bytes: distance,
            load_s: Figure::decimal(seen.load_s),
            old_commits_per_s: seen
                .commits_per_s
                .map_or_else(|| Figure::na("killed before its second second"), Figure::decimal),
            age_at_kill_bytes: seen.age_bytes.map_or_else(|| Figure::na("not seen"), Figure::Count),
            ..RecoveryStep::default()
        };
        self.recover(&mut step)?;
        self.audit(&mut step, journal)?;
        self.go_on(&mut step)?;
        Ok(Some(step))
    }

    /// The arguments the child gets too.
    fn settings(&self) -> SettingArgs {
        let mut settings = self.args.settings.clone();
        settings.target = Some(self.configured.url.clone());
        settings
    }

    fn open(&self) -> Result<Box<dyn Engine>, Failure> {
        let bar = progress::Bytes::new();
        let configured = &self.configured;
        Ok(configured.target.open(&configured.location, &self.plan, &configured.settings, &self.stop, &bar)?)
    }

    /// Opens what the kill left, which recovers it, and closes it for the audit.
    fn recover(&self, step: &mut RecoveryStep) -> Result<(), Failure> {
        let clock = Clock::real();
        let begun = clock.now_ns();
        let engine = self.open()?;
        step.open_s = seconds(clock.now_ns() - begun);
        let facts = engine.facts();
        engine.close()?;
        let figure =
            |name: &str| fact(&facts, name).map_or_else(|| Figure::na("nothing was recovered"), Figure::decimal);
        step.replayed_bytes = figure("recovered_redo_bytes");
        step.replay_mb_per_s = figure("replay_mb_per_s");
        step.blocks_read_count = figure("recovery_blocks_read");
        step.blocks_written_count = figure("recovery_blocks_written");
        step.rolled_back_count = figure("rolled_back_transactions");
        step.recovery_s = figure("recovery_s");
        Ok(())
    }

    /// Compares every row with what was acknowledged.
    fn audit(&self, step: &mut RecoveryStep, journal: &Path) -> Result<(), Failure> {
        let entries = journal::read(journal).map_err(|error| rundir::cannot(journal, &error))?;
        let expected = Mutex::new(Expected::of(&entries));
        let rows = |schema: u32, key: u64, stamp: Option<u64>| {
            // A thread that panicked ends the audit by its join.
            let mut expected = expected.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            expected.see(schema, key, stamp);
        };
        let bar = progress::Bytes::new();
        let configured = &self.configured;
        configured.target.audit(&configured.location, &configured.settings, &self.stop, &bar, &rows)?;
        let expected = expected.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        let found = expected.found();
        step.acknowledged_count = found.acknowledged;
        step.lost_count = found.lost;
        step.half_there_count = found.half_there;
        step.unacknowledged_there_count = found.unacknowledged_there;
        step.rows_compared_count = found.rows;
        Ok(())
    }

    /// The same load again: its first commit, and when it is as quick as before.
    fn go_on(&self, step: &mut RecoveryStep) -> Result<(), Failure> {
        let engine = Journaled::new(self.open()?, None);
        let wanted = step.old_commits_per_s.value().map(|rate| BACK * rate);
        let stop = Stop::new();
        let mut watcher = Watcher { engine: &engine, wanted, stop: &stop, all: &self.stop };
        let options = Options { host: false, calibrate: false, ..Options::default() };
        let clock = Clock::real();
        let ran = execute(&self.plan, &engine, &clock, &stop, &mut watcher, options);
        ran.map_err(|error| Failure::new(Code::Unusable, error.to_string()))?;
        let commits = engine.commits();
        let after_open = |ns: Option<u64>, why: String| match ns {
            Some(ns) => step.open_s.plus(&seconds(ns)),
            None => Figure::Na(why),
        };
        step.first_commit_s = after_open(commits.first_ns(), "no commit".to_owned());
        let why = match wanted {
            Some(_) => format!("not within {} s", self.time.as_secs()),
            None => "the old rate is unknown".to_owned(),
        };
        step.rate_95_s = after_open(wanted.and_then(|rate| commits.reached(rate)), why);
        Ok(())
    }

    /// Writes the record and prints the product.
    fn leave(&self, dir: &RunDir, info: RecoveryInfo, started: String, facts: Vec<Fact>) -> Result<Code, Failure> {
        let settings = &self.configured.settings;
        let id = dir.path().file_name().unwrap_or_default().to_string_lossy();
        let run = RunData {
            run_id: id.rsplit('-').next().unwrap_or_default().to_owned(),
            label: perform::label(&self.configured),
            workload: NAME.to_owned(),
            engine: self.configured.target.name().to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            started,
            seed: self.plan.seed,
            settings: config::setting_lines(settings),
            host: host::facts(),
            engine_facts: facts,
            ..RunData::default()
        };
        let record = assay_native::crash::build(&run, info);
        let written =
            dir.write("config/effective", &config::slob_conf(settings)).and_then(|()| record::write(dir, &record));
        answer::product(&record, self.args.format, dir.path())?;
        written?;
        ui::say(&format!("record: {}", dir.path().display()));
        for reason in &record.run.verdict_reasons {
            ui::say(&format!("error: the run is invalid: {reason}"));
        }
        if self.stop.requested() {
            return Ok(Code::Interrupted);
        }
        match record.run.verdict.as_str() {
            "invalid" => Ok(Code::Invalid),
            _ => Ok(Code::Good),
        }
    }
}

/// Ends the load once the old rate is back.
struct Watcher<'a> {
    engine: &'a Journaled,
    wanted: Option<f64>,
    stop: &'a Stop,
    all: &'a Stop,
}

impl Observer for Watcher<'_> {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, _mark: Mark, _now: &Snapshot) {
        let back = self.wanted.is_some_and(|rate| self.engine.commits().reached(rate).is_some());
        if (back || self.all.requested()) && !self.stop.requested() {
            self.stop.request();
        }
    }

    fn needs_series(&self) -> bool {
        false
    }
}

fn seconds(ns: u64) -> Figure {
    Figure::decimal(ns as f64 / NS_PER_S as f64)
}

/// A fact's number.
fn fact(facts: &[Fact], name: &str) -> Option<f64> {
    let fact = facts.iter().find(|fact| fact.name == name)?;
    fact.value.replace(',', "").split(' ').next()?.parse().ok()
}
