//! `platform`: the tests of a plan, each through the contract of its probe, into one record above theirs.

use super::probe::{dry_run, stamped};
use crate::cli::PlatformArgs;
use crate::exit::{Code, Failure};
use crate::fleet_part::{self, Lockstep};
use crate::progress;
use crate::registry;
use crate::rundir::{self, RECORD, RunDir};
use crate::{answer, plan_text, record, signals, stored, ui};
use assay_block::free_bytes;
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_measure::snapshot::SettingLine;
use assay_measure::units;
use assay_platform::MOST_BUSY_PCT;
use assay_platform::goals::Goals;
use assay_platform::hosts;
use assay_platform::needs;
use assay_platform::plan::{self, Against, Plan, Test};
use assay_platform::record::{Asked, Finished, build};
use assay_run::bounded;
use assay_run::dataset::lines::text;
use assay_run::engine::Line;
use assay_run::host::Sampler;
use assay_run::probe::{Request, Steps};
use assay_run::stop::Stop;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// The command's name, and the workload in its records.
const NAME: &str = "platform";
/// The file that is read and written has so many bytes where there is room, at most this part of what is free, and no fewer than
/// make random reads random.
const USUAL_BYTES: u64 = 2 << 30;
const PART_OF_FREE: u64 = 4;
const LEAST_BYTES: u64 = 64 << 20;
/// Why there is none of a test that a fleet made without this host.
const MISSED: &str = "the other hosts made it while this one was cut off";
/// How long the host is watched before the first test.
const WATCH: Duration = Duration::from_secs(3);

pub(super) fn platform(args: &PlatformArgs) -> Result<Code, Failure> {
    let place = place_of(&args.path)?;
    let goals = goals(args.goals.as_deref())?;
    let id = rundir::new_id();
    let dir = rundir::place(args.record.output.as_deref(), NAME, &id);
    let before = finished_before(args.record.output.as_deref())?;
    let file = place.join(format!("assay-platform-{id}.scratch"));
    let plan = match (args.full, args.brief.is_empty()) {
        (true, _) => Plan::Full,
        (_, true) => Plan::Quick,
        _ => Plan::Brief,
    };
    let bytes = file_bytes(args.size.as_deref(), USUAL_BYTES, &place)?;
    let mut tests = plan::tests(plan, &file, bytes, args.peer.is_some());
    tests.retain(|test| plan != Plan::Brief || args.brief.iter().any(|name| name == test.name));
    let mut asked =
        Asked { plan, place, peer: args.peer.clone(), goals, tests, root: "/".into(), busy_before_pct: None };
    let lines = plan_lines(&asked, &before);
    if args.record.dry_run {
        return dry_run(args.record.format, &lines);
    }
    ui::say(&plan_text::lines(&lines));
    let stop = signals::watch()?;
    asked.busy_before_pct = busy(&stop);
    refuse_busy(args.anyway, asked.busy_before_pct)?;
    let run = stamped(NAME, args.record.label.clone(), settings(args), id, jiff::Timestamp::now().to_string());
    let above = if before.is_empty() { RunDir::above(&dir) } else { RunDir::claimed(&dir) }?;
    crate::html::share_in(&above)?;
    let lockstep = Lockstep::of(&stop);
    let (finished, worst) = (Vec::new(), Code::Good);
    let mut going = Going { args, asked: &asked, dir: &above, stop: &stop, lockstep, finished, worst };
    let ended =
        going.all(&before, |finished, is_stopped| record::write(&above, &build(&run, &asked, finished, is_stopped)));
    // The storage probe keeps a file that was named; it is ours.
    let _ = fs::remove_file(&file);
    let whole = build(&run, &asked, &going.finished, stop.requested());
    if let Some(lockstep) = going.lockstep.take() {
        fleet_part::measured(above.path(), Some(hosts::data(&run, &whole, &going.finished, lockstep.ran())));
    }
    ended?;
    let written = record::write(&above, &whole);
    answer::product(&whole, args.record.format, above.path())?;
    written?;
    ui::say(&format!("platform: {}", above.path().display()));
    if stop.requested() {
        ui::say(&format!(
            "`assay platform -o {}` goes on with the tests that are left",
            shell_word(&dir.display().to_string())
        ));
        return Ok(Code::Interrupted);
    }
    Ok(going.worst)
}

fn goals(file: Option<&Path>) -> Result<Goals, Failure> {
    let Some(file) = file else { return Ok(Goals::default()) };
    let refused = |why: &str| Failure::usage(format!("--goals {}: {why}", file.display()));
    let text = bounded::text(file, bounded::CONFIGURATION).map_err(|error| refused(&error.to_string()))?;
    needs::goals(&text).map_err(|why| refused(&why))
}

/// The directory that was named.
pub(super) fn place_of(path: &Path) -> Result<PathBuf, Failure> {
    let refused = |error| Failure::new(Code::Unusable, format!("{}: {error}", path.display()));
    let place = path.canonicalize().map_err(refused)?;
    if place.is_dir() {
        return Ok(place);
    }
    Err(Failure::usage(format!("{}: is not a directory; name one on the database's storage", place.display())))
}

/// The bytes of the file that is read and written: as given, or as usual where there is room.
pub(super) fn file_bytes(given: Option<&str>, usual: u64, place: &Path) -> Result<u64, Failure> {
    let free = free_bytes(place).map_err(|error| Failure::new(Code::Unusable, error.to_string()))?;
    let Some(given) = given else {
        // The hosts of a fleet may share what is free.
        let part_of_free = PART_OF_FREE * fleet_part::get().map_or(1, |part| part.hosts());
        let bytes = usual.min(free / part_of_free);
        let lacking = || {
            let (free, needed) = (units::size(free), units::size(LEAST_BYTES * part_of_free));
            Failure::new(
                Code::Unusable,
                format!("{}: {free} free, {needed} needed; make room, or name another PATH", place.display()),
            )
        };
        return if bytes < LEAST_BYTES { Err(lacking()) } else { Ok(bytes) };
    };
    let refused = |why: &str| Failure::usage(format!("--size {given}: {why}"));
    match units::parse_size_bytes(given).map_err(|error| refused(&error.to_string()))? {
        bytes if bytes < LEAST_BYTES => Err(refused("give 64M or more")),
        bytes if bytes > free => Err(refused(&format!("only {} are free on {}", units::size(free), place.display()))),
        bytes => Ok(bytes),
    }
}

/// The tests that an interrupted platform in this directory finished; none where it is new or empty.
fn finished_before(output: Option<&Path>) -> Result<Vec<String>, Failure> {
    let Some(dir) = output.filter(|dir| dir.join(RECORD).is_file()) else {
        return output.map_or(Ok(()), rundir::refuse_used).map(|()| Vec::new());
    };
    let record = stored::read(&dir.join(RECORD))?;
    if record.run.workload != NAME || record.run.verdict == "complete" {
        return rundir::refuse_used(dir).map(|()| Vec::new());
    }
    let members = assay_report::kinds::of(&record).members(&record);
    Ok(members.into_iter().filter(|member| stored::read(&dir.join(member).join(RECORD)).is_ok_and(is_whole)).collect())
}

fn is_whole(record: Record) -> bool {
    record.run.verdict == "complete"
}

fn plan_lines(asked: &Asked, before: &[String]) -> Vec<Line> {
    let tests = asked.tests.iter().map(|test| {
        let has = before.iter().any(|done| done == test.name);
        let time = if has { "kept from before".to_owned() } else { format!("{} s", test.seconds) };
        text(test.name, test.name, format!("{time}: {} (assay {})", test.about, test.probe))
    });
    let left = asked.tests.iter().filter(|test| !before.iter().any(|done| done == test.name));
    let left: Duration = left.map(Test::time).sum();
    let whole = text(
        "measuring",
        "measuring",
        format!("about {} in all, and what laying out the file takes", progress::left(left.as_secs_f64())),
    );
    [text("place", "place", asked.place.display().to_string())].into_iter().chain(tests).chain([whole]).collect()
}

fn settings(args: &PlatformArgs) -> Vec<SettingLine> {
    let path = args.path.display().to_string();
    let origin = if path == "." { "default" } else { "cli" };
    let mut all = vec![SettingLine::new("PATH", path, origin)];
    all.extend(args.full.then(|| SettingLine::new("FULL", "full".to_owned(), "cli")));
    all.extend(args.peer.iter().map(|peer| SettingLine::new("WITH_PEER", peer.clone(), "cli")));
    all.extend(args.size.iter().map(|size| SettingLine::new("SIZE", size.clone(), "cli")));
    all.extend((!args.brief.is_empty()).then(|| SettingLine::new("BRIEF", args.brief.join(","), "cli")));
    all
}

/// How busy the host is, %, with nothing of ours running.
pub(super) fn busy(stop: &Stop) -> Option<f64> {
    let mut sampler = Sampler::new(Vec::new());
    let before = sampler.sample();
    let begun = Instant::now();
    while begun.elapsed() < WATCH && !stop.requested() {
        thread::sleep(Duration::from_millis(50));
    }
    let after = sampler.sample();
    let (before, after) = (before.cpu_ns?, after.cpu_ns?);
    // Guests' time, the last two columns, is part of user and nice.
    let spent: Vec<u64> =
        after.iter().zip(before).take(8).map(|(after, before)| after.saturating_sub(before)).collect();
    let (idle, all) = (spent[3] + spent[4], spent.iter().sum::<u64>());
    (all > 0).then(|| 100.0 * (all - idle) as f64 / all as f64)
}

pub(super) fn refuse_busy(is_anyway: bool, busy_pct: Option<f64>) -> Result<(), Failure> {
    let Some(pct) = busy_pct.filter(|pct| *pct > MOST_BUSY_PCT) else { return Ok(()) };
    let told = format!("other processes keep this host's CPUs {pct:.0} % busy, more than {MOST_BUSY_PCT} %");
    if is_anyway {
        ui::say(&format!("warning: {told}: the figures are of what they leave"));
        return Ok(());
    }
    Err(Failure::new(Code::Unusable, format!("{told}: measure when it is quiet, or give --anyway")))
}

/// The tests that are under way.
struct Going<'a> {
    args: &'a PlatformArgs,
    asked: &'a Asked,
    dir: &'a RunDir,
    stop: &'a Stop,
    /// With the other hosts of a fleet.
    lockstep: Option<Lockstep<'a>>,
    finished: Vec<Finished>,
    worst: Code,
}

impl Going<'_> {
    /// Runs every test that was not finished before, and keeps the record up to date. Only an output that cannot be written
    /// ends it early.
    fn all(
        &mut self,
        before: &[String],
        keep: impl Fn(&[Finished], bool) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        for (at, test) in self.asked.tests.iter().enumerate() {
            if self.stop.requested() {
                break;
            }
            let kept = before.iter().any(|done| done == test.name);
            let record = if kept {
                stored::read(&self.dir.path().join(test.name).join(RECORD)).map_err(|failure| failure.lines.join("; "))
            } else if self.lockstep.as_ref().is_some_and(|hosts| !hosts.begin_test(at)) {
                Err(MISSED.to_owned())
            } else {
                let left: Duration = self.asked.tests[at..].iter().map(Test::time).sum();
                let left = progress::left(left.as_secs_f64());
                ui::say(&format!("test {} of {}, about {left} left: {}", at + 1, self.asked.tests.len(), test.about));
                self.test(test)?
            };
            if self.stop.requested() && record.as_ref().map_or(true, |record| record.run.verdict != "complete") {
                break;
            }
            let directory = record.as_ref().map_or_else(|_| String::new(), |_| test.name.to_owned());
            self.finished.push(Finished { test: test.name, directory, record });
            keep(&self.finished, true)?;
        }
        Ok(())
    }

    /// One test: its record, written below ours; or why it has none.
    fn test(&mut self, test: &Test) -> Result<Result<Record, String>, Failure> {
        let label = self.args.record.label.clone();
        let steps: &dyn Steps = self.lockstep.as_ref().map_or(&Silent, |hosts| hosts);
        let measured = measured(test, &self.asked.place, self.args.peer.as_deref(), label, self.stop, steps);
        self.lockstep.iter().for_each(|hosts| hosts.end_test(test.name));
        match measured {
            Ok(record) => {
                if record.run.verdict == "invalid" {
                    self.worst = Code::Invalid;
                }
                // A test that is done again after an interruption takes the place of its part.
                let below = self.dir.path().join(test.name);
                let dir = if below.exists() { RunDir::existing(&below) } else { RunDir::create(below) }?;
                record::write(&dir, &record)?;
                Ok(Ok(record))
            }
            Err(why) => {
                if !self.stop.requested() {
                    self.worst = Code::Unusable;
                    ui::say(&format!("error: {}: {why}", test.name));
                }
                Ok(Err(why))
            }
        }
    }
}

/// The record of one test through its probe; or why there is none.
pub(super) fn measured(
    test: &Test,
    place: &Path,
    peer: Option<&str>,
    label: Option<String>,
    stop: &Stop,
    steps: &dyn Steps,
) -> Result<Record, String> {
    let probe = registry::probe(test.probe).expect("the plan names probes of the registry");
    let place = match (test.against, peer) {
        (Against::Peer, Some(peer)) => PathBuf::from(peer),
        _ => place.to_owned(),
    };
    let request = Request { place, time: test.time(), words: test.words.clone() };
    let labels = stamped(test.probe, label, Vec::new(), rundir::new_id(), jiff::Timestamp::now().to_string());
    let measured = (probe.aim)(&request).and_then(|aimed| aimed.measure(stop, steps));
    let record = measured.map_err(|error| error.to_string())?.record(&labels);
    record.ok_or_else(|| format!("the probe {} brought no record", test.probe))
}

/// The tests' own steps are not shown: the line above names the test and the plan its time.
pub(super) struct Silent;

impl Steps for Silent {
    fn step(&self, _: usize, _: usize, _: &str) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use assay_measure::snapshot::RunData;

    fn kept(dir: &Path, record: &Record) {
        fs::create_dir_all(dir).expect("made");
        fs::write(dir.join(RECORD), serde_json::to_string(record).expect("JSON")).expect("written");
    }

    /// Of a platform that was stopped in its second test, the first need not be done again; of a whole one nothing is.
    #[test]
    fn an_interrupted_platform_goes_on_and_a_finished_one_is_never_overwritten() {
        registry::install();
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let dir = scratch.path().join("box");
        assert_eq!(finished_before(Some(&dir)).expect("new"), Vec::<String>::new());
        let labels = |workload: &str| RunData { workload: workload.to_owned(), ..RunData::default() };
        let of_test = |verdict: &str| {
            let mut record = Record::labelled(&labels("clock"));
            record.run.verdict = verdict.to_owned();
            record
        };
        let tests = plan::tests(Plan::Quick, Path::new("/file"), 1 << 30, false);
        let finished: Vec<Finished> = tests[..2]
            .iter()
            .zip(["complete", "incomplete"])
            .map(|(test, verdict)| {
                kept(&dir.join(test.name), &of_test(verdict));
                Finished { test: test.name, directory: test.name.to_owned(), record: Ok(of_test(verdict)) }
            })
            .collect();
        let asked = Asked {
            plan: Plan::Quick,
            place: "/".into(),
            peer: None,
            goals: Goals::default(),
            tests,
            root: "/nowhere".into(),
            busy_before_pct: None,
        };
        kept(&dir, &build(&labels(NAME), &asked, &finished, true));
        assert_eq!(finished_before(Some(&dir)).expect("interrupted"), ["clock"]);
        kept(&dir, &build(&labels(NAME), &asked, &finished, false));
        assert_eq!(finished_before(Some(&dir)).expect_err("finished").code, Code::Usage);
    }
}
