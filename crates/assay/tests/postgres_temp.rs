//! Throw-away PostgreSQL servers, by the program itself: what is started, and that nothing is left of it.

mod common;

use common::{Place, Started};
use rustix::process::Signal;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
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
        let base = tempfile::Builder::new()
            .prefix("assay-test-")
            .tempdir_in("/var/tmp")
            .expect("a directory");
        std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o755)).expect("its mode");
        let place = Place::new();
        Self { place, base }
    }

    /// Arguments, and the place.
    fn command(&self, args: &[&str]) -> std::process::Command {
        let mut command = self.place.command(args);
        command
            .env("ASSAY_PG_DIR", self.base.path())
            .env("ASSAY_PG_BIN", bins());
        command
    }

    fn start(&self, args: &[&str]) -> Started {
        Started::new(self.command(args).stdout(Stdio::piped()))
    }

    /// What is in the place.
    fn left(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(self.base.path()).expect("it is there");
        entries
            .map(|entry| entry.expect("an entry").path())
            .collect()
    }

    /// A held server and what was said of it; `None`, said aloud, where there is none of that version.
    fn hold(&self, args: &[&str]) -> Option<(Started, serde_json::Value)> {
        let args: Vec<&str> = ["temp-server"].iter().chain(args).copied().collect();
        let mut started = Started::new(
            self.command(&args)
                .stdin(Stdio::piped())
                .stdout(Stdio::piped()),
        );
        let output = started.child().stdout.take().expect("piped");
        let mut line = String::new();
        let _ = BufReader::new(output).read_line(&mut line);
        if line.is_empty() {
            let ran = started.ended();
            let absent = ran.err.contains("no programs of");
            assert!(absent, "{}", ran.err);
            assert!(!is_required(&args), "{}", ran.err);
            // The harness keeps what a passing test prints; a skipped one is to be seen.
            let _ = std::fs::write("/proc/self/fd/2", format!("!! SKIPPED: {}", ran.err));
            return None;
        }
        Some((
            started,
            serde_json::from_str(&line).expect("a line of JSON"),
        ))
    }
}

/// Versions that the system has no package of, as `test.sh` unpacks them, and those the environment names.
fn bins() -> String {
    let place = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/postgres");
    let unpacked = std::fs::read_dir(place).into_iter().flatten();
    let mut bins: Vec<String> = unpacked
        .map(|entry| {
            entry
                .expect("an entry")
                .path()
                .join("bin")
                .display()
                .to_string()
        })
        .collect();
    bins.extend(std::env::var("ASSAY_PG_BIN").ok());
    bins.join(":")
}

/// `ASSAY_REQUIRE_POSTGRES` lists the versions that must be there; another word stands for whatever is asked for.
fn is_required(args: &[&str]) -> bool {
    let required = std::env::var("ASSAY_REQUIRE_POSTGRES").unwrap_or_default();
    let versions: Vec<&str> = required.split([' ', ',']).collect();
    let listed = versions
        .iter()
        .any(|version| version.parse::<u32>().is_ok());
    let asked = args
        .iter()
        .find_map(|arg| arg.strip_prefix("temp:postgres:"));
    !required.is_empty() && (!listed || asked.is_none_or(|asked| versions.contains(&asked)))
}

fn text<'a>(said: &'a serde_json::Value, key: &str) -> &'a str {
    said[key]
        .as_str()
        .unwrap_or_else(|| panic!("no {key} in {said}"))
}

/// First process of the server in a directory.
fn postmaster(directory: &Path) -> Option<u32> {
    let told = std::fs::read_to_string(directory.join("data/postmaster.pid")).ok()?;
    told.lines().next()?.trim().parse().ok()
}

/// The keeper, as the directory names it.
fn keeper(directory: &Path) -> rustix::process::Pid {
    let marker = std::fs::read(directory.join("assay-temp-server.json")).expect("a marker");
    let marker: serde_json::Value = serde_json::from_slice(&marker).expect("JSON");
    let pid = marker["pid"].as_i64().expect("a process");
    rustix::process::Pid::from_raw(pid as i32).expect("a process")
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
fn a_server_is_private_and_goes_with_the_command() {
    for version in 13..=18 {
        let servers = Servers::new();
        let target = format!("temp:postgres:{version}");
        let Some((mut held, said)) =
            servers.hold(&["--target", &target, "--pg-set", "work_mem=5MB"])
        else {
            continue;
        };
        assert!(
            text(&said, "server").starts_with(&format!("PostgreSQL {version}")),
            "{said}"
        );
        assert_eq!(text(&said, "server_settings_given"), "work_mem=5MB");
        let directory = PathBuf::from(text(&said, "server_directory"));
        let mode = std::fs::metadata(&directory)
            .expect("it is there")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o700);
        assert!(directory.join(".s.PGSQL.5432").exists());
        let server = postmaster(&directory).expect("it runs");
        assert!(lives(server));
        drop(held.child().stdin.take());
        let ran = held.ended().code(0);
        assert!(ran.err.contains("Stopped and removed in"), "{}", ran.err);
        assert!(!lives(server));
        assert_eq!(servers.left(), Vec::<PathBuf>::new());
    }
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
    if servers.hold(&[]).is_none() {
        return;
    }
    until("an empty place", || servers.left().is_empty());
    let making = servers
        .start(&["temp-server"])
        .until("directory", || !servers.left().is_empty());
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
    held.kill();
    assert_eq!(servers.left(), std::slice::from_ref(&directory));
    let (mut next, said) = servers.hold(&[]).expect("a server as before");
    let named = text(&said, "server_left_behind");
    assert!(named.contains(&directory.display().to_string()), "{named}");
    drop(next.child().stdin.take());
    next.ended().code(0);
    assert_eq!(
        servers.left(),
        [directory],
        "what a killed one left is the user's to remove"
    );
}

#[test]
fn what_cannot_be_is_refused_before_anything_is_made() {
    let servers = Servers::new();
    if servers.hold(&[]).is_none() {
        return;
    }
    until("an empty place", || servers.left().is_empty());
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
fn two_servers_at_once_do_not_meet() {
    let servers = Servers::new();
    let Some((first, one)) = servers.hold(&[]) else {
        return;
    };
    let (second, two) = servers.hold(&[]).expect("a server as before");
    assert_ne!(
        text(&one, "server_directory"),
        text(&two, "server_directory")
    );
    for held in [first, second] {
        held.signal(Signal::TERM);
        held.ended().code(0);
    }
    assert_eq!(servers.left(), Vec::<PathBuf>::new());
}

#[test]
fn commands_that_would_keep_something_on_it_are_refused() {
    let servers = Servers::new();
    for command in ["prepare", "check", "destroy"] {
        let ran = servers
            .start(&[command, "--target", "temp:postgres"])
            .ended()
            .code(2);
        assert!(
            ran.errors()[0].contains("assay run --target temp:postgres"),
            "{}",
            ran.err
        );
    }
    let ran = servers
        .start(&["temp-server", "--target", "null:"])
        .ended()
        .code(2);
    assert!(ran.err.contains("temp:postgres[:VERSION]"), "{}", ran.err);
    let shown = servers.start(&[
        "config",
        "show",
        "--target",
        "temp:postgres",
        "--pg-set",
        "a=1",
        "--pg-set",
        "b=2",
    ]);
    let shown = shown.ended().code(0);
    assert!(shown.out.contains("a=1; b=2"), "{}", shown.out);
}

#[test]
fn a_password_in_the_url_is_shown_by_no_command() {
    const SECRET: &str = "tr0ub4dor";
    let servers = Servers::new();
    let Some((held, said)) = servers.hold(&["--target", "temp:postgres:15"]) else {
        return;
    };
    let url = text(&said, "server_url").replacen("postgres@", &format!("postgres:{SECRET}@"), 1);
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
        let ran = servers.start(&args).ended().code(code);
        assert!(!ran.out.contains(SECRET), "{args:?}: {}", ran.out);
        assert!(!ran.err.contains(SECRET), "{args:?}: {}", ran.err);
    }
    held.signal(Signal::TERM);
    held.ended().code(0);
}
