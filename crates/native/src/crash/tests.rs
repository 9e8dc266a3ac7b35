use super::*;

fn step(mib: f64, first_commit_s: f64) -> RecoveryStep {
    RecoveryStep {
        distance_bytes: (mib * MIB) as u64,
        replayed_bytes: Figure::Count((mib * MIB) as u64),
        first_commit_s: Figure::Decimal(first_commit_s),
        rate_95_s: Figure::Decimal(first_commit_s + 1.0),
        acknowledged_count: 1000,
        ..RecoveryStep::default()
    }
}

/// Half a second, and a hundredth for each MiB.
fn info() -> RecoveryInfo {
    RecoveryInfo {
        sessions_count: 4,
        commit_mode: "group".to_owned(),
        log_block_bytes: 4096,
        steps: vec![step(10.0, 0.6), step(100.0, 1.5), step(200.0, 2.5)],
        rto_wanted_s: Figure::Decimal(1.0),
        ..RecoveryInfo::default()
    }
}

fn built(info: RecoveryInfo) -> Record {
    assay_report::kinds::install(vec![&KIND]);
    build(&RunData::default(), info)
}

fn near(figure: &Figure, wanted: f64) {
    let value = figure.value().unwrap();
    assert!((value / wanted - 1.0).abs() < 1e-6, "{value} for {wanted}");
}

#[test]
fn the_line_and_the_recommendation_follow_from_the_kills() {
    let info = built(info()).parts.get::<RecoveryInfo>().unwrap();
    near(&info.fixed_s, 0.5);
    near(&info.per_mib_s, 0.01);
    near(&info.recommended_distance_bytes, 50.0 * MIB);
    near(&info.recommended_interval_blocks, 50.0 * 256.0);
    assert!(!info.is_projection);
}

#[test]
fn beyond_what_was_measured_it_is_a_projection() {
    let mut far = info();
    far.rto_wanted_s = Figure::Decimal(30.0);
    let record = built(far);
    assert!(record.parts.get::<RecoveryInfo>().unwrap().is_projection);
    assert!(record.advice[0].text.contains("projection, untested"));
}

#[test]
fn what_cannot_be_kept_or_fitted_is_said() {
    let mut short = info();
    short.rto_wanted_s = Figure::Decimal(0.3);
    let record = built(short);
    assert!(record.advice[0].text.contains("Checkpoints cannot give"));
    let mut one = info();
    one.steps.truncate(1);
    let info = built(one).parts.get::<RecoveryInfo>().unwrap();
    assert_eq!(info.recommended_distance_bytes.value(), None);
    assert_eq!(line(&[(1.0, 3.0), (2.0, 2.0)]), None, "time that falls is no line");
}

#[test]
fn a_lost_commit_voids_the_run_unless_commits_do_not_wait() {
    let mut lossy = info();
    lossy.steps[1].lost_count = 2;
    let commits = |info: &RecoveryInfo| {
        let rows = (KIND.headline)(&built(info.clone()), info).rows;
        rows[0].otherwise.clone()
    };
    assert_eq!(commits(&info()), "0 of 3,000 acknowledged commits lost");
    assert_eq!(commits(&lossy), "2 of 3,000 acknowledged commits lost");
    let record = built(lossy.clone());
    assert_eq!(record.run.verdict, "invalid");
    assert_eq!((record.advice[0].id.as_str(), record.advice[0].severity.as_str()), ("V1", "high"));
    lossy.commit_mode = "none".to_owned();
    let record = built(lossy);
    assert_eq!(record.run.verdict, "complete");
    assert!(record.advice[0].text.contains("COMMIT_MODE=none"));
    let mut half = info();
    half.steps[0].half_there_count = 1;
    half.commit_mode = "none".to_owned();
    assert_eq!(built(half).run.verdict, "invalid");
}

#[test]
fn a_cold_cache_is_advice_and_a_quick_one_is_not() {
    assert!(!built(info()).advice.iter().any(|a| a.id == "V3" && a.severity == "high"));
    let mut cold = info();
    cold.steps[0].rate_95_s = Figure::Decimal(6.0);
    let record = built(cold);
    assert!(record.advice.iter().any(|a| a.id == "V3" && a.severity == "high"));
    let mut quick = info();
    for step in &mut quick.steps {
        step.rate_95_s = step.first_commit_s.clone();
    }
    assert!(!built(quick).advice.iter().any(|a| a.id == "V3"));
}

#[test]
fn a_distance_that_is_not_kept_is_advice_and_one_that_is_kept_is_not() {
    assert!(!built(info()).advice.iter().any(|a| a.id == "V4"));
    let mut slow = info();
    slow.steps[0].distance_bytes /= 2;
    let record = built(slow);
    let said = record.advice.iter().find(|a| a.id == "V4").unwrap();
    assert_eq!(said.severity, "note");
    assert!(said.text.contains("5 MiB was requested, but 10 MiB"), "{}", said.text);
}

#[test]
fn the_text_has_the_table_and_the_record_reads_back() {
    let record = built(info());
    let text = assay_report::text::render(&record);
    for part in ["ASSAY RECOVERY REPORT", "Kill by Kill", "lost", "End of Report"] {
        assert!(text.contains(part), "no {part}:\n{text}");
    }
    let json = assay_report::json::write(&record).unwrap();
    assert_eq!(assay_report::json::read(&json).unwrap(), record);
}

fn with(change: impl FnOnce(&mut RecoveryInfo)) -> Record {
    let mut info = info();
    change(&mut info);
    built(info)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("V1", |fires| with(|info| info.steps[1].lost_count = u64::from(fires))),
    ("V2", |fires| with(|info| info.steps.truncate(if fires { 2 } else { 1 }))),
    ("V3", |fires| {
        with(|info| {
            info.steps.truncate(1);
            info.steps[0].rate_95_s = Figure::Decimal(if fires { 1.2 } else { 1.19 });
        })
    }),
    ("V4", |fires| {
        with(|info| info.steps[2].replayed_bytes = Figure::Count(if fires { 300 << 20 } else { 299 << 20 }))
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&assay_measure::kind::Kind::rules(&KIND), CASES);
}
