//! The user's commands: each runs in its own process group, its output is kept, and waits for it are bounded.
//!
//! Each group begins with a guard, a small shell that waits at the other end of a pipe which only this process holds.
//! If this process is killed, the pipe ends, and the guard kills its group: the command and what it started. What a
//! command leaves running on purpose (a monitor that a later one ends) lives until the [`Guards`] are dropped in order,
//! and is then left running.

use assay_measure::locked::locked;
use assay_measure::timeline::CommandEnd;
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::io::{self, Write as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How often a command is looked at while it runs.
pub(crate) const LOOK: Duration = Duration::from_millis(10);
/// `exec` says this of a file that is no program, such as a script without a first line `#!...`.
const ENOEXEC: i32 = 8;

/// Ends in peace once it reads a line; where there is none to come, with everything in its group. What is sent to all
/// processes of a session or a service does not end it before.
const GUARD: &str = "trap '' HUP INT QUIT TERM; read -r _ || kill -KILL 0";

/// The guards of commands that have ended, for as long as what those started may live on.
#[derive(Clone, Debug, Default)]
pub struct Guards(Arc<Kept>);

#[derive(Debug, Default)]
struct Kept(Mutex<Vec<Guard>>);

impl Guards {
    fn keep(&self, guard: Guard) {
        let mut kept = locked(&self.0.0);
        kept.push(guard);
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        let kept = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        for guard in kept.drain(..) {
            guard.dismiss();
        }
    }
}

/// First process of a command's group.
#[derive(Debug)]
struct Guard {
    child: Child,
    pipe: ChildStdin,
}

impl Guard {
    fn start() -> io::Result<Self> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", GUARD, "assay-command-guard"])
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // A group of its own: it can be killed with everything in it, and a Ctrl-C meant for the run does not
            // reach it.
            .process_group(0)
            .spawn()?;
        let pipe = child.stdin.take().expect("its input is piped");
        Ok(Self { child, pipe })
    }

    fn group(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Lets it end and everything else in its group live.
    fn dismiss(mut self) {
        // One that somebody killed does not read it.
        let _ = self.pipe.write_all(b"\n");
        drop(self.pipe);
        let _ = self.child.wait();
    }

    /// Kills everything in its group.
    fn kill(mut self) {
        let _ = kill_process_group(self.group(), Signal::KILL);
        let _ = self.child.wait();
    }
}

/// What to start.
#[derive(Clone, Debug)]
pub enum What {
    /// A line for `sh -c`.
    Line(String),
    /// A file and its argument. One that the kernel cannot execute is given to `sh`, as SLOB did.
    File(PathBuf, String),
}

/// A command and its surroundings.
#[derive(Clone, Debug)]
pub struct Job {
    /// What is started.
    pub what: What,
    /// Where its standard output and error go.
    pub output: PathBuf,
    /// Added to its environment.
    pub environment: Vec<(String, String)>,
    /// Keeps the guard once the command has ended.
    pub guards: Guards,
}

/// A command that runs.
#[derive(Debug)]
pub struct Running {
    child: Child,
    begun: Instant,
    /// Until it has ended.
    guard: Option<Guard>,
    guards: Guards,
}

impl Job {
    /// Starts it; never through a shell unless it is a [`What::Line`].
    ///
    /// # Errors
    /// When the output file cannot be made or the program cannot be started.
    pub fn start(&self) -> io::Result<Running> {
        let begun = Instant::now();
        let guard = Guard::start()?;
        let group = guard.group();
        let started = match &self.what {
            What::Line(line) => self.spawn(Command::new("sh").arg("-c").arg(line), group),
            What::File(file, argument) => match self.spawn(Command::new(file).arg(argument), group) {
                Err(error) if error.raw_os_error() == Some(ENOEXEC) => {
                    self.spawn(Command::new("sh").arg(file).arg(argument), group)
                }
                spawned => spawned,
            },
        };
        match started {
            Ok(child) => Ok(Running { child, begun, guard: Some(guard), guards: self.guards.clone() }),
            Err(error) => {
                guard.kill();
                Err(error)
            }
        }
    }

    fn spawn(&self, command: &mut Command, group: Pid) -> io::Result<Child> {
        // In place of what is there: a link of that name is not followed.
        match std::fs::remove_file(&self.output) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let output = File::create_new(&self.output)?;
        let environment = self.environment.iter().map(|(name, value)| (name, value));
        command
            .envs(environment)
            .stdin(Stdio::null())
            .stdout(output.try_clone()?)
            .stderr(output)
            .process_group(group.as_raw_pid())
            .spawn()
    }

    /// Starts it and waits for its end; kills it after `timeout`, or when `give_up` says so.
    pub fn run(&self, timeout: Duration, give_up: &dyn Fn() -> bool) -> CommandEnd {
        let mut running = match self.start() {
            Ok(running) => running,
            Err(error) => return not_started(&error),
        };
        loop {
            if let Some(end) = running.ended() {
                return end;
            }
            if running.begun.elapsed() >= timeout {
                return running.kill(&format!("killed after {} s", timeout.as_secs_f64()));
            }
            if give_up() {
                return running.kill("killed because the run was stopped");
            }
            std::thread::sleep(LOOK);
        }
    }

    /// The last line it said that is not empty, shortened; for messages.
    #[must_use]
    pub fn last_line(&self) -> Option<String> {
        const CHARS_MAX: usize = 200;
        const LAST_BYTES: usize = 1 << 16;
        let output = File::open(&self.output).ok()?;
        let mut said = vec![0; LAST_BYTES];
        let before = output.metadata().ok()?.len().saturating_sub(said.len() as u64);
        let length = output.read_at(&mut said, before).ok()?;
        let said = String::from_utf8_lossy(&said[..length]);
        let line = said.lines().rev().find(|line| !line.trim().is_empty())?;
        Some(line.trim().chars().take(CHARS_MAX).collect())
    }
}

/// The end of a command that never began.
pub(crate) fn not_started(error: &io::Error) -> CommandEnd {
    CommandEnd { status: format!("could not be started: {error}"), good: false, took_ns: 0 }
}

impl Running {
    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<CommandEnd> {
        let end = match self.child.try_wait() {
            Ok(None) => return None,
            Ok(Some(status)) => self.end(text_of(status), status.success()),
            Err(error) => self.end(format!("lost: {error}"), false),
        };
        if let Some(guard) = self.guard.take() {
            self.guards.keep(guard);
        }
        Some(end)
    }

    /// Kills it and its children; `status` says why.
    pub fn kill(mut self, status: &str) -> CommandEnd {
        if let Some(guard) = self.guard.take() {
            guard.kill();
        }
        let _ = self.child.wait();
        self.end(status.to_owned(), false)
    }

    fn end(&self, status: String, good: bool) -> CommandEnd {
        CommandEnd { status, good, took_ns: self.begun.elapsed().as_nanos() as u64 }
    }
}

fn text_of(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exit {code}"),
        (None, Some(signal)) => format!("killed by signal {signal}"),
        (None, None) => "ended".to_owned(),
    }
}

/// The file's path from the root: a bare name means the current directory, not PATH.
///
/// # Errors
/// When there is no current directory.
pub fn from_root(path: &Path) -> io::Result<PathBuf> {
    std::path::absolute(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    const LONG: Duration = Duration::from_secs(60);

    fn line(dir: &tempfile::TempDir, line: &str) -> Job {
        Job {
            what: What::Line(line.to_owned()),
            output: dir.path().join("out"),
            environment: vec![("ASSAY_TEST".to_owned(), "seen".to_owned())],
            guards: Guards::default(),
        }
    }

    #[test]
    fn a_command_leaves_its_output_and_its_exit_code() {
        let dir = tempfile::tempdir().expect("a directory");
        let job = line(&dir, "echo $ASSAY_TEST; echo err >&2; exit 3");
        let end = job.run(LONG, &|| false);
        assert_eq!((end.status.as_str(), end.good), ("exit 3", false));
        let said = std::fs::read_to_string(dir.path().join("out")).expect("kept");
        assert_eq!(said, "seen\nerr\n");
        assert_eq!(job.last_line().as_deref(), Some("err"));
        // However much it said before, nobody reads all of it: this is more than any memory has.
        let long = File::options().write(true).open(&job.output).expect("kept");
        long.write_all_at(b"\nlast\n", 1 << 40).expect("a file with a hole");
        assert_eq!(job.last_line().as_deref(), Some("last"));
    }

    #[test]
    fn a_command_that_takes_too_long_is_killed_with_its_children() {
        let dir = tempfile::tempdir().expect("a directory");
        let job = line(&dir, "sleep 1000 & echo $!; wait");
        let end = job.run(Duration::from_millis(1500), &|| false);
        assert_eq!(end.status, "killed after 1.5 s");
        let child = job.last_line().expect("it named its child");
        let gone = || match std::fs::read_to_string(format!("/proc/{child}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        // Whoever has lost its parent is reaped in its own time.
        let begun = std::time::Instant::now();
        while !gone() {
            assert!(begun.elapsed() < LONG, "process {child} lives on");
            std::thread::sleep(LOOK);
        }
    }

    #[test]
    fn what_a_command_leaves_running_outlives_it_and_the_guards() {
        let dir = tempfile::tempdir().expect("a directory");
        let job = line(&dir, "sleep 1000 >&- 2>&- & echo $!");
        assert_eq!(job.run(LONG, &|| false).status, "exit 0");
        let child = job.last_line().expect("it named its child");
        drop(job);
        let stat = std::fs::read_to_string(format!("/proc/{child}/stat")).expect("it lives");
        assert!(!stat.contains(") Z "), "{stat}");
        let pid = Pid::from_raw(child.parse().expect("a number")).expect("a process");
        rustix::process::kill_process(pid, Signal::KILL).expect("ours");
    }

    #[test]
    fn a_script_needs_no_first_line_and_a_missing_one_is_told() {
        let dir = tempfile::tempdir().expect("a directory");
        let script = dir.path().join("hook");
        std::fs::write(&script, "echo called with $1\n").expect("written");
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("set");
        let mut job = Job {
            what: What::File(script, "pre".to_owned()),
            output: dir.path().join("out"),
            environment: Vec::new(),
            guards: Guards::default(),
        };
        assert_eq!(job.run(LONG, &|| false).status, "exit 0");
        assert_eq!(job.last_line().as_deref(), Some("called with pre"));
        job.what = What::File(dir.path().join("none"), "pre".to_owned());
        let end = job.run(LONG, &|| false);
        assert!(end.status.starts_with("could not be started: "), "{end:?}");
    }

    #[test]
    fn a_stopped_run_does_not_wait() {
        let dir = tempfile::tempdir().expect("a directory");
        let end = line(&dir, "sleep 1000").run(LONG, &|| true);
        assert_eq!(end.status, "killed because the run was stopped");
    }
}
