//! Load profile.

use super::Reader;
use super::part::Part;
use super::table::Row;
use crate::draft::Reading;
use crate::number::Printed;
use crate::text::Line;
use assay_measure::plain::slug;
use assay_measure::record::{Figure, LoadRow};

/// Our label, its unit, and the labels that mean it in the layouts of 10.2 to 21c and of Statspack.
pub(super) const LABELS: [(&str, &str, &[&str]); 23] = [
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
    ("Logons", "count", &[]),
    ("User logons", "count", &[]),
    ("Executes (SQL)", "count", &["Executes"]),
    ("Operations", "count", &[]),
    ("Sorts", "count", &[]),
    ("Rollbacks", "count", &[]),
    ("Transactions", "count", &[]),
];

/// Our label and unit of a label as printed; of one we do not know, the label itself.
fn label(printed: &str) -> (&str, &'static str) {
    let is = |name: &str| name.eq_ignore_ascii_case(printed);
    let known = LABELS.iter().find(|(name, _, aliases)| is(name) || aliases.iter().any(|alias| is(alias)));
    known.map_or((printed, "count"), |(name, unit, _)| (*name, *unit))
}

/// Whether a line is a row of a load profile that is known.
pub(super) fn is_row(line: &str) -> bool {
    let Some((name, rest)) = line.split_once(':') else {
        return false;
    };
    let name = name.trim();
    let is = |known: &str| known.eq_ignore_ascii_case(name);
    let is_known = LABELS.iter().any(|(label, _, aliases)| is(label) || aliases.iter().any(|alias| is(alias)));
    is_known && rest.split_whitespace().next().is_some_and(|word| crate::number::measure(word).is_some())
}

/// What a column holds.
#[derive(Clone, Copy, PartialEq)]
enum Per {
    Second,
    Transaction,
    Exec,
    Call,
    Op,
}

fn per(title: &str) -> Option<Per> {
    let is = |words: &[&str]| words.iter().any(|word| title.contains(word));
    // Differences and deviations of a comparison are none of these.
    if is(&["%", "diff", "1st", "2nd", "std"]) {
        return None;
    }
    for (words, per) in [
        (["per second", "/s", "per sec"], Per::Second),
        (["per transaction", "per trans", "per tx"], Per::Transaction),
        (["per exec", "/exec", "per execution"], Per::Exec),
        (["per call", "/call", "per user call"], Per::Call),
        (["per op", "/op", "per operation"], Per::Op),
    ] {
        if is(&words) {
            return Some(per);
        }
    }
    None
}

/// Reads `Load Profile`.
pub(super) fn read(reader: &mut Reader<'_>, part: &Part<'_>) {
    let (titles, rows) = part.titled();
    let meanings: Vec<Option<Per>> = titles.iter().map(|title| per(title)).collect();
    if !reader.are_known(part.heading.at, &titles, &meanings, "the load profile") {
        return;
    }
    for labelled in part.labelled().into_iter().filter(|labelled| labelled.label.contains('%')) {
        if let [printed] = labelled.numbers.as_slice() {
            let key = format!("{}_pct", slug(&labelled.label));
            let reading = Reading::new(labelled.at, key, printed.clone()).name(&labelled.label);
            reader.draft.alone(reading.again());
        }
    }
    for row in rows {
        // Shares that Statspack prints below the rates.
        if row.label.contains('%') {
            continue;
        }
        if row.numbers.is_empty() {
            let has_digit = row.line.text.bytes().any(|byte| byte.is_ascii_digit());
            if part.grid().is_none() || has_digit {
                reader.unread(&row.line, "a row of the load profile");
            }
            continue;
        }
        let (name, unit) = label(&row.label);
        for (i, printed) in row.numbers {
            if let Some(per) = meanings.get(i).copied().flatten() {
                rate(reader, &row.line, (name, unit), per, printed);
            }
        }
    }
}

/// A rate of a row of the load profile.
fn rate(reader: &mut Reader<'_>, line: &Line, (name, unit): (&str, &str), per: Per, printed: Printed) {
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
    }
}

/// What the keys of a row begin with: its label, and its unit where that does not say it.
pub(super) fn stem(name: &str, unit: &str) -> String {
    let stem = slug(name);
    if stem.ends_with(unit) || unit == "count" { stem } else { format!("{stem}_{unit}") }
}

/// A rate of a cluster, or of one of its instances by number. Those of an instance stand alone.
pub(super) fn of_cluster(
    reader: &mut Reader<'_>,
    row: &Row,
    printed_label: &str,
    (is_rate, instance): (bool, Option<&str>),
    printed: Printed,
) {
    let (name, unit) = label(printed_label);
    let per = if is_rate { Per::Second } else { Per::Transaction };
    match instance {
        None => {
            let line = Line { at: row.at, text: String::new(), is_cut: false };
            rate(reader, &line, (name, unit), per, printed);
        }
        Some(number) => {
            let column = if is_rate { "per_s" } else { "per_tx" };
            let key = format!("{}_{column}", stem(name, unit));
            let reading = Reading::new(row.at, key, printed).name(name);
            let reading = reading.scope(&format!("instance {number}"));
            reader.draft.alone(reading);
        }
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
