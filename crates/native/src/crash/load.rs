//! The process that is killed: its settings, how it is started and watched, and what it says.

use assay_measure::counter_catalog::USER_COMMITS;
use assay_measure::snapshot::Snapshot;
use assay_run::engine::EngineError;
use assay_run::stop::Stop;
use assay_run::{Mark, Observer};
use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// How long the process may take until its sessions begin.
const READY: Duration = Duration::from_secs(120);
const TICK: Duration = Duration::from_millis(50);

/// What the load fixes whatever the configuration says: updates only, one session in each schema,
/// a commit each, checkpoints by distance alone.
#[must_use]
pub fn load_settings<'s>(interval: &'s str, seconds: &'s str) -> [(&'static str, &'s str); 12] {
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
}

/// One line of the process: instant after its gate, commits so far, redo since the checkpoint.
#[derive(Clone, Copy)]
pub(super) struct LoadLine {
    at_ns: u64,
    commits: u64,
    pub(super) age_bytes: u64,
}

impl LoadLine {
    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace().map(str::parse);
        let mut next = || words.next()?.ok();
        Some(Self { at_ns: next()?, commits: next()?, age_bytes: next()? })
    }
}

/// In the process that is killed: prints a line for each snapshot.
pub struct LoadTeller<'a>(pub &'a dyn Fn(&str));

impl Observer for LoadTeller<'_> {
    fn phase(&mut self, _name: &str) {}

    fn snapshot(&mut self, mark: Mark, now: &Snapshot) {
        let commits = now.stats.get(USER_COMMITS).unwrap_or(0);
        let age = now.stats.gauges.get("checkpoint_age_bytes").copied().unwrap_or(0);
        if matches!(mark, Mark::Gate | Mark::Second) {
            (self.0)(&format!("{} {commits} {age}\n", now.at_ns));
        }
    }

    fn needs_series(&self) -> bool {
        false
    }
}

/// The process under load. It does not outlive this value.
pub(super) struct Load {
    child: Child,
    lines: Receiver<String>,
    gate: Option<Instant>,
    told: Vec<LoadLine>,
}

impl Load {
    pub(super) fn start(command: io::Result<Command>) -> Result<Self, EngineError> {
        let mut child = command
            .and_then(|mut command| command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn())
            .map_err(|source| EngineError::Io { what: "cannot start the process to be killed".to_owned(), source })?;
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
    pub(super) fn wait_for_gate(&mut self, stop: &Stop) -> Result<bool, EngineError> {
        let begun = Instant::now();
        while self.gate.is_none() {
            if stop.requested() {
                return Ok(false);
            }
            if begun.elapsed() > READY {
                let what = "the process to be killed did not begin its load within 120 s";
                return Err(EngineError::Unusable(what.to_owned()));
            }
            self.look()?;
        }
        Ok(true)
    }

    /// Takes in what it has said; an error if it has ended.
    pub(super) fn look(&mut self) -> Result<(), EngineError> {
        match self.lines.recv_timeout(TICK) {
            Ok(line) => {
                if let Some(told) = LoadLine::parse(&line) {
                    self.gate.get_or_insert_with(Instant::now);
                    self.told.push(told);
                }
                Ok(())
            }
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Err(RecvTimeoutError::Disconnected) => {
                let what = "the process to be killed ended by itself; its own message is above";
                Err(EngineError::Unusable(what.to_owned()))
            }
        }
    }

    pub(super) fn elapsed(&self) -> Duration {
        self.gate.map_or(Duration::ZERO, |gate| gate.elapsed())
    }

    /// What it said last.
    pub(super) fn last(&self) -> Option<&LoadLine> {
        self.told.last()
    }

    /// Commits per second after its first second.
    pub(super) fn commits_per_s(&self) -> Option<f64> {
        let first = self.told.iter().find(|told| told.at_ns >= 900_000_000)?;
        let last = self.last()?;
        let ns = last.at_ns.checked_sub(first.at_ns).filter(|ns| *ns > 0)?;
        Some((last.commits - first.commits) as f64 * 1e9 / ns as f64)
    }

    /// Ends it at once.
    pub(super) fn kill(&mut self) {
        // An error means that it is gone already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.kill();
    }
}
