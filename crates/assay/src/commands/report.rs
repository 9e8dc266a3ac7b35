//! `report`: another look at a finished run.

use super::runs::find;
use crate::cli::{Face, ReportArgs};
use crate::exit::{Code, Failure};
use crate::rundir::{RECORD, SERIES};
use crate::{record, ui};
use std::path::Path;

pub(super) fn report(args: &ReportArgs) -> Result<Code, Failure> {
    let found = find(&args.run, &args.dir)?;
    let path = if found.is_dir() {
        found.join(RECORD)
    } else {
        found
    };
    if !path.exists() {
        return Err(missing(&path));
    }
    let record = record::read(&path)?;
    let text = match args.format {
        Face::Text => assay_report::text::render(&record),
        Face::Json => record::json(&record)?,
        Face::Csv => assay_report::csv::series(&record),
        Face::Summary => format!(
            "{}\n{}\n{}\n",
            assay_report::summary::header(),
            assay_report::summary::units(),
            assay_report::summary::line(&record)
        ),
    };
    ui::product(&text)?;
    Ok(Code::Good)
}

fn missing(record: &Path) -> Failure {
    let dir = record.parent().unwrap_or(Path::new("."));
    if dir.join(SERIES).is_file() {
        Failure::usage(format!(
            "{0} has no record: the run was killed or is still going; `assay runs recover {0}` rebuilds it",
            dir.display()
        ))
    } else {
        Failure::usage(format!("{}: there is no such record", record.display()))
    }
}
