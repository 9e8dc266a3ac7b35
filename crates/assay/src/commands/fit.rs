//! `fit`: the load of a database's report, offered to this box until it misses it.

use super::cost::read_prices;
use super::flag_time::time_within;
use super::import::imported;
use super::platform::{busy, file_bytes, place_of, refuse_busy};
use super::probe::{dry_run, stamped};
use super::watch;
use crate::cli::format::is_json;
use crate::cli::{FitArgs, SettingArgs};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RECORD, RunDir};
use crate::{answer, perform, plan_text, progress, record, signals, stored, ui};
use assay_measure::config::mask_url_password;
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_measure::snapshot::{RunData, SettingLine};
use assay_measure::units;
use assay_platform::fit::load::DatabaseLoad;
use assay_platform::fit::offer::{Offer, ServerMemory};
use assay_platform::fit::record::{
    FitAsked, FitStep, Shape, build, held, load_of, plan_rows, same_offer, steps_before,
};
use assay_platform::fit::rise;
use assay_report::cost;
use assay_report::formats::Input;
use assay_report::kinds;
use assay_run::dataset::lines::text;
use assay_run::engine::{DataSet, Line, Presence};
use assay_run::stop::Stop;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The command's name, and the workload in its records.
const NAME: &str = "fit";
/// Data that are read and written where there is room.
const USUAL_BYTES: u64 = 4 << 30;
/// A server with a larger cache is not loaded past it unasked.
const MOST_CACHE_BYTES: u64 = 8 << 30;
/// A server is watched so long.
const USUAL_INTERVAL: Duration = Duration::from_mins(1);
const NS_PER_S: u64 = 1_000_000_000;

pub(super) fn fit(args: &FitArgs) -> Result<Code, Failure> {
    let (reports, place) = words(args)?;
    let step_s = seconds(&args.time)?;
    let interval = interval(args, reports)?;
    let stop = signals::watch()?;
    let (loads, source) = loads(reports, interval, &stop)?;
    let shapes = args.prices.as_deref().map_or(Ok(Vec::new()), shapes)?;
    let mut asked = FitAsked { loads, source, place: None, offer: None, step_s, shapes };
    if args.plan_only {
        asked.offer = Offer::of(asked.load(), USUAL_BYTES, None);
        return plan_only(args, &asked);
    }
    refuse_missing(&asked)?;
    if let Some(url) = &args.target {
        (asked.offer, asked.place) = on_server(args, url, &place, asked.load())?;
        return offer(args, &asked, &stop);
    }
    let place = place_of(&place)?;
    // It would be two places for the native target.
    if place.to_string_lossy().contains(',') {
        return Err(Failure::usage(format!(
            "{}: a comma parts two paths of the native target; name another PATH",
            place.display()
        )));
    }
    asked.offer = Offer::of(asked.load(), file_bytes(args.size.as_deref(), USUAL_BYTES, &place)?, None);
    asked.place = Some(place.display().to_string());
    offer(args, &asked, &stop)
}

fn refuse_missing(asked: &FitAsked) -> Result<(), Failure> {
    let missing = asked.load().missing();
    if missing.is_empty() {
        return Ok(());
    }
    Err(Failure::usage(format!(
        "{}: cannot be offered without {}; --plan-only says what it tells",
        asked.load().name,
        missing.join(", ")
    )))
}

/// The offer to a server, which has a cache of its own and must have no data set of ours, and its URL to be shown.
fn on_server(
    args: &FitArgs,
    url: &str,
    place: &Path,
    load: &DatabaseLoad,
) -> Result<(Option<Offer>, Option<String>), Failure> {
    if place != Path::new(".") {
        return Err(Failure::usage("PATH and --target are two places to offer the load to; name one".to_owned()));
    }
    let settings = SettingArgs { target: Some(url.to_owned()), ..SettingArgs::default() };
    let (configured, _) = configure::configure_quietly(&settings, Vec::new())?;
    configured.refuse_temporary("offer a load to")?;
    let shown = configured.shown();
    if let Presence::Present(_) = configured.target.inspect(&configured.location, &configured.settings)? {
        return Err(Failure::usage(format!("{shown} has a data set already: name an empty database")));
    }
    let facts = configured.target.watch(&configured.location, &configured.settings)?.facts();
    let fact = |name: &str| facts.iter().find(|fact| fact.name == name)?.value.parse::<u64>().ok();
    let told = fact("block_bytes").zip(fact("cache_bytes"));
    let (block_bytes, cache_bytes) =
        told.ok_or_else(|| Failure::new(Code::Unusable, format!("{shown} does not tell its block and its cache")))?;
    let bytes = match args.size.as_deref() {
        None if cache_bytes > MOST_CACHE_BYTES => {
            return Err(Failure::usage(format!(
                "{shown} has a cache of {}: say how many bytes of data may be loaded there (--size), more than that",
                units::size(cache_bytes)
            )));
        }
        None => USUAL_BYTES.max(4 * cache_bytes),
        Some(given) => {
            units::parse_size_bytes(given).map_err(|why| Failure::usage(format!("--size {given}: {why}")))?
        }
    };
    let offer = Offer::of(load, bytes, Some(ServerMemory { block_bytes, cache_bytes }));
    if offer.is_none() {
        return Err(Failure::usage(format!(
            "--size {}: the server's cache of {} holds all of it; give a larger size",
            units::size(bytes),
            units::size(cache_bytes)
        )));
    }
    Ok((offer, Some(shown)))
}

/// How long a server is watched.
fn interval(args: &FitArgs, reports: &[PathBuf]) -> Result<Duration, Failure> {
    let Some(given) = &args.interval else { return Ok(USUAL_INTERVAL) };
    if !reports.iter().any(|report| watch::url(report).is_some()) {
        return Err(Failure::usage(format!(
            "--interval {given}: a report has an interval of its own; it is for the URL of a server that is watched"
        )));
    }
    time_within("--interval", given, Duration::from_secs(10)..=Duration::from_secs(86_400), "10s to 24h")
}

/// The reports, and the directory: the last word where it is one that holds no record.
fn words(args: &FitArgs) -> Result<(&[PathBuf], PathBuf), Failure> {
    let all = args.words.as_slice();
    match all.split_last() {
        Some((last, before)) if !args.plan_only && last.is_dir() && !last.join(RECORD).exists() => {
            if before.is_empty() {
                return Err(Failure::usage(format!(
                    "{}: is a directory without a record; name the report before it",
                    last.display()
                )));
            }
            Ok((before, last.clone()))
        }
        _ => Ok((all, ".".into())),
    }
}

fn seconds(given: &str) -> Result<u64, Failure> {
    let taken = Duration::from_secs(5)..=Duration::from_secs(3600);
    Ok(time_within("--time", given, taken, "5s to 1h")?.as_secs())
}

/// The loads of all reports, and the record of the one with the peak.
fn loads(reports: &[PathBuf], interval: Duration, stop: &Stop) -> Result<(Vec<DatabaseLoad>, Record), Failure> {
    let (mut loads, mut sources, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for report in reports {
        let name = mask_url_password(&report.display().to_string());
        for record in records(report, interval, stop)? {
            match load_of(&name, &record) {
                Ok(load) => {
                    loads.push(load);
                    sources.push(record);
                }
                Err(why) => refused.push(format!("{name}: {why}")),
            }
        }
    }
    // One bad report among good ones is a slip too: it may be the peak.
    if !refused.is_empty() {
        return Err(Failure { code: Code::Usage, lines: refused });
    }
    let asked = FitAsked { loads, ..FitAsked::default() };
    let at = asked.loads.iter().position(|load| load == asked.load()).unwrap_or_default();
    Ok((asked.loads, sources.swap_remove(at)))
}

/// Of a run its record, of another tool's output what an import makes of it, of a server what it counts from now on.
fn records(report: &Path, interval: Duration, stop: &Stop) -> Result<Vec<Record>, Failure> {
    if let Some(url) = watch::url(report) {
        return watch::watch(url, interval, stop).map(|record| vec![record]);
    }
    let below = report.join(RECORD);
    if below.is_file() {
        return stored::read(&below).map(|record| vec![record]);
    }
    if report.extension().is_some_and(|ending| ending == "json")
        && let Ok(record) = stored::read(report)
    {
        return Ok(vec![record]);
    }
    if report.is_dir() {
        return Err(super::runs::missing(report, || format!("{}: holds no record; name a report", report.display())));
    }
    imported(report)
}

fn shapes(path: &Path) -> Result<Vec<Shape>, Failure> {
    let prices = read_prices(path)?;
    let shape = |platform| {
        let cost = cost::priced(&prices, platform);
        Shape {
            name: cost.platform,
            month: cost.total_monthly,
            currency: cost.currency,
            ios_per_s: cost.provisioned_iops,
            mb_per_s: cost.provisioned_mbps,
        }
    };
    Ok(prices.platforms.iter().map(shape).collect())
}

/// The answer without a box.
fn plan_only(args: &FitArgs, asked: &FitAsked) -> Result<Code, Failure> {
    let id = rundir::new_id();
    let mut run = labels(args, asked, id);
    // Of no box.
    if args.plan_only {
        run.host.clear();
    }
    let whole = build(&run, asked, &[], false);
    let Some(output) = &args.record.output else {
        let records = [&whole];
        let mut input = Input::of(&records);
        input.context.screen = ui::screen();
        ui::product(&answer::written(args.record.format, &input, Path::new("-"))?)?;
        return Ok(Code::Good);
    };
    rundir::refuse_used(output)?;
    let dir = RunDir::above(output)?;
    record::write(&dir, &whole)?;
    answer::product(&whole, args.record.format, dir.path())?;
    ui::say(&format!("record: {}", dir.path().display()));
    Ok(Code::Good)
}

fn labels(args: &FitArgs, asked: &FitAsked, id: String) -> RunData {
    let mut settings: Vec<SettingLine> =
        asked.loads.iter().map(|load| SettingLine::new("REPORT", &*load.name, "cli")).collect();
    let place = if args.target.is_some() { "TARGET" } else { "PATH" };
    settings.extend(asked.place.iter().map(|at| SettingLine::new(place, &**at, "cli")));
    settings.extend(asked.place.iter().map(|_| SettingLine::new("TIME", &*args.time, "cli")));
    stamped(NAME, args.record.label.clone(), settings, id, jiff::Timestamp::now().to_string())
}

/// Offers the load, rising, to a data set of its own that goes at the end.
fn offer(args: &FitArgs, asked: &FitAsked, stop: &Stop) -> Result<Code, Failure> {
    let id = rundir::new_id();
    let place = rundir::place(args.record.output.as_deref(), NAME, &id);
    let before = steps_done(args.record.output.as_deref(), asked)?;
    let configured = configured(args, asked, &id, 1.0)?;
    let load = perform::plan_prepare(&configured)?;
    perform::check_memory(&configured)?;
    let rows = plan_rows(asked).into_iter().map(|(name, value)| text("plan", &name, value));
    let lines: Vec<Line> = rows.chain(load.plan.iter().cloned()).collect();
    if args.record.dry_run {
        // A program reads the derivation as data.
        return if is_json(args.record.format) { plan_only(args, asked) } else { dry_run(args.record.format, &lines) };
    }
    ui::say(&plan_text::lines(&lines));
    refuse_busy(args.anyway, busy(stop))?;
    let run = labels(args, asked, id.clone());
    let dir = if before.is_empty() { RunDir::above(&place) } else { RunDir::claimed(&place) }?;
    crate::html::share_in(&dir)?;
    let shown = configured.shown();
    let destroy = || configured.life(&shown).destroy(&configured.settings);
    let data = perform::prepare(&configured, &load, stop).map_err(|failure| {
        // What was loaded is of no use to the next fit, which has a data set of its own.
        let is_gone = destroy().is_ok();
        if stop.requested() && is_gone {
            return Failure::new(Code::Interrupted, "interrupted while the data were loaded; they are removed");
        }
        failure
    })?;
    let mut rising = Rising { args, asked, id: &id, dir: &dir, data, stop, steps: before };
    let ended = rising.all(&run);
    let gone = destroy();
    let steps = rising.steps;
    ended?;
    let whole = build(&run, asked, &steps, stop.requested());
    let written = record::write(&dir, &whole);
    answer::product(&whole, args.record.format, dir.path())?;
    written?;
    gone?;
    ui::say(&format!("fit: {}", dir.path().display()));
    if stop.requested() {
        let mut words: Vec<String> = args.words.iter().map(|word| shell_word(&word.display().to_string())).collect();
        // Another size would be another offer.
        words.push(format!("--time {}", shell_word(&args.time)));
        words.extend(args.target.iter().map(|url| format!("--target {}", shell_word(&mask_url_password(url)))));
        words.extend(args.size.iter().map(|size| format!("--size {}", shell_word(size))));
        let dir = shell_word(&place.display().to_string());
        ui::say(&format!("`assay fit {} -o {dir}` goes on with the steps that are left", words.join(" ")));
        return Ok(Code::Interrupted);
    }
    Ok(if held(&whole) == Some(true) { Code::Good } else { Code::Regression })
}

/// The steps of an interrupted fit of the same load; none where the directory is new or empty.
fn steps_done(output: Option<&Path>, asked: &FitAsked) -> Result<Vec<FitStep>, Failure> {
    let Some(dir) = output.filter(|dir| dir.join(RECORD).is_file()) else {
        return output.map_or(Ok(()), rundir::refuse_used).map(|()| Vec::new());
    };
    let whole = stored::read(&dir.join(RECORD))?;
    let is_same = asked.offer.as_ref().is_some_and(|offer| same_offer(&whole, offer));
    if whole.run.workload != NAME || whole.run.verdict == "complete" || !is_same {
        return rundir::refuse_used(dir).map(|()| Vec::new());
    }
    let steps = steps_before(&whole).into_iter().map(|(factor, directory)| {
        let record = stored::read(&dir.join(&directory).join(RECORD))?;
        Ok(measured(factor, directory, record))
    });
    steps.collect()
}

fn measured(factor: f64, directory: String, record: Record) -> FitStep {
    let limit = kinds::of(&record).headline(&record).limit;
    FitStep { factor, directory, record, limit }
}

/// The target with the settings of a multiple.
fn configured(args: &FitArgs, asked: &FitAsked, id: &str, factor: f64) -> Result<Configured, Failure> {
    let (offer, place) = asked.offer.as_ref().zip(asked.place.as_ref()).expect("what is offered has a place");
    let native = || format!("native:{}", Path::new(place).join(format!("assay-fit-{id}")).display());
    let target = args.target.clone().unwrap_or_else(native);
    let set = offer.settings(factor, asked.step_s).into_iter().map(|(name, value)| format!("{name}={value}"));
    let args = SettingArgs { target: Some(target), set: set.collect(), ..SettingArgs::default() };
    let (mut configured, _) = configure::configure_quietly(&args, Vec::new())?;
    configure::draw_seed(&mut configured.settings);
    Ok(configured)
}

/// The steps that are under way.
struct Rising<'a> {
    args: &'a FitArgs,
    asked: &'a FitAsked,
    id: &'a str,
    dir: &'a RunDir,
    data: DataSet,
    stop: &'a Stop,
    steps: Vec<FitStep>,
}

impl Rising<'_> {
    /// Runs steps until the answer is known, and keeps the record up to date.
    fn all(&mut self, run: &RunData) -> Result<(), Failure> {
        while let Some(factor) = rise::next(&self.asked.tried(&self.steps)) {
            if self.stop.requested() {
                break;
            }
            let step = self.step(factor);
            // A step that was cut short is done again.
            if self.stop.requested() {
                break;
            }
            self.steps.push(step?);
            let (_, holds) = self.asked.tried(&self.steps)[self.steps.len() - 1];
            ui::say(if holds { "  holds" } else { "  does not hold" });
            record::write(self.dir, &build(run, self.asked, &self.steps, true))?;
        }
        Ok(())
    }

    fn step(&self, factor: f64) -> Result<FitStep, Failure> {
        let number = self.steps.len() + 1;
        let mut configured = configured(self.args, self.asked, self.id, factor)?;
        let plan = perform::plan(&mut configured, &self.data)?;
        let takes = progress::left((plan.warmup_ns + plan.run_time_ns) as f64 / NS_PER_S as f64);
        ui::say(&format!("step {number}: {} x the load, {takes}", units::six(factor)));
        // A step that was cut short leaves its directory.
        let mut directory = format!("step-{number:03}-{}x", units::six(factor));
        while self.dir.path().join(&directory).exists() {
            directory.push_str("-again");
        }
        let mut found = None;
        let place = self.dir.path().join(&directory);
        perform::perform(&configured, &plan, self.stop, rundir::new_id(), place, &mut |record| {
            found = Some(record.clone());
            Ok(())
        })?;
        let record = found.ok_or_else(|| Failure::new(Code::Bug, "a step left no record"))?;
        Ok(measured(factor, directory, record))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(name: &str) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata").join(name)
    }

    /// What the plan of a report says, by its figures; or why it is refused.
    fn plan(name: &str) -> Result<Vec<(String, String)>, String> {
        let (loads, source) =
            loads(&[data(name)], Duration::ZERO, &Stop::new()).map_err(|failure| failure.lines.join("; "))?;
        let offer = Offer::of(&loads[0], USUAL_BYTES, None);
        Ok(plan_rows(&FitAsked { loads, source, offer, step_s: 30, ..FitAsked::default() }))
    }

    #[test]
    fn a_cluster_is_one_load_and_its_text_and_page_tell_the_same() {
        let figure = |rows: &[(String, String)], name: &str| {
            let row = rows.iter().find(|(row, _)| row == name).expect("a figure");
            row.1.split("   ").next().unwrap_or_default().to_owned()
        };
        let cluster = plan("awr/awr-rac-19c.html").expect("a plan");
        let told = ["reads_per_s", "writes_per_s", "commits_per_s", "redo_bytes_per_s", "read_us", "commit_us"];
        assert_eq!(
            told.map(|name| figure(&cluster, name)),
            ["1,900", "100", "300", "1,024,000", "500", "1,000"],
            "the sums of two instances"
        );
        let (text, page) = (plan("awr/awr-19c.txt").expect("a plan"), plan("awr/awr-19c.html").expect("a plan"));
        assert_eq!(told.map(|name| figure(&text, name)), told.map(|name| figure(&page, name)));
    }

    #[test]
    fn what_is_no_report_of_a_load_is_refused_by_name() {
        for (name, part) in [
            ("field/awr-load-profile-only.txt", "neither its reads nor its writes"),
            ("field/awr-top-events-fragment.txt", "how long its interval is"),
            ("import/ping-quiet.txt", "no statistics of a database"),
            ("frozen/sync/record.json", "no statistics of a database"),
        ] {
            let why = plan(name).expect_err("refused");
            assert!(why.contains(part), "{name}: {why}");
        }
        let scratch = tempfile::tempdir().expect("a temporary directory");
        let file = scratch.path().join("awrddrpt.txt");
        std::fs::write(&file, "WORKLOAD REPOSITORY COMPARE PERIOD REPORT\n\nReport Summary\n").expect("written");
        let why = loads(&[file], Duration::ZERO, &Stop::new()).expect_err("refused").lines.join("; ");
        assert!(why.contains("compares two periods"), "{why}");
    }
}
