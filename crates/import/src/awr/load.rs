//! Load profile.

use super::Reader;
use super::table::Ruler;
use crate::draft::Reading;
use crate::number::{self, Printed};
use crate::text::Line;
use assay_measure::plain::slug;
use assay_measure::record::{Figure, LoadRow};

/// Our label, its unit, and the labels that mean it in the layouts of 10.2 to 21c and of Statspack.
pub(super) const LABELS: [(&str, &str, &[&str]); 22] = [
    ("DB Time(s)", "s", &["DB time(s)"]),
    ("DB CPU(s)", "s", &[]),
    ("Background CPU(s)", "s", &["Background CPU(s)"]),
    ("Redo size (bytes)", "bytes", &["Redo size"]),
    ("Logical read (blocks)", "blocks", &["Logical reads"]),
    ("Block changes", "count", &[]),
    ("Physical read (blocks)", "blocks", &["Physical reads"]),
    ("Physical write (blocks)", "blocks", &["Physical writes"]),
    ("Read IO requests", "count", &[]),
    ("Write IO requests", "count", &[]),
    ("Read IO (MB)", "mib", &[]),
    ("Write IO (MB)", "mib", &[]),
    ("User calls", "count", &[]),
    ("Parses (SQL)", "count", &["Parses"]),
    ("Hard parses (SQL)", "count", &["Hard parses"]),
    ("SQL Work Area (MB)", "mib", &["W/A MB processed"]),
    ("Logons", "count", &["User logons"]),
    ("Executes (SQL)", "count", &["Executes"]),
    ("Operations", "count", &[]),
    ("Sorts", "count", &[]),
    ("Rollbacks", "count", &[]),
    ("Transactions", "count", &[]),
];

/// Our label and unit of a label as printed; of one we do not know, the label itself.
fn label(printed: &str) -> (&str, &'static str) {
    let is = |name: &str| name.eq_ignore_ascii_case(printed);
    let known = LABELS
        .iter()
        .find(|(name, _, aliases)| is(name) || aliases.iter().any(|alias| is(alias)));
    known.map_or((printed, "count"), |(name, unit, _)| (*name, *unit))
}

/// The columns behind the label, in order.
#[derive(Clone, Copy, PartialEq)]
enum Per {
    Second,
    Transaction,
    Exec,
    Call,
    Op,
    Other,
}

const ORDER: [Per; 5] = [Per::Second, Per::Transaction, Per::Exec, Per::Call, Per::Op];

fn per(title: &str) -> Per {
    for (word, per) in [
        ("sec", Per::Second),
        ("trans", Per::Transaction),
        ("exec", Per::Exec),
        ("call", Per::Call),
        ("op", Per::Op),
    ] {
        if title.contains(word) {
            return per;
        }
    }
    Per::Other
}

/// Reads the lines below the heading `Load Profile ... Per Second ...`.
pub(super) fn read(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    let ruler = lines
        .iter()
        .take(3)
        .find(|line| line.text.contains("---"))
        .map(|line| Ruler::new(&line.text.replace('~', "-"), &[&heading.text]));
    for line in lines {
        let Some((name, rest)) = line.text.split_once(':') else {
            continue;
        };
        let offset = name.len() + 1;
        let name = name.trim();
        // Shares that Statspack prints below the rates, two on a line.
        let is_share = name.contains('%') || rest.contains(':');
        if name.is_empty() || rest.trim().is_empty() || is_share {
            continue;
        }
        let cells = cells(ruler.as_ref(), line, offset, rest);
        if cells.is_empty() {
            reader.unread(line, "a row of the load profile");
            continue;
        }
        let (name, unit) = label(name);
        for (per, printed) in cells {
            rate(reader, line, (name, unit), per, printed);
        }
    }
}

/// The numbers of a row by column: by where they stand under the heading, else in order.
fn cells(ruler: Option<&Ruler>, line: &Line, offset: usize, rest: &str) -> Vec<(Per, Printed)> {
    let words: Vec<&str> = rest.split_whitespace().collect();
    let numbers: Vec<Printed> = words
        .iter()
        .filter_map(|word| number::measure(word))
        .collect();
    if numbers.len() != words.len() {
        return Vec::new();
    }
    let under = ruler.and_then(|ruler| {
        // The label's column, whose underline may be shorter than the labels, takes no number.
        let blanked = Line {
            text: format!("{}{rest}", " ".repeat(offset)),
            ..line.clone()
        };
        let row = ruler.row(&blanked, 1).filter(|row| !row.is_guess)?;
        let mut found = Vec::new();
        for (column, cell) in ruler.columns.iter().zip(&row.cells) {
            if !cell.is_empty() {
                found.push((per(&column.title), number::measure(cell)?));
            }
        }
        let is_known = found.iter().all(|(per, _)| *per != Per::Other);
        (is_known && found.len() == numbers.len()).then_some(found)
    });
    under.unwrap_or_else(|| ORDER.into_iter().zip(numbers).collect())
}

fn rate(
    reader: &mut Reader<'_>,
    line: &Line,
    (name, unit): (&str, &str),
    per: Per,
    printed: Printed,
) {
    if reader.draft.record.instance.load_profile.len() >= super::ROWS_MAX {
        return;
    }
    let i = row(reader, name, unit);
    let column = match per {
        Per::Second => "per_s",
        Per::Transaction => "per_tx",
        Per::Exec => "per_exec",
        Per::Call => "per_call",
        Per::Op => "per_op",
        Per::Other => return,
    };
    let key = format!("{}_{column}", stem(name, unit));
    let reading = Reading::new(line.at, key, printed).name(name);
    let draft = &mut *reader.draft;
    match per {
        Per::Second => put!(draft, reading, instance.load_profile[i].per_s),
        Per::Transaction => put!(draft, reading, instance.load_profile[i].per_tx),
        Per::Exec => put!(draft, reading, instance.load_profile[i].per_exec),
        Per::Call => put!(draft, reading, instance.load_profile[i].per_call),
        Per::Op => put!(draft, reading, instance.load_profile[i].per_op),
        Per::Other => {}
    }
}

/// What the keys of a row begin with: its label, and its unit where that does not say it.
pub(super) fn stem(name: &str, unit: &str) -> String {
    let stem = slug(name);
    match stem.ends_with(unit) || unit == "count" {
        true => stem,
        false => format!("{stem}_{unit}"),
    }
}

/// Index of a row, made if there is none.
fn row(reader: &mut Reader<'_>, name: &str, unit: &str) -> usize {
    let rows = &mut reader.draft.record.instance.load_profile;
    if let Some(i) = rows.iter().position(|row| row.name == name) {
        return i;
    }
    let absent = Figure::default;
    rows.push(LoadRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        total: absent(),
        per_s: absent(),
        per_tx: absent(),
        per_exec: absent(),
        per_call: absent(),
        per_op: absent(),
        source: "sysstat".to_owned(),
    });
    rows.len() - 1
}
