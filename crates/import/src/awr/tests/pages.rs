//! HTML: the same record as the text of the same report; reports on a cluster.

use super::{broken, event, near, notes, read, sample, says, source, the_same_run};
use crate::testing::{mutated, number};
use crate::{Tool, import, recognise};
use assay_measure::record::Record;
use assay_testkit::places::misplaced;

fn info(record: &Record) -> &assay_measure::record::ImportInfo {
    record.import.as_ref().expect("an import")
}

#[test]
fn html_gives_the_record_of_the_text_of_the_same_report() {
    let page = sample("awr-19c.html");
    assert_eq!(recognise(&page.text), Some(Tool::Awr));
    let record = read(std::slice::from_ref(&page));
    the_same_run(&record);
    assert_eq!(info(&record).format, "report HTML");
    assert_eq!(info(&record).tool_version, "19.0.0.0.0");
    let text = read(&[sample("awr-19c.txt")]);
    let (ours, theirs) = (&record.instance, &text.instance);
    assert_eq!(ours.load_profile, theirs.load_profile);
    assert_eq!(ours.io_profile, theirs.io_profile);
    assert_eq!(ours.efficiency, theirs.efficiency);
    assert_eq!(ours.wait_classes, theirs.wait_classes);
    assert_eq!(ours.events, theirs.events);
    assert_eq!(ours.time_model, theirs.time_model);
    assert_eq!((&record.interval, &record.os), (&text.interval, &text.os));
    for (key, row) in &theirs.stats {
        // A name that the text cuts is whole here.
        if row.name != "physical read total multi block" {
            assert_eq!(ours.stats.get(key), Some(row), "{key}");
        }
    }
    // Each value stands in the line that it names.
    let lines: Vec<&str> = page.text.lines().collect();
    for value in &info(&record).values {
        let line = lines[value.line as usize - 1];
        assert!(line.contains(&value.printed), "{}: {line}", value.printed);
    }
}

#[test]
fn a_table_of_html_alone_is_read() {
    let page = sample("awr-19c.html").text;
    let at =
        page.find("<table border=\"0\" class=\"tdiff\" summary=\"This table displays load profile").expect("there");
    let end = at + page[at..].find("</table>").expect("its end") + 8;
    let record = read(&[source("lp.html", &page[at..end])]);
    assert_eq!(record.instance.load_profile.len(), 16);
    // A browser that saves a page writes tags in capitals and attributes without quotes.
    let saved = page[at..end].replace("<td", "<TD").replace("</td>", "").replace("class='awrc'", "class=awrc");
    let again = read(&[source("saved.html", &saved)]);
    assert_eq!(again.instance.load_profile, record.instance.load_profile);
}

const CLUSTER: &str = include_str!("../../../../../testdata/awr/awr-rac-19c.html");

#[test]
fn a_report_on_a_cluster_has_the_total_and_each_instance() {
    let record = read(&[source("rac.html", CLUSTER)]);
    assert_eq!(broken(&record), Vec::<String>::new(), "{:#?}", notes(&record));
    near(&record, "/interval/elapsed_s", 3600.0);
    let row = |name: &str| {
        let mut rows = record.instance.load_profile.iter();
        rows.find(|row| row.name == name).expect("a row").clone()
    };
    assert_eq!(row("Logical read (blocks)").per_s.value(), Some(50_000.0));
    assert_eq!(row("Transactions").per_s.value(), Some(300.0));
    assert_eq!(row("DB Time(s)").per_s.value(), Some(10.0));
    assert_eq!(number(&record, "instance 1", "logical_read_blocks_per_s"), 30_000.0);
    assert_eq!(number(&record, "instance 2", "logical_read_blocks_per_s"), 20_000.0);
    // A mean of two ratios is none of the cluster.
    assert_eq!(number(&record, "instance 2", "logical_read_blocks_per_tx"), 200.0);
    let stats = &record.instance.stats;
    near(&record, "/instance/stats/execute_count/total", 7_200_000.0);
    assert_eq!(stats["execute_count"].per_tx.value(), Some(6.67));
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!((reads.count.value(), reads.class.as_str()), (Some(3_600_000.0), "User I/O"));
    assert_eq!(reads.us_avg.value(), Some(500.0));
    assert_eq!(number(&record, "instance 1, foreground", "db_file_sequential_read_waits_count"), 2_000_000.0);
    // The share of background time is printed as a ratio under a title of percent.
    let log = event(&record, "log file parallel write", "background");
    assert_eq!(log.db_time_pct.value(), None);
    near(&record, "/os/cpus_count", 32.0);
    near(&record, "/os/cpu_pct/busy", 25.0);
    assert_eq!(number(&record, "instance 2", "host_cpu_busy_pct"), 20.0);
    let functions = &record.instance.io_functions;
    assert_eq!(functions[0].function, "Buffer Cache Reads");
    assert_eq!(number(&record, "instance 2, LGWR", "iostat_write_requests_per_s"), 100.0);
    assert_eq!(info(&record).tool_version, "19.0.0.0.0");
    let setting = record.plan.settings.iter().find(|line| line.name == "cpu_count");
    assert!(setting.is_none(), "differs between the instances");
    assert!(!says(&record, "share a host"));
}

#[test]
fn instances_of_one_host_do_not_count_its_cpus_twice() {
    let record = read(&[source("rac.html", &CLUSTER.replace("host2", "host1"))]);
    assert_eq!(record.os.cpus_count.value(), None);
    assert!(says(&record, "share a host"), "{:#?}", notes(&record));
}

proptest::proptest! {
    // A page is long: what these do not try, the fuzz target `awr` does.
    #![proptest_config(proptest::test_runner::Config::with_cases(24))]

    #[test]
    fn a_damaged_page_never_panics(seed in 0_u64..1_000_000, cut in 0_usize..20_000, len in 0_usize..300, with in "(?s).{0,8}") {
        for page in [sample("awr-19c.html").text, CLUSTER.to_owned()] {
            let mut text = mutated(&page, seed);
            let at = text.floor_char_boundary(cut.min(text.len()));
            let end = text.floor_char_boundary((at + len).min(text.len()));
            text.replace_range(at..end, &with);
            if let Ok(record) = import(&[source("-", &text)]) {
                proptest::prop_assert_eq!(misplaced(&record), Vec::<String>::new());
            }
        }
    }
}
