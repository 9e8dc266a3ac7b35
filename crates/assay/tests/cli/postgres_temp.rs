//! Throw-away PostgreSQL servers, by the program itself: what is started, and that nothing is left of it.

use crate::common::neighbour::{Canary, NAMES, Neighbour, Way};
use crate::common::{Place, Ran, Started, held, skipped, with};
use crate::pg_server::Server;
use rustix::process::Signal;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Longest for a server to come or to go, however busy the machine is.
const LONGEST: Duration = Duration::from_secs(60);

/// A place for servers, which must be empty in the end.
struct Servers {
    place: Place,
    /// Where the server's user can get to; the socket's path must be short.
    base: tempfile::TempDir,
}

impl Servers {
    fn new() -> Self {
        let base = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").expect("a directory");
        std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o755)).expect("its mode");
        let place = Place::new();
        Self { place, base }
    }

    /// Arguments, and the place.
    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.place.command(args);
        command.env("ASSAY_PG_DIR", self.base.path()).env("ASSAY_PG_BIN", bins());
        command
    }

    fn start(&self, args: &[&str]) -> Started {
        Started::new(self.command(args).stdout(Stdio::piped()))
    }

    /// What is in the place.
    fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.base.path()).expect("it is there");
        entries.map(|entry| entry.expect("an entry").path()).collect()
    }

    /// A held server and what was said of it; `None`, said aloud, where there is none of that version.
    fn hold(&self, args: &[&str]) -> Option<(Started, serde_json::Value)> {
        let args: Vec<&str> = ["temp-server"].iter().chain(args).copied().collect();
        held(&mut self.command(&args)).map_err(|errors| none_installed(&args, &errors)).ok()
    }

    /// Whether there is one that could be held.
    fn has_programs(&self) -> bool {
        let ran = self.start(DRY).ended();
        if ran.code != 0 {
            none_installed(DRY, &ran.err);
        }
        ran.code == 0
    }
}

/// Said aloud, where that may be.
fn none_installed(args: &[&str], errors: &str) {
    assert!(errors.contains("no programs of"), "{errors}");
    assert!(!is_required(args), "{errors}");
    skipped(errors);
}

const DRY: &[&str] = &["run", "--target", "temp:postgres", "--dry-run"];

/// Versions that the system has no package of, as `test.sh` unpacks them, and those the environment names.
fn bins() -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/postgres");
    let unpacked = std::fs::read_dir(place).into_iter().flatten();
    let mut bins: Vec<String> =
        unpacked.map(|entry| entry.expect("an entry").path().join("bin").display().to_string()).collect();
    bins.extend(std::env::var("ASSAY_PG_BIN").ok());
    bins.join(":")
}

/// `ASSAY_REQUIRE_POSTGRES` lists the versions that must be there; another word stands for whatever is asked for.
fn is_required(args: &[&str]) -> bool {
    let required = std::env::var("ASSAY_REQUIRE_POSTGRES").unwrap_or_default();
    let versions: Vec<&str> = required.split([' ', ',']).collect();
    let listed = versions.iter().any(|version| version.parse::<u32>().is_ok());
    let asked = args.iter().find_map(|arg| arg.strip_prefix("temp:postgres:"));
    !required.is_empty() && (!listed || asked.is_none_or(|asked| versions.contains(&asked)))
}

fn text<'a>(said: &'a serde_json::Value, key: &str) -> &'a str {
    said[key].as_str().unwrap_or_else(|| panic!("no {key} in {said}"))
}

/// First process of the server in a directory.
fn postmaster(directory: &Path) -> Option<u32> {
    let told = std::fs::read_to_string(directory.join("data/postmaster.pid")).ok()?;
    told.lines().next()?.trim().parse().ok()
}

/// The keeper of the server in a directory: the server's parent.
fn keeper(directory: &Path) -> rustix::process::Pid {
    let server = postmaster(directory).expect("it runs");
    let stat = std::fs::read_to_string(format!("/proc/{server}/stat")).expect("it runs");
    let (_, fields) = stat.rsplit_once(')').expect("a stat line");
    let parent = fields.split_ascii_whitespace().nth(1).expect("a parent");
    rustix::process::Pid::from_raw(parent.parse().expect("a number")).expect("a process")
}

/// Runs the command by which what is left is said to go.
fn remove(named: &str) {
    let (_, command) = named.split_once("remove with: ").expect("a command");
    // What a killed one had started may make its last files just then; the command can be given again.
    until("its removal", || {
        let ran = std::process::Command::new("sh").args(["-c", command]).status();
        ran.expect("a shell").success()
    });
}

fn lives(pid: u32) -> bool {
    // A process that ended and waits for its parent is gone for our purpose.
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').map_or("", |(_, rest)| rest.trim());
    !state.is_empty() && !state.starts_with('Z')
}

fn until(what: &str, seen: impl Fn() -> bool) {
    let begun = Instant::now();
    while !seen() {
        assert!(begun.elapsed() < LONGEST, "in vain waited: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_server_goes_with_the_command() {
    let servers = Servers::new();
    let Some((mut held, said)) = servers.hold(&["--pg-set", "work_mem=5MB"]) else {
        return;
    };
    assert!(text(&said, "server").starts_with("PostgreSQL "), "{said}");
    assert_eq!(text(&said, "server_settings_given"), "work_mem=5MB");
    let server = postmaster(Path::new(text(&said, "server_directory"))).expect("it runs");
    assert!(lives(server));
    drop(held.child().stdin.take());
    let ran = held.ended().code(0);
    assert!(ran.err.contains("Time to stop and remove it"), "{}", ran.err);
    assert!(!lives(server));
    assert_eq!(servers.left(), Vec::<PathBuf>::new());
}

#[test]
fn nothing_is_left_when_the_command_is_killed() {
    let servers = Servers::new();
    let Some((held, said)) = servers.hold(&[]) else {
        return;
    };
    let directory = PathBuf::from(text(&said, "server_directory"));
    let server = postmaster(&directory).expect("it runs");
    held.kill();
    until("the server's end", || !lives(server));
    until("an empty place", || servers.left().is_empty());
}

#[test]
fn nothing_is_left_when_the_command_is_killed_while_the_cluster_is_made() {
    let servers = Servers::new();
    if !servers.has_programs() {
        return;
    }
    let making = servers.start(&["temp-server"]).until("directory", || !servers.left().is_empty());
    making.kill();
    until("an empty place", || servers.left().is_empty());
}

#[test]
fn a_signal_ends_it_in_order_and_the_terminals_does_not_reach_the_server() {
    let servers = Servers::new();
    let Some((held, said)) = servers.hold(&[]) else {
        return;
    };
    let directory = PathBuf::from(text(&said, "server_directory"));
    // The keeper outlives what the system sends to every process of a service.
    rustix::process::kill_process(keeper(&directory), Signal::TERM).expect("it lives");
    std::thread::sleep(Duration::from_millis(300));
    assert!(postmaster(&directory).is_some_and(lives));
    held.signal(Signal::INT);
    let ran = held.ended().code(0);
    assert!(ran.err.contains("fast"), "{}", ran.err);
    assert_eq!(servers.left(), Vec::<PathBuf>::new());
}

#[test]
fn a_killed_keeper_takes_the_server_with_it_and_its_directory_is_named_by_the_next() {
    let servers = Servers::new();
    let Some((held, said)) = servers.hold(&[]) else {
        return;
    };
    let directory = PathBuf::from(text(&said, "server_directory"));
    let server = postmaster(&directory).expect("it runs");
    rustix::process::kill_process(keeper(&directory), Signal::KILL).expect("it lives");
    until("the server's end", || !lives(server));
    let planned = servers.start(DRY).ended().code(0).out;
    let other = PathBuf::from(format!("{}.mark", directory.display()));
    assert!(planned.contains(&other.display().to_string()), "{planned}");
    held.kill();
    let mut left = servers.left();
    left.sort();
    assert_eq!(left, [directory.clone(), other]);
    let (mut next, said) = servers.hold(&[]).expect("a server as before");
    let told = text(&said, "server_left_behind").to_owned();
    assert!(told.contains(&directory.display().to_string()), "{told}");
    let running = text(&said, "server_directory");
    assert!(!told.contains(running), "{told}");
    // While one runs and another is left, a third names the latter alone.
    let planned = servers.start(DRY).ended().code(0).out;
    assert!(!planned.contains(running), "{planned}");
    assert!(directory.exists(), "it is the user's to remove");
    remove(&told);
    drop(next.child().stdin.take());
    next.ended().code(0);
    assert_eq!(servers.left(), Vec::<PathBuf>::new());
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let servers = Servers::new();
    if !servers.has_programs() {
        return;
    }
    let long = format!("PG_DIR=/var/tmp/{}", "x".repeat(120));
    for (args, code, wanted) in [
        (vec!["--pg-set", "work_mem=5XB"], 2, "work_mem"),
        (vec!["--pg-set", "wrok_mem=5MB"], 2, "wrok_mem"),
        (vec!["--pg-set", "listen_addresses=*"], 2, "private socket"),
        (vec!["--pg-set", "work_mem"], 2, "NAME=VALUE"),
        (vec!["--target", "temp:postgres:12"], 2, "13 to 18"),
        (vec!["--target", "temp:postgres:new"], 2, "major version"),
        (vec!["--set", "PG_BIN=/nowhere"], 2, "PG_BIN"),
        (vec!["--set", &long], 2, "PG_DIR"),
        (vec!["--set", "SCALE=4000G"], 3, "free"),
        // Taken by itself, refused by the server as a whole.
        (vec!["--pg-set", "wal_level=minimal"], 3, "max_wal_senders"),
    ] {
        let args: Vec<&str> = ["temp-server"].iter().chain(&args).copied().collect();
        let ran = servers.start(&args).ended().code(code);
        assert_eq!(ran.errors().len(), 1, "{args:?}: {}", ran.err);
        assert!(ran.errors()[0].contains(wanted), "{args:?}: {}", ran.err);
        assert_eq!(servers.left(), Vec::<PathBuf>::new(), "{args:?}");
    }
}

#[test]
fn commands_that_would_keep_something_on_it_are_refused() {
    let servers = Servers::new();
    for command in ["prepare", "check", "destroy"] {
        let ran = servers.start(&[command, "--target", "temp:postgres"]).ended().code(2);
        assert!(ran.errors()[0].contains("assay run --target temp:postgres"), "{}", ran.err);
    }
    let ran = servers.start(&["temp-server", "--target", "null:"]).ended().code(2);
    assert!(ran.err.contains("temp:postgres[:VERSION]"), "{}", ran.err);
    let shown = servers.start(&["config", "show", "--target", "temp:postgres", "--pg-set", "a=1", "--pg-set", "b=2"]);
    let shown = shown.ended().code(0);
    assert!(shown.out.contains("a=1; b=2"), "{}", shown.out);
}

#[test]
fn a_password_in_the_url_is_shown_by_no_command() {
    const SECRET: &str = "tr0ub4dor";
    let Some(server) = Server::shared("password") else {
        return;
    };
    let place = Place::new();
    let url = server.url().replacen("postgres@", &format!("postgres:{SECRET}@"), 1);
    assert!(url.contains(SECRET), "{url}");
    let size = ["--set", "SCALE=1000", "-s", "1"];
    for (command, code) in [
        (&["run", "--time", "1"][..], 3),
        (&["check"], 3),
        (&["destroy"], 3),
        (&["prepare", "--dry-run"], 0),
        (&["prepare"], 0),
        (&["prepare"], 2),
        (&["check"], 0),
        (&["run", "--time", "1"], 0),
        (&["destroy"], 0),
    ] {
        let mut args = vec![command[0], "--target", &url];
        args.extend(&command[1..]);
        if command[0] == "prepare" || command[0] == "run" {
            args.extend(size);
        }
        let ran = place.assay(&args).code(code);
        assert!(!ran.out.contains(SECRET), "{args:?}: {}", ran.out);
        assert!(!ran.err.contains(SECRET), "{args:?}: {}", ran.err);
    }
}

/// Runs the program as a user who may do nothing where root runs the test, and in a directory of that user.
fn unprivileged(servers: &Servers, args: &[&str]) -> (Ran, tempfile::TempDir) {
    let home = tempfile::Builder::new().prefix("assay-test-").tempdir_in("/var/tmp").expect("a directory");
    let program = home.path().join("assay");
    std::fs::copy(env!("CARGO_BIN_EXE_assay"), &program).expect("a copy that everybody reaches");
    let given = servers.command(args);
    let mut command = std::process::Command::new(program);
    command.args(args).current_dir(home.path()).stdin(Stdio::null()).stdout(Stdio::piped()).env("HOME", home.path());
    command.envs(given.get_envs().filter_map(|(name, value)| Some((name, value?))));
    if rustix::process::geteuid().is_root() {
        let (user, group) = user("nobody").expect("every system has it");
        std::os::unix::fs::chown(home.path(), Some(user), Some(group)).expect("theirs");
        std::fs::set_permissions(servers.base.path(), PermissionsExt::from_mode(0o1777)).expect("open to all");
        command.uid(user).gid(group);
    }
    (Started::new(&mut command).ended(), home)
}

#[test]
fn a_run_has_a_server_of_its_own_and_leaves_its_record_alone() {
    let servers = Servers::new();
    if servers.hold(&[]).is_none() {
        return;
    }
    until("an empty place", || servers.left().is_empty());
    let small =
        ["run", "--target", "temp:postgres", "--set", "SCALE=1000", "--pg-set", "shared_buffers=16MB", "-o", "run"];
    let planned = servers.start(&with(&small, &["--dry-run"])).ended().code(0);
    for part in ["Throw-away server", "shared_buffers=16MB"] {
        assert!(planned.out.contains(part), "no {part}: {}", planned.out);
    }
    assert_eq!(servers.left(), Vec::<PathBuf>::new());

    let (ran, home) = unprivileged(&servers, &with(&small, &["-s", "2", "--time", "1", "--warmup", "0"]));
    let ran = ran.code(0);
    assert!(ran.out.contains("slob on temp:postgres"), "{}", ran.out);
    assert!(ran.err.contains("Time to stop and remove it"), "{}", ran.err);
    let kept = |name: &str| std::fs::read_to_string(home.path().join("run").join(name)).expect("kept");
    assert!(kept("report.txt").contains("PostgreSQL 1"), "its version");
    assert!(kept("record.json").contains("server_directory"));
    assert_eq!(servers.left(), Vec::<PathBuf>::new());

    let running = servers.start(&with(&small, &["--time", "10m", "--warmup", "0"]));
    let running = running.until("second", || servers.place.has_mark("second"));
    running.signal(Signal::INT);
    running.ended().code(130);
    assert!(servers.place.path("run/report.txt").exists());
    assert_eq!(servers.left(), Vec::<PathBuf>::new());
}

/// User and group of this name.
fn user(name: &str) -> Option<(u32, u32)> {
    let users = std::fs::read_to_string("/etc/passwd").expect("readable");
    let line = users.lines().find(|line| line.split(':').next() == Some(name))?;
    let fields: Vec<&str> = line.split(':').collect();
    Some((fields[2].parse().ok()?, fields[3].parse().ok()?))
}

#[test]
fn a_racing_user_of_the_server_leads_root_to_no_other_file() {
    let Some(user) = user("postgres").filter(|_| rustix::process::geteuid().is_root()) else {
        return;
    };
    let servers = Servers::new();
    if !servers.has_programs() {
        return;
    }
    let canary = Canary::new();
    let before = canary.state();
    let mut swaps = 0;
    let flips = NAMES.iter().map(|name| (*name, Way::Flips));
    // A server whose pid file stays away is waited for, two minutes.
    let stays = NAMES.iter().filter(|name| !name.contains("pid"));
    for (name, way) in flips.chain(stays.map(|name| (*name, Way::Stays))) {
        let neighbour = Neighbour::start(user, servers.base.path(), &canary, (name, way));
        // It comes up or not, whatever the neighbour makes of it; standard input is at its end already.
        let ran = servers.start(&["temp-server"]).ended();
        swaps += neighbour.swaps();
        drop(neighbour);
        assert!(ran.code == 0 || ran.code == 3, "{name}: {}", ran.err);
        for said in [&ran.out, &ran.err] {
            assert!(!canary.is_told_by(said), "{name}: {said}");
        }
        assert_eq!(canary.state(), before, "{name}: {}", ran.err);
    }
    assert!(swaps > 100, "{swaps} swaps");
}
