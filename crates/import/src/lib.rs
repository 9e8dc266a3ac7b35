//! Import: what other tools printed, as a record like any other.
//!
//! A text is recognised by what it says, never by its name. Each tool has one parser and one line in `PARSERS`; a
//! parser gets mended lines (`text::Text`), reads numbers by one grammar (`number`) and fills the record through
//! `draft::Draft`, which writes each value's file, line and printed form down in the same call, so that a figure and
//! its provenance cannot differ. What is missing stays n/a. Nothing here does I/O; arbitrary text never panics, and
//! reading takes time in proportion to its length.
#![forbid(unsafe_code)]

/// The JSON pointer of a field's path: `load_profile[3].per_s` is `/load_profile/3/per_s`.
macro_rules! pointer {
    () => { String::new() };
    (. $($rest:tt)+) => { pointer!($($rest)+) };
    ($field:ident $($rest:tt)*) => {
        format!("/{}{}", stringify!($field), pointer!($($rest)*))
    };
    ([$index:expr] $($rest:tt)*) => { format!("/{}{}", $index, pointer!($($rest)*)) };
}

/// Puts a [`draft::Reading`] into a field of the draft's record and into its list of values:
/// `put!(draft, reading, load_profile[row].per_s)`.
macro_rules! put {
    ($draft:expr, $reading:expr, $($path:tt)+) => {{
        if let Some(figure) = $draft.keep($reading, pointer!($($path)+)) {
            $crate::draft::Slot::fill(&mut $draft.record.$($path)+, &figure);
        }
    }};
}

/// The same below a part that is reached otherwise (an option, a key of a map):
/// `put_in!(draft, reading, "/parts/storage", draft.storage.get_or_insert_default(), groups[0].ways[1].iops_per_s)`.
macro_rules! put_in {
    ($draft:expr, $reading:expr, $base:expr, $place:expr, $($path:tt)+) => {{
        let at = format!("{}{}", $base, pointer!($($path)+));
        if let Some(figure) = $draft.keep($reading, at) {
            $crate::draft::Slot::fill(&mut $place.$($path)+, &figure);
        }
    }};
}

mod awr;
mod draft;
mod error;
mod fio;
mod integrity;
mod iperf3;
mod json;
mod number;
mod oratcptest;
mod pgbench;
mod pgio;
mod ping;
mod rows;
mod seen;
mod slob;
mod stress_ng;
mod swingbench;
mod sysbench;
mod text;
mod vdbench;

#[cfg(test)]
pub(crate) mod testing;
#[cfg(test)]
mod tests;

use assay_awr::advice::{advise, unjudged};
use assay_measure::kind::{self, Kind};
use assay_measure::record::{Record, SCHEMA};
use assay_storage::record::Storage;
use draft::Draft;
pub use error::{ImportError, Place};
use text::Text;

/// One text to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Path as given; `-` for standard input. A label: nothing is recognised by it.
    pub path: String,
    /// What the file holds; bytes that are no UTF-8 replaced.
    pub text: String,
}

/// Whose output a text is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Tool {
    /// Automatic Workload Repository report, or fragments of one.
    Awr,
    /// Statspack report.
    Statspack,
    /// Our own text report.
    Assay,
    /// fio, text or JSON.
    Fio,
    /// iperf3, text or JSON.
    Iperf3,
    /// ping.
    Ping,
    /// oratcptest.
    Oratcptest,
    /// stress-ng with metrics.
    StressNg,
    /// Swingbench: data generator, results table or results XML.
    Swingbench,
    /// SLOB: banner or load summary.
    Slob,
    /// pgio.
    Pgio,
    /// pgbench.
    Pgbench,
    /// sysbench.
    Sysbench,
    /// vdbench.
    Vdbench,
}

impl Tool {
    /// Its key in records and directory names.
    #[must_use]
    pub fn key(self) -> &'static str {
        match self {
            Self::Awr => "awr",
            Self::Statspack => "statspack",
            Self::Assay => "assay",
            Self::Fio => "fio",
            Self::Iperf3 => "iperf3",
            Self::Ping => "ping",
            Self::Oratcptest => "oratcptest",
            Self::StressNg => "stress-ng",
            Self::Swingbench => "swingbench",
            Self::Slob => "slob",
            Self::Pgio => "pgio",
            Self::Pgbench => "pgbench",
            Self::Sysbench => "sysbench",
            Self::Vdbench => "vdbench",
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Awr => "an AWR report",
            Self::Statspack => "a Statspack report",
            Self::Assay => "an assay report",
            other => other.key(),
        }
    }
}

/// How sure a parser is that a text is its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Confidence {
    /// 0 to 100; 50 and more is recognised, and the highest of all parsers wins.
    pub(crate) score: u8,
    /// The first mark that is not there, in words; empty if none is missing.
    pub(crate) missing: &'static str,
}

impl Confidence {
    /// From marks in the order of their weight, each with its name and whether it is there: `sure` with all of them,
    /// in proportion below 50 without.
    pub(crate) fn of(sure: u8, marks: &[(&'static str, bool)]) -> Self {
        let there = marks.iter().filter(|(_, is_there)| *is_there).count();
        let missing = marks.iter().find(|(_, is_there)| !*is_there);
        match missing {
            None => Self {
                score: sure,
                missing: "",
            },
            Some((missing, _)) => Self {
                score: (49 * there / marks.len().max(1)) as u8,
                missing,
            },
        }
    }

    /// The surer of two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.score > self.score {
            other
        } else {
            self
        }
    }
}

/// One tool's parser.
struct Parser {
    tool: Tool,
    /// The kind of test it does; its parser may know better.
    kind: &'static str,
    /// What the user may give it, for messages.
    takes: &'static str,
    looks_like: fn(&Text) -> Confidence,
    /// Reads the texts, all of this tool and in the order given, into one record.
    read: fn(&[Text], &mut Draft) -> Result<(), ImportError>,
}

/// Every parser; a new one is a file and a line here. Of equally sure ones the first wins.
const PARSERS: &[Parser] = &[
    Parser {
        tool: Tool::Awr,
        kind: "instance",
        takes: "AWR text or HTML (whole, or its sections)",
        looks_like: awr::looks_like,
        read: awr::read,
    },
    Parser {
        tool: Tool::Statspack,
        kind: "instance",
        takes: "Statspack text",
        looks_like: awr::looks_like_statspack,
        read: awr::read,
    },
    Parser {
        tool: Tool::Assay,
        kind: "slob",
        takes: "an assay text report",
        looks_like: awr::looks_like_assay,
        read: awr::read_assay,
    },
    Parser {
        tool: Tool::Fio,
        kind: "storage",
        takes: "fio text or JSON",
        looks_like: fio::looks_like,
        read: fio::read,
    },
    Parser {
        tool: Tool::Iperf3,
        kind: "network",
        takes: "iperf3 text or JSON",
        looks_like: iperf3::looks_like,
        read: iperf3::read,
    },
    Parser {
        tool: Tool::Ping,
        kind: "ping",
        takes: "ping",
        looks_like: ping::looks_like,
        read: ping::read,
    },
    Parser {
        tool: Tool::Oratcptest,
        kind: "redo",
        takes: "oratcptest",
        looks_like: oratcptest::looks_like,
        read: oratcptest::read,
    },
    Parser {
        tool: Tool::StressNg,
        kind: "cpu",
        takes: "stress-ng metrics (text or YAML)",
        looks_like: stress_ng::looks_like,
        read: stress_ng::read,
    },
    Parser {
        tool: Tool::Swingbench,
        kind: "orders",
        takes: "Swingbench (data generator, parse_results table, results XML)",
        looks_like: swingbench::looks_like,
        read: swingbench::read,
    },
    Parser {
        tool: Tool::Slob,
        kind: "slob",
        takes: "SLOB (banner, load log, load summary, awr_info table)",
        looks_like: slob::looks_like,
        read: slob::read,
    },
    Parser {
        tool: Tool::Pgio,
        kind: "slob",
        takes: "pgio",
        looks_like: pgio::looks_like,
        read: pgio::read,
    },
    Parser {
        tool: Tool::Pgbench,
        kind: "transactions",
        takes: "pgbench",
        looks_like: pgbench::looks_like,
        read: pgbench::read,
    },
    Parser {
        tool: Tool::Sysbench,
        kind: "transactions",
        takes: "sysbench",
        looks_like: sysbench::looks_like,
        read: sysbench::read,
    },
    Parser {
        tool: Tool::Vdbench,
        kind: "storage",
        takes: "vdbench (table or flat file)",
        looks_like: vdbench::looks_like,
        read: vdbench::read,
    },
];

/// Confidence from which a text counts as recognised.
const RECOGNISED: u8 = 50;

/// Whose output a text is, by what it says.
#[must_use]
pub fn recognise(text: &str) -> Option<Tool> {
    let text = Text::read(0, "", text);
    best(&text).map(|parser| parser.tool)
}

fn best(text: &Text) -> Option<&'static Parser> {
    let mut found: Option<(u8, &Parser)> = None;
    for parser in PARSERS {
        let score = (parser.looks_like)(text).score;
        if score >= RECOGNISED && found.is_none_or(|(best, _)| score > best) {
            found = Some((score, parser));
        }
    }
    found.map(|(_, parser)| parser)
}

/// Reads texts of one tool into one record: a whole output, or fragments of one and the same run.
///
/// Every value has its file and line in [`Record::import`]. Integrity is judged on what was printed, advice on what
/// follows.
///
/// # Errors
/// A text that nobody knows, files of several tools, one figure with two values, or no figure at all. Each says the
/// way out.
pub fn import(sources: &[Source]) -> Result<Record, ImportError> {
    let mut texts = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        texts.push(Text::read(file as u64, &source.path, &source.text));
    }
    let parser = parser_of(&texts)?;
    let sizes: Vec<u64> = sources.iter().map(|s| s.text.len() as u64).collect();
    let mut draft = Draft::new(&texts, &sizes);
    (parser.read)(&texts, &mut draft)?;
    let (mut record, mut info) = draft.finish()?;
    if info.values.is_empty() {
        return Err(ImportError::NothingRead {
            path: path_of(&texts),
            tool: parser.tool,
            hint: first_note(&info.notes),
        });
    }
    parser.tool.key().clone_into(&mut info.tool);
    info.notes.sort_by_key(|note| (note.file, note.line));
    SCHEMA.clone_into(&mut record.schema);
    let run = &mut record.run;
    env!("CARGO_PKG_VERSION").clone_into(&mut run.version);
    "imported".clone_into(&mut run.workload);
    "imported".clone_into(&mut run.verdict);
    if run.engine.is_empty() {
        parser.tool.key().clone_into(&mut run.engine);
    }
    if record.kind.is_empty() {
        parser.kind.clone_into(&mut record.kind);
    }
    record.import = Some(info);
    record.integrity = integrity::imported(&record);
    record.advice = advise(&record);
    record.advice_unjudged = unjudged(&record);
    let own = kind::of(&kinds(), &record).unwrap_or(&assay_awr::SLOB);
    record.advice.extend(own.several(&[&record]));
    record
        .advice
        .sort_by_key(|advice| advice.severity != "high");
    kind::figure(own, &mut record);
    Ok(record)
}

/// What tools test: storage has a kind of its own, everybody else figures of a workload.
fn kinds() -> Vec<&'static dyn Kind> {
    [assay_awr::KINDS, &[&Storage as &dyn Kind]].concat()
}

fn path_of(texts: &[Text]) -> String {
    texts.first().map_or_else(String::new, |t| t.path.clone())
}

fn first_note(notes: &[assay_measure::record::ImportNote]) -> String {
    notes.first().map_or_else(String::new, |note| {
        format!("; line {}: {}", note.line, note.text)
    })
}

/// The parser that all the texts are for.
fn parser_of(texts: &[Text]) -> Result<&'static Parser, ImportError> {
    let mut all: Option<(&Text, &'static Parser)> = None;
    for text in texts {
        if text.is_empty() {
            let path = text.path.clone();
            return Err(ImportError::Empty { path });
        }
        let parser = best(text).ok_or_else(|| unrecognised(text))?;
        match all {
            Some((first, other)) if other.tool != parser.tool => {
                return Err(ImportError::Mixed {
                    first: first.path.clone(),
                    first_tool: other.tool,
                    second: text.path.clone(),
                    second_tool: parser.tool,
                });
            }
            Some(_) => {}
            None => all = Some((text, parser)),
        }
    }
    all.map(|(_, parser)| parser).ok_or(ImportError::NoSource)
}

fn unrecognised(text: &Text) -> ImportError {
    let looked_for: Vec<&str> = PARSERS.iter().map(|parser| parser.takes).collect();
    let mut nearest: Option<(Confidence, &Parser)> = None;
    for parser in PARSERS {
        let confidence = (parser.looks_like)(text);
        if confidence.score > nearest.map_or(0, |(best, _)| best.score) {
            nearest = Some((confidence, parser));
        }
    }
    let nearest = nearest.map_or_else(String::new, |(confidence, parser)| {
        format!(
            ". It is most similar to {}, but lacks {}",
            parser.takes, confidence.missing
        )
    });
    ImportError::Unrecognised {
        path: text.path.clone(),
        looked_for: looked_for.join(", "),
        nearest,
    }
}

/// Values of a record whose place does not hold what the list of values says; none, whatever was read.
#[must_use]
pub fn misplaced(record: &Record) -> Vec<String> {
    let Some(info) = &record.import else {
        return Vec::new();
    };
    let Ok(whole) = serde_json::to_value(record) else {
        return vec!["the record cannot be written".to_owned()];
    };
    let values = info.values.iter().filter(|value| !value.at.is_empty());
    let wrong = values.filter(|value| {
        let held = whole.pointer(&value.at);
        let said = serde_json::to_value(&value.value).ok();
        let same = match (
            held.and_then(serde_json::Value::as_f64),
            value.value.value(),
        ) {
            (Some(held), Some(said)) => held == said || held == said.round(),
            _ => held == said.as_ref(),
        };
        !same
    });
    wrong
        .map(|value| format!("{} {} at {}", value.scope, value.key, value.at))
        .collect()
}
