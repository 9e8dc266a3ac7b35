//! I/O profile and IOStat tables.

use super::Reader;
use super::table::{Row, is_ruler, tables};
use crate::draft::Reading;
use crate::number::{self, Printed, Suffix};
use crate::text::Line;
use assay_measure::plain::slug;
use assay_measure::record::{IoProfileRow, IoRow};

/// Full names of the functions whose names the tables cut.
const FUNCTIONS: [&str; 12] = [
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
    "Others",
];

/// `IO Profile    Read+Write/Second    Read/Second    Write/Second`.
pub(super) fn profile(reader: &mut Reader<'_>, _heading: &Line, lines: &[Line]) {
    for line in lines {
        if is_ruler(&line.text) || line.text.starts_with('~') {
            continue;
        }
        let Some((name, rest)) = line.text.split_once(':') else {
            continue;
        };
        let numbers: Vec<Printed> = rest
            .split_whitespace()
            .filter_map(number::measure)
            .collect();
        if numbers.len() != 3 {
            if !name.trim().is_empty() {
                reader.unread(line, "a row of the I/O profile");
            }
            continue;
        }
        profile_row(reader, line, name.trim(), numbers);
    }
}

fn profile_row(reader: &mut Reader<'_>, line: &Line, name: &str, numbers: Vec<Printed>) {
    let unit = match name {
        name if name.contains("(MB)") => "mib",
        name if name.contains("(blocks)") => "blocks",
        _ => "count",
    };
    let draft = &mut *reader.draft;
    let new = || IoProfileRow {
        name: name.to_owned(),
        unit: unit.to_owned(),
        ..IoProfileRow::default()
    };
    let rows = &mut draft.record.instance.io_profile;
    let Some(i) = super::row_of(rows, |row| row.name == name, new) else {
        return;
    };
    let mut numbers = numbers.into_iter();
    let stem = slug(name);
    let mut next = |column: &str| {
        let printed = numbers.next()?;
        let key = format!("io_profile_{stem}_{column}");
        Some(Reading::new(line.at, key, printed).name(name))
    };
    if let Some(reading) = next("read_write_per_s") {
        put!(draft, reading, instance.io_profile[i].read_write_per_s);
    }
    if let Some(reading) = next("read_per_s") {
        put!(draft, reading, instance.io_profile[i].read_per_s);
    }
    if let Some(reading) = next("write_per_s") {
        put!(draft, reading, instance.io_profile[i].write_per_s);
    }
}

/// `IOStat by Function`.
pub(super) fn by_function(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    for table in tables(heading, lines, 1, 3) {
        reader.table(&table, "a function's I/O");
        for row in &table.rows {
            let name = full_name(row.cells[0].trim());
            if !name.is_empty() {
                function(reader, row, name);
            }
        }
    }
}

/// `IOStat by Filetype`: the same I/O by another key, kept beside the record's rows.
pub(super) fn by_filetype(reader: &mut Reader<'_>, heading: &Line, lines: &[Line]) {
    for table in tables(heading, lines, 1, 3) {
        for row in &table.rows {
            let name = row.cells[0].trim().trim_end_matches(':').to_owned();
            if !name.is_empty() {
                rates(reader, row, &format!("file type {name}"), true);
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

fn cell(row: &Row, i: usize, suffix: Suffix) -> Option<Printed> {
    let cell = row.cells.get(i).filter(|cell| !cell.is_empty())?;
    number::suffixed(cell, suffix)
}

/// What a table of I/O holds of one row beside the record's own columns: rates, and data where `with_data`.
fn rates(reader: &mut Reader<'_>, row: &Row, scope: &str, with_data: bool) {
    let columns = [
        (1, "read_bytes", Suffix::Binary, with_data),
        (2, "read_requests_per_s", Suffix::Decimal, true),
        (3, "read_bytes_per_s", Suffix::Binary, true),
        (4, "written_bytes", Suffix::Binary, with_data),
        (5, "write_requests_per_s", Suffix::Decimal, true),
        (6, "write_bytes_per_s", Suffix::Binary, true),
    ];
    for (i, key, suffix, is_wanted) in columns {
        if let Some(printed) = cell(row, i, suffix).filter(|_| is_wanted) {
            let reading = Reading::new(row.at, format!("iostat_{key}"), printed).scope(scope);
            reader.draft.alone(reading);
        }
    }
}

fn function(reader: &mut Reader<'_>, row: &Row, name: &str) {
    rates(reader, row, name, name == "TOTAL");
    let waits = cell(row, 7, Suffix::Decimal).map(|printed| {
        match row.cells[7].ends_with(['K', 'M', 'G']) {
            true => printed,
            false => number::count(&printed.text.clone()).unwrap_or(printed),
        }
    });
    let avg = row.cells.get(8).filter(|cell| !cell.is_empty());
    if let Some(avg) = avg.and_then(|cell| number::duration_us(cell, 1e3)) {
        let reading = Reading::new(row.at, "iostat_wait_us_avg", avg).scope(name);
        reader.draft.alone(reading);
    }
    if name == "TOTAL" {
        if let Some(waits) = waits {
            let reading = Reading::new(row.at, "iostat_waits_count", waits).scope(name);
            reader.draft.alone(reading);
        }
        return;
    }
    let draft = &mut *reader.draft;
    let new = || IoRow {
        function: name.to_owned(),
        source: "sysstat".to_owned(),
        ..IoRow::default()
    };
    let rows = &mut draft.record.instance.io_functions;
    let Some(i) = super::row_of(rows, |row| row.function == name, new) else {
        return;
    };
    let reading = |key: &str, printed: Printed| {
        Reading::new(row.at, format!("iostat_{key}"), printed).scope(name)
    };
    if let Some(data) = cell(row, 1, Suffix::Binary) {
        put!(
            draft,
            reading("read_bytes", data),
            instance.io_functions[i].read_bytes
        );
    }
    if let Some(data) = cell(row, 4, Suffix::Binary) {
        put!(
            draft,
            reading("written_bytes", data),
            instance.io_functions[i].write_bytes
        );
    }
    if let Some(waits) = waits {
        put!(
            draft,
            reading("waits_count", waits),
            instance.io_functions[i].waits_count
        );
    }
}
