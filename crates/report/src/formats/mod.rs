//! The formats of a record: one list, which `--format`, its help, the files of a run and the reference read.
//!
//! A new one is a file here and its line in [`FORMATS`].

mod answer;
mod csv;
mod metrics_csv;
mod openmetrics;
mod summary;
mod tool;

#[cfg(test)]
mod tests;

use crate::answer::Context;
use crate::cost::Cost;
use crate::html::{self, Assets};
use crate::{json, text as report};
use assay_measure::record::Record;
use std::io::{Error as IoError, Write};
use thiserror::Error;

pub use openmetrics::exposition;

/// A form in which a record can be had.
#[derive(Debug)]
pub struct Format {
    /// What `--format` calls it.
    pub name: &'static str,
    /// Other names that `--format` takes for it.
    pub also: &'static [&'static str],
    /// What it holds, in one line of the help.
    pub help: &'static str,
    /// The media type (RFC 6838).
    pub media_type: &'static str,
    write: fn(&Input<'_>, &mut dyn Write) -> Written,
}

/// What writing came to: it fails where the record has nothing that the format could hold, or the text cannot be written.
type Written = Result<(), FormatError>;

/// What a command that makes a record prints.
pub const ANSWER: &str = "answer";
/// The whole report.
pub const FULL: &str = "full";
/// The same, and what is for people of things that are no record.
pub const TEXT: &str = "text";
/// For programs.
pub const JSON: &str = "json";
/// For browsers.
pub const HTML: &str = "html";
/// For spreadsheets.
pub const CSV: &str = "csv";
/// A tool's own JSON.
pub const TOOL_JSON: &str = "tool-json";

/// What most formats have in common.
const PLAIN: Format = Format { name: "", also: &[], help: "", media_type: "text/plain", write: |_, _| Ok(()) };

/// All of them, in the order of the help. The first is what a command that makes a record prints.
pub const FORMATS: &[Format] = &[
    answer::ANSWER,
    Format {
        name: FULL,
        also: &[TEXT],
        help: "The whole report, AWR-style, as in report.txt",
        write: |input, out| Ok(out.write_all(report::render(input.record()?).as_bytes())?),
        ..PLAIN
    },
    Format {
        name: JSON,
        help: "record.json",
        media_type: "application/json",
        write: |input, out| Ok(out.write_all(json::write(input.record()?).map_err(IoError::other)?.as_bytes())?),
        ..PLAIN
    },
    Format {
        name: HTML,
        help: "One page with charts that opens offline",
        media_type: "text/html",
        write: |input, out| Ok(out.write_all(html::page(input.record()?, &input.context, &input.assets).as_bytes())?),
        ..PLAIN
    },
    csv::CSV,
    metrics_csv::METRICS_CSV,
    openmetrics::OPENMETRICS,
    openmetrics::PROMETHEUS,
    summary::SUMMARY,
    tool::PGIO,
    tool::TOOL,
    tool::TOOL_JSON,
    tool::SWINGBENCH,
];

impl Default for &'static Format {
    fn default() -> Self {
        &FORMATS[0]
    }
}

/// The format that has this name, or is also called so.
#[must_use]
pub fn find(name: &str) -> Option<&'static Format> {
    FORMATS.iter().find(|format| format.name == name || format.also.contains(&name))
}

/// What a format is made of.
pub struct Input<'a> {
    /// One record, or repeats of one run, which few formats tell of together.
    pub records: &'a [&'a Record],
    /// Reads the runs that lie below the record.
    pub below: &'a dyn Fn() -> Result<Vec<Record>, FormatError>,
    /// What is known of the record beside what it says.
    pub context: Context,
    /// What the platform costs, for an answer.
    pub cost: Option<Cost>,
    /// Where a page has its script.
    pub assets: Assets,
}

impl<'a> Input<'a> {
    /// Of a record alone.
    #[must_use]
    pub fn of(records: &'a [&'a Record]) -> Self {
        Self { records, below: &|| Ok(Vec::new()), context: Context::default(), assets: Assets::Embedded, cost: None }
    }

    fn record(&self) -> Result<&'a Record, FormatError> {
        match self.records {
            [one] => Ok(one),
            _ => Err(FormatError::Several),
        }
    }
}

/// Why a record cannot be had in a format.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FormatError {
    /// The format shows one run, the record is of several.
    #[error("this format shows one run")]
    Several,
    /// Why the record has nothing of it.
    #[error("{0}")]
    Unsuited(String),
    /// It cannot be written.
    #[error(transparent)]
    Io(#[from] IoError),
}

impl Format {
    /// A record in this format.
    ///
    /// # Errors
    /// When the record has nothing that the format could hold.
    pub fn text(&self, input: &Input<'_>) -> Result<String, FormatError> {
        let mut out = Vec::new();
        (self.write)(input, &mut out)?;
        // Every format is text.
        Ok(String::from_utf8(out).unwrap_or_default())
    }
}
