//! The parts this crate's test harness plays, what messages call a server in tests, and what a killed keeper leaves.

use super::keeper::{Request, Said, again};
use super::{BECOME, Brand, DATA, KEEP, Ready, become_server, keep, owner};
use assay_run::left;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub(super) const BRAND: Brand = Brand { temp: "server", called: "Server", user: "server", directory: "ITS_DIR" };

/// The harness, started once more by [`super::keeper`], plays the keeper or becomes the server here. By itself it is
/// an ordinary test that has nothing to do.
#[test]
fn plays_its_part() {
    match std::env::var("ASSAY_PLAYS").as_deref() {
        Ok(KEEP) => {
            keep();
            #[expect(clippy::exit, reason = "whoever reads what the harness would say of it is gone")]
            std::process::exit(0);
        }
        Ok(BECOME) => {
            let part = std::env::var("ASSAY_PART").expect("the keeper gives it");
            let command: Vec<_> = std::env::args_os().skip_while(|word| word != "--").skip(1).collect();
            panic!("{}", become_server(&part, &command));
        }
        _ => {}
    }
}

/// A keeper of a server that is a script with as many files as a database has.
fn keeper_of(directory: &Path, make_ends: &str) -> Child {
    let script = |text: String| vec!["sh".to_owned(), "-c".to_owned(), text];
    let data = directory.join(DATA).display().to_string();
    let request = Request {
        directory: directory.to_path_buf(),
        owner: owner::of_server(BRAND).expect("this host has users"),
        make: script(format!("cd {data} && i=0; while [ $i -lt 900 ]; do : >$i; i=$((i + 1)); done; {make_ends}")),
        serve: script("echo it is up; exec sleep 600".to_owned()),
        conf: None,
        foreign_variables: Vec::new(),
        ready: Ready::Log { word: "it is up".to_owned() },
        shutdown: Vec::new(),
        complaints: Vec::new(),
    };
    let mut keeper =
        again(KEEP).expect("this program").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("a keeper");
    let line = serde_json::to_string(&request).expect("a request");
    writeln!(keeper.stdin.as_mut().expect("piped"), "{line}").expect("it reads");
    keeper
}

/// Tries until it is so, which it is at once but for what a process that was just killed is still doing.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(60), "in vain waited: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_keeper_killed_at_any_instant_leaves_nothing_unnamed() {
    let base = tempfile::tempdir_in("/var/tmp").expect("a directory");
    std::fs::set_permissions(base.path(), PermissionsExt::from_mode(0o755)).expect("its mode");
    let entries = || std::fs::read_dir(base.path()).expect("it is there").count();
    // In the removal, its steps a fraction of a millisecond apart, and while the data is made.
    for instant in 0..24_u64 {
        let directory = base.path().join(format!("assay-server-{instant:08x}"));
        let in_removal = instant % 6 != 5;
        let mut keeper = keeper_of(&directory, if in_removal { ":" } else { "exec sleep 600" });
        if in_removal {
            let lines = BufReader::new(keeper.stdout.take().expect("piped")).lines().map_while(Result::ok);
            let mut said = lines.filter_map(|line| serde_json::from_str(&line).ok());
            assert!(said.any(|said| matches!(said, Said::Ready { .. })), "instant {instant}");
            drop(keeper.stdin.take());
            std::thread::sleep(Duration::from_micros(500 * instant));
        } else {
            until("its directory", || directory.exists());
            std::thread::sleep(Duration::from_millis(instant));
        }
        keeper.kill().expect("ours to kill");
        keeper.wait().expect("reaped");
        assert!(in_removal || entries() > 0, "nothing takes away what is being made");
        // A child that the keeper had just forked has its locks, too, until it becomes its program.
        let mut named = None;
        until("what is left is named", || {
            named = left::command(&left::found(base.path()));
            named.is_some() || entries() == 0
        });
        let Some(command) = named else { continue };
        until("its removal", || {
            let ran = Command::new("sh").args(["-c", &command]).stderr(Stdio::null()).status();
            ran.expect("a shell").success()
        });
        assert_eq!(entries(), 0, "instant {instant}: {command}");
    }
}
