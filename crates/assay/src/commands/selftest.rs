//! Checks assay's claims about a target on the user's server: a script of assay's own commands, each a process as a
//! user would start it, claims on their records, and one file with all results to send back.

use crate::cli::{SelftestArgs, SettingArgs};
use crate::configure::{self, Configured};
use crate::exit::{Code, Failure};
use crate::rundir::RECORD;
use crate::{registry, signals, stored, ui};
use assay_measure::counter_catalog::{self, Stat};
use assay_measure::facts;
use assay_measure::record::{Record, Truth};
use assay_run::engine::{Presence, Target};
use assay_run::stop::Stop;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Blocks of a schema: the fewest whose scatter is judged.
const SCALE: &str = "SCALE=10000";
/// Width of an operation: enough that the way through the index is little beside it.
const WORK_UNIT: u64 = 64;
/// Gets of a range select beside its rows, at most (slob-method, item 50).
const INDEX_GETS: f64 = 8.0;
/// Redo of a heavy row over that of a light one, at least (item 18).
const HEAVY: f64 = 4.0;

/// The other workload, and the step that makes its data set.
const ORDERS: &str = assay_orders::workload::NAME;
const ORDERS_LOAD: &str = "order entry load";

/// One command of the script.
struct Step {
    name: &'static str,
    words: Vec<String>,
    /// How it must end.
    code: u8,
    /// Leaves a record.
    run: bool,
}

/// What a claim came to.
struct Claim {
    text: &'static str,
    held: Option<bool>,
    evidence: String,
}

pub(super) fn selftest(args: &SelftestArgs) -> Result<Code, Failure> {
    let mut settings = args.settings.clone();
    settings.target = args.url.clone().or(settings.target);
    let configured = configure::configure(&settings, Vec::new())?;
    configured.refuse_temporary("test")?;
    refuse_present(&configured)?;
    let orders = order_entry(&settings, &configured.url)?;
    let stop = signals::watch()?;
    let out = args.output.clone().unwrap_or_else(|| PathBuf::from("assay-selftest.json"));
    let mut file = create(&out)?;
    let place = out.with_extension("runs");
    let mut script = Script {
        orders,
        target: configured.url.clone(),
        args,
        place: place.clone(),
        stop,
        steps: Vec::new(),
        records: Vec::new(),
    };
    let done = script.play();
    let claims = claims(&script);
    let shown = configured.shown();
    let passed = done && claims.iter().all(|claim| claim.held != Some(false));
    let all = json!({
        "schema": "assay-selftest/1",
        "version": env!("CARGO_PKG_VERSION"),
        "target": shown,
        "passed": passed,
        "steps": script.steps,
        "claims": claims.iter().map(|claim| json!({
            "claim": claim.text,
            "held": claim.held,
            "evidence": claim.evidence,
        })).collect::<Vec<_>>(),
        "records": script.records.iter().map(|(name, record)| json!({"run": name, "record": record})).collect::<Vec<_>>(),
    });
    let written = serde_json::to_writer_pretty(&mut file, &all);
    written.map_err(|error| Failure::output(format!("{}: {error}", out.display())))?;
    tell(&claims, passed, &out, &place)?;
    match (script.stop.requested(), passed) {
        (true, _) => Ok(Code::Interrupted),
        (false, true) => Ok(Code::Good),
        (false, false) => Ok(Code::Invalid),
    }
}

/// The target of order entry there; none where the server or the settings are another workload's alone, which is said.
fn order_entry(settings: &SettingArgs, url: &str) -> Result<Option<&'static dyn Target>, Failure> {
    let Some((target, _)) = registry::locate_for(ORDERS, url) else {
        return Ok(None);
    };
    let mut settings = settings.clone();
    settings.workload = Some(ORDERS);
    settings.set.retain(|set| target.heeds(name_of(set)));
    let Ok(configured) = configure::configure(&settings, Vec::new()) else {
        ui::say("self-test: order entry is n/a: it ignores these settings");
        return Ok(None);
    };
    let there = configured.target.inspect(&configured.location, &configured.settings);
    if let Err(error) = there {
        ui::say(&format!("self-test: order entry is n/a: {error}"));
        return Ok(None);
    }
    refuse_present(&configured)?;
    Ok(Some(target))
}

/// The parameter of `NAME=VALUE`.
fn name_of(set: &str) -> &str {
    set.split('=').next().unwrap_or_default()
}

/// The script makes a data set and removes it: it touches none that is there.
fn refuse_present(configured: &Configured) -> Result<(), Failure> {
    match configured.target.inspect(&configured.location, &configured.settings)? {
        Presence::Absent { .. } => Ok(()),
        Presence::Present(_) => Err(Failure::new(
            Code::Unusable,
            format!(
                "{} already has a data set: the self-test makes and removes its own; remove yours, or name another \
                 place",
                configured.shown()
            ),
        )),
    }
}

fn create(out: &Path) -> Result<std::fs::File, Failure> {
    let made = std::fs::File::options().write(true).create_new(true).open(out);
    made.map_err(|error| Failure::output(format!("{}: {error}; name another file with -o", out.display())))
}

fn tell(claims: &[Claim], passed: bool, out: &Path, place: &Path) -> Result<(), Failure> {
    let mut text = String::new();
    for claim in claims {
        let word = match claim.held {
            Some(true) => "holds",
            Some(false) => "FAILS",
            None => "n/a",
        };
        text.push_str(&format!("{word:<6} {}: {}\n", claim.text, claim.evidence));
    }
    let verdict = if passed { "passed" } else { "FAILED" };
    text.push_str(&format!(
        "self-test {verdict}. The results are in {}; the runs are below {}\n",
        out.display(),
        place.display()
    ));
    ui::product(&text)
}

/// The script, and what came of it.
struct Script<'a> {
    target: String,
    /// The same for order entry, if it bears it.
    orders: Option<&'static dyn Target>,
    args: &'a SelftestArgs,
    place: PathBuf,
    stop: Stop,
    steps: Vec<Value>,
    records: Vec<(&'static str, Record)>,
}

impl Script<'_> {
    fn steps(&self) -> Vec<Step> {
        let time = self.args.time.as_str();
        let data = |name, verb: &str, more: &[&str], code| Step {
            name,
            words: [&[verb][..], more].concat().into_iter().map(str::to_owned).collect(),
            code,
            run: false,
        };
        let run = |name, more: &[&str]| {
            let mut words = vec!["run", "-s", "2", "-t", "2", "--time", time, "--warmup", "1s", "--seed", "7"];
            for set in more {
                words.extend(["--set", *set]);
            }
            Step { name, words: words.into_iter().map(str::to_owned).collect(), code: 0, run: true }
        };
        let sizes = ["-s", "2", "--set", SCALE, "--set", "SCAN_TABLE_SZ=64"];
        let mut steps = vec![
            data("check of nothing", "check", &[], 3),
            data("plan", "prepare", &[&sizes[..], &["--dry-run"]].concat(), 0),
            data("load", "prepare", &sizes, 0),
            data("load again", "prepare", &sizes, 2),
            data("check", "check", &[], 0),
            run("selects", &["UPDATE_PCT=0"]),
            run("selects batched", &["UPDATE_PCT=0", "READ_MODE=batched"]),
            run("updates LITE", &["UPDATE_PCT=100"]),
            run("updates HEAVY", &["UPDATE_PCT=100", "REDO_STRESS=HEAVY"]),
            run("mixed, one commit in ten", &["UPDATE_PCT=25", "SCAN_PCT=10", "COMMIT_EVERY=10"]),
            run("mixed in the server", &["UPDATE_PCT=25", "SCAN_PCT=10", "LOOP=server"]),
            run("hot schema and hot spot", &["UPDATE_PCT=10", "HOT_SCHEMA_FREQUENCY=4", "DO_HOTSPOT=TRUE"]),
            data("check after all", "check", &[], 0),
            data("destroy", "destroy", &[], 0),
            data("check after destroy", "check", &[], 3),
        ];
        if self.orders.is_some() {
            steps.extend(self.order_entry());
        }
        steps
    }

    /// The life of order entry, where the target bears it. A check that does not hold ends a run with another code.
    fn order_entry(&self) -> [Step; 5] {
        let step =
            |name, words: &str, run| Step { name, words: words.split(' ').map(str::to_owned).collect(), code: 0, run };
        let run = |name, form: &str| {
            let time = &self.args.time;
            let words =
                format!("orders run --mix classic --sessions 4 --form {form} --time {time} --warmup 1s --seed 7");
            step(name, &words, true)
        };
        [
            step("order entry load", "orders prepare --scale .001 --seed 7", false),
            run("order entry in the server", "server"),
            run("order entry by statements", "client"),
            step("order entry check", "orders check", false),
            step("order entry destroy", "orders destroy", false),
        ]
    }

    /// Plays it; whether each command ended as it must. What is left is removed even after a stop.
    fn play(&mut self) -> bool {
        let (mut right, mut ours) = (true, false);
        for step in self.steps() {
            let skipped = self.stop.requested() && !step.name.ends_with("destroy");
            // What was there already, and was refused, is not ours to remove.
            let theirs = step.words[0] == ORDERS && step.name != ORDERS_LOAD && !ours;
            if skipped || theirs {
                right = false;
                continue;
            }
            ui::say(&format!("self-test: {}", step.name));
            right &= self.perform(&step);
            if step.name == ORDERS_LOAD {
                let code = self.steps.last().map(|step| step["code"].clone());
                ours = code != Some(json!(Code::Usage as u8));
            }
        }
        right
    }

    fn perform(&mut self, step: &Step) -> bool {
        let Ok(program) = std::env::current_exe() else {
            return false;
        };
        let directory = self.place.join(step.name.replace([' ', ','], "-"));
        let mut command = Command::new(program);
        command.args(["--quiet"]).args(&step.words);
        if let Some(config) = &self.args.settings.config {
            command.arg("-c").arg(config);
        }
        // What only the other workload heeds would be refused.
        let of_orders = self.orders.filter(|_| step.words[0] == ORDERS);
        let heeded = |set: &&String| of_orders.is_none_or(|target| target.heeds(name_of(set)));
        for set in self.args.settings.set.iter().filter(heeded) {
            command.args(["--set", set]);
        }
        if step.run {
            command.arg("-o").arg(&directory);
        }
        // Where there may be a password, no list of processes shows it.
        command.env("ASSAY_TARGET", &self.target);
        let begun = Instant::now();
        let output = command.output();
        let took_s = begun.elapsed().as_secs_f64();
        let (code, said) = match output {
            Ok(output) => (
                output.status.code(),
                [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()),
            ),
            Err(error) => (None, [String::new(), error.to_string()]),
        };
        // Not every server has such a loop; one without says so before anything begins.
        let refused = step.words.iter().any(|word| word == "LOOP=server") && code == Some(i32::from(Code::Usage as u8));
        if refused {
            ui::say(&format!("self-test: {} is n/a: {}", step.name, said[1].trim_end()));
        }
        let right = refused || code == Some(i32::from(step.code));
        if !right {
            ui::say(&format!(
                "self-test: {} ended with {code:?}, not {}: {}",
                step.name,
                step.code,
                said[1].trim_end()
            ));
        }
        self.steps.push(json!({
            "step": step.name,
            "command": step.words,
            "expected_code": step.code,
            "code": code,
            "took_s": took_s,
            "stdout": said[0],
            "stderr": said[1],
        }));
        if step.run
            && let Ok(record) = stored::read(&directory.join(RECORD))
        {
            self.records.push((step.name, record));
        }
        right
    }

    fn record(&self, name: &str) -> Option<&Record> {
        let found = self.records.iter().find(|(run, _)| *run == name);
        found.map(|(_, record)| record)
    }

    /// What a run's engine counts as a get, where that is not a block.
    fn gets(&self, name: &str) -> Option<&str> {
        facts::GETS.find(&self.record(name)?.plan.engine_facts)
    }

    /// A counter from the gate to the end of the drain, or why there is none.
    fn whole(&self, name: &str, stat: Stat) -> Result<f64, String> {
        let record = self.record(name).ok_or("the run left no record")?;
        let row = record.instance.stats.get(stat.key);
        let total = &row.ok_or("not counted")?.whole_run_total;
        let value = total.value();
        value.ok_or_else(|| total.reason().unwrap_or("not counted").to_owned())
    }
}

/// A claim about a quotient of two counters of a run.
fn quotient(
    text: &'static str,
    (above, below): (Result<f64, String>, Result<f64, String>),
    holds: impl Fn(f64) -> bool,
) -> Claim {
    let below = below.and_then(above_nothing);
    let (held, evidence) = match above.and_then(|above| Ok((above, below?))) {
        Ok((above, below)) => (Some(holds(above / below)), format!("{:.2} ({above:.0} / {below:.0})", above / below)),
        Err(why) => (None, why),
    };
    Claim { text, held, evidence }
}

fn above_nothing(count: f64) -> Result<f64, String> {
    if count > 0.0 { Ok(count) } else { Err("the run did none of it".to_owned()) }
}

fn claims(script: &Script<'_>) -> Vec<Claim> {
    let of = |run: &str, stat| script.whole(run, stat);
    // Where a get is not a block but a page on the way to a row, their number says nothing of the rows.
    let gets_of = |run: &str| match script.gets(run) {
        Some(what) => Err(format!("its gets are {what}")),
        None => of(run, counter_catalog::SESSION_LOGICAL_READS),
    };
    let unit = WORK_UNIT as f64;
    let redo = |run: &str| {
        Ok(of(run, counter_catalog::REDO_SIZE)? / of(run, counter_catalog::ROWS_CHANGED).and_then(above_nothing)?)
    };
    let mut claims = vec![
        quotient(
            "gets of a range select: its rows, and a few of the index",
            (gets_of("selects"), of("selects", counter_catalog::EXECUTE_COUNT)),
            |gets| (unit..=unit + INDEX_GETS).contains(&gets),
        ),
        quotient(
            "rows of a range select",
            (of("selects", counter_catalog::ROWS_VISITED), of("selects", counter_catalog::EXECUTE_COUNT)),
            |rows| rows == unit,
        ),
        quotient(
            "selects alone change nothing: redo bytes an operation",
            (of("selects", counter_catalog::REDO_SIZE), of("selects", counter_catalog::EXECUTE_COUNT)),
            |bytes| bytes < 64.0,
        ),
        quotient(
            "commits counted by the server per commit of an update",
            (of("updates LITE", counter_catalog::SERVER_COMMITS), of("updates LITE", counter_catalog::USER_COMMITS)),
            |ratio| (0.999..1.02).contains(&ratio),
        ),
        quotient("redo of a row, HEAVY over LITE", (redo("updates HEAVY"), redo("updates LITE")), |ratio| {
            ratio > HEAVY
        }),
        quotient(
            "batched selects touch as many blocks as single ones",
            (gets_of("selects batched"), of("selects batched", counter_catalog::EXECUTE_COUNT)),
            |gets| gets <= unit + INDEX_GETS,
        ),
    ];
    claims.extend(script.records.iter().map(|(name, record)| agreement(name, record)));
    claims
}

/// Whether the figures of a run agree with each other.
fn agreement(name: &str, record: &Record) -> Claim {
    let violated = record.integrity.iter().filter(|identity| identity.ok == Truth::Violated);
    let held = record.integrity.iter().filter(|identity| identity.ok == Truth::Holds).count();
    let wrong: Vec<&str> = violated.map(|identity| identity.sentence.as_str()).collect();
    Claim {
        text: "the figures of a run agree with each other",
        held: Some(wrong.is_empty()),
        evidence: if wrong.is_empty() {
            format!("{name}: {held} of {} identities hold, the others are n/a", record.integrity.len())
        } else {
            format!("{name}: {}", wrong.join("; "))
        },
    }
}
