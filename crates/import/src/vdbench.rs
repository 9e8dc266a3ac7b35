//! vdbench: the interval table of summary and log files, and the flat file.
//!
//! The average line of each run definition becomes a job; intervals become the series where there is one definition.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::number::{self, Printed};
use super::rows::{JOBS_MAX, put_step, step};
use super::text::{At, Line, Text};
use assay_measure::record::Figure;
use assay_storage::record::info::{StorageGroup, StorageJob, StorageWay};
use assay_storage::record::load_of;

const NOT_PRINTED: &str = "not printed";

pub(super) fn looks_like(text: &Text) -> Confidence {
    let has = |part: &str| text.head_has(part);
    let title = text.head().iter().any(|line| table_title(&line.text).is_some());
    let table = Confidence::of(
        91,
        &[("a line interval i/o MB/sec bytes read resp ...", title), ("a line avg_...", has("avg_"))],
    );
    let flat = Confidence::of(
        91,
        &[(
            "a line of column names with Run, Interval and reqrate",
            text.head().iter().any(|line| is_flat_title(&line.text)),
        )],
    );
    let part = Confidence::of(75, &[("a line interval i/o MB/sec bytes read resp ...", title)]);
    table.or(flat).or(part)
}

/// The words behind `interval` where a line is the first of the two titles.
fn table_title(line: &str) -> Option<Vec<&str>> {
    let (_, rest) = line.split_once("interval")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
    (words.first() == Some(&"i/o") && words.get(1) == Some(&"MB/sec")).then_some(words)
}

fn is_flat_title(line: &str) -> bool {
    let has = |word: &str| line.split_whitespace().any(|found| found == word);
    has("Run") && has("Interval") && has("reqrate")
}

/// Our name of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Ios,
    Mib,
    Bytes,
    ReadPct,
    Lat,
    ReadLat,
    WriteLat,
    Max,
    ReadMax,
    WriteMax,
    Stddev,
    Depth,
    CpuBusy,
    CpuSystem,
    /// Of a file system: rates of the ways, and their MB/s.
    ReadIos,
    WriteIos,
    ReadMib,
    WriteMib,
    Run,
    Interval,
    Unknown,
}

/// A column of the table by its two titles.
fn column(first: &str, second: &str, before: &[Column]) -> Column {
    let lat = [Column::Lat, Column::ReadLat, Column::WriteLat, Column::Max];
    let is_there = |column: Column| before.contains(&column);
    match (first, second) {
        ("i/o", "rate") => Column::Ios,
        ("MB/sec", _) => Column::Mib,
        ("bytes", _) => Column::Bytes,
        ("read", "pct") => Column::ReadPct,
        ("resp", "time") => Column::Lat,
        ("read", "resp") => Column::ReadLat,
        ("write", "resp") => Column::WriteLat,
        ("read", "max") => Column::ReadMax,
        ("write", "max") => Column::WriteMax,
        ("resp", "max") => Column::Max,
        ("resp", "stddev") => Column::Stddev,
        ("queue", _) => Column::Depth,
        ("cpu%", word) if word.starts_with("sys+") => Column::CpuBusy,
        ("cpu%", "sys") if lat.into_iter().any(is_there) => Column::CpuSystem,
        _ => Column::Unknown,
    }
}

fn flat_column(name: &str) -> Column {
    match name {
        "Run" => Column::Run,
        "Interval" => Column::Interval,
        "rate" => Column::Ios,
        "MB/sec" => Column::Mib,
        "bytes/io" => Column::Bytes,
        "read%" => Column::ReadPct,
        "resp" => Column::Lat,
        "read_resp" => Column::ReadLat,
        "write_resp" => Column::WriteLat,
        "resp_max" => Column::Max,
        "read_max" => Column::ReadMax,
        "write_max" => Column::WriteMax,
        "resp_std" => Column::Stddev,
        "queue_depth" => Column::Depth,
        "cpu_used" => Column::CpuBusy,
        "cpu_kernel" => Column::CpuSystem,
        // Of a file system; `rate` and `resp` are of all its operations there.
        "Read_rate" => Column::ReadIos,
        "Write_rate" => Column::WriteIos,
        "Read_resp" => Column::ReadLat,
        "Write_resp" => Column::WriteLat,
        "Read_resp_max" => Column::ReadMax,
        "Write_resp_max" => Column::WriteMax,
        "MB_read" => Column::ReadMib,
        "MB_write" => Column::WriteMib,
        _ => Column::Unknown,
    }
}

/// One row with its figures, in our units.
struct Row {
    at: At,
    run: String,
    interval: String,
    cells: Vec<(Column, Printed)>,
}

impl Row {
    fn of(&self, column: Column) -> Option<Printed> {
        let mut cells = self.cells.iter();
        cells.find(|(found, _)| *found == column).map(|(_, printed)| printed.clone())
    }
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "vdbench table");
    for text in texts {
        let rows = rows(text, draft);
        let averages: Vec<&Row> = rows.iter().filter(|row| row.interval.starts_with("avg_")).collect();
        let runs = averages.iter().filter(|row| covers_intervals(&row.interval)).count();
        let of_run = |name: &str| averages.iter().any(|row| row.run == name && covers_intervals(&row.interval));
        for row in &rows {
            match row.interval.starts_with("avg_") {
                true if covers_intervals(&row.interval) => job(row, draft),
                true => draft.note(row.at, format!("{} is n/a: its average covers no interval", row.run)),
                false if runs == 0 || (runs == 1 && of_run(&row.run)) => interval(row, draft),
                false => draft.saw(row.at),
            }
        }
        if runs > 1 {
            let at = At { file: text.file, line: 0 };
            draft.note(at, format!("{runs} run definitions: their averages are kept, their intervals are not"));
        }
    }
    if let Some(info) = draft.storage.clone() {
        load_of(&mut draft.record, &info);
    }
    Ok(())
}

/// Whether an average is of any: `avg_2-5`, not `avg_2-1`.
fn covers_intervals(average: &str) -> bool {
    let range = average.trim_start_matches("avg_").split_once('-');
    let range = range.and_then(|(from, to)| from.parse::<u64>().ok().zip(to.parse::<u64>().ok()));
    range.is_none_or(|(from, to)| from <= to)
}

fn rows(text: &Text, draft: &mut Draft) -> Vec<Row> {
    let mut rows = Vec::new();
    let (mut columns, mut run, mut is_flat) = (Vec::new(), "vdbench".to_owned(), false);
    let mut lines = text.lines.iter().peekable();
    while let Some(line) = lines.next() {
        if let Some(version) = version(&line.text) {
            draft.recognised(version, "vdbench table");
        }
        if let Some(name) = line.text.split("Starting RD=").nth(1) {
            name.split([';', ' ']).next().unwrap_or_default().clone_into(&mut run);
        } else if let Some(first) = table_title(&line.text) {
            let second = lines.peek().map_or("", |line| line.text.as_str());
            columns = table_columns(&first, second);
            is_flat = false;
        } else if is_flat_title(&line.text) {
            columns = line.text.split_whitespace().map(flat_column).collect();
            is_flat = true;
            draft.recognised("", "vdbench flat file");
        } else if !columns.is_empty() {
            let found = if is_flat { flat_row(line, &columns) } else { table_row(line, &columns, &run) };
            rows.extend(found);
        }
    }
    rows
}

fn version(line: &str) -> Option<&str> {
    let rest = line.split("Vdbench distribution:").nth(1)?;
    rest.split_whitespace().next()
}

fn table_columns(first: &[&str], second: &str) -> Vec<Column> {
    // A time may stand before the second title.
    let words = second.split_whitespace().skip_while(|word| word.contains(':'));
    let mut columns = Vec::new();
    for (first, second) in first.iter().zip(words) {
        columns.push(column(first, second, &columns));
    }
    columns
}

fn cell(column: Column, token: &str) -> Option<Printed> {
    let printed = number::measure(token)?;
    Some(match column {
        // ms in every layout.
        Column::Lat
        | Column::ReadLat
        | Column::WriteLat
        | Column::Max
        | Column::ReadMax
        | Column::WriteMax
        | Column::Stddev => printed.scaled(1e3),
        _ => printed,
    })
}

/// `16:24:32.018  1  84.0  0.08  1024 ...`
fn table_row(line: &Line, columns: &[Column], run: &str) -> Option<Row> {
    let mut tokens = line.text.split_whitespace();
    let mut interval = tokens.next()?;
    if interval.contains(':') {
        interval = tokens.next()?;
    }
    let is_interval = interval.starts_with("avg_") || interval.parse::<u64>().is_ok();
    let cells: Vec<&str> = tokens.collect();
    (is_interval && cells.len() >= columns.len().min(5)).then_some(())?;
    Some(row_of(line.at, (run, interval), columns, &cells))
}

fn flat_row(line: &Line, columns: &[Column]) -> Option<Row> {
    let tokens: Vec<&str> = line.text.split_whitespace().collect();
    // Times and dates before the columns, if the title has none for them.
    let find = |wanted: Column| {
        let at = columns.iter().position(|column| *column == wanted)?;
        tokens.get(at).copied()
    };
    let (run, interval) = (find(Column::Run)?, find(Column::Interval)?);
    let is_interval = interval.starts_with("avg_") || interval.parse::<u64>().is_ok();
    is_interval.then_some(())?;
    Some(row_of(line.at, (run, interval), columns, &tokens))
}

fn row_of(at: At, (run, interval): (&str, &str), columns: &[Column], tokens: &[&str]) -> Row {
    let cells = columns.iter().zip(tokens);
    Row {
        at,
        run: run.to_owned(),
        interval: interval.to_owned(),
        cells: cells.filter_map(|(column, token)| Some((*column, cell(*column, token)?))).collect(),
    }
}

fn reading(row: &Row, key: &str, name: &str, scope: &str, printed: Printed) -> Reading {
    Reading::new(row.at, key, printed).name(name).scope(scope).layer("syscall")
}

/// The directions that the share of reads leaves, with the part of the rate that is theirs.
fn directions(row: &Row) -> Vec<(&'static str, f64)> {
    let of = |column| row.of(column).and_then(|printed| printed.number());
    if let (Some(reads), Some(writes)) = (of(Column::ReadIos), of(Column::WriteIos)) {
        let all = (reads + writes).max(f64::MIN_POSITIVE);
        let both = [("read", reads / all), ("write", writes / all)];
        return both.into_iter().filter(|(_, share)| *share > 0.0).collect();
    }
    let pct = row.of(Column::ReadPct).and_then(|pct| pct.number()).unwrap_or(100.0);
    let pct = pct.clamp(0.0, 100.0);
    let all = [("read", pct / 100.0), ("write", (100.0 - pct) / 100.0)];
    all.into_iter().filter(|(_, share)| *share > 0.0).collect()
}

/// An average line: a job of its own, in a group of its own.
fn job(row: &Row, draft: &mut Draft) {
    let info = draft.storage.get_or_insert_default();
    if info.jobs.len() >= JOBS_MAX {
        draft.is_full = true;
        return;
    }
    if info.jobs.iter().any(|job| job.name == row.run) {
        draft.note(row.at, format!("a second average of {} was skipped", row.run));
        return;
    }
    "syscall".clone_into(&mut info.layer);
    "n/a (not printed)".clone_into(&mut info.io_mode_achieved);
    let j = info.jobs.len();
    let directions = directions(row);
    info.jobs.push(frame(row, j, &directions));
    let rate = match row.of(Column::ReadIos) {
        Some(_) => "operations_per_s",
        None => "ios_per_s",
    };
    for (key, name, column) in [
        (rate, "rate", Column::Ios),
        ("read_ios_per_s", "Read_rate", Column::ReadIos),
        ("write_ios_per_s", "Write_rate", Column::WriteIos),
        ("read_mib_per_s", "MB_read", Column::ReadMib),
        ("write_mib_per_s", "MB_write", Column::WriteMib),
        ("mib_per_s", "MB/sec", Column::Mib),
        ("block_bytes", "bytes i/o", Column::Bytes),
        ("read_share_pct", "read pct", Column::ReadPct),
        ("lat_us_avg", "resp time", Column::Lat),
        ("lat_us_max", "resp max", Column::Max),
        ("lat_us_stddev", "resp stddev", Column::Stddev),
        ("cpu_busy_pct", "cpu% sys+u", Column::CpuBusy),
        ("cpu_system_pct", "cpu% sys", Column::CpuSystem),
    ] {
        if let Some(printed) = row.of(column) {
            draft.alone(reading(row, key, name, &row.run, printed));
        }
    }
    if let Some(printed) = row.of(Column::Depth) {
        let reading = reading(row, "in_flight_mean_count", "queue depth", &row.run, printed);
        put_in!(draft, reading, "/parts/storage", draft.storage.get_or_insert_default(), jobs[j].in_flight_mean_count);
    }
    for (w, (way, share)) in directions.iter().enumerate() {
        self::way(row, draft, j, w, way, *share);
    }
    group(draft, j);
}

fn frame(row: &Row, j: usize, directions: &[(&str, f64)]) -> StorageJob {
    let rw = match directions {
        [(only, _)] => format!("{only}s"),
        _ => "reads and writes".to_owned(),
    };
    let bytes = row.of(Column::Bytes).and_then(|bytes| bytes.number());
    StorageJob {
        name: row.run.clone(),
        group: j as u32,
        rw,
        ioengine: "vdbench".to_owned(),
        block_sizes: bytes.map_or_else(String::new, |bytes| assay_measure::units::size(bytes as u64)),
        timing: "per I/O".to_owned(),
        ways: (directions.iter())
            .map(|(way, _)| StorageWay { way: (*way).to_owned(), ..StorageWay::default() })
            .collect(),
        ..StorageJob::default()
    }
}

fn way(row: &Row, draft: &mut Draft, j: usize, w: usize, way: &str, share: f64) {
    let info = draft.storage.get_or_insert_default();
    let target = &mut info.jobs[j].ways[w];
    let part = |column| row.of(column).and_then(|printed| printed.number()).map(|all| all * share);
    let number = |column| row.of(column).and_then(|printed| printed.number());
    let own = match way {
        "read" => (number(Column::ReadIos), number(Column::ReadMib)),
        _ => (number(Column::WriteIos), number(Column::WriteMib)),
    };
    // Of the whole by its share: derived, except where there is but one direction, and of a file system.
    if let Some(ios) = own.0.or_else(|| part(Column::Ios)) {
        target.ios_per_s = ios.into();
    }
    if let Some(mib) = own.1.or_else(|| part(Column::Mib)) {
        target.mib_per_s = mib.into();
        target.mb_per_s = Figure::decimal(mib * 1.048_576);
    }
    let (column, key) = match way {
        "read" => (Column::ReadLat, "read_lat_us_avg"),
        _ => (Column::WriteLat, "write_lat_us_avg"),
    };
    match row.of(column) {
        Some(printed) => {
            let reading = reading(row, key, &format!("{way} resp"), &row.run, printed);
            put_in!(
                draft,
                reading,
                "/parts/storage",
                draft.storage.get_or_insert_default(),
                jobs[j].ways[w].lat.us_avg
            );
        }
        // Older tables have one response time for both.
        None if share == 1.0 => {
            if let Some(printed) = row.of(Column::Lat) {
                info.jobs[j].ways[w].lat.us_avg = printed.value;
            }
        }
        None => {}
    }
    let (column, key) = match way {
        "read" => (Column::ReadMax, "read_lat_us_max"),
        _ => (Column::WriteMax, "write_lat_us_max"),
    };
    if let Some(printed) = row.of(column) {
        let reading = reading(row, key, &format!("{way} max"), &row.run, printed);
        put_in!(draft, reading, "/parts/storage", draft.storage.get_or_insert_default(), jobs[j].ways[w].lat.us_max);
    }
}

fn group(draft: &mut Draft, j: usize) {
    let info = draft.storage.get_or_insert_default();
    let job = &mut info.jobs[j];
    let in_flight: Option<f64> =
        (job.ways.iter()).map(|way| Some(way.ios_per_s.value()? * way.lat.us_avg.value()? / 1e6)).sum();
    job.little_count = in_flight.map_or_else(|| Figure::na(NOT_PRINTED), Figure::decimal);
    let group = StorageGroup {
        group: job.group,
        jobs: vec![job.name.clone()],
        ways: job.ways.clone(),
        analysed: "IOPS".to_owned(),
        not_analysed: Some("imported: see the series".to_owned()),
        ..StorageGroup::default()
    };
    info.groups.push(group);
}

fn interval(row: &Row, draft: &mut Draft) {
    let Ok(number) = row.interval.parse::<u32>() else {
        return;
    };
    let Some(step) = step(draft, f64::from(number)) else {
        draft.note(row.at, "an interval out of order was skipped");
        return;
    };
    let only = match directions(row).as_slice() {
        [(only, _)] => format!("{only}_"),
        _ => String::new(),
    };
    let scope = format!("interval {}", row.interval);
    if let Some(printed) = row.of(Column::Bytes) {
        draft.alone(reading(row, "block_bytes", "bytes i/o", &scope, printed));
    }
    for (key, name, series, column) in [
        ("ios_per_s", "i/o rate", format!("{only}ios_count_per_s"), Column::Ios),
        ("mib_per_s", "MB/sec", format!("{only}mib_per_s"), Column::Mib),
        ("lat_us_avg", "resp time", "lat_us_avg".to_owned(), Column::Lat),
        ("lat_us_max", "resp max", "lat_us_max".to_owned(), Column::Max),
    ] {
        if let Some(printed) = row.of(column) {
            put_step(draft, reading(row, key, name, &scope, printed), &series, step);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, number, survives, told};

    const SAMPLES: [&str; 4] =
        ["vdbench-file-system.txt", "vdbench-summary.txt", "vdbench-two-runs.txt", "vdbench-flatfile.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn reads_alone_are_read_as_reads() {
        let record = imported("vdbench-summary.txt");
        let metrics = &record.metrics;
        let of = |key| assay_measure::record::metric::find(metrics, key).and_then(|metric| metric.value.value());
        assert_eq!(of("reads_per_s"), Some(8_000.0));
        assert_eq!(of("read_us_avg"), Some(2_000.0));
        let info: assay_storage::record::info::StorageInfo = record.parts.get().expect("a storage part");
        let job = &info.jobs[0];
        assert_eq!(job.in_flight_mean_count.value(), Some(16.0));
        assert_eq!(record.series.metrics["read_ios_count_per_s"].len(), 4);
    }

    #[test]
    fn a_mix_is_split_by_its_share_of_reads() {
        let record = imported("vdbench-two-runs.txt");
        let info: assay_storage::record::info::StorageInfo = record.parts.get().expect("a storage part");
        let job = &info.jobs[1];
        let rates: Vec<_> = job.ways.iter().filter_map(|way| way.ios_per_s.value()).collect();
        assert_eq!(rates, [700.0, 300.0]);
        assert_eq!(number(&record, "mixed", "write_lat_us_avg"), 3_000.0);
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
