use super::heat::COLUMNS_MAX;
use super::*;
use assay_measure::clock::NS_PER_S;
use assay_measure::histogram::Histogram;
use assay_measure::record::{Figure, HeatRow};
use assay_measure::snapshot::{OpReading, RunData, SELECT, Snapshot};

/// Snapshots of so many seconds: 100 operations of 3 us in each, and one of 1 ms in every thousandth.
fn seconds(n: u64) -> Vec<Snapshot> {
    let mut service = Histogram::new();
    let mut all = vec![Snapshot::default()];
    for second in 1..=n {
        service.record_n(3_000, 100);
        if second.is_multiple_of(1000) {
            service.record_n(1_000_000, 1);
        }
        let mut now = Snapshot { at_ns: second * NS_PER_S, ..Snapshot::default() };
        now.driver.ops =
            vec![OpReading { kind: SELECT.to_owned(), rows: 0, service: service.clone(), response: service.clone() }];
        now.stats.gauges.insert("dirty_buffers".to_owned(), second);
        all.push(now);
    }
    all
}

fn built(snapshots: &[Snapshot]) -> assay_measure::record::Series {
    let mut builder = SeriesBuilder::default();
    for pair in snapshots.windows(2) {
        builder.push(&pair[0], &pair[1]);
    }
    builder.finish(&RunData { end: snapshots.last().unwrap().clone(), ..RunData::default() })
}

fn total(row: &HeatRow) -> u64 {
    row.buckets.iter().flatten().map(|(_, n)| n).sum()
}

#[test]
fn every_second_of_a_long_run_has_its_row_and_the_heat_stays_narrow() {
    let series = built(&seconds(3700));
    assert_eq!(series.t_s.len(), 3700);
    assert_eq!(series.step_s, Figure::decimal(1.0));
    assert_eq!(series.metrics["ops_count_per_s"][998], Figure::decimal(100.0));
    assert_eq!(series.metrics["ops_count_per_s"][999], Figure::decimal(101.0));
    assert_eq!(series.metrics["op_us_max"][999], Figure::decimal(1000.0));
    assert_eq!(series.metrics["dirty_buffers_blocks"][3699], Figure::Count(3700));
    let [row] = series.heat.as_slice() else {
        panic!("{:?}", series.heat.len());
    };
    assert_eq!((row.name.as_str(), row.layer.as_str()), ("select", "client"));
    // 3700 seconds in columns of 8.
    assert_eq!(row.t_s.len(), 463);
    assert!(row.t_s.len() <= COLUMNS_MAX && row.t_s.len() == row.buckets.len());
    assert_eq!(row.t_s.last(), Some(&3700.0));
    assert_eq!(total(row), 3700 * 100 + 3, "no duration is lost");
    // 3 us are in [2, 4), 1 ms in [512, 1024).
    assert_eq!(row.buckets[0], [(2, 800)]);
    assert!(row.buckets[124].contains(&(10, 1)), "{:?}", row.buckets[124]);
}

#[test]
fn a_step_of_no_time_is_none_and_a_late_event_is_absent_before() {
    let mut snapshots = seconds(3);
    snapshots.insert(2, snapshots[1].clone());
    snapshots[4].host.load = Some([1.5, 0.0, 0.0]);
    let series = built(&snapshots);
    assert_eq!(series.t_s, [1.0, 2.0, 3.0]);
    let load = &series.metrics["load_1m"];
    assert_eq!(load[0].reason(), Some("absent"));
    assert_eq!(load[2], Figure::decimal(1.5));
}

#[test]
fn the_series_of_kept_snapshots_is_that_of_snapshots_as_they_come() {
    let data = assay_testkit::fixtures::run();
    let mut builder = SeriesBuilder::default();
    let mut last = data.gate.clone();
    // As a run tells them: what the sessions did comes in parts.
    let activity = data.activity.clone().unwrap_or_default();
    let mut told = 0;
    for now in &data.series {
        let upto = activity.steps.partition_point(|step| step.at_ns <= now.at_ns + NS_PER_S / 2);
        builder.activity(assay_measure::history::ActivityHistory {
            keys: if told == 0 { activity.keys.clone() } else { Vec::new() },
            steps: activity.steps[told..upto].to_vec(),
            ..activity.clone()
        });
        told = upto;
        builder.push(&last, now);
        last = now.clone();
    }
    assert_eq!(crate::record::build_with(&data, builder), crate::record::build(&data));
}
