//! The process that is killed: how it is started and watched, and what it does.

use super::load_settings;
use crate::cli::{RecoveryLoadArgs, SettingArgs};
use crate::configure;
use crate::exit::{Code, Failure};
use crate::{perform, progress, ui};
use assay_measure::clock::Clock;
use assay_measure::snapshot::Snapshot;
use assay_measure::stats::USER_COMMITS;
use assay_run::journal::Journaled;
use assay_run::stop::Stop;
use assay_run::{Mark, Observer, Options, execute};
use rustix::process::{Signal, set_parent_process_death_signal};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the process may take until its sessions begin.
const READY: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(50);
/// It ends by itself if nobody kills it, this long after it should have been.
const GRACE_S: u64 = 60;

/// What was last seen of a killed process.
pub(super) struct Seen {
    pub(super) load_s: f64,
    /// Without its first second.
    pub(super) commits_per_s: Option<f64>,
    pub(super) age_bytes: Option<u64>,
}

/// One line of the process: instant after its gate, commits so far, redo since the checkpoint.
#[derive(Clone, Copy)]
struct Told {
    at_ns: u64,
    commits: u64,
    age_bytes: u64,
}

impl Told {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().map(str::parse);
        let mut next = || words.next()?.ok();
        Some(Self { at_ns: next()?, commits: next()?, age_bytes: next()? })
    }
}

/// The process under load. It does not outlive this value.
pub(super) struct Load {
    child: Child,
    lines: Receiver<String>,
    gate: Option<Instant>,
    told: Vec<Told>,
}

impl Load {
    pub(super) fn start(
        settings: &SettingArgs,
        journal: &Path,
        interval: &str,
        time: Duration,
    ) -> Result<Self, Failure> {
        let cannot = |error: std::io::Error| {
            Failure::new(Code::Unusable, format!("cannot start the process to be killed: {error}"))
        };
        let mut command = Command::new(std::env::current_exe().map_err(cannot)?);
        command.arg("recovery-load");
        if let Some(config) = &settings.config {
            command.arg("-c").arg(config);
        }
        if let Some(target) = &settings.target {
            command.arg("--target").arg(target);
        }
        if let Some(schemas) = &settings.schemas {
            command.arg("-s").arg(schemas);
        }
        for set in &settings.set {
            command.arg("--set").arg(set);
        }
        let seconds = (time.as_secs() + GRACE_S).to_string();
        command
            .arg("--journal")
            .arg(journal)
            .args(["--interval", interval, "--time", &seconds])
            .stdin(Stdio::null())
            .stdout(Stdio::piped());
        let mut child = command.spawn().map_err(cannot)?;
        let output = child.stdout.take().expect("its output is piped");
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Self { child, lines, gate: None, told: Vec::new() })
    }

    /// Waits until its sessions begin; false if a stop was requested before.
    pub(super) fn wait_for_gate(&mut self, stop: &Stop) -> Result<bool, Failure> {
        let begun = Instant::now();
        while self.gate.is_none() {
            if stop.requested() {
                return Ok(false);
            }
            if begun.elapsed() > READY {
                return Err(Failure::new(
                    Code::Unusable,
                    "the process to be killed did not begin its load within 120 s",
                ));
            }
            self.look()?;
        }
        Ok(true)
    }

    /// Takes in what it has said; an error if it has ended.
    pub(super) fn look(&mut self) -> Result<(), Failure> {
        match self.lines.recv_timeout(TICK) {
            Ok(line) => {
                if let Some(told) = Told::parse(&line) {
                    self.gate.get_or_insert_with(Instant::now);
                    self.told.push(told);
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                Err(Failure::new(Code::Unusable, "the process to be killed ended by itself; its own message is above"))
            }
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.gate.map_or(Duration::ZERO, |gate| gate.elapsed())
    }

    /// Redo since the checkpoint, as it said last.
    pub(super) fn age_bytes(&self) -> Option<u64> {
        self.told.last().map(|told| told.age_bytes)
    }

    /// Ends it at once, and says what was seen of it.
    pub(super) fn kill(mut self) -> Seen {
        let load_s = self.elapsed().as_secs_f64();
        self.end();
        let after_a_second = self.told.iter().find(|told| told.at_ns >= 900_000_000);
        let rate = after_a_second.zip(self.told.last()).and_then(|(first, last)| {
            let ns = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)?;
            Some((last.commits - first.commits) as f64 * 1e9 / ns as f64)
        });
        Seen { load_s, commits_per_s: rate, age_bytes: self.age_bytes() }
    }

    fn end(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.end();
    }
}

/// The process itself: updates until it is killed.
pub(crate) fn load(args: &RecoveryLoadArgs) -> Result<Code, Failure> {
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
    let clock = Clock::real();
    execute(&plan, &engine, &clock, &stop, &mut Teller, options)
        .map(|_| Code::Good)
        .map_err(|error| Failure::new(Code::Unusable, error.to_string()))
}

/// Tells each snapshot in a line.
struct Teller;

impl Observer for Teller {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        let commits = now.stats.get(USER_COMMITS).unwrap_or(0);
        let age = now.stats.gauges.get("checkpoint_age_bytes").copied().unwrap_or(0);
        if matches!(mark, Mark::Gate | Mark::Second) {
            // Nobody reads it any more only when it is about to be killed.
            let _ = ui::product(&format!("{} {commits} {age}\n", now.at_ns));
        }
    }

    fn needs_series(&self) -> bool {
        false
    }
}
