//! AWR and Statspack text, whole or the sections people paste, in the layouts of 11.2 to 21c.
//!
//! A report is cut at its headings; each section has a reader of its own, and what none reads is named in a note. A
//! table's columns are found by its ruler of dashes and told apart by their titles, never by their number, which
//! differs from version to version. Our own text report has the same sections and is read by the same readers.

mod activity;
mod derive;
mod events;
mod header;
mod histogram;
mod host;
mod io;
mod load;
mod names;
mod rows;
mod table;
mod times;

#[cfg(test)]
mod tests;

use super::draft::{Draft, Reading};
use super::text::{At, Line, Text};
use super::{Confidence, ImportError};
use std::collections::HashMap;

type Read = fn(&mut Reader<'_>, &Line, &[Line]);

/// A section and what its heading begins with.
struct Section {
    heading: &'static str,
    /// What else the heading line must hold.
    with: &'static str,
    read: Read,
}

const fn section(heading: &'static str, with: &'static str, read: Read) -> Section {
    Section {
        heading,
        with,
        read,
    }
}

/// Every section that is read; the first whose heading fits, so longer headings stand before shorter ones.
const SECTIONS: &[Section] = &[
    section("Load Profile", "Per Second", load::read),
    section("Instance Efficiency", "", times::efficiency),
    section("Top 5 Timed", "Events", events::top),
    section("Top 10 Foreground Events", "", events::top),
    section("Top 5 Foreground Events", "", events::top),
    section("Top Timed Events", "", events::top),
    section("Wait Classes by Total Wait Time", "", events::classes),
    section("Foreground Wait Class", "", events::classes),
    section("Foreground Wait Events", "", events::foreground),
    section("Background Wait Events", "", events::background),
    // The long waits of the histogram again, in shares of more bounds.
    section("Wait Event Histogram Detail", "", passed_over),
    section("Wait Event Histogram", "", histogram::shares),
    section("EVENT", "WAIT_TIME_MI", histogram::micro),
    section("Host CPU", "", host::cpu),
    section("Instance CPU", "", host::instance),
    section("Memory Statistics", "", host::memory),
    section("IO Profile", "", io::profile),
    section("Time Model System Stats", "", times::model),
    section("Time Model Statistics", "", times::model),
    section("Operating System Statistics - Detail", "", passed_over),
    section("Operating System Statistics", "", host::statistics),
    section("OS Statistics - detail", "", passed_over),
    section("OS Statistics", "", host::statistics),
    section("IOStat by Function/Filetype", "", passed_over),
    section("IOStat by Function", "", io::by_function),
    section("IOStat by Filetype", "", io::by_filetype),
    section("Function Name", "per sec", io::by_function),
    section("Filetype Name", "per sec", io::by_filetype),
    section("Instance Activity Stats - Absolute", "", activity::absolute),
    section("Instance Activity Stats - Thread", "", activity::threads),
    section("Instance Activity Stats", "", activity::read),
    section("Key Instance Activity Stats", "", activity::read),
    section("Other Instance Activity Stats", "", activity::read),
    section("init.ora Parameters", "", header::parameters),
];

/// Rows that a list of the record takes at most: reports have fewer, and looking through more for each row takes long.
pub(super) const ROWS_MAX: usize = 500;

/// The row that is wanted, made if it is not there; `None` where there are too many.
fn row_of<T>(
    rows: &mut Vec<T>,
    wanted: impl Fn(&T) -> bool,
    new: impl FnOnce() -> T,
) -> Option<usize> {
    if rows.len() >= ROWS_MAX {
        return None;
    }
    let found = rows.iter().position(wanted);
    Some(found.unwrap_or_else(|| {
        rows.push(new());
        rows.len() - 1
    }))
}

/// Sections of our own report that hold the same figures again, or none of the load.
const OWN: [&str; 6] = [
    "Test Card",
    "Integrity",
    "Warnings",
    "Advice",
    "Latency by Layer",
    "Buffer Pool and Checkpoint Activity",
];

/// A section whose figures stand elsewhere in the report.
fn passed_over(_: &mut Reader<'_>, _: &Line, _: &[Line]) {}

/// What is gathered while the sections are read.
pub(super) struct Reader<'a> {
    pub(super) draft: &'a mut Draft,
    /// The text is our own report.
    pub(super) is_assay: bool,
    /// Rows of events by actor and name.
    pub(super) event_rows: HashMap<(String, String), usize>,
    /// Elapsed time as printed.
    pub(super) elapsed: Option<Reading>,
    /// Version of the database.
    pub(super) release: String,
    /// Path of the file that is being read.
    pub(super) path: String,
}

impl Reader<'_> {
    /// Notes a line that could not be read.
    pub(super) fn unread(&mut self, line: &Line, what: &str) {
        let text = line.text.trim();
        let text: String = text.chars().take(60).collect();
        let text = format!("could not be read as {what}: {text:?}");
        self.draft.note(line.at, text);
    }

    /// Title lines a table of events may have: ours has one, with sentences above it.
    pub(super) fn titles_max(&self) -> usize {
        if self.is_assay { 1 } else { 4 }
    }
}

fn section_of(line: &str) -> Option<&'static Section> {
    let text = line.trim_start();
    // Headings stand at the left, give or take what pasting adds.
    if text.is_empty() || line.len() - text.len() > 12 {
        return None;
    }
    SECTIONS
        .iter()
        .find(|section| text.starts_with(section.heading) && text.contains(section.with))
}

/// Whether a text is an AWR report or a section of one.
pub(super) fn looks_like(text: &Text) -> Confidence {
    let whole = Confidence::of(
        90,
        &[(
            "the title WORKLOAD REPOSITORY report",
            text.head_begins("WORKLOAD REPOSITORY"),
        )],
    );
    let is_html = text.first_char() == Some('<') && text.head_has("WORKLOAD REPOSITORY");
    if is_html {
        return Confidence {
            score: 49,
            missing: "the text form (this is the HTML form; make the report with type text)",
        };
    }
    let lines = || text.head().iter();
    let has_statistics = lines()
        .filter(|line| activity::is_row(&line.text))
        .take(2)
        .count()
        == 2;
    let has_section = lines().any(|line| section_of(&line.text).is_some());
    whole
        .or(Confidence::of(
            60,
            &[("lines of instance statistics", has_statistics)],
        ))
        .or(Confidence::of(
            70,
            &[("a section heading such as Load Profile", has_section)],
        ))
}

/// Whether a text is a Statspack report.
pub(super) fn looks_like_statspack(text: &Text) -> Confidence {
    Confidence::of(
        95,
        &[(
            "the title STATSPACK report",
            text.head_begins("STATSPACK report"),
        )],
    )
}

/// Whether a text is our own report.
pub(super) fn looks_like_assay(text: &Text) -> Confidence {
    Confidence::of(
        99,
        &[(
            "the title ASSAY WORKLOAD REPORT",
            text.head_begins("ASSAY WORKLOAD REPORT"),
        )],
    )
}

/// Reads reports, or sections of one.
pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    "oracle".clone_into(&mut draft.record.run.engine);
    read_as(texts, draft, false);
    Ok(())
}

/// Reads our own report.
pub(super) fn read_assay(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    read_as(texts, draft, true);
    for line in texts.iter().flat_map(Text::head) {
        if let Some(title) = line.text.strip_prefix("ASSAY WORKLOAD REPORT for run ") {
            let engine = title.rsplit_once(" on ").map_or("", |(_, engine)| engine);
            engine.clone_into(&mut draft.record.run.engine);
        }
    }
    Ok(())
}

fn read_as(texts: &[Text], draft: &mut Draft, is_assay: bool) {
    let mut reader = Reader {
        draft,
        is_assay,
        event_rows: HashMap::new(),
        elapsed: None,
        release: String::new(),
        path: String::new(),
    };
    for text in texts {
        reader.path.clone_from(&text.path);
        sections(&mut reader, text);
    }
    derive::all(&mut reader);
    rows::complete(&mut reader.draft.record);
    let is_whole = texts.iter().any(|text| text.head_has("Snap"));
    let format = match (is_assay, is_whole) {
        (true, _) => "assay text report",
        (_, true) => "report text",
        (_, false) => "sections of a report",
    };
    let release = std::mem::take(&mut reader.release);
    reader.draft.recognised(&release, format);
}

/// Cuts a text at its headings.
fn sections(reader: &mut Reader<'_>, text: &Text) {
    let mut open: (Option<&Section>, usize) = (None, 0);
    let mut skipped = Skipped::default();
    for i in 0..=text.lines.len() {
        let heading = heading(text, i, reader.is_assay);
        if heading == Heading::None && i < text.lines.len() {
            continue;
        }
        let (section, from) = open;
        match section {
            Some(section) => (section.read)(reader, &text.lines[from], &text.lines[from + 1..i]),
            None => between(reader, &text.lines[from..i]),
        }
        open = match heading {
            Heading::Known(section) => (Some(section), i),
            Heading::Unknown(name) => {
                skipped.add(&name, i);
                (Some(&PASSED_OVER), i)
            }
            Heading::None => (None, i),
        };
    }
    skipped.say(reader, text);
}

static PASSED_OVER: Section = section("", "", passed_over);

/// Lines under no heading: the report's head, or statistics pasted without their heading.
fn between(reader: &mut Reader<'_>, lines: &[Line]) {
    header::read(reader, lines);
    let is_known = |line: &&Line| activity::is_row(&line.text);
    if lines.iter().filter(is_known).take(2).count() == 2 {
        let rows: Vec<Line> = lines
            .iter()
            .filter(|line| activity::is_like_row(&line.text))
            .cloned()
            .collect();
        activity::read(reader, &rows[0], &rows);
    }
}

/// What a line begins.
enum Heading {
    None,
    Known(&'static Section),
    Unknown(String),
}

impl PartialEq for Heading {
    fn eq(&self, other: &Self) -> bool {
        matches!((self, other), (Self::None, Self::None))
    }
}

fn heading(text: &Text, i: usize, is_assay: bool) -> Heading {
    let Some(line) = text.lines.get(i) else {
        return Heading::None;
    };
    if let Some(section) = section_of(&line.text) {
        return Heading::Known(section);
    }
    let bare = line.text.trim();
    let next = text.lines.get(i + 1).map_or("", |line| line.text.trim());
    let is_underlined = next.starts_with("~~~") && !bare.is_empty();
    if let Some((name, _)) = bare.split_once("DB/Inst:") {
        return Heading::Unknown(name.trim().to_owned());
    }
    if is_assay && OWN.iter().any(|own| bare.starts_with(own)) {
        return Heading::Known(&PASSED_OVER);
    }
    // What the head has is read with it.
    let of_head = ["Cache Sizes", "Database ", "Host Name", "Snapshot "];
    if is_underlined && !of_head.iter().any(|own| bare.starts_with(own)) {
        let name = bare.split("  ").next().unwrap_or(bare);
        return Heading::Unknown(name.to_owned());
    }
    Heading::None
}

/// Sections that nothing reads, by name with the line of the first.
#[derive(Default)]
struct Skipped {
    names: Vec<(String, usize)>,
}

impl Skipped {
    fn add(&mut self, name: &str, i: usize) {
        // `SQL ordered by ...` and `Segments by ...` are one kind each.
        let kinds = [
            "SQL ordered by",
            "Segments by",
            "Tablespace",
            "File IO",
            "Latch",
            "Buffer",
        ];
        let name = kinds
            .iter()
            .find(|kind| name.starts_with(*kind))
            .map_or(name, |kind| *kind);
        if !name.is_empty() && !self.names.iter().any(|(known, _)| known == name) {
            self.names.push((name.to_owned(), i + 1));
        }
    }

    fn say(&self, reader: &mut Reader<'_>, text: &Text) {
        if self.names.is_empty() || reader.is_assay {
            return;
        }
        let names: Vec<String> = self
            .names
            .iter()
            .map(|(name, line)| format!("{name} (line {line})"))
            .collect();
        let at = At {
            file: text.file,
            line: 0,
        };
        reader.draft.note(
            at,
            format!("sections that are not read: {}", names.join(", ")),
        );
    }
}
