//! Top events, wait classes, foreground and background wait events.

use super::table::{Row, Ruler, Table, tables};
use super::{Reader, names};
use crate::draft::Reading;
use crate::number::{self, Printed};
use crate::text::{At, Line};
use assay_measure::plain::slug;
use assay_measure::record::{EventRow, Figure, WaitClassRow};

/// Where a table of events has what.
struct Columns {
    waits: Option<usize>,
    timeouts: Option<usize>,
    total: Option<usize>,
    avg: Option<usize>,
    /// What an average without a unit counts, us.
    avg_us: f64,
    share: Option<usize>,
    class: Option<usize>,
}

impl Columns {
    fn new(ruler: &Ruler) -> Self {
        let avg = ruler.find(&["av"], &["active", "sess"]);
        let title = avg.map_or("", |i| ruler.columns[i].title.as_str());
        let avg_us = match title {
            title if title.contains("(us)") => 1.0,
            title if title.contains("(s)") => 1e6,
            _ => 1e3,
        };
        Self {
            waits: ruler.find(&["waits"], &["/tx", "%", "/ txn"]),
            timeouts: ruler.find(&["out"], &[]),
            total: ruler
                .find(&["total"], &["%", "av"])
                .or_else(|| ruler.find(&["time", "s)"], &["%", "av", "out"]))
                .or_else(|| ruler.find(&["time", "sec"], &["%", "av", "out"])),
            avg,
            avg_us,
            share: ruler
                .find(&["%", "db"], &["out"])
                .or_else(|| ruler.find(&["%", "bg"], &["out"]))
                .or_else(|| ruler.find(&["%", "time"], &["out"]))
                .or_else(|| ruler.find(&["%", "call"], &["out"])),
            class: ruler.find(&["class"], &["wait class waits"]),
        }
    }
}

/// The figures of a row.
struct Figures {
    waits: Option<Printed>,
    timeouts: Option<Printed>,
    total_us: Option<Printed>,
    avg_us: Option<Printed>,
    share: Option<Printed>,
    class: String,
}

impl Figures {
    fn new(columns: &Columns, row: &Row) -> Self {
        let cell = |i: Option<usize>| {
            let cell = i.and_then(|i| row.cells.get(i)).map(String::as_str);
            cell.filter(|cell| !cell.is_empty())
        };
        let seconds =
            |cell: &str| Some(number::suffixed(cell, number::Suffix::Decimal)?.scaled(1e6));
        Self {
            waits: cell(columns.waits).and_then(number::count),
            timeouts: cell(columns.timeouts).and_then(number::measure),
            total_us: cell(columns.total).and_then(seconds),
            avg_us: cell(columns.avg).and_then(|cell| number::duration_us(cell, columns.avg_us)),
            share: cell(columns.share).and_then(number::measure),
            class: cell(columns.class).unwrap_or_default().to_owned(),
        }
    }
}

/// `Top N Timed (Foreground) Events`.
pub(super) fn top(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    read(reader, heading, lines, "foreground");
}

pub(super) fn foreground(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    if let Some(total) = after(lines, "Total FG Wait Time:") {
        let reading = total.0.scaled(1e6);
        let reading = Reading::new(total.1, "fg_wait_us", reading).name("Total FG Wait Time");
        put!(
            reader.draft,
            reading.again(),
            instance.time_model.fg_wait_us
        );
    }
    read(reader, heading, lines, "foreground");
}

pub(super) fn background(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    read(reader, heading, lines, "background");
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

fn read(reader: &mut Reader<'_>, heading: &Line, lines: &[Line], actor: &str) {
    for table in tables(heading, lines, 1, reader.titles_max()) {
        let columns = Columns::new(&table.ruler);
        reader.table(&table, "an event");
        for row in &table.rows {
            let figures = Figures::new(&columns, row);
            let printed = row.cells[0].trim();
            match printed {
                "" => {}
                "DB CPU" | "CPU time" => cpu(reader, row, figures),
                "run queue" if reader.is_assay => {}
                printed => event(reader, row.at, actor, printed, figures),
            }
        }
    }
}

/// The row of CPU time among the events.
fn cpu(reader: &mut Reader<'_>, row: &Row, figures: Figures) {
    if let Some(total) = figures.total_us {
        let reading = Reading::new(row.at, "db_cpu_us", total)
            .name("DB CPU")
            .again();
        put!(reader.draft, reading, instance.time_model.db_cpu_us);
    }
    if let Some(share) = figures.share {
        let reading = Reading::new(row.at, "db_cpu_db_time_pct", share).name("DB CPU");
        reader.draft.alone(reading.again());
    }
}

/// Index of an event's row, made if there is none.
pub(super) fn row_of(reader: &mut Reader<'_>, actor: &str, printed: &str) -> usize {
    let (name, class) = names::event(printed);
    let key = (actor.to_owned(), name.to_owned());
    let events = &mut reader.draft.record.instance.events;
    if let Some(i) = reader.event_rows.get(&key) {
        return *i;
    }
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
        put!(
            draft,
            reading("waits_count", waits),
            instance.events[i].count
        );
    }
    if let Some(timeouts) = figures.timeouts {
        draft.alone(reading("timeouts_pct", timeouts));
    }
    if let Some(total) = figures.total_us {
        put!(
            draft,
            reading("total_us", total),
            instance.events[i].total_us
        );
    }
    if let Some(avg) = figures.avg_us {
        put!(draft, reading("us_avg", avg), instance.events[i].avg_us);
    }
    if let Some(share) = figures.share {
        put!(
            draft,
            reading("db_time_pct", share),
            instance.events[i].db_time_pct
        );
    }
}

/// `Foreground Wait Class`, `Wait Classes by Total Wait Time`.
pub(super) fn classes(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    if let Some((total, at)) = after(lines, "Total FG Wait Time:") {
        let reading = Reading::new(at, "fg_wait_us", total.scaled(1e6)).name("Total FG Wait Time");
        put!(
            reader.draft,
            reading.again(),
            instance.time_model.fg_wait_us
        );
    }
    if let Some((cpu, at)) = after(lines, "DB CPU time:") {
        let reading = Reading::new(at, "db_cpu_us", cpu.scaled(1e6)).name("DB CPU time");
        put!(reader.draft, reading.again(), instance.time_model.db_cpu_us);
    }
    for table in tables(heading, lines, 1, reader.titles_max()) {
        let columns = Columns::new(&table.ruler);
        reader.table(&table, "a wait class");
        for row in &table.rows {
            class(reader, row, Figures::new(&columns, row));
        }
    }
}

fn class(reader: &mut Reader<'_>, row: &Row, figures: Figures) {
    let name = row.cells[0].trim();
    if name.is_empty() {
        return;
    }
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
        let reading = Reading::new(row.at, format!("{stem}_{key}"), printed);
        reading.name(name).scope("wait class").again()
    };
    if let Some(waits) = figures.waits {
        put!(
            draft,
            reading("waits_count", waits),
            instance.wait_classes[i].waits_count
        );
    }
    if let Some(timeouts) = figures.timeouts {
        put!(
            draft,
            reading("timeouts_pct", timeouts),
            instance.wait_classes[i].timeouts_pct
        );
    }
    if let Some(total) = figures.total_us {
        put!(
            draft,
            reading("total_us", total),
            instance.wait_classes[i].total_us
        );
    }
    if let Some(avg) = figures.avg_us {
        put!(
            draft,
            reading("us_avg", avg),
            instance.wait_classes[i].avg_us
        );
    }
    if let Some(share) = figures.share {
        put!(
            draft,
            reading("db_time_pct", share),
            instance.wait_classes[i].db_time_pct
        );
    }
}

impl Reader<'_> {
    /// Notes what was odd about a table.
    pub(super) fn table(&mut self, table: &Table, what: &str) {
        for line in &table.unread {
            self.unread(line, what);
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
