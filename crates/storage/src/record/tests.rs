use super::*;
use crate::fixture;
use crate::readings::{LatencyReading, StorageReadings};
use crate::record::info::StorageInfo;
use assay_measure::record::{Figure, Record, Truth};
use proptest::prelude::*;
use sample::{Loop, SLAT_NS, around, labels, readings};

mod findings;
pub(crate) mod sample;

fn part(record: &Record) -> StorageInfo {
    record.parts.get().unwrap()
}

fn built(readings: &StorageReadings) -> Record {
    assay_report::kinds::install(vec![&Storage]);
    build(&labels(), readings)
}

/// The section below fio's text.
fn section(record: &Record) -> String {
    let page = super::section(record);
    assay_report::text::write(&page).trim_start().to_owned()
}

fn in_format(name: &str, record: &Record) -> String {
    let format = assay_report::formats::find(name).expect("a format");
    format.text(&assay_report::formats::Input::of(&[record])).expect("a text")
}

#[test]
fn every_key_of_a_record_is_unique() {
    let record = built(&fixture::readings());
    let mut keys: Vec<String> = record.metrics.iter().map(Metric::full_key).collect();
    let all = keys.len();
    keys.sort_unstable();
    keys.dedup();
    assert!(all > 0 && keys.len() == all);
}

/// Half a minute of even reads at depth 32, then of writes at depth 4.
fn quiet() -> StorageReadings {
    readings(&[Loop::read("data", 32, &around(8000, 30)), Loop::write("redo", 4, &around(2000, 30))])
}

fn outcome(record: &Record, id: &str) -> Truth {
    let mut rows = record.integrity.iter();
    rows.find(|row| row.id == id).unwrap().ok.clone()
}

fn advice(record: &Record, id: &str) -> Option<String> {
    let mut found = record.advice.iter();
    found.find(|advice| advice.id == id).map(|advice| advice.text.clone())
}

fn warned(record: &Record, part: &str) -> bool {
    record.doubts().any(|(_, warning)| warning.contains(part))
}

#[test]
fn the_short_section_is_as_reviewed() {
    let text = section(&built(&quiet()));
    assert!(text.lines().count() <= 25, "{text}");
    insta::assert_snapshot!(text);
    assert_eq!(section(&Record::default()), "");
}

#[test]
fn the_report_of_a_frozen_probe_is_as_reviewed() {
    let record = built(&readings(&[
        Loop::write("fill", 8, &[around(4000, 15), around(1000, 10)].concat()),
        Loop::read("point", 1, &around(500, 12)),
    ]));
    insta::assert_snapshot!(assay_report::text::render(&record));
}

#[test]
fn the_record_reads_back_and_every_face_has_it() {
    let record = built(&quiet());
    let json = assay_report::json::write(&record).unwrap();
    assert_eq!(assay_report::json::read(&json).unwrap(), record);
    let csv = in_format("csv", &record);
    let width = csv.lines().next().unwrap().split(',').count();
    assert_eq!(csv.lines().count(), 61);
    assert!(csv.lines().all(|line| line.split(',').count() == width));
    let one = built(&readings(&[Loop::read("data", 32, &[8000; 20])]));
    let summary = in_format("summary", &one);
    let lines: Vec<&str> = summary.lines().collect();
    let (header, cells) = (lines[0], lines[2].split('|').collect::<Vec<_>>());
    let at = |name: &str| cells[header.split('|').position(|column| column == name).unwrap()];
    assert_eq!(at("PREADS"), "8000");
    assert_eq!(at("READ_MBS"), "62.5");
    assert_eq!(at("PWRITES"), "0");
    assert_eq!(at("DFSR_LAT"), "");
}

#[test]
fn io_the_native_key_has_the_headline_and_what_fio_leaves_out() {
    let native = native(&built(&quiet()));
    let job = &native["storage"]["jobs"][0];
    assert_eq!(job["ways"][0]["lat"]["count"], 240_282);
    assert_eq!(job["ways"][0]["lat"]["us_p99999"]["na"], "too few samples");
    assert_eq!(job["ways"][0]["response"]["us_avg"]["na"], "no rate was requested");
    assert!(job["ways"][0]["lat"]["hist_ns"].is_object());
    assert_eq!(job["seed"], 42);
    assert_eq!(job["refused"][0]["feature"], "DEFER_TASKRUN");
    assert_eq!(native["integrity"].as_array().unwrap().len(), 11);
    assert_eq!(native["series"]["t_s"].as_array().unwrap().len(), 60);
    let group = &native["storage"]["groups"][0];
    assert_eq!(group["iops_total_per_s"]["samples_count"], 30);
    assert_eq!(native["storage"]["disks"][0]["name"], "vda");
}

#[test]
fn io_nothing_measured_is_na_and_not_zero() {
    // An empty probe: nothing ran, nothing is 0 that is not known.
    let record = built(&StorageReadings::default());
    let text = assay_report::text::render(&record);
    assert!(text.contains("End of Report"), "{text}");
    assert!(section(&record).contains("0 violated"));
    let info = part(&record);
    assert!(info.process_cpu_us_per_io.reason().is_some());
    assert!(info.devices.device_read_bytes.reason().is_some());
}

fn figures() -> impl Strategy<Value = (u64, u64, u64, u64)> {
    (0..1_u64 << 40, 0..1_u64 << 40, 0..40_u64, 0..3_u64)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the counters say, however little they agree: every face is written, and nothing
    /// that is not finite is in the record.
    #[test]
    fn io_any_readings_have_a_record_and_all_its_faces(
        jobs in prop::collection::vec(figures(), 0..4),
        seconds in prop::collection::vec(figures(), 0..20),
    ) {
        let mut readings = StorageReadings::default();
        for (at, (big, other, small, job)) in jobs.iter().enumerate() {
            let mut one = sample::readings(&[Loop::read("x", *small as u32, &[*small; 3])]);
            let mut clone = one.clones.remove(0);
            clone.job = *job as usize;
            clone.runtime_ns = *big;
            clone.user_ns = *other;
            clone.in_flight_ns = u128::from(*big) * u128::from(*other);
            clone.ways[(*job as usize).min(2)].ios = *other;
            clone.ways[1].lat.record(*big);
            readings.clones.push(clone);
            let mut described = one.jobs.remove(0);
            described.group = (at / 2) as u32;
            described.label.rate_iops[1] = (*small > 20).then_some(*big as f64);
            readings.jobs.push(described);
        }
        for (big, other, small, way) in &seconds {
            let mut second = crate::readings::SecondReading {
                group: (*small % 3) as u32,
                end_ns: *big,
                length_ns: *other,
                ..Default::default()
            };
            second.ios[*way as usize] = *other;
            second.lat[*way as usize].record(*big);
            readings.seconds.push(second);
        }
        let record = built(&readings);
        let json = assay_report::json::write(&record).unwrap();
        prop_assert_eq!(assay_report::json::read(&json).unwrap(), record.clone());
        prop_assert!(assay_report::text::render(&record).ends_with("End of Report\n"));
        prop_assert!(section(&record).starts_with("What fio leaves out"));
        prop_assert!(native(&record).is_object());
        let rows = in_format("csv", &record).lines().count();
        prop_assert_eq!(rows, seconds.len() + 1);
        let summary = in_format("summary", &record);
        prop_assert!(summary.lines().all(|line| line.split('|').count() == 18));
    }
}

mod identities {
    use super::*;

    /// A defect planted in otherwise good readings violates this identity and no exact other.
    fn planted(id: &str, plant: impl Fn(&mut StorageReadings)) {
        let mut readings = quiet();
        assert_eq!(outcome(&built(&readings), id), Truth::Holds, "{id} before");
        plant(&mut readings);
        let record = built(&readings);
        assert_eq!(outcome(&record, id), Truth::Violated, "{id}");
        let row = record.integrity.iter().find(|row| row.id == id).unwrap();
        let shown = assay_report::text::render(&record).contains(&format!("{id:<5} "));
        assert!(shown && !row.sentence.is_empty());
        if row.exact {
            assert!(warned(&record, "a bug of assay"), "{:?}", record.advice);
        }
    }

    #[test]
    fn identity_io1_a_latency_that_was_not_counted() {
        planted("IO1", |r| {
            let way = &mut r.clones[1].ways[1];
            way.ios += 1;
            way.bytes += 8192;
        });
        planted("IO1", |r| r.clones[0].ways[0].slat.record(SLAT_NS));
    }

    #[test]
    fn identity_io2_a_part_of_lat_that_is_in_neither() {
        planted("IO2", |r| {
            let way = &mut r.clones[0].ways[0];
            let (count, sum) = (way.lat.histogram.count(), way.lat.histogram.sum_ns());
            way.lat = LatencyReading::new();
            way.lat.record_n(sum / count + 1, count);
        });
    }

    #[test]
    fn identity_io3_bytes_that_no_io_moved() {
        planted("IO3", |r| r.clones[0].ways[0].bytes += 512);
    }

    #[test]
    fn identity_io4_a_second_that_was_lost() {
        planted("IO4", |r| {
            r.seconds.remove(3);
        });
    }

    #[test]
    fn identity_io5_a_submission_counted_twice() {
        planted("IO5", |r| r.clones[1].depths[2] += 100);
    }

    #[test]
    fn identity_io6_a_sync_left_out() {
        let mut readings = quiet();
        let synced = |readings: &mut StorageReadings, n: u64| {
            let option = ("fdatasync".to_owned(), Some("10".to_owned()));
            readings.jobs[1].options.push(option);
            readings.clones[1].sync = LatencyReading::new();
            readings.clones[1].sync.record_n(900_000, n);
        };
        synced(&mut readings, 6006);
        assert_eq!(outcome(&built(&readings), "IO6"), Truth::Holds);
        synced(&mut readings, 6006 - 4);
        assert_eq!(outcome(&built(&readings), "IO6"), Truth::Violated);
        readings.jobs[1].options.push(("fsync".to_owned(), Some("1".to_owned())));
        assert!(matches!(outcome(&built(&readings), "IO6"), Truth::Na(_)));
    }

    #[test]
    fn identity_io7_latencies_that_miss_time_in_flight() {
        planted("IO7", |r| r.clones[0].in_flight_ns = r.clones[0].in_flight_ns * 104 / 100);
    }

    #[test]
    fn identity_io8_a_depth_that_was_not_reached() {
        planted("IO8", |r| r.jobs[0].label.iodepth = 64);
        let mut rated = quiet();
        rated.jobs[0].label.iodepth = 64;
        rated.jobs[1].label.iodepth = 64;
        for job in &mut rated.jobs {
            job.options.push(("thinktime".to_owned(), Some("100".to_owned())));
        }
        assert!(matches!(outcome(&built(&rated), "IO8"), Truth::Na(_)));
    }

    #[test]
    fn identity_io8_allows_for_a_thread_that_had_no_cpu() {
        let mut starved = quiet();
        starved.jobs[0].label.iodepth = 64;
        for clone in &mut starved.clones {
            clone.run_delay_ns = clone.runtime_ns / 10 * 9;
        }
        assert_eq!(outcome(&built(&starved), "IO8"), Truth::Holds);
    }

    #[test]
    fn identity_io8_is_na_where_the_drivers_own_time_weighs() {
        let mut buffered = quiet();
        for job in &mut buffered.jobs {
            job.label.iodepth = 64;
            job.options.retain(|(name, _)| name != "direct");
        }
        assert!(matches!(outcome(&built(&buffered), "IO8"), Truth::Na(_)));
    }

    #[test]
    fn identity_io9_a_response_shorter_than_its_service() {
        let mut readings = quiet();
        let rated = |readings: &mut StorageReadings, ns: u64| {
            let way = &mut readings.clones[1].ways[1];
            let count = way.ios;
            let mut response = LatencyReading::new();
            response.record_n(ns, count);
            way.response = Some(response);
        };
        rated(&mut readings, 2_100_000);
        assert_eq!(outcome(&built(&readings), "IO9"), Truth::Holds);
        rated(&mut readings, 1_900_000);
        assert_eq!(outcome(&built(&readings), "IO9"), Truth::Violated);
    }

    #[test]
    fn identity_io10_and_io11_more_cpu_than_time() {
        planted("IO10", |r| {
            r.clones[0].user_ns = 31_000_000_000;
            r.process_cpu_ns = 60_000_000_000;
        });
        planted("IO11", |r| r.process_cpu_ns = 1_000_000);
    }

    #[test]
    fn identities_of_latencies_that_were_not_taken_are_na() {
        let mut readings = readings(&[Loop::read("data", 8, &[1000; 12])]);
        let label = &mut readings.jobs[0].label;
        (label.no_lat, label.no_clat, label.no_slat) = (true, true, true);
        let way = &mut readings.clones[0].ways[0];
        (way.lat, way.clat, way.slat) = Default::default();
        let record = built(&readings);
        for id in ["IO1", "IO2", "IO7", "IO8"] {
            assert!(matches!(outcome(&record, id), Truth::Na(_)), "{id}");
        }
        // Without instants nobody knows how long how many were under way.
        let job = &part(&record).jobs[0];
        assert_eq!(job.in_flight_mean_count, Figure::na("no timestamps were taken"));
        let lat = &part(&record).jobs[0].ways[0].lat;
        assert_eq!(lat.us_avg, Figure::na("not taken, as requested"));
    }
}
