//! The life cycle of a data set, by the program's own calls ([`assay_run::life`]), for the tests of every target.

use super::expect;
use assay_measure::config::{Effective, Origin, Settings, Value};
use assay_run::engine::{EngineError, Line, Presence, Progress, Target};
use assay_run::life::Life;
use assay_run::stop::Stop;

/// Nobody looks at the progress.
pub struct Unwatched;

impl Progress for Unwatched {
    fn update(&self, _phase: &str, _done_bytes: u64, _total_bytes: u64) {}
}

/// Asks for a stop at the first sign of progress in a phase.
struct StopsIn<'a> {
    phase: &'static str,
    stop: &'a Stop,
}

impl Progress for StopsIn<'_> {
    fn update(&self, phase: &str, _done_bytes: u64, _total_bytes: u64) {
        if phase == self.phase {
            self.stop.request();
        }
    }
}

fn life<'a>(target: &'a dyn Target, location: &'a str) -> Life<'a> {
    Life { target, location, shown: location }
}

/// The settings of a command with `-s SCHEMAS`.
fn asking_for(settings: &Settings, schemas: u32) -> Settings {
    let mut asked = settings.clone();
    asked.set(Effective {
        def: settings.get("SCHEMAS").def,
        value: Value::Int(u64::from(schemas)),
        text: schemas.to_string(),
        origin: Origin::CommandLine,
    });
    asked
}

/// `assay prepare -s SCHEMAS --dry-run`.
///
/// # Errors
/// As the command's.
pub fn plan(target: &dyn Target, location: &str, settings: &Settings, schemas: u32) -> Result<Vec<Line>, EngineError> {
    let mut asked = asking_for(settings, schemas);
    Ok(life(target, location).plan_prepare(&mut asked)?.plan)
}

/// `assay prepare -s SCHEMAS`.
///
/// # Errors
/// As the command's.
pub fn load(
    target: &dyn Target,
    location: &str,
    settings: &Settings,
    schemas: u32,
    stop: &Stop,
    progress: &dyn Progress,
) -> Result<Vec<Line>, EngineError> {
    let mut asked = asking_for(settings, schemas);
    let life = life(target, location);
    let load = life.plan_prepare(&mut asked)?;
    life.prepare(&asked, &load, stop, progress)
}

/// `assay check`.
///
/// # Errors
/// As the command's.
pub fn check(target: &dyn Target, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    life(target, location).check(settings, "", &Stop::new(), &Unwatched)
}

/// `assay destroy`.
///
/// # Errors
/// As the command's.
pub fn destroy(target: &dyn Target, location: &str, settings: &Settings) -> Result<Vec<Line>, EngineError> {
    life(target, location).destroy(settings)
}

/// Takes a data set through its whole life cycle at an empty place: loads, adds, is stopped in every phase of a load
/// and continues. Returns each violation as a sentence.
#[must_use]
pub fn life_suite(target: &dyn Target, location: &str, settings: &Settings) -> Vec<String> {
    let mut found = Vec::new();
    let schemas = |found: &mut Vec<String>, when: &str, least: u32, most: u32| {
        let there = match target.inspect(location, settings) {
            Ok(Presence::Present(data)) => data.schemas,
            Ok(Presence::Absent { .. }) => 0,
            Err(error) => return found.push(format!("{when}: it cannot be looked at: {error}")),
        };
        expect(found, (least..=most).contains(&there), || {
            format!("{when}: {there} schemas are there, not {least} to {most}")
        });
    };
    let stopped = |found: &mut Vec<String>, when: &str, phase, goal| {
        let stop = Stop::new();
        let watch = StopsIn { phase, stop: &stop };
        match load(target, location, settings, goal, &stop, &watch) {
            // A phase may be over before anybody sees it.
            Ok(_) | Err(EngineError::Interrupted) => {}
            Err(error) => found.push(format!("{when}: {error}")),
        }
    };
    let loaded = |found: &mut Vec<String>, when: &str, goal| {
        let done = load(target, location, settings, goal, &Stop::new(), &Unwatched);
        if let Err(error) = done {
            // What was stopped late may have come to its end.
            let there = matches!(error, EngineError::Usage(_));
            expect(found, there, || format!("{when}: {error}"));
        }
        if let Err(error) = check(target, location, settings) {
            found.push(format!("{when}: check: {error}"));
        }
    };
    schemas(&mut found, "before", 0, 0);
    let none = check(target, location, settings);
    expect(&mut found, none.is_err(), || "check of nothing: it passes".to_owned());
    stopped(&mut found, "a first load stopped", "load", 2);
    loaded(&mut found, "a first load taken up", 2);
    schemas(&mut found, "loaded", 2, 2);
    let again = load(target, location, settings, 2, &Stop::new(), &Unwatched);
    expect(&mut found, matches!(again, Err(EngineError::Usage(_))), || {
        format!("loading what is there: {again:?} is no usage error")
    });
    let mut goal = 2;
    for phase in ["load", "index", "check index"] {
        goal += 1;
        stopped(&mut found, "an addition stopped", phase, goal);
        schemas(&mut found, "an addition stopped", goal - 1, goal);
        if let Err(error) = check(target, location, settings) {
            found.push(format!("an addition stopped in {phase}: check: {error}"));
        }
        loaded(&mut found, "an addition taken up", goal);
        schemas(&mut found, "an addition taken up", goal, goal);
    }
    if let Err(error) = destroy(target, location, settings) {
        found.push(format!("destroy: {error}"));
    }
    schemas(&mut found, "destroyed", 0, 0);
    found
}
