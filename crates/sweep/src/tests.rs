//! What a sweep says of its steps: knee, goal, law and advice, its record and its text.

mod maths;

use crate::usl::Law;
use crate::{StepLatency, StepPlace, Sweep, SweepAxis, SweepInfo, SweepStep, advice, curve as curves};
use assay_measure::kind::{Finding, Kind as _, attach_metrics};
use assay_measure::record::metric::find;
use assay_measure::record::steady::Steady;
use assay_measure::record::{Advice, Figure, Record};
use std::collections::BTreeMap;

/// A step as a record would give it.
fn step(number: u64, sessions: u64, rate: f64) -> SweepStep {
    SweepStep {
        place: StepPlace {
            step: number,
            directory: format!("step-{number:02}"),
            sessions,
            cpus: Figure::na("not confined"),
            over: BTreeMap::new(),
            repeats: 0,
        },
        verdict: "complete".to_owned(),
        ops_per_s: rate.into(),
        ops_error_ratio: 0.01.into(),
        op: StepLatency {
            name: "operations".to_owned(),
            us_avg: (1e6 * sessions as f64 / rate).into(),
            us_p99: (3e6 * sessions as f64 / rate).into(),
            ..StepLatency::default()
        },
        host_busy_pct: 40.0.into(),
        confined_busy_pct: Figure::na("not confined"),
        system_cpu_us_per_io: 5.0.into(),
        steady: Steady { state: "yes".to_owned(), ..Steady::default() },
        ..SweepStep::default()
    }
}

fn info(axes: &[(&str, &[&str])]) -> SweepInfo {
    SweepInfo {
        target: "native:data".to_owned(),
        axes: axes
            .iter()
            .map(|(name, values)| SweepAxis {
                name: (*name).to_owned(),
                values: values.iter().map(|v| (*v).to_owned()).collect(),
            })
            .collect(),
        goal_us_p99: Figure::na("not asked for"),
        rules: crate::rules::all(),
        ..SweepInfo::default()
    }
}

/// A sweep of these steps, with what follows from them.
struct Swept {
    info: SweepInfo,
    advice: Vec<Advice>,
}

impl std::ops::Deref for Swept {
    type Target = SweepInfo;

    fn deref(&self) -> &SweepInfo {
        &self.info
    }
}

fn build(info: SweepInfo, steps: Vec<SweepStep>) -> Swept {
    let mut info = SweepInfo { steps, ..info };
    curves::conclude(&mut info, 7);
    Swept { advice: advice::advise(&info), info }
}

fn record(swept: &Swept) -> Record {
    let mut record =
        Record { schema: assay_measure::record::SCHEMA.to_owned(), advice: swept.advice.clone(), ..Record::default() };
    let run = &mut record.run;
    (run.id, run.version) = ("0000abcd".to_owned(), "0.1.0".to_owned());
    (run.workload, run.engine) = ("slob".to_owned(), "native".to_owned());
    run.started = "2026-01-01T00:00:00Z".to_owned();
    (run.seed, run.verdict) = (7, "complete".to_owned());
    record.parts.put(&swept.info);
    attach_metrics(&Sweep, &mut record);
    record
}

fn render(swept: &Swept) -> String {
    assay_report::text::write(&Sweep.sections(&record(swept)))
}

const SESSIONS: (&str, &[&str]) = ("sessions", &["1", "2", "4", "8", "16", "32"]);

/// 1 to 32 sessions, level from 8 on.
fn saturating() -> Vec<SweepStep> {
    let rates = [1000.0, 1950.0, 3700.0, 6400.0, 6500.0, 6450.0];
    let steps = rates.iter().enumerate();
    steps.map(|(at, rate)| step(at as u64 + 1, 1 << at, *rate)).collect()
}

#[test]
fn a_knee_rests_on_settled_steps_of_a_host_that_nobody_else_used() {
    let sessions = || info(&[("sessions", &["1", "2", "4", "8"])]);
    let steps = || vec![step(1, 1, 100.0), step(2, 2, 190.0), step(3, 4, 195.0), step(4, 8, 196.0)];
    let knee = |steps| build(sessions(), steps).curves[0].knee.clone();
    assert_eq!(knee(steps()).load.value(), Some(2.0));
    let mut moving = steps();
    moving[2].steady.state = "no".to_owned();
    let found = knee(moving.clone());
    assert_eq!(found.load.value(), None);
    assert!(found.sentence.contains("Throughput rose up to 2 sessions (190 operations/s), but step 3 never settled."));
    // Its repeat takes its place.
    let mut again = step(5, 4, 196.0);
    again.place.repeats = 3;
    moving.push(again);
    let swept = build(sessions(), moving);
    assert_eq!(swept.curves[0].knee.load.value(), Some(2.0));
    assert_eq!((&swept.curves[0].steps[..], &swept.curves[0].left_out[..]), (&[1, 2, 5, 4][..], &[3][..]));
    let headline = Sweep.headline(&record(&swept));
    assert!(headline.steadiness.starts_with("steady"), "what was replaced says nothing: {}", headline.steadiness);
    let mut busy = steps();
    busy[1].disturbed = "other processes used 60 % of the host's CPU time".to_owned();
    let swept = build(sessions(), busy);
    assert_eq!(swept.curves[0].knee.load.value(), None);
    assert!(swept.advice.iter().all(|advice| advice.id != "R9"), "a level that others may have made is none");
    let said = format!("{:?}", Sweep.headline(&record(&swept)));
    assert!(
        said.contains("in step 2 other processes used 60 %") && said.contains("n/a (steps that decide it"),
        "{said}"
    );
    // What came before the last gain does not matter.
    let mut early = vec![step(1, 1, 50.0), step(2, 2, 100.0), step(3, 4, 190.0), step(4, 8, 195.0)];
    early[0].steady.state = "no".to_owned();
    assert_eq!(knee(early).load.value(), Some(4.0));
}

#[test]
fn steps_without_a_percentile_are_not_said_to_keep_the_goal() {
    let mut info = info(&[SESSIONS]);
    info.goal_us_p99 = 10e6.into();
    let mut steps = saturating();
    for step in &mut steps[3..] {
        step.op.us_p99 = Figure::na("too few operations");
    }
    let sweep = build(info, steps);
    let goal = &sweep.curves[0].goal;
    assert_eq!(goal.load, Figure::Count(4));
    assert!(goal.sentence.contains("higher loads had too few operations for a p99"), "{}", goal.sentence);
    assert!(!goal.sentence.contains("every step"), "{}", goal.sentence);
}

#[test]
fn a_workload_names_its_operations() {
    let mut orders = info(&[SESSIONS]);
    orders.operations = "transactions".to_owned();
    orders.goal_us_p99 = 5_000.0.into();
    let mut steps = saturating();
    steps.iter_mut().for_each(|step| step.op.name.clone_from(&orders.operations));
    let found = build(orders, steps);
    let (page, record) = (render(&found), record(&found));
    let told = format!("{:?}", Sweep.headline(&record));
    for text in [&page, &told] {
        assert!(text.contains("transactions/s"), "{text}");
        assert!(!text.contains("operations/s") && !text.contains("ops/s"), "{text}");
    }
}

#[test]
fn a_rate_that_rises_on_busy_cpus_is_limited_by_them() {
    let limit = |busy: f64| {
        let mut steps: Vec<SweepStep> = saturating().into_iter().take(3).collect();
        steps.iter_mut().for_each(|step| step.host_busy_pct = busy.into());
        let found = build(info(&[SESSIONS]), steps);
        Sweep.headline(&record(&found)).limit.what
    };
    assert!(limit(99.0).starts_with("the CPUs at "), "{}", limit(99.0));
    assert!(limit(50.0).starts_with("nothing up to "), "{}", limit(50.0));
}

#[test]
fn a_sweep_finds_knee_goal_and_advice() {
    let mut info = info(&[SESSIONS]);
    info.goal_us_p99 = 5000.0.into();
    let sweep = build(info, saturating());
    let curve = &sweep.curves[0];
    assert_eq!(curve.steps, [1, 2, 3, 4, 5, 6]);
    assert_eq!(curve.knee.load, Figure::Count(8));
    assert_eq!(curve.knee.ops_per_s.value(), Some(6400.0));
    assert_eq!(curve.goal.load, Figure::Count(8), "{}", curve.goal.sentence);
    assert!(curve.goal.sentence.contains("16 sessions takes 7.38 ms"), "{}", curve.goal.sentence);
    assert_eq!(sweep.advice.len(), 1);
    assert_eq!(sweep.advice[0].id, "R9");
    assert_eq!(sweep.advice[0].evidence["sessions_from_count"], Figure::Count(8));
    assert_eq!(sweep.advice[0].evidence["sessions_to_count"], Figure::Count(16));
    let again: SweepInfo = record(&sweep).parts.get().expect("its own part");
    assert_eq!(again, sweep.info);
}

#[test]
fn advice_r9_is_silent_while_throughput_rises_or_latency_does_not() {
    let rising: Vec<SweepStep> = (0..5).map(|at| step(at + 1, 1 << at, 1000.0 * 1.2_f64.powi(at as i32))).collect();
    assert!(build(info(&[SESSIONS]), rising).advice.is_empty());
    let mut odd = saturating();
    for step in &mut odd {
        step.op.us_avg = 100.0.into();
    }
    assert!(build(info(&[SESSIONS]), odd).advice.is_empty());
    let mut unknown = saturating();
    for step in &mut unknown {
        step.op.us_avg = Figure::na("absent");
    }
    assert!(build(info(&[SESSIONS]), unknown).advice.is_empty());
}

#[test]
fn advice_r10_takes_over_where_the_cpus_are_busy_too() {
    let mut busy = saturating();
    for step in &mut busy[3..] {
        step.host_busy_pct = 99.0.into();
    }
    busy[4].system_cpu_us_per_io = 9.0.into();
    let advice = build(info(&[SESSIONS]), busy).advice;
    assert_eq!(advice.len(), 1);
    assert_eq!(advice[0].id, "R10");
    assert!(advice[0].text.contains("rose by 80 %"), "{}", advice[0].text);
}

#[test]
fn without_io_busy_cpus_are_the_limit_and_nothing_is_ambiguous() {
    let mut busy = saturating();
    for step in &mut busy {
        step.host_busy_pct = 99.0.into();
        step.read_requests_per_s = 2.0.into();
        step.write_requests_per_s = 0.0.into();
    }
    let advice = build(info(&[SESSIONS]), busy).advice;
    assert_eq!(advice.len(), 1);
    assert_eq!(advice[0].id, "R9");
    assert!(advice[0].text.contains("the limit is CPU"), "{}", advice[0].text);
}

#[test]
fn advice_r10_on_cpus_that_brought_nothing() {
    let confined = |number, cpus: u64, rate: f64, busy: f64| {
        let mut step = step(number, 8, rate);
        step.place.cpus = cpus.into();
        step.confined_busy_pct = busy.into();
        step
    };
    let axes = [("sessions", &["8"][..]), ("cpus", &["1", "2"])];
    let advice = build(info(&axes), vec![confined(1, 1, 1000.0, 99.0), confined(2, 2, 1010.0, 97.0)]).advice;
    assert_eq!(advice.len(), 1);
    assert_eq!(advice[0].id, "R10");
    assert_eq!(advice[0].evidence["cpus_to_count"], Figure::Count(2));
    let gained = build(info(&axes), vec![confined(1, 1, 1000.0, 99.0), confined(2, 2, 1900.0, 97.0)]);
    assert!(gained.advice.is_empty());
    assert_eq!(gained.curves[0].load, "cpus");
    let idle = build(info(&axes), vec![confined(1, 1, 1000.0, 99.0), confined(2, 2, 1010.0, 50.0)]);
    assert!(idle.advice.is_empty(), "one of them was not busy: CPU is not the limit there");
}

#[test]
fn steps_that_do_not_count_are_kept_and_left_out_of_the_curve() {
    let mut steps = saturating();
    steps[2].verdict = "invalid".to_owned();
    steps[5] = SweepStep::failed(steps[5].place.clone(), "CACHE_MB is too small");
    let sweep = build(info(&[SESSIONS]), steps);
    assert_eq!(sweep.steps.len(), 6);
    assert_eq!(sweep.curves[0].steps, [1, 2, 4, 5]);
    assert_eq!(sweep.curves[0].left_out, [3, 6]);
    let text = render(&sweep);
    assert!(text.contains("CACHE_MB is too small"));
    assert!(text.contains("are not valid or were repeated (see Steps): 3, 6."));
}

#[test]
fn each_combination_has_its_curve() {
    let mut steps = saturating();
    for (at, mut more) in saturating().into_iter().enumerate() {
        more.place.step = at as u64 + 7;
        more.place.over.insert("READ_MODE".to_owned(), "batched".to_owned());
        steps.push(more);
    }
    for step in &mut steps[..6] {
        step.place.over.insert("READ_MODE".to_owned(), "single".to_owned());
    }
    let axes = [SESSIONS, ("READ_MODE", &["single", "batched"])];
    let sweep = build(info(&axes), steps);
    let held: Vec<&str> = sweep.curves.iter().map(|c| c.held["READ_MODE"].as_str()).collect();
    assert_eq!(held, ["single", "batched"]);
    assert_eq!(sweep.curves[1].steps, [7, 8, 9, 10, 11, 12]);
}

#[test]
fn what_is_no_load_makes_one_table_and_no_knee() {
    let values = ["4", "16", "64", "256"];
    let mut steps: Vec<SweepStep> = (1..=4).map(|n| step(n, 8, 1000.0 * n as f64)).collect();
    for (step, value) in steps.iter_mut().zip(values) {
        step.place.over.insert("CACHE_MB".to_owned(), value.to_owned());
    }
    let mut info = info(&[("sessions", &["8"]), ("CACHE_MB", &values)]);
    info.goal_us_p99 = 1e6.into();
    let sweep = build(info, steps);
    assert_eq!(sweep.curves.len(), 1);
    let curve = &sweep.curves[0];
    assert_eq!((curve.load.as_str(), curve.held["sessions"].as_str()), ("CACHE_MB", "8"));
    assert_eq!(curve.steps, [1, 2, 3, 4]);
    assert_eq!(curve.knee.sentence, "No knee: CACHE_MB is not a load.");
    assert!(!curve.usl.fitted && curve.goal.load.value().is_none());
    assert!(sweep.steps.iter().all(|step| step.gain_pct.value().is_none()));
    assert!(render(&sweep).contains("Curve over CACHE_MB, sessions=8"));
}

#[test]
fn a_level_stretch_below_the_knee_is_no_saturation() {
    let rates = [1000.0, 1950.0, 1960.0, 6400.0, 6500.0, 6450.0];
    let numbered = rates.iter().enumerate();
    let steps = numbered.map(|(at, rate)| step(at as u64 + 1, 1 << at, *rate));
    let advice = build(info(&[SESSIONS]), steps.collect()).advice;
    assert_eq!(advice.len(), 1);
    assert_eq!(advice[0].evidence["sessions_from_count"], Figure::Count(8));
}

#[test]
fn the_law_is_refused_with_the_reason() {
    let few = build(info(&[SESSIONS]), saturating()[..3].to_vec());
    let usl = &few.curves[0].usl;
    assert!(!usl.fitted && usl.sentence.contains("at least 4"), "{}", usl.sentence);

    let mut wild = saturating();
    for (step, rate) in wild.iter_mut().zip([1000.0, 100.0, 4000.0, 200.0, 9000.0, 100.0]) {
        step.ops_per_s = rate.into();
    }
    for step in &mut wild {
        step.steady.state = "no".to_owned();
    }
    let usl = &build(info(&[SESSIONS]), wild).curves[0].usl;
    assert!(!usl.fitted && usl.sentence.contains("best fit is off by"), "{}", usl.sentence);
    assert!(usl.projections.is_empty() && usl.peak_load.value.value().is_none());

    let mut faster = saturating();
    for (step, rate) in faster.iter_mut().zip([100.0, 400.0, 1600.0, 6400.0, 25_600.0, 102_400.0]) {
        step.ops_per_s = rate.into();
    }
    let usl = &build(info(&[SESSIONS]), faster).curves[0].usl;
    assert!(usl.sentence.contains("faster than the load"), "{}", usl.sentence);

    let mut open = saturating();
    for step in &mut open {
        let rate = (step.place.sessions * 1000).to_string();
        step.place.over.insert("RATE".to_owned(), rate);
        step.place.sessions = 64;
    }
    let axes = [("sessions", &["64"][..]), ("RATE", &["1000", "2000"])];
    let curve = &build(info(&axes), open).curves[0];
    assert_eq!(curve.load, "RATE");
    assert!(!curve.usl.fitted && curve.usl.sentence.contains("open loop"));
}

#[test]
fn a_hard_limit_is_no_scalability_law_unless_the_steps_are_noisy() {
    let sweep = build(info(&[SESSIONS]), saturating());
    let usl = &sweep.curves[0].usl;
    assert!(!usl.fitted && usl.sentence.contains("bends more sharply"), "{}", usl.sentence);
    let mut noisy = saturating();
    for step in &mut noisy {
        step.ops_error_ratio = 0.05.into();
    }
    assert!(build(info(&[SESSIONS]), noisy).curves[0].usl.fitted);
}

#[test]
fn projections_are_labelled_and_lie_beyond_the_last_step() {
    let law = Law { lambda: 1000.0, sigma: 0.05, kappa: 0.0001 };
    let steps: Vec<SweepStep> = (0..6).map(|at| step(at + 1, 1 << at, law.at((1_u64 << at) as f64))).collect();
    let sweep = build(info(&[SESSIONS]), steps);
    let usl = &sweep.curves[0].usl;
    assert!(usl.fitted, "{}", usl.sentence);
    assert!(usl.sentence.contains("beyond the last step") && usl.sentence.contains("untested"));
    for projection in &usl.projections {
        assert!(projection.load > 32);
        assert_eq!(projection.label, "projection, untested");
        let (low, high) = (projection.ops_per_s.low.value(), projection.ops_per_s.high.value());
        let truth = Some(law.at(projection.load as f64));
        assert!(low < truth && truth < high, "{projection:?}");
    }
    assert!(render(&sweep).contains("not measured (projection, untested)"));
}

#[test]
fn three_numbers_of_hosts_with_two_runs_of_each_are_read_at_128() {
    let law = Law { lambda: 1000.0, sigma: 0.01, kappa: 0.0 };
    let of = |number: u64, hosts: u64, off: f64| {
        let mut step = step(number, 4 * hosts, off * law.at(hosts as f64));
        step.place.over.insert(curves::HOSTS.to_owned(), hosts.to_string());
        step
    };
    let steps = || (0..6).map(|at| of(at + 1, at / 2 + 1, if at % 2 == 0 { 1.01 } else { 0.99 }));
    let asked = SweepInfo { projected: vec![128], ..info(&[(curves::HOSTS, &["1", "2", "3"])]) };
    let sweep = build(asked.clone(), steps().collect());
    assert_eq!(sweep.curves.len(), 1, "sessions rise with the hosts, and are no other curve");
    let usl = &sweep.curves[0].usl;
    let at = usl.projections.iter().find(|point| point.load == 128).expect("it was asked for");
    let (low, high) = (at.ops_per_s.low.value(), at.ops_per_s.high.value());
    let truth = Some(law.at(128.0));
    assert!(low < truth && truth < high, "{at:?}");
    let row = crate::headline::of(&record(&sweep), &sweep).rows.pop().expect("rows");
    assert_eq!((row.title, row.lead.as_str()), ("Projected", "128 hosts: "));
    assert!(row.told[0].unit.ends_with("projection, untested)"), "{row:?}");
    let three = build(asked, steps().step_by(2).collect());
    assert!(three.curves[0].usl.sentence.contains("at least 4 are needed"), "{}", three.curves[0].usl.sentence);
}

#[test]
fn the_text_is_as_reviewed() {
    let mut info = info(&[SESSIONS]);
    info.goal_us_p99 = 5000.0.into();
    let rates = [1000.0, 1900.0, 3500.0, 5700.0, 7100.0, 6900.0];
    let numbered = rates.iter().enumerate();
    let mut steps: Vec<SweepStep> = numbered.map(|(at, rate)| step(at as u64 + 1, 1 << at, *rate)).collect();
    steps[1].steady.state = "no".to_owned();
    steps[1].steady.window_s = 5.0.into();
    steps[1].steady.range_ratio = 0.31.into();
    steps[1].steady.slope_ratio = 0.02.into();
    insta::assert_snapshot!(render(&build(info, steps)));
}

#[test]
fn loads_that_touch_less_data_are_named() {
    let rates = [1000.0, 1900.0, 3500.0, 5700.0];
    let steps = |blocks: [u64; 4]| -> Vec<SweepStep> {
        (0..4)
            .map(|at| SweepStep { active_blocks: blocks[at].into(), ..step(at as u64 + 1, 1 << at, rates[at]) })
            .collect()
    };
    let text = render(&build(info(&[SESSIONS]), steps([8192, 16384, 32768, 32768])));
    assert!(text.contains("Less data to touch at 1, 2:"), "{text}");
    let text = render(&build(info(&[SESSIONS]), steps([32768; 4])));
    assert!(!text.contains("Less data to touch"), "{text}");
}

#[test]
fn a_step_reads_its_figures_off_a_record() {
    let record = assay_awr::record::build(&assay_testkit::fixtures::run());
    let place = StepPlace { step: 1, sessions: 4, cpus: 2.into(), ..StepPlace::default() };
    let step = SweepStep::of(place, &record);
    assert_eq!(step.verdict, "complete");
    assert!(step.counts());
    let ops = record.interval.ops_count.value().expect("ops");
    let elapsed = record.interval.elapsed_s.value().expect("a window");
    assert_eq!(step.ops_per_s.value(), Some(ops / elapsed));
    assert_eq!(step.read_requests_per_s.value(), Some(6000.0));
    assert_eq!(step.read.name, "db file sequential read");
    assert_eq!(step.read.us_avg.value(), Some(500.0));
    assert!(step.op.us_avg.value().is_some());
    let cpu_s = record.os.process.cpu_s.value().expect("process CPU");
    let close = |found: &Figure, wanted: f64| {
        let found = found.value().expect("a figure");
        assert!((found / wanted - 1.0).abs() < 1e-9, "{found} {wanted}");
    };
    close(&step.cpu_us_per_op, 1e6 * cpu_s / ops);
    close(&step.confined_busy_pct, 100.0 * cpu_s / (2.0 * elapsed));
    assert_eq!(step.top_event, "db file sequential read");
}

fn metric(record: &Record, key: &str) -> Figure {
    let found = find(&record.metrics, key);
    found.unwrap_or_else(|| panic!("no {key}")).value.clone()
}

#[test]
fn what_is_read_off_a_curve_is_declared_and_what_is_computed_is_not() {
    let mut info = info(&[SESSIONS]);
    info.goal_us_p99 = 5000.0.into();
    let mut noisy = saturating();
    for step in &mut noisy {
        step.ops_error_ratio = 0.05.into();
    }
    let record = record(&build(info, noisy));
    let declared: Vec<&str> =
        (record.metrics.iter()).filter(|metric| metric.is_primary).map(|metric| metric.key.as_str()).collect();
    assert_eq!(
        declared,
        ["ops_per_s", "knee_sessions", "knee_ops_per_s", "goal_sessions", "goal_ops_per_s", "goal_op_us_p99"]
    );
    assert_eq!(metric(&record, "ops_per_s").value(), Some(6500.0));
    assert_eq!(metric(&record, "knee_sessions"), Figure::Count(8));
    assert_eq!(metric(&record, "knee_ops_per_s").value(), Some(6400.0));
    assert_eq!(metric(&record, "goal_op_us_p99").value(), Some(3e6 * 8.0 / 6400.0));
    assert_eq!(metric(&record, "4_sessions.ops_per_s").value(), Some(3700.0));
    let sigma = find(&record.metrics, "usl_sigma_ratio").expect("it is there");
    let (low, high) = sigma.interval.expect("the fit has an interval");
    let value = sigma.value.value().expect("it fits");
    assert!(low <= value && value <= high && sigma.name.contains("computed"));
}

#[test]
fn without_a_goal_or_a_law_no_figure_is_made_up() {
    let record = record(&build(info(&[SESSIONS]), saturating()[..3].to_vec()));
    assert!(find(&record.metrics, "goal_sessions").is_none());
    assert_eq!(metric(&record, "knee_sessions").reason(), Some("not found"));
    let sigma = find(&record.metrics, "usl_sigma_ratio").expect("it is there");
    assert_eq!((sigma.value.reason(), sigma.interval), (Some("no law fits"), None));
}

/// Two curves of the same steps, the second a tenth faster.
fn two_curves() -> Swept {
    let mut steps = Vec::new();
    for (nth, mode) in ["single", "batched"].into_iter().enumerate() {
        for (at, rate) in [1000.0, 1950.0, 1960.0].into_iter().enumerate() {
            let faster = 1.0 + 0.1 * nth as f64;
            let mut step = step((3 * nth + at) as u64 + 1, 1 << at, faster * rate);
            step.place.over.insert("READ_MODE".to_owned(), mode.to_owned());
            steps.push(step);
        }
    }
    let sessions = ("sessions", &["1", "2", "4"][..]);
    build(info(&[sessions, ("READ_MODE", &["single", "batched"])]), steps)
}

#[test]
fn each_of_several_curves_has_figures_and_a_line_of_its_own() {
    let record = record(&two_curves());
    let value = |key| metric(&record, key).value();
    assert_eq!(value("read_mode_single.knee_ops_per_s"), Some(1950.0));
    assert_eq!(value("read_mode_batched.knee_sessions"), Some(2.0));
    assert_eq!(value("read_mode_single_4_sessions.ops_per_s"), Some(1960.0));
    let rows = assay_report::answer::figures;
    assay_report::kinds::install(vec![&Sweep]);
    let told = rows(&record);
    assert_eq!(told[1].0, "Knee");
    assert_eq!(told[1].1, "READ_MODE=single: 2 sessions, 1,950 operations/s");
    assert_eq!(told[2].0, "");
}

#[test]
fn the_run_a_sweep_is_about_is_the_goals_the_knees_or_the_fastest() {
    let note = |swept: &Swept| Sweep.delivered(&record(swept)).notes.swap_remove(0);
    let mut with_goal = info(&[SESSIONS]);
    with_goal.goal_us_p99 = 3500.0.into();
    let swept = build(with_goal, saturating());
    assert_eq!(note(&swept), "This is the step with 4 sessions, the highest load that keeps the goal of the sweep.");
    let swept = build(info(&[SESSIONS]), saturating());
    assert_eq!(note(&swept), "This is the step with 8 sessions, the knee of the sweep.");
    let swept = build(info(&[SESSIONS]), saturating()[..2].to_vec());
    assert_eq!(note(&swept), "This is the step with 2 sessions, the fastest of the sweep.");
    assert_eq!(Sweep.members(&record(&swept)), ["step-01", "step-02"]);
}

/// Its load is no number of sessions: the step must not be looked for by that.
#[test]
fn the_run_at_a_knee_over_cpus_is_found_by_its_cpus() {
    let confined = |number, cpus: u64, rate: f64| {
        let mut step = step(number, 2, rate);
        step.place.cpus = cpus.into();
        step
    };
    let axes = [("sessions", &["2"][..]), ("cpus", &["1", "2", "4"])];
    let steps = vec![confined(1, 1, 1000.0), confined(2, 2, 1900.0), confined(3, 4, 1910.0)];
    let record = record(&build(info(&axes), steps));
    assert_eq!(metric(&record, "knee_cpus"), Figure::Count(2));
    let delivered = Sweep.delivered(&record);
    assert_eq!(delivered.ops_per_s.value(), Some(1900.0));
}

#[test]
fn sweeps_of_other_loads_or_goals_are_not_the_same_test() {
    let all = record(&build(info(&[SESSIONS]), saturating()));
    let finding = |other: &Record, what: &str| {
        let checks = Sweep.conditions(&all, other);
        let check = checks.iter().find(|check| check.what == what);
        check.expect("it is checked").finding
    };
    assert_eq!(finding(&all, "values of sessions"), Finding::Same);
    assert_eq!(finding(&all, "goal for p99"), Finding::Same);
    let mut fewer = info(&[("sessions", &["1", "2"])]);
    fewer.goal_us_p99 = 5000.0.into();
    fewer.target = "native:other".to_owned();
    let fewer = record(&build(fewer, saturating()[..2].to_vec()));
    assert_eq!(finding(&fewer, "values of sessions"), Finding::Forbids);
    assert_eq!(finding(&fewer, "goal for p99"), Finding::Forbids);
    assert_eq!(finding(&fewer, "place"), Finding::Tolerable);
    let curves = record(&two_curves());
    assert_eq!(finding(&curves, "values of READ_MODE"), Finding::Forbids);
}

#[test]
fn a_sweep_under_way_has_what_its_steps_have_in_common() {
    use crate::UnderWay;
    use assay_measure::snapshot::{Fact, RunData, SettingLine, Verdict};
    let run = assay_awr::record::build(&assay_testkit::fixtures::run());
    let with = |sessions: &str, warning: &str| {
        let mut record = run.clone();
        record.plan.settings =
            vec![SettingLine { name: "SESSIONS".to_owned(), value: sessions.to_owned(), origin: "cli".to_owned() }];
        record.plan.engine_facts = vec![Fact::new("io_mode_achieved", "setall"), Fact::new("free_bytes", sessions)];
        record.warnings = vec![warning.to_owned()];
        record
    };
    let place = |step| StepPlace { step, sessions: step, ..StepPlace::default() };
    let axes = info(&[SESSIONS]).axes;
    let mut swept = UnderWay::new(RunData::default(), "null:".to_owned(), axes, Figure::na("not asked for"));
    swept.failed(place(1), "no room");
    swept.measured(place(2), &with("2", "Without a CPU for 1.5 % of it."));
    swept.measured(place(3), &with("3", "Without a CPU for 22.5 % of it."));
    let record = swept.record(Verdict::Complete, "2026-01-01T00:00:09Z", 9.0);
    assert_eq!(record.kind, "sweep");
    assert_eq!(record.plan.settings[0].value, "2,3");
    assert_eq!(record.plan.engine_facts, [Fact::new("io_mode_achieved", "setall")]);
    assert_eq!(record.warnings, ["Steps 2, 3 (figures of step 2): Without a CPU for 1.5 % of it."]);
    assert_eq!(record.interval.whole_run_s.value(), Some(9.0));
    assert!(record.interval.elapsed_s.reason().is_some());
    assert_eq!(Sweep.members(&record).len(), 3);
}

fn found(steps: Vec<SweepStep>) -> Record {
    let advice = build(info(&[SESSIONS]), steps).advice;
    Record { advice, ..Record::default() }
}

/// The frozen sweep saturates at 8 sessions; the step beyond has so many times its throughput.
fn beyond_the_knee(times: f64, busy_pct: f64) -> Record {
    let mut steps: Vec<SweepStep> = saturating().into_iter().take(5).collect();
    steps[4].ops_per_s = steps[3].ops_per_s.scaled(times);
    steps[4].op.us_avg = steps[3].op.us_avg.scaled(2.0);
    steps.iter_mut().for_each(|step| step.host_busy_pct = busy_pct.into());
    found(steps)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("R9", |fires| beyond_the_knee(if fires { 0.951 } else { 0.949 }, 50.0)),
    ("R10", |fires| beyond_the_knee(1.0, if fires { 95.0 } else { 94.9 })),
    // The law is fitted from four loads on.
    ("R29", |fires| {
        let steps = (0..if fires { 4 } else { 3 }).map(|at| {
            let sessions = 1_u64 << at;
            let n = sessions as f64;
            step(at + 1, sessions, 1000.0 * n / (1.0 + 0.05 * (n - 1.0)))
        });
        found(steps.collect())
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&Sweep.rules(), CASES);
}
