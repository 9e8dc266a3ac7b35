//! The text report of an imported record: its source, its contradictions, then its figures.

use super::{activity, header, io, load, platform, waits};
use assay_measure::record::metric::of_key;
use assay_measure::record::{EventRow, Figure, ImportInfo, Record};
use assay_measure::section::{Align, Cell, Column, Rest, Sections, left, number, number_or_reason, right};
use assay_measure::units::fixed;

/// The sections of an import. `own` adds what its kind has, before the seconds.
pub fn imported(record: &Record, info: &ImportInfo, own: &dyn Fn(&mut Sections)) -> Sections {
    let mut page = Sections::default();
    title(&mut page, record, info);
    header::integrity(&mut page, record);
    notes(&mut page, info);
    header::advice(&mut page, record);
    facts(&mut page, record);
    let missing = sections(&mut page, record, own);
    values(&mut page, info);
    if !record.integrity.is_empty() {
        header::identities(&mut page, record);
    }
    if !record.plan.settings.is_empty() {
        header::parameters(&mut page, record);
    }
    page.line("");
    page.wrapped("Not in the imported output: ", &format!("{}.", missing.join(", ")));
    page
}

fn title(page: &mut Sections, record: &Record, info: &ImportInfo) {
    let run = &record.run;
    let label = header::label(record);
    page.title(&format!("IMPORTED REPORT for run {}{label}: Imported from {}", run.id, info.tool));
    page.line(&format!("Recognised as {}{}.", info.format, version(info)));
    page.line("");
    const FILES: [Column; 4] = [left("File", 60), right("Bytes", 14), right("Lines", 10), right("Values", 10)];
    page.columns(&FILES);
    for (i, file) in info.files.iter().enumerate() {
        let values = info.values.iter().filter(|value| value.file == i as u64);
        page.row(
            &FILES,
            &[
                file.path.clone().into(),
                Cell::figure(&Figure::Count(file.size_bytes), 0),
                Cell::figure(&Figure::Count(file.lines_count), 0),
                values.count().to_string().into(),
            ],
        );
    }
    page.line("");
    interval(page, record);
    page.line("n/a (reason): the figure was not printed or cannot be known. MB is 2^20 bytes.");
    page.line(
        "Figures are as the source printed and rounded them; assay computes totals and shares that the source \
        did not print.",
    );
}

fn version(info: &ImportInfo) -> String {
    match info.tool_version.as_str() {
        "" => String::new(),
        version => format!(", version {version}"),
    }
}

fn interval(page: &mut Sections, record: &Record) {
    let interval = &record.interval;
    for (name, at, sessions) in [
        ("Begin Snap:", &interval.begin, &interval.sessions_begin_count),
        ("  End Snap:", &interval.end, &interval.sessions_end_count),
    ] {
        if !at.is_empty() {
            page.line(&format!("{name} {at}, {} sessions", number(sessions, 0)));
        }
    }
    let minutes = |seconds: &Figure| {
        let minutes = number(&seconds.scaled(1.0 / 60.0), 2);
        format!("{minutes:>16} (mins) {:>16} (s)", number(seconds, 3))
    };
    let db_time = record.instance.time_model.db_time_us.scaled(1e-6);
    for (name, figure) in [("Elapsed:", &interval.elapsed_s), ("DB Time:", &db_time)] {
        if figure.value().is_some() {
            page.line(&format!("   {name} {}", minutes(figure)));
        }
    }
}

fn notes(page: &mut Sections, info: &ImportInfo) {
    if info.notes.is_empty() {
        return;
    }
    page.judgement("Notes on the Source");
    for note in &info.notes {
        let path = path(info, note.file);
        let place = match note.line {
            0 => path.to_owned(),
            line => format!("{path}:{line}"),
        };
        page.wrapped(&format!("{place}  "), &note.text);
    }
}

fn path(info: &ImportInfo, file: u64) -> &str {
    let index = usize::try_from(file).ok();
    index.and_then(|i| info.files.get(i)).map_or("?", |file| file.path.as_str())
}

fn facts(page: &mut Sections, record: &Record) {
    let facts = record.plan.engine_facts.iter().chain(&record.host.facts);
    let pairs: Vec<(String, String)> = facts.map(|fact| (fact.name.clone(), fact.value.clone())).collect();
    if !pairs.is_empty() {
        page.heading("Source System");
        page.pairs(&pairs);
    }
}

/// A section: its name, whether there is anything for it, and how it is written.
type Section = (&'static str, fn(&Record) -> bool, fn(&mut Sections, &Record));

/// What stands last.
const PER_SECOND: &str = "Per Second";

const SECTIONS: &[Section] = &[
    ("Load Profile", |r| !r.instance.load_profile.is_empty(), load::load_profile),
    ("Instance Efficiency", |r| !r.instance.efficiency.is_empty(), load::efficiency),
    ("Top Foreground Events", |r| r.instance.events.iter().any(is_top), waits::top_events),
    ("Host CPU", |r| !r.os.cpu_pct.is_empty(), platform::host_cpu),
    ("Memory Statistics", |r| !r.os.memory_bytes.is_empty(), platform::memory),
    ("IO Profile", |r| !r.instance.io_profile.is_empty(), io::profile),
    ("Time Model", |r| r.instance.time_model.db_time_us.value().is_some(), time_model),
    ("Wait Classes", |r| !r.instance.wait_classes.is_empty(), waits::classes),
    ("Foreground Wait Events", |r| has_events(r, "foreground"), waits::foreground),
    ("Background Wait Events", |r| has_events(r, "background"), waits::background),
    ("Wait Event Histogram", |r| r.instance.events.iter().any(|e| !e.hist_us.is_empty()), histograms),
    ("Instance Activity Stats", |r| !r.instance.stats.is_empty(), activity::statistics),
    ("Absolute Values", |r| !r.instance.gauges.is_empty(), activity::absolute),
    (
        "IOStat by Function",
        |r| r.instance.io_functions.iter().any(|row| row.read_requests_count.value().is_some()),
        io::by_function,
    ),
    ("Operations", |r| !r.driver.ops.is_empty(), super::driver::imported),
    (PER_SECOND, |r| !r.series.t_s.is_empty(), steps),
];

fn is_top(event: &EventRow) -> bool {
    event.actor == "foreground" && event.total_us.value().is_some()
}

fn has_events(record: &Record, actor: &str) -> bool {
    let of_actor = |event: &EventRow| event.actor == actor && event.count.value().is_some();
    record.instance.events.iter().any(of_actor)
}

/// Writes the sections that have something, those of the kind before the seconds; the others' names come back.
fn sections(page: &mut Sections, record: &Record, own: &dyn Fn(&mut Sections)) -> Vec<&'static str> {
    let mut missing = Vec::new();
    for (name, has_data, write) in SECTIONS {
        if *name == PER_SECOND {
            own(page);
        }
        if has_data(record) { write(page, record) } else { missing.push(*name) }
    }
    missing
}

fn time_model(page: &mut Sections, record: &Record) {
    const MODEL: [Column; 3] = [left("Statistic", 44), right("Time (s)", 18), right("% DB Time", 12)];
    let model = &record.instance.time_model;
    page.heading("Time Model Statistics");
    page.columns(&MODEL);
    let db_time = model.db_time_us.value().unwrap_or(0.0);
    for (name, figure, is_foreground) in [
        ("DB time", &model.db_time_us, true),
        ("DB CPU", &model.db_cpu_us, true),
        ("foreground waits", &model.fg_wait_us, true),
        ("background elapsed time", &model.bg_elapsed_us, false),
        ("background cpu time", &model.bg_cpu_us, false),
    ] {
        if figure.value().is_none() {
            continue;
        }
        let share = figure.scaled(100.0).per(db_time, "no DB time");
        let share = if is_foreground { number(&share, 1) } else { String::new() };
        page.row(&MODEL, &[name.to_owned().into(), Cell::figure(&figure.scaled(1e-6), 3), share.into()]);
    }
}

/// The series that came with an import: of its steps, the columns that the source printed and no other.
fn steps(page: &mut Sections, record: &Record) {
    /// Wider tables are read by nobody; the page draws every series.
    const COLUMNS: usize = 8;
    const ROWS: usize = 60;
    let series = &record.series;
    let columns: Vec<(&String, &Vec<Figure>)> = series.metrics.iter().take(COLUMNS).collect();
    page.heading("Steps of the Source");
    let left_out = series.metrics.len() - columns.len();
    if left_out > 0 {
        page.line(&format!("{left_out} more series are on the page (report.html)."));
    }
    let mut titles = vec![("Step", Align::Left)];
    titles.extend(columns.iter().map(|(name, _)| (name.as_str(), Align::Right)));
    let row = |at: usize| {
        let mut cells: Vec<Cell> = vec![fixed(series.t_s[at], 1).into()];
        cells.extend(columns.iter().map(|(_, column)| Cell::figure(&column[at], 1)));
        cells
    };
    let rows = series.t_s.len();
    let rest = (rows > ROWS).then(|| Rest {
        first: ROWS,
        what: format!("{} more steps", rows - ROWS),
        how: "--format html shows them".to_owned(),
    });
    page.grouped(&[], &titles, (0..rows).map(row).collect(), rest);
}

/// Buckets as they were printed, with percentiles interpolated within them.
fn histograms(page: &mut Sections, record: &Record) {
    page.heading("Wait Event Histogram");
    page.line(
        "Percentiles are interpolated within a bucket of twice its lower bound; n/a where the buckets are \
        estimates.",
    );
    const PERCENTILES: [Column; 6] = [
        left("Event (us)", 44),
        right("Waits", 14),
        right("p50", 12),
        right("p90", 12),
        right("p99", 12),
        right("p99.9", 12),
    ];
    let events = || record.instance.events.iter().filter(|event| !event.hist_us.is_empty());
    page.columns(&PERCENTILES);
    for event in events() {
        let sum: u64 = event.hist_us.iter().sum();
        page.row(
            &PERCENTILES,
            &[
                waits::row_name(event).into(),
                Cell::figure(&Figure::Count(sum), 0),
                Cell::figure(&event.us_p50, 0),
                Cell::figure(&event.us_p90, 0),
                Cell::figure(&event.us_p99, 0),
                Cell::figure(&event.us_p999, 0),
            ],
        );
    }
    page.line("");
    waits::buckets(page, &events().collect::<Vec<_>>());
    for event in events().filter(|event| !event.note.is_empty()) {
        page.wrapped("  ", &format!("{} - {}.", event.name, event.note));
    }
}

/// Values that a report lists: a day of seconds has half a million, and record.json has them all.
const VALUES_SHOWN: usize = 10_000;

/// Every value that was read, with the place it was read at.
fn values(page: &mut Sections, info: &ImportInfo) {
    if info.values.is_empty() {
        return;
    }
    const VALUES: [Column; 8] = [
        left("Key", 44),
        left(" Of", 28),
        right("Value", 22),
        left(" Unit", 9),
        right("Printed", 16),
        left(" As", 28),
        left(" Layer", 9),
        left(" File:Line", 24),
    ];
    page.heading("Imported Values");
    page.line("Every value that was read, as printed and in assay's unit, with the place where it was read.");
    page.columns(&VALUES);
    for value in info.values.iter().take(VALUES_SHOWN) {
        let (unit, _) = of_key(&value.key);
        page.row(
            &VALUES,
            &[
                value.key.clone(),
                format!(" {}", value.scope),
                plain(&value.value),
                format!(" {unit}"),
                value.printed.clone(),
                format!(" {}", value.name),
                format!(" {}", value.layer),
                format!(" {}:{}", path(info, value.file), value.line),
            ],
        );
    }
    if info.values.len() > VALUES_SHOWN {
        let more = info.values.len() - VALUES_SHOWN;
        page.line(&format!("{more} more values are in record.json."));
    }
}

/// A value with as many decimals as it needs, up to three.
fn plain(figure: &Figure) -> String {
    match figure {
        Figure::Decimal(value) => {
            let is_at = |decimals: i32| {
                let shifted = value * 10_f64.powi(decimals);
                (shifted - shifted.round()).abs() < 1e-6 * shifted.abs().max(1.0)
            };
            let decimals = (0..3).find(|decimals| is_at(*decimals)).unwrap_or(3);
            fixed(*value, usize::try_from(decimals).unwrap_or(3))
        }
        figure => number_or_reason(figure, 0),
    }
}
