//! Top events, wait classes, foreground and background wait events.

use super::part::Part;
use super::table::{ROWS_MAX, Row, Ruler, Table};
use super::{Reader, names};
use crate::draft::Reading;
use crate::number::{self, Printed};
use crate::text::{At, Line};
use assay_measure::plain::slug;
use assay_measure::record::{EventRow, Figure, WaitClassRow};
use std::collections::BTreeSet;

/// Foreground and background waits together, as layouts before 11.1 and Statspack head their first table.
pub(super) const BOTH: &str = "both";

/// Where a table of events has what.
struct Columns {
    name: usize,
    waits: Option<usize>,
    timeouts: Option<usize>,
    total: Option<usize>,
    avg: Option<usize>,
    /// What an average without a unit counts, us.
    us_avg: f64,
    share: Option<usize>,
    /// The share is of CPU time and all waits together, not of DB time.
    is_of_calls: bool,
    class: Option<usize>,
}

impl Columns {
    fn new(ruler: &Ruler) -> Self {
        let avg = ruler.find(&["av"], &["active", "sess"]);
        let title = avg.map_or("", |i| ruler.columns[i].title.as_str());
        let us_avg = match title {
            title if title.contains("(us)") => 1.0,
            title if title.contains("(s)") => 1e6,
            _ => 1e3,
        };
        let of_calls = ruler.find(&["%", "call"], &["out"]);
        let share = ruler
            .find(&["%", "db"], &["out"])
            .or_else(|| ruler.find(&["%", "bg"], &["out"]))
            .or(of_calls)
            .or_else(|| ruler.find(&["%", "ela"], &["out"]))
            .or_else(|| ruler.find(&["%", "time"], &["out"]));
        Self {
            name: ruler.columns.iter().position(|c| c.title == "event" || c.title.ends_with(" event")).unwrap_or(0),
            waits: ruler.find(&["waits"], &["/tx", "%", "/ txn", "wait class"]),
            timeouts: ruler.find(&["out"], &[]),
            total: ruler
                .find(&["total"], &["%", "av"])
                .or_else(|| ruler.find(&["time", "s)"], &["%", "av", "out"]))
                .or_else(|| ruler.find(&["time", "sec"], &["%", "av", "out"])),
            avg,
            us_avg,
            is_of_calls: share.is_some() && share == of_calls || share == ruler.find(&["%", "ela"], &["out"]),
            share,
            class: ruler.find(&["class"], &["waits"]),
        }
    }
}

/// A row of foreground and background waits together.
#[derive(Clone, Debug)]
pub(super) struct Both {
    at: At,
    printed: String,
    figures: Figures,
}

/// The figures of a row.
#[derive(Clone, Debug)]
struct Figures {
    waits: Option<Printed>,
    timeouts: Option<Printed>,
    total_us: Option<Printed>,
    us_avg: Option<Printed>,
    share: Option<Printed>,
    is_of_calls: bool,
    /// Waits without a share.
    is_idle: bool,
    class: String,
}

impl Figures {
    fn new(columns: &Columns, row: &Row) -> Self {
        let cell = |i: Option<usize>| {
            let cell = i.and_then(|i| row.cells.get(i)).map(String::as_str);
            cell.filter(|cell| !cell.is_empty())
        };
        let seconds = |cell: &str| Some(number::suffixed(cell, number::Suffix::Decimal)?.scaled(1e6));
        Self {
            waits: cell(columns.waits).and_then(number::count),
            timeouts: cell(columns.timeouts).and_then(number::measure),
            total_us: cell(columns.total).and_then(seconds),
            us_avg: cell(columns.avg).and_then(|cell| number::duration_us(cell, columns.us_avg)),
            share: cell(columns.share).and_then(number::measure),
            is_of_calls: columns.is_of_calls,
            is_idle: cell(columns.waits).is_some() && cell(columns.share).is_none(),
            class: names::class(cell(columns.class).unwrap_or_default()).to_owned(),
        }
    }
}

/// `Top N Timed Foreground Events`.
pub(super) fn top(reader: &mut Reader<'_>, part: &Part<'_>) {
    read(reader, part, "foreground");
}

/// `Top 5 Timed Events`, `Wait Events`: foreground and background waits together.
pub(super) fn both(reader: &mut Reader<'_>, part: &Part<'_>) {
    read(reader, part, BOTH);
}

pub(super) fn foreground(reader: &mut Reader<'_>, part: &Part<'_>) {
    fg_wait_time(reader, part);
    read(reader, part, "foreground");
}

pub(super) fn background(reader: &mut Reader<'_>, part: &Part<'_>) {
    reader.has_background = true;
    read(reader, part, "background");
}

fn fg_wait_time(reader: &mut Reader<'_>, part: &Part<'_>) {
    if let Some((total, at)) = after(part.lines, "Total FG Wait Time:") {
        let reading = Reading::new(at, "fg_wait_us", total.scaled(1e6)).name("Total FG Wait Time");
        put!(reader.draft, reading.again(), instance.time_model.fg_wait_us);
    }
}

/// The number behind some words of a remark, commas and brackets aside.
pub(super) fn after(lines: &[Line], words: &str) -> Option<(Printed, At)> {
    lines.iter().find_map(|line| {
        let rest = line.text.split_once(words)?.1.trim_start();
        let word = rest.split_whitespace().next()?;
        let printed = number::measure(word.trim_end_matches(['s', ')']))?;
        Some((printed, line.at))
    })
}

fn read(reader: &mut Reader<'_>, part: &Part<'_>, actor: &str) {
    let tables = part.tables(1, reader.titles_max());
    let name = |table: &Table| Columns::new(&table.ruler).name;
    let doubled = doubled(reader, &tables, name);
    for table in tables.iter() {
        let columns = Columns::new(&table.ruler);
        reader.table(table, "an event");
        for row in &table.rows {
            let mut figures = Figures::new(&columns, row);
            if reader.is_global && actor == "background" {
                // Printed as a ratio under a title of percent.
                figures.share = None;
            }
            if columns.share.is_some() && columns.timeouts.is_some() && figures.is_idle {
                // Oracle prints no share of idle events, and the share of all others.
                "Idle".clone_into(&mut figures.class);
            }
            let printed = row.cells[columns.name].trim();
            match printed {
                "" => {}
                "DB CPU" => cpu(reader, row, figures),
                "CPU time" => cpu_time(reader, row, figures),
                "background cpu time" => {}
                "run queue" if reader.is_assay => {}
                printed if doubled.contains(printed) => {}
                printed if actor == BOTH => {
                    let (at, printed) = (row.at, printed.to_owned());
                    reader.both.push(Both { at, printed, figures });
                }
                printed => event(reader, row.at, actor, printed, figures),
            }
        }
    }
}

/// Names that the pages of a table have twice, for they were cut at the column's width: which event a row is of is not
/// known.
pub(super) fn doubled(reader: &mut Reader<'_>, tables: &[Table], name: impl Fn(&Table) -> usize) -> BTreeSet<String> {
    let mut seen = BTreeSet::new();
    let mut found = BTreeSet::new();
    if reader.is_html {
        return found;
    }
    let rows = tables.iter().flat_map(|table| {
        let name = name(table);
        table.rows.iter().map(move |row| (row, name))
    });
    for (row, name) in rows {
        let printed = row.cells[name].trim();
        if printed.len() >= names::CUT_FROM && !seen.insert(printed) && found.insert(printed.to_owned()) {
            let text =
                format!("several events are cut to {printed:?}, the column's width: the names are ambiguous; omitted");
            reader.draft.note(row.at, text);
        }
    }
    found
}

/// The row of CPU time among the events.
fn cpu(reader: &mut Reader<'_>, row: &Row, figures: Figures) {
    if let Some(total) = figures.total_us {
        let reading = Reading::new(row.at, "db_cpu_us", total).name("DB CPU").again();
        put!(reader.draft, reading, instance.time_model.db_cpu_us);
    }
    if let Some(share) = figures.share {
        let key = if figures.is_of_calls { "db_cpu_call_time_pct" } else { "db_cpu_db_time_pct" };
        let reading = Reading::new(row.at, key, share).name("DB CPU");
        reader.draft.alone(reading.again());
    }
}

/// `CPU time` of older layouts and Statspack: what sessions used, as they say at the end of their calls. It is no DB CPU.
fn cpu_time(reader: &mut Reader<'_>, row: &Row, figures: Figures) {
    for (key, printed) in [("cpu_time_us", figures.total_us), ("cpu_time_call_time_pct", figures.share)] {
        if let Some(printed) = printed {
            let reading = Reading::new(row.at, key, printed).name("CPU time");
            reader.draft.alone(reading.again());
        }
    }
}

/// Index of an event's row, made if there is none.
pub(super) fn row_of(reader: &mut Reader<'_>, actor: &str, printed: &str) -> usize {
    let (name, class) = names::event(printed);
    let key = (actor.to_owned(), name.to_owned());
    if let Some(i) = reader.event_rows.get(&key) {
        return *i;
    }
    if let Some(i) = reader.longer(actor, name) {
        reader.event_rows.insert(key, i);
        return i;
    }
    let events = &mut reader.draft.record.instance.events;
    events.push(EventRow {
        name: name.to_owned(),
        class: class.to_owned(),
        actor: actor.to_owned(),
        source: "sysstat".to_owned(),
        ..EventRow::default()
    });
    reader.event_rows.insert(key, events.len() - 1);
    events.len() - 1
}

fn event(reader: &mut Reader<'_>, at: At, actor: &str, printed: &str, figures: Figures) {
    let i = row_of(reader, actor, printed);
    let draft = &mut *reader.draft;
    let row = &mut draft.record.instance.events[i];
    if row.class.is_empty() {
        row.class.clone_from(&figures.class);
    }
    let (name, scope) = (row.name.clone(), actor);
    let stem = slug(&name);
    let reading = |key: &str, printed: Printed| {
        let reading = Reading::new(at, format!("{stem}_{key}"), printed);
        reading.name(&name).scope(scope).again()
    };
    if let Some(waits) = figures.waits {
        put!(draft, reading("waits_count", waits), instance.events[i].count);
    }
    if let Some(timeouts) = figures.timeouts {
        draft.alone(reading("timeouts_pct", timeouts));
    }
    if let Some(total) = figures.total_us {
        put!(draft, reading("total_us", total), instance.events[i].total_us);
    }
    if let Some(avg) = figures.us_avg {
        put!(draft, reading("us_avg", avg), instance.events[i].us_avg);
    }
    match figures.share {
        Some(share) if figures.is_of_calls => draft.alone(reading("call_time_pct", share)),
        Some(share) => put!(draft, reading("db_time_pct", share), instance.events[i].db_time_pct),
        None => {}
    }
}

/// Takes rows of foreground and background waits together, once all tables were read: what the report has of either
/// alone stands as it is; what it has of both and of the background gives the foreground; else the event's nature tells.
pub(super) fn finish(reader: &mut Reader<'_>) {
    finish_classes(reader);
    for both in std::mem::take(&mut reader.both) {
        let (name, class) = names::event(&both.printed);
        let name = name.to_owned();
        together(reader, &both, &name);
        if reader.row_at("foreground", &name).is_some() {
            continue;
        }
        if let Some(i) = reader.row_at("background", &name) {
            foreground_of(reader, &both, i);
            continue;
        }
        let is_known = reader.has_background;
        let actor = match class {
            "System I/O" if !is_known => "background",
            _ => "foreground",
        };
        let Both { at, printed, figures } = both;
        event(reader, at, actor, &printed, figures);
        if !is_known && let Some(i) = reader.row_at(actor, &name) {
            "foreground and background waits together, as this layout prints them"
                .clone_into(&mut reader.draft.record.instance.events[i].note);
        }
    }
}

/// Classes of foreground and background together stand alone, unless the report has no table of the foreground's.
fn finish_classes(reader: &mut Reader<'_>) {
    let is_only = reader.draft.record.instance.wait_classes.is_empty();
    for (i, both) in std::mem::take(&mut reader.both_classes).iter().enumerate() {
        if is_only && i == 0 {
            let text = "wait classes of foreground and background together: the report has no table for the \
                        foreground only";
            reader.draft.note(both.at, text);
        }
        if is_only {
            class(reader, both.at, &both.printed, both.figures.clone())
        } else {
            alone(reader, both, &both.printed, "wait class, foreground and background")
        }
    }
}

/// The figures of both, as values that stand alone.
fn together(reader: &mut Reader<'_>, both: &Both, name: &str) {
    alone(reader, both, name, "foreground and background");
}

fn alone(reader: &mut Reader<'_>, both: &Both, name: &str, scope: &str) {
    let (stem, figures) = (slug(name), both.figures.clone());
    for (key, printed) in [("waits_count", figures.waits), ("total_us", figures.total_us), ("us_avg", figures.us_avg)] {
        if let Some(printed) = printed {
            let reading = Reading::new(both.at, format!("{stem}_{key}"), printed).name(name);
            let reading = reading.scope(scope);
            reader.draft.alone(reading.again());
        }
    }
}

/// The foreground's part: both less the background. It is derived, so no value of it is listed as imported.
fn foreground_of(reader: &mut Reader<'_>, both: &Both, background: usize) {
    let events = &reader.draft.record.instance.events;
    let (of_count, of_total) = (events[background].count.value(), events[background].total_us.value());
    let value = |printed: &Option<Printed>| printed.as_ref().and_then(Printed::number);
    let (count, total) = (value(&both.figures.waits), value(&both.figures.total_us));
    let (Some(count), Some(total), Some(of_count), Some(of_total)) = (count, total, of_count, of_total) else {
        return;
    };
    if count <= of_count || total < of_total {
        return;
    }
    let i = row_of(reader, "foreground", &both.printed);
    let row = &mut reader.draft.record.instance.events[i];
    row.count = Figure::Count((count - of_count).round() as u64);
    row.total_us = Figure::decimal(total - of_total);
    if row.class.is_empty() {
        row.class.clone_from(&both.figures.class);
    }
    "all waits less the background's".clone_into(&mut row.note);
}

/// Events of a cluster's instances: `*` is all of them.
pub(super) fn per_instance(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, reader.titles_max()).iter() {
        let Some(instance) = table.ruler.titled("i#") else {
            continue;
        };
        let columns = Columns::new(&table.ruler);
        for row in &table.rows {
            let figures = Figures::new(&columns, row);
            let printed = row.cells[columns.name].trim();
            match row.cells[instance].trim() {
                _ if printed.is_empty() || printed == "DB CPU" => {}
                "*" => event(reader, row.at, "foreground", printed, figures),
                number => {
                    let scope = format!("instance {number}, foreground");
                    let stem = slug(printed);
                    for (key, figure) in [
                        ("waits_count", figures.waits),
                        ("total_us", figures.total_us),
                        ("us_avg", figures.us_avg),
                        ("db_time_pct", figures.share),
                    ] {
                        if let Some(figure) = figure {
                            let reading = Reading::new(row.at, format!("{stem}_{key}"), figure);
                            reader.draft.alone(reading.name(printed).scope(&scope));
                        }
                    }
                }
            }
        }
    }
}

/// `Wait Classes by Total Wait Time`: waits of foreground and background together.
pub(super) fn classes_of_both(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, reader.titles_max()).iter() {
        let columns = Columns::new(&table.ruler);
        reader.table(table, "a wait class");
        for row in &table.rows {
            let printed = row.cells[columns.class.unwrap_or(0)].trim().to_owned();
            if !printed.is_empty() {
                let (at, figures) = (row.at, Figures::new(&columns, row));
                reader.both_classes.push(Both { at, printed, figures });
            }
        }
    }
}

/// `Foreground Wait Class`.
pub(super) fn classes(reader: &mut Reader<'_>, part: &Part<'_>) {
    fg_wait_time(reader, part);
    if let Some((cpu, at)) = after(part.lines, "DB CPU time:") {
        let reading = Reading::new(at, "db_cpu_us", cpu.scaled(1e6)).name("DB CPU time");
        put!(reader.draft, reading.again(), instance.time_model.db_cpu_us);
    }
    for table in part.tables(1, reader.titles_max()).iter() {
        let columns = Columns::new(&table.ruler);
        reader.table(table, "a wait class");
        for row in &table.rows {
            let name = row.cells[0].trim();
            if !name.is_empty() {
                class(reader, row.at, name, Figures::new(&columns, row));
            }
        }
    }
}

fn class(reader: &mut Reader<'_>, at: At, name: &str, figures: Figures) {
    let draft = &mut *reader.draft;
    let new = || WaitClassRow {
        class: name.to_owned(),
        source: "sysstat".to_owned(),
        timeouts_pct: Figure::default(),
        ..WaitClassRow::default()
    };
    let rows = &mut draft.record.instance.wait_classes;
    let Some(i) = super::row_of(rows, |row| row.class == name, new) else {
        return;
    };
    let stem = slug(name);
    let reading = |key: &str, printed: Printed| {
        let reading = Reading::new(at, format!("{stem}_{key}"), printed);
        reading.name(name).scope("wait class").again()
    };
    if let Some(waits) = figures.waits {
        put!(draft, reading("waits_count", waits), instance.wait_classes[i].waits_count);
    }
    if let Some(timeouts) = figures.timeouts {
        put!(draft, reading("timeouts_pct", timeouts), instance.wait_classes[i].timeouts_pct);
    }
    if let Some(total) = figures.total_us {
        put!(draft, reading("total_us", total), instance.wait_classes[i].total_us);
    }
    if let Some(avg) = figures.us_avg {
        put!(draft, reading("us_avg", avg), instance.wait_classes[i].us_avg);
    }
    if let Some(share) = figures.share {
        put!(draft, reading("db_time_pct", share), instance.wait_classes[i].db_time_pct);
    }
}

impl Reader<'_> {
    /// The row of an event, if there is one.
    fn row_at(&self, actor: &str, name: &str) -> Option<usize> {
        let key = (actor.to_owned(), name.to_owned());
        let known = self.event_rows.get(&key).copied();
        known.or_else(|| self.longer(actor, name))
    }

    /// The row of an event whose name the report prints longer elsewhere, if it is the only one that begins so.
    fn longer(&self, actor: &str, name: &str) -> Option<usize> {
        if name.len() < names::CUT_FROM || self.is_html {
            return None;
        }
        let from = (actor.to_owned(), name.to_owned());
        let begin_so = self.event_rows.range(from..);
        let mut found = begin_so.take_while(|((other, longer), _)| other == actor && longer.starts_with(name));
        let (_, i) = found.next()?;
        // A row may have been found by several cut names.
        found.all(|(_, other)| other == i).then_some(*i)
    }

    /// Notes what was odd about a table.
    pub(super) fn table(&mut self, table: &Table, what: &str) {
        for line in &table.unread {
            self.unread(line, what);
        }
        if let Some(at) = table.left_out {
            let text =
                format!("rows of this table from here on are not read: no report has more than {ROWS_MAX} of them");
            self.draft.note(at, text);
        }
        if let Some(row) = table.rows.iter().find(|row| row.is_guess) {
            let rows = table.rows.iter().filter(|row| row.is_guess).count();
            let text = format!(
                "the columns are not aligned: assay took the numbers in the order of the titles (this line, {rows} \
                 in total)"
            );
            self.draft.note(row.at, text);
        }
    }
}
