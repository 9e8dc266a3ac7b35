//! Why a text could not be imported.

use super::Tool;
use super::text::LINE_BYTES;
use thiserror::Error;

/// Values of a record at most. Each takes some four hundred bytes here and in it, whatever it took where it was printed; a day of
/// seconds of ten figures is within.
pub(super) const VALUES_MAX: usize = 1_000_000;

/// Where a value stands: file and line, as people find it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourcePlace {
    /// Path as given; `-` for standard input.
    pub path: String,
    /// Line, from 1.
    pub line: u64,
    /// What is printed there.
    pub printed: String,
}

/// Why a text could not be imported; each names the remedy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ImportError {
    /// No file was named.
    #[error("there is nothing to import: name a file, or - for standard input")]
    NoSource,
    /// A file without a line of text.
    #[error("{path}: the file is empty")]
    Empty {
        /// Path as given.
        path: String,
    },
    /// Lines too short for any tool's.
    #[error(
        "{path}: its {lines} lines have fewer than {LINE_BYTES} bytes on average, which no tool prints; import the \
         file as the tool wrote it"
    )]
    Crumbs {
        /// Path as given.
        path: String,
        /// How many there are.
        lines: usize,
    },
    /// More figures than a record takes.
    #[error("{path}: has more figures than one record can hold ({VALUES_MAX}); import a part of it")]
    TooMany {
        /// Path as given.
        path: String,
    },
    /// No parser knows it.
    #[error(
        "{path}: not recognised as any of: {looked_for}{nearest}; import the tool's own text or JSON output, headings included"
    )]
    Unrecognised {
        /// Path as given.
        path: String,
        /// Every tool that was tried, in words.
        looked_for: String,
        /// The parser that came nearest and its first missing mark, as the end of a sentence; empty if none came near.
        nearest: String,
    },
    /// Files of several tools, which cannot make one record.
    #[error(
        "{first} is {} and {second} is {}: one record can contain the output of one tool only; use --each to make a \
         record of each file",
        first_tool.name(),
        second_tool.name()
    )]
    Mixed {
        /// Path of the first file.
        first: String,
        /// What it is.
        first_tool: Tool,
        /// Path of the first file that is something else.
        second: String,
        /// What that is.
        second_tool: Tool,
    },
    /// One figure, printed twice with different values.
    #[error(
        "{}:{} says {name} is {}, {}:{} says {}: these files are not from one run; import each separately (--each, \
         or a file for each)",
        first.path, first.line, first.printed, second.path, second.line, second.printed
    )]
    Contradiction {
        /// The figure, with what it is of.
        name: String,
        /// Where it stands first.
        first: Box<SourcePlace>,
        /// Where it has another value.
        second: Box<SourcePlace>,
    },
    /// A part that must be whole is not.
    #[error("{path}:{line}: {what}")]
    Damaged {
        /// Path as given.
        path: String,
        /// Line, from 1.
        line: u64,
        /// What is wrong and the remedy.
        what: String,
    },
    /// A report that is not of one run.
    #[error("{path}:{line}: this is {what}, not the report of one run; {way_out}")]
    NotARun {
        /// Path as given.
        path: String,
        /// Line that says so, from 1.
        line: u64,
        /// What it is.
        what: &'static str,
        /// What to do instead.
        way_out: &'static str,
    },
    /// Recognised, but without a single figure.
    #[error("{path}: recognised as {}, but no figure could be read from it{hint}", tool.name())]
    NothingRead {
        /// Path as given.
        path: String,
        /// What it was recognised as.
        tool: Tool,
        /// What to look at, as the end of a sentence.
        hint: String,
    },
}
