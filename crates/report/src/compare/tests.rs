mod gates;
mod power;

use super::*;
use crate::kinds;
use assay_measure::record::metric::stem;
use assay_measure::record::{LoadRow, Series};
use assay_measure::snapshot::SettingLine;

/// A comparison as a user reads it.
fn said(comparison: &Comparison) -> String {
    render(comparison, false)
}

/// The same readings as of another run.
fn again(record: &Record) -> Record {
    let mut again = record.clone();
    again.run.id = "b0b0b0b0".to_owned();
    again.run.started = "2026-01-02T03:04:05Z".to_owned();
    again
}

/// The frozen run with every rate and latency as they would be at `speed` times its pace.
fn paced(speed: f64) -> Record {
    let mut record = assay_awr::record::build(&assay_testkit::fixtures::run());
    set_pace(&mut record, speed);
    record
}

/// Makes a record's figures those of a run at `speed` times its pace, with the same work per operation.
pub(super) fn set_pace(record: &mut Record, speed: f64) {
    for row in &mut record.instance.load_profile {
        row.per_s = row.per_s.scaled(speed);
        row.total = row.total.scaled(speed);
        if row.name == "DB CPU(s)" {
            row.per_op = row.per_op.scaled(1.0 / speed);
        }
    }
    for event in &mut record.instance.events {
        for figure in [&mut event.us_avg, &mut event.us_p50, &mut event.us_p99] {
            *figure = figure.scaled(1.0 / speed);
        }
    }
    for (name, column) in &mut record.series.metrics {
        let factor = if stem(name).ends_with("_us") { 1.0 / speed } else { speed };
        column.iter_mut().for_each(|figure| *figure = figure.scaled(factor));
    }
    kinds::attach_metrics(record);
}

/// Gives the record a series of so many seconds, whose rates follow `shape` (mean about 1) and latencies its inverse.
pub(super) fn set_seconds(record: &mut Record, shape: &[f64]) {
    let of = |name: &str| record.series.metrics.get(name).and_then(|column| column.get(5).cloned());
    let names: Vec<String> = record.series.metrics.keys().cloned().collect();
    let metrics = names.iter().map(|name| {
        let level = of(name).and_then(|figure| figure.value()).unwrap_or(0.0);
        let at = |factor: &f64| {
            if stem(name).ends_with("_us") { Figure::decimal(level / factor) } else { Figure::decimal(level * factor) }
        };
        (name.clone(), shape.iter().map(at).collect())
    });
    record.series = Series {
        step_s: Figure::Decimal(1.0),
        t_s: (1..=shape.len()).map(|second| second as f64).collect(),
        in_window: vec![true; shape.len()],
        metrics: metrics.collect(),
        heat: Vec::new(),
    };
    let pace = assay_measure::statistics::mean(shape);
    for row in &mut record.instance.load_profile {
        row.per_s = row.per_s.scaled(pace);
    }
    kinds::attach_metrics(record);
}

fn compared(sides: &[&[&Record]]) -> Comparison {
    let groups: Vec<RunGroup<'_>> = sides
        .iter()
        .enumerate()
        .map(|(i, records)| RunGroup { name: format!("run-{i}"), records: records.to_vec() })
        .collect();
    of(&groups, &Options::default())
}

fn against<'a>(comparison: &'a Comparison, key: &str) -> &'a Against {
    &comparison.row(key).unwrap_or_else(|| panic!("no {key}")).against[0]
}

/// A shape that goes up and down a little without drift.
fn waves(seconds: usize, height: f64) -> Vec<f64> {
    let at = |second: usize| 1.0 + height * ((second * 7919 % 101) as f64 / 50.0 - 1.0);
    (0..seconds).map(at).collect()
}

#[test]
fn a_run_that_another_repeats_exactly_shows_no_difference() {
    let flat = paced(1.0);
    let mut lively = paced(1.0);
    set_seconds(&mut lively, &waves(400, 0.2));
    for record in [&flat, &lively] {
        let comparison = compared(&[&[record], &[&again(record)]]);
        assert!(!comparison.pairs[0].forbids_faster);
        let mut judged = 0;
        for row in comparison.rows.iter().filter(|row| row.is_primary) {
            let outcome = &row.against[0];
            assert!(!outcome.verdict.is_shown(), "{}: {outcome:?}", row.key);
            if outcome.method == "within-run" {
                assert_eq!(outcome.ratio.value(), Some(1.0), "{}", row.key);
                judged += 1;
            }
        }
        assert!(judged >= 5, "{judged}");
        let text = comparison.conclusion.join(" ");
        assert!(text.contains("leaves open): Operations "), "{text}");
    }
}

#[test]
fn swapping_the_sides_gives_the_reciprocal_and_the_mirrored_verdict() {
    let (mut slow, mut fast) = (paced(1.0), paced(1.1));
    set_seconds(&mut slow, &waves(600, 0.05));
    set_seconds(&mut fast, &waves(600, 0.07));
    let (there, back) = (compared(&[&[&slow], &[&fast]]), compared(&[&[&fast], &[&slow]]));
    for row in there.rows.iter().filter(|row| row.is_primary) {
        let (ahead, behind) = (&row.against[0], against(&back, &row.key));
        let inverse = |figure: &Figure| figure.value().map(|ratio| 1.0 / ratio);
        for (one, other) in [
            (ahead.ratio.value(), inverse(&behind.ratio)),
            (ahead.low_ratio.value(), inverse(&behind.high_ratio)),
            (ahead.high_ratio.value(), inverse(&behind.low_ratio)),
            (ahead.p.value(), behind.p.value()),
            (ahead.detectable_95_pct.value(), behind.detectable_95_pct.value()),
        ] {
            match (one, other) {
                (Some(one), Some(other)) => assert!((one - other).abs() < 1e-9, "{}", row.key),
                _ => assert_eq!(one, other, "{}", row.key),
            }
        }
    }
    assert_eq!(against(&there, "ops_per_s").verdict, DifferenceVerdict::Better);
    assert_eq!(against(&back, "ops_per_s").verdict, DifferenceVerdict::Worse);
    assert_eq!(against(&there, "read_us_p99").verdict, DifferenceVerdict::Better);
    assert!(against(&there, "ops_per_s").sentence.starts_with("B does 10.0 % more per second than A (1.1"));
    assert!(against(&back, "ops_per_s").sentence.starts_with("B does 9.1 % less per second than A (0.909"));
    assert!(against(&there, "read_us_p99").sentence.contains(" % less time than A (0.9"));
}

#[test]
fn three_repeats_on_both_sides_are_compared_run_by_run() {
    let runs = |paces: &[f64]| -> Vec<Record> { paces.iter().map(|pace| paced(*pace)).collect() };
    let (a, b) = (runs(&[1.0, 1.01, 0.99, 1.0]), runs(&[1.2, 1.22, 1.19]));
    let comparison = compared(&[&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>()]);
    let ops = against(&comparison, "ops_per_s");
    assert_eq!((ops.method.as_str(), ops.verdict), ("repeats", DifferenceVerdict::Better));
    assert_eq!(ops.basis, "4 and 3 repeats");
    let means = |paces: &[f64]| paces.iter().map(|pace| pace.ln()).sum::<f64>() / paces.len() as f64;
    let wanted = (means(&[1.2, 1.22, 1.19]) - means(&[1.0, 1.01, 0.99, 1.0])).exp();
    assert!((ops.ratio.value().unwrap() - wanted).abs() < 1e-12);
    assert_eq!(comparison.pairs[0].method, "repeats");
    assert!(ops.p_holm.value() >= ops.p.value());
    // Two repeats say nothing of what differs from run to run.
    let pair: Vec<&Record> = b.iter().take(2).collect();
    let few = compared(&[&a.iter().collect::<Vec<_>>(), &pair]);
    assert_eq!(against(&few, "ops_per_s").method, "within-run");
    let how = &few.pairs[0].method_text;
    assert!(how.contains("run-to-run variance unknown"), "{how}");
}

#[test]
fn advice_r24_two_different_tests_are_never_called_faster() {
    let (mut a, mut b) = (paced(1.0), paced(2.0));
    let setting = |name: &str, value: &str| SettingLine {
        name: name.to_owned(),
        value: value.to_owned(),
        origin: "cli".to_owned(),
    };
    a.plan.settings.push(setting("READ_MODE", "single"));
    b.plan.settings.push(setting("READ_MODE", "batched"));
    let comparison = compared(&[&[&a], &[&b]]);
    assert!(comparison.pairs[0].forbids_faster);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::Higher);
    let text = said(&comparison);
    assert!(text.contains("- B against A: not comparable: prefetch (READ_MODE) single and batched"), "{text}");
    for word in ["more per second", "less time", " better", " worse"] {
        assert!(!text.contains(word), "{word}: {text}");
    }
    let gate = Gate::parse("ops_per_s < -5%").unwrap();
    assert_eq!(gate.judge(&comparison)[0].outcome, GateOutcome::NotJudged);
}

#[test]
fn a_cache_varied_on_purpose_takes_its_reads_along_and_nothing_else() {
    let (mut a, mut b) = (paced(1.0), paced(1.0));
    for (record, value) in [(&mut a, "64"), (&mut b, "128")] {
        record.plan.settings.retain(|line| line.name != "CACHE_MB");
        record.plan.settings.push(SettingLine {
            name: "CACHE_MB".to_owned(),
            value: value.to_owned(),
            origin: "cli".to_owned(),
        });
    }
    b.checks.cache_blocks = b.checks.cache_blocks.scaled(2.0);
    for row in &mut b.instance.load_profile {
        if ["Physical read (blocks)", "Redo size (bytes)"].contains(&row.name.as_str()) {
            row.per_op = row.per_op.scaled(0.5);
        }
    }
    let options = Options { allow: vec!["CACHE_MB".to_owned()], ..Options::default() };
    let groups = [&a, &b].map(|record| RunGroup { name: "x".to_owned(), records: vec![record] });
    let comparison = of(&groups, &options);
    let pair = &comparison.pairs[0];
    let having = |finding: Finding| -> Vec<&str> {
        let checks = pair.checks.iter().filter(|check| check.finding == finding);
        checks.map(|check| check.what.as_str()).collect()
    };
    assert_eq!(
        having(Finding::Varied),
        ["CACHE_MB", "cache : active data", "work: Physical read (blocks) per operation"]
    );
    // The redo of an operation does not follow from the cache.
    assert_eq!(having(Finding::Forbids), ["work: Redo size (bytes) per operation"]);
    assert_eq!(known(&groups, "cache_mb"), Ok(()));
    assert!(known(&groups, "CACHE_MBB").is_err_and(|why| why.contains("CACHE_MB?")));
}

#[test]
fn more_work_per_operation_is_another_test() {
    let (mut a, mut b) = (paced(1.0), paced(1.0));
    for record in [&mut a, &mut b] {
        record.driver.ops.iter_mut().filter(|op| op.kind == "update").for_each(|op| op.count = 100_000);
    }
    let row = b.instance.load_profile.iter_mut().find(|row| row.name == "Redo size (bytes)").unwrap();
    row.per_op = row.per_op.scaled(1.1);
    let comparison = compared(&[&[&a], &[&b]]);
    let check = |what: &str| comparison.pairs[0].checks.iter().find(|check| check.what == what).unwrap();
    assert_eq!(check("work: Redo size (bytes) per operation").finding, Finding::Forbids);
    assert_eq!(check("work: Block changes per operation").finding, Finding::Same);
    assert!(comparison.pairs[0].forbids_faster);
}

/// Published: 73 and 126 updates among 798 and 1,265 operations of the same test.
#[test]
fn work_that_differs_by_what_was_drawn_is_the_same_test() {
    let with = |updates: u64, changes: f64| {
        let mut record = paced(1.0);
        for row in &mut record.instance.load_profile {
            if ["Block changes", "Redo size (bytes)"].contains(&row.name.as_str()) {
                row.per_op = Figure::decimal(changes);
            }
        }
        record.driver.ops.iter_mut().filter(|op| op.kind == "update").for_each(|op| op.count = updates);
        record
    };
    let finding = |a: &Record, b: &Record| {
        let comparison = compared(&[&[a], &[b]]);
        let mut checks = comparison.pairs[0].checks.iter();
        checks.find(|check| check.what == "work: Block changes per operation").map(|check| check.finding)
    };
    assert_eq!(finding(&with(73, 12.2093), &with(126, 13.219)), Some(Finding::Same));
    assert_eq!(finding(&with(73_000, 12.2093), &with(126_000, 13.219)), Some(Finding::Forbids));
}

/// A test that only reads has the few transactions of its snapshots.
#[test]
fn work_per_transaction_is_not_judged_where_there_are_hardly_any() {
    let of = |per_s: f64, per_tx: f64| published(&[("Logical read (blocks)", per_tx)], per_s / per_tx, 460.0);
    let comparison = compared(&[&[&of(4e6, 28_571_428.6)], &[&of(6e6, 50e6)]]);
    let pair = &comparison.pairs[0];
    assert!(!pair.forbids_faster, "{:?}", pair.checks);
    let what = "work per transaction, not judged at 0.12 transactions/s";
    assert!(
        pair.checks.iter().any(|check| check.what == what && check.finding == Finding::Unknown),
        "{:?}",
        pair.checks
    );
    let busy = compared(&[&[&of(4e6, 28_571.0)], &[&of(6e6, 50_000.0)]]);
    assert!(busy.pairs[0].forbids_faster);
}

/// Ten whole seconds that a tool printed of each of two runs.
#[test]
fn two_imports_with_ten_seconds_each_get_an_interval() {
    let with = |pace: f64| {
        let mut record = paced(pace);
        set_seconds(&mut record, &waves(10, 0.05));
        record.import = Some(assay_measure::record::ImportInfo::default());
        let ops = record.series.metrics.remove("ops_count_per_s").expect("by the second");
        record.series.metrics.insert("commits_count_per_s".to_owned(), ops);
        record
    };
    let comparison = compared(&[&[&with(1.0)], &[&with(0.7)]]);
    let ops = against(&comparison, "ops_per_s");
    assert!(ops.low_ratio.value().is_some(), "{ops:?}");
    assert_eq!(ops.verdict, DifferenceVerdict::Worse);
}

/// The same as iperf3 prints it, read by the importer.
#[test]
fn two_texts_of_iperf3_with_ten_seconds_each_get_an_interval() {
    let read = |mbits: u32| {
        let mut text =
            "Connecting to host 127.0.0.1, port 5201\n[ ID] Interval           Transfer     Bitrate\n".to_owned();
        let mut row = |from: u32, to: u32, mbits: u32, end: &str| {
            let bytes = mbits * 125 * (to - from) / 1000;
            text += &format!("[  5]   {from}.00-{to}.00  sec  {bytes} MBytes  {mbits} Mbits/sec  {end}\n");
        };
        (0..10).for_each(|s| row(s, s + 1, mbits - s % 3, ""));
        row(0, 10, mbits - 1, "receiver");
        let source = assay_import::Source { path: "iperf3.txt".to_owned(), text };
        assay_import::import(&[source]).expect("iperf3's text")
    };
    let comparison = compared(&[&[&read(1000)], &[&read(700)]]);
    let rate = comparison.rows.iter().find(|row| row.is_primary).expect("a result");
    assert!(rate.against[0].low_ratio.value().is_some(), "{rate:?}");
    assert_eq!(rate.against[0].verdict, DifferenceVerdict::Worse);
}

#[test]
fn runs_of_different_length_are_compared_by_their_rates() {
    let (a, mut b) = (paced(1.0), paced(1.0));
    b.interval.elapsed_s = Figure::decimal(40.0);
    for row in &mut b.instance.load_profile {
        row.total = row.total.scaled(2.0);
    }
    kinds::attach_metrics(&mut b);
    let comparison = compared(&[&[&a], &[&b]]);
    let row = comparison.row("ops_per_s").unwrap();
    assert_eq!(row.cells[1].total.value(), row.cells[0].total.scaled(2.0).value());
    assert_eq!(row.against[0].ratio.value(), Some(1.0));
    assert!(!comparison.pairs[0].forbids_faster);
    let checks = &comparison.pairs[0].checks;
    assert!(checks.iter().any(|c| c.what.starts_with("measured window") && c.finding == Finding::Tolerable));
}

/// A run on whose host others used half of the CPU time.
fn disturbed(record: &Record) -> Record {
    let mut record = again(record);
    let elapsed = record.interval.elapsed_s.value().expect("a window");
    record.os.cpus_count = Figure::Count(2);
    record.os.process.cpu_s = Figure::decimal(0.6 * elapsed);
    let busy = Figure::decimal(80.0);
    record.os.cpu_pct.insert("busy".to_owned(), busy);
    record
}

#[test]
fn a_difference_that_other_work_explains_is_not_measurable_and_a_larger_one_is_told() {
    let with = |pace: f64| {
        let mut record = paced(pace);
        set_seconds(&mut record, &waves(600, 0.05));
        record
    };
    let (base, slower, slowest) = (with(1.0), disturbed(&with(0.8)), disturbed(&with(0.3)));
    let comparison = compared(&[&[&base], &[&slower]]);
    let ops = against(&comparison, "ops_per_s");
    assert_eq!(ops.verdict, DifferenceVerdict::NotMeasurable, "{ops:?}");
    assert!(ops.is_disturbed);
    let text = said(&comparison);
    assert!(text.contains("On the host of B (b0b0b0b0) other processes used 50 %"), "{text}");
    assert!(text.contains("Operations: lower, 95 % interval 0.7"), "{text}");
    assert!(text.contains(" x; other work may have part in it."), "{text}");
    assert!(!text.contains("less per second"), "{text}");
    let gate = Gate::parse("ops_per_s < -5%").unwrap();
    let judged = &gate.judge(&comparison)[0];
    assert_eq!(judged.outcome, GateOutcome::Unsure);
    assert!(judged.line.contains("other work on the host may be the reason"), "{}", judged.line);
    // The faster side was the disturbed one: that makes the difference larger, not smaller.
    let comparison = compared(&[&[&slower], &[&base]]);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::NotMeasurable);
    let faster = disturbed(&with(1.2));
    let comparison = compared(&[&[&base], &[&faster]]);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::Better);
    // Half of the CPUs cannot have cost seven tenths of the pace; a tail of latencies they can.
    let comparison = compared(&[&[&base], &[&slowest]]);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::Worse);
    let tail = against(&comparison, "read_us_p99");
    assert_eq!(tail.verdict, DifferenceVerdict::NotMeasurable);
    // Nothing shown is no proof of nothing where others were at work.
    let same = compared(&[&[&base], &[&disturbed(&base)]]);
    assert_eq!(against(&same, "ops_per_s").verdict, DifferenceVerdict::NotMeasurable);
}

#[test]
fn repeats_on_equally_busy_hosts_are_compared_by_their_scatter() {
    let runs = |paces: &[f64]| -> Vec<Record> { paces.iter().map(|pace| disturbed(&paced(*pace))).collect() };
    let (a, b) = (runs(&[1.0, 1.01, 0.99, 1.0]), runs(&[0.8, 0.81, 0.79]));
    let sides = [&a, &b].map(|side| side.iter().collect::<Vec<_>>());
    let comparison = compared(&[&sides[0], &sides[1]]);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::Worse);
    let idle: Vec<Record> = [1.0, 1.01, 0.99].into_iter().map(paced).collect();
    let comparison = compared(&[&idle.iter().collect::<Vec<_>>(), &sides[1]]);
    assert_eq!(against(&comparison, "ops_per_s").verdict, DifferenceVerdict::NotMeasurable);
}

#[test]
fn a_difference_of_the_hosts_is_always_listed() {
    let (mut a, mut b) = (paced(1.0), again(&paced(1.0)));
    for (record, cpus, kernel) in [(&mut a, "2", "6.1"), (&mut b, "1", "6.2")] {
        record.host.facts = vec![
            assay_measure::facts::CPUS.fact(cpus),
            assay_measure::facts::KERNEL.fact(kernel),
            assay_measure::facts::MEMORY_BYTES.fact(1 << 30),
        ];
        let facts = &mut record.plan.engine_facts;
        facts.retain(|fact| fact.name != "device_scheduler");
        facts.push(assay_measure::facts::DISK_SCHEDULER.fact(kernel));
    }
    let comparison = compared(&[&[&a], &[&b]]);
    let pair = &comparison.pairs[0];
    assert!(!pair.forbids_faster);
    for (what, finding) in [
        ("host: cpus_usable", Finding::Tolerable),
        ("host: kernel", Finding::Tolerable),
        ("host: device_scheduler", Finding::Tolerable),
    ] {
        let found = pair.checks.iter().find(|check| check.what == what);
        assert_eq!(found.map(|check| check.finding), Some(finding), "{what}");
    }
    let listed = |what: &str| pair.checks.iter().any(|check| check.what.contains(what));
    assert!(!listed("memory_bytes") && !listed("device_path"));
    let text = said(&comparison);
    assert!(text.contains("The hosts of A and B differ"), "{text}");
    assert!(text.contains("cpus_usable 2 and 1; kernel 6.1 and 6.2"), "{text}");
    let options = Options { allow: vec!["cpus_usable".to_owned()], ..Options::default() };
    let groups = [&a, &b].map(|record| RunGroup { name: "x".to_owned(), records: vec![record] });
    let allowed = of(&groups, &options);
    let check = allowed.pairs[0].checks.iter().find(|check| check.what == "host: cpus_usable");
    assert_eq!(check.map(|check| check.finding), Some(Finding::Varied));
}

/// Every sentence about a figure names the ends of the interval that stands in its row, and no other.
#[test]
fn sentences_agree_with_the_interval_beside_them() {
    for (height, pace) in [(0.05, 1.0), (0.3, 1.1), (0.9, 1.02), (0.05, 1.5)] {
        let (mut a, mut b) = (paced(1.0), paced(pace));
        set_seconds(&mut a, &waves(40, height));
        set_seconds(&mut b, &waves(33, height));
        let comparison = compared(&[&[&a], &[&b]]);
        let text = comparison.conclusion.join("\n");
        let mut seen = 0;
        for row in comparison.rows.iter().filter(|row| row.is_primary) {
            let against = &row.against[0];
            let ends = (against.low_ratio.value(), against.high_ratio.value());
            let (Some(low), Some(high)) = ends else {
                continue;
            };
            if (low - 1.0).abs().max((high - 1.0).abs()) < 1e-9 {
                assert!(text.contains(&format!("{} no value varied", row.name)));
                continue;
            }
            seen += 1;
            let change = |ratio: f64| format!("{:+.1}", 100.0 * (ratio - 1.0));
            let wanted = if against.verdict.is_shown() {
                format!("95 % interval {low:.3} to {high:.3}")
            } else {
                format!("{} {} to {} %", row.name, change(low), change(high))
            };
            assert!(text.contains(&wanted), "{wanted}: {text}");
            // What such runs show surely is never less than half of what the interval leaves open.
            let shows = 1.0 + against.detectable_95_pct.value().unwrap() / 100.0;
            assert!(shows >= (high / low).sqrt(), "{shows}: {against:?}");
        }
        assert!(seen >= 5, "{seen}");
        assert!(!text.contains("doubling"), "{text}");
    }
}

#[test]
fn a_run_compared_with_itself_is_told_so_and_gets_no_verdict() {
    let (a, b) = (paced(1.0), paced(1.1));
    let same = compared(&[&[&a], &[&a]]);
    assert_eq!(same.conclusion, ["B and A are the same run: there is nothing to compare, so there is no verdict."]);
    assert!(same.rows.iter().all(|row| row.against[0].verdict == DifferenceVerdict::Na));
    // An import of the same text has another id.
    let mut renamed = a.clone();
    renamed.run.id = "another".to_owned();
    assert_eq!(compared(&[&[&a], &[&renamed]]).conclusion, same.conclusion);
    let some = compared(&[&[&a], &[&b, &a]]);
    assert!(some.conclusion[0].contains("are not independent"), "{some:?}");
}

#[test]
fn what_has_no_scatter_gets_a_ratio_and_no_more() {
    let (mut a, mut b) = (paced(1.0), paced(1.3));
    set_seconds(&mut a, &waves(7, 0.1));
    set_seconds(&mut b, &waves(7, 0.1));
    let short = compared(&[&[&a], &[&b]]);
    let ops = against(&short, "ops_per_s");
    assert_eq!(ops.verdict, DifferenceVerdict::TooShort);
    assert_eq!(ops.sentence, "x 1.300; too short to say: the series has 7 whole steps, 10 are needed");
    assert_eq!(ops.p.value(), None);
    a.series = Series::default();
    kinds::attach_metrics(&mut a);
    let single = compared(&[&[&a], &[&b]]);
    let ops = against(&single, "ops_per_s");
    assert_eq!(ops.verdict, DifferenceVerdict::OneValue);
    assert_eq!(ops.sentence, "x 1.300; one value on each side, so the noise is unknown");
}

/// The published pair: one session on bare metal and in a virtual machine of an engineered system.
fn published(per_tx: &[(&str, f64)], tx_per_s: f64, read_us: f64) -> Record {
    let mut record = Record::default();
    for (name, per_tx) in per_tx {
        record.instance.load_profile.push(LoadRow {
            name: (*name).to_owned(),
            unit: "count".to_owned(),
            per_s: Figure::decimal(per_tx * tx_per_s),
            per_tx: Figure::decimal(*per_tx),
            ..LoadRow::default()
        });
    }
    record.instance.load_profile.push(LoadRow {
        name: "Transactions".to_owned(),
        unit: "count".to_owned(),
        per_s: Figure::decimal(tx_per_s),
        ..LoadRow::default()
    });
    record.instance.events.push(assay_measure::record::EventRow {
        name: "cell single block physical read".to_owned(),
        actor: "foreground".to_owned(),
        count: Figure::Count(249_854),
        us_avg: Figure::decimal(read_us),
        ..Default::default()
    });
    kinds::attach_metrics(&mut record);
    record
}

#[test]
fn the_published_pair_did_the_same_work_and_differs_by_latency() {
    let metal = [("Redo size (bytes)", 51_700.6), ("Block changes", 131.9), ("Physical read (blocks)", 64.5)];
    let machine = [("Redo size (bytes)", 51_713.3), ("Block changes", 131.4), ("Physical read (blocks)", 64.2)];
    let (bm, mut vm) = (published(&metal, 32.0, 463.0), published(&machine, 54.1, 257.0));
    vm.instance.events[0].name = "db file sequential read".to_owned();
    kinds::attach_metrics(&mut vm);
    let comparison = compared(&[&[&bm], &[&vm]]);
    let work: Vec<&Check> = comparison.pairs[0].checks.iter().filter(|c| c.what.starts_with("work:")).collect();
    assert_eq!(work.len(), 3);
    for check in work {
        assert_eq!(check.finding, Finding::Same, "{check:?}");
        assert!(check.what.ends_with("per transaction"));
    }
    let tx = against(&comparison, "transactions_per_s");
    assert_eq!(tx.verdict, DifferenceVerdict::OneValue);
    assert!((tx.ratio.value().unwrap() - 1.69).abs() < 0.005);
    // Both names of the event are one figure.
    let waits = against(&comparison, "db_file_sequential_read_us_avg");
    assert!((waits.ratio.value().unwrap() - 257.0 / 463.0).abs() < 1e-12);
    assert!(!comparison.pairs[0].forbids_faster);
}

#[test]
fn the_conclusion_comes_first_and_doubts_before_the_long_tables() {
    let (a, mut b) = (paced(1.0), paced(1.1));
    b.run.verdict = "invalid".to_owned();
    b.run.verdict_reasons = vec!["3 operations failed".to_owned()];
    let text = said(&compared(&[&[&a], &[&b]]));
    let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    let order = [
        "A (baseline): run-0",
        "\nConclusion\n",
        "\nDeclared Figures\n",
        "\nConditions, B against A\n",
        "conditions are the same (--same lists them)",
        "the run is invalid: 3 operations failed",
        "\nAdvice\n",
        "\nLoad Profile\n",
    ];
    assert!(order.is_sorted_by_key(|words| at(words)), "{text}");
    assert!(!text.contains("UPDATE_WORK_UNIT"), "{text}");
    let listed = render(&compared(&[&[&a], &[&b]]), true);
    assert!(!listed.contains("--same") && listed.contains("sessions "), "{listed}");
    b.run.verdict = "imported".to_owned();
    b.run.verdict_reasons.clear();
    let text = said(&compared(&[&[&a], &[&b]]));
    assert!(text.contains("the run is imported\n"), "{text}");
}

#[test]
fn three_groups_are_each_compared_with_the_first() {
    let (a, b, c) = (paced(1.0), paced(1.5), paced(0.5));
    let comparison = compared(&[&[&a], &[&b], &[&c]]);
    let row = comparison.row("ops_per_s").unwrap();
    assert_eq!((row.cells.len(), row.against.len()), (3, 2));
    assert_eq!(row.against[1].verdict, DifferenceVerdict::Worse);
    assert_eq!(comparison.pairs[1].candidate, "C");
    assert!(said(&comparison).contains("- C / A -"));
}

#[test]
fn the_noise_of_repeats_says_what_they_could_show() {
    let runs: Vec<Record> = [1.0, 1.02, 0.98, 1.01, 0.99].into_iter().map(paced).collect();
    let repeats = Repeats { wanted_count: 5, ..Repeats::default() }.with_noise(&runs.iter().collect::<Vec<_>>());
    let ops = repeats.noise.iter().find(|row| row.key == "ops_per_s").unwrap();
    assert!((ops.range_pct.value().unwrap() - 4.0).abs() < 0.01);
    assert!((ops.variation_pct.value().unwrap() - 1.5811).abs() < 1e-3);
    let (shows, five, two) = (
        ops.detectable_95_pct.value().unwrap(),
        ops.repeats_for_5_pct_count.value().unwrap(),
        ops.repeats_for_2_pct_count.value().unwrap(),
    );
    assert!(shows > 1.5 && five < two, "{ops:?}");
    // With so many runs it would be shown, with one less it would not.
    let again = |n: f64| shows * (5.0 / n).sqrt();
    assert!(again(two) < 3.0 && again(five) < 6.5, "{ops:?}");
    assert!(repeats.render().contains("A/A Noise Floor"));
    let one = Repeats::default().with_noise(&[&runs[0]]);
    assert!(one.noise.is_empty());
    let written = serde_json::to_string(&Repeats { schema: REPEAT_SCHEMA.to_owned(), ..repeats.clone() }).unwrap();
    assert_eq!(Repeats::read(&written).unwrap().noise, repeats.noise);
    assert!(Repeats::read("{\"schema\": \"assay-repeat/9\"}").unwrap_err().contains("later version"));
}

#[test]
fn a_storage_probe_is_compared_by_its_jobs_and_seconds() {
    let probe = crate::storage_readings::readings();
    let record = assay_storage::record::build(&assay_testkit::fixtures::run(), &probe);
    let comparison = compared(&[&[&record], &[&record]]);
    let checks = &comparison.pairs[0].checks;
    assert!(checks.iter().any(|check| check.what.starts_with("rw") && check.finding == Finding::Same));
    assert!(comparison.rows.iter().any(|row| row.section == "storage"));
    assert!(!comparison.conclusion.is_empty());
}

#[test]
fn a_comparison_reads_as_reviewed() {
    let (mut a, mut b) = (paced(1.0), paced(0.9));
    set_seconds(&mut a, &waves(600, 0.05));
    set_seconds(&mut b, &waves(600, 0.06));
    b.interval.elapsed_s = Figure::decimal(30.0);
    // As much of the host is this test's as before.
    b.os.process.cpu_s = b.os.process.cpu_s.scaled(1.5);
    kinds::attach_metrics(&mut b);
    let comparison = compared(&[&[&a], &[&b]]);
    insta::assert_snapshot!("comparison", said(&comparison));
    let mut short = comparison;
    short.rows.retain(|row| row.is_primary);
    let json = serde_json::to_string_pretty(&short).unwrap();
    let back: Comparison = serde_json::from_str(&json).unwrap();
    assert_eq!(back, short);
    insta::assert_snapshot!("comparison_json", json);
}

#[test]
fn an_imported_published_profile_compares_with_a_run_of_the_same_work() {
    let text = include_str!("../../../../testdata/awr/load-profile-bm.txt");
    let source = assay_import::Source { path: "load-profile-bm.txt".to_owned(), text: text.to_owned() };
    let bm = assay_import::import(&[source]).expect("the published profile reads");
    let machine = [("Redo size (bytes)", 51_713.3), ("Block changes", 131.4), ("Physical read (blocks)", 64.2)];
    let vm = published(&machine, 54.1, 257.0);
    let comparison = compared(&[&[&bm], &[&vm]]);
    let checks = &comparison.pairs[0].checks;
    let work: Vec<&Check> = checks.iter().filter(|c| c.what.starts_with("work:")).collect();
    assert!(work.len() == 3 && work.iter().all(|c| c.finding == Finding::Same), "{work:?}");
    let redo = against(&comparison, "redo_bytes_per_s");
    assert_eq!(redo.verdict, DifferenceVerdict::OneValue);
    assert!((redo.ratio.value().unwrap() - 1.69).abs() < 0.01, "{redo:?}");
}

proptest::proptest! {
    #[test]
    fn no_text_is_a_gate_that_panics(text in ".*") {
        if let Ok(gate) = Gate::parse(&text) {
            proptest::prop_assert!(!gate.key.is_empty());
        }
    }
}

#[test]
fn an_imported_result_is_the_same_test_as_an_own_one_of_its_kind_and_of_no_other() {
    let own = |kind: &str| {
        let mut record = paced(1.0);
        kind.clone_into(&mut record.kind);
        kind.clone_into(&mut record.run.workload);
        record
    };
    let imported = |kind: &str| {
        let mut record = again(&own(kind));
        "imported".clone_into(&mut record.run.workload);
        record.import = Some(assay_measure::record::ImportInfo::default());
        record
    };
    let forbids = |a: &Record, b: &Record| {
        let found = compared(&[&[a], &[b]]);
        let checks = &found.pairs[0].checks;
        let workload = checks.iter().find(|check| check.what == "workload");
        workload.is_some_and(|check| check.finding == Finding::Forbids)
    };
    assert!(!forbids(&own("orders"), &imported("orders")));
    assert!(!forbids(&imported("orders"), &imported("orders")));
    assert!(forbids(&own("orders"), &imported("slob")));
    assert!(forbids(&imported("orders"), &imported("slob")));
}

/// The answer with each title's lines as one.
fn answered(comparison: &Comparison) -> String {
    let text = answer(comparison, crate::answer::Screen { columns: Some(80), ..Default::default() }).text();
    assert!(text.lines().count() <= crate::answer::LINES && !text.contains("(cut here"), "{text}");
    text.replace("\n                  ", " ")
}

#[test]
fn the_answer_begins_with_the_verdict_in_words() {
    let (mut slow, mut fast) = (paced(1.0), again(&paced(10.6)));
    for record in [&mut slow, &mut fast] {
        record.series = Series::default();
        kinds::attach_metrics(record);
    }
    let text = answered(&compared(&[&[&slow], &[&fast]]));
    let first = text.split("\n\n").next().unwrap().replace('\n', " ");
    assert!(first.starts_with("B is 10.6 x faster than A; not judged, because "), "{text}");
    // A rule that finds something on one side alone is told with that side.
    let finding = |id: &str| Advice {
        id: id.to_owned(),
        severity: "high".to_owned(),
        text: format!("Of {id}."),
        ..Advice::default()
    };
    slow.advice = vec![finding("R1")];
    fast.advice = vec![finding("R1"), finding("R2")];
    let text = answered(&compared(&[&[&slow], &[&fast]]));
    let told = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words}: {text}"));
    assert!(told("B, R2: Of R2.") < told("A and B, R1: Of R1."), "{text}");
    fast.run.workload = "other".to_owned();
    let text = answered(&compared(&[&[&slow], &[&fast]]));
    assert!(text.starts_with("B and A did not run the same test, so assay calls neither side faster"), "{text}");
    assert!(!text.contains("x faster"), "{text}");
}

#[test]
fn a_long_tail_of_operations_is_a_declared_figure() {
    let comparison = compared(&[&[&paced(1.0)], &[&again(&paced(1.0))]]);
    let declared = |key: &str| comparison.row(key).is_some_and(|row| row.is_primary);
    assert!(declared("select_us_p99") && !declared("select_us_p50") && !declared("select_response_us_p99"));
}

#[test]
fn an_interval_that_says_nothing_ends_where_it_says_no_more() {
    assert_eq!(super::verdict::left_open(0.5, 3.1e9), "-50.0 to more than +1,000 %");
}
