//! The report of a storage probe, from its record alone.

use super::goal;
use super::section::{notes, ring, seed, timing};
use crate::record::info::{StorageGroup, StorageInfo, StorageJob, StorageLatency};
use assay_measure::record::{Figure, Record};
use assay_measure::section::common as header;
use assay_measure::section::{Cell, Column, Sections, left, number, number_or_reason, right};
use assay_measure::units::{fixed, many, size, thousands};
use std::borrow::Cow;

/// The whole report.
pub(super) fn render(record: &Record, info: &StorageInfo) -> Sections {
    let mut page = Sections::default();
    let run = &record.run;
    page.title(&format!(
        "ASSAY STORAGE REPORT for run {}{}: {} job(s), {} clone(s)",
        run.id,
        header::label(record),
        info.jobs.len(),
        run.sessions
    ));
    page.line(&format!(
        "assay {}, started {}, {} s in all, seed {}. {}",
        run.version,
        run.started,
        number(&record.interval.elapsed_s, 1),
        run.seed,
        header::verdict(record)
    ));
    page.wrapped(
        "",
        &format!(
            "Layer {}: lat runs from the preparation of a request to the reaping of its completion (slat + clat); \
             response runs from the time when the request was due. \
             MB is 10^6 bytes, MiB 2^20. n/a (reason): the figure cannot be known; a percentile needs ten samples \
                 beyond it. I/O mode achieved: {}.",
            info.layer, info.io_mode_achieved
        ),
    );
    header::integrity(&mut page, record);
    header::warnings(&mut page, record);
    header::advice(&mut page, record);
    before(&mut page, info);
    rates(&mut page, info);
    latencies(&mut page, info);
    groups(&mut page, info);
    levels(&mut page, info);
    drivers(&mut page, info);
    devices(&mut page, info);
    for job in &info.jobs {
        histograms(&mut page, job);
    }
    seconds(&mut page, record);
    options(&mut page, info);
    header::identities(&mut page, record);
    header::parameters(&mut page, record);
    page
}

/// The sections that an imported result can fill.
pub(super) fn imported(page: &mut Sections, info: &StorageInfo) {
    rates(page, info);
    latencies(page, info);
    let has_seconds = |group: &StorageGroup| group.iops_total_per_s.samples_count > 0;
    if info.groups.iter().any(has_seconds) {
        groups(page, info);
    }
    if info.groups.len() > 1 {
        group_rates(page, info);
    }
    for job in &info.jobs {
        for way in job.ways.iter().filter(|way| !way.lat.hist_ns.is_empty()) {
            page.heading(&format!("Histogram of lat: {}, {}", job.name, way.way));
            page.histogram(&way.lat.hist_ns, right("Samples", 14));
        }
    }
    if info.jobs.iter().any(|job| !job.options.is_empty()) {
        options(page, info);
    }
}

/// A count that is never 0 if it is known.
fn counted(count: u64) -> String {
    match count {
        0 => "n/a".to_owned(),
        count => thousands(count),
    }
}

/// Group rates as the tool reported them.
fn group_rates(page: &mut Sections, info: &StorageInfo) {
    page.heading("Groups");
    const TABLE: [Column; 5] =
        [left("Group", 6), left("Way", 6), right("IOPS", 12), right("MiB/s", 11), left("  Jobs", 30)];
    page.columns(&TABLE);
    for group in &info.groups {
        for way in &group.ways {
            page.row(
                &TABLE,
                &[
                    group.group.to_string().into(),
                    way.way.clone().into(),
                    Cell::figure(&way.ios_per_s, 0),
                    Cell::figure(&way.mib_per_s, 1),
                    format!("  {}", group.jobs.join(",")).into(),
                ],
            );
        }
    }
}

/// Preconditioning.
fn before(page: &mut Sections, info: &StorageInfo) {
    if info.precondition.is_empty() {
        return;
    }
    page.heading("Before the Jobs");
    let rates = |figures: &[Figure]| {
        let cells: Vec<String> = figures.iter().map(|figure| number(figure, 0)).collect();
        cells.join(" ")
    };
    for before in &info.precondition {
        page.wrapped(
            &format!("{}: ", before.job),
            &format!(
                "preconditioning ({}) of {} in {} s, steady state {}: filled {} at {} MiB/s; random writes of \
                 {} in rounds of {} s: {} per second; the last {} rounds differ by {} %, slope {} %.",
                before.method,
                size(before.written_over_bytes),
                number(&before.elapsed_s, 1),
                if before.attained { "reached" } else { "not reached" },
                many(before.fills_count.into(), "time"),
                rates(&before.fill_mib_per_s),
                size(before.block_bytes),
                number(&before.round_s, 1),
                if before.round_ios_per_s.is_empty() { "none".to_owned() } else { rates(&before.round_ios_per_s) },
                before.window_rounds_count,
                number_or_reason(&before.excursion_pct, 1),
                number_or_reason(&before.slope_pct, 1)
            ),
        );
    }
}

fn rates(page: &mut Sections, info: &StorageInfo) {
    page.heading("Jobs");
    const TABLE: [Column; 12] = [
        left("Job", 16),
        right("Group", 6),
        left(" Mode", 11),
        left("Way", 6),
        left("Block", 16),
        left("Engine", 9),
        right("Depth", 6),
        right("Clones", 7),
        right("I/Os", 13),
        right("IOPS", 11),
        right("MB/s", 10),
        right("MiB/s", 10),
    ];
    page.columns(&TABLE);
    for job in &info.jobs {
        if job.ways.is_empty() {
            page.line(&format!("{:<16} n/a (no I/O ended)", job.name));
        }
        for way in &job.ways {
            page.row(
                &TABLE,
                &[
                    job.name.clone().into(),
                    job.group.to_string().into(),
                    format!(" {}", job.rw).into(),
                    way.way.clone().into(),
                    job.block_sizes.clone().into(),
                    job.ioengine.clone().into(),
                    counted(job.iodepth_count).into(),
                    counted(job.numjobs_count).into(),
                    counted(way.ios_count).into(),
                    Cell::figure(&way.ios_per_s, 0),
                    Cell::figure(&way.mb_per_s, 1),
                    Cell::figure(&way.mib_per_s, 1),
                ],
            );
        }
    }
}

fn latencies(page: &mut Sections, info: &StorageInfo) {
    page.heading("Latency (us)");
    const TABLE: [Column; 15] = [
        left("Job", 16),
        left("Way", 6),
        left("What", 9),
        right("n", 13),
        right("mean", 11),
        right("stddev", 11),
        right("min", 10),
        right("p50", 10),
        right("p90", 10),
        right("p95", 10),
        right("p99", 10),
        right("p99.9", 10),
        right("p99.99", 10),
        right("p99.999", 10),
        right("max", 12),
    ];
    page.columns(&TABLE);
    let row = |page: &mut Sections, job: &StorageJob, way: &str, what: &str, of: &StorageLatency| {
        let figures = [
            &of.us_avg,
            &of.us_stddev,
            &of.us_min,
            &of.us_p50,
            &of.us_p90,
            &of.us_p95,
            &of.us_p99,
            &of.us_p999,
            &of.us_p9999,
            &of.us_p99999,
            &of.us_max,
        ];
        let mut cells = vec![job.name.clone(), way.to_owned(), what.to_owned(), thousands(of.count)];
        cells.extend(figures.map(|figure| number(figure, 2)));
        page.row(&TABLE, &cells);
    };
    for job in &info.jobs {
        for way in &job.ways {
            let kinds = [("lat", &way.lat), ("clat", &way.clat), ("slat", &way.slat), ("response", &way.response)];
            for (what, of) in kinds {
                if of.count > 0 || what == "lat" {
                    row(page, job, &way.way, what, of);
                }
            }
        }
        if job.sync.count > 0 {
            row(page, job, "sync", "sync", &job.sync);
        }
    }
}

fn groups(page: &mut Sections, info: &StorageInfo) {
    page.heading("Groups over Time (whole seconds, all clones together)");
    const TABLE: [Column; 11] = [
        left("Group", 6),
        left("Jobs", 20),
        right("s", 7),
        right("IOPS mean", 12),
        right("sd", 10),
        right("var %", 7),
        right("min", 11),
        right("max", 11),
        right("MiB/s mean", 11),
        right("last/first", 11),
        right("device %", 9),
    ];
    page.columns(&TABLE);
    for group in &info.groups {
        let iops = &group.iops_total_per_s;
        page.row(
            &TABLE,
            &[
                group.group.to_string().into(),
                group.jobs.join(",").into(),
                iops.samples_count.to_string().into(),
                Cell::figure(&iops.mean, 0),
                Cell::figure(&iops.stddev, 0),
                Cell::figure(&iops.variation_ratio.scaled(100.0), 1),
                Cell::figure(&iops.min, 0),
                Cell::figure(&iops.max, 0),
                Cell::figure(&group.bw_total_mib_per_s.mean, 1),
                Cell::figure(&group.steadiness.last_over_first_ratio, 2),
                Cell::figure(&group.device_busy_pct, 1),
            ],
        );
    }
}

fn levels(page: &mut Sections, info: &StorageInfo) {
    page.heading("Levels");
    page.line(
        "change: against the previous level; chance: the highest probability of such a change in steady noise \
        of the same kind.",
    );
    const TABLE: [Column; 9] = [
        left("Group", 6),
        left("Of", 18),
        right("from s", 9),
        right("to s", 9),
        right("median", 13),
        right("MiB/s", 10),
        right("var %", 8),
        right("change %", 10),
        right("chance %", 10),
    ];
    page.columns(&TABLE);
    for group in &info.groups {
        if let Some(why) = &group.not_analysed {
            page.line(&format!("{:<6} {:<17} n/a ({why})", group.group, group.analysed));
        }
        for (at, level) in group.levels.iter().enumerate() {
            let change = at.checked_sub(1).and_then(|before| group.changes.get(before));
            let percent = |of: &dyn Fn(&crate::record::info::StorageChange) -> Figure| {
                change.map_or_else(Cell::default, |change| Cell::figure(&of(change), 1))
            };
            page.row(
                &TABLE,
                &[
                    group.group.to_string().into(),
                    group.analysed.clone().into(),
                    Cell::figure(&level.from_s, 0),
                    Cell::figure(&level.to_s, 0),
                    Cell::figure(&level.median, 0),
                    Cell::figure(&level.mib_per_s, 1),
                    Cell::figure(&level.variation_ratio.scaled(100.0), 1),
                    percent(&|change| {
                        let ratio = change.ratio.value();
                        ratio.map_or_else(Figure::default, |r| (100.0 * (r - 1.0)).into())
                    }),
                    percent(&|change| change.chance_ratio.scaled(100.0)),
                ],
            );
        }
        shape(page, group);
    }
}

fn shape(page: &mut Sections, group: &StorageGroup) {
    if let Some(drift) = group.drift_ratio.value() {
        page.line(&format!(
            "{:<6} drifts linearly by {} % from start to end: no levels.",
            group.group,
            fixed(100.0 * drift, 1)
        ));
    }
    if let Some(period) = group.stall_period_s.value() {
        page.line(&format!("{:<6} dips about every {} s.", group.group, fixed(period, 0)));
    }
}

fn drivers(page: &mut Sections, info: &StorageInfo) {
    page.heading("What the Load Cost, and How It Was Measured");
    const TABLE: [Column; 9] = [
        left("Job", 16),
        right("user us/IO", 11),
        right("sys us/IO", 11),
        right("CPU %", 8),
        right("busiest %", 10),
        right("entries/IO", 11),
        right("switches/IO", 12),
        right("in flight", 11),
        right("Little", 11),
    ];
    page.columns(&TABLE);
    for job in &info.jobs {
        let cpu = &job.cpu;
        page.row(
            &TABLE,
            &[
                job.name.clone().into(),
                Cell::figure(&cpu.user_us_per_io, 3),
                Cell::figure(&cpu.system_us_per_io, 3),
                Cell::figure(&cpu.thread_cpu_pct, 1),
                Cell::figure(&cpu.thread_cpu_max_pct, 1),
                Cell::figure(&cpu.kernel_entries_per_io, 3),
                Cell::figure(&cpu.context_switches_per_io, 3),
                Cell::figure(&job.in_flight_mean_count, 2),
                Cell::figure(&job.little_count, 2),
            ],
        );
    }
    page.line(&format!(
        "Whole process, including set-up and layout: {} us per I/O.",
        number_or_reason(&info.process_cpu_us_per_io, 3)
    ));
    for job in &info.jobs {
        let mut how = format!("{}; {}; region {}{}", timing(job), seed(job), size(job.region_bytes), ring(job));
        if let Some(search) = &job.search {
            how.push_str(&format!("; {}", goal::sentence(search)));
        }
        if let Some(steady) = &job.steady {
            how.push_str(&format!(
                "; steady state ({}, window {} s) {}",
                steady.criterion,
                steady.window_s,
                if steady.attained { "attained" } else { "not attained" }
            ));
        }
        if job.verified_ios_count > 0 {
            how.push_str(&format!("; {} blocks verified", thousands(job.verified_ios_count)));
        }
        page.wrapped(&format!("{}: ", job.name), &how);
    }
    for note in notes(info) {
        page.wrapped("note: ", &note);
    }
}

fn devices(page: &mut Sections, info: &StorageInfo) {
    const TITLE: &str = "Devices (whole run, I/O of all processes)";
    if info.disks.is_empty() {
        page.missing(TITLE, "the device below the files is unknown");
        return;
    }
    page.heading(TITLE);
    const TABLE: [Column; 11] = [
        left("Device", 10),
        right("reads", 12),
        right("MiB", 11),
        right("us each", 10),
        right("writes", 12),
        right("MiB", 11),
        right("us each", 10),
        right("flushes", 10),
        right("us each", 10),
        right("busy %", 8),
        right("queue", 8),
    ];
    page.columns(&TABLE);
    let mib = |bytes: u64| fixed(bytes as f64 / 1_048_576.0, 1);
    for disk in &info.disks {
        page.row(
            &TABLE,
            &[
                disk.name.clone().into(),
                thousands(disk.reads_count).into(),
                mib(disk.read_bytes).into(),
                Cell::figure(&disk.read_us_avg, 1),
                thousands(disk.writes_count).into(),
                mib(disk.write_bytes).into(),
                Cell::figure(&disk.write_us_avg, 1),
                thousands(disk.flushes_count).into(),
                Cell::figure(&disk.flush_us_avg, 1),
                Cell::figure(&disk.busy_pct, 1),
                Cell::figure(&disk.queue_mean_count, 2),
            ],
        );
    }
    let beside = &info.devices;
    page.line(&format!(
        "The jobs read {} and wrote {}; device over job: read {}, write {}.",
        size(beside.job_read_bytes),
        size(beside.job_write_bytes),
        number_or_reason(&beside.read_ratio, 3),
        number_or_reason(&beside.write_ratio, 3)
    ));
}

/// Distribution of lat by powers of two of a microsecond.
fn histograms(page: &mut Sections, job: &StorageJob) {
    for way in &job.ways {
        if way.lat.count > 0 {
            page.heading(&format!("Histogram of lat: {}, {}", job.name, way.way));
            page.histogram(&way.lat.hist_ns, right("Samples", 14));
        }
    }
}

/// The seconds; long runs are thinned for reading, the CSV output has them all.
fn seconds(page: &mut Sections, record: &Record) {
    const MOST: usize = 60;
    let series = &record.series;
    let title = "Per Second";
    if series.t_s.is_empty() {
        page.missing(title, "no second was kept");
        return;
    }
    page.heading(title);
    let step = series.t_s.len().div_ceil(MOST);
    if step > 1 {
        page.line(&format!("every {step} s; `--format csv` has every second"));
    }
    let names: Vec<&String> = series
        .metrics
        .keys()
        .filter(|name| !name.contains("_p50_") && !name.ends_with("_count_per_s") || name.ends_with("ios_count_per_s"))
        .filter(|name| name.as_str() != "group")
        .collect();
    let mut columns = vec![right("group", 6), right("t_s", 9)];
    columns.extend(
        names.iter().map(|name| Column { title: Cow::Owned((*name).clone()), ..right("", name.len().max(9) + 2) }),
    );
    page.columns(&columns);
    for row in (0..series.t_s.len()).step_by(step) {
        let figure = |name: &str| {
            let column = series.metrics.get(name).and_then(|column| column.get(row));
            column.cloned().unwrap_or_default()
        };
        let mut cells = vec![Cell::figure(&figure("group"), 0), fixed(series.t_s[row], 1).into()];
        cells.extend(names.iter().map(|name| {
            let decimals = if *name == "length_s" { 3 } else { 1 };
            Cell::figure(&figure(name), decimals)
        }));
        page.row(&columns, &cells);
    }
}

fn options(page: &mut Sections, info: &StorageInfo) {
    page.heading("Options of the Jobs");
    const TABLE: [Column; 4] = [left("Job", 16), left("Option", 28), left("Value", 42), left("Origin", 12)];
    page.columns(&TABLE);
    for job in &info.jobs {
        for option in &job.options {
            page.row(&TABLE, &[job.name.clone(), option.name.clone(), option.value.clone(), option.origin.clone()]);
        }
        for file in &job.files {
            page.row(&TABLE, &[job.name.clone(), "file".to_owned(), file.clone(), "plan".to_owned()]);
        }
    }
}
