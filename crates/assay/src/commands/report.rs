//! `report`: another look at a finished run.

use super::runs::find;
use crate::cli::{Face, ReportArgs};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RECORD, REPEAT, SERIES, SWEEP};
use crate::{html, record, ui};
use assay_report::export;
use std::path::Path;

pub(super) fn report(args: &ReportArgs) -> Result<Code, Failure> {
    if args.format == Face::Brief {
        return deliver(args, &super::brief::brief(args)?);
    }
    if args.cost.is_some() || args.platform.is_some() {
        return Err(Failure::usage(
            "--cost and --platform are of --format brief; `assay cost RUN --prices FILE` prints all of a cost",
        ));
    }
    let found = find(&args.run, &args.dir)?;
    if found.join(SWEEP).is_file() || found.ends_with(SWEEP) {
        return swept(args, &found);
    }
    if found.join(REPEAT).is_file() || found.ends_with(REPEAT) {
        return super::repeat::report(args, &found);
    }
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
        Face::Brief => super::brief::brief(args)?,
        Face::Html => {
            let assets = html::assets(args, path.parent())?;
            assay_report::html::page(&record, &assets)
        }
        Face::Text => assay_report::text::render(&record),
        Face::Json => record::json(&record)?,
        Face::Csv => assay_report::csv::series(&record),
        Face::CsvSummary => export::csv_summary(&record),
        Face::Openmetrics => export::summary(&record),
        Face::OpenmetricsSeries => export::series(&record)
            .map_err(|what| Failure::usage(format!("{}: {what}", path.display())))?,
        Face::Summary => format!(
            "{}\n{}\n{}\n",
            assay_report::summary::header(),
            assay_report::summary::units(),
            assay_report::summary::line(&record)
        ),
        Face::Pgio => assay_awr::result_line::render(&record).ok_or_else(|| {
            Failure::usage(format!(
                "{}: target {} is no server that counts blocks hit and read, so there is no such line; --format summary has one",
                path.display(),
                record.run.engine
            ))
        })?,
    };
    deliver(args, &text)
}

/// To stdout, or into the file that was named.
pub(super) fn deliver(args: &ReportArgs, text: &str) -> Result<Code, Failure> {
    match &args.output {
        Some(path) => rundir::write_file(path, text)?,
        None => ui::product(text)?,
    }
    Ok(Code::Good)
}

/// Faces of a sweep: the summary, or one line for each step.
fn swept(args: &ReportArgs, found: &Path) -> Result<Code, Failure> {
    let path = if found.is_dir() {
        found.join(SWEEP)
    } else {
        found.to_path_buf()
    };
    let swept = record::read_sweep(&path)?;
    let dir = path.parent().unwrap_or(Path::new("."));
    let text = match args.format {
        Face::Brief => super::brief::brief(args)?,
        Face::Html => assay_report::html::sweep(&swept, &html::assets(args, Some(dir))?),
        Face::Text => assay_report::sweep::render(&swept),
        Face::Json => assay_report::sweep::write(&swept)
            .map_err(|error| Failure::new(Code::Bug, format!("{SWEEP}: {error}")))?,
        Face::Summary => {
            let mut text = format!(
                "{}\n{}\n",
                assay_report::summary::header(),
                assay_report::summary::units()
            );
            for step in swept.steps.iter().filter(|step| step.verdict != "failed") {
                let record = record::read(&dir.join(&step.place.directory).join(RECORD))?;
                text.push_str(&assay_report::summary::line(&record));
                text.push('\n');
            }
            text
        }
        Face::Csv | Face::CsvSummary | Face::Openmetrics | Face::OpenmetricsSeries | Face::Pgio => {
            return Err(Failure::usage(format!(
                "{} is a sweep, and this format is of one run: name one of its steps",
                dir.display()
            )));
        }
    };
    deliver(args, &text)
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
