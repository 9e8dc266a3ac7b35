use super::*;
use assay_measure::histogram::Histogram;
use assay_measure::kind::Kind as _;

fn reading(part: SyncPart, method: SyncMethod, streams: u32, us: u64) -> SyncReading {
    let mut latency = Histogram::new();
    latency.record_n(us * 1000, 20_000);
    SyncReading {
        part,
        method,
        growing: false,
        streams,
        bytes: 4096,
        elapsed_ns: 20_000 * us * 1000 / u64::from(streams),
        latency,
        flushes: if method == SyncMethod::WriteOnly { 0 } else { 20_000 },
        rates: vec![1e6 * f64::from(streams) / us as f64; 5],
        device_write_bytes: Some(20_000 * 4096),
        note: None,
    }
}

/// F0 of 100 us, 40 us without a flush; 32 streams do ten times one.
fn readings() -> SyncReadings {
    let mut steps = vec![
        reading(SyncPart::Flush, SyncMethod::Fdatasync, 1, 100),
        reading(SyncPart::Unsynced, SyncMethod::WriteOnly, 1, 40),
    ];
    for method in [SyncMethod::Fdatasync, SyncMethod::Dsync, SyncMethod::Fsync] {
        steps.push(reading(SyncPart::Curve, method, 1, 100));
        steps.push(reading(SyncPart::Curve, method, 32, 320));
        steps.push(SyncReading { growing: true, ..reading(SyncPart::Curve, method, 1, 110) });
    }
    for method in [SyncMethod::WriteOnly, SyncMethod::OneByOne, SyncMethod::Fdatasync] {
        for streams in [1, 32] {
            steps.push(reading(SyncPart::Safety, method, streams, 100));
        }
    }
    steps.push(reading(SyncPart::Safety, SyncMethod::Group, 1, 100));
    steps.push(SyncReading { flushes: 2000, ..reading(SyncPart::Safety, SyncMethod::Group, 32, 200) });
    SyncReadings {
        path: "dir/assay-sync-1.scratch".to_owned(),
        file_bytes: 64 << 20,
        direct: true,
        write_cache: Some("write back".to_owned()),
        fua: Some(false),
        rotational: Some(false),
        steps,
        elapsed_ns: 60_000_000_000,
        ..SyncReadings::default()
    }
}

fn built(readings: &SyncReadings) -> Record {
    let run = RunData {
        run_id: "0123abcd".to_owned(),
        workload: "sync".to_owned(),
        engine: "probe".to_owned(),
        ..RunData::default()
    };
    build(&run, readings)
}

fn advice<'a>(record: &'a Record, id: &str) -> Option<&'a str> {
    let mut advice = record.advice.iter();
    advice.find(|a| a.id == id).map(|a| a.text.as_str())
}

fn f0(us: u64) -> SyncReadings {
    let mut readings = readings();
    readings.steps[0] = reading(SyncPart::Flush, SyncMethod::Fdatasync, 1, us);
    readings
}

#[test]
fn f0_the_ratio_and_the_limit_of_a_commit_delay_are_derived() {
    let record = built(&readings());
    let info = record.parts.get::<SyncInfo>().unwrap();
    let near = |figure: &Figure, wanted: f64| {
        let value = figure.value().unwrap();
        assert!((value / wanted - 1.0).abs() < 0.01, "{value} for {wanted}");
    };
    near(&info.durable_write_us_p50, 100.0);
    near(&info.sync_over_unsynced_ratio, 2.5);
    near(&info.commit_delay_limit_per_s, 20_000.0);
    assert_eq!(record.run.verdict, "complete");
    assert_eq!((record.schema.as_str(), record.kind.as_str()), ("assay/2", "sync"));
    let group = &info.safety[1];
    near(&group.many_commits_per_flush, 10.0);
    near(&group.many_commits_per_s, 160_000.0);
    near(&group.many_cost_pct, 50.0);
}

#[test]
fn the_commits_that_a_database_needs_are_answered_with_yes_no_or_cannot_be_told() {
    // One session makes 10,000/s, 32 that share flushes 160,000/s.
    let answer = |asked, change: &dyn Fn(&mut SyncReadings), busy: bool| {
        let mut readings = SyncReadings { commits_per_s: Some(asked), ..readings() };
        change(&mut readings);
        let mut record = built(&readings);
        if busy {
            record.os.cpu_pct.insert("busy".to_owned(), 90.0.into());
            record.os.cpus_count = 2.into();
            record.os.process.cpu_s = 1.0.into();
            record.interval.elapsed_s = 60.0.into();
        }
        let rows = KIND.headline(&record).rows;
        rows.iter().find(|row| row.title == "Asked").expect("it was asked").otherwise.clone()
    };
    let plain = |_: &mut SyncReadings| ();
    assert!(answer(5000, &plain, false).starts_with("5,000 commits/s: yes: one session makes 10,000/s"));
    let shared = answer(20_000, &plain, true);
    assert!(
        shared.contains("yes: one session makes 10,000/s") && shared.contains("32 sessions together make 160,000/s")
    );
    let no = answer(200_000, &plain, false);
    let both =
        "one session makes 10,000/s (10,000 to 10,000), 32 sessions together make 160,000/s (160,000 to 160,000)";
    assert_eq!(no, format!("200,000 commits/s: no: {both}."));
    let busy = answer(200_000, &plain, true);
    assert!(busy.contains("cannot be told") && busy.contains("other processes used"), "{busy}");
    let lumpy = |readings: &mut SyncReadings| {
        let last = readings.steps.last_mut().expect("shared flushes");
        last.rates = vec![100_000.0, 200_000.0, 160_000.0];
    };
    assert!(answer(170_000, &lumpy, false).contains("cannot be told"));
    // One session that is faster than many.
    let alone = |readings: &mut SyncReadings| {
        let group = readings.steps.iter_mut().rev().filter(|step| step.method == SyncMethod::Group);
        for (step, rates) in group.zip([[5000.0, 6000.0, 7000.0], [9000.0, 10_000.0, 11_000.0]]) {
            step.rates = rates.to_vec();
        }
    };
    assert!(answer(10_000, &alone, false).contains("cannot be told"), "one session may make it");
    let cut = |readings: &mut SyncReadings| readings.steps.truncate(3);
    assert!(answer(5000, &cut, false).contains("n/a"));
}

#[test]
fn a_stopped_or_disturbed_probe_says_nothing_of_power_loss_protection() {
    let mut slow = f0(2000);
    slow.write_cache = None;
    assert!(advice(&built(&slow), "S2").is_some());
    slow.stopped = true;
    assert_eq!(advice(&built(&slow), "S2"), None);
    slow.stopped = false;
    let found = advice::advise(&slow, &info(&slow), true);
    assert!(found.iter().all(|advice| advice.id != "S2"));
    slow.steps[0].device_write_bytes = Some(1 << 30);
    assert!(advice(&built(&slow), "S10").is_some() && advice(&built(&slow), "S2").is_none());
}

#[test]
fn a_steady_step_has_a_narrow_interval_and_a_lumpy_one_a_wide_one() {
    let mut lumpy = reading(SyncPart::Curve, SyncMethod::Fsync, 1, 100);
    assert_eq!(confidence(&lumpy), Figure::Decimal(0.0));
    lumpy.rates = vec![1000.0, 3000.0, 2000.0, 1000.0, 3000.0];
    // Deviation 1000 of 2000, over the root of five, times t of 2.776: 62.1 %.
    let wide = confidence(&lumpy).value().unwrap();
    assert!((wide - 62.1).abs() < 0.1, "{wide}");
    lumpy.rates.truncate(2);
    assert_eq!(confidence(&lumpy).value(), None);
}

#[test]
fn a_stopped_probe_is_incomplete_and_what_is_missing_is_n_a() {
    let mut readings = readings();
    readings.steps.truncate(1);
    readings.stopped = true;
    let record = built(&readings);
    assert_eq!(record.run.verdict, "incomplete");
    let info = record.parts.get::<SyncInfo>().unwrap();
    assert_eq!(info.unsynced_write_us_p50, Figure::na(STOPPED));
    assert_eq!(info.sync_over_unsynced_ratio, Figure::na(STOPPED));
    assert_eq!(info.safety[0].single_commits_per_s, Figure::na(STOPPED));
}

#[test]
fn a_refused_step_has_its_reason_and_no_zero() {
    let mut readings = readings();
    let refused = "direct writes of this device have at least 4096 bytes";
    readings.steps[2].latency = Histogram::new();
    readings.steps[2].note = Some(refused.to_owned());
    let record = built(&readings);
    let info: SyncInfo = record.parts.get().unwrap();
    let step = &info.steps[2];
    assert_eq!(step.writes_count, Figure::na(refused));
    assert_eq!(step.per_s, Figure::na(refused));
}

#[test]
fn advice_s1_fires_below_what_a_medium_needs_and_when_a_flush_adds_nothing() {
    let quick = built(&f0(3));
    assert!(advice(&quick, "S1").unwrap().contains("faster than any storage medium"));
    let nothing = built(&f0(41));
    assert!(advice(&nothing, "S1").unwrap().contains("a flush adds nothing"));
    let mut platter = readings();
    platter.rotational = Some(true);
    assert!(advice(&built(&platter), "S1").unwrap().contains("half a rotation"));
}

#[test]
fn advice_s1_is_silent_on_a_plausible_flush_and_in_memory() {
    assert_eq!(advice(&built(&readings()), "S1"), None);
    let mut memory = f0(3);
    memory.is_memory = true;
    let record = built(&memory);
    assert_eq!(advice(&record, "S1"), None);
    assert!(advice(&record, "S8").unwrap().contains("is in memory"), "{:?}", record.advice);
}

#[test]
fn advice_s2_fires_on_the_ratio_and_names_what_the_device_announces() {
    let record = built(&f0(1700));
    let text = advice(&record, "S2").unwrap();
    assert!(text.starts_with("Likely no power-loss protection"), "{text}");
    assert!(text.contains("volatile write cache") && text.contains("no forced single writes"));
    let modest = built(&readings());
    assert!(!advice(&modest, "S2").unwrap().contains("Likely"));
}

#[test]
fn advice_s2_is_silent_when_nothing_is_announced_and_a_flush_is_cheap() {
    let mut readings = readings();
    readings.write_cache = None;
    assert_eq!(advice(&built(&readings), "S2"), None);
}

#[test]
fn advice_s3_fires_with_the_limit_and_is_silent_without_f0() {
    let record = built(&readings());
    assert!(advice(&record, "S3").unwrap().contains("2 / F0"));
    let mut none = readings();
    none.steps.remove(0);
    assert_eq!(advice(&built(&none), "S3"), None);
}

#[test]
fn advice_s4_fires_on_a_better_method_and_is_silent_on_a_tie() {
    assert_eq!(advice(&built(&readings()), "S4"), None);
    let mut better = readings();
    let dsync = |s: &&mut SyncReading| s.method == SyncMethod::Dsync && s.streams == 1;
    let found = better.steps.iter_mut().find(dsync).unwrap();
    *found = reading(SyncPart::Curve, SyncMethod::Dsync, 1, 50);
    let record = built(&better);
    assert!(advice(&record, "S4").unwrap().contains("O_DSYNC write"));
    assert_eq!(record.advice.iter().find(|a| a.id == "S4").unwrap().severity, "high");
    // Rates whose intervals meet are no better and no worse.
    for step in &mut better.steps {
        step.rates = step.rates.iter().zip([0.1, 2.0, 1.0, 0.1, 2.0]).map(|(rate, by)| rate * by).collect();
    }
    assert_eq!(advice(&built(&better), "S4"), None);
}

#[test]
fn advice_s5_fires_on_a_slow_growing_file_and_is_silent_on_a_quick_one() {
    assert_eq!(advice(&built(&readings()), "S5"), None);
    let mut slow = readings();
    for step in slow.steps.iter_mut().filter(|step| step.growing) {
        step.rates.iter_mut().for_each(|rate| *rate /= 5.0);
    }
    assert!(advice(&built(&slow), "S5").unwrap().contains("recycle"));
}

#[test]
fn advice_s6_says_one_log_writer_or_several() {
    let record = built(&readings());
    assert!(advice(&record, "S6").unwrap().contains("one log writer with group commit is enough"));
    let mut slow = readings();
    let shared = slow.steps.last_mut().unwrap();
    shared.rates.iter_mut().for_each(|rate| *rate /= 100.0);
    assert!(advice(&built(&slow), "S6").unwrap().contains("several log writers"));
    // Rounds from half to twice as many: nothing can be concluded, least of all a second log writer.
    for step in &mut slow.steps {
        let around = step.rates.iter().zip([0.02, 9.0, 1.0, 0.02, 9.0]);
        step.rates = around.map(|(rate, by)| rate * by).collect();
    }
    let record = built(&slow);
    let said = advice(&record, "S6").unwrap();
    assert!(said.contains("no advantage of more than one log writer"), "{said}");
    assert!(!said.contains("times one stream"), "{said}");
    let mut none = readings();
    none.steps.retain(|step| step.part != SyncPart::Safety);
    assert_eq!(advice(&built(&none), "S6"), None);
}

#[test]
fn advice_s7_fires_on_a_long_tail_and_is_silent_on_a_short_one() {
    assert_eq!(advice(&built(&readings()), "S7"), None);
    let mut tail = readings();
    tail.steps[0].latency.record_n(5_000_000, 40);
    assert!(advice(&built(&tail), "S7").unwrap().contains("p99.9"));
}

#[test]
fn another_s_load_on_the_device_is_a_warning() {
    assert_eq!(built(&readings()).doubts().next(), None);
    let mut busy = readings();
    busy.steps[0].device_write_bytes = Some(1 << 30);
    assert!(advice(&built(&busy), "S10").unwrap().contains("Other processes used the device"));
}

#[test]
fn rounds_that_disagree_in_many_steps_are_a_warning() {
    let mut moody = readings();
    moody.steps[3].rates[0] /= 3.0;
    assert_eq!(built(&moody).doubts().next(), None, "one stall");
    for step in moody.steps.iter_mut().skip(4) {
        step.rates[1] *= 2.5;
    }
    assert!(advice(&built(&moody), "S11").unwrap().contains("speed of the device changed"));
}

#[test]
fn there_is_a_section_for_every_part_and_the_record_reads_back() {
    let record = built(&readings());
    let sections = KIND.sections(&record);
    let title = sections.title.unwrap();
    assert!(title.starts_with("ASSAY DURABLE WRITE REPORT for run 0123abcd"), "{title}");
    let titles: Vec<&str> = sections.all.iter().map(|section| section.title.as_str()).collect();
    for part in [
        "F0: One 4 KiB Overwrite Made Durable",
        "What Each Level of Safety Costs",
        "Preallocated File",
        "New File That Grows",
        "F0 Histogram",
        "Every Step",
    ] {
        assert!(titles.iter().any(|title| title.contains(part)), "no {part}: {titles:?}");
    }
    let json = serde_json::to_string(&record).unwrap();
    let back: Record = serde_json::from_str(&json).unwrap();
    assert_eq!(back, record);
}

#[test]
fn what_the_answer_lacks_has_its_reason() {
    let mut few = readings();
    few.steps.truncate(2);
    let record = built(&few);
    let rows = headline::of(&record, &record.parts.get().unwrap()).rows;
    assert_eq!(rows[1].otherwise, format!("n/a ({STOPPED})"));
}

/// F0 of so many us on a device that announces nothing of its cache.
fn unannounced(us: u64) -> Record {
    let mut readings = f0(us);
    readings.write_cache = None;
    built(&readings)
}

/// One step of the curve of one stream, at so many times its rate.
fn one_stream_at(method: SyncMethod, growing: bool, times: f64) -> Record {
    let mut readings = readings();
    let is_it = |step: &&mut SyncReading| {
        step.part == SyncPart::Curve && (step.method, step.growing, step.streams) == (method, growing, 1)
    };
    let step = readings.steps.iter_mut().find(is_it).unwrap();
    step.rates.iter_mut().for_each(|rate| *rate *= times);
    built(&readings)
}

const CASES: &[assay_testkit::rules::Case] = &[
    // The histogram puts 5 us a little above or below.
    ("S1", |fires| unannounced(if fires { 4 } else { 6 })),
    // Beside 40 us without a flush.
    ("S2", |fires| unannounced(if fires { 410 } else { 390 })),
    ("S3", |fires| {
        let mut readings = readings();
        readings.steps.retain(|step| fires || step.part != SyncPart::Flush);
        built(&readings)
    }),
    ("S4", |fires| one_stream_at(SyncMethod::Dsync, false, if fires { 1.11 } else { 1.09 })),
    // It makes 100 writes for 110 of the preallocated file.
    ("S5", |fires| one_stream_at(SyncMethod::Fdatasync, true, if fires { 0.91 } else { 0.93 })),
    ("S6", |fires| {
        let mut readings = readings();
        readings.steps.retain(|step| fires || step.method != SyncMethod::Group);
        built(&readings)
    }),
    ("S7", |fires| {
        let mut readings = readings();
        readings.steps[0].latency.record_n(if fires { 1_020_000 } else { 980_000 }, 40);
        built(&readings)
    }),
    ("S8", |is_memory| built(&SyncReadings { is_memory, ..readings() })),
    ("S9", |fires| built(&SyncReadings { direct: !fires, ..readings() })),
    ("S10", |fires| {
        // The probe wrote 82 MB in 2 s.
        let mut readings = readings();
        readings.steps[0].device_write_bytes = Some(20_000 * 4096 * if fires { 151 } else { 149 } / 100);
        built(&readings)
    }),
    ("S11", |fires| {
        let mut readings = readings();
        let many = readings.steps.len().div_ceil(10);
        for step in readings.steps.iter_mut().take(many) {
            step.rates[0] *= if fires { 2.01 } else { 1.99 };
        }
        built(&readings)
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_testkit::rules::just_fire(&advice::rules(), CASES);
}
