//! The findings: each rule on loads made for it.

use super::*;
use crate::readings::{PreconditionReading, SteadyReading};
use assay_measure::kind::Headline;
use assay_measure::prng::{Purpose, Stream};
use assay_measure::snapshot::HostReading;

fn of(loops: &[Loop]) -> Record {
    built(&readings(loops))
}

#[test]
fn advice_a1_a_write_cache_that_filled_is_named_with_its_size() {
    let fall = [around(4000, 12), around(1000, 20)].concat();
    let record = of(&[Loop::write("fill", 8, &fall)]);
    let text = advice(&record, "A1").unwrap();
    let written = fall[..12].iter().sum::<u64>() * 8192;
    let size = assay_measure::units::size(written);
    assert!(text.contains(&size) && text.contains("write cache"), "{text}");
    assert_eq!(advice(&of(&[Loop::write("even", 8, &around(4000, 32))]), "A1"), None);
    // What recovers was no cache.
    let dip = [around(4000, 12), around(1000, 8), around(4000, 12)].concat();
    let record = of(&[Loop::write("dip", 8, &dip)]);
    assert_eq!(advice(&record, "A1"), None);
    assert!(advice(&record, "A4").unwrap().contains("2 times"));
}

#[test]
fn advice_r41_a_credit_is_estimated() {
    let fall = [vec![3000; 20], vec![1000; 20]].concat();
    let record = of(&[Loop::read("credit", 16, &fall)]);
    let text = advice(&record, "R41").unwrap();
    assert!(text.contains("it held about 40,000 reads above this rate"), "{text}");
    assert_eq!((advice(&record, "A1"), advice(&record, "A3")), (None, None));
}

/// `io` said of these seconds that a limit was unlikely, for they were not flat enough.
#[test]
fn what_fell_to_a_cap_is_neither_a_full_cache_nor_other_load() {
    let fall = [vec![15_000; 18], vec![2000, 2000, 1936, 1960, 2104, 2000]].concat();
    let written = of(&[Loop::write("fill", 8, &fall)]);
    let read = of(&[Loop::read("data", 8, &fall)]);
    assert!(advice(&read, "R41").unwrap().starts_with("It looks like a cap of 2,000 reads/s"), "{:?}", read.advice);
    let limit = Storage.headline(&read).limit;
    assert_eq!(limit.what, "what looks like a cap of 2,000 reads/s");
    assert!(limit.evidence.starts_with("From 18 s on") && !limit.evidence.contains("Raise the limit"), "{limit:?}");
    for id in ["A1", "A3", "A4"] {
        assert_eq!((advice(&written, id), advice(&read, id)), (None, None), "{id}");
    }
}

#[test]
fn advice_a3_a_fall_of_reads_to_no_flat_level_is_no_limit() {
    let fall = [around(4000, 15), around(1500, 15)].concat();
    let text = advice(&of(&[Loop::read("data", 8, &fall)]), "A3").unwrap();
    assert!(text.contains("other load used the device"), "{text}");
}

#[test]
fn advice_a5_the_limit_of_the_control_group_is_named() {
    let mut readings = readings(&[Loop::read("data", 8, &[5000; 20])]);
    readings.facts.extend(sample::facts(&[("io_cap_vda_read_iops", "5000 by blkio throttle of /load")]));
    let text = advice(&built(&readings), "A5").unwrap();
    assert!(text.contains("blkio throttle of /load"), "{text}");
    readings.facts.last_mut().unwrap().value = "9000 by blkio throttle of /load".to_owned();
    assert_eq!(advice(&built(&readings), "A5"), None);
}

/// A quick I/O every so often: requests queue before a limit, not before the medium.
fn with_quick_ones(mut readings: StorageReadings) -> StorageReadings {
    for clone in &mut readings.clones {
        let lat = &mut clone.ways[0].lat;
        let (mean, n) = (lat.histogram.mean_ns().unwrap() as u64, lat.histogram.count());
        *lat = LatencyReading::new();
        lat.record_n(mean, n - 100);
        lat.record_n(120_000, 100);
    }
    readings
}

#[test]
fn advice_r41_a_flat_top_with_queueing_suggests_a_limit() {
    let flat = with_quick_ones(readings(&[Loop::read("data", 32, &[3000; 30])]));
    let text = advice(&built(&flat), "R41").unwrap();
    assert!(text.contains("cap of 3,000 reads/s. Every second") && text.contains("It is a round figure"), "{text}");
    let scattered = with_quick_ones(readings(&[Loop::read("data", 32, &around(3000, 30))]));
    assert_eq!(advice(&built(&scattered), "R41"), None);
    let shallow = with_quick_ones(readings(&[Loop::read("data", 1, &[3000; 30])]));
    assert_eq!(advice(&built(&shallow), "R41"), None);
}

#[test]
fn advice_a6_the_same_top_at_two_block_sizes_is_a_limit_on_ios_or_on_bytes() {
    let big = |ios| Loop { block: 65_536, ..Loop::read("big", 32, &[ios; 20]) };
    let small = |ios| Loop::read("small", 32, &[ios; 20]);
    let ios = advice(&of(&[small(3000), big(3010)]), "A6").unwrap();
    assert!(ios.starts_with("A limit on I/Os per second"), "{ios}");
    let bytes = advice(&of(&[small(16_000), big(2000)]), "A6").unwrap();
    assert!(bytes.starts_with("A limit on MiB/s"), "{bytes}");
    assert_eq!(advice(&of(&[small(9000), big(3000)]), "A6"), None);
}

#[test]
fn advice_a7_periodic_dips_are_named_with_their_period() {
    let mut dips = around(4000, 60);
    for second in (7..60).step_by(12) {
        dips[second] = 1000;
    }
    let record = of(&[Loop::read("data", 8, &dips)]);
    assert!(advice(&record, "A7").unwrap().contains("about every 12 s"));
    assert_eq!(advice(&of(&[Loop::read("data", 8, &around(4000, 60))]), "A7"), None);
}

#[test]
fn advice_a8_a_drift_is_no_level() {
    let ramp: Vec<u64> = (0..40).map(|s| 2000 + 50 * s + (s * 37 % 11)).collect();
    let record = of(&[Loop::read("data", 8, &ramp)]);
    assert!(advice(&record, "A8").unwrap().contains("warm-up"));
    assert_eq!(advice(&record, "A4"), None);
}

#[test]
fn advice_a9_scatter_without_a_level() {
    let mut random = Stream::new(1, 1, Purpose::Test);
    let wild: Vec<u64> = (0..40).map(|_| 500 + random.below(5000)).collect();
    let record = of(&[Loop::read("data", 8, &wild)]);
    assert!(advice(&record, "A9").unwrap().contains("a typical second of the run"));
    assert_eq!(advice(&of(&[Loop::read("data", 8, &around(4000, 40))]), "A9"), None);
}

#[test]
fn advice_a10_a_steady_state_that_was_not_attained() {
    let mut readings = readings(&[Loop::read("data", 8, &[4000; 20])]);
    readings.jobs[0].steady =
        Some(SteadyReading { criterion: "iops:1%".to_owned(), duration_s: 10, ..SteadyReading::default() });
    let record = built(&readings);
    assert!(advice(&record, "A10").unwrap().contains("iops:1%"));
    readings.jobs[0].steady.as_mut().unwrap().attained = true;
    assert_eq!(advice(&built(&readings), "A10"), None);
}

#[test]
fn advice_a14_a_preconditioning_whose_rounds_stayed_apart() {
    let mut readings = readings(&[Loop::write("data", 8, &[4000; 20])]);
    readings.precondition = vec![PreconditionReading {
        job: "data".to_owned(),
        method: "snia".to_owned(),
        files: vec!["/data/data".to_owned()],
        bytes: 1 << 30,
        fills: 2,
        fill_bytes_per_s: vec![2e8, 1.8e8],
        block_bytes: 4096,
        round_s: 1.0,
        rounds: vec![9000.0, 7000.0, 5000.0, 4000.0, 3000.0],
        window: 5,
        excursion_pct: Some(107.1),
        slope_pct: Some(-107.1),
        ..PreconditionReading::default()
    }];
    let record = built(&readings);
    let text = advice(&record, "A14").unwrap();
    assert!(text.contains("107 %"), "{text}");
    let report = assay_report::text::render(&record);
    assert!(report.contains("Before the Jobs"), "{report}");
    readings.precondition[0].attained = true;
    assert_eq!(advice(&built(&readings), "A14"), None);
}

#[test]
fn advice_a11_and_a12_the_tail_needs_its_samples() {
    let mut readings = readings(&[Loop::read("data", 8, &[4000; 20])]);
    assert_eq!(advice(&built(&readings), "A11"), None);
    assert_eq!(advice(&built(&readings), "A12"), None);
    readings.clones[0].ways[0].lat.record_n(300_000_000, 100);
    assert!(advice(&built(&readings), "A11").unwrap().contains("p99.9 "));
    let short = super::readings(&[Loop::read("data", 1, &[300; 12])]);
    assert!(advice(&built(&short), "A12").unwrap().contains("about 34 s"));
}

#[test]
fn advice_a13_the_due_time_shows_what_the_service_time_hides() {
    let mut readings = readings(&[Loop::write("redo", 4, &[2000; 20])]);
    readings.jobs[0].label.rate_iops[1] = Some(2000.0);
    let slow = |readings: &mut StorageReadings, ns: u64| {
        let way = &mut readings.clones[0].ways[1];
        let mut response = LatencyReading::new();
        response.record_n(ns, way.ios);
        way.response = Some(response);
        for second in &mut readings.seconds {
            let mut histogram = assay_measure::histogram::Histogram::new();
            histogram.record_n(ns, 2000);
            second.response = Some(histogram);
        }
    };
    slow(&mut readings, 2_300_000);
    assert_eq!(advice(&built(&readings), "A13"), None);
    slow(&mut readings, 900_000_000);
    let record = built(&readings);
    assert!(advice(&record, "A13").unwrap().contains("the due time"));
    let info = part(&record);
    assert_eq!(info.groups[0].analysed, "response latency");
    assert!(section(&record).contains("response (from the due time)"));
}

#[test]
fn the_section_tells_the_weightiest_first_and_says_what_it_leaves_out() {
    let mut readings = readings(&[
        Loop::write("fill", 8, &[around(4000, 12), around(1000, 20)].concat()),
        Loop::read("point", 1, &around(500, 12)),
    ]);
    for (at, job) in readings.jobs.iter_mut().enumerate() {
        // A region that fits into caches: a warning each.
        job.region_bytes = 1 << 20;
        job.notes = (0..3).map(|n| format!("note {n} of job {at}")).collect();
    }
    let text = section(&built(&readings));
    let first = text.lines().find(|line| line.contains("advice: ")).unwrap();
    assert!(first.contains("throughput fell"), "{text}");
    let at = |part: &str| text.find(part).unwrap_or_else(|| panic!("no {part}:\n{text}"));
    assert!(at("advice: ") < at("warning: "));
    assert!(text.contains(" more in the report of the run."), "{text}");
}

#[test]
fn a_rate_that_was_missed_and_an_error_make_the_run_invalid() {
    let mut readings = readings(&[Loop::write("redo", 4, &[2000; 20])]);
    assert_eq!(built(&readings).run.verdict, "complete");
    readings.jobs[0].label.rate_iops[1] = Some(2500.0);
    let record = built(&readings);
    assert_eq!(record.run.verdict, "invalid");
    assert!(record.run.verdict_reasons[0].contains("2,000 of the requested 2,500"));
    readings.jobs[0].label.rate_iops[1] = None;
    readings.clones[0].error = 5;
    readings.clones[0].error_text = Some("Input/output error".to_owned());
    let record = built(&readings);
    assert_eq!(record.run.verdict, "invalid");
    assert!(warned(&record, "Input/output error (errno 5)"));
    readings.clones[0].error = 0;
    readings.stopped = true;
    assert_eq!(built(&readings).run.verdict, "incomplete");
}

#[test]
fn warnings_say_where_the_bytes_came_from() {
    let mut cached = readings(&[Loop::read("data", 8, &[4000; 20])]);
    cached.disks[0].read_bytes /= 10;
    assert!(warned(&built(&cached), "unwritten extents"));
    cached.jobs[0].options.retain(|(name, _)| name != "direct");
    let record = built(&cached);
    assert!(warned(&record, "the page cache answered"));
    assert!(warned(&record, "io_uring without direct=1"));
    let Headline { tested, limit, .. } = Storage.headline(&record);
    assert!(tested.starts_with("Storage behind a cache"), "{tested}");
    assert_eq!(limit.what, "memory and the CPUs that read it, not the device");
    assert!(limit.evidence.contains("delivered 10 % of the bytes"), "{}", limit.evidence);
    let of_writes = of(&[Loop::write("data", 8, &[4000; 20])]);
    assert!(!Storage.headline(&of_writes).limit.what.contains("not the device"));
    let mut busy = readings(&[Loop::read("data", 8, &[4000; 20])]);
    busy.disks[0].read_bytes *= 2;
    assert!(warned(&built(&busy), "other processes used them"));
    let mut memory = readings(&[Loop::read("data", 8, &[4000; 20])]);
    memory.facts = sample::facts(&[("is_tmpfs", "yes")]);
    assert!(warned(&built(&memory), "tmpfs"));
    assert!(part(&built(&memory)).io_mode_achieved.starts_with("memory"));
}

/// A synchronous engine has one request in flight, whatever was asked for.
#[test]
fn a_depth_that_a_synchronous_engine_does_not_have_is_not_told_as_in_flight() {
    let record = with(|readings| readings.jobs[0].label.ioengine = "psync".to_owned());
    let tested = Storage.headline(&record).tested;
    assert!(tested.contains("1 in flight (iodepth=") && tested.contains("has no effect with psync)"), "{tested}");
}

/// That the page cache answered, and the way to the device, are said once each.
#[test]
fn a_buffered_job_is_told_once_to_use_direct_io() {
    let of = |engine: &str, cached: u64| {
        let record = with(|readings| {
            readings.disks[0].read_bytes /= cached;
            readings.facts = sample::facts(&[("memory_bytes", "2000000000")]);
            let job = &mut readings.jobs[0];
            job.options.retain(|(name, _)| name != "direct");
            job.label.ioengine = engine.to_owned();
            job.region_bytes = 1 << 30;
        });
        let ids: Vec<&str> = record.doubts().map(|(rule, _)| rule).collect();
        let ways_out = record.doubts().filter(|(_, text)| text.to_lowercase().contains("use direct=1")).count();
        (ids.join(" "), ways_out)
    };
    assert_eq!(of("io_uring", 10), ("A16 A19".to_owned(), 1));
    assert_eq!(of("psync", 10), ("A16".to_owned(), 1));
    assert_eq!(of("io_uring", 1), ("A19 A23".to_owned(), 1));
    assert_eq!(of("psync", 1), ("A23".to_owned(), 0));
}

#[test]
fn warnings_say_what_the_load_was_not() {
    let mut readings = readings(&[Loop::read("data", 8, &[4000; 20])]);
    readings.clones[0].in_flight_ns /= 2;
    assert!(warned(&built(&readings), "could not keep the depth"));
    readings.clones[0].user_ns = 19_000_000_000;
    assert!(warned(&built(&readings), "measures the CPU"));
    let job = &mut readings.jobs[0];
    (job.label.rw, job.label.numjobs) = ("read".to_owned(), 4);
    job.options.push(("filename".to_owned(), Some("/data/x".to_owned())));
    job.region_bytes = 256 << 20;
    let record = built(&readings);
    assert!(warned(&record, "4 clones access the same file"));
    assert!(warned(&record, "fits into the caches"));
}

#[test]
fn warnings_say_when_a_later_job_reads_the_same_blocks() {
    let mut readings = quiet();
    readings.jobs[1].label.rw = "randread".to_owned();
    readings.jobs[1].files = readings.jobs[0].files.clone();
    assert!(!warned(&built(&readings), "in the same order"));
    readings.jobs[1].seed = readings.jobs[0].seed;
    assert!(warned(&built(&readings), "redo reads the blocks that data read"));
}

#[test]
fn warnings_of_the_host_and_notes_of_the_job_are_told() {
    let mut readings = readings(&[Loop::read("data", 8, &[4000; 20])]);
    readings.host = Some(HostReading {
        cpus: Some(4),
        cpu_ns: Some([50, 0, 10, 30, 0, 0, 0, 10, 0, 0]),
        cgroup_throttled_ns: Some(2_000_000_000),
        ..HostReading::default()
    });
    readings.jobs[0].notes = vec!["time_based without runtime is ignored".to_owned()];
    let record = built(&readings);
    assert!(warned(&record, "steal"));
    assert!(warned(&record, "throttled the process for 2.00 s"));
    let note = "note: time_based without runtime is ignored.";
    assert!(section(&record).contains(note), "{}", section(&record));
    assert_eq!(built(&quiet()).doubts().next(), None);
}

/// One loop of reads, changed.
fn with(change: impl FnOnce(&mut StorageReadings)) -> Record {
    let mut readings = readings(&[Loop::read("data", 8, &[4000; 20])]);
    change(&mut readings);
    built(&readings)
}

fn host(change: impl FnOnce(&mut HostReading)) -> Record {
    with(|readings| change(readings.host.as_mut().unwrap()))
}

/// Two levels of so many seconds each.
fn two_levels(loops: impl FnOnce(&[u64]) -> Loop, first: Vec<u64>, second: Vec<u64>) -> Record {
    of(&[loops(&[first, second].concat())])
}

fn with_tail(ns: u64) -> Record {
    with(|readings| {
        let lat = &mut readings.clones[0].ways[0].lat;
        *lat = LatencyReading::new();
        lat.record_n(2_000_000, 79_900);
        lat.record_n(ns, 100);
    })
}

fn late(ns: u64) -> Record {
    let mut readings = readings(&[Loop::write("redo", 4, &[2000; 20])]);
    readings.jobs[0].label.rate_iops[1] = Some(2000.0);
    let way = &mut readings.clones[0].ways[1];
    let all_of = |ns: u64| {
        let mut latency = LatencyReading::new();
        latency.record_n(ns, way.ios);
        latency
    };
    (way.lat, way.response) = (all_of(2_000_000), Some(all_of(ns)));
    built(&readings)
}

fn of_sizes(ios: [u64; 3]) -> Record {
    let sizes = [4096, 8192, 16_384];
    let loops: Vec<Loop> =
        (sizes.into_iter().zip(ios)).map(|(block, ios)| Loop { block, ..Loop::read("data", 32, &[ios; 12]) }).collect();
    of(&loops)
}

const CASES: &[assay_testkit::rules::Case] = &[
    ("A1", |fires| {
        let level = if fires { 3150 } else { 3350 };
        two_levels(|seconds| Loop::write("fill", 8, seconds), around(4000, 15), around(level, 20))
    }),
    ("R41", |fires| {
        let level = if fires { 2399 } else { 2401 };
        two_levels(|seconds| Loop::read("credit", 16, seconds), vec![3000; 20], vec![level; 20])
    }),
    ("A3", |fires| {
        let level = if fires { 3150 } else { 3350 };
        two_levels(|seconds| Loop::read("data", 8, seconds), around(4000, 15), around(level, 20))
    }),
    ("A4", |fires| {
        let level = if fires { 3210 } else { 3120 };
        two_levels(|seconds| Loop::read("data", 8, seconds), vec![3000; 20], vec![level; 20])
    }),
    ("A5", |fires| {
        let limit = if fires { "4120" } else { "4130" };
        with(|readings| {
            let facts = [("io_cap_vda_read_iops", &*format!("{limit} by blkio"))];
            readings.facts.extend(sample::facts(&facts));
        })
    }),
    ("A6", |fires| {
        let big = Loop { block: 65_536, ..Loop::read("big", 32, &[if fires { 3029 } else { 3031 }; 20]) };
        of(&[Loop::read("small", 32, &[3000; 20]), big])
    }),
    ("A7", |fires| {
        let mut dips = around(4000, 60);
        for second in (7..60).step_by(12) {
            dips[second] = if fires { 1000 } else { 3900 };
        }
        of(&[Loop::read("data", 8, &dips)])
    }),
    ("A8", |fires| {
        let slope = if fires { 50 } else { 0 };
        let ramp: Vec<u64> = (0..40).map(|s| 2000 + slope * s + (s * 37 % 11)).collect();
        of(&[Loop::read("data", 8, &ramp)])
    }),
    ("A9", |fires| {
        let mut random = Stream::new(1, 1, Purpose::Test);
        let range = if fires { 4000 } else { 3000 };
        let wild: Vec<u64> = (0..40).map(|_| 2000 + random.below(range)).collect();
        of(&[Loop::read("data", 8, &wild)])
    }),
    ("A10", |fires| {
        with(|readings| {
            readings.jobs[0].steady = Some(SteadyReading { attained: !fires, ..SteadyReading::default() });
        })
    }),
    ("A11", |fires| with_tail(if fires { 41_000_000 } else { 39_000_000 })),
    ("A12", |fires| of(&[Loop::read("data", 1, &[if fires { 999 } else { 1000 }; 10])])),
    ("A13", |fires| late(if fires { 4_100_000 } else { 3_900_000 })),
    ("A14", |fires| {
        with(|readings| {
            readings.precondition = vec![PreconditionReading { attained: !fires, ..PreconditionReading::default() }];
        })
    }),
    ("R11", |fires| of_sizes([14_500, 14_500, if fires { 7_200 } else { 6_800 }])),
    ("A15", |fires| with(|readings| readings.facts = sample::facts(&[("is_tmpfs", if fires { "yes" } else { "no" })]))),
    ("A16", |fires| {
        with(|readings| readings.disks[0].read_bytes = readings.disks[0].read_bytes * if fires { 49 } else { 51 } / 100)
    }),
    ("A17", |fires| {
        with(|readings| {
            readings.disks[0].read_bytes = readings.disks[0].read_bytes * if fires { 121 } else { 119 } / 100;
        })
    }),
    ("A18", |fires| with(|readings| readings.clones[0].error = if fires { 5 } else { 0 })),
    ("A19", |fires| with(|readings| readings.jobs[0].options.retain(|(name, _)| !fires || name != "direct"))),
    ("A20", |fires| {
        with(|readings| {
            let clone = &mut readings.clones[0];
            clone.in_flight_ns = clone.in_flight_ns * if fires { 89 } else { 91 } / 100;
        })
    }),
    ("A21", |fires| {
        with(|readings| {
            let clone = &mut readings.clones[0];
            clone.user_ns = if fires { 18_100_000_000 } else { 17_900_000_000 } - clone.system_ns;
        })
    }),
    ("A22", |fires| {
        with(|readings| {
            let job = &mut readings.jobs[0];
            (job.label.rw, job.label.numjobs) = ("read".to_owned(), if fires { 2 } else { 1 });
            job.options.push(("filename".to_owned(), Some("/data/x".to_owned())));
        })
    }),
    ("A23", |fires| with(|readings| readings.jobs[0].region_bytes = (1 << 30) - u64::from(fires))),
    ("A24", |fires| {
        let mut readings = readings(&[Loop::read("a", 8, &[4000; 20]), Loop::read("b", 8, &[4000; 20])]);
        readings.jobs[1].files = readings.jobs[0].files.clone();
        readings.jobs[1].seed = readings.jobs[0].seed + u64::from(!fires);
        built(&readings)
    }),
    ("A25", |fires| {
        host(|host| {
            host.cpu_ns = Some([200, 0, 0, if fires { 790 } else { 791 }, 0, 0, 0, if fires { 10 } else { 9 }, 0, 0])
        })
    }),
    ("A26", |fires| host(|host| host.cgroup_throttled_ns = Some(if fires { 1000 } else { 0 }))),
    ("A27", |fires| {
        let busy = if fires { 950 } else { 949 };
        host(|host| host.cpu_ns = Some([busy, 0, 0, 1000 - busy, 0, 0, 0, 0, 0, 0]))
    }),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    assay_report::kinds::install(vec![&Storage]);
    assay_testkit::rules::just_fire(&Storage.rules(), CASES);
}
