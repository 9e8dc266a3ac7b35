//! MariaDB by the program itself, on Debian's server: a throw-away server, a run, and what can go wrong in one; the first of them
//! on MySQL too.

use crate::common::{Place, Started, held, json, program, skipped, with};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

const SMALL: &[&str] = &["-s", "2", "--set", "SCALE=1000", "--set", "SCAN_TABLE_SZ=16"];
/// A run that would last a minute if nothing happened.
const LONG: &[&str] = &["--time", "60", "--warmup", "0", "-o", "run", "--format", "full"];

/// A database on a server, and a place to run in.
pub(crate) struct Server {
    pub(crate) place: Place,
    url: String,
    directory: PathBuf,
    /// None where the server is shared.
    own: Option<(Started, tempfile::TempDir)>,
    _programs: Option<tempfile::TempDir>,
}

fn base() -> tempfile::TempDir {
    let base = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").expect("a directory");
    std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o755)).expect("its mode");
    base
}

/// Said aloud where no server is installed.
fn none_installed(errors: &str) {
    let required = std::env::var_os("ASSAY_REQUIRE_MARIADB");
    assert!(errors.contains("no programs of MariaDB"), "{errors}");
    assert!(required.is_none_or(|word| word.is_empty()), "{errors}");
    skipped(errors);
}

/// Under whom a server of root's runs; none where nobody is root here.
fn user_of_servers() -> Option<u32> {
    let users = std::fs::read_to_string("/etc/passwd").ok()?;
    let of = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        line.split(':').nth(2)?.parse().ok()
    };
    rustix::process::getuid().is_root().then(|| of("mysql").or_else(|| of("nobody")))?
}

/// MySQL's server as a package would install it: a script stands for the program, whose tree has its own libraries.
fn mysql_programs() -> Option<tempfile::TempDir> {
    let Some(tree) = std::env::var_os("MYSQLD_TREE") else {
        let required = std::env::var_os("ASSAY_REQUIRE_MYSQL");
        assert!(required.is_none(), "MYSQLD_TREE is not set");
        skipped("a test on MySQL: MYSQLD_TREE names no tree of its programs");
        return None;
    };
    let (tree, programs) = (Path::new(&tree).display(), base());
    let script = format!(
        "#!/bin/sh\nexec {tree}/lib64/ld-linux-x86-64.so.2 \
         --library-path {tree}/lib/x86_64-linux-gnu:{tree}/usr/lib/x86_64-linux-gnu {tree}/usr/sbin/mysqld \"$@\"\n"
    );
    let file = programs.path().join("mysqld");
    std::fs::write(&file, script).expect("written");
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o755)).expect("its mode");
    Some(programs)
}

impl Server {
    /// A new database of this name on the server of all tests of this process that leave it as it is.
    pub(crate) fn shared(database: &str) -> Option<Self> {
        // Never dropped: when this process ends in any way, its end of a pipe does, and the server goes.
        static SHARED: OnceLock<Option<(Started, Value)>> = OnceLock::new();
        let shared = SHARED.get_or_init(|| held_or_skipped(&mut program(MARIADB, Path::new("/"))));
        let (_, said) = shared.as_ref()?;
        let mut server = Self::at(said, None, None);
        server.query(&format!("create database {database}"));
        server.url = server.url.replacen("/assay?", &format!("/{database}?"), 1);
        Some(server)
    }

    pub(crate) fn start() -> Option<Self> {
        Self::of(MARIADB, None)
    }

    pub(crate) fn mysql() -> Option<Self> {
        Self::of(&["temp-server", "--target", "temp:mysql", "--set", "SCALE=1000"], Some(mysql_programs()?))
    }

    fn of(words: &[&str], programs: Option<tempfile::TempDir>) -> Option<Self> {
        let base = base();
        let mut command = program(words, Path::new("/"));
        command.env("ASSAY_MYSQL_DIR", base.path());
        if let Some(programs) = &programs {
            command.env("ASSAY_MYSQL_BIN", programs.path());
        }
        let (held, said) = held_or_skipped(&mut command)?;
        Some(Self::at(&said, Some((held, base)), programs))
    }

    fn at(said: &Value, own: Option<(Started, tempfile::TempDir)>, programs: Option<tempfile::TempDir>) -> Self {
        let text = |key: &str| said[key].as_str().unwrap_or_else(|| panic!("{key}: {said}")).to_owned();
        let directory = PathBuf::from(text("server_directory"));
        Self { place: Place::new(), url: text("server_url"), directory, own, _programs: programs }
    }

    /// What its own client says to this, a line a row.
    pub(crate) fn query(&self, sql: &str) -> String {
        let asked = Command::new("mariadb")
            .args(["--no-defaults", "-uroot", "--batch", "--skip-column-names", "--force"])
            .arg(format!("--socket={}", self.socket().display()))
            .args(["-e", sql])
            .output()
            .expect("the client of the server");
        String::from_utf8(asked.stdout).expect("text")
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.directory.join("data/server.sock")
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = std::fs::read_to_string(self.directory.join("data/server.pid")).expect("its process");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw);
        kill_process(pid.expect("a process"), signal).expect("a signal");
    }

    fn arguments<'a>(verb: &'a str, url: &'a str, more: &[&'a str]) -> Vec<&'a str> {
        with(&with(&[verb, "--target", url], SMALL), more)
    }

    /// Ends one of one's own; nothing is left.
    pub(crate) fn end(mut self) {
        let Some((mut held, base)) = self.own.take() else {
            return;
        };
        drop(held.child().stdin.take());
        held.ended();
        let left = std::fs::read_dir(base.path()).expect("it is there").count();
        assert_eq!(left, 0);
    }
}

const MARIADB: &[&str] = &["temp-server", "--target", "temp:mariadb", "--set", "SCALE=1000"];

fn held_or_skipped(command: &mut Command) -> Option<(Started, Value)> {
    held(command).map_err(|errors| none_installed(&errors)).ok()
}

#[test]
fn a_run_on_a_server_of_its_own_is_complete_and_leaves_nothing() {
    let (place, base) = (Place::new(), base());
    // A server that starts removes every such file of its tmpdir, which may be another server's.
    let foreign =
        tempfile::Builder::new().prefix("#sql-temptable-assay-").suffix(".MAI").tempfile_in("/tmp").expect("a file");
    if let Some(server) = user_of_servers() {
        std::os::unix::fs::chown(foreign.path(), Some(server), None).expect("root gives it away");
    }
    let mut command =
        place.command(&with(&["run", "--target", "temp:mariadb", "--time", "2", "--warmup", "0", "-o", "run"], SMALL));
    command.env("ASSAY_MYSQL_DIR", base.path());
    command.args(["--set", "UPDATE_PCT=20", "--set", "SCAN_PCT=10", "--format", "full"]);
    let ran = Started::new(command.stdout(Stdio::piped())).ended();
    if ran.err.contains("no programs of MariaDB") {
        return none_installed(&ran.err);
    }
    let ran = ran.code(0);
    assert!(foreign.path().exists(), "another server's file is gone");
    assert!(ran.out.contains("MariaDB"), "{}", ran.out);
    let record = json(&place.read("run/record.json"));
    assert_eq!(record["run"]["verdict"], "complete");
    let checks = record["integrity"].as_array().expect("a list");
    let violated: Vec<&Value> = checks.iter().filter(|one| one["ok"] == false).collect();
    assert!(violated.is_empty(), "{violated:?}");
    // What the client did is what the server counted, and what it read and got adds up.
    for id in ["S1", "S2", "S6", "S7"] {
        let holds = checks.iter().any(|one| one["id"] == id && one["ok"] == true);
        assert!(holds, "{id}: {checks:?}");
    }
    let left = std::fs::read_dir(base.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

fn on_a_mysql_of_its_own(command: &[&str]) {
    let Some(programs) = mysql_programs() else {
        return;
    };
    let (place, base) = (Place::new(), base());
    let mut command =
        place.command(&with(command, &["-o", "run", "--target", "temp:mysql:9", "--time", "2", "--warmup", "0"]));
    command.env("ASSAY_MYSQL_DIR", base.path()).env("ASSAY_MYSQL_BIN", programs.path());
    let started = Started::new(command.stdout(Stdio::piped()));
    started.ended().code(0);
    let report = place.read("run/report.txt");
    assert!(report.contains("MySQL 9."), "{report}");
    assert!(!report.contains("shared_buffers"), "{report}");
    let record = place.record("run");
    assert_eq!(record["run"]["verdict"], "complete");
    let checks = record["integrity"].as_array().expect("a list");
    let violated: Vec<&Value> = checks.iter().filter(|one| one["ok"] == false).collect();
    assert!(violated.is_empty(), "{violated:?}");
    let left = std::fs::read_dir(base.path()).expect("it is there").count();
    assert_eq!(left, 0);
}

#[test]
fn a_run_on_a_mysql_of_its_own_is_complete_and_leaves_nothing() {
    on_a_mysql_of_its_own(&with(&["run"], SMALL));
}

#[test]
#[ignore = "it takes long: ./test.sh --long has it"]
fn order_entry_on_a_mysql_of_its_own_is_complete_and_leaves_nothing() {
    on_a_mysql_of_its_own(&["orders", "run", "--scale", ".002"]);
}

#[test]
fn a_data_set_on_a_server_is_made_run_checked_and_removed() {
    let Some(server) = Server::shared("whole_life") else {
        return;
    };
    let url = server.url();
    let place = &server.place;
    let absent = place.assay(&Server::arguments("run", &url, LONG)).code(3);
    assert!(absent.err.contains("assay prepare"), "{}", absent.err);
    let planned = with(&Server::arguments("prepare", &url, &[]), &["--dry-run"]);
    let planned = place.assay(&planned).code(0);
    assert!(planned.out.contains("create a data set of 2"), "{}", planned.out);
    place.assay(&Server::arguments("prepare", &url, &[])).code(0);
    let short = ["--time", "1", "--warmup", "0", "--set", "UPDATE_PCT=50"];
    place.assay(&Server::arguments("run", &url, &short)).code(0);
    place.assay(&["check", "--target", &url]).code(0);
    let sampled = ["check", "--target", &url, "--set", "CHECK=sampled"];
    place.assay(&sampled).code(0);
    let looped = with(&short, &["--set", "LOOP=server"]);
    place.assay(&Server::arguments("run", &url, &looped)).code(0);
    let asked = ["--time", "1", "--set", "COMMIT_MODE=none"];
    let asked = place.assay(&Server::arguments("run", &url, &asked)).code(2);
    assert!(asked.err.contains("temp:mariadb"), "{}", asked.err);
    by_a_file_of_options(&server);
    place.assay(&["destroy", "--target", &url]).code(0);
    let gone = place.assay(&["check", "--target", &url]).code(3);
    assert!(gone.err.contains("assay prepare"), "{}", gone.err);
}

/// What the URL leaves out comes from a file, and the password in it is nowhere to be seen.
fn by_a_file_of_options(server: &Server) {
    let place = &server.place;
    let url = server.url();
    let (_, socket) = url.split_once("socket=").expect("a socket");
    let socket = socket.replace("%2F", "/");
    let file = place.path("my.cnf");
    let text = format!("[client]\nuser=root\npassword=Kq9secret\n[assay]\nsocket={socket}\n");
    std::fs::write(&file, text).expect("written");
    let named = format!("MYSQL_DEFAULTS_FILE={}", file.display());
    let check = ["check", "--target", "mysql:///whole_life", "--set", &named];
    // The server's root has no password, so another one is refused: by its user, without being shown.
    let refused = place.assay(&check).code(3);
    assert!(refused.err.contains("refuses user root"), "{}", refused.err);
    assert!(!refused.err.contains("Kq9secret"), "{}", refused.err);
    let text = format!("[assay]\nuser=root\nsocket={socket}\n");
    std::fs::write(&file, text).expect("written");
    place.assay(&check).code(0);
    std::fs::write(&file, "[assay]\nusr=root\n").expect("written");
    let wrong = place.assay(&check).code(2);
    assert!(wrong.err.contains("line 2: assay has no option usr"), "{}", wrong.err);
}

#[test]
fn a_load_that_was_killed_is_taken_up_again() {
    let Some(server) = Server::shared("killed_load") else {
        return;
    };
    let url = server.url();
    let large = ["prepare", "--target", &url, "-s", "3", "--set", "SCALE=4000"];
    let mut killed = server.place.start(&with(&large, &["--set", "LOAD_PARALLEL_DEGREE=1"]));
    std::thread::sleep(std::time::Duration::from_millis(700));
    killed.child().kill().expect("ours to kill");
    killed.ended();
    server.place.assay(&large).code(0);
    server.place.assay(&["check", "--target", &url]).code(0);
}

/// A run whose server fails it: invalid, kept, with one clear error.
fn given_up(run: Started) {
    let ran = run.ended().code(4);
    let errors = ran.errors();
    assert_eq!(errors.len(), 1, "{}", ran.err);
    assert!(errors[0].contains("lost its connection"), "{}", errors[0]);
    assert!(ran.out.contains("Verdict: invalid"), "{}", ran.out);
}

#[test]
fn a_server_that_answers_no_more_or_is_killed_ends_what_is_under_way_with_one_error() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.url();
    let place = &server.place;
    let impatient = ["--set", "MYSQL_ANSWER_TIMEOUT=2"];
    let load = ["prepare", "--target", &url, "-s", "2", "--set", "SCALE=6000"];
    let frozen = |command: &[&str], works_s: f64| {
        let started = place.start(&with(command, &impatient));
        std::thread::sleep(std::time::Duration::from_secs_f64(works_s));
        server.signal(Signal::STOP);
        let ran = started.ended();
        server.signal(Signal::CONT);
        assert_eq!(ran.errors().len(), 1, "{}", ran.err);
        let ran = ran.code(3);
        assert!(ran.err.contains("answer"), "{}", ran.err);
        place.assay(command).code(0);
    };
    // A load of this size lasts longer; a check may be over sooner, so it finds the server frozen.
    frozen(&load, 0.4);
    frozen(&["check", "--target", &url], 0.0);
    for (signal, more) in [(Signal::STOP, &impatient[..]), (Signal::KILL, &[])] {
        let run = with(&with(&["run", "--target", &url, "-s", "2"], LONG), more);
        let run = place.start(&run).until("the window begins", || place.measures("run"));
        server.signal(signal);
        given_up(run);
        if signal == Signal::STOP {
            server.signal(Signal::CONT);
            std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
        }
    }
    server.end();
}

#[test]
fn what_waits_for_a_frozen_server_ends_on_request() {
    let Some(server) = Server::start() else {
        return;
    };
    let url = server.url();
    let place = &server.place;
    let patient = ["--set", "MYSQL_ANSWER_TIMEOUT=600"];
    let load = with(&["prepare", "--target", &url, "-s", "2", "--set", "SCALE=6000"], &patient);
    let frozen = |started: Started| {
        server.signal(Signal::STOP);
        started.signal(Signal::TERM);
        let ran = started.ended();
        server.signal(Signal::CONT);
        let ran = ran.code(130);
        assert!(ran.errors().len() <= 1, "{}", ran.err);
        ran
    };
    let started = place.start(&load);
    std::thread::sleep(std::time::Duration::from_millis(400));
    frozen(started);
    place.assay(&load).code(0);
    for way in [&["-t", "1"][..], &["-t", "4", "--set", "DRIVER_THREADS=1"], &["-t", "1", "--set", "LOOP=server"]] {
        let run = with(&with(&["run", "--target", &url, "-s", "2"], LONG), &with(&patient, way));
        let run = place.start(&run).until("the window begins", || place.measures("run"));
        let ran = frozen(run);
        assert!(ran.out.contains("Verdict: "), "{} {}", ran.out, ran.err);
        std::fs::remove_dir_all(place.path("run")).expect("a run's directory");
    }
    server.end();
}
