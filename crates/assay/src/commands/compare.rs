//! `compare`: runs and groups of repeats against the first of them, and the gates on the result.

use super::runs::{named, records_of};
use crate::cli::CompareArgs;
use crate::cli::format::{ANSWER, FULL, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::stored;
use crate::{answer, plan_text, ui};
use assay_measure::record::Record;
use assay_report::answer::Screen;
use assay_report::compare::{self, Comparison, Gate, GateOutcome, Options, RunGroup};
use assay_report::cost::{self, Cost};
use assay_report::html::{self, Assets};
use assay_report::kinds;
use std::path::{Path, PathBuf};

pub(super) fn compare(args: &CompareArgs) -> Result<Code, Failure> {
    let gates = gates(&args.fail_if)?;
    let comparison = comparison(args, &gates)?;
    let output = args.output.as_deref();
    // An answer lists no conditions.
    let format = args.format.or((args.same && output.is_none()).then_some(FULL));
    answer::deliver("comparison", format, output, |format, screen| Ok(face(args, &comparison, format, screen)))?;
    for pair in comparison.pairs.iter().filter(|p| !p.shared_runs.is_empty()) {
        ui::say(&format!(
            "notice: {} is in both {} and {}: no gate is judged",
            pair.shared_runs.join(", "),
            pair.baseline,
            pair.candidate
        ));
    }
    Ok(judge(&gates, &comparison, args.fail_if_unsure))
}

/// What comes out, on which every gate can be judged.
pub(super) fn comparison(args: &CompareArgs, gates: &[Gate]) -> Result<Comparison, Failure> {
    let named = named(&args.runs)?;
    if named.len() < 2 {
        return Err(Failure::usage("compare needs two runs or groups, or more: only one is named"));
    }
    let sides: Vec<Side> = named.into_iter().map(|run| Side::read(run, &args.dir)).collect::<Result<_, _>>()?;
    refuse_mixed(&sides)?;
    let groups: Vec<RunGroup<'_>> = sides.iter().map(Side::group).collect();
    let costs = costs(args, &sides)?;
    let first: Vec<&Cost> = costs.iter().filter_map(|runs| runs.first()).collect();
    let all: Vec<&Record> = sides.iter().flat_map(|side| &side.records).collect();
    let mut advice = assay_report::advice::several(&all);
    advice.extend(assay_report::cost::findings(&first));
    for name in &args.allow {
        compare::known(&groups, name).map_err(|why| Failure::usage(format!("--allow {name}: {why}")))?;
    }
    let options = Options {
        allow: args.allow.clone(),
        declared: gates.iter().map(|gate| gate.key.clone()).collect(),
        advice,
        costs: costs.clone(),
    };
    let comparison = compare::of(&groups, &options);
    for gate in gates {
        gate.check(&comparison).map_err(|error| Failure::usage(format!("--fail-if {error}")))?;
    }
    Ok(comparison)
}

/// The comparison in a format, its answer as it is shown on a screen.
pub(super) fn face(args: &CompareArgs, comparison: &Comparison, format: &str, screen: Screen) -> String {
    match format {
        ANSWER => compare::answer(comparison, screen).text(),
        JSON => plan_text::pretty(comparison),
        HTML => html::comparison(comparison, &Assets::Embedded),
        _ => compare::render(comparison, args.same),
    }
}

fn gates(texts: &[String]) -> Result<Vec<Gate>, Failure> {
    let read = texts.iter().map(|text| Gate::parse(text).map_err(|error| Failure::usage(format!("--fail-if {error}"))));
    read.collect()
}

/// What every run costs, if prices are given.
fn costs(args: &CompareArgs, sides: &[Side]) -> Result<Vec<Vec<Cost>>, Failure> {
    let Some(path) = &args.cost else {
        return Ok(Vec::new());
    };
    let named = &args.platform;
    if named.len() > 1 && named.len() != sides.len() {
        return Err(Failure::usage(format!(
            "--platform is given {} times for {} groups; give it once for all, or once for each",
            named.len(),
            sides.len()
        )));
    }
    let prices = super::cost::read_prices(path)?;
    let of_side = |(at, side): (usize, &Side)| {
        let platform = named.get(at).or(named.first()).map(String::as_str);
        let priced = side.records.iter().map(|record| {
            cost::of(&prices, platform, record).map_err(|error| Failure::usage(format!("{}: {error}", side.name)))
        });
        priced.collect()
    };
    sides.iter().enumerate().map(of_side).collect()
}

/// One side as named, read.
struct Side {
    name: String,
    records: Vec<Record>,
    /// The directory of each of them.
    dirs: Vec<PathBuf>,
}

/// What stands above several runs has no counterpart in one run.
fn refuse_mixed(sides: &[Side]) -> Result<(), Failure> {
    let mut above = None;
    let mut alone = None;
    for side in sides {
        for (record, dir) in side.records.iter().zip(&side.dirs) {
            match kinds::of(record).members(record).first() {
                Some(first) => above = Some((dir, &record.kind, dir.join(first))),
                None => alone = Some(dir),
            }
        }
    }
    match (above, alone) {
        (Some((dir, kind, step)), Some(other)) => Err(Failure::usage(format!(
            "{}: is a {kind}, whose steps are different loads, but {} is not; name the step to compare, such as {}",
            dir.display(),
            other.display(),
            step.display()
        ))),
        _ => Ok(()),
    }
}

impl Side {
    fn read(name: &str, dir: &Path) -> Result<Self, Failure> {
        // A path may have a comma in it; a list has paths between its commas.
        let parts: Vec<&str> = if name.contains(',') && !Path::new(name).exists() {
            name.split(',').filter(|part| !part.is_empty()).collect()
        } else {
            vec![name]
        };
        let mut records = Vec::new();
        let mut dirs = Vec::new();
        for part in parts {
            for path in records_of(part, dir)? {
                records.push(stored::read(&path)?);
                dirs.push(path.parent().unwrap_or(Path::new("")).to_path_buf());
            }
        }
        if records.is_empty() {
            Err(Failure::usage(format!("{name}: there is no such run")))
        } else {
            Ok(Self { name: name.to_owned(), records, dirs })
        }
    }

    fn group(&self) -> RunGroup<'_> {
        RunGroup { name: self.name.clone(), records: self.records.iter().collect() }
    }
}

/// Tells of every gate how it came out; the worst decides.
fn judge(gates: &[Gate], comparison: &Comparison, unsure_fails: bool) -> Code {
    let (mut fired, mut unjudged) = (false, false);
    for judged in gates.iter().flat_map(|gate| gate.judge(comparison)) {
        let lead = match judged.outcome {
            GateOutcome::Fires => {
                fired = true;
                "error: regression"
            }
            GateOutcome::Unsure => {
                fired |= unsure_fails;
                unjudged |= !unsure_fails;
                "error: could not be judged"
            }
            GateOutcome::NotJudged => {
                unjudged = true;
                "error: gate"
            }
            GateOutcome::Holds => "gate",
        };
        ui::say(&format!("{lead}: {}", judged.line));
    }
    match (fired, unjudged) {
        (true, _) => Code::Regression,
        (false, true) => Code::Invalid,
        (false, false) => Code::Good,
    }
}
