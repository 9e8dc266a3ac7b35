//! Wait event histograms: rows of `V$EVENT_HISTOGRAM_MICRO`, and the tables of percentages.

use super::part::Part;
use super::table::Row;
use super::{Reader, events};
use crate::draft::Reading;
use crate::number::{self, Printed};
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
pub(super) fn micro(reader: &mut Reader<'_>, part: &Part<'_>) {
    let bound_us = if part.heading.text.contains("MILLI") { 1000.0 } else { 1.0 };
    for table in part.tables(1, 1).iter() {
        let bound = table.ruler.find(&["wait_time_mi"], &[]).or_else(|| table.ruler.find(&["below"], &[]));
        let count = table.ruler.find(&["wait_count"], &[]).or_else(|| table.ruler.find(&["waits"], &[]));
        let event = table.ruler.find(&["event"], &["#"]).unwrap_or(0);
        let (Some(bound), Some(count)) = (bound, count) else {
            continue;
        };
        reader.table(table, "a bucket of a histogram");
        for row in &table.rows {
            if !row.cells[event].is_empty() {
                counted(reader, row, (event, bound, count), bound_us);
            }
        }
    }
}

fn counted(reader: &mut Reader<'_>, row: &Row, (event, bound, count): (usize, usize, usize), bound_us: f64) {
    let is_last = row.cells[bound] == "more";
    let at_us = number::count(&row.cells[bound]).and_then(|printed| printed.number());
    let index = if is_last { Some(BUCKETS - 1) } else { at_us.and_then(|us| bucket(us * bound_us)) };
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

/// `Wait Event Histogram` of a report and the tables of its longer or shorter waits: percentages of waits between bounds.
pub(super) fn shares(reader: &mut Reader<'_>, part: &Part<'_>) {
    if reader.is_assay {
        micro(reader, part);
        return;
    }
    let tables = part.tables(1, 4);
    let doubled = events::doubled(reader, &tables, |_| 0);
    for table in tables.iter() {
        let columns = &table.ruler.columns;
        let bounds: Vec<Option<Bound>> = columns.iter().map(|c| bound(&c.title)).collect();
        let all = bounds.iter().flatten().count();
        if all < 3 {
            continue;
        }
        // Of the tables of a part of the waits the count is of that part.
        let is_of_all = |title: &str| title.ends_with("waits") && !title.contains(" to ");
        let total = columns.iter().position(|c| is_of_all(&c.title));
        reader.table(table, "a row of a histogram");
        let of_one = |row: &&Row| !doubled.contains(row.cells[0].trim());
        for row in table.rows.iter().filter(of_one) {
            share_row(reader, row, &bounds, total);
        }
    }
}

/// What a column of shares holds.
#[derive(Clone, Copy, PartialEq)]
struct Bound {
    us: f64,
    is_above: bool,
}

/// `... <16ms`, `<=1s`, `<1/8s`, `< 2m`, `>=2s`: the end of a title.
fn bound(title: &str) -> Option<Bound> {
    let at = title.rfind(['<', '>'])?;
    let is_above = title[at..].starts_with('>');
    let rest = title[at + 1..].trim_start();
    let rest = rest.strip_prefix('=').unwrap_or(rest).trim();
    let us = match rest.strip_prefix("1/") {
        Some(part) => {
            let of: f64 = part.strip_suffix('s')?.parse().ok()?;
            1e6 / of
        }
        None => number::duration_us(rest, 1.0)?.number()?,
    };
    Some(Bound { us, is_above })
}

/// A share of the waits of an event between two bounds, indices of buckets: above the first, up to the second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Span {
    from: usize,
    to: usize,
    pct: f64,
}

/// What the histogram tables say of an event, together.
#[derive(Clone, Debug, Default)]
pub(super) struct Shares {
    waits: Option<f64>,
    spans: Vec<Span>,
}

/// Half the last place of a share.
const HALF_PCT: f64 = 0.05;

fn share_row(reader: &mut Reader<'_>, row: &Row, bounds: &[Option<Bound>], waits_column: Option<usize>) {
    let name = row.cells[0].trim().to_owned();
    if name.is_empty() {
        return;
    }
    let total = waits_column.and_then(|i| number::count(row.cells.get(i)?));
    let i = events::row_of(reader, "foreground", &name);
    let name = reader.draft.record.instance.events[i].name.clone();
    let stem = slug(&name);
    let mut spans = Vec::new();
    let (mut from, mut from_us) = (0, 0.0);
    for (cell, bound) in row.cells.iter().zip(bounds) {
        let Some(bound) = bound else {
            continue;
        };
        let Some(index) = bucket(bound.us) else {
            continue;
        };
        let (begin, to) = if bound.is_above { (index, BUCKETS - 1) } else { (from, index) };
        let begin_us = std::mem::replace(&mut from_us, bound.us);
        from = index;
        // Oracle prints nothing for no waits, and `0.0(6)` for six of them.
        let (cell, _) = cell.split_once('(').unwrap_or((cell, ""));
        let share = if cell.is_empty() { None } else { number::measure(cell) };
        let pct = share.as_ref().map_or(Some(0.0), Printed::number);
        if let (Some(pct), true) = (pct, begin < to || begin == 0) {
            spans.push(Span { from: begin, to, pct });
        }
        if let Some(share) = share {
            // The first column of a table holds all that is shorter, and some hold more than a power of two.
            let range = match (bound.is_above, begin_us) {
                (true, _) => format!("from_{}", bound.us),
                (false, 0.0) => format!("up_to_{}", bound.us),
                _ if begin + 1 < to => format!("{begin_us}_to_{}", bound.us),
                _ => format!("below_{}", bound.us),
            };
            let key = format!("{stem}_waits_{range}_us_pct");
            let reading = Reading::new(row.at, key, share).name(&name);
            reader.draft.alone(reading.scope("histogram").again());
        }
    }
    let shares = reader.shares.entry(i).or_default();
    shares.spans.extend(spans);
    if let Some(total) = total {
        shares.waits = shares.waits.or(total.number());
        let reading = Reading::new(row.at, format!("{stem}_waits_count"), total);
        let reading = reading.name(&name).scope("histogram");
        reader.draft.alone(reading.again());
    }
}

/// Fills the buckets of every event whose shares are of single buckets: a share of several is of none of them.
pub(super) fn finish(reader: &mut Reader<'_>) {
    for (i, shares) in std::mem::take(&mut reader.shares) {
        let row = &mut reader.draft.record.instance.events[i];
        if !row.hist_us.is_empty() {
            continue;
        }
        let Some(waits) = shares.waits.filter(|waits| *waits > 0.0) else {
            continue;
        };
        let (buckets, wide) = apart(&shares.spans);
        let in_buckets: f64 = buckets.iter().sum();
        if (99.0 - HALF_PCT..101.0).contains(&in_buckets) {
            row.hist_us = buckets.iter().map(|pct| (waits * pct / 100.0).round() as u64).collect();
            "its buckets are estimates from printed percentages of foreground and background waits"
                .clone_into(&mut row.note);
        } else if !wide.is_empty() {
            row.note = format!(
                "its printed histogram has wide columns ({}): assay takes no histogram from them; the shares are among \
                 the imported values",
                wide.join(", ")
            );
        }
    }
}

/// Shares of single buckets, and the wide spans that hold more than their narrow parts tell, in words.
fn apart(spans: &[Span]) -> (Vec<f64>, Vec<String>) {
    let mut known: Vec<Option<f64>> = vec![None; BUCKETS];
    for span in spans {
        let is_single = span.from + 1 == span.to || span.to == 0;
        // A span without waits has none in any of its buckets.
        if span.pct == 0.0 {
            let buckets = span.from + 1..=span.to;
            for bucket in buckets {
                known[bucket] = known[bucket].or(Some(0.0));
            }
            if span.from == 0 {
                known[0] = known[0].or(Some(0.0));
            }
        } else if is_single {
            known[span.to] = Some(span.pct);
        }
    }
    let mut wide = Vec::new();
    for span in spans.iter().filter(|span| span.pct > 0.0) {
        let first = if span.from == 0 { 0 } else { span.from + 1 };
        let inside = &known[first..=span.to];
        let told: f64 = inside.iter().flatten().sum();
        let unknown = inside.iter().filter(|share| share.is_none()).count();
        if unknown == 0 || span.from + 1 == span.to {
            continue;
        }
        let parts = (inside.len() as f64).max(1.0);
        if span.pct - told > HALF_PCT * parts {
            wide.push(format!("{} to {} us hold {} %", edge(span.from), edge(span.to), span.pct));
        }
    }
    wide.dedup();
    let buckets = known.iter().map(|share| share.unwrap_or(0.0));
    (buckets.collect(), wide)
}

/// The upper bound of a bucket, us; 0 below the first.
fn edge(bucket: usize) -> u64 {
    match bucket {
        0 => 0,
        bucket => 1 << bucket,
    }
}
