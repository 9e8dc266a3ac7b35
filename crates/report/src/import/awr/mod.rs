//! AWR and Statspack text, whole or the sections people paste, in the layouts of 11.2 to 21c.

mod activity;
mod load;
mod table;

use super::draft::Draft;
use super::text::{Line, Text};
use super::{Confidence, ImportError};

/// A section and what its heading begins with.
struct Section {
    heading: &'static str,
    /// What else the heading line must hold.
    with: &'static str,
    read: fn(&mut Reader<'_>, &Line, &[Line]),
}

/// Every section that is read; the first whose heading fits.
const SECTIONS: &[Section] = &[
    Section {
        heading: "Load Profile",
        with: "Per Second",
        read: load::read,
    },
    Section {
        heading: "Instance Activity Stats",
        with: "",
        read: activity::read,
    },
];

/// What is gathered while the sections are read.
pub(super) struct Reader<'a> {
    pub(super) draft: &'a mut Draft,
}

impl Reader<'_> {
    /// Notes a line that could not be read.
    pub(super) fn unread(&mut self, line: &Line, what: &str) {
        let text = format!("could not be read as {what}: {:?}", line.text.trim());
        self.draft.note(line.at, text);
    }
}

fn section_of(line: &str) -> Option<&'static Section> {
    let text = line.trim_start();
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
    let has_section = text
        .head()
        .iter()
        .any(|line| section_of(&line.text).is_some());
    let statistics = text
        .head()
        .iter()
        .filter(|line| activity::is_row(&line.text));
    let has_statistics = statistics.take(2).count() == 2;
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

/// Reads reports, or sections of one.
pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    "oracle".clone_into(&mut draft.record.run.engine);
    let mut reader = Reader { draft };
    for text in texts {
        sections(&mut reader, text);
    }
    Ok(())
}

fn sections(reader: &mut Reader<'_>, text: &Text) {
    let mut open: Option<(&Section, usize)> = None;
    for i in 0..=text.lines.len() {
        let next = text.lines.get(i).and_then(|line| section_of(&line.text));
        if next.is_none() && i < text.lines.len() {
            continue;
        }
        if open.is_none() {
            // Pasted without its heading.
            let rows = text.lines[..i]
                .iter()
                .filter(|line| activity::is_row(&line.text));
            let rows: Vec<Line> = rows.cloned().collect();
            if let Some(first) = rows.first() {
                activity::read(reader, first, &rows);
            }
        }
        if let Some((section, from)) = open.take() {
            (section.read)(reader, &text.lines[from], &text.lines[from + 1..i]);
        }
        open = next.map(|section| (section, i));
    }
}
