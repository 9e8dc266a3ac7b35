//! Hosts that are borrowed through ssh: this program is copied there, an agent started, and NATS carried in the same connection.
//!
//! One connection a host. Its standard input has the settings (a token among them, which no list of processes shows), then the
//! program, and stays open: its end is the agent's. The agent ends too when the server cannot be reached for long, and the shell
//! that started it removes their directory. So nothing stays, whoever of the two sides is gone.

use super::FleetError;
use assay_run::stop::Stop;
use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant};

/// Until a host lets us in, and until its agent waits once the program is there.
const STEP: Duration = Duration::from_secs(20);
/// What a slow connection carries, bytes/s: how long the copy may take.
const SLOW: u64 = 128 << 10;
/// How long hosts may take to stop what runs and to remove what is theirs.
const LEAVING: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);
/// How ssh tells the port that it was given on the host.
const PORT: &str = "Allocated port ";
/// Lines of ssh that are kept of a host, to say why it failed.
const KEPT_LINES: usize = 4;

/// What a host's shell does. No quotation mark of the first kind and no line end is in it: it passes through a shell of any sort.
const SCRIPT: &str = "read -r base && read -r name && read -r fleet && read -r size && read -r NATS_URL || exit 1; export NATS_URL; \
     umask 077; d=$(mktemp -d \"${base:-${TMPDIR:-/tmp}}/assay-fleet.XXXXXX\") || exit 1; \
     trap \"cd /; rm -rf \\\"$d\\\" 2>/dev/null || { sleep 1; rm -rf \\\"$d\\\"; }\" EXIT; trap \"exit 1\" HUP INT TERM; echo \"dir $d\"; \
     cd \"$d\" && head -c \"$size\" >assay && test \"$(wc -c <assay)\" -eq \"$size\" && chmod 700 assay || exit 1; echo copied; \
     ./assay --quiet fleet agent --name \"$name\" --fleet \"$fleet\" --address \"${name%%:*}\" --borrowed";

/// What is asked of the hosts.
#[derive(Debug)]
pub struct Wanted<'a> {
    /// The program ssh with its options.
    pub ssh: &'a str,
    /// The hosts, as ssh knows them.
    pub hosts: &'a [String],
    /// Where a host has its directory made; empty: where it has temporary ones.
    pub dir: &'a str,
    /// The fleet.
    pub fleet: &'a str,
    /// Address and port of the server here.
    pub listen: &'a str,
    /// User and password of an agent, `user:password`.
    pub login: &'a str,
}

/// How far a host is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Connecting,
    Copying,
    Starting,
    Ready,
    Failed,
}

enum Heard {
    Port(u16),
    Fed(ChildStdin),
    Out(String),
    Told(String),
}

struct Host {
    name: String,
    child: Child,
    /// Its end is the agent's.
    input: Option<ChildStdin>,
    stage: Stage,
    since: Instant,
    dir: String,
    told: VecDeque<String>,
}

/// Hosts with an agent each, until it is dropped.
pub struct Borrowed {
    hosts: Vec<Host>,
    heard: Receiver<(usize, Heard)>,
    sender: Sender<(usize, Heard)>,
    /// The program that is copied, bytes.
    size: u64,
}

/// The name of a host in reports.
#[must_use]
pub fn name(host: &str) -> &str {
    let host = host.strip_prefix("ssh://").unwrap_or(host);
    host.rsplit_once('@').map_or(host, |(_, host)| host)
}

impl Borrowed {
    /// Starts an agent on each.
    ///
    /// # Errors
    /// A host cannot be used; none has an agent then.
    pub fn start(wanted: &Wanted<'_>, stop: &Stop, say: &mut dyn FnMut(&str)) -> Result<Self, FleetError> {
        let size = program().and_then(|file| file.metadata()).map_err(|error| unusable("this program", &error))?.len();
        let (sender, heard) = channel();
        let mut all = Self { hosts: Vec::new(), heard, sender, size };
        for host in wanted.hosts {
            all.connect(wanted, host)?;
        }
        say(&format!("copying assay ({} MB) to {} hosts", size / 1_000_000, wanted.hosts.len()));
        while all.hosts.iter().any(|host| !matches!(host.stage, Stage::Ready | Stage::Failed)) {
            if stop.requested() {
                return Err(FleetError::Interrupted);
            }
            all.hear(Some(wanted));
            all.judge();
        }
        let failed: Vec<String> = (all.hosts.iter().filter(|host| host.stage == Stage::Failed))
            .map(|host| format!("{}: {}", host.name, host.why()))
            .collect();
        if failed.is_empty() { Ok(all) } else { Err(FleetError::Unusable(failed.join("; "))) }
    }

    fn connect(&mut self, wanted: &Wanted<'_>, host: &str) -> Result<(), FleetError> {
        let mut words = wanted.ssh.split_whitespace();
        let program = words.next().unwrap_or("ssh");
        let mut command = Command::new(program);
        let options = [
            "BatchMode=yes",
            "ConnectTimeout=10",
            "ControlPath=none",
            "ExitOnForwardFailure=yes",
            "LogLevel=INFO",
            "ServerAliveInterval=5",
            "ServerAliveCountMax=3",
        ];
        command.args(words).arg("-T").args(options.iter().flat_map(|option| ["-o", option]));
        command.arg("-R").arg(format!("127.0.0.1:0:{}", wanted.listen)).args(["--", host]);
        command.arg(format!("sh -c '{SCRIPT}'"));
        // Ctrl-C at the terminal is for this process, which ends them when they have given what they measured.
        command.process_group(0).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(|error| unusable(program, &error))?;
        let number = self.hosts.len();
        self.listen(number, child.stdout.take(), Heard::Out);
        self.listen(number, child.stderr.take(), |line| {
            let port = line.strip_prefix(PORT).and_then(|rest| rest.split(' ').next()?.parse().ok());
            port.map_or(Heard::Told(line), Heard::Port)
        });
        let input = child.stdin.take();
        let (name, since) = (name(host).to_owned(), Instant::now());
        let host =
            Host { name, child, input, stage: Stage::Connecting, since, dir: String::new(), told: VecDeque::new() };
        self.hosts.push(host);
        Ok(())
    }

    fn listen(&self, number: usize, from: Option<impl Read + Send + 'static>, of: fn(String) -> Heard) {
        let sender = self.sender.clone();
        std::thread::spawn(move || {
            let lines = from.into_iter().flat_map(|from| BufReader::new(from).lines().map_while(Result::ok));
            // Nobody hears it any more: the host is on its way out.
            lines.for_each(|line| drop(sender.send((number, of(line)))));
        });
    }

    /// Hears what there is to hear for a moment; feeds those that have a port, where `wanted` says with what.
    fn hear(&mut self, wanted: Option<&Wanted<'_>>) {
        let begun = Instant::now();
        while let Ok((number, heard)) = self.heard.recv_timeout(LOOK.saturating_sub(begun.elapsed())) {
            let host = &mut self.hosts[number];
            match heard {
                Heard::Port(port) => {
                    let (Some(wanted), Some(input)) = (wanted, host.input.take()) else { continue };
                    host.enter(Stage::Copying);
                    let Wanted { dir, fleet, login, .. } = wanted;
                    let size = self.size;
                    let header = format!("{dir}\n{}\n{fleet}\n{size}\nnats://{login}@127.0.0.1:{port}\n", host.name);
                    let sender = self.sender.clone();
                    // A host that takes nothing keeps nobody but this thread, and that only until its ssh is ended.
                    std::thread::spawn(move || {
                        if let Ok(input) = feed(input, &header) {
                            let _ = sender.send((number, Heard::Fed(input)));
                        }
                    });
                }
                Heard::Fed(input) => host.input = Some(input),
                Heard::Out(line) if line == "copied" => host.enter(Stage::Starting),
                Heard::Out(line) if line == READY => host.enter(Stage::Ready),
                Heard::Out(line) => match line.strip_prefix("dir ") {
                    Some(dir) => dir.clone_into(&mut host.dir),
                    None => host.keep(line),
                },
                Heard::Told(line) => host.keep(line),
            }
        }
    }

    /// Hosts that failed, or that take too long.
    fn judge(&mut self) {
        let copy = STEP + Duration::from_secs(self.size / SLOW);
        let mut ended = Vec::new();
        for (number, host) in self.hosts.iter_mut().enumerate() {
            let (what, patience) = match host.stage {
                Stage::Connecting => ("it did not let us in", STEP),
                Stage::Copying => ("the copy of assay did not arrive", copy),
                Stage::Starting => ("its agent did not reach the server through ssh", STEP),
                Stage::Ready | Stage::Failed => continue,
            };
            if !matches!(host.child.try_wait(), Ok(None)) {
                ended.push(number);
            } else if host.since.elapsed() > patience {
                host.keep(format!("{what} within {} s", patience.as_secs()));
                host.stage = Stage::Failed;
            }
        }
        if !ended.is_empty() {
            // What it said last is on its way.
            self.hear(None);
        }
        ended.into_iter().for_each(|number| self.hosts[number].stage = Stage::Failed);
    }

    /// Ends the agents and removes what is theirs; what remains to be said of that.
    fn end(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        self.hear(None);
        for host in self.hosts.iter_mut().filter(|host| host.stage == Stage::Ready) {
            if !matches!(host.child.try_wait(), Ok(None)) {
                said.push(format!("warning: {}: ssh ended before the run did: {}", host.name, host.why()));
            }
        }
        for host in &mut self.hosts {
            host.input = None;
            if !matches!(host.stage, Stage::Starting | Stage::Ready) {
                // Its shell has begun nothing yet, or hears that the copy ends early.
                let _ = host.child.kill();
            }
        }
        let begun = Instant::now();
        let mut runs = true;
        while runs && begun.elapsed() < LEAVING {
            self.hear(None);
            runs = self.hosts.iter_mut().any(|host| matches!(host.child.try_wait(), Ok(None)));
        }
        for host in &mut self.hosts {
            if matches!(host.child.try_wait(), Ok(None)) {
                let _ = host.child.kill();
                let _ = host.child.wait();
                let dir = if host.dir.is_empty() { "a directory" } else { &host.dir };
                said.push(format!(
                    "warning: {}: ssh did not end within {} s and was killed; the agent there ends by itself and removes {dir}",
                    host.name,
                    LEAVING.as_secs()
                ));
            }
        }
        self.hosts.clear();
        said
    }

    /// Ends the agents, removes what is theirs, and says what did not go well in that.
    pub fn give_back(mut self, say: &mut dyn FnMut(&str)) {
        self.end().iter().for_each(|line| say(line));
    }
}

impl Drop for Borrowed {
    fn drop(&mut self) {
        self.end();
    }
}

/// What an agent says on its standard output when it waits.
pub const READY: &str = "ready";

impl Host {
    fn enter(&mut self, stage: Stage) {
        self.stage = stage;
        self.since = Instant::now();
    }

    fn keep(&mut self, line: String) {
        if self.told.len() == KEPT_LINES {
            self.told.pop_front();
        }
        self.told.push_back(line);
    }

    /// What was said last, which is what it failed of.
    fn why(&self) -> &str {
        let line = self.told.iter().rev().find(|line| !line.trim().is_empty());
        line.map_or("ssh said nothing", |line| line.trim().trim_start_matches("error: "))
    }
}

/// This program, whatever became of its file.
fn program() -> io::Result<File> {
    File::open("/proc/self/exe")
}

fn feed(mut input: ChildStdin, header: &str) -> io::Result<ChildStdin> {
    input.write_all(header.as_bytes())?;
    io::copy(&mut program()?, &mut input)?;
    input.flush()?;
    Ok(input)
}

fn unusable(what: &str, error: &io::Error) -> FleetError {
    FleetError::Unusable(format!("{what}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_named_without_what_only_ssh_needs() {
        assert_eq!(["a", "root@b", "ssh://u@c:2222"].map(name), ["a", "b", "c:2222"]);
    }

    #[test]
    fn the_script_passes_through_any_shell() {
        assert!(!SCRIPT.contains(['\'', '\n', '!']), "{SCRIPT}");
    }
}
