//! Wait event histograms: rows of `V$EVENT_HISTOGRAM_MICRO`, and the tables of percentages.

use super::table::{Row, tables};
use super::{Reader, events};
use crate::draft::Reading;
use crate::number::{self, Printed};
use crate::text::Line;
use assay_measure::plain::slug;

/// Buckets of the record's histograms.
const BUCKETS: usize = 34;

/// Index of the bucket whose upper bound is this many us; of bounds in ms of powers of two, the power of two of us.
fn bucket(bound_us: f64) -> Option<usize> {
    let exact = bound_us.log2();
    let near = exact.round();
    // 1 ms is 1,000 us and stands for 1,024: the bound's bucket is the nearest power of two.
    ((exact - near).abs() < 0.2 && (0.0..=32.0).contains(&near)).then_some(near as usize)
}

/// Rows of event, upper bound, count: as the view has them, and as our own report prints them.
pub(super) fn micro(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    let bound_us = match heading.text.contains("MILLI") {
        true => 1000.0,
        false => 1.0,
    };
    for table in tables(heading, lines, 1, 1) {
        let bound = table
            .ruler
            .find(&["wait_time_mi"], &[])
            .or_else(|| table.ruler.find(&["below"], &[]));
        let count = table
            .ruler
            .find(&["wait_count"], &[])
            .or_else(|| table.ruler.find(&["waits"], &[]));
        let event = table.ruler.find(&["event"], &["#"]).unwrap_or(0);
        let (Some(bound), Some(count)) = (bound, count) else {
            continue;
        };
        reader.table(&table, "a bucket of a histogram");
        for row in &table.rows {
            if !row.cells[event].is_empty() {
                counted(reader, row, (event, bound, count), bound_us);
            }
        }
    }
}

fn counted(
    reader: &mut Reader<'_>,
    row: &Row,
    (event, bound, count): (usize, usize, usize),
    bound_us: f64,
) {
    let is_last = row.cells[bound] == "more";
    let at_us = number::count(&row.cells[bound]).and_then(|printed| printed.number());
    let index = match is_last {
        true => Some(BUCKETS - 1),
        false => at_us.and_then(|us| bucket(us * bound_us)),
    };
    let waits = number::count(&row.cells[count]);
    let (Some(index), Some(waits)) = (index, waits) else {
        return;
    };
    let (name, actor) = match row.cells[event].strip_suffix(" (bg)") {
        Some(name) => (name, "background"),
        None => (row.cells[event].as_str(), "foreground"),
    };
    let i = open(reader, actor, name);
    let draft = &mut *reader.draft;
    let name = draft.record.instance.events[i].name.clone();
    let key = format!("{}_waits_below_2e{index}_us_count", slug(&name));
    let reading = Reading::new(row.at, key, waits).name(&name).scope(actor);
    put!(draft, reading, instance.events[i].hist_us[index]);
}

/// The event's row with room for a histogram.
fn open(reader: &mut Reader<'_>, actor: &str, name: &str) -> usize {
    let i = events::row_of(reader, actor, name);
    let row = &mut reader.draft.record.instance.events[i];
    if row.hist_us.is_empty() {
        row.hist_us = vec![0; BUCKETS];
    }
    i
}

/// `Wait Event Histogram` of a report: percentages of waits below each bound.
pub(super) fn shares(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    if reader.is_assay {
        micro(reader, heading, lines);
        return;
    }
    for table in tables(heading, lines, 1, 4) {
        let columns = &table.ruler.columns;
        let bounds: Vec<Option<Bound>> = columns.iter().map(|c| bound(&c.title)).collect();
        let all = bounds.iter().flatten().count();
        if all < 3 {
            continue;
        }
        reader.table(&table, "a row of a histogram");
        for row in &table.rows {
            share_row(reader, row, &bounds);
        }
    }
}

/// What a column of shares holds.
#[derive(Clone, Copy, PartialEq)]
struct Bound {
    us: f64,
    is_above: bool,
}

/// `... <16ms`, `<=1s`, `<1/8s`, `>=2s`: the last word of a title.
fn bound(title: &str) -> Option<Bound> {
    let word = title.split_whitespace().last()?;
    let is_above = word.starts_with('>');
    let rest = word.strip_prefix('<').or(word.strip_prefix('>'))?;
    let rest = rest.strip_prefix('=').unwrap_or(rest);
    let us = match rest.strip_prefix("1/") {
        Some(part) => {
            let of: f64 = part.strip_suffix('s')?.parse().ok()?;
            1e6 / of
        }
        None => number::duration_us(rest, 1.0)?.number()?,
    };
    Some(Bound { us, is_above })
}

fn share_row(reader: &mut Reader<'_>, row: &Row, bounds: &[Option<Bound>]) {
    let name = row.cells[0].trim().to_owned();
    if name.is_empty() {
        return;
    }
    let total = row.cells.get(1).and_then(|cell| number::count(cell));
    let i = events::row_of(reader, "foreground", &name);
    let name = reader.draft.record.instance.events[i].name.clone();
    let stem = slug(&name);
    let mut parts: Vec<(usize, f64)> = Vec::new();
    let waits = total.as_ref().and_then(Printed::number);
    for (cell, bound) in row.cells.iter().zip(bounds) {
        let (Some(bound), Some(share)) = (bound, number::measure(cell)) else {
            continue;
        };
        let Some(index) = bucket(bound.us) else {
            continue;
        };
        let index = index + usize::from(bound.is_above);
        if let (Some(waits), Some(share)) = (waits, share.number()) {
            parts.push((index, waits * share / 100.0));
        }
        let side = if bound.is_above { "from" } else { "below" };
        let key = format!("{stem}_waits_{side}_{}_us_pct", bound.us);
        let reading = Reading::new(row.at, key, share).name(&name);
        reader.draft.alone(reading.scope("histogram").again());
    }
    if let Some(total) = total {
        let reading = Reading::new(row.at, format!("{stem}_waits_count"), total);
        let reading = reading.name(&name).scope("histogram");
        reader.draft.alone(reading.again());
    }
    estimated(reader, i, &parts);
}

/// Buckets from shares: estimates to the share's rounding, good for shape and not for sums.
fn estimated(reader: &mut Reader<'_>, i: usize, parts: &[(usize, f64)]) {
    let row = &mut reader.draft.record.instance.events[i];
    if parts.is_empty() || !row.hist_us.is_empty() {
        return;
    }
    row.hist_us = vec![0; BUCKETS];
    for (index, waits) in parts {
        row.hist_us[(*index).min(BUCKETS - 1)] = waits.round() as u64;
    }
    let first = parts.iter().map(|(index, _)| *index).min().unwrap_or(0);
    row.note = format!(
        "its buckets are estimates from printed percentages of foreground and background waits; the first contains \
         all waits below {} us",
        1_u64 << first
    );
}
