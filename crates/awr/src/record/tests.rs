use super::*;
use assay_measure::record::Series;
use assay_measure::snapshot::Reading;
use assay_measure::snapshot::Verdict;
use assay_testkit::fixtures;

fn load<'a>(record: &'a Record, name: &str) -> &'a assay_measure::record::LoadRow {
    record.instance.load_profile.iter().find(|row| row.name == name).unwrap()
}

/// All that may change what the figures mean, as one text.
fn doubts(record: &Record) -> String {
    record.doubts().map(|(_, text)| text).collect::<Vec<_>>().join(" ")
}

fn warned(run: &RunData, part: &str) -> bool {
    doubts(&build(run)).contains(part)
}

#[test]
fn the_frozen_run_gives_no_warning() {
    assert_eq!(doubts(&build(&fixtures::run())), "");
}

#[test]
fn rates_divide_by_every_denominator() {
    let record = build(&fixtures::run());
    let gets = load(&record, "Logical read (blocks)");
    assert_eq!(gets.total, Figure::Count(134_000));
    assert_eq!(gets.per_s, Figure::decimal(6700.0));
    assert_eq!(gets.per_tx, Figure::decimal(670.0));
    assert_eq!(gets.per_op, Figure::decimal(67.0));
    let time = load(&record, "DB Time(s)");
    assert_eq!(time.per_call.value().map(|v| (v * 1e6).round()), Some(40_000.0));
}

#[test]
fn db_time_is_that_inside_the_window_also_of_operations_that_span_its_ends() {
    let mut run = fixtures::run();
    // All four sessions hang in an operation since second 21 and end none.
    let name = assay_measure::counter_catalog::DB_TIME.name;
    let before = fixtures::snapshot(21);
    run.end.stats.counters.insert(name.to_owned(), before.stats.counters[name].clone());
    run.end.driver.in_flight_ns = 4_080_000_000;
    let record = build(&run);
    assert_eq!(record.instance.time_model.db_time_us, Figure::decimal(80_000_000.0));
}

#[test]
fn slob_37_logical_reads_are_misses_and_hits_and_executes_are_operations() {
    let record = build(&fixtures::run());
    let total = |key: &str| record.instance.stats[key].total.value().unwrap();
    assert_eq!(
        total("session_logical_reads_blocks"),
        total("physical_reads_blocks")
            + total("buffer_cache_hits_blocks")
            + total("buffer_cache_waits_for_other_reads_blocks")
    );
    assert_eq!(record.interval.execs_count, record.interval.ops_count);
    let read_mib = load(&record, "Read IO (MB)").per_s.value().unwrap();
    let requests = load(&record, "Read IO requests").per_s.value().unwrap();
    assert_eq!(read_mib, requests * 8192.0 / 1_048_576.0);
}

#[test]
fn a_run_without_transactions_has_no_per_transaction_figure() {
    let mut run = fixtures::run();
    let name = assay_measure::counter_catalog::USER_COMMITS.name;
    run.end.stats.counters.insert(name.to_owned(), run.begin.stats.counters[name].clone());
    let record = build(&run);
    assert_eq!(load(&record, "Redo size (bytes)").per_tx, Figure::na("no transactions"));
    assert_eq!(record.interval.tx_count, Figure::Count(0));
}

#[test]
fn a_counter_the_engine_lacks_is_na_and_stays_na_in_sums() {
    let mut run = fixtures::run();
    for mark in [&mut run.begin, &mut run.end] {
        let name = assay_measure::counter_catalog::PHYSICAL_WRITE_TOTAL_REQUESTS.name;
        mark.stats.counters.insert(name.to_owned(), Reading::Na("denied".to_owned()));
    }
    let record = build(&run);
    let total = &record.instance.io_profile[0];
    assert_eq!(total.write_per_s, Figure::na("denied"));
    assert_eq!(total.read_write_per_s, Figure::na("denied"));
    assert_eq!(total.read_per_s, Figure::decimal(6000.0));
}

#[test]
fn a_counter_that_went_backwards_is_na_alone() {
    let mut run = fixtures::run();
    let name = assay_measure::counter_catalog::REDO_SIZE.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(1));
    let record = build(&run);
    assert_eq!(load(&record, "Redo size (bytes)").per_s, Figure::na("reset"));
    assert_eq!(load(&record, "Read IO requests").per_s, Figure::decimal(6000.0));
}

#[test]
fn an_event_that_went_backwards_is_named_and_not_shown_as_zero() {
    let mut run = fixtures::run();
    run.end.stats.events[0].waits = assay_measure::histogram::Histogram::new();
    let record = build(&run);
    assert!(record.instance.events.iter().all(|event| event.name != "db file sequential read"));
    assert!(warned(&run, "db file sequential read"));
}

#[test]
fn percentiles_are_those_of_the_window_and_na_with_too_few_samples() {
    let record = build(&fixtures::run());
    let event = |name: &str| record.instance.events.iter().find(|event| event.name == name).unwrap();
    let reads = event("db file sequential read");
    assert_eq!(reads.count, Figure::Count(120_000));
    assert_eq!(reads.hist_ns.count(), 120_000);
    let p50 = reads.us_p50.value().unwrap();
    assert!((p50 - 400.0).abs() < 400.0 / 128.0, "{p50}");
    assert_eq!(reads.hist_us.iter().sum::<u64>(), 120_000);
    assert_eq!(event("log file sync").us_p99, Figure::na("too few samples"));
}

#[test]
fn background_shares_never_exceed_their_whole() {
    let sum = |run: &RunData| -> f64 {
        let record = build(run);
        let background = record.instance.events.iter().filter(|event| event.actor == "background");
        background.filter_map(|event| event.db_time_pct.value()).sum()
    };
    let mut run = fixtures::run();
    assert!((sum(&run) - 58.0).abs() < 1e-9, "116 ms of waits in 200 ms a second");
    // Log writes led by sessions: the background threads' own time is less than the waits.
    let name = assay_measure::counter_catalog::BACKGROUND_TIME.name.to_owned();
    run.end.stats.counters.insert(name, Reading::Count(500_000_000));
    assert!((sum(&run) - 100.0).abs() < 1e-9);
}

#[test]
fn slob_38_buckets_are_operations_and_operations_fit_the_window() {
    let record = build(&fixtures::run());
    for op in &record.driver.ops {
        assert_eq!(op.service.hist_ns.count(), op.count);
    }
    let busy = record.driver.busy_s.value().unwrap() + record.driver.think_s.value().unwrap();
    assert!(busy <= 4.0 * record.interval.elapsed_s.value().unwrap());
}

#[test]
fn expected_hit_ratio_is_cache_over_active_blocks_plus_the_index() {
    let record = build(&fixtures::run());
    // 8,192 of 131,072 blocks; 6,400 of 6,700 gets are table blocks.
    let expected = 100.0 * (300.0 / 6700.0 + 6400.0 / 6700.0 / 16.0);
    let found = record.checks.hit_expected_pct.value().unwrap();
    assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    assert_eq!(record.checks.active_blocks, Figure::Count(131_072));
}

#[test]
fn a_hit_ratio_three_points_off_is_warned_of() {
    let mut run = fixtures::run();
    for fact in &mut run.engine_facts {
        if fact.name == "cache_blocks" {
            "65536".clone_into(&mut fact.value);
        }
    }
    assert!(warned(&run, "Buffer hit ratio"));
}

#[test]
fn sessions_that_stopped_early_lower_the_active_fraction_and_are_warned_of() {
    let mut run = fixtures::run();
    run.per_session[0].last_op_ns = Some(12_000_000_000);
    let record = build(&run);
    assert_eq!(record.interval.worker_active_fraction, Figure::decimal(0.875));
    assert!(warned(&run, "active for 87.5 % of it"));
}

#[test]
fn a_pause_that_was_asked_for_is_part_of_a_session_s_activity() {
    let mut run = fixtures::run();
    for session in &mut run.per_session {
        // 22 operations, one a second, each of 10 ms: the last begins 0.9 s before the end.
        session.ops = 22;
        session.busy_ns = 220_000_000;
        session.last_op_ns = Some(21_100_000_000);
    }
    assert_eq!(build(&run).interval.worker_active_fraction, Figure::decimal(1.0));
    assert!(!warned(&run, "Sessions were active for"));
}

#[test]
fn reads_that_no_device_saw_are_warned_of() {
    let mut run = fixtures::run();
    run.end.host.process_read_bytes = run.begin.host.process_read_bytes;
    assert!(warned(&run, "page cache"));
}

#[test]
fn steal_throttling_swapping_and_run_delay_are_warned_of() {
    let mut run = fixtures::run();
    if let Some(cpu) = &mut run.end.host.cpu_ns {
        cpu[7] += 2_000_000_000;
    }
    run.end.host.cgroup_throttled_ns = Some(1_000_000);
    run.end.host.vmstat.insert("pswpin".to_owned(), 5);
    run.end.driver.thread_run_delay_ns += 10_000_000_000;
    for part in ["(steal)", "cgroup", "swapped 5 pages", "without a CPU"] {
        assert!(warned(&run, part), "{part}");
    }
}

#[test]
fn failed_operations_and_an_unfair_session_are_warned_of() {
    let mut run = fixtures::run();
    run.drained.driver.errors.insert("io".to_owned(), 3);
    run.per_session[2].ops = 100;
    assert!(warned(&run, "3 operations failed"));
    assert!(warned(&run, "the slowest did 100 operations"));
}

#[test]
fn warnings_of_the_run_become_sentences() {
    let mut run = fixtures::run();
    run.warnings.push("short run: try longer".to_owned());
    assert_eq!(build(&run).warnings, ["Short run: try longer."]);
}

/// A series with these ops/s, all inside the window.
fn series_of(rates: &[f64]) -> Series {
    Series {
        t_s: (1..=rates.len()).map(|s| s as f64).collect(),
        in_window: vec![true; rates.len()],
        metrics: [("ops_count_per_s".to_owned(), rates.iter().map(|rate| Figure::decimal(*rate)).collect())].into(),
        ..Series::default()
    }
}

#[test]
fn steadiness_compares_the_last_quarter_with_the_first() {
    let found = series::steadiness(&series_of(&[100.0, 100.0, 90.0, 90.0, 70.0, 70.0, 50.0, 50.0]));
    assert_eq!(found.last_over_first_ratio, Figure::decimal(0.5));
    assert_eq!(found.mean_per_s, Figure::decimal(77.5));
    let expected =
        (2.0 * (22.5_f64.powi(2) + 12.5_f64.powi(2) + 7.5_f64.powi(2) + 27.5_f64.powi(2)) / 7.0).sqrt() / 77.5;
    let variation = found.variation_ratio.value().unwrap();
    assert!((variation - expected).abs() < 1e-12, "{variation} {expected}");
}

#[test]
fn a_change_of_level_is_found_where_it_is_and_noise_has_none() {
    let noise = |i: usize| (i * 7919 % 13) as f64;
    let flat: Vec<f64> = (0..60).map(|i| 1000.0 + noise(i)).collect();
    assert!(series::steadiness(&series_of(&flat)).change_points_s.is_empty());
    let cliff: Vec<f64> = (0..60).map(|i| if i < 40 { 1000.0 } else { 400.0 } + noise(i)).collect();
    assert_eq!(series::steadiness(&series_of(&cliff)).change_points_s, [40.0]);
}

#[test]
fn the_levels_of_a_day_of_seconds_are_found() {
    // Quadratic in the seconds this would take minutes.
    let rate = |i: usize| {
        if (30_000..60_000).contains(&i) { 500.0 } else { 1000.0 }
    };
    let day: Vec<f64> = (0..86_400).map(|i| rate(i) + (i * 7919 % 13) as f64).collect();
    let found = series::steadiness(&series_of(&day));
    assert_eq!(found.change_points_s, [30_000.0, 60_000.0]);
}

#[test]
fn too_few_seconds_are_not_judged() {
    let found = series::steadiness(&series_of(&[1.0, 2.0, 3.0]));
    assert_eq!(found.variation_ratio, Figure::na("fewer than four steps"));
}

#[test]
fn the_series_marks_the_window_and_every_metric_has_every_second() {
    let record = build(&fixtures::run());
    assert_eq!(record.series.t_s.len(), 22);
    assert_eq!(record.series.in_window.iter().filter(|inside| **inside).count(), 20);
    assert!(record.series.metrics.values().all(|column| column.len() == 22));
    assert!(record.series.metrics.contains_key("background_log_file_parallel_write_us_p99"));
}

#[test]
fn a_thinned_series_says_its_step() {
    let mut run = fixtures::run();
    run.series.retain(|snapshot| (snapshot.at_ns / 1_000_000_000).is_multiple_of(2));
    let record = build(&run);
    assert_eq!(record.series.step_s, Figure::decimal(2.0));
    assert_eq!(record.checks.steadiness.steps_count, Figure::Count(10));
    assert_eq!(record.checks.steadiness.mean_per_s, Figure::decimal(100.0));
    assert!(crate::testing::text(&record).contains("10 steps of 2 s"));
}

#[test]
fn slob_26_operations_of_the_window_are_the_sum_of_its_seconds() {
    let record = build(&fixtures::run());
    let ops = record.series.metrics["ops_count_per_s"].iter().zip(&record.series.in_window);
    let sum: f64 = ops.filter(|(_, inside)| **inside).filter_map(|(ops, _)| ops.value()).sum();
    assert_eq!(Some(sum), record.interval.ops_count.value());
}

#[test]
fn a_run_cut_short_builds_from_its_last_second() {
    let mut run = fixtures::run();
    run.series.truncate(12);
    run.end = run.series[11].clone();
    run.drained = run.end.clone();
    run.per_session.clear();
    run.verdict = Verdict::Incomplete("recovered after a kill".to_owned());
    let record = build(&run);
    assert_eq!(record.run.verdict, "incomplete");
    assert_eq!(load(&record, "Operations").per_s, Figure::decimal(100.0));
    assert!(record.interval.worker_active_fraction.reason().is_some());
    assert!(assay_measure::identity::violated(&record).is_empty());
    let text = crate::testing::text(&record);
    assert!(text.contains("Verdict: incomplete - recovered after a kill."));
}

#[test]
fn a_run_killed_in_its_first_second_has_no_rates_and_no_panic() {
    let mut run = fixtures::run();
    run.series.clear();
    run.begin = run.gate.clone();
    run.end = run.gate.clone();
    run.drained = run.gate.clone();
    let record = build(&run);
    assert_eq!(load(&record, "Operations").per_s, Figure::na("no measured window"));
    assert!(crate::testing::text(&record).ends_with("End of Report\n"));
}

#[test]
fn fixed_iterations_count_sessions_until_each_finished() {
    let mut run = fixtures::run();
    run.fixed_iterations = true;
    run.begin = run.gate.clone();
    run.end.driver.sessions_active = 0;
    run.end.driver.in_flight = 0;
    run.end.driver.in_flight_ns = 0;
    let record = build(&run);
    let little = record.checks.little_sessions.value().unwrap();
    assert!((little - 4.0).abs() < 0.01, "{little}");
    assert_eq!(record.checks.little_expected_sessions.value().map(f64::round), Some(4.0));
}

#[test]
fn an_open_loop_has_no_littles_law_of_sessions() {
    let mut run = fixtures::run();
    run.settings.push(assay_measure::snapshot::SettingLine {
        name: "RATE".to_owned(),
        value: "100".to_owned(),
        origin: "cli".to_owned(),
    });
    assert_eq!(build(&run).checks.little_sessions, Figure::na("open loop"));
}

#[test]
fn kinds_of_operations_have_a_row_each() {
    let record = build(&fixtures::run());
    let kinds: Vec<&str> = record.driver.ops.iter().map(|op| op.kind.as_str()).collect();
    assert_eq!(kinds, ["select", "update"]);
    assert_eq!(record.driver.ops[0].rows_count, 115_200);
}

#[test]
fn who_kept_the_driver_threads_from_a_cpu_is_told_by_who_had_the_cpus() {
    // CPU of all the host in the window, and of it this process, of two CPUs.
    let warned = |threads: u64, busy: f64, own: f64| {
        let mut data = fixtures::run();
        data.end.driver.threads = threads;
        let elapsed_ns = data.end.at_ns - data.begin.at_ns;
        let all_ns = 2.0 * elapsed_ns as f64;
        data.end.driver.thread_run_delay_ns =
            data.begin.driver.thread_run_delay_ns + elapsed_ns / 2 * data.end.driver.threads;
        data.begin.host.cpu_ns = Some([0; 10]);
        let mut cpu = [0; 10];
        cpu[0] = (busy * all_ns) as u64;
        cpu[3] = ((1.0 - busy) * all_ns) as u64;
        data.end.host.cpu_ns = Some(cpu);
        data.begin.host.process_cpu_ns = Some(0);
        data.end.host.process_cpu_ns = Some((own * all_ns) as u64);
        data.end.host.cpus = Some(2);
        doubts(&build(&data))
    };
    for (busy, own, words) in [
        (1.0, 0.3, "other work on this host took CPU time"),
        (0.95, 0.93, "they waited for each other; use fewer DRIVER_THREADS"),
        (0.4, 0.38, "while another was idle"),
    ] {
        let text = warned(2, busy, own);
        assert!(text.contains(words), "{busy} {own}: {text}");
    }
    // A single thread waits for the CPU that wakes for it, and for nobody else.
    let text = warned(1, 0.4, 0.38);
    assert!(!text.contains("without a CPU"), "{text}");
    assert!(warned(1, 1.0, 0.3).contains("other work on this host"));
}

/// A parameter that the target does not have helps nobody.
#[test]
fn warnings_name_the_way_out_of_the_target_that_ran() {
    let warned = |mut data: RunData| {
        let elapsed_ns = data.end.at_ns - data.begin.at_ns;
        data.end.driver.thread_run_delay_ns =
            data.begin.driver.thread_run_delay_ns + elapsed_ns / 2 * data.end.driver.threads;
        doubts(&build(&data))
    };
    let native = warned(fixtures::run());
    assert!(native.contains("try DRIVER_THREADS=1"), "{native}");
    let server = warned(fixtures::postgres(15));
    assert!(server.contains("use fewer sessions"), "{server}");
    assert!(!server.contains("DRIVER_THREADS"), "{server}");
}

#[test]
fn two_hosts_with_a_device_each_are_busy_as_one_of_them() {
    let one = fixtures::run();
    let mut both = one.clone();
    for snapshot in [&mut both.gate, &mut both.begin, &mut both.end, &mut both.drained] {
        let other = snapshot.clone();
        snapshot.merge(&other);
    }
    let (one, both) = (build(&one), build(&both));
    let busy = |record: &Record| (record.os.disk[0].busy_pct.clone(), record.os.psi["io_some"].share_pct.clone());
    assert_eq!(busy(&both), busy(&one));
    assert_eq!(both.os.disk[0].reads_count, 2 * one.os.disk[0].reads_count);
}
