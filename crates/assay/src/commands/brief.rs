//! `report --format brief`: the one page, of a run, of repeats, or of the run that a record of several is about.

use super::cost::read_prices;
use super::runs::records_of;
use crate::cli::ReportArgs;
use crate::exit::Failure;
use crate::rundir::RECORD;
use crate::stored;
use assay_measure::record::Record;
use assay_report::cost::{self, Cost};
use assay_report::kinds;
use std::path::Path;

/// The page of what `RUN` names.
pub(super) fn brief(args: &ReportArgs) -> Result<String, Failure> {
    let paths = records_of(&args.run, &args.dir)?;
    let records: Vec<Record> = paths.iter().map(|path| foremost(path)).collect::<Result<_, _>>()?;
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
    let costs = records
        .iter()
        .map(|record| cost::of(&prices, platform, record).map_err(|error| Failure::usage(error.to_string())));
    let costs: Vec<Cost> = costs.collect::<Result<_, _>>()?;
    super::cost::middle(costs).ok_or_else(|| Failure::usage("there is no record to price"))
}

/// The record, or that of the run below it which it is about.
fn foremost(path: &Path) -> Result<Record, Failure> {
    let record = stored::read(path)?;
    let members = kinds::of(&record).members(&record);
    if members.directories.is_empty() {
        return Ok(record);
    }
    let dir = path.parent().unwrap_or(Path::new("."));
    let Some(foremost) = members.foremost else {
        return Err(Failure::usage(format!("{}: no step of the {} is valid", dir.display(), record.kind)));
    };
    let (kind, why) = (&record.kind, &members.why);
    crate::ui::say(&format!("notice: this is {why} of the {kind}"));
    stored::read(&dir.join(foremost).join(RECORD))
}
