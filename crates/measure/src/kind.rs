//! The contract of a kind of test: the content of its records, defined once and read by every output format.
//!
//! A kind is a folder and one line in the registry of the program. Code that draws, compares, prices or lists records
//! asks the record's kind and knows none by name.

mod own;

pub use own::{OwnKind, TestConditions};

use crate::chart::Drawn;
use crate::figures::figures;
use crate::fleet::Fleet;
use crate::plain::shell_word;
use crate::record::metric::{find, ordered};
use crate::record::{Advice, Figure, Metric, Record};
use crate::rule::Rule;
use crate::section::Sections;
use crate::snapshot::{RunData, SettingLine};
use crate::units::{fixed, six};
use serde::{Deserialize, Serialize};

/// What the user set for a test, on the command line, in a file or in the environment, in the record's order.
///
/// Nothing if a value is masked: the command would not be the same.
#[must_use]
pub fn given(record: &Record) -> Vec<&SettingLine> {
    let is_given = |line: &&SettingLine| {
        let origin = line.origin.as_str();
        ["cli", "command line", "env"].contains(&origin) || origin.starts_with("file ")
    };
    let all: Vec<&SettingLine> = record.plan.settings.iter().filter(is_given).collect();
    if record.import.is_some() || all.iter().any(|line| line.value.contains("***")) { Vec::new() } else { all }
}

/// The command of a probe with what was set: its place, then its options.
#[must_use]
pub fn rerun_command(record: &Record) -> String {
    if record.import.is_some() {
        return String::new();
    }
    // The command is the probe's name, which need not be that of its kind.
    let command = match record.run.workload.as_str() {
        "" => &record.kind,
        probe => probe,
    };
    let given = given(record);
    let place = given.iter().find(|line| is_place(line));
    let place = place.map(|line| line.value.as_str());
    words(command, place, given.iter().filter(|line| !is_place(line)))
}

/// Another test of the same place: a command and the settings to keep, if the user set them.
#[must_use]
pub fn beside(record: &Record, command: &str, place: &str, keep: &[&str]) -> String {
    let given = given(record);
    let kept = given.iter().filter(|line| keep.contains(&line.name.as_str()));
    words(command, Some(place), kept)
}

fn is_place(line: &SettingLine) -> bool {
    ["PATH", "PEER"].contains(&line.name.as_str())
}

fn words<'a>(command: &str, place: Option<&str>, settings: impl Iterator<Item = &'a &'a SettingLine>) -> String {
    let mut words = vec!["assay".to_owned(), command.to_owned()];
    words.extend(place.map(shell_word));
    for line in settings {
        let name = line.name.to_lowercase().replace('_', "-");
        words.push(format!("--{name}"));
        // A switch that is on has its name for a value, and takes none.
        if line.value != name {
            words.push(shell_word(&line.value));
        }
    }
    words.join(" ")
}

/// A sort of test.
pub trait Kind: Sync {
    /// What [`Record::kind`] says.
    fn name(&self) -> &'static str;

    /// Whether it can tell a record of this name: what a tool printed may lack the part that a probe's own records have.
    fn tells(&self, _record: &Record) -> bool {
        true
    }

    /// The rules that find something in its records.
    fn rules(&self) -> Vec<Rule> {
        Vec::new()
    }

    /// Adds what the readings of a run tell this kind alone to its record, which has everything else.
    fn complete(&self, _data: &RunData, _record: &mut Record) {}

    /// What the readings of several hosts told this kind alone ([`RunData::part`]) as those of one run; `None` where they do not
    /// add up.
    fn add_parts(&self, _parts: &[&serde_json::Value]) -> Option<serde_json::Value> {
        None
    }

    /// THE list of its figures: what comparison, gates, trends, cost and exports read in [`Record::metrics`].
    fn metrics(&self, record: &Record) -> Vec<Metric>;

    /// The tables, pairs and sentences of a record, measured here or imported.
    fn sections(&self, record: &Record) -> Sections;

    /// The charts, in order. Each is drawn before the next is made: a long series is held once.
    fn charts(&self, record: &Record, draw: &mut dyn FnMut(Drawn));

    /// The answer: what was tested, the few figures, and whether they are steady.
    fn headline(&self, record: &Record) -> Headline;

    /// The record in the format of the tool that the test replaces; `None` where it replaces none.
    fn in_words_of_tool(&self, record: &Record) -> Option<String> {
        self.headline(record).in_words()
    }

    /// The same as that tool's JSON.
    fn in_json_of_tool(&self, _record: &Record) -> Option<String> {
        None
    }

    /// The record as this tool prints its results for scripts; `None` where it has none of that tool's.
    fn in_file_of_tool(&self, _record: &Record, _tool: &str) -> Option<String> {
        None
    }

    /// What can be paid for.
    fn delivered(&self, record: &Record) -> Delivered {
        Delivered::sustained(record)
    }

    /// What must be equal for two records to be of the same test, beyond what holds for any two.
    fn conditions(&self, _baseline: &Record, _candidate: &Record) -> Vec<Check> {
        Vec::new()
    }

    /// The directories of the runs that the record was made of, relative to its own, in the order they ran; none where it is
    /// of one run.
    fn members(&self, _record: &Record) -> Vec<String> {
        Vec::new()
    }

    /// What several records say taken together, beyond what each says alone; there may be some of other kinds.
    fn several(&self, _records: &[&Record]) -> Vec<Advice> {
        Vec::new()
    }

    /// Whether its part of the record is there and has its shape.
    ///
    /// # Errors
    /// When somebody edited the part into another one, or removed it.
    fn readable(&self, _record: &Record) -> Result<(), serde_json::Error> {
        Ok(())
    }
}

/// The kind of a record: of those with its name, the last that can report it.
#[must_use]
pub fn of(kinds: &[&'static dyn Kind], record: &Record) -> Option<&'static dyn Kind> {
    let can = |kind: &&&dyn Kind| kind.name() == record.kind && kind.tells(record);
    kinds.iter().rev().find(can).copied()
}

/// Gives a record its kind and its figures. Code that makes or changes a record calls it last.
pub fn attach_metrics(kind: &dyn Kind, record: &mut Record) {
    if record.kind.is_empty() {
        kind.name().clone_into(&mut record.kind);
    }
    let mut all = kind.metrics(record);
    all.extend(Fleet::metrics_of(record));
    record.metrics = ordered(all, &record.series);
}

/// If the last part of a window is below this share of the first, the rate fell in a way that a month would not average
/// out.
pub const FELL: f64 = 0.9;

/// The first things to know of a record.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Headline {
    /// What was tested, in one sentence.
    pub tested: String,
    /// What the first line says in place of the main figure; empty: the figure.
    pub verdict: String,
    /// The few figures.
    pub rows: Vec<HeadlineLine>,
    /// The verdict on steadiness, and how it was reached; a good one begins with `steady`.
    pub steadiness: String,
    /// What limited the figures.
    pub limit: Limit,
    /// Lines in the format of the tool that the test replaces, as scripts read them; few kinds have any.
    pub verbatim: Vec<String>,
    /// Commands worth trying next, each with its reason.
    pub next: Vec<Next>,
    /// The command that repeats the test; empty if the record does not contain all of it.
    pub rerun_command: String,
}

impl Headline {
    /// Its lines in the format of the tool that the test replaces.
    fn in_words(&self) -> Option<String> {
        (!self.verbatim.is_empty()).then(|| self.verbatim.join("\n") + "\n")
    }
}

/// What limited the figures, by evidence.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limit {
    /// In few words, such as `the device: reads wait for it`; empty where nothing shows a limit.
    pub what: String,
    /// The figures that show it, in sentences; or why the limit is unknown.
    pub evidence: String,
}

impl Limit {
    /// A limit with its evidence.
    #[must_use]
    pub fn new(what: impl Into<String>, evidence: impl Into<String>) -> Self {
        Self { what: what.into(), evidence: evidence.into() }
    }

    /// The limit is unknown, and why.
    #[must_use]
    pub fn unknown(why: &str) -> Self {
        Self::new("", format!("n/a ({why})"))
    }
}

/// A command worth trying next.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Next {
    /// As it is typed.
    pub command: String,
    /// What it would show.
    pub why: String,
}

impl Next {
    /// A command and what it would show.
    #[must_use]
    pub fn new(command: impl Into<String>, why: impl Into<String>) -> Self {
        Self { command: command.into(), why: why.into() }
    }

    /// Next steps after an invalid run of `assay` or of a workload (`assay orders`) on a target (` --target URL`, or
    /// nothing): check its data set, then run again. The data set of a temporary server no longer exists.
    #[must_use]
    pub fn after_invalid(command: &str, target: &str) -> Vec<Self> {
        let check = Self::new(format!("{command} check{target}"), "says whether the data set is whole");
        let again = Self::new(format!("{command} run{target}"), "once the cause is gone");
        if target.contains(" temp:") { vec![again] } else { vec![check, again] }
    }
}

/// Figures side by side. Repeats of one test have the same lines.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadlineLine {
    /// What they are; empty if they continue the previous line.
    pub title: &'static str,
    /// A lead before the first figure.
    pub lead: String,
    /// The figures.
    pub told: Vec<HeadlineFigure>,
    /// The separator between two of them.
    pub glue: &'static str,
    /// The text if none of them is known.
    pub otherwise: String,
}

impl HeadlineLine {
    /// Figures under a title, with a text for the case that none is known.
    #[must_use]
    pub fn of(title: &'static str, told: Vec<HeadlineFigure>, otherwise: &str) -> Self {
        Self { title, lead: String::new(), told, glue: ", ", otherwise: otherwise.to_owned() }
    }

    /// Figures under a title; if none is known, the reason for the first.
    #[must_use]
    pub fn told(title: &'static str, told: Vec<HeadlineFigure>) -> Self {
        let why = told.first().and_then(|told| told.value.reason());
        let otherwise = format!("n/a ({})", why.unwrap_or("absent"));
        Self::of(title, told, &otherwise)
    }
}

/// One figure of a [`HeadlineLine`].
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HeadlineFigure {
    /// The figure.
    pub value: Figure,
    /// Its unit and what it is, behind it.
    pub unit: String,
    /// The text in its place if it is unknown; empty for none.
    pub otherwise: String,
}

impl HeadlineFigure {
    /// A figure that is left out if it is unknown.
    #[must_use]
    pub fn new(value: &Figure, unit: &str) -> Self {
        Self { value: value.clone(), unit: unit.to_owned(), otherwise: String::new() }
    }
}

/// Rates of the measured window; of a probe whose level fell, those of its last level.
#[figures]
pub struct Delivered {
    /// Read requests per second.
    pub reads_per_s: Figure,
    /// Write requests per second.
    pub writes_per_s: Figure,
    /// Both; only the reads if writes are unknown.
    pub ios_per_s: Figure,
    /// Bytes both ways per second, 10^6.
    pub mb_per_s: Figure,
    /// Operations per second.
    pub ops_per_s: Figure,
    /// Transactions per second.
    pub transactions_per_s: Figure,
    /// Executions per second.
    pub executes_per_s: Figure,
    /// The window they hold for, s.
    pub window_s: Figure,
    /// Remarks on them, in sentences.
    pub notes: Vec<String>,
}

impl Delivered {
    /// Sustained rates of the measured window.
    #[must_use]
    pub fn sustained(record: &Record) -> Self {
        const MIB: f64 = 1_048_576.0;
        const MB: f64 = 1e6;
        let known = |key: &str| {
            let metric = find(&record.metrics, key);
            metric.map_or_else(Figure::default, |metric| metric.value.clone())
        };
        let some_mib = |key: &str| known(key).value().map(|mib| mib * MIB / MB);
        let mb = match (some_mib("read_io_mb_per_s"), some_mib("write_io_mb_per_s")) {
            (None, None) => known("read_io_mb_per_s"),
            (read, write) => Figure::decimal(read.unwrap_or(0.0) + write.unwrap_or(0.0)),
        };
        let mut notes = Vec::new();
        let trend = record.checks.steadiness.last_over_first_ratio.value();
        if let Some(trend) = trend.filter(|trend| *trend < FELL && *trend > 0.0) {
            notes.push(format!(
                "The rate fell over the window (the last quarter is {} % of the first): at the sustained rate a unit \
                 costs more than stated here. Run longer before you quote it.",
                fixed(100.0 * trend, 0)
            ));
        }
        Self {
            reads_per_s: known("reads_per_s"),
            writes_per_s: known("writes_per_s"),
            mb_per_s: mb,
            ops_per_s: known("ops_per_s"),
            transactions_per_s: known("transactions_per_s"),
            executes_per_s: known("executes_sql_per_s"),
            window_s: record.interval.elapsed_s.clone(),
            notes,
            ..Self::default()
        }
    }
}

/// A condition that two groups should have in common.
#[figures]
pub struct Check {
    /// What, in the operator's words.
    pub what: String,
    /// Of the baseline.
    pub baseline: String,
    /// Of the other group.
    pub candidate: String,
    /// Whether that can be tolerated.
    pub finding: Finding,
}

/// Whether two groups are alike in one respect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Finding {
    /// Alike.
    Same,
    /// Different, in a way that leaves the figures comparable.
    Tolerable,
    /// Different, in a way that forbids calling one side faster.
    Forbids,
    /// Different on purpose: what the comparison is about.
    Varied,
    /// Unknown on one side or both.
    #[default]
    Unknown,
}

/// The text for a side without the value.
pub const UNKNOWN: &str = "not known";

impl Check {
    /// Two words that should be equal; an empty one is unknown.
    #[must_use]
    pub fn text(what: &str, baseline: &str, candidate: &str, otherwise: Finding) -> Self {
        let finding = match (baseline, candidate) {
            ("", _) | (_, "") => Finding::Unknown,
            (a, b) if a == b => Finding::Same,
            _ => otherwise,
        };
        let told = |value: &str| if value.is_empty() { UNKNOWN } else { value }.to_owned();
        Self { what: what.to_owned(), baseline: told(baseline), candidate: told(candidate), finding }
    }

    /// Two numbers that should be within `same` of each other, 0..1.
    #[must_use]
    pub fn near(what: &str, a: Option<f64>, b: Option<f64>, same: f64, otherwise: Finding) -> Self {
        let told = |value: Option<f64>| value.map_or_else(|| UNKNOWN.to_owned(), six);
        let finding = match (a, b) {
            (Some(a), Some(b)) if (a - b).abs() <= same * a.abs().max(b.abs()) => Finding::Same,
            (Some(_), Some(_)) => otherwise,
            _ => Finding::Unknown,
        };
        Self { what: what.to_owned(), baseline: told(a), candidate: told(b), finding }
    }
}

impl Finding {
    /// As tables print it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Tolerable => "differs, tolerable",
            Self::Forbids => "differs, forbids \"faster\"",
            Self::Varied => "varied on purpose (--allow)",
            Self::Unknown => "not known",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(name: &str, value: &str, origin: &str) -> SettingLine {
        SettingLine::new(name, value, origin)
    }

    #[test]
    fn the_next_command_finds_the_same_place_and_keeps_what_it_must() {
        let mut record = Record { kind: "network".to_owned(), ..Record::default() };
        record.run.workload = "net".to_owned();
        record.plan.settings = vec![
            set("PEER", "db 2", "cli"),
            set("PORT", "5299", "cli"),
            set("TIME", "5s", "cli"),
            set("PATIENCE", "10s", "default"),
            set("NO_DELAY", "no-delay", "cli"),
        ];
        let repeated = "assay net 'db 2' --port 5299 --time 5s --no-delay";
        assert_eq!(rerun_command(&record), repeated);
        let same = beside(&record, "net", "db 2", &["PORT", "PATIENCE"]);
        assert_eq!(same, "assay net 'db 2' --port 5299");
        assert_eq!(beside(&record, "ping", "db2", &[]), "assay ping db2");
    }
}
