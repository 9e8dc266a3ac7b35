//! A throw-away server from installed programs: `temp:NAME[:VERSION]`.
//!
//! `den` creates the data in a private directory. The server listens on a private socket and no port. `keeper` removes
//! the server with the command that requested it, however that command ends. Under root another user owns the server
//! (`owner`). Each database's folder chooses the programs that create and run it, and their settings.

mod den;
pub(crate) mod home;
mod keeper;
pub(crate) mod owner;
pub(crate) mod settings;
#[cfg(test)]
mod tests;

pub(crate) use den::{DATA, Ready};
pub use keeper::{BECOME, KEEP, become_server, ending_with_us, keep};
pub(crate) use keeper::{Request, Shutdown};

use assay_measure::config::Settings;
use assay_run::dataset::lines::{count, text};
use assay_run::engine::{EngineError, Line, LineValue, Progress, Running};
use assay_run::left;
use assay_run::life::DEFAULT_SCHEMAS;
use assay_run::stop::Stop;
use home::Home;
use keeper::Said;
use owner::Owner;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// Interval between two checks of a stop request.
const TICK: Duration = Duration::from_millis(50);
/// Longest start, including creating the data on a slow disk.
const START: Duration = Duration::from_secs(300);
/// Longest end: every way of shutdown, and the removal of large files.
const END: Duration = Duration::from_secs(60);

/// Number of schemas a server is started for, and of its sessions.
pub(crate) fn load(settings: &Settings) -> (u64, u64) {
    let schemas = settings.whole("SCHEMAS").unwrap_or(DEFAULT_SCHEMAS.into());
    let threads = settings.whole("THREADS_PER_SCHEMA").unwrap_or(1);
    let sessions = settings.whole("SESSIONS").filter(|sessions| *sessions > 0);
    (schemas, sessions.unwrap_or(schemas.saturating_mul(threads)))
}

/// Plan lines of a server that would be started in that place.
pub(crate) fn planned(home: &Home, needed_bytes: u64, lines: impl FnOnce(&str) -> Vec<Line>) -> Vec<Line> {
    let mut lines = lines(&format!("{}/{}...", home.base.display(), home.prefix()));
    lines.push(count("server_needed_bytes", "Approximate space needed there, bytes", needed_bytes));
    lines
}

/// Names of a database product for its throw-away servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brand {
    /// The name after `temp:`.
    pub(crate) temp: &'static str,
    /// Display name.
    pub(crate) called: &'static str,
    /// The user that its packages create for it.
    pub(crate) user: &'static str,
    /// The parameter that sets the base directory.
    pub(crate) directory: &'static str,
}

/// Information about a server, for the plan and after its start.
pub(crate) struct Shown<'a> {
    /// The database and its version.
    pub(crate) server: String,
    pub(crate) programs: &'a Path,
    pub(crate) directory: String,
    /// Settings it needs to be private.
    pub(crate) own_settings: String,
    pub(crate) settings_given: String,
}

impl Shown<'_> {
    /// One line for each item.
    pub(crate) fn lines(self, home: &Home, owner: Option<&Owner>) -> Vec<Line> {
        let programs = self.programs.display().to_string();
        let mut lines = vec![
            text("server", "Throw-away server", self.server),
            text("server_programs", "Its programs", programs),
            text("server_directory", "Its directory", self.directory),
            text("server_file_system", "On file system", home.file_system()),
        ];
        if let Some(owner) = owner {
            lines.push(text("server_user", "Its user", owner.name.clone()));
        }
        lines.push(text("server_settings", "Its own settings", self.own_settings));
        lines.push(text("server_settings_given", "Requested settings", self.settings_given));
        if let Some(command) = left::command(&left::found(&home.base)) {
            lines.push(text("server_left_behind", "Left by a killed command", format!("remove with: {command}")));
        }
        lines
    }
}

/// A line with a time.
pub(crate) fn seconds(key: &'static str, label: &str, value: f64) -> Line {
    Line { key, label: label.to_owned(), value: LineValue::Decimal(value) }
}

/// A running server and its keeper.
#[derive(Debug)]
pub(crate) struct Server {
    brand: Brand,
    keeper: Child,
    /// The server lives while this is open.
    pipe: Option<ChildStdin>,
    said: Receiver<Said>,
    /// Time to create the data.
    pub(crate) made_s: f64,
    /// Time from the start until it accepted connections.
    pub(crate) start_s: f64,
    ended: bool,
}

impl Server {
    /// Has a keeper create the server; `making` is shown meanwhile.
    pub(crate) fn start(
        brand: Brand,
        request: &Request,
        making: &str,
        stop: &Stop,
        progress: &dyn Progress,
    ) -> Result<Self, EngineError> {
        let cannot = |source: std::io::Error| EngineError::Io {
            what: "starting the process that keeps the temporary server".to_owned(),
            source,
        };
        let mut keeper = keeper::again(KEEP)
            .map_err(cannot)?
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C on a terminal is only for us: we stop the server when we no longer need it.
            .process_group(0)
            .spawn()
            .map_err(cannot)?;
        let output = keeper.stdout.take().expect("its output is piped");
        let (sender, said) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if let Ok(said) = serde_json::from_str(&line)
                    && sender.send(said).is_err()
                {
                    break;
                }
            }
        });
        let mut server =
            Self { brand, pipe: keeper.stdin.take(), keeper, said, made_s: 0.0, start_s: 0.0, ended: false };
        let mut line = serde_json::to_vec(request).map_err(|error| cannot(error.into()))?;
        line.push(b'\n');
        if let Some(pipe) = &mut server.pipe {
            pipe.write_all(&line).map_err(cannot)?;
        }
        server.wait_until_ready(making, stop, progress)?;
        Ok(server)
    }

    fn wait_until_ready(&mut self, making: &str, stop: &Stop, progress: &dyn Progress) -> Result<(), EngineError> {
        let name = self.brand.temp;
        let failed = |why: String| EngineError::Unusable(format!("temp:{name}: {why}"));
        let begun = Instant::now();
        progress.update(making, 0, 0);
        loop {
            if stop.requested() {
                return Err(EngineError::Interrupted);
            }
            match self.said.recv_timeout(TICK) {
                Ok(Said::Made { made_s }) => {
                    self.made_s = made_s;
                    progress.update("starting the server", 0, 0);
                }
                Ok(Said::Ready { start_s, .. }) => {
                    self.start_s = start_s;
                    return Ok(());
                }
                Ok(Said::Failed { why } | Said::Left { why }) => return Err(failed(why)),
                Ok(Said::Gone { .. }) | Err(RecvTimeoutError::Disconnected) => {
                    return Err(failed("its keeper ended by itself".to_owned()));
                }
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > START => {
                    return Err(failed(format!("the server did not start within {START:?}")));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Has the keeper stop and remove the server; returns lines about that.
    fn end_it(&mut self) -> Result<Vec<Line>, EngineError> {
        self.ended = true;
        if let Some(mut pipe) = self.pipe.take() {
            // A dead keeper does not read it.
            let _ = pipe.write_all(b".");
        }
        let mut lines = Vec::new();
        let mut problem = None;
        let begun = Instant::now();
        loop {
            match self.said.recv_timeout(TICK) {
                Ok(Said::Gone { stop_s, how }) => {
                    lines.push(seconds("server_stop_s", "Time to stop and remove it, s", stop_s));
                    lines.push(text("server_stop", "Shutdown", how));
                }
                Ok(Said::Failed { why }) => lines.push(text("server_lost", "Server lost", why)),
                Ok(Said::Left { why }) => problem = Some(why),
                Ok(_) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if begun.elapsed() > END => {
                    // The server dies with the keeper (see `become_server`).
                    let _ = self.keeper.kill();
                    problem = Some(format!("the server did not stop within {END:?}"));
                    break;
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let _ = self.keeper.wait();
        match problem {
            None => Ok(lines),
            Some(why) => {
                Err(EngineError::Unusable(format!("temp:{}: not everything was removed: {why}", self.brand.temp)))
            }
        }
    }
}

impl Running for Server {
    fn end(mut self: Box<Self>) -> Result<Vec<Line>, EngineError> {
        self.end_it()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if !self.ended {
            // A caller that only drops it does not need the result.
            let _ = self.end_it();
        }
    }
}
