//! What every probe promises: it says its plan, measures, and leaves its place as it found it.

use super::expect;
use assay_measure::snapshot::RunData;
use assay_run::engine::EngineError;
use assay_run::probe::{ProbeSpec, Request, SERVER, Serving, Steps, Takes};
use assay_run::stop::Stop;
use std::net::TcpStream;
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

/// Runs every check in a directory, empty but for a file `data` if the probe reads files; returns each violation as a sentence.
///
/// # Panics
/// Where the directory itself cannot be used.
#[must_use]
pub fn probe_suite(probe: &ProbeSpec, dir: &Path) -> Vec<String> {
    probe_suite_with(probe, &[], dir)
}

/// The same with words in every request.
///
/// # Panics
/// Where the directory itself cannot be used.
#[must_use]
pub fn probe_suite_with(probe: &ProbeSpec, words: &[&str], dir: &Path) -> Vec<String> {
    let mut found = Vec::new();
    let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
    let at = &|| Request { words: words.clone(), ..Request::at(dir, SHORT) };
    match probe.takes {
        Takes::Peer(server) => with_its_server(probe, server, &words, dir, &mut found),
        Takes::Nothing => all(probe, dir, at, &mut found),
        Takes::Place | Takes::PlaceOr(..) => {
            all(probe, dir, at, &mut found);
            foreign_files_are_refused(probe, dir, &mut found);
        }
    }
    found
}

/// A request as the probe is asked, in a place or of a peer.
type Asked<'a> = &'a dyn Fn() -> Request;

fn all(probe: &ProbeSpec, dir: &Path, at: Asked<'_>, found: &mut Vec<String>) {
    a_plan_touches_nothing(probe, dir, at, found);
    it_measures_and_leaves_nothing(probe, dir, at, found);
    a_stop_leaves_nothing(probe, dir, at, found);
    every_default_is_taken(probe, at, found);
}

/// The same against the probe's own server, on a port of loopback that was free a moment ago.
fn with_its_server(
    probe: &ProbeSpec,
    server: fn(&Request) -> Result<Box<dyn Serving>, EngineError>,
    words: &[String],
    dir: &Path,
    found: &mut Vec<String>,
) {
    let port = crate::port::free_port();
    let words = [words, &[format!("port={port}")]].concat();
    let request = |place: &str| Request { place: place.into(), time: SHORT, words: words.clone() };
    let stop = Stop::new();
    std::thread::scope(|scope| {
        let (request, stop) = (&request, &stop);
        let served = scope.spawn(move || {
            let server = server(&request(SERVER)).map_err(|e| e.to_string())?;
            if server.plan().is_empty() {
                return Err("plan of the server: empty".to_owned());
            }
            server.serve(stop, &|_| {}).map_err(|e| e.to_string())
        });
        while TcpStream::connect(("127.0.0.1", port)).is_err() && !served.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        all(probe, dir, &|| request("127.0.0.1"), found);
        stop.request();
        let ended = served.join().expect("the server does not panic");
        found.extend(ended.err().map(|why| format!("server: {why}")));
    });
}

const SHORT: Duration = Duration::from_millis(300);

/// The steps as they were announced; stops after one of them.
#[derive(Default)]
struct Heard {
    steps: Mutex<Vec<(usize, usize)>>,
    stop_at: Option<(usize, Stop)>,
}

impl Steps for Heard {
    fn step(&self, number: usize, of: usize, _what: &str) {
        self.steps.lock().expect("no test thread panicked").push((number, of));
        if let Some((at, stop)) = &self.stop_at
            && *at == number
        {
            stop.request();
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).expect("the directory is there");
    let name = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.expect("its entries are readable");
        entry.file_name().to_string_lossy().into_owned()
    };
    let mut names: Vec<String> = entries.map(name).collect();
    names.sort();
    names
}

/// The one file that a probe which reads files is given.
const DATA: &str = "data";

fn leaves_nothing(when: &str, dir: &Path, found: &mut Vec<String>) {
    let mut names = names(dir);
    names.retain(|name| name != DATA);
    expect(found, names.is_empty(), || format!("{when}: {names:?} is left behind"));
}

fn a_plan_touches_nothing(probe: &ProbeSpec, dir: &Path, at: Asked<'_>, found: &mut Vec<String>) {
    match (probe.aim)(&at()) {
        Ok(aimed) => expect(found, !aimed.plan().is_empty(), || "plan: empty".to_owned()),
        Err(error) => found.push(format!("aim: {error}")),
    }
    leaves_nothing("plan", dir, found);
}

fn it_measures_and_leaves_nothing(probe: &ProbeSpec, dir: &Path, at: Asked<'_>, found: &mut Vec<String>) {
    let heard = Heard::default();
    let measured = (probe.aim)(&at()).and_then(|aimed| aimed.measure(&Stop::new(), &heard));
    match measured {
        Ok(readings) => {
            let is_empty = readings.record(&RunData::default()).is_some_and(|record| record.metrics.is_empty());
            expect(found, !is_empty, || "measure: nothing".to_owned());
            expect(found, !readings.was_stopped(), || "measure: stopped".to_owned());
        }
        Err(error) => found.push(format!("measure: {error}")),
    }
    let steps = heard.steps.into_inner().expect("no test thread panicked");
    let of = steps.first().map_or(0, |(_, of)| *of);
    let wanted: Vec<(usize, usize)> = (0..=of).map(|number| (number, of)).collect();
    expect(found, of > 0 && steps == wanted, || format!("steps: {steps:?} are not 0..={of} in order"));
    leaves_nothing("measure", dir, found);
}

fn a_stop_leaves_nothing(probe: &ProbeSpec, dir: &Path, at: Asked<'_>, found: &mut Vec<String>) {
    for stop_at in [0, 2] {
        let stop = Stop::new();
        let heard = Heard { stop_at: Some((stop_at, stop.clone())), ..Heard::default() };
        let ended = (probe.aim)(&at()).and_then(|aimed| aimed.measure(&stop, &heard));
        // One that was through before that step was not stopped.
        if !stop.requested() {
            continue;
        }
        let said = match &ended {
            Ok(readings) => readings.was_stopped(),
            Err(error) => matches!(error, EngineError::Interrupted),
        };
        expect(found, said, || format!("stop at step {stop_at}: it does not say so"));
        leaves_nothing(&format!("stop at step {stop_at}"), dir, found);
    }
}

fn every_default_is_taken(probe: &ProbeSpec, at: Asked<'_>, found: &mut Vec<String>) {
    for option in probe.options().filter(|o| !o.default.is_empty()) {
        let mut request = at();
        request.words.push(format!("{}={}", option.name, option.default));
        if let Err(error) = (probe.aim)(&request) {
            let (name, default) = (option.name, option.default);
            found.push(format!("its own default, {name}={default}: {error}"));
        }
    }
}

fn foreign_files_are_refused(probe: &ProbeSpec, dir: &Path, found: &mut Vec<String>) {
    let file = dir.join("theirs");
    std::fs::write(&file, "theirs").expect("the directory is writable");
    let refused =
        (probe.aim)(&Request::at(&file, SHORT)).and_then(|aimed| aimed.measure(&Stop::new(), &Heard::default()));
    expect(found, refused.is_err(), || "a foreign file: it is not refused".to_owned());
    let kept = std::fs::read_to_string(&file).unwrap_or_default();
    expect(found, kept == "theirs", || "a foreign file: it was changed".to_owned());
    let _ = std::fs::remove_file(&file);
    leaves_nothing("a foreign file", dir, found);
    let absent = dir.join("no/such/file");
    expect(found, (probe.aim)(&Request::at(&absent, SHORT)).is_err(), || {
        "a directory that is not there: it is not refused".to_owned()
    });
    leaves_nothing("a directory that is not there", dir, found);
}
