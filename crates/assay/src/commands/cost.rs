//! `cost`: what runs and their platforms cost by the user's own prices.

use super::runs::find;
use crate::cli::{CostArgs, Format};
use crate::exit::{Code, Failure};
use crate::rundir::{RECORD, SWEEP};
use crate::{record, ui};
use assay_measure::record::Record;
use assay_report::cost::{self, Cost, Prices};
use std::path::Path;

pub(super) fn cost(args: &CostArgs) -> Result<Code, Failure> {
    if args.example {
        ui::product(cost::EXAMPLE)?;
        return Ok(Code::Good);
    }
    let Some(path) = &args.prices else {
        return Err(Failure::usage(
            "cost needs --prices FILE; --example prints one to start from",
        ));
    };
    let prices = read_prices(path)?;
    let costs = match args.runs.is_empty() {
        true => alone(&prices, &args.platform)?,
        false => of_runs(&prices, args)?,
    };
    let costs: Vec<&Cost> = costs.iter().collect();
    let text = match args.format {
        Format::Text => cost::render(&costs),
        Format::Json => {
            cost::json(&costs).map_err(|error| Failure::new(Code::Bug, format!("cost: {error}")))?
        }
    };
    ui::product(&text)?;
    Ok(Code::Good)
}

/// Reads a price file.
pub(super) fn read_prices(path: &Path) -> Result<Prices, Failure> {
    let name = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::usage(format!(
            "{name}: {error}; `assay cost --example` prints a price file to start from"
        ))
    })?;
    cost::parse(&name, &text).map_err(|error| Failure::usage(error.to_string()))
}

/// Platforms by themselves: those named, else all.
fn alone(prices: &Prices, named: &[String]) -> Result<Vec<Cost>, Failure> {
    let all = || prices.platforms.iter();
    for name in named {
        if !all().any(|platform| platform.name == *name) {
            let error = cost::of(prices, Some(name), &Record::default());
            return Err(error.map_or_else(
                |error| Failure::usage(error.to_string()),
                |_| Failure::said(Code::Bug),
            ));
        }
    }
    let wanted = all().filter(|platform| named.is_empty() || named.contains(&platform.name));
    Ok(wanted
        .map(|platform| cost::priced(prices, platform))
        .collect())
}

fn of_runs(prices: &Prices, args: &CostArgs) -> Result<Vec<Cost>, Failure> {
    let (runs, named) = (&args.runs, &args.platform);
    if named.len() > 1 && named.len() != runs.len() {
        return Err(Failure::usage(format!(
            "--platform is given {} times for {} runs; give it once for all, or once for each",
            named.len(),
            runs.len()
        )));
    }
    let platform = |at: usize| named.get(at).or(named.first()).map(String::as_str);
    let priced = runs.iter().enumerate().map(|(at, run)| {
        let found = find(run, &args.dir)?;
        if found.join(SWEEP).is_file() || found.ends_with(SWEEP) {
            return Err(Failure::usage(format!(
                "{} is a sweep, and a cost is of one run: name one of its steps",
                found.display()
            )));
        }
        let path = if found.is_dir() {
            found.join(RECORD)
        } else {
            found
        };
        if !path.exists() {
            return Err(Failure::usage(format!(
                "{}: there is no such record",
                path.display()
            )));
        }
        let record = record::read(&path)?;
        cost::of(prices, platform(at), &record)
            .map_err(|error| Failure::usage(format!("{}: {error}", path.display())))
    });
    priced.collect()
}
