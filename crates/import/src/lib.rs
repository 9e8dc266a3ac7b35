//! Import: the output of other tools as a record like any other.
//!
//! A text is recognised by its content, never by its name. Each tool has one parser and one line in `PARSERS`; a parser
//! gets cleaned lines (`text::Text`), reads numbers by one grammar (`number`) and fills the record through
//! `draft::Draft`, which records each value's file, line and printed form in the same call, so that a figure and its
//! provenance cannot differ. Missing figures stay n/a. Nothing here does I/O; arbitrary text never panics, and reading
//! takes time in proportion to its length.
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
    ($draft:expr, $reading:expr, $($path:tt)+) => {
        put_in!($draft, $reading, "", $draft.record, $($path)+)
    };
}

/// The same below a part that is reached otherwise (an option, a key of a map):
/// `put_in!(draft, reading, "/parts/storage", draft.storage.get_or_insert_default(), groups[0].ways[1].iops_per_s)`.
macro_rules! put_in {
    ($draft:expr, $reading:expr, $base:expr, $place:expr, $($path:tt)+) => {{
        let reading = $reading;
        let at = $crate::draft::Slot::place(&$place.$($path)+, &reading, format!("{}{}", $base, pointer!($($path)+)));
        if let Some(held) = $draft.keep(reading, at).as_ref().and_then($crate::draft::Slot::of) {
            $place.$($path)+ = held;
        }
    }};
}

mod articles;
mod awr;
mod dates;
mod draft;
mod error;
mod fio;
mod grouping;
mod hammerdb;
mod host;
mod host_inventory;
mod integrity;
mod iperf3;
mod json;
mod lines;
mod located_number;
mod number;
mod oratcptest;
mod orion;
mod pasted;
mod pgbench;
mod pgio;
mod ping;
mod rows;
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

use assay_awr::rules::{advise, unjudged};
use assay_measure::kind::{self, Kind};
use assay_measure::record::metric::{Better, Group, Metric, ordered};
use assay_measure::record::{Record, SCHEMA};
use assay_slob::SLOB;
use assay_storage::record::Storage;
use draft::Draft;
pub use error::{ImportError, SourcePlace};
pub use grouping::{Imported, import_all};
use lines::Table;
use text::Text;

/// What an import takes of memory at most, in sizes of its texts, besides the record it makes.
pub const COST: u64 = 8;

/// One text to read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Path as given; `-` for standard input. A label: nothing is recognised by it.
    pub path: String,
    /// The content of the file; bytes that are not UTF-8 are replaced.
    pub text: String,
}

/// Which tool printed a text.
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
    /// Orion.
    Orion,
    /// pgbench.
    Pgbench,
    /// sysbench.
    Sysbench,
    /// vdbench.
    Vdbench,
    /// HammerDB.
    HammerDb,
    /// `vmstat`, `mpstat`, `sar`, `iostat`.
    Host,
    /// A card of the platform: `lscpu`, `sysctl`, parameters of a database, a box table.
    Card,
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
            Self::Orion => "orion",
            Self::Pgbench => "pgbench",
            Self::Sysbench => "sysbench",
            Self::Vdbench => "vdbench",
            Self::HammerDb => "hammerdb",
            Self::Host => "host",
            Self::Card => "card",
        }
    }

    /// Its name for people.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Awr => "an AWR report",
            Self::Statspack => "a Statspack report",
            Self::Assay => "an assay report",
            Self::HammerDb => "HammerDB",
            Self::Host => "statistics of a host",
            Self::Card => "a card of a platform",
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
            None => Self { score: sure, missing: "" },
            Some((missing, _)) => Self { score: (49 * there / marks.len().max(1)) as u8, missing },
        }
    }

    /// The surer of two.
    pub(crate) fn or(self, other: Self) -> Self {
        if other.score > self.score { other } else { self }
    }
}

/// One tool's parser.
struct Parser {
    tool: Tool,
    /// The kind of test it does; its parser may know better.
    kind: &'static str,
    /// Its accepted inputs, for messages.
    takes: &'static str,
    looks_like: fn(&Text) -> Confidence,
    /// Runs of a text whose lines alternate, or its one run without what is not of it; empty where all is as it should.
    titled: fn(&Text) -> Vec<Text>,
    /// Lines of a text at which a further run begins, which becomes a separate record.
    runs: fn(&Text) -> Vec<usize>,
    /// Whether a text is a fragment, which may belong to another text of the tool.
    is_part: fn(&Text) -> bool,
    /// It says something of a run that another tool measured.
    is_beside: bool,
    /// Its lines, where a table says what it prints: it takes the place of what reads and recognises.
    table: Option<&'static Table>,
    /// Lines it knows and reads nothing from; `None` where lines that were not read are not noted.
    ignores: Option<&'static [&'static str]>,
    /// Reads the texts, all of this tool and in the order given, into one record.
    read: fn(&[Text], &mut Draft) -> Result<(), ImportError>,
}

/// What most parsers have in common: a text is one whole run.
const WHOLE: Parser = Parser {
    tool: Tool::Assay,
    kind: "",
    takes: "",
    looks_like: |_| Confidence::of(0, &[("anything", false)]),
    titled: |_| Vec::new(),
    runs: |_| Vec::new(),
    is_part: |_| false,
    is_beside: false,
    table: None,
    ignores: None,
    read: |_, _| Ok(()),
};

impl Parser {
    fn confidence(&self, text: &Text) -> Confidence {
        self.table.map_or_else(|| (self.looks_like)(text), |table| table.looks_like(text))
    }

    /// The runs of a text, so many at most; the first alone is cheap.
    fn split(&self, text: &Text, most: usize) -> Vec<Text> {
        let mut runs = self.cut(text, most);
        if let Some(first) = runs.first_mut() {
            first.inherit(text);
        }
        runs
    }

    fn cut(&self, text: &Text, most: usize) -> Vec<Text> {
        let titled = (self.titled)(text);
        if titled.len() > 1 {
            return titled;
        }
        let text = titled.into_iter().next().unwrap_or_else(|| text.clone());
        let mut begins = self.table.map_or_else(|| (self.runs)(&text), |table| table.runs(&text));
        begins.truncate(most);
        if begins.is_empty() {
            return vec![text];
        }
        begins.insert(0, 0);
        let ends = begins.iter().skip(1).copied().chain([text.lines.len()]);
        let parts = begins.iter().zip(ends).map(|(begin, end)| text.part(*begin..end));
        parts.filter(|part| !part.is_empty()).collect()
    }

    fn read_all(&self, texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
        match self.table {
            Some(table) => table.read(texts, draft)?,
            None => (self.read)(texts, draft)?,
        }
        if let Some(known) = self.ignores.or(self.table.map(|_| &[][..])) {
            lines::note_unread(texts, known, draft);
        }
        Ok(())
    }
}

/// Whether a text is of a report that begins where the text begins.
fn lacks_snapshots(text: &Text) -> bool {
    !text.head_has("Begin Snap")
}

/// Every parser; a new one is a file and a line here. Of equally sure ones the first wins.
const PARSERS: &[Parser] = &[
    Parser {
        tool: Tool::Awr,
        kind: "instance",
        takes: "AWR text or HTML (whole, or its sections)",
        looks_like: awr::looks_like,
        read: awr::read,
        is_part: lacks_snapshots,
        ..WHOLE
    },
    Parser {
        tool: Tool::Statspack,
        kind: "instance",
        takes: "Statspack text",
        looks_like: awr::looks_like_statspack,
        read: awr::read,
        is_part: lacks_snapshots,
        ..WHOLE
    },
    Parser {
        tool: Tool::Assay,
        kind: "slob",
        takes: "an assay text report",
        looks_like: awr::looks_like_assay,
        read: awr::read_assay,
        ..WHOLE
    },
    Parser {
        tool: Tool::Fio,
        kind: "storage",
        takes: "fio text or JSON",
        looks_like: fio::looks_like,
        ignores: Some(&["Jobs: "]),
        read: fio::read,
        runs: fio::runs,
        titled: fio::titled,
        is_part: |text| !fio::is_whole(text),
        ..WHOLE
    },
    Parser {
        tool: Tool::Iperf3,
        kind: "network",
        takes: "iperf3 text or JSON",
        looks_like: iperf3::looks_like,
        read: iperf3::read,
        runs: iperf3::runs,
        titled: iperf3::titled,
        ignores: Some(iperf3::IGNORED),
        ..WHOLE
    },
    Parser { tool: Tool::Ping, kind: "ping", takes: "ping", table: Some(&ping::PING), ..WHOLE },
    Parser { tool: Tool::Oratcptest, kind: "redo", takes: "oratcptest", table: Some(&oratcptest::ORATCPTEST), ..WHOLE },
    Parser {
        tool: Tool::StressNg,
        kind: "cpu",
        takes: "stress-ng metrics (text or YAML)",
        table: Some(&stress_ng::STRESS_NG),
        ..WHOLE
    },
    Parser {
        tool: Tool::Swingbench,
        kind: "orders",
        takes: "Swingbench (data generator, charbench, parse_results table, results XML)",
        looks_like: swingbench::looks_like,
        ignores: Some(&[]),
        read: swingbench::read,
        ..WHOLE
    },
    Parser {
        tool: Tool::Slob,
        kind: "slob",
        takes: "SLOB (banner, load log, load summary, awr_info table)",
        looks_like: slob::looks_like,
        ignores: Some(&[]),
        read: slob::read,
        is_part: |_| true,
        ..WHOLE
    },
    Parser { tool: Tool::Pgio, kind: "slob", takes: "pgio", table: Some(&pgio::PGIO), ..WHOLE },
    Parser { tool: Tool::Orion, kind: "storage", takes: "Orion", table: Some(&orion::ORION), ..WHOLE },
    Parser { tool: Tool::Pgbench, kind: "transactions", takes: "pgbench", table: Some(&pgbench::PGBENCH), ..WHOLE },
    Parser { tool: Tool::Sysbench, kind: "transactions", takes: "sysbench", table: Some(&sysbench::SYSBENCH), ..WHOLE },
    Parser {
        tool: Tool::Vdbench,
        kind: "storage",
        takes: "vdbench (table or flat file)",
        looks_like: vdbench::looks_like,
        ignores: Some(&["Starting RD="]),
        read: vdbench::read,
        ..WHOLE
    },
    Parser {
        tool: Tool::HammerDb,
        kind: "orders",
        takes: "HammerDB (log or JSON)",
        table: Some(&hammerdb::HAMMERDB),
        is_part: |_| true,
        ..WHOLE
    },
    Parser {
        tool: Tool::Host,
        kind: "instance",
        takes: "vmstat, mpstat, sar or iostat",
        looks_like: host::looks_like,
        ignores: Some(&["Average:"]),
        is_beside: true,
        read: host::read,
        ..WHOLE
    },
    Parser {
        tool: Tool::Card,
        kind: "instance",
        takes: "a card of the platform (lscpu, sysctl, init.ora, show parameter, slob.conf)",
        looks_like: host_inventory::looks_like,
        is_beside: true,
        read: host_inventory::read,
        ..WHOLE
    },
];

/// Confidence from which a text counts as recognised.
const RECOGNISED: u8 = 50;

/// Which tool printed a text, by its content.
#[must_use]
pub fn recognise(text: &str) -> Option<Tool> {
    let text = Text::read(0, "", text);
    best(&text).map(|parser| parser.tool)
}

fn best(text: &Text) -> Option<&'static Parser> {
    let mut found: Option<(u8, &Parser)> = None;
    for parser in PARSERS {
        let score = parser.confidence(text).score;
        if score >= RECOGNISED && found.is_none_or(|(best, _)| score > best) {
            found = Some((score, parser));
        }
    }
    found.map(|(_, parser)| parser)
}

/// Reads texts of one tool into one record: a whole output, or fragments of one and the same run.
///
/// Every value has its file and line in [`Record::import`]. Integrity is judged on the printed figures, advice on the
/// derived ones.
///
/// # Errors
/// An unknown text, files of several tools, one figure with two values, or no figure at all. Each names the remedy.
pub fn import(sources: &[Source]) -> Result<Record, ImportError> {
    let mut texts = Vec::new();
    for (file, source) in sources.iter().enumerate() {
        texts.push(Text::read(file as u64, &source.path, source.text.as_str()));
    }
    let parser = parser_of(&texts)?;
    let sizes: Vec<u64> = sources.iter().map(|s| s.text.len() as u64).collect();
    let parsers = vec![parser; texts.len()];
    record_of(&parsers, &texts, &sizes)
}

/// Reads texts of one run into one record: the first is of the tool that measured it, others of that or of what was
/// written down beside it.
fn record_of(parsers: &[&'static Parser], texts: &[Text], sizes: &[u64]) -> Result<Record, ImportError> {
    let Some(parser) = parsers.first() else {
        return Err(ImportError::NoSource);
    };
    let mut draft = Draft::new(texts, sizes);
    let mut tools: Vec<Tool> = parsers.iter().map(|parser| parser.tool).collect();
    tools.dedup();
    for tool in tools {
        let of_tool = parsers.iter().zip(texts).filter(|(parser, _)| parser.tool == tool);
        let (same, texts): (Vec<&&Parser>, Vec<Text>) =
            of_tool.map(|(parser, text)| (parser, first_run(parser, text, &mut draft))).unzip();
        let said = draft.said();
        same[0].read_all(&texts, &mut draft)?;
        // What stands beside a run has no say in whose it is.
        if tool != parser.tool {
            draft.say(said);
        }
    }
    if draft.record.run.started.is_empty()
        && let Some(text) = texts.iter().find(|text| !text.started.is_empty())
    {
        text.started.clone_into(&mut draft.record.run.started);
    }
    finished(parser, draft, texts)
}

/// The first run of a text, and a note where there are more.
fn first_run(parser: &Parser, text: &Text, draft: &mut Draft) -> Text {
    let mut runs = parser.split(text, 1).into_iter();
    let first = runs.next().unwrap_or_else(|| text.clone());
    if let Some(at) = runs.next().and_then(|second| Some(second.lines.first()?.at)) {
        draft.note(at, "another run begins here: this record covers the first (assay import makes a record of each)");
    }
    first
}

/// What follows from what was read.
fn finished(parser: &Parser, draft: Draft, texts: &[Text]) -> Result<Record, ImportError> {
    if draft.is_full {
        return Err(ImportError::TooMany { path: path_of(texts) });
    }
    let (mut record, mut info) = draft.finish()?;
    let has_facts = parser.is_beside && !record.host.facts.is_empty();
    if info.values.is_empty() && !has_facts {
        return Err(ImportError::NothingRead {
            path: path_of(texts),
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
    run.started = dates::sortable(&run.started);
    if run.engine.is_empty() {
        parser.tool.key().clone_into(&mut run.engine);
    }
    if record.kind.is_empty() {
        parser.kind.clone_into(&mut record.kind);
    }
    record.import = Some(info);
    record.integrity = integrity::imported(&record);
    record.warnings.extend(integrity::warnings(&record));
    record.advice = advise(&record);
    record.advice_unjudged = unjudged(&record);
    let own = kind::of(&kinds(), &record).unwrap_or(&assay_awr::INSTANCE);
    record.advice.extend(own.several(&[&record]));
    record.advice.sort_by_key(|advice| advice.severity != "high");
    kind::attach_metrics(own, &mut record);
    declare_results(&mut record);
    Ok(record)
}

/// Of a tool whose figures have no place in a record of ours, the results are what a comparison is judged by.
fn declare_results(record: &mut Record) {
    const RESULTS: [&str; 6] = ["_per_s", "_per_s_mean", "_per_min", "_lost_pct", "_us_avg", "_us_mean"];
    const MOST: usize = 4;
    if record.metrics.iter().any(|metric| metric.is_primary && metric.value.value().is_some()) {
        return;
    }
    let is_whole = |metric: &&mut Metric| {
        let is_part = metric.scope.starts_with("stream ") || metric.scope.ends_with("sender");
        metric.group == Group::Imported && !is_part && RESULTS.iter().any(|end| metric.key.ends_with(end))
    };
    for metric in record.metrics.iter_mut().filter(is_whole).take(MOST) {
        metric.is_primary = true;
        // The steps of a mean give it an interval.
        metric.series = metric.key.strip_suffix("_mean").map(str::to_owned);
        if metric.key.ends_with("_lost_pct") {
            metric.better = Better::Lower;
        }
    }
    record.metrics = ordered(std::mem::take(&mut record.metrics), &record.series);
}

/// What tools test: storage has a kind of its own, everybody else figures of a workload.
fn kinds() -> Vec<&'static dyn Kind> {
    [assay_awr::KINDS, &[&SLOB, &Storage as &dyn Kind]].concat()
}

fn path_of(texts: &[Text]) -> String {
    texts.first().map_or_else(String::new, |t| t.path.clone())
}

fn first_note(notes: &[assay_measure::record::ImportNote]) -> String {
    notes.first().map_or_else(String::new, |note| format!("; line {}: {}", note.line, note.text))
}

/// The parser that all the texts are for.
fn parser_of(texts: &[Text]) -> Result<&'static Parser, ImportError> {
    let mut all: Option<(&Text, &'static Parser)> = None;
    for text in texts {
        let parser = parser_for(text)?;
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

/// The parser of a text.
fn parser_for(text: &Text) -> Result<&'static Parser, ImportError> {
    let path = || text.path.clone();
    match text.crumbs {
        Some(lines) => return Err(ImportError::Crumbs { path: path(), lines }),
        None if text.is_empty() => return Err(ImportError::Empty { path: path() }),
        None => {}
    }
    best(text).ok_or_else(|| unrecognised(text))
}

fn unrecognised(text: &Text) -> ImportError {
    let looked_for: Vec<&str> = PARSERS.iter().map(|parser| parser.takes).collect();
    let mut nearest: Option<(Confidence, &Parser)> = None;
    for parser in PARSERS {
        let confidence = parser.confidence(text);
        if confidence.score > nearest.map_or(0, |(best, _)| best.score) {
            nearest = Some((confidence, parser));
        }
    }
    let nearest = nearest.map_or_else(String::new, |(confidence, parser)| {
        format!(". It is most similar to {}, but lacks {}", parser.takes, confidence.missing)
    });
    ImportError::Unrecognised { path: text.path.clone(), looked_for: looked_for.join(", "), nearest }
}
