//! The report of a durable-write curve.

use super::header;
use super::page::{Column, Page, left, number, number_or_reason, right};
use assay_measure::record::{Figure, Record, SyncInfo, SyncStep};
use assay_measure::units::{size, thousands};

/// The whole report.
pub(super) fn render(record: &Record, info: &SyncInfo) -> String {
    let mut page = Page::default();
    let run = &record.run;
    let label = header::label(record);
    page.line(&format!(
        "ASSAY DURABLE WRITE REPORT for run {}{label}: {}",
        run.id, info.path
    ));
    page.line("");
    page.line(&format!(
        "assay {}, started {}, {} s in all. {}",
        run.version,
        run.started,
        number(&record.interval.elapsed_s, 1),
        header::verdict(record)
    ));
    page.wrapped(
        "",
        &format!(
            "Layer {}: each figure is the time of blocking calls, from the start of the write to the return of what made it durable. {}, {} preallocated and written with zeroes; removed. \
             n/a (reason) is a figure that cannot be known.",
            info.layer,
            if info.direct { "Direct I/O" } else { "Through the page cache (direct I/O was refused)" },
            size(info.file_bytes)
        ),
    );
    header::warnings(&mut page, record);
    header::advice(&mut page, record);
    flush(&mut page, info);
    safety(&mut page, info);
    curve(&mut page, info, "preallocated");
    curve(&mut page, info, "new");
    steps(
        &mut page,
        info,
        "sizes",
        "Sizes (one stream, write + fdatasync, preallocated)",
    );
    histogram(&mut page, info);
    steps(&mut page, info, "", "Every Step");
    facts(&mut page, record);
    page.line("");
    page.line("End of Report");
    page.finish()
}

fn flush(page: &mut Page, info: &SyncInfo) {
    page.heading("F0: One 4 KiB Overwrite Made Durable, One Stream");
    const TABLE: [Column; 9] = [
        left("", 20),
        right("n", 11),
        right("s", 8),
        right("p50 us", 11),
        right("p90 us", 11),
        right("p99 us", 11),
        right("p99.9 us", 11),
        right("max us", 12),
        right("per s", 12),
    ];
    page.columns(&TABLE);
    for (part, name) in [
        ("flush", "durable (fdatasync)"),
        ("unsynced", "not flushed"),
    ] {
        let Some(step) = info.steps.iter().find(|step| step.part == part) else {
            page.line(&format!("{name:<20} n/a (the probe was stopped before)"));
            continue;
        };
        let latency = &step.latency;
        page.row(
            &TABLE,
            &[
                name.to_owned(),
                number(&step.writes_count, 0),
                number(&step.elapsed_s, 2),
                number(&latency.p50_us, 1),
                number(&latency.p90_us, 1),
                number(&latency.p99_us, 1),
                number(&latency.p999_us, 1),
                number(&latency.max_us, 1),
                number(&step.per_s, 0),
            ],
        );
    }
    page.line(&format!(
        "Durable over unflushed, medians: {}.   A commit delay is useless above 2 / F0 = {} commits/s.",
        number_or_reason(&info.sync_over_unsynced_ratio, 2),
        number_or_reason(&info.commit_delay_limit_per_s, 0)
    ));
}

fn safety(page: &mut Page, info: &SyncInfo) {
    page.heading(
        "What Each Level of Safety Costs (commits per second, one log unless said otherwise)",
    );
    let streams = info.safety.iter().map(|row| row.many_streams_count).max();
    page.line(&format!(
        "cost: commits per second lost against level none. n, interval and tails of each cell are under Every Step. Many: {} streams.",
        streams.unwrap_or(0)
    ));
    const TABLE: [Column; 9] = [
        left("Level", 15),
        right("1 stream/s", 12),
        right("cost %", 8),
        right("p50 us", 10),
        right("many/s", 12),
        right("cost %", 8),
        right("p99 us", 11),
        right("per flush", 10),
        left("Meaning", 60),
    ];
    page.columns(&TABLE);
    for row in &info.safety {
        page.row(
            &TABLE,
            &[
                row.level.clone(),
                number(&row.single_per_s, 0),
                number(&row.single_cost_pct, 1),
                number(&row.single_p50_us, 1),
                number(&row.many_per_s, 0),
                number(&row.many_cost_pct, 1),
                number(&row.many_p99_us, 1),
                number(&row.many_commits_per_flush, 2),
                row.meaning.clone(),
            ],
        );
    }
}

/// Rates by method and streams.
fn curve(page: &mut Page, info: &SyncInfo, file: &str) {
    let rows: Vec<&SyncStep> = info
        .steps
        .iter()
        .filter(|step| step.part == "curve" && step.file == file)
        .collect();
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
    let line = |lead: &str, cells: Vec<String>| {
        let cells: String = cells.iter().map(|cell| format!("{cell:>12}")).collect();
        format!("{lead:<20}{cells}")
    };
    page.line(&line(
        "Streams",
        streams.iter().map(|n| thousands(*n)).collect(),
    ));
    page.line(&line(
        "-------------------",
        vec!["-".repeat(11); streams.len()],
    ));
    let cells = |method: &str, cell: &dyn Fn(&SyncStep) -> String| -> Vec<String> {
        let of = |n: &u64| {
            let mut rows = rows.iter();
            rows.find(|row| row.method == method && row.streams_count == *n)
                .map_or_else(|| "n/a".to_owned(), |row| cell(row))
        };
        streams.iter().map(of).collect()
    };
    for method in methods {
        page.line(&line(method, cells(method, &|row| number(&row.per_s, 0))));
        page.line(&line(
            "  p99 us",
            cells(method, &|row| number(&row.latency.p99_us, 0)),
        ));
    }
}

fn steps(page: &mut Page, info: &SyncInfo, part: &str, title: &str) {
    page.heading(title);
    page.line("n: writes; s: length of the step; +-%: half the 95 % confidence interval of the rate, from its tenths.");
    const TABLE: [Column; 14] = [
        left("Part", 9),
        left("Method", 19),
        left("File", 14),
        right("Streams", 8),
        right("Bytes", 8),
        right("n", 11),
        right("s", 7),
        right("per s", 12),
        right("+-%", 7),
        right("p50 us", 11),
        right("p90 us", 11),
        right("p99 us", 11),
        right("p99.9 us", 11),
        right("max us", 12),
    ];
    page.columns(&TABLE);
    for step in &info.steps {
        if !part.is_empty() && step.part != part {
            continue;
        }
        let latency = &step.latency;
        page.row(
            &TABLE,
            &[
                step.part.clone(),
                step.method.clone(),
                step.file.clone(),
                step.streams_count.to_string(),
                step.bytes.to_string(),
                number(&step.writes_count, 0),
                number(&step.elapsed_s, 2),
                number(&step.per_s, 0),
                number(&step.per_s_ci95_pct, 1),
                number(&latency.p50_us, 1),
                number(&latency.p90_us, 1),
                number(&latency.p99_us, 1),
                number(&latency.p999_us, 1),
                number(&latency.max_us, 1),
            ],
        );
        if let (Figure::Na(why), true) = (&step.writes_count, !part.is_empty()) {
            page.wrapped("          ", &format!("n/a ({why})"));
        }
    }
}

/// F0 by powers of two of a microsecond.
fn histogram(page: &mut Page, info: &SyncInfo) {
    let Some(step) = info.steps.iter().find(|step| step.part == "flush") else {
        return;
    };
    page.heading("F0 Histogram");
    let buckets = step.latency.hist_ns.pow2_us();
    let most = buckets.iter().copied().max().unwrap_or(0).max(1);
    let all = step.latency.hist_ns.count().max(1);
    for (index, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        // Bucket i counts 2^(i-1) <= us < 2^i.
        let below = thousands(1 << index);
        let bar = "#".repeat((count * 40).div_ceil(most) as usize);
        page.line(&format!(
            "< {below:>11} us {:>11} {:>7.3} %  {bar}",
            thousands(*count),
            100.0 * *count as f64 / all as f64
        ));
    }
}

fn facts(page: &mut Page, record: &Record) {
    page.heading("Place and Device");
    let facts = &record.plan.engine_facts;
    let pairs: Vec<(String, String)> = facts
        .iter()
        .map(|fact| (fact.name.clone(), fact.value.clone()))
        .collect();
    page.pairs(&pairs);
    page.heading("Host");
    let facts = &record.host.facts;
    let pairs: Vec<(String, String)> = facts
        .iter()
        .map(|fact| (fact.name.clone(), fact.value.clone()))
        .collect();
    page.pairs(&pairs);
}
