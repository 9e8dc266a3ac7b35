//! No sentence of an answer denies another sentence or what the run was: runs of every kind beside hosts of every kind.

use super::wait;
use crate::record::series::steadiness;
use assay_measure::cap;
use assay_measure::record::{Figure, Record};
use assay_measure::snapshot::SettingLine;
use assay_report::answer::{self, Context};
use proptest::prelude::*;

/// How the seconds of a run went.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Shape {
    Steady,
    /// Falls at a second to a part of its rate and stays there exactly.
    Capped {
        at: usize,
        to: f64,
    },
    /// The same to a level that moves.
    Fell {
        at: usize,
        to: f64,
    },
    /// Loses a part of its rate bit by bit.
    Drifts(f64),
}

#[derive(Clone, Copy, Debug)]
struct Given {
    shape: Shape,
    others_pct: f64,
    delay_pct: f64,
    device_busy_pct: f64,
    /// Of the rate that was done.
    asked: Option<f64>,
    /// Shares of the sessions' time: reads, log, locks; the rest is CPU.
    waits: [f64; 3],
}

const SECONDS: usize = 40;

fn shapes() -> impl Strategy<Value = Shape> {
    let at = 8..24_usize;
    prop_oneof![
        Just(Shape::Steady),
        (at.clone(), 0.05..0.6).prop_map(|(at, to)| Shape::Capped { at, to }),
        (at, 0.05..0.6).prop_map(|(at, to)| Shape::Fell { at, to }),
        (0.05..0.8).prop_map(Shape::Drifts),
    ]
}

fn given_runs() -> impl Strategy<Value = Given> {
    let waits = [0.0..60.0, 0.0..30.0, 0.0..30.0];
    (
        shapes(),
        0.0..95.0,
        0.0..80.0,
        0.0..100.0,
        prop_oneof![Just(None), Just(Some(1.0)), (1.1..1.5).prop_map(Some)],
        waits,
    )
        .prop_map(|(shape, others_pct, delay_pct, device_busy_pct, asked, waits)| Given {
            shape,
            others_pct,
            delay_pct,
            device_busy_pct,
            // A rate that was kept has no level that changes.
            asked: asked.filter(|part| *part > 1.0 || shape == Shape::Steady),
            waits,
        })
}

/// Operations in a second; levels move by some percent, in a way that is the same every time.
fn rate(shape: Shape, second: usize) -> f64 {
    let restless = 1.0 + 0.02 * ((second * 7919 % 13) as f64 - 6.0) / 6.0;
    let moving = 1.0 + 0.25 * ((second * 31 % 7) as f64 - 3.0) / 3.0;
    match shape {
        Shape::Steady => 100.0 * restless,
        Shape::Capped { at, to } if second >= at => 100.0 * to,
        Shape::Fell { at, to } if second >= at => 100.0 * to * moving,
        Shape::Capped { .. } | Shape::Fell { .. } => 100.0 * restless,
        Shape::Drifts(part) => 100.0 * restless * (1.0 - part * second as f64 / SECONDS as f64),
    }
}

fn made(given: Given) -> Record {
    let mut record = crate::record::build(&assay_testkit::fixtures::run());
    let column = |of: f64| -> Vec<Figure> { (0..SECONDS).map(|s| (of * rate(given.shape, s)).into()).collect() };
    record.series.step_s = 1.0.into();
    record.series.t_s = (1..=SECONDS).map(|s| s as f64).collect();
    record.series.in_window = vec![true; SECONDS];
    record.series.metrics = [("ops_count_per_s", 1.0), ("read_io_requests_count_per_s", 60.0)]
        .map(|(name, of)| (name.to_owned(), column(of)))
        .into();
    let busy = vec![Figure::from(given.device_busy_pct); SECONDS];
    record.series.metrics.insert("device_busy_pct".to_owned(), busy);
    record.interval.begin_s = 0.0.into();
    record.interval.end_s = (SECONDS as f64).into();
    record.interval.elapsed_s = (SECONDS as f64).into();
    let done = (0..SECONDS).map(|s| rate(given.shape, s)).sum::<f64>() / SECONDS as f64;
    for metric in record.metrics.iter_mut().filter(|metric| metric.key == "ops_per_s") {
        metric.value = done.into();
    }
    record.checks.steadiness = steadiness(&record.series);
    record.os.cpus_count = 4.0.into();
    record.os.process.cpu_s = (0.05 * 4.0 * SECONDS as f64).into();
    record.os.cpu_pct.insert("busy".to_owned(), (5.0 + given.others_pct).into());
    record.driver.threads_count = 2;
    record.driver.thread_run_delay_s = (given.delay_pct / 100.0 * 2.0 * SECONDS as f64).into();
    if let Some(part) = given.asked {
        let value = (part * done).to_string();
        record.plan.settings.push(SettingLine { name: "RATE".to_owned(), value, origin: "cli".to_owned() });
    }
    let [reads, log, locks] = given.waits;
    let left = (100.0 - reads - log - locks).max(0.0);
    record.instance.time_model.db_time_us = 100e6.into();
    record.instance.time_model.db_cpu_us = (left * 1e6).into();
    record.instance.events = vec![
        wait("db file sequential read", "User I/O", reads),
        wait("log file sync", "Commit", log),
        wait("enq: TX - row lock contention", "Application", locks),
    ];
    record.advice = crate::rules::advise(&record);
    record
}

/// The lines of the answer under a title, or nothing.
fn said(answer: &answer::Answer, title: &str) -> String {
    answer.said.iter().find(|said| said.title == title).map_or_else(String::new, |said| said.text.clone())
}

/// The numbers in front of a word.
fn numbers_before(text: &str, word: &str) -> Vec<f64> {
    let words: Vec<&str> = text.split_whitespace().collect();
    let pairs = words.windows(2).filter(|pair| pair[1].starts_with(word));
    pairs.filter_map(|pair| pair[0].replace(',', "").parse().ok()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn no_sentence_of_an_answer_denies_another(given in given_runs()) {
        let record = made(given);
        crate::testing::install();
        let answer = answer::of(&[&record], &Context::default());
        let text = answer.text();
        let (limit, steadiness) = (said(&answer, "Limited by"), said(&answer, "Steadiness"));
        let (trust, finding) = (said(&answer, "Trust"), said(&answer, "Finding"));
        let is_kept = given.asked.is_some_and(|part| part <= 1.0);

        // A cap that is found stands in each of the lines, and one that was made is found.
        let cap = cap::of(&record);
        prop_assert_eq!(cap.is_some(), matches!(given.shape, Shape::Capped { .. }), "{:?}\n{}", cap, text);
        if cap.is_some() {
            prop_assert!(limit.contains("cap of") || is_kept && limit.contains("requested rate"), "{}", text);
            prop_assert!(steadiness.contains("looks like a cap"), "{}", text);
        }
        // What changed its level is nowhere called steady, and what is steady nowhere said to have moved.
        let moved = ["fell ", "rose ", "looks like a cap", "first quarter"];
        if steadiness.starts_with("steady") {
            prop_assert!(!moved.iter().any(|word| finding.contains(word) || limit.contains(word)), "{}", text);
        }
        if matches!(given.shape, Shape::Capped { .. } | Shape::Fell { .. }) {
            prop_assert!(steadiness.starts_with("fell"), "{}", text);
            prop_assert!(!trust.starts_with("good"), "{}", text);
        }
        // Busy CPUs are no quiet host, and the shares of its time are one time.
        if limit.contains("with other processes") {
            let others = numbers_before(&limit, "%");
            prop_assert!(others.iter().all(|pct| *pct <= 100.0), "{}", text);
            prop_assert!(given.others_pct < 20.0 || !trust.starts_with("good"), "{}", text);
        }
        let shares: f64 = numbers_before(&said(&answer, "Time went to"), "%").iter().sum();
        prop_assert!(shares <= 101.0, "{}", text);
        // A rate that was kept is the limit, one that was missed never is.
        prop_assert_eq!(limit.contains("the requested rate"), is_kept, "{}", text);
        // The largest share of the sessions' time is not said to be another's.
        if let Some(first) = numbers_before(&said(&answer, "Time went to"), "%").first() {
            let told = numbers_before(limit.split(" That cost").next().unwrap_or_default(), "% of the sessions");
            prop_assert!(told.iter().all(|pct| pct <= first), "{}", text);
        }
        // One rate in all lines.
        let rates: Vec<f64> = [&answer.first, &said(&answer, "Rate")].into_iter()
            .flat_map(|text| numbers_before(text, "operations/s")).collect();
        prop_assert!(rates.windows(2).all(|two| two[0] == two[1]), "{}", text);
    }
}
