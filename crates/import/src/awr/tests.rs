//! AWR and Statspack text: the layouts of versions, fragments, damage.

mod falsified;
mod field;
mod gold;
mod layouts;
mod pages;
mod round_trip;
mod screens;

use crate::{Source, Tool, import, recognise};
use assay_measure::identity::violated;
use assay_measure::record::{EventRow, Record};
use assay_testkit::places::misplaced;

fn source(path: &str, text: &str) -> Source {
    Source { path: path.to_owned(), text: text.to_owned() }
}

fn sample(name: &str) -> Source {
    let path = format!("{}/../../testdata/awr/{name}", env!("CARGO_MANIFEST_DIR"));
    source(name, &std::fs::read_to_string(&path).expect("a sample"))
}

fn read(sources: &[Source]) -> Record {
    assay_report::kinds::install(crate::kinds());
    let record = import(sources).expect("imported");
    assert_eq!(misplaced(&record), Vec::<String>::new());
    record
}

fn event<'a>(record: &'a Record, name: &str, actor: &str) -> &'a EventRow {
    let mut events = record.instance.events.iter();
    let found = events.find(|event| event.name == name && event.actor == actor);
    found.unwrap_or_else(|| panic!("{name} in {:#?}", record.instance.events))
}

fn notes(record: &Record) -> Vec<String> {
    let info = record.import.as_ref().expect("an import");
    let said = info.notes.iter();
    said.map(|note| format!("{}: {}", note.line, note.text)).collect()
}

fn says(record: &Record, part: &str) -> bool {
    notes(record).iter().any(|note| note.contains(part))
}

fn broken(record: &Record) -> Vec<String> {
    let all = violated(record).into_iter();
    all.map(|identity| format!("{} {} {}", identity.id, identity.rule, identity.sentence)).collect()
}

fn near(record: &Record, pointer: &str, expected: f64) {
    let whole = serde_json::to_value(record).expect("JSON");
    let found = whole.pointer(pointer).and_then(serde_json::Value::as_f64);
    let found = found.unwrap_or_else(|| panic!("{pointer}: {:?}", whole.pointer(pointer)));
    let is_near = (found - expected).abs() <= 1e-6 * expected.abs().max(1.0);
    assert!(is_near, "{pointer}: {found} is not {expected}");
}

#[test]
fn every_fragment_is_recognised() {
    for name in [
        "load-profile-bm.txt",
        "io-profile-bm.txt",
        "iostat-function-bm.txt",
        "physical-stats.txt",
        "event-histogram-micro-bm.txt",
        "awr-11.2.txt",
        "awr-19c.txt",
    ] {
        assert_eq!(recognise(&sample(name).text), Some(Tool::Awr), "{name}");
    }
    let statspack = sample("statspack-11.2.txt");
    assert_eq!(recognise(&statspack.text), Some(Tool::Statspack));
}

/// What the three layouts print of the same run.
fn the_same_run(record: &Record) {
    assert_eq!(broken(record), Vec::<String>::new(), "{:#?}", notes(record));
    near(record, "/interval/elapsed_s", 600.0);
    near(record, "/interval/tx_count", 6000.0);
    near(record, "/interval/execs_count", 60_000.0);
    near(record, "/instance/stats/physical_read_io_requests_count/total", 3_000_000.0);
    near(record, "/instance/stats/redo_size_bytes/per_s", 517_008.0);
    near(record, "/os/cpus_count", 16.0);
    near(record, "/os/cpu_pct/idle_awr", 99.0);
    near(record, "/os/cpu_pct/idle", 85.0);
    near(record, "/os/cpu_pct/busy", 1.0);
    near(record, "/os/load_end/0", 3.1);
    let db_time = record.instance.time_model.db_time_us.value().expect("DB time");
    assert!((db_time / 1_600_200_000.0 - 1.0).abs() < 1e-3, "{db_time}");
    let metrics = &record.metrics;
    let rate = |key: &str| assay_measure::record::metric::find(metrics, key).and_then(|m| m.value.value());
    assert_eq!(rate("transactions_per_s"), Some(10.0));
    assert_eq!(rate("redo_bytes_per_s"), Some(517_008.0));
    let sync = event(record, "log file sync", "foreground");
    assert_eq!(sync.count.value(), Some(6000.0));
    let redo = record.instance.load_profile.iter().find(|row| row.name == "Redo size (bytes)");
    assert_eq!(redo.and_then(|row| row.per_tx.value()), Some(51_700.8));
    assert!(record.run.started.contains("T10:00:00-00:00"), "{}", record.run.started);
    let text = assay_report::text::render(record);
    assert!(text.contains("Imported from "), "{text}");
}

#[test]
fn a_whole_report_of_11_2_is_read() {
    let record = read(&[sample("awr-11.2.txt")]);
    the_same_run(&record);
    assert_eq!(record.import.as_ref().expect("an import").tool_version, "11.2.0.4.0");
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!((reads.count.value(), reads.class.as_str()), (Some(3_000_000.0), "User I/O"));
    assert!(reads.hist_us.is_empty(), "95 % below 1 ms is one wide column");
    assert!(reads.note.contains("wide columns"), "{}", reads.note);
    assert_eq!(crate::testing::number(&record, "histogram", "db_file_sequential_read_waits_up_to_1000_us_pct"), 95.0);
    // The detail of long waits further down is of the same waits.
    assert!(!says(&record, "keeps the first value"), "{:#?}", notes(&record));
    // Of a time that is printed twice, in hundredths and in us, the finer one counts.
    near(&record, "/instance/stats/redo_synch_time_ns/total", 9_000_321_000.0);
    let coarse = record.import.iter().flat_map(|info| &info.values);
    let coarse: Vec<_> = coarse.filter(|value| value.key == "redo_synch_time_cs").collect();
    assert_eq!(coarse.len(), 1);
    assert_eq!(coarse[0].value.value(), Some(900.0));
    // 28 in 600 s are 0.047, by way of 0.05 printed as 0.1.
    assert!(!broken(&record).contains(&"I26".to_owned()), "{:?}", broken(&record));
    // This layout has no such rows: they follow from the statistics, and so do the figures a comparison is judged by.
    assert!(!sample("awr-11.2.txt").text.contains("Read IO requests:"));
    let metrics = &record.metrics;
    let of = |key: &str| assay_measure::record::metric::find(metrics, key).and_then(|m| m.value.value());
    assert_eq!(of("reads_per_s"), Some(5000.0));
    assert!(record.instance.io_profile.iter().any(|row| row.name == "Total (MB)"));
    // Names cut at 26 and 30 characters are one event.
    let switch = event(&record, "log file switch (private strand flush incomplete)", "foreground");
    assert_eq!((switch.count.value(), switch.class.as_str()), (Some(100.0), "Configuration"));
    let idle = event(&record, "SQL*Net message from client", "foreground");
    assert_eq!((idle.class.as_str(), idle.db_time_pct.value()), ("Idle", None));
    let writes = event(&record, "db file parallel write", "background");
    assert_eq!(writes.total_us.value(), Some(30e6));
    near(&record, "/instance/stats/redo_log_switches_count/total", 3.0);
    near(&record, "/instance/time_model/bg_cpu_us", 7.2e6);
    near(&record, "/os/cpu_s/iowait", 1344.0);
    near(&record, "/instance/gauges/logons current/end", 41.0);
    assert!(
        record.instance.efficiency.iter().any(|row| row.name == "Buffer Hit %" && row.value_pct.value() == Some(27.62))
    );
    assert!(record.instance.efficiency.iter().any(|row| row.name == "% Non-Parse CPU"));
    let lgwr = record.instance.io_functions.iter().find(|row| row.function == "LGWR").expect("a row");
    assert_eq!(lgwr.write_bytes.value(), Some(306.0 * 1_048_576.0));
    let writes = lgwr.write_requests_count.value().expect("derived");
    assert!((writes - 6120.0).abs() < 0.01, "{writes}");
    assert!(record.plan.settings.iter().any(|line| line.name == "filesystemio_options"
        && line.value == "setall"
        && line.origin.starts_with("awr-11.2.txt:")));
    assert!(says(&record, "SQL ordered by"), "{:#?}", notes(&record));
    assert!(says(&record, "page breaks"), "{:#?}", notes(&record));
    let ids: Vec<&str> = record.integrity.iter().map(|i| i.id.as_str()).collect();
    for id in ["I3", "I4", "I5", "I7a", "I13a", "I17", "I19", "I21", "I25a", "I26", "I28", "I31", "I31b", "I32a", "I34"]
    {
        assert!(ids.contains(&id), "{id} of {ids:?}");
    }
}

#[test]
fn a_whole_report_of_19c_is_read() {
    let record = read(&[sample("awr-19c.txt")]);
    the_same_run(&record);
    assert_eq!(record.import.as_ref().expect("an import").tool_version, "19.0.0.0.0");
    let reads = event(&record, "cell single block physical read", "foreground");
    assert_eq!(reads.us_avg.value(), Some(500.0));
    let class = record.instance.wait_classes.iter().find(|row| row.class == "Commit").expect("a class");
    assert_eq!(class.us_avg.value(), Some(1500.0));
    let metrics = &record.metrics;
    let rate = assay_measure::record::metric::find(metrics, "reads_per_s").and_then(|m| m.value.value());
    assert_eq!(rate, Some(5000.0));
}

#[test]
fn a_statspack_report_is_read() {
    let record = read(&[sample("statspack-11.2.txt")]);
    the_same_run(&record);
    assert_eq!(record.import.as_ref().expect("an import").tool, "statspack");
    near(&record, "/instance/time_model/db_cpu_us", 60e6);
}

#[test]
fn pasted_damage_is_tolerated_and_noted() {
    let text = sample("awr-11.2.txt").text;
    let mail: String = text.lines().map(|line| format!("> {line}\r\n")).collect();
    let record = read(&[source("mail.txt", &mail)]);
    the_same_run(&record);
    assert!(says(&record, "mail quotes"));
    // Blanks lost on the way: numbers in order.
    let squeezed: String = text
        .lines()
        .map(|line| {
            if line.starts_with("db file sequential read     ") {
                line.split_whitespace().collect::<Vec<_>>().join(" ") + "\n"
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let record = read(&[source("squeezed.txt", &squeezed)]);
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!(reads.count.value(), Some(3_000_000.0));
    assert!(says(&record, "not aligned"), "{:#?}", notes(&record));
    // A torn column is n/a, a cut part is noted.
    let torn = text.replace("       517,008.0", "       #########").replace("SQL*Plus", "...\n...");
    let record = read(&[source("torn.txt", &torn)]);
    let redo = record.instance.load_profile.iter().find(|row| row.name == "Redo size (bytes)").expect("a row");
    assert_eq!(redo.per_s.reason(), Some("torn column"));
    // A row of numbers on a line of its own.
    let wrapped = text.replace(
        "log file sync                         6,000           9      2    0.6 Commit",
        "log file sync\n                                      6,000           9      2    0.6",
    );
    let record = read(&[source("wrapped.txt", &wrapped)]);
    assert_eq!(event(&record, "log file sync", "foreground").count.value(), Some(6000.0));
}

#[test]
fn parts_in_several_files_are_the_record_of_the_whole() {
    let text = sample("awr-11.2.txt").text;
    let whole = read(&[source("whole.txt", &text)]);
    let at = text.find("Time Model Statistics").expect("a section");
    let parts = read(&[source("a.txt", &text[..at]), source("b.txt", &text[at..])]);
    assert_eq!((&parts.instance.stats, &parts.instance.events), (&whole.instance.stats, &whole.instance.events));
    assert_eq!((&parts.interval, &parts.instance.time_model), (&whole.interval, &whole.instance.time_model));
}

proptest::proptest! {
    #[test]
    fn a_damaged_report_never_panics(cut in 0_usize..12_000, len in 0_usize..400, with in "(?s).{0,8}") {
        let mut text = sample("awr-11.2.txt").text;
        let (from, to) = (cut.min(text.len()), (cut + len).min(text.len()));
        text.replace_range(from..to, &with);
        if let Ok(record) = import(&[source("-", &text)]) {
            proptest::prop_assert_eq!(misplaced(&record), Vec::<String>::new());
            let _ = assay_report::text::render(&record);
        }
    }
}
