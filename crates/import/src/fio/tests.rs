//! fio's outputs of three versions, and the two faces of one run.

use super::super::testing::{imported, info, number, record_of, sample, survives, told, value};
use super::super::{Source, Tool, import, recognise};
use crate::located_number::BYTES;
use crate::text::At;
use assay_measure::record::Record;
use assay_storage::record::info::{StorageInfo, StorageWay};
use std::collections::BTreeMap;

#[path = "../../../testkit/src/fixtures/storage.rs"]
mod storage_readings;

const SAMPLES: [&str; 6] = [
    "fio-2.1.txt",
    "fio-3.7-randread-4k-qd256.txt",
    "fio-3.33-mixed.txt",
    "fio-3.33-mixed.json",
    "fio-3.33-two-groups.txt",
    "fio-3.33-two-groups.json",
];

fn part(record: &Record) -> StorageInfo {
    record.parts.get().expect("a storage part")
}

fn ways(record: &Record, job: usize) -> Vec<StorageWay> {
    part(record).jobs.swap_remove(job).ways
}

#[test]
fn every_sample_is_recognised_and_read_as_frozen() {
    for name in SAMPLES {
        assert_eq!(recognise(&sample(name)), Some(Tool::Fio), "{name}");
        insta::assert_snapshot!(name.replace('.', "_"), told(&imported(name)));
    }
}

#[test]
fn the_published_run_gives_its_figures() {
    let record = imported("fio-3.7-randread-4k-qd256.txt");
    let info = part(&record);
    let job = &info.jobs[0];
    assert_eq!((job.numjobs_count, job.iodepth_count), (4, 256));
    assert_eq!((job.rw.as_str(), job.ioengine.as_str()), ("randread", "libaio"));
    assert_eq!(job.block_sizes, "4 KiB");
    let way = &job.ways[0];
    assert_eq!(way.ios_count, 1_736_660);
    assert_eq!(way.lat.us_avg.value(), Some(70_791.09));
    assert_eq!(way.lat.us_p99.value(), None, "the percentiles are of clat");
    assert_eq!(way.clat.us_p99.value(), Some(387_974.0));
    let in_flight = job.little_count.value().expect("derived");
    assert!((in_flight - 1026.0).abs() < 4.0, "{in_flight}");
    assert_eq!(super::super::testing::info(&record).tool_version, "3.7");
}

/// Scope and key of every value both have, with both numbers.
fn common<'a>(a: &'a Record, b: &'a Record) -> Vec<(&'a str, f64, f64, f64)> {
    let of = |record: &'a Record| -> BTreeMap<(&str, &str), (f64, f64)> {
        let values = info(record).values.iter();
        let read = values.filter_map(|value| {
            let number = value.value.value()?;
            let key = (value.scope.as_str(), value.key.as_str());
            Some((key, (number, value.rounding)))
        });
        read.collect()
    };
    let (a, b) = (of(a), of(b));
    let both = a.iter().filter_map(|(key, (x, slack))| {
        let (y, other) = b.get(key)?;
        Some((key.1, *x, *y, slack + other))
    });
    both.collect()
}

#[test]
fn text_and_json_of_one_run_agree_within_the_rounding() {
    for (text, json) in
        [("fio-3.33-mixed.txt", "fio-3.33-mixed.json"), ("fio-3.33-two-groups.txt", "fio-3.33-two-groups.json")]
    {
        let (text, json) = (imported(text), imported(json));
        let both = common(&text, &json);
        assert!(both.len() > 80, "{}", both.len());
        for (key, x, y, slack) in both {
            // Shares below a hundredth are raised to it in the text.
            let floor = if key.ends_with("_share_pct") { 0.1 } else { 0.0 };
            let allowed = slack + floor + 1e-9 * x.abs();
            assert!((x - y).abs() <= allowed, "{key}: {x} and {y}, {allowed} allowed");
        }
    }
}

#[test]
fn bins_of_json_plus_become_the_histogram() {
    let record = imported("fio-3.33-mixed.json");
    let read = &ways(&record, 0)[0];
    assert_eq!(read.clat.hist_ns.count(), read.ios_count);
    let p99 = read.clat.hist_ns.percentile_ns(0.99).expect("counted") as f64 / 1e3;
    let printed = read.clat.us_p99.value().expect("printed");
    assert!((p99 / printed - 1.0).abs() < 0.02, "{p99} {printed}");
}

#[test]
fn old_layouts_have_their_own_units() {
    let record = imported("fio-2.1.txt");
    let jobs = part(&record).jobs;
    let blocks: Vec<&str> = jobs.iter().map(|job| job.block_sizes.as_str()).collect();
    assert_eq!(blocks, ["8 KiB", "4 KiB"]);
    let read = &ways(&record, 0)[0];
    assert_eq!(read.ios_per_s.value(), Some(10_000.0));
    assert_eq!(number(&record, "oltp-read", "read_mib_per_s"), 80_001.0 / 1024.0);
    assert_eq!(read.clat.us_p9999.value(), Some(98_816.0));
    assert_eq!(number(&record, "sdb", "disk_busy_pct"), 99.61);
    let groups = part(&record).groups;
    assert_eq!(groups.len(), 2);
    assert_eq!(value(&record, "group 0", "read_mib_per_s").at, "/parts/storage/groups/0/ways/0/mib_per_s");
    assert!(ways(&record, 1)[0].slat.us_avg.value().is_none(), "sync has none");
}

#[test]
fn a_pasted_fragment_is_read_too() {
    let whole = sample("fio-3.7-randread-4k-qd256.txt");
    let lines: Vec<&str> = whole.lines().collect();
    let begin = lines.iter().position(|line| line.contains("IOPS=14.5k")).expect("there");
    let fragment = lines[begin..begin + 9].join("\n");
    let record = super::super::testing::record_of("pasted", &fragment);
    assert_eq!(number(&record, "job", "read_clat_us_p50"), 24_773.0);
    let notes = &info(&record).notes;
    assert!(notes.iter().any(|note| note.text.contains("groupid")), "{notes:?}");
}

#[test]
fn warnings_before_the_json_and_a_torn_end_are_told() {
    let json = sample("fio-3.33-two-groups.json");
    let noisy = format!("fio: a file is on a file system\nnote: both\n{json}");
    let record = super::super::testing::record_of("noisy", &noisy);
    assert!(info(&record).notes[0].text.contains("around the JSON"));
    let torn = &json[..json.len() / 2];
    let source = Source { path: "torn.json".to_owned(), text: torn.to_owned() };
    let error = import(&[source]).expect_err("torn").to_string();
    assert!(error.starts_with("torn.json:"), "{error}");
    assert!(error.contains("incomplete"), "{error}");
}

proptest::proptest! {
    /// As the real fio shortens them: what the steps before the last leave over is gone, which no place shows.
    #[test]
    fn shortened_bytes_are_within_their_rounding(shift in 0_u32..50, drawn in 0_u64..1 << 50) {
        use assay_storage::record::fio::{Step, short};
        let bytes = drawn >> shift;
        for step in [Step::Binary, Step::Decimal] {
            let text = short(bytes, 4, step, "B");
            let seen = super::text::shortened(At { file: 0, line: 1 }, &text, BYTES).expect(&text);
            let off = (seen.value().expect("a number") - bytes as f64).abs();
            proptest::prop_assert!(off <= seen.printed.rounding * (1.0 + 1e-9), "{bytes}: {text}");
        }
    }
}

#[test]
fn what_fio_drops_of_a_rate_is_in_its_rounding() {
    let shown = super::text::shortened(At { file: 0, line: 1 }, "70.2MiB", BYTES).expect("an amount");
    let dropped = (70.25006198883057 * 1_048_576.0 - shown.value().expect("a number")).abs();
    assert!(dropped <= shown.printed.rounding && dropped > 0.05 * 1_048_576.0, "{dropped}");
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(48))]
    #[test]
    fn damaged_samples_never_panic(seed in 0_u64..u64::MAX, which in 0_usize..SAMPLES.len()) {
        survives(SAMPLES[which], seed);
    }
}

/// What our own faces printed of the frozen readings must come back as the record's figures.
fn comes_back(face: &str, rounding_of_percentiles: f64) {
    let readings = storage_readings::readings();
    let ours = assay_storage::record::build(&assay_measure::snapshot::RunData::default(), &readings);
    let back = super::super::testing::record_of("own", face);
    let (ours, again) = (part(&ours), part(&back));
    assert_eq!(ours.jobs.len(), again.jobs.len());
    let mut checked = 0;
    for (j, (a, b)) in ours.jobs.iter().zip(&again.jobs).enumerate() {
        assert_eq!((&a.name, a.group, &a.rw, a.iodepth_count), (&b.name, b.group, &b.rw, b.iodepth_count));
        assert_eq!(a.ways.len(), b.ways.len(), "{}", a.name);
        for (w, (x, y)) in a.ways.iter().zip(&b.ways).enumerate() {
            assert_eq!((&x.way, x.ios_count), (&y.way, y.ios_count));
            let base = format!("/parts/storage/jobs/{j}/ways/{w}");
            for (at, ours, theirs, share) in [
                ("ios_per_s", &x.ios_per_s, &y.ios_per_s, 0.001),
                ("mib_per_s", &x.mib_per_s, &y.mib_per_s, 0.001),
                ("runtime_s", &x.runtime_s, &y.runtime_s, 0.0),
                ("lat/us_avg", &x.lat.us_avg, &y.lat.us_avg, 0.0),
                ("lat/us_max", &x.lat.us_max, &y.lat.us_max, 0.0),
                ("lat/us_min", &x.lat.us_min, &y.lat.us_min, 0.0),
                ("clat/us_avg", &x.clat.us_avg, &y.clat.us_avg, 0.0),
                ("clat/us_stddev", &x.clat.us_stddev, &y.clat.us_stddev, 0.0),
                ("clat/us_p50", &x.clat.us_p50, &y.clat.us_p50, rounding_of_percentiles),
                ("clat/us_p99", &x.clat.us_p99, &y.clat.us_p99, rounding_of_percentiles),
            ] {
                let (Some(ours), Some(theirs)) = (ours.value(), theirs.value()) else {
                    continue;
                };
                let at = format!("{base}/{at}");
                let mut values = info(&back).values.iter();
                let rounding = values.find(|value| value.at == at).map_or(0.0, |value| value.rounding);
                let allowed = rounding + share * ours + 1e-6;
                assert!((ours - theirs).abs() <= allowed, "{at}: {ours} printed as {theirs}, {allowed} allowed");
                checked += 1;
            }
        }
    }
    assert!(checked >= 25, "{checked}");
}

#[test]
fn our_own_text_comes_back_within_its_rounding() {
    let readings = storage_readings::readings();
    let version = assay_storage::record::fio::version(&readings);
    let face =
        assay_storage::record::fio::header(&readings.jobs, version) + &assay_storage::record::fio::text(&readings);
    // A percentile is the middle of its bucket, 1/128 at most beside what was measured.
    comes_back(&face, 0.016);
}

#[test]
fn our_own_json_comes_back_within_its_rounding() {
    let readings = storage_readings::readings();
    for plus in [false, true] {
        comes_back(&assay_storage::record::fio::json(&readings, plus, None), 0.016);
    }
}

#[test]
fn both_faces_of_one_run_of_the_real_fio_agree() {
    let words = [
        "--name=probe",
        "--rw=randrw",
        "--bs=8k",
        "--size=4m",
        "--ioengine=psync",
        "--numjobs=2",
        "--group_reporting",
        "--runtime=1",
        "--time_based",
        "--output-format=normal,json",
        "--eta=never",
        "--thread",
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let run = std::process::Command::new("fio").current_dir(directory.path()).args(words).output();
    let Ok(run) = run else {
        eprintln!("SKIPPED: fio is not installed");
        return;
    };
    let output = String::from_utf8(run.stdout).expect("text");
    let lines: Vec<&str> = output.lines().collect();
    let open = lines.iter().position(|line| *line == "{").expect("a document");
    let close = lines.iter().position(|line| *line == "}").expect("its end");
    let text = [&lines[..open], &lines[close + 1..]].concat().join("\n");
    let text = super::super::testing::record_of("text", &text);
    let json = super::super::testing::record_of("json", &lines[open..=close].join("\n"));
    let both = common(&text, &json);
    assert!(both.len() > 60, "{}", both.len());
    for (key, x, y, slack) in both {
        let floor = if key.ends_with("_share_pct") { 0.1 } else { 0.0 };
        let allowed = slack + floor + 1e-9 * x.abs();
        assert!((x - y).abs() <= allowed, "{key}: {x} and {y}, {allowed} allowed");
    }
}

#[test]
fn a_terse_line_gives_the_figures_of_its_job() {
    let record = imported("fio-3.33-terse.txt");
    let info = info(&record);
    assert_eq!((info.tool_version.as_str(), info.format.as_str()), ("3.33", "fio terse"));
    for (key, value) in [
        ("read_ios_per_s", 25_600.0),
        ("read_mib_per_s", 200.0),
        ("read_moved_bytes", 419_430_400.0),
        ("read_lat_us_avg", 307.0),
        ("read_clat_us_p99", 1375.0),
        ("read_iops_per_s_avg", 25_596.3),
        ("cpu_system_pct", 31.2),
    ] {
        assert_eq!(number(&record, "oltp", key), value, "{key}");
    }
    assert_eq!(number(&record, "sdb", "disk_busy_pct"), 96.34);
    assert_eq!(number(&record, "oltp, below 500 us", "lat_share_pct"), 48.2);
    let ways: Vec<&str> = info.values.iter().map(|value| value.key.as_str()).collect();
    assert!(ways.iter().all(|key| !key.starts_with("write_") && !key.starts_with("trim_")));
}

#[test]
fn only_the_status_of_a_run_and_lines_of_its_progress_are_read() {
    let text = sample("fio-2.1.txt");
    let status = text.find("Run status group 0").expect("the sample has it");
    let record = record_of("status.txt", &text[status..]);
    assert_eq!(number(&record, "group 0", "read_mib_per_s"), 80_001.0 / 1024.0);
    let begun = text.find("oltp-read: (groupid=0").expect("a job");
    let eta = "Jobs: 5 (f=5): [r(4),W(1)] [50.0% done] [80000KB/7966KB/0KB /s] [10.0K/1991/0 iops] [eta 00m:30s]\n";
    let with = format!("{}{eta}{eta}{}", &text[..begun], &text[begun..]);
    let record = record_of("eta.txt", &with);
    assert_eq!(number(&record, "oltp-read", "read_ios_per_s"), 10_000.0);
}

#[test]
fn reads_that_a_cache_answered_are_not_called_the_bare_storage() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../testdata/field/fio-cache-answered.txt");
    let text = std::fs::read_to_string(path).expect("a sample");
    let screen = |text: &str| {
        let record = crate::testing::record_of("fio.txt", text);
        let text = assay_report::answer::of(&[&record], &Default::default()).text();
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let told = screen(&text);
    assert!(
        told.contains("Only 48,000 of 4,800,000 reads (1 %) reached sdz by its own statistics: a cache answered"),
        "{told}"
    );
    assert!(!told.contains("The bare storage"), "{told}");
    let bare = screen(&text.replace("ios=48000/0", "ios=4790000/0"));
    assert!(bare.contains("The bare storage"), "{bare}");
}
