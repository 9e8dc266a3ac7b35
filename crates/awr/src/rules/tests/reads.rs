//! Reads: each rule fires and is silent.

use super::*;
use crate::rules::r08_bimodal_reads::modes;

#[test]
fn advice_r08_fires_with_both_modes() {
    let said = fires(&record(), "R8");
    // 400 us lies in the bucket of 256 to 512 us, whose middle is 384.
    assert_eq!(said.evidence["fast_us_avg"], Figure::Decimal(384.0));
    assert_eq!(said.evidence["slow_waits_pct"], Figure::Decimal(10.0));
}

#[test]
fn advice_r08_is_silent_without_a_valley_between_the_modes() {
    let mut record = record();
    let reads = record.instance.events.iter_mut().find(|e| e.name == "db file sequential read");
    reads.unwrap().hist_us = vec![0, 100, 90, 80, 5];
    is_silent(&record, "R8");
    assert_eq!(modes(&[0, 100, 90, 80, 5]), None);
    assert_eq!(modes(&[0, 100, 10, 30, 5]), Some((1, 2, 3)));
    assert_eq!(modes(&[0, 10_000, 0, 50, 0]), None, "half a percent is no mode");
    assert_eq!(modes(&[]), None);
}

#[test]
fn advice_r08_sees_the_published_flash_tier() {
    // The buckets 64-128 us to 262-524 ms of a published histogram.
    let published = [533, 240_142, 7818, 949, 491, 1885, 3681, 2562, 257, 52, 3, 0, 1];
    assert_eq!(modes(&published), Some((1, 4, 6)));
}

#[test]
fn advice_r13_fires_when_devices_read_less_than_half() {
    let mut record = record();
    record.checks.device_read_bytes = record.checks.engine_read_bytes.scaled(0.4);
    assert_eq!(fires(&record, "R13").severity, "note");
    record.checks.device_read_bytes = Figure::na("no device known");
    record.checks.process_read_bytes = Figure::Count(0);
    assert_eq!(fires(&record, "R13").severity, "high");
}

#[test]
fn advice_r13_is_silent_when_devices_read_it_all_and_says_when_nobody_knows() {
    is_silent(&record(), "R13");
    let mut unknown = record();
    unknown.checks.device_read_bytes = Figure::na("denied");
    unknown.checks.process_read_bytes = Figure::na("denied");
    assert!(lacks(&unknown, "R13"));
}

#[test]
fn advice_r14_fires_on_the_longest_and_on_the_deviation() {
    let longest = waiting("db file sequential read", WaitClass::UserIo, 900_000, 1);
    let said = fires(&longest, "R14");
    assert!(said.text.contains("900 ms"));
    // One wait of 120,000, however long, is no loss to speak of.
    assert_eq!(said.severity, "note");
    let many = waiting("db file sequential read", WaitClass::UserIo, 900_000, 120);
    assert_eq!(fires(&many, "R14").severity, "high");
    // 200 waits of 40 ms among 120,000: the longest is 70 means, the deviation 3 of them.
    let spread = waiting("db file sequential read", WaitClass::UserIo, 40_000, 400);
    let said = fires(&spread, "R14");
    assert!(said.evidence["max_over_mean_ratio"].value().unwrap() < 100.0);
}

#[test]
fn advice_r14_is_silent_on_a_narrow_distribution() {
    is_silent(&record(), "R14");
}

fn batched(prefetched: f64) -> Record {
    let mut record = waiting("db file parallel read", WaitClass::UserIo, 1000, 4000);
    total(&mut record, "physical_reads_cache_prefetch_blocks", prefetched);
    record
}

#[test]
fn advice_r16_fires_with_the_blocks_of_a_wait() {
    let said = fires(&batched(36_000.0), "R16");
    // Nine came along with the one asked for.
    assert_eq!(said.evidence["blocks_per_wait"], Figure::Decimal(10.0));
}

#[test]
fn advice_r16_is_silent_without_batches() {
    is_silent(&record(), "R16");
    is_silent(&batched(6000.0), "R16");
}

#[test]
fn advice_r18_fires_when_all_is_cached_and_when_some_is() {
    let mut run = fixtures::run();
    let reads = counter_catalog::PHYSICAL_READS_CACHE.name.to_owned();
    let same = run.begin.stats.counters[&reads].clone();
    run.end.stats.counters.insert(reads, same);
    assert!(fires(&build(&run), "R18").text.contains("fits in the cache"));
    let mut some = record();
    some.checks.hit_measured_pct = Figure::Decimal(30.0);
    assert!(fires(&some, "R18").text.contains("understate"));
}

#[test]
fn advice_r18_is_silent_when_little_is_cached() {
    is_silent(&record(), "R18");
}

#[test]
fn advice_r08_and_r18_read_what_an_import_printed() {
    let mut record = imported(&[]);
    let mut event = build(&fixtures::run()).instance.events[0].clone();
    event.name = "cell single block physical read".to_owned();
    event.actor = "foreground".to_owned();
    event.class = "User I/O".to_owned();
    event.db_time_pct = 60.0.into();
    event.hist_us = vec![0; 34];
    // Published histogram of bare metal, 128 us to 16.384 ms.
    for (bucket, count) in [(7, 533), (8, 240_142), (9, 7818), (10, 949), (11, 491), (12, 1885), (13, 3681), (14, 2562)]
    {
        event.hist_us[bucket] = count;
    }
    record.instance.events = vec![event];
    record.instance.time_model.db_time_us = 1e9.into();
    let said = fires(&record, "R8");
    let pct = |key: &str| said.evidence[key].value().unwrap();
    assert!((3.0..3.6).contains(&pct("slow_waits_pct")), "{said:?}");
    assert!((50.0..62.0).contains(&pct("slow_time_pct")), "{said:?}");
    record
        .instance
        .efficiency
        .push(assay_measure::record::PercentRow { name: "Buffer Hit %".to_owned(), value_pct: 99.95.into() });
    assert!(fires(&record, "R18").text.contains("make the buffer cache smaller"));
    // A database at work, whose hits are no fault.
    record.instance.events[0].db_time_pct = 40.0.into();
    is_silent(&record, "R18");
}
