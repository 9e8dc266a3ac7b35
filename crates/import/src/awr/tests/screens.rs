//! What the first screen says of an AWR: no sentence denies what stands below it.

use super::{read, sample, source};
use assay_measure::record::Record;

fn screen(text: &str) -> String {
    screen_of(&read(&[source("awr.txt", text)]))
}

pub(super) fn screen_of(record: &Record) -> String {
    let answer = assay_report::answer::of(&[record], &Default::default());
    let text = answer.text();
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// The sample with its load profile's time, and other top events.
fn with_events(events: &str) -> String {
    let text = sample("awr-19c.txt").text;
    let reads = "cell single block physical rea   3,000,000       1500  500.00us   93.7 User I/O\n";
    let all = "cell single block physical    3,000,000     0      1,500      500.00us    500.0   93.7\n";
    let class = "User I/O                3,000,050            1,500 500.00us   93.8      2.5\n";
    assert!(text.contains(reads) && text.contains(all) && text.contains(class));
    text.replace(reads, events).replace(all, "").replace(class, "")
}

#[test]
fn waits_for_other_instances_are_named() {
    let text = with_events("gc buffer busy acquire              12,000       1500  125.00ms   93.7 Cluster\n");
    let screen = screen(&text);
    assert!(screen.contains("Limited by other instances of the cluster"), "{screen}");
    assert!(screen.contains("gc buffer busy acquire is 94 % of the sessions' time, 125 ms each"), "{screen}");
}

#[test]
fn long_waits_are_told_in_seconds() {
    let text = with_events("enq: TX - row lock contention           15       1500  100.00s    93.7 Application\n");
    let screen = screen(&text);
    assert!(screen.contains("100 s each on average"), "{screen}");
}

#[test]
fn time_that_no_table_names_is_not_called_nothing() {
    let screen = screen(&with_events(""));
    assert!(screen.contains("neither CPU time nor a wait that is printed"), "{screen}");
}

#[test]
fn an_idle_instance_has_no_limit_and_few_digits_are_made_finer() {
    let text = sample("awr-19c.txt").text;
    let commits = "user commits                                  6,000           10.0           1.0";
    assert!(text.contains(commits));
    let idle = text
        .replace("DB Time:               26.67", "DB Time:                0.50")
        .replace("DB Time(s):             2.7 ", "DB Time(s):             0.1 ")
        .replace("Transactions:            10.0", "Transactions:             0.7")
        .replace(commits, "user commits                                    400            0.7           1.0");
    let screen = screen(&idle);
    let nothing = "nothing: the sessions were almost always idle. 0.05 of 61 sessions";
    assert!(screen.contains(nothing), "{screen}");
    assert!(screen.contains("Rate 0.67 transactions/s 5,000 reads/s, 633 writes/s"), "{screen}");
}

#[test]
fn slow_reads_are_told_by_the_histogram_that_is_printed() {
    let histogram = "\
Wait Event Histogram            DB/Inst: TESTDB/testdb  Snaps: 141-142

                                                    % of Waits
                                 -----------------------------------------------
                           Total
Event                      Waits  <1ms  <2ms  <4ms  <8ms <16ms <32ms  <=1s   >1s
-------------------------- ----- ----- ----- ----- ----- ----- ----- ----- -----
db file sequential read    3000K        80.0  19.5    .5
          -------------------------------------------------------------

End of Report";
    let text = sample("awr-19c.txt").text;
    let text = text
        .replace("cell single block physical rea", "db file sequential read       ")
        .replace("cell single block physical ", "db file sequential read    ")
        .replace("End of Report", histogram);
    let screen = screen(&text);
    assert!(screen.contains("99 % of them took at most 4,096 us (bound of a histogram bucket)"), "{screen}");
    assert!(!screen.contains("no distribution"), "{screen}");
}
