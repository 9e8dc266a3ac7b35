use super::info::ClockInfo;
use super::reading::{CLOCKS, ClockReading, Offset, Walk};
use super::record::{KIND, build};
use super::*;
use crate::host::allowed;
use assay_measure::kind::Kind as _;
use assay_measure::record::Truth;
use assay_measure::record::metric::find;
use assay_measure::snapshot::HostReading;
use assay_testkit::conformance::probe_suite;
use assay_testkit::rules::{Case, just_fire};
use std::fs;

#[test]
fn it_passes_the_suite() {
    let dir = tempfile::tempdir().unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// Walks over the readings of a clock that somebody wrote down.
fn walked(readings: &[u64]) -> Walk {
    let mut rest = readings[1..].iter().copied();
    let mut walk = Walk::default();
    let last = walk.on(readings[0], rest.len() as u32, &mut || rest.next().unwrap());
    assert_eq!(last, *readings.last().unwrap());
    walk
}

#[test]
fn steps_are_sorted_by_size_and_those_backwards_are_told_apart() {
    // 40, 0, 999, 1000, 1999, back by 500, 2000, 4,194,304 us.
    let walk = walked(&[100, 140, 140, 1139, 2139, 4138, 3638, 5638, 4_194_309_638]);
    assert_eq!(walk.buckets[..4], [3, 2, 1, 0]);
    assert_eq!(walk.buckets[23], 1);
    assert_eq!((walk.least_ns, walk.backwards, walk.back_ns, walk.count()), (40, 1, 500, 8));
    assert_eq!(walked(&[7, 7, 7]).least_ns, u64::MAX);
    assert_eq!(walked(&[0, u64::MAX / 2]).buckets[super::reading::BUCKETS - 1], 1);
}

/// Exchanges with a CPU whose clock is ahead by `ahead(n)`; ways of so many ns there and back.
fn exchanged(ahead: impl Fn(u64) -> i64, ways: &[(u64, u64)]) -> Offset {
    let mut offset = Offset::between((0, 1));
    for (number, (there, back)) in ways.iter().enumerate() {
        let sent = 1_000_000 + 10_000 * number as u64;
        offset.add(sent, (sent + there).wrapping_add_signed(ahead(number as u64)), sent + there + back);
    }
    offset
}

#[test]
fn the_bound_of_an_offset_holds_it_and_narrows_with_lopsided_exchanges() {
    let ways = [(150, 150), (90, 400), (500, 60)];
    for ahead in [-5_000, -70, 0, 30, 800] {
        let one = exchanged(|_| ahead, &ways[..1]);
        assert_eq!((one.low_ns, one.high_ns, one.trip_ns), (ahead - 150, ahead + 150, 300));
        let all = exchanged(|_| ahead, &ways);
        assert_eq!((all.low_ns, all.high_ns, all.exchanges), (ahead - 60, ahead + 90, 3));
    }
    // A clock that moves away leaves no room for one offset.
    let moved = exchanged(|number| 1000 * number as i64, &ways);
    assert!(moved.low_ns > moved.high_ns);
}

/// Readings of a host whose MONOTONIC takes `read` ns a read, and a system call 110.
fn readings(read: f64, source: (&str, &str), offsets: Vec<Offset>) -> ClockReadings {
    let reading = |at: usize| ClockReading {
        rounds_ns: if at == 0 { vec![read - 1.0, read, read + 1.0] } else { vec![read; 3] },
        walk: Walk {
            readings: 8,
            elapsed_ns: 2_000_000,
            own_ns: 2_000_100,
            // A loop is a read, a difference and a bucket.
            cpu_ns: 8 * (read as u64 + 4),
            ..walked(&[0, 20, 40, 60, 80, 100, 120, 140, 3140])
        },
    };
    ClockReadings {
        source: Source { current: source.0.to_owned(), available: source.1.to_owned() },
        clocks: (0..CLOCKS.len()).map(reading).collect(),
        system_call_ns: vec![110.0; 3],
        offsets,
        host: HostWindow { before: HostReading::default(), elapsed_ns: 10_000_000_000, ..HostWindow::default() },
        is_optimised: true,
        ..ClockReadings::default()
    }
}

fn info(readings: &ClockReadings) -> ClockInfo {
    build(&RunData::default(), readings).parts.get().unwrap()
}

fn advice(readings: &ClockReadings) -> Vec<(String, String)> {
    let record = build(&RunData::default(), readings);
    record.hints().map(|advice| (advice.id.clone(), advice.severity.clone())).collect()
}

const ALIKE: [(u64, u64); 1] = [(100, 100)];

#[test]
fn a_quick_clock_is_read_in_user_space_and_needs_no_advice() {
    let of = readings(25.0, ("tsc", "tsc hpet"), vec![exchanged(|_| 5, &ALIKE)]);
    let record = build(&RunData::default(), &of);
    assert_eq!(record.run.verdict, "complete");
    assert_eq!(record.integrity.iter().filter(|one| one.ok == Truth::Holds).count(), 2, "{:?}", record.integrity);
    let metric = |key: &str| find(&record.metrics, key).unwrap_or_else(|| panic!("no {key}"));
    assert_eq!(metric("clock_read_ns_p50").value.value(), Some(25.0));
    // Student's t for three values: 4.303 times 1 / sqrt(3).
    let (low, high) = metric("clock_read_ns_p50").interval.unwrap();
    assert!((low - 22.516).abs() < 0.001 && (high - 27.484).abs() < 0.001, "{low} {high}");
    // Two reads of 25 ns in 1 us.
    assert_eq!(metric("row_of_1_us.longer_pct").value.value(), Some(5.0));
    assert_eq!(metric("below_1us_pct").value.value(), Some(87.5));
    assert_eq!(info(&of).path, "user space");
    // Within the bound nothing is claimed.
    assert_eq!(
        (metric("clocks_apart_ns_min").value.value(), metric("clocks_apart_ns_max").value.value()),
        (Some(0.0), Some(105.0))
    );
    assert_eq!(advice(&of), [("C4".to_owned(), "note".to_owned())]);
}

#[test]
fn a_slow_source_is_named_with_the_one_that_is_there_and_an_unclear_one_is_called_so() {
    let slow = readings(1200.0, ("hpet", "tsc hpet acpi_pm"), Vec::new());
    assert_eq!(info(&slow).path, "system call or trap");
    let found = advice(&slow);
    assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["C3", "C4"]);
    assert!(found.iter().all(|(_, severity)| severity == "high"));
    // Without another source there is nothing to switch to.
    assert_eq!(advice(&readings(1200.0, ("hpet", "hpet"), Vec::new())).len(), 1);
    let unclear = readings(77.0, ("xen", "xen tsc"), Vec::new());
    assert_eq!(info(&unclear).path, "not clear");
    assert_eq!(info(&unclear).clocks_apart_ns_max.reason(), Some("this process may use one CPU"));
}

#[test]
fn cpus_that_are_apart_are_said_to_be_so_by_what_is_proved() {
    let alike = Offset { to: 2, ..exchanged(|_| 0, &ALIKE) };
    let of = readings(25.0, ("tsc", "tsc hpet"), vec![exchanged(|_| -800, &ALIKE), alike]);
    let found = info(&of);
    // CPU 1 may be 900 behind CPU 0, and CPU 2 100 ahead of it.
    assert_eq!((found.clocks_apart_ns_min.value(), found.clocks_apart_ns_max.value()), (Some(700.0), Some(1000.0)));
    assert_eq!((found.pairs[0].offset_ns.value(), found.pairs[0].bound_ns.value()), (Some(-800.0), Some(100.0)));
    assert_eq!(advice(&of)[0], ("C2".to_owned(), "high".to_owned()));
    // One that the kernel did not let us measure, and one whose clock moved, have a reason and no figure.
    let of = readings(
        25.0,
        ("tsc", "tsc"),
        vec![Offset::between((0, 1)), exchanged(|n| 1000 * n as i64, &[(9, 9), (9, 9)])],
    );
    let found = info(&of);
    assert!(found.pairs.iter().all(|row| row.offset_ns.value().is_none() && row.apart_ns_max.value().is_none()));
    let record = build(&RunData::default(), &of);
    assert!(record.doubts().any(|(_, text)| text.starts_with("The clocks of 1 of 2 pairs")), "{:?}", record.advice);
}

#[test]
fn time_that_goes_back_is_the_first_finding() {
    let mut of = readings(25.0, ("tsc", "tsc"), Vec::new());
    of.clocks[1].walk = walked(&[100, 50, 20, 200]);
    assert_eq!(advice(&of)[0], ("C1".to_owned(), "note".to_owned()));
    // Once weighs more than twice where nobody can have set the time.
    of.clocks[0].walk = walked(&[100, 50, 200]);
    assert_eq!(advice(&of)[0], ("C1".to_owned(), "high".to_owned()));
    assert_eq!(info(&of).backwards_count, 3);
}

#[test]
fn its_lines_are_those_of_pg_test_timing() {
    let text = page::of_pg_test_timing(&info(&readings(25.0, ("tsc", "tsc"), Vec::new())));
    let wanted = "\
Testing timing overhead for 1 second.
Per loop time including overhead: 250000.00 ns
Histogram of timing durations:
  < us   % of total      count
     1     87.50000          7
     2      0.00000          0
     4     12.50000          1
";
    assert_eq!(text, wanted);
}

#[test]
fn many_cpus_are_compared_with_the_first_and_few_with_each_other() {
    let pairs = |count: u32| {
        let placement = Placement { cpus: (0..count).collect(), cores: None };
        Aim { time: Duration::from_secs(1), source: Source::default(), placement }.pairs()
    };
    assert_eq!(pairs(1), []);
    assert_eq!(pairs(3), [(0, 1), (0, 2), (1, 2)]);
    assert_eq!(pairs(9).len(), 8);
    assert!(pairs(9).iter().all(|(from, _)| *from == 0));
}

/// A CPU whose clock is ahead of the first one's by so many ns at least and at most.
fn ahead(to: u32, low_ns: i64, high_ns: i64) -> Offset {
    Offset { low_ns, high_ns, trip_ns: 200, exchanges: 1, ..Offset::between((0, to)) }
}

#[test]
fn cpus_that_were_not_compared_are_apart_by_what_follows_from_the_first() {
    let apart = |offsets: &[Offset]| {
        let found = info(&readings(25.0, ("tsc", "tsc"), offsets.to_vec()));
        (found.clocks_apart_ns_min.value(), found.clocks_apart_ns_max.value())
    };
    let three = [ahead(1, -60, 40), ahead(2, 30, 90), ahead(3, -400, -300)];
    assert_eq!(apart(&three[..1]), (Some(0.0), Some(60.0)));
    // CPU 2 may be 90 ahead and CPU 1 be 60 behind; neither is proved to be apart from the other by more than 2 is from the first.
    assert_eq!(apart(&three[..2]), (Some(30.0), Some(150.0)));
    assert_eq!(apart(&three), (Some(330.0), Some(490.0)));
    // Where those two were compared too, their own bound counts.
    let direct = Offset { from: 1, ..ahead(2, 50, 70) };
    assert_eq!(apart(&[three[0].clone(), three[1].clone(), direct]), (Some(50.0), Some(90.0)));
}

#[test]
fn a_pair_without_a_bound_leaves_the_largest_distance_open_and_the_smallest_proved() {
    for (open, why) in [(Offset::between((0, 2)), "no exchange"), (ahead(2, 9, 8), "a clock moved")] {
        let found = info(&readings(25.0, ("tsc", "tsc"), vec![ahead(1, 30, 40), open]));
        assert_eq!(found.clocks_apart_ns_min.value(), Some(30.0));
        let reason = found.clocks_apart_ns_max.reason().unwrap();
        assert!(reason.starts_with(why), "{reason}");
    }
}

#[test]
fn a_thread_that_gets_no_cpu_holds_nobody() {
    let cpu = allowed()[0];
    let answers_late: fn(&reading::Meeting) = |_| std::thread::sleep(Duration::from_secs(2));
    let waited = |time: Duration, stop: &Stop| {
        let (begun, mut offset) = (Instant::now(), Offset::between((cpu, cpu)));
        offset.meet(answers_late, time, stop).unwrap();
        assert_eq!(offset.exchanges, 0);
        begun.elapsed()
    };
    let time = Duration::from_millis(30);
    let took = waited(time, &Stop::new());
    assert!(took >= time && took < Duration::from_secs(1), "{took:?}");
    let stop = Stop::new();
    stop.request();
    assert!(waited(Duration::from_secs(60), &stop) < Duration::from_secs(1));
}

#[test]
fn two_cpus_exchange_and_one_that_takes_no_thread_ends_it_at_once() {
    let (first, last) = (allowed()[0], *allowed().last().unwrap());
    let mut offset = Offset::between((first, last));
    // On a busy host the two may not come to their turn in one try.
    let exchanged = (0..50).any(|_| {
        offset.exchange(Duration::from_millis(20), &Stop::new()).unwrap();
        offset.exchanges > 0
    });
    assert!(exchanged && offset.trip_ns < u64::MAX);
    let begun = Instant::now();
    Offset::between((first, u32::MAX)).exchange(Duration::from_secs(60), &Stop::new()).unwrap();
    assert!(begun.elapsed() < Duration::from_secs(10));
}

#[test]
fn many_pairs_are_compared_in_fewer_rounds() {
    let exchanges = |seconds, pairs| {
        let aim = Aim { time: Duration::from_secs(seconds), source: Source::default(), placement: Placement::here() };
        aim.exchanges(pairs, 20)
    };
    assert_eq!([0, 1, 28, 511].map(|pairs| exchanges(10, pairs)), [0, 20, 5 * 28, 511]);
    assert_eq!(exchanges(600, 511), 17 * 511);
}

#[test]
fn a_source_that_the_kernel_does_not_tell_is_unknown() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("available_clocksource"), "tsc hpet \n").unwrap();
    let source =
        |current: &str, available: &str| Source { current: current.to_owned(), available: available.to_owned() };
    assert_eq!(Source::at(dir.path()), source("unknown", "tsc hpet"));
    assert_eq!(Source::at(&dir.path().join("none")), source("unknown", "unknown"));
}

/// Rule by rule.
const CASES: &[Case] = &[
    ("C1", |fires| {
        let mut of = readings(25.0, ("tsc", "tsc"), Vec::new());
        of.clocks[1].walk = walked(&[100, if fires { 99 } else { 100 }]);
        build(&RunData::default(), &of)
    }),
    ("C2", |fires| build(&RunData::default(), &readings(25.0, ("tsc", "tsc"), vec![ahead(1, i64::from(fires), 90)]))),
    // Nine tenths of 110 ns.
    ("C3", |fires| {
        build(&RunData::default(), &readings(if fires { 99.1 } else { 98.9 }, ("hpet", "tsc hpet"), Vec::new()))
    }),
    ("C4", |fires| {
        let mut of = readings(25.0, ("tsc", "tsc"), Vec::new());
        of.clocks[0].walk =
            Walk { cpu_ns: if fires { 800 } else { 799 }, ..walked(&[0, 20, 40, 60, 80, 100, 120, 140, 160]) };
        build(&RunData::default(), &of)
    }),
    ("C5", |fires| {
        build(
            &RunData::default(),
            &ClockReadings { is_optimised: !fires, ..readings(25.0, ("tsc", "tsc"), Vec::new()) },
        )
    }),
    ("C6", |fires| {
        build(&RunData::default(), &readings(25.0, ("tsc", "tsc"), vec![ahead(1, if fires { 6 } else { 5 }, 5)]))
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}
