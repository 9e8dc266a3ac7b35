//! `report`: another look at a finished run.

use super::runs::{find, missing, records_of};
use crate::answer::{below, written};
use crate::cli::ReportArgs;
use crate::cli::format::{ANSWER, FULL, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RECORD, REPEAT};
use crate::stored;
use crate::{html, plan_text, ui};
use assay_measure::record::Record;
use assay_report::answer::{Context, Screen};
use assay_report::compare::Repeats;
use assay_report::cost::{self, Cost};
use assay_report::formats::{Format, Input};
use assay_report::html::Assets;
use std::path::{Path, PathBuf};

pub(super) fn report(args: &ReportArgs) -> Result<Code, Failure> {
    match &args.output {
        Some(path) => rundir::write_file(path, &rendered(args, Screen::default())?)?,
        None if args.format.name == ANSWER => ui::terminal(&rendered(args, ui::screen())?)?,
        None => ui::product(&rendered(args, Screen::default())?)?,
    }
    Ok(Code::Good)
}

/// The format that was asked for, an answer as it is shown on a screen.
pub(super) fn rendered(args: &ReportArgs, screen: Screen) -> Result<String, Failure> {
    if (args.cost.is_some() || args.platform.is_some()) && args.format.name != ANSWER {
        return Err(Failure::usage(
            "--prices and --platform need --format answer; `assay cost RUN --prices FILE` prints the whole cost",
        ));
    }
    let found = find(&args.run, &args.dir)?;
    let is_repeated = found.join(REPEAT).is_file() || found.ends_with(REPEAT);
    let path = within(found, if is_repeated { REPEAT } else { RECORD });
    let dir = path.parent().unwrap_or(Path::new("."));
    let assets = if args.format.name == HTML { html::assets(args, path.parent())? } else { Assets::Embedded };
    if is_repeated && let Some(text) = of_repeats(args.format, &stored::read_repeats(&path)?, &assets) {
        return Ok(text);
    }
    if !path.exists() {
        return Err(missing(dir, || format!("{}: there is no such record", path.display())));
    }
    let paths = if is_repeated { records_of(&args.run, &args.dir)? } else { vec![path.clone()] };
    let records: Vec<Record> = paths.iter().map(|path| stored::read(path)).collect::<Result<_, _>>()?;
    let records: Vec<&Record> = records.iter().collect();
    let Some(first) = records.first() else {
        return Err(Failure::usage(format!("{}: names no run", path.display())));
    };
    let cost = args.cost.as_ref().map(|prices| priced(prices, args.platform.as_deref(), &records)).transpose()?;
    let below = || below(first, dir);
    let context = Context { screen, ..Context::default() };
    let input = Input { below: &below, cost, assets, context, ..Input::of(&records) };
    written(args.format, &input, dir)
}

/// Repeats in a format that tells of their noise; `None` where the format is of single runs.
pub(super) fn of_repeats(format: &Format, repeats: &Repeats, assets: &Assets) -> Option<String> {
    match format.name {
        FULL => Some(repeats.render()),
        HTML => Some(assay_report::html::repeats(repeats, assets)),
        JSON => Some(plan_text::pretty(repeats)),
        _ => None,
    }
}

/// The cost of the repeat in the middle by what it delivered.
fn priced(path: &Path, platform: Option<&str>, records: &[&Record]) -> Result<Cost, Failure> {
    let prices = super::cost::read_prices(path)?;
    let costs = records
        .iter()
        .map(|record| cost::of(&prices, platform, record).map_err(|error| Failure::usage(error.to_string())));
    let costs: Vec<Cost> = costs.collect::<Result<_, _>>()?;
    super::cost::middle(costs).ok_or_else(|| Failure::usage("there is no record to price"))
}

/// The file that was named, or that of the directory that was.
fn within(found: PathBuf, file: &str) -> PathBuf {
    if found.is_dir() { found.join(file) } else { found }
}
