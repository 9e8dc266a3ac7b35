//! PostgreSQL servers: one that the tests of this process share, each in a database of its own, and such as a test may
//! stop, kill and start again, whose postmaster is a child of the test.

use crate::common::{Started, held, program, skipped};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The socket's number: nothing listens on the network.
const PORT: &str = "5432";

/// A database on a server, whose superuser is `postgres`.
pub(crate) struct Server {
    programs: PathBuf,
    /// Where its socket is.
    place: PathBuf,
    database: String,
    /// None where it is shared.
    own: Option<Own>,
}

/// What only a server of one's own is asked for; gone with the test.
struct Own {
    _dir: TempDir,
    settings: Vec<String>,
    child: Option<Child>,
}

/// How a server ends.
#[derive(Clone, Copy, Debug)]
pub(crate) enum End {
    /// Sessions are told good-bye.
    Fast,
    /// They are told that it crashes.
    Immediate,
    /// Nobody is told anything.
    Killed,
}

impl Server {
    /// A new database of this name on the server of all tests that leave it as it is; `None`, said aloud, where none is
    /// installed.
    pub(crate) fn shared(database: &str) -> Option<Self> {
        // Never dropped: when this process ends in any way, its end of a pipe does, and the server goes.
        static SHARED: OnceLock<(Started, PathBuf)> = OnceLock::new();
        let programs = programs_or_skipped()?;
        let (_, place) = SHARED.get_or_init(|| {
            let settings = ["fsync=off", "autovacuum=off", "max_connections=200"];
            let settings = settings.iter().flat_map(|&one| ["--pg-set", one]);
            let words: Vec<&str> = std::iter::once("temp-server").chain(settings).collect();
            let started = held(program(&words, Path::new("/")).env("ASSAY_PG_BIN", &programs));
            let (held, said) = started.unwrap_or_else(|errors| panic!("{errors}"));
            let directory = said["server_directory"].as_str().expect("a directory");
            (held, Path::new(directory).join("data"))
        });
        let mut server = Self { programs, place: place.clone(), database: "postgres".to_owned(), own: None };
        server.query(&[&format!("create database {database}")]);
        server.database = database.to_owned();
        Some(server)
    }

    /// One of one's own with these settings; `None`, said aloud, where none is installed.
    pub(crate) fn start(settings: &[&str]) -> Option<Self> {
        let server = Self::empty(settings)?;
        let version = server.program("postgres").arg("--version").output().expect("the server's program").stdout;
        let made = String::from_utf8(version).expect("text");
        let made = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("made by {}", made.trim()));
        if made.exists() {
            copy(&made, &server.data());
            return Some(server.started());
        }
        let mut initdb = server.program("initdb");
        initdb
            .args(["--username=postgres", "--auth=trust", "--no-sync"])
            .args(["--encoding=UTF8", "--locale=C", "--pgdata"])
            .arg(server.data());
        run(&mut initdb);
        // For all that come later; whoever does the same at this time may be first.
        let new = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a directory");
        copy(&server.data(), &new.path().join("data"));
        let _ = std::fs::rename(new.path().join("data"), made);
        Some(server.started())
    }

    /// A hot standby of another, which is stopped for the copy: unpacked servers come without `pg_basebackup`.
    pub(crate) fn standby_of(primary: &mut Self) -> Self {
        let standby = Self::empty(&["hot_standby=on"]).expect("the primary's programs are there");
        primary.stop(End::Fast);
        copy(&primary.data(), &standby.data());
        primary.start_again();
        std::fs::write(standby.data().join("standby.signal"), "").expect("written");
        let conf = standby.data().join("postgresql.auto.conf");
        let follows = format!("primary_conninfo = 'host={} port={PORT} user=postgres'\n", primary.place.display());
        std::fs::write(conf, follows).expect("written");
        standby.started()
    }

    fn empty(settings: &[&str]) -> Option<Self> {
        let programs = programs_or_skipped()?;
        // Short, for the socket's sake, and where the server's user can reach it.
        let dir = tempfile::Builder::new().prefix("assay-test-").tempdir().expect("a directory for a server");
        if is_root() {
            run(Command::new("chown").arg("postgres").arg(dir.path()));
        }
        let place = dir.path().to_path_buf();
        let settings = settings.iter().map(|&one| one.to_owned()).collect();
        Some(Self {
            programs,
            place,
            database: "postgres".to_owned(),
            own: Some(Own { _dir: dir, settings, child: None }),
        })
    }

    fn started(mut self) -> Self {
        self.start_again();
        self
    }

    /// Starts what was stopped.
    pub(crate) fn start_again(&mut self) {
        let begun = Instant::now();
        loop {
            let mut postgres = self.program("postgres");
            postgres.arg("-D").arg(self.data());
            let usual = ["listen_addresses=", "fsync=off", "autovacuum=off"];
            let usual = usual.iter().map(|&one| one.to_owned());
            for setting in usual.chain(self.own().settings.clone()) {
                postgres.args(["-c", &setting]);
            }
            postgres.arg("-k").arg(&self.place).args(["-p", PORT]);
            let log = std::fs::File::options().create(true).append(true).open(self.place.join("log")).expect("a log");
            postgres.stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
            let mut child = postgres.spawn().expect("the server's program");
            while child.try_wait().expect("a child").is_none() {
                if self.answers() {
                    self.own().child = Some(child);
                    return;
                }
                assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
                std::thread::sleep(Duration::from_millis(20));
            }
            // The processes of one that was killed still hold its shared memory for a moment.
            assert!(begun.elapsed() < Duration::from_secs(60), "{}", self.log());
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// Ends it, and waits until its processes are gone.
    pub(crate) fn stop(&mut self, how: End) {
        let Some(mut child) = self.own.as_mut().and_then(|own| own.child.take()) else {
            return;
        };
        let signal = match how {
            End::Fast => rustix::process::Signal::INT,
            End::Immediate => rustix::process::Signal::QUIT,
            End::Killed => rustix::process::Signal::KILL,
        };
        let pid = rustix::process::Pid::from_child(&child);
        rustix::process::kill_process(pid, signal).expect("it runs");
        // One that a failed test left frozen hears of it.
        rustix::process::kill_process(pid, rustix::process::Signal::CONT).expect("it runs");
        child.wait().expect("a child");
    }

    /// Stops all of its processes where they are, as a host that hangs would.
    pub(crate) fn freeze(&self) {
        // The first one comes first: it would replace the others.
        for pid in self.processes() {
            signal(pid, rustix::process::Signal::STOP);
        }
    }

    /// Lets them go on.
    pub(crate) fn thaw(&self) {
        for pid in self.processes() {
            signal(pid, rustix::process::Signal::CONT);
        }
    }

    /// Its first process and the children of that.
    fn processes(&self) -> Vec<i32> {
        let Some(child) = self.own.as_ref().and_then(|own| own.child.as_ref()) else {
            return Vec::new();
        };
        let first = rustix::process::Pid::from_child(child).as_raw_nonzero().get();
        let of = format!("/proc/{first}/task/{first}/children");
        let children = std::fs::read_to_string(of).unwrap_or_default();
        let children = children.split_whitespace().filter_map(|pid| pid.parse().ok());
        std::iter::once(first).chain(children).collect()
    }

    fn own(&mut self) -> &mut Own {
        self.own.as_mut().expect("a server of one's own")
    }

    /// The URL of its database.
    pub(crate) fn url(&self) -> String {
        self.url_of("postgres")
    }

    /// The same as another role.
    pub(crate) fn url_of(&self, role: &str) -> String {
        format!("postgres://{role}@/{}?host={}", self.database, self.place.display())
    }

    /// Its socket.
    pub(crate) fn socket(&self) -> PathBuf {
        self.place.join(format!(".s.PGSQL.{PORT}"))
    }

    /// Its data directory.
    pub(crate) fn data(&self) -> PathBuf {
        self.place.join("data")
    }

    /// What it said.
    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.place.join("log")).unwrap_or_default()
    }

    /// Statements, each in a transaction of its own; what they print, bare.
    pub(crate) fn query(&self, sql: &[&str]) -> String {
        let output = self.psql(sql).output().expect("psql");
        assert!(output.status.success(), "{sql:?}: {output:?}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    /// psql with these statements, not started yet.
    pub(crate) fn psql(&self, sql: &[&str]) -> Command {
        self.psql_of("postgres", sql)
    }

    /// The same as another role.
    pub(crate) fn psql_of(&self, role: &str, sql: &[&str]) -> Command {
        let mut psql = self.program_or_known("psql");
        psql.args(["-XAtq", "-U", role, "-p", PORT, "-d", &self.database, "-h"]);
        psql.arg(&self.place);
        for one in sql {
            psql.args(["-c", one]);
        }
        psql.stdin(Stdio::null());
        psql
    }

    /// Sessions of the program under test in this database.
    pub(crate) fn sessions(&self) -> u32 {
        self.query(&[&format!("select count(*) {OURS}")]).parse().expect("a number")
    }

    /// Sessions of the program under test are gone a moment after it is.
    pub(crate) fn keeps_no_session(&self) {
        let begun = Instant::now();
        while self.sessions() > 0 {
            let left = self.query(&["select application_name, state, query from pg_stat_activity"]);
            assert!(begun.elapsed() < Duration::from_secs(10), "still: {left}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Whether it takes sessions: a starting server closes them again.
    fn answers(&self) -> bool {
        if UnixStream::connect(self.socket()).is_err() {
            return false;
        }
        let mut psql = self.psql(&["select 1"]);
        psql.stdout(Stdio::null()).stderr(Stdio::null());
        psql.status().is_ok_and(|status| status.success())
    }

    fn program(&self, name: &str) -> Command {
        as_server_user(&self.programs.join(name))
    }

    /// Unpacked servers come without clients.
    fn program_or_known(&self, name: &str) -> Command {
        let own = self.programs.join(name);
        Command::new(if own.is_file() { own } else { name.into() })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop(End::Immediate);
    }
}

/// A stranger's session that holds what its statement took, for so many seconds or until it is ended.
pub(crate) struct Stranger<'a> {
    server: &'a Server,
    psql: Child,
}

/// Those in this database that wait for nothing but their end.
pub(crate) const STRANGERS: &str =
    "from pg_stat_activity where datname = current_database() and wait_event = 'PgSleep'";

/// Those in this database of the program under test.
pub(crate) const OURS: &str =
    "from pg_stat_activity where datname = current_database() and application_name like 'assay%'";

impl<'a> Stranger<'a> {
    pub(crate) fn holding(server: &'a Server, sql: &str, seconds: u32) -> Self {
        let held = format!("set statement_timeout = 0; begin; {sql}; select pg_sleep({seconds})");
        let mut psql = server.psql(&[&held]);
        psql.stdout(Stdio::null()).stderr(Stdio::null());
        let psql = psql.spawn().expect("psql");
        let stranger = Self { server, psql };
        let begun = Instant::now();
        while server.query(&[&format!("select count(*) {STRANGERS}")]) == "0" {
            assert!(begun.elapsed() < Duration::from_secs(20), "it never held");
            std::thread::sleep(Duration::from_millis(20));
        }
        stranger
    }
}

impl Drop for Stranger<'_> {
    fn drop(&mut self) {
        // The server would not notice that its client is gone.
        let end = format!("select count(pg_terminate_backend(pid)) {STRANGERS}");
        self.server.query(&[&end]);
        let _ = self.psql.wait();
    }
}

fn programs_or_skipped() -> Option<PathBuf> {
    let programs = find_programs();
    if programs.is_none() {
        let required = std::env::var_os("ASSAY_REQUIRE_POSTGRES");
        assert!(required.is_none_or(|versions| versions.is_empty()), "no PostgreSQL server is installed");
        skipped("a test of failures on PostgreSQL: no server is installed");
    }
    programs
}

/// The newest of the system's packages, or what the environment names.
fn find_programs() -> Option<PathBuf> {
    let named = std::env::var("ASSAY_PG_BIN").unwrap_or_default();
    let mut places: Vec<PathBuf> = named.split(':').filter(|part| !part.is_empty()).map(PathBuf::from).collect();
    for version in (13..=18).rev() {
        places.push(format!("/usr/lib/postgresql/{version}/bin").into());
        places.push(format!("/usr/pgsql-{version}/bin").into());
    }
    let has_all = |dir: &PathBuf| ["postgres", "initdb"].iter().all(|name| dir.join(name).is_file());
    places.into_iter().find(has_all)
}

/// One that has ended meanwhile needs none.
pub(crate) fn signal(pid: i32, signal: rustix::process::Signal) {
    if let Some(pid) = rustix::process::Pid::from_raw(pid) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A server refuses to run as root; it ends with the thread of its test, however that ends.
fn as_server_user(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "QUIT"]);
    if is_root() {
        command.args(["--reuid=postgres", "--regid=postgres", "--init-groups"]);
    }
    command.arg("--").arg(program).current_dir("/");
    command
}

fn run(command: &mut Command) {
    let output = command.stdin(Stdio::null()).output().expect("a program");
    assert!(output.status.success(), "{command:?}: {output:?}");
}

fn copy(from: &Path, to: &Path) {
    run(Command::new("cp").arg("-a").arg(from).arg(to));
}
