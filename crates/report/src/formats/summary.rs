//! One line per run: the pipe-separated tuple that SLOB users collect.
//!
//! Columns are found by name in the header, not by position. A figure that does
//! not exist is empty, never 0.

use super::{Format, PLAIN};
use assay_measure::record::{EventRow, Figure, Record};

/// Names and units of the columns.
const COLUMNS: [(&str, &str); 18] = [
    ("FILE", "run id"),
    ("SESSIONS", "count"),
    ("ELAPSED", "s"),
    ("DB CPU", "s/s fg+bg"),
    ("DB Tm", "s/s"),
    ("EXECUTES", "1/s"),
    ("LIO", "blocks/s"),
    ("PREADS", "requests/s"),
    ("READ_MBS", "MiB/s"),
    ("PWRITES", "requests/s"),
    ("WRITE_MBS", "MiB/s"),
    ("REDO_MBS", "MiB/s"),
    ("DFSR_LAT", "us"),
    ("DPR_LAT", "us"),
    ("DFPR_LAT", "us"),
    ("DFPW_LAT", "us"),
    ("LFPW_LAT", "us"),
    ("TOP WAIT", "name"),
];

pub(super) const SUMMARY: Format = Format {
    name: "summary",
    help: "One pipe-separated line below its header and units, for each run",
    write: |input, out| {
        writeln!(out, "{}\n{}", COLUMNS.map(|(name, _)| name).join("|"), COLUMNS.map(|(_, unit)| unit).join("|"))?;
        let below = (input.below)()?;
        let runs: Vec<&Record> = if below.is_empty() { input.records.to_vec() } else { below.iter().collect() };
        runs.into_iter().try_for_each(|run| Ok(writeln!(out, "{}", line(run))?))
    },
    ..PLAIN
};

/// The tuple of one record. Rates and MiB are those of the measured window;
/// latencies are averages, as the original's.
fn line(record: &Record) -> String {
    let load = |name: &str| {
        let row = record.instance.load_profile.iter().find(|row| row.name == name);
        row.map_or_else(Figure::default, |row| row.per_s.clone())
    };
    let total_mib = || {
        let named = |name: &str| record.instance.io_profile.iter().find(|row| row.name == name);
        // A server's views do not count all it moves; then the data's bytes are what there is.
        let (all, data) = (named("Total (MB)"), named("Database (MB)"));
        let pick = |pick: fn(&assay_measure::record::IoProfileRow) -> &Figure| {
            let known = all.map(pick).filter(|figure| figure.value().is_some());
            known.or(data.map(pick)).map_or_else(Figure::default, Clone::clone)
        };
        (pick(|row| &row.read_per_s), pick(|row| &row.write_per_s))
    };
    let (read_mib, write_mib) = total_mib();
    // The original adds both; a target without background threads has its own CPU only.
    let cpu = match (load("DB CPU(s)"), load("Background CPU(s)")) {
        (db, Figure::Na(_)) => db,
        (db, background) => db.plus(&background),
    };
    let cells = [
        record.run.id.clone(),
        // A source that does not say how many there were did not have none.
        match record.run.sessions {
            0 => String::new(),
            sessions => sessions.to_string(),
        },
        whole(&record.interval.elapsed_s),
        decimal(&cpu),
        decimal(&load("DB Time(s)")),
        whole(&load("Executes (SQL)")),
        whole(&load("Logical read (blocks)")),
        whole(&load("Read IO requests")),
        decimal(&read_mib),
        whole(&load("Write IO requests")),
        decimal(&write_mib),
        decimal(&load("Redo size (bytes)").scaled(1.0 / 1_048_576.0)),
        average(record, "db file sequential read", "foreground"),
        average(record, "direct path read", "foreground"),
        average(record, "db file parallel read", "foreground"),
        average(record, "db file parallel write", "background"),
        average(record, "log file parallel write", "background"),
        top_wait(record),
    ];
    cells.map(|cell| cell.replace('|', "/")).join("|")
}

fn plain(figure: &Figure, decimals: usize) -> String {
    match figure.value() {
        // The tuple is read by awk and spreadsheets: no thousands separators.
        Some(value) => assay_measure::units::fixed(value, decimals).replace(',', ""),
        None => String::new(),
    }
}

fn whole(figure: &Figure) -> String {
    plain(figure, 0)
}

fn decimal(figure: &Figure) -> String {
    plain(figure, 1)
}

/// Average wait of an event. A commit may write the log itself, so an event that the
/// named actor never waited for is taken from the other.
fn average(record: &Record, name: &str, actor: &str) -> String {
    let named = || record.instance.events.iter().filter(|event| event.name == name);
    let event: Option<&EventRow> = named().find(|event| event.actor == actor).or_else(|| named().next());
    event.map_or_else(String::new, |event| whole(&event.us_avg))
}

/// The first row of "Top Foreground Events".
fn top_wait(record: &Record) -> String {
    let event = record
        .instance
        .events
        .iter()
        .filter(|event| event.actor == "foreground" && event.class != "Idle")
        .filter_map(|event| Some((event.total_us.value()?, event.name.as_str())));
    let cpu = record.instance.time_model.db_cpu_us.value().map(|us| (us, "DB CPU"));
    let queue = record.instance.time_model.run_queue_us.value().map(|us| (us, "run queue"));
    event
        .chain(cpu)
        .chain(queue)
        .filter(|(us, _)| *us > 0.0)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map_or_else(String::new, |(_, name)| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(record: &Record) -> String {
        SUMMARY.text(&crate::formats::Input::of(&[record])).unwrap()
    }

    #[test]
    fn header_units_and_line_have_the_same_eighteen_columns() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = written(&record);
        assert_eq!(text.lines().count(), 3);
        for line in text.lines() {
            assert_eq!(line.split('|').count(), 18, "{text}");
        }
    }

    #[test]
    fn slob_49_columns_are_found_by_name_and_empty_metrics_are_empty() {
        let record = assay_awr::record::build(&assay_testkit::fixtures::run());
        let text = written(&record);
        let (header, line) = (text.lines().next().unwrap(), text.lines().last().unwrap());
        let get = |name: &str| {
            let at = header.split('|').position(|column| column == name).unwrap();
            line.split('|').nth(at).unwrap()
        };
        assert_eq!(get("SESSIONS"), "4");
        assert_eq!(get("ELAPSED"), "20");
        assert_eq!(get("EXECUTES"), "100");
        assert_eq!(get("LIO"), "6700");
        assert_eq!(get("PREADS"), "6000");
        assert_eq!(get("DFSR_LAT"), "500");
        assert_eq!(get("DPR_LAT"), "", "there were no direct reads");
        assert_eq!(get("TOP WAIT"), "db file sequential read");
    }

    #[test]
    fn slob_49_a_server_fills_the_columns_it_knows_and_leaves_the_others_empty() {
        let cells = |version: u32| -> std::collections::BTreeMap<String, String> {
            let record = assay_awr::record::build(&assay_testkit::fixtures::postgres(version));
            let text = written(&record);
            let (header, line) = (text.lines().next().unwrap(), text.lines().last().unwrap());
            let names = header.split('|').map(str::to_owned);
            names.zip(line.split('|').map(str::to_owned)).collect()
        };
        let fifteen = cells(15);
        for (name, value) in [
            ("SESSIONS", "4"),
            ("EXECUTES", "100"),
            ("LIO", "7400"),
            ("PREADS", "6000"),
            ("READ_MBS", "46.9"),
            ("PWRITES", "700"),
            // Timing is off: a count and a sampled time make no average.
            ("DFSR_LAT", ""),
            ("DPR_LAT", ""),
            ("LFPW_LAT", "1500"),
            ("TOP WAIT", "db file sequential read"),
        ] {
            assert_eq!(fifteen[name], value, "{name}");
        }
        assert_eq!(cells(18)["DFSR_LAT"], "500");
    }

    #[test]
    fn a_record_without_anything_has_no_zeros() {
        let line = line(&Record::default());
        assert_eq!(line, "|".repeat(17));
    }
}
