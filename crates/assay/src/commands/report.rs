//! `report`: another look at a finished run.

use super::runs::{find, missing};
use crate::cli::{Face, ReportArgs};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RECORD, REPEAT};
use crate::stored;
use crate::{html, plan_text, record, ui};
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::answer::{self, Context};
use assay_report::{export, kinds, summary};
use std::path::{Path, PathBuf};

pub(super) fn report(args: &ReportArgs) -> Result<Code, Failure> {
    deliver(args, &rendered(args)?)
}

/// The face that was asked for.
pub(super) fn rendered(args: &ReportArgs) -> Result<String, Failure> {
    if args.format == Face::Brief {
        return super::brief::brief(args);
    }
    if args.cost.is_some() || args.platform.is_some() {
        return Err(Failure::usage(
            "--prices and --platform need --format brief; `assay cost RUN --prices FILE` prints the whole cost",
        ));
    }
    let found = find(&args.run, &args.dir)?;
    if found.join(REPEAT).is_file() || found.ends_with(REPEAT) {
        return repeated(args, &found);
    }
    let path = if found.is_dir() { found.join(RECORD) } else { found };
    if !path.exists() {
        let dir = path.parent().unwrap_or(Path::new("."));
        let none = || format!("{}: there is no such record", path.display());
        return Err(missing(dir, none));
    }
    let record = stored::read(&path)?;
    let below = kinds::of(&record).members(&record).directories;
    if let (Some(one), true) = (below.first(), is_of_one_run(args.format)) {
        return Err(not_of_several(&path, one));
    }
    Ok(match args.format {
        Face::Brief => super::brief::brief(args)?,
        Face::Answer => answer(&record, &path),
        Face::Html => {
            let assets = html::assets(args, path.parent())?;
            assay_report::html::page(&record, &assets)
        }
        Face::Full => assay_report::text::render(&record),
        Face::Json => record::json(&record)?,
        Face::Csv => assay_report::csv::series(&record),
        Face::CsvSummary => export::csv_summary(&record),
        Face::Openmetrics => export::summary(&record),
        Face::OpenmetricsSeries => {
            export::series(&record).map_err(|what| Failure::usage(format!("{}: {what}", path.display())))?
        }
        Face::Summary if !below.is_empty() => {
            let dir = path.parent().unwrap_or(Path::new("."));
            let is_kept = |run: &&String| dir.join(run).join(RECORD).is_file();
            summary(dir, below.iter().filter(is_kept).map(String::as_str))?
        }
        Face::Tool => crate::answer::in_words_of_tool(&record, false)?,
        Face::ToolJson => crate::answer::in_words_of_tool(&record, true)?,
        Face::Swingbench => kinds::of(&record).in_file_of_tool(&record).ok_or_else(|| {
            Failure::usage(format!("{}: it is no run of order entry, so there is no such results file", path.display()))
        })?,
        Face::Summary => lines(&[record]),
        Face::Pgio => assay_awr::result_line::render(&record).ok_or_else(|| {
            Failure::usage(format!(
                "{}: target {} is not a server that counts blocks hit and read, so it has no such line; use --format \
                 summary",
                path.display(),
                record.run.engine
            ))
        })?,
    })
}

/// The answer with the place of the record, not with what came before it.
fn answer(record: &Record, path: &Path) -> String {
    let dir = path.parent().unwrap_or(Path::new("."));
    let context = Context { run: shell_word(&dir.display().to_string()), ..Context::default() };
    answer::of(&[record], &context).plain()
}

/// To stdout, or into the file that was named.
pub(super) fn deliver(args: &ReportArgs, text: &str) -> Result<Code, Failure> {
    match &args.output {
        Some(path) => rundir::write_file(path, text)?,
        None => ui::product(text)?,
    }
    Ok(Code::Good)
}

/// Faces that only what happened second by second, or the counters of one server, can fill.
fn is_of_one_run(face: Face) -> bool {
    matches!(face, Face::Csv | Face::OpenmetricsSeries | Face::Pgio)
}

fn not_of_several(path: &Path, one: &str) -> Failure {
    let dir = path.parent().unwrap_or(Path::new("."));
    Failure::usage(format!(
        "{} contains several runs, but this format shows one run: name one of them, such as {}",
        dir.display(),
        dir.join(one).display()
    ))
}

/// Faces of repeats: the noise, or one line for each run.
fn repeated(args: &ReportArgs, found: &Path) -> Result<String, Failure> {
    let path = within(found, REPEAT);
    let repeats = stored::read_repeats(&path)?;
    let dir = path.parent().unwrap_or(Path::new("."));
    Ok(match args.format {
        Face::Full => repeats.render(),
        Face::Html => assay_report::html::repeats(&repeats, &html::assets(args, Some(dir))?),
        Face::Json => plan_text::pretty(&repeats),
        Face::Summary => summary(dir, repeats.runs.iter().map(|run| &*run.directory))?,
        _ => return Err(not_of_several(&path, "repeat-1")),
    })
}

/// The file that was named, or that of the directory that was.
fn within(found: &Path, file: &str) -> PathBuf {
    if found.is_dir() { found.join(file) } else { found.to_path_buf() }
}

/// The head of a summary and a line for each run below `dir`.
fn summary<'a>(dir: &Path, runs: impl Iterator<Item = &'a str>) -> Result<String, Failure> {
    let records = runs.map(|run| stored::read(&dir.join(run).join(RECORD)));
    Ok(lines(&records.collect::<Result<Vec<_>, _>>()?))
}

fn lines(records: &[Record]) -> String {
    let head = [summary::header(), summary::units()];
    let lines = head.into_iter().chain(records.iter().map(summary::line));
    lines.map(|line| line + "\n").collect()
}
