mod readers;
mod real;

use super::*;
use crate::fixture;
use crate::readings::{CloneReading, JobLabel, JobReading};
use assay_measure::prng::SplitMix64;

/// Jobs of the real fio whose numbers are read back: all engines here, mixed and grouped jobs,
/// several groups, syncs, rates, descriptions, lists and figures of other lengths, steady state.
const ROUND_TRIPS: &[&str] = &[
    "--name=null --ioengine=null --size=400m --rw=randrw --iodepth=4 --numjobs=2 --bs=4k --iodepth=4 ALL",
    "--name=grouped --ioengine=null --size=100m --rw=randrw --numjobs=3 --group_reporting --bs=4k --iodepth=4 ALL --description=grouped",
    "--name=psync --size=2m --rw=write --bs=8k --iodepth=1 --numjobs=1 ALL",
    "--name=sync --size=1m --rw=randwrite --fdatasync=4 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=sync --size=1m --rw=write --fsync=16 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=ring --ioengine=io_uring --direct=1 --size=4m --rw=randrw --bsrange=4k-16k --iodepth=16 --numjobs=1 ALL",
    "--name=aio --ioengine=libaio --direct=1 --size=4m --rw=read --bs=4k,16k --iodepth=32 --numjobs=1 --iodepth_batch=8 --iodepth_batch_complete_min=8 ALL",
    "--name=rated --ioengine=null --size=1g --rw=read --rate_iops=400 --runtime=1 --bs=4k --iodepth=1 --numjobs=2 --group_reporting ALL",
    "--name=list --ioengine=null --size=8m --rw=read --percentile_list=50:99.999:99.9999 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=list --ioengine=null --size=8m --rw=read --percentile_list=1:50:2:99:7 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=figures --size=2m --rw=read --significant_figures=6 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=steady --ioengine=null --size=10g --rw=write --steadystate=iops:90% --steadystate_duration=1 --runtime=2 --time_based=1 --rate_iops=1000 --bs=4k --iodepth=1 --numjobs=1 ALL",
    "--name=trims --ioengine=null --size=8m --rw=randtrim --bs=8k --iodepth=1 --numjobs=1 ALL",
    "--name=both --ioengine=null --size=8m --rw=trimwrite --bs=8k --iodepth=1 --numjobs=2 --group_reporting ALL",
    "--name=goal --ioengine=libaio --direct=1 --size=4m --rw=randread --latency_target=5s --latency_window=100ms --latency_percentile=99.5 --time_based --runtime=3 --bs=4k --iodepth=4 --numjobs=1 ALL",
    "--ioengine=null --size=4m --name=one --rw=read --bs=4k --iodepth=1 --numjobs=1 ALL --name=two --new_group --rw=write --bs=16k --iodepth=2 --numjobs=2 ALL --name=three --stonewall --rw=rw --bs=512 --iodepth=1 --numjobs=1 ALL",
];
/// Every percentile there is, so that each latency has its bins.
const ALL: [&str; 3] = ["--slat_percentiles=1", "--clat_percentiles=1", "--lat_percentiles=1"];

fn words(job: &str) -> Vec<&str> {
    let words = job.split_whitespace();
    words
        .flat_map(|word| match word {
            "ALL" => ALL.to_vec(),
            word => vec![word],
        })
        .collect()
}

/// Readings of one job with one clone.
fn one_clone(label: JobLabel, clone: CloneReading) -> StorageReadings {
    StorageReadings {
        fio_version: "assay-0.0.0".to_owned(),
        jobs: vec![JobReading {
            name: "one".to_owned(),
            label,
            timing: "per batch".to_owned(),
            ..JobReading::default()
        }],
        elapsed_ns: clone.runtime_ns,
        clones: vec![clone],
        timestamp_ms: 1_600_000_000_000,
        started_ms: 1_600_000_000_000,
        ..StorageReadings::default()
    }
}

#[test]
fn io_02_the_numbers_of_the_real_fio_come_out_as_its_lines() {
    // They mostly wait, so they wait side by side.
    std::thread::scope(|scope| {
        for job in ROUND_TRIPS {
            scope.spawn(|| {
                if let Some(output) = real::run(&words(job)) {
                    real::round_trip(&output);
                }
            });
        }
    });
}

#[test]
fn io_02_frozen_numbers_of_fio_3_33_come_out_as_its_lines() {
    let output = include_str!("../../../../../testdata/fio-3.33-grouped.txt");
    real::round_trip(&real::Output::split(output));
}

#[test]
fn io_03_every_block_size_is_shortened_as_the_real_fio_shortens_it() {
    // Steps around each power of ten and two, and a sequence without a pattern.
    let mut sizes: Vec<u64> = (0..20).flat_map(|bit| [(1 << bit) - 1, 1 << bit, 3 << bit]).collect();
    sizes.extend((0..7).flat_map(|power| [10_u64.pow(power), 99_999 * 10_u64.pow(power) / 1000]));
    let mut random = SplitMix64(7);
    sizes.extend((0..80).map(|_| {
        let drawn = random.next_u64();
        (drawn >> 44) >> (drawn % 12)
    }));
    sizes.retain(|&size| (1..1 << 20).contains(&size));
    let names = sizes.iter().map(|size| format!("--name=j --bs={size}"));
    let line = names.collect::<Vec<_>>().join(" ");
    let mut words = vec!["--ioengine=null", "--size=1m", "--number_ios=1", "--thread"];
    words.extend(line.split(' '));
    let Some(printed) = real::fio(&words) else {
        return;
    };
    let printed: Vec<&str> = printed.lines().filter(|line| line.contains("bs=(R) ")).collect();
    assert_eq!(printed.len(), sizes.len());
    for (size, line) in sizes.iter().zip(printed) {
        let expected = format!("bs=(R) {0}-{0},", short(*size, 4, Step::Binary, "B"));
        assert!(line.contains(&expected), "{size}: {expected}, fio: {line}");
    }
}

#[test]
fn the_text_of_the_frozen_run() {
    let readings = fixture::readings();
    let head = header(&readings.jobs, version(&readings));
    insta::assert_snapshot!("text", format!("{head}{}", text(&readings)));
}

#[test]
fn the_json_of_the_frozen_run() {
    insta::assert_snapshot!("json", json(&fixture::readings(), false, None));
}

#[test]
fn the_terse_lines_of_the_frozen_run() {
    insta::assert_snapshot!("terse", terse(&fixture::readings()));
}

/// The value of a dotted path; keys with dots do not occur on it.
fn at<'a>(document: &'a serde_json::Value, path: &str) -> &'a serde_json::Value {
    let pointer = format!("/{}", path.replace('.', "/"));
    document.pointer(&pointer).unwrap_or_else(|| panic!("no {path}"))
}

fn document(readings: &crate::readings::StorageReadings) -> serde_json::Value {
    serde_json::from_str(&json(readings, true, None)).unwrap()
}

#[test]
fn io_13_a_sync_is_neither_a_depth_nor_a_short_read() {
    let ios = fixture::REDO_IOS * fixture::SECONDS;
    let readings = fixture::readings();
    let report = text(&readings);
    let issued = format!("issued rwts: total=0,{ios},0,{ios} short=0,0,0,0");
    assert!(report.contains(&issued), "{report}");
    let document = document(&readings);
    assert_eq!(at(&document, "jobs.1.sync.total_ios"), ios);
    let depths = at(&document, "jobs.1.iodepth_level").as_object().unwrap();
    let sum: f64 = depths.values().map(|share| share.as_f64().unwrap()).sum();
    assert!((sum - 100.0).abs() < 1e-6, "{sum}");
}

#[test]
fn io_18_a_group_is_the_sum_of_its_clones() {
    let grouped = fixture::readings();
    let mut single = grouped.clone();
    single.jobs[0].label.group_reporting = false;
    let (grouped, single) = (document(&grouped), document(&single));
    assert_eq!(at(&grouped, "jobs").as_array().unwrap().len(), 2);
    assert_eq!(at(&single, "jobs").as_array().unwrap().len(), 3);
    let number = |document, path: &str| at(document, path).as_f64().unwrap();
    for key in [
        "read.io_bytes",
        "read.total_ios",
        "write.clat_ns.N",
        "read.bw_min",
        "read.iops_max",
        "read.iops_samples",
        "job_runtime",
        "ctx",
    ] {
        let clones = number(&single, &format!("jobs.0.{key}")) + number(&single, &format!("jobs.1.{key}"));
        let group = number(&grouped, &format!("jobs.0.{key}"));
        assert!((group - clones).abs() < 1e-3, "{key}: {group}, {clones}");
    }
    // CPU is the average of the clones, which are alike here.
    for key in ["usr_cpu", "sys_cpu"] {
        let clone = number(&single, &format!("jobs.1.{key}"));
        let group = number(&grouped, &format!("jobs.0.{key}"));
        assert!((group - clone).abs() < 1e-6, "{key}: {group}, {clone}");
    }
}

#[test]
fn plotters_find_the_options_that_were_not_typed() {
    let document = document(&fixture::readings());
    assert_eq!(at(&document, "jobs.1.job options.numjobs"), "1");
    assert_eq!(at(&document, "jobs.1.job options.rw"), "write");
    let untyped = at(&document, "native.effective_options");
    assert_eq!(untyped[0], serde_json::json!([]));
    assert_eq!(untyped[1], serde_json::json!(["iodepth", "numjobs", "bs"]));
}

#[test]
fn the_native_key_is_the_last_and_keeps_its_content() {
    let native = serde_json::json!({"seed": 42, "warnings": []});
    let text = json(&fixture::readings(), false, Some(native));
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(at(&document, "native.seed"), 42);
    let mut top = text.lines().filter(|line| line.starts_with("  \""));
    assert!(top.next_back().unwrap().starts_with("  \"native\" : "));
}

#[test]
fn a_job_that_did_nothing_has_a_block_of_zeros() {
    let label = fixture::label("read", "null", 1, 1, 4096);
    let clone = crate::readings::CloneReading {
        error: 5,
        error_text: Some("Input/output error".to_owned()),
        ..Default::default()
    };
    let readings = one_clone(label, clone);
    insta::assert_snapshot!("nothing", format!("{}{}", text(&readings), terse(&readings)));
    let document = document(&readings);
    assert_eq!(at(&document, "jobs.0.error"), 5);
    assert_eq!(at(&document, "jobs.0.read.iops"), 0.0);
}

#[test]
fn families_are_dealt_over_a_slot_that_a_bound_divides() {
    let label = fixture::label("read", "null", 1, 1, 4096);
    let mut clone = crate::readings::CloneReading::default();
    // The slot of 10 us is 9984..10112: 16 of its 128 ns lie below the bound.
    clone.ways[0].clat.record_n(10_000, 800);
    clone.ways[0].ios = 800;
    let mut readings = one_clone(label, clone);
    let shares = |readings: &_| {
        let document = document(readings);
        let share = |bound: &str| at(&document, &format!("jobs.0.latency_us.{bound}")).clone();
        (share("10"), share("20"))
    };
    assert_eq!(shares(&readings), (12.5.into(), 87.5.into()));
    // Exact counts win.
    readings.clones[0].clat_families.record_n(10_000, 800);
    assert_eq!(shares(&readings), (0.0.into(), 100.0.into()));
}

#[test]
fn a_steady_state_is_told_as_fio_tells_it() {
    let steady = |criterion: &str, last: f64| crate::readings::SteadyReading {
        criterion: criterion.to_owned(),
        duration_s: 2,
        attained: true,
        last: Some(last),
        slope: Some(-1.0),
        deviation_pct: Some(0.15),
        iops: vec![998, 1002],
        bw_kib_per_s: vec![3992, 4008],
        lat_ns: vec![1000.0, 1002.0],
        ..Default::default()
    };
    let mut readings = fixture::readings();
    for (criterion, last, told, max_deviation) in [
        ("iops_slope:90%", -0.1, "iops slope=-0.100%", 1.5),
        ("iops:2000", 1.5, "iops mean dev=1.500", 1.5),
        ("bw:90%", 0.15, "bw mean dev=0.150%", 6144.0),
        ("lat_slope:5000", -456.0, "lat slope=-456.000", 1.5015),
    ] {
        readings.jobs[1].steady = Some(steady(criterion, last));
        let line = format!("attained=yes, bw=4000KiB/s (4096kB/s), iops=1000, {told}\n");
        assert!(text(&readings).contains(&line), "{}", text(&readings));
        let document = document(&readings);
        let state = at(&document, "jobs.1.steadystate");
        assert_eq!(state["max_deviation"], max_deviation);
        assert_eq!(state["data"]["bw"], serde_json::json!([4_087_808, 4_104_192]));
        assert_eq!(state["data"]["bw_mean"], 4_096_000);
    }
    let state = document(&readings);
    assert_eq!(at(&state, "jobs.1.steadystate.ss"), "lat_slope:5000.000000");
    assert_eq!(at(&state, "jobs.1.steadystate.criterion"), "-456.000000");
}
