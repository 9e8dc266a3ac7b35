//! IO profile and the three IOStat tables.

use assay_measure::record::{Figure, IoRow, Record};
use assay_measure::section::{Cell, Column, Sections, left, number, right};
use assay_measure::units::{count_suffix, fixed, size_suffix};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn profile(page: &mut Sections, record: &Record) {
    const PROFILE: [Column; 4] =
        [left("IO Profile", 27), right("Read+Write/Second", 18), right("Read/Second", 16), right("Write/Second", 16)];
    page.unheaded("IO Profile");
    page.columns(&PROFILE);
    for row in &record.instance.io_profile {
        page.row(
            &PROFILE,
            &[
                format!("{:>27}", format!("{}:", row.name)).into(),
                Cell::figure(&row.read_write_per_s, 1),
                Cell::figure(&row.read_per_s, 1),
                Cell::figure(&row.write_per_s, 1),
            ],
        );
    }
}

const IOSTAT: [Column; 10] = [
    left("", 32),
    right("Read Data", 11),
    right("Req/s", 10),
    right("Data/s", 10),
    right("Write Data", 12),
    right("Req/s", 10),
    right("Data/s", 10),
    right("Waits", 10),
    right("Avg (ms)", 10),
    left(" Source", 20),
];

pub(super) fn by_function(page: &mut Sections, record: &Record) {
    table(page, record, "IOStat by Function", |row| row.function.clone());
}

pub(super) fn by_filetype(page: &mut Sections, record: &Record) {
    table(page, record, "IOStat by Filetype", |row| row.file_type.clone());
}

pub(super) fn by_both(page: &mut Sections, record: &Record) {
    table(page, record, "IOStat by Function/Filetype", |row| format!("{} / {}", row.function, row.file_type));
}

pub(super) fn by_path(page: &mut Sections, record: &Record) {
    const PATHS: [Column; 10] = [
        left("Path", 40),
        left(" File Type", 13),
        right("Reads/s", 11),
        right("Read MB/s", 11),
        right("Writes/s", 11),
        right("Write MB/s", 11),
        left(" Device", 11),
        right("Reads/s", 11),
        right("Writes/s", 11),
        left(" Source", 9),
    ];
    page.heading("I/O by Path");
    if record.instance.paths.is_empty() {
        page.line("n/a (no I/O, or the target does not count it)");
        return;
    }
    page.wrapped(
        "",
        "Completed requests (layer syscall); beside them all requests of the disk below, from all processes (layer \
         device). MB is 2^20 bytes.",
    );
    page.columns(&PATHS);
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let rate = |figure: &Figure, factor: f64| {
        let figure = figure.scaled(factor).per(elapsed, "no measured window");
        number(&figure, 1)
    };
    for row in &record.instance.paths {
        let device = match row.device.as_str() {
            "" => "n/a",
            name => name,
        };
        page.row(
            &PATHS,
            &[
                row.path.clone(),
                format!(" {}", row.file_type),
                rate(&Figure::Count(row.read_requests_count), 1.0),
                rate(&Figure::Count(row.read_bytes), 1.0 / MIB),
                rate(&Figure::Count(row.write_requests_count), 1.0),
                rate(&Figure::Count(row.write_bytes), 1.0 / MIB),
                format!(" {device}"),
                rate(&row.device_reads_count, 1.0),
                rate(&row.device_writes_count, 1.0),
                " ring".to_owned(),
            ],
        );
    }
}

const MIB: f64 = 1_048_576.0;

/// Adds a row; what is not known of a part is not known of the sum.
fn add(sum: &mut Option<IoRow>, row: &IoRow) {
    let Some(sum) = sum else {
        *sum = Some(row.clone());
        return;
    };
    for (mine, more) in [
        (&mut sum.read_requests_count, &row.read_requests_count),
        (&mut sum.read_bytes, &row.read_bytes),
        (&mut sum.write_requests_count, &row.write_requests_count),
        (&mut sum.write_bytes, &row.write_bytes),
        (&mut sum.waits_count, &row.waits_count),
        (&mut sum.wait_us, &row.wait_us),
    ] {
        *mine = mine.plus(more);
    }
    if sum.source != row.source {
        sum.source = "several".to_owned();
    }
}

fn table(page: &mut Sections, record: &Record, title: &str, key: fn(&IoRow) -> String) {
    page.heading(title);
    if record.instance.io_functions.is_empty() {
        page.line("n/a (no I/O)");
        return;
    }
    page.columns(&IOSTAT);
    let mut sums: BTreeMap<String, Option<IoRow>> = BTreeMap::new();
    let mut total = None;
    for row in &record.instance.io_functions {
        add(sums.entry(key(row)).or_default(), row);
        add(&mut total, row);
    }
    let sums = sums.into_iter().filter_map(|(name, row)| Some((name, row?)));
    let mut rows: Vec<(String, IoRow)> = sums.collect();
    let moved = |row: &IoRow| {
        let bytes = |figure: &Figure| figure.value().unwrap_or(0.0);
        bytes(&row.read_bytes) + bytes(&row.write_bytes)
    };
    rows.sort_by(|(_, a), (_, b)| moved(b).total_cmp(&moved(a)));
    rows.extend(total.map(|total| ("TOTAL".to_owned(), total)));
    for (name, row) in rows {
        page.row(&IOSTAT, &cells(record, name, &row));
    }
    reasons(page, record);
}

fn cells(record: &Record, name: String, row: &IoRow) -> [String; 10] {
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let requests = |figure: &Figure| number(&figure.per(elapsed, "no measured window"), 1);
    let bytes = |figure: &Figure| match figure.value() {
        Some(bytes) => size_suffix(bytes.round() as u64),
        None => "n/a".to_owned(),
    };
    let data = |figure: &Figure| bytes(&figure.per(elapsed, "no measured window"));
    let average = match (row.waits_count.value(), row.wait_us.value()) {
        (Some(waits), Some(us)) if waits > 0.0 => fixed(us / 1e3 / waits, 3),
        _ => "n/a".to_owned(),
    };
    [
        name,
        bytes(&row.read_bytes),
        requests(&row.read_requests_count),
        data(&row.read_bytes),
        bytes(&row.write_bytes),
        requests(&row.write_requests_count),
        data(&row.write_bytes),
        match row.waits_count.value() {
            Some(waits) => count_suffix(waits as u64),
            None => "n/a".to_owned(),
        },
        average,
        format!(" {}", row.source),
    ]
}

/// Why columns of some functions have no figure, each reason once.
fn reasons(page: &mut Sections, record: &Record) {
    let mut said: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for row in &record.instance.io_functions {
        for (column, figure) in [
            ("read requests", &row.read_requests_count),
            ("bytes read", &row.read_bytes),
            ("write requests", &row.write_requests_count),
            ("bytes written", &row.write_bytes),
            ("waits", &row.waits_count),
            ("time of waits", &row.wait_us),
        ] {
            if let Some(reason) = figure.reason() {
                let functions = said.entry(format!("{column} ({reason})")).or_default();
                functions.insert(&row.function);
            }
        }
    }
    for (column, functions) in said {
        let functions = functions.into_iter().collect::<Vec<_>>().join(", ");
        page.wrapped("n/a: ", &format!("{column} of {functions}"));
    }
}
