//! Whatever a hostile or broken server does, the program ends in time and in little memory, with one clear error.

use crate::common::{Place, Started};
use crate::pg_moods::{MOODS, Mood};
use std::process::{Command, Stdio};

/// Address space of the program: far less than what a server can send in the time it has.
const MEMORY: &str = "--as=1073741824";

/// What is wrong with how a mood was met, if anything.
fn met(place: &Place, mood: &'static Mood) -> Option<String> {
    let port = crate::pg_moods::start(mood);
    let (connect_s, answer_s) = mood.limits();
    let url = format!("postgres://role:s3cret@127.0.0.1:{port}/db?connect_timeout={connect_s}{}", mood.url);
    let program = place.command(&["check", "--target", &url, "--set", &format!("PG_ANSWER_TIMEOUT={answer_s}")]);
    let mut limited = Command::new("prlimit");
    limited.arg(MEMORY).arg(program.get_program());
    limited.args(program.get_args());
    limited.current_dir(place.path(".")).env_clear();
    limited.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    let ran = Started::new(limited.stdin(Stdio::null()).stdout(Stdio::piped())).ended();
    let ill = |letter: char| letter.is_control() && letter != '\n';
    let well = ran.code == 3
        && ran.errors().len() == 1
        && ran.err.lines().count() == 1
        && ran.err.len() < 10_000
        && ran.err.contains(mood.said)
        && !ran.err.contains(ill)
        && !ran.err.contains("s3cret");
    (!well).then(|| format!("{}: no {:?}, exit {}: {:.1000}", mood.name, mood.said, ran.code, ran.err))
}

#[test]
fn every_mood_of_a_server_is_met_by_one_error_in_bounds_of_time_and_memory() {
    let place = Place::new();
    let mut wrong = Vec::new();
    // Most of them wait: several at a time.
    for some in MOODS.chunks(8) {
        std::thread::scope(|scope| {
            let meetings: Vec<_> = some.iter().map(|mood| scope.spawn(|| met(&place, mood))).collect();
            let ended = meetings.into_iter().map(|met| met.join().expect("no panic"));
            wrong.extend(ended.flatten());
        });
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let mut names: Vec<&str> = MOODS.iter().map(|mood| mood.name).collect();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == MOODS.len() && names.len() >= 27);
}
