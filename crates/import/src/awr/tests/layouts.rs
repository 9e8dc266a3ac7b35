//! Traps of the layouts of text, each in a text of its own with made-up figures.

use super::{broken, event, notes, read, sample, says, source};
use crate::import;
use crate::testing::{number, value};
use assay_measure::record::Record;

fn of(text: &str) -> Record {
    read(&[source("report.txt", text)])
}

fn has(record: &Record, scope: &str, key: &str) -> bool {
    let info = record.import.as_ref().expect("an import");
    let mut values = info.values.iter();
    values.any(|value| value.scope == scope && value.key == key)
}

#[test]
fn a_table_of_two_runs_is_not_read_as_one() {
    let text = "\
WORKLOAD REPOSITORY report for

Key Instance Activity Stats
                                       bare metal               virtualised
Statistic                            Total per Trans          Total per Trans
-------------------------------- --------- --------- -------------- ---------
physical read IO requests          250,000      64.1        425,000      63.9
physical reads                     251,000      64.4        426,000      64.1

Load Profile                    Per Second   Per Transaction
~~~~~~~~~~~~~~~            ---------------   ---------------
       Logical read (blocks):       6,908.0             690.8
";
    let record = of(text);
    assert!(record.instance.stats.is_empty());
    assert!(says(&record, "a table of several runs"), "{:#?}", notes(&record));
    assert_eq!(record.interval.elapsed_s.value(), None);
    assert_eq!(record.instance.load_profile[0].per_tx.value(), Some(690.8));
    // The same without titles: totals of two runs are no rate.
    let loose = "\
physical read IO requests          250,000      64.1        425,000
physical reads                     251,000      64.4        426,000
physical reads cache               100,000      99.0        400,000
";
    let error = import(&[source("loose.txt", loose)]).expect_err("no figure");
    assert!(error.to_string().contains("have no titles"), "{error}");
}

#[test]
fn values_at_begin_and_end_and_rates_by_the_hour_are_what_their_titles_say() {
    let text = "\
Instance Activity Stats  DB/Inst: TESTDB/testdb  Snaps: 1-2

Statistic                                      Total     per Second    per Trans
--------------------------------- ------------------ -------------- ------------
execute count                                 60,000          100.0         10.0
          -------------------------------------------------------------

Instance Activity Stats  DB/Inst: TESTDB/testdb  Snaps: 1-2
-> Statistics with absolute values (should not be diffed)

Statistic                             Begin Value       End Value
--------------------------------- --------------- ---------------
logons current                                153             160
          -------------------------------------------------------------

Instance Activity Stats  DB/Inst: TESTDB/testdb  Snaps: 1-2
-> Statistics identified by '(derived)' come from sources other than SYSSTAT

Statistic                                      Total  per Hour
--------------------------------- ------------------ ---------
log switches (derived)                            40     40.00
          -------------------------------------------------------------
";
    let record = of(text);
    let stats = &record.instance.stats;
    assert_eq!(stats["execute_count"].per_s.value(), Some(100.0));
    assert!(!stats.contains_key("logons_current_count"));
    let gauge = &record.instance.gauges["logons current"];
    assert_eq!((gauge.begin.value(), gauge.end.value()), (Some(153.0), Some(160.0)));
    let switches = &stats["redo_log_switches_count"];
    assert_eq!(switches.total.value(), Some(40.0));
    // 40 an hour are 0.067 a second, not 40.
    assert!((switches.per_s.value().expect("derived") - 40.0 / 600.0).abs() < 1e-6);
}

#[test]
fn a_column_that_nobody_knows_is_left_out_and_noted() {
    let text = "\
Load Profile                    Per Second   Per Moonphase
~~~~~~~~~~~~~~~            ---------------   ---------------
       Logical read (blocks):       6,908.0             690.8
";
    let record = of(text);
    let row = &record.instance.load_profile[0];
    assert_eq!((row.per_s.value(), row.per_tx.value()), (Some(6908.0), None));
    assert!(says(&record, "per moonphase"), "{:#?}", notes(&record));
}

const TOP_OF_BOTH: &str = "\
STATSPACK report for

   Elapsed:      10.00 (mins)
   DB time:      20.00 (mins)      DB CPU:       1.00 (mins)

Top 5 Timed Events                                                    Avg %Total
~~~~~~~~~~~~~~~~~~                                                   wait   Call
Event                                            Waits    Time (s)   (ms)   Time
----------------------------------------- ------------ ----------- ------ ------
db file sequential read                        300,000         900      3   70.0
log file parallel write                         60,000         120      2    9.3
CPU time                                                        66           5.1
log file sync                                   50,000         110      2    8.6
          -------------------------------------------------------------
";

#[test]
fn a_share_of_all_call_time_is_no_share_of_db_time() {
    let record = of(TOP_OF_BOTH);
    assert_eq!(broken(&record), Vec::<String>::new());
    let reads = event(&record, "db file sequential read", "foreground");
    // 900 s of 1,200 s of DB time; 70 % is of CPU time and all waits.
    assert_eq!(reads.db_time_pct.value(), Some(75.0));
    assert_eq!(number(&record, "foreground", "db_file_sequential_read_call_time_pct"), 70.0);
    assert!(reads.note.contains("background waits together"));
    // What sessions said that they used is no DB CPU, but the nearest.
    assert_eq!(number(&record, "", "cpu_time_us"), 66e6);
    let background = event(&record, "log file parallel write", "background");
    assert_eq!(background.count.value(), Some(60_000.0));
}

#[test]
fn waits_of_foreground_and_background_together_are_told_apart_where_the_report_can() {
    let parts = "\
Background Wait Events  DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                             Avg          %Total
                                          %Tim Total Wait   wait    Waits   Call
Event                               Waits  out   Time (s)   (ms)     /txn   Time
---------------------------- ------------ ---- ---------- ------ -------- ------
db file sequential read           100,000    0        300      3      2.0   23.3
log file parallel write            60,000    0        120      2      1.2    9.3
rdbms ipc message                   9,000    0      5,400    600      0.2
          -------------------------------------------------------------
";
    let record = of(&format!("{TOP_OF_BOTH}\n{parts}"));
    let reads = event(&record, "db file sequential read", "foreground");
    assert_eq!(reads.count.value(), Some(200_000.0));
    assert_eq!(reads.total_us.value(), Some(600e6));
    // Not among the background's events: the foreground's alone.
    let sync = event(&record, "log file sync", "foreground");
    assert_eq!((sync.count.value(), sync.note.as_str()), (Some(50_000.0), ""));
    assert_eq!(event(&record, "rdbms ipc message", "background").class, "Idle");
    let all = "foreground and background";
    assert_eq!(number(&record, all, "db_file_sequential_read_waits_count"), 300_000.0);
}

#[test]
fn an_event_without_a_share_is_idle() {
    let text = "\
Foreground Wait Events                    DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                             Avg
                                        %Time Total Wait    wait    Waits   % DB
Event                             Waits -outs   Time (s)    (ms)     /txn   time
-------------------------- ------------ ----- ---------- ------- -------- ------
some new kind of wait            10,000     0         10       1      1.0     .7
some new kind of rest            10,000     0      9,000     900      1.0
          -------------------------------------------------------------
";
    let record = of(text);
    assert_eq!(event(&record, "some new kind of wait", "foreground").class, "");
    assert_eq!(event(&record, "some new kind of rest", "foreground").class, "Idle");
}

const IOSTAT: &str = "\
WORKLOAD REPOSITORY report for

   Elapsed:               60.00 (mins)

IOStat by Function summary                DB/Inst: TESTDB/testdb  Snaps: 1-2
-> 'Data' columns suffixed with M,G,T,P are in multiples of 1024
    other columns suffixed with K,M,G,T,P are in multiples of 1000

                Reads:  Reqs    Data   Writes:  Reqs    Data    Waits:     Avg
Function Name     Data per sec per sec    Data per sec per sec   Count Tm(ms)
--------------- ------- ------- ------- ------- ------- ------- ------- -------
Direct Reads       1.9T   594.8 551.588      0M     0.0      0M   1991.     0.5
DBWR                 0M     0.0      0M 14.71       4.1 4.187         0     N/A
LGWR                12M     0.2   .003M   18.1G    30.6  5.147M  186.5K     1.3
          -------------------------------------------------------------
";

#[test]
fn a_unit_that_had_no_room_is_restored_where_the_row_tells_it() {
    let record = of(IOSTAT);
    let mib = 1_048_576.0;
    // 551.588 M/s over an hour are 1.9 T; in G they would be 1,000 times that.
    assert_eq!(number(&record, "Direct Reads", "iostat_read_bytes_per_s"), 551.588 * mib);
    assert!(says(&record, "show that it is M"), "{:#?}", notes(&record));
    // Neither figure of this pair has a unit, so nothing tells it; of waits nothing ever does.
    for (scope, key) in
        [("DBWR", "iostat_write_bytes_per_s"), ("DBWR", "iostat_written_bytes"), ("Direct Reads", "iostat_waits_count")]
    {
        let found = value(&record, scope, key);
        assert_eq!(found.value.reason(), Some("its unit did not fit the column"), "{key}");
    }
    assert_eq!(number(&record, "LGWR", "iostat_write_bytes_per_s"), 5.147 * mib);
    assert_eq!(number(&record, "LGWR", "iostat_waits_count"), 186_500.0);
}

#[test]
fn statistics_cut_to_the_same_letters_are_told_apart_or_left_out() {
    let table = |rows: &[(&str, u64)]| {
        let mut text = "\
DB Name         DB Id    Instance     Inst Num Startup Time    Release     RAC
------------ ----------- ------------ -------- --------------- ----------- ---
TESTDB        1111111111 testdb              1 04-Feb-21 08:00 19.0.0.0.0  NO

Instance Activity Stats                   DB/Inst: TESTDB/testdb  Snaps: 1-2

Statistic                                     Total     per Second     per Trans
-------------------------------- ------------------ -------------- -------------
"
        .to_owned();
        for (name, total) in rows {
            text.push_str(&format!(
                "{name:<32} {total:>18} {:>14.1} {:>13.1}\n",
                *total as f64 / 600.0,
                *total as f64 / 6000.0
            ));
        }
        text
    };
    let cut = "redo synch time overhead count (";
    let five = [(cut, 7), (cut, 7), (cut, 2), (cut, 0), (cut, 1)];
    let record = of(&table(&five));
    let stats = &record.instance.stats;
    assert_eq!(stats["redo_synch_time_overhead_count_2ms_count"].total.value(), Some(7.0));
    assert_eq!(stats["redo_synch_time_overhead_count_inf_count"].total.value(), Some(1.0));
    // Oracle leaves rows of 0 out: which two of the five these are is not known.
    let record = of(&table(&[("execute count", 6000), (cut, 7), (cut, 3)]));
    assert!(says(&record, "2 statistics are cut to"), "{:#?}", notes(&record));
    assert_eq!(record.instance.stats.len(), 1);
}

#[test]
fn events_cut_to_the_same_letters_are_left_out_and_others_take_their_longer_name() {
    let text = "\
Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                           Total Wait       Avg   % DB Wait
Event                                Waits Time (sec)      Wait   time Class
------------------------------ ----------- ---------- --------- ------ --------
some event with a longer name       10,000       52.9   52.86 s   98.9 Applicat

Foreground Wait Events                     DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                Total
                                       %Time     Wait              Waits   % DB
Event                            Waits -outs Time (s)  Avg wait     /txn   time
-------------------------- ----------- ----- -------- --------- -------- ------
some event with a longer n      10,000             53    5.29ms      0.5   98.9
another event whose name i         100              1   10.00ms      0.1     .1
another event whose name i          50              1   20.00ms      0.1     .1
          ------------------------------------------------------
";
    let record = of(text);
    assert_eq!(record.instance.events.len(), 1, "{:#?}", record.instance.events);
    let found = event(&record, "some event with a longer name", "foreground");
    assert_eq!(found.count.value(), Some(10_000.0));
    assert!(says(&record, "another event whose name i"));
}

#[test]
fn page_headings_within_tables_cost_no_row() {
    let whole = read(&[sample("awr-19c.txt")]);
    // As SQL*Plus prints what a function returns: 14 lines a page, with the column's name above.
    let text = sample("awr-19c.txt").text;
    for rule in ["", "--------------------------------------------------------------------------------\n"] {
        let mut paged = String::new();
        for (i, line) in text.lines().enumerate() {
            if i % 11 == 0 {
                paged.push_str(&format!("\nOUTPUT\n{rule}"));
            }
            paged.push_str(line);
            paged.push('\n');
        }
        let record = read(&[source("paged.txt", &paged)]);
        assert_eq!(record.instance, whole.instance, "{:#?}", notes(&record));
        assert_eq!(record.interval, whole.interval);
        assert_eq!(record.os, whole.os);
    }
}

#[test]
fn a_wide_bucket_is_not_put_into_a_narrow_one_and_the_detail_table_opens_it() {
    let head = "\
Wait Event Histogram                      DB/Inst: TESTDB/testdb  Snaps: 1-2
-> % of Waits: column heading of <=1s is truly <1024ms, >1s is truly >=1024ms

                                                    % of Waits
                                 -----------------------------------------------
                           Total
Event                      Waits  <1ms  <2ms  <4ms  <8ms <16ms <32ms  <=1s   >1s
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read      10K               50.0   20.0             30.0
log file sync                10K  60.0  40.0
          -------------------------------------------------------------
";
    let wide = of(head);
    let reads = event(&wide, "db file sequential read", "foreground");
    assert!(reads.hist_us.is_empty());
    assert!(reads.note.contains("32768 to 1048576 us hold 30 %"), "{}", reads.note);
    assert!(!wide.advice.iter().any(|advice| advice.id == "R8"));
    let detail = "
Wait Event Histogram Detail (64 msec to 2 sec)  DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                 % of Total Waits
                                 -----------------------------------------------
                           Waits
                           64ms
Event                      to 2s <32ms <64ms <1/8s <1/4s <1/2s   <1s   <2s  >=2s
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read     3000  70.0        30.0
          -------------------------------------------------------------
";
    let open = of(&format!("{head}{detail}"));
    let reads = event(&open, "db file sequential read", "foreground");
    assert_eq!((reads.hist_us[12], reads.hist_us[13], reads.hist_us[17]), (5000, 2000, 3000));
    assert_eq!(reads.hist_us.iter().sum::<u64>(), 10_000);
    assert!(has(&open, "histogram", "db_file_sequential_read_waits_below_125000_us_pct"));
}

#[test]
fn reports_that_are_not_of_one_run_are_refused_by_name() {
    for (text, name) in [
        ("WORKLOAD REPOSITORY COMPARE PERIOD REPORT (PDB snapshots)\n\n", "awrddrpt"),
        ("<html><head><title>x</title></head><h1>\nWORKLOAD REPOSITORY COMPARE PERIOD REPORT\n</h1>", "awrddrpt"),
        ("WORKLOAD REPOSITORY SQL Report\n\nSnapshot Period Summary\n", "awrsqrpt"),
        ("ASH Report For TESTDB/testdb\n\n", "ashrpt"),
        ("          ADDM Report for Task 'TASK_1'\n", "ADDM"),
    ] {
        let body =
            "   Elapsed:      10.00 (mins)\nLoad Profile      Per Second\n~~~~~~~  ----------\n Redo size:   5.0\n";
        let error = import(&[source("r.txt", &format!("{text}{body}"))]).expect_err(name);
        let said = error.to_string();
        assert!(said.contains(name) && said.contains("awrrpt"), "{said}");
        assert!(said.starts_with("r.txt:"), "{said}");
    }
}

#[test]
fn a_clusters_host_time_that_has_no_column_is_no_contradiction() {
    // 6.1 points of busy time are neither user nor system: interrupts.
    let text = "\
Host CPU (CPUs:   36 Cores:   18 Sockets:    2)
~~~~~~~~         Load Average
               Begin       End     %User   %System      %WIO     %Idle
           --------- --------- --------- --------- --------- ---------
                5.44     11.71      30.0       6.0       0.0      57.9

Operating System Statistics               DB/Inst: TESTDB/testdb  Snaps: 1-2

Statistic                                  Value        End Value
------------------------- ---------------------- ----------------
BUSY_TIME                              4,210,000
IDLE_TIME                              5,790,000
SYS_TIME                                 600,000
USER_TIME                              3,000,000
";
    assert_eq!(broken(&of(text)), Vec::<String>::new());
    // A share too many is one.
    let wrong = text.replace("      57.9", "      67.9");
    assert!(!broken(&of(&wrong)).is_empty());
}

#[test]
fn an_event_cut_alike_on_two_pages_of_a_table_keeps_the_first_and_says_so() {
    let page = "Background Wait Events  DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                                 Avg          %Total
                                          %Tim Total Wait   wait    Waits   Call
Event                               Waits  out   Time (s)    (ms)     /txn   Time
---------------------------- ------------ ---- ---------- ------- -------- ------
";
    let text = format!(
        "STATSPACK report for

{page}some event whose name is lon            1  100          5    5000      0.0     .8
{page}some event whose name is lon        7,561   41     86,402   11427      0.2
"
    );
    let record = of(&text);
    let found = event(&record, "some event whose name is lon", "background");
    assert_eq!(found.count.value(), Some(1.0));
    assert!(says(&record, "assay keeps the first value"), "{:#?}", notes(&record));
}

#[test]
fn classes_of_foreground_and_background_together_stand_apart_from_those_of_the_foreground() {
    let both = "\
Wait Classes by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                                          Avg             Avg
                                        Total Wait       Wait   % DB   Active
Wait Class                  Waits       Time (sec)       Time   time Sessions
---------------- ---------------- ---------------- ---------- ------ --------
System I/O                  1,000               50    50.00ms   50.0      0.5

";
    let foreground = "\
Foreground Wait Class                         DB/Inst: TESTDB/testdb  Snaps: 1-2

                                                                  Avg
                                      %Time       Total Wait     wait
Wait Class                      Waits -outs         Time (s)     (ms)  %DB time
-------------------- ---------------- ----- ---------------- -------- ---------
System I/O                         10     0                1      100       1.0
";
    let record = of(&format!("{both}{foreground}"));
    let classes = &record.instance.wait_classes;
    assert_eq!(classes[0].waits_count.value(), Some(10.0));
    let scope = "wait class, foreground and background";
    assert_eq!(number(&record, scope, "system_i_o_waits_count"), 1000.0);
    assert_eq!(notes(&record), Vec::<String>::new());
    let record = of(both);
    assert_eq!(record.instance.wait_classes[0].waits_count.value(), Some(1000.0));
    assert!(says(&record, "foreground and background together"));
}

#[test]
fn time_on_a_cpu_beyond_db_time_is_told() {
    let text = |cpu: &str| {
        format!(
            "\
Time Model System Stats  DB/Inst: TESTDB/testdb  Snaps: 1-2
-> Ordered by % of DB time desc, Statistic name

Statistic                                       Time (s) % DB time
----------------------------------- -------------------- ---------
DB CPU                                           {cpu}     192.1
DB time                                            617.8
"
        )
    };
    let found = broken(&of(&text("1,186.7")));
    assert!(found.len() == 1 && found[0].starts_with("I25c "), "{found:#?}");
    assert_eq!(broken(&of(&text("  640.0"))), Vec::<String>::new());
}

#[test]
fn a_month_in_numbers_is_read_and_one_of_another_language_is_noted() {
    let text = |begin: &str| {
        format!(
            "\
WORKLOAD REPOSITORY report for

              Snap Id      Snap Time          Sessions Curs/Sess
            --------- ------------------- -------- ---------
Begin Snap:       100 {begin} 11:00:00       60       1.5
  End Snap:       101 15-Dec-23 12:00:00       60       1.5
   Elapsed:               60.00 (mins)

Load Profile                    Per Second   Per Transaction
~~~~~~~~~~~~~~~            ---------------   ---------------
       Logical read (blocks):       6,908.0             690.8
"
        )
    };
    for (printed, read) in [
        ("15-Dec-23", "2023-12-15T11:00:00-00:00"),
        ("15-12\u{6708}-23", "2023-12-15T11:00:00-00:00"),
        ("15-9\u{6708} -23", "2023-09-15T11:00:00-00:00"),
    ] {
        let record = of(&text(printed));
        assert_eq!(record.interval.begin, read, "{printed}");
        assert_eq!(record.interval.end, "2023-12-15T12:00:00-00:00");
    }
    for printed in ["15-Ao\u{fb}t-23", "15-09-23", "15-13\u{6708}-23"] {
        let record = of(&text(printed));
        assert_eq!(record.interval.begin, "", "{printed}");
    }
}
