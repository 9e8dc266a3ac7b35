//! The product of a command that makes a record: the record in the format that was asked for.

use crate::before;
use crate::cli::format::{ANSWER, FULL, HTML, JSON};
use crate::exit::{Code, Failure};
use crate::rundir::{self, RECORD, REPORT, REPORT_HTML};
use crate::{stored, ui};
use assay_measure::plain::shell_word;
use assay_measure::record::Record;
use assay_report::answer::{Context, Screen};
use assay_report::formats::{Format, FormatError, Input};
use assay_report::kinds;
use std::path::Path;

/// Prints a record that was written to `place`.
pub(crate) fn product(record: &Record, format: &Format, place: &Path) -> Result<(), Failure> {
    let is_answer = format.name == ANSWER;
    let records = [record];
    let below = || below(record, place);
    let mut input = Input { below: &below, ..Input::of(&records) };
    if is_answer {
        let previous = before::previous(record, place);
        input.context = Context {
            normal: before::normal(record).filter(|_| previous.is_none()),
            run: shell_word(&place.display().to_string()),
            files: vec![REPORT.to_owned(), REPORT_HTML.to_owned()],
            previous,
            screen: ui::screen(),
        };
    }
    let text = written(format, &input, place)?;
    if is_answer { ui::terminal(&text) } else { ui::product(&text) }
}

/// Delivers what is above records: in the format asked for, to a file or to standard output. A file without a format gets
/// all there is, as its name ends, and the answer is printed.
pub(crate) fn deliver(
    what: &str,
    format: Option<&'static str>,
    output: Option<&Path>,
    face: impl Fn(&'static str, Screen) -> Result<String, Failure>,
) -> Result<(), Failure> {
    if let Some(path) = output {
        let whole = match path.extension().and_then(|ending| ending.to_str()) {
            Some("html" | "htm") => HTML,
            Some("json") => JSON,
            _ => FULL,
        };
        rundir::write_file(path, &face(format.unwrap_or(whole), Screen::default())?)?;
    }
    match (format, output) {
        (None | Some(ANSWER), None) | (None, Some(_)) => ui::terminal(&face(ANSWER, ui::screen())?)?,
        (Some(format), None) => ui::product(&face(format, Screen::default())?)?,
        (Some(_), Some(_)) => {}
    }
    if let Some(path) = output {
        ui::say(&format!("{what}: {}", path.display()));
    }
    Ok(())
}

/// What a format makes of the record, or the repeats, in a directory.
pub(crate) fn written(format: &Format, input: &Input<'_>, dir: &Path) -> Result<String, Failure> {
    format.text(input).map_err(|error| match error {
        FormatError::Several => {
            let mut below = input.records.iter().flat_map(|record| kinds::of(record).members(record));
            let one = below.next().unwrap_or_else(|| "repeat-1".to_owned());
            Failure::usage(format!(
                "{} contains several runs, but this format shows one run: name one of them, such as {}",
                dir.display(),
                dir.join(one).display()
            ))
        }
        FormatError::Unsuited(why) => Failure::usage(format!("{}: {why}", dir.join(RECORD).display())),
        // Into memory all can be written.
        error => Failure::new(Code::Bug, error.to_string()),
    })
}

/// The runs that a record was made of, as far as they lie below its directory.
pub(crate) fn below(record: &Record, dir: &Path) -> Result<Vec<Record>, FormatError> {
    let members = kinds::of(record).members(record);
    let kept = members.iter().map(|run| dir.join(run).join(RECORD)).filter(|path| path.is_file());
    let read = kept.map(|path| stored::read(&path).map_err(|failure| FormatError::Unsuited(failure.lines.join("; "))));
    read.collect()
}
