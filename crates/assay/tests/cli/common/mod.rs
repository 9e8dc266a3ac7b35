//! A directory of its own for each test, and the binary run in it.

pub(crate) mod neighbour;
pub(crate) mod netns;
pub(crate) mod relay;
pub(crate) mod spoiler;

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Settings that make a data set small enough for a test: about 100 MiB, half a second to load.
pub(crate) const SMALL: &[&str] =
    &["--set", "SCALE=2000", "--set", "REDO_LOG_MB=32", "--set", "UNDO_MB=8", "--set", "CACHE_MB=4"];

/// A run without a data set that ends after a few operations: what it measures is not the point.
pub(crate) const BRIEF: &[&str] = &["run", "--target", "null:", "-s", "2", "-t", "2", "--set", "WORK_LOOP=100"];
/// A run without a data set that is stopped from outside, and leaves the CPUs to others.
pub(crate) const LONG: &[&str] = &["run", "--target", "null:", "--time", "10m", "--warmup", "0", "--set", "RATE=100"];

/// A directory where the binary runs.
pub(crate) struct Place {
    dir: TempDir,
}

/// What a command left behind.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Place {
    pub(crate) fn new() -> Self {
        // Below the build directory: the system's temporary directory may be memory.
        let base = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let dir = tempfile::Builder::new().prefix("assay-test-").tempdir_in(base).expect("a directory for the test");
        Self { dir }
    }

    /// One with a small native data set.
    pub(crate) fn prepared(schemas: &str) -> Self {
        let place = Self::new();
        place.assay(&with(&["prepare", "-s", schemas], SMALL)).code(0);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).expect("written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The record of a run.
    pub(crate) fn record(&self, run: &str) -> serde_json::Value {
        json(&self.read(&format!("{run}/record.json")))
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        program(args, self.dir.path())
    }

    pub(crate) fn assay(&self, args: &[&str]) -> Ran {
        self.start(args).ended()
    }

    /// Starts the binary with both outputs caught.
    pub(crate) fn start(&self, args: &[&str]) -> Started {
        Started::new(self.command(args).stdout(Stdio::piped()))
    }

    /// Every file below, by path relative to the place.
    pub(crate) fn files(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(self.dir.path(), self.dir.path(), &mut found);
        found.sort();
        found
    }

    /// Whether the series of a run holds a snapshot with this mark.
    pub(crate) fn has_mark(&self, mark: &str) -> bool {
        let wanted = format!("\"mark\":\"{mark}\"");
        let mut series = self.files().into_iter().filter(|file| file.ends_with("series.jsonl"));
        series.any(|file| {
            let text = std::fs::read_to_string(self.path(&file)).unwrap_or_default();
            text.contains(&wanted)
        })
    }

    /// Whether the run in a directory measures: its window has begun.
    pub(crate) fn measures(&self, run: &str) -> bool {
        let series = std::fs::read_to_string(self.path(&format!("{run}/series.jsonl")));
        series.is_ok_and(|lines| lines.contains("\"mark\":\"begin\""))
    }

    /// The only run directory below `assay-runs`.
    pub(crate) fn only_run(&self) -> PathBuf {
        let runs: Vec<PathBuf> = std::fs::read_dir(self.path("assay-runs"))
            .expect("there are runs")
            .map(|entry| entry.expect("an entry").path())
            .filter(|path| path.is_dir())
            .collect();
        assert_eq!(runs.len(), 1, "{runs:?}");
        runs[0].clone()
    }
}

/// The binary in a directory, whatever variables of its own are set around the tests.
pub(crate) fn program(args: &[&str], dir: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_assay"));
    command.args(args).current_dir(dir);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("ASSAY_") {
            command.env_remove(name);
        }
    }
    command.env("COLUMNS", "100").env_remove("NATS_URL").stdin(Stdio::null());
    command
}

/// A server that a `temp-server` holds for as long as its standard input is open, and what it says of it; else why there
/// is none.
pub(crate) fn held(command: &mut Command) -> Result<(Started, serde_json::Value), String> {
    let mut started = Started::new(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let output = started.child().stdout.take().expect("piped");
    let mut line = String::new();
    let _ = BufReader::new(output).read_line(&mut line);
    if line.is_empty() { Err(started.ended().err) } else { Ok((started, json(&line))) }
}

/// Tells what is left out.
pub(crate) fn skipped(why: &str) {
    told(&format!("!! SKIPPED: {}", why.trim_end()));
}

/// Says a line past the harness, which keeps what a passing test prints to itself.
pub(crate) fn told(line: &str) {
    if let Ok(mut stderr) = std::fs::File::options().append(true).open("/proc/self/fd/2") {
        // Whoever closed it does not want to know.
        let _ = writeln!(stderr, "{line}");
    }
}

fn walk(base: &Path, dir: &Path, found: &mut Vec<String>) {
    for entry in std::fs::read_dir(dir).expect("readable") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            walk(base, &path, found);
        } else {
            let relative = path.strip_prefix(base).expect("below it");
            found.push(relative.display().to_string());
        }
    }
}

/// A process that does not outlive its test.
pub(crate) struct Started(Option<Child>);

impl Started {
    pub(crate) fn new(command: &mut Command) -> Self {
        let child = command.stderr(Stdio::piped()).spawn();
        Self::of(child.expect("the binary starts"))
    }

    pub(crate) fn of(child: Child) -> Self {
        Self(Some(child))
    }

    pub(crate) fn child(&mut self) -> &mut Child {
        self.0.as_mut().expect("it runs until it is waited for")
    }

    pub(crate) fn pid(&self) -> rustix::process::Pid {
        let child = self.0.as_ref().expect("it runs until it is waited for");
        rustix::process::Pid::from_child(child)
    }

    pub(crate) fn signal(&self, signal: rustix::process::Signal) {
        rustix::process::kill_process(self.pid(), signal).expect("the process is there");
    }

    /// Waits until it has computed for so long: a busy machine may leave it without a CPU for seconds.
    pub(crate) fn computed(self, time: Duration) -> Self {
        let stat = format!("/proc/{}/stat", self.pid().as_raw_nonzero());
        let user = || {
            let line = std::fs::read_to_string(&stat).expect("it is not waited for");
            let (_, after_name) = line.rsplit_once(')').expect("a name in parentheses");
            let hundredths = after_name.split_ascii_whitespace().nth(11).expect("fourteen fields");
            Duration::from_millis(10 * hundredths.parse::<u64>().expect("a number"))
        };
        self.until("CPU time", || user() >= time)
    }

    /// Asks a server to end, which it does well.
    pub(crate) fn stopped(self) -> Ran {
        self.signal(rustix::process::Signal::TERM);
        self.ended().code(0)
    }

    /// Waits until `seen`; one that ends before has its say and fails the test.
    pub(crate) fn until(mut self, what: &str, seen: impl Fn() -> bool) -> Self {
        let begun = Instant::now();
        while !seen() {
            let over = self.child().try_wait().expect("its state is known").is_some();
            if over || begun.elapsed() > LONGEST {
                let ran = self.ended();
                panic!("no {what} came; stdout:\n{}\nstderr:\n{}", ran.out, ran.err);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self
    }

    pub(crate) fn kill(mut self) {
        let child = self.child();
        child.kill().expect("killed");
        child.wait().expect("reaped");
    }

    /// Waits for its end and takes what it said; one that hangs is killed.
    pub(crate) fn ended(mut self) -> Ran {
        let pid = self.pid();
        let child = self.0.take().expect("it is waited for once");
        let (done, waited) = std::sync::mpsc::channel();
        let reader = std::thread::spawn(move || {
            let output = child.wait_with_output();
            let _ = done.send(());
            output
        });
        let hung = waited.recv_timeout(LONGEST).is_err();
        if hung {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
        }
        let output = reader.join().expect("the reader ends").expect("its output is read");
        let ran = ran(output);
        assert!(!hung, "it hung; stdout:\n{}\nstderr:\n{}", ran.out, ran.err);
        ran
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Waits until `seen`, whatever that takes: the time is only a net.
pub(crate) fn until(what: &str, mut seen: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !seen() {
        assert!(begun.elapsed() < LONGEST, "in vain waited for {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nothing a test starts takes this long, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(180);

fn ran(output: Output) -> Ran {
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("stdout is UTF-8"),
        err: String::from_utf8(output.stderr).expect("stderr is UTF-8"),
    }
}

impl Ran {
    /// Asserts the exit code, showing what was said otherwise.
    pub(crate) fn code(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        self
    }

    /// The figures of stress-ng's metrics row of a stressor: ops, real, user, system, and the two rates.
    pub(crate) fn metrics_row(&self, stressor: &str) -> Vec<f64> {
        let lines = self.out.lines();
        let line = lines
            .filter(|line| line.starts_with("assay: metrc:"))
            .nth(2)
            .unwrap_or_else(|| panic!("no row:\n{}", self.out));
        line.split_ascii_whitespace()
            .skip_while(|word| *word != stressor)
            .skip(1)
            .map(|word| word.parse().expect("a number"))
            .collect()
    }

    /// The lines of stderr that are errors.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.err.lines().filter(|line| line.starts_with("error: ")).collect()
    }
}

/// The arguments of two lists.
pub(crate) fn with<'a>(args: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
    args.iter().chain(more).copied().collect()
}

/// These settings as arguments.
pub(crate) fn set<'a>(settings: &[&'a str]) -> Vec<&'a str> {
    settings.iter().flat_map(|&one| ["--set", one]).collect()
}

/// JSON that a command printed or kept.
pub(crate) fn json(text: &str) -> serde_json::Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}
