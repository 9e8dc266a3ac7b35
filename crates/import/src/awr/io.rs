//! I/O profile and IOStat tables.

use super::Reader;
use super::part::Part;
use super::table::{Column, Row, Ruler};
use crate::draft::Reading;
use crate::number::{self, Printed, Suffix};
use crate::text::{At, Line};
use assay_measure::plain::slug;
use assay_measure::record::{IoProfileRow, IoRow};

/// Full names of the functions whose names the tables cut.
const FUNCTIONS: [&str; 15] = [
    "Buffer Cache Reads",
    "Direct Reads",
    "Direct Writes",
    "DBWR",
    "LGWR",
    "ARCH",
    "RMAN",
    "Recovery",
    "XDB",
    "Streams AQ",
    "Data Pump",
    "Smart Scan",
    "Archive Manager",
    "Inmemory Populate",
    "Others",
];

/// What a column of the I/O profile holds.
#[derive(Clone, Copy, PartialEq)]
enum Way {
    Both,
    Read,
    Write,
}

fn way(title: &str) -> Option<Way> {
    match title {
        title if title.contains("read+write") => Some(Way::Both),
        title if title.contains("read") => Some(Way::Read),
        title if title.contains("write") => Some(Way::Write),
        _ => None,
    }
}

/// `IO Profile    Read+Write/Second    Read/Second    Write/Second`.
pub(super) fn profile(reader: &mut Reader<'_>, part: &Part<'_>) {
    let (titles, rows) = part.titled();
    let ways: Vec<Option<Way>> = titles.iter().map(|title| way(title)).collect();
    if !reader.are_known(part.heading.at, &titles, &ways, "the I/O profile") {
        return;
    }
    for row in rows {
        let numbers = row.numbers.into_iter();
        let numbers: Vec<(Way, Printed)> =
            numbers.filter_map(|(i, printed)| Some((ways.get(i).copied().flatten()?, printed))).collect();
        if numbers.is_empty() {
            if row.line.text.bytes().any(|byte| byte.is_ascii_digit()) {
                reader.unread(&row.line, "a row of the I/O profile");
            }
            continue;
        }
        profile_row(reader, &row.line, &row.label, numbers);
    }
}

fn profile_row(reader: &mut Reader<'_>, line: &Line, name: &str, numbers: Vec<(Way, Printed)>) {
    let unit = match name {
        name if name.contains("(MB)") => "mib",
        name if name.contains("(blocks)") => "blocks",
        _ => "count",
    };
    let draft = &mut *reader.draft;
    let new = || IoProfileRow { name: name.to_owned(), unit: unit.to_owned(), ..IoProfileRow::default() };
    let rows = &mut draft.record.instance.io_profile;
    let Some(i) = super::row_of(rows, |row| row.name == name, new) else {
        return;
    };
    let stem = slug(name);
    for (way, printed) in numbers {
        let column = match way {
            Way::Both => "read_write_per_s",
            Way::Read => "read_per_s",
            Way::Write => "write_per_s",
        };
        let key = format!("io_profile_{stem}_{column}");
        let reading = Reading::new(line.at, key, printed).name(name);
        match way {
            Way::Both => put!(draft, reading, instance.io_profile[i].read_write_per_s),
            Way::Read => put!(draft, reading, instance.io_profile[i].read_per_s),
            Way::Write => put!(draft, reading, instance.io_profile[i].write_per_s),
        }
    }
}

/// What a column of an IOStat table holds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) enum Io {
    ReadData,
    ReadRequests,
    ReadRate,
    WriteData,
    WriteRequests,
    WriteRate,
    Waits,
    Avg,
}

/// What each column holds. `Reads:`, `Writes:` and `Waits:` stand over the first of their columns only, or over all.
fn columns(ruler: &Ruler) -> Vec<Option<Io>> {
    let mut way = "";
    let meaning = |column: &Column| {
        let title = column.title.as_str();
        // Service times of file types: of small and of large reads.
        if title.contains("small") || title.contains("large") {
            return None;
        }
        for word in ["read", "write", "wait"] {
            if title.contains(word) {
                way = word;
            }
        }
        let is_rate = title.contains("per sec") || title.contains("/s");
        let is_data = title.contains("data") || title.contains("vol/sec");
        match way {
            _ if title.contains("avg") || title.contains("tm(") => Some(Io::Avg),
            "wait" => Some(Io::Waits),
            "read" if title.contains("req") => Some(Io::ReadRequests),
            "read" if is_data && is_rate => Some(Io::ReadRate),
            "read" if is_data => Some(Io::ReadData),
            "write" if title.contains("req") => Some(Io::WriteRequests),
            "write" if is_data && is_rate => Some(Io::WriteRate),
            "write" if is_data => Some(Io::WriteData),
            _ => None,
        }
    };
    ruler.columns.iter().map(meaning).collect()
}

/// The cells of a row by what they hold.
struct Cells<'a> {
    row: &'a Row,
    columns: &'a [Option<Io>],
    /// Unit of an average that says none, us.
    us_avg: f64,
}

impl Cells<'_> {
    fn text(&self, wanted: Io) -> Option<&str> {
        let i = self.columns.iter().position(|io| *io == Some(wanted))?;
        let cell = self.row.cells.get(i)?;
        (!cell.is_empty()).then_some(cell.as_str())
    }

    fn number(&self, wanted: Io) -> Option<Printed> {
        let suffix = match wanted {
            Io::ReadData | Io::ReadRate | Io::WriteData | Io::WriteRate => Suffix::Binary,
            _ => Suffix::Decimal,
        };
        number::suffixed(self.text(wanted)?, suffix)
    }

    /// The average wait.
    fn avg(&self) -> Option<Printed> {
        number::duration_us(self.text(Io::Avg)?, self.us_avg)
    }
}

/// What a table without a unit for its average counts in, us.
fn us_avg(ruler: &Ruler) -> f64 {
    let has_us = |column: &Column| column.title.contains("(us)");
    if ruler.columns.iter().any(has_us) { 1.0 } else { 1e3 }
}

/// `IOStat by Function`.
pub(super) fn by_function(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 3).iter() {
        reader.table(table, "a function's I/O");
        let columns = columns(&table.ruler);
        if columns.iter().all(Option::is_none) {
            let text = "the I/O by function has no titles of reads and writes: not read";
            reader.draft.note(part.heading.at, text);
        }
        for row in &table.rows {
            let name = full_name(row.cells[0].trim());
            let cells = Cells { row, columns: &columns, us_avg: us_avg(&table.ruler) };
            if !name.is_empty() {
                function(reader, &cells, name);
            }
        }
    }
}

/// `IOStat by Filetype`: the same I/O by another key, kept beside the record's rows.
pub(super) fn by_filetype(reader: &mut Reader<'_>, part: &Part<'_>) {
    for table in part.tables(1, 3).iter() {
        let columns = columns(&table.ruler);
        for row in &table.rows {
            let name = row.cells[0].trim().trim_end_matches(':').to_owned();
            let cells = Cells { row, columns: &columns, us_avg: 1e3 };
            if !name.is_empty() {
                rates(reader, &cells, &format!("file type {name}"), true);
            }
        }
    }
}

/// The function a name that may be cut stands for.
fn full_name(printed: &str) -> &str {
    let printed = printed.trim_end_matches(':');
    let mut longer = FUNCTIONS.iter().filter(|name| name.starts_with(printed));
    match (longer.next(), longer.next()) {
        (Some(name), None) if printed.len() >= 8 => name,
        _ => printed,
    }
}

/// What a table of I/O holds of one row beside the record's own columns: rates, and data where `with_data`.
fn rates(reader: &mut Reader<'_>, cells: &Cells<'_>, scope: &str, with_data: bool) {
    let columns = [
        (Io::ReadData, "read_bytes", with_data),
        (Io::ReadRequests, "read_requests_per_s", true),
        (Io::ReadRate, "read_bytes_per_s", true),
        (Io::WriteData, "written_bytes", with_data),
        (Io::WriteRequests, "write_requests_per_s", true),
        (Io::WriteRate, "write_bytes_per_s", true),
    ];
    for (io, key, is_wanted) in columns {
        let Some(printed) = cells.number(io).filter(|_| is_wanted) else {
            continue;
        };
        let at = cells.row.at;
        let printed = reader.whole_unit(at, cells, io, scope, printed);
        let reading = Reading::new(at, format!("iostat_{key}"), printed).scope(scope);
        reader.draft.alone(reading);
    }
}

/// A count of waits: exact where it has no suffix.
fn waits(cells: &Cells<'_>) -> Option<Printed> {
    let text = cells.text(Io::Waits)?;
    number::count(text)
}

fn function(reader: &mut Reader<'_>, cells: &Cells<'_>, name: &str) {
    rates(reader, cells, name, name == "TOTAL");
    let at = cells.row.at;
    let waits = waits(cells).map(|printed| reader.whole_unit(at, cells, Io::Waits, name, printed));
    if let Some(avg) = cells.avg() {
        let reading = Reading::new(at, "iostat_wait_us_avg", avg).scope(name);
        reader.draft.alone(reading);
    }
    if name == "TOTAL" {
        if let Some(waits) = waits {
            let reading = Reading::new(at, "iostat_waits_count", waits).scope(name);
            reader.draft.alone(reading);
        }
        return;
    }
    let data = [Io::ReadData, Io::WriteData].map(|io| {
        let printed = cells.number(io)?;
        Some(reader.whole_unit(at, cells, io, name, printed))
    });
    let draft = &mut *reader.draft;
    let new = || IoRow { function: name.to_owned(), source: "sysstat".to_owned(), ..IoRow::default() };
    let rows = &mut draft.record.instance.io_functions;
    let Some(i) = super::row_of(rows, |row| row.function == name, new) else {
        return;
    };
    let reading = |key: &str, printed: Printed| Reading::new(at, format!("iostat_{key}"), printed).scope(name);
    let [read, written] = data;
    if let Some(data) = read {
        put!(draft, reading("read_bytes", data), instance.io_functions[i].read_bytes);
    }
    if let Some(data) = written {
        put!(draft, reading("written_bytes", data), instance.io_functions[i].write_bytes);
    }
    if let Some(waits) = waits {
        put!(draft, reading("waits_count", waits), instance.io_functions[i].waits_count);
    }
}

/// Letters a column may have had no room for, and what each multiplies by.
const DROPPED: [(&str, f64); 4] = [("K", 1.0), ("M", 2.0), ("G", 3.0), ("T", 4.0)];

impl Reader<'_> {
    /// A figure whose suffix Oracle left out because the column was full: `551.588` for 551.588M, `1991.` for 1991K.
    /// The same row's data over the elapsed time, or its rate, decides which it was; else the figure is n/a.
    fn whole_unit(&mut self, at: At, cells: &Cells<'_>, io: Io, scope: &str, printed: Printed) -> Printed {
        let is_data = !matches!(io, Io::Waits | Io::ReadRequests | Io::WriteRequests);
        let text = printed.text.clone();
        let has_letter = text.ends_with(|c: char| c.is_ascii_alphabetic());
        let is_cut = if is_data {
            !has_letter && printed.number().is_some_and(|number| number != 0.0)
        } else {
            text.ends_with('.')
        };
        if self.is_assay || !is_cut {
            return printed;
        }
        let base: f64 = if is_data { 1024.0 } else { 1000.0 };
        let choices = DROPPED.iter().filter(|(letter, _)| !is_data || *letter != "K");
        let fitting: Vec<(&str, f64)> = choices
            .map(|(letter, power)| (*letter, base.powf(*power)))
            .filter(|(_, factor)| self.fits(cells, io, &printed.clone().scaled(*factor)))
            .collect();
        let what = format!("{} of {scope}: {text}", cells.title(io));
        match fitting.as_slice() {
            [(letter, factor)] => {
                self.draft.note(
                    at,
                    format!(
                        "{what} lost its unit to the width of the column; the row's other figures show that it is \
                         {letter}"
                    ),
                );
                printed.scaled(*factor)
            }
            _ => {
                let why = "is n/a: the unit was cut off, and no other figure of the row shows it";
                self.draft.note(at, format!("{what} {why}"));
                Printed::na(NO_UNIT, &text)
            }
        }
    }

    /// Whether a figure agrees with the one of its row that says the same otherwise.
    fn fits(&self, cells: &Cells<'_>, io: Io, printed: &Printed) -> bool {
        let partner = match io {
            Io::ReadRate => Io::ReadData,
            Io::WriteRate => Io::WriteData,
            Io::ReadData => Io::ReadRate,
            Io::WriteData => Io::WriteRate,
            _ => return false,
        };
        let elapsed = self.elapsed.as_ref().and_then(Reading::known);
        let other = cells.number(partner).filter(|other| other.text.ends_with(|c: char| c.is_ascii_alphabetic()));
        let (Some((elapsed, _)), Some(other), Some(value)) = (elapsed, other, printed.number()) else {
            return false;
        };
        let Some(known) = other.number() else {
            return false;
        };
        let is_rate = matches!(io, Io::ReadRate | Io::WriteRate);
        let (rate, total) = if is_rate { (value, known) } else { (known, value) };
        let (of_rate, of_total) =
            if is_rate { (printed.rounding, other.rounding) } else { (other.rounding, printed.rounding) };
        // Oracle cuts these figures as well as it rounds them; a unit more or less is 1,000 times.
        (rate * elapsed - total).abs() <= 2.0 * (of_rate * elapsed + of_total) + 0.05 * total
    }
}

/// Why a figure is n/a whose unit the column had no room for.
const NO_UNIT: &str = "its unit did not fit the column";

impl Cells<'_> {
    fn title(&self, io: Io) -> &'static str {
        match io {
            Io::ReadData => "data read",
            Io::ReadRequests => "read requests per second",
            Io::ReadRate => "data read per second",
            Io::WriteData => "data written",
            Io::WriteRequests => "write requests per second",
            Io::WriteRate => "data written per second",
            Io::Waits => "waits",
            Io::Avg => "average wait",
        }
    }
}
