//! The process that keeps a throw-away server: it creates the server, waits, and removes it.
//!
//! The keeper is another process of this program, in a process group of its own. It reads a pipe whose other end only
//! the requesting program holds. However that program ends, the pipe closes; then the keeper stops the server and
//! removes its directory. If the keeper is killed, the kernel asks the server's processes to shut down
//! ([`become_server`]); then only the directory stays, and the next start reports it ([`Den`]).

use super::den::{Den, Ready};
use super::owner::Owner;
use rustix::process::{Pid, Signal, kill_process, set_parent_process_death_signal};
use rustix::thread::{set_thread_gid, set_thread_groups, set_thread_uid};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

/// First argument of this program when it runs as a keeper.
pub const KEEP: &str = "server-keep";
/// First argument of this program when it is to execute a program of the server.
pub const BECOME: &str = "server-become";
/// Interval between two checks of a process.
const TICK: Duration = Duration::from_millis(10);
/// Interval between two checks of a running server.
const WATCH: Duration = Duration::from_millis(200);
/// Longest start. An empty server needs no recovery, so this is generous.
const START: Duration = Duration::from_secs(120);
/// Request to a keeper.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Request {
    /// Directory to create, accessible only to us and the server's user, and to remove at the end.
    pub(crate) directory: PathBuf,
    /// Its owner, if not us.
    pub(crate) owner: Option<Owner>,
    /// Command that creates the data: a program and its arguments.
    pub(crate) make: Vec<String>,
    /// Command that runs the server: a program and its arguments.
    pub(crate) serve: Vec<String>,
    /// A file in the data, and the text to append before the server starts.
    pub(crate) conf: Option<(String, String)>,
    /// Prefixes of environment variables that concern other servers.
    pub(crate) foreign_variables: Vec<String>,
    pub(crate) ready: Ready,
    /// Ways to stop the server, the gentlest first. If the keeper is killed, the kernel uses the first one.
    pub(crate) shutdown: Vec<Shutdown>,
    /// Words in log lines that say why the server gave up; the first word is left out of the message.
    pub(crate) complaints: Vec<String>,
}

/// A way to stop a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Shutdown {
    /// Name for messages.
    pub(crate) name: String,
    pub(crate) signal: i32,
    /// Longest wait before the next way is tried.
    pub(crate) patience_s: u64,
}

/// Messages of a keeper, one line of JSON each.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// The data was created.
    Made {
        /// How long that took.
        made_s: f64,
    },
    /// The server accepts connections.
    Ready {
        /// Time since the start.
        start_s: f64,
        /// The first process.
        pid: u32,
    },
    /// The server did not start, or ended by itself.
    Failed {
        /// The reason, for messages.
        why: String,
    },
    /// Everything was removed.
    Gone {
        /// Time for the shutdown and the removal.
        stop_s: f64,
        /// How it ended: a way of shutdown, `killed`, `ended by itself`, `not started`.
        how: String,
    },
    /// Something could not be removed.
    Left {
        /// What was left, and why.
        why: String,
    },
}

/// A command that runs this program again as `role`.
pub(super) fn again(role: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    if cfg!(test) {
        // In this crate's tests this program is the test harness, and one of its tests plays the role.
        command.args(["--exact", "temp::tests::plays_its_part", "--nocapture"]).env("ASSAY_PLAYS", role);
    } else {
        command.arg(role);
    }
    Ok(command)
}

/// Runs as a keeper: reads a request from standard input, reports on standard output, and ends when standard input ends.
///
/// Call it from the main thread, with INT, TERM and HUP blocked or ignored: the requesting program decides when to end.
pub fn keep() {
    let mut input = BufReader::new(io::stdin());
    let mut line = String::new();
    let Ok(1..) = input.read_line(&mut line) else {
        return;
    };
    let request: Request = match serde_json::from_str(&line) {
        Ok(request) => request,
        Err(error) => {
            tell(&Said::Failed { why: format!("the request for a server cannot be read: {error}") });
            return;
        }
    };
    let (sender, end) = channel();
    std::thread::spawn(move || {
        // A byte requests an orderly end; if the pipe just closes, nobody waits for one.
        let asked = matches!(input.read(&mut [0]), Ok(1));
        let _ = sender.send(asked);
    });
    Keeper { request, end, asked: None, server: None }.keep();
}

fn tell(said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        // Start a new line, whatever was printed before. The reader may be gone, so errors are ignored.
        let _ = io::stdout().write_all(format!("\n{line}\n").as_bytes());
        let _ = io::stdout().flush();
    }
}

struct Keeper {
    request: Request,
    end: Receiver<bool>,
    /// Set once the end has come: whether a byte requested it.
    asked: Option<bool>,
    server: Option<Child>,
}

impl Keeper {
    fn keep(mut self) {
        let place = self.request.directory.display().to_string();
        let den = match Den::make(&self.request.directory, self.request.owner.as_ref()) {
            Ok(den) => den,
            Err(error) => {
                tell(&Said::Failed { why: format!("{place}: {error}") });
                return;
            }
        };
        let served = self.serve(&den);
        if let Err(why) = served {
            tell(&Said::Failed { why });
            // Keep the directory with the log until the requesting program has read it.
            while self.asked.is_none() {
                self.pause(WATCH);
            }
        }
        let begun = Instant::now();
        let how = self.stop();
        match den.remove() {
            Ok(()) => tell(&Said::Gone { stop_s: begun.elapsed().as_secs_f64(), how }),
            Err(error) => tell(&Said::Left { why: format!("{place}: {error}") }),
        }
    }

    /// Waits for the end for at most this time; true once it has come.
    fn pause(&mut self, timeout: Duration) -> bool {
        if self.asked.is_some() {
            return true;
        }
        self.asked = match self.end.recv_timeout(timeout) {
            Ok(asked) => Some(asked),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(false),
        };
        self.asked.is_some()
    }

    /// Creates the data, starts the server and waits for the end. An error if a step fails or the server ends by itself.
    fn serve(&mut self, den: &Den) -> Result<(), String> {
        let begun = Instant::now();
        if !self.make_data(den)? {
            return Ok(());
        }
        tell(&Said::Made { made_s: begun.elapsed().as_secs_f64() });
        let begun = Instant::now();
        let conf = self.request.conf.clone();
        let conf = conf.map(|(file, text)| (den.data().join(file), text));
        let gentlest = self.request.shutdown.first();
        let signal = gentlest.map_or(Signal::TERM.as_raw(), |way| way.signal);
        let mut command = self.command(den, &self.request.serve, signal, conf)?;
        let child = command.spawn().map_err(|e| format!("the server: {e}"))?;
        let pid = child.id();
        self.server = Some(child);
        while !den.is_ready(&self.request.ready) {
            self.still_there(den)?;
            if begun.elapsed() > START {
                return Err(format!("the server did not start within {START:?}; {}", self.complaint(den)));
            }
            if self.pause(TICK) {
                return Ok(());
            }
        }
        tell(&Said::Ready { start_s: begun.elapsed().as_secs_f64(), pid });
        while !self.pause(WATCH) {
            self.still_there(den)?;
        }
        Ok(())
    }

    fn complaint(&self, den: &Den) -> String {
        den.complaint(&self.request.complaints)
    }

    /// Creates the server's data; false if the end came first.
    fn make_data(&mut self, den: &Den) -> Result<bool, String> {
        let mut command = self.command(den, &self.request.make, Signal::KILL.as_raw(), None)?;
        let called = called(&self.request.make);
        let mut child = command.spawn().map_err(|e| format!("{called}: {e}"))?;
        let status = loop {
            if let Some(status) = exited(&mut child)? {
                break status;
            }
            if self.pause(TICK) {
                // Its child processes end when their pipes to it close.
                let _ = child.kill();
                let _ = child.wait();
                return Ok(false);
            }
        };
        if !status.success() {
            return Err(format!("{called} failed: {}", self.complaint(den)));
        }
        Ok(true)
    }

    /// A command that runs a program of the server as its user, with output to the log. The kernel sends it `signal` if
    /// the keeper is killed. Before it starts, its user appends `conf` to that file.
    fn command(
        &self,
        den: &Den,
        words: &[String],
        signal: i32,
        conf: Option<(PathBuf, String)>,
    ) -> Result<Command, String> {
        let cannot = |error: io::Error| format!("the server's log: {error}");
        let part = Part { owner: self.request.owner.clone(), signal, conf };
        let part = serde_json::to_string(&part).map_err(|error| error.to_string())?;
        let mut command = again(BECOME).map_err(|error| error.to_string())?;
        for (name, _) in std::env::vars_os() {
            let foreign = &self.request.foreign_variables;
            if foreign.iter().any(|begins| name.to_string_lossy().starts_with(begins)) {
                command.env_remove(name);
            }
        }
        if cfg!(test) {
            command.env("ASSAY_PART", part).arg("--");
        } else {
            command.arg(part);
        }
        command
            .args(words)
            .env("LC_ALL", "C")
            .current_dir("/")
            .stdin(Stdio::null())
            .stdout(den.log().map_err(cannot)?)
            .stderr(den.log().map_err(cannot)?);
        Ok(command)
    }

    fn still_there(&mut self, den: &Den) -> Result<(), String> {
        let Some(server) = &mut self.server else {
            return Ok(());
        };
        match exited(server)? {
            None => Ok(()),
            Some(status) => {
                self.server = None;
                Err(format!("the server ended by itself ({status}): {}", self.complaint(den)))
            }
        }
    }

    /// Stops the server: gently if somebody waits for it, else at once. Kills it if it does not react.
    fn stop(&mut self) -> String {
        let Some(mut server) = self.server.take() else {
            return "not started".to_owned();
        };
        let gently = self.asked == Some(true);
        for way in self.request.shutdown.iter().skip(usize::from(!gently)) {
            let Some(pid) = i32::try_from(server.id()).ok().and_then(Pid::from_raw) else {
                break;
            };
            let Some(signal) = Signal::from_named_raw(way.signal) else {
                continue;
            };
            let patience = Duration::from_secs(way.patience_s);
            // It has not been reaped, so the process number is still its own.
            let _ = kill_process(pid, signal);
            let begun = Instant::now();
            while begun.elapsed() < patience {
                if !matches!(server.try_wait(), Ok(None)) {
                    return way.name.clone();
                }
                std::thread::sleep(TICK);
            }
        }
        let _ = server.kill();
        let _ = server.wait();
        "killed".to_owned()
    }
}

/// The program name of a command, without the directory.
fn called(words: &[String]) -> String {
    let name = words.first().and_then(|program| Path::new(program).file_name());
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn exited(child: &mut Child) -> Result<Option<ExitStatus>, String> {
    child.try_wait().map_err(|error| error.to_string())
}

/// Settings of a process that executes a program of the server.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Part {
    owner: Option<Owner>,
    /// Signal that the kernel sends when the keeper dies.
    signal: i32,
    /// A file of this user, and the text to append.
    conf: Option<(PathBuf, String)>,
}

/// A command that runs a program which the kernel ends when this process does, whatever ends it. Start it on a thread that
/// lives as long as the process.
///
/// # Errors
/// This program cannot be found.
pub fn ending_with_us(program: &Path) -> io::Result<Command> {
    let part = Part { owner: None, signal: Signal::TERM.as_raw(), conf: None };
    let mut command = again(BECOME)?;
    command.arg(serde_json::to_string(&part)?).arg(program);
    Ok(command)
}

/// Turns this process into a program of the server. `part` holds the keeper's settings; the program and its arguments
/// follow. Drops root privileges for good, asks the kernel to end the program with its keeper, and executes it. Returns
/// only on failure.
#[must_use]
pub fn become_server(part: &str, command: &[std::ffi::OsString]) -> String {
    let keeper = rustix::process::getppid();
    let part: Part = match serde_json::from_str(part) {
        Ok(part) => part,
        Err(error) => return error.to_string(),
    };
    let Some((program, arguments)) = command.split_first() else {
        return "no program to become".to_owned();
    };
    if let Some(owner) = &part.owner {
        let gid = rustix::process::Gid::from_raw(owner.gid);
        let given_up = set_thread_groups(&[gid])
            .and_then(|()| set_thread_gid(gid))
            .and_then(|()| set_thread_uid(rustix::process::Uid::from_raw(owner.uid)));
        if let Err(error) = given_up {
            return format!("becoming user {}: {error}", owner.name);
        }
    }
    // Must follow the change of user, which clears the setting.
    let asked = set_parent_process_death_signal(Signal::from_named_raw(part.signal));
    if let Err(error) = asked {
        return format!("asking the kernel to stop the server with its keeper: {error}");
    }
    // The keeper may have died before this setting took effect.
    if rustix::process::getppid() != keeper {
        return "the keeper is gone".to_owned();
    }
    if let Some((path, text)) = &part.conf {
        let added = File::options().append(true).open(path).and_then(|mut file| file.write_all(text.as_bytes()));
        if let Err(error) = added {
            return format!("{}: {error}", path.display());
        }
    }
    let error = Command::new(program).args(arguments).exec();
    format!("{}: {error}", Path::new(program).display())
}
