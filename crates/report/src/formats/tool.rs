//! A record in the words of the tool that its test stands in for, as its kind has them.

use super::{Format, FormatError, Input, PLAIN, Written};
use crate::kinds;
use assay_measure::kind::Kind;
use assay_measure::record::Record;
use std::io::Write;

pub(super) const PGIO: Format = Format {
    name: "pgio",
    help: "pgio's result line and rows, for a run against a server",
    write: |input, out| {
        put(
            input,
            out,
            |kind, record| kind.in_file_of_tool(record, "pgio"),
            |record| {
                format!(
                    "target {} is not a server that counts blocks hit and read, so it has no such line; use --format summary",
                    record.run.engine
                )
            },
        )
    },
    ..PLAIN
};

pub(super) const TOOL: Format = Format {
    name: "tool",
    also: &["iperf3", "ping"],
    help: "In the format of the tool it replaces, if any (lscpu, stress-ng, iperf3)",
    write: |input, out| put(input, out, |kind, record| kind.in_words_of_tool(record), no_tool),
    ..PLAIN
};

pub(super) const TOOL_JSON: Format = Format {
    name: super::TOOL_JSON,
    also: &["iperf3-json"],
    help: "The same as that tool's JSON",
    media_type: "application/json",
    write: |input, out| put(input, out, |kind, record| kind.in_json_of_tool(record), no_tool),
};

pub(super) const SWINGBENCH: Format = Format {
    name: "swingbench",
    help: "The results file of order entry, which its field's parse_results reads: XML",
    media_type: "application/xml",
    write: |input, out| {
        put(
            input,
            out,
            |kind, record| kind.in_file_of_tool(record, "swingbench"),
            |_| "it is no run of order entry, so there is no such results file".to_owned(),
        )
    },
    ..PLAIN
};

fn no_tool(record: &Record) -> String {
    format!("kind {} has no equivalent tool output", record.kind)
}

/// What the kind has, or why it has none.
fn put(
    input: &Input<'_>,
    out: &mut dyn Write,
    text: fn(&dyn Kind, &Record) -> Option<String>,
    why: fn(&Record) -> String,
) -> Written {
    let record = input.record()?;
    match text(kinds::of(record), record) {
        Some(text) => Ok(out.write_all(text.as_bytes())?),
        None if kinds::stands_above_runs(record) => Err(FormatError::Several),
        None => Err(FormatError::Unsuited(why(record))),
    }
}
