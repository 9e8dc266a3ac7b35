use super::*;
use crate::fixture;
use crate::record::build;
use assay_measure::histogram::Histogram;
use assay_measure::snapshot::{Actor, WaitClass};
use assay_measure::snapshot::{EventReading, Reading, RunData};
use assay_measure::stats;

fn found(run: &RunData) -> Vec<String> {
    let advice = advise(&build(run));
    advice.into_iter().map(|advice| advice.id).collect()
}

/// Adds waits that fall into the window.
fn wait(run: &mut RunData, name: &str, class: WaitClass, us: u64, n: u64) {
    let mut waits = Histogram::new();
    waits.record_n(us * 1000, n);
    run.end.stats.add_event(&EventReading {
        name: name.to_owned(),
        class,
        actor: Actor::Foreground,
        timeouts: 0,
        waits,
    });
}

fn add(run: &mut RunData, stat: assay_measure::stats::Stat, n: u64) {
    run.end.stats.add(stat, n);
}

#[test]
fn the_frozen_run_is_storage_bound_with_two_populations_of_reads() {
    let advice = advise(&build(&fixture::run()));
    let ids: Vec<&str> = advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(ids, ["R3", "R8"]);
    assert!(
        advice[0].text.contains("75.0 % of DB time"),
        "{}",
        advice[0].text
    );
    assert!(
        advice[0].text.contains("average 500 us"),
        "{}",
        advice[0].text
    );
}

#[test]
fn r1_execution_and_run_queue_make_it_cpu_bound() {
    let mut run = fixture::run();
    add(&mut run, stats::RUN_QUEUE_TIME, 60_000_000_000);
    assert!(found(&run).contains(&"R1".to_owned()));
}

#[test]
fn r4_and_r5_free_buffer_waits_and_their_timer() {
    let mut run = fixture::run();
    wait(
        &mut run,
        "free buffer waits",
        WaitClass::Configuration,
        10_000,
        1600,
    );
    let ids = found(&run);
    assert!(
        ids.contains(&"R4".to_owned()) && ids.contains(&"R5".to_owned()),
        "{ids:?}"
    );
    let mut run = fixture::run();
    wait(
        &mut run,
        "free buffer waits",
        WaitClass::Configuration,
        3_000,
        4000,
    );
    assert!(!found(&run).contains(&"R5".to_owned()));
}

#[test]
fn r6_the_log_is_the_limit() {
    let mut run = fixture::run();
    wait(
        &mut run,
        "log buffer space",
        WaitClass::Configuration,
        20_000,
        1000,
    );
    let record = build(&run);
    let advice = advise(&record);
    let redo = advice.iter().find(|advice| advice.id == "R6").unwrap();
    assert!(
        redo.text
            .contains("53,248 bytes per write, 1.00 commits per write"),
        "{}",
        redo.text
    );
}

#[test]
fn r7_a_single_switch_is_no_rate_but_an_incomplete_checkpoint_counts() {
    let mut run = fixture::run();
    add(&mut run, stats::REDO_LOG_SWITCHES, 1);
    assert!(!found(&run).contains(&"R7".to_owned()));
    add(&mut run, stats::REDO_LOG_SWITCHES, 1);
    assert!(found(&run).contains(&"R7".to_owned()));
    let mut run = fixture::run();
    let name = "log file switch (checkpoint incomplete)";
    wait(&mut run, name, WaitClass::Configuration, 1000, 1);
    assert!(found(&run).contains(&"R7".to_owned()));
}

#[test]
fn r8_needs_a_valley_between_the_modes() {
    assert_eq!(modes(&[0, 100, 90, 80, 5]), None);
    assert_eq!(modes(&[0, 100, 10, 30, 5]), Some((1, 2, 3)));
    assert_eq!(
        modes(&[0, 10_000, 0, 50, 0]),
        None,
        "half a percent is no mode"
    );
    assert_eq!(modes(&[]), None);
}

#[test]
fn r8_published_flash_tier_is_seen() {
    // The buckets 64-128 us to 262-524 ms of a published histogram.
    let published = [
        533, 240_142, 7818, 949, 491, 1885, 3681, 2562, 257, 52, 3, 0, 1,
    ];
    assert_eq!(modes(&published), Some((1, 4, 6)));
}

#[test]
fn r14_r17_r18_and_r19_fire_on_their_numbers() {
    let mut run = fixture::run();
    wait(
        &mut run,
        "db file sequential read",
        WaitClass::UserIo,
        900_000,
        1,
    );
    assert!(found(&run).contains(&"R14".to_owned()));
    let mut run = fixture::run();
    wait(
        &mut run,
        "buffer busy waits",
        WaitClass::Concurrency,
        1000,
        8000,
    );
    assert!(found(&run).contains(&"R17".to_owned()));
    let mut run = fixture::run();
    let reads = stats::PHYSICAL_READS_CACHE.name.to_owned();
    let same = run.begin.stats.counters[&reads].clone();
    run.end.stats.counters.insert(reads, same);
    assert!(found(&run).contains(&"R18".to_owned()));
    let mut run = fixture::run();
    let name = stats::PHYSICAL_WRITES_NON_CHECKPOINT.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(3000));
    assert!(found(&run).contains(&"R19".to_owned()));
}

#[test]
fn nothing_fires_on_what_is_not_known() {
    assert_eq!(advise(&Record::default()), []);
    assert_eq!(advise(&build(&RunData::default())), []);
}
