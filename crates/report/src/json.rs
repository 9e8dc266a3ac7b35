//! The record as JSON: what `record.json` holds and `--format json` prints.

use crate::kinds;
use assay_measure::plain::is_unprintable;
use assay_measure::record::bounds;
use assay_measure::record::metric::ordered;
use assay_measure::record::{Record, SCHEMA};
use serde::{Deserialize, Serialize};
use serde_json::ser::Formatter;
use std::io::{Result as IoResult, Write};
use thiserror::Error;

/// Why a text is no record.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RecordError {
    /// Not JSON, or not of this shape.
    #[error("not a record: {0}")]
    Shape(#[from] serde_json::Error),
    /// Edited: figures made of such numbers would mean nothing.
    #[error("not a record: {}", bounds::WHY)]
    Bounds,
    /// Crafted: it would take all memory.
    #[error("not a record: {}", bounds::TOO_DENSE)]
    Dense,
    /// A record of another schema.
    #[error("its schema is \"{found}\"; this version of assay reads \"{SCHEMA}\" only")]
    Schema {
        /// What its `schema` key says.
        found: String,
    },
}

/// Writes a record, indented, with a final newline.
///
/// # Errors
/// None that a record can cause; the signature is serde's.
pub fn write(record: &Record) -> Result<String, RecordError> {
    let mut text = Vec::new();
    let mut serializer = serde_json::Serializer::with_formatter(&mut text, Lines::default());
    record.serialize(&mut serializer)?;
    text.push(b'\n');
    // serde writes nothing else, and a copy of a large record is spared.
    Ok(String::from_utf8(text).unwrap_or_default())
}

/// One line per key and per object of a list; lists of numbers stay on one line, so
/// that a histogram is one line and not a thousand.
#[derive(Default)]
struct Lines {
    /// Open lists and objects; whether a list held an object, an object a key.
    open: Vec<(Container, bool)>,
}

#[derive(Clone, Copy, PartialEq)]
enum Container {
    List,
    Object,
}

impl Lines {
    fn new_line<W: ?Sized + Write>(&self, writer: &mut W) -> IoResult<()> {
        writer.write_all(b"\n")?;
        writer.write_all(" ".repeat(self.open.len()).as_bytes())
    }

    /// Closes the innermost container, on a line of its own if it was broken up.
    fn close<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> IoResult<()> {
        if let Some((_, true)) = self.open.pop() {
            self.new_line(writer)?;
        }
        writer.write_all(bracket)
    }
}

impl Formatter for Lines {
    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> IoResult<()> {
        self.open.push((Container::List, false));
        writer.write_all(b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> IoResult<()> {
        self.close(writer, b"]")
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> IoResult<()> {
        if let Some((Container::List, broken)) = self.open.last_mut() {
            *broken = true;
            self.new_line(writer)?;
        }
        self.open.push((Container::Object, false));
        writer.write_all(b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> IoResult<()> {
        self.close(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, writer: &mut W, first: bool) -> IoResult<()> {
        if !first {
            writer.write_all(b",")?;
        }
        if let Some((_, broken)) = self.open.last_mut() {
            *broken = true;
        }
        self.new_line(writer)
    }

    /// What a terminal would obey is written as its number, so that the text can be printed as it is.
    fn write_string_fragment<W: ?Sized + Write>(&mut self, writer: &mut W, fragment: &str) -> IoResult<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(is_unprintable) {
            let (plain, from) = rest.split_at(at);
            writer.write_all(plain.as_bytes())?;
            let mut letters = from.chars();
            // Every one of them has a number of four digits.
            if let Some(letter) = letters.next() {
                write!(writer, "\\u{:04x}", u32::from(letter))?;
            }
            rest = letters.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> IoResult<()> {
        writer.write_all(b": ")
    }
}

/// What tells which shape the rest has.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Envelope {
    schema: String,
}

/// Reads a record of this schema; unknown keys are ignored, missing ones are n/a (absent).
///
/// # Errors
/// When the text is not JSON of this shape, or of another schema.
pub fn read(text: &str) -> Result<Record, RecordError> {
    if bounds::is_too_dense(text.as_bytes()) {
        return Err(RecordError::Dense);
    }
    let found = serde_json::from_str::<Envelope>(text)?.schema;
    if found != SCHEMA {
        return Err(RecordError::Schema { found });
    }
    let mut record: Record = serde_json::from_str(text)?;
    if bounds::are_broken(text.as_bytes()) {
        return Err(RecordError::Bounds);
    }
    // Somebody may have edited it: every reader may count on columns of one length.
    record.series.square();
    kinds::of(&record).readable(&record)?;
    match std::mem::take(&mut record.metrics) {
        none if none.is_empty() => kinds::attach_metrics(&mut record),
        // Every reader may count on one figure a key.
        kept => record.metrics = ordered(kept, &record.series),
    }
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_of_a_run_survives_the_round_trip() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = write(&record).unwrap();
        assert_eq!(read(&text).unwrap(), record);
    }

    #[test]
    fn what_a_terminal_obeys_is_written_as_its_number_and_read_back() {
        let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
        record.warnings = vec!["a\u{1b}[2J\u{9b}1m\u{7f}\u{202e}b\r\n\t".to_owned()];
        let text = write(&record).unwrap();
        assert!(!text.contains(is_unprintable));
        assert_eq!(read(&text).unwrap(), record);
    }

    #[test]
    fn a_histogram_is_one_line_and_every_object_of_a_list_begins_one() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = write(&record).unwrap();
        let histogram = text.lines().find(|line| line.contains("\"hist_us\"")).unwrap();
        assert!(histogram.ends_with("],"), "{histogram}");
        assert!(text.contains("\"events\": [\n   {\n"), "{}", &text[..200]);
        let pretty = serde_json::to_string_pretty(&record).unwrap();
        let value: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value, serde_json::from_str::<serde_json::Value>(&pretty).unwrap());
    }

    #[test]
    fn unknown_keys_are_ignored_and_missing_ones_are_absent() {
        let record = read(r#"{"schema":"assay/2","later":{"x":[1]},"interval":{"new_s":1}}"#).unwrap();
        assert_eq!(record.interval.elapsed_s.reason(), Some("absent"));
    }

    #[test]
    fn a_figure_that_was_written_in_twice_stands_once() {
        let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
        record.metrics.extend(record.metrics.clone());
        let text = write(&record).unwrap();
        let back = read(&text).unwrap();
        assert_eq!(back.metrics.len() * 2, record.metrics.len());
    }

    #[test]
    fn another_schema_is_refused_by_name() {
        for found in ["assay/9", "assay/1", "assay-sweep/1"] {
            // Of another schema nothing else is looked at.
            let error = read(&format!(r#"{{"schema":"{found}","run":[1]}}"#)).unwrap_err().to_string();
            assert_eq!(error, format!("its schema is \"{found}\"; this version of assay reads \"assay/2\" only"));
        }
    }
}
