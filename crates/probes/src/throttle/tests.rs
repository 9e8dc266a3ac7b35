use super::info::ThrottleInfo;
use super::record::{KIND, build};
use super::*;
use assay_measure::kind::Kind as _;
use assay_measure::snapshot::Fact;
use assay_testkit::conformance::probe_suite;
use assay_testkit::rules::{Case, just_fire};

#[test]
fn it_passes_the_suite() {
    // Below the build directory: the system's temporary directory may be memory.
    let executable = std::env::current_exe().unwrap();
    let dir = tempfile::tempdir_in(executable.parent().unwrap()).unwrap();
    let violations = probe_suite(&SPEC, dir.path());
    assert!(violations.is_empty(), "{violations:#?}");
}

/// So many operations a second.
fn at(per_s: f64) -> Load {
    Load { slice_s: 0.1, done: [vec![per_s / 10.0; 50], vec![per_s / 10.0; 30]], pause_s: 2.0 }
}

/// One that no limit keeps.
fn restless(per_s: f64) -> Load {
    let slices = |count: usize| (0..count).map(|slice| per_s * (0.08 + 0.01 * (slice / 5 % 5) as f64)).collect();
    // The first three slices do not count.
    Load { done: [slices(53), slices(30)], ..at(per_s) }
}

/// For a second at so many times the rate, and again after a pause of two.
fn burst(per_s: f64, times: f64) -> Load {
    let mut load = at(per_s);
    load.done.iter_mut().for_each(|done| done[..10].fill(times * per_s / 10.0));
    load
}

fn built(loads: &[Load], facts: &[(&str, &str)]) -> Record {
    let host = facts.iter().map(|(name, value)| Fact::new(name, value)).collect();
    let run = RunData { host, ..RunData::default() };
    build(&run, &readings(loads))
}

fn readings(loads: &[Load]) -> ThrottleReadings {
    ThrottleReadings {
        path: "/data/assay-throttle.scratch".to_owned(),
        disk: Some("vda".to_owned()),
        request_bytes: Some([254 * 4096, 4 << 20]),
        is_direct: true,
        loads: loads.to_vec(),
        ..ThrottleReadings::default()
    }
}

const GROUP: (&str, &str) = ("io_cap_vda_read_iops", "1000 by blkio throttle of /load");

fn ids(record: &Record) -> Vec<&str> {
    record.advice.iter().map(|advice| advice.id.as_str()).collect()
}

#[test]
fn a_limit_of_a_control_group_is_named_and_one_of_another_device_or_direction_is_not() {
    let record = built(&[restless(1004.0)], &[GROUP]);
    assert_eq!(ids(&record), ["TH3"]);
    assert!(record.advice[0].text.contains("1,004 reads/s (blkio throttle of /load: 1,000 read iops)"), "{record:?}");
    let info: ThrottleInfo = record.parts.get().unwrap();
    assert_eq!((info.loads[0].cap.as_str(), info.loads[0].limit_per_s.value()), ("level", Some(1000.0)));
    for other in [("io_cap_vdb_read_iops", "1000 by io.max of /"), ("io_cap_vda_write_iops", "1000 by io.max of /")] {
        assert!(ids(&built(&[restless(1004.0)], &[other])).is_empty(), "{other:?}");
    }
    // The device takes 1 MiB in two requests.
    let record = built(&[restless(5e4), restless(501.0)], &[GROUP]);
    let told = "525 MB/s (blkio throttle of /load: 1,000 read iops)";
    assert!(record.advice[0].text.contains(told), "{:?}", record.advice);
    // Bytes: 1000 reads of 8 KiB.
    let bytes = ("io_cap_vda_read_bytes", "8192000 by io.max of /load");
    assert_eq!(ids(&built(&[restless(1004.0)], &[bytes])), ["TH3"]);
}

#[test]
fn the_answer_leads_with_what_is_sustained_and_a_burst_has_its_length_and_refill() {
    let record = built(&[burst(1000.0, 3.0), restless(100.0)], &[]);
    assert_eq!(ids(&record), ["TH2", "TH1"]);
    let shown: Vec<String> = KIND
        .headline(&record)
        .rows
        .iter()
        .flat_map(|row| row.told.iter().filter_map(|told| Some(format!("{:.1} {}", told.value.value()?, told.unit))))
        .collect();
    assert_eq!(
        shown,
        [
            "1000.0 reads/s sustained (8 KiB read): a token bucket, not known: the device, the volume or the instance",
            "3000.0 reads/s in a burst",
            "1.0 s long",
            "2.0 s until it is back whole",
            "104.9 MB/s sustained (1 MiB read): no cap within 8 s",
        ]
    );
}

#[test]
fn too_little_time_is_said_and_is_no_figure() {
    let record = built(&[Load { done: [vec![5.0; 3], Vec::new()], ..at(50.0) }], &[GROUP]);
    let info: ThrottleInfo = record.parts.get().unwrap();
    assert!(info.loads[0].sustained_per_s.reason().unwrap().starts_with("too little time"));
    assert!(ids(&record).is_empty());
}

/// Rule by rule.
const CASES: &[Case] = &[
    ("TH1", |fires| built(&[if fires { at(500.0) } else { restless(500.0) }], &[])),
    // A fall from 1.26 to 1 is more than a fifth, one from 1.24 is not.
    ("TH2", |fires| built(&[burst(1000.0, if fires { 1.26 } else { 1.24 })], &[])),
    ("TH3", |fires| built(&[at(if fires { 1099.0 } else { 1101.0 })], &[GROUP])),
    ("TH4", |fires| build(&RunData::default(), &ThrottleReadings { is_direct: !fires, ..readings(&[at(500.0)]) })),
];

#[test]
fn each_rule_just_fires_and_just_does_not() {
    just_fire(&KIND.rules(), CASES);
}
