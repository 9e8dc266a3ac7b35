//! Instance activity statistics: name, total, per second, per transaction.

use super::Reader;
use crate::draft::{Reading, step};
use crate::number::{self, Printed};
use crate::text::Line;
use assay_measure::plain::slug;
use assay_measure::record::StatRow;
use assay_measure::stats::{DICTIONARY, Stat, Unit};
use std::collections::BTreeSet;

/// A row: the name and the numbers behind it.
struct Row<'a> {
    name: &'a str,
    total: Printed,
    rates: Vec<Printed>,
}

/// Splits `physical reads   1,705,458   5,625.4   23.6`: two to four numbers at the end, a name before them.
fn split(line: &str) -> Option<Row<'_>> {
    let mut rest = line.trim();
    let mut numbers = Vec::new();
    while numbers.len() < 4 {
        let Some((before, last)) = rest.rsplit_once(' ') else {
            break;
        };
        let Some(printed) = number::measure(last) else {
            break;
        };
        numbers.push(printed);
        rest = before.trim_end();
    }
    if numbers.len() < 2 || !rest.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let total = numbers.pop()?;
    let total = number::count(&total.text).unwrap_or(total);
    numbers.reverse();
    Some(Row {
        name: rest,
        total,
        rates: numbers,
    })
}

/// The statistic a printed name stands for: itself, or the only one that begins so where the name was cut.
fn statistic(printed: &str) -> Option<&'static Stat> {
    let exact = DICTIONARY.iter().find(|stat| stat.name == printed);
    exact.or_else(|| {
        let mut longer = DICTIONARY
            .iter()
            .filter(|stat| stat.name.starts_with(printed));
        let only = longer.next()?;
        (printed.len() >= 25 && longer.next().is_none()).then_some(only)
    })
}

/// Whether a line without its heading is one of these statistics.
pub(super) fn is_row(line: &str) -> bool {
    split(line).is_some_and(|row| row.rates.len() >= 2 && statistic(row.name).is_some())
}

/// Whether a line has the shape of a statistic: a name, a total and two rates.
pub(super) fn is_like_row(line: &str) -> bool {
    split(line).is_some_and(|row| row.rates.len() >= 2)
}

/// `Instance Activity Stats - Absolute Values`: begin and end.
pub(super) fn absolute(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    for line in lines {
        // Begin and end: the first and the last number of the row.
        let Some(row) = split(&line.text) else {
            continue;
        };
        let end = row.rates.last().and_then(|last| number::count(&last.text));
        let (begin, Some(end)) = (row.total, end) else {
            continue;
        };
        let (name, draft) = (row.name.to_owned(), &mut *reader.draft);
        let base = format!("/instance/gauges/{}", step(&name));
        let reading = |when: &str, printed: Printed| {
            let key = format!("{}_{when}_count", slug(&name));
            Reading::new(line.at, key, printed)
                .name(&name)
                .scope("absolute")
        };
        put_in!(
            draft,
            reading("begin", begin),
            base,
            gauge(draft, &name),
            begin
        );
        put_in!(draft, reading("end", end), base, gauge(draft, &name), end);
    }
}

fn gauge<'a>(
    draft: &'a mut crate::draft::Draft,
    name: &str,
) -> &'a mut assay_measure::record::GaugeRow {
    draft
        .record
        .instance
        .gauges
        .entry(name.to_owned())
        .or_default()
}

/// `Instance Activity Stats - Thread Activity`: log switches.
pub(super) fn threads(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    for line in lines {
        let Some(rest) = line
            .text
            .trim_start()
            .strip_prefix("log switches (derived)")
        else {
            continue;
        };
        let word = rest.split_whitespace().next().unwrap_or_default();
        if let Some(total) = number::count(word) {
            let row = Row {
                name: "redo log switches",
                total,
                rates: Vec::new(),
            };
            keep(reader, line, row);
        }
    }
}

/// Reads the lines of the section.
pub(super) fn read(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    // Some times are printed twice, in hundredths of a second and in us: the finer one is the statistic.
    let fine: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.text.split_once(" (usec)").map(|(name, _)| name.trim()))
        .collect();
    for line in lines {
        let text = line.text.as_str();
        // The source of our own rows stands behind their numbers.
        let is_own = reader.is_assay;
        let end = text
            .rfind(|c: char| c.is_ascii_digit() || c == '#')
            .map_or(0, |i| i + 1);
        let numbers = match is_own {
            true => own_numbers(text).unwrap_or(&text[..end]),
            false => text,
        };
        match split(numbers) {
            Some(row) if fine.contains(row.name) => coarse(reader, line, &row),
            Some(row) => keep(reader, line, row),
            None => {}
        }
    }
}

/// The total of a time in hundredths of a second beside which the same stands in us.
fn coarse(reader: &mut Reader<'_>, line: &Line, row: &Row<'_>) {
    let key = format!("{}_cs", slug(row.name));
    let reading = Reading::new(line.at, key, row.total.clone()).name(row.name);
    reader.draft.alone(reading);
}

/// A row of our own report without its last column, which begins two blanks after the numbers.
fn own_numbers(text: &str) -> Option<&str> {
    let at = text.rfind("  ")?;
    let (numbers, source) = text.split_at(at);
    source
        .trim_start()
        .starts_with(|c: char| c.is_ascii_alphabetic())
        .then(|| numbers.trim_end())
}

/// The unit a statistic is kept in, and what one printed is of it.
fn unit_of(stat: Option<&Stat>, is_in_us: bool) -> (&'static str, f64) {
    match stat.map(|stat| stat.unit) {
        Some(Unit::Blocks) => ("blocks", 1.0),
        Some(Unit::Bytes) => ("bytes", 1.0),
        Some(Unit::Ns) if is_in_us => ("ns", 1e3),
        // Oracle counts the times of this list in hundredths of a second.
        Some(Unit::Ns) => ("ns", 1e7),
        _ => ("count", 1.0),
    }
}

fn keep(reader: &mut Reader<'_>, line: &Line, row: Row<'_>) {
    // Our own report prints times in us and says so; Oracle's newer names do so too.
    let in_us = [" (us)", " (usec)"]
        .iter()
        .find_map(|unit| row.name.strip_suffix(unit));
    let stat = statistic(in_us.unwrap_or(row.name));
    let name = stat.map_or(row.name, |stat| stat.name);
    let (unit, factor) = unit_of(stat, in_us.is_some());
    let key = stat.map_or_else(|| format!("{}_count", slug(name)), |s| s.key.to_owned());
    let draft = &mut *reader.draft;
    draft
        .record
        .instance
        .stats
        .entry(key.clone())
        .or_insert_with(|| StatRow {
            name: name.to_owned(),
            unit: unit.to_owned(),
            source: "sysstat".to_owned(),
            ..StatRow::default()
        });
    // A time in us may have been measured finer than that.
    let total = match in_us {
        Some(_) => number::measure(&row.total.text).unwrap_or(row.total),
        None => row.total,
    };
    let base = format!("/instance/stats/{}", step(&key));
    let reading = |column: &str, printed: Printed| {
        let key = format!("{key}{column}");
        Reading::new(line.at, key, printed.scaled(factor)).name(name)
    };
    put_in!(
        draft,
        reading("_total", total),
        base,
        stat_row(draft, &key),
        total
    );
    let mut rates = row.rates.into_iter();
    if let Some(printed) = rates.next() {
        put_in!(
            draft,
            reading("_per_s", printed),
            base,
            stat_row(draft, &key),
            per_s
        );
    }
    if let Some(printed) = rates.next() {
        put_in!(
            draft,
            reading("_per_tx", printed),
            base,
            stat_row(draft, &key),
            per_tx
        );
    }
    if let Some(printed) = rates.next() {
        put_in!(
            draft,
            reading("_per_op", printed),
            base,
            stat_row(draft, &key),
            per_op
        );
    }
}

fn stat_row<'a>(draft: &'a mut crate::draft::Draft, key: &str) -> &'a mut StatRow {
    draft
        .record
        .instance
        .stats
        .entry(key.to_owned())
        .or_default()
}
