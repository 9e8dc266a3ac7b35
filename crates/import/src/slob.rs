//! SLOB: the banner of a run, the log and summary of a load, and the table its analyser prints.

use super::Confidence;
use super::ImportError;
use super::draft::{Draft, Reading};
use super::number::{self, Printed};
use super::rows::{file, setting};
use super::text::{At, Text};

/// Parameters that nobody else prints: four of them make a banner.
const PARAMETERS: [&str; 12] = [
    "UPDATE_PCT",
    "SCAN_PCT",
    "RUN_TIME",
    "WORK_LOOP",
    "SCALE",
    "WORK_UNIT",
    "REDO_STRESS",
    "HOT_SCHEMA_FREQUENCY",
    "HOTSPOT_MB",
    "HOTSPOT_FREQUENCY",
    "THINK_TM_FREQUENCY",
    "DATABASE_STATISTICS_TYPE",
];

/// Parameters that are numbers: name, our key.
const NUMBERS: [(&str, &str); 13] = [
    ("UPDATE_PCT", "slob_update_pct"),
    ("SCAN_PCT", "slob_scan_pct"),
    ("RUN_TIME", "slob_run_time_s"),
    ("WORK_LOOP", "slob_work_loop_count"),
    ("WORK_UNIT", "slob_work_unit_blocks"),
    ("THREADS_PER_SCHEMA", "slob_threads_per_schema_count"),
    ("HOT_SCHEMA_FREQUENCY", "slob_hot_schema_frequency_count"),
    ("HOTSPOT_MB", "slob_hotspot_mib"),
    ("HOTSPOT_OFFSET_MB", "slob_hotspot_offset_mib"),
    ("HOTSPOT_FREQUENCY", "slob_hotspot_frequency_count"),
    ("THINK_TM_FREQUENCY", "slob_think_frequency_count"),
    ("THINK_TM_MIN", "slob_think_s_min"),
    ("THINK_TM_MAX", "slob_think_s_max"),
];

pub(super) fn looks_like(text: &Text) -> Confidence {
    let parameters = PARAMETERS
        .iter()
        .filter(|name| text.head().iter().any(|line| parameter(&line.text).is_some_and(|(found, _)| found == **name)));
    let banner = Confidence::of(88, &[("four of SLOB's parameters as NAME: value", parameters.count() >= 4)]);
    let log = Confidence::of(
        86,
        &[
            ("lines NOTIFY : time : text", text.head_begins("NOTIFY")),
            ("SLOB in one of them", text.head_has("SLOB") || text.head_has("slob")),
        ],
    );
    let table = Confidence::of(
        88,
        &[
            ("a line FILE|SESSIONS|ELAPSED|...", text.head_begins("FILE|")),
            ("columns PREADS or EXECUTES", text.head_has("|PREADS") || text.head_has("|EXECUTES")),
        ],
    );
    let mut lines = text.head().iter();
    let summary =
        Confidence::of(80, &[("rows USERn CF1 rows blocks", lines.any(|line| table_row(&line.text).is_some()))]);
    banner.or(log).or(table).or(summary)
}

/// `NAME: value`, blanks aside; the name in capitals.
fn parameter(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.trim().split_once(':')?;
    let name = name.trim();
    let is_name = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
    (name.contains('_') || name == "SCALE").then_some(())?;
    name.chars().all(is_name).then_some((name, value.trim()))
}

/// `USER1  CF1  10148  11123`: owner, table, rows, blocks; which table it is.
fn table_row(line: &str) -> Option<String> {
    let line = line.replace('|', " ");
    let tokens: Vec<&str> = line.split_whitespace().collect();
    let [owner, table, rows, blocks, ..] = tokens.as_slice() else {
        return None;
    };
    let number = owner.strip_prefix("USER")?;
    let is_table = ["CF1", "CF2"].contains(table);
    let all_digits = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit() || c == ',');
    (is_table && all_digits(number) && all_digits(rows) && all_digits(blocks)).then_some(())?;
    Some(format!("{owner}.{table}"))
}

pub(super) fn read(texts: &[Text], draft: &mut Draft) -> Result<(), ImportError> {
    draft.recognised("", "SLOB text");
    for text in texts {
        let mut columns = None;
        for line in &text.lines {
            let bare = line.text.trim();
            if bare.starts_with("FILE|") {
                columns = Some(bare.split('|').map(str::trim).collect::<Vec<_>>());
            } else if let (Some(names), true) = (&columns, bare.contains('|')) {
                tuple(line.at, names, bare, draft);
            } else if let Some(scope) = table_row(bare) {
                sizes(line.at, &scope, bare, draft);
            } else if ["NOTIFY", "WARNING", "FATAL"].iter().any(|word| bare.starts_with(word)) {
                log(line.at, bare, draft);
            } else if let Some((name, value)) = parameter(bare) {
                banner(line.at, name, value, draft);
            }
        }
    }
    Ok(())
}

fn alone(draft: &mut Draft, at: At, key: &str, name: &str, scope: &str, printed: Option<Printed>) {
    if let Some(printed) = printed {
        let reading = Reading::new(at, key, printed).name(name).scope(scope);
        draft.alone(reading.layer("client"));
    }
}

fn banner(at: At, name: &str, value: &str, draft: &mut Draft) {
    // A password is no figure, and nobody's business.
    let is_secret = name.contains("PASSWD") || name.contains("PASSWORD");
    let shown = if is_secret { "***" } else { value.trim_matches(['"', '\'']) };
    setting(draft, name, shown);
    let bare = value.split(" (").next().unwrap_or_default().trim();
    if name == "SCALE" {
        // A bare number counts blocks, and so does what stands in parentheses behind a size.
        let blocks = value.split(" (").nth(1).and_then(|rest| rest.split(' ').next());
        let printed = number::count(blocks.unwrap_or(bare));
        alone(draft, at, "slob_scale_blocks", name, "", printed);
        return;
    }
    if let Some((_, key)) = NUMBERS.iter().find(|(known, _)| *known == name)
        && !draft.has("", key)
    {
        let printed = if key.ends_with("_count") { number::count(bare) } else { number::measure(bare) };
        alone(draft, at, key, name, "", printed);
    }
}

/// `NOTIFY  : 2020.05.12-19:28:28 : Data load ... 117 seconds`
fn log(at: At, line: &str, draft: &mut Draft) {
    let mut parts = line.splitn(3, " : ").map(str::trim);
    let (Some(level), Some(time)) = (parts.next(), parts.next()) else {
        return;
    };
    let (time, text) = match parts.next() {
        Some(text) => (time, text),
        None => ("", time),
    };
    if draft.record.run.started.is_empty() && time.starts_with("20") {
        time.clone_into(&mut draft.record.run.started);
    }
    if !level.starts_with("NOTIFY") {
        draft.note(at, format!("SLOB says: {text}"));
        return;
    }
    if let Some((name, value)) = parameter(text) {
        banner(at, name, value, draft);
        return;
    }
    let words: Vec<&str> =
        text.split(|c: char| c.is_whitespace() || "().,".contains(c)).filter(|word| !word.is_empty()).collect();
    let seconds = words.windows(2).find(|pair| pair[1].starts_with("second"));
    let Some([count, _]) = seconds else {
        return;
    };
    let what = text.replace(count, "N");
    if !draft.has(&what, "load_phase_s") {
        alone(draft, at, "load_phase_s", "seconds", &what, number::count(count));
    } else {
        draft.note(at, "a phase with the same text as an earlier one was skipped");
    }
}

/// Rows and blocks of a table, as the dictionary has them: the rows are an estimate.
fn sizes(at: At, scope: &str, line: &str, draft: &mut Draft) {
    let line = line.replace('|', " ");
    let mut tokens = line.split_whitespace().skip(2);
    let (rows, blocks) = (tokens.next(), tokens.next());
    alone(draft, at, "slob_table_rows_count", "rows", scope, rows.and_then(number::count));
    alone(draft, at, "slob_table_blocks", "blocks", scope, blocks.and_then(number::count));
}

/// Columns of the analyser's table that are figures: name, our key, factor. Latencies are in us.
const COLUMNS: [(&str, &str, f64); 15] = [
    ("SESSIONS", "sessions_count", 1.0),
    ("ELAPSED", "elapsed_s", 1.0),
    ("EXECUTES", "executes_sql_per_s", 1.0),
    ("LIO", "logical_read_blocks_per_s", 1.0),
    ("PREADS", "read_io_requests_per_s", 1.0),
    ("PWRITES", "write_io_requests_per_s", 1.0),
    ("READ_MBS", "read_io_mb_per_s", 1.0),
    ("WRITE_MBS", "write_io_mb_per_s", 1.0),
    ("REDO_MBS", "redo_size_bytes_per_s", 1_048_576.0),
    ("DB CPU", "db_cpu_s_per_s", 1.0),
    ("DFSR_LAT", "db_file_sequential_read_us_avg", 1.0),
    ("DPR_LAT", "direct_path_read_us_avg", 1.0),
    ("DFPR_LAT", "db_file_parallel_read_us_avg", 1.0),
    ("DFPW_LAT", "db_file_parallel_write_us_avg", 1.0),
    ("LFPW_LAT", "log_file_parallel_write_us_avg", 1.0),
];

/// One line of the analyser's table is one run; a record holds the first.
fn tuple(at: At, names: &[&str], line: &str, draft: &mut Draft) {
    if draft.has("", "elapsed_s") {
        draft.note(at, "another run: one record contains one run, the first");
        return;
    }
    for (name, cell) in names.iter().zip(line.split('|').map(str::trim)) {
        match COLUMNS.iter().find(|(column, ..)| column == name) {
            Some((_, key, factor)) => {
                let printed = if *name == "SESSIONS" { number::count(cell) } else { number::measure(cell) };
                // An event that did not happen prints 0, or nothing.
                let is_none = |printed: &Printed| key.ends_with("_us_avg") && printed.number() == Some(0.0);
                if let Some(printed) = printed.filter(|printed| !is_none(printed)) {
                    let printed = if *factor == 1.0 { printed } else { printed.scaled(*factor) };
                    file(draft, Reading::new(at, *key, printed).name(name), "");
                }
            }
            None if cell.is_empty() => {}
            None => setting(draft, name, cell),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{imported, info, number, record_of, sample, survives, told, value};

    const SAMPLES: [&str; 4] = ["slob-banner-2.5.4.txt", "slob-load.txt", "slob-load-summary.txt", "slob-awr-info.txt"];

    #[test]
    fn every_sample_is_read_as_frozen() {
        for name in SAMPLES {
            insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
        }
    }

    #[test]
    fn a_password_goes_nowhere() {
        let record = imported("slob-banner-2.5.4.txt");
        let json = serde_json::to_string(&record).expect("written");
        assert!(sample("slob-banner-2.5.4.txt").contains("Welcome1"));
        assert!(!json.contains("Welcome1"));
        assert_eq!(number(&record, "", "slob_scale_blocks"), 10_000.0);
    }

    #[test]
    fn the_analysers_table_fills_the_load_profile() {
        let record = imported("slob-awr-info.txt");
        let metrics = &record.metrics;
        let reads = assay_measure::record::metric::find(metrics, "reads_per_s").expect("a metric");
        assert_eq!(reads.value.value(), Some(71_554.0));
        assert_eq!(record.run.sessions, 128);
        assert!(info(&record).notes.iter().any(|note| note.text.contains("another run")));
    }

    /// The field of the record is a plain number, which cannot say that it is not known.
    #[test]
    fn a_torn_number_of_sessions_is_told_and_stands_in_no_field() {
        let record = record_of("torn", &sample("slob-awr-info.txt").replace("|128|", "|***|"));
        let sessions = value(&record, "", "sessions_count");
        assert_eq!((sessions.value.value(), sessions.at.as_str(), record.run.sessions), (None, "", 0));
    }

    /// Neither can it hold any number that a text may have.
    #[test]
    fn a_number_that_no_field_of_counts_can_hold_is_told_and_stands_in_none() {
        for beyond in ["-3", "18446744073709551616", "0444444444444444444444444444"] {
            let record = record_of("beyond", &sample("slob-awr-info.txt").replace("|128|", &format!("|{beyond}|")));
            let sessions = value(&record, "", "sessions_count");
            assert_eq!((sessions.at.as_str(), record.run.sessions), ("", 0), "{beyond}");
        }
    }

    proptest::proptest! {
        #![proptest_config(proptest::prelude::ProptestConfig::with_cases(32))]
        #[test]
        fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
            survives(SAMPLES[which], seed);
        }
    }
}
