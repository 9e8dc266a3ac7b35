//! The process that keeps a throw-away server: it creates the server, waits, and removes it.
//!
//! It is this program once more, in a process group of its own, and holds the reading end of a pipe whose other end
//! only the program that asked for the server has. However that one ends, the pipe ends with it: then the server is
//! stopped and its directory removed. The server's processes in turn are asked to shut down by the kernel if the
//! keeper is killed ([`become_server`]); then only the directory stays, and the next start names it ([`Den`]).

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

/// First argument of this program where it is to be a keeper.
pub const KEEP: &str = "server-keep";
/// First argument of this program where it is to become a program of the server.
pub const BECOME: &str = "server-become";
/// Between two looks at a process.
const TICK: Duration = Duration::from_millis(10);
/// A server that is up is looked at less often.
const WATCH: Duration = Duration::from_millis(200);
/// Longest start: crash-free and empty, so this is generous.
const START: Duration = Duration::from_secs(120);
/// What a keeper is asked for.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Request {
    /// To be made, for us and the server's user alone, and removed at the end.
    pub(crate) directory: PathBuf,
    /// Whose it is to be, if not ours.
    pub(crate) owner: Option<Owner>,
    /// Makes its data: a program and its arguments.
    pub(crate) make: Vec<String>,
    /// Is the server: a program and its arguments.
    pub(crate) serve: Vec<String>,
    /// A file in its data and what is added to it before the server starts.
    pub(crate) conf: Option<(String, String)>,
    /// Variables with names that begin so are about other servers.
    pub(crate) foreign_variables: Vec<String>,
    pub(crate) ready: Ready,
    /// How it is told to end, the gentlest way first. The kernel tells it the first way if we are killed.
    pub(crate) shutdown: Vec<Shutdown>,
    /// Words of the lines of its log that say why it gave up; the first goes without saying.
    pub(crate) complaints: Vec<String>,
}

/// A way to end a server.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct Shutdown {
    /// For people.
    pub(crate) name: String,
    pub(crate) signal: i32,
    /// Longest wait before the next way.
    pub(crate) patience_s: u64,
}

/// What a keeper says, a line of JSON each.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Said {
    /// Its data is made.
    Made {
        /// How long that took.
        made_s: f64,
    },
    /// The server takes connections.
    Ready {
        /// From its start.
        start_s: f64,
        /// Its first process.
        pid: u32,
    },
    /// The server did not start, or it ended by itself; why.
    Failed {
        /// For people.
        why: String,
    },
    /// Nothing is left.
    Gone {
        /// For the shutdown and the removal.
        stop_s: f64,
        /// What was needed: a way of shutdown, `killed`, `ended by itself`, `not started`.
        how: String,
    },
    /// Something is left.
    Left {
        /// What, and why.
        why: String,
    },
}

/// A command that runs this program once more as `role`.
pub(super) fn again(role: &str) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    if cfg!(test) {
        // Within this crate's tests this program is their harness: one of its tests plays the part.
        command.args(["--exact", "temp::tests::plays_its_part", "--nocapture"]).env("ASSAY_PLAYS", role);
    } else {
        command.arg(role);
    }
    Ok(command)
}

/// Is a keeper: takes a request from standard input, tells on standard output, and ends when the former ends.
///
/// Call it from the main thread, with INT, TERM and HUP not ending the process: whoever asked for the server decides.
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
        // A byte asks for an orderly end; the end of the pipe alone means that nobody waits for one.
        let asked = matches!(input.read(&mut [0]), Ok(1));
        let _ = sender.send(asked);
    });
    Keeper { request, end, asked: None, server: None }.keep();
}

fn tell(said: &Said) {
    if let Ok(line) = serde_json::to_string(said) {
        // A line of its own whatever else is on it; nobody may be left to read it.
        let _ = io::stdout().write_all(format!("\n{line}\n").as_bytes());
        let _ = io::stdout().flush();
    }
}

struct Keeper {
    request: Request,
    end: Receiver<bool>,
    /// The end has come: whether a message requested it.
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
            // The directory holds the log: it stays until whoever asked has looked.
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

    /// Waits a little for the end; true once it has come.
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

    /// Makes the data, starts the server and waits for the end; an error if either does not come up, or goes.
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

    /// Makes the server's data; false if the end came first.
    fn make_data(&mut self, den: &Den) -> Result<bool, String> {
        let mut command = self.command(den, &self.request.make, Signal::KILL.as_raw(), None)?;
        let called = called(&self.request.make);
        let mut child = command.spawn().map_err(|e| format!("{called}: {e}"))?;
        let status = loop {
            if let Some(status) = exited(&mut child)? {
                break status;
            }
            if self.pause(TICK) {
                // Its own processes end when their pipes to it do.
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

    /// A program of the server, as its user, with its words in the log; ended by `signal` if we are killed. Before it
    /// begins, its user adds `conf` to that file.
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

    /// Stops the server: gently if somebody waits for it, else at once; killed if it does not listen.
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
            // It is not reaped yet, so the number is still its own.
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

/// The program of a command, without its directory.
fn called(words: &[String]) -> String {
    let name = words.first().and_then(|program| Path::new(program).file_name());
    name.unwrap_or_default().to_string_lossy().into_owned()
}

fn exited(child: &mut Child) -> Result<Option<ExitStatus>, String> {
    child.try_wait().map_err(|error| error.to_string())
}

/// As what a program of the server runs.
#[derive(Clone, Debug, Deserialize, Serialize)]
struct Part {
    owner: Option<Owner>,
    /// What the kernel sends it when the keeper dies.
    signal: i32,
    /// A file of this user's, and what to add to it.
    conf: Option<(PathBuf, String)>,
}

/// Becomes a program of the server: `part` as the keeper put it, then the program and its arguments. Gives up the
/// rights of root for good, asks the kernel to end the program with its keeper, and executes it. Returns only if
/// that fails.
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
    // Set after the change of user, which clears it.
    let asked = set_parent_process_death_signal(Signal::from_named_raw(part.signal));
    if let Err(error) = asked {
        return format!("asking the kernel to stop the server with its keeper: {error}");
    }
    // It may have died before the kernel was asked.
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
