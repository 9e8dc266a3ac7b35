//! Rounds whose noise is simulated.

use super::Passport;
use super::judge::{Change, change};
use super::record::{Acceptance, Asked, KIND, build, outcome, passport};
use super::rounds::{ROUNDS, ROWS, Row, tests};
use crate::finished::Finished;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::record::{Figure, Metric, Record};
use assay_measure::snapshot::{RunData, Verdict};
use assay_testkit::rules::{Case, just_fire};
use std::path::Path;

fn of(what: &str) -> &'static Row {
    ROWS.iter().find(|row| row.what == what).expect("a row")
}

/// Rounds of a rate on a host where others take some of one now and then, up to a part of it.
fn rounds(stream: &mut Stream, rate: f64, taken: f64) -> Vec<f64> {
    let mut round = || {
        let noise = 0.04 * (stream.uniform_f64() - 0.5);
        let is_hit = stream.uniform_f64() < 0.4;
        rate * (1.0 + noise) * (1.0 - if is_hit { taken * stream.uniform_f64() } else { 0.0 })
    };
    (0..ROUNDS).map(|_| round()).collect()
}

#[test]
fn the_same_box_is_accepted_and_one_that_lost_a_third_is_not() {
    let row = of("reads_per_s");
    let (mut alarms, mut found) = (0, 0);
    for seed in 0..500 {
        let mut stream = Stream::new(seed, 0, Purpose::Sample);
        let theirs = rounds(&mut stream, 50_000.0, 0.6);
        let same = rounds(&mut stream, 50_000.0, 0.6);
        let less = rounds(&mut stream, 33_000.0, 0.0);
        alarms += usize::from(change(row, &theirs, &same) == Change::Worse);
        let quiet = rounds(&mut stream, 50_000.0, 0.0);
        found += usize::from(change(row, &quiet, &less) == Change::Worse);
    }
    assert_eq!((alarms, found), (0, 500));
}

#[test]
fn one_disturbed_round_hides_no_change_and_makes_none() {
    let rate = of("reads_per_s");
    let theirs = [100.0, 101.0, 99.0, 100.0, 40.0, 100.0];
    assert_eq!(
        change(rate, &theirs, &[50.0, 51.0, 49.0, 50.0, 50.0, 52.0]),
        Change::Same,
        "more than one pair overlaps"
    );
    assert_eq!(
        change(rate, &[100.0, 101.0, 99.0, 100.0, 51.5, 100.0], &[50.0, 51.0, 49.0, 50.0, 50.0, 52.0]),
        Change::Worse
    );
    assert_eq!(
        change(rate, &theirs, &[90.0, 91.0, 89.0, 90.0, 90.0, 88.0]),
        Change::Same,
        "a tenth less is no other box"
    );
    assert_eq!(change(rate, &[50.0; 6], &[100.0; 6]), Change::Better);
    assert_eq!(change(rate, &[50.0; 3], &[100.0; 6]), Change::Unknown);
    let time = of("memory_ns");
    assert_eq!(change(time, &[80.0, 81.0, 79.0, 80.0], &[160.0, 170.0, 150.0, 165.0]), Change::Worse);
    assert_eq!(change(time, &[160.0, 170.0, 150.0, 165.0], &[80.0, 81.0, 79.0, 80.0]), Change::Better);
}

/// A round in which every figure has this value times that of its row, beside others that had so much of the CPUs.
fn round(times: impl Fn(&str) -> f64, others_pct: f64) -> Vec<Finished> {
    tests(90, Path::new("/nowhere"), 1 << 20, false)
        .iter()
        .map(|test| {
            let mut record = assay_testkit::rules::beside(others_pct);
            record.metrics = ROWS
                .iter()
                .map(|row| {
                    let (key, scope) = row.source();
                    let value = Figure::decimal(1000.0 * times(row.what));
                    Metric { key: key.to_owned(), scope: scope.to_owned(), value, ..Metric::default() }
                })
                .collect();
            Finished { test: test.name, directory: String::new(), record: Ok(record) }
        })
        .collect()
}

fn asked(passport: Option<Passport>) -> Asked {
    Asked {
        place: "/nowhere".into(),
        peer: None,
        seconds: 90,
        file_bytes: 1 << 20,
        passport: passport.map(|passport| (passport, "passport.json".to_owned())),
        root: "/nowhere".into(),
    }
}

fn run() -> RunData {
    RunData { workload: "passport".to_owned(), verdict: Verdict::Complete, ..RunData::default() }
}

fn box_that(times: impl Fn(&str) -> f64, others_pct: f64) -> Vec<Vec<Finished>> {
    (0..ROUNDS).map(|at| round(|what| times(what) * (1.0 + 0.01 * at as f64), others_pct)).collect()
}

fn accepted(times: impl Fn(&str) -> f64, others_pct: f64) -> Record {
    let made = passport(&run(), &asked(None), &box_that(|_| 1.0, 0.0), "here");
    let read = Passport::read(&made.text()).expect("a passport");
    assert_eq!(read.rows.len(), 12);
    build(&run(), &asked(Some(read)), &box_that(times, others_pct), false)
}

#[test]
fn an_acceptance_says_which_figure_is_worse() {
    let same = accepted(|_| 1.0, 0.0);
    assert_eq!(outcome(&same), Acceptance::Accepted);
    assert!(KIND.headline(&same).verdict.starts_with("accepted"));
    let slow = accepted(|what| if what == "reads_per_s" { 0.04 } else { 1.0 }, 0.0);
    assert_eq!(outcome(&slow), Acceptance::Worse);
    let limit = KIND.headline(&slow).limit;
    assert_eq!(limit.what, "reads_per_s, the first figure that is worse");
    assert_eq!(limit.evidence, "reads_per_s: 41 here, 1,030 in the passport (0.04 x).");
    // Beside others that had 60 % of the CPUs less than half is no proof, a twentieth is; what is as good is so all the same.
    let beside = |times: f64| accepted(move |what| if what == "reads_per_s" { times } else { 1.0 }, 60.0);
    assert_eq!(outcome(&beside(0.4)), Acceptance::Unjudged);
    assert_eq!(outcome(&beside(0.04)), Acceptance::Worse);
    assert_eq!(outcome(&accepted(|_| 1.0, 60.0)), Acceptance::Accepted);
}

#[test]
fn a_passport_that_was_changed_is_no_passport() {
    let made = passport(&run(), &asked(None), &box_that(|_| 1.0, 0.0), "here").text();
    assert!(Passport::read(&made).is_ok());
    let why = |text: &str| Passport::read(text).expect_err("refused");
    assert!(why(&made.replace("1000.0", "100.0")).contains("was changed after it was made"));
    assert!(why(&made.replace("assay-passport-1", "assay-passport-9")).contains("this assay reads assay-passport-1"));
    assert!(why("{}").contains("is no passport of assay"));
    assert!(why(&Passport::default().text()).contains("holds no figures"));
}

#[test]
fn every_rule_fires_and_is_silent() {
    const CASES: &[Case] = &[
        ("B5", |fires| accepted(|_| if fires { 0.5 } else { 1.0 }, 0.0)),
        ("B6", |fires| {
            let mut made = passport(&run(), &asked(None), &box_that(|_| 1.0, 0.0), "here");
            if fires {
                made.facts.insert("swap".to_owned(), "none".to_owned());
            }
            build(&run(), &asked(Some(made)), &box_that(|_| 1.0, 0.0), false)
        }),
        ("B7", |fires| accepted(|_| 1.0, if fires { 60.0 } else { 0.0 })),
    ];
    just_fire(&KIND.rules(), CASES);
}
