//! What is noticed of an AWR whose figures are changed, one at a time.

use super::{read, sample, source};
use crate::import;
use crate::testing::{changed, info};
use assay_measure::identity::violated;
use assay_measure::record::{ImportedValue, Record, Truth};
use std::collections::BTreeSet;

/// A figure that is wrong by so much is wrong beyond any rounding.
const FACTOR: f64 = 1.5;

/// Sections that the sample has not, of the same run.
const MORE: &str = "\
IO Profile                  Read+Write/Second     Read/Second    Write/Second
~~~~~~~~~~                  ----------------- --------------- ---------------
             Database (MB):              44.3            39.1             5.2
         Database (blocks):           5,667.2         5,000.5           666.7

Foreground Wait Class           DB/Inst: TESTDB/testdb  Snaps: 141-142

                                                                  Avg
                                      %Time       Total Wait     wait
Wait Class                      Waits -outs         Time (s)           %DB time
-------------------- ---------------- ----- ---------------- -------- ---------
User I/O                    3,000,050     0          1,500.0 500.00us      93.7
Commit                          6,000     0              9.0   1.50ms       0.6
          -------------------------------------------------------------

Time Model Statistics           DB/Inst: TESTDB/testdb  Snaps: 141-142

Statistic Name                                       Time (s) % of DB Time
------------------------------------------ ------------------ ------------
DB CPU                                                   60.0          3.7
DB time                                               1,600.2
background cpu time                                       5.0
          -------------------------------------------------------------

Operating System Statistics     DB/Inst: TESTDB/testdb  Snaps: 141-142

Statistic                                  Value        End Value
------------------------- ---------------------- ----------------
BUSY_TIME                                  9,600
IDLE_TIME                                950,400
IOWAIT_TIME                              134,400
SYS_TIME                                   3,840
USER_TIME                                  5,760
NUM_CPUS                                      16
          -------------------------------------------------------------

Wait Event Histogram            DB/Inst: TESTDB/testdb  Snaps: 141-142

                                                    % of Waits
                                 -----------------------------------------------
                           Total
Event                      Waits  <1ms  <2ms  <4ms  <8ms <16ms <32ms  <=1s   >1s
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
log file sync              6000   40.0  50.0  10.0
          -------------------------------------------------------------

IOStat by Function summary      DB/Inst: TESTDB/testdb  Snaps: 141-142

                Reads:   Reqs   Data    Writes:  Reqs   Data    Waits:    Avg
Function Name   Data    per sec per sec Data    per sec per sec Count    Tm(ms)
--------------- ------- ------- ------- ------- ------- ------- ------- -------
Buffer Cache Re   22.9G  5000.0 39.067M      0M     0.0      0M 3000.0K     0.5
DBWR                 0M     0.0      0M    3.1G   633.3  5.208M       0     0.0
LGWR                67M     6.7   .111M    305M    16.7   .508M    6000     1.5
TOTAL:            23.0G  5006.7 39.178M    3.3G   650.0  5.716M 3006.0K     0.5
          -------------------------------------------------------------

";

fn whole() -> String {
    let more = format!("{MORE}Foreground Wait Events  ");
    let text = sample("awr-19c.txt").text;
    text.replacen("Foreground Wait Events  ", &more, 1)
}

/// The identities that a record breaks.
fn ids(record: &Record) -> BTreeSet<String> {
    let broken = violated(record).into_iter();
    broken.map(|identity| identity.id.clone()).collect()
}

/// What is broken once one piece of the text is another.
fn with(from: &str, to: &str) -> BTreeSet<String> {
    let text = whole();
    assert!(text.contains(from), "{from}");
    ids(&read(&[source("awr.txt", &text.replacen(from, to, 1))]))
}

#[test]
fn the_true_report_holds_each_identity_that_a_false_one_breaks() {
    let record = read(&[source("awr.txt", &whole())]);
    assert_eq!(ids(&record), BTreeSet::new(), "{:#?}", info(&record).notes);
    for (id, from, to) in [
        ("AWR1", "Hit   %:   27.62", "Hit   %:   72.62"),
        ("AWR2", "Transactions:            10.0", "Transactions:            15.0"),
        ("AWR3", "40.0  50.0  10.0", "40.0  50.0  15.0"),
        (
            "AWR4a",
            "USER_TIME                                  5,760",
            "USER_TIME                                  8,640",
        ),
        (
            "AWR4b",
            "BUSY_TIME                                  9,600",
            "BUSY_TIME                                 99,600",
        ),
        (
            "AWR4c",
            "IDLE_TIME                                950,400",
            "IDLE_TIME                                633,600",
        ),
        (
            "AWR4d",
            "IOWAIT_TIME                              134,400",
            "IOWAIT_TIME                            1,134,400",
        ),
        ("AWR5", "Total Requests:           5,656.7", "Total Requests:           8,485.0"),
        ("AWR6", "TOTAL:            23.0G  5006.7 39.178M", "TOTAL:            23.0G  5006.7 58.767M"),
        ("AWR6", "TOTAL:            23.0G", "TOTAL:            34.5G"),
        (
            "AWR7",
            "Block changes:         1,310.0             131.0",
            "Block changes:         1,310.0             196.5",
        ),
        (
            "AWR8",
            "Executes (SQL):           100.0              10.0",
            "Executes (SQL):           150.0              15.0",
        ),
        ("AWR9a", "DB Time(s):             2.7 ", "DB Time(s):             4.1 "),
        ("AWR9b", "DB CPU(s):             0.1 ", "DB CPU(s):             0.2 "),
        (
            "AWR9c",
            "background cpu time                                       5.0",
            "background cpu time                                     105.0",
        ),
        (
            "AWR9d",
            "DB CPU                                             60              3.7",
            "DB CPU                                             60              5.6",
        ),
        ("AWR10", "0.3      0.03      0.24", "0.3      0.05      0.24"),
        ("AWR10", "0.3      0.03      0.24", "0.3      0.03      0.36"),
        (
            "AWR11",
            "Database (blocks):           5,667.2         5,000.5",
            "Database (blocks):           8,167.5         7,500.8",
        ),
        (
            "AWR12a",
            "User I/O                    3,000,050     0          1,500.0 500.00us",
            "User I/O                    3,000,050     0          1,500.0 750.00us",
        ),
        ("AWR12b", "1,500.0 500.00us      93.7", "1,500.0 500.00us      62.5"),
    ] {
        let mut judged = record.integrity.iter().filter(|identity| identity.id == id);
        assert!(judged.any(|identity| identity.ok == Truth::Holds), "{id} is not judged");
        assert!(with(from, to).contains(id), "{id}: {from} -> {to}: {:?}", with(from, to));
    }
}

#[test]
fn so_is_each_identity_of_two_tables() {
    let record = read(&[source("awr.txt", &whole())]);
    for (id, from, to) in [
        ("AWR4e", "0.50      3.10       0.6", "0.50      3.10       1.6"),
        ("AWR13", "Rollbacks:             0.0 ", "Rollbacks:            15.0 "),
        ("I19b", "User I/O                    3,000,050     0 ", "User I/O                    2,000,050     0 "),
        ("AWR6", "5.716M 3006.0K", "5.716M 4509.0K"),
    ] {
        assert!(record.integrity.iter().any(|identity| identity.id == id && identity.ok == Truth::Holds), "{id}");
        assert!(with(from, to).contains(id), "{id}: {from} -> {to}: {:?}", with(from, to));
    }
}

/// Rows that agree with each other: no figure of theirs is twice there but the whole.
#[test]
fn waits_of_two_and_a_half_times_db_time_are_impossible() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/field/awr-top-events-fragment.txt");
    let text = std::fs::read_to_string(path).expect("a sample");
    let of = |text: &str| ids(&read(&[source("awr.txt", text)]));
    assert_eq!(of(&text), BTreeSet::new());
    let wrong = text.replacen("1190.0      59.50   39.7", "7500.0     375.00  250.0", 1);
    assert!(of(&wrong).contains("I20"), "{:?}", of(&wrong));
}

#[test]
fn shares_below_a_load_profile_are_of_its_rates() {
    let text = sample("statspack-11.2.txt").text;
    let more = "  % Blocks changed per Read:   18.96    Recursive Call %:    89.00\n Rollback per transaction %:    0.00       Rows per Sort:    12.00\n";
    let of = |read_pct: &str, rollback_pct: &str| {
        let more = more.replace("18.96", read_pct).replace("0.00 ", rollback_pct);
        let wrong = text.replacen("  % Blocks changed per Read:   18.96    Recursive Call %:    89.00\n", &more, 1);
        ids(&read(&[source("sp.txt", &wrong)])).contains("AWR14")
    };
    assert_eq!([of("18.96", "0.00 "), of("28.96", "0.00 "), of("18.96", "90.00 ")], [false, true, true]);
}

/// Whether the wrong figure is noticed: the import is refused, an identity fails, or a note names the difference.
fn is_noticed(text: &str) -> bool {
    let Ok(record) = import(&[source("awr.txt", text)]) else {
        return true;
    };
    let mut notes = info(&record).notes.iter();
    !ids(&record).is_empty() || notes.any(|note| note.text.contains("assay keeps the first"))
}

#[test]
fn a_figure_that_is_wrong_by_half_is_noticed_unless_nothing_depends_on_it() {
    let text = whole();
    let record = read(&[source("awr.txt", &text)]);
    let key = |value: &ImportedValue| match value.scope.as_str() {
        "" => value.key.clone(),
        scope => format!("{scope}: {}", value.key),
    };
    let values = info(&record).values.iter();
    let tried = values.filter_map(|value| Some((key(value), changed(&text, value, FACTOR)?)));
    let missed = tried.filter(|(_, text)| !is_noticed(text));
    let missed: Vec<String> = missed.map(|(key, _)| key).collect();
    insta::assert_snapshot!(missed.join("\n"));
}
