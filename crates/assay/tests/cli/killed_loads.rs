//! Loads that are killed at any instant: what the next command says is the matter, and that the command it names works.

use crate::common::{Place, Ran, with};
use crate::pg_server::Server;
use std::path::Path;
use std::time::Duration;

/// Small, and still several phases long.
pub(crate) const SIZES: &[&str] = &["--set", "SCALE=2000", "--set", "REDO_LOG_MB=8", "--set", "UNDO_MB=8"];

/// Instants after which a load is killed, ms; the last ones find some loads done.
const INSTANTS_MS: [u64; 9] = [0, 3, 8, 20, 40, 80, 150, 300, 600];

/// The ways a data set lies on its paths.
pub(crate) const LAYOUTS: [&[&str]; 2] =
    [&["--target", "native:d"], &["--target", "native:d,e", "--set", "REDO_DIR=r", "--set", "UNDO_DIR=u"]];

/// Starts a load and kills it after so long; from when its plan is out, so that it has begun.
fn kill_load(place: &Place, args: &[&str], after: Duration) {
    let started = place.start(args);
    std::thread::sleep(Duration::from_millis(15) + after);
    started.kill();
}

/// The command that a message puts between backquotes.
pub(crate) fn named_command(text: &str) -> Vec<String> {
    let command = text
        .split('`')
        .find(|part| part.starts_with("assay prepare"))
        .unwrap_or_else(|| panic!("no command is named: {text}"));
    command.split(' ').skip(1).map(str::to_owned).collect()
}

pub(crate) fn again(place: &Place, command: &[String]) -> Ran {
    let args: Vec<&str> = command.iter().map(String::as_str).collect();
    place.assay(&args)
}

/// A run that ends soon.
fn short_run(place: &Place, layout: &[&str]) -> Ran {
    let args = ["run", "--set", "WORK_LOOP=50"];
    place.assay(&with(&args, layout))
}

/// Schema 1 of the data set, as bytes: the first pages of the first file or of both.
fn first_schema(place: &Place) -> Vec<u8> {
    let mut bytes = std::fs::read(place.path("d/data-0001.assay")).expect("it is there");
    if let Ok(second) = std::fs::read(place.path("e/data-0002.assay")) {
        bytes.truncate(8 << 20);
        bytes.extend_from_slice(&second[..8 << 20]);
    }
    bytes.truncate(16 << 20);
    bytes
}

#[test]
fn a_first_load_killed_at_any_instant_is_told_and_begun_anew() {
    for layout in LAYOUTS {
        for (n, after) in INSTANTS_MS.into_iter().enumerate() {
            let place = Place::new();
            let load = with(&with(&["prepare", "-s", "3"], SIZES), layout);
            kill_load(&place, &load, Duration::from_millis(after));
            let checked = place.assay(&with(&["check"], layout));
            if checked.code == 0 {
                continue;
            }
            assert_eq!(checked.code, 3, "{}", checked.err);
            if n % 2 == 0 {
                let mut command = named_command(&checked.err);
                // With the same settings as before.
                command.extend(with(SIZES, &layout[2..]).into_iter().map(str::to_owned));
                again(&place, &command).code(0);
            } else {
                let run = with(&["-s", "1"], SIZES);
                short_run(&place, &with(&run, layout)).code(0);
            }
            place.assay(&with(&["check"], layout)).code(0);
            place.assay(&with(&["destroy"], layout)).code(0);
            let left = place.files();
            let runs = left.iter().all(|file| file.starts_with("assay-runs"));
            assert!(runs, "{left:?}");
        }
    }
}

#[test]
fn an_addition_killed_at_any_instant_loses_nothing_and_is_resumed_by_the_command_named() {
    for layout in LAYOUTS {
        let place = Place::new();
        let load = with(&with(&["prepare", "-s", "1"], SIZES), layout);
        place.assay(&load).code(0);
        let before = first_schema(&place);
        for (n, after) in INSTANTS_MS.into_iter().enumerate() {
            let more = (n + 2).to_string();
            let add = with(&["prepare", "-s", &more], layout);
            kill_load(&place, &add, Duration::from_millis(after));
            match n % 3 {
                // Right on.
                0 => {
                    let done = place.assay(&add);
                    assert!(done.code == 0 || done.err.contains("schemas of 2000 blocks already"), "{}", done.err);
                }
                1 => {
                    let checked = place.assay(&with(&["check"], layout)).code(0);
                    if checked.out.contains("assay prepare") {
                        again(&place, &named_command(&checked.out)).code(0);
                    }
                }
                _ => {
                    let dry = place.assay(&with(&["run", "--dry-run"], layout)).code(0);
                    short_run(&place, layout).code(0);
                    if dry.err.contains("assay prepare") {
                        again(&place, &named_command(&dry.err)).code(0);
                    }
                }
            }
            place.assay(&with(&["check"], layout)).code(0);
            assert!(first_schema(&place).len() >= before.len());
        }
    }
}

#[test]
fn what_was_loaded_before_an_addition_was_killed_is_byte_for_byte_there() {
    for layout in LAYOUTS {
        for next in ["check", "run", "prepare"] {
            let place = Place::new();
            let load = with(&with(&["prepare", "-s", "1"], SIZES), layout);
            place.assay(&load).code(0);
            let before = first_schema(&place);
            let add = with(&["prepare", "-s", "64"], layout);
            let started = place.start(&add);
            let started = started.until("growth", || grown(&place, before.len()));
            std::thread::sleep(Duration::from_millis(60));
            started.kill();
            let done = match next {
                "run" => {
                    let all = place.assay(&with(&["run", "--dry-run", "-s", "64"], layout)).code(2);
                    assert!(all.err.contains("-s 64"), "{}", all.err);
                    let reads = with(&["--set", "UPDATE_PCT=0"], layout);
                    short_run(&place, &reads).code(0)
                }
                "check" => {
                    let checked = place.assay(&with(&["check"], layout)).code(0);
                    let command = named_command(&checked.out);
                    assert!(command.windows(2).any(|two| two == ["-s", "64"]), "{command:?}");
                    checked
                }
                _ => place.assay(&with(&["prepare", "-s", "2"], layout)).code(0),
            };
            assert_eq!(done.code, 0);
            let after = first_schema(&place);
            let same = after.iter().zip(&before).filter(|(a, b)| a == b).count();
            assert_eq!(same, before.len(), "{next}");
            place.assay(&with(&["check"], layout)).code(0);
        }
    }
}

#[test]
fn a_load_that_is_asked_to_stop_says_so_and_is_done_over() {
    let place = Place::new();
    let load = ["prepare", "--target", "native:d", "-s", "4", "--set", "SCALE=400M"];
    let begun = || place.path("d/control.assay").exists();
    let running = place.start(&with(&load, &SIZES[2..])).until("data set", begun);
    running.signal(rustix::process::Signal::TERM);
    running.ended().code(130);
    let layout = LAYOUTS[0];
    place.assay(&with(&["check"], layout)).code(3);
    place.assay(&with(&with(&["prepare", "-s", "2"], SIZES), layout)).code(0);
    place.assay(&with(&["check"], layout)).code(0);
}

/// Whether a file of the data set is longer than it was.
fn grown(place: &Place, was: usize) -> bool {
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |meta| meta.len());
    bytes(&place.path("d/data-0001.assay")) > was as u64 + (16 << 20)
}

#[test]
fn an_addition_to_a_server_killed_at_any_instant_is_resumed_by_the_command_named() {
    let Some(server) = Server::shared("killed_loads") else {
        return;
    };
    let place = Place::new();
    let url = server.url();
    let target = ["--target", url.as_str()];
    let first = with(&["prepare", "-s", "1", "--set", "SCALE=5000"], &target);
    place.assay(&first).code(0);
    let before = content(&server);
    for (n, after) in INSTANTS_MS.into_iter().enumerate() {
        let more = (n + 2).to_string();
        kill_load(&place, &with(&["prepare", "-s", &more], &target), Duration::from_millis(after));
        if n % 2 == 1 {
            short_run(&place, &with(&target, &["--set", "UPDATE_PCT=0"])).code(0);
        }
        let checked = place.assay(&with(&["check"], &target)).code(0);
        if checked.out.contains("assay prepare") {
            let command = named_command(&checked.out);
            assert!(command.windows(2).any(|two| two[0] == "-s" && two[1] == more), "{command:?}");
            again(&place, &command).code(0);
        }
        assert_eq!(content(&server), before);
    }
    place.assay(&with(&["destroy"], &target)).code(0);
}

fn content(server: &Server) -> String {
    server.query(&["select count(*), sum(custid), min(ctid::text) from assay.cf1_1"])
}
