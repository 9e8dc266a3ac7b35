use super::render;
use assay_awr::record::build;
use assay_testkit::fixtures;

#[test]
fn the_report_of_the_frozen_run() {
    insta::assert_snapshot!(render(&build(&fixtures::run())));
}

#[test]
fn the_reports_of_the_frozen_run_against_servers() {
    for version in [15, 18] {
        let text = render(&build(&fixtures::postgres(version)));
        insta::assert_snapshot!(format!("postgres_{version}"), text);
    }
}

/// Records of real servers, five seconds each, as `assay run` left them.
fn recorded(version: u32) -> assay_measure::record::Record {
    let text = match version {
        15 => include_str!("../../../../testdata/records/postgres-15.json"),
        _ => include_str!("../../../../testdata/records/postgres-18.json"),
    };
    crate::json::read(text).expect("a record")
}

#[test]
fn the_reports_of_real_servers() {
    for version in [15, 18] {
        let text = render(&recorded(version));
        insta::assert_snapshot!(format!("real_postgres_{version}"), text);
    }
}

#[test]
fn a_real_servers_record_agrees_with_itself() {
    for version in [15, 18] {
        let record = recorded(version);
        let violated = assay_measure::identity::violated(&record);
        assert!(violated.is_empty(), "{version}: {violated:#?}");
        let server = record.instance.server.as_ref().expect("a server");
        assert!(server.version.starts_with(&version.to_string()));
        // The rows before and after the window are what the rate was computed from.
        let [before, after] = server.rows.as_slice() else {
            panic!("{:?}", server.rows);
        };
        let moved = after.hits_blocks.value().unwrap() - before.hits_blocks.value().unwrap();
        let rate = server.cache_hits_blocks_per_s.value().unwrap();
        let elapsed = record.interval.elapsed_s.value().unwrap();
        assert!((moved / elapsed - rate).abs() < 1e-6 * rate, "{version}");
        // One wait is one row, whatever its names.
        let names: Vec<&str> = record.instance.events.iter().map(|row| row.name.as_str()).collect();
        assert!(!names.contains(&"IO:DataFileWrite"), "{names:?}");
        assert!(!names.contains(&"IO:DataFileRead"), "{names:?}");
    }
}

fn report() -> String {
    render(&build(&fixtures::run()))
}

fn lines_with<'a>(text: &'a str, part: &str) -> Vec<(usize, &'a str)> {
    let lines = text.lines().enumerate();
    lines.filter(|(_, line)| line.contains(part)).collect()
}

fn line_of(text: &str, part: &str) -> usize {
    lines_with(text, part).first().unwrap_or_else(|| panic!("no line with {part}")).0
}

/// The numbers of a line, n/a left out, thousands separators removed.
fn numbers(line: &str) -> Vec<f64> {
    line.replace(',', "").split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

#[test]
fn physical_read_and_write_requests_have_one_line_each_in_the_whole_file() {
    let text = report();
    assert_eq!(lines_with(&text, "physical read IO requests").len(), 1);
    assert_eq!(lines_with(&text, "physical write IO requests").len(), 1);
}

#[test]
fn the_grep_of_the_field_finds_every_physical_statistic_in_order() {
    let text = report();
    let start = line_of(&text, "physical read IO requests");
    let window: Vec<&str> = text.lines().skip(start).take(35).collect();
    let found: Vec<&str> =
        window.iter().filter(|line| line.contains("physical")).map(|line| line[..44].trim_end()).collect();
    let mut expected: Vec<&str> = assay_measure::counter_catalog::DICTIONARY
        .iter()
        .map(|stat| stat.name)
        .filter(|name| name.starts_with("physical") && text.contains(&format!("\n{name:<44}")))
        .collect();
    expected.sort_unstable();
    assert_eq!(found, expected);
    assert!(found.len() > 15, "{found:?}");
}

#[test]
fn instance_activity_columns_are_total_per_second_and_per_transaction() {
    let text = report();
    let (_, line) = lines_with(&text, "physical read IO requests")[0];
    assert_eq!(numbers(&line[44..]), [120_000.0, 6000.0, 600.0, 60.0]);
    assert!(line.ends_with("sysstat"));
}

#[test]
fn load_profile_labels_are_those_of_the_field_and_their_first_number_is_per_second() {
    let text = report();
    for (label, per_second) in [
        ("DB Time(s):", 4.0),
        ("DB CPU(s):", 0.7),
        ("Background CPU(s):", 0.1),
        ("Redo size (bytes):", 520_000.0),
        ("Logical read (blocks):", 6700.0),
        ("Executes (SQL):", 100.0),
    ] {
        let lines = lines_with(&text, label);
        assert_eq!(lines.len(), 1, "{label}");
        assert!(lines[0].1.trim_start().starts_with(label));
        let rest = lines[0].1.split_once(':').unwrap().1;
        assert_eq!(numbers(rest)[0], per_second, "{label}");
    }
}

#[test]
fn every_label_that_ends_in_a_colon_is_unique() {
    let text = report();
    // The identities are sentences, not labels.
    let upto = text.lines().position(|line| line == "Integrity Detail");
    let mut labels: Vec<&str> = text
        .lines()
        .take(upto.unwrap())
        .filter(|line| !line.starts_with("n/a"))
        .filter_map(|line| line.split_once(": "))
        .map(|(label, _)| label.trim())
        .collect();
    let all = labels.len();
    labels.sort_unstable();
    labels.dedup();
    assert_eq!(labels.len(), all);
    assert!(all > 30, "{labels:?}");
}

#[test]
fn elapsed_comes_first_in_the_header_followed_by_minutes() {
    let text = report();
    let (row, line) = lines_with(&text, "Elapsed:")[0];
    let title = text.lines().position(|line| line.starts_with("ASSAY WORKLOAD REPORT"));
    assert!(row - title.expect("a title") < 15);
    assert!(line.contains("(mins)"), "{line}");
    assert_eq!(numbers(line), [0.33, 20.0]);
}

#[test]
fn the_top_event_follows_its_heading_within_ten_lines() {
    let text = report();
    let lines: Vec<&str> = text.lines().collect();
    let heading =
        lines.iter().position(|line| line.starts_with("Top ") && line.contains(" Foreground Events")).unwrap();
    let header = lines[heading..heading + 10].iter().position(|line| line.starts_with("Event")).unwrap();
    let top = lines[heading + header + 2];
    assert!(header + 2 < 10);
    assert!(top.starts_with("db file sequential read"), "{top}");
    assert!(lines[heading..heading + 10].iter().any(|line| line.starts_with("DB CPU ")));
    assert!(lines[heading..heading + 10].iter().any(|line| line.starts_with("run queue ")));
}

#[test]
fn the_three_wait_headings_come_in_order_and_nowhere_earlier() {
    let text = report();
    let at = ["Foreground Wait Events", "Background Wait Events", "Wait Event Histogram"].map(|heading| {
        let lines = lines_with(&text, heading);
        assert_eq!(lines.len(), 1, "{heading}");
        assert_eq!(lines[0].1, heading);
        lines[0].0
    });
    assert!(at.is_sorted());
}

/// Lines of events between two headings.
fn events<'a>(text: &'a str, from: &str, to: &str) -> Vec<&'a str> {
    let (from, to) = (line_of(text, from), line_of(text, to));
    let section = text.lines().take(to).skip(from);
    section.skip_while(|line| !line.starts_with("---")).skip(1).filter(|l| !l.is_empty()).collect()
}

#[test]
fn every_wait_event_is_one_line_of_six_plain_fields() {
    let text = report();
    let foreground = events(&text, "Foreground Wait Events", "Background Wait Events");
    let background = events(&text, "Background Wait Events", "Wait Event Histogram");
    assert_eq!((foreground.len(), background.len()), (3, 3));
    for line in foreground.iter().chain(&background) {
        assert_eq!(numbers(&line[44..]).len(), 6, "{line}");
        assert_eq!(line[44..].split_whitespace().count(), 6, "{line}");
    }
    assert_eq!(numbers(&foreground[0][44..]), [120_000.0, 0.0, 60.0, 0.5, 600.0, 75.0]);
}

#[test]
fn a_read_only_run_prints_one_token_per_transaction_and_keeps_six_fields() {
    let mut run = fixtures::run();
    let commits = assay_measure::counter_catalog::USER_COMMITS.name;
    let series = run.series.iter_mut();
    let marks = [&mut run.gate, &mut run.begin, &mut run.end, &mut run.drained];
    for mark in series.chain(marks) {
        let zero = assay_measure::snapshot::Reading::Count(0);
        mark.stats.counters.insert(commits.to_owned(), zero);
    }
    let text = render(&build(&run));
    let foreground = events(&text, "Foreground Wait Events", "Background Wait Events");
    for line in &foreground {
        let fields: Vec<&str> = line[44..].split_whitespace().collect();
        assert_eq!(fields.len(), 6, "{line}");
        assert_eq!(fields[4], "n/a");
    }
    let (_, line) = lines_with(&text, "Logical read (blocks):")[0];
    assert_eq!(line.split_whitespace().nth(4), Some("n/a"), "{line}");
}

#[test]
fn an_event_that_did_not_wait_in_the_window_has_no_line() {
    let mut run = fixtures::run();
    // All its waits come before the window.
    let early = run.begin.stats.events.clone();
    for mark in [&mut run.end, &mut run.drained].into_iter().chain(&mut run.series) {
        for event in &mut mark.stats.events {
            if event.name == "log file sync" {
                let then = early.iter().find(|e| e.name == "log file sync").unwrap();
                event.waits = then.waits.clone();
            }
        }
    }
    let text = render(&build(&run));
    let foreground = events(&text, "Foreground Wait Events", "Background Wait Events");
    assert!(foreground.iter().all(|line| !line.starts_with("log file sync")));
    assert_eq!(foreground.len(), 2);
}

#[test]
fn the_histogram_is_that_of_the_window_and_sums_to_the_waits() {
    let text = report();
    let from = line_of(&text, "Below (us)");
    let rows: Vec<&str> = text
        .lines()
        .skip(from + 2)
        .take_while(|line| !line.is_empty())
        .filter(|line| line.starts_with("db file sequential read"))
        .collect();
    // 400 us lies below 512, 1400 us below 2048; the bucket between is shown as empty.
    let cells: Vec<Vec<f64>> = rows.iter().map(|row| numbers(&row[44..88])).collect();
    assert_eq!(cells[0][..2], [512.0, 108_000.0]);
    assert_eq!(cells[1][..2], [1024.0, 0.0]);
    assert_eq!(cells[2], [2048.0, 12_000.0, 10.0, 100.0]);
    assert!(rows[0].ends_with("512 microseconds"));
    assert!(rows[2].ends_with("2 milliseconds"));
}

#[test]
fn a_record_without_data_prints_every_section_with_its_reason() {
    let text = render(&assay_measure::record::Record::default());
    for heading in [
        "Integrity",
        "Warnings",
        "Test Card",
        "Host CPU",
        "Memory Statistics",
        "Pressure Stall Information",
        "Time Model Statistics",
        "Foreground Wait Class",
        "Foreground Wait Events",
        "Background Wait Events",
        "Wait Event Histogram",
        "IOStat by Function",
        "IOStat by Filetype",
        "Driver Statistics",
        "Sessions",
        "Parameters",
        "Buffer Pool and Checkpoint Activity",
        "Log Activity",
        "Per-Second Steadiness",
    ] {
        assert!(text.contains(&format!("\n{heading}\n~")), "{heading}");
    }
    assert!(text.contains("n/a (no series)"));
    assert!(text.ends_with("End of Report\n"));
}

#[test]
fn nothing_prints_as_infinite_not_a_number_or_scientific() {
    for text in [report(), render(&Default::default())] {
        let suspicious = |word: &str| {
            let lower = word.to_ascii_lowercase();
            lower == "nan"
                || lower == "inf"
                || lower.contains("e+")
                || (lower.parse::<f64>().is_ok() && lower.contains('e'))
        };
        assert_eq!(text.split_whitespace().find(|word| suspicious(word)), None);
        assert!(text.is_ascii());
    }
}

#[test]
fn a_small_value_is_never_printed_as_zero() {
    let text = report();
    let (_, line) = lines_with(&text, "DB CPU(s):")[0];
    // 7 ms an operation: one decimal would say 0.0.
    assert!(line.ends_with("0.0070"), "{line}");
}

/// What the summariser of the field takes from a report, by the same greps and columns.
mod gold {
    use super::*;
    use crate::formats;
    use assay_measure::counter_catalog::{self, Stat};
    use assay_measure::histogram::Histogram;
    use assay_measure::snapshot::{Actor, EventReading, Reading, RunData, WaitClass};

    /// The totals of a published 304 s run of 128 sessions, from its rates.
    fn published() -> RunData {
        let mut run = fixtures::run();
        let (begin_ns, end_ns) = (run.begin.at_ns, run.begin.at_ns + 304_000_000_000);
        run.sessions = 128;
        run.end.at_ns = end_ns;
        let zero = run.begin.stats.clone();
        run.end.stats.clone_from(&zero);
        run.end.stats.events.clear();
        run.begin.stats.events.clear();
        let mut add = |stat: Stat, per_s: f64| {
            let n = (per_s * 304.0).round() as u64;
            let Some(Reading::Count(count)) = run.end.stats.counters.get_mut(stat.name) else {
                panic!("{}", stat.name);
            };
            *count += n;
        };
        add(counter_catalog::DB_TIME, 126.5e9);
        add(counter_catalog::DB_CPU, 5.7e9);
        add(counter_catalog::BACKGROUND_CPU, 1.3e9);
        add(counter_catalog::EXECUTE_COUNT, 370.0);
        add(counter_catalog::SESSION_LOGICAL_READS, 119_749.0);
        add(counter_catalog::PHYSICAL_READ_REQUESTS, 71_553.0);
        add(counter_catalog::PHYSICAL_READ_TOTAL_BYTES, 559.1 * 1_048_576.0);
        add(counter_catalog::PHYSICAL_WRITE_REQUESTS, 25_884.0);
        add(counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, 329.0 * 1_048_576.0);
        add(counter_catalog::REDO_SIZE, 108.2 * 1_048_576.0);
        let mut wait = |name: &str, actor: Actor, us: u64, n: u64| {
            let mut waits = Histogram::new();
            waits.record_n(us * 1000, n);
            let class = match actor {
                Actor::Foreground => WaitClass::UserIo,
                Actor::Background => WaitClass::SystemIo,
            };
            let name = name.to_owned();
            run.end.stats.events.push(EventReading { name, class, actor, timeouts: 0, waits });
        };
        wait("db file sequential read", Actor::Foreground, 759, 21_750_000);
        wait("db file parallel write", Actor::Background, 312, 24_133);
        wait("log file parallel write", Actor::Background, 440_653, 671);
        assert!(begin_ns < end_ns);
        run
    }

    fn after<'a>(text: &'a str, label: &str) -> &'a str {
        let line = text.lines().find(|line| line.contains(label)).unwrap();
        &line[line.find(label).unwrap() + label.len()..]
    }

    fn average_us(text: &str, section: (&str, &str), event: &str) -> f64 {
        let lines = events(text, section.0, section.1);
        let line = lines.iter().find(|line| line.starts_with(event)).unwrap().replace(',', "");
        let fields: Vec<&str> = line.split_whitespace().collect();
        let field = |from_end: usize| fields[fields.len() - from_end].parse::<f64>().unwrap();
        field(4) / field(6) * 1e6
    }

    #[test]
    fn the_summariser_of_the_field_reads_the_published_figures_back() {
        let text = render(&build(&published()));
        let first = |label: &str| numbers(after(&text, label))[0];
        assert_eq!((first("Elapsed:") * 60.0).trunc(), 304.0);
        assert_eq!(first("DB CPU(s):") + first("Background CPU(s):"), 7.0);
        assert_eq!(first("DB Time(s):"), 126.5);
        assert_eq!(first("Executes (SQL):"), 370.0);
        assert_eq!(first("Logical read (blocks):"), 119_749.0);
        let per_second = |name: &str| numbers(after(&text, name))[1];
        assert_eq!(per_second("physical read IO requests"), 71_553.0);
        assert_eq!(per_second("physical write IO requests"), 25_884.0);
        let mib = |name: &str| (per_second(name) / 1_048_576.0 * 10.0).round() / 10.0;
        assert_eq!(mib("physical read total bytes"), 559.1);
        assert_eq!(mib("physical write total bytes"), 329.0);
        assert_eq!((first("Redo size (bytes):") / 1_048_576.0 * 10.0).round() / 10.0, 108.2);
        let foreground = ("Foreground Wait Events", "Background Wait Events");
        let background = ("Background Wait Events", "Wait Event Histogram");
        let close = |found: f64, expected: f64| (found - expected).abs() < 0.5;
        assert!(close(average_us(&text, foreground, "db file sequential read"), 759.0));
        assert!(close(average_us(&text, background, "db file parallel write"), 312.0));
        assert!(close(average_us(&text, background, "log file parallel write"), 440_653.0));
    }

    #[test]
    fn the_summary_line_says_the_same() {
        let published = build(&published());
        let summary = formats::find("summary").unwrap();
        let text = summary.text(&formats::Input::of(&[&published])).unwrap();
        let line = text.lines().last().unwrap();
        let cells: Vec<&str> = line.split('|').collect();
        assert_eq!(
            cells[1..],
            [
                "128",
                "304",
                "7.0",
                "126.5",
                "370",
                "119749",
                "71553",
                "559.1",
                "25884",
                "329.0",
                "108.2",
                "759",
                "",
                "",
                "312",
                "440653",
                "db file sequential read"
            ]
        );
    }
}
