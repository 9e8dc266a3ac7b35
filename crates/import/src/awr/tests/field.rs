//! Reports as people pass them on: excerpts, copied from a browser, turned into Markdown, wrapped by mail.

use super::screens::screen_of;
use super::{broken, event, near, notes, read, source};
use assay_measure::record::Record;

fn field(name: &str) -> Record {
    let path = format!("{}/../../testdata/field/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&path).expect("a sample");
    let record = read(&[source(name, &text)]);
    assert_eq!(broken(&record), Vec::<String>::new(), "{name}");
    record
}

fn fact<'a>(record: &'a Record, name: &str) -> &'a str {
    let mut facts = record.host.facts.iter().chain(&record.plan.engine_facts);
    facts.find(|fact| fact.name == name).map_or("", |fact| fact.value.as_str())
}

#[test]
fn the_event_with_most_waits_speaks_for_the_reads() {
    let screen = screen_of(&field("awr-direct-path-reads-whole.txt"));
    assert!(!screen.contains("3,000 us"), "{screen}");
    assert!(screen.contains("reads took 200 us on average"), "{screen}");
}

#[test]
fn a_share_without_a_name_is_no_limit() {
    let screen = screen_of(&field("awr-load-profile-only.txt"));
    let limit = "Limited by n/a (of the sessions' time 40 % is on a CPU; no wait was printed, 60 % has no name)";
    assert!(screen.contains(limit), "{screen}");
}

#[test]
fn shares_of_an_excerpt_need_no_window() {
    let screen = screen_of(&field("awr-top-events-fragment.txt"));
    assert!(screen.contains("Limited by CPU and the resource manager's limit on it"), "{screen}");
    assert!(screen.contains("resmgr:cpu quantum is 40 % of the sessions' time"), "{screen}");
    assert!(screen.contains("db file sequential read = 2,500 us"), "{screen}");
}

/// The figures that all forms of one report have.
fn has_the_figures(record: &Record) {
    near(record, "/interval/elapsed_s", 1800.0);
    near(record, "/instance/time_model/db_time_us", 18_000e6);
    assert!(screen_of(record).contains("Rate 100 transactions/s"), "{}", screen_of(record));
    near(record, "/instance/load_profile/0/per_s", 10.0);
    assert_eq!(record.interval.begin, "2022-03-01T10:00:00-00:00");
}

#[test]
fn a_report_copied_from_a_browser_is_read_as_the_page_it_was() {
    let record = field("awr-tabs-from-browser.txt");
    has_the_figures(&record);
    near(&record, "/os/cpus_count", 16.0);
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!((reads.db_time_pct.value(), reads.us_avg.value()), (Some(80.0), Some(10_000.0)));
    assert_eq!(fact(&record, "host_name"), "demohost");
    assert_eq!(notes(&record), Vec::<String>::new());
}

#[test]
fn a_report_turned_into_markdown_is_read() {
    has_the_figures(&field("awr-pipes.md"));
    let path = format!("{}/../../testdata/field/awr-pipes.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).expect("a sample");
    // The other way to draw them, with pipes outside.
    let outer: Vec<String> = text
        .lines()
        .map(|line| match line {
            line if !line.contains('|') => line.to_owned(),
            line => format!("| {line} |"),
        })
        .collect();
    has_the_figures(&read(&[source("outer.md", &outer.join("\n"))]));
}

/// Contents, links back and remarks stand between the tables of a whole report.
#[test]
fn what_stands_between_the_tables_of_markdown_names_no_table() {
    let text = "\
# WORKLOAD REPOSITORY report for

| Snap Id| Snap Time| Sessions| Cursors/Session
---|---|---|---|---
Begin Snap:| 11| 01-Mar-22 10:00:00| 40|  1.5
End Snap:| 12| 01-Mar-22 10:30:00| 41|  1.5
Elapsed:|  |  30.00 (mins)|  |
DB Time:|  |  300.00 (mins)|  |

## Main Report

  * Foreground Wait Events
  * Load Profile

Back to Top

* * *

### Service Statistics

  * ordered by DB Time

Service Name| DB Time (s)| DB CPU (s)
---|---|---
demo| 18,000| 3,600

* * *

Back to Wait Events Statistics
Back to Top

### Foreground Wait Events

  * s - second, ms - millisecond - 1000th of a second
  * Only events with Total Wait Time (s) >= .001 are shown

Event| Waits| %Time -outs| Total Wait Time (s)| Avg wait (ms)| Waits /txn| % DB time
---|---|---|---|---|---|---
db file sequential read| 1,440,000| 0| 14,400| 10| 8.00| 80.00
SQL*Net message from client| 70,372| 0| 39,641| 563| 15.72|

* * *

Back to Wait Events Statistics

### Something New

Name| Waits
---|---
x| 1
";
    let record = read(&[source("report.md", text)]);
    let names: Vec<&str> = record.instance.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["SQL*Net message from client", "db file sequential read"]);
    assert_eq!(event(&record, "db file sequential read", "foreground").us_avg.value(), Some(10_000.0));
    assert!(notes(&record).iter().any(|note| note.contains("Service Statistics") && note.contains("Something New")));
}

#[test]
fn a_parameter_of_a_container_is_not_the_root_s() {
    let record = field("awr-pdb-parameters.txt");
    let of = |name: &str| {
        let mut all = record.plan.settings.iter();
        all.find(|line| line.name == name).map_or("", |line| line.value.as_str())
    };
    assert_eq!(of("sga_target (SALESPDB)"), "1073741824");
    assert_eq!(of("sga_target"), "8589934592");
    assert_eq!(fact(&record, "container_name"), "SALESPDB");
}

#[test]
fn the_host_of_a_statspack_is_read_though_mail_wrapped_its_titles() {
    let record = field("statspack-wrapped-host-heading.txt");
    near(&record, "/interval/elapsed_s", 3600.0);
    near(&record, "/instance/time_model/db_time_us", 1800e6);
    near(&record, "/instance/time_model/db_cpu_us", 720e6);
    near(&record, "/interval/sessions_begin_count", 55.0);
    near(&record, "/interval/sessions_end_count", 57.0);
    near(&record, "/os/cpus_count", 24.0);
    for (name, value) in [("host_name", "demohost"), ("cores", "12"), ("sockets", "2"), ("memory_gb", "96.0")] {
        assert_eq!(fact(&record, name), value, "{name}");
    }
    assert!(screen_of(&record).contains("Rate 5.00 transactions/s"), "{}", screen_of(&record));
}

const STATSPACK_9I: &str = "\
STATSPACK report for

DB Name         DB Id    Instance     Inst Num Release     Cluster Host
------------ ----------- ------------ -------- ----------- ------- ------------
DEMO          1234567890 demo                1 9.2.0.6.0   NO      demohost

            Snap Id     Snap Time      Sessions Curs/Sess Comment
            ------- ------------------ -------- --------- -------------------
Begin Snap:      11 02-Feb-05 09:00:00       20       5.0
  End Snap:      12 02-Feb-05 09:30:00       22       5.0
   Elapsed:               30.00 (mins)

Cache Sizes (end)
~~~~~~~~~~~~~~~~~
               Buffer Cache:     1,024M      Std Block Size:         8K
           Shared Pool Size:       256M          Log Buffer:     1,024K

Load Profile
~~~~~~~~~~~~                            Per Second       Per Transaction
                                   ---------------       ---------------
                  Redo size:             10,000.00              2,000.00
              Logical reads:              5,000.00              1,000.00
             Physical reads:                500.00                100.00
               Transactions:                  5.00

  % Blocks changed per Read:    0.38    Recursive Call %:    95.95

Top 5 Timed Events
~~~~~~~~~~~~~~~~~~                                                     % Total
Event                                               Waits    Time (s) Ela Time
-------------------------------------------- ------------ ----------- --------
db file sequential read                           900,000       1,800    75.00
CPU time                                                          600    25.00
          -------------------------------------------------------------
";

#[test]
fn a_statspack_of_9i_has_its_titles_on_the_underline() {
    let record = read(&[source("sp.txt", STATSPACK_9I)]);
    assert_eq!(broken(&record), Vec::<String>::new());
    near(&record, "/interval/elapsed_s", 1800.0);
    near(&record, "/interval/sessions_end_count", 22.0);
    let rows: Vec<(&str, Option<f64>, Option<f64>)> = record
        .instance
        .load_profile
        .iter()
        .map(|row| (row.name.as_str(), row.per_s.value(), row.per_tx.value()))
        .take(4)
        .collect();
    let expected = [
        ("Redo size (bytes)", Some(10_000.0), Some(2000.0)),
        ("Logical read (blocks)", Some(5000.0), Some(1000.0)),
        ("Physical read (blocks)", Some(500.0), Some(100.0)),
        ("Transactions", Some(5.0), None),
    ];
    assert_eq!(rows, expected);
    assert_eq!(event(&record, "db file sequential read", "foreground").us_avg.value(), Some(2000.0));
    assert_eq!(fact(&record, "host"), "demohost");
    let text = STATSPACK_9I.replace(
        "            Snap Id     Snap Time",
        "Host  Name:   demohost    Num CPUs:    4        Phys Memory (MB):    8,192\n~~~~\n\n            Snap Id     Snap Time",
    );
    let record = read(&[source("sp.txt", &text)]);
    near(&record, "/os/cpus_count", 4.0);
    assert_eq!((fact(&record, "host_name"), fact(&record, "memory_mb")), ("demohost", "8,192"));
}

#[test]
fn excerpts_without_their_titles_are_read() {
    let events = "
                                           Total Wait       Wait   % DB Wait
Event                                Waits Time (sec)    Avg(ms)   time Class
------------------------------ ----------- ---------- ---------- ------ --------
db file sequential read            100,000      500.0       5.00   83.3 User I/O
DB CPU                                          100.0              16.7

             DB Time(s):              10.0              50.0      0.00      3.00
              DB CPU(s):               1.7               8.3      0.00      2.00
  Logical read (blocks):       3,000,000.0      15,000,000.0
";
    let record = read(&[source("excerpt.txt", events)]);
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!((reads.count.value(), reads.us_avg.value()), (Some(100_000.0), Some(5000.0)));
    assert_eq!((reads.db_time_pct.value(), reads.class.as_str()), (Some(83.3), "User I/O"));
    near(&record, "/instance/load_profile/0/per_s", 10.0);
    near(&record, "/instance/load_profile/2/per_tx", 15_000_000.0);
}

#[test]
fn an_average_that_rounding_left_nothing_of_is_none() {
    let text = "\
WORKLOAD REPOSITORY report for

   Elapsed:                5.00 (mins)
   DB Time:                5.00 (mins)

Foreground Wait Events                       DB/Inst: DEMO/demo  Snaps: 11-12

                                                             Avg
                                        %Time Total Wait    wait    Waits   % DB
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
db file sequential read         121,513     0          1       0     50.0     .3
direct path read                900,000     0        180       0     50.0   60.0
          -------------------------------------------------------------
";
    let record = read(&[source("awr.txt", text)]);
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!(reads.us_avg.value(), None);
    assert_eq!(reads.us_avg.reason(), Some("between 4 and 12 us: rounded too coarsely"));
    assert_eq!(event(&record, "direct path read", "foreground").us_avg.value(), Some(200.0));
}

/// One class of waits each, as the table of classes alone has it.
#[test]
fn every_class_of_waits_has_its_words() {
    let of = |class: &str, cpu: &str, share: &str| {
        let text = format!(
            "WORKLOAD REPOSITORY report for\n\n   Elapsed:               10.00 (mins)\n   DB Time:              100.00 (mins)\n\n\
             Load Profile                    Per Second   Per Transaction\n\
             ~~~~~~~~~~~~~~~            ---------------   ---------------\n\
             \x20            DB Time(s):              10.0               1.0\n\
             \x20             DB CPU(s):               {cpu}               0.1\n\n\
             Foreground Wait Class           DB/Inst: TESTDB/testdb  Snaps: 141-142\n\n\
             \x20                                                                 Avg\n\
             \x20                                     %Time       Total Wait     wait\n\
             Wait Class                      Waits -outs         Time (s)     (ms)  %DB time\n\
             -------------------- ---------------- ----- ---------------- -------- ---------\n\
             {class:<20}          100,000     0          4,980.0   49.80      {share}\n\
             \x20         -------------------------------------------------------------\n"
        );
        screen_of(&read(&[source("awr.txt", &text)]))
    };
    for (class, words) in [
        ("System I/O", "the instance's own I/O"),
        ("Administrative", "work of an administrator"),
        ("Scheduler", "the resource manager"),
        ("Concurrency", "other sessions"),
        ("Cluster", "other instances of the cluster"),
        ("Configuration", "a setting of the instance"),
        ("Commit", "the redo log"),
    ] {
        let screen = of(class, "1.0", "83.0");
        assert!(screen.contains(&format!("Limited by {words}")), "{class}: {screen}");
    }
    // The host's CPUs are not known to have been busy.
    let screen = of("User I/O", "1.0", "10.0");
    assert!(screen.contains("Limited by time without a name. 80 %"), "{screen}");
    assert!(!screen.contains("have no CPU"), "{screen}");
}
