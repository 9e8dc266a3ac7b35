use super::*;
use crate::record::{SeriesBuilder, build, build_with};
use assay_measure::counter_catalog::{self, DICTIONARY};
use assay_measure::facts;
use assay_measure::histogram::Histogram;
use assay_measure::identity::{violated, violated_exact};
use assay_measure::snapshot::{Actor, CLIENT_WAIT, EventReading, Reading, RunData, Snapshot, UPDATE, WaitClass};
use assay_testkit::fixtures;

fn identity(run: &RunData, id: &str) -> Identity {
    let record = build(run);
    let found = record.integrity.iter().find(|identity| identity.id == id);
    found.unwrap_or_else(|| panic!("no identity {id}")).clone()
}

fn holds(run: &RunData, id: &str) -> bool {
    match identity(run, id).ok {
        Truth::Holds => true,
        Truth::Violated => false,
        Truth::Na(reason) => panic!("{id} is n/a: {reason}"),
    }
}

/// Moves a counter at the end of the window and of the drain by `by`.
fn off(run: &mut RunData, stat: Stat, by: i64) {
    for mark in [&mut run.end, &mut run.drained] {
        let Some(Reading::Count(count)) = mark.stats.counters.get_mut(stat.name) else {
            panic!("{} is not counted", stat.name);
        };
        *count = count.checked_add_signed(by).unwrap();
    }
}

/// The identity holds on the frozen run and no longer when the counter is off.
fn fires(id: &str, stat: Stat, by: i64) {
    assert!(holds(&fixtures::run(), id), "{id}");
    let mut run = fixtures::run();
    off(&mut run, stat, by);
    let found = identity(&run, id);
    assert_eq!(found.ok, Truth::Violated, "{id}: {}", found.sentence);
    assert!(found.sentence.contains("off by"), "{}", found.sentence);
}

#[test]
fn the_frozen_run_violates_nothing_and_leaves_out_only_what_it_cannot_know() {
    let record = build(&fixtures::run());
    assert_eq!(violated(&record), Vec::<&Identity>::new());
    let unknown: Vec<&str> = record
        .integrity
        .iter()
        .filter(|identity| matches!(identity.ok, Truth::Na(_)))
        .map(|identity| identity.id.as_str())
        .collect();
    assert_eq!(unknown, ["I6b", "I23", "I39"]);
}

#[test]
fn identities_come_in_the_order_of_their_numbers_and_once() {
    let record = build(&fixtures::run());
    let numbers: Vec<u32> = record.integrity.iter().map(|i| number_of(&i.id)).collect();
    assert!(numbers.is_sorted());
    let mut ids: Vec<&str> = record.integrity.iter().map(|i| i.id.as_str()).collect();
    let all = ids.len();
    ids.dedup();
    assert_eq!(ids.len(), all);
    for n in [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 15, 16, 17, 18, 19, 20, 22, 23, 24, 25, 26, 27, 28, 30, 31, 32, 36, 37,
        38, 39, 40, 41, 42, 44,
    ] {
        assert!(numbers.contains(&n), "I{n} is missing");
    }
}

#[test]
fn a_run_without_readings_is_na_throughout() {
    let record = build(&RunData::default());
    let judged: Vec<_> = record.integrity.iter().filter(|identity| !matches!(identity.ok, Truth::Na(_))).collect();
    assert!(judged.is_empty(), "{judged:?}");
}

#[test]
fn a_run_of_zeros_is_na_where_counters_are_compared() {
    let mut run = fixtures::run();
    for mark in [&mut run.begin, &mut run.end, &mut run.drained] {
        let at_ns = mark.at_ns;
        *mark = fixtures::snapshot(0);
        mark.at_ns = at_ns;
        mark.driver.sessions_active = 0;
    }
    run.series.clear();
    run.activity = None;
    let record = build(&run);
    for identity in &record.integrity {
        assert_ne!(identity.ok, Truth::Violated, "{}: {}", identity.id, identity.sentence);
        if ["I1", "I5", "I8", "I9", "I10a", "I13a", "I15", "I18", "I41a", "I42"].contains(&identity.id.as_str()) {
            assert_eq!(identity.ok, Truth::Na("nothing counted".to_owned()), "{}", identity.id);
        }
    }
}

#[test]
fn identity_i1_physical_reads_are_cache_and_direct() {
    fires("I1", counter_catalog::PHYSICAL_READS, 1);
}

#[test]
fn identity_i2_physical_writes_are_from_cache_and_direct() {
    fires("I2", counter_catalog::PHYSICAL_WRITES_FROM_CACHE, -1);
}

#[test]
fn identity_i3_and_i4_bytes_are_blocks_times_block_size() {
    fires("I3", counter_catalog::PHYSICAL_READ_BYTES, 512);
    fires("I4", counter_catalog::PHYSICAL_WRITE_BYTES, -1);
}

#[test]
fn identity_i5_logical_reads_are_current_and_consistent_gets() {
    fires("I5", counter_catalog::CONSISTENT_GETS, 1);
}

#[test]
fn identity_i6_requests_and_the_blocks_that_ride_along() {
    fires("I6a", counter_catalog::PHYSICAL_READ_REQUESTS, 1);
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::PHYSICAL_READ_REQUESTS, -10);
    assert!(!holds(&run, "I6b"), "ten blocks rode along without prefetch");
    off(&mut run, counter_catalog::PHYSICAL_READS_CACHE_PREFETCH, 10);
    assert!(holds(&run, "I6b"));
}

#[test]
fn identity_i7_totals_are_not_below_their_parts() {
    fires("I7a", counter_catalog::PHYSICAL_READ_TOTAL_REQUESTS, -1);
    fires("I7b", counter_catalog::PHYSICAL_READ_TOTAL_BYTES, -1);
    fires("I7c", counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS, -250);
    fires("I7d", counter_catalog::PHYSICAL_WRITE_TOTAL_BYTES, -20_000_000);
}

#[test]
fn identity_i8_what_is_not_data_is_log_and_control_file() {
    fires("I8", counter_catalog::REDO_BYTES_WRITTEN, 4096);
}

#[test]
fn identity_i9_log_blocks_hold_redo_wastage_headers_less_what_is_unflushed() {
    fires("I9", counter_catalog::REDO_WASTAGE, 16);
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::REDO_SIZE, 100);
    let gauge = "redo_buffer_unflushed_bytes".to_owned();
    run.drained.stats.gauges.insert(gauge, 100);
    assert!(holds(&run, "I9"), "100 bytes are still in the buffer");
}

#[test]
fn identity_i9_is_na_without_the_gauge() {
    let mut run = fixtures::run();
    run.gate.stats.gauges.clear();
    assert!(matches!(identity(&run, "I9").ok, Truth::Na(reason) if reason.contains("gauge")));
}

#[test]
fn identity_i10_every_get_is_a_hit_a_miss_or_a_shared_wait() {
    fires("I10a", counter_catalog::CACHE_DEMAND_MISSES, 1);
    fires("I10b", counter_catalog::CACHE_SHARED_MISSES, -1);
}

#[test]
fn identity_i12_non_checkpoint_writes_are_writes() {
    fires("I12", counter_catalog::PHYSICAL_WRITES_NON_CHECKPOINT, 10_000);
}

#[test]
fn identity_i13_functions_add_up_to_the_totals() {
    for (id, change) in [
        ("I13a", (|io| io.large_read_requests += 1) as fn(&mut assay_measure::snapshot::IoReading)),
        ("I13b", |io| io.read_bytes += 8192),
        ("I13c", |io| io.small_write_requests += 1),
        ("I13d", |io| io.write_bytes += 1),
    ] {
        assert!(holds(&fixtures::run(), id), "{id}");
        let mut run = fixtures::run();
        change(&mut run.drained.stats.io[0]);
        assert!(!holds(&run, id), "{id}");
    }
}

#[test]
fn identity_i18_db_time_is_waits_on_thread_and_run_queue() {
    fires("I18", counter_catalog::ON_THREAD_TIME, 200_000_000);
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::ON_THREAD_TIME, 80_000_000);
    assert!(holds(&run, "I18"), "a thousandth is allowed");
}

#[test]
fn identity_i20_and_i19_add_up_events_by_actor_and_class() {
    assert!(holds(&fixtures::run(), "I19"));
    assert!(holds(&fixtures::run(), "I20"));
    let mut record = build(&fixtures::run());
    record.instance.events.pop();
    record.instance.wait_classes.pop();
    let run = fixtures::run();
    let again = evaluate(&Deltas::new(&run), &record, &Rises::of(&run));
    let ok = |id: &str| again.iter().find(|i| i.id == id).unwrap().ok.clone();
    assert_eq!(ok("I20"), Truth::Violated);
    assert_eq!(ok("I19"), Truth::Violated);
}

#[test]
fn identity_i22_log_times_are_counted_twice_alike() {
    fires("I22a", counter_catalog::REDO_SYNCH_TIME, 10_000_000);
    fires("I22b", counter_catalog::REDO_WRITE_TIME, -10_000_000);
}

#[test]
fn identity_i23_log_space_time_is_that_of_log_switch_events() {
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::REDO_LOG_SPACE_TIME, 5_000_000);
    assert!(!holds(&run, "I23"));
    let mut waits = Histogram::new();
    waits.record(5_000_000);
    let mut switch = run.drained.stats.events[0].clone();
    "log file switch completion".clone_into(&mut switch.name);
    switch.waits = waits;
    run.drained.stats.events.push(switch);
    assert!(holds(&run, "I23"));
}

#[test]
fn identity_i24_sessions_cannot_be_busy_longer_than_they_lived() {
    fires("I24a", counter_catalog::DB_TIME, 1_000_000_000);
    fires("I24b", counter_catalog::DB_TIME, 1_000_000_000);
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::DB_TIME, 280_000_000);
    assert!(!holds(&run, "I24b"));
    // 200 ms of it had been spent before the window began.
    run.begin.driver.in_flight_ns += 200_000_000;
    assert!(holds(&run, "I24b"));
}

#[test]
fn identity_i25_cpu_is_within_the_hosts() {
    fires("I25a", counter_catalog::DB_CPU, 80_000_000_000);
    fires("I25b", counter_catalog::DB_CPU, 20_000_000_000);
    // Ticks that missed every burst are no violation; a host that was idle all the time is one.
    let mut run = fixtures::run();
    let begin = run.begin.host.cpu_ns.unwrap();
    let end = run.end.host.cpu_ns.as_mut().unwrap();
    (end[0], end[2]) = (begin[0], begin[2]);
    assert!(holds(&run, "I25b"));
    run.end.host.cpu_ns.as_mut().unwrap()[3] += 20_000_000_000;
    assert!(!holds(&run, "I25b"));
}

#[test]
fn identity_i25_cpu_is_within_that_of_the_host_where_the_server_runs() {
    // The driver's own host was idle all the time, and the server has 16 CPUs of another.
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::DB_CPU, 80_000_000_000);
    let (busy, idle) = (counter_catalog::SERVER_HOST_BUSY.name, counter_catalog::SERVER_HOST_IDLE.name);
    let count = |mark: &mut Snapshot, name: &'static str, ns| {
        mark.stats.counters.insert(name.into(), Reading::Count(ns));
    };
    count(&mut run.begin, busy, 0);
    count(&mut run.begin, idle, 0);
    for mark in [&mut run.end, &mut run.drained] {
        count(mark, busy, 90_000_000_000);
        count(mark, idle, 400_000_000_000);
    }
    assert!(holds(&run, "I25a"));
    assert!(holds(&run, "I25b"));
    count(&mut run.end, busy, 10_000_000_000);
    assert!(!holds(&run, "I25b"));
}

#[test]
fn identity_i26_rates_multiply_back_to_totals() {
    assert!(holds(&fixtures::run(), "I26a"));
    let run = fixtures::run();
    let mut record = build(&run);
    record.instance.load_profile[3].per_s = 1.0.into();
    let again = evaluate(&Deltas::new(&run), &record, &Rises::of(&run));
    let found = again.iter().find(|i| i.id == "I26a").unwrap();
    assert_eq!(found.ok, Truth::Violated);
    assert!(found.sentence.contains("Redo size"), "{}", found.sentence);
}

#[test]
fn identity_i27_device_queue_is_rate_times_latency() {
    assert!(holds(&fixtures::run(), "I27"));
    let mut run = fixtures::run();
    let queued_ns = run.end.host.disks[0].weighted_ns;
    run.end.host.disks[0].weighted_ns *= 2;
    assert!(!holds(&run, "I27"));
    // As much again was spent on discards.
    run.end.host.disks[0].discard_ns += queued_ns;
    assert!(holds(&run, "I27"));
}

#[test]
fn identity_i30_throughput_is_blocks_times_size() {
    fires("I30", counter_catalog::PHYSICAL_READ_BYTES, 8_000_000);
}

#[test]
fn identity_i31_and_i32_cpu_columns_leave_no_hole() {
    let mut run = fixtures::run();
    assert!(holds(&run, "I31a"));
    assert!(holds(&run, "I32a") && holds(&run, "I32b"));
    if let Some(cpu) = &mut run.end.host.cpu_ns {
        cpu[3] -= 20_000_000_000;
    }
    assert!(!holds(&run, "I31b"), "a quarter of CPU time is missing");
}

#[test]
fn identity_i36_commits_wait_at_most_once() {
    fires("I36a", counter_catalog::USER_COMMITS, -1);
    fires("I36b", counter_catalog::REDO_WRITES, 1_000);
}

#[test]
fn identity_i38_littles_law_accounts_for_the_sessions() {
    assert!(holds(&fixtures::run(), "I38"));
    let mut run = fixtures::run();
    run.end.driver.busy_ns -= 8_000_000_000;
    assert!(!holds(&run, "I38"));
    let record = build(&run);
    assert!(record.doubts().any(|(rule, text)| rule == "R33" && text.contains("Little's law")));
    // It is accounted for where the sessions waited for their client that long.
    let mut waits = Histogram::new();
    (0..8).for_each(|_| waits.record(1_000_000_000));
    run.end.stats.events.push(EventReading {
        name: CLIENT_WAIT.to_owned(),
        class: WaitClass::Idle,
        actor: Actor::Foreground,
        timeouts: 8,
        waits,
    });
    assert!(holds(&run, "I38"));
}

#[test]
fn identity_i40_rows_of_operations_are_rows_visited() {
    fires("I40a", counter_catalog::ROWS_VISITED, 1);
    fires("I40b", counter_catalog::INDEX_GETS, 10_000);
    let mut run = fixtures::run();
    run.drained.driver.errors.insert("io".to_owned(), 1);
    assert!(matches!(identity(&run, "I40a").ok, Truth::Na(_)));
}

#[test]
fn identity_i41_bytes_are_counted_alike_at_three_places() {
    fires("I41a", counter_catalog::RING_READ_BYTES, 1);
    fires("I41b", counter_catalog::RING_READ_REQUESTS, 1);
    fires("I41c", counter_catalog::RING_WRITE_BYTES, -1);
    fires("I41d", counter_catalog::RING_WRITE_REQUESTS, -1);
    let mut run = fixtures::run();
    run.drained.host.process_read_bytes = Some(0);
    assert!(!holds(&run, "I41e"), "the device saw none of it");
    run.engine_facts.retain(|fact| fact.name != "page_cache_bypassed");
    assert!(matches!(identity(&run, "I41e").ok, Truth::Na(_)));
}

#[test]
fn identity_s11_is_of_servers_whose_reads_are_calls() {
    let mut run = fixtures::postgres(18);
    assert!(holds(&run, "S11"));
    run.engine_facts.push(facts::READ_WITHOUT_CALLS.fact("io_uring"));
    let unknown = "io_uring reads without read calls";
    assert_eq!(identity(&run, "S11").ok, Truth::Na(unknown.to_owned()));
    let mut run = fixtures::postgres(18);
    run.engine_facts.push(facts::IN_PROCESS.fact("yes"));
    assert!(matches!(identity(&run, "S11").ok, Truth::Na(_)), "the blocks are counted from the calls");
}

#[test]
fn identity_i42_dirty_buffers_balance() {
    fires("I42", counter_catalog::BUFFERS_CLEANED, 1);
}

#[test]
fn identity_i44_a_counter_that_falls_is_named() {
    assert!(holds(&fixtures::run(), "I44"));
    let mut run = fixtures::run();
    let name = counter_catalog::PHYSICAL_READS.name.to_owned();
    run.series[10].stats.counters.insert(name.clone(), Reading::Count(1));
    let found = identity(&run, "I44");
    assert_eq!(found.ok, Truth::Violated);
    assert!(found.sentence.contains(&name), "{}", found.sentence);
}

#[test]
fn identity_i44_is_judged_on_every_snapshot_of_a_run_that_kept_none() {
    let name = counter_catalog::PHYSICAL_READS.name;
    let judged = |fallen: bool| {
        let mut run = fixtures::run();
        let mut series = SeriesBuilder::default();
        let mut last = run.gate.clone();
        for (second, mut now) in std::mem::take(&mut run.series).into_iter().enumerate() {
            if fallen && second == 10 {
                let counters = &mut now.stats.counters;
                counters.insert(name.to_owned(), Reading::Count(1));
            }
            series.push(&last, &now);
            last = now;
        }
        let record = build_with(&run, series);
        let found = record.integrity.into_iter().find(|i| i.id == "I44");
        found.expect("it is evaluated")
    };
    let whole = judged(false);
    assert_eq!(whole, identity(&fixtures::run(), "I44"));
    assert_eq!(whole.ok, Truth::Holds);
    let found = judged(true);
    assert_eq!(found.ok, Truth::Violated);
    assert!(found.sentence.contains(name), "{}", found.sentence);
}

#[test]
fn identity_i44_what_the_close_wrote_comes_after_an_end_at_the_same_instant() {
    let mut run = fixtures::run();
    // One driver thread and a fixed number of operations: it ends and drains at once, then the writers close.
    run.drained = run.end.clone();
    let name = counter_catalog::BUFFERS_CLEANED.name.to_owned();
    let Some(Reading::Count(cleaned)) = run.end.stats.counters.get(&name).cloned() else {
        panic!("the fixture counts {name}");
    };
    let more = Reading::Count(cleaned + 1000);
    run.drained.stats.counters.insert(name, more);
    assert!(holds(&run, "I44"));
}

#[test]
fn identities_of_histograms_hold_for_every_event_and_kind() {
    for id in ["I15", "I16", "I17", "I28", "I37"] {
        let found = identity(&fixtures::run(), id);
        assert_eq!(found.ok, Truth::Holds, "{id}: {}", found.sentence);
        assert!(found.sentence.starts_with("all "), "{}", found.sentence);
    }
}

#[test]
fn identities_that_need_quiet_threads_are_na_on_a_run_cut_short() {
    let mut run = fixtures::run();
    run.drained = run.end.clone();
    assert!(matches!(identity(&run, "I9").ok, Truth::Na(reason) if reason.contains("in flight")));
    assert!(holds(&run, "I1"), "what holds inside every thread can still be judged");
}

#[test]
fn a_violated_exact_identity_is_loud() {
    let mut run = fixtures::run();
    off(&mut run, counter_catalog::PHYSICAL_READS, 1);
    let record = build(&run);
    let ids: Vec<&str> = violated_exact(&record).iter().map(|i| i.id.as_str()).collect();
    assert_eq!(ids, ["I1", "I3", "I6b"]);
    assert!(record.doubts().any(|(rule, text)| rule == "R30" && text.contains("bug of assay")), "{:?}", record.advice);
    let text = crate::testing::text(&record);
    assert!(text.contains("VIOLATED, A BUG IN ASSAY: physical reads = cache + direct"));
    assert_eq!(record.run.verdict, "complete");
}

#[test]
fn no_counter_is_unknown_to_the_fixture_by_a_slip_of_name() {
    let run = fixtures::run();
    for name in run.end.stats.counters.keys() {
        assert!(DICTIONARY.iter().any(|stat| stat.name == name), "{name}");
    }
    assert!(run.end.driver.ops.iter().any(|op| op.kind == UPDATE));
    assert!(run.end.stats.events.iter().any(|e| e.actor == Actor::Background));
}

#[test]
fn samples_that_contradict_the_clocks_are_told() {
    assert!(holds(&fixtures::run(), "ASH"));
    assert!(holds(&fixtures::run(), "I28b"));
    // A sampler that saw half the sessions: 40 s where 80 s were measured.
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    for step in &mut history.steps {
        step.cells = vec![(0, 2, 200_000_000)];
    }
    assert!(!holds(&run, "ASH"));
    assert!(!identity(&run, "ASH").exact);
    // Work of 0.8 s in all, and nothing of it seen: eight samples were to be expected, which chance may miss.
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    history.interval_ns *= 100;
    for step in &mut history.steps {
        step.cells.clear();
    }
    assert!(matches!(identity(&run, "ASH").ok, Truth::Na(_)), "{:?}", identity(&run, "ASH"));
    assert!(matches!(identity(&run, "I28b").ok, Truth::Na(_)));
    // The right sum in the wrong place: sessions seen on CPU that were timed reading.
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    for step in &mut history.steps {
        step.cells = vec![(1, 4, 400_000_000)];
    }
    assert!(holds(&run, "ASH"));
    let little = identity(&run, "I28b");
    assert_eq!(little.ok, Truth::Violated);
    assert!(little.sentence.contains("db file sequential read"), "{}", little.sentence);
    // A server's own clock has the wait for a CPU in it.
    let mut record = build(&run);
    record.instance.server = Some(assay_measure::record::ServerInfo::default());
    let again = |record: &Record| {
        let all = evaluate(&Deltas::new(&run), record, &Rises::of(&run));
        all.into_iter().find(|found| found.id == "I28b").expect("it is evaluated")
    };
    record.instance.ash.run_queue_count = 1.0.into();
    assert_eq!(again(&record).ok, Truth::Violated);
    record.instance.ash.run_queue_count = 4.0.into();
    assert_eq!(again(&record).ok, Truth::Holds, "{}", again(&record).sentence);
    run.activity = None;
    assert!(matches!(identity(&run, "I28b").ok, Truth::Na(_)));
    assert!(matches!(identity(&run, "ASH").ok, Truth::Na(_)));
}
