//! IO profile and the three IOStat tables.

use super::page::{Column, Page, left, number, right};
use assay_measure::record::{Figure, IoRow, Record};
use assay_measure::units::{count_suffix, fixed, size_suffix};
use std::collections::BTreeMap;

pub(super) fn profile(page: &mut Page, record: &Record) {
    const PROFILE: [Column; 4] = [
        left("IO Profile", 27),
        right("Read+Write/Second", 18),
        right("Read/Second", 16),
        right("Write/Second", 16),
    ];
    page.line("");
    page.columns(&PROFILE);
    for row in &record.io_profile {
        page.row(
            &PROFILE,
            &[
                format!("{:>27}", format!("{}:", row.name)),
                number(&row.read_write_per_s, 1),
                number(&row.read_per_s, 1),
                number(&row.write_per_s, 1),
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
    left(" Source", 9),
];

pub(super) fn by_function(page: &mut Page, record: &Record) {
    table(page, record, "IOStat by Function", |row| {
        row.function.clone()
    });
}

pub(super) fn by_filetype(page: &mut Page, record: &Record) {
    table(page, record, "IOStat by Filetype", |row| {
        row.file_type.clone()
    });
}

pub(super) fn by_both(page: &mut Page, record: &Record) {
    table(page, record, "IOStat by Function/Filetype", |row| {
        format!("{} / {}", row.function, row.file_type)
    });
}

pub(super) fn by_path(page: &mut Page, record: &Record) {
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
    if record.paths.is_empty() {
        page.line("n/a (no I/O, or not the target's to count)");
        return;
    }
    page.line(
        "Requests as they completed (layer syscall); beside them what the disk below did, whoever asked (layer device). MB is 2^20 bytes.",
    );
    page.columns(&PATHS);
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    let rate = |figure: &Figure, factor: f64| {
        let figure = figure.scaled(factor).per(elapsed, "no measured window");
        number(&figure, 1)
    };
    for row in &record.paths {
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

fn add(sum: &mut IoRow, row: &IoRow) {
    sum.small_read_requests_count += row.small_read_requests_count;
    sum.large_read_requests_count += row.large_read_requests_count;
    sum.read_bytes += row.read_bytes;
    sum.small_write_requests_count += row.small_write_requests_count;
    sum.large_write_requests_count += row.large_write_requests_count;
    sum.write_bytes += row.write_bytes;
    sum.waits_count += row.waits_count;
    sum.wait_us = match sum.wait_us.value() {
        Some(_) => sum.wait_us.plus(&row.wait_us),
        None => row.wait_us.clone(),
    };
}

fn table(page: &mut Page, record: &Record, title: &str, key: fn(&IoRow) -> String) {
    page.heading(title);
    if record.io_functions.is_empty() {
        page.line("n/a (no I/O)");
        return;
    }
    page.columns(&IOSTAT);
    let mut sums: BTreeMap<String, IoRow> = BTreeMap::new();
    let mut total = IoRow::default();
    for row in &record.io_functions {
        add(sums.entry(key(row)).or_default(), row);
        add(&mut total, row);
    }
    let mut rows: Vec<(String, IoRow)> = sums.into_iter().collect();
    rows.sort_by_key(|(_, row)| std::cmp::Reverse(row.read_bytes + row.write_bytes));
    rows.push(("TOTAL".to_owned(), total));
    let elapsed = record.interval.elapsed_s.value().unwrap_or(0.0);
    for (name, row) in rows {
        let requests = |n: u64| number(&Figure::Count(n).per(elapsed, "no measured window"), 1);
        let data = |n: u64| match elapsed > 0.0 {
            true => size_suffix((n as f64 / elapsed).round() as u64),
            false => "n/a".to_owned(),
        };
        let average = match (row.waits_count, row.wait_us.value()) {
            (waits @ 1.., Some(us)) => fixed(us / 1e3 / waits as f64, 3),
            _ => "n/a".to_owned(),
        };
        page.row(
            &IOSTAT,
            &[
                name,
                size_suffix(row.read_bytes),
                requests(row.read_requests()),
                data(row.read_bytes),
                size_suffix(row.write_bytes),
                requests(row.write_requests()),
                data(row.write_bytes),
                count_suffix(row.waits_count),
                average,
                " sysstat".to_owned(),
            ],
        );
    }
}
