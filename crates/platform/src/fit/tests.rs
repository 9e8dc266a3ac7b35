//! Loads of known reports, and boxes whose steps are simulated.

use super::assumptions::{HitRatioRow, caches};
use super::info::FitInfo;
use super::load::{CACHED, COMMITS, DatabaseLoad, READ_US, READS, REDO, SCANNED, WRITES};
use super::offer::{MET, Offer, ServerMemory};
use super::record::{FitAsked, FitStep, KIND, Shape, build, held, load_of, plan_rows, same_offer, steps_before};
use super::rise::{holds, next};
use super::several::peak;
use assay_measure::kind::Limit;
use assay_measure::record::{Figure, ImportInfo, Metric, ReadSources, Record, StatRow};
use assay_measure::snapshot::RunData;
use assay_measure::units::fixed;
use assay_testkit::rules::{Case, beside, just_fire};

const GIB: u64 = 1 << 30;

fn frozen(name: &str) -> Record {
    let text = match name {
        "awr 11.2" => include_str!("../../../../testdata/frozen/import-awr-11_2-txt/record.json"),
        "awr 19c" => include_str!("../../../../testdata/frozen/import-awr-19c-txt/record.json"),
        "statspack" => include_str!("../../../../testdata/frozen/import-statspack-11_2-txt/record.json"),
        "postgres" => include_str!("../../../../testdata/frozen/postgres-15/record.json"),
        "probe" => include_str!("../../../../testdata/frozen/sync/record.json"),
        _ => include_str!("../../../../testdata/frozen/native-updates/record.json"),
    };
    assay_report::json::read(text).expect("a record")
}

fn asked(name: &str, record: &Record) -> FitAsked {
    let load = DatabaseLoad::of(name, record).expect("a load");
    let offer = Offer::of(&load, 4 * GIB, None);
    FitAsked { loads: vec![load], source: record.clone(), offer, step_s: 30, ..FitAsked::default() }
}

fn told(asked: &FitAsked) -> String {
    plan_rows(asked).into_iter().map(|(name, value)| format!("{name:<24} {value}\n")).collect()
}

#[test]
fn a_plan_says_where_each_figure_comes_from() {
    for name in ["awr 11.2", "awr 19c", "statspack", "native"] {
        insta::assert_snapshot!(name, told(&asked(name, &frozen(name))));
    }
}

/// A report with these totals of statistics over an hour.
fn report(stats: &[(&str, f64)], elapsed_s: f64) -> Record {
    let mut record = Record { import: Some(ImportInfo::default()), ..Record::default() };
    record.run.verdict = "imported".to_owned();
    record.interval.elapsed_s = elapsed_s.into();
    for (key, per_s) in stats {
        let row = StatRow { total: Figure::decimal(per_s * elapsed_s), ..StatRow::default() };
        record.instance.stats.insert((*key).to_owned(), row);
    }
    record
}

/// Reads, writes, commits and redo per second of an hour, in blocks of 8 KiB.
fn hour(reads: f64, writes: f64, commits: f64, redo: f64) -> Record {
    report(
        &[
            ("physical_read_io_requests_count", reads),
            ("physical_reads_blocks", reads),
            ("physical_read_bytes", 8192.0 * reads),
            ("physical_write_io_requests_count", writes),
            ("physical_write_bytes", 8192.0 * writes),
            ("user_commits_count", commits),
            ("redo_size_bytes", redo),
        ],
        3600.0,
    )
}

#[test]
fn an_offer_comes_to_the_load_or_says_what_it_does_not_meet() {
    let (mut met, mut unmet) = (0, 0);
    for reads in [20.0, 300.0, 5_000.0, 80_000.0] {
        for writes in [0.0, 7.0, 400.0, 9_000.0, 100_000.0] {
            for commits in [0.0, 0.7, 33.0, 1_200.0, 20_000.0] {
                let load = DatabaseLoad::of("x", &hour(reads, writes, commits, 800.0 * writes + 1500.0 * commits))
                    .expect("a load");
                let offer = Offer::of(&load, 4 * GIB, None).expect("all figures are there");
                let had = offer.expected;
                for (what, asked, had) in [
                    ("reads/s", reads, had.reads),
                    ("writes/s", writes, had.writes),
                    ("commits/s", commits, had.commits),
                ] {
                    let is_met = (had - asked).abs() <= (MET * asked).max(1.0);
                    let is_told = offer.unmet.iter().any(|text| text.contains(what));
                    assert!(is_met || is_told, "{reads} {writes} {commits}: {what} {had}: {offer:?}");
                    met += usize::from(is_met);
                    unmet += usize::from(!is_met);
                }
                assert!(offer.disk_bytes() < 9 * GIB && offer.rate > 0, "{offer:?}");
            }
        }
    }
    // Most writes without commits and most commits without writes cannot be made by updates that commit.
    assert!(met > 2 * unmet, "{met} met, {unmet} not");
}

#[test]
fn a_run_of_ours_is_offered_as_it_was() {
    let asked = asked("native", &frozen("native"));
    let (load, had) = (asked.load(), asked.offer.as_ref().expect("an offer").expected);
    for (name, had) in [(READS, had.reads), (WRITES, had.writes), (COMMITS, had.commits), (REDO, had.redo)] {
        let ratio = had / load.value(name).expect("a figure");
        assert!((ratio - 1.0).abs() < MET, "{name}: {ratio}");
    }
}

#[test]
fn what_the_page_cache_answered_has_no_latency_of_a_device() {
    let mut record = frozen("postgres");
    let load = DatabaseLoad::of("x", &record).expect("a load");
    assert_eq!((load.value(CACHED), load.value(READ_US)), (Some(100.0), None));
    record.instance.reads.as_mut().expect("sources").page_cache_pct = Figure::decimal(10.0);
    assert!(DatabaseLoad::of("x", &record).expect("a load").value(READ_US).is_some());
    // Of a server that was watched nothing is known but the time that a read took.
    record.instance.reads = None;
    for (us, cached, told) in [(2.8, Some(100.0), None), (80.0, None, None)] {
        let mut record = record.clone();
        let read = record.instance.events.iter_mut().find(|event| event.name == "db file sequential read");
        read.expect("reads").us_avg = Figure::decimal(us);
        let load = DatabaseLoad::of("x", &record).expect("a load");
        assert_eq!((load.value(CACHED), load.value(READ_US)), (cached, told), "{us} us");
    }
}

#[test]
fn a_plan_is_carried_to_another_box_as_it_stands() {
    let there = asked("awr.html", &frozen("awr 19c"));
    let plan = build(&RunData::default(), &there, &[], false);
    let load = load_of("carried", &plan).expect("a load");
    assert_eq!(&load, there.load());
    let here = FitAsked { loads: vec![load], source: plan, offer: there.offer.clone(), ..there.clone() };
    assert_eq!(told(&here), told(&there));
}

#[test]
fn a_servers_cache_is_its_own_and_what_it_writes_is_its_answer() {
    let record = hour(2_000.0, 900.0, 100.0, 400_000.0);
    let load = DatabaseLoad::of("x", &record).expect("a load");
    let offered = |cache_bytes| Offer::of(&load, GIB, Some(ServerMemory { block_bytes: 16_384, cache_bytes }));
    assert_eq!(offered(GIB), None, "the cache holds all of the data");
    let offer = offered(GIB / 4).expect("an offer");
    let names: Vec<&str> = offer.settings(1.0, 30).iter().map(|(name, _)| *name).collect();
    assert!(!names.contains(&"CACHE_MB") && !names.contains(&"BLOCK_SZ") && names.contains(&"SCALE"), "{names:?}");
    assert!((offer.expected.reads / 2_000.0 - 1.0).abs() < MET, "{:?}", offer.expected);
    assert_eq!(offer.unmet, [""; 0]);
    let step = FitAsked { loads: vec![load], source: record, offer: Some(offer), ..FitAsked::default() };
    let record = build(&RunData::default(), &step, &[], false);
    let info: FitInfo = record.parts.get().expect("a fit");
    let offered = info.sides.iter().find(|row| row.side == WRITES).expect("a row");
    assert_eq!(offered.offered_value.reason(), Some("it follows from what is offered"));
}

#[test]
fn another_cache_holds_as_far_as_the_whole_load_was_held() {
    let rows = |held: Figure| {
        let load = DatabaseLoad::of("x", &frozen("awr 19c")).expect("a load");
        let row = |row: HitRatioRow| {
            let of = |figure: Figure| figure.value().expect("a figure");
            (fixed(of(row.hit_pct), 2), fixed(of(row.multiple), 2), row.verdict)
        };
        caches(&load, &held).into_iter().map(row).collect::<Vec<_>>()
    };
    insta::assert_debug_snapshot!("another cache", rows(Figure::decimal(2.0)));
    assert!(rows(Figure::na("none")).iter().all(|row| row.2 == "nothing was offered"));
}

#[test]
fn scans_take_the_place_of_selects() {
    let mut record = hour(2_000.0, 100.0, 50.0, 200_000.0);
    let bytes = 8192.0 * 2_000.0 + 50e6;
    record.instance.stats.insert(
        "physical_read_bytes".to_owned(),
        StatRow { total: Figure::decimal(bytes * 3600.0), ..StatRow::default() },
    );
    record
        .plan
        .engine_facts
        .push(assay_measure::snapshot::Fact { name: "block_bytes".to_owned(), value: "8192".to_owned() });
    let asked = asked("x", &record);
    assert_eq!(asked.load().value(SCANNED).map(f64::round), Some(50e6));
    let had = asked.offer.expect("an offer").expected;
    assert!((had.scanned / 50e6 - 1.0).abs() < MET && (had.reads / 2_000.0 - 1.0).abs() < MET, "{had:?}");
}

#[test]
fn what_no_load_follows_from_is_refused_by_name() {
    let why = |record: &Record| DatabaseLoad::of("x", record).expect_err("refused");
    let with = |change: fn(&mut Record)| {
        let mut record = hour(500.0, 50.0, 5.0, 9_000.0);
        change(&mut record);
        why(&record)
    };
    for (told, part) in [
        (with(|record| record.interval.elapsed_s = 20.0.into()), "too short"),
        (with(|record| record.interval.elapsed_s = (3.0 * 86_400.0).into()), "3 days"),
        (with(|record| record.interval.elapsed_s = Figure::na("absent")), "how long its interval is"),
        (with(|record| record.run.verdict = "invalid".to_owned()), "invalid run"),
        (
            with(|record| record.instance.stats.retain(|key, _| key.starts_with("redo"))),
            "neither its reads nor its writes",
        ),
        (why(&hour(1.0, 2.0, 0.1, 900.0)), "idle"),
        (why(&frozen("probe")), "no statistics of a database"),
    ] {
        assert!(told.contains(part), "{told}");
    }
}

#[test]
fn a_figure_that_is_missing_makes_no_offer() {
    let mut record = hour(500.0, 50.0, 5.0, 9_000.0);
    record.instance.stats.remove("user_commits_count");
    let asked = asked("x", &record);
    assert!(asked.offer.is_none());
    assert_eq!(asked.load().missing(), ["commits_per_s (the report does not have it)"]);
    assert_eq!(KIND.headline(&build(&RunData::default(), &asked, &[], false)).verdict, "needs 550 IOPS and 4.51 MB/s");
}

#[test]
fn the_peak_of_several_reports_is_taken() {
    let load = |name: &str, reads: f64, commits: f64| {
        DatabaseLoad::of(name, &hour(reads, 100.0, commits, 9_000.0)).expect("a load")
    };
    let loads = vec![load("night", 400.0, 2.0), load("noon", 3_000.0, 10.0), load("evening", 2_000.0, 80.0)];
    assert_eq!(peak(&loads), 1);
    let asked = FitAsked { loads, source: Record::default(), ..FitAsked::default() };
    let record = build(&RunData::default(), &asked, &[], false);
    let info: FitInfo = record.parts.get().expect("a fit");
    let largest: Vec<&str> = info.reports.iter().map(|row| row.largest.as_str()).collect();
    assert_eq!(largest, ["", "peak", "commits_per_s"]);
    assert_eq!((info.least_ios_per_s.value(), info.most_ios_per_s.value()), (Some(500.0), Some(3_100.0)));
}

#[test]
fn the_multiples_rise_until_one_misses_and_close_in_on_it() {
    let tried_until = |holds: &dyn Fn(f64) -> bool| {
        let mut tried = Vec::new();
        while let Some(factor) = next(&tried) {
            tried.push((factor, holds(factor)));
            assert!(tried.len() < 20, "{tried:?}");
        }
        tried.into_iter().map(|(factor, _)| factor).collect::<Vec<_>>()
    };
    assert_eq!(tried_until(&|factor| factor <= 2.3), [1.0, 1.5, 2.0, 3.0, 2.45]);
    assert_eq!(tried_until(&|factor| factor <= 0.6), [1.0, 0.5, 0.7, 0.6]);
    assert_eq!(tried_until(&|_| false), [1.0, 0.5, 0.25, 0.125]);
    assert_eq!(tried_until(&|_| true), [1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 12.0, 16.0]);
}

/// A step of a box that does so many operations a second at most, whose reads take so long.
fn step(asked: &FitAsked, factor: f64, most_per_s: f64, read_us: f64) -> FitStep {
    let rate = asked.offer.as_ref().expect("an offer").rate_at(factor) as f64;
    let (done, expected) = (rate.min(most_per_s), asked.offer.as_ref().expect("an offer").expected);
    let part = done / asked.offer.as_ref().expect("an offer").rate as f64;
    let metric =
        |key: &str, value: f64| Metric { key: key.to_owned(), value: Figure::decimal(value), ..Metric::default() };
    let mut record = Record::default();
    // As a run says that missed its rate.
    record.run.verdict = if done < 0.98 * rate { "invalid" } else { "complete" }.to_owned();
    record.interval.elapsed_s = 30.0.into();
    record.metrics = vec![
        metric("ops_per_s", done),
        metric("reads_per_s", expected.reads * part),
        metric("writes_per_s", expected.writes * part),
        metric("transactions_per_s", expected.commits * part),
        metric("redo_bytes_per_s", expected.redo * part),
        metric("db_file_sequential_read_us_avg", read_us),
        metric("log_file_sync_us_avg", 900.0),
    ];
    let limit = if done < rate {
        Limit::new("the log: commits wait for it", "Sessions spend 60 % of their time in log file sync.")
    } else {
        Limit::new("the requested rate", "The platform kept up.")
    };
    FitStep { factor, directory: format!("step-{factor}x"), record, limit }
}

fn risen(asked: &FitAsked, most: f64, read_us: f64) -> Vec<FitStep> {
    let mut steps = Vec::new();
    while let Some(factor) = next(&asked.tried(&steps)) {
        let rate = asked.offer.as_ref().expect("an offer").rate as f64;
        steps.push(step(asked, factor, most * rate, read_us));
    }
    steps
}

#[test]
fn the_first_screen_says_whether_it_holds_and_why_not_more() {
    let asked = FitAsked { place: Some("/data".to_owned()), ..asked("awr 11.2", &frozen("awr 11.2")) };
    let screens = [(2.3, 400.0), (0.6, 400.0), (99.0, 400.0), (99.0, 700.0)].map(|(most, read_us)| {
        let steps = risen(&asked, most, read_us);
        let record = build(&RunData::default(), &asked, &steps, false);
        assert_eq!(held(&record), Some(most > 1.0 && read_us < 500.0));
        let headline = KIND.headline(&record);
        format!("{}\nlimited by {}: {}\n", headline.verdict, headline.limit.what, headline.limit.evidence)
    });
    insta::assert_snapshot!("screens", screens.join("\n"));
}

#[test]
fn what_is_paid_for_is_the_largest_multiple_that_held() {
    let asked = asked("awr 11.2", &frozen("awr 11.2"));
    let of = |most| KIND.delivered(&build(&RunData::default(), &asked, &risen(&asked, most, 400.0), false));
    let (held, none) = (of(2.3), of(0.01));
    let step = risen(&asked, 2.3, 400.0).into_iter().filter(|step| step.factor <= 2.3).map(|step| step.factor);
    let most = step.fold(0.0, f64::max);
    assert!(held.notes[0].contains(&format!("at {most} x")), "{:?}", held.notes);
    assert!(held.ios_per_s.value() > held.reads_per_s.value());
    assert_eq!((none.ios_per_s.value(), none.notes.len()), (None, 1));
}

#[test]
fn a_latency_within_its_interval_is_no_miss() {
    let asked = asked("awr 11.2", &frozen("awr 11.2"));
    let rate = asked.offer.as_ref().expect("an offer").rate;
    let of = |us: f64| holds(asked.load(), rate, &step(&asked, 1.0, f64::INFINITY, us).record);
    // There are 500 us there, and a step without seconds leaves 5 % open.
    assert_eq!([of(499.0), of(520.0), of(530.0)], [true, true, false]);
}

#[test]
fn an_interrupted_fit_knows_its_steps_and_its_offer() {
    let asked = asked("awr 11.2", &frozen("awr 11.2"));
    let steps = risen(&asked, 2.3, 400.0);
    let record = build(&RunData::default(), &asked, &steps[..2], true);
    assert_eq!(steps_before(&record), [(1.0, "step-1x".to_owned()), (1.5, "step-1.5x".to_owned())]);
    assert_eq!(KIND.members(&record), ["step-1x", "step-1.5x"]);
    assert!(same_offer(&record, asked.offer.as_ref().expect("an offer")));
    assert!(!same_offer(&record, &Offer::of(asked.load(), GIB, None).expect("an offer")));
}

#[test]
fn the_cheapest_shape_that_holds_it_is_named() {
    let shape = |name: &str, month: f64, ios: Option<f64>| Shape {
        name: name.to_owned(),
        month,
        currency: "USD".to_owned(),
        ios_per_s: Figure::known(ios, "none named"),
        mb_per_s: Figure::decimal(500.0),
    };
    let shapes = vec![
        shape("large", 900.0, Some(40_000.0)),
        shape("small", 100.0, Some(3_000.0)),
        shape("metal", 50.0, None),
        shape("middle", 300.0, Some(8_000.0)),
    ];
    let record = build(&RunData::default(), &FitAsked { shapes, ..asked("awr 11.2", &frozen("awr 11.2")) }, &[], false);
    let info: FitInfo = record.parts.get().expect("a fit");
    let rows: Vec<(&str, &str)> = info.shapes.iter().map(|row| (row.shape.as_str(), row.verdict.as_str())).collect();
    assert_eq!(rows, [("metal", "cannot tell"), ("small", "too small"), ("middle", "holds"), ("large", "holds")]);
    let lines = KIND.headline(&record).rows;
    assert_eq!(lines.last().expect("a line").otherwise, "middle is the cheapest that holds it: USD 300 a month");
}

#[test]
fn what_cells_did_is_not_carried_over() {
    let mut record = frozen("awr 19c");
    let row = StatRow { total: Figure::decimal(6e12), ..StatRow::default() };
    record.instance.stats.insert("cell_physical_io_bytes_eligible_for_predicate_offload_count".to_owned(), row);
    let info: FitInfo = build(&RunData::default(), &asked("x", &record), &[], false).parts.get().expect("a fit");
    let rows: Vec<String> = info.not_carried.iter().map(|row| format!("{}: {}", row.there, row.amount)).collect();
    assert_eq!(
        rows,
        [
            "bytes of scans that the cells could filter: 10.0 GB/s",
            "event cell single block physical read: 5,000/s, 500 us each"
        ]
    );
}

#[test]
fn every_rule_just_fires() {
    fn of(record: &Record, most: Option<f64>) -> Record {
        let asked = asked("x", record);
        let steps = most.map_or_else(Vec::new, |most| risen(&asked, most, 400.0));
        build(&RunData::default(), &asked, &steps, false)
    }
    let cases: &[Case] = &[
        ("F1", |fires| of(&frozen("awr 11.2"), Some(if fires { 0.9 } else { 1.1 }))),
        ("F2", |fires| {
            let mut record = hour(500.0, 50.0, 5.0, 60_000.0);
            record.interval.elapsed_s = Figure::decimal(if fires { 7_300.0 } else { 7_100.0 });
            of(&record, None)
        }),
        ("F3", |fires| of(&hour(500.0, 50.0, if fires { 80.0 } else { 5.0 }, 47_000.0), None)),
        ("F4", |fires| of(&frozen(if fires { "awr 19c" } else { "awr 11.2" }), None)),
        ("F5", |fires| {
            let mut record = hour(500.0, 50.0, 5.0, 60_000.0);
            if fires {
                record.instance.stats.remove("redo_size_bytes");
            }
            of(&record, None)
        }),
        ("F6", |fires| {
            let asked = asked("x", &frozen("awr 11.2"));
            let mut step = step(&asked, 1.0, f64::INFINITY, 400.0);
            if fires {
                let host = beside(50.0);
                (step.record.interval, step.record.os) = (host.interval, host.os);
            }
            build(&RunData::default(), &asked, &[step], false)
        }),
        ("F7", |fires| {
            let mut record = frozen("postgres");
            let reads = record.instance.reads.as_mut().expect("where its reads came from");
            reads.page_cache_pct = Figure::decimal(if fires { 50.0 } else { 49.0 });
            of(&record, None)
        }),
        ("F8", |fires| {
            let asked = asked("x", &frozen("awr 11.2"));
            let mut step = step(&asked, 1.0, f64::INFINITY, 400.0);
            let page_cache_pct = Figure::decimal(if fires { 50.0 } else { 49.0 });
            step.record.instance.reads = Some(ReadSources { page_cache_pct, ..ReadSources::default() });
            build(&RunData::default(), &asked, &[step], false)
        }),
    ];
    just_fire(&KIND.rules(), cases);
}
