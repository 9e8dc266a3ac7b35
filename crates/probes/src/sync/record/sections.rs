//! The report of a durable-write curve.

use super::info::{SyncInfo, SyncStep};
use assay_measure::record::{Figure, Record};
use assay_measure::section::common;
use assay_measure::section::{Cell, Column, Sections, left, number_or_reason, right};
use assay_measure::units::{size, thousands};
use std::borrow::Cow;

/// The whole report.
pub(super) fn render(record: &Record, info: &SyncInfo) -> Sections {
    let mut page = Sections::default();
    common::opening(&mut page, record, "DURABLE WRITE", &info.path);
    page.wrapped(
        "",
        &format!(
            "Layer {}: each figure is the time of blocking calls, from the start of the write until the call that \
             made it durable returns. {}, {} preallocated and written with zeroes; removed. n/a (reason): the figure \
             cannot be known.",
            info.layer,
            if info.direct { "Direct I/O" } else { "Through the page cache (direct I/O was refused)" },
            size(info.file_bytes)
        ),
    );
    common::warnings(&mut page, record);
    common::advice(&mut page, record);
    flush(&mut page, info);
    safety(&mut page, info);
    curve(&mut page, info, "preallocated");
    curve(&mut page, info, "new");
    steps(&mut page, info, "sizes", "Sizes (one stream, write + fdatasync, preallocated)");
    histogram(&mut page, info);
    steps(&mut page, info, "", "Every Step");
    facts(&mut page, record);
    page
}

fn flush(page: &mut Sections, info: &SyncInfo) {
    page.heading("F0: One 4 KiB Overwrite Made Durable, One Stream");
    page.line("flush: made durable by fdatasync; unsynced: the same write without it.");
    page.rows(info.steps.iter().filter(|step| ["flush", "unsynced"].contains(&step.part.as_str())));
    page.line(&format!(
        "Durable over unflushed, medians: {}.   A commit delay is useless above 2 / F0 = {} commits/s.",
        number_or_reason(&info.sync_over_unsynced_ratio, 2),
        number_or_reason(&info.commit_delay_limit_per_s, 0)
    ));
}

fn safety(page: &mut Sections, info: &SyncInfo) {
    page.heading("What Each Level of Safety Costs (commits per second, one log unless said otherwise)");
    let streams = info.safety.iter().map(|row| row.many_streams_count).max();
    page.line(&format!(
        "cost: loss of commits per second against level none. Every Step has n, interval and tails of each cell. \
         Many: {} streams.",
        streams.unwrap_or(0)
    ));
    page.rows(&info.safety);
}

/// Rates by method and streams.
fn curve(page: &mut Sections, info: &SyncInfo, file: &str) {
    let rows: Vec<&SyncStep> = info.steps.iter().filter(|step| step.part == "curve" && step.file == file).collect();
    let title = match file {
        "new" => "Durable 4 KiB Writes per Second by Parallel Streams, New File That Grows",
        _ => "Durable 4 KiB Writes per Second by Parallel Streams, Preallocated File",
    };
    if rows.is_empty() {
        page.missing(title, "the probe was stopped before");
        return;
    }
    page.heading(title);
    let mut streams: Vec<u64> = rows.iter().map(|step| step.streams_count).collect();
    streams.sort_unstable();
    streams.dedup();
    let mut methods: Vec<&str> = Vec::new();
    for row in &rows {
        if !methods.contains(&row.method.as_str()) {
            methods.push(&row.method);
        }
    }
    let mut columns = vec![left("Streams", 20)];
    columns.extend(streams.iter().map(|n| Column { title: Cow::Owned(thousands(*n)), ..right("", 12) }));
    page.columns(&columns);
    let mut row = |lead: &str, method: &str, figure: &dyn Fn(&SyncStep) -> Figure| {
        let of = |n: &u64| {
            let mut rows = rows.iter();
            rows.find(|row| row.method == method && row.streams_count == *n)
                .map_or_else(|| "n/a".into(), |row| Cell::figure(&figure(row), 0))
        };
        let mut cells = vec![Cell::from(lead)];
        cells.extend(streams.iter().map(of));
        page.row(&columns, &cells);
    };
    for method in methods {
        row(method, method, &|row| row.per_s.clone());
        row("  p99 us", method, &|row| row.latency.us_p99.clone());
    }
}

/// Those of one part, or all.
fn steps(page: &mut Sections, info: &SyncInfo, part: &str, title: &str) {
    page.heading(title);
    page.line("n: writes; s: length of the step; +-%: half the 95 % confidence interval of the rate, from its tenths.");
    page.rows(info.steps.iter().filter(|step| part.is_empty() || step.part == part));
}

/// F0 by powers of two of a microsecond.
fn histogram(page: &mut Sections, info: &SyncInfo) {
    let Some(step) = info.steps.iter().find(|step| step.part == "flush") else {
        return;
    };
    page.heading("F0 Histogram");
    page.histogram(&step.latency.hist_ns, right("Writes", 12));
}

fn facts(page: &mut Sections, record: &Record) {
    common::facts(page, "Place and Device", &record.plan.engine_facts);
    common::facts(page, "Host", &record.host.facts);
}
