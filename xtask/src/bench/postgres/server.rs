//! A private PostgreSQL server for the benches: initialised once, started with the settings of each case.

use super::super::process;
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Directory of the server's programs, when it is not to be looked for.
const PROGRAMS: &str = "ASSAY_PG_BIN";
/// Name of the socket's file; the server listens nowhere else.
const PORT: &str = "5432";
/// Both sides work in this database.
pub(super) const DATABASE: &str = "bench";
/// Longest path of a Unix socket, with its final zero.
const SOCKET_PATH_MAX: usize = 108;

/// Settings of every case: a server that a long run does not surprise with a checkpoint or a vacuum of its own.
/// Nor does the creation of log segments, which the first of two sides would pay for both.
const SETTINGS: [&str; 10] = [
    "listen_addresses=",
    "max_connections=200",
    "autovacuum=off",
    "checkpoint_timeout=1d",
    "max_wal_size=16GB",
    "min_wal_size=2GB",
    "wal_buffers=16MB",
    "log_min_messages=fatal",
    "track_io_timing=off",
    "jit=off",
];

/// A cluster of ours, whose server may be running.
pub(super) struct Cluster {
    programs: PathBuf,
    dir: PathBuf,
    running: Option<Child>,
}

impl Cluster {
    /// Initialises one in a new directory below `parent`; none if no server is installed.
    pub(super) fn create(parent: &Path) -> Result<Option<Self>> {
        let Some(programs) = find_programs()? else {
            return Ok(None);
        };
        let cluster = Self { programs, dir: parent.join("pg"), running: None };
        let socket = cluster.dir.join(format!(".s.PGSQL.{PORT}"));
        if socket.as_os_str().len() >= SOCKET_PATH_MAX {
            bail!("{} is too long for a socket: name a shorter --dir", socket.display());
        }
        std::fs::create_dir_all(&cluster.dir)?;
        if is_root()? {
            process::run(Command::new("chown").arg("postgres").arg(&cluster.dir), None)?;
        }
        let mut command = as_server_user(&cluster.programs.join("initdb"))?;
        command
            .args(["--username=postgres", "--auth=trust", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(cluster.data());
        process::run(&mut command, None).context("initdb (the server's user must reach --dir)")?;
        Ok(Some(cluster))
    }

    /// Whether a client program is there.
    pub(super) fn has(&self, program: &str) -> bool {
        let mut command = self.client(program);
        process::run(command.arg("--version"), None).is_ok()
    }

    /// `postgres (PostgreSQL) 15.14`.
    pub(super) fn version(&self) -> Result<String> {
        let mut command = Command::new(self.programs.join("postgres"));
        let (text, _) = process::run(command.arg("--version"), None)?;
        Ok(text.trim().to_owned())
    }

    /// Starts the server, stopped first if it runs.
    pub(super) fn start(&mut self, settings: &[&str]) -> Result<()> {
        self.stop();
        let mut command = as_server_user(&self.programs.join("postgres"))?;
        command.arg("-D").arg(self.data());
        for setting in SETTINGS.iter().chain(settings) {
            command.args(["-c", setting]);
        }
        command
            .arg("-k")
            .arg(&self.dir)
            .args(["-p", PORT])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        self.running = Some(command.spawn().with_context(|| format!("{command:?}"))?);
        let begin = Instant::now();
        while self.query_in("postgres", "select 1").is_err() {
            let ended = match &mut self.running {
                Some(child) => child.try_wait()?,
                None => None,
            };
            if ended.is_some() || begin.elapsed() > Duration::from_secs(60) {
                bail!("the server did not start with {settings:?}");
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let made =
            self.query_in("postgres", &format!("select count(*) from pg_database where datname = '{DATABASE}'"))?;
        if made == "0" {
            self.query_in("postgres", &format!("create database {DATABASE}"))?;
        }
        Ok(())
    }

    /// One statement's answer as psql prints it, bare.
    pub(super) fn query(&self, sql: &str) -> Result<String> {
        self.query_in(DATABASE, sql)
    }

    fn query_in(&self, database: &str, sql: &str) -> Result<String> {
        let mut command = self.client("psql");
        command.args(["-XAtq", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", sql]);
        let (text, _) = process::run(&mut command, None)?;
        Ok(text.trim().to_owned())
    }

    /// A client program that finds this server by its environment.
    pub(super) fn client(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let path = std::env::var("PATH").unwrap_or_default();
        command
            .env("PATH", format!("{}:{path}", self.programs.display()))
            .env("PGHOST", &self.dir)
            .env("PGPORT", PORT)
            .env("PGUSER", "postgres")
            .env("PGDATABASE", DATABASE);
        command
    }

    /// Blocks asked for since the server was made, as `pg_stat_database` counts them; and the CPU
    /// time of the server's processes that have ended.
    ///
    /// A session publishes its counts when its transaction ends and at most once a second, and is waited for by the
    /// server when it has ended: the reading waits until that has happened.
    pub(super) fn reading(&self) -> Result<Reading> {
        std::thread::sleep(Duration::from_millis(1200));
        let text =
            self.query(&format!("select blks_hit, blks_read from pg_stat_database where datname = '{DATABASE}'"))?;
        let mut numbers = text.split('|').map(str::parse::<f64>);
        let mut next = || -> Result<f64> { Ok(numbers.next().context("a column")??) };
        Ok(Reading { hits: next()?, reads: next()?, cpu_s: self.cpu_s()? })
    }

    /// User and system time of the children that the postmaster has waited for.
    fn cpu_s(&self) -> Result<f64> {
        let child = self.running.as_ref().context("the server does not run")?;
        let text = std::fs::read_to_string(format!("/proc/{}/stat", child.id()))?;
        // The name of the program may hold blanks; it ends with the last bracket.
        let (_, rest) = text.rsplit_once(')').context("/proc/PID/stat")?;
        let ticks = |index: usize| -> Result<f64> { Ok(rest.split_whitespace().nth(index).context("stat")?.parse()?) };
        // cutime and cstime, in ticks of 10 ms on every Linux we run on.
        Ok((ticks(13)? + ticks(14)?) / 100.0)
    }

    fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    fn stop(&mut self) {
        if let Some(mut child) = self.running.take() {
            // SIGINT is PostgreSQL's fast shutdown. The child is the postmaster itself.
            let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.stop();
        // The next bench makes its own; what cannot be removed is told by that one.
        let _ = std::fs::remove_dir_all(&self.dir);
    }
}

/// Cumulative counters.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    /// Blocks found in shared buffers.
    pub(super) hits: f64,
    /// Blocks asked of the operating system.
    pub(super) reads: f64,
    /// CPU time of ended processes, s.
    pub(super) cpu_s: f64,
}

impl Reading {
    /// The increase.
    pub(super) fn since(&self, before: &Self) -> Self {
        Self { hits: self.hits - before.hits, reads: self.reads - before.reads, cpu_s: self.cpu_s - before.cpu_s }
    }
}

/// The newest server there is.
fn find_programs() -> Result<Option<PathBuf>> {
    if let Some(dir) = std::env::var_os(PROGRAMS) {
        let dir = PathBuf::from(dir);
        if !dir.join("postgres").exists() {
            bail!("{PROGRAMS}={}: no `postgres` in it", dir.display());
        }
        return Ok(Some(dir));
    }
    let mut found: Vec<(u32, PathBuf)> = Vec::new();
    for entry in std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten() {
        let entry = entry?;
        let version = entry.file_name().to_string_lossy().parse().unwrap_or(0);
        let dir = entry.path().join("bin");
        if dir.join("postgres").exists() {
            found.push((version, dir));
        }
    }
    found.sort();
    Ok(found.pop().map(|(_, dir)| dir))
}

fn is_root() -> Result<bool> {
    let (id, _) = process::run(Command::new("id").arg("-u"), None)?;
    Ok(id.trim() == "0")
}

/// The server refuses to run as root; it ends at once when this program does, however that ends.
fn as_server_user(program: &Path) -> Result<Command> {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root()? {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.arg("--").arg(program);
    // The server's user need not reach the place we were called from.
    command.current_dir("/");
    Ok(command)
}
