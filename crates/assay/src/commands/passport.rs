//! `passport` and `accept`: rounds of short tests, kept in a file, and a box judged by such a file.

use super::flag_time::time_within;
use super::platform::{Silent, busy, file_bytes, measured, place_of, refuse_busy};
use super::probe::{dry_run, stamped};
use crate::cli::{AcceptArgs, BoxArgs, PassportArgs};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RunDir};
use crate::{answer, plan_text, progress, record, signals, ui};
use assay_block::free_bytes;
use assay_measure::snapshot::SettingLine;
use assay_measure::units;
use assay_platform::passport::record::{Acceptance, Asked, build, outcome, passport as passport_of};
use assay_platform::passport::{LEAST_S, Passport, ROUNDS, USUAL_S, tests};
use assay_platform::record::Finished;
use assay_run::bounded;
use assay_run::dataset::lines::text;
use assay_run::engine::Line;
use assay_run::stop::Stop;
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::Path;
use std::time::Duration;

/// The workload in the records of both.
const NAME: &str = "passport";
/// The file that is read and written, where there is room.
const USUAL_BYTES: u64 = 1 << 30;

pub(super) fn passport(args: &PassportArgs) -> Result<Code, Failure> {
    let is_there =
        || format!("{}: is there already, and nothing is overwritten; name another --file", args.file.display());
    if args.file.exists() && !args.of.record.dry_run {
        return Err(Failure::usage(is_there()));
    }
    let place = place_of(&args.of.path)?;
    let seconds = args.time.as_deref().map_or(Ok(USUAL_S), seconds)?;
    let file_bytes = file_bytes(args.size.as_deref(), USUAL_BYTES, &place)?;
    let asked = Asked { place, peer: args.of.peer.clone(), seconds, file_bytes, passport: None, root: "/".into() };
    let Some(done) = rounds(&args.of, &asked, Some(args.anyway))? else { return Ok(Code::Good) };
    let host = done.run.host.iter().find(|fact| fact.name == "hostname").map_or("", |fact| fact.value.as_str());
    if done.is_stopped {
        ui::say("no passport was written: it was stopped");
        return Ok(Code::Interrupted);
    }
    let made = passport_of(&done.run, &asked, &done.rounds, host).text();
    let unwritten = |error| Failure::new(Code::Output, format!("{}: {error}", args.file.display()));
    // Never over a file that came meanwhile.
    let mut file = OpenOptions::new().write(true).create_new(true).open(&args.file).map_err(unwritten)?;
    file.write_all(made.as_bytes()).and_then(|()| file.sync_all()).map_err(unwritten)?;
    ui::say(&format!("passport: {}", args.file.display()));
    Ok(Code::Good)
}

pub(super) fn accept(args: &AcceptArgs) -> Result<Code, Failure> {
    let refused = |why: &str| Failure::usage(format!("{}: {why}", args.passport.display()));
    let text = bounded::text(&args.passport, bounded::CONFIGURATION).map_err(|error| refused(&error.to_string()))?;
    let passport = Passport::read(&text).map_err(|why| refused(&why))?;
    if passport.has_peer && args.of.peer.is_none() {
        return Err(refused("has figures of a peer; name this box's with --peer HOST"));
    }
    let place = place_of(&args.of.path)?;
    let free = free_bytes(&place).map_err(|error| Failure::new(Code::Unusable, error.to_string()))?;
    if passport.file_bytes > free {
        let (needed, free) = (units::size(passport.file_bytes), units::size(free));
        let told = format!("{}: {free} free, {needed} needed as for the passport; name another PATH", place.display());
        return Err(Failure::new(Code::Unusable, told));
    }
    if passport.version != env!("CARGO_PKG_VERSION") {
        ui::say(&format!(
            "warning: the passport was made by assay {}, this is {}: figures may be measured in another way",
            passport.version,
            env!("CARGO_PKG_VERSION")
        ));
    }
    let asked = Asked {
        place,
        peer: args.of.peer.clone().filter(|_| passport.has_peer),
        seconds: passport.seconds,
        file_bytes: passport.file_bytes,
        passport: Some((passport, args.passport.display().to_string())),
        root: "/".into(),
    };
    let Some(done) = rounds(&args.of, &asked, None)? else { return Ok(Code::Good) };
    if done.is_stopped {
        return Ok(Code::Interrupted);
    }
    Ok(match outcome(&done.record) {
        Acceptance::Accepted => Code::Good,
        Acceptance::Worse => Code::Regression,
        Acceptance::Unjudged => Code::Invalid,
    })
}

fn seconds(given: &str) -> Result<u64, Failure> {
    let taken = Duration::from_secs(LEAST_S)..=Duration::from_secs(3600);
    Ok(time_within("--time", given, taken, &format!("{LEAST_S}s to 1h"))?.as_secs())
}

/// What the rounds left.
struct Done {
    run: assay_measure::snapshot::RunData,
    record: assay_measure::record::Record,
    rounds: Vec<Vec<Finished>>,
    is_stopped: bool,
}

/// All rounds, with their record and answer; nothing where only the plan was asked for. A busy host is refused unless it is to be
/// measured anyway; an acceptance (none) judges that by figure.
fn rounds(args: &BoxArgs, asked: &Asked, is_anyway: Option<bool>) -> Result<Option<Done>, Failure> {
    let id = rundir::new_id();
    let dir = rundir::place(args.record.output.as_deref(), NAME, &id);
    if args.record.output.is_some() {
        rundir::refuse_used(&dir)?;
    }
    let file = asked.place.join(format!("assay-passport-{id}.scratch"));
    let lines = plan_lines(asked);
    if args.record.dry_run {
        return dry_run(args.record.format, &lines).map(|_| None);
    }
    ui::say(&plan_text::lines(&lines));
    let stop = signals::watch()?;
    if let Some(is_anyway) = is_anyway {
        refuse_busy(is_anyway, busy(&stop))?;
    }
    let run = stamped(NAME, args.record.label.clone(), settings(args, asked), id, jiff::Timestamp::now().to_string());
    let dir = RunDir::create(dir)?;
    let rounds = all(asked, &file, &stop);
    // The storage probe keeps a file that was named; it is ours.
    let _ = fs::remove_file(&file);
    let is_stopped = stop.requested();
    let whole = build(&run, asked, &rounds, is_stopped);
    let written = record::write(&dir, &whole);
    answer::product(&whole, args.record.format, dir.path())?;
    written?;
    ui::say(&format!("record: {}", dir.path().display()));
    Ok(Some(Done { run, record: whole, rounds, is_stopped }))
}

fn all(asked: &Asked, file: &Path, stop: &Stop) -> Vec<Vec<Finished>> {
    let planned = tests(asked.seconds, file, asked.file_bytes, asked.peer.is_some());
    let mut rounds = Vec::new();
    for round in 0..ROUNDS {
        if stop.requested() {
            break;
        }
        let left = asked.seconds as f64 * (1.0 - round as f64 / ROUNDS as f64);
        ui::say(&format!("round {} of {ROUNDS}, about {} left", round + 1, progress::left(left)));
        let mut finished = Vec::new();
        for test in &planned {
            if stop.requested() {
                break;
            }
            let record = measured(test, &asked.place, asked.peer.as_deref(), None, stop, &Silent);
            if let Err(why) = &record
                && !stop.requested()
            {
                ui::say(&format!("error: {}: {why}", test.name));
            }
            finished.push(Finished { test: test.name, directory: String::new(), record });
        }
        // A round that was cut short has figures of less time than the others.
        if !stop.requested() {
            rounds.push(finished);
        }
    }
    rounds
}

fn plan_lines(asked: &Asked) -> Vec<Line> {
    let against = asked.passport.as_ref().map(|(passport, file)| {
        let made = format!("{file}, made on {} at {}", passport.host, passport.made);
        text("passport", "passport", made)
    });
    let lines = [
        text("place", "place", asked.place.display().to_string()),
        text("file", "file", format!("{}, removed at the end", units::size(asked.file_bytes))),
        text(
            "rounds",
            "rounds",
            format!("{ROUNDS} of about {} s: storage, CPU, memory, clock", asked.seconds / ROUNDS as u64),
        ),
        text(
            "measuring",
            "measuring",
            format!("about {} in all, and what laying out the file takes", progress::left(asked.seconds as f64)),
        ),
    ];
    against.into_iter().chain(lines).collect()
}

fn settings(args: &BoxArgs, asked: &Asked) -> Vec<SettingLine> {
    let path = args.path.display().to_string();
    let origin = if path == "." { "default" } else { "cli" };
    let mut all = vec![SettingLine::new("PATH", path, origin)];
    all.extend(args.peer.iter().map(|peer| SettingLine::new("WITH_PEER", peer.clone(), "cli")));
    all.extend(asked.passport.iter().map(|(_, file)| SettingLine::new("PASSPORT", file.clone(), "cli")));
    all
}
