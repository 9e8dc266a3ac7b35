//! Whatever a hostile or broken server does, the program ends in time and in little memory, with one clear error, and tells no
//! password.

use crate::common::{Place, Started};
use crate::my_moods::{MOODS, Mood};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// Address space of the program: far less than what a server can send in the time it has.
const MEMORY: &str = "--as=1073741824";

/// What is wrong with how a mood was met, if anything.
fn met(place: &Place, mood: &'static Mood) -> Option<String> {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let port = crate::my_moods::start(mood, &heard);
    let url = format!("mysql://role:s3cretPW@127.0.0.1:{port}/db");
    let limit = format!("MYSQL_ANSWER_TIMEOUT={}", mood.limit());
    let program = place.command(&["check", "--target", &url, "--set", &limit]);
    let mut limited = Command::new("prlimit");
    limited.arg(MEMORY).arg(program.get_program());
    limited.args(program.get_args());
    limited.current_dir(place.path(".")).env_clear();
    limited.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let ran = Started::new(limited.stdin(Stdio::null()).stdout(Stdio::piped())).ended();
    let ill = |letter: char| letter.is_control() && letter != '\n';
    let heard = heard.lock().expect("no panic");
    let told = heard.windows(8).any(|bytes| bytes == b"s3cretPW");
    let well = ran.code == 3
        && ran.errors().len() == 1
        && ran.err.lines().count() == 1
        && ran.err.len() < 10_000
        && ran.err.contains(mood.said)
        && !ran.err.contains(ill)
        && !ran.err.contains("s3cret")
        && !told;
    (!well).then(|| format!("{}: no {:?}, exit {}, told {told}: {:.1000}", mood.name, mood.said, ran.code, ran.err))
}

#[test]
fn every_mood_of_a_mysql_server_is_met_by_one_error_in_bounds_of_time_and_memory() {
    let place = Place::new();
    let mut wrong = Vec::new();
    // Most of them wait: several at a time.
    for some in MOODS.chunks(8) {
        std::thread::scope(|scope| {
            let meet = |mood: &'static Mood| {
                let place = &place;
                scope.spawn(move || met(place, mood))
            };
            let meetings: Vec<_> = some.iter().map(|mood| (mood.name, meet(mood))).collect();
            let ended =
                meetings.into_iter().map(|(name, met)| met.join().unwrap_or_else(|_| panic!("{name}: it hung")));
            wrong.extend(ended.flatten());
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut names: Vec<&str> = MOODS.iter().map(|mood| mood.name).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == MOODS.len() && names.len() >= 30);
}
