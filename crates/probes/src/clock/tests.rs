use super::info::ClockInfo;
use super::reading::{CLOCKS, ClockReading, Offset, Walk};
use super::record::build;
use super::*;
use assay_measure::record::Truth;
use assay_measure::record::metric::find;
use assay_measure::snapshot::HostReading;
use assay_testkit::conformance::probe_suite;

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
            ..walked(&[0, 20, 40, 60, 80, 100, 120, 140, 3140])
        },
    };
    ClockReadings {
        source: Source { current: source.0.to_owned(), available: source.1.to_owned() },
        clocks: (0..CLOCKS.len()).map(reading).collect(),
        system_call_ns: vec![110.0; 3],
        offsets,
        host: HostWindow { before: HostReading::default(), elapsed_ns: 10_000_000_000, ..HostWindow::default() },
        ..ClockReadings::default()
    }
}

fn info(readings: &ClockReadings) -> ClockInfo {
    build(&RunData::default(), readings).parts.get().unwrap()
}

fn advice(readings: &ClockReadings) -> Vec<(String, String)> {
    let record = build(&RunData::default(), readings);
    // How the program was built is told among the warnings.
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
    assert_eq!(info(&slow).path, "system call");
    let found = advice(&slow);
    assert_eq!(found.iter().map(|(id, _)| id.as_str()).collect::<Vec<_>>(), ["C3", "C4"]);
    assert!(found.iter().all(|(_, severity)| severity == "high"));
    // Without another source there is nothing to switch to.
    assert_eq!(advice(&readings(1200.0, ("hpet", "hpet"), Vec::new())).len(), 1);
    let unclear = readings(77.0, ("xen", "xen tsc"), Vec::new());
    assert_eq!(info(&unclear).path, "not clear");
    assert_eq!(info(&unclear).clocks_apart_ns_max.reason(), Some("there is one CPU"));
}

#[test]
fn cpus_that_are_apart_are_said_to_be_so_by_what_is_proved() {
    let of = readings(25.0, ("tsc", "tsc hpet"), vec![exchanged(|_| -800, &ALIKE), exchanged(|_| 0, &ALIKE)]);
    let found = info(&of);
    assert_eq!((found.clocks_apart_ns_min.value(), found.clocks_apart_ns_max.value()), (Some(700.0), Some(900.0)));
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
    assert!(record.doubts().any(|(_, text)| text.starts_with("Of 1 of 2 pairs")), "{:?}", record.advice);
}

#[test]
fn time_that_goes_back_is_the_first_finding() {
    let mut of = readings(25.0, ("tsc", "tsc"), Vec::new());
    of.clocks[0].walk = walked(&[100, 50, 200]);
    assert_eq!(advice(&of)[0], ("C1".to_owned(), "high".to_owned()));
    assert_eq!(info(&of).backwards_count, 1);
}

#[test]
fn its_lines_are_those_of_pg_test_timing() {
    let text = page::of_pg_test_timing(&info(&readings(25.0, ("tsc", "tsc"), Vec::new())));
    let wanted = "\
Testing timing overhead for 0.0 seconds.
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
