use super::*;
use crate::fixture;
use crate::record::build;
use assay_measure::histogram::Histogram;
use assay_measure::record::{
    Identity, Instance, LayerRow, OpRow, RequestLayers, StorageInfo, Truth,
};
use assay_measure::snapshot::{
    Actor, EventReading, Fact, Reading, RunData, SettingLine, WaitClass,
};
use assay_measure::stats;
use reads::modes;

fn ids(record: &Record) -> Vec<String> {
    advise(record).into_iter().map(|advice| advice.id).collect()
}

fn found(run: &RunData) -> Vec<String> {
    ids(&build(run))
}

/// The finding of a rule.
fn says(record: &Record, id: &str) -> Option<Advice> {
    advise(record).into_iter().find(|advice| advice.id == id)
}

fn fires(record: &Record, id: &str) -> Advice {
    let said = says(record, id);
    let said = said.unwrap_or_else(|| panic!("{id} is silent; {:?}", ids(record)));
    assert!(!said.evidence.is_empty(), "{id} has no evidence");
    let known = said
        .evidence
        .values()
        .all(|figure| figure.value().is_some());
    assert!(known, "{id}: {:?}", said.evidence);
    said
}

fn is_silent(record: &Record, id: &str) {
    assert_eq!(says(record, id), None);
    let lacking = unjudged(record);
    let prefix = format!("{id} ");
    assert!(
        !lacking.iter().any(|text| text.starts_with(&prefix)),
        "{lacking:?}"
    );
}

fn lacks(record: &Record, id: &str) -> bool {
    let prefix = format!("{id} ");
    says(record, id).is_none()
        && unjudged(record)
            .iter()
            .any(|text| text.starts_with(&prefix))
}

/// The record of the frozen run.
fn record() -> Record {
    build(&fixture::run())
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

/// The record of the frozen run with more waits.
fn waiting(name: &str, class: WaitClass, us: u64, n: u64) -> Record {
    let mut run = fixture::run();
    wait(&mut run, name, class, us, n);
    build(&run)
}

fn add(run: &mut RunData, stat: assay_measure::stats::Stat, n: u64) {
    run.end.stats.add(stat, n);
}

fn cpu(record: &mut Record, name: &str, pct: f64) {
    record.os.cpu_pct.insert(name.to_owned(), pct.into());
}

fn total(record: &mut Record, key: &str, total: f64) {
    record
        .instance
        .stats
        .get_mut(key)
        .expect("a known key")
        .total = total.into();
}

fn set(record: &mut Record, name: &str, value: &str) {
    record.plan.settings.push(SettingLine {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: "cli".to_owned(),
    });
}

#[test]
fn the_frozen_run_is_storage_bound_with_two_populations_of_reads() {
    let advice = advise(&record());
    let ids: Vec<&str> = advice.iter().map(|advice| advice.id.as_str()).collect();
    assert_eq!(ids, ["R3", "R8", "R27"]);
    let text = &advice[0].text;
    assert!(text.contains("75.0 % of DB time"), "{text}");
    assert!(text.contains("average 500 us"), "{text}");
    assert!(text.contains("Little's law accounts for"), "{text}");
}

#[test]
fn every_rule_of_one_run_is_here_once_and_in_order() {
    let numbers: Vec<u32> = RULES
        .iter()
        .map(|rule| rule.id[1..].parse().unwrap())
        .collect();
    assert!(
        numbers.windows(2).all(|pair| pair[0] < pair[1]),
        "{numbers:?}"
    );
    assert!(
        !["R9", "R10", "R24", "R28", "R29"]
            .iter()
            .any(|id| RULES.iter().any(|rule| rule.id == *id))
    );
    assert_eq!(RULES.len(), 30 - 5);
}

#[test]
fn advice_r01_fires_when_execution_and_run_queue_are_most_of_db_time() {
    let mut run = fixture::run();
    add(&mut run, stats::RUN_QUEUE_TIME, 60_000_000_000);
    fires(&build(&run), "R1");
}

#[test]
fn advice_r01_is_silent_on_a_run_that_waits() {
    is_silent(&record(), "R1");
}

#[test]
fn advice_r02_fires_on_full_cpus_with_a_queue() {
    let mut record = record();
    cpu(&mut record, "busy", 97.0);
    record.instance.time_model.run_queue_us = record.instance.time_model.db_time_us.scaled(0.06);
    assert_eq!(fires(&record, "R2").severity, "note");
    record.instance.time_model.run_queue_us = record.instance.time_model.db_time_us.scaled(0.12);
    assert_eq!(fires(&record, "R2").severity, "high");
    // The load alone will do.
    record.instance.time_model.run_queue_us = Figure::Count(0);
    record.os.load_end = vec![Figure::Decimal(7.0)];
    fires(&record, "R2");
}

#[test]
fn advice_r02_is_silent_on_idle_cpus_and_on_full_ones_without_a_queue() {
    is_silent(&record(), "R2");
    let mut full = record();
    cpu(&mut full, "busy", 99.0);
    full.instance.time_model.run_queue_us = Figure::Count(0);
    is_silent(&full, "R2");
}

#[test]
fn advice_r03_fires_with_mean_p99_and_little() {
    let said = fires(&record(), "R3");
    for name in [
        "user_io_pct",
        "busy_pct",
        "read_avg_us",
        "read_p99_us",
        "little_sessions",
    ] {
        assert!(said.evidence.contains_key(name), "{name}");
    }
}

#[test]
fn advice_r03_is_silent_on_a_busy_host() {
    let mut record = record();
    cpu(&mut record, "busy", 85.0);
    is_silent(&record, "R3");
}

#[test]
fn advice_r04_fires_and_names_blocked_submission_and_starved_writers() {
    let mut record = waiting("free buffer waits", WaitClass::Configuration, 10_000, 1600);
    assert_eq!(fires(&record, "R4").severity, "high");
    cpu(&mut record, "busy", 96.0);
    record.instance.events.push(EventRow {
        name: "db file async I/O submit".to_owned(),
        actor: "background".to_owned(),
        total_us: record.instance.time_model.bg_elapsed_us.scaled(0.6),
        ..EventRow::default()
    });
    let said = fires(&record, "R4");
    assert!(
        said.text.contains("starved") && said.text.contains("submission blocks"),
        "{}",
        said.text
    );
}

#[test]
fn advice_r04_is_silent_below_a_tenth_of_db_time() {
    is_silent(
        &waiting("free buffer waits", WaitClass::Configuration, 10_000, 100),
        "R4",
    );
}

#[test]
fn advice_r05_fires_on_the_timer_s_bucket() {
    fires(
        &waiting("free buffer waits", WaitClass::Configuration, 10_000, 1600),
        "R5",
    );
}

#[test]
fn advice_r05_is_silent_on_other_durations() {
    is_silent(
        &waiting("free buffer waits", WaitClass::Configuration, 3_000, 4000),
        "R5",
    );
}

#[test]
fn advice_r06_fires_with_the_log_s_figures() {
    let said = fires(
        &waiting("log buffer space", WaitClass::Configuration, 20_000, 1000),
        "R6",
    );
    assert!(
        said.text
            .contains("53,248 bytes per write, 1.00 commits per write."),
        "{}",
        said.text
    );
}

#[test]
fn advice_r06_is_silent_while_the_log_keeps_up() {
    is_silent(&record(), "R6");
}

#[test]
fn advice_r07_fires_on_a_rate_and_on_an_incomplete_checkpoint() {
    let mut run = fixture::run();
    add(&mut run, stats::REDO_LOG_SWITCHES, 2);
    let mut long = build(&run);
    assert!(lacks(&long, "R7"), "20 s are no rate");
    long.interval.elapsed_s = 900.0.into();
    let said = fires(&long, "R7");
    assert_eq!(said.severity, "high", "8 an hour");
    let name = "log file switch (checkpoint incomplete)";
    let once = waiting(name, WaitClass::Configuration, 1000, 1);
    assert_eq!(fires(&once, "R7").severity, "note");
}

#[test]
fn advice_r07_is_silent_on_a_single_switch() {
    let mut run = fixture::run();
    add(&mut run, stats::REDO_LOG_SWITCHES, 1);
    is_silent(&build(&run), "R7");
}

#[test]
fn advice_r08_fires_with_both_modes() {
    let said = fires(&record(), "R8");
    // 400 us lies in the bucket of 256 to 512 us, whose middle is 384.
    assert_eq!(said.evidence["fast_avg_us"], Figure::Decimal(384.0));
    assert_eq!(said.evidence["slow_waits_pct"], Figure::Decimal(10.0));
}

#[test]
fn advice_r08_is_silent_without_a_valley_between_the_modes() {
    let mut record = record();
    let reads = record
        .instance
        .events
        .iter_mut()
        .find(|e| e.name == "db file sequential read");
    reads.unwrap().hist_us = vec![0, 100, 90, 80, 5];
    is_silent(&record, "R8");
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
fn advice_r08_sees_the_published_flash_tier() {
    // The buckets 64-128 us to 262-524 ms of a published histogram.
    let published = [
        533, 240_142, 7818, 949, 491, 1885, 3681, 2562, 257, 52, 3, 0, 1,
    ];
    assert_eq!(modes(&published), Some((1, 4, 6)));
}

fn capped(value: &str) -> Record {
    let mut record = record();
    record.host.facts.push(Fact {
        name: "io_cap_vda_read_iops".to_owned(),
        value: value.to_owned(),
    });
    record
}

/// A pasted load profile has both per second and nothing else.
#[test]
fn advice_r1_reads_a_load_profile_that_stands_alone() {
    let profile = |db_time_s: f64, db_cpu_s: f64| {
        let row = |name: &str, value: f64| assay_measure::record::LoadRow {
            name: name.to_owned(),
            per_s: value.into(),
            ..Default::default()
        };
        Record {
            instance: Instance {
                load_profile: vec![row("DB Time(s)", db_time_s), row("DB CPU(s)", db_cpu_s)],
                ..Instance::default()
            },
            import: Some(assay_measure::record::ImportInfo::default()),
            ..Record::default()
        }
    };
    let said = fires(&profile(30.5, 29.0), "R1");
    assert!(said.text.contains("95.1 %"), "{}", said.text);
    assert!(said.text.contains("used by the sessions"), "{}", said.text);
    is_silent(&profile(42.9, 5.6), "R1");
    is_silent(&profile(0.0, 0.0), "R1");
}

#[test]
fn advice_r12_fires_within_three_percent_of_a_cap() {
    // The frozen run reads 6000 a second.
    let said = fires(&capped("6100 by blkio throttle of /load"), "R12");
    assert!(
        said.text.contains("blkio throttle of /load"),
        "{}",
        said.text
    );
    // The other limit is the one that is used up: both at once are no pin.
    let mut both = capped("6000 by io.max of /load");
    both.host.facts.push(Fact {
        name: "io_cap_vda_read_bytes".to_owned(),
        value: "50000000 by io.max of /load".to_owned(),
    });
    is_silent(&both, "R12");
}

#[test]
fn advice_r12_is_silent_without_a_cap_or_far_from_it() {
    is_silent(&record(), "R12");
    is_silent(&capped("9000 by blkio throttle of /load"), "R12");
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
    assert!(fires(&longest, "R14").text.contains("900,000 us"));
    // 200 waits of 40 ms among 120,000: the longest is 70 means, the deviation 3 of them.
    let spread = waiting("db file sequential read", WaitClass::UserIo, 40_000, 400);
    let said = fires(&spread, "R14");
    assert!(said.evidence["max_over_mean_ratio"].value().unwrap() < 100.0);
}

#[test]
fn advice_r14_is_silent_on_a_narrow_distribution() {
    is_silent(&record(), "R14");
}

#[test]
fn advice_r15_fires_on_variation_and_on_a_fall() {
    let mut record = record();
    record.checks.steadiness.variation_ratio = Figure::Decimal(0.35);
    assert_eq!(fires(&record, "R15").severity, "note");
    record.checks.steadiness.variation_ratio = Figure::Decimal(0.1);
    record.checks.steadiness.last_over_first_ratio = Figure::Decimal(0.3);
    assert_eq!(fires(&record, "R15").severity, "high");
}

#[test]
fn advice_r15_is_silent_on_a_level_run() {
    is_silent(&record(), "R15");
}

fn batched(prefetched: f64) -> Record {
    let mut record = waiting("db file parallel read", WaitClass::UserIo, 1000, 4000);
    total(
        &mut record,
        "physical_reads_cache_prefetch_blocks",
        prefetched,
    );
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
fn advice_r17_fires_on_waits_for_each_other() {
    fires(
        &waiting("buffer busy waits", WaitClass::Concurrency, 1000, 8000),
        "R17",
    );
}

#[test]
fn advice_r17_is_silent_below_a_twentieth() {
    is_silent(&record(), "R17");
}

#[test]
fn advice_r18_fires_when_all_is_cached_and_when_some_is() {
    let mut run = fixture::run();
    let reads = stats::PHYSICAL_READS_CACHE.name.to_owned();
    let same = run.begin.stats.counters[&reads].clone();
    run.end.stats.counters.insert(reads, same);
    assert!(
        fires(&build(&run), "R18")
            .text
            .contains("fits in the cache")
    );
    let mut some = record();
    some.checks.hit_measured_pct = Figure::Decimal(30.0);
    assert!(fires(&some, "R18").text.contains("understate"));
}

#[test]
fn advice_r18_is_silent_when_little_is_cached() {
    is_silent(&record(), "R18");
}

#[test]
fn advice_r19_fires_when_checkpoints_drive_the_writes() {
    let mut run = fixture::run();
    let name = stats::PHYSICAL_WRITES_NON_CHECKPOINT.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(3000));
    fires(&build(&run), "R19");
}

#[test]
fn advice_r19_is_silent_when_they_do_not() {
    is_silent(&record(), "R19");
}

#[test]
fn advice_r20_fires_on_too_little_redo_or_too_many_changes() {
    let mut record = record();
    total(&mut record, "redo_size_bytes", 12_800.0 * 700.0);
    assert_eq!(fires(&record, "R20").severity, "note");
    total(&mut record, "redo_size_bytes", 12_800.0 * 300.0);
    assert_eq!(fires(&record, "R20").severity, "high");
    total(&mut record, "redo_size_bytes", 12_800.0 * 812.0);
    total(&mut record, "db_block_changes_count", 12_800.0 * 2.5);
    fires(&record, "R20");
}

#[test]
fn advice_r20_is_silent_on_a_standard_update_on_heavy_and_on_few_rows() {
    is_silent(&record(), "R20");
    let mut heavy = record();
    total(&mut heavy, "redo_size_bytes", 12_800.0 * 5300.0);
    set(&mut heavy, "REDO_STRESS", "HEAVY");
    is_silent(&heavy, "R20");
    let mut few = record();
    total(&mut few, "redo_size_bytes", 12_800.0 * 2000.0);
    few.driver.ops = vec![OpRow {
        kind: "update".to_owned(),
        count: 12_800,
        rows_count: 12_800,
        ..OpRow::default()
    }];
    is_silent(&few, "R20");
}

#[test]
fn advice_r21_fires_on_steal_throttling_and_a_hole_in_the_account() {
    let mut steal = record();
    cpu(&mut steal, "steal", 1.2);
    assert!(fires(&steal, "R21").text.contains("steal"));
    let mut capped = record();
    capped.os.cgroup_throttled_us = Figure::Count(500_000);
    assert!(fires(&capped, "R21").text.contains("throttled"));
    let mut hole = record();
    cpu(&mut hole, "idle", 20.0);
    assert!(
        fires(&hole, "R21")
            .text
            .contains("missing from the account")
    );
}

#[test]
fn advice_r21_is_silent_on_a_quiet_host() {
    is_silent(&record(), "R21");
}

fn layers(engine_us: f64, device_us: Option<f64>) -> Record {
    let mut record = record();
    let row = |us: Option<f64>| {
        let mut row = LayerRow {
            count: Figure::Count(1000),
            ..LayerRow::default()
        };
        row.latency.avg_us = us.map_or_else(|| Figure::na("no device known"), Figure::Decimal);
        row
    };
    record.instance.layers = vec![RequestLayers {
        request: "single-block read".to_owned(),
        engine: row(Some(engine_us)),
        syscall: row(Some(engine_us * 0.9)),
        device: row(device_us),
        ..RequestLayers::default()
    }];
    record
}

#[test]
fn advice_r22_fires_when_the_device_took_less_than_half() {
    let said = fires(&layers(1000.0, Some(400.0)), "R22");
    assert_eq!(said.severity, "note");
    assert!(
        said.text.contains("1,000 us") && said.text.contains("900 us in the ring"),
        "{}",
        said.text
    );
    assert_eq!(fires(&layers(7400.0, Some(1080.0)), "R22").severity, "high");
}

#[test]
fn advice_r22_is_silent_when_the_device_takes_the_time_and_says_when_nobody_knows() {
    is_silent(&layers(1000.0, Some(600.0)), "R22");
    assert!(lacks(&layers(1000.0, None), "R22"));
}

#[test]
fn advice_r25_fires_on_idle_sessions_with_the_corrected_rate_and_on_a_slow_start() {
    let mut idle = record();
    idle.interval.worker_active_fraction = Figure::Decimal(0.8);
    let said = fires(&idle, "R25");
    assert_eq!(said.severity, "high");
    assert_eq!(said.evidence["corrected_ops_per_s"], Figure::Decimal(125.0));
    let mut slow = record();
    let inside = slow
        .series
        .in_window
        .iter()
        .position(|inside| *inside)
        .unwrap();
    slow.series.metrics.get_mut("ops_count_per_s").unwrap()[inside] = Figure::Decimal(70.0);
    fires(&slow, "R25");
}

#[test]
fn advice_r25_is_silent_on_a_run_that_is_busy_from_end_to_end() {
    is_silent(&record(), "R25");
}

#[test]
fn advice_r26_fires_on_a_starved_session() {
    let mut record = record();
    record.driver.session_spread.min_count = Figure::Count(380);
    assert_eq!(fires(&record, "R26").severity, "note");
    record.driver.session_spread.min_count = Figure::Count(100);
    assert_eq!(fires(&record, "R26").severity, "high");
}

#[test]
fn advice_r26_is_silent_on_equals() {
    is_silent(&record(), "R26");
}

#[test]
fn advice_r27_fires_from_twenty_bytes_for_one() {
    let mut record = record();
    // 12,800 rows of two columns of 128 bytes.
    record.checks.device_write_bytes = Figure::Count(12_800 * 256 * 30);
    let said = fires(&record, "R27");
    assert_eq!(
        said.evidence["device_bytes_per_changed_byte"],
        Figure::Decimal(30.0)
    );
    assert_eq!(said.severity, "note");
}

#[test]
fn advice_r27_is_silent_on_large_changes_and_without_any() {
    let mut heavy = record();
    heavy.checks.device_write_bytes = Figure::Count(12_800 * 256 * 30);
    set(&mut heavy, "REDO_STRESS", "HEAVY");
    is_silent(&heavy, "R27");
    let mut none = record();
    total(&mut none, "table_rows_changed_count", 0.0);
    is_silent(&none, "R27");
}

#[test]
fn advice_r30_fires_on_a_violated_exact_identity() {
    let mut record = record();
    record.integrity.push(Identity {
        id: "I1".to_owned(),
        exact: true,
        ok: Truth::Violated,
        lhs: Figure::Count(5),
        rhs: Figure::Count(7),
        sentence: "5 against 7".to_owned(),
        ..Identity::default()
    });
    let said = fires(&record, "R30");
    assert_eq!(said.severity, "high");
    assert!(said.text.contains("I1: 5 against 7"), "{}", said.text);
}

#[test]
fn advice_r30_is_silent_when_the_numbers_agree() {
    is_silent(&record(), "R30");
}

#[test]
fn nothing_fires_on_what_is_not_known() {
    for record in [Record::default(), build(&RunData::default())] {
        assert_eq!(advise(&record), []);
        let lacking = unjudged(&record);
        assert!(
            lacking.iter().any(|text| text.starts_with("R1 (DB time")),
            "{lacking:?}"
        );
    }
    assert!(found(&fixture::run()).contains(&"R3".to_owned()));
}

#[test]
fn what_could_not_be_judged_is_said_once_below_the_advice() {
    let mut record = layers(1000.0, None);
    record.advice_unjudged = unjudged(&record);
    let text = crate::text::render(&record);
    let lines = text.lines().filter(|line| line.contains("Not judged"));
    assert_eq!(lines.count(), 1);
    assert!(
        text.contains("R22 (device latency: no device known)"),
        "{text}"
    );
}

/// A run of so many sessions with reads of this rate and latency.
fn loaded(sessions: u64, reads_per_s: f64, read_us: f64, busy_pct: f64, cpus: u64) -> Record {
    let mut record = record();
    record.run.sessions = sessions;
    record.interval.ops_count = (reads_per_s * 20.0).into();
    for op in &mut record.driver.ops {
        op.response.hist_ns = Histogram::new();
        op.response
            .hist_ns
            .record_n((read_us * 1000.0) as u64, 10_000);
    }
    let row = record
        .instance
        .load_profile
        .iter_mut()
        .find(|row| row.name == "Read IO requests")
        .unwrap();
    row.per_s = reads_per_s.into();
    record.os.cpu_pct.insert("busy".to_owned(), busy_pct.into());
    record.os.cpus_count = cpus.into();
    record
}

fn over(records: &[Record], id: &str) -> Option<Advice> {
    let records: Vec<&Record> = records.iter().collect();
    several(&records).into_iter().find(|advice| advice.id == id)
}

#[test]
fn advice_r09_over_runs_says_where_throughput_stopped_to_rise() {
    // Published: 256 to 512 sessions, 320,400 to 311,788 reads/s, 16 to 32 ms; here the CPUs have room.
    let runs = |busy| {
        [
            loaded(256, 320_400.0, 16_000.0, busy, 16),
            loaded(512, 311_788.0, 32_000.0, busy, 16),
        ]
    };
    let said = over(&runs(60.0), "R9").unwrap();
    assert!(
        said.text
            .contains("from 256 sessions to 512 sessions throughput stayed within 5 %"),
        "{}",
        said.text
    );
    assert_eq!(over(&runs(60.0), "R10"), None);
    let gain = [
        loaded(256, 100_000.0, 2560.0, 60.0, 16),
        loaded(512, 190_000.0, 2700.0, 60.0, 16),
    ];
    assert_eq!(over(&gain, "R9"), None);
}

#[test]
fn advice_r10_over_runs_leaves_open_what_busy_cpus_leave_open() {
    let runs = [
        loaded(256, 320_400.0, 16_000.0, 99.7, 16),
        loaded(512, 311_788.0, 32_000.0, 99.7, 16),
    ];
    let said = over(&runs, "R10").unwrap();
    assert!(
        said.text.contains("the limit is ambiguous: storage or CPU"),
        "{}",
        said.text
    );
    assert_eq!(over(&runs, "R9"), None);
    // Added CPUs that brought nothing.
    let cpus = [
        loaded(256, 318_000.0, 800.0, 98.0, 8),
        loaded(256, 320_400.0, 800.0, 99.0, 16),
    ];
    let said = over(&cpus, "R10").unwrap();
    assert!(
        said.text.contains("8 and 16 CPUs at their best"),
        "{}",
        said.text
    );
    let room = [
        loaded(256, 318_000.0, 800.0, 50.0, 8),
        loaded(256, 320_400.0, 800.0, 50.0, 16),
    ];
    assert_eq!(over(&room, "R10"), None);
}

#[test]
fn advice_r09_does_not_compare_runs_of_different_settings() {
    let mut runs = [
        loaded(256, 320_400.0, 16_000.0, 60.0, 16),
        loaded(512, 311_788.0, 32_000.0, 60.0, 16),
    ];
    runs[1]
        .plan
        .settings
        .iter_mut()
        .find(|line| line.name == "UPDATE_PCT")
        .unwrap()
        .value = "30".to_owned();
    assert_eq!(over(&runs, "R9"), None);
}

fn sized(kib: f64, ios_per_s: f64) -> Record {
    use assay_measure::record::{StorageGroup, StorageInfo, StorageWay};
    let way = StorageWay {
        way: "read".to_owned(),
        ios_per_s: ios_per_s.into(),
        mb_per_s: (kib * 1024.0 * ios_per_s / 1e6).into(),
        ..StorageWay::default()
    };
    let mut record = Record::default();
    record.parts.put(&StorageInfo {
        groups: vec![StorageGroup {
            ways: vec![way],
            ..StorageGroup::default()
        }],
        ..StorageInfo::default()
    });
    record
}

#[test]
fn advice_r11_two_limits_show_over_block_sizes() {
    // Published: 14.5k, 14.5k and 7.2k IOPS; 56, 113 and 113 MiB/s.
    let records = [
        sized(4.0, 14_500.0),
        sized(16.0, 7_200.0),
        sized(8.0, 14_500.0),
    ];
    let said = over(&records, "R11").unwrap();
    assert!(
        said.text
            .contains("14,500 a second at 4 KiB and at 8 KiB alike"),
        "{}",
        said.text
    );
    assert!(
        said.text.contains("113 MiB/s at 8 KiB and at 16 KiB"),
        "{}",
        said.text
    );
    let device = [
        sized(4.0, 20_000.0),
        sized(8.0, 14_500.0),
        sized(16.0, 8_000.0),
    ];
    assert_eq!(over(&device, "R11"), None);
    let mut one = sized(4.0, 14_500.0);
    let groups = [sized(8.0, 14_500.0), sized(16.0, 7_200.0)];
    let part = |record: &Record| record.parts.get::<StorageInfo>().unwrap();
    let mut all = part(&one);
    all.groups
        .extend(groups.iter().flat_map(|record| part(record).groups));
    one.parts.put(&all);
    assert!(says(&one, "R11").is_some());
    one.advice = advise(&one);
    assert_eq!(over(&[one], "R11"), None, "said once");
}

#[test]
fn advice_r24_forbids_faster_where_settings_differ() {
    let mut runs = [record(), record()];
    assert_eq!(over(&runs, "R24"), None);
    for (run, mode) in runs.iter_mut().zip(["single", "batched"]) {
        run.plan.settings.push(SettingLine {
            name: "READ_MODE".to_owned(),
            value: mode.to_owned(),
            origin: "cli".to_owned(),
        });
    }
    let said = over(&runs, "R24").unwrap();
    assert!(
        said.text.contains("prefetch (READ_MODE): single, batched"),
        "{}",
        said.text
    );
    assert!(said.text.contains("may be called faster"));
}

fn imported(values: &[(&str, f64)]) -> Record {
    use assay_measure::record::{ImportInfo, ImportedValue};
    let value = |(key, value): &(&str, f64)| ImportedValue {
        key: (*key).to_owned(),
        value: (*value).into(),
        ..ImportedValue::default()
    };
    Record {
        import: Some(ImportInfo {
            values: values.iter().map(value).collect(),
            ..ImportInfo::default()
        }),
        ..Record::default()
    }
}

#[test]
fn advice_r23_network_part_of_a_remote_call() {
    // Published: 2.532 ms, of which 1.888 ms disk write: 0.644 ms network.
    let record = imported(&[
        ("redo_transport_us_avg", 2532.0),
        ("redo_transport_disk_write_us_avg", 1888.0),
    ]);
    let said = fires(&record, "R23");
    assert!(
        said.text
            .contains("25 % of a remote call: 644 us of 2,532 us"),
        "{}",
        said.text
    );
    let disk = imported(&[
        ("redo_transport_us_avg", 2532.0),
        ("redo_transport_disk_write_us_avg", 2100.0),
    ]);
    is_silent(&disk, "R23");
    assert!(lacks(&imported(&[("redo_transport_us_avg", 600.0)]), "R23"));
    is_silent(&super::super::record::build(&fixture::run()), "R23");
}

#[test]
fn advice_r07_rates_per_hour_need_a_quarter_of_an_hour() {
    let mut record = record();
    let mut switches = |seconds: f64, count: f64| {
        record.interval.elapsed_s = seconds.into();
        record
            .instance
            .stats
            .get_mut("redo_log_switches_count")
            .unwrap()
            .total = count.into();
        record.clone()
    };
    assert!(lacks(&switches(899.0, 8.0), "R7"));
    let said = fires(&switches(900.0, 8.0), "R7");
    assert!(
        said.text.contains("8 switches (32 per hour)"),
        "{}",
        said.text
    );
    is_silent(&switches(3600.0, 4.0), "R7");
}

#[test]
fn advice_r02_of_an_import_judges_by_the_load() {
    let mut record = imported(&[]);
    record.os.cpu_pct.insert("busy".to_owned(), 99.7.into());
    record.os.cpus_count = 16_u64.into();
    assert!(lacks(&record, "R2"));
    record.os.load_end = vec![235.0.into()];
    let said = fires(&record, "R2");
    assert!(
        said.text.contains("99.7 % busy, load 14.7 per CPU"),
        "{}",
        said.text
    );
}

#[test]
fn advice_r30_names_what_an_import_contradicts_itself_in() {
    let mut record = imported(&[]);
    let identity = |id: &str| Identity {
        id: id.to_owned(),
        ok: Truth::Violated,
        lhs: 75.1.into(),
        rhs: 100.0.into(),
        sentence: "75.1 is not 100".to_owned(),
        ..Identity::default()
    };
    record.integrity = vec![identity("I15")];
    assert_eq!(says(&record, "R30"), None);
    record.integrity.push(identity("I31"));
    let said = fires(&record, "R30");
    assert!(
        said.text
            .contains("1 printed identities are violated (I31)"),
        "{}",
        said.text
    );
}

#[test]
fn advice_r08_and_r18_read_what_an_import_printed() {
    let mut record = imported(&[]);
    let mut event = super::super::record::build(&fixture::run()).instance.events[0].clone();
    event.name = "cell single block physical read".to_owned();
    event.actor = "foreground".to_owned();
    event.hist_us = vec![0; 34];
    // Published histogram of bare metal, 128 us to 16.384 ms.
    for (bucket, count) in [
        (7, 533),
        (8, 240_142),
        (9, 7818),
        (10, 949),
        (11, 491),
        (12, 1885),
        (13, 3681),
        (14, 2562),
    ] {
        event.hist_us[bucket] = count;
    }
    record.instance.events = vec![event];
    let said = fires(&record, "R8");
    let pct = |key: &str| said.evidence[key].value().unwrap();
    assert!((3.0..3.6).contains(&pct("slow_waits_pct")), "{said:?}");
    assert!((50.0..62.0).contains(&pct("slow_time_pct")), "{said:?}");
    record
        .instance
        .efficiency
        .push(assay_measure::record::PercentRow {
            name: "Buffer Hit %".to_owned(),
            value_pct: 99.95.into(),
        });
    assert!(
        fires(&record, "R18")
            .text
            .contains("shrink the buffer cache")
    );
}
