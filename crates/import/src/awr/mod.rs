//! AWR as text and HTML, Statspack, whole or the sections people paste, in the layouts of 10.2 to 23ai.
//!
//! A report is cut at its headings; each section has its own reader, and a note names the sections that none reads. The
//! ruler of dashes, or the cells of HTML, give a table's columns; the readers identify them by title, never by
//! position, which differs between versions: one reader per section serves both forms. Our own text report has the same
//! sections and is read by the same readers.

mod activity;
mod cells;
mod derive;
mod events;
mod global;
mod header;
mod histogram;
mod host;
mod html;
mod io;
mod load;
mod names;
mod part;
mod rows;
mod table;
mod times;

#[cfg(test)]
mod tests;

use super::draft::{Draft, Reading};
use super::text::{At, Line, Text};
use super::{Confidence, ImportError};
use part::Part;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};

type Read = fn(&mut Reader<'_>, &Part<'_>);

/// A section: what its heading begins with, and what the summary of its table begins with in HTML.
struct Section {
    heading: &'static str,
    /// What else the heading line must contain.
    with: &'static str,
    /// Without the words that all begin with; empty if the heading alone identifies it.
    summary: &'static str,
    read: Read,
}

impl Section {
    /// Its title as a line that stands at its first.
    fn title(&self, first: &Line) -> Line {
        Line { at: first.at, text: self.heading.to_owned(), is_cut: false }
    }
}

const fn section(heading: &'static str, with: &'static str, summary: &'static str, read: Read) -> Section {
    Section { heading, with, summary, read }
}

/// Every section that is read; the first whose heading fits, so longer headings stand before shorter ones.
const SECTIONS: &[Section] = &[
    section("Load Profile", "", "load profile", load::read),
    section("Instance Efficiency", "", "instance efficiency", times::efficiency),
    section("Top 5 Timed Events", "", "", events::both),
    section("Top 5 Timed", "Events", "top 5 wait events", events::top),
    section("Top 10 Foreground Events", "", "top 10 wait events", events::top),
    section("Top 10 Timed Events", "", "", events::both),
    section("Top 5 Foreground Events", "", "", events::top),
    section("Top Timed Events", "", "", events::both),
    section("Wait Classes by Total Wait Time", "", "wait class statistics ordered", events::classes_of_both),
    section("Foreground Wait Class", "", "foreground wait class statistics", events::classes),
    section("Foreground Wait Events", "", "foreground wait events", events::foreground),
    section("Background Wait Events", "", "background wait events", events::background),
    section("Wait Events", "DB/Inst", "", events::both),
    section("Wait Event Histogram", "", "total number of waits, and", histogram::shares),
    section("EVENT", "WAIT_TIME_MI", "", histogram::micro),
    section("Host CPU", "", "system load statistics", host::cpu),
    section("Instance CPU", "", "cpu usage and wait", host::instance),
    section("Memory Statistics", "", "memory statistics", host::memory),
    section("IO Profile", "", "io profile", io::profile),
    section("Time Model System Stats", "", "different time model", times::model),
    section("Time Model Statistics", "", "", times::model),
    section("Operating System Statistics - Detail", "", "some detailed operating", passed_over),
    section("Operating System Statistics", "", "operating systems statistics", host::statistics),
    section("OS Statistics - detail", "", "", passed_over),
    section("OS Statistics", "", "", host::statistics),
    section("IOStat by Function/Filetype", "", "", passed_over),
    section("IO Stat by Function - detail", "", "", passed_over),
    section("IOStat by Function", "", "the io statistics for different functions", io::by_function),
    section("IO Stat by Function", "", "", io::by_function),
    section("IOStat by Filetype", "", "io statistics for different file types", io::by_filetype),
    section("Function Name", "per sec", "", io::by_function),
    section("Filetype Name", "per sec", "", io::by_filetype),
    section("Instance Activity Stats", "", "instance activity statistics", activity::read),
    section("Key Instance Activity Stats", "", "key instance activity", activity::read),
    section("Other Instance Activity Stats", "", "non-key instance activity", activity::read),
    section("Instance Activity Stats -", "", "absolute values of instance", activity::read),
    section("Instance Activity Stats -", "", "thread activity stats", activity::read),
    section("init.ora Multi", "", "name and value of multi-valued", passed_over),
    section("init.ora Parameters", "", "name and value of init.ora", header::parameters),
    section("Modified Multi-Valued Parameters", "", "", passed_over),
    section("Modified Parameters", "", "name and value of the modified", header::parameters),
    section("Parameters modified by this container", "", "name and value of the initialization", header::of_container),
    section("Parameters modified by other containers", "", "name and value of database parameters", header::parameters),
];

/// Rows that a list of the record takes at most: reports have fewer, and looking through more for each row takes long.
pub(super) const ROWS_MAX: usize = 500;

/// The row that is wanted, made if it is not there; `None` where there are too many.
fn row_of<T>(rows: &mut Vec<T>, wanted: impl Fn(&T) -> bool, new: impl FnOnce() -> T) -> Option<usize> {
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
const OWN: [&str; 6] =
    ["Test Card", "Integrity", "Warnings", "Advice", "Latency by Layer", "Buffer Pool and Checkpoint Activity"];

/// A section whose figures stand elsewhere in the report.
fn passed_over(_: &mut Reader<'_>, _: &Part<'_>) {}

/// What is gathered while the sections are read.
pub(super) struct Reader<'a> {
    pub(super) draft: &'a mut Draft,
    /// The text is our own report.
    pub(super) is_assay: bool,
    /// The text is HTML, whose names are not cut.
    pub(super) is_html: bool,
    /// The report is of all instances of a cluster.
    is_global: bool,
    /// Background waits stand in a table of their own.
    pub(super) has_background: bool,
    /// Events of foreground and background together, until all tables are read.
    both: Vec<events::Both>,
    both_classes: Vec<events::Both>,
    /// Hosts of a cluster's instances.
    hosts: Vec<String>,
    /// Statistics, until all names are known.
    statistics: Vec<activity::Row>,
    /// Shares of the histograms by row of the events.
    shares: BTreeMap<usize, histogram::Shares>,
    /// Rows of events by actor and name.
    pub(super) event_rows: BTreeMap<(String, String), usize>,
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

    /// Whether a table's columns can be told apart by their titles: each meaning once at most. Notes what is not known.
    pub(super) fn are_known<M: PartialEq>(
        &mut self,
        at: At,
        titles: &[String],
        meanings: &[Option<M>],
        what: &str,
    ) -> bool {
        let known = || meanings.iter().enumerate().filter(|(_, m)| m.is_some());
        let twice = known().find(|(i, m)| meanings[..*i].contains(m));
        if let Some((i, _)) = twice {
            let text = format!(
                "{what}: several columns are titled {:?}, so this is a table of several runs: not read; give each run \
                 its own table",
                titles[i]
            );
            self.draft.note(at, text);
            return false;
        }
        let strange: Vec<&str> = titles
            .iter()
            .zip(meanings)
            .skip(1)
            .filter(|(title, m)| m.is_none() && !title.is_empty() && *title != "source")
            .map(|(title, _)| title.as_str())
            .collect();
        if known().next().is_none() {
            if !strange.is_empty() {
                let text = format!("{what}: none of the titles {strange:?} is known: not read");
                self.draft.note(at, text);
            }
            return false;
        }
        if !strange.is_empty() && !self.is_global {
            let text = format!("{what}: the columns titled {strange:?} are not known: n/a");
            self.draft.note(at, text);
        }
        true
    }

    /// Title lines a table of events may have: ours has one, with sentences above it.
    pub(super) fn titles_max(&self) -> usize {
        if self.is_assay { 1 } else { 4 }
    }
}

fn section_of(line: &str, sections: &'static [Section]) -> Option<&'static Section> {
    let text = line.trim_start();
    // Headings stand at the left, give or take what pasting adds.
    if text.is_empty() || line.len() - text.len() > 12 {
        return None;
    }
    let fits = |section: &&Section| text.starts_with(section.heading) && text.contains(section.with);
    sections.iter().find(fits)
}

/// The section of a table by its summary.
fn summarised(summary: &str, sections: &'static [Section]) -> Option<&'static Section> {
    let summary = summary.strip_prefix("this table displays ")?;
    let fits = |section: &&Section| !section.summary.is_empty() && summary.starts_with(section.summary);
    sections.iter().find(fits)
}

/// What each begins with that is a report of Oracle's and not of one run, its name, and the way out.
const NOT_A_RUN: [(&str, &str, &str); 6] = [
    (
        "WORKLOAD REPOSITORY COMPARE PERIOD",
        "an AWR report that compares two periods (awrddrpt)",
        "make a report of each period (awrrpt) and import both, then compare the records",
    ),
    (
        "WORKLOAD REPOSITORY GLOBAL COMPARE PERIOD",
        "an AWR report that compares two periods (awrgdrpt)",
        "make a report of each period (awrgrpt) and import both, then compare the records",
    ),
    (
        "WORKLOAD REPOSITORY SQL",
        "an AWR report on one statement (awrsqrpt)",
        "make the report on the instance (awrrpt)",
    ),
    (
        "ASH REPORT FOR",
        "a report of the active session history (ashrpt), which counts samples, not waits",
        "make the report on the instance (awrrpt)",
    ),
    ("ADDM REPORT FOR", "the findings of ADDM", "make the report on the instance (awrrpt)"),
    ("ACTIVITY DURING THE ANALYSIS PERIOD", "the findings of ADDM", "make the report on the instance (awrrpt)"),
];

/// Lines of HTML within which a page says what it is.
const TITLE_LINES: usize = 200;

/// What a text is that is no report of one run, with its line.
fn not_a_run(text: &Text) -> Option<(u64, &'static str, &'static str)> {
    let is_page = html::is_html(text);
    let lines = if is_page { &text.lines[..text.lines.len().min(TITLE_LINES)] } else { text.head() };
    for line in lines {
        let upper = line.text.trim_start().to_ascii_uppercase();
        let says = |begin: &str| if is_page { upper.contains(begin) } else { upper.starts_with(begin) };
        // A report on an instance may have others appended.
        if says("WORKLOAD REPOSITORY REPORT") || says("WORKLOAD REPOSITORY PDB REPORT") {
            return None;
        }
        if let Some((_, what, way_out)) = NOT_A_RUN.iter().find(|(begin, ..)| says(begin)) {
            return Some((line.at.line, what, way_out));
        }
    }
    None
}

/// Whether a text is an AWR report or a section of one.
pub(super) fn looks_like(text: &Text) -> Confidence {
    if html::is_html(text) {
        let is_awr = ["WORKLOAD REPOSITORY", "AWR Report for DB", "AWR RAC Report"];
        let is_named = is_awr.iter().any(|part| text.head_has(part));
        let has_table = || text.head_has("summary=\"This table displays ");
        return Confidence::of(
            90,
            &[("the title WORKLOAD REPOSITORY report", is_named || has_table() || not_a_run(text).is_some())],
        );
    }
    let whole = Confidence::of(
        90,
        &[(
            "the title WORKLOAD REPOSITORY report",
            text.head().iter().any(|line| cells::bare(&line.text).starts_with("WORKLOAD REPOSITORY"))
                || not_a_run(text).is_some(),
        )],
    );
    let lines = || text.head().iter();
    let has_statistics = lines().filter(|line| activity::is_row(&line.text)).take(2).count() == 2;
    let has_section = lines().any(|line| section_of(&line.text, SECTIONS).is_some());
    let has_excerpt = || (0..text.head().len()).any(|i| untitled(text.head(), i).is_some());
    whole
        .or(Confidence::of(55, &[("a table of wait events or rows of a load profile", has_excerpt())]))
        .or(Confidence::of(60, &[("lines of instance statistics", has_statistics)]))
        .or(Confidence::of(70, &[("a section heading such as Load Profile", has_section)]))
}

/// Whether a text is a Statspack report.
pub(super) fn looks_like_statspack(text: &Text) -> Confidence {
    Confidence::of(95, &[("the title STATSPACK report", text.head_begins("STATSPACK report"))])
}

/// Whether a text is our own report.
pub(super) fn looks_like_assay(text: &Text) -> Confidence {
    Confidence::of(99, &[("the title ASSAY WORKLOAD REPORT", text.head_begins("ASSAY WORKLOAD REPORT"))])
}

/// Reads reports, or sections of one.
pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    for text in texts {
        if let Some((line, what, way_out)) = not_a_run(text) {
            return Err(ImportError::NotARun { path: text.path.clone(), line, what, way_out });
        }
    }
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
        is_html: false,
        is_global: false,
        has_background: false,
        both: Vec::new(),
        both_classes: Vec::new(),
        hosts: Vec::new(),
        statistics: Vec::new(),
        shares: BTreeMap::new(),
        event_rows: BTreeMap::new(),
        elapsed: None,
        release: String::new(),
        path: String::new(),
    };
    let mut form = "report HTML";
    for text in texts {
        reader.path.clone_from(&text.path);
        let separator = cells::separator(text);
        reader.is_html = html::is_html(text) || separator.is_some();
        reader.is_global = is_global(text);
        match separator.filter(|_| !html::is_html(text)) {
            Some(separator) => {
                reader.draft.own_tabs(text.file);
                let known = reader.sections();
                let blocks = cells::blocks(text, separator, |line| section_of(line, known).is_some());
                page(&mut reader, text, blocks);
                form = if separator == cells::Separator::Tab {
                    "report copied from a browser"
                } else {
                    "report as Markdown"
                };
            }
            None if reader.is_html => page(&mut reader, text, html::blocks(text)),
            None => sections(&mut reader, text),
        }
    }
    activity::finish(&mut reader);
    events::finish(&mut reader);
    histogram::finish(&mut reader);
    derive::all(&mut reader);
    rows::complete(&mut reader.draft.record);
    let is_whole = texts.iter().any(|text| text.head_has("Snap"));
    let format = match (is_assay, reader.is_html, is_whole) {
        (true, ..) => "assay text report",
        (_, true, _) => form,
        (.., true) => "report text",
        (.., false) => "sections of a report",
    };
    let release = std::mem::take(&mut reader.release);
    reader.draft.recognised(&release, format);
}

/// Whether a report is of all instances of a cluster (awrgrpt).
fn is_global(text: &Text) -> bool {
    let is_title = |line: &Line| {
        let text = line.text.as_str();
        text.contains("WORKLOAD REPOSITORY REPORT (RAC)") || text.contains("AWR RAC Report for DB")
    };
    text.head().iter().any(is_title)
}

impl Reader<'_> {
    fn sections(&self) -> &'static [Section] {
        if self.is_global { global::SECTIONS } else { SECTIONS }
    }
}

/// Reads the tables of HTML, each by its summary or what stands above it.
fn page(reader: &mut Reader<'_>, text: &Text, blocks: Vec<html::Block>) {
    let mut name: Option<Line> = None;
    let mut remarks: Vec<Line> = Vec::new();
    let mut skipped = Skipped::default();
    for block in blocks {
        let grid = match block {
            html::Block::Name(line) if line.text.starts_with("Back to") => continue,
            html::Block::Name(line) => {
                remarks.clear();
                name = Some(line);
                continue;
            }
            html::Block::Item(line) => {
                remarks.push(line);
                continue;
            }
            html::Block::Grid(grid) => grid,
        };
        let heading = Line {
            at: grid.at(text.file),
            text: name.as_ref().map_or_else(String::new, |n| n.text.clone()),
            is_cut: false,
        };
        let part = Part::of_html(&heading, &remarks, &grid);
        let section =
            summarised(&grid.summary, reader.sections()).or_else(|| section_of(&heading.text, reader.sections()));
        match (section, part.grid()) {
            (_, Some(table)) if !reader.is_global && header::is_of_head(table) => {
                header::table(reader, table);
            }
            (Some(section), _) => (section.read)(reader, &part),
            (None, _) => skipped.add(&heading.text, heading.at.line as usize),
        }
    }
    skipped.say(reader, text);
}

/// Cuts a text at its headings.
fn sections(reader: &mut Reader<'_>, text: &Text) {
    let lines = without_pages(&text.lines);
    let mut open: (Option<&Section>, usize, bool) = (None, 0, false);
    let mut skipped = Skipped::default();
    for i in 0..=lines.len() {
        let mut heading = heading(&lines, i, reader);
        let is_free = (open.0.is_none() || open.2) && !reader.is_assay && !reader.is_global;
        let excerpt = untitled(&lines, i).filter(|_| heading == Heading::None && is_free);
        let is_excerpt = excerpt.is_some();
        if let Some(section) = excerpt {
            heading = Heading::Known(section);
        }
        if heading == Heading::None && i < lines.len() {
            continue;
        }
        let (section, from, has_no_title) = open;
        match section {
            Some(section) if has_no_title => {
                (section.read)(reader, &Part::of_text(&section.title(&lines[from]), &lines[from..i]))
            }
            Some(section) => (section.read)(reader, &Part::of_text(&lines[from], &lines[from + 1..i])),
            None => between(reader, &lines[from..i]),
        }
        open = match heading {
            Heading::Known(section) => (Some(section), i, is_excerpt),
            Heading::Unknown(name) => {
                skipped.add(&name, lines[i].at.line as usize);
                (Some(&PASSED_OVER), i, false)
            }
            Heading::None => (None, i, false),
        };
    }
    skipped.say(reader, text);
}

/// Sections that people paste without the line that names them; the heading says what their columns are where they have no titles.
static TOP_EVENTS: Section = section("", "", "", events::top);
static TITLED_PROFILE: Section = section("Load Profile", "", "", load::read);
static LOAD_PROFILE: Section =
    section("Load Profile  Per Second  Per Transaction  Per Exec  Per Call", "", "", load::read);

/// The section that begins with a line without its title: the titles of a table of events, back to a blank line, or two rows
/// of a load profile.
fn untitled(lines: &[Line], i: usize) -> Option<&'static Section> {
    /// Title lines of such a table at most.
    const TITLES: usize = 3;
    let line = lines.get(i).filter(|line| !line.text.trim().is_empty())?;
    if i > 0 && !lines[i - 1].text.trim().is_empty() {
        return None;
    }
    let ruler = lines.iter().skip(i + 1).take(TITLES).position(|line| table::is_ruler(&line.text));
    if let Some(below) = ruler {
        let titles = lines[i + below].text.trim();
        if lines[i..=i + below].iter().any(|line| line.text.contains("Per Second")) {
            return Some(&TITLED_PROFILE);
        }
        return (titles.starts_with("Event ") && titles.contains("Waits")).then_some(&TOP_EVENTS);
    }
    let is_row = |line: &Line| load::is_row(&line.text);
    (is_row(line) && lines.get(i + 1).is_some_and(is_row)).then_some(&LOAD_PROFILE)
}

/// The lines without the headings that SQL*Plus prints above each page: where a report was selected from a function,
/// a blank line, the column's name and a line of dashes every few rows, in the middle of any table.
fn without_pages(lines: &[Line]) -> Cow<'_, [Line]> {
    let is_name = |line: &Line| line.text.trim() == "OUTPUT";
    if lines.iter().filter(|line| is_name(line)).count() < 2 {
        return Cow::Borrowed(lines);
    }
    let mut kept: Vec<Line> = Vec::with_capacity(lines.len());
    let mut was_name = false;
    for line in lines {
        let is_rule = line.text.len() >= 20 && line.text.bytes().all(|b| b == b'-');
        if was_name && is_rule {
            was_name = false;
            continue;
        }
        was_name = is_name(line);
        match was_name {
            true if kept.last().is_some_and(|line| line.text.is_empty()) => drop(kept.pop()),
            true => {}
            false => kept.push(line.clone()),
        }
    }
    Cow::Owned(kept)
}

static PASSED_OVER: Section = section("", "", "", passed_over);

/// Lines under no heading: the report's head, or statistics pasted without their heading.
fn between(reader: &mut Reader<'_>, lines: &[Line]) {
    header::read(reader, lines);
    let is_known = |line: &&Line| activity::is_row(&line.text);
    if lines.iter().filter(is_known).take(2).count() == 2 {
        activity::loose(reader, lines);
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

fn heading(lines: &[Line], i: usize, reader: &Reader<'_>) -> Heading {
    let Some(line) = lines.get(i) else {
        return Heading::None;
    };
    if let Some(section) = section_of(&line.text, reader.sections()) {
        // `Reads:` and `Writes:` stand above the titles of an IOStat table, and belong to them.
        let is_below = |section: &Section| section.with == "per sec" && i > 0 && lines[i - 1].text.contains("Reads:");
        return if is_below(section) { Heading::None } else { Heading::Known(section) };
    }
    if line.text.contains("Reads:")
        && let Some(below) = lines.get(i + 1)
        && let Some(section) = section_of(&below.text, reader.sections())
        && section.with == "per sec"
    {
        return Heading::Known(section);
    }
    let bare = line.text.trim();
    let next = lines.get(i + 1).map_or("", |line| line.text.trim());
    // Statspack draws the first column of some rulers so.
    let is_underlined = next.starts_with("~~~") && !next.contains("---") && !bare.is_empty();
    if let Some((name, _)) = bare.split_once("DB/Inst:") {
        return Heading::Unknown(name.trim().to_owned());
    }
    if reader.is_assay && OWN.iter().any(|own| bare.starts_with(own)) {
        return Heading::Known(&PASSED_OVER);
    }
    // What the head has is read with it.
    let of_head = ["Cache Sizes", "Database ", "Host ", "Snapshot "];
    if is_underlined && !of_head.iter().any(|own| bare.starts_with(own)) {
        let name = bare.split("  ").next().unwrap_or(bare);
        return Heading::Unknown(name.to_owned());
    }
    Heading::None
}

/// Sections that a note names at most.
const SKIPPED_MAX: usize = 60;

/// Sections that nothing reads, by name with the line of the first.
#[derive(Default)]
struct Skipped {
    names: Vec<(String, usize)>,
    known: HashSet<String>,
}

impl Skipped {
    fn add(&mut self, name: &str, i: usize) {
        // `SQL ordered by ...` and `Segments by ...` are one kind each.
        let kinds = ["SQL ordered by", "Segments by", "Tablespace", "File IO", "Latch", "Buffer"];
        let name = kinds.iter().find(|kind| name.starts_with(*kind)).map_or(name, |kind| *kind);
        if !name.is_empty() && self.known.insert(name.to_owned()) {
            self.names.push((name.to_owned(), i));
        }
    }

    fn say(&self, reader: &mut Reader<'_>, text: &Text) {
        if self.names.is_empty() || reader.is_assay {
            return;
        }
        let names: Vec<String> =
            self.names.iter().take(SKIPPED_MAX).map(|(name, line)| format!("{name} (line {line})")).collect();
        let at = At { file: text.file, line: 0 };
        let more = match self.names.len().saturating_sub(SKIPPED_MAX) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        reader.draft.note(at, format!("sections that are not read: {}{more}", names.join(", ")));
    }
}
