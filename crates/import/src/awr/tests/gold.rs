//! Published figures that must pass, or must be flagged.

use super::{broken, event, near, read, sample, says, source};
use assay_measure::record::Record;

const BM_EVENTS: &str = "\
Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                           Total Wait       Avg   % DB Wait
Event                                Waits Time (sec)      Wait   time Class
------------------------------ ----------- ---------- --------- ------ --------
cell single block physical rea     249,854      115.7  463.08us   94.9 User I/O
DB CPU                                           14.5             11.9
";

fn holds(record: &Record, id: &str) -> bool {
    let mut all = record.integrity.iter();
    all.any(|identity| identity.id == id && identity.ok == assay_measure::record::Truth::Holds)
}

fn flagged(record: &Record, id: &str) -> bool {
    broken(record).iter().any(|text| text.starts_with(&format!("{id} ")))
}

#[test]
fn identity_i15_finds_a_histogram_that_was_not_differenced() {
    let histogram = sample("event-histogram-micro-bm.txt");
    let record = read(&[source("top.txt", BM_EVENTS), histogram.clone()]);
    let reads = event(&record, "cell single block physical read", "foreground");
    assert_eq!(reads.hist_us.iter().sum::<u64>(), 258_374);
    assert!(flagged(&record, "I15"), "{:#?}", record.integrity);
    assert!(says(&record, "3.4 % more waits"), "{:#?}", record.import);
    // Little else is wrong with it: the time fits its buckets, the average its time.
    for id in ["I16a", "I16b", "I17"] {
        assert!(holds(&record, id), "{id}: {:#?}", record.integrity);
    }
    assert!(record.advice.iter().any(|advice| advice.id == "R8"), "{:#?}", record.advice);
    // Without the events the waits of the function that reads say the same.
    let record = read(&[histogram, sample("iostat-function-bm.txt")]);
    assert!(flagged(&record, "I15b"), "{:#?}", record.integrity);
}

#[test]
fn identity_i26_elapsed_time_and_transactions_follow_from_totals_and_rates() {
    let record = read(&[sample("physical-stats.txt")]);
    let elapsed = record.interval.elapsed_s.value().expect("derived");
    assert!((elapsed - 303.17).abs() < 0.005, "{elapsed}");
    assert_eq!(record.instance.stats.len(), 22, "rows that are not in our dictionary too");
    assert_eq!(broken(&record), Vec::<String>::new());
    for id in ["I1", "I2", "I3", "I4", "I6a", "I6b", "I7a", "I12", "I26"] {
        assert!(holds(&record, id), "{id}");
    }
    let parts = read(&[sample("load-profile-bm.txt"), sample("io-profile-bm.txt"), sample("iostat-function-bm.txt")]);
    assert_eq!(broken(&parts), Vec::<String>::new());
    for id in ["I13a", "I13c", "I34", "I3b", "I6d"] {
        assert!(holds(&parts, id), "{id}: {:#?}", parts.integrity);
    }
}

#[test]
fn identity_i29_and_i30_find_misprinted_columns() {
    let text = "\
Load Profile                    Per Second   Per Transaction  Per Exec  Per Call
~~~~~~~~~~~~~~~            ---------------   --------------- --------- ---------
             DB Time(s):             256.0
 Physical read (blocks):         327,232.0
       Read IO requests:         327,232.0
           Read IO (MB):           2,480.2

   DB Time:             1280.00 (mins)
   Elapsed:                5.00 (mins)
";
    let record = read(&[source("lp.txt", text)]);
    assert!(flagged(&record, "I30"), "{:#?}", record.integrity);
    assert!(record.advice.iter().any(|advice| advice.id == "R30"));
    // 3.2 million waits that hold 78 % of the time last 18.7 ms each, not 7.
    let text = "\
WORKLOAD REPOSITORY report for

   Elapsed:                5.00 (mins)
   DB Time:             1280.00 (mins)

Top 10 Foreground Events by Total Wait Time
~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~
                                           Total Wait       Avg   % DB Wait
Event                                Waits Time (sec)      Wait   time Class
------------------------------ ----------- ---------- --------- ------ --------
db file parallel read            3,200,000               7.00ms   78.0 User I/O
";
    let record = read(&[source("events.txt", text)]);
    assert!(flagged(&record, "I29"), "{:#?}", record.integrity);
}

#[test]
fn identity_i31_finds_cpu_that_is_missing() {
    let cpu = |row: &str| {
        let text = format!(
            "Host CPU (CPUs:    8 Cores:    4 Sockets:    1)\n\
             ~~~~~~~~         Load Average\n               \
             Begin       End     %User   %System      %WIO     %Idle\n           \
             --------- --------- --------- --------- --------- ---------\n{row}\n"
        );
        read(&[source("cpu.txt", &text)])
    };
    let short = cpu("                1.00      2.00      10.1      20.0      30.0      15.0");
    assert!(flagged(&short, "I31b"), "{:#?}", short.integrity);
    let apart = cpu("                1.00      2.00      20.0      30.0      40.0       9.9");
    assert!(holds(&apart, "I31"), "{:#?}", apart.integrity);
    near(&apart, "/os/cpu_pct/idle_awr", 49.9);
    let within = cpu("                1.00      2.00      13.9       8.4      33.9      77.7");
    assert!(holds(&within, "I31") && holds(&within, "I31b") && holds(&within, "I32a"));
    near(&within, "/os/cpu_pct/idle", 43.8);
}
