//! `cost`: what runs and their platforms cost by the user's own prices.

use super::runs::{self, records_of};
use crate::answer;
use crate::cli::CostArgs;
use crate::cli::format::{ANSWER, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::stored;
use crate::ui;
use assay_measure::record::Record;
use assay_report::cost::{self, Cost, Prices};
use assay_report::html::{self, Assets};
use assay_run::bounded;
use std::path::Path;

pub(super) fn cost(args: &CostArgs) -> Result<Code, Failure> {
    if args.example {
        ui::product(cost::EXAMPLE)?;
        return Ok(Code::Good);
    }
    let Some(path) = &args.prices else {
        return Err(Failure::usage("cost needs --prices FILE; --example prints one to start from"));
    };
    let prices = read_prices(path)?;
    let costs = if args.runs.is_empty() { alone(&prices, &args.platform)? } else { of_runs(&prices, args)? };
    let costs: Vec<&Cost> = costs.iter().collect();
    answer::deliver("cost", args.format, args.output.as_deref(), |format, screen| {
        Ok(match format {
            ANSWER => cost::answer(&costs, screen).text(),
            JSON => cost::json(&costs).map_err(|error| Failure::new(Code::Bug, format!("cost: {error}")))?,
            HTML => html::cost(&costs, &Assets::Embedded),
            _ => cost::render(&costs),
        })
    })?;
    Ok(Code::Good)
}

/// Reads a price file.
pub(super) fn read_prices(path: &Path) -> Result<Prices, Failure> {
    let name = path.display().to_string();
    let text = bounded::text(path, bounded::PRICES).map_err(|error| {
        Failure::usage(format!("{name}: {error}; `assay cost --example` prints a price file to start from"))
    })?;
    cost::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))
}

/// Platforms by themselves: those named, else all.
fn alone(prices: &Prices, named: &[String]) -> Result<Vec<Cost>, Failure> {
    let all = || prices.platforms.iter();
    for name in named {
        if !all().any(|platform| platform.name == *name) {
            let error = cost::of(prices, Some(name), &Record::default());
            return Err(error.map_or_else(|error| Failure::usage(error.to_string()), |_| Failure::said(Code::Bug)));
        }
    }
    let wanted = all().filter(|platform| named.is_empty() || named.contains(&platform.name));
    Ok(wanted.map(|platform| cost::priced(prices, platform)).collect())
}

pub(super) fn of_runs(prices: &Prices, args: &CostArgs) -> Result<Vec<Cost>, Failure> {
    let (runs, named) = (runs::named(&args.runs)?, &args.platform);
    if named.len() > 1 && named.len() != runs.len() {
        return Err(Failure::usage(format!(
            "--platform is given {} times for {} runs; give it once for all, or once for each",
            named.len(),
            runs.len()
        )));
    }
    let platform = |at: usize| named.get(at).or(named.first()).map(String::as_str);
    let priced = runs.into_iter().enumerate().map(|(at, run)| {
        let paths = records_of(run, &args.dir)?;
        let costs = paths.iter().map(|path| {
            let record = stored::read(path)?;
            cost::of(prices, platform(at), &record)
                .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
        });
        let costs: Vec<Cost> = costs.collect::<Result<_, _>>()?;
        middle(costs).ok_or_else(|| Failure::usage(format!("{run}: names no run")))
    });
    priced.collect()
}

/// Of repeats the cost of the one in the middle, by what a unit costs; it says so.
pub(super) fn middle(mut costs: Vec<Cost>) -> Option<Cost> {
    let unit = |cost: &Cost| {
        let known = cost.units.iter().find_map(|unit| unit.total.value());
        known.unwrap_or(cost.total_monthly)
    };
    costs.sort_by(|a, b| unit(a).total_cmp(&unit(b)));
    let repeats = costs.len();
    let ends = costs.first().map(&unit).zip(costs.last().map(&unit));
    let mut cost = (repeats > 0).then(|| costs.swap_remove((repeats - 1) / 2))?;
    if let (Some((least, most)), true) = (ends, repeats > 1) {
        let name = cost.units.iter().find(|unit| unit.total.value().is_some());
        let name = name.map_or("a month", |unit| unit.name.as_str()).to_owned();
        cost.warnings.push(format!(
            "This is the median run of {repeats} repeats; over the repeats the cost {name} (with licences) was {} to \
             {}.",
            assay_measure::units::significant(least, 4),
            assay_measure::units::significant(most, 4)
        ));
    }
    Some(cost)
}
