//! `report --format brief`: the one page, of a run, of repeats, or of the step a sweep is about.

use super::cost::read_prices;
use super::runs::{find, records_of};
use crate::cli::ReportArgs;
use crate::exit::Failure;
use crate::record;
use crate::rundir::{RECORD, SWEEP};
use assay_measure::record::Record;
use assay_report::cost::{self, Cost};
use std::path::{Path, PathBuf};

/// The page of what `RUN` names.
pub(super) fn brief(args: &ReportArgs) -> Result<String, Failure> {
    let found = find(&args.run, &args.dir)?;
    let dir = match found.is_file() {
        true => found.parent().unwrap_or(Path::new(".")).to_path_buf(),
        false => found.clone(),
    };
    let paths =
        match found.ends_with(SWEEP) || dir.join(SWEEP).is_file() && !found.ends_with(RECORD) {
            true => vec![step_of(&dir)?],
            false => records_of(&args.run, &args.dir)?,
        };
    let records: Vec<Record> = paths
        .iter()
        .map(|path| record::read(path))
        .collect::<Result<_, _>>()?;
    let records: Vec<&Record> = records.iter().collect();
    let cost = match (&args.cost, records.as_slice()) {
        (Some(path), [_, ..]) => Some(priced(path, args.platform.as_deref(), &records)?),
        _ => None,
    };
    Ok(assay_report::brief::render(&records, cost.as_ref()))
}

/// The cost of the repeat in the middle by what it delivered.
fn priced(path: &Path, platform: Option<&str>, records: &[&Record]) -> Result<Cost, Failure> {
    let prices = read_prices(path)?;
    let costs = records.iter().map(|record| {
        cost::of(&prices, platform, record).map_err(|error| Failure::usage(error.to_string()))
    });
    let costs: Vec<Cost> = costs.collect::<Result<_, _>>()?;
    super::cost::middle(costs).ok_or_else(|| Failure::usage("there is no record to price"))
}

/// The step that a sweep is about: the highest load that keeps its goal, else the knee, else the one with most operations.
fn step_of(dir: &Path) -> Result<PathBuf, Failure> {
    let swept = record::read_sweep(&dir.join(SWEEP))?;
    let counted = || swept.steps.iter().filter(|step| step.counts());
    let at = |load: &assay_measure::record::Figure| {
        let load = load.value()?;
        counted().find(|step| step.place.sessions as f64 == load)
    };
    let by_curve = swept
        .curves
        .iter()
        .find_map(|curve| at(&curve.goal.load).or_else(|| at(&curve.knee.load)));
    let rate = |step: &assay_report::sweep::Step| step.ops_per_s.value().unwrap_or(0.0);
    let most = || counted().max_by(|a, b| rate(a).total_cmp(&rate(b)));
    match by_curve.or_else(most) {
        Some(step) => {
            crate::ui::say(&format!(
                "notice: of the sweep this is the step with {} sessions: the goal's, else the knee's, else the fastest",
                step.place.sessions
            ));
            Ok(dir.join(&step.place.directory).join(RECORD))
        }
        None => Err(Failure::usage(format!(
            "{}: no step of the sweep counts",
            dir.display()
        ))),
    }
}
