use crate::record::build;
use assay_measure::history::ActivityHistory;
use assay_measure::record::Figure;
use assay_measure::snapshot::{RunData, SELECT};
use assay_testkit::fixtures;

fn value(figure: &Figure) -> f64 {
    match figure.value() {
        Some(value) => value,
        None => panic!("{figure:?}"),
    }
}

fn about(figure: &Figure, expected: f64) {
    let found = value(figure);
    assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
}

#[test]
fn the_window_is_summed_by_class_event_and_kind_of_operation() {
    let ash = build(&fixtures::run()).instance.ash;
    about(&ash.ticks_count, 200.0);
    about(&ash.ticks_expected_count, 200.0);
    about(&ash.interval_achieved_ms, 100.0);
    about(&ash.holes_s, 0.0);
    about(&ash.samples_count, 800.0);
    about(&ash.max_active_count, 4.0);
    about(&ash.active_count, 4.0);
    about(&ash.db_time_s, 80.0);
    about(&ash.db_time_measured_s, 80.0);
    about(&ash.db_time_allowed_ratio, 3.0 / 200_f64.sqrt());
    // 80 s of DB time at a tick in 1.6 s are 50 samples, at a tick in 10 s eight.
    let at = |times: u64| {
        let mut run = fixtures::run();
        run.activity.as_mut().expect("a history").interval_ns *= times;
        build(&run).instance.ash.db_time_allowed_ratio
    };
    about(&at(16), 3.0 / 50_f64.sqrt());
    assert!(at(100).reason().is_some_and(|reason| reason.contains("nine samples")));
    let class = |name: &str| &ash.by_class[name];
    about(&class("User I/O").active_count, 3.0);
    about(&class("CPU").active_count, 0.9);
    about(&class("Run queue").samples_count, 16.0);
    about(&class("Commit").samples_count, 4.0);
    about(&class("Commit").share_pct, 0.5);
    assert_eq!(ash.by_event["log file sync"].class, "Commit");
    about(&ash.by_event["db file sequential read"].share_pct, 75.0);
    about(&ash.by_op["select"].active_count, 3.9);
    about(&ash.by_op["update"].active_count, 0.1);
    assert_eq!(ash.by_schema_samples_count[&4], 220);
    // 0.7 s of CPU a second; 1.0 - 0.02 sessions were on CPU or queued.
    about(&ash.cpu_used_count, 0.7);
    about(&ash.run_queue_count, 0.98 - 0.7);
}

#[test]
fn the_error_of_a_share_is_that_of_independent_samples_or_the_larger_one_of_the_batches() {
    let ash = build(&fixtures::run()).instance.ash;
    // Every batch of two seconds holds the same share of reads: no inflation.
    let independent = 100.0 * (0.75_f64 * 0.25 / 800.0).sqrt();
    about(&ash.by_class["User I/O"].share_error_pct, independent);
    // All commits in one half of the window: the batches scatter far more.
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    for (tick, step) in history.steps.iter_mut().enumerate() {
        step.cells[1].0 = if tick < 120 { 3 } else { 1 };
    }
    let row = build(&run).instance.ash.by_class["Commit"].clone();
    about(&row.share_pct, 12.5);
    let batches = [0.25, 0.25, 0.25, 0.25, 0.25, 0.0, 0.0, 0.0, 0.0, 0.0_f64];
    let scatter: f64 = batches.iter().map(|b| (b - 0.125).powi(2)).sum();
    about(&row.share_error_pct, 100.0 * (scatter / 9.0 / 10.0).sqrt());
}

#[test]
fn holes_shorten_the_time_looked_at_and_not_the_average() {
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    history.steps.drain(100..120);
    history.steps[100].hole_ns = 1_600_000_000;
    let ash = build(&run).instance.ash;
    about(&ash.holes_s, 1.6);
    about(&ash.ticks_count, 180.0);
    about(&ash.active_count, 4.0);
    about(&ash.db_time_s, 80.0);
}

#[test]
fn cpu_beyond_the_sampled_is_flagged_and_never_a_negative_queue() {
    let mut run = fixtures::run();
    let history = run.activity.as_mut().expect("a history");
    for step in &mut history.steps {
        step.cells = vec![(0, 4, 400_000_000)];
    }
    let ash = build(&run).instance.ash;
    let reason = ash.run_queue_count.reason().unwrap_or_default();
    assert!(reason.contains("used more CPU time"), "{reason}");
}

#[test]
fn without_a_history_every_figure_is_na() {
    let run = RunData { activity: None, ..fixtures::run() };
    let ash = build(&run).instance.ash;
    assert_eq!(ash.samples_count.reason(), Some("unsupported: sessions were not sampled"));
    assert_eq!(ash.db_time_s.value(), None);
    let empty = RunData { activity: Some(ActivityHistory::default()), ..fixtures::run() };
    assert_eq!(build(&empty).instance.ash.active_count.value(), None);
}

#[test]
fn the_series_holds_active_sessions_by_class_and_the_cpus() {
    let series = build(&fixtures::run()).series;
    let at = |name: &str, row: usize| value(&series.metrics[name][row]);
    assert!((at("active_user_io_count", 0) - 3.0).abs() < 1e-9);
    assert!((at("active_run_queue_count", 0) - 0.1).abs() < 1e-9);
    assert!((at("active_commit_count", 0) - 0.0).abs() < 1e-9);
    assert!((at("active_commit_count", 4) - 0.1).abs() < 1e-9);
    assert!((at("active_max_count", 4) - 4.0).abs() < 1e-9);
    assert!((at("online_cpus_count", 0) - 4.0).abs() < 1e-9);
    assert!((at("usable_cpus_count", 21) - 4.0).abs() < 1e-9);
}

#[test]
fn a_killed_runs_commands_say_that_no_end_was_seen() {
    let mut run = fixtures::run();
    run.timeline[0].end = None;
    let rows = build(&run).timeline;
    assert_eq!(rows[0].status, "its end was not seen");
    assert_eq!(rows[0].took_s.value(), None);
    assert_eq!((rows[1].from.as_str(), rows[1].to.as_str()), ("0-3", "0-2"));
    about(&rows[1].at_s, 10.05);
}

#[test]
fn keys_of_the_history_are_told_apart_by_kind() {
    let history = fixtures::activity();
    let selects = history.keys.iter().filter(|key| key.op == SELECT);
    assert_eq!(selects.count(), 2);
}
